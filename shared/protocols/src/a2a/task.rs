//! A turn as a task: its updates, and the task as a whole.

use super::{TaskId, success};
use crate::{
    Frame, Part, PartEnd, PartEvent, PartReader, Projection,
    plan::{Plan, parsed},
};
use domain::{CallId, ChatEvent, FileId, FilePath, Message, MessageId, StopReason, Timestamp, Usage, event::Question};
use serde_json::{Value, json};
use uuid::Uuid;

/// The id of the artifact with the agent's words.
const ANSWER: &str = "answer";

/// The frames that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Every update.
    Updates,
    /// The whole task alone, at its end, with at most so many messages of its history.
    Whole(Option<usize>),
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for its start.
    Submitted,
    /// It runs.
    Working,
    /// A person, or the other agent, has to decide something.
    InputRequired,
    /// It ended by itself.
    Completed,
    /// It ended with an error or at a limit, or waits for a person to resume it after failures.
    Failed,
    /// It was stopped.
    Canceled,
    /// The model refused it.
    Rejected,
}

impl State {
    const ALL: [Self; 7] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
    ];

    /// The state with this name in the protocol.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Its name in the protocol.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::Rejected => "TASK_STATE_REJECTED",
        }
    }

    /// Whether no other state follows.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Submitted | Self::Working | Self::InputRequired => false,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
        }
    }
}

/// The view of a turn as a task.
#[derive(Debug)]
pub struct Task {
    id: TaskId,
    /// The id of the request whose answer the frames are.
    request: Value,
    /// The URL of the workspace's files.
    files_at: String,
    shows: Shows,
    reader: PartReader,
    state: State,
    /// When it came into this state.
    since: Option<Timestamp>,
    /// The message of the state.
    note: Option<Value>,
    /// The last question or request for permission, and the call that waits for its answer.
    asked: Option<(Uuid, CallId)>,
    text: String,
    /// The message that the text ends with.
    said: Option<MessageId>,
    files: Vec<(FileId, Value)>,
    plan: Plan,
    usage: Usage,
    history: Vec<Value>,
    /// Whether the log is in the turn.
    is_inside: bool,
}

/// The frames of one event.
struct Out<'a> {
    number: u64,
    at: Timestamp,
    frames: &'a mut Vec<Frame>,
}

impl Task {
    /// The view of a turn up to the end of the part with this number. `files_at` is the URL of the workspace's files.
    pub fn new(id: TaskId, part: u32, request: Value, files_at: String, shows: Shows) -> Self {
        Self {
            id,
            request,
            files_at,
            shows,
            reader: PartReader::through(Part { turn: id.turn, number: part }),
            state: State::Submitted,
            since: None,
            note: None,
            asked: None,
            text: String::new(),
            said: None,
            files: Vec::new(),
            plan: Plan::default(),
            usage: Usage::default(),
            history: Vec::new(),
            is_inside: false,
        }
    }

    /// Its state, as far as the log was taken in.
    pub fn state(&self) -> State {
        self.state
    }

    /// When it came into this state.
    pub fn since(&self) -> Option<Timestamp> {
        self.since
    }

    /// The questions, or the request for permission, that it waits for.
    pub fn asked(&self) -> Option<Uuid> {
        self.asked.filter(|_| self.state == State::InputRequired).map(|(id, _)| id)
    }

    /// The task as far as the log was taken in, with at most so many messages of its history.
    pub fn whole(&self, history: Option<usize>) -> Value {
        let skipped = history.map_or(0, |most| self.history.len().saturating_sub(most));
        let mut artifacts: Vec<&Value> = self.files.iter().map(|(_, file)| file).collect();
        let answer = artifact(&self.text);
        if !self.text.is_empty() {
            artifacts.push(&answer);
        }
        let mut task = json!({
            "id": self.id.to_string(), "contextId": self.id.chat, "status": self.status(), "artifacts": artifacts,
            "history": self.history.get(skipped..).unwrap_or_default(),
        });
        if self.state.is_terminal() {
            task["metadata"] = self.used();
        }
        task
    }

    fn status(&self) -> Value {
        let mut status = json!({ "state": self.state.name() });
        if let Some(at) = self.since {
            status["timestamp"] = json!(at);
        }
        if let Some(note) = &self.note {
            status["message"] = note.clone();
        }
        status
    }

    fn used(&self) -> Value {
        let Usage { input_tokens, output_tokens, cached_tokens, .. } = self.usage;
        json!({ "usage": { "inputTokens": input_tokens, "outputTokens": output_tokens, "cachedTokens": cached_tokens } })
    }

    fn message(&self, id: &str, role: &str, parts: Value) -> Value {
        json!({
            "messageId": id, "contextId": self.id.chat, "taskId": self.id.to_string(), "role": role, "parts": parts,
        })
    }

    fn push(&self, kind: &str, mut update: Value, out: &mut Out<'_>) {
        if self.shows != Shows::Updates {
            return;
        }
        update["taskId"] = json!(self.id.to_string());
        update["contextId"] = json!(self.id.chat);
        let data = success(&self.request, &json!({ kind: update }));
        out.frames.push(Frame { number: out.number, event: None, data });
    }

    /// Comes into a state.
    fn enter(&mut self, state: State, note: Option<Value>, metadata: Value, out: &mut Out<'_>) {
        (self.state, self.note, self.since) = (state, note, Some(out.at));
        let mut update = json!({ "status": self.status() });
        if !metadata.is_null() {
            update["metadata"] = metadata;
        }
        self.push("statusUpdate", update, out);
    }

    /// Tells of something that the protocol has no words for.
    fn tell(&self, metadata: Value, out: &mut Out<'_>) {
        self.push("statusUpdate", json!({ "status": self.status(), "metadata": metadata }), out);
    }

    fn say(&mut self, message: MessageId, text: &str, out: &mut Out<'_>) {
        let is_first = self.text.is_empty();
        let is_another = self.said.replace(message).is_some_and(|said| said != message);
        let piece = if is_another && !is_first { format!("\n\n{text}") } else { text.to_owned() };
        self.text.push_str(&piece);
        self.push("artifactUpdate", json!({ "artifact": artifact(&piece), "append": !is_first }), out);
    }

    fn wrote(&mut self, id: FileId, path: &FilePath, v: u64, out: &mut Out<'_>) {
        let name = path.as_str().rsplit('/').next().unwrap_or_default();
        let part = match v {
            0 => json!({ "data": { "path": path, "removed": true }, "mediaType": "application/json" }),
            v => json!({ "url": format!("{}/{id}/versions/{v}/content", self.files_at), "filename": name }),
        };
        let file = json!({
            "artifactId": id, "name": path, "parts": [part], "metadata": { "path": path, "fileId": id, "v": v },
        });
        self.push("artifactUpdate", json!({ "artifact": file, "lastChunk": true }), out);
        match self.files.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = file,
            None => self.files.push((id, file)),
        }
    }

    /// Asks for something: `text` for those who read, `data` for programs.
    fn ask(&mut self, (id, call): (Uuid, CallId), text: &str, data: &Value, out: &mut Out<'_>) {
        let parts = json!([{ "text": text }, { "data": data, "mediaType": "application/json" }]);
        self.asked = Some((id, call));
        let note = self.message(&id.to_string(), "ROLE_AGENT", parts);
        self.enter(State::InputRequired, Some(note), Value::Null, out);
    }

    fn end(&mut self, end: &PartEnd, out: &mut Out<'_>) {
        let (state, why) = match end {
            PartEnd::Waits => return,
            PartEnd::Done(StopReason::EndTurn, _) => (State::Completed, None),
            PartEnd::Done(StopReason::Refusal, _) => (State::Rejected, Some("the model refused".to_owned())),
            PartEnd::Done(StopReason::Error, error) => (
                State::Failed,
                Some(error.as_ref().map_or_else(|| "the turn failed".to_owned(), |error| error.message.clone())),
            ),
            PartEnd::Done(limit, _) => (State::Failed, Some(format!("the turn ended at a limit: {}", json!(limit)))),
            PartEnd::Stopped(reason) => (State::Canceled, Some(reason.clone())),
            PartEnd::Paused(reason) => (State::Failed, Some(format!("the chat is paused: {reason}"))),
            PartEnd::Deleted => (State::Canceled, Some("the chat was deleted".to_owned())),
        };
        let id = format!("{}-end", self.id.turn);
        let note = why.map(|why| self.message(&id, "ROLE_AGENT", json!([{ "text": why }])));
        let metadata = self.used();
        self.enter(state, note, metadata, out);
    }

    fn show(&mut self, part_event: &PartEvent<'_>, out: &mut Out<'_>) {
        self.plan.take_in(part_event);
        // The decision is no event of the part: the task goes on when its call does.
        if let PartEvent::Called { call, .. } | PartEvent::Answered { call, .. } = part_event
            && self.asked.is_some_and(|(_, waits)| waits == *call)
        {
            self.asked = None;
            self.enter(State::Working, None, Value::Null, out);
        }
        match part_event {
            PartEvent::Began => self.enter(State::Working, None, Value::Null, out),
            PartEvent::Thought(message, text) => {
                self.tell(json!({ "thought": { "messageId": message, "text": text } }), out)
            }
            PartEvent::Said(message, text) => self.say(*message, text, out),
            PartEvent::Called { again: true, .. } => {}
            PartEvent::Called { call, tool, args, .. } => {
                self.tell(json!({ "call": { "callId": call, "tool": tool, "arguments": parsed(args) } }), out);
            }
            PartEvent::Answered { call, tool, output, success } => {
                let result = json!({ "callId": call, "tool": tool, "output": output, "success": success });
                self.tell(json!({ "result": result }), out);
            }
            PartEvent::Wrote { file, path, v } => self.wrote(*file, path, *v, out),
            PartEvent::Step { .. } => self.tell(json!({ "plan": self.plan.value() }), out),
            PartEvent::Used(usage) => self.usage = *usage,
            PartEvent::Asked { id, call, questions } => {
                let data = json!({ "questionId": id, "questions": questions });
                self.ask((id.0, *call), &asked(questions), &data, out);
            }
            PartEvent::Handed { call, name, args } => {
                let data = json!({ "callId": call, "function": name, "arguments": parsed(args) });
                self.ask((call.0, *call), &format!("Call {name}, and answer with its result."), &data, out);
            }
            PartEvent::Permission { id, call, tool, args, reason, .. } => {
                let text = format!("May I call {tool}? {reason}\nAnswer approved, or declined: and why.");
                let data = json!({ "permissionId": id, "tool": tool, "arguments": parsed(args), "reason": reason });
                self.ask((id.0, *call), &text, &data, out);
            }
            PartEvent::Ended(end) => self.end(end, out),
        }
    }

    /// Keeps the messages of the turn.
    fn remember(&mut self, event: &ChatEvent) {
        let message = match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => {
                self.is_inside = *turn_id == self.id.turn;
                return;
            }
            ChatEvent::Done { .. } | ChatEvent::Stopped { .. } => {
                self.is_inside = false;
                return;
            }
            ChatEvent::MessageAdded { message } if self.is_inside => message,
            _ => return,
        };
        let (id, role, content) = match message {
            Message::User { id, content, .. } => (id, "ROLE_USER", content),
            Message::Assistant { id, content, .. } if !content.is_empty() => (id, "ROLE_AGENT", content),
            Message::Assistant { .. } | Message::Tool { .. } | Message::System { .. } => return,
        };
        self.history.push(self.message(&id.to_string(), role, json!([{ "text": content }])));
    }
}

fn artifact(text: &str) -> Value {
    json!({ "artifactId": ANSWER, "name": ANSWER, "parts": [{ "text": text, "mediaType": "text/plain" }] })
}

/// Questions as people read them, and the form of the answer.
fn asked(questions: &[Question]) -> String {
    let text = questions.iter().map(|one| one.question.as_str()).collect::<Vec<_>>().join("\n");
    match questions {
        [_] => text,
        several => {
            let names = several.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
            format!("{text}\nAnswer with a JSON object that has {names}.")
        }
    }
}

impl Projection for Task {
    type Event = ChatEvent;

    fn take_in(&mut self, number: u64, at: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        self.remember(event);
        let mut out = Out { number, at, frames };
        let was_over = self.reader.is_over();
        for part_event in self.reader.take_in(event) {
            self.show(&part_event, &mut out);
        }
        if let Shows::Whole(history) = self.shows
            && self.reader.is_over()
            && !was_over
        {
            let data = success(&self.request, &json!({ "task": self.whole(history) }));
            frames.push(Frame { number, event: None, data });
        }
    }

    fn is_over(&self) -> bool {
        self.reader.is_over()
    }

    fn ends_with_its_stream(&self) -> bool {
        self.shows == Shows::Updates
    }
}
