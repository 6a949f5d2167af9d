//! The servers of all workspaces, and their connections.

use crate::{
    asks::Running,
    bounds,
    declared::{self, Declared, How},
    link::{Known, Link, Unlinked},
    oauth::metadata::Challenge,
    parts::Parts,
    shelf::Shelved,
};
use async_trait::async_trait;
use domain::{CallId, Code, Error, FilePath, WorkspaceId};
use futures::future::join_all;
use ports::{
    SERVED_FILES, SERVED_PREFIX, Served, ServedAnswer, ServedCall, ServedFile, ServedStep, ServersOf, Told, ToolServers,
};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep_until, timeout_at};

/// After so long without a use a connection ends.
const IDLE: Duration = Duration::from_secs(600);
/// For so long more a connection is kept while a call of it waits for a person.
const PARKED: Duration = Duration::from_secs(24 * 3600);
/// The back-off after failures: the first, and the longest.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(300);
/// The most connections of all workspaces together.
const MOST: usize = 128;
/// The time that a call waits for a server that is not connected yet.
const PATIENCE: Duration = Duration::from_secs(60);

/// The reason of a server that is waited for no longer.
pub(crate) const NOT_YET: &str = "it does not answer yet";

/// The servers of the configuration and of the workspaces. Cheap to clone.
#[derive(Clone)]
pub struct Servers(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    own: BTreeMap<String, Declared>,
    pub parts: Parts,
    slots: Mutex<HashMap<(WorkspaceId, String), Arc<Slot>>>,
}

impl Servers {
    /// With these servers for all workspaces.
    ///
    /// # Errors
    /// The fault of a declaration, with the name of its server.
    pub fn new(own: &BTreeMap<String, crate::ServerConfig>, parts: Parts) -> Result<Self, String> {
        let one = |(name, config): (&String, &crate::ServerConfig)| match config.declared(name) {
            Ok(declared) => Ok((name.clone(), declared)),
            Err(why) => Err(format!("mcp.{name}: {why}")),
        };
        let own = own.iter().map(one).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(Inner { own, parts, slots: Mutex::default() })))
    }
}

/// A server of a workspace, connected or not.
pub(crate) struct Slot {
    pub workspace: WorkspaceId,
    pub name: String,
    pub declared: Declared,
    state: tokio::sync::Mutex<State>,
    used: Mutex<Instant>,
    /// The sign-in that it has asked for.
    challenge: Mutex<Option<Challenge>>,
    /// Whether it was asked before, and whether it answered the last time.
    was_asked: AtomicBool,
    answers: AtomicBool,
}

enum State {
    Cold,
    Live(Arc<Link>),
    Failed { again_at: Instant, times: u32, why: String },
}

impl Slot {
    /// Its connection, made if there is none.
    ///
    /// # Errors
    /// The reason, for people.
    async fn link(self: &Arc<Self>, parts: &Parts) -> Result<Arc<Link>, String> {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let mut state = self.state.lock().await;
        let times = match &*state {
            State::Live(link) if !link.is_over() => return Ok(link.clone()),
            State::Failed { again_at, why, .. } if Instant::now() < *again_at => return Err(why.clone()),
            State::Failed { times, .. } => *times,
            State::Live(_) | State::Cold => 0,
        };
        match Link::start(parts, self.workspace, &self.name, &self.declared).await {
            Ok(link) => {
                let link = Arc::new(link);
                *state = State::Live(link.clone());
                tokio::spawn(ends_when_idle(Arc::downgrade(self)));
                Ok(link)
            }
            Err(Unlinked { challenge: Some(challenge), .. }) => Err(self.asks_to_sign_in(&mut state, challenge)),
            Err(Unlinked { why, challenge: None }) => {
                tracing::warn!(server = self.name, workspace = %self.workspace, why, "an MCP server cannot be used");
                let again_at = Instant::now() + FIRST.saturating_mul(1 << times.min(8)).min(LONGEST);
                *state = State::Failed { again_at, times: times + 1, why: why.clone() };
                Err(why)
            }
        }
    }

    /// Its connection and its tools.
    ///
    /// # Errors
    /// The reason, for people.
    pub async fn tools(self: &Arc<Self>, parts: &Parts) -> Result<Found, String> {
        let found = async {
            let link = self.link(parts).await?;
            match link.tools().await {
                Ok(tools) => Ok(Found { slot: self.clone(), link, tools }),
                Err(why) => Err(self.was_asked_to_sign_in(&link).await.unwrap_or(why)),
            }
        };
        let found = found.await;
        self.answers.store(found.is_ok(), Ordering::Release);
        found
    }

    /// Notes that the server asks for a sign-in, and ends a connection that cannot go on without one. The reason, for people.
    fn asks_to_sign_in(&self, state: &mut State, challenge: Challenge) -> String {
        let why = format!("a person has to sign in at it first: buildscale mcp login {}", self.name);
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = Some(challenge);
        *state = State::Failed { again_at: Instant::now() + LONGEST, times: 0, why: why.clone() };
        why
    }

    /// The same for a connection whose last request failed; none where no sign-in is the reason.
    pub async fn was_asked_to_sign_in(&self, link: &Link) -> Option<String> {
        let challenge = link.challenge()?;
        Some(self.asks_to_sign_in(&mut *self.state.lock().await, challenge))
    }

    /// The sign-in that it has asked for.
    pub fn challenge(&self) -> Option<Challenge> {
        self.challenge.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends its connection; the next use makes another one, as another account.
    pub async fn begin_anew(&self) {
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = None;
        *self.state.lock().await = State::Cold;
        self.answers.store(true, Ordering::Release);
    }

    /// Whether it is worth waiting for: one that did not answer the last time holds nobody up.
    fn is_promising(&self) -> bool {
        !self.was_asked.swap(true, Ordering::AcqRel) || self.answers.load(Ordering::Acquire)
    }

    fn idle_at(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) + IDLE
    }
}

/// Ends the connection of a slot once nobody has used it for long.
async fn ends_when_idle(slot: Weak<Slot>) {
    loop {
        let Some(at) = slot.upgrade().map(|slot| slot.idle_at()) else { return };
        sleep_until(at).await;
        let Some(slot) = slot.upgrade() else { return };
        if slot.idle_at() <= Instant::now() {
            let mut state = slot.state.lock().await;
            match &*state {
                // A person may take long to answer.
                State::Live(link) if !link.parked.is_empty() && slot.idle_at() + PARKED > Instant::now() => {
                    drop(state);
                    sleep_until(Instant::now() + IDLE).await;
                    continue;
                }
                State::Live(_) => *state = State::Cold,
                State::Cold | State::Failed { .. } => {}
            }
            return;
        }
    }
}

impl Inner {
    /// The servers of a workspace by name; and those that are declared with a fault.
    fn declared(&self, of: &ServersOf) -> (BTreeMap<String, Declared>, Vec<(String, String)>) {
        let (mut servers, mut faults) = (self.own.clone(), Vec::new());
        let Some(text) = &of.declared else { return (servers, faults) };
        match declared::parse(text) {
            Err(why) => faults.push(("mcp.json".to_owned(), why)),
            Ok(found) => {
                for (name, declared) in found {
                    match declared {
                        Err(why) => faults.push((name, why)),
                        Ok(_) if servers.contains_key(&name) => {
                            faults.push((name, "another server has this name already".into()));
                        }
                        Ok(declared) => drop(servers.insert(name, declared)),
                    }
                }
            }
        }
        (servers, faults)
    }

    /// The slot of a server that a workspace uses now.
    pub fn slot(&self, workspace: WorkspaceId, server: &str) -> Option<Arc<Slot>> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.get(&(workspace, server.to_owned())).cloned()
    }

    /// The servers of a workspace, and those that are declared with a fault.
    pub fn slots(&self, of: &ServersOf) -> (Vec<Arc<Slot>>, Vec<(String, String)>) {
        let (servers, mut faults) = self.declared(of);
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if of.declared.is_some() {
            slots.retain(|(workspace, name), _| *workspace != of.workspace || servers.contains_key(name));
        }
        if slots.len() + servers.len() > MOST {
            // Those that are not connected hold nothing but the time of their next attempt.
            slots.retain(|_, slot| slot.state.try_lock().map_or(true, |state| matches!(&*state, State::Live(_))));
        }
        let mut found = Vec::new();
        for (name, declared) in servers {
            let key = (of.workspace, name.clone());
            match slots.get(&key) {
                Some(slot) if slot.declared == declared => found.push(slot.clone()),
                None if slots.len() >= MOST => faults.push((name, "there are too many servers already".into())),
                Some(_) | None => {
                    let (state, used) = (tokio::sync::Mutex::new(State::Cold), Mutex::new(Instant::now()));
                    let (was_asked, answers) = (AtomicBool::new(false), AtomicBool::new(false));
                    let (workspace, challenge) = (of.workspace, Mutex::default());
                    let slot = Slot { workspace, name, declared, state, used, challenge, was_asked, answers };
                    let slot = Arc::new(slot);
                    slots.insert(key, slot.clone());
                    found.push(slot);
                }
            }
        }
        (found, faults)
    }

    /// The servers' connections and tools, as far as they are there in time, and those that are not. Of one server, or of all.
    pub async fn all(self: &Arc<Self>, of: &ServersOf, one: Option<&str>, wait: Duration) -> Answers {
        let now = Instant::now();
        let (mut slots, missing) = self.slots(of);
        if let Some(tool) = one {
            slots.retain(|slot| tool.starts_with(&format!("{SERVED_PREFIX}{}__", slot.name)));
        }
        let asked = slots.into_iter().map(|slot| {
            let (inner, name) = (self.clone(), slot.name.clone());
            let until = if one.is_some() || slot.is_promising() { now + wait } else { now };
            // A task of its own: it goes on when nobody waits for it any more.
            let task = tokio::spawn(async move { slot.tools(&inner.parts).await });
            async move {
                match timeout_at(until, task).await {
                    Ok(Ok(answer)) => answer.map_err(|why| (name, why)),
                    Ok(Err(_)) => Err((name, "it failed".to_owned())),
                    Err(_) => Err((name, NOT_YET.to_owned())),
                }
            }
        });
        let mut answers = Answers { found: Vec::new(), missing };
        for answer in join_all(asked).await {
            match answer {
                Ok(one) => answers.found.push(one),
                Err(one) => answers.missing.push(one),
            }
        }
        answers
    }
}

/// The answers of servers.
pub(crate) struct Answers {
    pub found: Vec<Found>,
    pub missing: Vec<(String, String)>,
}

/// A server that answers.
pub(crate) struct Found {
    pub slot: Arc<Slot>,
    pub link: Arc<Link>,
    pub tools: Arc<[Known]>,
}

#[async_trait]
impl ToolServers for Servers {
    fn may_have(&self, tool: &str) -> bool {
        tool.starts_with(SERVED_PREFIX)
    }

    async fn tools(&self, of: &ServersOf, wait: Duration) -> Served {
        let Answers { found, missing } = self.0.all(of, None, wait).await;
        let mut tools: Vec<_> =
            found.iter().flat_map(|found| found.tools.iter().map(|known| known.tool.clone())).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Served { tools, missing }
    }

    async fn call(&self, of: &ServersOf, tool: &str, args: Map<String, Value>) -> Result<ServedAnswer, Error> {
        match self.step(of, tool, (None, None), |link, known| Ok(link.begin(known, args))).await? {
            ServedStep::Answered(answer) => Ok(answer),
            ServedStep::Asks(_) | ServedStep::Samples(_) => {
                Err(Error::new(Code::Internal, "a call without a person waits for one"))
            }
        }
    }

    async fn follow(&self, of: &ServersOf, call: ServedCall) -> Result<ServedStep, Error> {
        let ServedCall { id, tool, args, reply, told } = call;
        let begun = |link: &Link, known: &Known| match reply {
            None => Ok(link.begin(known, args)),
            Some(answer) => link.parked.resume(id, answer).ok_or_else(|| {
                Error::new(Code::OutcomeUnknown, "the call does not wait for this answer any more")
                    .hint("its server or this hub was started again meanwhile: look before you make it again")
            }),
        };
        self.step(of, &tool, (Some(id), told), begun).await
    }

    fn sees(&self, of: &ServersOf, server: &str) -> Option<FilePath> {
        match self.0.declared(of).0.remove(server)?.how {
            How::Program { folder, confined: true, .. } => Some(folder),
            How::Program { .. } | How::Http { .. } => None,
        }
    }

    async fn files(&self, of: &ServersOf, wait: Duration) -> Vec<ServedFile> {
        let found = self.0.all(of, None, wait).await.found;
        let listed = found.iter().map(async |found| timeout_at(Instant::now() + wait, found.link.files()).await);
        let mut files = Vec::new();
        for (one, found) in join_all(listed).await.into_iter().zip(&found) {
            match one {
                Ok(Ok(all)) => files.extend(all.iter().map(Shelved::shown)),
                Ok(Err(why)) => tracing::warn!(server = found.slot.name, why, "an MCP server lists no files"),
                Err(_) => tracing::warn!(server = found.slot.name, "an MCP server lists no files in time"),
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }

    async fn read(&self, of: &ServersOf, path: &FilePath) -> Result<ServedAnswer, Error> {
        let none = || Error::not_found("file", path);
        let inside = path.as_str().strip_prefix(SERVED_FILES).and_then(|rest| rest.strip_prefix('/'));
        let Some((server, _)) = inside.and_then(|rest| rest.split_once('/')) else { return Err(none()) };
        let found = self.one(of, server).await.map_err(|why| none().hint(why))?;
        let read = found.link.read(path.as_str()).await;
        self.told(&found, read).await?.ok_or_else(|| none().hint(format!("ls {SERVED_FILES}/{server} lists its files")))
    }

    async fn prompt(&self, of: &ServersOf, name: &str, args: &str) -> Result<ServedAnswer, Error> {
        let none = || Error::not_found("prompt", name);
        let Some((server, prompt)) = name.split_once("__") else { return Err(none()) };
        let (slots, faults) = self.0.slots(of);
        // Such a message may be for somebody else: the agent of a thread has prompts of its own.
        if !slots.iter().any(|slot| slot.name == server) && !faults.iter().any(|(name, _)| name == server) {
            return Err(none());
        }
        let found = self.one(of, server).await.map_err(|why| none().hint(why))?;
        let words = found.link.prompt(prompt, args).await;
        let listed = || none().hint(format!("ls {SERVED_FILES}/{server}/prompts lists those that there are"));
        self.told(&found, words).await?.ok_or_else(listed)
    }
}

impl Servers {
    /// A step of a call: `begun` begins it, or goes on with it.
    async fn step(
        &self,
        of: &ServersOf,
        tool: &str,
        (id, told): (Option<CallId>, Option<Told>),
        begun: impl FnOnce(&Link, &Known) -> Result<Running, Error>,
    ) -> Result<ServedStep, Error> {
        let Answers { found, missing } = self.0.all(of, Some(tool), PATIENCE).await;
        let named = |found: Found| {
            let known = found.tools.iter().find(|known| known.tool.name == tool)?.clone();
            Some((found, known))
        };
        let Some((found, known)) = found.into_iter().find_map(named) else {
            let error = Error::not_found("tool", tool);
            let why: Vec<_> = missing.iter().map(|(name, why)| format!("{name}: {why}")).collect();
            return Err(match why.is_empty() {
                true => error.hint("its server does not offer it"),
                false => error.hint(format!("these servers cannot be used now: {}", why.join("; "))),
            });
        };
        let running = begun(&found.link, &known)?;
        found.link.listen(&running, told);
        let step = found.link.follow(running, id).await;
        self.told(&found, step).await
    }

    /// A server by its name.
    ///
    /// # Errors
    /// The reason, for people.
    async fn one(&self, of: &ServersOf, server: &str) -> Result<Found, String> {
        let (slots, faults) = self.0.slots(of);
        match slots.into_iter().find(|slot| slot.name == server) {
            Some(slot) => slot.tools(&self.0.parts).await,
            None => Err(faults
                .into_iter()
                .find_map(|(name, why)| (name == server).then_some(why))
                .unwrap_or_else(|| format!("there is no MCP server {}", bounds::printable(server, 64)))),
        }
    }

    /// An answer, where a failure may be that the server asks for a sign-in.
    async fn told<T>(&self, found: &Found, answer: Result<T, Error>) -> Result<T, Error> {
        let Err(error) = answer else { return answer };
        let Found { slot, link, .. } = found;
        Err(match slot.was_asked_to_sign_in(link).await {
            Some(why) => {
                Error::new(Code::UpstreamRefused, format!("the MCP server {} did not do it", slot.name)).hint(why)
            }
            None => error,
        })
    }
}
