//! Each provider's protocol, against a fake server: requests, answers and failures.

use crate::support::{
    KEY, Server, answers, deltas, error,
    frames::{self, Piece},
    note, request, result, router, says, sse, user,
};
use domain::{Message, Usage, event::StopReason};
use ports::{Delta, Model, ModelError, ModelRequest};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wiremock::ResponseTemplate;

/// A protocol: a model that speaks it, its frames, and the place of the history in its requests.
struct Protocol {
    model: &'static str,
    path: &'static str,
    key_header: (&'static str, String),
    history: &'static str,
    /// The end of its list, so that more may follow.
    end: &'static str,
    frames: fn(&[Piece<'_>], &str) -> Vec<u8>,
    stop: &'static str,
    cut: &'static str,
}

fn protocols() -> [Protocol; 5] {
    let bearer = || ("authorization", format!("Bearer {KEY}"));
    [
        Protocol {
            model: "openai/test-model",
            path: "/v1/chat/completions",
            key_header: bearer(),
            history: "messages",
            end: "]",
            frames: |pieces, stop| frames::chat_completions(pieces, stop).into(),
            stop: "stop",
            cut: "length",
        },
        Protocol {
            model: "openai-responses/gpt-5-mini",
            path: "/v1/responses",
            key_header: bearer(),
            history: "input",
            end: "]",
            frames: |pieces, stop| frames::responses(pieces, stop).into(),
            stop: "completed",
            cut: "incomplete",
        },
        Protocol {
            model: "anthropic/claude-sonnet-4-5",
            path: "/v1/messages",
            key_header: ("x-api-key", KEY.into()),
            history: "messages",
            end: "]",
            frames: |pieces, stop| frames::messages(pieces, stop).into(),
            stop: "end_turn",
            cut: "max_tokens",
        },
        Protocol {
            model: "gemini/gemini-2.5-flash",
            path: "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
            key_header: ("x-goog-api-key", KEY.into()),
            history: "contents",
            end: "]",
            frames: |pieces, stop| frames::generate_content(pieces, stop).into(),
            stop: "STOP",
            cut: "MAX_TOKENS",
        },
        Protocol {
            model: "bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
            path: "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream",
            key_header: bearer(),
            history: "messages",
            // A person's words continue the same message.
            end: "]}]",
            frames: frames::converse,
            stop: "end_turn",
            cut: "max_tokens",
        },
    ]
}

/// The name of a snapshot: the provider.
fn name(protocol: &Protocol) -> &str {
    protocol.model.split('/').next().unwrap()
}

const ARGS: &[&str] = &["{\"path\":", " \"/a b\"}"];
const ANSWER: &[Piece<'_>] = &[
    Piece::Think("I think."),
    Piece::Say("Hel"),
    Piece::Say("lo"),
    Piece::Call("toolu_1", "read", ARGS),
    Piece::Call("toolu_2", "ls", &["{}"]),
];

#[tokio::test]
async fn text_reasoning_calls_and_usage_come_from_every_protocol() {
    for protocol in protocols() {
        let server = Server::with(vec![sse((protocol.frames)(ANSWER, protocol.stop))]).await;
        let said = deltas(&server.router(), request(protocol.model, vec![user("Read it.")])).await;

        assert_eq!(said[0], Delta::Reasoning("I think.".into()), "{}", protocol.model);
        assert_eq!(said[1..3], [Delta::Text("Hel".into()), Delta::Text("lo".into())], "{}", protocol.model);
        // As the model wrote it, spaces and all; Gemini sends a value, not a text.
        let args = if name(&protocol) == "gemini" { r#"{"path":"/a b"}"# } else { r#"{"path": "/a b"}"# };
        assert_eq!(said[3], Delta::Call { tool: "read".into(), args: args.into() }, "{}", protocol.model);
        assert_eq!(said[4], Delta::Call { tool: "ls".into(), args: "{}".into() }, "{}", protocol.model);
        let Delta::End { reason, usage, provider, .. } = &said[5] else { panic!("{said:?}") };
        assert_eq!(*reason, StopReason::EndTurn, "{}", protocol.model);
        assert_eq!((usage.input_tokens, usage.output_tokens, usage.cached_tokens), (100, 20, 64), "{}", protocol.model);
        assert!(usage.cost_usd > 0.0, "{}", protocol.model);
        assert_eq!(said.len(), 6, "{}", protocol.model);
        insta::assert_json_snapshot!(format!("kept-{}", name(&protocol)), provider);

        let sent = server.requests().await.remove(0);
        assert_eq!(sent.url.path(), protocol.path);
        let (header, value) = &protocol.key_header;
        assert_eq!(sent.headers.get(*header).unwrap().to_str().unwrap(), value, "{}", protocol.model);
        assert!(!sent.url.as_str().contains(KEY), "a key in a URL ends in logs");
    }
}

#[tokio::test]
async fn an_answer_by_a_schema_is_text_in_every_protocol() {
    let args: &[&str] = &["{\"path\":", " \"/a b\"}"];
    for protocol in protocols() {
        let forces = ["anthropic", "bedrock"].contains(&name(&protocol));
        let pieces =
            if forces { [Piece::Call("toolu_1", "answer", args)] } else { [Piece::Say(r#"{"path": "/a b"}"#)] };
        let server = Server::with(vec![sse((protocol.frames)(&pieces, protocol.stop))]).await;
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        let asked = ModelRequest {
            tools: Arc::new([]),
            schema: Some(Arc::new(schema)),
            ..request(protocol.model, vec![user("Where is it?")])
        };
        let said = deltas(&server.router(), asked).await;
        assert_eq!(said[0], Delta::Text(r#"{"path": "/a b"}"#.into()), "{}", protocol.model);
        assert!(matches!(said[1..], [Delta::End { .. }]), "{}: {said:?}", protocol.model);
    }
}

#[tokio::test]
async fn configured_prices_are_applied() {
    let server = Server::with(vec![sse(frames::chat_completions(&[Piece::Say("x")], "stop").into())]).await;
    let said = deltas(&server.router(), request("openai/test-model", vec![user("Hi")])).await;
    let Some(Delta::End { usage, .. }) = said.last() else { panic!("{said:?}") };
    let cost_usd = (36.0 + 64.0 * 0.5 + 20.0 * 10.0) / 1e6;
    assert_eq!(*usage, Usage { input_tokens: 100, output_tokens: 20, cached_tokens: 64, cost_usd });
    // The same for a call whose usage is estimated, also of a provider that a flow declares.
    let cost = |model| server.router().cost(Some(model), usage);
    assert_eq!(cost("openai/test-model"), cost_usd);
    assert_eq!(cost("acme/gpt-4o"), (36.0 * 2.5 + 64.0 * 1.25 + 20.0 * 10.0) / 1e6);
    assert_eq!((cost("openai/unknown"), cost("scripted/demo")), (0.0, 0.0));
}

#[tokio::test]
async fn the_cost_that_openrouter_tells_counts_where_no_price_is_known() {
    let check = async |model: &str, cost: Value, expected: f64| {
        let usage = json!({"prompt_tokens": 9, "completion_tokens": 5, "cost": cost});
        let choice = json!({"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"});
        let chunk = json!({"choices": [choice], "usage": usage});
        let server = Server::with(vec![sse(format!("data: {chunk}\n\ndata: [DONE]\n\n").into())]).await;
        let said = deltas(&server.router(), request(model, vec![user("Hi")])).await;
        let Some(Delta::End { usage, .. }) = said.last() else { panic!("{said:?}") };
        assert_eq!(usage.cost_usd, expected, "{model} {cost}");
    };
    check("openrouter/lab/unknown", json!(0.01), 0.01).await;
    check("openrouter/test-model", json!(0.01), (9.0 + 5.0 * 10.0) / 1e6).await;
    // A server of one's own may count in another currency, and nobody is paid for an answer.
    check("openai/unknown", json!(0.01), 0.0).await;
    for cost in [json!(-1), json!("0.01"), json!({"total": 1}), json!(null)] {
        check("openrouter/lab/unknown", cost, 0.0).await;
    }
}

/// Two turns: the second request's history continues the first one's.
fn two_turns(kept: &Value) -> (Vec<Message>, Vec<Message>) {
    let first = vec![
        user("Read it."),
        says("Hello", &[("read", r#"{"path": "/a b"}"#), ("ls", "not json")], kept.clone()),
        result("read", "line 1\nline 2"),
        result("ls", "error: invalid arguments"),
        note("[System: Response was interrupted by user (user_cancelled)]"),
    ];
    let mut second = first.clone();
    second.extend([says("", &[], Value::Null), note("The plan changed."), user("And now?")]);
    (first, second)
}

#[tokio::test]
async fn the_history_is_sent_whole_and_its_bytes_do_not_change_between_turns() {
    for protocol in protocols() {
        let answer = || sse((protocol.frames)(ANSWER, protocol.stop));
        let server = Server::with(vec![answer(), answer(), answer()]).await;
        let router = server.router();
        let said = deltas(&router, request(protocol.model, vec![user("Read it.")])).await;
        let Some(Delta::End { provider: kept, .. }) = said.last() else { panic!("{said:?}") };
        let (first, second) = two_turns(kept);
        deltas(&router, request(protocol.model, first)).await;
        deltas(&router, request(protocol.model, second)).await;

        let bodies: Vec<String> =
            server.requests().await.into_iter().map(|sent| String::from_utf8(sent.body).unwrap()).collect();
        let parsed: Value = serde_json::from_str(&bodies[2]).unwrap();
        insta::assert_json_snapshot!(format!("request-{}", name(&protocol)), parsed);
        // The marks of a cache move on with the conversation, and are no part of what is kept.
        let mark = r#",{"cachePoint":{"type":"default"}}"#;
        let bodies: Vec<String> = bodies.iter().map(|body| body.replace(mark, "")).collect();
        for pair in bodies.windows(2) {
            let history = serde_json::from_str::<Value>(&pair[0]).unwrap()[protocol.history].to_string();
            let history = history.strip_suffix(protocol.end).unwrap();
            let end = pair[0].find(history).unwrap() + history.len();
            assert_eq!(pair[0][..end], pair[1][..end], "{}", protocol.model);
        }
    }
}

/// Every name that a request has for a tool, in any place of the protocol.
fn tool_names(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| tool_names(item, names)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(name) if key == "name" => names.push(name.clone()),
                    _ => tool_names(value, names),
                }
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn a_name_that_a_model_made_up_is_sent_back_in_a_form_that_every_provider_takes() {
    let long = "x".repeat(100);
    let made_up = ["functions.write", "", "ünïcode tool", &long, "a/b:c", "\u{0}", "ls"];
    for protocol in protocols() {
        let answer = || sse((protocol.frames)(ANSWER, protocol.stop));
        let server = Server::with(vec![answer(), answer()]).await;
        let mut history = vec![user("Do it.")];
        for name in made_up {
            history.push(says("", &[(name, "{}")], Value::Null));
            history.push(result(name, "error: there is no such tool"));
        }
        for _ in 0..2 {
            deltas(&server.router(), request(protocol.model, history.clone())).await;
        }
        let sent = server.requests().await;
        assert_eq!(sent[0].body, sent[1].body, "{}: the same bytes each time", protocol.model);
        let mut names = Vec::new();
        tool_names(&serde_json::from_slice(&sent[0].body).unwrap(), &mut names);
        assert!(names.len() >= made_up.len(), "{}: {names:?}", protocol.model);
        for name in &names {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!((1..=64).contains(&name.len()) && name.chars().all(allowed), "{}: {name:?}", protocol.model);
        }
        assert!(names.iter().any(|name| name == "ls"), "a name that is allowed stays what it is: {names:?}");
    }
}

#[tokio::test]
async fn an_answer_that_hits_the_output_limit_says_so_and_half_a_call_is_no_call() {
    for protocol in protocols() {
        let mut pieces = vec![Piece::Say("It begins")];
        if name(&protocol) != "gemini" {
            pieces.push(Piece::Call("c1", "read", &["{\"path\": \"/a"]));
        }
        let server = Server::with(vec![sse((protocol.frames)(&pieces, protocol.cut))]).await;
        let said = deltas(&server.router(), request(protocol.model, vec![user("Go on.")])).await;
        assert_eq!(said[0], Delta::Text("It begins".into()));
        assert!(
            matches!(said[1], Delta::End { reason: StopReason::MaxOutputTokens, .. }),
            "{}: {said:?}",
            protocol.model
        );
    }
}

#[tokio::test]
async fn refusals_of_the_model_and_calls_without_sense_are_told_apart() {
    let filtered = sse(frames::chat_completions(&[Piece::Say("I")], "content_filter").into());
    let malformed = || sse(frames::generate_content(&[], "MALFORMED_FUNCTION_CALL").into());
    let server = Server::with(vec![filtered, malformed(), malformed()]).await;
    let router = server.router();
    let said = deltas(&router, request("openai/test-model", vec![user("Hi")])).await;
    assert!(matches!(said[1], Delta::End { reason: StopReason::Refusal, .. }), "{said:?}");
    let said = error(&router, request("gemini/gemini-2.5-flash", vec![user("Hi")])).await;
    assert!(matches!(said, ModelError::Broken(_)), "{said:?}");
}

#[tokio::test]
async fn a_stream_that_is_cut_off_is_broken_not_finished() {
    for protocol in protocols() {
        // The frames up to the second piece of text.
        let whole = (protocol.frames)(&[Piece::Say("Hel"), Piece::Say("lo")], protocol.stop);
        let second = whole.windows(4).position(|bytes| bytes == b"\"lo\"").unwrap();
        let cut = whole[..second - 30].to_owned();
        let server = Server::with(vec![sse(cut)]).await;
        let said = answers(&server.router(), request(protocol.model, vec![user("Hi")])).await;
        assert_eq!(said[0], Ok(Delta::Text("Hel".into())), "{}", protocol.model);
        assert!(matches!(said.last(), Some(Err(ModelError::Broken(_)))), "{}: {said:?}", protocol.model);
        assert!(!said.iter().any(|delta| matches!(delta, Ok(Delta::End { .. }))), "{}: {said:?}", protocol.model);
        assert_eq!(server.requests().await.len(), 1, "a delta that was passed on cannot be taken back");
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_is_broken() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    let serve = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 65536]).await.unwrap();
        let body = frames::chat_completions(&[Piece::Say("Hel"), Piece::Say("lo")], "stop");
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n", body.len());
        socket.write_all(format!("{head}{}", &body[..body.find("\"lo\"").unwrap()]).as_bytes()).await.unwrap();
    });
    let said = answers(&router(&uri), request("openai/test-model", vec![user("Hi")])).await;
    serve.await.unwrap();
    assert_eq!(said[0], Ok(Delta::Text("Hel".into())));
    assert!(matches!(said.last(), Some(Err(ModelError::Broken(_)))), "{said:?}");
}

#[tokio::test]
async fn limits_and_faults_are_tried_again() {
    for protocol in protocols() {
        for refusal in [
            ResponseTemplate::new(429).insert_header("retry-after", "1"),
            ResponseTemplate::new(500),
            ResponseTemplate::new(529).set_body_json(json!({"error": {"message": "Overloaded"}})),
        ] {
            let answer = sse((protocol.frames)(&[Piece::Say("Hello")], protocol.stop));
            let server = Server::with(vec![refusal, answer]).await;
            let said = deltas(&server.router(), request(protocol.model, vec![user("Hi")])).await;
            assert_eq!(said[0], Delta::Text("Hello".into()), "{}", protocol.model);
            let bodies: Vec<_> = server.requests().await.into_iter().map(|sent| sent.body).collect();
            assert_eq!((bodies.len(), &bodies[0]), (2, &bodies[1]), "{}", protocol.model);
        }
    }
}

#[tokio::test]
async fn refusals_are_told_apart_and_not_tried_again() {
    for protocol in protocols() {
        let body = json!({"error": {"message": format!("Incorrect API key provided: {KEY} (or sk-abcdefghijkl)"), "type": "x"}});
        let refuse = |status| ResponseTemplate::new(status).set_body_json(&body);
        let server = Server::with(vec![refuse(401), refuse(400)]).await;
        let router = server.router();
        let ask = || error(&router, request(protocol.model, vec![user("Hi")]));
        let clean = "Incorrect API key provided: [redacted] (or [redacted])";
        assert_eq!(ask().await, ModelError::Unauthorized(format!("401 {clean}")), "{}", protocol.model);
        assert_eq!(ask().await, ModelError::Rejected(format!("400 {clean}")), "{}", protocol.model);
        assert_eq!(server.requests().await.len(), 2, "{}", protocol.model);
    }
}

#[tokio::test]
async fn faults_that_stay_are_reported() {
    let server = Server::with(Vec::new()).await;
    let said = error(&server.router(), request("openai/test-model", vec![user("Hi")])).await;
    assert_eq!(said, ModelError::Unavailable("500 no answer left".into()));
    assert_eq!(server.requests().await.len(), 2);

    // A port that is taken, so that no other process gets it, and on which no process listens.
    let silent = tokio::net::TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let nobody = silent.local_addr().unwrap();
    let said = error(&router(&format!("http://{nobody}")), request("openai/test-model", vec![user("Hi")])).await;
    assert!(matches!(&said, ModelError::Unavailable(text) if text.contains("refused")), "{said:?}");
}

#[tokio::test]
async fn an_error_inside_a_stream_ends_it() {
    let frame = "event: error\ndata: {\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\", \"message\": \"Overloaded\"}}\n\n";
    let server = Server::with(vec![sse(frame.into()), sse(frame.into())]).await;
    let said = error(&server.router(), request("anthropic/claude-sonnet-4-5", vec![user("Hi")])).await;
    assert_eq!(said, ModelError::Unavailable("Overloaded".into()));
    assert_eq!(server.requests().await.len(), 2, "nothing was passed on, so it was tried again");
}

#[tokio::test]
async fn redirects_are_not_followed_because_they_would_carry_the_key() {
    let elsewhere = Server::with(Vec::new()).await;
    let redirect = ResponseTemplate::new(307).insert_header("location", elsewhere.0.uri().as_str());
    let server = Server::with(vec![redirect]).await;
    let said = error(&server.router(), request("anthropic/claude-sonnet-4-5", vec![user("Hi")])).await;
    let address = format!("{}/", elsewhere.0.uri());
    let expected = format!("307 the server is at another address: put the one that it names into base_url ({address})");
    assert_eq!(said, ModelError::Rejected(expected));
    assert!(elsewhere.requests().await.is_empty());
    assert_eq!(server.requests().await.len(), 1, "it would be told the same again");
}

#[tokio::test]
async fn a_time_to_come_again_may_be_a_date_and_is_waited_for_within_bounds() {
    for protocol in protocols() {
        let refusal = || {
            ResponseTemplate::new(429)
                .insert_header("date", "Sun, 06 Nov 1994 08:49:37 GMT")
                .insert_header("retry-after", "Sun, 06 Nov 1994 09:49:37 GMT")
        };
        // The bound of this router is 5 ms.
        let server = Server::with(vec![refusal(), refusal()]).await;
        let said = error(&server.router(), request(protocol.model, vec![user("Hi")])).await;
        let hour = std::time::Duration::from_secs(3600);
        assert_eq!(said, ModelError::RateLimited { retry_after: Some(hour) }, "{}", protocol.model);
        assert_eq!(server.requests().await.len(), 2, "{}", protocol.model);
    }
}

#[tokio::test]
async fn a_server_of_ones_own_may_speak_responses() {
    let server = Server::with(vec![sse(frames::responses(&[Piece::Say("Hello")], "completed").into())]).await;
    let file = json!({"openai": {"base_url": format!("{}/v1", server.0.uri()), "api": "responses", "models": ["m"]}});
    let config = buildscale_models::Config::from_lookup(Some(serde_json::from_value(file).unwrap()), |_| None);
    let router = buildscale_models::Router::new(config).unwrap();
    assert_eq!(router.default_model(), "openai/m");
    assert_eq!(deltas(&router, request("openai/m", vec![user("Hi")])).await[0], Delta::Text("Hello".into()));
    assert_eq!(server.requests().await[0].url.path(), "/v1/responses");
}

#[tokio::test]
async fn a_local_server_needs_no_key_and_no_model_name() {
    let list = ResponseTemplate::new(200)
        .set_body_json(json!({"object": "list", "data": [{"id": "nomic-embed-text"}, {"id": "qwen3-max"}]}));
    let answer = || sse(frames::chat_completions(&[Piece::Say("Hello")], "stop").into());
    let server = Server::with(vec![list, answer(), answer()]).await;
    let uri = server.0.uri();
    let config =
        buildscale_models::Config::from_lookup(None, |name| (name == "OPENAI_BASE_URL").then(|| format!("{uri}/v1")));
    let router = buildscale_models::Router::new(config).unwrap();
    assert_eq!((router.default_model(), router.no_model_configured()), ("openai/auto", false));
    let default = router.catalog().into_iter().find(|info| info.default).unwrap();
    assert!(default.available, "{default:?}");

    for _ in 0..2 {
        let mut ask = request("", vec![user("Hi")]);
        ask.model = None;
        assert_eq!(deltas(&router, ask).await[0], Delta::Text("Hello".into()));
    }
    let sent = server.requests().await;
    assert_eq!(sent.len(), 3, "the list was asked for once");
    let body: Value = serde_json::from_slice(&sent[1].body).unwrap();
    assert_eq!(body["model"], "qwen3-max", "the whole name, though it ends like a reasoning effort");
    assert_eq!(body.get("reasoning_effort"), None);
}
