//! A coding agent behind its port: it works a script off, step by step, as a child of one process. It ends with this process, and at a chosen
//! step by itself. A book that survives both has all that agents were given, told, asked and heard.

use async_trait::async_trait;
use domain::{AgentOption, ChatId, TurnId, WorkspaceId};
use parking_lot::{Mutex, MutexGuard};
use ports::{
    AgentCommand, AgentInfo, AgentMessage, AgentOffers, AgentPrompt, AgentRequest, AgentSessions, AgentTurn,
    AgentUpdate, Agents, Clock as _, Error, Result,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use testkit::{TestClock, crash::Crash};
use tokio::{sync::Notify, time::sleep};

/// How long a step takes.
const STEP: Duration = Duration::from_millis(30);
/// How long the slow step takes.
const LONG: Duration = Duration::from_secs(4);

/// A fact about an agent, as somebody would note it who sees its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentFact {
    /// It got the prompt of a turn.
    Prompted(TurnId),
    /// It told a piece of text, or an update as JSON.
    Told(TurnId, String),
    /// It asked, under this id, for a call.
    Asked(TurnId, String, String),
    /// It heard an answer to a request: an option, or none for a cancellation.
    Heard(TurnId, String, Option<String>),
}

/// All that agents were given, told, asked and heard, in all lives.
pub type AgentJournal = Arc<Mutex<Vec<AgentFact>>>;

/// A step of the script.
enum Step {
    /// Says something.
    Say(&'static str),
    /// Begins or ends a tool call.
    Call(&'static str, &'static str),
    /// Asks for permission for a call, and goes on with the answer.
    Ask(&'static str),
    /// Takes long over nothing.
    Wait,
}

fn script(prompt: &str) -> Vec<Step> {
    use Step::{Ask, Call, Say, Wait};
    let begin = [Say("Let me "), Say("look. "), Call("look", "pending"), Call("look", "completed")];
    let edit = |call| [Say("Now I edit. "), Ask(call), Call(call, "completed")];
    let steps: Vec<Step> = match prompt {
        _ if prompt.contains("two files") => begin.into_iter().chain(edit("one")).chain(edit("other")).collect(),
        _ if prompt.contains("a file") => begin.into_iter().chain(edit("one")).collect(),
        _ if prompt.contains("minutes") => (0..9).flat_map(|_| [Say("On and on. "), Wait]).collect(),
        _ => vec![Say("You "), Say("are "), Say("welcome. ")],
    };
    steps.into_iter().chain([Say("That is all.")]).collect()
}

/// The coding agents of one process.
pub struct SimulatedAgents {
    book: AgentJournal,
    clock: Arc<TestClock>,
    crash: Crash,
    /// The number of the step at which the agent's process dies.
    dies_at: Option<u64>,
    steps: AtomicU64,
    /// The last turn of each thread.
    turns: Mutex<BTreeMap<ChatId, Turn>>,
    bell: Notify,
    this: Weak<Self>,
}

struct Turn {
    id: TurnId,
    updates: VecDeque<AgentUpdate>,
    ask: Option<AgentRequest>,
    /// Whether the last answer that was heard is a yes.
    answer: Option<bool>,
    end: Option<AgentUpdate>,
    cancelled: bool,
}

impl SimulatedAgents {
    /// The agents of the process whose end is `crash`.
    pub fn new(book: AgentJournal, clock: Arc<TestClock>, crash: Crash, dies_at: Option<u64>) -> Arc<Self> {
        Arc::new_cyclic(|this| {
            let (steps, turns, bell) = (AtomicU64::new(0), Mutex::default(), Notify::new());
            Self { book, clock, crash, dies_at, steps, turns, bell, this: this.clone() }
        })
    }

    fn turns(&self) -> MutexGuard<'_, BTreeMap<ChatId, Turn>> {
        self.turns.lock()
    }

    fn note(&self, noted: AgentFact) {
        self.book.lock().push(noted);
    }

    /// Changes a turn that has not ended; false when it is not there.
    fn with(&self, turn: AgentTurn, change: impl FnOnce(&mut Turn)) -> bool {
        let mut turns = self.turns();
        let running = turns.get_mut(&turn.chat).filter(|running| running.id == turn.turn && running.end.is_none());
        let Some(running) = running else { return false };
        change(running);
        drop(turns);
        self.bell.notify_waiters();
        true
    }

    fn is_cancelled(&self, turn: AgentTurn) -> bool {
        self.read(turn, |running| running.cancelled || running.end.is_some()).unwrap_or(true)
    }

    fn read<T>(&self, turn: AgentTurn, read: impl FnOnce(&Turn) -> T) -> Option<T> {
        self.turns().get(&turn.chat).filter(|running| running.id == turn.turn).map(read)
    }

    fn end(&self, turn: AgentTurn, end: AgentUpdate) {
        self.with(turn, |running| {
            running.ask = None;
            running.end = Some(end);
        });
    }

    /// Works a turn off, unless this process or the agent's own ends before.
    async fn work(self: Arc<Self>, turn: AgentTurn, prompt: String) {
        let crash = self.crash.clone();
        tokio::select! {
            biased;
            () = crash.died() => {}
            () = self.steps_of(turn, &prompt) => {}
        }
    }

    async fn steps_of(&self, turn: AgentTurn, prompt: &str) {
        for step in script(prompt) {
            sleep(if matches!(step, Step::Wait) { LONG } else { STEP }).await;
            if self.is_cancelled(turn) {
                return self.end(turn, AgentUpdate::Ended { stop_reason: "cancelled".into() });
            }
            if self.dies_at == Some(self.steps.fetch_add(1, SeqCst) + 1) {
                return self.end(turn, AgentUpdate::Gone { reason: "it was ended by signal 9".into() });
            }
            match step {
                Step::Say(text) => self.tell(turn, text.into(), AgentUpdate::Text(text.into())),
                Step::Call(call, status) => self.call(turn, call, status),
                Step::Ask(call) => {
                    let yes = self.ask(turn, call).await;
                    if self.is_cancelled(turn) {
                        return self.end(turn, AgentUpdate::Ended { stop_reason: "cancelled".into() });
                    }
                    if !yes {
                        self.call(turn, call, "failed");
                    }
                }
                Step::Wait => {}
            }
        }
        self.end(turn, AgentUpdate::Ended { stop_reason: "end_turn".into() });
    }

    fn tell(&self, turn: AgentTurn, noted: String, update: AgentUpdate) {
        self.note(AgentFact::Told(turn.turn, noted));
        self.with(turn, |running| running.updates.push_back(update));
    }

    fn call(&self, turn: AgentTurn, call: &str, status: &str) {
        let kind = if status == "pending" { "tool_call" } else { "tool_call_update" };
        let update: Value = json!({ "sessionUpdate": kind, "toolCallId": call, "title": call, "status": status });
        self.tell(turn, update.to_string(), AgentUpdate::Session(update));
    }

    /// Asks for a call, and waits for the answer; whether it is a yes.
    async fn ask(&self, turn: AgentTurn, call: &str) -> bool {
        self.call(turn, call, "pending");
        let request = self.clock.id().to_string();
        let shown = json!({ "toolCallId": call, "kind": "edit", "title": call, "turn": turn.turn }).to_string();
        self.note(AgentFact::Asked(turn.turn, request.clone(), shown.clone()));
        let option = |id: &str| AgentOption { id: id.into(), name: id.into(), kind: id.into() };
        let options = vec![option("allow_once"), option("reject_once")];
        let (category, title) = ("file".into(), call.into());
        let asks = AgentRequest { request, category, title, call: shown, options };
        self.with(turn, |running| (running.answer, running.ask) = (None, Some(asks)));
        loop {
            let bell = self.bell.notified();
            match self.read(turn, |running| (running.answer, running.cancelled || running.end.is_some())) {
                Some((Some(yes), _)) => return yes,
                Some((None, false)) => bell.await,
                _ => return false,
            }
        }
    }
}

fn gone() -> Error {
    Error::Conflict { write: 0 }
}

#[async_trait]
impl Agents for SimulatedAgents {
    async fn list(&self) -> Vec<AgentInfo> {
        vec![AgentInfo { id: "simulated".into(), name: "Simulated".into(), unavailable: None, install: None }]
    }
    async fn allowed(&self, cwd: &str) -> Result<String> {
        Ok(cwd.into())
    }
    fn roots(&self) -> Vec<String> {
        vec!["/".into()]
    }

    async fn prompt(&self, prompt: AgentPrompt) -> Result<()> {
        let AgentPrompt { turn, content, .. } = prompt;
        let earlier = self.turns().get(&turn.chat).map(|running| running.id);
        match earlier {
            Some(id) if id == turn.turn => return Ok(()),
            Some(id) => self.cancel(&AgentTurn { turn: id, ..turn }).await?,
            None => {}
        }
        self.note(AgentFact::Prompted(turn.turn));
        let session = format!("session of {}", turn.chat);
        let updates = VecDeque::from([AgentUpdate::Bound { session }]);
        let running = Turn { id: turn.turn, updates, ask: None, answer: None, end: None, cancelled: false };
        self.turns().insert(turn.chat, running);
        let words = content.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n");
        if let Some(this) = self.this.upgrade() {
            tokio::spawn(this.work(turn, words));
        }
        Ok(())
    }

    async fn updates(&self, turn: &AgentTurn) -> Result<Vec<AgentUpdate>> {
        loop {
            let bell = self.bell.notified();
            {
                let mut turns = self.turns();
                let running = turns.get_mut(&turn.chat).filter(|running| running.id == turn.turn).ok_or_else(gone)?;
                let mut updates: Vec<AgentUpdate> = running.updates.drain(..).collect();
                updates.extend(running.end.clone().or_else(|| running.ask.clone().map(AgentUpdate::Asks)));
                if !updates.is_empty() {
                    return Ok(updates);
                }
            }
            bell.await;
        }
    }

    async fn answer(&self, turn: &AgentTurn, request: &str, option: Option<&str>) -> Result<()> {
        let mut heard = false;
        self.with(*turn, |running| {
            heard = running.ask.as_ref().is_some_and(|asks| asks.request == request);
            if heard {
                (running.ask, running.answer) = (None, Some(option == Some("allow_once")));
            }
        });
        if !heard {
            return Err(gone());
        }
        self.note(AgentFact::Heard(turn.turn, request.into(), option.map(ToOwned::to_owned)));
        Ok(())
    }

    async fn cancel(&self, turn: &AgentTurn) -> Result<()> {
        self.with(*turn, |running| {
            running.cancelled = true;
            running.updates.clear();
            running.ask = None;
        });
        Ok(())
    }

    async fn end(&self, _: WorkspaceId, chat: ChatId) -> Result<()> {
        self.turns().remove(&chat);
        self.bell.notify_waiters();
        Ok(())
    }

    async fn offers(&self, _: &str, _: &str) -> Result<AgentOffers> {
        Ok(AgentOffers::default())
    }
    async fn sessions(&self, _: &str, _: &str, _: Option<&str>) -> Result<Option<AgentSessions>> {
        Ok(None)
    }
    async fn session_history(&self, _: &str, _: &str, _: &str) -> Result<Option<Vec<AgentMessage>>> {
        Ok(None)
    }
    async fn commands(&self, _: WorkspaceId, _: ChatId) -> Vec<AgentCommand> {
        Vec::new()
    }
}
