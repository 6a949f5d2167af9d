//! The way in to sessions: a message makes a session, or goes to one and may change its context.

use super::{
    contexts::{self, names_a_project},
    excerpts::newest,
    sources,
};
use crate::{
    SessionSettings,
    chats::{Chats, internal},
    keys::actor_id,
    locations::Location,
    reader::ChatPage,
    request_checks::check_content,
    requests::{NewChat, NewMessage, Setup},
};
use domain::{
    ChatId, ChatStatus, ChatView, Code, CommandId, Error, OnBusy, Principal, Session, SessionContext, TraceContext,
    WorkspaceId, session::SessionBudget,
};
use serde_json::Value;
use std::time::Duration;
use workspace::{Access, Workspace};

/// How long the location in a session's system text is used before it is read again (spec 003 §1 (7)), whatever the records of changes tell: the next
/// days of a calendar, and rights, change without a change of a file.
const LOCATION_KEPT: Duration = Duration::from_secs(300);
/// The longest entity, which may be the path of a file, and the longest focus as JSON, in bytes.
const MAX_ENTITY: usize = 4 * 1024;
const MAX_FOCUS: usize = 4 * 1024;
/// Filtered pages of chats that are asked for, for a page of sessions: each looks through 1,000 chats or more.
const LOOKS: usize = 2;

/// The context that a message asks for; none leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionChange {
    /// The kind of work.
    pub context: Option<SessionContext>,
    /// The entity.
    pub entity: Option<String>,
    /// The focus; null takes it away.
    pub focus: Option<Value>,
    /// Whether a person approves each plan before its executors begin.
    pub approve_plans: Option<bool>,
}

impl SessionChange {
    fn check(&self) -> Result<(), Error> {
        if self.entity.as_ref().is_some_and(|entity| entity.trim().is_empty() || entity.len() > MAX_ENTITY) {
            return Err(Error::invalid("entity_id", format!("an entity has 1 to {MAX_ENTITY} bytes")));
        }
        let focus = self.focus.as_ref().map_or(0, domain::json_length);
        if focus > MAX_FOCUS {
            return Err(Error::invalid(
                "project_focus",
                format!("the focus is {focus} bytes; the limit is {MAX_FOCUS}"),
            ));
        }
        Ok(())
    }

    /// The session with this change.
    fn of(self, now: &Session) -> Session {
        let context = self.context.unwrap_or(now.context);
        // Another kind of work is about another thing, unless the message names it.
        let kept = now
            .entity
            .clone()
            .filter(|_| context == now.context || self.context.is_none() || are_of_one_kind(now.context, context));
        let focus = match self.focus {
            Some(Value::Null) => None,
            Some(focus) => Some(focus),
            None => now.focus.clone().filter(|_| self.entity.is_none() || self.entity == now.entity),
        };
        let approve_plans = self.approve_plans.unwrap_or(now.approve_plans);
        Session { context, entity: self.entity.or(kept), focus, approve_plans, ..now.clone() }
    }
}

/// The reason why a session gets a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// A message asks for another context. Only a sender who `may_approve` ends the approval of plans.
    Change { may_approve: bool },
    /// The location of the same context is read again.
    Refresh,
}

/// The person for whom a session reads: its own one, whoever writes to it. So nothing of another person's home comes into its system text.
fn person(view: &ChatView, by: &Principal) -> Principal {
    match view.user_id {
        Some(id) if id != by.user() => Principal::User { id },
        Some(_) | None => by.clone(),
    }
}

/// Whether a chat is a session of this person. One of nobody is nobody's.
pub fn is_session_of(view: &ChatView, by: &Principal) -> bool {
    view.session.is_some() && view.user_id == Some(by.user())
}

/// Whether both kinds of work are about a project, or both about a task.
fn are_of_one_kind(one: SessionContext, other: SessionContext) -> bool {
    let of_task = |context| matches!(context, SessionContext::Task | SessionContext::TaskUpdate);
    names_a_project(one) && names_a_project(other) || of_task(one) && of_task(other)
}

/// A message to a session, or for a new one.
#[derive(Clone, Debug, Default)]
pub struct NewSessionMessage {
    /// The words.
    pub message: String,
    /// The context that it asks for.
    pub change: SessionChange,
    /// For a new session: the messages that the client has, as a text.
    pub earlier: String,
    /// How to proceed when a turn runs.
    pub on_busy: OnBusy,
    /// Whether the caller may approve.
    pub may_approve: bool,
    /// Whether the caller may run no flows: then no file that an agent writes in the turn starts one.
    pub may_not_run: bool,
    /// The trace that the request came in.
    pub trace: Option<TraceContext>,
}

impl Chats {
    /// Reads the location of a session again before a message, where that is due; returns the session with it. None for every other chat, while a turn
    /// runs, and where the location cannot be read: the project may be gone by now, and the message is for the session all the same.
    pub(crate) async fn refresh_session(
        &self,
        workspace: WorkspaceId,
        view: &ChatView,
        by: &Principal,
    ) -> Option<Session> {
        let session = view.session.clone().filter(|_| view.status == ChatStatus::Idle)?;
        let (chat, person) = (view.chat_id, person(view, by));
        match Sessions::new(self.clone()).refresh((workspace, chat), session, &person, by).await {
            Ok(session) => session,
            Err(error) => {
                tracing::info!(%workspace, %chat, %error, "the location of a session is not read again");
                None
            }
        }
    }
}

/// Sessions of the planner chat, for those who talk to them.
///
/// # Errors
/// Beside its own, every method gives those of [`Chats`].
#[derive(Clone)]
pub struct Sessions(Chats);

impl Sessions {
    /// Over these chats.
    pub fn new(chats: Chats) -> Self {
        Self(chats)
    }

    /// Makes a session and begins its first turn; returns it. The same ids again have no further effect.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` about the message or its context, `NOT_FOUND` for a project that there is not; those of [`Chats::create`].
    pub async fn create(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        new: NewSessionMessage,
        by: &Principal,
    ) -> Result<ChatView, Error> {
        check_content("message", &new.message)?;
        new.change.check()?;
        let files = self.0.workspaces.open(workspace, Access::of(by, None)).await?;
        let SessionSettings { budgets, executors, .. } = self.0.settings.sessions;
        let session = Session { budgets, executors, ..Session::default() };
        let setup = contexts::setup(&files, new.change.of(&session), by).await?;
        // The messages that a client keeps itself are read like the conversation of the session: the newest ones, as far as they fit.
        let earlier = match new.earlier.is_empty() {
            true => String::new(),
            false => {
                let kept = newest(&new.earlier, SessionBudget::bytes(budgets.conversation));
                format!("The conversation before, as the client has it:\n{kept}")
            }
        };
        let new = NewChat {
            goal: new.message,
            session: Some(Box::new(setup)),
            earlier,
            may_approve: new.may_approve,
            may_not_run: new.may_not_run,
            trace: new.trace,
            ..NewChat::default()
        };
        self.0.create(workspace, chat, command, new, by).await?;
        self.get(workspace, chat).await
    }

    /// Posts a message to a session, after a change of its context where the message asks for one; returns the session with this context, which is
    /// queued unless a turn runs.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such session or project; `CONFLICT` for another context while a turn runs; `FORBIDDEN` where plans are to be approved no
    /// more, and the caller may not approve; `INVALID_ARGUMENT` about the message or its context; those of [`Chats::post`].
    pub async fn post(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        new: NewSessionMessage,
        by: &Principal,
    ) -> Result<ChatView, Error> {
        check_content("message", &new.message)?;
        new.change.check()?;
        let mut view = self.get(workspace, chat).await?;
        let now = view.session.clone().unwrap_or_default();
        let NewSessionMessage { message: content, change, earlier: _, on_busy, may_approve, may_not_run, trace } = new;
        let wanted = change.of(&now);
        let setup =
            |session: &Session| (session.context, session.entity.clone(), session.focus.clone(), session.approve_plans);
        let is_same = setup(&wanted) == setup(&now);
        if now.approve_plans && !wanted.approve_plans && !may_approve {
            let message = "a person approves each plan of this session, and to end that needs the right to approve";
            return Err(Error::new(Code::Forbidden, message)
                .hint("leave approve_plans out, or ask an editor of the workspace")
                .detail("needs", "approve"));
        }
        if !is_same {
            if view.status != ChatStatus::Idle && on_busy != OnBusy::Interrupt {
                return Err(Error::new(
                    Code::Conflict,
                    "the context of a session changes between two turns, and one is running",
                )
                .hint("wait for its done event, stop it, or send the message with on_busy interrupt"));
            }
            let person = person(&view, by);
            let files = self.0.workspaces.open(workspace, Access::of(&person, None)).await?;
            let change = Move::Change { may_approve };
            view.session = Some(self.move_to(&files, (workspace, chat), wanted, change, &person, by).await?);
        } else if let Some(session) = self.0.refresh_session(workspace, &view, by).await {
            view.session = Some(session);
        }
        let post = NewMessage { content, on_busy, may_approve, may_not_run, trace, ..NewMessage::default() };
        self.0.post_to(workspace, view.clone(), command, post, by).await?;
        if view.status == ChatStatus::Idle {
            view.status = ChatStatus::Queued;
        }
        Ok(view)
    }

    /// The session with its location as it is now; none where the location that it has is still that.
    async fn refresh(
        &self,
        (workspace, chat): (WorkspaceId, ChatId),
        session: Session,
        person: &Principal,
        by: &Principal,
    ) -> Result<Option<Session>, Error> {
        let files = self.0.workspaces.open(workspace, Access::of(person, None)).await?;
        let location = match session.read_at {
            Some(read) if self.0.clock.now().is_within(LOCATION_KEPT, read) => {
                match sources::have_changed(&files, &session, read).await? {
                    true => Location::Outdated,
                    false => Location::Fresh,
                }
            }
            _ => Location::Old,
        };
        self.0.locations.count(location);
        match location {
            Location::Fresh => Ok(None),
            Location::Old | Location::Outdated => {
                self.move_to(&files, (workspace, chat), session, Move::Refresh, person, by).await.map(Some)
            }
        }
    }

    /// Gives the session this context, with its location as it is now for the person of the session. The change is by another one where `by` is.
    async fn move_to(
        &self,
        files: &Workspace,
        (workspace, chat): (WorkspaceId, ChatId),
        wanted: Session,
        why: Move,
        person: &Principal,
        by: &Principal,
    ) -> Result<Session, Error> {
        let mut setup = contexts::setup(files, wanted, person).await?;
        setup.refreshes = why == Move::Refresh;
        let session = setup.session.clone();
        let may_approve = why == Move::Change { may_approve: true };
        let setup = Setup { session: Some(Box::new(setup)), may_approve, ..Setup::default() };
        self.0.configure(workspace, chat, setup, by).await?;
        Ok(session)
    }

    /// The session as it is.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat, and for a chat that is no session.
    pub async fn get(&self, workspace: WorkspaceId, chat: ChatId) -> Result<ChatView, Error> {
        match self.0.get(workspace, chat).await {
            Ok(view) if view.session.is_some() => Ok(view),
            Err(error) if error.code != Code::NotFound => Err(error),
            Ok(_) | Err(_) => Err(Error::not_found("session", chat)),
        }
    }

    /// The session as people see it: one whose message is durable is queued, although no worker has seen the message yet.
    ///
    /// # Errors
    /// As [`Sessions::get`].
    pub async fn look(&self, workspace: WorkspaceId, chat: ChatId) -> Result<ChatView, Error> {
        // Before the view, which has all turns that have begun meanwhile.
        let has_unseen = self.0.has_unseen(workspace, chat).await?;
        let mut view = self.get(workspace, chat).await?;
        if has_unseen && view.status == ChatStatus::Idle {
            view.status = ChatStatus::Queued;
        }
        Ok(view)
    }

    /// A page of the sessions of a person, the last active first: at most `limit`, and fewer where they are rare among 2,000 chats of the workspace.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such workspace, `INVALID_ARGUMENT` for a cursor of another list.
    pub async fn list(
        &self,
        workspace: WorkspaceId,
        by: &Principal,
        limit: usize,
        mut cursor: Option<String>,
    ) -> Result<ChatPage, Error> {
        let mut found = Vec::new();
        for _ in 0..LOOKS {
            let (wanted, theirs) = (limit - found.len(), |view: &ChatView| is_session_of(view, by));
            let page = self.0.reader().list_wanted(workspace, wanted, cursor, theirs).await?;
            found.extend(page.chats);
            cursor = page.next_cursor;
            if cursor.is_none() || found.len() >= limit {
                break;
            }
        }
        Ok(ChatPage { chats: found, next_cursor: cursor })
    }

    /// The number after the last event of a session's log: its next turn begins there or later.
    ///
    /// # Errors
    /// Those of the table.
    pub async fn next_number(&self, workspace: WorkspaceId, chat: ChatId) -> Result<u64, Error> {
        actor::next_number(&*self.0.table, &actor_id(workspace, chat)).await.map_err(internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_keeps_what_it_does_not_name_as_far_as_it_still_means_something() {
        let now = Session {
            context: SessionContext::Project,
            entity: Some("atlas".into()),
            focus: Some(json!({ "task": 1 })),
            ..Session::default()
        };
        let to = |context, entity: Option<&str>, focus| {
            let change = SessionChange { context, entity: entity.map(str::to_owned), focus, approve_plans: None };
            let Session { context, entity, focus, .. } = change.of(&now);
            (context, entity, focus.is_some())
        };
        let atlas = || Some("atlas".to_owned());
        assert_eq!(to(None, None, None), (SessionContext::Project, atlas(), true));
        assert_eq!(to(Some(SessionContext::ProjectAudit), None, None), (SessionContext::ProjectAudit, atlas(), true));
        assert_eq!(to(Some(SessionContext::Global), None, None), (SessionContext::Global, None, true));
        assert_eq!(to(None, Some("apollo"), None), (SessionContext::Project, Some("apollo".to_owned()), false));
        assert_eq!(to(None, None, Some(Value::Null)), (SessionContext::Project, atlas(), false));
    }
}
