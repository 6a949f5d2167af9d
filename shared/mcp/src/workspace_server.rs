//! A server of a workspace, and the life of its connection: made with the first use, ended after a while without one, and made anew with a back-off.

use crate::{
    connection::{ConnectError, Connection, KnownTool},
    declarations::{DeclaredServer, DeclaredTransport},
    dependencies::ServerDependencies,
    oauth::{
        accounts::{Holder, Session},
        metadata::Challenge,
    },
};
use domain::{CallId, FilePath, WorkspaceId};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// After so long without a use a connection ends.
const IDLE: Duration = Duration::from_secs(600);
/// For so long more a connection is kept while a call of it waits for a person.
const PARKED: Duration = Duration::from_secs(24 * 3600);
/// So many earlier connections of a server are kept for the calls in them; the oldest gives way.
const MOST_EARLIER: usize = 4;
/// The back-off after failures: the first, and the longest.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(300);

/// The most servers of all workspaces together that are connected, or were and can be again; and the most of one workspace.
const MOST: usize = 128;
const MOST_OF_ONE: usize = 64;

/// The workspace, the server, and what is hidden from its program: parties share the program only if the same files do not exist for them.
pub(crate) type WorkspaceServerKey = (WorkspaceId, String, Arc<[FilePath]>);

/// A server of a workspace, connected or not.
pub(crate) struct WorkspaceServer {
    pub workspace: WorkspaceId,
    pub name: String,
    pub declared: DeclaredServer,
    /// The files that do not exist for its program; none for a server that sees no files.
    hidden: Arc<[FilePath]>,
    /// Those who have used it, and whether they still do.
    parties: Mutex<BTreeMap<String, bool>>,
    state: tokio::sync::Mutex<State>,
    /// Connections from before files around it changed: for the calls that run or wait in them, and for no new one.
    earlier: Mutex<Vec<Arc<Connection>>>,
    used: Mutex<Instant>,
    /// Whether a task waits to end its connection.
    has_end: AtomicBool,
    /// The sign-in that it has asked for.
    challenge: Mutex<Option<Challenge>>,
    /// The account that the workspace had there with the last use, once it was looked for.
    account: Mutex<Option<LastAccount>>,
    /// Whether it was asked before, whether it answered the last time, and the reason if it did not.
    was_asked: AtomicBool,
    answers: AtomicBool,
    failure: Mutex<Option<String>>,
}

/// An account of the workspace at the server, or that it has none.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LastAccount(Option<Session>);

enum State {
    Cold,
    Live(Arc<Connection>),
    Failed { again_at: Instant, times: u32, why: String },
}

impl WorkspaceServer {
    /// One that is not connected, and used by nobody yet.
    pub fn new((workspace, name, hidden): &WorkspaceServerKey, declared: DeclaredServer) -> Self {
        Self {
            workspace: *workspace,
            name: name.clone(),
            declared,
            hidden: hidden.clone(),
            parties: Mutex::default(),
            state: tokio::sync::Mutex::new(State::Cold),
            earlier: Mutex::default(),
            used: Mutex::new(Instant::now()),
            has_end: AtomicBool::new(false),
            challenge: Mutex::default(),
            account: Mutex::default(),
            was_asked: AtomicBool::new(false),
            answers: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    /// Its connection, made if there is none.
    ///
    /// # Errors
    /// The reason, for people.
    async fn connection(self: &Arc<Self>, parts: &ServerDependencies) -> Result<Arc<Connection>, String> {
        *self.used.lock() = Instant::now();
        let mut state = self.state.lock().await;
        let times = match &*state {
            State::Live(connection) if !connection.is_over() && connection.is_outdated() => {
                self.note_end("a folder around files that are hidden from it has changed");
                let mut earlier = self.earlier();
                if earlier.len() >= MOST_EARLIER {
                    earlier.remove(0);
                }
                earlier.push(connection.clone());
                0
            }
            State::Live(connection) if !connection.is_over() => return Ok(connection.clone()),
            State::Failed { again_at, why, .. } if Instant::now() < *again_at => return Err(why.clone()),
            State::Failed { times, .. } => *times,
            State::Live(_) | State::Cold => 0,
        };
        match Connection::start(parts, self.workspace, &self.name, &self.declared, &self.hidden).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *state = State::Live(connection.clone());
                if !self.has_end.swap(true, Ordering::AcqRel) {
                    tokio::spawn(ends_when_idle(Arc::downgrade(self), self.idle_at()));
                }
                Ok(connection)
            }
            Err(ConnectError { challenge: Some(challenge), .. }) => Err(self.asks_to_sign_in(&mut state, challenge)),
            Err(ConnectError { why, challenge: None }) => {
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
    pub async fn tools(self: &Arc<Self>, parts: &ServerDependencies) -> Result<ReachedServer, String> {
        let found = async {
            let connection = self.connection(parts).await?;
            match connection.tools().await {
                Ok(tools) => Ok(ReachedServer { workspace_server: self.clone(), connection, tools }),
                Err(why) => Err(self.was_asked_to_sign_in(&connection).await.unwrap_or(why)),
            }
        };
        let found = found.await;
        self.answers.store(found.is_ok(), Ordering::Release);
        *self.failure.lock() = found.as_ref().err().cloned();
        found
    }

    /// Notes that the server asks for a sign-in, and ends a connection that cannot go on without one. The reason, for people.
    fn asks_to_sign_in(&self, state: &mut State, challenge: Challenge) -> String {
        let why = format!("a person has to sign in at it first: buildscale mcp login {}", self.name);
        *self.challenge.lock() = Some(challenge);
        *state = State::Failed { again_at: Instant::now() + LONGEST, times: 0, why: why.clone() };
        why
    }

    /// The same for a connection whose last request failed; none where no sign-in is the reason.
    pub async fn was_asked_to_sign_in(&self, connection: &Connection) -> Option<String> {
        let challenge = connection.challenge()?;
        Some(self.asks_to_sign_in(&mut *self.state.lock().await, challenge))
    }

    /// The same for a call of a tool or the read of a file. Where the account lacks the scope for this alone, the connection stays for all others.
    pub async fn was_refused_without_sign_in(&self, connection: &Connection) -> Option<String> {
        let challenge = connection.challenge()?;
        if !challenge.lacks_scope {
            return self.was_asked_to_sign_in(connection).await;
        }
        *self.challenge.lock() = Some(challenge);
        Some(format!(
            "its account has no right to this: a person has to sign in anew: buildscale mcp login {}",
            self.name
        ))
    }

    /// The sign-in that it has asked for.
    pub fn challenge(&self) -> Option<Challenge> {
        self.challenge.lock().clone()
    }

    /// The holder of an account at it; none for a program.
    pub fn holder(&self) -> Option<Holder> {
        let DeclaredTransport::Http { url, allow_private, .. } = &self.declared.how else { return None };
        let allow_private = *allow_private && self.declared.is_own;
        Some(Holder { workspace: self.workspace, server: self.name.clone(), url: url.clone(), allow_private })
    }

    /// Begins anew where the workspace has another account there than with the last use: another process signs in and out, too. It goes before each
    /// use, and not into it: a use of a server that fails has its answer at once, and this reads a row.
    pub async fn look_for_account(&self, parts: &ServerDependencies) {
        let (Some(accounts), Some(holder)) = (&parts.accounts, self.holder()) else { return };
        // One that cannot be read now is looked for with the next use.
        let Ok(session) = accounts.session(&holder).await else { return };
        let now = LastAccount(session);
        let before = self.account.lock().replace(now);
        if before.is_some_and(|before| before != now) {
            self.begin_anew().await;
        }
    }

    /// Ends its connection; the next use makes another one, as another account.
    pub async fn begin_anew(&self) {
        *self.challenge.lock() = None;
        *self.failure.lock() = None;
        *self.state.lock().await = State::Cold;
        self.earlier().clear();
        self.answers.store(true, Ordering::Release);
    }

    /// Forgets a connection whose program has gone; the next use makes another one.
    async fn lose(&self, gone: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if matches!(&*state, State::Live(connection) if Arc::ptr_eq(connection, gone)) {
            self.note_end("it is not there any more");
            *state = State::Cold;
        }
    }

    /// The earlier connections in which calls run or wait; the others end here.
    fn earlier(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        let mut earlier = self.earlier.lock();
        earlier.retain(|connection| {
            !connection.is_over() && (Arc::strong_count(connection) > 1 || !connection.parked.is_empty())
        });
        earlier
    }

    fn parties(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.parties.lock()
    }

    /// Notes that a party uses it.
    pub fn enter(&self, party: &str) {
        self.parties().insert(party.to_owned(), true);
    }

    /// Takes a party out of those that use it: its program shows other files than that party may see.
    pub fn leave(&self, party: &str) {
        if let Some(uses) = self.parties().get_mut(party) {
            *uses = false;
        }
    }

    /// Whether everybody has left it, and no call runs or waits in it.
    pub fn is_over(self: &Arc<Self>) -> bool {
        let is_over = !self.parties().values().any(|uses| *uses) && !self.is_busy();
        if is_over {
            self.note_end("other files are hidden now from those who used it");
        }
        is_over
    }

    /// The connection in which a call of this party waits for a person.
    pub async fn waiting(&self, party: &str, call: CallId) -> Option<Arc<Connection>> {
        if !self.parties().contains_key(party) {
            return None;
        }
        match &*self.state.lock().await {
            State::Live(connection) if connection.parked.has(call) => Some(connection.clone()),
            State::Live(_) | State::Cold | State::Failed { .. } => {
                self.earlier().iter().find(|connection| connection.parked.has(call)).cloned()
            }
        }
    }

    /// Whether it is being used: those who use it hold it. A call that waits for a person does not.
    fn is_busy(self: &Arc<Self>) -> bool {
        let waits = || match self.state.try_lock() {
            Ok(state) => matches!(&*state, State::Live(connection) if !connection.parked.is_empty()),
            Err(_) => true,
        };
        Arc::strong_count(self) > 1 || !self.earlier().is_empty() || waits()
    }

    /// Notes that its program is ended, and is started again with its next use.
    fn note_end(&self, why: &str) {
        tracing::info!(server = self.name, workspace = %self.workspace, why, "a program of an MCP server is ended");
    }

    /// Whether it is connected, or is about to be.
    fn holds_connection(&self) -> bool {
        self.state.try_lock().map_or(true, |state| matches!(&*state, State::Live(_)))
    }

    /// Whether it is worth waiting for: one that did not answer the last time holds nobody up.
    pub fn is_promising(&self) -> bool {
        !self.was_asked.swap(true, Ordering::AcqRel) || self.answers.load(Ordering::Acquire)
    }

    /// The reason why it did not answer the last time.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    fn idle_at(&self) -> Instant {
        *self.used.lock() + IDLE
    }

    /// Ends its connection if nobody has used it for long; else, when to try again.
    async fn end_if_idle(&self) -> Option<Instant> {
        let (now, idle_at) = (Instant::now(), self.idle_at());
        if idle_at > now {
            return Some(idle_at);
        }
        let mut state = self.state.lock().await;
        let waits =
            matches!(&*state, State::Live(connection) if !connection.parked.is_empty()) || !self.earlier().is_empty();
        // A person may take long to answer.
        if waits && idle_at + PARKED > now {
            return Some(now + IDLE);
        }
        if matches!(&*state, State::Live(_)) {
            *state = State::Cold;
        }
        self.earlier().clear();
        self.has_end.store(false, Ordering::Release);
        None
    }
}

/// Ends the connection of a server once nobody has used it for long.
async fn ends_when_idle(workspace_server: Weak<WorkspaceServer>, mut at: Instant) {
    loop {
        sleep_until(at).await;
        let Some(workspace_server) = workspace_server.upgrade() else { return };
        match workspace_server.end_if_idle().await {
            Some(later) => at = later,
            None => return,
        }
    }
}

/// Makes room for one more server of a workspace: where there is none, the one that nobody has used for the longest time gives way, first of those that
/// are not connected. Whether there is room now.
pub(crate) fn make_room(
    workspace_servers: &mut HashMap<WorkspaceServerKey, Arc<WorkspaceServer>>,
    workspace: WorkspaceId,
) -> bool {
    let is_own = |place: &WorkspaceServerKey| place.0 == workspace;
    let is_own_full = workspace_servers.keys().filter(|place| is_own(place)).count() >= MOST_OF_ONE;
    if !is_own_full && workspace_servers.len() < MOST {
        return true;
    }
    let others = workspace_servers
        .iter()
        .filter(|(place, workspace_server)| (!is_own_full || is_own(place)) && !workspace_server.is_busy());
    let oldest =
        others.min_by_key(|(_, workspace_server)| (workspace_server.holds_connection(), workspace_server.idle_at()));
    let Some(place) = oldest.map(|(place, _)| place.clone()) else { return false };
    if let Some(workspace_server) =
        workspace_servers.remove(&place).filter(|workspace_server| workspace_server.holds_connection())
    {
        workspace_server.note_end("others need its place");
    }
    true
}

/// A server that answers.
pub(crate) struct ReachedServer {
    pub workspace_server: Arc<WorkspaceServer>,
    pub connection: Arc<Connection>,
    pub tools: Arc<[KnownTool]>,
}

impl ReachedServer {
    /// Whether its program is still there. One that has gone is forgotten.
    pub async fn is_there(&self) -> bool {
        let is_there = self.connection.is_there().await;
        if !is_there {
            self.workspace_server.lose(&self.connection).await;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn place(workspace: WorkspaceId, number: usize) -> WorkspaceServerKey {
        (workspace, format!("tools-{number}"), Arc::default())
    }

    /// So many servers of a workspace, each used later than the one before.
    fn filled(
        workspace_servers: &mut HashMap<WorkspaceServerKey, Arc<WorkspaceServer>>,
        workspace: WorkspaceId,
        count: usize,
    ) {
        let config = crate::ServerConfig { url: Some("https://tools.example/mcp".into()), ..Default::default() };
        let (declared, now) = (config.declared("tools").unwrap(), Instant::now());
        for (number, seconds) in (0..count).zip(0..) {
            let place = place(workspace, number);
            let workspace_server = WorkspaceServer::new(&place, declared.clone());
            *workspace_server.used.lock() = now + Duration::from_secs(seconds);
            workspace_servers.insert(place, Arc::new(workspace_server));
        }
    }

    #[test]
    fn the_one_that_was_not_used_for_the_longest_time_gives_way_in_its_own_workspace() {
        let [one, other] = ["one", "other"].map(|name| WorkspaceId::from_key("slots", name));
        let mut workspace_servers = HashMap::new();
        filled(&mut workspace_servers, other, 1);
        filled(&mut workspace_servers, one, MOST_OF_ONE);
        let used = workspace_servers[&place(one, 0)].clone();
        assert!(make_room(&mut workspace_servers, one));
        let there = [0, 1, 2].map(|number| workspace_servers.contains_key(&place(one, number)));
        assert_eq!(there, [true, false, true], "the first one is in use");
        assert!(
            workspace_servers.contains_key(&place(other, 0)) && workspace_servers.len() == MOST_OF_ONE,
            "another workspace pays nothing"
        );
        assert!(make_room(&mut workspace_servers, one) && workspace_servers.len() == MOST_OF_ONE, "there is room");
        drop(used);
    }

    #[test]
    fn no_workspace_takes_the_places_of_all_and_what_is_used_stays() {
        let [one, other, third] = ["one", "other", "third"].map(|name| WorkspaceId::from_key("slots", name));
        let mut workspace_servers = HashMap::new();
        filled(&mut workspace_servers, one, MOST_OF_ONE);
        assert!(make_room(&mut workspace_servers, other) && workspace_servers.len() == MOST_OF_ONE);
        filled(&mut workspace_servers, other, MOST - MOST_OF_ONE);
        assert!(make_room(&mut workspace_servers, third) && workspace_servers.len() == MOST - 1);
        filled(&mut workspace_servers, third, 1);
        let used: Vec<_> = workspace_servers.values().cloned().collect();
        assert!(!make_room(&mut workspace_servers, third) && workspace_servers.len() == MOST);
        drop(used);
        assert!(make_room(&mut workspace_servers, third) && workspace_servers.len() == MOST - 1);
    }
}
