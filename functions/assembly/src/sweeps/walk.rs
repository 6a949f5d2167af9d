//! The walk of a sweep through the root tasks and the chats of all workspaces, and through the trees below those tasks, some pages a step.

use chat::Chats;
use domain::{ChatView, Error, TaskId, TaskView, WorkspaceId};
use engine::{TaskFilter, Tasks};
use serde::{Deserialize, Serialize};
use workspace::Workspaces;

/// Things of one step.
pub(super) const AT_ONCE: usize = 50;
/// Pages of children of one step, beside the page of a list: however large a tree is, a step of it ends soon.
pub(super) const PAGES: usize = 4;

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

#[cfg(test)]
impl Lists {
    /// Those of a workspace on fakes.
    pub(super) fn on_fakes(on: &crate::on_fakes::OnFakes) -> Self {
        let (tasks, chats) = on.tasks_and_chats();
        Self { workspaces: on.workspaces.clone(), tasks, chats }
    }
}

/// A place in the walk, as cursors keep it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WalkPosition {
    /// The cursor of the list of workspaces.
    workspace: Option<String>,
    /// The workspace whose lists are looked at; none before its first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<WorkspaceId>,
    /// Whether the workspace's tasks are done, and its chats are looked at.
    chats: bool,
    /// The cursor of the list in the workspace.
    list: Option<String>,
}

/// The children of a task that are still to be looked at, as cursors keep it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Branch {
    pub workspace: WorkspaceId,
    pub task: TaskId,
    /// The cursor of the list of its children.
    #[serde(default)]
    list: Option<String>,
}

impl Branch {
    /// All children of a task.
    pub fn of(workspace: WorkspaceId, task: TaskId) -> Self {
        Self { workspace, task, list: None }
    }
}

/// One page of the walk: root tasks or chats of a workspace.
pub(super) struct Page {
    pub workspace: WorkspaceId,
    pub tasks: Vec<TaskView>,
    pub chats: Vec<ChatView>,
}

impl Lists {
    /// The page at a place, and the place of the next one; no page where there is no workspace, and no place at the end of the walk.
    pub(super) async fn page(&self, mut place: WalkPosition) -> Result<(Option<Page>, Option<WalkPosition>), Error> {
        let Some((workspace, next_workspace)) = workspace_at(&self.workspaces, &mut place).await? else {
            return Ok((None, None));
        };
        // The cursor of a list is good for this list alone, and the workspace of the place may be deleted.
        if place.workspace_id != Some(workspace) {
            let of = place.workspace.take();
            place = WalkPosition { workspace: of, workspace_id: Some(workspace), ..WalkPosition::default() };
        }
        let mut page = Page { workspace, tasks: Vec::new(), chats: Vec::new() };
        if place.chats {
            let chats = self.chats.list(workspace, AT_ONCE, place.list.take()).await?;
            (page.chats, place.list) = (chats.chats, chats.next_cursor);
        } else {
            let tasks = self.tasks.list(workspace, &TaskFilter::default(), AT_ONCE, place.list.take()).await?;
            (page.tasks, place.list) = (tasks.tasks, tasks.next_cursor);
        }
        let next = match (place.list.is_some(), place.chats, next_workspace) {
            (true, ..) => Some(place),
            (false, false, _) => Some(WalkPosition { chats: true, ..place }),
            (false, true, Some(next)) => Some(WalkPosition { workspace: Some(next), ..WalkPosition::default() }),
            (false, true, None) => None,
        };
        Ok((Some(page), next))
    }

    /// The next children of a task, and whether there are more of them: those the branch has then.
    pub(super) async fn children(&self, branch: &mut Branch) -> Result<(Vec<TaskView>, bool), Error> {
        let (all, list) = (TaskFilter::default(), branch.list.take());
        let page = self.tasks.children(branch.workspace, branch.task, &all, AT_ONCE, list).await?;
        branch.list = page.next_cursor;
        Ok((page.tasks, branch.list.is_some()))
    }
}

/// The workspace at a place, with the cursor of the one after it; none at the end. The list leaves out one whose record is damaged: the place moves on to
/// the next one then.
async fn workspace_at(
    workspaces: &Workspaces,
    place: &mut WalkPosition,
) -> Result<Option<(WorkspaceId, Option<String>)>, Error> {
    loop {
        let found = workspaces.list(1, place.workspace.clone()).await?;
        match (found.workspaces.first(), found.next_cursor) {
            (Some(workspace), next) => return Ok(Some((workspace.workspace_id, next))),
            (None, Some(next)) => *place = WalkPosition { workspace: Some(next), ..WalkPosition::default() },
            (None, None) => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::on_fakes::OnFakes;
    use domain::Principal;
    use ports::{Expect, Key, Write};

    #[tokio::test]
    async fn a_workspace_whose_record_is_damaged_does_not_end_the_walk() {
        let OnFakes { id, workspaces, table, .. } = &OnFakes::new().await;
        let last: WorkspaceId = "ffffffff-ffff-7fff-bfff-ffffffffffff".parse().unwrap();
        workspaces.create(last, "last", &Principal::local()).await.unwrap();
        table.commit(vec![Write::put(Key::new("workspaces", id.to_string()), "{}", Expect::Any)]).await.unwrap();
        let found = workspace_at(workspaces, &mut WalkPosition::default()).await.unwrap();
        assert_eq!(found.map(|(workspace, _)| workspace), Some(last));
    }

    #[tokio::test]
    async fn a_place_in_a_workspace_that_is_deleted_goes_on_at_the_beginning_of_the_next_one() {
        let on = OnFakes::new().await;
        let lists = Lists::on_fakes(&on);
        let list = Some("a cursor of its chats".to_owned());
        let deleted = Some(WorkspaceId::from_key("test", "deleted"));
        // A place of an earlier version has no workspace.
        for workspace_id in [deleted, None] {
            let place = WalkPosition { workspace_id, chats: true, list: list.clone(), ..WalkPosition::default() };
            let kept = serde_json::to_string(&place).unwrap();
            let (page, next) = lists.page(serde_json::from_str(&kept).unwrap()).await.unwrap();
            assert_eq!(page.map(|page| page.workspace), Some(on.id));
            let next = next.unwrap();
            assert!(next.chats, "the tasks of the workspace were looked at");
            let (_, next) = lists.page(next).await.unwrap();
            assert!(next.is_none(), "its chats are looked at once");
        }
    }
}
