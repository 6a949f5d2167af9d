//! How each format asks for reasoning, and how it gives thoughts back.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use domain::{CallId, Message, MessageId, Timestamp, ToolCall, ToolSpec};
use serde_json::json;

fn body(kind: ProviderKind, config: Value, model: &str, request: &ModelRequest) -> Value {
    let config = Arc::new(serde_json::from_value(config).unwrap());
    let provider = Provider::new(kind, config, Arc::default(), Redactor::default()).unwrap();
    provider.wire.body(&provider.asked(model, request))
}

#[test]
fn reasoning_is_asked_for_where_it_can_be_had() {
    let check = |kind: ProviderKind, model: &str, configured: bool, place: &str, expected: Value| {
        let config = if configured { json!({"reasoning": "high"}) } else { json!({}) };
        let body = body(kind, config, model, &ModelRequest::default());
        assert_eq!(body.pointer(place).cloned().unwrap_or_default(), expected, "{model}");
    };
    let none = Value::Null;
    check(
        ProviderKind::OpenAiResponses,
        "gpt-5-mini",
        true,
        "/reasoning",
        json!({"effort": "high", "summary": "auto"}),
    );
    check(ProviderKind::OpenAiResponses, "gpt-4o", true, "/reasoning", none.clone());
    check(ProviderKind::OpenAi, "qwen3-max", false, "/reasoning_effort", none.clone());
    check(ProviderKind::OpenAi, "gpt-5", true, "/reasoning_effort", json!("high"));
    // Models that do not reason refuse the field.
    check(ProviderKind::OpenAi, "gpt-4o-mini", true, "/reasoning_effort", none.clone());
    check(ProviderKind::OpenAi, "gpt-5-chat-latest", true, "/reasoning_effort", none.clone());
    check(ProviderKind::OpenAiResponses, "gpt-5-chat-latest", true, "/reasoning", none.clone());
    check(ProviderKind::Gemini, "gemini-2.0-flash", true, "/generationConfig", none.clone());
    let budget = json!({"thinkingBudget": 24_000, "includeThoughts": true});
    check(ProviderKind::Gemini, "gemini-2.5-pro", true, "/generationConfig/thinkingConfig", budget);
    let level = json!({"thinkingLevel": "HIGH", "includeThoughts": true});
    check(ProviderKind::Gemini, "gemini-3-pro", true, "/generationConfig/thinkingConfig", level);
    check(ProviderKind::Anthropic, "claude-sonnet-4-5", false, "/thinking", none.clone());
    let enabled = json!({"type": "enabled", "budget_tokens": 24_000});
    check(ProviderKind::Anthropic, "claude-sonnet-4-5", true, "/thinking", enabled);
    check(
        ProviderKind::Anthropic,
        "claude-sonnet-4-6",
        true,
        "/thinking",
        json!({"type": "adaptive", "display": "summarized"}),
    );
    check(ProviderKind::Anthropic, "claude-sonnet-4-6", true, "/output_config", json!({"effort": "high"}));
    check(ProviderKind::Anthropic, "claude-3-5-haiku-20241022", true, "/thinking", none.clone());
    let nova = json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}});
    check(ProviderKind::Bedrock, "us.amazon.nova-2-lite-v1:0", true, "/additionalModelRequestFields", nova);
    check(ProviderKind::Bedrock, "us.amazon.nova-2-lite-v1:0", true, "/inferenceConfig", none.clone());
    check(ProviderKind::Bedrock, "amazon.nova-lite-v1:0", true, "/additionalModelRequestFields", none);
    let fields = "/additionalModelRequestFields";
    check(ProviderKind::Bedrock, "openai.gpt-oss-120b-1:0", true, fields, json!({"reasoning_effort": "high"}));
    check(ProviderKind::Bedrock, "us.openai.gpt-5.6-luna", true, fields, json!({"reasoning": {"effort": "high"}}));
}

#[test]
fn claude_is_asked_alike_by_its_own_format_and_by_bedrocks() {
    let config = json!({"reasoning": "medium"});
    for model in ["claude-opus-4-8", "claude-sonnet-4-6", "claude-opus-4-5", "claude-3-5-haiku-20241022"] {
        let own = body(ProviderKind::Anthropic, config.clone(), model, &ModelRequest::default());
        let named = format!("us.anthropic.{model}");
        let other = body(ProviderKind::Bedrock, config.clone(), &named, &ModelRequest::default());
        let fields = &other["additionalModelRequestFields"];
        for field in ["thinking", "output_config"] {
            assert_eq!(own[field], fields[field], "{model}");
        }
    }
    let opus = "us.anthropic.claude-opus-4-7";
    let adaptive = body(ProviderKind::Bedrock, config.clone(), opus, &ModelRequest::default());
    assert_eq!(
        adaptive["additionalModelRequestFields"],
        json!({"output_config": {"effort": "medium"}, "thinking": {"type": "adaptive", "display": "summarized"}})
    );
    // Thinking has to leave room for the answer.
    let short = ModelRequest { max_tokens: Some(8000), ..ModelRequest::default() };
    let short = body(ProviderKind::Bedrock, config, "anthropic.claude-sonnet-4-5-20250929-v1:0", &short);
    assert_eq!(short["additionalModelRequestFields"], Value::Null);
}

/// A call with these data of a provider, which has its result.
fn called(provider: Value) -> ModelRequest {
    let (call_id, at) = (CallId(uuid::Uuid::from_u128(1)), Timestamp::default());
    let calls = vec![ToolCall { call_id, tool: "read".into(), args: "{}".into() }];
    let id = MessageId(uuid::Uuid::from_u128(2));
    let messages = [
        Message::Assistant { id, at, content: "\n\n".into(), calls, reasoning: String::new(), provider },
        Message::Tool { call_id, tool: "read".into(), at, output: "one".into(), success: true },
    ];
    ModelRequest { messages: messages.into_iter().map(Arc::new).collect(), ..ModelRequest::default() }
}

#[test]
fn in_the_middle_of_calls_claude_thinks_by_budget_only_if_the_calls_have_thoughts() {
    let config = json!({"reasoning": "low"});
    let signed = json!({"provider": "anthropic", "thoughts": [{"signature": "s"}]});
    let thinks = |model: &str, kept: &Value| {
        let body = body(ProviderKind::Anthropic, config.clone(), model, &called(kept.clone()));
        body.get("thinking").is_some()
    };
    assert!(thinks("claude-sonnet-4-5", &signed) && !thinks("claude-sonnet-4-5", &Value::Null));
    assert!(thinks("claude-sonnet-4-6", &signed) && thinks("claude-sonnet-4-6", &Value::Null));
    let sent = body(ProviderKind::Anthropic, json!({}), "claude-sonnet-4-5", &called(signed));
    let blocks = sent["messages"][0]["content"].as_array().unwrap();
    // A blank text is no block, and an empty thought that is signed is one.
    let kinds: Vec<_> = blocks.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!((kinds, &blocks[0]["thinking"]), (vec!["thinking", "tool_use"], &json!("")));
}

#[test]
fn models_that_refuse_calls_without_reasoning_are_sent_it_back() {
    let sent = |model: &str, thought: &str| {
        let mut request = called(Value::Null);
        let mut messages = request.messages.to_vec();
        if let Message::Assistant { reasoning, .. } = Arc::make_mut(&mut messages[0]) {
            thought.clone_into(reasoning);
        }
        request.messages = messages.into();
        let body = body(ProviderKind::OpenAi, json!({"openai": {"base_url": "http://h/v1"}}), model, &request);
        body["messages"][0].get("reasoning_content").cloned()
    };
    for model in ["deepseek-v4-pro", "kimi-k2-thinking", "moonshotai/kimi-k2.5", "deepseek-ai/DeepSeek-V3.2"] {
        assert_eq!(sent(model, "I look."), Some(json!("I look.")), "{model}");
        // Kimi takes an empty text for none.
        assert_eq!(sent(model, ""), Some(json!(".")), "{model}");
    }
    for model in ["qwen3-max", "gpt-5", "moonshotai/kimi-k2-instruct", "deepseek-r1-distill-llama-70b"] {
        assert_eq!(sent(model, "I look."), None, "{model}");
    }
    let (id, at, content) = (MessageId(uuid::Uuid::from_u128(2)), Timestamp::default(), "Done.".to_owned());
    let (calls, reasoning, provider) = (Vec::new(), "I end.".to_owned(), Value::Null);
    let plain = Message::Assistant { id, at, content, calls, reasoning, provider };
    let plain = ModelRequest { messages: [Arc::new(plain)].into(), ..ModelRequest::default() };
    let body = body(ProviderKind::OpenAi, json!({}), "deepseek-reasoner", &plain);
    assert_eq!(body["messages"][0], json!({"role": "assistant", "content": "Done."}), "an answer without calls");
}

#[test]
fn prompts_of_bedrock_are_kept_where_the_model_has_a_cache() {
    let mut request = called(Value::Null);
    request.system = "s".into();
    let user = |number: u128| {
        let (id, at) = (MessageId(uuid::Uuid::from_u128(number)), Timestamp::default());
        let (content, context, files, user_id) = ("Go on.".to_owned(), String::new(), Vec::new(), None);
        Arc::new(Message::User { id, at, content, files, context, user_id })
    };
    let (id, at, calls) = (MessageId(uuid::Uuid::from_u128(4)), Timestamp::default(), Vec::new());
    let (content, reasoning, provider) = ("Done.".to_owned(), String::new(), Value::Null);
    let answer = Arc::new(Message::Assistant { id, at, content, calls, reasoning, provider });
    request.messages = [user(3)].into_iter().chain(request.messages.to_vec()).chain([answer, user(5)]).collect();
    let mark = json!({"cachePoint": {"type": "default"}});
    // The messages that end in a mark, and whether the system text does.
    let marks = |model: &str| {
        let body = body(ProviderKind::Bedrock, json!({}), model, &request);
        let ends = |content: &Value| content.as_array().and_then(|blocks| blocks.last()) == Some(&mark);
        assert!(!body["toolConfig"].to_string().contains("cachePoint"), "Nova refuses one among the tools");
        let messages = body["messages"].as_array().unwrap().iter();
        let marked = messages.enumerate().filter(|(_, message)| ends(&message["content"]));
        (ends(&body["system"]), marked.map(|(at, _)| at).collect::<Vec<_>>())
    };
    for model in [
        "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "anthropic.claude-3-5-haiku-20241022-v1:0",
        "us.amazon.nova-pro-v1:0",
    ] {
        assert_eq!(marks(model), (true, vec![2, 4]), "{model}");
    }
    for model in ["anthropic.claude-3-sonnet-20240229-v1:0", "meta.llama3-70b-instruct-v1:0", "openai.gpt-oss-120b-1:0"]
    {
        assert_eq!(marks(model), (false, Vec::new()), "{model}");
    }
}

#[test]
fn thoughts_go_to_models_that_take_them() {
    let sealed = |provider: &str| called(json!({"provider": provider, "thoughts": [{"signature": "s"}]}));
    let responses = |model: &str| {
        body(ProviderKind::OpenAiResponses, json!({}), model, &sealed("openai-responses"))["input"][0]["type"].clone()
    };
    assert_eq!((responses("gpt-5-mini"), responses("gpt-4o")), (json!("reasoning"), json!("function_call")));
    let bedrock = |model: &str, provider: &str| {
        let body = body(ProviderKind::Bedrock, json!({}), model, &sealed(provider));
        body["messages"][0]["content"][0].get("reasoningContent").is_some()
    };
    assert!(bedrock("anthropic.claude-opus-4-8", "bedrock") && !bedrock("openai.gpt-oss-120b-1:0", "bedrock"));
    assert!(bedrock("us.openai.gpt-5.6-luna", "bedrock-openai") && !bedrock("amazon.nova-lite-v1:0", "bedrock"));
}

#[test]
fn later_models_of_openai_use_tools_in_chat_completions_without_reasoning() {
    let tool = ToolSpec { name: "read".into(), description: String::new(), parameters: json!({"type": "object"}) };
    let tools = ModelRequest { tools: Arc::from([Arc::new(tool)]), ..ModelRequest::default() };
    let effort = |kind: ProviderKind, model: &str, request: &ModelRequest| {
        body(kind, json!({"reasoning": "high"}), model, request).get("reasoning_effort").cloned()
    };
    for (model, expected) in [("gpt-5.6", "none"), ("gpt-5.4-mini", "none"), ("gpt-5", "high"), ("gpt-5.1", "high")] {
        assert_eq!(effort(ProviderKind::OpenAi, model, &tools), Some(json!(expected)), "{model}");
        assert_eq!(effort(ProviderKind::OpenAi, model, &ModelRequest::default()), Some(json!("high")), "{model}");
    }
    assert_eq!(effort(ProviderKind::OpenRouter, "openai/gpt-5.6", &tools), Some(json!("high")));
    // Bedrock refuses a description that is empty.
    let sent = body(ProviderKind::Bedrock, json!({}), "amazon.nova-lite-v1:0", &tools);
    let spec = &sent["toolConfig"]["tools"][0]["toolSpec"];
    assert_eq!((spec["name"].as_str(), spec.get("description")), (Some("read"), None));
}
