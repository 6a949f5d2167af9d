//! The parts of a turn, and the events of one of them: the ground that protocols of request and answer stand on.
//!
//! In these protocols an answer is over when a person has to decide something, and the decision is a request with an answer of its own. A turn
//! of a chat goes on over decisions. So an answer is a *part* of a turn: the events up to the first question or request for permission are
//! part 0, those up to the second one are part 1, and so on. A part is known by the turn and its number, and follows from the log alone.

use crate::message_text::MessageText;
use domain::{
    CLIENT_PREFIX, CallId, ChatEvent, Error, FileId, FilePath, Message, MessageId, PermissionId, QuestionId,
    StopReason, TurnId, Usage, answer_json,
    event::{HandedOut, Question},
};
use std::collections::BTreeSet;
use uuid::Uuid;

/// The tool by which agents ask people.
pub(crate) const ASK: &str = "ask_user";

/// A part of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The turn.
    pub turn: TurnId,
    /// Counts the questions and requests for permission before it.
    pub number: u32,
}

impl Part {
    /// The first part of a turn.
    pub fn first(turn: TurnId) -> Self {
        Self { turn, number: 0 }
    }

    /// The part after it.
    #[must_use]
    pub fn next(self) -> Self {
        Self { number: self.number.saturating_add(1), ..self }
    }
}

/// An event of a part, without the words of a protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum PartEvent<'a> {
    /// The part begins.
    Began,
    /// New words of the reasoning of a message.
    Thought(MessageId, String),
    /// New words of a message.
    Said(MessageId, String),
    /// A tool is called.
    Called {
        /// The call.
        call: CallId,
        /// The tool.
        tool: &'a str,
        /// Its arguments, a JSON text.
        args: &'a str,
        /// Whether a request for permission has shown it already.
        again: bool,
    },
    /// A call was answered. It may have begun in an earlier part.
    Answered {
        /// The call.
        call: CallId,
        /// The tool.
        tool: &'a str,
        /// The text that the model reads.
        output: &'a str,
        /// Whether it succeeded.
        success: bool,
    },
    /// A file has a new version, or is gone (`v` 0).
    Wrote {
        /// The file.
        file: FileId,
        /// Its path.
        path: &'a FilePath,
        /// Its version.
        v: u64,
    },
    /// A step of the plan changed.
    Step {
        /// Counts from 1.
        step: u32,
        /// `pending`, `in_progress`, `done`, `failed` or `skipped`.
        status: &'a str,
        /// Its text.
        title: &'a str,
        /// The plan file.
        plan: &'a FilePath,
        /// Steps done, and steps in all.
        progress: (u32, u32),
    },
    /// A model call was paid for: the sum of the part so far.
    Used(Usage),
    /// The agent asks people; the part is over.
    Asked {
        /// The questions.
        id: QuestionId,
        /// The call that waits.
        call: CallId,
        /// Each of them.
        questions: &'a [Question],
    },
    /// A call waits for permission; the part is over.
    Permission {
        /// The request.
        id: PermissionId,
        /// The call that waits.
        call: CallId,
        /// The tool.
        tool: &'a str,
        /// Its arguments, a JSON text.
        args: &'a str,
        /// Why it is asked.
        reason: &'a str,
    },
    /// The client runs a function of its own; the part is over.
    Handed {
        /// The call that waits.
        call: CallId,
        /// The function, by the client's name for it.
        name: &'a str,
        /// Its arguments, a JSON text.
        args: &'a str,
    },
    /// The part is over.
    Ended(PartEnd),
}

/// The end of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum PartEnd {
    /// A person has to decide; the turn goes on with the next part.
    Waits,
    /// The turn ended by itself or at a limit, with the failure behind it if there was one.
    Done(StopReason, Option<Error>),
    /// The turn was stopped.
    Stopped(String),
    /// The chat is paused, after failures: a person resumes it.
    Paused(String),
    /// The chat was deleted before the turn ended.
    Deleted,
}

/// The reader of a part, or of a turn up to the end of a part: it folds the log of the chat, from an event before the turn or from its first
/// one, into events of the part.
#[derive(Debug)]
pub struct PartReader {
    /// The last part that is shown.
    shows: Part,
    /// The number of the first one.
    from: u32,
    /// The part that the log is in, while a turn runs.
    now: Option<Part>,
    begun: bool,
    over: bool,
    said: MessageText,
    thought: MessageText,
    usage: Usage,
    error: Option<Error>,
    /// Whether the answer of the turn has a format. Then `held` is the answer, which is held back until its turn ends well; words before it are no part of it.
    has_format: bool,
    held: Option<(MessageId, String)>,
    /// Calls of the turn that waited for permission.
    permitted: BTreeSet<CallId>,
}

impl PartReader {
    /// A reader of this part.
    pub fn of(shows: Part) -> Self {
        Self::over(shows, shows.number)
    }

    /// A reader of this part and those of its turn before it.
    pub fn through(shows: Part) -> Self {
        Self::over(shows, 0)
    }

    fn over(shows: Part, from: u32) -> Self {
        Self {
            shows,
            from,
            now: None,
            begun: false,
            over: false,
            said: MessageText::default(),
            thought: MessageText::default(),
            usage: Usage::default(),
            error: None,
            has_format: false,
            held: None,
            permitted: BTreeSet::new(),
        }
    }

    /// The reader of this part, which follows on the one that was read and has begun.
    pub(crate) fn on_to(self, shows: Part) -> Self {
        let Self { now, said, thought, has_format, permitted, .. } = self;
        Self { now, said, thought, has_format, permitted, begun: true, ..Self::of(shows) }
    }

    /// Whether the part is over.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Takes in the next event.
    pub fn take_in<'a>(&mut self, event: &'a ChatEvent) -> Vec<PartEvent<'a>> {
        let mut part_events = Vec::new();
        if self.over {
            return part_events;
        }
        match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => {
                self.now = Some(Part::first(*turn_id));
                self.permitted.clear();
                self.has_format = false;
            }
            ChatEvent::FormatAsked { .. } => self.has_format = true,
            ChatEvent::PermissionRequired { call_id, .. } => _ = self.permitted.insert(*call_id),
            // Nothing more of the turn comes, not even if it has not begun.
            ChatEvent::Paused { reason, .. } => return self.cut(PartEnd::Paused(reason.clone())),
            ChatEvent::Deleted { .. } => return self.cut(PartEnd::Deleted),
            _ => {}
        }
        if self.is_shown() {
            self.begin(&mut part_events);
            self.show(event, &mut part_events);
        }
        match event {
            _ if asks(event).is_some() => {
                self.now = self.now.map(Part::next);
                if self.is_shown() {
                    self.begin(&mut part_events);
                }
            }
            ChatEvent::Done { .. } | ChatEvent::Stopped { .. } => self.now = None,
            _ => {}
        }
        part_events
    }

    fn is_shown(&self) -> bool {
        self.now.is_some_and(|Part { turn, number }| {
            turn == self.shows.turn && (self.from..=self.shows.number).contains(&number)
        })
    }

    /// A question ends the last part that is shown, and no other.
    fn wait(&mut self, part_events: &mut Vec<PartEvent<'_>>) {
        if self.now == Some(self.shows) {
            self.end(PartEnd::Waits, part_events);
        }
    }

    fn begin(&mut self, part_events: &mut Vec<PartEvent<'_>>) {
        if !std::mem::replace(&mut self.begun, true) {
            part_events.push(PartEvent::Began);
        }
    }

    fn cut<'a>(&mut self, end: PartEnd) -> Vec<PartEvent<'a>> {
        let mut part_events = Vec::new();
        self.begin(&mut part_events);
        self.end(end, &mut part_events);
        part_events
    }

    fn end(&mut self, end: PartEnd, part_events: &mut Vec<PartEvent<'_>>) {
        self.over = true;
        part_events.push(PartEvent::Ended(end));
    }

    /// The whole words of a message. In a turn with a format, words beside calls are thoughts, and the answer is its JSON alone.
    fn say(&mut self, id: MessageId, content: &str, is_answer: bool, part_events: &mut Vec<PartEvent<'_>>) {
        match (self.has_format, is_answer) {
            (false, _) => push(part_events, PartEvent::Said, id, self.said.whole(id, content)),
            (true, true) => self.held = Some((id, answer_json(content).map_or(content, |(_, json)| json).to_owned())),
            (true, false) => push(part_events, PartEvent::Thought, id, content.to_owned()),
        }
    }

    fn show<'a>(&mut self, event: &'a ChatEvent, part_events: &mut Vec<PartEvent<'a>>) {
        match event {
            ChatEvent::ModelStarted { message_id, .. } => {
                self.said.begin(*message_id);
                self.thought.begin(*message_id);
            }
            ChatEvent::Thought { text, message_id } => {
                push(part_events, PartEvent::Thought, *message_id, self.thought.piece(*message_id, text));
            }
            ChatEvent::Chunk { .. } if self.has_format => {}
            ChatEvent::Chunk { text, message_id } => {
                push(part_events, PartEvent::Said, *message_id, self.said.piece(*message_id, text));
            }
            ChatEvent::MessageAdded { message: Message::Assistant { id, content, reasoning, calls, .. } } => {
                if !reasoning.is_empty() {
                    push(part_events, PartEvent::Thought, *id, self.thought.whole(*id, reasoning));
                }
                self.say(*id, content, calls.is_empty(), part_events);
            }
            // Questions show their call themselves.
            ChatEvent::CallStarted { call_id, attempt: 1, tool, args, .. } if tool != ASK && own(tool).is_none() => {
                part_events.push(PartEvent::Called {
                    call: *call_id,
                    tool,
                    args,
                    again: self.permitted.contains(call_id),
                });
            }
            ChatEvent::Observed { call_id, tool, output, success, .. } => {
                part_events.push(PartEvent::Answered { call: *call_id, tool, output, success: *success });
            }
            ChatEvent::FileUpdated { path, v, file_id, .. } => {
                part_events.push(PartEvent::Wrote { file: *file_id, path, v: *v })
            }
            ChatEvent::PlanStep { step, status, title, plan_path, done, total, .. } => {
                let progress = (*done, *total);
                part_events.push(PartEvent::Step { step: *step, status, title, plan: plan_path, progress });
            }
            ChatEvent::Used { usage, .. } => {
                self.usage += *usage;
                part_events.push(PartEvent::Used(self.usage));
            }
            ChatEvent::Asked { question_id, call_id, questions, .. } => {
                part_events.push(PartEvent::Asked { id: *question_id, call: *call_id, questions });
                self.wait(part_events);
            }
            ChatEvent::PermissionRequired { permission_id, call_id, tool, args, reason, .. } => {
                part_events.push(PartEvent::Permission { id: *permission_id, call: *call_id, tool, args, reason });
                self.wait(part_events);
            }
            ChatEvent::HandedOut(HandedOut { call_id, tool, args, .. }) => {
                if let Some(name) = own(tool) {
                    part_events.push(PartEvent::Handed { call: *call_id, name, args });
                    self.wait(part_events);
                }
            }
            ChatEvent::Failed { error } => self.error = Some(error.clone()),
            ChatEvent::Done { stop_reason, .. } => {
                let error = self.error.take();
                let answer = self.held.take().filter(|_| *stop_reason != StopReason::Error);
                part_events.extend(answer.map(|(id, text)| PartEvent::Said(id, text)));
                self.end(PartEnd::Done(*stop_reason, error), part_events);
            }
            ChatEvent::Stopped { reason, .. } => self.end(PartEnd::Stopped(reason.clone()), part_events),
            _ => {}
        }
    }
}

/// The id of the decision that an event asks for, and the call that waits; none for any other event.
pub(crate) fn asks(event: &ChatEvent) -> Option<(Uuid, CallId)> {
    match event {
        ChatEvent::Asked { question_id, call_id, .. } => Some((question_id.0, *call_id)),
        ChatEvent::PermissionRequired { permission_id, call_id, .. } => Some((permission_id.0, *call_id)),
        ChatEvent::HandedOut(HandedOut { call_id, tool, .. }) if own(tool).is_some() => Some((call_id.0, *call_id)),
        _ => None,
    }
}

/// The client's name for a function of its own.
pub(crate) fn own(tool: &str) -> Option<&str> {
    tool.strip_prefix(CLIENT_PREFIX)
}

fn push<'a>(
    part_events: &mut Vec<PartEvent<'a>>,
    part_event: impl Fn(MessageId, String) -> PartEvent<'a>,
    id: MessageId,
    text: String,
) {
    if !text.is_empty() {
        part_events.push(part_event(id, text));
    }
}

/// The parts of a chat so far: which one is the last, and which decision each of them ended with.
#[derive(Clone, Debug, Default)]
pub struct ChatParts {
    now: Option<Part>,
    running: bool,
    /// The ids of what was asked, the call that waits, and the part that ended with it.
    asked: Vec<(Uuid, CallId, Part)>,
    /// The number of the event that ended the last pause; 0 before any.
    resumed: u64,
}

impl ChatParts {
    /// Takes in the next event of the chat's log, and its number.
    pub fn take_in(&mut self, number: u64, event: &ChatEvent) {
        match event {
            ChatEvent::Unpaused { .. } => {
                self.resumed = number;
                return;
            }
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => {
                (self.now, self.running) = (Some(Part::first(*turn_id)), true);
                return;
            }
            ChatEvent::Done { .. } | ChatEvent::Stopped { .. } => {
                self.running = false;
                return;
            }
            _ => {}
        }
        if let (Some((id, call)), Some(part)) = (asks(event), &mut self.now) {
            self.asked.push((id, call, *part));
            *part = part.next();
        }
    }

    /// The last part; none before the first turn.
    pub fn last(&self) -> Option<Part> {
        self.now
    }

    /// The number of the event that ended the last pause, 0 where there was none: all pauses before it have ended.
    pub fn resumed(&self) -> u64 {
        self.resumed
    }

    /// Whether the turn of the last part runs or waits.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// The part that ended with these questions or this request for permission, and the id of it: by its own id, or by the call that waits.
    pub fn that_asked(&self, id: Uuid) -> Option<(Uuid, Part)> {
        let found = self.asked.iter().rev().find(|(asked, call, _)| *asked == id || call.0 == id)?;
        Some((found.0, found.2))
    }
}
