//! Who drives an evaluation: a worker, by messages that it sends to itself, a while at a time.
//!
//! In between it makes room, since its cases' tasks need workers, too: however many evaluations run, none of them keeps what it waits
//! for from running. The messages are numbered, and the number of the next one is kept beside the record: one that comes late,
//! or twice, does nothing.

use super::{
    CaseResult, Evaluation, Evaluations, Open, Outcome, Progress, Timestamp,
    case::Stage,
    junit, open, open_key,
    plan::{Planned, plan},
    write,
};
use crate::tasks::internal;
use actor::{Kind, Verdict};
use async_trait::async_trait;
use domain::{Code, Error, EvaluationId, FilePath, Principal, WorkspaceId};
use futures::{StreamExt, stream::SelectAll};
use ports::{Delivery, Expect, Outgoing, Subscription, Write};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How many cases run at once.
const AT_ONCE: usize = 4;
/// How long an evaluation is driven before it makes room.
const WHILE: Duration = Duration::from_secs(2);
/// How long it makes room then.
const REST: Duration = Duration::from_secs(1);
/// How often tasks are looked at that nothing is heard of: what is heard on the bus is a hint.
const LOOK: Duration = Duration::from_millis(250);
/// When one comes again that could not be driven.
const AGAIN: Duration = Duration::from_secs(1);

impl Evaluations {
    /// Sends the message with this number.
    pub(super) async fn tell(
        &self,
        workspace: WorkspaceId,
        id: EvaluationId,
        number: u64,
        deliver_at: Option<Timestamp>,
    ) -> Result<(), Error> {
        let group = format!("{}/{workspace}/{id}", self.name());
        let message = Outgoing {
            group,
            id: format!("{id}/{number}"),
            body: number.to_string(),
            deliver_at,
            ..Outgoing::default()
        };
        self.queue.send(vec![message]).await.map_err(internal)
    }

    /// Drives one by these messages, for a while.
    async fn driven(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Result<(), Error> {
        let Some((workspace, id)) = deliveries.first().and_then(|first| ids(&first.group)) else {
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
        let Some(mut evaluation) = self.find(workspace, id).await? else {
            // The workspace is gone, and with it whoever would look.
            let closed = Write::delete(open_key(workspace, id), Expect::Any);
            return self.table.commit(vec![closed]).await.map_err(internal);
        };
        if evaluation.status == Progress::Queued {
            evaluation.status = Progress::Running;
            self.save(&evaluation).await?;
        }
        let is_over = match self.cases(&mut evaluation, cut).await {
            Ok(is_over) => is_over,
            // What does not answer now may answer then.
            Err(error) if matches!(error.code, Code::Internal | Code::UpstreamUnavailable) => return Err(error),
            Err(error) => {
                evaluation.error = Some(error);
                true
            }
        };
        if is_over {
            evaluation.status = Progress::Finished;
            evaluation.finished_at = Some(self.clock.now());
            self.report(&evaluation).await;
            let closed = Write::delete(open_key(workspace, id), Expect::Any);
            return self.table.commit(vec![write(&evaluation, Expect::Any)?, closed]).await.map_err(internal);
        }
        let next = Open { next: newest + 1, at: self.clock.now() + REST };
        // The message comes first: whoever dies here is followed by whoever gets this one again, and sends that one once more.
        self.tell(workspace, id, next.next, Some(next.at)).await?;
        self.table.commit(vec![open(workspace, id, next, Expect::Any)?]).await.map_err(internal)
    }

    /// Brings the cases on that have no result yet, and writes down each result as it comes. Whether all have one; the time is up
    /// otherwise.
    async fn cases(&self, evaluation: &mut Evaluation, cut: &CancellationToken) -> Result<bool, Error> {
        let workspace = evaluation.workspace_id;
        let flow = self.tasks.flows().by_hash(workspace, &evaluation.flow).await?;
        let files = self.tasks.flows().files(workspace, &evaluation.flow.name).await.unwrap_or_default();
        let stage = Stage {
            tasks: &self.tasks,
            workspaces: &self.workspaces,
            table: &*self.table,
            evaluation: evaluation.evaluation_id,
            workspace,
            flow: &flow,
            files: &files,
            bless: evaluation.selection.bless,
            by: evaluation.by.clone(),
            clock: &*self.clock,
        };
        let planned: Vec<Planned<'_>> = plan(&flow, &evaluation.selection)?;
        let until = Instant::now() + WHILE;
        let mut heard: SelectAll<Subscription> = SelectAll::new();
        let mut listened: BTreeSet<String> = BTreeSet::new();
        loop {
            // In the order of the manifest, so that the number of results says which case is the next.
            let mut is_first = true;
            for one in planned.iter().skip(evaluation.cases.len()).take(AT_ONCE) {
                let result = match one.is_enabled {
                    false if is_first => CaseResult::new(&one.suite.name, &one.case.id, Outcome::Skipped),
                    false => continue,
                    true => {
                        if listened.insert(one.to_string()) {
                            let (own, task) = stage.place(one);
                            heard.push(self.tasks.listen(own, task).await?);
                        }
                        match stage.advance(one).await {
                            Some(over) if is_first => stage.judge(one, over).await,
                            Some(_) => continue,
                            None => {
                                is_first = false;
                                continue;
                            }
                        }
                    }
                };
                evaluation.add(result);
                self.save(evaluation).await?;
            }
            if evaluation.cases.len() >= planned.len() {
                return Ok(true);
            }
            if !is_first {
                tokio::select! {
                    _ = timeout(LOOK, heard.next()) => {}
                    () = cut.cancelled() => return Ok(false),
                }
            }
            if Instant::now() >= until || cut.is_cancelled() {
                return Ok(false);
            }
        }
    }

    /// Puts what came of it where people and build servers find it: `/tasks/evaluations/<id>/`.
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
        let opened = self.workspaces.open(workspace).await?;
        opened.write(&FilePath::parse(path)?, text, workspace::Expect::Any, &Principal::System.into()).await?;
        Ok(())
    }
}

#[async_trait]
impl Kind for Evaluations {
    fn name(&self) -> &'static str {
        "evaluation"
    }

    async fn deliver(&self, deliveries: &[Delivery], cut: &CancellationToken) -> Verdict {
        match self.driven(deliveries, cut).await {
            Ok(()) => Verdict { done: deliveries.len(), again: Duration::ZERO },
            Err(error) => {
                tracing::warn!(%error, "an evaluation could not be driven");
                Verdict { done: 0, again: AGAIN }
            }
        }
    }

    /// Nothing of them stays in memory.
    async fn flush_idle(&self) -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    async fn flush_all(&self) {}

    fn warm_actors(&self) -> usize {
        0
    }
}

/// The ids in a group, which is `evaluation/<workspace>/<evaluation>`.
fn ids(group: &str) -> Option<(WorkspaceId, EvaluationId)> {
    let mut parts = group.split('/').skip(1);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
