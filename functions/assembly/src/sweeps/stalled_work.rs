//! Stranded work: tasks that were accepted and never begun, and actors whose message was lost.

use super::{
    Sweep, SweepStep, unreachable,
    walk::{AT_ONCE, Branch, Lists, PAGES, Page, WalkPosition},
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
pub struct StalledTasks {
    /// The way in to them.
    pub tasks: Tasks,
    /// How long a message may well wait for a worker.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for StalledTasks {
    fn name(&self) -> &'static str {
        "never_begun"
    }

    /// Each gets a new place in the index of waiting tasks once it was sent again, so the due ones are always at the beginning.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let shard = from.and_then(|from| from.parse().ok()).unwrap_or(0);
        let begun = self.tasks.begin_unstarted(shard, self.clock.now() - self.patience, AT_ONCE).await?;
        let shard = if begun == AT_ONCE { shard } else { shard + 1 };
        let next = (shard < engine::tasks::START_SHARDS).then(|| shard.to_string());
        Ok(SweepStep { count: begun as u64, failed: 0, more: next.is_some(), next })
    }
}

/// Evaluations that have not ended and should have been driven a long time ago: their message was lost.
pub struct StalledEvaluations {
    /// The way in to them.
    pub evaluations: Evaluations,
    /// How long a message may well wait for a worker.
    pub patience: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for StalledEvaluations {
    fn name(&self) -> &'static str {
        "evaluations"
    }

    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let before = self.clock.now() - self.patience;
        let (count, next) = self.evaluations.resume(before, AT_ONCE, from.map(str::to_owned)).await?;
        Ok(SweepStep { count, failed: 0, more: next.is_some(), next })
    }
}

/// Chats and tasks that should move, have not for a long time, and wait for no person: a worker died after a commit, and the delivery that
/// would have made up for it was purged or put aside. They are told to go on ([`actor::resend_outbox`]), which does nothing to one that is only
/// slow.
///
/// It goes through all workspaces, their newest roots first, and begins anew when it has rested: how long such an actor lies
/// there is the time of a round.
pub struct StalledActors {
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
    /// Whether the lists are at their end, and nothing but trees is left.
    is_last: bool,
    trees: Vec<Family>,
    #[serde(flatten)]
    place: WalkPosition,
}

/// A task that waits for its children, as cursors keep it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Family {
    #[serde(flatten)]
    branch: Branch,
    /// Whether a child was seen that has not ended.
    #[serde(default)]
    has_open: bool,
    /// Whether all have ended, and are told to go on.
    #[serde(default, rename = "nudges")]
    resends: bool,
}

impl Round {
    fn swept(self, Dealt { count, failed }: Dealt) -> SweepStep {
        SweepStep { count, failed, more: self.rests_until.is_none(), next: serde_json::to_string(&self).ok() }
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
impl Sweep for StalledActors {
    fn name(&self) -> &'static str {
        "behind"
    }

    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let mut round: Round = from.and_then(|from| serde_json::from_str(from).ok()).unwrap_or_default();
        if round.rests_until.is_some_and(|until| until > self.clock.now()) {
            return Ok(round.swept(Dealt::default()));
        }
        round.rests_until = None;
        let mut dealt = Dealt::default();
        if round.trees.is_empty() && !round.is_last {
            self.roots(&mut round, &mut dealt).await?;
        }
        self.descend(&mut round.trees, &mut dealt).await;
        if round.is_last && round.trees.is_empty() {
            let rests_until = Some(self.clock.now() + self.patience);
            round = Round { rests_until, ..Round::default() };
        }
        Ok(round.swept(dealt))
    }
}

impl StalledActors {
    /// The next page of the lists.
    async fn roots(&self, round: &mut Round, dealt: &mut Dealt) -> Result<(), Error> {
        let (page, next) = self.lists.page(std::mem::take(&mut round.place)).await?;
        if let Some(Page { workspace, tasks, chats }) = page {
            for chat in chats.iter().filter(|chat| moves(chat)) {
                let actor = chat::actor_id(workspace, chat.chat_id);
                dealt.with(&actor, self.resend_outbox(&actor).await);
            }
            for task in &tasks {
                self.task(workspace, task, &mut round.trees, dealt).await;
            }
        }
        round.is_last = next.is_none();
        round.place = next.unwrap_or_default();
        Ok(())
    }

    /// The next pages of the trees.
    async fn descend(&self, trees: &mut Vec<Family>, dealt: &mut Dealt) {
        for _ in 0..PAGES {
            let Some(family) = trees.pop() else { return };
            let actor = engine::machine::actor_id(family.branch.workspace, family.branch.task);
            let told = self.family(family, trees, dealt).await;
            dealt.with(&actor, told);
        }
    }

    /// A task without children. One that has some is looked at later, after them.
    async fn task(&self, workspace: WorkspaceId, task: &TaskView, trees: &mut Vec<Family>, dealt: &mut Dealt) {
        if is_at_rest(task) {
            return;
        }
        if task.children > 0 {
            let branch = Branch::of(workspace, task.task_id);
            return trees.push(Family { branch, has_open: false, resends: false });
        }
        let actor = engine::machine::actor_id(workspace, task.task_id);
        let mut count = 0;
        let told = match self.waits_for_its_agent(workspace, task, &mut count).await {
            Ok(false) => self.resend_outbox(&actor).await,
            Ok(true) => Ok(0),
            Err(error) => Err(error),
        };
        dealt.with(&actor, told.map(|resent| count + resent));
    }

    /// The next children of a task, in two rounds. The task waits for them while one has not ended. Once all have, and it waits for no person,
    /// the last message of one of them may not have reached it.
    async fn family(&self, mut family: Family, trees: &mut Vec<Family>, dealt: &mut Dealt) -> Result<u64, Error> {
        let (children, has_more) = self.lists.children(&mut family.branch).await?;
        let (workspace, task) = (family.branch.workspace, family.branch.task);
        let mut count = 0;
        if family.resends {
            for child in children.iter().filter(|child| child.phase == TaskPhase::Finished) {
                count += self.resend_outbox(&engine::machine::actor_id(workspace, child.task_id)).await?;
            }
            match has_more {
                true => trees.push(family),
                false => count += self.resend_outbox(&engine::machine::actor_id(workspace, task)).await?,
            }
            return Ok(count);
        }
        family.has_open |= children.iter().any(|child| child.phase != TaskPhase::Finished);
        if has_more {
            trees.push(family);
        } else if !family.has_open {
            let view = self.lists.tasks.get(workspace, task).await?;
            if !is_at_rest(&view) && !self.waits_for_its_agent(workspace, &view, &mut count).await? {
                trees.push(Family { branch: Branch::of(workspace, task), has_open: false, resends: true });
            }
        }
        for child in &children {
            self.task(workspace, child, trees, dealt).await;
        }
        Ok(count)
    }

    /// Whether the chat of its agent is at work, or waits for a person. One that should move is told to go on, and so is one that has
    /// ended, whose message may not have reached the task.
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
            *count += self.resend_outbox(&chat::actor_id(workspace, chat.chat_id)).await?;
        }
        Ok(page.chats.iter().any(moves))
    }

    async fn resend_outbox(&self, actor: &ActorId) -> Result<u64, Error> {
        let since = self.clock.now() - self.patience;
        let resent =
            actor::resend_outbox(&*self.table, &*self.queue, &*self.clock, actor, since).await.map_err(unreachable)?;
        if resent {
            tracing::warn!(%actor, "has not moved for a long time: it is told to go on");
        }
        Ok(u64::from(resent))
    }
}

/// Whether a task has ended, or waits for people.
fn is_at_rest(task: &TaskView) -> bool {
    matches!(task.phase, TaskPhase::Finished | TaskPhase::Paused | TaskPhase::Parked) || !task.waiting_for.is_empty()
}

/// Whether a chat is at work.
fn moves(chat: &ChatView) -> bool {
    matches!(chat.status, ChatStatus::Queued | ChatStatus::Running)
}
