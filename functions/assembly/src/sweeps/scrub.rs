//! The scrub: every content of the archive is compared with its digest in rounds, so that damage is found and reported while a good copy may still
//! exist, and before the content is needed.

use super::{Sweep, SweepStep};
use async_trait::async_trait;
use domain::{Code, Error, Timestamp};
use ports::Clock;
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use workspace::Workspaces;

/// Scrubs the archives of all workspaces, one short step per sweep.
pub struct Scrub {
    /// The workspaces to go through.
    pub workspaces: Workspaces,
    /// How long after the beginning of a round the next one begins; none for never.
    pub every: Option<Duration>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// The cursor.
#[derive(Serialize, Deserialize)]
struct Round {
    begun_at: Timestamp,
    /// The cursor of the next step; none when the round has ended.
    at: Option<String>,
}

#[async_trait]
impl Sweep for Scrub {
    fn name(&self) -> &'static str {
        "scrub"
    }

    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let unchanged = || SweepStep { count: 0, failed: 0, next: from.map(str::to_owned), more: false };
        let Some(every) = self.every else { return Ok(unchanged()) };
        let now = self.clock.now();
        let round = match from.and_then(|from| serde_json::from_str::<Round>(from).ok()) {
            Some(Round { begun_at, at: None }) if now.is_within(every, begun_at) => {
                self.workspaces.recheck().await?;
                return Ok(unchanged());
            }
            Some(round @ Round { at: Some(_), .. }) => round,
            _ => Round { begun_at: now, at: None },
        };
        let step = self.workspaces.scrub(round.at.as_deref()).await?;
        let round = Round { at: step.next, ..round };
        let next = serde_json::to_string(&round).map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        Ok(SweepStep { count: step.contents, failed: step.unreadable, next: Some(next), more: false })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::on_fakes::OnFakes;
    use domain::{FilePath, Principal, Sha256};
    use workspace::Expect;

    #[tokio::test(start_paused = true)]
    async fn a_round_goes_through_everything_in_steps_and_begins_anew_when_it_is_time() {
        let OnFakes { id, workspaces, clock, blobs, .. } = &OnFakes::new().await;
        let workspace = workspaces.open(*id, workspace::Access::platform("a test")).await.unwrap();
        let (path, writer) = (FilePath::parse("/data/a").unwrap(), Principal::local().into());
        let content = |n: u32| format!("{n}").repeat(20_000);
        for n in 0..3 {
            workspace.write(&path, content(n), Expect::Any, &writer).await.unwrap();
        }
        let digest = Sha256::of(content(0).as_bytes());
        blobs.damage(&id.to_string(), digest, "other");

        let scrub =
            Scrub { workspaces: workspaces.clone(), every: Some(Duration::from_secs(3600)), clock: clock.clone() };
        let first = scrub.sweep_page(None).await.unwrap();
        assert!(first.count >= 3 && !first.more);
        assert_eq!(workspaces.damaged(10).await.unwrap().len(), 1);
        let rest = scrub.sweep_page(first.next.as_deref()).await.unwrap();
        assert_eq!((rest.count, &rest.next), (0, &first.next), "the next round is not due");

        // Somebody puts it back: that is known before the next round, which finds the next damage.
        blobs.damage(&id.to_string(), digest, content(0));
        scrub.sweep_page(first.next.as_deref()).await.unwrap();
        assert_eq!(workspaces.damaged(10).await.unwrap(), []);
        blobs.damage(&id.to_string(), digest, "other");
        tokio::time::advance(Duration::from_secs(3601)).await;
        assert!(scrub.sweep_page(first.next.as_deref()).await.unwrap().count >= 3);
        assert_eq!(workspaces.damaged(10).await.unwrap().len(), 1);

        let ahead = Round { begun_at: clock.now() + Duration::from_secs(24 * 3600), at: None };
        let ahead = serde_json::to_string(&ahead).unwrap();
        assert!(scrub.sweep_page(Some(&ahead)).await.unwrap().count >= 3, "the clock was set back");

        let never = Scrub { every: None, ..scrub };
        assert_eq!(never.sweep_page(None).await.unwrap(), SweepStep::default());
    }
}
