//! Files that models see or hear, in each format.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use serde_json::json;

fn body(kind: ProviderKind, config: Value, model: &str, request: &ModelRequest) -> Value {
    let config = Arc::new(serde_json::from_value(config).unwrap());
    let provider = Provider::new(kind, config, Arc::default(), Redactor::default()).unwrap();
    provider.wire.body(&provider.asked(model, request))
}

/// A message with an image, a PDF and a sound, and a call that read an image.
fn seen() -> ModelRequest {
    let of = uuid::Uuid::from_u128;
    let media = |at, name: &str, media_type, bytes: &'static [u8]| {
        Arc::new(ports::Media { of: of(at), name: name.into(), media_type, bytes: bytes.into() })
    };
    let (at, files, context) = (domain::Timestamp::default(), Vec::new(), "words".to_owned());
    let call_id = domain::CallId(of(2));
    let call = domain::ToolCall { call_id, tool: "read".into(), args: "{}".into() };
    let messages = vec![
        domain::Message::User {
            id: domain::MessageId(of(1)),
            at,
            content: "Look.".into(),
            files,
            context,
            user_id: None,
        },
        domain::Message::Assistant {
            id: domain::MessageId(of(3)),
            at,
            content: "I read.".into(),
            calls: vec![call],
            reasoning: String::new(),
            provider: Value::Null,
        },
        domain::Message::Tool { call_id, tool: "read".into(), at, output: "[a file]".into(), success: true },
    ];
    let media = vec![
        media(1, "a.png", "image/png", b"png"),
        media(1, "the_plan.pdf", "application/pdf", b"pdf"),
        media(1, "a.mp3", "audio/mpeg", b"mp3"),
        media(2, "b.webp", "image/webp", b"webp"),
    ];
    ModelRequest { messages: messages.into_iter().map(Arc::new).collect(), media, ..ModelRequest::default() }
}

#[test]
fn each_format_has_the_files_that_its_models_take() {
    let of = |kind: ProviderKind, model: &str| body(kind, json!({}), model, &seen());
    let words = "Look.\n\nwords";
    let text = json!({"type": "text", "text": words});
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}});
    let pdf = "data:application/pdf;base64,cGRm";
    let file = json!({"type": "file", "file": {"filename": "the_plan.pdf", "file_data": pdf}});
    let sound = json!({"type": "input_audio", "input_audio": {"data": "bXAz", "format": "mp3"}});
    assert_eq!(of(ProviderKind::OpenAi, "gpt-4o")["messages"][0]["content"], json!([text, image, file]));
    assert_eq!(of(ProviderKind::OpenAi, "gpt-4o-audio")["messages"][0]["content"], json!([text, image, file, sound]));
    let read = &of(ProviderKind::OpenAi, "gpt-4o")["messages"][3];
    assert_eq!((&read["role"], &read["content"][1]["type"]), (&json!("user"), &json!("image_url")));
    assert_eq!(
        of(ProviderKind::OpenAiResponses, "gpt-5")["input"][0]["content"],
        json!([
            {"type": "input_text", "text": words}, {"type": "input_image", "image_url": "data:image/png;base64,cG5n"},
            {"type": "input_file", "filename": "the_plan.pdf", "file_data": pdf},
        ])
    );
    let source = |kind: &str, data: &str| json!({"type": "base64", "media_type": kind, "data": data});
    assert_eq!(
        of(ProviderKind::Anthropic, "claude-sonnet-4-5")["messages"][0]["content"],
        json!([
            {"type": "image", "source": source("image/png", "cG5n")},
            {"type": "document", "source": source("application/pdf", "cGRm")}, text,
        ])
    );
    let inline = |kind: &str, data: &str| json!({"inlineData": {"mimeType": kind, "data": data}});
    assert_eq!(
        of(ProviderKind::Gemini, "gemini-2.5-flash")["contents"][0]["parts"],
        json!([
            inline("image/png", "cG5n"), inline("application/pdf", "cGRm"), inline("audio/mp3", "bXAz"),
            {"text": words},
        ])
    );
    let bytes = |data: &str| json!({"bytes": data});
    // Bedrock refuses two documents of one name, also in different messages.
    let named = format!("the plan pdf {}-2", uuid::Uuid::from_u128(1).simple());
    assert_eq!(
        of(ProviderKind::Bedrock, "anthropic.claude-sonnet")["messages"][0]["content"],
        json!([
            {"image": {"format": "png", "source": bytes("cG5n")}},
            {"document": {"format": "pdf", "name": named, "source": bytes("cGRm")}}, {"text": words},
        ])
    );
}

#[test]
fn models_that_take_no_files_read_the_words_and_the_owner_of_a_server_says_otherwise() {
    let words = json!("Look.\n\nwords");
    let content = |kind: ProviderKind, config: Value, model: &str| {
        body(kind, config, model, &seen())["messages"][0]["content"].clone()
    };
    assert_eq!(content(ProviderKind::Ollama, json!({}), "llama"), words);
    assert_eq!(content(ProviderKind::OpenAi, json!({"openai": {"base_url": "http://h/v1"}}), "m"), words);
    assert_eq!(content(ProviderKind::OpenAi, json!({"openai": {"media": false}}), "gpt-4o"), words);
    let own = content(ProviderKind::Ollama, json!({"ollama": {"media": true}}), "llava");
    assert_eq!(own.as_array().map(Vec::len), Some(2), "chat completions of others have images alone: {own}");
}
