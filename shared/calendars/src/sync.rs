//! One sync of a connected calendar: the changes of both sides are planned object by object and carried out, there first. A failure is told,
//! and tried again by the next sync: the token of the calendar moves on only when nothing is left.

mod carry_out;
mod local_events;

use crate::{
    caldav::Caldav,
    connection::{self, Connection},
    google::{Google, oauth},
    http::Egress,
    merge::digests,
    plan::{Plan, RemoteObject, Side, plan},
    remote::{Changes, Object, Remote},
    state::{Failed, SyncState},
};
use async_trait::async_trait;
use carry_out::{CarryOut, PlanOutcome};
use domain::{CallId, Code, CommandId, Error, FilePath, Sha256, WorkspaceId};
use local_events::{Local, LocalEvents};
use organizer::{EntityKind, Scope, clock::Tz};
use ports::{Address, Clock, Recipient, Secrets, filled};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::sync::{Mutex, MutexGuard};
use tools::{
    Call,
    organizer::{CalendarSync, Synced, zone_of},
};
use workspace::{Expect, Writer};

/// How long a sync may take.
const LONGEST: Duration = Duration::from_secs(240);
/// How often a sync begins anew because others were faster.
const ROUNDS: usize = 3;
/// Writes to the calendar elsewhere of one sync.
const WRITES: usize = 300;
/// The number of events from which on they are not deleted all at once.
const MANY: usize = 5;
/// Problems that are told.
const PROBLEMS: usize = 20;
/// How many locks there are. Each person has one of them, and few share theirs.
const LOCKS: usize = 64;

/// The parts that calendars are reached with.
#[derive(Clone)]
pub struct CalendarParts {
    /// Addresses.
    pub egress: Arc<dyn Egress>,
    /// The secrets that are granted to workspaces.
    pub secrets: Arc<dyn Secrets>,
    /// Time and ids.
    pub clock: Arc<dyn Clock>,
}

/// Calendars elsewhere.
pub struct Calendars {
    parts: CalendarParts,
    allow_private: bool,
    /// The calendars of a person are synced one after the other. The files that a sync makes come into its state at its end: until then they would be
    /// new events for another calendar. Limits: this holds within one process, and people who share a lock wait for each other.
    locks: Vec<Mutex<()>>,
}

/// The counts of a sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Files that were made, changed and put into the trash.
    here: [usize; 3],
    /// Events that were made, changed and deleted elsewhere.
    there: [usize; 3],
}

impl Calendars {
    /// Over these. `allow_private` lets servers be in private networks.
    pub fn new(parts: CalendarParts, allow_private: bool) -> Self {
        Self { parts, allow_private, locks: (0..LOCKS).map(|_| Mutex::default()).collect() }
    }

    /// Waits until no other calendar of the caller is synced.
    async fn alone(&self, call: &Call<'_>) -> Option<MutexGuard<'_, ()>> {
        let [first, ..] = *Sha256::of(format!("{}/{}", call.workspace.id(), call.by.user()).as_bytes()).as_bytes();
        match self.locks.get(usize::from(first) % LOCKS) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        }
    }

    /// A text with the secret that it refers to, which goes to this address.
    async fn secret(&self, workspace: WorkspaceId, url: &str, name: &str, text: &str) -> Result<String, Error> {
        let to = Recipient { workspace, address: Address::Url(url) };
        filled(&*self.parts.secrets, to, name, text).await.map_err(|why| {
            Error::new(Code::Forbidden, why)
                .hint("the operator keeps the secret, and grants it for the host of the calendar")
        })
    }

    async fn open(&self, call: &Call<'_>, connection: &Connection, usual: Tz) -> Result<Box<dyn Remote>, Error> {
        let workspace = call.workspace.id();
        let client = |url: &str| {
            self.parts.egress.client(url, self.allow_private).map_err(|why| {
                Error::new(Code::Forbidden, format!("the calendar may not be reached: {why}"))
                    .hint("the operator allows private networks with calendars.allow_private")
            })
        };
        match connection {
            Connection::Caldav { url, user, password, calendar, .. } => {
                let http = client(url)?;
                let password = self.secret(workspace, url, "password", password).await?;
                Ok(Box::new(Caldav::open(http, url, (user, &password), calendar.as_deref(), usual).await?))
            }
            Connection::Google { calendar, client_id, client_secret, refresh_token, url, token_url, .. } => {
                let (http, of_tokens) = (client(url)?, client(token_url)?);
                let token = self.secret(workspace, token_url, "refresh_token", refresh_token).await?;
                // The access token opens the calendar as the refresh token does: another address than Google's gets it under a grant of its own alone.
                if url != connection::GOOGLE {
                    self.secret(workspace, url, "refresh_token", refresh_token).await?;
                }
                let word = match client_secret {
                    Some(word) => Some(self.secret(workspace, token_url, "client_secret", word).await?),
                    None => None,
                };
                let oauth_client = oauth::OauthClient { id: client_id, secret: word.as_deref(), token_url };
                let access = oauth::refresh(&of_tokens, oauth_client, &token).await?;
                Ok(Box::new(Google::new(http, url, calendar, &access, usual)?))
            }
        }
    }

    /// Rounds until nothing was in the way, and the counts of all.
    async fn rounds(
        &self,
        call: &Call<'_>,
        connection: &Connection,
        place: &FilePath,
        state: &mut SyncState,
    ) -> Result<Count, Error> {
        let usual = zone_of(&call.workspace, &call.by).await;
        let folder = connection.scope(Scope::Home(call.by.user()))?.folder_of(EntityKind::Event)?;
        let others = local_events::of_others(&call.workspace, place).await?;
        let remote = self.open(call, connection, usual).await?;
        let mut count = Count::default();
        for round in 1..=ROUNDS {
            state.problems.clear();
            let versions = state.objects.iter().map(|(id, known)| (id.clone(), known.etag.clone())).collect();
            let changes = remote.changes(state.token.as_deref(), &versions).await?;
            let is_own = |file: &domain::FileId| !others.contains(file);
            let here = LocalEvents::look(call, &folder, state, &is_own, usual).await?;
            // A folder that was moved or emptied by mistake deletes no calendar.
            let events = state.objects.values().flat_map(|object| object.events.values());
            let known: BTreeSet<_> = events.map(|event| event.file).collect();
            if known.len() > MANY && !here.events.iter().any(|local| known.contains(&local.file)) {
                let known = known.len();
                let message = format!("all {known} events are gone from {folder}, so nothing is done elsewhere");
                return Err(Error::new(Code::Unprocessable, message)
                    .hint(format!("take them out of the trash, or remove {place} to begin anew")));
            }
            // Nor does a calendar that is shown empty by mistake, as by a server that is being restored, delete a folder.
            let (objects, gone) = (state.objects.len(), changes.gone.iter().collect::<BTreeSet<_>>());
            if objects > MANY && changes.changed.is_empty() && state.objects.keys().all(|id| gone.contains(id)) {
                let message =
                    format!("all {objects} events are gone from the calendar, so nothing is deleted in {folder}");
                return Err(Error::new(Code::Unprocessable, message).hint(format!(
                    "if they were meant to go, remove {place} and the files in {folder}; else sync again when they are back"
                )));
            }
            let work = Round { call, folder: &folder, remote: &*remote, takes_new: connection.takes_new(), usual };
            let left = work.run(state, changes, here, &mut count, self.parts.clock.now()).await?;
            if !left || round == ROUNDS {
                break;
            }
        }
        Ok(count)
    }
}

/// A look at both sides, and what follows from it.
struct Round<'a> {
    call: &'a Call<'a>,
    folder: &'a FilePath,
    remote: &'a dyn Remote,
    takes_new: bool,
    usual: Tz,
}

/// An object with the events of both sides.
#[derive(Default)]
struct Both {
    /// Its name there, if it has one.
    id: Option<String>,
    here: BTreeMap<String, Local>,
    there: Option<Object>,
    is_gone: bool,
}

impl Round<'_> {
    /// Carries out what both sides need; whether another round may do more.
    async fn run(
        &self,
        state: &mut SyncState,
        changes: Changes,
        here: LocalEvents,
        count: &mut Count,
        now: domain::Timestamp,
    ) -> Result<bool, Error> {
        let Changes { changed, gone, token, problems } = changes;
        let mut told: Vec<String> = problems.into_iter().chain(here.problems).collect();
        let (mut is_left, mut is_stale, mut writes) = (false, false, 0_usize);
        for (key, both) in self.objects(state, changed, gone, here.events, &mut told) {
            let known = both.id.as_ref().and_then(|id| state.objects.get(id));
            let plan = self.plan(known, &both);
            if plan.write.is_some() && writes >= WRITES {
                told.push("there are more changes: the next sync goes on".into());
                is_left = true;
                break;
            }
            writes += usize::from(plan.write.is_some());
            let etag = known.map(|known| known.etag.clone());
            let work = CarryOut { call: self.call, folder: self.folder, remote: self.remote, usual: self.usual, now };
            match work.object(&both, etag, &plan, count).await {
                Ok(PlanOutcome::Done { gone, now: entry, conflicts }) => {
                    state.add(conflicts);
                    if let Some(id) = gone {
                        state.objects.remove(&id);
                    }
                    if let Some((id, known)) = entry {
                        state.objects.insert(id, known);
                    }
                }
                Ok(PlanOutcome::Stale) => (is_left, is_stale) = (true, true),
                Err(error) if passes(&error) => return Err(error),
                Err(error) => {
                    is_left = true;
                    told.push(format!("{}: {}", title_of(&key, &both), error.message));
                }
            }
        }
        if !is_left {
            state.token = token;
        } else if is_stale {
            told.push("others changed events meanwhile: the next sync looks at them again".into());
        }
        told.truncate(PROBLEMS);
        state.problems = told;
        Ok(is_stale)
    }

    fn plan(&self, known: Option<&crate::state::KnownObject>, both: &Both) -> Plan {
        let carries = |group| self.remote.carries(group);
        let here: Side = both.here.iter().map(|(at, local)| (at.clone(), local.values(carries))).collect();
        let there = match &both.there {
            Some(object) => RemoteObject::Changed(
                object.events.iter().map(|(at, event)| (at.clone(), digests(event, carries))).collect(),
            ),
            None if both.is_gone => RemoteObject::Gone,
            None => RemoteObject::Same,
        };
        plan(known, &here, &there, self.takes_new)
    }

    /// The objects of both sides, those of the calendar first. A file belongs to the object that it was the same as, else to the one with its identity.
    fn objects(
        &self,
        state: &SyncState,
        changed: Vec<Object>,
        gone: Vec<String>,
        here: Vec<Local>,
        told: &mut Vec<String>,
    ) -> Vec<(String, Both)> {
        let holds = self.remote.holds_occurrences();
        let identity = |uid: &str, occurrence: &str| match holds {
            true => uid.to_owned(),
            false => format!("{uid}\n{occurrence}"),
        };
        let (mut all, mut by_identity, mut of_file) =
            (BTreeMap::<String, Both>::new(), BTreeMap::new(), BTreeMap::new());
        for (id, known) in &state.objects {
            let first = known.events.keys().next().map(String::as_str).unwrap_or_default();
            by_identity.insert(identity(&known.uid, first), id.clone());
            of_file.extend(known.events.iter().map(|(at, event)| (event.file, (id.clone(), at.clone()))));
            all.insert(id.clone(), Both { id: Some(id.clone()), ..Both::default() });
        }
        for object in changed {
            let first = object.events.keys().next().map(String::as_str).unwrap_or_default();
            by_identity.insert(identity(&object.uid, first), object.id.clone());
            let both = all.entry(object.id.clone()).or_default();
            (both.id, both.there) = (Some(object.id.clone()), Some(object));
        }
        for id in gone {
            if let Some(both) = all.get_mut(&id).filter(|both| both.there.is_none()) {
                both.is_gone = true;
            }
        }
        // A copy of a file has its identity, too: the file that was the same as the object comes first, whatever the names are.
        let (own, new): (Vec<Local>, Vec<Local>) =
            here.into_iter().partition(|local| of_file.contains_key(&local.file));
        for local in own.into_iter().chain(new) {
            let (occurrence, uid) = (local.occurrence.clone(), local.uid.clone());
            let (key, occurrence) = match of_file.get(&local.file) {
                Some((id, at)) => (id.clone(), at.clone()),
                None => {
                    let name = identity(&uid, &occurrence);
                    (by_identity.get(&name).cloned().unwrap_or_else(|| format!("\u{10ffff}{name}")), occurrence)
                }
            };
            let both = all.entry(key).or_default();
            if let Some(other) = both.here.get(&occurrence) {
                told.push(format!("{} and {} are the same event: the second is left out", other.path, local.path));
                continue;
            }
            both.here.insert(occurrence, local);
        }
        all.into_iter().collect()
    }
}

fn title_of(key: &str, both: &Both) -> String {
    match (both.here.values().next(), &both.there) {
        (Some(local), _) => local.path.to_string(),
        (None, Some(object)) => {
            let title = object.events.values().next().map(|event| event.entity.title().to_owned());
            format!("{:?}", title.unwrap_or_default())
        }
        (None, None) => key.trim_start_matches('\u{10ffff}').to_owned(),
    }
}

/// Whether the same later may succeed: then nothing more is tried now.
fn passes(error: &Error) -> bool {
    matches!(
        error.code,
        Code::UpstreamUnavailable | Code::Timeout | Code::RateLimited | Code::Internal | Code::StorageFull
    ) || error.code == Code::Forbidden
}

/// The id of a part of a call: the same part is done once, however often the call runs.
pub(crate) fn part_of(call: CallId, name: &str) -> CallId {
    CallId(CommandId::from_key(&format!("calendar/{call}"), name).0)
}

/// A writer of a part of a call.
pub(crate) fn writer(call: &Call<'_>, name: &str) -> Writer {
    let key = Some(part_of(call.call_id, name));
    Writer { may_run: call.may_run, key, ..Writer::in_call(call.by.clone(), call.call_id) }
}

#[async_trait]
impl CalendarSync for Calendars {
    async fn sync(&self, call: &Call<'_>, declaration: &FilePath) -> Result<Synced, Error> {
        let home = Scope::Home(call.by.user()).folder()?;
        if !connection::is_place(declaration) || !declaration.is_within(&home) {
            return Err(Error::invalid("path", format!("{declaration} declares no calendar of yours"))
                .hint(format!("a declaration is a file such as {home}/calendars/work.yaml")));
        }
        let content = call.workspace.read(declaration, Some(0..connection::MAX_TEXT)).await?;
        let connection = Connection::parse(&String::from_utf8_lossy(&content.bytes))?;
        let place = connection::state_of(declaration)?;
        let _alone = self.alone(call).await;
        let (before, digest) = match call.workspace.read(&place, None).await {
            Ok(content) => (String::from_utf8_lossy(&content.bytes).into_owned(), content.info.sha256),
            Err(error) if error.code == Code::NotFound => (String::new(), None),
            Err(error) => return Err(error),
        };
        let old = SyncState::read(&before, connection.identity());
        let mut state = old.clone();
        let began = self.parts.clock.now();
        let rounds = tokio::time::timeout(LONGEST, self.rounds(call, &connection, &place, &mut state)).await;
        let done = rounds.unwrap_or_else(|_| {
            let seconds = LONGEST.as_secs();
            Err(Error::new(Code::Timeout, format!("the sync took more than {seconds} s: the next one goes on")))
        });
        match &done {
            Ok(_) => (state.failed, state.synced_at) = (None, Some(began)),
            Err(error) => state.failed = Some(Failed { at: began, why: error.message.chars().take(500).collect() }),
        }
        // A look that found nothing new makes no version.
        if differs(&old, &state) || digest.is_none() {
            let text =
                serde_json::to_string_pretty(&state).map_err(|error| Error::new(Code::Internal, error.to_string()))?;
            let writer = writer(call, &format!("state {}", Sha256::of(text.as_bytes())));
            let expect = digest.map_or(Expect::Absent, Expect::Hash);
            // Another sync of the same calendar was faster: both sides are compared again by the next.
            match call.workspace.write(&place, text, expect, &writer).await {
                Ok(_) => {}
                Err(error) if matches!(error.code, Code::StaleVersion | Code::Conflict) => {
                    tracing::info!(%place, "another sync wrote the state of a calendar");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(summarize(&old, &state, done?))
    }
}

/// Whether a state says anything new beside its time.
fn differs(old: &SyncState, new: &SyncState) -> bool {
    let timeless = |state: &SyncState| {
        let failed = state.failed.as_ref().map(|failed| failed.why.clone());
        (SyncState { synced_at: None, failed: None, ..state.clone() }, failed)
    };
    timeless(old) != timeless(new)
}

fn summarize(old: &SyncState, state: &SyncState, count: Count) -> Synced {
    let Count { here, there } = count;
    let new: Vec<_> = {
        let known: BTreeSet<String> = old.conflicts.iter().map(|one| format!("{one:?}")).collect();
        state.conflicts.iter().filter(|one| !known.contains(&format!("{one:?}"))).collect()
    };
    let line = |[made, changed, gone]: [usize; 3]| format!("{made} made, {changed} changed, {gone} removed");
    let mut output = format!("here: {}; there: {}", line(here), line(there));
    for conflict in &new {
        output.push_str(&format!("\n[conflict: {} (version {}): {}]", conflict.path, conflict.v, conflict.what));
    }
    for problem in &state.problems {
        output.push_str(&format!("\n[{problem}]"));
    }
    let counts = |[made, changed, removed]: [usize; 3]| json!({ "made": made, "changed": changed, "removed": removed });
    let result = json!({
        "here": counts(here), "there": counts(there), "conflicts": new, "problems": state.problems,
        "events": state.objects.values().map(|known| known.events.len()).sum::<usize>(),
    });
    Synced { output, result }
}
