//! Stranded work: tasks that were accepted and never begun, and actors whose message was lost.

use super::{
    Sweep, Swept, unreachable,
    walk::{AT_ONCE, Lists, Page, Place},
};
use actor::ActorId;
use async_trait::async_trait;
use domain::{ChatStatus, ChatView, Error, TaskPhase, TaskView, Timestamp, WorkspaceId};
use engine::Tasks;
use evaluation::Evaluations;
use ports::{Clock, QueueSender, Table};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

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
    /// The lists to go through.
    pub lists: Lists,
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
    #[serde(flatten)]
    place: Place,
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
        let round: Round = from.and_then(|from| serde_json::from_str(from).ok()).unwrap_or_default();
        if round.rests_until.is_some_and(|until| until > self.clock.now()) {
            return Ok(round.swept(Dealt::default()));
        }
        let (page, next) = self.lists.page(round.place).await?;
        let mut dealt = Dealt::default();
        if let Some(Page { workspace, tasks, chats }) = page {
            for chat in chats.iter().filter(|chat| moves(chat)) {
                let actor = chat::actor_id(workspace, chat.chat_id);
                dealt.with(&actor, self.nudge(&actor).await);
            }
            for task in tasks {
                let actor = engine::machine::actor_id(workspace, task.task_id);
                dealt.with(&actor, self.family(workspace, task).await);
            }
        }
        let rests_until = next.is_none().then(|| self.clock.now() + self.patience);
        Ok(Round { rests_until, place: next.unwrap_or_default() }.swept(dealt))
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
            let (below, ended) = self.lists.below(workspace, &task).await?;
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
        let page = self.lists.chats.of_task(workspace, task.task_id, AT_ONCE, None).await?;
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
