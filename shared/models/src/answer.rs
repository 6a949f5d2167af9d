//! An answer of a provider, from genai's events to deltas.

use crate::{failure, history::Kept, kind::Kind, price::Price, secret::Redactor};
use domain::{Usage, event::StopReason};
use futures::{StreamExt, stream};
use genai::chat::{ChatStream, ChatStreamEvent, StopReason as Reason, StreamEnd, ToolCall};
use ports::{Delta, ModelError, ModelStream};
use serde_json::Value;
use std::{collections::VecDeque, future::poll_fn};
use tracing::dispatcher::{self, Dispatch};

/// The answer that is coming.
pub(crate) struct Answer {
    events: ChatStream,
    kind: Kind,
    price: Option<Price>,
    redactor: Redactor,
    /// The arguments of each call as the model wrote them, by genai's call id: the end of the stream has only the
    /// parsed value, whose text would differ in spaces and long numbers.
    written: Vec<(String, String)>,
    ready: VecDeque<Result<Delta, ModelError>>,
    over: bool,
}

impl Answer {
    pub(crate) fn new(events: ChatStream, kind: Kind, price: Option<Price>, redactor: Redactor) -> Self {
        Self { events, kind, price, redactor, written: Vec::new(), ready: VecDeque::new(), over: false }
    }

    pub(crate) fn into_stream(self) -> ModelStream {
        stream::unfold(self, |mut answer| async move {
            loop {
                if let Some(delta) = answer.ready.pop_front() {
                    return Some((delta, answer));
                }
                if answer.over {
                    return None;
                }
                let event = answer.event().await;
                answer.take(event);
            }
        })
        .boxed()
    }

    /// genai logs the bodies of errors and of frames that it does not know, at levels up to `error`. A body may repeat
    /// a key, so genai speaks into the void; what matters in it is told by the error that we get.
    async fn event(&mut self) -> Option<genai::Result<ChatStreamEvent>> {
        poll_fn(|context| dispatcher::with_default(&Dispatch::none(), || self.events.poll_next_unpin(context))).await
    }

    fn take(&mut self, event: Option<genai::Result<ChatStreamEvent>>) {
        match event {
            Some(Ok(ChatStreamEvent::Start | ChatStreamEvent::ThoughtSignatureChunk(_))) => {}
            Some(Ok(ChatStreamEvent::Chunk(chunk))) => self.ready.push_back(Ok(Delta::Text(chunk.content))),
            Some(Ok(ChatStreamEvent::ReasoningChunk(chunk))) => {
                self.ready.push_back(Ok(Delta::Reasoning(chunk.content)));
            }
            Some(Ok(ChatStreamEvent::ToolCallChunk(chunk))) => {
                self.write(chunk.tool_call);
                self.ready.push_back(Ok(SIGN_OF_LIFE));
            }
            Some(Ok(ChatStreamEvent::Heartbeat)) => self.ready.push_back(Ok(SIGN_OF_LIFE)),
            Some(Ok(ChatStreamEvent::End(end))) => self.end(end),
            Some(Err(error)) => self.fail(failure::model_error(error, &self.redactor)),
            None => self.fail(ModelError::Broken("the stream ended before the answer did".into())),
        }
    }

    /// The first word is the last: genai streams may go on after an error.
    fn fail(&mut self, error: ModelError) {
        self.over = true;
        self.ready.push_back(Err(error));
    }

    /// genai sends a call's arguments again and again, each time all that has come so far.
    fn write(&mut self, call: ToolCall) {
        let Value::String(text) = call.fn_arguments else { return };
        match self.written.iter_mut().find(|(id, _)| *id == call.call_id) {
            Some((_, written)) => *written = text,
            None => self.written.push((call.call_id, text)),
        }
    }

    fn end(&mut self, end: StreamEnd) {
        let reason = match (&end.captured_stop_reason, self.kind) {
            // Streams of these that are cut off end like this in genai. Chat completions cannot: genai ends
            // them at `[DONE]` only, and some servers do say no reason there.
            (None, Kind::Gemini | Kind::OpenAiResponses | Kind::Anthropic | Kind::Bedrock) => {
                return self.fail(ModelError::Broken("the stream ended before the answer did".into()));
            }
            (Some(Reason::Other(other)), _) if other.contains("MALFORMED") || other.contains("UNEXPECTED_TOOL") => {
                return self.fail(ModelError::Broken(format!("the model's tool call makes no sense ({other})")));
            }
            (Some(Reason::MaxTokens(_)), _) => StopReason::MaxOutputTokens,
            (Some(Reason::ContentFilter(_)), _) => StopReason::Refusal,
            _ => StopReason::EndTurn,
        };
        let parts = end.captured_content.map(|content| content.into_parts()).unwrap_or_default();
        for call in parts.iter().filter_map(|part| part.as_tool_call()) {
            let args = self.args(call);
            // A call that was cut off in the middle of its arguments is no call.
            if reason == StopReason::MaxOutputTokens && serde_json::from_str::<Value>(&args).is_err() {
                continue;
            }
            self.ready.push_back(Ok(Delta::Call { tool: call.fn_name.clone(), args }));
        }
        let usage = end.captured_usage.map(|usage| self.usage(&usage)).unwrap_or_default();
        let provider = Kept::of(&parts, self.kind);
        self.ready.push_back(Ok(Delta::End { reason, usage, provider }));
        self.over = true;
    }

    fn args(&self, call: &ToolCall) -> String {
        let parsed = match &call.fn_arguments {
            Value::String(text) => return text.clone(),
            parsed => parsed,
        };
        let written = self.written.iter().find(|(id, _)| *id == call.call_id).map(|(_, text)| text);
        // Servers that reuse ids would mix up calls: what was written must mean what was parsed.
        match written {
            Some(text) if serde_json::from_str::<Value>(text).is_ok_and(|value| value == *parsed) => text.clone(),
            // For Bedrock genai puts nothing in the place of what is no JSON: the model should hear what it wrote.
            Some(text) if self.kind == Kind::Bedrock && !text.is_empty() => text.clone(),
            _ => parsed.to_string(),
        }
    }

    fn usage(&self, usage: &genai::chat::Usage) -> Usage {
        let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or_default();
        let details = usage.prompt_tokens_details.as_ref();
        let reasoning = usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
        let mut used = Usage {
            input_tokens: count(usage.prompt_tokens),
            output_tokens: count(usage.completion_tokens.or(reasoning)),
            cached_tokens: count(details.and_then(|details| details.cached_tokens)),
            cost_usd: 0.0,
        };
        let written = count(details.and_then(|details| details.cache_creation_tokens));
        // Converse counts what came from the cache and went into it beside the input, not within.
        if self.kind == Kind::Bedrock {
            used.input_tokens += used.cached_tokens + written;
        }
        used.cost_usd = self.price.map_or(0.0, |price| price.cost(&used, written));
        used
    }
}

/// What an answer sends while it brings nothing to show, as when a long tool call is being written: it keeps
/// [`crate::Retrying`] from giving up, which also swallows it.
pub(crate) const SIGN_OF_LIFE: Delta = Delta::Reasoning(String::new());
