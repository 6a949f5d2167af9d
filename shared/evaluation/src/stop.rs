//! The stop of an evaluation.
//!
//! The record comes first: from then on no case gets a result. A worker that drives the evaluation at that moment holds the record as it was before, and may
//! begin some more cases. So their tasks are stopped at once, and once more by the next message to the evaluation, which comes after that worker's work.

use super::{Evaluation, Evaluations, Progress, drive::AT_ONCE, plan::plan, write};
use domain::{Code, Error, EvaluationId, WorkspaceId};
use engine::error::internal;
use ports::Expect;
use std::collections::BTreeMap;

/// How many results may be written down between a look at the record and its change.
const OVERTAKEN: usize = 100;

impl Evaluations {
    /// Stops an evaluation: its cases without a result get none, and their tasks are stopped. Gives its record, which has the error `CANCELLED` then. One
    /// that had ended is left as it is.
    ///
    /// # Errors
    /// `NOT_FOUND` when the workspace has none of this id; `CONFLICT` when results come faster than it can be stopped; `STORAGE_FULL` when there is no
    /// room; `INTERNAL` or `UPSTREAM_UNAVAILABLE` when the table does not answer or the record cannot be read.
    pub async fn stop(&self, workspace: WorkspaceId, id: EvaluationId) -> Result<Evaluation, Error> {
        for _ in 0..OVERTAKEN {
            let found = self.find(workspace, id).await?;
            let (mut evaluation, rev) = found.ok_or_else(|| Error::not_found("evaluation", id))?;
            if evaluation.status == Progress::Finished {
                return Ok(evaluation);
            }
            evaluation.status = Progress::Finished;
            evaluation.finished_at = Some(self.clock.now());
            evaluation.error = Some(Error::new(Code::Cancelled, "the evaluation was stopped"));
            match self.table.commit(vec![write(&evaluation, Expect::Rev(rev))?]).await {
                Ok(()) => {}
                Err(ports::Error::Conflict { .. }) => continue,
                Err(error) => return Err(internal(error)),
            }
            if let Err(error) = self.stop_cases(&evaluation).await {
                tracing::warn!(evaluation = %id, %error, "cases are stopped with the next message");
            }
            return Ok(evaluation);
        }
        Err(Error::new(Code::Conflict, "the evaluation goes on too fast to be stopped").hint("try again"))
    }

    /// Stops the tasks of the cases that may run without a result, and removes their workspaces. Again is harmless.
    ///
    /// # Errors
    /// Those of reading the flow; some that may pass at a later try.
    pub(super) async fn stop_cases(&self, evaluation: &Evaluation) -> Result<(), Error> {
        let workspace = evaluation.workspace_id;
        let flow = self.tasks.flows().by_hash(workspace, &evaluation.flow).await?;
        let files = BTreeMap::new();
        let stage = self.stage(evaluation, &flow, &files);
        let planned = plan(&flow, &evaluation.selection)?;
        stage.close_newest(&planned, &evaluation.cases).await;
        for one in planned.iter().skip(evaluation.cases.len()).take(AT_ONCE) {
            stage.give_up(one).await;
        }
        Ok(())
    }
}
