//! Deals with pending handoffs, one after the other in a workspace: matches the version, and begins or refuses a task per flow.

use super::{
    HandoffLimits, KIND,
    author::chain_of,
    decide::{handoff, input, person, refusal, task_of},
    rate,
};
use crate::{
    Triggers,
    error::internal,
    tasks::{NewTask, Tasks},
    triggers::is_lost,
};
use actor::{ActorDriver, Settlement};
use async_trait::async_trait;
use domain::{
    Code, Error, NodeId, WorkspaceId,
    task::{FlowRef, HandoffLink},
};
use flow::{
    Flow, load,
    trigger::{MAX_FRONT_MATTER, front_matter, is_markdown},
};
use futures::FutureExt;
use ports::{Clock, Delivery, LARGE};
use serde_json::{Map, Value};
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use workspace::{Access, Action, FileKind, PendingHandoff, Subject, Workspace, Workspaces};

/// When one comes again that could not be dealt with: twice this after the first attempt, then each time twice as late, up to 51 s.
const AGAIN: Duration = Duration::from_millis(100);
const LONGEST: u32 = 9;
/// After so many attempts a version that always fails is given up, so that it does not hold up those behind it.
const ATTEMPTS: u32 = 20;
/// When a flow that has enough to do is asked again.
const BUSY: Duration = Duration::from_secs(5);
/// How many times as late one is asked that was often asked before.
const BUSY_FOR_LONG: u32 = 12;

/// Deals with the pending handoffs of workspaces.
#[derive(Clone)]
pub struct Handoffs {
    /// The files.
    pub workspaces: Workspaces,
    /// The way in to tasks, and their flows.
    pub tasks: Tasks,
    /// The triggers of flows.
    pub triggers: Triggers,
    /// The limits in each workspace.
    pub limits: HandoffLimits,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// The outcome of one message.
enum Outcome {
    /// It was dealt with.
    Settled,
    /// It has to wait this long.
    Waits(Duration),
}

impl Handoffs {
    async fn deal_with(&self, delivery: &Delivery) -> Result<Outcome, Error> {
        let workspace = delivery.group.strip_prefix(KIND).and_then(|rest| rest.strip_prefix('/')?.parse().ok());
        let (Some(id), Ok(pending)) = (workspace, delivery.body.parse::<Uuid>()) else {
            tracing::error!(group = delivery.group, "a message is for no handoff");
            return Ok(Outcome::Settled);
        };
        let opened = match self
            .workspaces
            .open(id, Access::platform("a version is compared with the triggers of flows"))
            .await
        {
            Err(error) if error.code == Code::NotFound => return Ok(Outcome::Settled),
            opened => opened?,
        };
        let Some(found) = opened.handoff(pending).await? else { return Ok(Outcome::Settled) };
        if let Some(wait) = self.start(id, &opened, &found, delivery.attempt).await? {
            return Ok(Outcome::Waits(wait));
        }
        opened.handed_off(pending).await?;
        Ok(Outcome::Settled)
    }

    /// Starts a task of each flow that the version matches; how long to wait, when one of them has to.
    async fn start(
        &self,
        workspace: WorkspaceId,
        opened: &Workspace,
        pending: &PendingHandoff,
        attempt: u32,
    ) -> Result<Option<Duration>, Error> {
        let Some((flows, about)) = self.matched(opened, pending, attempt).await? else { return Ok(None) };
        let chain = match chain_of(&**self.tasks.table(), workspace, &pending.by).await {
            // Without the log of its author nobody can tell which tasks led to the version, so no limit would end flows that start each other.
            Err(error) if error.is_damage() && attempt >= ATTEMPTS => {
                let why = internal(error);
                for name in flows {
                    tracing::error!(%workspace, flow = name, path = %pending.change.path, error = %why, "a version does not start its flow");
                    let flow = FlowRef { name, hash: domain::Sha256::of(b"") };
                    self.refuse(workspace, pending, (flow, None), &[], &about, why.clone()).await?;
                }
                return Ok(None);
            }
            chain => chain.map_err(internal)?,
        };
        for name in flows {
            match self.start_one(workspace, pending, &name, &chain, &about).await {
                Ok(None) => {}
                Ok(Some(wait)) => return Ok(Some(wait)),
                Err(error) if !gives_up(&error, attempt) => return Err(error),
                Err(error) => {
                    tracing::error!(%workspace, flow = name, path = %pending.change.path, %error, "a version does not start its flow");
                    let flow = FlowRef { name, hash: domain::Sha256::of(b"") };
                    self.refuse(workspace, pending, (flow, None), &chain, &about, error).await?;
                }
            }
        }
        Ok(None)
    }

    /// The flows that the version matches, by name, and its front matter; none when there is no such version any more.
    async fn matched(
        &self,
        opened: &Workspace,
        pending: &PendingHandoff,
        attempt: u32,
    ) -> Result<Option<(Vec<String>, Map<String, Value>)>, Error> {
        let change = &pending.change;
        // Tasks are seen by the whole workspace, and homes are not.
        let everybody = Subject::Service { name: "handoff" };
        let is_shared = opened.explain(&everybody, Action::Read, &change.path).is_permit();
        if change.kind != FileKind::File || !is_shared {
            return Ok(None);
        }
        let (path, is_first) = (&change.path, change.v == 1);
        let mut flows = self.triggers.of(opened).await?;
        flows.retain(|_, triggers| triggers.iter().any(|trigger| trigger.concerns(path, is_first)));
        if flows.is_empty() {
            return Ok(None);
        }
        let mut about = Map::new();
        if is_markdown(path.name()) && change.size <= LARGE {
            let text = match opened.version(change.file_id, change.v).await {
                Ok((_, content)) => {
                    let beginning = content.slice(..content.len().min(MAX_FRONT_MATTER + 1024));
                    String::from_utf8_lossy(&beginning).into_owned()
                }
                Err(error) if error.code == Code::NotFound => return Ok(None),
                // It may be repaired in a while. Then those behind it go on, and it starts flows that need no front matter alone.
                Err(error) if is_lost(&error) && attempt >= ATTEMPTS => {
                    tracing::error!(%path, v = change.v, %error, "a version whose content is lost counts as one without front matter");
                    String::new()
                }
                Err(error) => return Err(error),
            };
            about = workspace::blocking::run(move || front_matter(&text)).await.map_err(internal)?;
        }
        flows.retain(|_, triggers| triggers.iter().any(|trigger| trigger.matches(path, is_first, &about)));
        Ok(Some((flows.into_keys().collect(), about)))
    }

    async fn start_one(
        &self,
        workspace: WorkspaceId,
        pending: &PendingHandoff,
        name: &str,
        chain: &[HandoffLink],
        about: &Map<String, Value>,
    ) -> Result<Option<Duration>, Error> {
        let loaded = self.loaded(workspace, name).await?;
        let (reference, flow) = match loaded {
            Ok(flow) => (flow.reference.clone(), Ok(flow)),
            Err((reference, error)) => (reference, Err(error)),
        };
        let refused = refusal(pending, name, chain, &self.limits);
        let flow = match (refused, flow) {
            (Some(why), flow) => {
                self.refuse(workspace, pending, (reference, flow.ok()), chain, about, why).await?;
                return Ok(None);
            }
            (None, Err(why)) => {
                self.refuse(workspace, pending, (reference, None), chain, about, why).await?;
                return Ok(None);
            }
            (None, Ok(flow)) => flow,
        };
        let task = task_of(workspace, name, pending.change.file_id, pending.change.v);
        let table = &**self.tasks.table();
        if let Some(wait) =
            rate::take(table, workspace, task, &self.limits, self.clock.now()).await.map_err(internal)?
        {
            tracing::info!(%workspace, flow = name, path = %pending.change.path, ?wait, "a version waits: files have started enough tasks");
            return Ok(Some(wait));
        }
        let new = NewTask {
            input: input(pending, about),
            handoff: Some(handoff(pending, chain.to_vec())),
            ..NewTask::default()
        };
        match self.tasks.create_of(workspace, task, &flow, new, &person(&pending.by)).await {
            Ok(_) => Ok(None),
            Err(error) if error.code == Code::RateLimited => Ok(Some(BUSY)),
            Err(error) if is_final(&error) => {
                self.refuse(workspace, pending, (reference, Some(flow)), chain, about, error).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The flow, or its reference with the reason for which it does not load.
    async fn loaded(&self, workspace: WorkspaceId, name: &str) -> Result<Result<Arc<Flow>, (FlowRef, Error)>, Error> {
        match self.tasks.flows().load(workspace, name).await {
            Ok(flow) => Ok(Ok(flow)),
            Err(error) if is_final(&error) => {
                let files = self.tasks.flows().files(workspace, name).await.unwrap_or_default();
                Ok(Err((FlowRef { name: name.to_owned(), hash: load::hash(&files) }, error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a task that ends at once with the reason, so that people find it where they look for tasks.
    async fn refuse(
        &self,
        workspace: WorkspaceId,
        pending: &PendingHandoff,
        (reference, flow): (FlowRef, Option<Arc<Flow>>),
        chain: &[HandoffLink],
        about: &Map<String, Value>,
        why: Error,
    ) -> Result<(), Error> {
        let task = task_of(workspace, &reference.name, pending.change.file_id, pending.change.v);
        tracing::warn!(%workspace, flow = reference.name, path = %pending.change.path, error = %why, "a version starts no task");
        if let Some(flow) = &flow {
            self.tasks.flows().keep(workspace, flow).await?;
        }
        let start = flow.map_or_else(|| NodeId::from(""), |flow| flow.default_start.clone());
        let (input, handoff) = (input(pending, about), handoff(pending, chain.to_vec()));
        self.tasks.refuse(workspace, task, reference, start, (input, handoff), why, &person(&pending.by)).await
    }
}

/// Whether a version is given up for a flow that fails so at this attempt. A store that does not answer, or is full, is no reason: a delivery that
/// only waited for its turn counts as an attempt, too, so the first such failure may come after any number of them.
fn gives_up(error: &Error, attempt: u32) -> bool {
    attempt >= ATTEMPTS && !matches!(error.code, Code::UpstreamUnavailable | Code::StorageFull)
}

/// How long a version waits at least that has waited so often. Queues count that as attempts, and put a message aside that had too many.
fn asked_again(attempt: u32) -> Duration {
    BUSY * (attempt / 5).min(BUSY_FOR_LONG)
}

/// Whether another attempt fails, too.
fn is_final(error: &Error) -> bool {
    matches!(error.code, Code::Unprocessable | Code::NotFound | Code::InvalidArgument | Code::PayloadTooLarge)
}

#[async_trait]
impl ActorDriver for Handoffs {
    fn name(&self) -> &'static str {
        KIND
    }

    async fn deliver(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Settlement {
        for (done, delivery) in deliveries.iter().enumerate() {
            if cut.is_cancelled() {
                return Settlement { done, again: Duration::ZERO };
            }
            // A panic is this version's alone, and not that of the others that a worker deals with.
            let dealt = AssertUnwindSafe(self.deal_with(delivery)).catch_unwind().await;
            match dealt {
                Ok(Ok(Outcome::Settled)) => continue,
                Ok(Ok(Outcome::Waits(again))) => {
                    return Settlement { done, again: again.max(asked_again(delivery.attempt)) };
                }
                Ok(Err(error)) => tracing::warn!(group = delivery.group, %error, "a version is dealt with later"),
                Err(_) if delivery.attempt >= ATTEMPTS => {
                    tracing::error!(group = delivery.group, "a version that panics is left out");
                    continue;
                }
                Err(_) => tracing::error!(group = delivery.group, "a version panicked"),
            }
            return Settlement { done, again: AGAIN * 2_u32.pow(delivery.attempt.min(LONGEST)) };
        }
        Settlement { done: deliveries.len(), again: Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_has_waited_long_is_not_given_up_for_a_store_that_stumbles_once() {
        for passes in [Code::UpstreamUnavailable, Code::StorageFull] {
            assert!(!gives_up(&Error::new(passes, "away"), 10 * ATTEMPTS), "{passes:?}");
        }
        let fault = Error::new(Code::Internal, "it cannot be read");
        assert_eq!([ATTEMPTS - 1, ATTEMPTS].map(|attempt| gives_up(&fault, attempt)), [false, true]);
    }

    /// The queue on AWS puts a message aside after 200 attempts (`infra/data.yaml`).
    #[test]
    fn a_version_waits_for_hours_before_a_queue_puts_its_message_aside() {
        let waits: Duration = (1..=200).map(|attempt| BUSY.max(asked_again(attempt))).sum();
        assert!(waits > Duration::from_secs(2 * 3600), "{waits:?}");
        assert!(asked_again(9) <= BUSY, "at first it is asked soon");
    }
}
