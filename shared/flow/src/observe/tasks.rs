//! Reads of a run: history, trace, metadata and comparison.

use super::{
    diff::{self, TaskDiff},
    history,
    metadata::{self, RunMetadata},
    stage::HistoryPage,
    trace::Tracer,
};
use crate::tasks::{Tasks, internal};
use domain::{Code, Error, TaskId, WorkspaceId};
use futures::{Stream, TryStreamExt, stream};

/// Bytes of a trace that are given on at once.
const CHUNK: usize = 64 * 1024;

impl Tasks {
    /// The stages of a task, in the order in which they began: those numbered above `after`, at most `limit` of them.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such task; those of [`Tasks`].
    pub async fn history(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        after: u64,
        limit: usize,
    ) -> Result<HistoryPage, Error> {
        let view = self.get(workspace, task).await?;
        // The manifest's part about a node is an extra: the history of a flow that loads no more is still told.
        let flow = self.flows().if_it_loads(workspace, &view.flow).await?;
        history::read(&*self.table, flow.as_deref(), workspace, task, after, limit).await.map_err(internal)
    }

    /// The trace of a task and all its descendants: JSON Lines without ids, times, durations and money. Two runs that did the
    /// same have the same bytes. Rebuilt from the logs, one page of one log at a time.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such task; those of [`Tasks`], which also end the stream.
    pub async fn trace_stream(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
    ) -> Result<impl Stream<Item = Result<String, Error>> + Send + 'static, Error> {
        self.get(workspace, task).await?;
        let tracer = Tracer::new(self.table.clone(), workspace, task);
        Ok(stream::try_unfold(tracer, async |mut tracer| {
            let mut chunk = String::new();
            while chunk.len() < CHUNK {
                match tracer.next().await.map_err(internal)? {
                    Some(line) => chunk.push_str(&line.text()),
                    None => break,
                }
            }
            Ok((!chunk.is_empty()).then_some((chunk, tracer)))
        }))
    }

    /// The same as one text, for runs that are not too long.
    ///
    /// # Errors
    /// As [`Tasks::trace_stream`].
    pub async fn trace(&self, workspace: WorkspaceId, task: TaskId) -> Result<String, Error> {
        self.trace_stream(workspace, task).await?.try_collect().await
    }

    /// The place where two runs part, and the runs of each node in both.
    ///
    /// # Errors
    /// `NOT_FOUND` when one of the tasks is not there; those of [`Tasks`].
    pub async fn diff(&self, workspace: WorkspaceId, a: TaskId, b: TaskId) -> Result<TaskDiff, Error> {
        for task in [a, b] {
            self.get(workspace, task).await?;
        }
        let tracer = |task| Tracer::new(self.table.clone(), workspace, task);
        diff::compare((a, b), tracer(a), tracer(b)).await.map_err(internal)
    }

    /// The code and configuration that a run was made with; for a clone or a subtask, those of the task that a person made.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such task, its manifests are gone, or nothing was recorded when it was made; those of [`Tasks`].
    pub async fn metadata(&self, workspace: WorkspaceId, task: TaskId) -> Result<RunMetadata, Error> {
        let view = self.get(workspace, task).await?;
        let root = view.origin.as_ref().and_then(|origin| origin.ancestors.first().copied()).unwrap_or(task);
        let flow = self.flows().by_hash(workspace, &view.flow).await?;
        let found = metadata::read(&*self.table, &flow, workspace, root).await.map_err(internal)?;
        found.ok_or_else(|| Error::new(Code::NotFound, "nothing was recorded when this task was made"))
    }
}
