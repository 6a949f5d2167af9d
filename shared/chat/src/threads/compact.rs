//! Compaction of a thread: an internal turn, whose end is waited for.

use super::{Threads, active};
use domain::{ChatEvent, ChatId, Code, CommandId, Error, Principal, StopReason, TurnId, WorkspaceId};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often the end of the turn is looked for.
const LOOKED: Duration = Duration::from_millis(200);

/// A compaction of a thread, as far as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCompaction {
    /// The internal turn.
    pub turn_id: TurnId,
    /// `completed`, `skipped`, `cancelled`, `error`, or `running` while it lasts longer than it was waited for.
    pub status: &'static str,
    /// `end_turn`, `cancelled` or `error`; none while it runs.
    pub stop_reason: Option<&'static str>,
    /// The summary; empty where there is none.
    pub summary: String,
    /// Why there is no new summary, where a reason is known.
    pub reason: Option<String>,
}

impl Threads {
    /// Has a thread compacted, and waits for the end of that for at most `patience`. A coding agent summarises its own session, which it goes
    /// on with; a process that cannot load the session begins with the summary.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such thread; `UNPROCESSABLE` for one that has had no turn; `CONFLICT` when a turn is active; those of
    /// [`crate::Chats::compact`].
    pub async fn compact(
        &self,
        workspace: WorkspaceId,
        thread: ChatId,
        command: CommandId,
        max_chars: Option<u32>,
        (client, first, patience): (&str, u64, Duration),
        by: &Principal,
    ) -> Result<ThreadCompaction, Error> {
        let found = self.reader.get(workspace, thread).await?;
        if found.view.is_none() {
            let error = Error::new(Code::Unprocessable, "the thread has had no turn, so there is nothing to compact");
            return Err(error.hint("POST /v1/threads/ID/turns begins one"));
        }
        let turn_id = TurnId(command.0);
        let before = match self.reader.turn(workspace, turn_id).await {
            Ok(record) => Some(record),
            Err(error) if error.code == Code::NotFound => None,
            Err(error) => return Err(error),
        };
        if before.is_none() {
            if self.is_active(&found) {
                return Err(active(thread, "wait for its turn_completed event or cancel it, then compact the thread"));
            }
            self.claim(workspace, &found, turn_id, "", first, client).await?;
        }
        let asked = self.chats.compact(workspace, thread, command, max_chars, by).await;
        if let Err(error) = asked {
            if before.is_none() {
                self.release(workspace, thread, turn_id).await;
            }
            return Err(error);
        }
        let first = before.map_or(first, |before| before.first);
        let until = Instant::now() + patience;
        loop {
            let now = self.compaction(workspace, thread, turn_id, first).await?;
            if now.status == "skipped" {
                self.release(workspace, thread, turn_id).await;
            }
            if now.status != "running" || Instant::now() >= until {
                return Ok(now);
            }
            sleep(LOOKED).await;
        }
    }

    /// The compaction of a turn, as the log tells it.
    async fn compaction(
        &self,
        workspace: WorkspaceId,
        thread: ChatId,
        turn: TurnId,
        first: u64,
    ) -> Result<ThreadCompaction, Error> {
        let (stop_reason, summary, reason) = (None, String::new(), None);
        let mut told = ThreadCompaction { turn_id: turn, status: "running", stop_reason, summary, reason };
        let mut is_here = false;
        let take_in = |_, _, event: &ChatEvent| match event {
            ChatEvent::TurnStarted { turn_id, .. } => is_here = *turn_id == turn,
            ChatEvent::CompactionSkipped { turn_id, reason, .. } if *turn_id == turn => {
                (told.status, told.stop_reason, told.reason) = ("skipped", Some("end_turn"), Some(reason.clone()));
            }
            ChatEvent::Compacted { compaction } if is_here => {
                told.summary = compaction.summary.clone().unwrap_or_default();
                told.reason = compaction.error.as_ref().map(|error| error.message.clone());
            }
            ChatEvent::Failed { error } if is_here => told.reason = Some(error.message.clone()),
            ChatEvent::Done { turn_id, stop_reason, .. } if *turn_id == turn => {
                let failed = *stop_reason != StopReason::EndTurn;
                (told.status, told.stop_reason) =
                    if failed { ("error", Some("error")) } else { ("completed", Some("end_turn")) };
            }
            ChatEvent::Stopped { turn_id, .. } if *turn_id == turn => {
                (told.status, told.stop_reason) = ("cancelled", Some("cancelled"));
            }
            _ => {}
        };
        self.reader.log(workspace, thread, first, take_in).await?;
        Ok(told)
    }
}
