//! Reads of threads. They send no command, so a server that only holds streams has them too.

use super::record::{THREADS, ThreadRecord, TurnRecord, partition, thread_key, turn_key};
use crate::{
    ChatReader,
    chats::internal,
    keys::{actor_id, permission_key},
};
use actor::LogReader;
use domain::{
    AgentOptions, ChatEvent, ChatId, ChatView, Code, Error, PermissionId, ThreadAgent, Timestamp, TurnId, WorkspaceId,
};
use futures::future::join_all;
use ports::{Query, Table, validate};
use std::{ops::ControlFlow, sync::Arc};

/// A thread, and its chat once it has had a turn.
#[derive(Clone, Debug)]
pub struct ThreadWithView {
    /// The thread.
    pub record: ThreadRecord,
    /// The revision of the record.
    pub rev: u64,
    /// Its chat.
    pub view: Option<ChatView>,
}

impl ThreadWithView {
    /// The title; that of the chat, once there is one.
    pub fn title(&self) -> &str {
        self.view.as_ref().map_or(&self.record.title, |view| &view.title)
    }

    /// Its agent with the options that count: the session that its last turn ran in, and the choices that the agent has made by itself, since the record
    /// was written; else those of the record.
    pub fn agent(&self) -> ThreadAgent {
        let mut agent = self.record.agent.clone();
        let of_chat = self.view.as_ref().and_then(|view| view.agent_options.as_ref().map(|options| (view, options)));
        let Some((view, options)) = of_chat else { return agent };
        let since = self.record.updated_at;
        if view.agent_chose_at.is_some_and(|at| at > since) {
            let session_id = agent.options.session_id.take();
            agent.options = AgentOptions { session_id, ..options.clone() };
        }
        if view.active_at > since {
            agent.options.session_id.clone_from(&options.session_id);
        }
        agent
    }

    /// When it last changed or began or ended a turn.
    pub fn updated_at(&self) -> Timestamp {
        self.view.as_ref().map_or(self.record.updated_at, |view| view.active_at.max(self.record.updated_at))
    }
}

/// A page of threads.
#[derive(Clone, Debug)]
pub struct ThreadPage {
    /// The threads, the newest first.
    pub threads: Vec<ThreadWithView>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}

/// Threads, for those who only read.
///
/// # Errors
/// Beside its own, every method gives `INTERNAL` when a store does not answer.
#[derive(Clone)]
pub struct ThreadReader {
    table: Arc<dyn Table>,
    chats: ChatReader,
}

impl ThreadReader {
    /// Over these.
    pub fn new(table: Arc<dyn Table>, chats: ChatReader) -> Self {
        Self { table, chats }
    }

    /// A thread.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such thread; those of [`ThreadReader`].
    pub async fn get(&self, workspace: WorkspaceId, thread: ChatId) -> Result<ThreadWithView, Error> {
        let item = self.table.get(&thread_key(workspace, thread)).await.map_err(internal)?;
        let item = item.ok_or_else(|| Error::not_found("thread", thread))?;
        let record = serde_json::from_str(&item.body).map_err(internal)?;
        self.with_view(workspace, record, item.rev).await.map_err(internal)
    }

    async fn with_view(&self, workspace: WorkspaceId, record: ThreadRecord, rev: u64) -> ports::Result<ThreadWithView> {
        let view = self.chats.find(workspace, record.thread).await?;
        Ok(ThreadWithView { record, rev, view })
    }

    /// The threads of a workspace, the newest first.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list; those of [`ThreadReader`].
    pub async fn list(
        &self,
        workspace: WorkspaceId,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<ThreadPage, Error> {
        let query = Query::prefix(partition(workspace), THREADS, limit).descending().after(cursor);
        let page = self.table.query(&query).await;
        let page = page.map_err(validate::of_page(&query, internal))?;
        let (items, found): (Vec<_>, Vec<_>) = ports::readable(&page.items)
            .map(|(item, record)| (item, self.with_view(workspace, record, item.rev)))
            .unzip();
        let mut threads = Vec::with_capacity(page.items.len());
        for (item, thread) in items.into_iter().zip(join_all(found).await) {
            match thread {
                Ok(thread) => threads.push(thread),
                // It keeps none of the others back.
                Err(error) if error.is_damage() => ports::leave_out(item, &error),
                Err(error) => return Err(internal(error)),
            }
        }
        Ok(ThreadPage { threads, next_cursor: page.next })
    }

    /// A turn by its id.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such turn; those of [`ThreadReader`].
    pub async fn turn(&self, workspace: WorkspaceId, turn: TurnId) -> Result<TurnRecord, Error> {
        let item = self.table.get(&turn_key(workspace, turn)).await.map_err(internal)?;
        let item = item.ok_or_else(|| Error::not_found("turn", turn))?;
        serde_json::from_str(&item.body).map_err(internal)
    }

    /// Hands the events of a thread's log to `take_in`, from the number `from` on, with their numbers and times.
    ///
    /// # Errors
    /// Those of [`ThreadReader`].
    pub async fn log(
        &self,
        workspace: WorkspaceId,
        thread: ChatId,
        from: u64,
        mut take_in: impl FnMut(u64, Timestamp, &ChatEvent),
    ) -> Result<(), Error> {
        let take_in = |number, at, event: &_| {
            take_in(number, at, event);
            ControlFlow::Continue(())
        };
        self.log_until(workspace, thread, from, take_in).await
    }

    /// As [`ThreadReader::log`], up to the event at which `take_in` breaks.
    ///
    /// # Errors
    /// Those of [`ThreadReader`].
    pub async fn log_until(
        &self,
        workspace: WorkspaceId,
        thread: ChatId,
        from: u64,
        mut take_in: impl FnMut(u64, Timestamp, &ChatEvent) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut log = LogReader::<ChatEvent>::starting_at(actor_id(workspace, thread), from);
        while let Some((number, at, event)) = log.next(&*self.table).await.map_err(internal)? {
            if take_in(number, at, &event).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Whether a turn begins or ends behind an event of a log. A chat that rests has other events, too, such as a new title.
    ///
    /// # Errors
    /// Those of [`ThreadReader`].
    pub async fn has_turn_behind(&self, workspace: WorkspaceId, thread: ChatId, after: u64) -> Result<bool, Error> {
        let mut has_turn = false;
        let take_in = |_, _, event: &ChatEvent| match event {
            ChatEvent::TurnStarted { .. }
            | ChatEvent::Done { .. }
            | ChatEvent::Stopped { .. }
            | ChatEvent::Paused { .. }
            | ChatEvent::Deleted { .. } => {
                has_turn = true;
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        };
        self.log_until(workspace, thread, after.saturating_add(1), take_in).await?;
        Ok(has_turn)
    }

    /// The chat of the workspace that asked for this permission, and the request while it is open.
    ///
    /// # Errors
    /// `NOT_FOUND` when no chat of the workspace has asked for it; those of [`ThreadReader`].
    pub async fn permission(
        &self,
        workspace: WorkspaceId,
        permission: PermissionId,
    ) -> Result<(ChatId, Option<serde_json::Value>), Error> {
        let nobody = || Error::not_found("permission", permission);
        let item = self.table.get(&permission_key(workspace, permission)).await.map_err(internal)?;
        let chat: ChatId = serde_json::from_str(&item.ok_or_else(nobody)?.body).map_err(internal)?;
        let view = self.chats.get(workspace, chat).await;
        let view = view.map_err(|error| if error.code == Code::NotFound { nobody() } else { error })?;
        let id = permission.to_string();
        Ok((chat, crate::wait_reasons::waiting(&view, "permission_required", "permission_id", &id).cloned()))
    }
}
