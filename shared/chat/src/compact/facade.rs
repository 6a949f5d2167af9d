//! Compaction for people: asked for, and taken back.

use super::SUMMARY;
use crate::{Chats, agent};
use domain::{ChatCommand, ChatId, ChatStatus, Code, CommandId, Error, Principal, TurnId, WorkspaceId};

/// The lengths that a summary may have, in characters.
const LENGTHS: std::ops::RangeInclusive<u32> = 200..=16_000;

impl Chats {
    /// Has the oldest turns of a chat summarised, in an internal turn whose id is given back. Its `compacted` event tells the result, or
    /// `compaction_skipped` that nothing was to do. `max_chars` bounds the summary: 200 to 16,000 characters, 4,000 by default.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat; `CONFLICT` while a turn runs or the chat is paused, and for the chat of a task, whose words are
    /// in no file; `INVALID_ARGUMENT` about `max_summary_chars`; those of [`Chats`].
    pub async fn compact(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        max_chars: Option<u32>,
        by: &Principal,
    ) -> Result<TurnId, Error> {
        let max_chars = max_chars.unwrap_or(SUMMARY);
        if !LENGTHS.contains(&max_chars) {
            let (least, most) = (LENGTHS.start(), LENGTHS.end());
            return Err(Error::invalid("max_summary_chars", format!("{max_chars} characters are too few or too many"))
                .hint(format!("give {least} to {most}, or leave it out for {SUMMARY}")));
        }
        let view = self.get(workspace, chat).await?;
        agent::check_not_of_task(&view)?;
        if view.status != ChatStatus::Idle {
            let refusal = Error::new(Code::Conflict, "a turn is running in this chat")
                .hint("wait for its done event or stop it, then compact the chat");
            self.unless_done(workspace, chat, command, refusal).await?;
        }
        self.send(workspace, chat, command, by, ChatCommand::Compact { max_chars }).await?;
        Ok(TurnId(command.0))
    }

    /// Takes the last compaction of a chat back: the model reads the words of these turns again. The summary stays in the chat's file.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat; `CONFLICT` when there is no compaction that can be taken back: older turns were left out since, or
    /// there was none; those of [`Chats`].
    pub async fn undo_compaction(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        let view = self.get(workspace, chat).await?;
        if !view.compaction.is_some_and(|compaction| compaction.can_be_undone) {
            let refusal = Error::new(Code::Conflict, "there is no compaction that can be taken back")
                .hint("the words are in the chat's file; the view of the chat has its compaction, if there is one");
            return self.unless_done(workspace, chat, command, refusal).await;
        }
        self.send(workspace, chat, command, by, ChatCommand::UndoCompaction).await
    }
}
