//! Reads of a run: history, trace and comparison.

use crate::{stage::HistoryPage, trace::Tracer};
use domain::{Error, TaskId, WorkspaceId};
use engine::{Tasks, error::internal};
use flow::diff::TaskDiff;
use futures::{Stream, TryStreamExt, stream};

/// Bytes of a trace that are given on at once.
const CHUNK: usize = 64 * 1024;

/// The stages of a task, in the order in which they began: those numbered above `after`, at most `limit` of them.
///
/// # Errors
/// `NOT_FOUND` when there is no such task; those of [`Tasks`].
pub async fn history(
    tasks: &Tasks,
    workspace: WorkspaceId,
    task: TaskId,
    after: u64,
    limit: usize,
) -> Result<HistoryPage, Error> {
    let view = tasks.get(workspace, task).await?;
    // The manifest's part about a node is an extra: the history of a flow that loads no more is still told.
    let flow = tasks.flows().if_it_loads(workspace, &view.flow).await?;
    crate::history::read(&**tasks.table(), flow.as_deref(), workspace, task, after, limit).await.map_err(internal)
}

/// The trace of a task and all its descendants: JSON Lines without ids, times, durations and money. Two runs that did the
/// same have the same bytes. Rebuilt from the logs, one page of one log at a time.
///
/// # Errors
/// `NOT_FOUND` when there is no such task; those of [`Tasks`], which also end the stream.
pub async fn trace_stream(
    tasks: &Tasks,
    workspace: WorkspaceId,
    task: TaskId,
) -> Result<impl Stream<Item = Result<String, Error>> + Send + 'static, Error> {
    tasks.get(workspace, task).await?;
    let tracer = Tracer::new(tasks.table().clone(), workspace, task);
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
/// As [`trace_stream`].
pub async fn trace(tasks: &Tasks, workspace: WorkspaceId, task: TaskId) -> Result<String, Error> {
    trace_stream(tasks, workspace, task).await?.try_collect().await
}

/// The place where two runs part, and the runs of each node in both.
///
/// # Errors
/// `NOT_FOUND` when one of the tasks is not there; those of [`Tasks`].
pub async fn diff(tasks: &Tasks, workspace: WorkspaceId, a: TaskId, b: TaskId) -> Result<TaskDiff, Error> {
    for task in [a, b] {
        tasks.get(workspace, task).await?;
    }
    let tracer = |task| Tracer::new(tasks.table().clone(), workspace, task);
    crate::diff::compare((a, b), tracer(a), tracer(b)).await.map_err(internal)
}
