//! The sweep of sandboxes.

use assembly::sweeps::{Sweep, SweepStep};
use async_trait::async_trait;
use aws::EcsSandboxes;

/// Sandboxes that no workspace wants, that have ended, or that do not come.
pub(crate) struct StoppedSandboxes(pub EcsSandboxes);

#[async_trait]
impl Sweep for StoppedSandboxes {
    fn name(&self) -> &'static str {
        "sandboxes"
    }

    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, domain::Error> {
        let (swept, next) = self.0.sweep_page(from).await.map_err(|error| {
            domain::Error::new(domain::Code::UpstreamUnavailable, format!("the sandboxes could not be swept: {error}"))
        })?;
        let aws::Swept { failed, ended, stopped, left, .. } = swept;
        let (count, more) = ((failed + ended + stopped) as u64, next.is_some());
        Ok(SweepStep { count, failed: left as u64, next, more })
    }
}
