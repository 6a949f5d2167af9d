//! Turns of chats as spans: one span per turn, per call of a model and per call of a tool, made of the events of the turn alone. The same
//! events make the same spans, so a turn can be sent again at any time.
//!
//! Contents of messages are left out unless the configuration includes them.

use super::{
    attributes::{Attributes, provider_name},
    spans::nanos,
};
use domain::{
    ChatConfig, ChatEvent, Code, Error, Message, StopReason, Timestamp, TraceContext, TurnId, Usage,
    event::RetryWait,
    trace::{node_span, span_id},
};
use serde_json::{Value, json};
use std::sync::Arc;

/// OTLP's numbers.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const OK: u8 = 1;
const ERROR: u8 = 2;
/// The `error.type` of an attempt whose process died.
const INTERRUPTED: &str = "interrupted";

/// A turn that has ended.
#[derive(Clone, Debug)]
pub struct TurnLog {
    /// The chat.
    pub config: Arc<ChatConfig>,
    /// The model of chats that choose none.
    pub usual_model: Option<String>,
    /// Its events from the first `TurnStarted` to `Done` or `Stopped`, each with the time of its commit.
    pub events: Vec<(Timestamp, ChatEvent)>,
}

/// A span while its events are read.
struct Call {
    name: String,
    begun: Timestamp,
    ended: Option<Timestamp>,
    error: Option<String>,
    /// Of a model.
    asked: Option<ModelCall>,
    attributes: Attributes,
}

#[derive(Default)]
struct ModelCall {
    first: Option<Timestamp>,
    usage: Option<Usage>,
    answered_by: Option<String>,
    finish: Option<&'static str>,
}

/// The state of reading a turn.
struct Reading<'a> {
    log: &'a TurnLog,
    content: bool,
    turn: Option<(TurnId, Timestamp, Timestamp, Option<TraceContext>)>,
    model: Option<String>,
    attempts: u32,
    /// Keys, as their effects have them, and calls, in order.
    models: Vec<(String, Call)>,
    tools: Vec<(String, Call)>,
    usage: Usage,
    error: Option<Error>,
    end: Option<(Timestamp, String, Option<String>)>,
}

/// The spans of a turn; none of one that is not whole, or whose caller does not record its trace.
pub(super) fn spans(log: &TurnLog, content: bool) -> Vec<Value> {
    let mut reading = Reading {
        log,
        content,
        turn: None,
        model: log.config.model.clone().or_else(|| log.usual_model.clone()),
        attempts: 0,
        models: Vec::new(),
        tools: Vec::new(),
        usage: Usage::default(),
        error: None,
        end: None,
    };
    for (at, event) in &log.events {
        reading.see(*at, event);
    }
    reading.spans()
}

impl Reading<'_> {
    fn see(&mut self, at: Timestamp, event: &ChatEvent) {
        match event {
            ChatEvent::TurnStarted { turn_id, attempt, asked_at, trace, .. } => {
                self.attempts = *attempt;
                match self.turn {
                    None => self.turn = Some((*turn_id, *asked_at, at, *trace)),
                    Some(_) => self.interrupt(at),
                }
            }
            ChatEvent::Configured { config } => {
                self.model = config.model.clone().or_else(|| self.log.usual_model.clone());
            }
            ChatEvent::ModelStarted { message_id, attempt, at, .. } => {
                let attributes = Attributes::default()
                    .text("gen_ai.operation.name", "chat")
                    .text("buildscale.message.id", &message_id.to_string())
                    .whole("buildscale.attempt", u64::from(*attempt));
                let name = self.model.as_deref().map_or("chat".to_owned(), |model| format!("chat {}", bare(model)));
                let asked = Some(ModelCall::default());
                let call = Call { name, begun: *at, ended: None, error: None, asked, attributes };
                self.models.push((format!("model/{message_id}/{attempt}"), call));
            }
            ChatEvent::Chunk { .. } | ChatEvent::Thought { .. } => {
                if let Some(Call { asked: Some(asked), .. }) = self.models.last_mut().map(|(_, call)| call) {
                    asked.first.get_or_insert(at);
                }
            }
            ChatEvent::MessageAdded { message: Message::Assistant { at, content, calls, .. } } => {
                let wants = self.content;
                if let Some((_, call)) = self.models.last_mut() {
                    call.ended.get_or_insert(*at);
                    if let Some(asked) = &mut call.asked {
                        asked.finish = (!calls.is_empty()).then_some("tool_calls");
                    }
                    if wants {
                        call.attributes.add_text("gen_ai.output.messages", &said(content));
                    }
                }
            }
            ChatEvent::Used { usage, model, .. } => {
                self.usage += *usage;
                if let Some((_, call)) = self.models.last_mut() {
                    call.ended.get_or_insert(at);
                    if let Some(asked) = &mut call.asked {
                        (asked.usage, asked.answered_by) = (Some(*usage), model.clone());
                    }
                }
            }
            ChatEvent::ModelPostponed(RetryWait { error, at, .. }) => self.model_failed(*at, error.code),
            ChatEvent::CallStarted { call_id, attempt, tool, args, at: begun, .. } => {
                self.interrupt_tool(at, &format!("tool/{call_id}/"));
                let mut attributes = Attributes::default()
                    .text("gen_ai.operation.name", "execute_tool")
                    .text("gen_ai.tool.name", tool)
                    .text("gen_ai.tool.call.id", &call_id.to_string())
                    .whole("buildscale.attempt", u64::from(*attempt));
                if self.content {
                    attributes = attributes.text("gen_ai.tool.call.arguments", args);
                }
                let (name, begun) = (format!("execute_tool {tool}"), begun.unwrap_or(at));
                let call = Call { name, begun, ended: None, error: None, asked: None, attributes };
                self.tools.push((format!("tool/{call_id}/{attempt}"), call));
            }
            ChatEvent::Observed { call_id, output, success, misuse, code, at, .. } => {
                let key = format!("tool/{call_id}/");
                let wants = self.content;
                if let Some((_, call)) = self.tools.iter_mut().rev().find(|(known, _)| known.starts_with(&key)) {
                    call.ended = Some(*at);
                    if !success {
                        let kind = if *misuse { "misuse" } else { "failure" };
                        call.error = Some(code.map_or_else(|| kind.to_owned(), |code| code.to_string()));
                    }
                    if wants {
                        call.attributes.add_text("gen_ai.tool.call.result", output);
                    }
                }
            }
            ChatEvent::Failed { error } => {
                if self.models.last().is_some_and(|(_, call)| call.ended.is_none() || !call.was_paid()) {
                    self.model_failed(at, error.code);
                }
                self.error = Some(error.clone());
            }
            ChatEvent::Done { stop_reason, at, .. } => {
                if let Some(Call { asked: Some(asked), .. }) = self.models.last_mut().map(|(_, call)| call) {
                    asked.finish = asked.finish.or(finish(*stop_reason));
                }
                let told = serde_json::to_value(stop_reason).ok().and_then(|text| text.as_str().map(str::to_owned));
                let failed = (*stop_reason == StopReason::Error)
                    .then(|| self.error.as_ref().map_or("error".to_owned(), |error| error.code.to_string()));
                self.end = Some((*at, told.unwrap_or_default(), failed));
            }
            ChatEvent::Stopped { at, .. } => {
                self.end = Some((*at, "stopped".into(), Some(Code::Cancelled.to_string())));
            }
            _ => {}
        }
    }

    fn model_failed(&mut self, at: Timestamp, code: Code) {
        if let Some((_, call)) = self.models.last_mut() {
            call.ended.get_or_insert(at);
            call.error = Some(code.to_string());
        }
    }

    /// The process that ran the turn is gone.
    fn interrupt(&mut self, at: Timestamp) {
        for (_, call) in self.models.iter_mut().chain(&mut self.tools).filter(|(_, call)| call.ended.is_none()) {
            (call.ended, call.error) = (Some(at), Some(INTERRUPTED.into()));
        }
    }

    /// An earlier attempt of a tool's call is over where another one begins.
    fn interrupt_tool(&mut self, at: Timestamp, key: &str) {
        let open = self.tools.iter_mut().filter(|(known, call)| known.starts_with(key) && call.ended.is_none());
        for (_, call) in open {
            (call.ended, call.error) = (Some(at), Some(INTERRUPTED.into()));
        }
    }

    fn spans(self) -> Vec<Value> {
        let (Some((turn, asked_at, begun, trace)), Some((end, told, failed))) = (self.turn, self.end) else {
            return Vec::new();
        };
        if trace.is_some_and(|trace| !trace.sampled) {
            return Vec::new();
        }
        let config = &self.log.config;
        let (trace_id, parent) = place(config, turn, trace);
        let own = span_id(&format!("turn/{turn}"));
        let shared = |attributes: Attributes| {
            let model = self.model.as_deref();
            attributes
                .text("gen_ai.conversation.id", &config.chat.to_string())
                .maybe("gen_ai.provider.name", model.and_then(provider))
                .maybe("gen_ai.request.model", model.map(bare))
                .text("buildscale.workspace.id", &config.workspace.to_string())
                .text("buildscale.turn.id", &turn.to_string())
        };
        let calls = self.models.into_iter().chain(self.tools);
        let mut all: Vec<Value> = calls
            .map(|(key, call)| {
                let is_model = call.asked.is_some();
                let ended = call.ended.unwrap_or(end);
                // A call that had not ended when the turn did was stopped with it.
                let open = call.ended.is_none().then(|| failed.clone().unwrap_or_else(|| told.clone()));
                let error = call.error.clone().or(open);
                let attributes = if is_model { shared(call.described()) } else { call.described() };
                let kind = if is_model { CLIENT } else { INTERNAL };
                let ids = (trace_id, span_id(&key), Some(own));
                span(ids, (&call.name, kind), (call.begun, ended), attributes, error, None)
            })
            .collect();
        let waited = begun.since(asked_at).as_millis();
        let attributes = shared(Attributes::default())
            .text("gen_ai.operation.name", "invoke_agent")
            .text("gen_ai.agent.name", &config.role)
            .whole("gen_ai.usage.input_tokens", self.usage.input_tokens)
            .whole("gen_ai.usage.output_tokens", self.usage.output_tokens)
            .number("buildscale.cost_usd", self.usage.cost_usd)
            .text("buildscale.stop_reason", &told)
            .whole("buildscale.turn.attempts", u64::from(self.attempts))
            .whole("buildscale.turn.queue_ms", u64::try_from(waited).unwrap_or(u64::MAX))
            .maybe(
                "buildscale.task.id",
                config.agent.as_ref().and_then(|agent| agent.of_task()).map(|task| task.to_string()).as_deref(),
            )
            .maybe("buildscale.node", config.agent.as_ref().map(|agent| agent.node.as_str()));
        let words = self.error.as_ref().filter(|_| failed.is_some()).map(|error| error.message.as_str());
        let name = format!("invoke_agent {}", config.role);
        all.push(span((trace_id, own, parent), (&name, INTERNAL), (begun, end), attributes, failed, words));
        all
    }
}

impl Call {
    fn was_paid(&self) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.usage.is_some())
    }

    /// Its attributes, with what came of it.
    fn described(&self) -> Attributes {
        let attributes = self.attributes.clone();
        let Some(ModelCall { first, usage, answered_by, finish }) = &self.asked else { return attributes };
        let mut attributes = attributes.maybe("gen_ai.response.model", answered_by.as_deref().map(bare));
        if let Some(reason) = finish {
            attributes = attributes.texts("gen_ai.response.finish_reasons", &[reason]);
        }
        if let Some(usage) = usage {
            attributes = attributes
                .whole("gen_ai.usage.input_tokens", usage.input_tokens)
                .whole("gen_ai.usage.output_tokens", usage.output_tokens)
                .whole("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens)
                .number("buildscale.cost_usd", usage.cost_usd);
        }
        match first {
            Some(first) => {
                let ms = u64::try_from(first.since(self.begun).as_millis()).unwrap_or(u64::MAX);
                attributes.whole("buildscale.first_token_ms", ms)
            }
            None => attributes,
        }
    }
}

/// The trace of a turn, and the span above it: of the request that it came with, else of the task that its agent works for, else
/// its own.
fn place(config: &ChatConfig, turn: TurnId, trace: Option<TraceContext>) -> (u128, Option<u64>) {
    match (trace, &config.agent) {
        (Some(trace), _) => (trace.trace_id, Some(trace.span_id)),
        (None, Some(agent)) if agent.executor.is_none() => {
            (agent.root().0.as_u128(), Some(node_span(agent.task, &agent.node)))
        }
        (None, _) => (turn.0.as_u128(), None),
    }
}

fn span(
    (trace_id, own, parent): (u128, u64, Option<u64>),
    (name, kind): (&str, u8),
    (begun, ended): (Timestamp, Timestamp),
    attributes: Attributes,
    error: Option<String>,
    words: Option<&str>,
) -> Value {
    let mut status = json!({ "code": if error.is_some() { ERROR } else { OK } });
    if let Some(words) = words {
        status["message"] = json!(words);
    }
    let mut span = json!({
        "traceId": format!("{trace_id:032x}"),
        "spanId": format!("{own:016x}"),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": nanos(begun),
        "endTimeUnixNano": nanos(ended.max(begun)),
        "attributes": attributes.maybe("error.type", error.as_deref()).into_value(),
        "status": status,
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = json!(format!("{parent:016x}"));
    }
    span
}

/// Why a model's answer ended, in the conventions' words.
fn finish(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::EndTurn => Some("stop"),
        StopReason::MaxOutputTokens => Some("length"),
        StopReason::Refusal => Some("content_filter"),
        StopReason::StepLimit
        | StopReason::TokenLimit
        | StopReason::TimeLimit
        | StopReason::CostLimit
        | StopReason::ContextLimit
        | StopReason::Error => None,
    }
}

fn provider(model: &str) -> Option<&str> {
    model.split_once('/').map(|(provider, _)| provider_name(provider))
}

fn bare(model: &str) -> &str {
    model.split_once('/').map_or(model, |(_, name)| name)
}

fn said(content: &str) -> String {
    json!([{ "role": "assistant", "parts": [{ "type": "text", "content": content }] }]).to_string()
}
