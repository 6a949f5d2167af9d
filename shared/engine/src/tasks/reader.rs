//! Reads of tasks: their views, their states and their logs.

use super::Tasks;
use crate::{
    error::internal,
    log,
    machine::{TaskMachine, TaskState, actor_id, actor_of, view_key},
    metadata::{self, RunMetadata},
};
use domain::{Code, Error, Labels, Status, TaskEvent, TaskId, TaskPhase, TaskView, Timestamp, UserId, WorkspaceId};
use ports::{Query, Subscription, Table, validate};
use serde::Serialize;
use std::sync::Arc;

/// A filter of tasks.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Those of this flow.
    pub flow: Option<String>,
    /// Those that do this.
    pub phase: Option<TaskPhase>,
    /// Those that are, or were, like this.
    pub status: Option<Status>,
    /// Those that were made at this time or later.
    pub since: Option<Timestamp>,
    /// Those that were made before this time.
    pub until: Option<Timestamp>,
    /// Those that have all of these labels.
    pub labels: Labels,
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

/// Tasks, for those who only watch them: it sends no command.
///
/// # Errors
/// Beside its own, every method gives `INTERNAL` when the table does not answer.
#[derive(Clone)]
pub struct TaskReader {
    table: Arc<dyn Table>,
}

impl TaskReader {
    /// Over this table.
    pub fn new(table: Arc<dyn Table>) -> Self {
        Self { table }
    }

    /// One task.
    ///
    /// # Errors
    /// `NOT_FOUND` when the workspace has none of this id; those of [`TaskReader`].
    pub async fn get(&self, workspace: WorkspaceId, task: TaskId) -> Result<TaskView, Error> {
        let (key, actor) = (view_key(workspace, task), actor_id(workspace, task));
        let found = actor::view_at::<TaskMachine, TaskView>(&*self.table, &key, &actor).await.map_err(internal)?;
        found.ok_or_else(|| {
            Error::new(Code::NotFound, format!("there is no task {task}"))
                .hint("GET …/tasks lists the tasks of this workspace")
        })
    }

    /// The root tasks of a workspace, the newest first. A page may hold fewer than `limit`, and still have a next one ([`actor::page_of_views`]).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list, and for times that end before they begin; those of [`TaskReader`].
    pub async fn list(
        &self,
        workspace: WorkspaceId,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<TaskPage, Error> {
        let TaskFilter { since, until, .. } = filter;
        if since.zip(*until).is_some_and(|(since, until)| since >= until) {
            return Err(Error::invalid("until", "until is not after since"));
        }
        // Their order in the index is that of their times.
        let (from, to) = (since.map(|since| since.to_string()), until.map(|until| until.to_string()));
        let all = Query::all(format!("{workspace}/tasks"), limit);
        let query = Query { from, to, ..all }.descending().after(cursor);
        self.page(&query, filter).await
    }

    async fn page(&self, query: &Query, filter: &TaskFilter) -> Result<TaskPage, Error> {
        let wanted = |view: &TaskView| {
            filter.flow.as_ref().is_none_or(|flow| view.flow.name == *flow)
                && filter.phase.is_none_or(|phase| view.phase == phase)
                && filter.status.is_none_or(|status| view.status == status)
                && filter.since.is_none_or(|since| view.created_at >= since)
                && filter.until.is_none_or(|until| view.created_at < until)
                && view.labels.include(&filter.labels)
        };
        let page = actor::page_of_views::<TaskMachine, TaskView>(&*self.table, query, actor_of, wanted).await;
        let (tasks, next_cursor) = page.map_err(validate::of_page(query, internal))?;
        Ok(TaskPage { tasks, next_cursor })
    }

    /// The person for whom a task works; none before its log begins.
    ///
    /// # Errors
    /// Those of [`TaskReader`]; `INTERNAL` also for an event that cannot be read.
    pub async fn person(&self, workspace: WorkspaceId, task: TaskId) -> Result<Option<UserId>, Error> {
        let config = log::config(&*self.table, workspace, task).await.map_err(internal)?;
        Ok(config.map(|config| config.user))
    }
}

impl Tasks {
    /// The reads alone, for those who only watch.
    pub fn reader(&self) -> TaskReader {
        TaskReader::new(self.table.clone())
    }

    /// [`TaskReader::get`].
    ///
    /// # Errors
    /// Those of [`TaskReader::get`].
    pub async fn get(&self, workspace: WorkspaceId, task: TaskId) -> Result<TaskView, Error> {
        self.reader().get(workspace, task).await
    }

    /// [`TaskReader::list`].
    ///
    /// # Errors
    /// Those of [`TaskReader::list`].
    pub async fn list(
        &self,
        workspace: WorkspaceId,
        filter: &TaskFilter,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<TaskPage, Error> {
        self.reader().list(workspace, filter, limit, cursor).await
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
        let mut tasks = Vec::with_capacity(page.items.len());
        for item in &page.items {
            let view = actor::view_in_list::<TaskMachine, TaskView>(&*self.table, item, &actor_of).await;
            tasks.extend(view.map_err(internal)?);
        }
        Ok(TaskPage { tasks, next_cursor: None })
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
        self.reader().page(&Query::all(format!("{task}/children"), limit).after(cursor), filter).await
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
        let mut log = log::of(workspace, task);
        while let Some((number, _, event)) = log.next(&*self.table).await.map_err(internal)? {
            see(number, &event);
        }
        Ok(())
    }

    /// The code and configuration that a run was made with; for a clone or a subtask, those of the task that a person made.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such task, its manifests are gone, or nothing was recorded when it was made; those of [`Tasks`].
    pub async fn metadata(&self, workspace: WorkspaceId, task: TaskId) -> Result<RunMetadata, Error> {
        let view = self.get(workspace, task).await?;
        let flow = self.flows.by_hash(workspace, &view.flow).await?;
        let found = metadata::read(&*self.table, &flow, workspace, view.root()).await.map_err(internal)?;
        found.ok_or_else(|| Error::new(Code::NotFound, "nothing was recorded when this task was made"))
    }

    /// Hears of what becomes of a task; a hint, as all of the bus.
    ///
    /// # Errors
    /// Those of [`Tasks`].
    pub async fn listen(&self, workspace: WorkspaceId, task: TaskId) -> Result<Subscription, Error> {
        self.mailbox.bus.subscribe(actor_id(workspace, task).as_str()).await.map_err(internal)
    }
}
