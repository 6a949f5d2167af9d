//! The changes of a workspace out of its parts: records of files, and the lists of chats and tasks.

use crate::Readers;
use actor::waiting;
use async_trait::async_trait;
use domain::{ChatView, Code, TaskView, Timestamp, Waiting, WorkspaceEvent, WorkspaceId, changes_channel};
use engine::tasks::TaskFilter;
use parking_lot::Mutex;
use std::time::Duration;
use stream::{Changes, Records, States};
use workspace::{Access, Workspace};

/// The chats that were active last, and the newest tasks, whose states a stream compares with what it has told. It hears of the others
/// by the bus alone.
const LISTED: usize = 100;
/// How much of what waits is read at once, and at most.
const WAITING_PAGE: usize = 200;
const MOST_WAITING: usize = 2_000;

/// The changes of one workspace, as its watcher may see them.
pub(crate) struct WorkspaceChanges {
    workspace: WorkspaceId,
    access: Access,
    readers: Readers,
    /// As it was opened for the last check: so other policies show within a beat.
    files: Mutex<Option<Workspace>>,
}

impl WorkspaceChanges {
    pub fn new(workspace: WorkspaceId, access: Access, readers: Readers) -> Self {
        Self { workspace, access, readers, files: Mutex::default() }
    }
}

#[async_trait]
impl Changes for WorkspaceChanges {
    fn channel(&self) -> String {
        changes_channel(self.workspace)
    }
    fn now(&self) -> Timestamp {
        self.readers.clock.now()
    }
    fn late(&self) -> Duration {
        workspace::LATE
    }
    fn kept(&self) -> Duration {
        workspace::CHANGES_KEPT
    }
    async fn records(&self, from: Timestamp, cursor: Option<String>) -> ports::Result<Records> {
        let files = self.readers.workspaces.open(self.workspace, self.access.clone()).await.map_err(unreadable)?;
        *self.files.lock() = Some(files.clone());
        let page = files.changes_from(from, cursor).await.map_err(unreadable)?;
        Ok((page.changes, page.next))
    }
    fn seen(&self, event: WorkspaceEvent) -> Option<WorkspaceEvent> {
        self.files.lock().as_ref()?.seen(event)
    }
    async fn states(&self) -> ports::Result<States> {
        let chats = self.readers.chats.list(self.workspace, LISTED, None).await.map_err(unreadable)?;
        let tasks =
            self.readers.tasks.list(self.workspace, &TaskFilter::default(), LISTED, None).await.map_err(unreadable)?;
        let (waiting, more_waits) = self.waiting().await?;
        let chats = chats.chats.iter().filter_map(ChatView::event);
        let tasks = tasks.tasks.iter().filter_map(TaskView::event);
        let waiting = waiting.iter().filter_map(|waiting| waiting.event(false));
        Ok(States { events: chats.chain(tasks).chain(waiting).collect(), more_waits })
    }
}

impl WorkspaceChanges {
    /// All that waits, up to a bound, and whether more waits.
    async fn waiting(&self) -> ports::Result<(Vec<Waiting>, bool)> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = waiting::list(&*self.readers.table, self.workspace, None, WAITING_PAGE, cursor).await;
            let page = page.map_err(unreadable)?;
            all.extend(page.waiting);
            cursor = page.next_cursor;
            if cursor.is_none() || all.len() >= MOST_WAITING {
                return Ok((all, cursor.is_some()));
            }
        }
    }
}

/// The cause is in the log already; a workspace that is gone ends its streams.
fn unreadable(error: domain::Error) -> ports::Error {
    match error.code {
        Code::NotFound => ports::Error::Invalid(error.message),
        _ => ports::Error::unavailable("the changes of a workspace", error),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::on_fakes::OnFakes;
    use chat::ChatReader;
    use engine::TaskReader;
    use ports::{Expect, Key, Write};
    use serde_json::json;
    use std::sync::Arc;
    use testkit::fakes::{FakeBus, Faults};

    #[tokio::test(start_paused = true)]
    async fn states_say_that_more_waits_than_they_tell() {
        let OnFakes { id, workspaces, clock, table, .. } = &OnFakes::new().await;
        let of_number = |number: usize| {
            let chat = format!("019bf537-f228-7cd3-aa1c-{number:012x}");
            let body = json!({
                "workspace_id": id, "chat_id": chat, "task_id": chat, "user_id": chat, "title": "", "waiting_for": [],
            });
            (Key::new(format!("{id}/waiting"), chat), body.to_string())
        };
        let all: Vec<_> = (0..=MOST_WAITING).map(of_number).collect();
        for some in all.chunks(ports::MAX_WRITES) {
            let puts = some.iter().map(|(key, body)| Write::put(key.clone(), body.as_str(), Expect::Absent));
            table.commit(puts.collect()).await.unwrap();
        }
        let readers = Readers {
            chats: ChatReader::new(table.clone(), workspaces.clone()),
            tasks: TaskReader::new(table.clone()),
            table: table.clone(),
            bus: Arc::new(FakeBus::new(0, Faults::none())),
            clock: clock.clone(),
            workspaces: workspaces.clone(),
        };
        let changes = WorkspaceChanges::new(*id, Access::platform("a test"), readers);
        let States { events, more_waits } = changes.states().await.unwrap();
        assert_eq!((events.len(), more_waits), (MOST_WAITING, true));
        let over = all.iter().take(2).map(|(key, _)| Write::delete(key.clone(), Expect::Present));
        table.commit(over.collect()).await.unwrap();
        let States { events, more_waits } = changes.states().await.unwrap();
        assert_eq!((events.len(), more_waits), (MOST_WAITING - 1, false));
    }
}
