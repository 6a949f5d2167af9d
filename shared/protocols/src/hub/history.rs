//! The turns of a thread, out of its log.

use super::{frames::Frames, text::BETWEEN};
use crate::{Frame, Projection};
use domain::{ChatEvent, ChatId, FilePath, Message, MessageId, StopReason, Timestamp, TurnId};
use serde::Serialize;
use serde_json::{Value, json};

/// More frames than an event of the log has: the ids of frames are numbers, which grow.
const MOST_FRAMES: u64 = 100;

/// The state of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// It runs, or waits for a person.
    Running,
    /// It ended by itself or at a limit.
    Completed,
    /// It was stopped.
    Cancelled,
    /// It ended with a failure.
    Error,
}

/// A turn of a thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// The turn.
    pub turn_id: TurnId,
    /// The person's words.
    pub request_text: String,
    /// The agent's words, as far as they are.
    pub response_text: String,
    /// Its state.
    pub status: TurnStatus,
    /// `end_turn`, `cancelled` or `error`; none while it runs.
    pub stop_reason: Option<&'static str>,
    /// The failure that it ended with.
    pub error_message: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// Whether it is one of the system's own, which histories leave out.
    pub is_internal: bool,
    /// The frames of its stream, and what a client that did not watch needs besides: `session_bound` where the turn goes on with a session of the
    /// coding agent, and `user_prompt` where its words came with files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Value>>,
    /// The number of its first event.
    #[serde(skip)]
    pub first: u64,
    /// The session of the coding agent that it ran in.
    #[serde(skip)]
    pub session: Option<String>,
    /// Whether the agent began that session in it.
    #[serde(skip)]
    pub began_session: bool,
    /// The files that came with the words, in the order of the links of its `user_prompt`.
    #[serde(skip)]
    pub files: Vec<FilePath>,
}

impl Turn {
    /// Whether the message that it answers is still to come; others of the person steer it.
    fn is_unasked(&self) -> bool {
        self.request_text.is_empty() && self.files.is_empty()
    }
}

/// The fold of a thread's log into its turns.
#[derive(Clone, Debug)]
pub struct History {
    frames: Frames,
    with_events: bool,
    turns: Vec<Turn>,
    /// The session of the coding agent that the next turn goes on with.
    session: Option<String>,
    /// The message that is being written, and its text so far; the whole messages before it are in the turn.
    partial: Option<(MessageId, String)>,
    rendered: Vec<Frame>,
}

impl History {
    /// Of a thread; with the frames of each turn, if asked for.
    pub fn of(thread: ChatId, with_events: bool) -> Self {
        let frames = Frames::of_thread(thread);
        Self { frames, with_events, turns: Vec::new(), session: None, partial: None, rendered: Vec::new() }
    }

    /// Takes in the next event of the log.
    pub fn take_in(&mut self, number: u64, at: Timestamp, event: &ChatEvent) {
        if let ChatEvent::TurnStarted { turn_id, attempt: 1, .. } = event {
            self.partial = None;
            self.turns.push(Turn {
                turn_id: *turn_id,
                request_text: String::new(),
                response_text: String::new(),
                status: TurnStatus::Running,
                stop_reason: None,
                error_message: None,
                created_at: at,
                completed_at: None,
                is_internal: false,
                events: self.with_events.then(Vec::new),
                first: number,
                session: self.session.clone(),
                began_session: false,
                files: Vec::new(),
            });
        }
        match event {
            ChatEvent::Created { config } | ChatEvent::Configured { config } => {
                let session = config.thread.as_ref().and_then(|thread| thread.options.session_id.clone());
                self.session = session.filter(|session| !session.is_empty());
            }
            ChatEvent::AgentBound { session_id } => {
                self.session = Some(session_id.clone());
                if let Some(turn) = self.turns.last_mut() {
                    turn.session.clone_from(&self.session);
                    turn.began_session = true;
                    // It is in one session: another one took the place of that which it went on with.
                    if let Some(events) = &mut turn.events {
                        events.retain(|event| event["type"] != "session_bound");
                    }
                }
            }
            _ => {}
        }
        if self.with_events {
            self.frames.take_in(number, at, event, &mut self.rendered);
            self.tell_more(number, at, event);
            let events = self.turns.last_mut().and_then(|turn| turn.events.as_mut());
            if let Some(events) = events {
                events.extend(self.rendered.drain(..).zip(0..).map(|(frame, place): (Frame, u64)| {
                    let event_id = number * MOST_FRAMES + place;
                    json!({
                        "eventId": event_id, "seq": number, "type": frame.event, "data": frame.data, "createdAt": at,
                    })
                }));
            }
            self.rendered.clear();
        }
        let Some(turn) = self.turns.last_mut().filter(|turn| turn.status == TurnStatus::Running) else { return };
        match event {
            ChatEvent::TurnStarted { attempt: 2.., .. } | ChatEvent::ModelStarted { attempt: 2.., .. } => {
                self.partial = None;
            }
            ChatEvent::Chunk { text, message_id } => match &mut self.partial {
                Some((message, partial)) if message == message_id => partial.push_str(text),
                partial => *partial = Some((*message_id, text.clone())),
            },
            ChatEvent::MessageAdded { message: Message::User { content, files, .. } } if turn.is_unasked() => {
                turn.request_text.clone_from(content);
                turn.files.clone_from(files);
            }
            ChatEvent::MessageAdded { message: Message::Assistant { content, .. } } => {
                self.partial = None;
                say(&mut turn.response_text, content);
            }
            ChatEvent::CompactionBegan { internal: true, .. } => turn.is_internal = true,
            ChatEvent::Compacted { compaction } if turn.is_internal => {
                self.partial = None;
                turn.response_text = compaction.summary.clone().unwrap_or_default();
            }
            ChatEvent::Failed { error } => turn.error_message = Some(error.message.clone()),
            ChatEvent::Done { stop_reason, at, .. } => {
                let failed = *stop_reason == StopReason::Error;
                (turn.status, turn.stop_reason) = match failed {
                    true => (TurnStatus::Error, Some("error")),
                    false => (TurnStatus::Completed, Some("end_turn")),
                };
                turn.error_message.take_if(|_| !failed);
                turn.completed_at = Some(*at);
            }
            ChatEvent::Stopped { at, .. } => {
                if let Some((_, partial)) = self.partial.take() {
                    say(&mut turn.response_text, &partial);
                }
                (turn.status, turn.stop_reason) = (TurnStatus::Cancelled, Some("cancelled"));
                turn.error_message = None;
                turn.completed_at = Some(*at);
            }
            _ => {}
        }
    }

    /// The frames of a history alone. Streams tell a session when it begins, and a client that sends files knows them.
    fn tell_more(&mut self, number: u64, at: Timestamp, event: &ChatEvent) {
        let Some(turn) = self.turns.last() else { return };
        match event {
            ChatEvent::TurnStarted { attempt: 1, .. } => {
                if let Some(session_id) = turn.session.clone() {
                    self.frames.take_in(number, at, &ChatEvent::AgentBound { session_id }, &mut self.rendered);
                }
            }
            ChatEvent::MessageAdded { message: Message::User { content, files, .. } }
                if turn.is_unasked() && !files.is_empty() =>
            {
                let link = |file: &FilePath| json!({ "type": "resource_link", "name": file.name(), "uri": format!("file://{file}") });
                let words = json!({ "type": "text", "text": content });
                let prompt: Vec<Value> = [words].into_iter().chain(files.iter().map(link)).collect();
                let data = json!({ "turnId": turn.turn_id, "prompt": prompt, "seq": number });
                self.rendered.push(Frame { number, event: Some("user_prompt"), data });
            }
            _ => {}
        }
    }

    /// Whether the thread has begun this session of the coding agent, as far as the log was taken in: no message of it is older than the thread's turns.
    pub fn has_begun(&self, session: &str) -> bool {
        let first = self.turns.iter().find(|turn| turn.session.as_deref() == Some(session));
        first.is_some_and(|turn| turn.began_session)
    }

    /// The turns so far, oldest first.
    pub fn turns(mut self) -> Vec<Turn> {
        if let (Some((_, partial)), Some(turn)) = (self.partial.take(), self.turns.last_mut()) {
            say(&mut turn.response_text, &partial);
        }
        self.turns
    }
}

fn say(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str(BETWEEN);
    }
    text.push_str(more);
}
