//! The chunks of an answer.

use crate::{
    Frame, Part, PartEnd, PartEvent, PartReader, Projection,
    part::ASK,
    plan::{Plan, parsed},
};
use domain::{CallId, ChatEvent, ChatId, MessageId, StopReason, Timestamp};
use serde_json::{Value, json};

/// The view of a part, or of a turn up to the end of a part, as chunks.
#[derive(Debug)]
pub struct Chunks {
    chat: ChatId,
    part: Part,
    reader: PartReader,
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
        Self::with(chat, part, PartReader::of(part))
    }

    /// The view of this part and those of its turn before it: for a client that comes back, and builds the message anew.
    pub fn through(chat: ChatId, part: Part) -> Self {
        Self::with(chat, part, PartReader::through(part))
    }

    fn with(chat: ChatId, part: Part, reader: PartReader) -> Self {
        Self { chat, part, reader, plan: Plan::default(), open: None, answered: false, over: false }
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

    /// A call of a tool; one that the server executes is none of the client's business. The protocol has no place for the reason why a person
    /// has to allow it (`why`) but the metadata of the call, which the client's part has as `callProviderMetadata`.
    fn call(&mut self, (call, tool): (CallId, &str), input: &Value, executed: bool, why: &str, out: &mut Out<'_>) {
        self.close(out);
        let mut begun = json!({ "type": "tool-input-start", "toolCallId": call, "toolName": tool, "dynamic": true });
        let mut whole = begun.clone();
        (whole["type"], whole["input"]) = (json!("tool-input-available"), input.clone());
        if executed {
            (begun["providerExecuted"], whole["providerExecuted"]) = (json!(true), json!(true));
        }
        if !why.is_empty() {
            whole["providerMetadata"] = json!({ "buildscale": { "reason": why } });
        }
        out.push(begun);
        out.push(whole);
    }

    fn end(&mut self, end: &PartEnd, out: &mut Out<'_>) {
        self.over = true;
        self.close(out);
        let failure = match end {
            PartEnd::Waits | PartEnd::Stopped(_) => None,
            PartEnd::Done(StopReason::Error, error) => Some(error.as_ref().map_or_else(
                || "the turn failed".to_owned(),
                |error| match &error.hint {
                    Some(hint) => format!("{} ({hint})", error.message),
                    None => error.message.clone(),
                },
            )),
            PartEnd::Done(..) => None,
            PartEnd::Paused(reason) => Some(format!("the chat is paused: {reason}")),
            PartEnd::Deleted => Some("the chat was deleted".to_owned()),
        };
        if let Some(error) = failure {
            return out.push(json!({ "type": "error", "errorText": error }));
        }
        if let PartEnd::Stopped(reason) = end {
            return out.push(json!({ "type": "abort", "reason": reason }));
        }
        out.push(json!({ "type": "finish-step" }));
        let reason = match end {
            PartEnd::Waits => "tool-calls",
            PartEnd::Done(StopReason::EndTurn, _) => "stop",
            PartEnd::Done(StopReason::Refusal, _) => "content-filter",
            _ => "length",
        };
        out.push(json!({ "type": "finish", "finishReason": reason }));
    }

    fn show(&mut self, part_event: &PartEvent<'_>, out: &mut Out<'_>) {
        self.plan.take_in(part_event);
        match part_event {
            PartEvent::Began => {
                let about = json!({ "chatId": self.chat, "turnId": self.part.turn });
                out.push(json!({ "type": "start", "messageId": self.part.turn, "messageMetadata": about }));
                out.push(json!({ "type": "start-step" }));
            }
            PartEvent::Thought(message, text) => self.write(*message, false, text, out),
            PartEvent::Said(message, text) => self.write(*message, true, text, out),
            // The part of the client goes on by its output.
            PartEvent::Called { again: true, .. } => self.close(out),
            PartEvent::Called { call, tool, args, .. } => self.call((*call, tool), &parsed(args), true, "", out),
            PartEvent::Answered { call, tool, output, success } => {
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
            PartEvent::Wrote { file, path, v } => {
                out.push(json!({ "type": "data-file", "id": file, "data": { "fileId": file, "path": path, "v": v } }));
            }
            PartEvent::Step { .. } => {
                let plan = self.plan.value();
                out.push(json!({ "type": "data-plan", "id": plan["path"], "data": plan }));
            }
            PartEvent::Used(usage) => out.push(json!({ "type": "data-usage", "id": "usage", "data": usage })),
            PartEvent::Asked { call, questions, .. } => {
                self.call((*call, ASK), &json!({ "questions": questions }), false, "", out);
            }
            PartEvent::Handed { call, name, args } => self.call((*call, name), &parsed(args), false, "", out),
            PartEvent::Permission { id, call, tool, args, reason } => {
                self.call((*call, tool), &parsed(args), false, reason, out);
                out.push(json!({ "type": "tool-approval-request", "approvalId": id, "toolCallId": call }));
            }
            PartEvent::Ended(end) => self.end(end, out),
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
        for part_event in self.reader.take_in(event) {
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::from_value;

    #[test]
    fn a_request_for_permission_says_why_it_is_asked_and_its_call_why_it_was_declined() {
        let id = |n: u128| uuid::Uuid::from_u128(n).to_string();
        let (turn, permission, call, at) = (id(1), id(2), id(3), "2026-11-25T18:08:07.638Z");
        let limits = json!({ "max_steps": 1, "max_tokens": 1, "max_wall_ms": 1, "max_cost_usd": 1.0 });
        let events: Vec<ChatEvent> = from_value(json!([
            { "type": "turn_started", "turn_id": turn, "attempt": 1, "asked_at": at, "limits": limits },
            {
                "type": "permission_required", "permission_id": permission, "call_id": call, "category": "file", "tool": "write",
                "args": "{}", "reason": "it changes an agent", "at": at, "expires_at": at,
            },
            {
                "type": "permission_resolved", "permission_id": permission, "outcome": "declined", "by": "user:ann",
                "reason": "no poets", "at": at,
            },
            {
                "type": "observed", "call_id": call, "tool": "write", "success": false, "truncated": false, "seen": [], "at": at,
                "output": "not permitted: a person declined: no poets",
            },
        ]))
        .unwrap();
        let part = Part { turn: turn.parse().unwrap(), number: 1 };
        let mut chunks = Chunks::through(ChatId(uuid::Uuid::from_u128(4)), part);
        let mut frames = Vec::new();
        for (number, event) in (1..).zip(&events) {
            chunks.take_in(number, at.parse().unwrap(), event, &mut frames);
        }
        let shown: Vec<Value> = frames.into_iter().skip(3).map(|frame| frame.data).collect();
        let why = json!({ "buildscale": { "reason": "it changes an agent" } });
        let asks = json!({
            "type": "tool-input-available", "toolCallId": call, "toolName": "write", "dynamic": true, "input": {},
            "providerMetadata": why,
        });
        let declined = json!({
            "type": "tool-output-error", "errorText": "not permitted: a person declined: no poets", "toolCallId": call,
            "dynamic": true, "providerExecuted": true,
        });
        let request = json!({ "type": "tool-approval-request", "approvalId": permission, "toolCallId": call });
        assert_eq!(shown, [asks, request, declined]);
    }
}
