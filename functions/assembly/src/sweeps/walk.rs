//! The walk of a sweep through the root tasks and the chats of all workspaces, a page a step.

use chat::Chats;
use domain::{ChatView, Error, TaskId, TaskPhase, TaskView, WorkspaceId};
use engine::{TaskFilter, Tasks};
use serde::{Deserialize, Serialize};
use workspace::Workspaces;

/// Things of one step.
pub(super) const AT_ONCE: usize = 50;

/// The lists that a walk goes through. Cheap to clone.
#[derive(Clone)]
pub struct Lists {
    /// Workspaces.
    pub workspaces: Workspaces,
    /// Their tasks.
    pub tasks: Tasks,
    /// Their chats.
    pub chats: Chats,
}

/// A place in the walk, as cursors keep it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Place {
    /// The cursor of the list of workspaces.
    workspace: Option<String>,
    /// Whether the workspace's tasks are done, and its chats are looked at.
    chats: bool,
    /// The cursor of the list in the workspace.
    list: Option<String>,
}

/// One page of the walk: root tasks or chats of a workspace.
pub(super) struct Page {
    pub workspace: WorkspaceId,
    pub tasks: Vec<TaskView>,
    pub chats: Vec<ChatView>,
}

impl Lists {
    /// The page at a place, and the place of the next one; no page where there is no workspace, and no place at the end of the walk.
    pub(super) async fn page(&self, mut place: Place) -> Result<(Option<Page>, Option<Place>), Error> {
        let found = self.workspaces.list(1, place.workspace.clone()).await?;
        let Some(workspace) = found.workspaces.first().map(|workspace| workspace.workspace_id) else {
            return Ok((None, None));
        };
        let mut page = Page { workspace, tasks: Vec::new(), chats: Vec::new() };
        if place.chats {
            let chats = self.chats.list(workspace, AT_ONCE, place.list.take()).await?;
            (page.chats, place.list) = (chats.chats, chats.next_cursor);
        } else {
            let tasks = self.tasks.list(workspace, &TaskFilter::default(), AT_ONCE, place.list.take()).await?;
            (page.tasks, place.list) = (tasks.tasks, tasks.next_cursor);
        }
        let next = match (place.list.is_some(), place.chats, found.next_cursor) {
            (true, ..) => Some(place),
            (false, false, _) => Some(Place { chats: true, ..place }),
            (false, true, Some(next)) => Some(Place { workspace: Some(next), ..Place::default() }),
            (false, true, None) => None,
        };
        Ok((Some(page), next))
    }

    /// The children of a task: those that have not ended, and the ids of those that have.
    pub(super) async fn below(
        &self,
        workspace: WorkspaceId,
        task: &TaskView,
    ) -> Result<(Vec<TaskView>, Vec<TaskId>), Error> {
        let (mut open, mut ended, mut cursor) = (Vec::new(), Vec::new(), None);
        if task.children == 0 {
            return Ok((open, ended));
        }
        loop {
            let page = self.tasks.children(workspace, task.task_id, &TaskFilter::default(), AT_ONCE, cursor).await?;
            for child in page.tasks {
                match child.phase {
                    TaskPhase::Finished => ended.push(child.task_id),
                    _ => open.push(child),
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok((open, ended));
            }
        }
    }
}
