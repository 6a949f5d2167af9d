//! Embeddings, against a fake server: each provider's requests and answers, and failures.

use crate::support::{KEY, Server};
use buildscale_models::{Config, ConfigError, RedactingEmbedder};
use ports::{EmbedAs, Embedder, KnownSecrets, ModelError, Secret};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use testkit::conformance;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers};

fn config(uri: &str) -> Config {
    serde_json::from_value(json!({
        "retry": {"attempts": 2, "base_ms": 1, "cap_ms": 1, "retry_after_cap_ms": 60_000},
        "prices": {"test-embed": {"input": 2.0, "output": 0.0}},
        "openai": {"api_key": KEY, "base_url": format!("{uri}/v1")},
        "gemini": {"api_key": KEY, "base_url": uri},
        "ollama": {"base_url": uri},
        "bedrock": {"api_key": KEY, "base_url": uri},
    }))
    .unwrap()
}

fn open(server: &Server, model: &str, dimensions: Option<u32>) -> Arc<dyn Embedder> {
    config(&server.0.uri()).embedder(model, dimensions).unwrap()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn answers(body: Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(body)
}

/// The path and the body of each request, in an order that does not depend on time.
async fn asked(server: &Server) -> Vec<(String, Value)> {
    let request = |request: &wiremock::Request| (request.url.path().to_owned(), request.body_json().unwrap());
    let mut asked: Vec<(String, Value)> = server.requests().await.iter().map(request).collect();
    asked.sort_by_key(|(_, body)| body.to_string());
    asked
}

/// Answers each provider's requests in its form. The vector of a text tells its length.
struct Lengths;

impl Respond for Lengths {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let body: Value = request.body_json().unwrap();
        let all = |field: &str| body[field].as_array().cloned().unwrap_or_default();
        let vector = |text: &Value| json!([text.as_str().unwrap().len(), 1]);
        let path = request.url.path();
        answers(if path.ends_with("/embeddings") {
            let one = |(index, text): (usize, &Value)| json!({"index": index, "embedding": vector(text)});
            // The order of an answer is not that of the texts.
            let data: Vec<Value> = all("input").iter().enumerate().map(one).rev().collect();
            json!({"data": data, "usage": {"prompt_tokens": 3}})
        } else if path.ends_with(":batchEmbedContents") {
            let one = |each: &Value| json!({"values": vector(&each["content"]["parts"][0]["text"])});
            json!({"embeddings": all("requests").iter().map(one).collect::<Vec<_>>()})
        } else if body["inputText"].is_string() {
            json!({"embedding": vector(&body["inputText"]), "inputTextTokenCount": 3})
        } else {
            json!({"embeddings": {"float": all("texts").iter().map(vector).collect::<Vec<_>>()}})
        })
    }
}

#[tokio::test]
async fn embedders_of_all_providers_conform_with_and_without_redaction() {
    let server = MockServer::start().await;
    Mock::given(matchers::any()).respond_with(Lengths).mount(&server).await;
    for model in [
        "openai/test-embed",
        "ollama/nomic-embed-text",
        "gemini/gemini-embedding-001",
        "bedrock/amazon.titan-embed-text-v2:0",
        "bedrock/cohere.embed-english-v3",
    ] {
        let open = || config(&server.uri()).embedder(model, None).unwrap();
        conformance::embedder(|| async { open() }).await;
        let redacting = |inner| Arc::new(RedactingEmbedder::new(inner, KnownSecrets::default())) as Arc<dyn Embedder>;
        conformance::embedder(|| async { redacting(open()) }).await;
    }
}

#[tokio::test]
async fn openai_and_its_imitators_are_asked_for_all_texts_at_once_and_answer_in_any_order() {
    let body = json!({
        "data": [{"index": 1, "embedding": [0.0, 2.5]}, {"index": 0, "embedding": [1, 0]}],
        "usage": {"prompt_tokens": 500_000, "total_tokens": 500_000},
    });
    let server = Server::with(vec![answers(body.clone()), answers(body)]).await;
    let model = open(&server, "openai/test-embed", Some(2));
    assert_eq!(model.space(), "openai/test-embed#2");
    let found = model.embed(&texts(&["a", "b"]), EmbedAs::Passage).await.unwrap();
    assert_eq!(found.vectors, [[1.0, 0.0], [0.0, 2.5]]);
    assert_eq!((found.usage.input_tokens, found.usage.cost_usd), (500_000, 1.0));
    let model = open(&server, "ollama/nomic-embed-text", None);
    model.embed(&texts(&["a", "b"]), EmbedAs::Query).await.unwrap();
    let expected = [
        json!({"model": "nomic-embed-text", "input": ["a", "b"], "encoding_format": "float"}),
        json!({"model": "test-embed", "input": ["a", "b"], "encoding_format": "float", "dimensions": 2}),
    ];
    let mut seen = asked(&server).await;
    seen.sort_by_key(|(_, body)| body["model"].to_string());
    assert_eq!(seen, expected.map(|body| ("/v1/embeddings".to_owned(), body)));
    let key = server.requests().await[0].headers["authorization"].to_str().unwrap().to_owned();
    assert_eq!(key, format!("Bearer {KEY}"));
}

#[tokio::test]
async fn gemini_is_told_the_use_of_a_text_and_its_tokens_are_estimated() {
    let body = json!({"embeddings": [{"values": [1.0, 0.0]}, {"values": [0.0, 1.0]}]});
    let server = Server::with(vec![answers(body)]).await;
    let model = open(&server, "gemini/gemini-embedding-001", Some(768));
    let found = model.embed(&texts(&["eight ch", "b"]), EmbedAs::Query).await.unwrap();
    assert_eq!((found.vectors.len(), found.usage.input_tokens), (2, 3));
    let (path, body) = asked(&server).await.remove(0);
    assert_eq!(path, "/v1beta/models/gemini-embedding-001:batchEmbedContents");
    assert_eq!(
        body["requests"][0],
        json!({
            "model": "models/gemini-embedding-001", "content": {"parts": [{"text": "eight ch"}]},
            "taskType": "RETRIEVAL_QUERY", "outputDimensionality": 768,
        })
    );
}

#[tokio::test]
async fn titan_takes_a_text_at_a_time_and_cohere_all() {
    let titan = |_: usize| answers(json!({"embedding": [0.5, 0.5], "inputTextTokenCount": 4}));
    let server = Server::with((0..3).map(titan).collect()).await;
    let model = open(&server, "bedrock/amazon.titan-embed-text-v2:0", Some(256));
    let found = model.embed(&texts(&["a", "b", "c"]), EmbedAs::Passage).await.unwrap();
    assert_eq!((found.vectors.len(), found.usage.input_tokens), (3, 12));
    let seen = asked(&server).await;
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0].1, json!({"inputText": "a", "normalize": true, "dimensions": 256}));
    assert_eq!(seen[0].0, "/model/amazon.titan-embed-text-v2%3A0/invoke");

    let cohere = answers(json!({"embeddings": {"float": [[1.0], [2.0]]}}));
    let server = Server::with(vec![cohere.insert_header("x-amzn-bedrock-input-token-count", "7")]).await;
    let model = open(&server, "bedrock/cohere.embed-english-v3", None);
    let found = model.embed(&texts(&["a", "b"]), EmbedAs::Query).await.unwrap();
    assert_eq!((found.vectors, found.usage.input_tokens), (vec![vec![1.0], vec![2.0]], 7));
    let (_, body) = asked(&server).await.remove(0);
    assert_eq!(body["input_type"], json!("search_query"));
}

/// Answers Titan's requests, four tokens each. The next ones for `text` fail.
struct Failing {
    text: &'static str,
    status: u16,
    times: AtomicUsize,
}

impl Respond for Failing {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let body: Value = request.body_json().unwrap();
        let one_less = |left: usize| left.checked_sub(1);
        if body["inputText"] == self.text && self.times.fetch_update(Relaxed, Relaxed, one_less).is_ok() {
            return ResponseTemplate::new(self.status);
        }
        answers(json!({"embedding": [body["inputText"].as_str().unwrap().len(), 1], "inputTextTokenCount": 4}))
    }
}

#[tokio::test]
async fn each_answered_request_of_a_batch_of_titan_is_counted_once_and_its_text_not_asked_again() {
    let embeds = async |status: u16, times: usize| {
        let server = MockServer::start().await;
        let failing = Failing { text: "bb", status, times: AtomicUsize::new(times) };
        Mock::given(matchers::any()).respond_with(failing).mount(&server).await;
        let model = config(&server.uri()).embedder("bedrock/amazon.titan-embed-text-v2:0", None).unwrap();
        let embedded = model.embed(&texts(&["a", "bb", "ccc"]), EmbedAs::Passage).await.unwrap();
        (embedded, server.received_requests().await.unwrap().len())
    };
    let (whole, requests) = embeds(503, 1).await;
    assert_eq!(whole.vectors, [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]);
    assert_eq!((whole.usage.input_tokens, whole.failed, requests), (12, None, 4));
    let (part, requests) = embeds(503, 2).await;
    assert_eq!(part.vectors, [[1.0, 1.0]], "those before the text that failed");
    assert_eq!((part.usage.input_tokens, requests), (8, 4), "the last text was answered and is paid for");
    assert!(part.usage.cost_usd > 0.0 && matches!(part.failed, Some(ModelError::Unavailable(_))), "{part:?}");
    let (part, requests) = embeds(400, 1).await;
    assert_eq!((part.vectors.len(), part.usage.input_tokens, requests), (1, 8, 3));
    assert!(matches!(part.failed, Some(ModelError::Rejected(_))), "{part:?}");
}

#[tokio::test]
async fn failures_that_pass_are_asked_again_once_and_long_waits_are_the_callers() {
    let good = || answers(json!({"data": [{"embedding": [1.0]}]}));
    let server = Server::with(vec![ResponseTemplate::new(503), good()]).await;
    let model = open(&server, "openai/test-embed", None);
    assert!(model.embed(&texts(&["a"]), EmbedAs::Query).await.is_ok());
    let busy = ResponseTemplate::new(429).insert_header("retry-after", "7");
    let wrong = ResponseTemplate::new(401).set_body_string(format!("no such key {KEY}"));
    let few = answers(json!({"data": []}));
    let odd = answers(json!({"data": [{"embedding": [1.0, "x"]}]}));
    let page = ResponseTemplate::new(200).set_body_string("<html>");
    let server = Server::with(vec![busy, wrong, few, odd, page.clone(), page]).await;
    let model = open(&server, "openai/test-embed", None);
    let fails = async || match model.embed(&texts(&["a"]), EmbedAs::Query).await {
        // The provider answered, so its tokens are counted.
        Ok(embedded) => embedded.failed.filter(|_| embedded.usage.input_tokens > 0).unwrap(),
        Err(failure) => failure,
    };
    assert_eq!(fails().await, ModelError::RateLimited { retry_after: Some(Duration::from_secs(7)) });
    let refused = fails().await;
    assert!(matches!(&refused, ModelError::Unauthorized(why) if !why.contains(KEY)), "{refused}");
    assert!(matches!(fails().await, ModelError::Broken(_)), "two answers that are no vectors");
    assert!(matches!(fails().await, ModelError::Broken(_)), "two that are no JSON");
    let blank = model.embed(&texts(&["a", " "]), EmbedAs::Passage).await.unwrap_err();
    assert!(matches!(blank, ModelError::Rejected(_)));
    assert_eq!(server.requests().await.len(), 6, "which is not even asked");
}

#[tokio::test]
async fn secrets_of_the_host_are_not_embedded() {
    let server = Server::with(vec![answers(json!({"data": [{"embedding": [1.0]}]}))]).await;
    let known = KnownSecrets::default();
    known.learn([&Secret::new("swordfish-swordfish")]);
    let model = RedactingEmbedder::new(open(&server, "openai/test-embed", None), known);
    model.embed(&texts(&["the word is swordfish-swordfish"]), EmbedAs::Passage).await.unwrap();
    assert_eq!(asked(&server).await[0].1["input"], json!(["the word is [redacted]"]));
}

#[test]
fn a_model_that_does_not_embed_is_refused_with_the_reason() {
    for (model, reason) in [
        ("anthropic/claude-sonnet-4-5", "anthropic has no such models"),
        ("scripted/demo", "a script makes no vectors"),
        ("bedrock/amazon.nova-lite-v1:0", "Titan"),
    ] {
        let refused = config("http://127.0.0.1:9").embedder(model, None).map(|_| ()).unwrap_err();
        assert!(matches!(refused, ConfigError::Embedding { .. }) && refused.to_string().contains(reason), "{refused}");
    }
    let unknown = Config::default().embedder("my-own", None).map(|_| ()).unwrap_err();
    assert!(unknown.to_string().contains("provider/model"), "{unknown}");
    assert!(config("http://127.0.0.1:9").embedder("openai/x", Some(0)).is_err());
}
