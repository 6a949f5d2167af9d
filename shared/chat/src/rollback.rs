//! Rollbacks: a message that comes while a turn runs may stop that turn and take its work back, as if it had not been.
//!
//! The new turn begins with it. Its first act takes the messages of the turn before out of the context, and its files go back by a rewind of
//! that turn's calls, an effect that a crash repeats under the same id. Then the model reads the new words. So a rollback is done as long as its
//! message is durable, and it takes back no other turn than the one that was running when the message was taken in.

use crate::{
    cancel::end_at_once,
    chats::Chats,
    machine::{ChatEffect, FileRewind, FileRewindResult, Report},
    perform::{ChatEffects, access_of, agent_of},
    phase::Phase,
    requests::NewMessage,
    retries::with_retries,
    state::ChatState,
    steer::target,
    step::Step,
};
use actor::EffectKey;
use domain::{
    CallId, ChatEvent, ChatView, Code, CommandId, Error, FilePath, Message, OnBusy, StopReason, Timestamp, TurnId,
    WorkspaceId, event::RollbackFact,
};
use std::time::Duration;
use workspace::{
    Writer,
    rewind::{Rewind, RewindState, Selection, Target},
};

/// How many files that stay are named.
const KEPT: usize = 100;
/// How long the work of one stretch of a rewind may take; then the next stretch begins.
const STRETCH: Duration = Duration::from_secs(20);

impl ChatState {
    /// Folds an event of a rollback.
    pub(crate) fn apply_rollback(&mut self, fact: &RollbackFact) {
        match fact {
            RollbackFact::Began { turn_id, attempt, calls, since } => {
                if *attempt == 1 && self.history.len() > 1 {
                    // The last one is the turn that has begun.
                    self.history.remove(self.history.len() - 2);
                    // The model has not read these files, as far as it knows.
                    self.seen.clear();
                }
                let (turn_id, attempt, calls, since) = (*turn_id, *attempt, calls.clone(), *since);
                self.set_phase(Phase::Rollback { turn_id, attempt, calls, since }, None);
            }
            RollbackFact::Ended { turn_id, .. } => {
                let running = self.turn.as_ref().map(|turn| &turn.phase);
                if matches!(running, Some(Phase::Rollback { turn_id: going_back, .. }) if going_back == turn_id) {
                    self.set_phase(Phase::Begun, None);
                }
            }
        }
    }

    /// The calls of the turn before the one that has begun, and the time of its first message.
    fn before(&self) -> Option<(Vec<CallId>, Timestamp)> {
        let past = self.history.get(self.history.len().checked_sub(2)?).filter(|past| !past.is_rest)?;
        let calls = past.messages.iter().flat_map(|message| match &**message {
            Message::Assistant { calls, .. } => calls.iter().map(|call| call.call_id).collect(),
            Message::User { .. } | Message::System { .. } | Message::Tool { .. } => Vec::new(),
        });
        Some((calls.collect(), past.messages.first()?.at()))
    }
}

impl Step<'_> {
    /// Takes the turn before this one back, which was `stopped` for a message. Only the message that has `meant` it does so: another one may come
    /// between the stop and that message. False if nothing has to be waited for.
    pub(crate) fn rolls_back(&mut self, stopped: Option<TurnId>, meant: Option<TurnId>) -> bool {
        let stopped = stopped.filter(|stopped| meant == Some(*stopped));
        let Some((turn_id, (calls, since))) = stopped.zip(self.state().before()) else {
            if let Some(meant) = meant {
                self.not_rolled_back(meant);
            }
            return false;
        };
        let has_calls = !calls.is_empty();
        self.take_back(turn_id, 1, calls, since);
        if !has_calls {
            self.rolled_back(turn_id, Ok(None));
        }
        has_calls
    }

    /// Says that a turn stays, as it does not run.
    pub(crate) fn not_rolled_back(&mut self, turn_id: TurnId) {
        let error = Error::new(Code::Conflict, "the turn had ended, and was not taken back")
            .hint("take its files back by a rewind with the scope turn, or fork the chat before it");
        self.rolled_back(turn_id, Err(error));
    }

    /// Has the files of a turn go back.
    pub(crate) fn take_back(&mut self, turn_id: TurnId, attempt: u32, calls: Vec<CallId>, since: Timestamp) {
        let Some(config) = self.config().cloned() else { return };
        let fact = Box::new(RollbackFact::Began { turn_id, attempt, calls: calls.clone(), since });
        self.push(ChatEvent::Rollback { fact });
        if !calls.is_empty() {
            let may_run = self.may_run();
            let take_back = Box::new(FileRewind { config, turn: turn_id, calls, since, may_run });
            self.run(EffectKey(format!("rollback/{turn_id}/{attempt}")), ChatEffect::TakeBack(take_back));
        }
    }

    fn rolled_back(&mut self, turn_id: TurnId, done: Result<Option<FileRewindResult>, Error>) {
        let at = self.stamp.at;
        let (rewind_id, changes, kept, error) = match done {
            Ok(Some(FileRewindResult { rewind_id, changes, kept })) => (Some(rewind_id), changes, kept, None),
            Ok(None) => (None, 0, Vec::new(), None),
            Err(error) => (None, 0, Vec::new(), Some(error)),
        };
        let fact = Box::new(RollbackFact::Ended { turn_id, rewind_id, changes, kept, error, at });
        self.push(ChatEvent::Rollback { fact });
    }

    /// The files of the turn before have gone back, or could not.
    pub(crate) fn taken_back(&mut self, turn_id: TurnId, taken: Result<FileRewindResult, Error>) {
        let stopping = self.turn().and_then(|turn| turn.stopping.clone());
        let failed = taken.as_ref().err().cloned();
        self.rolled_back(turn_id, taken.map(Some));
        if let Some((stop_id, reason)) = stopping {
            return end_at_once(self, Some(stop_id), &reason);
        }
        match failed {
            None => self.begin_work(),
            // The words were meant for files without the work of that turn.
            Some(error) => {
                self.push(ChatEvent::Failed { error });
                self.finish(StopReason::Error);
            }
        }
    }
}

impl Chats {
    /// The turn that a message takes back, by the view of its chat; none if nothing runs, or it takes none back.
    ///
    /// # Errors
    /// `CONFLICT` if another turn than the expected one runs, or none; for a paused chat, and where messages wait behind the turn: they were written
    /// after it. `UNPROCESSABLE` for the thread of a coding agent: its program has done things that nobody here can take back.
    pub(crate) async fn taken_back_by(
        &self,
        workspace: WorkspaceId,
        view: &ChatView,
        post: &NewMessage,
    ) -> Result<Option<TurnId>, Error> {
        if post.on_busy != OnBusy::Rollback {
            return Ok(None);
        }
        let Some(target) = target(view, post.expected_turn_id)? else { return Ok(None) };
        // With those that no worker has seen yet: a turn that runs takes no message in.
        if !self.look(workspace, view.chat_id).await?.queued.is_empty() {
            let message = "messages wait behind the turn, and it is not taken back without them";
            return Err(Error::new(Code::Conflict, message).hint("stop the chat, or post with on_busy interrupt"));
        }
        if self.made(workspace, view.chat_id).await?.is_some_and(|config| config.thread.is_some()) {
            return Err(Error::new(Code::Unprocessable, "the turn of a coding agent is not taken back")
                .hint("post with on_busy interrupt, and take its changes back in its folder, as with git"));
        }
        Ok(Some(target))
    }
}

impl ChatEffects {
    /// Takes the files of a turn back. After a store has stumbled the rewind goes on: the turn is out of the context by then, and no later message
    /// takes the rest of its files back.
    pub(crate) async fn take_back(&self, take_back: FileRewind) -> Report {
        let turn = take_back.turn;
        let taken = with_retries(turn, "the rewind of a turn goes on after a pause", || self.rewind(&take_back)).await;
        Report::TakenBack { turn, taken: Box::new(taken) }
    }

    async fn rewind(&self, take_back: &FileRewind) -> Result<FileRewindResult, Error> {
        let FileRewind { config, turn, calls, since, may_run } = take_back;
        let by = Writer { may_run: *may_run, ..Writer::new(agent_of(config)) };
        let workspace = self.workspaces.open(config.workspace, access_of(config)).await?;
        let id = CommandId::from_key("rollback", &turn.to_string()).0;
        let calls = Some(calls.iter().copied().collect());
        let selection = Selection::By { actors: vec![config.chat.0], calls, since: Some(*since) };
        let target = Target { selection, as_of: None };
        loop {
            let rewind = workspace.rewind(id, &target, "rollback", &by, STRETCH).await?;
            if rewind.state == RewindState::Running {
                continue;
            }
            let counts = rewind.counts;
            let changes = counts.creates + counts.updates + counts.deletes + counts.moves + counts.marks;
            return Ok(FileRewindResult { rewind_id: id, changes: changes as u64, kept: kept(rewind) });
        }
    }
}

/// The files that stay as they are: others changed them since, or their earlier content cannot be brought back. The path `/` stands for changes
/// whose records are gone.
fn kept(rewind: Rewind) -> Vec<FilePath> {
    let by_others = rewind.conflicts.into_iter().map(|conflict| conflict.path);
    by_others.chain(rewind.unavailable.into_iter().map(|loss| loss.path)).take(KEPT).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use uuid::Uuid;
    use workspace::rewind::{RewindConflict, RewindCounts, RewindLoss};

    #[test]
    fn a_file_whose_earlier_content_is_lost_is_named_among_those_that_stay() {
        let path = |text: &str| FilePath::parse(text).unwrap();
        let (file_id, by, at, reason) = (domain::FileId(Uuid::nil()), None, None, String::new());
        let conflict = RewindConflict { path: path("/a.md"), file_id, by, at, reason: reason.clone() };
        let loss = RewindLoss { path: path("/b.md"), file_id: Some(file_id), reason };
        let rewind = Rewind {
            rewind_id: None,
            state: RewindState::Done,
            as_of: Uuid::nil(),
            counts: RewindCounts::default(),
            steps: Vec::new(),
            conflicts: vec![conflict],
            unavailable: vec![loss],
            next_cursor: None,
        };
        assert_eq!(kept(rewind), [path("/a.md"), path("/b.md")]);
    }
}
