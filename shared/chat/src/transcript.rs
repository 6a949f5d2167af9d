//! The chat's own file, `/chats/<id>.md`: a projection of the chat's log, appended to as messages are complete, so that
//! `grep` finds the words of a chat (spec 001 §4C).
//!
//! Each block ends with a marker that has the number of its event. A worker that finds the file
//! behind the log (a crash came in between) cuts it after its last marker and appends the rest from the log. A file that is ahead of the log, or
//! was changed while the process ran, is written anew.

use crate::{
    keys::{actor_id, people_partition},
    machine::ChatMachine,
    state::ChatState,
};
use actor::{ActorId, Entry, EntryObserver, Machine};
use async_trait::async_trait;
use domain::{
    ChatConfig, ChatEvent, ChatId, ChatStatus, Code, Error, FileId, FilePath, Message, Principal, Timestamp,
    WorkspaceId,
    event::{RollbackFact, StopReason},
};
use parking_lot::Mutex;
use ports::{Query, Table};
use serde::Deserialize;
use std::{collections::HashMap, fmt::Write as _, sync::Arc};
use workspace::{Access, Projection, Projector, Workspace, Workspaces};

/// Chats whose file is known to be up to date; more are looked up again.
const REMEMBERED: usize = 4096;
/// How much of an output the file shows; the log has the whole.
const OUTPUT_SHOWN: usize = 2_000;

/// Keeps the files of chats up to date.
pub struct Transcript {
    table: Arc<dyn Table>,
    workspaces: Workspaces,
    places: Mutex<HashMap<ChatId, FileProgress>>,
}

/// How far a file is known to be written; none when that has to be looked up. Held while the file is worked on:
/// when a delivery has timed out two drives of one actor may both have something to append, and one says it first.
type FileProgress = Arc<tokio::sync::Mutex<Option<WrittenFile>>>;

/// A file, as the last operation left it.
struct WrittenFile {
    file: Projection,
    /// The number of the last event that it has, or that adds nothing to it.
    number: u64,
    /// Its length in bytes.
    length: u64,
}

impl WrittenFile {
    /// Appends a text. False when the file was not as it was left, for example lost by the disk: it is to be written anew then.
    async fn append(&mut self, text: String) -> Result<bool, Error> {
        if text.is_empty() {
            return Ok(true);
        }
        self.length += text.len() as u64;
        Ok(self.file.append(text).await? == self.length)
    }
}

/// The path of a chat's file.
pub(crate) fn path(chat: ChatId) -> Result<FilePath, Error> {
    Ok(FilePath::parse(&format!("/chats/{chat}.md"))?)
}

/// Makes the file of a new chat. One that is there already stays.
///
/// # Errors
/// `NOT_FOUND` when it is in the trash; those of [`Workspace`].
pub(crate) async fn make(files: &Workspace, chat: ChatId, head: String, by: &Principal) -> Result<(), Error> {
    match files.create_projection(&path(chat)?, FileId(chat.0), head, &by.clone().into()).await {
        Err(error) if error.code != Code::Conflict => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// How the file of a chat begins.
pub(crate) fn head(config: &ChatConfig) -> String {
    let quoted = |text: &str| serde_json::Value::String(text.to_owned()).to_string();
    format!(
        "---\nchat: {}\ntitle: {}\nrole: {}\nmodel: {}\ncreated_at: {}\n---\n\n{}",
        config.chat,
        quoted(&config.title),
        quoted(config.persona()),
        quoted(config.model.as_deref().unwrap_or("default")),
        config.created_at,
        marker(0)
    )
}

fn marker(number: u64) -> String {
    format!("<!-- {number} -->\n")
}

/// The number in the last whole marker of `text`, and the end of that marker. Over bytes: a torn end may be no UTF-8.
fn last_marker(text: &[u8]) -> Option<(u64, usize)> {
    const BEGIN: &[u8] = b"<!-- ";
    const END: &[u8] = b" -->\n";
    (0..text.len()).rev().find_map(|start| {
        let rest = text[start..].strip_prefix(BEGIN)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
        rest[digits..].starts_with(END).then_some((number, start + BEGIN.len() + digits + END.len()))
    })
}

/// The text of an event in the file; nothing for most.
fn block(event: &ChatEvent, at: Timestamp) -> Option<String> {
    let said = |who: &str, at: Timestamp, text: &str| format!("## {who} · {at}\n\n{}\n\n", escape(text.trim_end()));
    match event {
        ChatEvent::MessageAdded { message: Message::User { at, content, files, .. } } => {
            let mut text = content.clone();
            for file in files {
                let _ = write!(text, "\n- attached {file}");
            }
            Some(said("user", *at, &text))
        }
        ChatEvent::MessageAdded { message: Message::Assistant { at, content, .. } } if !content.is_empty() => {
            Some(said("assistant", *at, content))
        }
        ChatEvent::MessageAdded { message: Message::System { at, content, .. } } => Some(said("system", *at, content)),
        ChatEvent::CallStarted { tool, args, attempt: 1, .. } => {
            Some(format!("### call {}\n\n{}\n\n", one_line(tool), fenced(args)))
        }
        // Calls of a coding agent; their whole story is in the log.
        ChatEvent::AgentUpdated { update, .. } if update["sessionUpdate"] == "tool_call" => {
            let (kind, title) =
                (update["kind"].as_str().unwrap_or("other"), update["title"].as_str().unwrap_or_default());
            Some(format!("### call {}: {}\n\n", one_line(kind), one_line(title)))
        }
        ChatEvent::Observed { tool, output, success, .. } => {
            let outcome = if *success { "result of" } else { "failure of" };
            Some(format!("### {outcome} {}\n\n{}\n\n", one_line(tool), fenced(output)))
        }
        ChatEvent::Asked { questions, .. } => {
            let asked: Vec<_> = questions.iter().map(|question| format!("- {}", question.question)).collect();
            Some(said("question", at, &asked.join("\n")))
        }
        ChatEvent::Compacted { compaction } => {
            let lines = format!("lines 1 to {}", compaction.last_line);
            match (&compaction.summary, &compaction.error) {
                (Some(summary), _) => Some(said(&format!("summary of {lines}"), compaction.at, summary)),
                (None, Some(error)) => {
                    let why = format!("{lines}: there is no summary, as no model gave one ({})", error.message);
                    Some(said("left out of the context", compaction.at, &why))
                }
                (None, None) => None,
            }
        }
        ChatEvent::Rollback { fact } => match &**fact {
            RollbackFact::Ended { error: None, at, .. } => {
                Some(said("the turn before is taken back", *at, "Its work is undone, and none of it counts any more."))
            }
            RollbackFact::Began { .. } | RollbackFact::Ended { .. } => None,
        },
        ChatEvent::Failed { error } => Some(said("error", at, &format!("{}: {}", error.code, error.message))),
        ChatEvent::Done { stop_reason, .. } if *stop_reason != StopReason::EndTurn => {
            Some(said("ended", at, &format!("stop reason: {stop_reason:?}")))
        }
        _ => None,
    }
}

/// A name that a model chose, on one line.
fn one_line(name: &str) -> String {
    escape(name).chars().filter(|character| !character.is_control()).take(100).collect()
}

/// A text in which nothing looks like a marker.
fn escape(text: &str) -> String {
    text.replace("<!--", "<!\u{200b}--")
}

fn fenced(text: &str) -> String {
    let mut shown = text;
    if let Some((end, _)) = text.char_indices().find(|(position, _)| *position >= OUTPUT_SHOWN) {
        shown = &text[..end];
    }
    let fence = if shown.contains("```") { "~~~~" } else { "```" };
    let cut = if shown.len() < text.len() { "\n[… cut; the chat's history has the whole]" } else { "" };
    format!("{fence}\n{}{cut}\n{fence}", escape(shown.trim_end()))
}

/// The text that entries add to the file.
fn render(entries: &[Entry<ChatEvent>], after: u64) -> String {
    let mut text = String::new();
    for entry in entries {
        for (number, event) in entry.numbered().filter(|(number, _)| *number > after) {
            if let Some(block) = block(event, entry.at) {
                text.push_str(&block);
                text.push_str(&marker(number));
            }
        }
    }
    text
}

/// How many lines an event adds to the file. So the fold of a log knows where in the file a turn stands, without the file. The file of a chat
/// that began under a version with a marker per entry has fewer lines than this says, never more.
pub(crate) fn lines(event: &ChatEvent) -> u64 {
    let text = match event {
        ChatEvent::Created { config } => Some(head(config)),
        // The marker of a block is a line of its own.
        _ => block(event, Timestamp::default()).map(|block| block + "\n"),
    };
    text.map_or(0, |text| text.bytes().filter(|byte| *byte == b'\n').count() as u64)
}

/// Why the file of a chat is written without a decision.
const FILE: &str = "the file of a chat follows its log";

impl Transcript {
    /// Over the log and the files.
    pub fn new(table: Arc<dyn Table>, workspaces: Workspaces) -> Self {
        Self { table, workspaces, places: Mutex::default() }
    }

    /// Brings the file of a chat in line with its log, from any state of the file.
    ///
    /// # Errors
    /// Those of the workspace and of its files; `CONFLICT` when the file is changed meanwhile; `INTERNAL` when the log cannot be read. The next call goes
    /// on from any state of the file.
    pub async fn catch_up(&self, workspace: WorkspaceId, chat: ChatId) -> Result<(), Error> {
        let place = self.place(chat);
        let mut written = place.lock().await;
        *written = None;
        *written = Some(self.repair(workspace, chat).await?);
        Ok(())
    }

    /// Cuts the file after its last whole marker and appends the later entries of the log.
    async fn repair(&self, workspace: WorkspaceId, chat: ChatId) -> Result<WrittenFile, Error> {
        const TAIL: u64 = 64 * 1024;
        let files = self.workspaces.open(workspace, Access::platform(FILE)).await?;
        let mut file = files.projection(&path(chat)?)?;
        let (length, tail) = file.tail(TAIL).await?;
        let (number, kept) = match last_marker(&tail) {
            Some((number, end)) => {
                let kept = length.saturating_sub((tail.len() - end) as u64);
                if kept < length {
                    file.truncate(kept).await?;
                }
                (number, kept)
            }
            None => {
                file.truncate(0).await?;
                (0, 0)
            }
        };
        let (log, mut written) = (actor_id(workspace, chat), WrittenFile { file, number, length: kept });
        if !self.append_rest(&log, &mut written).await? {
            self.write_anew(&log, &mut written).await?;
        }
        Ok(written)
    }

    /// Appends the entries of the log that the file lacks. False when it is to be written anew: it was not as it was left, or it is ahead of the log, as
    /// after a power cut that took the newest commits.
    async fn append_rest(&self, log: &ActorId, written: &mut WrittenFile) -> Result<bool, Error> {
        const PAGE: usize = 256;
        loop {
            let page = actor::read_after(&*self.table, log, written.number, PAGE).await.map_err(damaged)?;
            let created = page.entries.iter().flat_map(|entry| &entry.events).find_map(|event| match event {
                ChatEvent::Created { config } => Some(head(config)),
                _ => None,
            });
            let head = created.filter(|_| written.length == 0).unwrap_or_default();
            let text = head + &render(&page.entries, written.number);
            if !written.append(text).await? {
                return Ok(false);
            }
            match page.entries.last() {
                Some(last) => written.number = last.next - 1,
                None if written.number > 0 => {
                    let next = actor::next_number(&*self.table, log).await.map_err(damaged)?;
                    return Ok(written.number < next);
                }
                None => {}
            }
            if !page.more {
                return Ok(true);
            }
        }
    }

    /// Writes the whole file from the log.
    async fn write_anew(&self, log: &ActorId, written: &mut WrittenFile) -> Result<(), Error> {
        written.file.truncate(0).await?;
        (written.number, written.length) = (0, 0);
        if self.append_rest(log, written).await? {
            return Ok(());
        }
        Err(Error::new(Code::Conflict, "the file of the chat was changed while it was written").hint("try again"))
    }

    /// Makes the file of a team's agent, whose chat no request has made.
    async fn ensure(&self, config: &ChatConfig) -> Result<(), Error> {
        if config.member.is_none() {
            return Ok(());
        }
        let files = self.workspaces.open(config.workspace, Access::platform(FILE)).await?;
        make(&files, config.chat, head(config), &Principal::User { id: config.user }).await
    }

    fn place(&self, chat: ChatId) -> FileProgress {
        let mut places = self.places.lock();
        if places.len() >= REMEMBERED {
            places.retain(|_, place| Arc::strong_count(place) > 1);
        }
        places.entry(chat).or_default().clone()
    }

    /// Appends the text of an entry. The worker that committed the entry had read everything before it, and every reader
    /// brings the file in line. So the file has everything before the entry, or it is looked up.
    async fn append(&self, config: &ChatConfig, entry: &Entry<ChatEvent>) -> Result<(), Error> {
        let place = self.place(config.chat);
        let mut written = place.lock().await;
        let last = entry.next - 1;
        if written.as_ref().is_some_and(|written| written.number >= last) {
            return Ok(());
        }
        let done = match written.take() {
            None => {
                self.ensure(config).await?;
                self.repair(config.workspace, config.chat).await?
            }
            Some(mut before) => {
                let text = render(std::slice::from_ref(entry), before.number);
                before.number = last;
                if !before.append(text).await? {
                    self.write_anew(&actor_id(config.workspace, config.chat), &mut before).await?;
                }
                before
            }
        };
        *written = Some(done);
        Ok(())
    }
}

/// The setup of a chat that has a file: the file of a deleted chat is in the trash, and the words of a task's agent are in the
/// history of the task.
fn with_file(state: &ChatState) -> Option<&ChatConfig> {
    state.config.as_deref().filter(|config| !state.deleted && config.agent.is_none())
}

/// Logs that a file could not be written. The file of a chat that is being deleted is in the trash before the chat's log says so, and a person may
/// remove it, too: that is no fault.
fn behind(chat: ChatId, error: &Error) {
    if error.code == Code::NotFound {
        tracing::debug!(%chat, %error, "the chat has no file");
        return;
    }
    tracing::warn!(%chat, %error, "the chat's file is behind its log until something more is said");
}

fn damaged(error: impl std::fmt::Display) -> Error {
    Error::new(domain::Code::Internal, error.to_string())
}

/// The file is a view of the log, and in the trash when the chat is deleted: a failure to write it is logged and mended later, and stops no chat.
#[async_trait]
impl EntryObserver<ChatMachine> for Transcript {
    async fn loaded(&self, _: &ActorId, state: &<ChatMachine as Machine>::State) {
        if let Some(config) = with_file(state)
            && let Err(error) = self.catch_up(config.workspace, config.chat).await
        {
            behind(config.chat, &error);
        }
    }

    async fn committed(&self, _: &ActorId, state: &ChatState, entry: &Entry<ChatEvent>) {
        if let Some(config) = with_file(state)
            && let Err(error) = self.append(config, entry).await
        {
            behind(config.chat, &error);
        }
    }
}

#[async_trait]
impl Projector for Transcript {
    async fn refresh(&self, workspace: WorkspaceId, path: &FilePath) -> Result<(), Error> {
        let name = path.as_str().strip_prefix("/chats/").and_then(|name| name.strip_suffix(".md"));
        match name.and_then(|name| name.parse().ok()) {
            Some(chat) => self.catch_up(workspace, chat).await,
            None => Ok(()),
        }
    }

    /// A chat at rest changes its text with its view, in one commit; so the view's revision marks the text.
    async fn marks(&self, workspace: WorkspaceId) -> Result<HashMap<FilePath, u64>, Error> {
        const PAGE: usize = 1000;
        #[derive(Deserialize)]
        struct Seen {
            chat_id: ChatId,
            status: ChatStatus,
        }
        let mut marks = HashMap::new();
        let mut pages = self.table.index_pages(Query::all(people_partition(workspace), PAGE));
        while let Some(items) = pages.next().await.map_err(damaged)? {
            for item in items {
                // One that a newer version wrote has no mark: its file is looked at by itself.
                let Ok(seen) = serde_json::from_str::<Seen>(&item.body) else { continue };
                if seen.status == ChatStatus::Idle {
                    marks.insert(path(seen.chat_id)?, item.rev);
                }
            }
        }
        Ok(marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_marker_counts() {
        assert_eq!(last_marker(b"x\n<!-- 3 -->\ny<!-- 12 -->\nz<!-- 13"), Some((12, 26)));
        assert_eq!(last_marker(b"<!-- nothing -->\n"), None);
        assert_eq!(
            last_marker(format!("{}{}", escape("<!-- 99 -->\n"), marker(4)).as_bytes()).map(|found| found.0),
            Some(4)
        );
    }
}
