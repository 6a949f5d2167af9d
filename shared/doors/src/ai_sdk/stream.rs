//! The chunks of an answer.

use crate::{
    Beat, End, Frame, Part, Projection, Watch,
    part::ASK,
    plan::{Plan, parsed},
};
use domain::{ChatEvent, ChatId, MessageId, StopReason, Timestamp};
use serde_json::{Value, json};

/// The view of a part, or of a turn up to the end of a part, as chunks.
#[derive(Debug)]
pub struct Chunks {
    chat: ChatId,
    part: Part,
    watch: Watch,
    plan: Plan,
    /// The text that is being written: reasoning, or words.
    open: Option<(MessageId, bool)>,
    /// Whether the step that is open has an answer of a tool, so that the next message begins another.
    answered: bool,
    over: bool,
}

/// The frames of one event.
struct Out<'a> {
    number: u64,
    frames: &'a mut Vec<Frame>,
}

impl Out<'_> {
    fn push(&mut self, data: Value) {
        self.frames.push(Frame { number: self.number, event: None, data });
    }
}

impl Chunks {
    /// The view of this part alone: the answer to a request.
    pub fn of(chat: ChatId, part: Part) -> Self {
        Self::with(chat, part, Watch::of(part))
    }

    /// The view of this part and those of its turn before it: for a client that comes back, and builds the message anew.
    pub fn through(chat: ChatId, part: Part) -> Self {
        Self::with(chat, part, Watch::through(part))
    }

    fn with(chat: ChatId, part: Part, watch: Watch) -> Self {
        Self { chat, part, watch, plan: Plan::default(), open: None, answered: false, over: false }
    }

    fn write(&mut self, message: MessageId, is_text: bool, text: &str, out: &mut Out<'_>) {
        let kind = if is_text { "text" } else { "reasoning" };
        let id = id(message, is_text);
        if self.open != Some((message, is_text)) {
            self.close(out);
            if std::mem::take(&mut self.answered) {
                out.push(json!({ "type": "finish-step" }));
                out.push(json!({ "type": "start-step" }));
            }
            out.push(json!({ "type": format!("{kind}-start"), "id": id }));
            self.open = Some((message, is_text));
        }
        out.push(json!({ "type": format!("{kind}-delta"), "id": id, "delta": text }));
    }

    fn close(&mut self, out: &mut Out<'_>) {
        if let Some((message, is_text)) = self.open.take() {
            let kind = if is_text { "text" } else { "reasoning" };
            out.push(json!({ "type": format!("{kind}-end"), "id": id(message, is_text) }));
        }
    }

    /// A call of a tool; one that the server executes is none of the client's business.
    fn call(&mut self, call: domain::CallId, tool: &str, input: &Value, executed: bool, out: &mut Out<'_>) {
        self.close(out);
        for (kind, input) in [("tool-input-start", None), ("tool-input-available", Some(input))] {
            let mut chunk = json!({ "type": kind, "toolCallId": call, "toolName": tool, "dynamic": true });
            if let Some(input) = input {
                chunk["input"] = input.clone();
            }
            if executed {
                chunk["providerExecuted"] = json!(true);
            }
            out.push(chunk);
        }
    }

    fn end(&mut self, end: &End, out: &mut Out<'_>) {
        self.over = true;
        self.close(out);
        let failure = match end {
            End::Waits | End::Stopped(_) => None,
            End::Done(StopReason::Error, error) => Some(error.as_ref().map_or_else(
                || "the turn failed".to_owned(),
                |error| match &error.hint {
                    Some(hint) => format!("{} ({hint})", error.message),
                    None => error.message.clone(),
                },
            )),
            End::Done(..) => None,
            End::Paused(reason) => Some(format!("the chat is paused: {reason}")),
            End::Deleted => Some("the chat was deleted".to_owned()),
        };
        if let Some(error) = failure {
            return out.push(json!({ "type": "error", "errorText": error }));
        }
        if let End::Stopped(reason) = end {
            return out.push(json!({ "type": "abort", "reason": reason }));
        }
        out.push(json!({ "type": "finish-step" }));
        let reason = match end {
            End::Waits => "tool-calls",
            End::Done(StopReason::EndTurn, _) => "stop",
            End::Done(StopReason::Refusal, _) => "content-filter",
            _ => "length",
        };
        out.push(json!({ "type": "finish", "finishReason": reason }));
    }

    fn show(&mut self, beat: &Beat<'_>, out: &mut Out<'_>) {
        self.plan.take_in(beat);
        match beat {
            Beat::Began => {
                let about = json!({ "chatId": self.chat, "turnId": self.part.turn });
                out.push(json!({ "type": "start", "messageId": self.part.turn, "messageMetadata": about }));
                out.push(json!({ "type": "start-step" }));
            }
            Beat::Thought(message, text) => self.write(*message, false, text, out),
            Beat::Said(message, text) => self.write(*message, true, text, out),
            // The part of the client goes on by its output.
            Beat::Called { again: true, .. } => self.close(out),
            Beat::Called { call, tool, args, .. } => self.call(*call, tool, &parsed(args), true, out),
            Beat::Answered { call, tool, output, success } => {
                self.close(out);
                self.answered = true;
                let mut chunk = match success {
                    true => json!({ "type": "tool-output-available", "output": parsed(output) }),
                    false => json!({ "type": "tool-output-error", "errorText": output }),
                };
                (chunk["toolCallId"], chunk["dynamic"]) = (json!(call), json!(true));
                if *tool != ASK {
                    chunk["providerExecuted"] = json!(true);
                }
                out.push(chunk);
            }
            Beat::Wrote { file, path, v } => {
                out.push(json!({ "type": "data-file", "id": file, "data": { "fileId": file, "path": path, "v": v } }));
            }
            Beat::Step { .. } => {
                let plan = self.plan.value();
                out.push(json!({ "type": "data-plan", "id": plan["path"], "data": plan }));
            }
            Beat::Used(usage) => out.push(json!({ "type": "data-usage", "id": "usage", "data": usage })),
            Beat::Asked { call, questions, .. } => {
                self.call(*call, ASK, &json!({ "questions": questions }), false, out);
            }
            Beat::Handed { call, name, args } => self.call(*call, name, &parsed(args), false, out),
            Beat::Permission { id, call, tool, args, .. } => {
                self.call(*call, tool, &parsed(args), false, out);
                out.push(json!({ "type": "tool-approval-request", "approvalId": id, "toolCallId": call }));
            }
            Beat::Ended(end) => self.end(end, out),
        }
    }
}

/// The id of a text; the reasoning of a message has one of its own.
fn id(message: MessageId, is_text: bool) -> String {
    if is_text { message.to_string() } else { format!("{message}-reasoning") }
}

impl Projection for Chunks {
    type Event = ChatEvent;

    fn take_in(&mut self, number: u64, _: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        let mut out = Out { number, frames };
        for beat in self.watch.take_in(event) {
            self.show(&beat, &mut out);
        }
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
