//! Threads that are chats, and their runs.

use super::{
    Mode,
    frames::{Form, Out},
    ids::RunId,
    messages,
    state::{History, Point, RunState, Status, Values},
};
use crate::{
    Frame, Part, PartEnd, PartEvent, PartReader, Projection,
    part::{ASK, own},
    plan::{Plan, parsed},
};
use domain::{
    CallId, ChatEvent, Code, Error, Message, MessageId, StopReason, Timestamp, TurnId,
    event::{HandedOut, Question},
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};

/// The node that asks the model.
const AGENT: &str = "agent";
/// The node that carries out calls.
const TOOLS: &str = "tools";

/// The fold of a chat's log into the states of its thread.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    history: History,
    /// The length of its messages as text, in bytes.
    size: usize,
    /// The part that the log is in, while a turn runs.
    now: Option<Part>,
    /// The call that waits for a person.
    waits: Option<CallId>,
    /// Calls of the last message that have no answer yet.
    calls: BTreeSet<CallId>,
    error: Option<Error>,
    /// Whether the turn is no part of the conversation.
    is_internal: bool,
    /// Whether a summary is written now, which is no message.
    compacts: bool,
    /// The number of the event that ended the last pause; 0 before any.
    resumed: u64,
}

impl From<Part> for RunId {
    fn from(part: Part) -> Self {
        Self { of: part.turn.0, number: part.number }
    }
}

impl Conversation {
    /// The states so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The number of the event that ended the last pause, 0 where there was none: all pauses before it have ended.
    pub fn resumed(&self) -> u64 {
        self.resumed
    }

    /// Takes in the next event; tells whether there is a new checkpoint.
    pub fn take_in(&mut self, number: u64, at: Timestamp, event: &ChatEvent) -> bool {
        let before = self.history.points.len();
        if matches!(event, ChatEvent::Unpaused { .. }) {
            self.resumed = number;
        }
        match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => {
                (self.now, self.is_internal) = (Some(Part::first(*turn_id)), false);
                self.begin(at);
            }
            ChatEvent::CompactionBegan { internal: true, .. } => {
                self.is_internal = true;
                self.history.runs.pop();
            }
            _ if self.is_internal => {}
            ChatEvent::CompactionBegan { .. } => self.compacts = true,
            ChatEvent::Compacted { .. } => self.compacts = false,
            // A message begins, maybe again after a crash: the words of the attempt before are void.
            ChatEvent::TurnStarted { .. } | ChatEvent::ModelStarted { .. } | ChatEvent::AgentBegan { .. } => {
                self.history.writing = None;
            }
            ChatEvent::Chunk { text, message_id } if self.now.is_some() && !self.compacts => {
                match &mut self.history.writing {
                    Some((of, words)) if of == message_id => words.push_str(text),
                    writing => *writing = Some((*message_id, text.clone())),
                }
            }
            // Words that steer are a message once the model reads them.
            ChatEvent::MessageAdded { message } => {
                self.say(messages::of(message));
                let (source, next) = match message {
                    Message::Assistant { calls, .. } => {
                        self.calls = calls.iter().map(|call| call.call_id).collect();
                        self.history.writing = None;
                        ("loop", if calls.is_empty() { None } else { Some(TOOLS) })
                    }
                    _ => ("input", Some(AGENT)),
                };
                self.point(number, at, source, next);
            }
            ChatEvent::Observed { call_id, tool, output, success, .. } => {
                self.goes_on(*call_id, at);
                self.say(messages::tool(*call_id, tool, output, *success));
                if self.calls.remove(call_id) && self.calls.is_empty() {
                    self.point(number, at, "loop", Some(AGENT));
                }
            }
            // The call of a server goes on with the answer to its question, and may ask again before it has a result.
            ChatEvent::CallStarted { call_id, .. } => self.goes_on(*call_id, at),
            ChatEvent::PermissionResolved { .. } => {
                if let Some(call) = self.waits {
                    self.goes_on(call, at);
                }
            }
            ChatEvent::Asked { .. } | ChatEvent::HandedOut(_) | ChatEvent::PermissionRequired { .. } => {
                if let Some((call, asked)) = asked(event) {
                    self.interrupt(number, at, call, asked);
                }
            }
            ChatEvent::Failed { error } => self.error = Some(error.clone()),
            ChatEvent::Done { stop_reason, .. } => {
                let (status, error) = ended(*stop_reason, self.error.take());
                self.end(number, at, status, error);
            }
            ChatEvent::Stopped { .. } => self.end(number, at, Status::Interrupted, None),
            ChatEvent::Paused { reason, .. } => {
                self.last(number, at, Some(paused(reason)));
                self.close(at, Status::Error);
            }
            ChatEvent::Unpaused { .. } if self.now.is_some() => {
                if let Some(run) = self.history.runs.last_mut() {
                    run.status = Status::Running;
                }
            }
            _ => {}
        }
        self.history.points.len() > before
    }

    fn say(&mut self, message: Value) {
        self.size += message.to_string().len();
        self.history.messages.push(message);
    }

    fn begin(&mut self, at: Timestamp) {
        if let Some(part) = self.now {
            let run = RunState { id: part.into(), status: Status::Running, created_at: at, updated_at: at };
            self.history.runs.push(run);
        }
    }

    /// The call that waited for a person goes on, in the next run.
    fn goes_on(&mut self, call: CallId, at: Timestamp) {
        if self.waits.take_if(|waits| *waits == call).is_some() {
            self.begin(at);
        }
    }

    fn point(&mut self, number: u64, at: Timestamp, source: &'static str, next: Option<&str>) {
        let Some(part) = self.now else { return };
        self.history.points.push(Point {
            number,
            at,
            run: part.into(),
            source,
            values: Values::Messages(self.history.messages.len()),
            next: next.into_iter().map(str::to_owned).collect(),
            interrupts: Vec::new(),
            error: None,
            size: self.size,
        });
    }

    fn interrupt(&mut self, number: u64, at: Timestamp, call: CallId, interrupt: Value) {
        self.point(number, at, "loop", Some(TOOLS));
        if let Some(point) = self.history.points.last_mut() {
            point.interrupts = vec![interrupt];
        }
        self.close(at, Status::Interrupted);
        self.waits = Some(call);
        self.now = self.now.map(Part::next);
    }

    fn close(&mut self, at: Timestamp, status: Status) {
        if let Some(run) = self.history.runs.last_mut().filter(|run| !run.status.is_over()) {
            (run.status, run.updated_at) = (status, at);
        }
    }

    /// The turn is over.
    fn end(&mut self, number: u64, at: Timestamp, status: Status, error: Option<Error>) {
        self.last(number, at, error);
        self.close(at, status);
        (self.now, self.waits, self.compacts) = (None, None, false);
        self.history.writing = None;
        self.calls.clear();
    }

    /// The last state says that nothing comes next and nothing is asked.
    fn last(&mut self, number: u64, at: Timestamp, error: Option<Error>) {
        let is_settled = self.history.points.last().is_some_and(|point| {
            point.next.is_empty() && Values::Messages(self.history.messages.len()) == point.values
        });
        if self.now.is_none() || (is_settled && error.is_none()) {
            return;
        }
        self.point(number, at, "loop", None);
        if let Some(point) = self.history.points.last_mut() {
            point.error = error.map(|error| json!({ "error": error.code, "message": error.message }).to_string());
        }
    }
}

/// The interrupt that a request to people is, and the call that waits; none for any other event.
pub(super) fn asked(event: &ChatEvent) -> Option<(CallId, Value)> {
    Some(match event {
        ChatEvent::Asked { question_id, call_id, questions, .. } => {
            (*call_id, question(question_id.0, *call_id, questions))
        }
        ChatEvent::HandedOut(HandedOut { call_id, tool, args, .. }) => {
            let (name, args) = (own(tool)?, parsed(args));
            let value = json!({ "type": "function", "name": name, "args": args, "tool_call_id": call_id });
            (*call_id, interrupt(call_id.0, &value))
        }
        ChatEvent::PermissionRequired { permission_id, call_id, tool, args, reason, .. } => {
            let value = json!({
                "action_requests": [{ "name": tool, "args": parsed(args), "description": reason }],
                "review_configs": [{ "action_name": tool, "allowed_decisions": ["approve", "reject"] }],
                "tool_call_id": call_id,
            });
            (*call_id, interrupt(permission_id.0, &value))
        }
        _ => return None,
    })
}

fn interrupt(id: uuid::Uuid, value: &Value) -> Value {
    json!({ "id": id, "value": value, "when": "during", "resumable": true, "ns": [TOOLS] })
}

fn question(id: uuid::Uuid, call: CallId, questions: &[Question]) -> Value {
    let text = questions.iter().map(|one| one.question.as_str()).collect::<Vec<_>>().join("\n");
    interrupt(id, &json!({ "type": "question", "question": text, "questions": questions, "tool_call_id": call }))
}

fn paused(reason: &str) -> Error {
    Error::new(Code::Paused, format!("the chat is paused: {reason}"))
}

/// The state of a run that ended by itself, and its failure.
fn ended(reason: StopReason, error: Option<Error>) -> (Status, Option<Error>) {
    let limit = |name: &str| Some(Error::new(Code::LimitReached, format!("the run reached its limit: {name}")));
    match reason {
        StopReason::EndTurn | StopReason::Refusal | StopReason::MaxOutputTokens => (Status::Success, None),
        StopReason::TimeLimit => (Status::Timeout, limit("time")),
        StopReason::StepLimit => (Status::Error, limit("steps")),
        StopReason::TokenLimit => (Status::Error, limit("tokens")),
        StopReason::CostLimit => (Status::Error, limit("cost")),
        StopReason::ContextLimit => (Status::Error, limit("context")),
        StopReason::Error => {
            (Status::Error, Some(error.unwrap_or_else(|| Error::new(Code::Internal, "the run failed"))))
        }
    }
}

/// The view of a part of a turn as a run.
#[derive(Debug)]
pub struct ChatRun {
    form: Arc<Form>,
    /// Counts the checkpoints since the fold began.
    step: u32,
    reader: PartReader,
    conversation: Conversation,
    plan: Plan,
    /// The message that is being written: its id, its words and its reasoning.
    partial: Option<(MessageId, String, String)>,
    /// Answers of tools since the last message.
    results: Vec<Value>,
    begun: bool,
    over: bool,
}

impl ChatRun {
    /// The view of this part in these modes, under the client's id of the thread.
    pub fn new(part: Part, thread: String, graph: String, modes: Vec<Mode>) -> Self {
        Self::with(part, thread, graph, Some(modes))
    }

    /// The view that has one frame: the last values, or the failure.
    pub fn whole(part: Part, thread: String, graph: String) -> Self {
        Self::with(part, thread, graph, None)
    }

    fn with(part: Part, thread: String, graph: String, modes: Option<Vec<Mode>>) -> Self {
        Self {
            form: Arc::new(Form { thread, run: part.into(), graph, modes: modes.map(BTreeSet::from_iter) }),
            step: 0,
            reader: PartReader::of(part),
            conversation: Conversation::default(),
            plan: Plan::default(),
            partial: None,
            results: Vec::new(),
            begun: false,
            over: false,
        }
    }

    /// Goes on with the view of this turn, which begins with the next event.
    pub(super) fn begin_turn(&mut self, turn: TurnId) {
        let part = Part::first(turn);
        self.turn_to(part, PartReader::of(part), false);
    }

    /// Goes on with the view of the next run of the turn, if this one is over: it begins with the event of this number, which comes next.
    pub(super) fn go_on(&mut self, number: u64, frames: &mut Vec<Frame>) {
        let Some(part) = self.conversation.now.filter(|_| self.over) else { return };
        let reader = std::mem::replace(&mut self.reader, PartReader::of(part)).on_to(part);
        self.turn_to(part, reader, true);
        Out { form: &self.form, step: self.step, number, frames }.begin();
    }

    fn turn_to(&mut self, part: Part, reader: PartReader, begun: bool) {
        self.form = Arc::new(Form { run: part.into(), ..Form::clone(&self.form) });
        (self.reader, self.begun, self.over, self.partial) = (reader, begun, false, None);
        self.results.clear();
    }

    fn wrote(&mut self, id: MessageId, text: &str, reasoning: &str, out: &mut Out<'_>) {
        out.tuple(AGENT, || messages::piece(id, text, reasoning));
        if !out.wants(Mode::Messages) {
            return;
        }
        let begins = self.partial.as_ref().is_none_or(|(of, ..)| *of != id);
        if begins {
            self.partial = Some((id, String::new(), String::new()));
        }
        if let Some((_, words, thoughts)) = &mut self.partial {
            words.push_str(text);
            thoughts.push_str(reasoning);
            out.message(AGENT, &messages::ai(id, words, thoughts, &[]), begins, false);
        }
    }

    fn show(&mut self, part_event: &PartEvent<'_>, out: &mut Out<'_>) {
        self.plan.take_in(part_event);
        match part_event {
            PartEvent::Began => {
                self.begun = true;
                out.begin();
                if out.form.run.number > 0 {
                    out.values(|| self.conversation.history.values());
                }
            }
            PartEvent::Thought(id, text) => self.wrote(*id, "", text, out),
            PartEvent::Said(id, text) => self.wrote(*id, text, "", out),
            PartEvent::Called { call, tool, args, .. } => {
                let input =
                    || json!({ "event": "on_tool_start", "toolCallId": call, "name": tool, "input": parsed(args) });
                out.tool(input);
            }
            PartEvent::Answered { call, tool, output, success } => {
                out.tool(|| match success {
                    true => {
                        json!({ "event": "on_tool_end", "toolCallId": call, "name": tool, "output": parsed(output) })
                    }
                    false => json!({ "event": "on_tool_error", "toolCallId": call, "name": tool, "error": output }),
                });
                let message = messages::tool(*call, tool, output, *success);
                out.tuple(TOOLS, || message.clone());
                out.message(TOOLS, &message, true, true);
                self.results.push(message);
            }
            PartEvent::Wrote { file, path, v } => {
                out.custom(|| json!({ "type": "file", "file_id": file, "path": path, "v": v }));
            }
            PartEvent::Step { .. } => out.custom(|| json!({ "type": "plan", "plan": self.plan.value() })),
            PartEvent::Used(usage) => out.custom(|| json!({ "type": "usage", "usage": usage })),
            PartEvent::Asked { call, questions, .. } => {
                let input = || json!({ "event": "on_tool_start", "toolCallId": call, "name": ASK, "input": { "questions": questions } });
                out.tool(input);
            }
            PartEvent::Handed { call, name, args } => {
                let input =
                    || json!({ "event": "on_tool_start", "toolCallId": call, "name": name, "input": parsed(args) });
                out.tool(input);
            }
            PartEvent::Permission { .. } | PartEvent::Ended(_) => {}
        }
    }

    /// A step is done: its output, and the state after it.
    fn stepped(&mut self, event: &ChatEvent, out: &mut Out<'_>) {
        match event {
            ChatEvent::MessageAdded { message: message @ Message::Assistant { id, calls, .. } } => {
                if !calls.is_empty() {
                    out.tuple(AGENT, || messages::calls(*id, calls));
                }
                let whole = messages::of(message);
                let begins = self.partial.take().is_none_or(|(of, ..)| of != *id);
                out.message(AGENT, &whole, begins, true);
                out.update(AGENT, || json!({ "messages": [whole] }));
            }
            ChatEvent::Observed { .. } => {
                let results = std::mem::take(&mut self.results);
                out.update(TOOLS, || json!({ "messages": results }));
            }
            _ => {}
        }
        out.values(|| self.conversation.history.values());
    }

    fn end(&mut self, end: &PartEnd, out: &mut Out<'_>) {
        self.over = true;
        let history = &self.conversation.history;
        let (status, error) = match end {
            PartEnd::Waits => {
                out.update("__interrupt__", || json!(history.interrupts()));
                out.values(|| history.interrupted());
                (Status::Interrupted, None)
            }
            PartEnd::Done(reason, error) => ended(*reason, error.clone()),
            PartEnd::Stopped(_) => (Status::Interrupted, None),
            PartEnd::Paused(reason) => (Status::Error, Some(paused(reason))),
            PartEnd::Deleted => (Status::Error, Some(Error::new(Code::Cancelled, "the chat was deleted"))),
        };
        out.end(status, error.as_ref(), history.interrupted());
    }
}

impl Projection for ChatRun {
    type Event = ChatEvent;

    fn take_in(&mut self, number: u64, at: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        let is_new = self.conversation.take_in(number, at, event);
        let part_events = self.reader.take_in(event);
        self.step += u32::from(is_new);
        let form = self.form.clone();
        let mut out = Out { form: &form, step: self.step, number, frames };
        let waits = matches!(part_events.last(), Some(PartEvent::Ended(PartEnd::Waits)));
        for part_event in &part_events {
            self.show(part_event, &mut out);
        }
        if is_new && self.begun && !self.over && !waits && part_events.first() != Some(&PartEvent::Began) {
            self.stepped(event, &mut out);
        }
        if let Some(PartEvent::Ended(end)) = part_events.last() {
            self.end(end, &mut out);
        }
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn ends_with_its_stream(&self) -> bool {
        self.form.modes.is_some()
    }
}
