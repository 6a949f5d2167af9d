//! The servers of all workspaces, and their connections.

use crate::{
    declared::{self, Declared},
    link::{Known, Link},
    parts::Parts,
};
use async_trait::async_trait;
use domain::{Error, WorkspaceId};
use futures::future::join_all;
use ports::{SERVED_PREFIX, Served, ServedAnswer, ServersOf, ToolServers};
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
/// The back-off after failures: the first, and the longest.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(300);
/// The most connections of all workspaces together.
const MOST: usize = 128;
/// The time that a call waits for a server that is not connected yet.
const PATIENCE: Duration = Duration::from_secs(60);

/// The servers of the configuration and of the workspaces. Cheap to clone.
#[derive(Clone)]
pub struct Servers(Arc<Inner>);

struct Inner {
    own: BTreeMap<String, Declared>,
    parts: Parts,
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
struct Slot {
    workspace: WorkspaceId,
    name: String,
    declared: Declared,
    state: tokio::sync::Mutex<State>,
    used: Mutex<Instant>,
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
            Err(why) => {
                tracing::warn!(server = self.name, workspace = %self.workspace, why, "an MCP server cannot be used");
                let again_at = Instant::now() + FIRST.saturating_mul(1 << times.min(8)).min(LONGEST);
                *state = State::Failed { again_at, times: times + 1, why: why.clone() };
                Err(why)
            }
        }
    }

    async fn tools(self: &Arc<Self>, parts: &Parts) -> Result<(Arc<Link>, Arc<[Known]>), String> {
        let found = async {
            let link = self.link(parts).await?;
            let tools = link.tools().await?;
            Ok((link, tools))
        };
        let found = found.await;
        self.answers.store(found.is_ok(), Ordering::Release);
        found
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
            if matches!(&*state, State::Live(_)) {
                *state = State::Cold;
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

    fn slots(&self, of: &ServersOf) -> (Vec<Arc<Slot>>, Vec<(String, String)>) {
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
                    let slot = Slot { workspace: of.workspace, name, declared, state, used, was_asked, answers };
                    let slot = Arc::new(slot);
                    slots.insert(key, slot.clone());
                    found.push(slot);
                }
            }
        }
        (found, faults)
    }

    /// The servers' connections and tools, as far as they are there in time, and those that are not. Of one server, or of all.
    async fn all(self: &Arc<Self>, of: &ServersOf, one: Option<&str>, wait: Duration) -> Answers {
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
                    Err(_) => Err((name, "it does not answer yet".to_owned())),
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
struct Answers {
    found: Vec<(Arc<Link>, Arc<[Known]>)>,
    missing: Vec<(String, String)>,
}

#[async_trait]
impl ToolServers for Servers {
    fn may_have(&self, tool: &str) -> bool {
        tool.starts_with(SERVED_PREFIX)
    }

    async fn tools(&self, of: &ServersOf, wait: Duration) -> Served {
        let Answers { found, missing } = self.0.all(of, None, wait).await;
        let mut tools: Vec<_> =
            found.iter().flat_map(|(_, tools)| tools.iter().map(|known| known.tool.clone())).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Served { tools, missing }
    }

    async fn call(&self, of: &ServersOf, tool: &str, args: Map<String, Value>) -> Result<ServedAnswer, Error> {
        let Answers { found, missing } = self.0.all(of, Some(tool), PATIENCE).await;
        let named = |(link, tools): (Arc<Link>, Arc<[Known]>)| {
            let known = tools.iter().find(|known| known.tool.name == tool)?.clone();
            Some((link, known))
        };
        let Some((link, known)) = found.into_iter().find_map(named) else {
            let error = Error::not_found("tool", tool);
            let why: Vec<_> = missing.iter().map(|(name, why)| format!("{name}: {why}")).collect();
            return Err(match why.is_empty() {
                true => error.hint("its server does not offer it"),
                false => error.hint(format!("these servers cannot be used now: {}", why.join("; "))),
            });
        };
        link.call(&known, args).await
    }
}
