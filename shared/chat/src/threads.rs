//! Threads (spec 004 §3): chats that are known by a record of their own before their first turn, and that take one turn at a time.
//!
//! A thread and its chat have the same id. The record has the agent, its folder and its options. The first turn makes the chat.
//!
//! **One turn at a time.** A turn is claimed in the record before its message is sent, with the record's revision as the precondition: of two
//! requests at the same time one gets the conflict. The claim ends with the turn, as the chat's view tells; a claim whose message was never
//! sent, because the process ended in between, lapses.

mod compact;
mod deletion;
mod reader;
mod record;

use crate::{Accepted, Chats, NewChat, NewMessage, chats::internal};
pub use compact::ThreadCompaction;
use domain::{
    AgentOptions, ChatId, ChatStatus, ChatView, ClientFunction, Code, CommandId, Error, FileId, Labels, Mode, OnBusy,
    Principal, ThreadAgent, TraceContext, TurnId, WorkspaceId,
};
use ports::{Expect, Key, Write};
pub use reader::{ThreadPage, ThreadReader, ThreadWithView};
pub(crate) use record::partition;
use record::{Claim, ClientRecord, client_key, thread_key, turn_key, turns_of};
pub use record::{ThreadRecord, TurnRecord};
use std::time::Duration;

/// After this time a claim whose turn was never seen has lapsed.
const LAPSES: Duration = Duration::from_secs(60);
/// How long a client is remembered after it was last here: clients name themselves, and may have another name each time.
const CLIENT_KEPT: Duration = Duration::from_secs(90 * 24 * 3600);

/// Threads, for those who talk to them.
///
/// # Errors
/// Beside its own, every method gives `INTERNAL` when a store or the queue does not answer.
#[derive(Clone)]
pub struct Threads {
    chats: Chats,
    reader: ThreadReader,
}

/// A thread to make.
#[derive(Clone, Debug)]
pub struct NewThread {
    /// Its agent, folder and options.
    pub agent: ThreadAgent,
    /// The functions that its client runs itself; none for a coding agent, which has tools of its own.
    pub functions: Vec<ClientFunction>,
    /// Its title.
    pub title: Option<String>,
    /// The labels of its chat.
    pub labels: Labels,
    /// The name of the client.
    pub client: String,
}

/// A turn to begin.
#[derive(Clone, Debug, Default)]
pub struct ThreadTurn {
    /// The person's words.
    pub input: String,
    /// Files to attach.
    pub files: Vec<FileId>,
    /// The persona; none for a coding agent.
    pub role: Option<String>,
    /// Whether the caller may approve.
    pub may_approve: bool,
    /// Whether the caller may run no flows: then no file that the agent writes in the turn starts one.
    pub may_not_run: bool,
    /// The trace that the request came in.
    pub trace: Option<TraceContext>,
    /// The number of the next event of the chat's log, as it was before: no event of the turn has a lower one.
    pub first: u64,
    /// The name of the client.
    pub client: String,
}

impl Threads {
    /// Over these chats.
    pub fn new(chats: Chats) -> Self {
        let reader = ThreadReader::new(chats.table.clone(), chats.reader());
        Self { chats, reader }
    }

    /// The reads alone.
    pub fn reader(&self) -> &ThreadReader {
        &self.reader
    }

    /// Makes a thread. No process starts. The same id again has no further effect.
    ///
    /// # Errors
    /// Those of [`Threads`].
    pub async fn create(&self, workspace: WorkspaceId, thread: ChatId, new: NewThread) -> Result<(), Error> {
        let now = self.chats.clock.now();
        let NewThread { agent, functions, title, labels, client } = new;
        let (title, claim) = (title.unwrap_or_default(), None);
        let put_by = client.clone();
        let (created_at, updated_at) = (now, now);
        let record = ThreadRecord { thread, agent, functions, title, labels, client, created_at, updated_at, claim };
        let put = Write::put(thread_key(workspace, thread), record.encode()?, Expect::Absent);
        match self.chats.table.commit(vec![put, self.seen(workspace, &put_by)?]).await {
            Ok(()) | Err(ports::Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(internal(error)),
        }
    }

    /// The write that notes that a client was here.
    fn seen(&self, workspace: WorkspaceId, client: &str) -> Result<Write, Error> {
        let now = self.chats.clock.now();
        let record = ClientRecord { client: client.to_owned(), seen_at: now };
        let body = serde_json::to_string(&record).map_err(internal)?;
        Ok(Write::put(client_key(workspace, client), body, Expect::Any).expiring(now + CLIENT_KEPT))
    }

    /// Changes title and options. Options that apply to a running turn cannot change while there is one; the session of the next turn can.
    /// The record is written first: a request that fails behind it is repeated, and the chat then gets what the record has.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such thread; `CONFLICT` when a turn is active, or when the thread was changed at the same time; those of
    /// [`Chats::configure`].
    pub async fn change(
        &self,
        workspace: WorkspaceId,
        thread: ChatId,
        title: Option<String>,
        options: Option<AgentOptions>,
        setup: (Option<String>, Option<Mode>, bool),
        by: &Principal,
    ) -> Result<(), Error> {
        let found = self.reader.get(workspace, thread).await?;
        let agent = found.agent();
        let before = &agent.options;
        let session_alone = |new: &AgentOptions| {
            AgentOptions { session_id: None, ..new.clone() } == AgentOptions { session_id: None, ..before.clone() }
        };
        if options.as_ref().is_some_and(|new| new != before && !session_alone(new)) && self.is_active(&found) {
            return Err(active(thread, "wait for the turn to end or cancel it, then change its options"));
        }
        let (model, mode, may_approve) = setup;
        // Also options that the record has: the command of an earlier request may never have been sent. A chat that has them says nothing.
        let wanted = options.clone().map(Box::new);
        let setup =
            crate::Setup { title: title.clone(), model, mode, may_approve, options: wanted, ..crate::Setup::default() };
        if let Some(view) = &found.view {
            // The record comes first, and has nothing of a change that is refused.
            setup.check(view)?;
        }
        let mut record = found.record.clone();
        // The record is newer than the agent's own choices from now on.
        record.agent.clone_from(&agent);
        record.updated_at = self.chats.clock.now();
        if let Some(title) = &title {
            record.title.clone_from(title);
        }
        if let Some(options) = options {
            record.agent.options = options;
        }
        self.write(workspace, &record, found.rev, Vec::new()).await?;
        let changes = setup.title.is_some() || setup.model.is_some() || setup.mode.is_some() || setup.options.is_some();
        if found.view.is_some() && changes {
            self.chats.configure(workspace, thread, setup, by).await?;
        }
        Ok(())
    }

    /// Sets the labels that the chat of a thread begins with.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such thread; `CONFLICT` when it was changed at the same time.
    pub async fn label(&self, workspace: WorkspaceId, thread: ChatId, labels: Labels) -> Result<(), Error> {
        let found = self.reader.get(workspace, thread).await?;
        let record = ThreadRecord { labels, updated_at: self.chats.clock.now(), ..found.record };
        self.write(workspace, &record, found.rev, Vec::new()).await
    }

    /// Deletes a thread: its record with those of its turns, and its chat as [`Chats::delete`] does. Records of turns that an earlier version wrote are in
    /// no index and stay.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such thread; `CONFLICT` when a turn is active; those of [`Chats::delete`].
    pub async fn delete(&self, workspace: WorkspaceId, thread: ChatId, by: &Principal) -> Result<(), Error> {
        let found = self.reader.get(workspace, thread).await?;
        if self.is_active(&found) {
            return Err(active(thread, "wait for the turn to end or cancel it, then delete the thread"));
        }
        // The record last: while it is there, the request can be repeated.
        if found.view.is_some() {
            self.chats.delete(workspace, thread, by).await?;
        }
        self.forget_turns(workspace, thread).await?;
        let gone = Write::delete(thread_key(workspace, thread), Expect::Any);
        self.chats.table.commit(vec![gone]).await.map_err(internal)
    }

    /// Refuses a turn that cannot begin now, so that nothing is stored for it. True where the same request has begun it before, under the same idempotency
    /// key. Another request may still be faster: [`Threads::start`] decides.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without words, `PAYLOAD_TOO_LARGE` for too many; `CONFLICT` when a turn is active; those of [`Threads`].
    pub async fn check_start(
        &self,
        workspace: WorkspaceId,
        found: &ThreadWithView,
        command: CommandId,
        input: &str,
    ) -> Result<bool, Error> {
        crate::request_checks::check_content("input", input)?;
        match self.reader.turn(workspace, TurnId(command.0)).await {
            Ok(_) => return Ok(true),
            Err(error) if error.code == Code::NotFound => {}
            Err(error) => return Err(error),
        }
        if self.is_active(found) {
            let hint = "follow it on GET /v1/threads/ID/events, wait for its turn_completed event, or cancel it";
            return Err(active(found.record.thread, hint));
        }
        Ok(false)
    }

    /// Begins a turn; the first one makes the chat.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such thread; `CONFLICT` when a turn is active; those of [`Chats::create`] and [`Chats::post`].
    pub async fn start(
        &self,
        workspace: WorkspaceId,
        thread: ChatId,
        command: CommandId,
        turn: ThreadTurn,
        by: &Principal,
    ) -> Result<Accepted, Error> {
        let ThreadTurn { input, files, role, may_approve, may_not_run, trace, first, client } = turn;
        let found = self.reader.get(workspace, thread).await?;
        let turn_id = TurnId(command.0);
        let again = self.check_start(workspace, &found, command, &input).await?;
        if !again {
            self.claim(workspace, &found, turn_id, &input, first, &client).await?;
        }
        let ThreadRecord { agent, functions, title, labels, .. } = found.record;
        let made = match (&found.view, role) {
            (None, role) => {
                let AgentOptions { mode, model_id, .. } = agent.options.clone();
                let of_persona = role.is_some();
                let new = NewChat {
                    goal: input,
                    files,
                    model: model_id.filter(|_| of_persona),
                    mode: if of_persona && mode.as_deref() == Some("plan") { Mode::Plan } else { Mode::Chat },
                    may_approve,
                    may_not_run,
                    trace,
                    title: Some(title).filter(|title| !title.is_empty()),
                    labels,
                    thread: (!of_persona).then_some(agent),
                    functions,
                    role,
                    ..NewChat::default()
                };
                self.chats.create(workspace, thread, command, new, by).await
            }
            (Some(_), _) => {
                let on_busy = if again { OnBusy::Enqueue } else { OnBusy::Reject };
                let post = NewMessage {
                    content: input,
                    files,
                    on_busy,
                    may_approve,
                    may_not_run,
                    trace,
                    ..NewMessage::default()
                };
                self.chats.post(workspace, thread, command, post, by).await
            }
        };
        if made.is_err() && !again {
            self.release(workspace, thread, turn_id).await;
        }
        made
    }

    async fn claim(
        &self,
        workspace: WorkspaceId,
        found: &ThreadWithView,
        turn: TurnId,
        input: &str,
        first: u64,
        client: &str,
    ) -> Result<(), Error> {
        let now = self.chats.clock.now();
        let mut record = found.record.clone();
        record.agent = found.agent();
        let ended = found.view.as_ref().map_or(0, |view| view.turns);
        record.claim = Some(Claim { turn, at: now, ended });
        record.updated_at = now;
        let row = TurnRecord::new(turn, record.thread, client, input, first, now);
        let row = serde_json::to_string(&row).map_err(internal)?;
        let index = Key::new(turns_of(workspace, found.record.thread), turn.to_string());
        let of_turn = Write::put(turn_key(workspace, turn), row, Expect::Any).indexed(index);
        self.write(workspace, &record, found.rev, vec![of_turn, self.seen(workspace, client)?]).await
    }

    /// Gives up a claim whose message was refused. Without it, the claim lapses.
    async fn release(&self, workspace: WorkspaceId, thread: ChatId, turn: TurnId) {
        let released = async {
            let found = self.reader.get(workspace, thread).await?;
            let mut record = found.record;
            if record.claim.take_if(|claim| claim.turn == turn).is_none() {
                return Ok(());
            }
            let gone = Write::delete(turn_key(workspace, turn), Expect::Any);
            self.write(workspace, &record, found.rev, vec![gone]).await
        };
        if let Err::<(), Error>(error) = released.await {
            tracing::warn!(%thread, %error, "the claim of a refused turn stays until it lapses");
        }
    }

    async fn write(
        &self,
        workspace: WorkspaceId,
        record: &ThreadRecord,
        rev: u64,
        mut more: Vec<Write>,
    ) -> Result<(), Error> {
        more.insert(0, Write::put(thread_key(workspace, record.thread), record.encode()?, Expect::Rev(rev)));
        match self.chats.table.commit(more).await {
            Ok(()) => Ok(()),
            Err(ports::Error::Conflict { .. }) => Err(active(record.thread, "another request changed it: try again")),
            Err(error) => Err(internal(error)),
        }
    }

    /// Whether a turn runs, waits for a person, or is about to begin.
    pub fn is_active(&self, found: &ThreadWithView) -> bool {
        let status = found.view.as_ref().map(|view| view.status);
        if status.is_some_and(|status| status != ChatStatus::Idle) {
            return true;
        }
        // The view does not know a turn whose message was accepted a moment ago.
        found.record.claim.as_ref().is_some_and(|claim| {
            let ended = found.view.as_ref().map_or(0, |view| view.turns);
            ended <= claim.ended && self.chats.clock.now().is_within(LAPSES, claim.at)
        })
    }

    /// Stops a turn, which may not have begun. The same id again stops nothing more.
    ///
    /// # Errors
    /// `CONFLICT` when it has ended; those of [`Threads`].
    pub async fn cancel(
        &self,
        workspace: WorkspaceId,
        turn: &TurnRecord,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        let found = self.reader.get(workspace, turn.thread_id).await?;
        let is_claimed = found.record.claim.as_ref().is_some_and(|claim| claim.turn == turn.turn_id);
        let runs = found.view.as_ref().and_then(|view: &ChatView| view.turn_id) == Some(turn.turn_id);
        if !(runs || is_claimed && self.is_active(&found)) {
            return Err(Error::new(Code::Conflict, format!("turn {} has ended", turn.turn_id))
                .detail("turnId", turn.turn_id.to_string())
                .hint("GET /v1/threads/ID/history shows how it ended"));
        }
        self.chats.stop_turn(workspace, turn.thread_id, turn.turn_id, command, by).await
    }
}

fn active(thread: ChatId, hint: &str) -> Error {
    Error::new(Code::Conflict, format!("a turn of thread {thread} is active"))
        .detail("threadId", thread.to_string())
        .hint(hint)
}
