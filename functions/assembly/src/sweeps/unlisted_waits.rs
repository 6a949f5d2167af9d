//! Chats and tasks that wait for people and are not on the list of what waits: they began to wait under a version that kept no list.

use super::{
    Sweep, SweepStep, unreachable,
    walk::{AT_ONCE, Branch, Lists, PAGES, Page, WalkPosition},
};
use actor::{ActorId, Machine, waiting};
use async_trait::async_trait;
use chat::ChatMachine;
use domain::{ChatView, Code, Error, TaskId, TaskPhase, TaskView, Timestamp, WorkspaceId};
use engine::TaskMachine;
use ports::{Clock, Table};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// Puts them on the list, in one round through all workspaces. Its cursor keeps that the round has ended: no other one begins.
///
/// The round begins some time after the first sweep. While functions of two versions run, one of the version before could begin a wait behind the
/// round, or end a wait that is on the list, and would leave the list as it is.
pub struct UnlistedWaits {
    /// The lists to go through.
    pub lists: Lists,
    /// The logs, and the list of what waits.
    pub table: Arc<dyn Table>,
    /// How long functions of the version before may still run.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// The progress of the round.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Round {
    begins_at: Option<Timestamp>,
    has_ended: bool,
    /// Whether the lists are at their end, and nothing but trees is left.
    is_last: bool,
    trees: Vec<Branch>,
    #[serde(flatten)]
    place: WalkPosition,
}

#[async_trait]
impl Sweep for UnlistedWaits {
    fn name(&self) -> &'static str {
        "unlisted"
    }

    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let mut round: Round = from.and_then(|from| serde_json::from_str(from).ok()).unwrap_or_default();
        let now = self.clock.now();
        let begins_at = round.begins_at.unwrap_or(now + self.patience);
        if round.has_ended || now < begins_at {
            let round = Round { begins_at: Some(begins_at), ..round };
            return Ok(SweepStep { next: serde_json::to_string(&round).ok(), ..SweepStep::default() });
        }
        let mut swept = SweepStep::default();
        if round.trees.is_empty() && !round.is_last {
            self.roots(&mut round, &mut swept).await?;
        }
        self.descend(&mut round.trees, &mut swept).await?;
        swept.more = !round.is_last || !round.trees.is_empty();
        let round = Round { begins_at: Some(begins_at), has_ended: !swept.more, ..round };
        Ok(SweepStep { next: serde_json::to_string(&round).ok(), ..swept })
    }
}

impl UnlistedWaits {
    /// The next page of the lists.
    async fn roots(&self, round: &mut Round, swept: &mut SweepStep) -> Result<(), Error> {
        let (page, next) = self.lists.page(std::mem::take(&mut round.place)).await?;
        if let Some(Page { workspace, tasks, chats }) = page {
            for task in &tasks {
                self.task(workspace, task, &mut round.trees, swept).await?;
            }
            for chat in &chats {
                self.chat(workspace, chat, swept).await?;
                if chat.session.is_some() {
                    // Its executors are listed under the session, as agents are under their task.
                    self.agents(workspace, TaskId(chat.chat_id.0), swept).await?;
                }
            }
        }
        round.is_last = next.is_none();
        round.place = next.unwrap_or_default();
        Ok(())
    }

    /// The next pages of the trees.
    async fn descend(&self, trees: &mut Vec<Branch>, swept: &mut SweepStep) -> Result<(), Error> {
        for _ in 0..PAGES {
            let Some(mut branch) = trees.pop() else { return Ok(()) };
            let (children, has_more) = match self.lists.children(&mut branch).await {
                // The task was deleted since the step that noted it: nothing below it waits.
                Err(error) if error.code == Code::NotFound => continue,
                children => children?,
            };
            let workspace = branch.workspace;
            if has_more {
                trees.push(branch);
            }
            for child in &children {
                self.task(workspace, child, trees, swept).await?;
            }
        }
        Ok(())
    }

    /// A task and its agents. Those below it come later.
    async fn task(
        &self,
        workspace: WorkspaceId,
        task: &TaskView,
        trees: &mut Vec<Branch>,
        swept: &mut SweepStep,
    ) -> Result<(), Error> {
        if task.phase == TaskPhase::Finished {
            return Ok(());
        }
        if !task.waiting_for.is_empty() {
            self.enlist::<TaskMachine>(&engine::machine::actor_id(workspace, task.task_id), swept).await?;
        }
        if task.children > 0 {
            trees.push(Branch::of(workspace, task.task_id));
        }
        self.agents(workspace, task.task_id, swept).await
    }

    /// The chats of the agents of a task.
    async fn agents(&self, workspace: WorkspaceId, task: TaskId, swept: &mut SweepStep) -> Result<(), Error> {
        let mut cursor = None;
        loop {
            let page = self.lists.chats.of_task(workspace, task, AT_ONCE, cursor).await?;
            for chat in &page.chats {
                self.chat(workspace, chat, swept).await?;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    async fn chat(&self, workspace: WorkspaceId, chat: &ChatView, swept: &mut SweepStep) -> Result<(), Error> {
        if chat.waiting_for.is_empty() {
            return Ok(());
        }
        self.enlist::<ChatMachine>(&chat::actor_id(workspace, chat.chat_id), swept).await
    }

    async fn enlist<M: Machine>(&self, actor: &ActorId, swept: &mut SweepStep) -> Result<(), Error> {
        match waiting::enlist::<M>(&*self.table, actor).await {
            Ok(is_new) => swept.count += u64::from(is_new),
            // No worker can read it either: it holds up no other.
            Err(error) if error.is_damage() => {
                tracing::warn!(%actor, %error, "its requests are not on the list of what waits");
                swept.failed += 1;
            }
            Err(error) => return Err(unreachable(error)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::on_fakes::OnFakes;

    #[tokio::test]
    async fn a_task_that_is_deleted_between_two_steps_does_not_end_the_round() {
        let on = OnFakes::new().await;
        let (lists, table, clock) = (Lists::on_fakes(&on), on.table.clone(), on.clock.clone());
        let sweep = UnlistedWaits { lists, table, patience: Duration::ZERO, clock };
        let trees = vec![Branch::of(on.id, TaskId::from_key("test", "deleted"))];
        let kept = serde_json::to_string(&Round { is_last: true, trees, ..Round::default() }).unwrap();
        let swept = sweep.sweep_page(Some(&kept)).await.unwrap();
        let round: Round = serde_json::from_str(&swept.next.unwrap()).unwrap();
        assert!(!swept.more && round.has_ended);
    }
}
