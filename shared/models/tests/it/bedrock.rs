//! The special features of Bedrock: its framing, its exceptions, its demands, and keys out of a role.

use crate::support::{
    Anywhere, Server, converse, deltas, error, eventstream, frames::Piece, request, result, says, sse, user,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use buildscale_models::{Adapters, Config, Router};
use ports::{Delta, Endpoint, Model, ModelAdapters, ModelError};
use serde_json::{Value, json};
use std::sync::Arc;

const MODEL: &str = "bedrock/amazon.nova-lite-v1:0";

fn hello() -> wiremock::ResponseTemplate {
    sse(converse::frames(&[Piece::Say("Hello")], "end_turn"))
}

#[test]
fn the_framing_is_awss() {
    // The empty message of the test vectors that the SDKs of AWS share.
    assert_eq!(
        eventstream::message(&[], b""),
        [0, 0, 0, 16, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff]
    );
}

#[tokio::test]
async fn a_message_that_was_damaged_on_its_way_is_not_believed() {
    let mut damaged = converse::frames(&[Piece::Say("Pay 1 dollar")], "end_turn");
    let digit = damaged.windows(5).position(|bytes| bytes == b"Pay 1").unwrap() + 4;
    damaged[digit] = b'9';
    let server = Server::with(vec![sse(damaged), hello()]).await;
    assert_eq!(deltas(&server.router(), request(MODEL, vec![user("Hi")])).await[0], Delta::Text("Hello".into()));
    assert_eq!(server.requests().await.len(), 2, "nothing was passed on, so it was asked again");
}

#[tokio::test]
async fn exceptions_inside_an_answer_are_told_apart() {
    let throttled =
        || sse(converse::exception("throttlingException", "Too many requests, please wait before trying again."));
    let server = Server::with(vec![throttled(), throttled()]).await;
    let said = error(&server.router(), request(MODEL, vec![user("Hi")])).await;
    assert_eq!(said, ModelError::RateLimited { retry_after: None });
    let failed = || sse(converse::exception("modelStreamErrorException", "the model failed"));
    let server = Server::with(vec![failed(), failed()]).await;
    let said = error(&server.router(), request(MODEL, vec![user("Hi")])).await;
    assert_eq!(said, ModelError::Broken("the model failed".into()));
}

#[tokio::test]
async fn a_history_that_other_providers_take_is_made_to_fit() {
    let history = vec![
        user("Read them."),
        says("\n", &[("read", "{}"), ("ls", "not json")], Value::Null),
        result("read", ""),
        result("ls", "a\nb"),
        says("", &[], Value::Null),
        user(" "),
        user("Go on."),
    ];
    let server = Server::with(vec![hello(), hello()]).await;
    let router = server.router();
    assert_eq!(deltas(&router, request(MODEL, history.clone())).await[0], Delta::Text("Hello".into()));
    let mut without_tools = request(MODEL, history);
    without_tools.tools = Arc::new([]);
    assert_eq!(deltas(&router, without_tools).await[0], Delta::Text("Hello".into()));

    let sent = server.requests().await;
    let body: Value = serde_json::from_slice(&sent[1].body).unwrap();
    let blocks = body["messages"][2]["content"].as_array().unwrap();
    let texts: Vec<_> = blocks.iter().filter_map(|block| block.get("text")).collect();
    assert_eq!(texts, ["(nothing)", "Go on."]);
    let tools = body["toolConfig"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &tool["toolSpec"]["name"]).collect();
    assert_eq!(names, ["ls", "read"], "those that the history has calls of");
}

/// As a Lambda finds its environment, with Bedrock switched on.
fn in_a_function(uri: &str) -> Config {
    let file = serde_json::from_value(json!({"bedrock": {"region": "eu-west-1"}})).unwrap();
    let uri = uri.to_owned();
    Config::from_lookup(Some(file), move |name| {
        let value = match name {
            "AWS_REGION" => "us-west-2",
            "AWS_ACCESS_KEY_ID" => "ASIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY" => "secret-of-the-role",
            "AWS_SESSION_TOKEN" => "session-of-the-role",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME" => &uri,
            _ => return None,
        };
        Some(value.to_owned())
    })
}

#[tokio::test]
async fn a_role_needs_no_key() {
    let server = Server::with(vec![hello()]).await;
    let router = Router::new(in_a_function(&server.0.uri())).unwrap();
    assert_eq!(router.default_model(), "bedrock/global.anthropic.claude-sonnet-4-5-20250929-v1:0");
    deltas(&router, request(MODEL, vec![user("Hi")])).await;

    let sent = server.requests().await.remove(0);
    assert_eq!(sent.url.path(), "/model/amazon.nova-lite-v1%3A0/converse-stream");
    let key =
        sent.headers["authorization"].to_str().unwrap().strip_prefix("Bearer bedrock-api-key-").unwrap().to_owned();
    let url = String::from_utf8(BASE64_STANDARD.decode(key).unwrap()).unwrap();
    assert!(url.starts_with("bedrock.amazonaws.com/?Action=CallWithBearerToken&"), "{url}");
    assert!(url.contains("X-Amz-Credential=ASIAEXAMPLE%2F") && url.contains("%2Feu-west-1%2Fbedrock%2F"), "{url}");
    assert!(url.contains("X-Amz-Security-Token=session-of-the-role") && !url.contains("secret-of-the-role"), "{url}");
}

#[tokio::test]
async fn a_flow_does_not_get_the_role() {
    let server = Server::with(vec![hello()]).await;
    let router = Arc::new(Router::new(in_a_function(&server.0.uri())).unwrap());
    let adapters = Adapters::new(router, Arc::new(Anywhere));
    let endpoint =
        |base_url| Endpoint { adapter: "bedrock".into(), base_url, key: None, config: serde_json::Map::new() };
    for base_url in [None, Some(server.0.uri())] {
        let model = adapters.open(&endpoint(base_url.clone())).unwrap();
        let said = model.stream(request("amazon.nova-lite-v1:0", vec![user("Hi")])).await;
        drop(said);
        for sent in server.requests().await {
            assert_eq!(sent.headers["authorization"], "Bearer none", "{base_url:?}");
        }
    }
}

#[test]
fn credentials_alone_switch_nothing_on() {
    let config = Config::from_lookup(None, |name| {
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].contains(&name).then(|| "of the role".to_owned())
    });
    let router = Router::new(config).unwrap();
    assert!(router.no_model_configured());
    assert!(router.catalog().iter().all(|info| info.provider != "bedrock" || !info.available));
}
