//! Reads of tasks: their views, their states and their logs.

use super::{Tasks, internal};
use crate::machine::{TaskState, actor_id, view_key};
use domain::{Code, Error, Status, TaskEvent, TaskId, TaskPhase, TaskView, WorkspaceId};
use ports::{Query, Subscription, validate};
use serde::Serialize;

/// A filter of tasks.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Those of this flow.
    pub flow: Option<String>,
    /// Those that do this.
    pub phase: Option<TaskPhase>,
    /// Those that are, or were, like this.
    pub status: Option<Status>,
}

/// A page of tasks.
#[derive(Clone, Debug, Serialize)]
pub struct TaskPage {
    /// The tasks; root tasks with the newest first, children in their order.
    pub tasks: Vec<TaskView>,
    /// The cursor of the next page; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Tasks {
    /// One task.
    ///
    /// # Errors
    /// `NOT_FOUND` when the workspace has none of this id; those of [`Tasks`].
    pub async fn get(&self, workspace: WorkspaceId, task: TaskId) -> Result<TaskView, Error> {
        match self.table.get(&view_key(workspace, task)).await.map_err(internal)? {
            Some(item) => serde_json::from_str(&item.body).map_err(internal),
            None => Err(Error::new(Code::NotFound, format!("there is no task {task}"))
                .hint("GET …/tasks lists the tasks of this workspace")),
        }
    }

    /// The root tasks of a workspace, the newest first. A page may hold fewer than `limit`, and still have a next one.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list; those of [`Tasks`].
    pub async fn list(
        &self,
        workspace: WorkspaceId,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<TaskPage, Error> {
        let query = Query::all(format!("{workspace}/tasks"), limit).descending().after(cursor);
        self.page(&query, filter).await
    }

    /// The tasks of a workspace whose ids begin with `prefix`, clones and subtasks among them, in the order of their ids.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a prefix that no id begins with; those of [`Tasks`].
    pub async fn with_prefix(&self, workspace: WorkspaceId, prefix: &str, limit: usize) -> Result<TaskPage, Error> {
        let begins = prefix.to_ascii_lowercase();
        if begins.is_empty()
            || begins.len() > 36
            || !begins.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-')
        {
            return Err(
                Error::invalid("id", "this is not how an id begins").hint("ids are hexadecimal, such as 019bf537-f228")
            );
        }
        // Ids have no letter beyond f.
        let to = Some(format!("{begins}g"));
        let query = Query { from: Some(begins), to, ..Query::all(format!("{workspace}/tasks"), limit) };
        let page = self.table.query(&query).await.map_err(internal)?;
        let tasks = page.items.iter().map(|item| serde_json::from_str(&item.body).map_err(internal));
        Ok(TaskPage { tasks: tasks.collect::<Result<_, _>>()?, next_cursor: None })
    }

    /// The children of a task, in their order.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such task; those of [`Tasks::list`].
    pub async fn children(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<TaskPage, Error> {
        self.get(workspace, task).await?;
        self.page(&Query::all(format!("{task}/children"), limit).after(cursor), filter).await
    }

    async fn page(&self, query: &Query, filter: &TaskFilter) -> Result<TaskPage, Error> {
        let page = self.table.query_index(query).await;
        let page = page.map_err(|error| validate::refusal(query, error).unwrap_or_else(internal))?;
        let mut tasks = Vec::new();
        for item in &page.items {
            let view: TaskView = serde_json::from_str(&item.body).map_err(internal)?;
            let fits = filter.flow.as_ref().is_none_or(|flow| view.flow.name == *flow)
                && filter.phase.is_none_or(|phase| view.phase == phase)
                && filter.status.is_none_or(|status| view.status == status);
            if fits {
                tasks.push(view);
            }
        }
        Ok(TaskPage { tasks, next_cursor: page.next })
    }

    /// The state of a task as its log has it now.
    ///
    /// # Errors
    /// As [`Tasks::each_event`].
    pub async fn state(&self, workspace: WorkspaceId, task: TaskId) -> Result<TaskState, Error> {
        let mut state = TaskState::default();
        self.each_event(workspace, task, |_, event| state.apply(event)).await?;
        Ok(state)
    }

    /// Every event of a task with its number, in order.
    ///
    /// # Errors
    /// Those of [`Tasks`]; `INTERNAL` also for an event that cannot be read. A task that there is not has no events.
    pub async fn each_event(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        mut see: impl FnMut(u64, &TaskEvent),
    ) -> Result<(), Error> {
        const PAGE: usize = 256;
        let actor = actor_id(workspace, task);
        let mut after = 0;
        loop {
            let page = actor::read_after::<TaskEvent>(&*self.table, &actor, after, PAGE).await.map_err(internal)?;
            for entry in &page.entries {
                entry.numbered().for_each(|(number, event)| see(number, event));
                after = entry.next - 1;
            }
            if !page.more {
                return Ok(());
            }
        }
    }

    /// Hears of what becomes of a task; a hint, as all of the bus.
    pub(crate) async fn listen(&self, workspace: WorkspaceId, task: TaskId) -> Result<Subscription, Error> {
        self.mailbox.bus.subscribe(actor_id(workspace, task).as_str()).await.map_err(internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_away_or_full_is_told_from_a_fault() {
        let away = ports::Error::unavailable("the store", "x");
        assert_eq!(internal(away).code, Code::UpstreamUnavailable);
        assert_eq!(internal(ports::Error::full("the store")).code, Code::StorageFull);
        assert_eq!(internal(ports::Error::Damaged("an item".into())).code, Code::Internal);
    }
}
