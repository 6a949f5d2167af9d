//! The port: one process per thread, begun with its first turn, and ended when it has been idle.

use crate::{
    agent_updates::{AgentUpdates, Next, Open, outcome},
    connection::{FAILED, RequestFailure},
    host_environment::{ConfineThread, HostEnvironment},
    registry::{KnownAgent, built_in_agents},
    roots::Roots,
    start::{InitializedAgent, offers},
};
use async_trait::async_trait;
use domain::{ChatId, FilePath, ThreadAgent, TurnId, WORKSPACE_FOLDER, WorkspaceId, text::beginning};
use parking_lot::Mutex;
use ports::{
    AgentCommand, AgentInfo, AgentMessage, AgentOffers, AgentPrompt, AgentSessions, AgentTurn, AgentUpdate, Agents,
    Error, KnownSecrets, Result, WorkingCopies,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::{Instant, sleep},
};
use uuid::Uuid;

/// How agents are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The agents of the configuration; one with the id of an agent of the box takes its place.
    pub agents: Vec<KnownAgent>,
    /// The folders in which threads may work.
    pub roots: Vec<PathBuf>,
    /// The environment of this process.
    pub environment: Vec<(String, String)>,
    /// Secrets that are taken out of what is told.
    pub known: KnownSecrets,
    /// How long a process without a turn stays.
    pub idle: Duration,
    /// How long a process may take for each answer of its start.
    pub start: Duration,
    /// How long an agent that was asked to end a turn may take.
    pub grace: Duration,
    /// How many turns run at once; others wait for a place. None for no limit.
    pub max_active: Option<usize>,
    /// How a process is confined; why this machine cannot.
    pub confine: std::result::Result<ConfineThread, String>,
    /// The working copies, for threads in the files of their workspace. Without them there are none.
    pub copies: Option<Arc<dyn WorkingCopies>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            agents: Vec::new(),
            roots: Vec::new(),
            environment: Vec::new(),
            known: KnownSecrets::default(),
            idle: Duration::from_secs(900),
            start: Duration::from_secs(60),
            grace: Duration::from_secs(5),
            max_active: None,
            confine: Err("nothing is there that would confine it".into()),
            copies: None,
        }
    }
}

/// Coding agents as child processes of this one.
#[derive(Debug)]
pub struct ChildAgents {
    known: BTreeMap<String, KnownAgent>,
    host: HostEnvironment,
    options: Options,
    threads: Mutex<HashMap<ThreadKey, Arc<Thread>>>,
    /// Places for turns that run.
    places: Arc<Semaphore>,
    /// Places for processes that are started for one question.
    asked: Semaphore,
    /// The modes, models and options that agents have offered lately, by agent and folder.
    offered: Mutex<HashMap<(String, String), (Instant, AgentOffers)>>,
}

/// How many processes answer questions at once, beside those of threads; further questions wait.
const ASKED_AT_ONCE: usize = 4;
/// How long the offers of an agent count: a client asks for models, modes and options one after the other.
const OFFERED_FOR: Duration = Duration::from_secs(60);
/// The longest reason of an end, in bytes. The protocol has words of at most 17, and people read another one.
const REASON: usize = 200;
/// How long options of threads are checked against the offers of an agent, unless it is asked again.
const TOLD_FOR: Duration = Duration::from_secs(3_600);

type ThreadKey = (WorkspaceId, ChatId);

/// The place of questions that are of no chat: its working copy has no file.
const NO_CHAT: ThreadKey = (WorkspaceId(Uuid::nil()), ChatId(Uuid::nil()));

/// A thread, and its process if it has one. The lock is held while one is started.
#[derive(Debug, Default)]
struct Thread {
    running: tokio::sync::Mutex<Option<Arc<Running>>>,
    /// The same, for those that wait for no start.
    current: Mutex<Weak<Running>>,
}

#[derive(Debug)]
struct Running {
    greeted: InitializedAgent,
    thread: ThreadAgent,
}

impl Running {
    fn shared(&self) -> &Arc<AgentUpdates> {
        &self.greeted.process.shared
    }

    fn is_gone(&self) -> bool {
        self.shared().state().gone.is_some()
    }
}

fn gone() -> Error {
    Error::Conflict { write: 0 }
}

impl ChildAgents {
    /// With these options; starts nothing.
    pub fn new(options: Options) -> Self {
        let all = built_in_agents().into_iter().chain(options.agents.iter().cloned());
        let known = all.map(|agent| (agent.id.clone(), agent)).collect();
        let (environment, secrets) = (options.environment.clone(), options.known.clone());
        let (roots, confine) = (Roots::new(options.roots.iter().cloned()), options.confine.clone());
        let host = HostEnvironment { environment, roots, known: secrets, confine, copy: None };
        let places = options.max_active.unwrap_or(Semaphore::MAX_PERMITS).clamp(1, Semaphore::MAX_PERMITS);
        Self {
            known,
            host,
            options,
            threads: Mutex::default(),
            places: Arc::new(Semaphore::new(places)),
            asked: Semaphore::new(ASKED_AT_ONCE),
            offered: Mutex::default(),
        }
    }

    fn thread(&self, workspace: WorkspaceId, chat: ChatId) -> Arc<Thread> {
        let mut threads = self.threads.lock();
        if threads.len() > 1_000 {
            threads.retain(|_, thread| Arc::strong_count(thread) > 1 || thread.process().is_some());
        }
        threads.entry((workspace, chat)).or_default().clone()
    }

    /// The process that has a turn.
    fn of(&self, turn: &AgentTurn) -> Result<Arc<Running>> {
        self.thread(turn.workspace, turn.chat).process().ok_or_else(gone)
    }

    /// The folder of the workspace that a `cwd` names; none for a folder of the machine. A machine with a folder of that name among its
    /// roots means that one.
    fn copied(&self, cwd: &str) -> Option<(&Arc<dyn WorkingCopies>, FilePath)> {
        let copies = self.options.copies.as_ref()?;
        let folder = ThreadAgent::folder(cwd)?;
        (!self.host.roots.has(Path::new(WORKSPACE_FOLDER))).then_some((copies, folder))
    }

    /// A place for a process that answers one question.
    async fn place_for_a_question(&self) -> Result<SemaphorePermit<'_>> {
        self.asked.acquire().await.map_err(|_| gone())
    }

    /// A process in the folder of a thread, and the folder on disk.
    async fn greet(&self, agent: &str, cwd: &str, (workspace, chat): ThreadKey) -> Result<(InitializedAgent, String)> {
        let known =
            self.known.get(agent).ok_or_else(|| Error::Invalid(format!("{agent:?} is no coding agent here")))?;
        let (folder, host) = match self.copied(cwd) {
            Some((copies, folder)) => {
                let root = copies.path(workspace, chat, &folder).await?;
                (root.join(folder.relative()), self.host.in_copy(&root))
            }
            None => {
                // Links may have changed since the thread was made.
                let folder = self.host.roots.folder(cwd).map_err(Error::Invalid)?;
                if folder != Path::new(cwd) {
                    return Err(Error::Invalid(format!("{cwd:?} leads elsewhere by now")));
                }
                (folder, self.host.clone())
            }
        };
        let greeted = InitializedAgent::start(known, &folder, &host, self.options.start).await?;
        Ok((greeted, folder.display().to_string()))
    }

    /// A process with an open session for a thread; whether it knows the conversation.
    async fn open(&self, thread: &ThreadAgent, own_mode: bool, place: ThreadKey) -> Result<(Running, bool)> {
        let (greeted, cwd) = self.greet(&thread.agent, &thread.cwd, place).await?;
        let opened = greeted.open(thread, &cwd).await?;
        // The folder of a copy has the same name in each workspace, and what an agent offers there is for its own alone.
        if !opened.is_loaded && self.copied(&thread.cwd).is_none() {
            self.tell_offers((&thread.agent, &thread.cwd), &offers(&opened.answer));
        }
        greeted.set(&thread.options, own_mode, &opened).await?;
        Ok((Running { greeted, thread: thread.clone() }, opened.is_loaded))
    }

    /// Takes in what an agent has told that it offers.
    fn tell_offers(&self, (agent, cwd): (&str, &str), told: &AgentOffers) {
        let mut offered = self.offered.lock();
        offered.retain(|_, (at, _)| at.elapsed() < TOLD_FOR);
        offered.insert((agent.to_owned(), cwd.to_owned()), (Instant::now(), told.clone()));
    }

    /// The offers of an agent, if it told them not longer ago than this.
    fn offers_within(&self, (agent, cwd): (&str, &str), ago: Duration) -> Option<AgentOffers> {
        let offered = self.offered.lock();
        let (at, told) = offered.get(&(agent.to_owned(), cwd.to_owned()))?;
        (at.elapsed() < ago).then(|| told.clone())
    }

    /// Waits for the end of an earlier turn; false for a process that cannot be used, which is ended then.
    async fn clear(&self, running: &Running, id: TurnId) -> bool {
        let until = Instant::now() + self.options.grace + Duration::from_secs(1);
        let busy = || running.shared().state().turn.as_ref().filter(|turn| turn.end.is_none()).map(|turn| turn.id);
        if let Some(earlier) = busy().filter(|earlier| *earlier != id) {
            self.cancel_in(running, earlier).await;
        }
        while busy().is_some() && Instant::now() < until {
            sleep(Duration::from_millis(20)).await;
        }
        let is_free = busy().is_none();
        if !is_free {
            running.greeted.process.kill();
        }
        is_free && !running.is_gone()
    }

    async fn cancel_in(&self, running: &Running, turn: TurnId) {
        let shared = running.shared();
        let Some(Open { asks, writes }) = shared.cancel(turn) else { return };
        let session = shared.state().session.clone();
        shared.connection.notify("session/cancel", &json!({ "sessionId": session }));
        // The open requests are answered with a cancellation, as the protocol wants it.
        let asks = asks.into_iter().map(|ask| (ask, outcome(None)));
        // They are written. The workspace is asked when the turn has ended.
        let writes = writes.into_iter().map(|write| (write, json!({})));
        shared.connection.respond_each(asks.chain(writes)).await;
    }
}

impl Thread {
    fn process(&self) -> Option<Arc<Running>> {
        self.current.lock().upgrade()
    }

    fn set(&self, running: &Arc<Running>) {
        *self.current.lock() = Arc::downgrade(running);
    }
}

/// Follows the request of a turn until it is answered; as long it is among those that are active.
async fn perform(running: Arc<Running>, turn: TurnId, prompt: Value, _active: OwnedSemaphorePermit) {
    let shared = running.shared();
    let end = match shared.connection.request("session/prompt", prompt).await {
        Ok(answer) => {
            AgentUpdate::Ended { stop_reason: beginning(answer["stopReason"].as_str().unwrap_or("none"), REASON) }
        }
        Err(RequestFailure::Refused(why)) => AgentUpdate::Gone { reason: format!("the agent failed: {why}") },
        Err(RequestFailure::SignedOut(why)) => {
            // It may have read its sign-in when it started, so the next message starts another process.
            let reason = running.greeted.signed_out(&why);
            shared.is_gone(reason.clone());
            running.greeted.process.kill();
            AgentUpdate::Gone { reason }
        }
        Err(RequestFailure::Silent | RequestFailure::Closed) => {
            let reason = running.greeted.process.gone().await.unwrap_or_else(|| "the agent does not read".into());
            AgentUpdate::Gone { reason }
        }
    };
    shared.end(turn, end);
}

/// Ends a process that has had no turn for a time.
async fn rest(running: Weak<Running>, thread: Weak<Thread>, idle: Duration) {
    loop {
        sleep((idle / 4).clamp(Duration::from_millis(50), Duration::from_secs(30))).await;
        let (Some(running), Some(thread)) = (running.upgrade(), thread.upgrade()) else { return };
        let is_idle = || running.shared().state().used_at.is_some_and(|used| used.elapsed() >= idle);
        if !is_idle() && !running.is_gone() {
            continue;
        }
        // A prompt that has it now goes first.
        let mut current = thread.running.lock().await;
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &running)) && (is_idle() || running.is_gone()) {
            *current = None;
            return;
        }
    }
}

#[async_trait]
impl Agents for ChildAgents {
    async fn list(&self) -> Vec<AgentInfo> {
        let confines = self.host.confine.as_ref().map(drop).map_err(String::as_str);
        self.known.values().map(|agent| agent.info(self.host.variable("PATH"), confines)).collect()
    }

    async fn allowed(&self, cwd: &str) -> Result<String> {
        if let Some((_, folder)) = self.copied(cwd) {
            return Ok(ThreadAgent::cwd_of(&folder));
        }
        let folder = self.host.roots.folder(cwd).map_err(Error::Invalid)?;
        let text = folder.to_str().ok_or_else(|| Error::Invalid(format!("{cwd:?} is no text")))?;
        Ok(text.to_owned())
    }

    fn roots(&self) -> Vec<String> {
        let workspace = self.copied(WORKSPACE_FOLDER).map(|_| WORKSPACE_FOLDER.to_owned());
        workspace.into_iter().chain(self.host.roots.to_strings()).collect()
    }

    async fn prompt(&self, prompt: AgentPrompt) -> Result<()> {
        let AgentPrompt { turn, thread, mut content, context, own_mode } = prompt;
        let place = self.thread(turn.workspace, turn.chat);
        let mut current = place.running.lock().await;
        if let Some(running) = current.as_ref() {
            if running.shared().state().turn.as_ref().is_some_and(|known| known.id == turn.turn) {
                return Ok(());
            }
            let is_free = self.clear(running, turn.turn).await;
            // A client may have chosen another session of the agent, or a new one.
            let session = thread.options.session_id.as_ref();
            let is_same = session.is_none_or(|session| *session == running.shared().state().session);
            let settings = running.shared().state().settings.clone();
            let now = ThreadAgent { options: settings, ..running.thread.clone() };
            if !is_free || !is_same || !AgentPrompt::shares_process(&now, &thread) {
                *current = None;
            }
        }
        let active = self.places.clone().acquire_owned().await.map_err(|_| gone())?;
        let running = match current.as_ref() {
            Some(running) => running.clone(),
            None => {
                let (running, is_loaded) = self.open(&thread, own_mode, (turn.workspace, turn.chat)).await?;
                if !is_loaded && !context.is_empty() {
                    let text = format!("The conversation so far:\n\n{context}\n\nThe message of now:");
                    content.insert(0, json!({ "type": "text", "text": text }));
                }
                let running = Arc::new(running);
                place.set(&running);
                *current = Some(running.clone());
                tokio::spawn(rest(Arc::downgrade(&running), Arc::downgrade(&place), self.options.idle));
                running
            }
        };
        let content = running.greeted.takes(content);
        let session = running.shared().state().session.clone();
        running.shared().begin(turn.turn);
        tokio::spawn(perform(running, turn.turn, json!({ "sessionId": session, "prompt": content }), active));
        Ok(())
    }

    async fn updates(&self, turn: &AgentTurn) -> Result<Vec<AgentUpdate>> {
        let running = self.of(turn)?;
        let shared = running.shared();
        loop {
            match shared.next(turn.turn) {
                Next::Updates(updates) => return Ok(updates),
                Next::NotHere => return Err(gone()),
                Next::Wait => shared.changed.notified().await,
            }
        }
    }

    async fn answer(&self, turn: &AgentTurn, request: &str, option: Option<&str>) -> Result<()> {
        let running = self.of(turn)?;
        let message = running.shared().take_ask(turn.turn, request, option).ok_or_else(gone)?;
        running.shared().connection.respond(&message, Ok(outcome(option))).await.map_err(|_| gone())
    }

    async fn settle(&self, turn: &AgentTurn, request: &str, refused: Option<&str>) -> Result<()> {
        let running = self.of(turn)?;
        let message = running.shared().take_write(turn.turn, request).ok_or_else(gone)?;
        let answer = refused.map_or_else(|| Ok(json!({})), |why| Err((FAILED, why.to_owned())));
        running.shared().connection.respond(&message, answer).await.map_err(|_| gone())
    }

    fn copies(&self) -> Option<Arc<dyn WorkingCopies>> {
        self.options.copies.clone()
    }

    async fn cancel(&self, turn: &AgentTurn) -> Result<()> {
        let Ok(running) = self.of(turn) else { return Ok(()) };
        self.cancel_in(&running, turn.turn).await;
        let (grace, turn) = (self.options.grace, turn.turn);
        tokio::spawn(async move {
            sleep(grace).await;
            let is_on = running.shared().state().turn.as_ref().is_some_and(|now| now.id == turn && now.end.is_none());
            if is_on {
                tracing::warn!(
                    agent = running.thread.agent,
                    "an agent did not end a turn that was cancelled, and is killed"
                );
                running.greeted.process.kill();
            }
        });
        Ok(())
    }

    async fn end(&self, workspace: WorkspaceId, chat: ChatId) -> Result<()> {
        let thread = self.threads.lock().remove(&(workspace, chat));
        if let Some(running) = thread.and_then(|thread| thread.process()) {
            running.greeted.process.end().await;
        }
        match &self.options.copies {
            Some(copies) => copies.remove(workspace, chat).await,
            None => Ok(()),
        }
    }

    async fn offers(&self, agent: &str, cwd: &str) -> Result<AgentOffers> {
        let cwd = self.allowed(cwd).await?;
        if let Some(known) = self.offers_within((agent, &cwd), OFFERED_FOR) {
            return Ok(known);
        }
        let _place = self.place_for_a_question().await?;
        // Another question may have asked the same meanwhile.
        if let Some(known) = self.offers_within((agent, &cwd), OFFERED_FOR) {
            return Ok(known);
        }
        let (greeted, folder) = self.greet(agent, &cwd, NO_CHAT).await?;
        let thread = ThreadAgent { agent: agent.into(), cwd, options: domain::AgentOptions::default() };
        let found = offers(&greeted.open(&thread, &folder).await?.answer);
        self.tell_offers((agent, &thread.cwd), &found);
        Ok(found)
    }

    async fn told_offers(&self, agent: &str, cwd: &str) -> Option<AgentOffers> {
        if self.copied(cwd).is_some() {
            return None;
        }
        self.offers_within((agent, cwd), TOLD_FOR)
    }

    async fn sessions(&self, agent: &str, cwd: &str, cursor: Option<&str>) -> Result<Option<AgentSessions>> {
        let cwd = self.allowed(cwd).await?;
        if self.copied(&cwd).is_some() {
            return Ok(None);
        }
        let _place = self.place_for_a_question().await?;
        let (greeted, _) = self.greet(agent, &cwd, NO_CHAT).await?;
        if greeted.offers["sessionCapabilities"]["list"].is_null() {
            return Ok(None);
        }
        let mut params = json!({ "cwd": cwd });
        if let Some(cursor) = cursor {
            params["cursor"] = json!(cursor);
        }
        let answer = greeted.ask("session/list", params).await?;
        let sessions = answer["sessions"].as_array().cloned().unwrap_or_default();
        Ok(Some(AgentSessions { sessions, next: answer["nextCursor"].as_str().map(ToOwned::to_owned) }))
    }

    async fn session_history(&self, agent: &str, cwd: &str, session: &str) -> Result<Option<Vec<AgentMessage>>> {
        let cwd = self.allowed(cwd).await?;
        if self.copied(&cwd).is_some() {
            return Ok(None);
        }
        let _place = self.place_for_a_question().await?;
        let (greeted, _) = self.greet(agent, &cwd, NO_CHAT).await?;
        if !greeted.loads() {
            return Ok(None);
        }
        greeted.history(session, &cwd).await.map(Some)
    }

    async fn commands(&self, workspace: WorkspaceId, chat: ChatId) -> Vec<AgentCommand> {
        let running = self.thread(workspace, chat).process();
        running.map(|running| running.shared().state().commands.clone()).unwrap_or_default()
    }
}
