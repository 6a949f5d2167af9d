//! Reads of chats: their views, their history, and the usage of their turns.

use crate::{
    Chats,
    chats::internal,
    keys::{actor_id, actor_of, people_partition, spent_partition, task_partition, usage_partition, view_key},
    machine::ChatMachine,
};
use domain::{ChatEvent, ChatId, ChatView, Error, Message, TaskId, Timestamp, TurnId, Usage, UserId, WorkspaceId};
use ports::{Query, Table, validate};
use serde::Serialize;
use std::sync::Arc;
use workspace::Workspaces;

/// A page of chats.
#[derive(Clone, Debug, Serialize)]
pub struct ChatPage {
    /// The chats, the last active first.
    pub chats: Vec<ChatView>,
    /// The cursor of the next page; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A part of a chat's history.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryPage {
    /// The messages, oldest first, each with the number of its event.
    pub messages: Vec<NumberedMessage>,
    /// The number to go on after; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u64>,
    /// Of a part that was read backwards: the number to go on before; none at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
    /// The number of the last event; a stream of new events begins after it.
    pub last_seq: u64,
}

/// A message and its place.
#[derive(Clone, Debug, Serialize)]
pub struct NumberedMessage {
    /// The number of its event.
    pub seq: u64,
    /// The message.
    #[serde(flatten)]
    pub message: Message,
}

/// The usage of one turn.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
pub struct TurnUsage {
    /// The day on which it ended, in UTC.
    pub day: String,
    /// The chat.
    pub chat_id: ChatId,
    /// The turn.
    pub turn_id: TurnId,
    /// The task, where its agent was talking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The chat that it works for: of an executor its session, of an agent of a team the chat that has the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_chat_id: Option<ChatId>,
    /// Whether it is of a session of the planner chat, or of one of its executors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_session: bool,
    /// The person that the agent works for; none in records of before persons were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The model; none for the default one.
    pub model: Option<String>,
    /// Model calls.
    pub calls: u32,
    /// Tokens and cost, summed over its calls.
    pub usage: Usage,
}

/// The turns whose tokens are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageScope {
    /// All.
    Anything,
    /// Those of sessions of the planner chat, and of their executors.
    Sessions,
}

/// Chats, for those who only watch them: it sends no command.
///
/// # Errors
/// Beside its own, every method gives `INTERNAL` when a store does not answer.
#[derive(Clone)]
pub struct ChatReader {
    table: Arc<dyn Table>,
    workspaces: Workspaces,
}

impl ChatReader {
    /// Over these.
    pub fn new(table: Arc<dyn Table>, workspaces: Workspaces) -> Self {
        Self { table, workspaces }
    }

    /// The chat as it is.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat; those of [`ChatReader`].
    pub async fn get(&self, workspace: WorkspaceId, chat: ChatId) -> Result<ChatView, Error> {
        self.find(workspace, chat).await.map_err(internal)?.ok_or_else(|| Error::not_found("chat", chat))
    }

    /// The same, if it is there.
    pub(crate) async fn find(&self, workspace: WorkspaceId, chat: ChatId) -> ports::Result<Option<ChatView>> {
        let (key, actor) = (view_key(workspace, chat), actor_id(workspace, chat));
        actor::view_at::<ChatMachine, _>(&*self.table, &key, &actor).await
    }

    /// The chats of a workspace, the last active first.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such workspace, `INVALID_ARGUMENT` for a cursor of another list; those of [`ChatReader`].
    pub async fn list(&self, workspace: WorkspaceId, limit: usize, cursor: Option<String>) -> Result<ChatPage, Error> {
        self.list_wanted(workspace, limit, cursor, |_| true).await
    }

    /// Those of them that are wanted. A page may hold fewer than `limit`, and still have a next one ([`actor::page_of_views`]).
    ///
    /// # Errors
    /// Those of [`ChatReader::list`].
    pub async fn list_wanted(
        &self,
        workspace: WorkspaceId,
        limit: usize,
        cursor: Option<String>,
        wanted: impl Fn(&ChatView) -> bool,
    ) -> Result<ChatPage, Error> {
        self.workspaces.get(workspace).await?;
        self.page(people_partition(workspace), limit, cursor, wanted).await
    }

    async fn page(
        &self,
        partition: String,
        limit: usize,
        cursor: Option<String>,
        wanted: impl Fn(&ChatView) -> bool,
    ) -> Result<ChatPage, Error> {
        let query = Query::all(partition, limit).descending().after(cursor);
        let page = actor::page_of_views::<ChatMachine, ChatView>(&*self.table, &query, actor_of, wanted).await;
        let (chats, next_cursor) = page.map_err(validate::of_page(&query, internal))?;
        Ok(ChatPage { chats, next_cursor })
    }
}

impl Chats {
    /// The reads alone, for those who only watch.
    pub fn reader(&self) -> ChatReader {
        ChatReader::new(self.table.clone(), self.workspaces.clone())
    }

    /// [`ChatReader::get`].
    ///
    /// # Errors
    /// Those of [`ChatReader::get`].
    pub async fn get(&self, workspace: WorkspaceId, chat: ChatId) -> Result<ChatView, Error> {
        self.reader().get(workspace, chat).await
    }

    /// [`ChatReader::list`].
    ///
    /// # Errors
    /// Those of [`ChatReader::list`].
    pub async fn list(&self, workspace: WorkspaceId, limit: usize, cursor: Option<String>) -> Result<ChatPage, Error> {
        self.reader().list(workspace, limit, cursor).await
    }

    /// The chats of the agents of a task, the newest first: they are on no other list, and their questions to people are found here.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list; those of [`Chats`]. A task that there is not has no chats.
    pub async fn of_task(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<ChatPage, Error> {
        let is_here = |chat: &ChatView| chat.workspace_id == workspace;
        self.reader().page(task_partition(task), limit, cursor, is_here).await
    }

    /// Messages after the event numbered `after`, at most about `limit`.
    ///
    /// # Errors
    /// Those of [`Chats`]. A chat that there is not has no messages.
    pub async fn history(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        after: u64,
        limit: usize,
    ) -> Result<HistoryPage, Error> {
        const PAGE: usize = 256;
        let actor = actor_id(workspace, chat);
        let (mut messages, mut position, mut more) = (Vec::new(), after, true);
        while more && messages.len() < limit {
            let page = actor::read_after::<ChatEvent>(&*self.table, &actor, position, PAGE).await.map_err(internal)?;
            more = page.more;
            for entry in &page.entries {
                let new = entry.numbered().filter(|(number, _)| *number > after);
                messages.extend(new.filter_map(|(seq, event)| {
                    crate::state::message_of(event).map(|message| NumberedMessage { seq, message })
                }));
                position = entry.next - 1;
                if messages.len() >= limit {
                    break;
                }
            }
        }
        let last_seq = actor::next_number(&*self.table, &actor).await.map_err(internal)? - 1;
        let next_after = (position < last_seq).then_some(position);
        Ok(HistoryPage { messages, next_after, next_before: None, last_seq })
    }

    /// The last messages before the event numbered `before`, about `limit` of them, oldest first. So a long chat opens at its end.
    ///
    /// # Errors
    /// Those of [`Chats`]. A chat that there is not has no messages.
    pub async fn history_before(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        before: u64,
        limit: usize,
    ) -> Result<HistoryPage, Error> {
        const PAGE: usize = 64;
        let actor = actor_id(workspace, chat);
        let (mut messages, mut position, mut more) = (Vec::new(), before, true);
        while more && messages.len() < limit {
            let page = actor::read_before::<ChatEvent>(&*self.table, &actor, position, PAGE).await.map_err(internal)?;
            more = page.more;
            for entry in &page.entries {
                let old = entry.numbered().filter(|(number, _)| *number < before);
                let said: Vec<_> = old
                    .filter_map(|(seq, event)| Some(NumberedMessage { seq, message: crate::state::message_of(event)? }))
                    .collect();
                messages.extend(said.into_iter().rev());
                position = entry.first;
                if messages.len() >= limit {
                    break;
                }
            }
            more &= position > 1;
        }
        messages.reverse();
        let last_seq = actor::next_number(&*self.table, &actor).await.map_err(internal)? - 1;
        let next_before = (position > 1 && last_seq > 0).then_some(position).filter(|_| !messages.is_empty());
        Ok(HistoryPage { messages, next_after: None, next_before, last_seq })
    }

    /// The usage of the turns that ended from day `from` to day `to` (`YYYY-MM-DD`, inclusive): one record per turn.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such workspace; those of [`Chats`].
    pub async fn usage(&self, workspace: WorkspaceId, from: &str, to: &str) -> Result<Vec<TurnUsage>, Error> {
        const PAGE: usize = 500;
        self.workspaces.get(workspace).await?;
        let (from, to) = (Some(from.to_owned()), Some(format!("{to}/\u{10ffff}")));
        let range = Query { from, to, ..Query::all(usage_partition(workspace), PAGE) };
        let (mut records, mut pages) = (Vec::new(), self.table.pages(range));
        while let Some(items) = pages.next().await.map_err(internal)? {
            records.extend(ports::readable::<TurnUsage>(&items).map(|(_, record)| record));
        }
        Ok(records)
    }
}

impl Chats {
    /// The usage in tokens of a person's turns of this kind that ended at `since` or later, newest first; it reads no further back once the
    /// sum has reached `enough`. The index behind it may lag behind the log by a moment.
    ///
    /// # Errors
    /// Those of [`Chats`].
    pub async fn spent(
        &self,
        user: UserId,
        by: UsageScope,
        since: Timestamp,
        enough: u64,
    ) -> Result<Vec<(Timestamp, u64)>, Error> {
        let from = Some(since.to_string());
        let range = Query { from, ..Query::all(spent_partition(user), 100) }.descending();
        let (mut turns, mut sum, mut pages) = (Vec::new(), 0_u64, self.table.index_pages(range));
        while let Some(items) = pages.next().await.map_err(internal)? {
            for (item, record) in ports::readable::<TurnUsage>(&items) {
                if by == UsageScope::Sessions && !record.of_session {
                    continue;
                }
                let place = item.index.as_ref().and_then(|index| index.sk.split('/').next()?.parse().ok());
                let tokens = record.usage.tokens();
                sum = sum.saturating_add(tokens);
                turns.push((place.unwrap_or(since), tokens));
            }
            if sum >= enough {
                break;
            }
        }
        Ok(turns)
    }
}
