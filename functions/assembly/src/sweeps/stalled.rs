//! Stranded work: tasks that were accepted and never begun, and actors whose message was lost.

use super::{Sweep, Swept, unreachable};
use actor::ActorId;
use async_trait::async_trait;
use chat::Chats;
use domain::{ChatStatus, ChatView, Error, TaskPhase, TaskView, Timestamp, WorkspaceId};
use engine::{TaskFilter, Tasks};
use evaluation::Evaluations;
use ports::{Clock, QueueSender, Table};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use workspace::Workspaces;

/// Things of one step.
const AT_ONCE: usize = 50;

/// Tasks that were accepted and have not begun for a long time: the accepting process died before it sent their message.
pub struct NeverBegun {
    /// The way in to them.
    pub tasks: Tasks,
    /// How long a message may well wait for a worker.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for NeverBegun {
    fn name(&self) -> &'static str {
        "never_begun"
    }

    /// Each gets a new place in the index of waiting tasks once it was sent again, so the due ones are always at the beginning.
    async fn sweep_page(&self, from: Option<&str>) -> Result<Swept, Error> {
        let shard = from.and_then(|from| from.parse().ok()).unwrap_or(0);
        let begun = self.tasks.begin_forgotten(shard, self.clock.now() - self.patience, AT_ONCE).await?;
        let shard = if begun == AT_ONCE { shard } else { shard + 1 };
        let next = (shard < engine::tasks::START_SHARDS).then(|| shard.to_string());
        Ok(Swept { count: begun as u64, failed: 0, more: next.is_some(), next })
    }
}

/// Evaluations that have not ended and should have been driven a long time ago: their message was lost.
pub struct NotEnded {
    /// The way in to them.
    pub evaluations: Evaluations,
    /// How long a message may well wait for a worker.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for NotEnded {
    fn name(&self) -> &'static str {
        "evaluations"
    }

    async fn sweep_page(&self, from: Option<&str>) -> Result<Swept, Error> {
        let before = self.clock.now() - self.patience;
        let (count, next) = self.evaluations.resume(before, AT_ONCE, from.map(str::to_owned)).await?;
        Ok(Swept { count, failed: 0, more: next.is_some(), next })
    }
}

/// Chats and tasks that should move, have not for a long time, and wait for no person: a worker died after a commit, and the delivery that
/// would have made up for it was purged or put aside. They are told to go on ([`actor::nudge`]), which does nothing to one that is only
/// slow.
///
/// It goes through all workspaces, their newest roots first, and begins anew when it has rested: how long such an actor lies
/// there is the time of a round.
pub struct Stalled {
    /// The workspaces to go through.
    pub workspaces: Workspaces,
    /// Tasks.
    pub tasks: Tasks,
    /// Chats.
    pub chats: Chats,
    /// The logs.
    pub table: Arc<dyn Table>,
    /// Mailboxes.
    pub queue: Arc<dyn QueueSender>,
    /// How long an actor may well be at one thing, and how long a round rests at its end.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

/// The progress of a round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Round {
    /// Before this time nothing is done: the round before has ended.
    rests_until: Option<Timestamp>,
    /// The cursor of the list of workspaces.
    workspace: Option<String>,
    /// Whether the workspace's tasks are done, and its chats are looked at.
    chats: bool,
    /// The cursor of the list in the workspace.
    list: Option<String>,
}

impl Round {
    fn swept(self, Dealt { count, failed }: Dealt) -> Swept {
        Swept { count, failed, more: self.rests_until.is_none(), next: serde_json::to_string(&self).ok() }
    }
}

/// The result of dealing with one page of actors.
#[derive(Default)]
struct Dealt {
    count: u64,
    failed: u64,
}

impl Dealt {
    /// One that fails is told of and left for the next round: it holds up no other, and no other workspace.
    fn with(&mut self, actor: &ActorId, told: Result<u64, Error>) {
        match told {
            Ok(count) => self.count += count,
            Err(error) => {
                tracing::warn!(%actor, %error, "cannot be told to go on; the round goes on without it");
                self.failed += 1;
            }
        }
    }
}

#[async_trait]
impl Sweep for Stalled {
    fn name(&self) -> &'static str {
        "behind"
    }

    async fn sweep_page(&self, from: Option<&str>) -> Result<Swept, Error> {
        let mut round: Round = from.and_then(|from| serde_json::from_str(from).ok()).unwrap_or_default();
        if round.rests_until.is_some_and(|until| until > self.clock.now()) {
            return Ok(round.swept(Dealt::default()));
        }
        round.rests_until = None;
        let page = self.workspaces.list(1, round.workspace.clone()).await?;
        let Some(workspace) = page.workspaces.first().map(|workspace| workspace.workspace_id) else {
            let rests_until = Some(self.clock.now() + self.patience);
            return Ok(Round { rests_until, ..Round::default() }.swept(Dealt::default()));
        };
        let mut dealt = Dealt::default();
        if round.chats {
            let page = self.chats.list(workspace, AT_ONCE, round.list.take()).await?;
            for chat in page.chats.iter().filter(|chat| moves(chat)) {
                let actor = chat::actor_id(workspace, chat.chat_id);
                dealt.with(&actor, self.nudge(&actor).await);
            }
            round.list = page.next_cursor;
        } else {
            let page = self.tasks.list(workspace, &TaskFilter::default(), AT_ONCE, round.list.take()).await?;
            for task in page.tasks {
                let actor = engine::machine::actor_id(workspace, task.task_id);
                dealt.with(&actor, self.family(workspace, task).await);
            }
            round.list = page.next_cursor;
        }
        match (&round.list, round.chats, page.next_cursor) {
            (Some(_), ..) => {}
            (None, false, _) => round.chats = true,
            (None, true, Some(next)) => round = Round { workspace: Some(next), ..Round::default() },
            (None, true, None) => {
                round = Round { rests_until: Some(self.clock.now() + self.patience), ..Round::default() };
            }
        }
        Ok(round.swept(dealt))
    }
}

impl Stalled {
    /// A task and those below it.
    async fn family(&self, workspace: WorkspaceId, root: TaskView) -> Result<u64, Error> {
        let (mut count, mut open) = (0, vec![root]);
        while let Some(task) = open.pop() {
            let waits_for_people = matches!(task.phase, TaskPhase::Paused | TaskPhase::Parked);
            if task.phase == TaskPhase::Finished || waits_for_people || !task.waiting_for.is_empty() {
                continue;
            }
            let (below, ended) = self.below(workspace, &task).await?;
            let waits_for_others = !below.is_empty();
            open.extend(below);
            if waits_for_others || self.waits_for_its_agent(workspace, &task, &mut count).await? {
                continue;
            }
            // It waits for no person: its last message may not have reached it.
            for child in ended {
                count += self.nudge(&engine::machine::actor_id(workspace, child)).await?;
            }
            count += self.nudge(&engine::machine::actor_id(workspace, task.task_id)).await?;
        }
        Ok(count)
    }

    /// Its children: those that have not ended, and the ids of those that have.
    async fn below(
        &self,
        workspace: WorkspaceId,
        task: &TaskView,
    ) -> Result<(Vec<TaskView>, Vec<domain::TaskId>), Error> {
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

    /// Whether the chat of its agent is at work, or waits for a person. One that should move is nudged, and so is one that has
    /// ended, whose letter may not have reached the task.
    async fn waits_for_its_agent(
        &self,
        workspace: WorkspaceId,
        task: &TaskView,
        count: &mut u64,
    ) -> Result<bool, Error> {
        if task.phase != TaskPhase::Suspended {
            return Ok(false);
        }
        let page = self.chats.of_task(workspace, task.task_id, AT_ONCE, None).await?;
        for chat in &page.chats {
            if chat.status == ChatStatus::Suspended || chat.status == ChatStatus::Paused {
                return Ok(true);
            }
            *count += self.nudge(&chat::actor_id(workspace, chat.chat_id)).await?;
        }
        Ok(page.chats.iter().any(moves))
    }

    async fn nudge(&self, actor: &ActorId) -> Result<u64, Error> {
        let since = self.clock.now() - self.patience;
        let nudged = actor::nudge(&*self.table, &*self.queue, &*self.clock, actor, since).await.map_err(unreachable)?;
        if nudged {
            tracing::warn!(%actor, "has not moved for a long time: it is told to go on");
        }
        Ok(u64::from(nudged))
    }
}

/// Whether a chat is at work.
fn moves(chat: &ChatView) -> bool {
    matches!(chat.status, ChatStatus::Queued | ChatStatus::Running)
}
