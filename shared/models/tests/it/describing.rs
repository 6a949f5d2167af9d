//! Descriptions of pictures, sound and film, against a fake server: each provider's requests and answers.

use crate::support::{KEY, Server};
use buildscale_models::{Config, ConfigError};
use bytes::Bytes;
use ports::{Describer, ModelError, UnsupportedContent};
use serde_json::{Value, json};
use std::sync::Arc;
use wiremock::ResponseTemplate;

fn config(uri: &str) -> Config {
    serde_json::from_value(json!({
        "retry": {"attempts": 2, "base_ms": 1, "cap_ms": 1, "retry_after_cap_ms": 60_000},
        "prices": {"test-sees": {"input": 2.0, "output": 10.0}},
        "openai": {"api_key": KEY, "base_url": format!("{uri}/v1")},
        "anthropic": {"api_key": KEY, "base_url": uri},
        "gemini": {"api_key": KEY, "base_url": uri},
        "bedrock": {"api_key": KEY, "base_url": uri},
    }))
    .unwrap()
}

fn open(server: &Server, model: &str) -> Arc<dyn Describer> {
    config(&server.0.uri()).describer(model).unwrap()
}

/// Describes three bytes; the text, tokens read and written, the path, and the body without the words of the request.
async fn described(model: &str, media_type: &str, answer: Value) -> (String, (u64, u64), String, String) {
    let server = Server::with(vec![ResponseTemplate::new(200).set_body_json(answer)]).await;
    let described = open(&server, model).describe(media_type, Bytes::from_static(b"\x01\x02\x03")).await.unwrap();
    let request = server.requests().await.remove(0);
    let body: Value = request.body_json().unwrap();
    let usage = (described.usage.input_tokens, described.usage.output_tokens);
    (described.text, usage, request.url.path().to_owned(), body.to_string())
}

#[tokio::test]
async fn each_provider_gets_the_content_in_its_own_form() {
    let openai = json!({
        "choices": [{"message": {"content": "a cat"}}], "usage": {"prompt_tokens": 500_000, "completion_tokens": 100_000},
    });
    let (text, usage, path, body) = described("openai/test-sees", "image/png", openai.clone()).await;
    assert_eq!((text.as_str(), usage, path.as_str()), ("a cat", (500_000, 100_000), "/v1/chat/completions"));
    assert!(body.contains(r#""image_url":{"url":"data:image/png;base64,AQID"}"#), "{body}");
    let (.., body) = described("openai/gpt-audio", "audio/mpeg", openai).await;
    assert!(body.contains(r#""input_audio":{"data":"AQID","format":"mp3"}"#), "{body}");

    let anthropic = json!({
        "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "dog"}],
        "usage": {"input_tokens": 7, "output_tokens": 2},
    });
    let (text, usage, path, body) = described("anthropic/claude-haiku-4-5", "image/webp", anthropic).await;
    assert_eq!((text.as_str(), usage, path.as_str()), ("a dog", (7, 2), "/v1/messages"));
    assert!(body.contains(r#""source":{"type":"base64","media_type":"image/webp","data":"AQID"}"#), "{body}");

    let gemini = json!({
        "candidates": [{"content": {"parts": [{"text": "hm", "thought": true}, {"text": "a film"}]}}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 4},
    });
    let (text, usage, path, body) = described("gemini/gemini-2.5-flash", "video/mp4", gemini).await;
    assert_eq!((text.as_str(), usage), ("a film", (9, 7)));
    assert_eq!(path, "/v1beta/models/gemini-2.5-flash:generateContent");
    assert!(body.contains(r#""inline_data":{"mime_type":"video/mp4","data":"AQID"}"#), "{body}");

    let bedrock = json!({
        "output": {"message": {"content": [{"text": "a bird"}]}}, "usage": {"inputTokens": 5, "outputTokens": 6},
    });
    let (text, usage, path, body) = described("bedrock/amazon.nova-lite-v1:0", "video/quicktime", bedrock).await;
    assert_eq!((text.as_str(), usage, path.as_str()), ("a bird", (5, 6), "/model/amazon.nova-lite-v1%3A0/converse"));
    assert!(body.contains(r#""video":{"format":"mov","source":{"bytes":"AQID"}}"#), "{body}");
}

#[tokio::test]
async fn costs_are_counted_and_failures_that_pass_are_asked_again_once() {
    let good = json!({
        "choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 500_000, "completion_tokens": 100_000},
    });
    let good = || ResponseTemplate::new(200).set_body_json(good.clone());
    let server = Server::with(vec![ResponseTemplate::new(503), good()]).await;
    let found = open(&server, "openai/test-sees").describe("image/gif", Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(found.usage.cost_usd, 2.0);
    for answer in [json!({"choices": []}), json!("no")] {
        let server = Server::with(vec![ResponseTemplate::new(200).set_body_json(answer)]).await;
        let failed = open(&server, "openai/test-sees").describe("image/gif", Bytes::from_static(b"x")).await;
        assert!(matches!(failed, Err(ModelError::Rejected(_))), "{failed:?}");
    }
    // A model that thinks to its limit writes nothing, and is paid for that.
    let silent = json!({"choices": [{"message": {"content": ""}}], "usage": {"prompt_tokens": 500_000, "completion_tokens": 100_000}});
    let server = Server::with(vec![ResponseTemplate::new(200).set_body_json(silent)]).await;
    let silent = open(&server, "openai/test-sees").describe("image/gif", Bytes::from_static(b"x")).await.unwrap();
    assert_eq!((silent.text.as_str(), silent.usage.cost_usd), ("", 2.0));
}

#[tokio::test]
async fn a_model_takes_the_types_and_lengths_of_its_provider() {
    let server = Server::with(Vec::new()).await;
    let takes = |model: &str, media_type: &str, length: usize| open(&server, model).takes(media_type, length);
    assert_eq!(takes("anthropic/claude-haiku-4-5", "image/jpeg", 3_750_000), Ok(()));
    assert_eq!(
        takes("anthropic/claude-haiku-4-5", "image/jpeg", 3_750_001),
        Err(UnsupportedContent::Longer(3_750_000))
    );
    assert_eq!(takes("anthropic/claude-haiku-4-5", "audio/mpeg", 1), Err(UnsupportedContent::Type));
    assert_eq!(takes("openai/test-sees", "image/tiff", 1), Err(UnsupportedContent::Type));
    assert_eq!(takes("gemini/gemini-2.5-flash", "audio/flac", 1), Ok(()));
    assert_eq!(takes("bedrock/amazon.titan", "video/mp4", 1), Err(UnsupportedContent::Type));
    let refused = open(&server, "openai/test-sees").describe("text/plain", Bytes::new()).await;
    assert!(matches!(refused, Err(ModelError::Rejected(_))));
    assert!(server.requests().await.is_empty(), "what is not taken is not sent");
    assert!(matches!(config("http://127.0.0.1:9").describer("scripted/demo"), Err(ConfigError::Describing { .. })));
}
