//! The driver of an evaluation: a worker, by messages that it sends to itself, a while at a time.
//!
//! In between it makes room, since its cases' tasks need workers, too: so however many evaluations run, none of them keeps its own
//! tasks from running. The messages are numbered, and the number of the next one is kept beside the record: one that comes late, or
//! twice, does nothing.

use super::{
    CaseResult, Evaluation, Evaluations, Open, Outcome, Progress, Timestamp,
    case::{Stage, may_pass},
    junit, open, open_key,
    plan::{PlannedCase, plan},
    write,
};
use actor::{ActorDriver, Settlement};
use async_trait::async_trait;
use domain::{ActorKind, ActorRef, Code, Error, EvaluationId, FilePath, Principal, WorkspaceId};
use engine::error::internal;
use flow::Flow;
use futures::{FutureExt, StreamExt, stream::SelectAll};
use ports::{Delivery, Expect, QueueMessage, Subscription, Write};
use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use workspace::Access;

/// How many cases run at once.
pub(super) const AT_ONCE: usize = 4;
/// How long an evaluation is driven before it makes room.
const WHILE: Duration = Duration::from_secs(2);
/// How long it makes room then.
const REST: Duration = Duration::from_secs(1);
/// How often tasks without news are looked at: an event of the bus is a hint, and may be lost.
const LOOK: Duration = Duration::from_millis(250);
/// When one comes again that could not be driven: twice this after the first attempt, then each time twice as late, up to 51 s.
const AGAIN: Duration = Duration::from_millis(100);
const LONGEST: u32 = 9;

/// The record of the evaluation that is driven, and its revision.
struct Record {
    evaluation: Evaluation,
    rev: u64,
}

impl Evaluations {
    /// Sends the message with this number.
    pub(super) async fn tell(
        &self,
        workspace: WorkspaceId,
        id: EvaluationId,
        number: u64,
        deliver_at: Option<Timestamp>,
    ) -> Result<(), Error> {
        let group = ActorRef::Evaluation { workspace, evaluation: id }.to_string();
        let message = QueueMessage {
            group,
            id: format!("{id}/{number}"),
            body: number.to_string(),
            deliver_at,
            ..QueueMessage::default()
        };
        self.queue.send(vec![message]).await.map_err(internal)
    }

    /// Drives one by these messages, for a while.
    async fn driven(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Result<(), Error> {
        let group = deliveries.first().map(|first| first.group.parse());
        let Some(Ok(ActorRef::Evaluation { workspace, evaluation: id })) = group else {
            tracing::error!("a message is for no evaluation");
            return Ok(());
        };
        let kept = self.table.get(&open_key(workspace, id)).await.map_err(internal)?;
        // Without it the evaluation has ended.
        let Some(kept) = kept else { return Ok(()) };
        let is_open: Open = serde_json::from_str(&kept.body).map_err(internal)?;
        let newest = deliveries.iter().filter_map(|delivery| delivery.body.parse().ok()).max().unwrap_or(is_open.next);
        if newest < is_open.next {
            return Ok(());
        }
        let closed = || Write::delete(open_key(workspace, id), Expect::Rev(kept.rev));
        let Some((evaluation, rev)) = self.find(workspace, id).await? else {
            // The workspace is gone, and the record with it.
            return self.table.commit(vec![closed()]).await.map_err(internal);
        };
        if evaluation.status == Progress::Finished {
            // A worker that did not know of the stop may have begun cases since.
            if evaluation.error.as_ref().is_some_and(|error| error.code == Code::Cancelled) {
                self.report(&evaluation).await;
                if let Err(error) = self.stop_cases(&evaluation).await
                    && may_pass(&error)
                {
                    return Err(error);
                }
            }
            return self.table.commit(vec![closed()]).await.map_err(internal);
        }
        let mut record = Record { evaluation, rev };
        if record.evaluation.status == Progress::Queued {
            record.evaluation.status = Progress::Running;
            self.save(&mut record).await?;
        }
        let is_over = match self.cases(&mut record, cut).await {
            Ok(is_over) => is_over,
            // A later try may pass; and a worker that finds another one at work on it looks again.
            Err(error) if may_pass(&error) => return Err(error),
            Err(error) => {
                record.evaluation.error = Some(error);
                true
            }
        };
        if is_over {
            let Record { mut evaluation, rev } = record;
            evaluation.status = Progress::Finished;
            evaluation.finished_at = Some(self.clock.now());
            self.report(&evaluation).await;
            let last = vec![write(&evaluation, Expect::Rev(rev))?, closed()];
            return self.table.commit(last).await.map_err(internal);
        }
        let next = Open { next: newest + 1, at: self.clock.now() + REST };
        // The message comes first: if the worker dies here, this message is delivered again, and the next one is sent once more.
        self.tell(workspace, id, next.next, Some(next.at)).await?;
        let open = open(workspace, id, next, Expect::Rev(kept.rev))?;
        self.table.commit(vec![open]).await.map_err(internal)
    }

    /// The services for the cases of an evaluation.
    pub(super) fn stage<'a>(
        &'a self,
        of: &Evaluation,
        flow: &'a Arc<Flow>,
        files: &'a BTreeMap<String, String>,
    ) -> Stage<'a> {
        Stage {
            tasks: &self.tasks,
            workspaces: &self.workspaces,
            table: &*self.table,
            evaluation: of.evaluation_id,
            workspace: of.workspace_id,
            flow,
            files,
            bless: of.selection.bless,
            by: of.by.clone(),
            clock: &*self.clock,
        }
    }

    /// Brings the cases on that have no result yet, and writes down each result as it comes. Whether all have one; the time is up
    /// otherwise.
    async fn cases(&self, record: &mut Record, cut: &CancellationToken) -> Result<bool, Error> {
        let evaluation = record.evaluation.clone();
        let workspace = evaluation.workspace_id;
        let flow = self.tasks.flows().by_hash(workspace, &evaluation.flow).await?;
        let files = match self.tasks.flows().files(workspace, &flow.reference.name).await {
            // One in the box, or one whose folder is gone.
            Err(error) if error.code == Code::NotFound => BTreeMap::new(),
            files => files?,
        };
        let stage = self.stage(&evaluation, &flow, &files);
        let planned: Vec<PlannedCase<'_>> = plan(&flow, &evaluation.selection)?;
        stage.close_newest(&planned, &evaluation.cases).await;
        let until = Instant::now() + WHILE;
        let mut heard: SelectAll<Subscription> = SelectAll::new();
        let mut listened: BTreeSet<String> = BTreeSet::new();
        loop {
            // In the order of the manifest, so that the number of results says which case is the next.
            let mut is_first = true;
            for one in planned.iter().skip(record.evaluation.cases.len()).take(AT_ONCE) {
                if !one.is_enabled {
                    if is_first {
                        let skipped = CaseResult::new(&one.suite.name, &one.case.id, Outcome::Skipped);
                        self.note(record, skipped).await?;
                    }
                    continue;
                }
                if !listened.contains(&one.to_string()) {
                    let (own, task) = stage.place(one);
                    // The bus is a hint: without it the task is looked at now and then.
                    if let Ok(subscription) = self.tasks.listen(own, task).await {
                        heard.push(subscription);
                        listened.insert(one.to_string());
                    }
                }
                let ended = stage.advance(one, is_first).await?;
                let Some(ended) = ended.filter(|_| is_first) else {
                    is_first = false;
                    continue;
                };
                let result = stage.judge(one, ended).await?;
                let outcome = result.outcome;
                self.note(record, result).await?;
                stage.close(one, outcome).await;
            }
            if record.evaluation.cases.len() >= planned.len() {
                // Once more, for those whose stop did not go through.
                let lost = |(_, result): &(&PlannedCase<'_>, &CaseResult)| result.outcome == Outcome::Error;
                for (one, result) in planned.iter().zip(&record.evaluation.cases).filter(lost) {
                    stage.close(one, result.outcome).await;
                }
                return Ok(true);
            }
            if !is_first {
                tokio::select! {
                    () = hint(&mut heard) => {}
                    () = tokio::time::sleep(LOOK) => {}
                    () = cut.cancelled() => return Ok(false),
                }
            }
            if Instant::now() >= until || cut.is_cancelled() {
                return Ok(false);
            }
        }
    }

    async fn note(&self, record: &mut Record, result: CaseResult) -> Result<(), Error> {
        record.evaluation.add(result);
        self.save(record).await
    }

    /// Writes the record down, unless another worker did.
    async fn save(&self, record: &mut Record) -> Result<(), Error> {
        let write = write(&record.evaluation, Expect::Rev(record.rev))?;
        self.table.commit(vec![write]).await.map_err(internal)?;
        record.rev += 1;
        Ok(())
    }

    /// Puts the report into files for people and build servers: `/tasks/evaluations/<id>/`.
    async fn report(&self, evaluation: &Evaluation) {
        let results = serde_json::to_value(evaluation).map(|value| format!("{value:#}\n")).unwrap_or_default();
        for (name, text) in [("results.json", results), ("junit.xml", junit(evaluation))] {
            let path = format!("/tasks/evaluations/{}/{name}", evaluation.evaluation_id);
            if let Err(error) = self.put(evaluation.workspace_id, &path, text).await {
                tracing::warn!(evaluation = %evaluation.evaluation_id, %error, path, "a report was not written");
            }
        }
    }

    async fn put(&self, workspace: WorkspaceId, path: &str, text: String) -> Result<(), Error> {
        let opened = self.workspaces.open(workspace, Access::platform("reports of evaluations")).await?;
        opened.write(&FilePath::parse(path)?, text, workspace::Expect::Any, &Principal::System.into()).await?;
        Ok(())
    }
}

#[async_trait]
impl ActorDriver for Evaluations {
    fn name(&self) -> &'static str {
        ActorKind::Evaluation.as_str()
    }

    async fn deliver(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Settlement {
        // A panic is this evaluation's alone, and not that of the others that a worker drives.
        let driven = AssertUnwindSafe(self.driven(deliveries, cut)).catch_unwind().await;
        let group = deliveries.first().map_or("", |first| &first.group);
        match driven {
            Ok(Ok(())) => return Settlement { done: deliveries.len(), again: Duration::ZERO },
            Ok(Err(error)) => tracing::warn!(group, %error, "an evaluation could not be driven"),
            Err(_) => tracing::error!(group, "an evaluation panicked"),
        }
        let attempt = deliveries.first().map_or(1, |first| first.attempt);
        Settlement { done: 0, again: AGAIN * 2_u32.pow(attempt.min(LONGEST)) }
    }
}

/// Returns when anything is heard; never without a subscription.
async fn hint(heard: &mut SelectAll<Subscription>) {
    if heard.next().await.is_none() {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::golden;

    #[test]
    fn open_evaluations_are_read_as_every_version_wrote_them() {
        let open = [Open::default(), Open { next: 7, at: Timestamp::from_millis(1_767_225_600_042) }];
        golden::check(env!("CARGO_MANIFEST_DIR"), "evaluations_open", &open);
        assert_eq!(serde_json::from_str::<Open>("{}").ok(), Some(Open::default()), "before it had a number");
    }
}
