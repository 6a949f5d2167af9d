//! Steering: words for the turn that runs. The model reads them with its next call in this turn.
//!
//! A turn that runs takes no command: its worker waits for the model or for a tool. So the words go to the mailbox, and then a request tells the
//! worker that they are on their way, by the same way as a stop. At its next decision the turn rests until they are there, and goes on with
//! them. Words that come when the turn has ended begin a turn of their own: they change no other turn, and are not lost.

use crate::{
    chats::Chats,
    phase::Phase,
    requests::{Accepted, LeaderRights, NewMessage},
    state::ChatState,
    step::Step,
    turn,
};
use actor::{StopRequest, StopTarget};
use domain::{
    ChatCommand, ChatEvent, ChatId, ChatStatus, ChatView, Code, CommandId, Error, Message, MessageId, Principal,
    StopId, TurnId, TurnRequest, WorkspaceId, event::SteeringWords,
};

/// The reason of a request that words are on their way.
const STEERED: &str = "steered";

impl ChatState {
    /// Folds an event of steering.
    pub(crate) fn apply_steering(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::SteerAwaited { at } => self.set_phase(Phase::Steer { since: *at }, None),
            ChatEvent::SteerRequested { stop_id, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.steering.push(*stop_id);
                }
            }
            ChatEvent::Steered { words } => {
                if let Some(turn) = &mut self.turn {
                    let stop_id = StopId(words.command_id.0);
                    turn.steering.retain(|asked| *asked != stop_id);
                    turn.steered.push(stop_id);
                    turn.words.push((**words).clone());
                }
            }
            _ => {}
        }
    }
}

impl Step<'_> {
    /// Words for this turn are on their way. The same request again, and one for another turn, change nothing.
    pub(crate) fn steer_requested(&mut self, request: &StopRequest) {
        let stop_id = request.stop_id;
        let is_new = self.turn().is_some_and(|turn| {
            let known = turn.steering.contains(&stop_id) || turn.steered.contains(&stop_id);
            request.target == StopTarget::This(turn.id.0)
                && !known
                && turn.stopping.is_none()
                && !turn.phase.is_suspended()
                && !turn.is_internal()
        });
        if is_new && self.takes_words() {
            self.push(ChatEvent::SteerRequested { stop_id, at: self.stamp.at });
        }
    }

    /// The words are there, by this author with these rights.
    pub(crate) fn steer(&mut self, turn_id: TurnId, words: SteeringWords, by: &str, rights: LeaderRights) {
        let runs = self.takes_words() && self.turn().is_some_and(|turn| turn.id == turn_id && !turn.is_internal());
        if !runs {
            let SteeringWords { command_id, at, content, files, context, user_id } = words;
            let LeaderRights { may_approve, may_not_run } = rights;
            let request = TurnRequest { content, files, context, may_approve, may_not_run, ..TurnRequest::default() };
            return turn::start(self, command_id, at, user_id, request);
        }
        self.led_on(by, rights);
        self.push(ChatEvent::Steered { words: Box::new(words) });
        let waits = self.turn().is_some_and(|turn| matches!(turn.phase, Phase::Steer { .. }));
        if waits {
            self.call_model();
        }
    }

    /// Whether the turn takes words. A coding agent reads them in a turn of their own. A turn whose team works asks no model any more, so nobody would read
    /// them.
    fn takes_words(&self) -> bool {
        let team_works = self.turn().is_some_and(|turn| turn.team.is_some());
        !team_works && self.config().is_some_and(|config| config.thread.is_none())
    }

    /// Whether the turn does not end yet: there are words that the model has not read.
    pub(crate) fn has_words(&self) -> bool {
        self.turn().is_some_and(|turn| !turn.steering.is_empty() || !turn.words.is_empty())
    }

    /// Adds the words that are there to the conversation. True if others are on their way: the turn rests until they come.
    pub(crate) fn waits_for_words(&mut self) -> bool {
        let Some(turn) = self.turn() else { return false };
        let at = self.stamp.at;
        if !turn.steering.is_empty() {
            if !matches!(turn.phase, Phase::Steer { .. }) {
                self.push(ChatEvent::SteerAwaited { at });
            }
            return true;
        }
        self.read_words();
        false
    }

    /// Adds the words that are there to the conversation: also when the turn ends without reading them, so that the next one does.
    pub(crate) fn read_words(&mut self) {
        let at = self.stamp.at;
        for words in self.turn().map(|turn| turn.words.clone()).unwrap_or_default() {
            let SteeringWords { command_id, at: _, content, files, context, user_id } = words;
            let message = Message::User { id: MessageId(command_id.0), at, content, files, context, user_id };
            self.push(ChatEvent::MessageAdded { message });
        }
    }
}

/// The turn that words are for, by the view of the chat; none if nothing runs, so that they begin a turn.
///
/// # Errors
/// `CONFLICT` if another turn than the expected one runs, or none, and for a paused chat.
pub(crate) fn target(view: &ChatView, expected: Option<TurnId>) -> Result<Option<TurnId>, Error> {
    if let Some(expected) = expected.filter(|expected| view.turn_id != Some(*expected)) {
        return Err(Error::new(Code::Conflict, format!("turn {expected} does not run"))
            .detail("turn_id", view.turn_id.map(|turn| turn.to_string()))
            .hint("read the chat; its turn_id is the turn that runs"));
    }
    match view.status {
        ChatStatus::Idle => Ok(None),
        ChatStatus::Paused => Err(Error::new(Code::Conflict, "the chat is paused, and no turn runs")
            .hint("resume it, or post with on_busy enqueue")),
        ChatStatus::Queued | ChatStatus::Running | ChatStatus::Suspended => Ok(view.turn_id),
    }
}

impl Chats {
    /// Adds words to a turn that runs.
    pub(crate) async fn steer(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        (command, turn_id): (CommandId, TurnId),
        post: NewMessage,
        (files, context): (Vec<domain::FilePath>, String),
        by: &Principal,
    ) -> Result<Accepted, Error> {
        let NewMessage { content, may_approve, may_not_run, .. } = post;
        let words = ChatCommand::Steer { turn_id, content, files, context, may_approve, may_not_run };
        // The words first: a turn that waits for them gets them.
        self.send(workspace, chat, command, by, words).await?;
        self.request_stop(workspace, chat, StopTarget::This(turn_id.0), STEERED, StopId(command.0)).await?;
        Ok(Accepted { chat_id: chat, turn_id, queued_behind: None, paused_reason: None })
    }
}

/// Whether a request to stop is a request to steer.
pub(crate) fn is_steering(request: &StopRequest) -> bool {
    request.reason == STEERED
}
