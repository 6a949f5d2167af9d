//! A part of a turn as a response: its events, and the response as a whole.

use super::{AskedId, ItemId, ResponseId, failure, format, incomplete};
use crate::{Frame, PartEnd, PartEvent, PartReader, Projection, part::ASK};
use domain::{
    AnswerFormat, CLIENT_PREFIX, CallId, ChatEvent, Labels, MessageId, ModelSettings, StopReason, Timestamp, Usage,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most frames that follow from one event; numbers of frames are this far apart from event to event.
const MOST: u64 = 32;

/// The frames that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartingAfter {
    /// Those after the one with this `sequence_number`; all without one.
    Frame(Option<u64>),
    /// The whole response alone, at its end.
    Whole,
}

/// The view of one part as a response.
#[derive(Debug)]
pub struct Response {
    id: ResponseId,
    shows: StartingAfter,
    reader: PartReader,
    model: String,
    /// When the part began; before that, when it was asked for.
    created: Timestamp,
    background: bool,
    /// The settings with which the model is asked; once the part is over, those that it had then.
    settings: ModelSettings,
    format: Value,
    /// The labels of its chat or task.
    labels: Labels,
    /// Whether the log is in the turn of the response.
    is_here: bool,
    /// The response before it.
    previous: Option<String>,
    /// The number of the event with which the part begins.
    base: Option<u64>,
    status: &'static str,
    output: Vec<Value>,
    open: Option<Open>,
    calls: BTreeMap<CallId, usize>,
    usage: Usage,
    error: Value,
    reason: Value,
}

/// The item that is being written.
#[derive(Debug)]
struct Open {
    message: MessageId,
    is_text: bool,
    index: usize,
    text: String,
}

/// The frames of one event.
struct Out<'a> {
    number: u64,
    base: u64,
    made: u64,
    shows: StartingAfter,
    frames: &'a mut Vec<Frame>,
}

impl Out<'_> {
    fn push(&mut self, kind: &'static str, mut data: Value) {
        // A part that was cut before it began has no base.
        let sequence = (self.number - self.base.min(self.number)) * MOST + self.made;
        self.made += 1;
        let is_sent = match self.shows {
            StartingAfter::Frame(after) => after.is_none_or(|after| sequence > after),
            StartingAfter::Whole => false,
        };
        if is_sent {
            data["type"] = json!(kind);
            data["sequence_number"] = json!(sequence);
            self.frames.push(Frame { number: self.number, event: Some(kind), data });
        }
    }
}

impl Response {
    /// The view of this part. `created` is the time of the request, as far as it is known, and `model` the persona.
    pub fn new(id: ResponseId, model: String, created: Timestamp, shows: StartingAfter) -> Self {
        let previous = id.part.number.checked_sub(1);
        Self {
            id,
            shows,
            reader: PartReader::of(id.part),
            model,
            created,
            background: false,
            settings: ModelSettings::default(),
            format: format::format_json(None),
            labels: Labels::default(),
            is_here: false,
            previous: previous.map(|number| ResponseId { part: crate::Part { number, ..id.part }, ..id }.to_string()),
            base: None,
            status: "queued",
            output: Vec::new(),
            open: None,
            calls: BTreeMap::new(),
            usage: Usage::default(),
            error: Value::Null,
            reason: Value::Null,
        }
    }

    /// The same for a response that its client polls.
    #[must_use]
    pub fn in_background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// The same after another response of the chat.
    #[must_use]
    pub fn after(mut self, previous: Option<ResponseId>) -> Self {
        self.previous = previous.map(|id| id.to_string()).or(self.previous);
        self
    }

    /// The same in a chat whose model has these settings now. Those that the log tells go before them.
    #[must_use]
    pub fn asked_with(mut self, settings: ModelSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The same in a chat or a task that has these labels now.
    #[must_use]
    pub fn labelled(mut self, labels: Labels) -> Self {
        self.labels = labels;
        self
    }

    /// The same with an answer of this format.
    #[must_use]
    pub fn in_format(mut self, format: Option<&AnswerFormat>) -> Self {
        self.format = format::format_json(format);
        self
    }

    /// Whether the log, as far as it was taken in, has the beginning of the part.
    pub fn has_begun(&self) -> bool {
        self.base.is_some()
    }

    /// The response as far as the log was taken in.
    pub fn whole(&self) -> Value {
        let Usage { input_tokens, output_tokens, cached_tokens, .. } = self.usage;
        let usage = json!({
            "input_tokens": input_tokens, "input_tokens_details": { "cached_tokens": cached_tokens },
            "output_tokens": output_tokens, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": input_tokens + output_tokens,
        });
        let ModelSettings { temperature, top_p, max_output_tokens } = self.settings;
        json!({
            "id": self.id.to_string(), "object": "response", "created_at": self.created.as_millis() / 1000,
            "status": self.status, "background": self.background, "error": self.error, "incomplete_details": self.reason,
            "instructions": null, "max_output_tokens": max_output_tokens, "model": self.model, "output": self.output,
            "parallel_tool_calls": true, "previous_response_id": self.previous,
            "conversation": { "id": format!("conv_{}", self.id.chat.0.simple()) },
            "reasoning": { "effort": null, "summary": null }, "store": true, "temperature": temperature,
            "text": { "format": self.format }, "tool_choice": "auto", "tools": [], "top_p": top_p,
            "truncation": "disabled", "usage": if self.reader.is_over() { usage } else { Value::Null }, "metadata": self.labels,
        })
    }

    fn asked(&self, id: uuid::Uuid) -> AskedId {
        AskedId { chat: self.id.chat, id }
    }

    fn item(&self, kind: &str, id: uuid::Uuid) -> String {
        ItemId { response: self.id, id }.as_item(kind)
    }

    fn write(&mut self, message: MessageId, is_text: bool, text: &str, out: &mut Out<'_>) {
        if self.open.as_ref().is_none_or(|open| (open.message, open.is_text) != (message, is_text)) {
            self.close("completed", out);
            let index = self.output.len();
            let item = match is_text {
                true => json!({
                    "id": self.item("msg", message.0), "type": "message", "status": "in_progress", "role": "assistant",
                    "content": [],
                }),
                false => json!({
                    "id": self.item("rs", message.0), "type": "reasoning", "status": "in_progress", "summary": [],
                    "content": [],
                }),
            };
            out.push("response.output_item.added", json!({ "output_index": index, "item": item }));
            let at = json!({
                "item_id": item["id"], "output_index": index, "content_index": 0, "part": content(is_text, ""),
            });
            out.push("response.content_part.added", at);
            self.output.push(item);
            self.open = Some(Open { message, is_text, index, text: String::new() });
        }
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let mut data = place(&self.output, open);
        data["delta"] = json!(text);
        if is_text {
            data["logprobs"] = json!([]);
        }
        out.push(if is_text { "response.output_text.delta" } else { "response.reasoning_text.delta" }, data);
    }

    /// Ends the item that is being written.
    fn close(&mut self, status: &str, out: &mut Out<'_>) {
        let Some(open) = self.open.take() else { return };
        let mut done = place(&self.output, &open);
        let mut part = done.clone();
        part["part"] = content(open.is_text, &open.text);
        done["text"] = json!(open.text);
        if open.is_text {
            done["logprobs"] = json!([]);
        }
        out.push(if open.is_text { "response.output_text.done" } else { "response.reasoning_text.done" }, done);
        let Some(item) = self.output.get_mut(open.index) else { return };
        item["content"] = json!([part["part"]]);
        item["status"] = json!(status);
        out.push("response.content_part.done", part);
        out.push("response.output_item.done", json!({ "output_index": open.index, "item": item }));
    }

    /// Adds an item that is complete as soon as it is there.
    fn add(&mut self, item: Value, out: &mut Out<'_>) {
        self.close("completed", out);
        let data = json!({ "output_index": self.output.len(), "item": item });
        out.push("response.output_item.added", data.clone());
        out.push("response.output_item.done", data);
        self.output.push(item);
    }

    fn call(&mut self, call: CallId, tool: &str, args: &str, out: &mut Out<'_>) -> usize {
        self.close("completed", out);
        let index = self.output.len();
        let item = json!({
            "id": self.item("mcp", call.0), "type": "mcp_call", "status": "in_progress", "name": tool, "arguments": args,
            "server_label": "buildscale", "output": null, "error": null,
        });
        let at = json!({ "output_index": index, "item_id": item["id"] });
        out.push("response.output_item.added", json!({ "output_index": index, "item": item }));
        out.push("response.mcp_call.in_progress", at.clone());
        let mut arguments = at;
        arguments["arguments"] = json!(args);
        out.push("response.mcp_call_arguments.done", arguments);
        self.output.push(item);
        self.calls.insert(call, index);
        index
    }

    fn answer(&mut self, call: CallId, tool: &str, output: &str, success: bool, out: &mut Out<'_>) {
        // Questions have their answers as inputs.
        if tool == ASK || tool.starts_with(CLIENT_PREFIX) {
            return;
        }
        let index = match self.calls.get(&call) {
            Some(index) => *index,
            // It began in an earlier part.
            None => self.call(call, tool, "{}", out),
        };
        let Some(item) = self.output.get_mut(index) else { return };
        item["status"] = json!(if success { "completed" } else { "failed" });
        item[if success { "output" } else { "error" }] = json!(output);
        let at = json!({ "output_index": index, "item_id": item["id"] });
        out.push(if success { "response.mcp_call.completed" } else { "response.mcp_call.failed" }, at);
        out.push("response.output_item.done", json!({ "output_index": index, "item": item }));
    }

    fn end(&mut self, end: &PartEnd) -> &'static str {
        if let Some(error) = failure(end) {
            (self.status, self.error) = ("failed", error);
            return "response.failed";
        }
        let (status, reason) = match end {
            PartEnd::Stopped(reason) => ("cancelled", Some(reason.as_str())),
            PartEnd::Done(reason, _) => ("incomplete", incomplete(*reason)),
            PartEnd::Waits | PartEnd::Paused(_) | PartEnd::Deleted => ("completed", None),
        };
        let Some(reason) = reason else {
            self.status = "completed";
            return "response.completed";
        };
        (self.status, self.reason) = (status, json!({ "reason": reason }));
        "response.incomplete"
    }

    fn show(&mut self, part_event: PartEvent<'_>, out: &mut Out<'_>) {
        match part_event {
            PartEvent::Began => {
                (self.status, self.base, out.base) = ("in_progress", Some(out.number), out.number);
                out.push("response.created", json!({ "response": self.whole() }));
                out.push("response.in_progress", json!({ "response": self.whole() }));
            }
            PartEvent::Thought(message, text) => self.write(message, false, &text, out),
            PartEvent::Said(message, text) => self.write(message, true, &text, out),
            PartEvent::Called { call, tool, args, .. } => _ = self.call(call, tool, args, out),
            PartEvent::Answered { call, tool, output, success } => self.answer(call, tool, output, success, out),
            PartEvent::Used(usage) => self.usage = usage,
            PartEvent::Asked { id, questions, .. } => {
                let asked = self.asked(id.0);
                let item = json!({
                    "id": self.item("fc", id.0), "type": "function_call", "status": "completed", "name": ASK,
                    "call_id": asked.as_call(), "arguments": json!({ "questions": questions }).to_string(),
                });
                self.add(item, out);
            }
            PartEvent::Handed { call, name, args } => {
                let item = json!({
                    "id": self.item("fc", call.0), "type": "function_call", "status": "completed", "name": name,
                    "call_id": self.asked(call.0).as_call(), "arguments": args,
                });
                self.add(item, out);
            }
            PartEvent::Permission { id, tool, args, .. } => {
                let item = json!({
                    "id": self.asked(id.0).as_approval(), "type": "mcp_approval_request", "name": tool, "arguments": args,
                    "server_label": "buildscale",
                });
                self.add(item, out);
            }
            // The API has no place for them.
            PartEvent::Wrote { .. } | PartEvent::Step { .. } => {}
            PartEvent::Ended(end) => {
                let status = if matches!(end, PartEnd::Done(StopReason::EndTurn, _) | PartEnd::Waits) {
                    "completed"
                } else {
                    "incomplete"
                };
                self.close(status, out);
                let kind = self.end(&end);
                out.push(kind, json!({ "response": self.whole() }));
                if out.shows == StartingAfter::Whole {
                    out.frames.push(Frame { number: out.number, event: None, data: self.whole() });
                }
            }
        }
    }
}

/// The place of the content that is being written.
fn place(output: &[Value], open: &Open) -> Value {
    let id = output.get(open.index).map_or(&Value::Null, |item| &item["id"]);
    json!({ "item_id": id, "output_index": open.index, "content_index": 0 })
}

fn content(is_text: bool, text: &str) -> Value {
    match is_text {
        true => json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] }),
        false => json!({ "type": "reasoning_text", "text": text }),
    }
}

impl Projection for Response {
    type Event = ChatEvent;

    fn take_in(&mut self, number: u64, at: Timestamp, event: &ChatEvent, frames: &mut Vec<Frame>) {
        if let ChatEvent::Created { config } | ChatEvent::Configured { config } = event
            && !self.reader.is_over()
        {
            self.settings = config.model_settings;
        }
        match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } if *turn_id == self.id.part.turn => self.is_here = true,
            ChatEvent::FormatAsked { format } if self.is_here => self.format = format::format_json(Some(format)),
            ChatEvent::Done { .. } | ChatEvent::Stopped { .. } => self.is_here = false,
            _ => {}
        }
        let base = self.base.unwrap_or(number);
        let mut out = Out { number, base, made: 0, shows: self.shows, frames };
        for part_event in self.reader.take_in(event) {
            if part_event == PartEvent::Began {
                self.created = at;
            }
            self.show(part_event, &mut out);
        }
    }

    fn is_over(&self) -> bool {
        self.reader.is_over()
    }

    fn ends_with_its_stream(&self) -> bool {
        matches!(self.shows, StartingAfter::Frame(_))
    }
}
