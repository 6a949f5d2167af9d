//! The parameters of sampling and of reasoning: a model that refuses one refuses the whole request, so it is asked without them.

use super::{WireRequest, messages::Claude};

impl WireRequest<'_> {
    /// The temperature and the share of the likeliest tokens (`top_p`), where the model takes them.
    pub(super) fn sampling(&self) -> (Option<f64>, Option<f64>) {
        let (temperature, top_p) = (self.request.temperature, self.request.top_p);
        match refuses_sampling(self.model, self.effort.is_some()) {
            true => (None, None),
            // A share of 1 leaves no token out, and newer models of Claude refuse it beside a temperature.
            false if self.model.contains("claude") && temperature.is_some() => {
                (temperature, top_p.filter(|share| *share < 1.0))
            }
            false => (temperature, top_p),
        }
    }
}

/// The beginnings of the names of OpenAI's models that reason. Some models that only chat have such a name, too.
const REASON: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];
/// The parts of names whose models take one effort alone.
const ALWAYS: [&str; 3] = ["chat", "codex", "pro"];

fn begins(name: &str, with: &[&str]) -> bool {
    with.iter().any(|begin| name.starts_with(begin))
}

/// Whether this model of OpenAI counts its reasoning as output.
pub(super) fn is_of_reasoning_family(model: &str) -> bool {
    begins(model, &REASON)
}

/// Whether this model of OpenAI can be asked to reason.
pub(crate) fn can_reason(model: &str) -> bool {
    is_of_reasoning_family(model) && !model.starts_with("gpt-5-chat")
}

/// Whether chat completions of OpenAI take tools for this model only without reasoning. OpenAI's Responses take both.
/// <https://github.com/openai/openai-openapi/issues/541>
pub(super) fn uses_tools_at_rest(model: &str) -> bool {
    let is_later = begins(model, &["gpt-5.", "gpt-6"]) && !model.starts_with("gpt-5.1");
    is_later && !ALWAYS.iter().any(|part| model.contains(part))
}

/// Whether a model refuses a history whose calls come without the reasoning before them: DeepSeek and Kimi, wherever they are hosted. Those of them that
/// cannot reason may be hosted where the field is not known. Without calls the reasoning stays behind: DeepSeek does not read it then.
/// <https://api-docs.deepseek.com/guides/thinking_mode> <https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model>
pub(super) fn wants_reasoning(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    let is_of = |words: &[&str]| words.iter().any(|word| name.contains(word));
    is_of(&["deepseek", "kimi"]) && !is_of(&["instruct", "distill"])
}

/// Whether a model refuses a request with a temperature or a `top_p`: OpenAI's models while they reason, Claude since version 4.7, and Kimi since version
/// 2.5. Models of OpenAI that reason only when they are asked to are listed, so a later one is sent no temperature until it is listed, too.
/// <https://platform.openai.com/docs/guides/latest-model> <https://docs.claude.com/en/docs/about-claude/models/migration-guide>
fn refuses_sampling(model: &str, reasons: bool) -> bool {
    const WHEN_ASKED: [&str; 3] = ["gpt-5.1", "gpt-5.2", "gpt-5.4"];
    let name = model.rsplit('/').next().unwrap_or(model);
    if name.contains("claude") {
        return Claude::of(name).refuses_sampling;
    }
    let rests = !reasons && begins(name, &WHEN_ASKED) && !ALWAYS.iter().any(|part| name.contains(part));
    can_reason(name) && !rests || name.starts_with("kimi-k2.")
}

#[cfg(test)]
mod tests {
    use crate::{
        config::Effort,
        wire::{AcceptedFiles, Wire, WireRequest},
    };
    use ports::ModelRequest;
    use serde_json::Value;

    #[test]
    fn a_model_that_reasons_is_sent_no_temperature() {
        let request = ModelRequest { temperature: Some(0.5), top_p: Some(0.9), ..ModelRequest::default() };
        let sent = |wire: Wire, model: &str, effort: Option<Effort>| {
            let takes = AcceptedFiles::default();
            let (request, provider, official, reasons) = (&request, "test", true, true);
            let asked = WireRequest {
                request,
                model,
                provider,
                official,
                reasons,
                effort,
                max_tokens: None,
                takes,
                schema: None,
            };
            let body = wire.body(&asked);
            let at = |name: &str| body.get(name).or_else(|| body["inferenceConfig"].get(name)).and_then(Value::as_f64);
            (at("temperature"), at("top_p").or_else(|| at("topP")))
        };
        let (all, none) = ((Some(0.5), Some(0.9)), (None, None));
        for wire in [Wire::ChatCompletions, Wire::Responses] {
            for model in ["gpt-5", "gpt-5-mini", "o1", "o3-mini", "o4-mini", "openai/gpt-5-nano", "gpt-5.1-codex"] {
                assert_eq!(sent(wire, model, None), none, "{model}");
            }
            // They reason unless they are told not to, or always.
            for model in ["gpt-5.5", "gpt-5.2-chat-latest", "gpt-5.2-pro", "gpt-6"] {
                assert_eq!(sent(wire, model, None), none, "{model}");
            }
            for model in ["gpt-4o-mini", "gpt-4.1", "gpt-5-chat-latest", "gpt-5.1", "gpt-5.4", "llama3.2", "qwen3-max"]
            {
                assert_eq!(sent(wire, model, None), all, "{model}");
            }
            assert_eq!(sent(wire, "gpt-5.1", Some(Effort::Low)), none);
            assert_eq!((sent(wire, "kimi-k2.5", None), sent(wire, "moonshotai/kimi-k2-instruct", None)), (none, all));
        }
        let bedrock = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";
        for (wire, model) in [(Wire::Messages, "claude-sonnet-4-5"), (Wire::Converse, bedrock)] {
            assert_eq!(sent(wire, model, None), all, "{model}");
            assert_eq!(sent(wire, model, Some(Effort::Low)), none, "{model}");
        }
        for (wire, model) in [
            (Wire::Messages, "claude-opus-4-7"),
            (Wire::Messages, "claude-sonnet-5"),
            (Wire::Converse, "us.anthropic.claude-opus-4-8"),
            (Wire::ChatCompletions, "anthropic/claude-4.7-opus"),
        ] {
            assert_eq!(sent(wire, model, None), none, "{model}");
        }
        assert_eq!(sent(Wire::Messages, "claude-opus-4-20250514", None), all);
    }
}
