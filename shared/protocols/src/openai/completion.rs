//! A part of a turn as a chat completion: its chunks, or the completion as a whole.

use super::{AskedId, PERMISSION, failure};
use crate::{Frame, Part, PartEnd, PartEvent, PartReader, Projection, part::ASK};
use domain::{ChatEvent, ChatId, StopReason, Timestamp, Usage};
use serde_json::{Value, json};

/// The view of one part as a completion.
#[derive(Debug)]
pub struct Completion {
    chat: ChatId,
    part: Part,
    reader: PartReader,
    model: String,
    /// When the part began; before that, when it was asked for.
    created: Timestamp,
    /// Whether its chunks are sent, and not the whole at its end.
    streamed: bool,
    /// Whether the last chunk has the usage.
    with_usage: bool,
    content: String,
    reasoning: String,
    calls: Vec<Value>,
    usage: Usage,
}

impl Completion {
    /// The view of this part as chunks, or as one completion at its end.
    pub fn new(chat: ChatId, part: Part, model: String, created: Timestamp, streamed: bool, with_usage: bool) -> Self {
        Self {
            chat,
            part,
            reader: PartReader::of(part),
            model,
            created,
            streamed,
            with_usage,
            content: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            usage: Usage::default(),
        }
    }

    fn object(&self, kind: &str, choices: Value) -> Value {
        let Part { turn, number } = self.part;
        let id = format!("chatcmpl-{}{}_{number}", self.chat.0.simple(), turn.0.simple());
        let created = self.created.as_millis() / 1000;
        json!({ "id": id, "object": kind, "created": created, "model": self.model, "choices": choices })
    }

    fn chunk(&self, number: u64, delta: Value, reason: Value, frames: &mut Vec<Frame>) {
        if self.streamed {
            let choices = json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason }]);
            frames.push(Frame { number, event: None, data: self.object("chat.completion.chunk", choices) });
        }
    }

    fn usage(&self) -> Value {
        let Usage { input_tokens, output_tokens, cached_tokens, .. } = self.usage;
        json!({
            "prompt_tokens": input_tokens, "completion_tokens": output_tokens, "total_tokens": input_tokens + output_tokens,
            "prompt_tokens_details": { "cached_tokens": cached_tokens },
        })
    }

    /// A call of a function that hands the decision to the caller.
    fn hand_over(&mut self, number: u64, id: uuid::Uuid, name: &str, args: String, frames: &mut Vec<Frame>) {
        let id = AskedId { chat: self.chat, id }.as_call();
        let call = json!({ "id": id, "type": "function", "function": { "name": name, "arguments": args } });
        let mut delta = call.clone();
        delta["index"] = json!(self.calls.len());
        self.calls.push(call);
        self.chunk(number, json!({ "tool_calls": [delta] }), Value::Null, frames);
    }

    fn end(&mut self, number: u64, end: PartEnd, frames: &mut Vec<Frame>) {
        if let Some(error) = failure(&end) {
            return frames.push(Frame { number, event: None, data: json!({ "error": error }) });
        }
        let reason = match end {
            PartEnd::Waits => "tool_calls",
            PartEnd::Done(StopReason::EndTurn, _) | PartEnd::Stopped(_) => "stop",
            PartEnd::Done(StopReason::Refusal, _) => "content_filter",
            _ => "length",
        };
        if self.streamed {
            self.chunk(number, json!({}), json!(reason), frames);
            if self.with_usage {
                let mut last = self.object("chat.completion.chunk", json!([]));
                last["usage"] = self.usage();
                frames.push(Frame { number, event: None, data: last });
            }
            return;
        }
        let content = if self.content.is_empty() { Value::Null } else { json!(self.content) };
        let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        if !self.calls.is_empty() {
            message["tool_calls"] = json!(self.calls);
        }
        let choices = json!([{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason }]);
        let mut whole = self.object("chat.completion", choices);
        whole["usage"] = self.usage();
        frames.push(Frame { number, event: None, data: whole });
    }
}

impl Projection for Completion {
    type Event = ChatEvent;

    fn take_in(&mut self, number: u64, at: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        for part_event in self.reader.take_in(event) {
            match part_event {
                PartEvent::Began => {
                    self.created = at;
                    self.chunk(number, json!({ "role": "assistant", "content": "" }), Value::Null, frames);
                }
                PartEvent::Thought(_, text) => {
                    self.chunk(number, json!({ "reasoning_content": text }), Value::Null, frames);
                    self.reasoning.push_str(&text);
                }
                PartEvent::Said(_, text) => {
                    self.chunk(number, json!({ "content": text }), Value::Null, frames);
                    self.content.push_str(&text);
                }
                // An empty line stands between two messages of a turn.
                PartEvent::Called { .. } if !self.content.is_empty() && !self.content.ends_with("\n\n") => {
                    self.chunk(number, json!({ "content": "\n\n" }), Value::Null, frames);
                    self.content.push_str("\n\n");
                }
                PartEvent::Used(usage) => self.usage = usage,
                PartEvent::Asked { id, questions, .. } => {
                    self.hand_over(number, id.0, ASK, json!({ "questions": questions }).to_string(), frames);
                }
                PartEvent::Handed { call, name, args } => self.hand_over(number, call.0, name, args.to_owned(), frames),
                PartEvent::Permission { id, tool, args, reason, .. } => {
                    let arguments = json!({ "tool": tool, "arguments": args, "reason": reason });
                    self.hand_over(number, id.0, PERMISSION, arguments.to_string(), frames);
                }
                PartEvent::Ended(end) => self.end(number, end, frames),
                // The API has no place for them.
                PartEvent::Called { .. }
                | PartEvent::Answered { .. }
                | PartEvent::Wrote { .. }
                | PartEvent::Step { .. } => {}
            }
        }
    }

    fn is_over(&self) -> bool {
        self.reader.is_over()
    }

    fn ends_with_its_stream(&self) -> bool {
        self.streamed
    }
}
