//! Requests of a server to the model of the chat while a tool of it runs (sampling). The call waits at its server. A person is asked, since the words of the
//! request are the server's and its cost is the chat's; a rule may cover all requests of one server. The request to the model is part of the effect that goes
//! on with the call, within the limits of the turn, and its usage is the turn's.

use crate::{
    ask,
    machine::{ChatMachine, Report, SAMPLE},
    perform::ChatEffects,
    phase::Phase,
    pieces::tokens_of,
    step::{Step, estimate},
};
use actor::EffectContext;
use domain::{CallId, ChatConfig, ChatEvent, Message, MessageId, PermissionRule, Timestamp, ToolCall, Usage};
use futures::StreamExt;
use ports::{Delta, ModelRequest};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// The longest answer of the model, in bytes.
const MAX_TEXT: usize = 64 * 1024;
/// The time of the request.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The name under which people permit requests of a call's server. No tool has such a name.
fn name(call: &ToolCall) -> String {
    let server = call.tool.split("__").nth(1).unwrap_or(&call.tool);
    format!("{SAMPLE} mcp__{server}")
}

/// The server of the call asks the model. Where nobody is there to permit it, and beyond the limits of the turn, it is refused.
pub(crate) fn asked(step: &mut Step<'_>, call_id: CallId, request: &Value) {
    let Some(call) = step.next_unanswered().filter(|call| call.call_id == call_id) else { return };
    let is_of_flow = step.config().is_some_and(|config| config.agent.is_some());
    let is_over = step.turn().is_none_or(|turn| turn.stopping.is_some() || turn.reached(step.stamp.at).is_some());
    if step.is_unattended() || is_of_flow || is_over {
        return step.reply(call, Value::Null);
    }
    let tool = name(&call);
    let rule = PermissionRule::Tool { tool: tool.clone() };
    if step.state().permissions.contains(&rule.clone().denied()) {
        return step.reply(call, Value::Null);
    }
    // Where a standing rule denies it, the request is asked for, and that rule answers.
    if step.permissions().contains(&rule) && step.standing_denial(&rule).is_none() {
        return step.reply(call, json!({ SAMPLE: request }));
    }
    let shown = ToolCall { call_id, tool, args: request.to_string() };
    let reason = format!("the server of {} wants to ask the model of this chat, at the chat's cost", call.tool);
    let patience = step.machine.gate.patience();
    ask::permission(step, &shown, "mcp".into(), reason, Some(rule), patience);
}

/// The request to the model that the turn waits for permission for.
pub(crate) fn requested(step: &Step<'_>) -> Option<Value> {
    let Phase::Permission { asked, .. } = &step.turn()?.phase else { return None };
    match &**asked {
        ChatEvent::PermissionRequired { tool, args, .. } if tool.starts_with("sample mcp__") => {
            serde_json::from_str(args).ok()
        }
        _ => None,
    }
}

/// Goes on with the call: with the request, which was permitted, or with a no.
pub(crate) fn decided(step: &mut Step<'_>, request: Option<Value>) {
    if let Some(call) = step.next_unanswered() {
        step.reply(call, request.map_or(Value::Null, |request| json!({ SAMPLE: request })));
    }
}

impl ChatEffects {
    /// The answer of the model for a server: its text and its name, or null.
    pub(crate) async fn sample(
        &self,
        config: &ChatConfig,
        call: CallId,
        asked: &Value,
        reports: &EffectContext<ChatMachine>,
    ) -> Value {
        let Some(request) = sampling_request(config, call, asked, self.clock.now()) else { return Value::Null };
        let (read, mut written) = (tokens_of(&request), 0);
        let answer = tokio::time::timeout(TIMEOUT, self.sampled(config, request, &mut written)).await.ok().flatten();
        let (used, model, answer) = match answer {
            Some(SampledAnswer { usage, model, answer }) => (Some((usage, false)), model, answer),
            None => {
                tracing::warn!(%call, "the model did not answer the server of a tool");
                let cost = |usage: &Usage| self.model.cost(config.model.as_deref(), usage);
                let part = (written > 0).then(|| estimate(read(), written, cost));
                (part.map(|usage| (usage, true)), None, Value::Null)
            }
        };
        if let Some((usage, estimated)) = used {
            reports.report(Report::Sampled { call_id: call, usage, model, estimated }).await;
        }
        answer
    }

    /// Reads the answer of the model; `written` is its length so far, in bytes.
    async fn sampled(&self, config: &ChatConfig, request: ModelRequest, written: &mut u64) -> Option<SampledAnswer> {
        let (mut stream, mut text) = (self.model.stream(request).await.ok()?, TruncatedText::default());
        while let Some(delta) = stream.next().await {
            match delta.ok()? {
                Delta::Text(piece) => {
                    *written += piece.len() as u64;
                    text.add(&piece);
                }
                Delta::Reasoning(piece) => *written += piece.len() as u64,
                Delta::Call { tool, args } => *written += (tool.len() + args.len()) as u64,
                Delta::End { usage, model, .. } => {
                    let named = model.clone().or_else(|| config.model.clone()).unwrap_or_else(|| "default".into());
                    let answer = json!({ "text": text.text, "model": named });
                    return Some(SampledAnswer { usage, model, answer });
                }
            }
        }
        None
    }
}

/// A whole answer of the model for a server.
struct SampledAnswer {
    usage: Usage,
    model: Option<String>,
    answer: Value,
}

/// The request to the model that a server asks for; none where it has no messages.
fn sampling_request(config: &ChatConfig, call: CallId, asked: &Value, at: Timestamp) -> Option<ModelRequest> {
    let message = |(number, message): (usize, &Value)| {
        let id = MessageId::from_key(&call.to_string(), &format!("{SAMPLE}/{number}"));
        let content = message["text"].as_str().unwrap_or_default().to_owned();
        Arc::new(match message["role"] == "assistant" {
            true => {
                let (calls, reasoning, provider) = (Vec::new(), String::new(), Value::Null);
                Message::Assistant { id, at, content, calls, reasoning, provider }
            }
            false => Message::User { id, at, content, files: Vec::new(), context: String::new(), user_id: None },
        })
    };
    Some(ModelRequest {
        model: config.model.clone(),
        system: asked["system"].as_str().unwrap_or_default().into(),
        messages: asked["messages"].as_array()?.iter().enumerate().map(message).collect(),
        tools: Arc::new([]),
        // Not the chat's own: its provider's cache is for its own beginning.
        conversation: call.to_string(),
        max_tokens: asked["max_tokens"].as_u64().and_then(|most| u32::try_from(most).ok()),
        ..ModelRequest::default()
    })
}

/// The beginning of an answer, as much as fits.
#[derive(Default)]
struct TruncatedText {
    text: String,
    is_full: bool,
}

impl TruncatedText {
    /// Adds a piece. After one that did not fit as a whole nothing is added: the text would have a gap.
    fn add(&mut self, piece: &str) {
        if self.is_full {
            return;
        }
        let fits = piece.floor_char_boundary(MAX_TEXT - self.text.len());
        self.text.push_str(piece.get(..fits).unwrap_or_default());
        self.is_full = fits < piece.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_to_a_server_has_no_gap() {
        let mut answer = TruncatedText::default();
        for piece in ["a".repeat(MAX_TEXT - 1).as_str(), "é", "b"] {
            answer.add(piece);
        }
        assert_eq!(answer.text, "a".repeat(MAX_TEXT - 1));
    }
}
