//! The events of a run.

use crate::{
    Frame, Part, PartEnd, PartEvent, PartReader, Projection,
    part::{ASK, own},
    plan::{Plan, parsed},
};
use domain::{CallId, ChatEvent, MessageId, StopReason, Timestamp, Usage, event::Question};
use serde_json::{Map, Value, json};

/// The view of a part as a run.
#[derive(Debug)]
pub struct Events {
    thread: String,
    run: String,
    reader: PartReader,
    state: State,
    open: Option<(MessageId, bool)>,
    /// The last message with words: calls belong to it.
    said: Option<MessageId>,
    /// Counts the messages of the model; 0 before the first one.
    step: u32,
    /// Whether the step has an answer of a tool, so that the next message begins another.
    answered: bool,
    usage: Usage,
    interrupts: Vec<Value>,
    over: bool,
}

/// The state of the turn, folded from its beginning.
#[derive(Debug)]
struct State {
    reader: PartReader,
    plan: Plan,
    files: Map<String, Value>,
}

impl State {
    fn take_in(&mut self, event: &ChatEvent) {
        for part_event in self.reader.take_in(event) {
            self.plan.take_in(&part_event);
            match part_event {
                PartEvent::Wrote { path, v: 0, .. } => _ = self.files.remove(path.as_str()),
                PartEvent::Wrote { file, path, v } => {
                    self.files.insert(path.to_string(), json!({ "fileId": file, "v": v }));
                }
                _ => {}
            }
        }
    }

    fn value(&self) -> Value {
        json!({ "plan": self.plan.value(), "files": self.files })
    }
}

/// The frames of one event.
struct Out<'a> {
    number: u64,
    frames: &'a mut Vec<Frame>,
}

impl Out<'_> {
    fn push(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        self.frames.push(Frame { number: self.number, event: None, data });
    }
}

impl Events {
    /// The view of this part, under the client's own ids of the thread and the run.
    pub fn new(part: Part, thread: String, run: String) -> Self {
        let state = State { reader: PartReader::through(part), plan: Plan::default(), files: Map::new() };
        Self {
            thread,
            run,
            reader: PartReader::of(part),
            state,
            open: None,
            said: None,
            step: 0,
            answered: false,
            usage: Usage::default(),
            interrupts: Vec::new(),
            over: false,
        }
    }

    fn step(&self) -> Value {
        json!({ "stepName": format!("step {}", self.step) })
    }

    fn begin_step(&mut self, out: &mut Out<'_>) {
        if self.step > 0 && !std::mem::take(&mut self.answered) {
            return;
        }
        if self.step > 0 {
            out.push("STEP_FINISHED", self.step());
        }
        self.step += 1;
        out.push("STEP_STARTED", self.step());
    }

    fn write(&mut self, message: MessageId, is_text: bool, text: &str, out: &mut Out<'_>) {
        let id = id(message, is_text);
        if self.open != Some((message, is_text)) {
            self.close(out);
            self.begin_step(out);
            if is_text {
                self.said = Some(message);
                out.push("TEXT_MESSAGE_START", json!({ "messageId": id, "role": "assistant" }));
            } else {
                out.push("REASONING_START", json!({ "messageId": id }));
                out.push("REASONING_MESSAGE_START", json!({ "messageId": id, "role": "reasoning" }));
            }
            self.open = Some((message, is_text));
        }
        let kind = if is_text { "TEXT_MESSAGE_CONTENT" } else { "REASONING_MESSAGE_CONTENT" };
        out.push(kind, json!({ "messageId": id, "delta": text }));
    }

    fn close(&mut self, out: &mut Out<'_>) {
        let Some((message, is_text)) = self.open.take() else { return };
        let id = json!({ "messageId": id(message, is_text) });
        if is_text {
            return out.push("TEXT_MESSAGE_END", id);
        }
        out.push("REASONING_MESSAGE_END", id.clone());
        out.push("REASONING_END", id);
    }

    fn call(&mut self, call: CallId, tool: &str, args: &str, out: &mut Out<'_>) {
        self.close(out);
        self.begin_step(out);
        let mut start = json!({ "toolCallId": call, "toolCallName": tool });
        if let Some(message) = self.said {
            start["parentMessageId"] = json!(message);
        }
        out.push("TOOL_CALL_START", start);
        out.push("TOOL_CALL_ARGS", json!({ "toolCallId": call, "delta": args }));
        out.push("TOOL_CALL_END", json!({ "toolCallId": call }));
    }

    fn end(&mut self, end: &PartEnd, out: &mut Out<'_>) {
        self.over = true;
        self.close(out);
        if self.step > 0 {
            out.push("STEP_FINISHED", self.step());
        }
        let failure = match end {
            PartEnd::Waits | PartEnd::Stopped(_) => None,
            PartEnd::Done(StopReason::Error, error) => Some(error.as_ref().map_or_else(
                || json!({ "message": "the turn failed" }),
                |error| json!({ "message": error.message, "code": error.code }),
            )),
            PartEnd::Done(..) => None,
            PartEnd::Paused(reason) => Some(json!({ "message": reason, "code": "PAUSED" })),
            PartEnd::Deleted => Some(json!({ "message": "the chat was deleted", "code": "CANCELLED" })),
        };
        let usage = json!([{
            "inputTokens": self.usage.input_tokens, "outputTokens": self.usage.output_tokens,
            "cachedInputTokens": self.usage.cached_tokens,
        }]);
        if let Some(mut error) = failure {
            error["usage"] = usage;
            return out.push("RUN_ERROR", error);
        }
        let mut finished = json!({ "threadId": self.thread, "runId": self.run, "usage": usage });
        match end {
            // The client runs its function, and goes on by another run.
            PartEnd::Waits if self.interrupts.is_empty() => finished["outcome"] = json!({ "type": "success" }),
            PartEnd::Waits => finished["outcome"] = json!({ "type": "interrupt", "interrupts": self.interrupts }),
            PartEnd::Stopped(_) => finished["outcome"] = json!({ "type": "cancelled" }),
            PartEnd::Done(reason, _) => {
                finished["outcome"] = json!({ "type": "success" });
                finished["result"] = json!({ "stopReason": reason });
            }
            PartEnd::Paused(_) | PartEnd::Deleted => {}
        }
        out.push("RUN_FINISHED", finished);
    }

    fn show(&mut self, part_event: &PartEvent<'_>, out: &mut Out<'_>) {
        match part_event {
            PartEvent::Began => {
                let began = json!({ "threadId": self.thread, "runId": self.run, "protocolVersion": "1.0" });
                out.push("RUN_STARTED", began);
                out.push("STATE_SNAPSHOT", json!({ "snapshot": self.state.value() }));
            }
            PartEvent::Thought(message, text) => self.write(*message, false, text, out),
            PartEvent::Said(message, text) => self.write(*message, true, text, out),
            PartEvent::Called { again: true, .. } => self.close(out),
            PartEvent::Called { call, tool, args, .. } => self.call(*call, tool, args, out),
            // The client has the result of its own function.
            PartEvent::Answered { tool, .. } if own(tool).is_some() => self.answered = true,
            PartEvent::Answered { call, output, .. } => {
                self.close(out);
                // A result belongs to the step of its call; the first of a run may be that of an earlier one.
                if self.step == 0 {
                    self.begin_step(out);
                }
                self.answered = true;
                let message = format!("{call}-result");
                let result = json!({ "messageId": message, "toolCallId": call, "content": output, "role": "tool" });
                out.push("TOOL_CALL_RESULT", result);
            }
            PartEvent::Wrote { path, .. } => {
                let pointer = format!("/files/{}", path.as_str().replace('~', "~0").replace('/', "~1"));
                let change = match self.state.files.get(path.as_str()) {
                    Some(file) => json!({ "op": "add", "path": pointer, "value": file }),
                    None => json!({ "op": "remove", "path": pointer }),
                };
                out.push("STATE_DELTA", json!({ "delta": [change] }));
            }
            PartEvent::Step { .. } => {
                let change = json!({ "op": "replace", "path": "/plan", "value": self.state.plan.value() });
                out.push("STATE_DELTA", json!({ "delta": [change] }));
            }
            PartEvent::Used(usage) => self.usage = *usage,
            PartEvent::Asked { id, call, questions } => {
                self.call(*call, ASK, &json!({ "questions": questions }).to_string(), out);
                let message = questions.iter().map(|one| one.question.as_str()).collect::<Vec<_>>().join("\n");
                self.interrupts = vec![json!({
                    "id": id, "reason": "question", "message": message, "toolCallId": call,
                    "responseSchema": schema(questions), "metadata": { "questions": questions },
                })];
            }
            PartEvent::Handed { call, name, args } => self.call(*call, name, args, out),
            PartEvent::Permission { id, call, tool, args, reason } => {
                self.call(*call, tool, args, out);
                let schema = json!({
                    "type": "object", "properties": { "approved": { "type": "boolean" }, "reason": { "type": "string" } },
                    "required": ["approved"],
                });
                self.interrupts = vec![json!({
                    "id": id, "reason": "permission", "message": reason, "toolCallId": call, "responseSchema": schema,
                    "metadata": { "tool": tool, "arguments": parsed(args) },
                })];
            }
            PartEvent::Ended(end) => self.end(end, out),
        }
    }
}

/// The schema of the answers to some questions, by their names.
fn schema(questions: &[Question]) -> Value {
    let properties: Map<String, Value> = questions.iter().map(|one| (one.name.clone(), one.schema.clone())).collect();
    let names: Vec<&str> = questions.iter().map(|one| one.name.as_str()).collect();
    json!({ "type": "object", "properties": properties, "required": names })
}

/// The id of a text; the reasoning of a message has one of its own.
fn id(message: MessageId, is_text: bool) -> String {
    if is_text { message.to_string() } else { format!("{message}-reasoning") }
}

impl Projection for Events {
    type Event = ChatEvent;

    fn take_in(&mut self, number: u64, _: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        let was_there = match event {
            ChatEvent::FileUpdated { path, .. } => self.state.files.contains_key(path.as_str()),
            _ => false,
        };
        self.state.take_in(event);
        let mut out = Out { number, frames };
        for part_event in self.reader.take_in(event) {
            // A removal of what the state never had is no valid patch.
            if !was_there && matches!(part_event, PartEvent::Wrote { v: 0, .. }) {
                continue;
            }
            self.show(&part_event, &mut out);
        }
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn ends_with_its_stream(&self) -> bool {
        true
    }
}
