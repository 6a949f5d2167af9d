//! People: they follow a scenario, and repeat requests without an answer, under the same ids, as a client with an idempotency key does.

use crate::{
    cluster::Cluster,
    plan::Plan,
    scenario::{Act, Scenario, Until},
    world::{Observer, World},
};
use chat::{Chats, Decision, LeaderRights, NewChat, NewMessage, NewSessionMessage, Sessions};
use domain::{
    AgentOptions, ChatEvent, ChatId, CommandId, Error, OnBusy, PermissionId, Principal, QuestionId, ThreadAgent,
    Timestamp, TurnId, event::PermissionOutcome,
};
use ports::Clock as _;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};
use testkit::Random;
use tokio::time::{Instant, sleep};

/// How long people wait for an expected event; then they go on all the same.
const WAITS: Duration = Duration::from_secs(400);

/// A message that was sent, and whether it was accepted.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The chat.
    pub chat: ChatId,
    /// The turn that it becomes.
    pub turn: TurnId,
    /// Its text.
    pub content: String,
    /// Whether it was accepted. One that was refused may have got through all the same, when an answer before was lost.
    pub accepted: bool,
}

/// A person, or several.
pub struct Person {
    world: Arc<World>,
    cluster: Arc<Cluster>,
    random: Random,
    restless: bool,
    /// The chats of the scenario, by number.
    pub chats: Vec<ChatId>,
    /// The messages that were posted.
    pub sent: Vec<Sent>,
    /// The chats that were deleted, and when that was answered.
    pub deleted: BTreeMap<ChatId, Timestamp>,
    observers: Vec<Observer>,
}

impl Person {
    /// A person who talks to `cluster`.
    pub fn new(world: Arc<World>, cluster: Arc<Cluster>, scenario: &Scenario, plan: &Plan) -> Self {
        let chats: Vec<ChatId> = (0..scenario.chats()).map(|_| ChatId(world.clock.id())).collect();
        let observers = chats.iter().map(|_| Observer::default()).collect();
        let (random, restless) = (Random::new(plan.seed ^ 0x5eed), plan.restless);
        Self { world, cluster, random, restless, chats, sent: Vec::new(), deleted: BTreeMap::new(), observers }
    }

    /// Does all that the scenario says.
    pub async fn act(&mut self, scenario: &Scenario) {
        for act in scenario.acts {
            if self.restless {
                let pause = self.random.below(40).pow(2);
                sleep(Duration::from_millis(pause)).await;
                if matches!(act, Act::Wait(..)) && self.random.chance(0.3) {
                    continue;
                }
            }
            self.do_one(*act).await;
        }
    }

    async fn do_one(&mut self, act: Act) {
        let by = Principal::local();
        let workspace = self.world.workspace;
        match act {
            Act::Create(chat, goal) => self.create(chat, NewChat { goal: goal.into(), ..NewChat::default() }).await,
            Act::CreateLimited(chat, goal, steps, wall_ms) => {
                let limits = Some(Act::limits(steps, wall_ms));
                self.create(chat, NewChat { goal: goal.into(), limits, ..NewChat::default() }).await;
            }
            Act::CreateTeam(number, goal) => {
                let mut new = NewChat { goal: goal.into(), ..NewChat::default() };
                if chat::set_up(&mut new, domain::Scenario::CoWork, None, None).is_ok() {
                    self.create(number, new).await;
                }
            }
            Act::CreateSession(number, message) => self.create_session(number, message).await,
            Act::CreateThread(chat, goal) => {
                let (agent, cwd) = ("simulated".into(), "/".into());
                let thread = Some(ThreadAgent { agent, cwd, options: AgentOptions::default() });
                self.create(chat, NewChat { goal: goal.into(), thread, ..NewChat::default() }).await;
            }
            Act::Post(chat, content) => self.post(chat, content, OnBusy::Enqueue).await,
            Act::PostOnBusy(chat, content, on_busy) => self.post(chat, content, on_busy).await,
            Act::Compact(chat) => {
                let (chat, command) = (self.chat(chat), self.command());
                // A chat that is busy is an answer, too.
                let _ = self.ask(async |chats| chats.compact(workspace, chat, command, Some(200), &by).await).await;
            }
            Act::Undo(chat) => {
                let (chat, command) = (self.chat(chat), self.command());
                let _ = self.ask(async |chats| chats.undo_compaction(workspace, chat, command, &by).await).await;
            }
            Act::Stop(chat) => {
                let chat = self.chat(chat);
                let command = self.command();
                // Nothing to stop is an answer, too.
                let _ = self.ask(async |chats| chats.stop(workspace, chat, command, &by).await).await;
            }
            Act::Answer(chat) => {
                let chat = self.chat(chat);
                let Some(id) = self.open(chat, "question_id").await else { return };
                let (command, id) = (self.command(), QuestionId(id));
                let answers = Map::from_iter([("colour".to_owned(), Value::from("blue"))]);
                let rights = LeaderRights { may_approve: true, may_not_run: false };
                let answer = async |chats: &Chats| {
                    chats.answer(workspace, chat, command, id, answers.clone(), rights, &by).await
                };
                let _ = self.ask(answer).await;
            }
            Act::Decide(chat, yes) => {
                let chat = self.chat(chat);
                let Some(id) = self.open(chat, "permission_id").await else { return };
                let (command, id) = (self.command(), PermissionId(id));
                let outcome = if yes { PermissionOutcome::Approved } else { PermissionOutcome::Declined };
                let decision = Decision::new(id, outcome);
                let decide = async |chats: &Chats| chats.decide(workspace, chat, command, decision.clone(), &by).await;
                let _ = self.ask(decide).await;
            }
            Act::Delete(chat) => {
                let chat = self.chat(chat);
                // "No such chat" is an answer, too.
                let _ = self.ask(async |chats| chats.delete(workspace, chat, &by).await).await;
                self.deleted.insert(chat, self.world.clock.now());
            }
            Act::Heal => self.world.poison.store(false, SeqCst),
            Act::Resume(chat, drop) => self.resume(chat, drop).await,
            Act::Wait(chat, until) => {
                self.wait(chat, until).await;
            }
            Act::Pass(ms) => sleep(Duration::from_millis(ms)).await,
            Act::Restart => self.cluster.restart().await,
        }
    }

    /// The id of a command, the same however often it is sent.
    fn command(&self) -> CommandId {
        CommandId(self.world.clock.id())
    }

    fn chat(&self, number: usize) -> ChatId {
        self.chats.get(number).copied().unwrap_or(ChatId(uuid::Uuid::nil()))
    }

    /// Resumes a chat, if it is paused.
    pub async fn resume(&self, chat: usize, drop: bool) {
        let (workspace, chat) = (self.world.workspace, self.chat(chat));
        let (command, by) = (self.command(), Principal::local());
        let _ = self.ask(async |chats| chats.resume(workspace, chat, command, drop, &by).await).await;
    }

    async fn create(&mut self, chat: usize, new: NewChat) {
        let (workspace, chat) = (self.world.workspace, self.chat(chat));
        let (command, by) = (self.command(), Principal::local());
        let made = self.ask(async |chats| chats.create(workspace, chat, command, new.clone(), &by).await).await;
        self.sent.push(Sent { chat, turn: TurnId(command.0), content: new.goal, accepted: made.is_ok() });
    }

    async fn create_session(&mut self, number: usize, message: &str) {
        let (workspace, chat) = (self.world.workspace, self.chat(number));
        let (command, by) = (self.command(), Principal::local());
        let new = NewSessionMessage { message: message.into(), ..NewSessionMessage::default() };
        let create =
            async |chats: &Chats| Sessions::new(chats.clone()).create(workspace, chat, command, new.clone(), &by).await;
        let made = self.ask(create).await;
        self.sent.push(Sent { chat, turn: TurnId(command.0), content: message.into(), accepted: made.is_ok() });
    }

    async fn post(&mut self, number: usize, content: &str, on_busy: OnBusy) {
        let (workspace, chat) = (self.world.workspace, self.chat(number));
        let (command, by) = (self.command(), Principal::local());
        let post = NewMessage { content: content.into(), on_busy, ..NewMessage::default() };
        let posted = self.ask(async |chats| chats.post(workspace, chat, command, post.clone(), &by).await).await;
        self.sent.push(Sent { chat, turn: TurnId(command.0), content: content.into(), accepted: posted.is_ok() });
    }

    /// The id of the chat's open question or permission, once the process tells it; none when it asks nothing of the kind.
    async fn open(&self, chat: ChatId, key: &str) -> Option<uuid::Uuid> {
        let workspace = self.world.workspace;
        let view = self.ask(async |chats| chats.get(workspace, chat).await).await.ok()?;
        view.waiting_for.first()?.get("data")?.get(key)?.as_str()?.parse().ok()
    }

    async fn ask<T>(&self, request: impl AsyncFn(&Chats) -> Result<T, Error>) -> Result<T, Error> {
        self.cluster.ask(async |process| request(&process.chats).await).await
    }

    /// Waits until something is so; false when it took too long.
    pub async fn wait(&mut self, chat: usize, until: Until) -> bool {
        let deadline = Instant::now() + WAITS;
        let id = self.chat(chat);
        let (mut pause, mut entries) = (2, 0);
        loop {
            let Some(observer) = self.observers.get_mut(chat) else { return false };
            observer.look(&self.world, id);
            if observer.entries.len() > entries {
                if until.is_so(observer) {
                    return true;
                }
                (pause, entries) = (2, observer.entries.len());
            }
            if Instant::now() > deadline {
                return false;
            }
            sleep(Duration::from_millis(pause)).await;
            pause = (pause * 2).min(500);
        }
    }

    /// Waits until all is at rest; a chat that is paused is resumed. False when that takes longer than anything can.
    pub async fn settled(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(6 * 3600);
        while Instant::now() < deadline {
            sleep(Duration::from_secs(2)).await;
            let mut moves = !self.world.queue.is_empty();
            for number in 0..self.chats.len() {
                let chat = self.chat(number);
                let Some(observer) = self.observers.get_mut(number) else { continue };
                observer.look(&self.world, chat);
                moves |= !observer.is_at_rest();
                if observer.state.paused.is_some() {
                    self.world.poison.store(false, SeqCst);
                    self.resume(number, false).await;
                }
            }
            if !moves {
                return true;
            }
        }
        false
    }
}

impl Until {
    fn is_so(self, observer: &Observer) -> bool {
        let last = observer.events().last();
        match self {
            Self::Ended(turns) => observer.is_at_rest() && observer.state.turns >= turns,
            Self::Streaming => matches!(last, Some(ChatEvent::Chunk { .. })),
            Self::Tool => matches!(last, Some(ChatEvent::CallStarted { .. })),
            Self::Team => matches!(last, Some(ChatEvent::Team { .. })),
            Self::Executors => matches!(last, Some(ChatEvent::StepStarted { .. })),
            Self::Suspended => observer.state.turn.as_ref().is_some_and(|turn| turn.phase.is_suspended()),
            Self::Paused => observer.state.paused.is_some(),
        }
    }
}
