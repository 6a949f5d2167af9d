//! One public address: the API and the streams behind it, and no other way in.

use crate::world::{Client, Options, Result, World};
use axum::{Json, Router, body::Body, extract::Request, middleware::from_fn, routing::get};
use buildscale_cloud::{origin::behind, whole_answers::within_limits};
use emulators::Fate;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::error::Error;
use tower::ServiceExt;

/// The header of CloudFront.
const NAMES_ITSELF: &str = "x-buildscale-origin";
/// The header with the client's `Host`.
const NAMES_HOST: &str = "x-buildscale-host";

/// A turn of a thread, whose answer is its stream. The events of the turn are the same when they are read again.
async fn a_turn_of_a_thread_streams(client: &Client) -> Result {
    let ask = async |method: Method, path: &str, body: Value| {
        client.send(client.request(method, path).header("x-client-id", "origin").json(&body)).await
    };
    let new = json!({ "agent": "buildscale", "cwd": "/workspace" });
    let made = ask(Method::POST, "/v1/threads", new).await?.is(200)?.json();
    let thread = format!("/v1/threads/{}", made["threadId"].as_str().ok_or("no threadId")?);
    let turn = json!({ "input": "hello", "stream": true });
    let told = ask(Method::POST, &format!("{thread}/turns"), turn).await?.is(200)?.text();
    let names: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!((names.first(), names.last()), (Some(&"turn_started"), Some(&"turn_completed")), "{told}");
    let id = |name: &str| told.split_once(&format!("\"{name}\":\"")).and_then(|(_, rest)| rest.split('"').next());
    let turn = format!("/v1/turns/{}/events?clientId=origin", id("turnId").ok_or("no turnId")?);
    let again = client.look(&turn).await?.is(200)?.text();
    assert_eq!(again.lines().filter_map(|line| line.strip_prefix("event: ")).collect::<Vec<_>>(), names);
    Ok(())
}

/// The smallest stack: a function holds the streams, too, and its answers come piece by piece.
#[tokio::test(flavor = "multi_thread")]
async fn functions_behind_one_address_answer_and_stream_and_are_closed_otherwise() -> Result {
    let world = World::deploy(Options { streams_by_function: true, ..Options::default() }).await?;
    let client = &world.client;
    let place = client.place().await?;
    let chat = client.chat(&place, "hello").await?;
    let watch = client.watch(&chat);
    watch.until_event("done").await?;
    let seen = watch.events();
    let resumed = client.open(&format!("{chat}/events?after={}", seen[0].id)).await?.until_event("done").await?;
    assert_eq!(resumed, seen[1..]);

    // Live: it is open before anything happens, and events come while the answer goes on.
    let last = seen.last().map_or(0, |event| event.id);
    let live = client.open(&format!("{chat}/events?after={last}")).await?;
    client.post(&chat, json!({ "content": "hello again" })).await?;
    live.until_event("done").await?;

    // A browser has a ticket, and its address is a path of the one that it knows.
    let id = chat.rsplit('/').next().unwrap_or_default();
    let made = client.ask(Method::POST, &format!("{place}/stream-tickets"), json!({ "chat_id": id })).await?.is(201)?;
    let url = made.json()["url"].as_str().ok_or("no url")?.to_owned();
    client.with_token(None).open(&format!("{url}&after=0")).await?.until_event("done").await?;
    client.with_token(None).look(&format!("{chat}/events")).await?.refuses(401, "UNAUTHORIZED")?;

    a_turn_of_a_thread_streams(client).await?;

    // The stack knows no name of its own: metadata about the login are those of the address that the client used.
    let metadata = client.with_token(None).get("/.well-known/oauth-protected-resource").await?;
    let address = client.address("").trim_start_matches("http").to_owned();
    assert_eq!(metadata["resource"], format!("https{}", address.trim_end_matches('/')), "{metadata}");
    let forged = client.request(Method::GET, "/.well-known/oauth-protected-resource");
    let told: Value = forged.header(NAMES_HOST, "evil.example").send().await?.json().await?;
    assert_eq!(told["resource"], metadata["resource"], "a client cannot choose it");

    // The origins' own addresses are closed, for any request with any token.
    for gateway in &world.gateways {
        for path in ["/health", "/api/v1/workspaces", &format!("{chat}/events?after=0"), &url] {
            for forged in [None, Some("another")] {
                let request = client.request(Method::GET, path).build()?;
                let mut direct = reqwest::Client::new().get(format!("http://{}{path}", gateway.address));
                direct = direct.headers(request.headers().clone());
                if let Some(forged) = forged {
                    direct = direct.header(NAMES_ITSELF, forged);
                }
                let refused = direct.send().await?;
                assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{path}");
                let body: Value = refused.json().await?;
                assert_eq!(body["error"]["code"], "FORBIDDEN", "{body}");
            }
        }
    }

    // Its log has each fault of the function that streams, for an alarm to count.
    let counted = || world.log_of("stream").contains(r#""Faults":1"#);
    assert!(!counted(), "{}", world.log_of("stream"));
    world.dynamodb.plan(|_| Fate::json(500, "InternalServerError"));
    let (status, body) = client.call(Method::GET, &format!("{chat}/events?after=0"), Value::Null).await?;
    assert!(status.is_server_error() && counted(), "{status}: {body}: {}", world.log_of("stream"));
    Ok(())
}

#[tokio::test]
async fn the_clients_host_is_believed_together_with_the_token_alone() -> Result {
    let echo = |request: Request| async move {
        let text = |name: &str| {
            let value = request.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or("none").to_owned()
        };
        ["x-forwarded-proto", "host", NAMES_HOST, NAMES_ITSELF].map(text).join(" ")
    };
    let router = behind(Router::new().route("/", get(echo)), Some("secret"));
    let ask = async |token: &str, host: Option<&str>| {
        let mut request = Request::get("/").header("host", "origin.example").header(NAMES_ITSELF, token);
        if let Some(host) = host {
            request = request.header(NAMES_HOST, host);
        }
        let response = router.clone().oneshot(request.body(Body::empty())?).await?;
        let (status, body) = (response.status(), axum::body::to_bytes(response.into_body(), 1024).await?);
        Ok::<_, Box<dyn Error + Send + Sync>>((status, String::from_utf8_lossy(&body).into_owned()))
    };
    let told = (StatusCode::OK, "https a.cloudfront.net none none".to_owned());
    assert_eq!(ask("secret", Some("a.cloudfront.net")).await?, told);
    assert_eq!(ask("secret", None).await?, (StatusCode::OK, "none origin.example none none".to_owned()));
    assert_eq!(ask("forged", Some("a.cloudfront.net")).await?.0, StatusCode::FORBIDDEN);
    Ok(())
}

/// A function gives back 6 MB at most when its answer comes whole.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_longer_than_a_whole_answer_of_a_function_arrives() -> Result {
    let world = World::deploy(Options::default()).await?;
    let (client, place) = (&world.client, world.client.place().await?);
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        client.file(&place, &format!("/projects/{name}.md"), &name.repeat(900_000)).await?;
    }
    let archive = client.look(&format!("{place}/export")).await?.is(200)?.bytes.clone();
    let has_end = archive.windows(8).any(|window| window == b"end.json");
    assert!(archive.len() > 6 << 20 && has_end, "{} bytes", archive.len());
    Ok(())
}

#[tokio::test]
async fn long_json_goes_as_bytes_since_its_quotes_would_be_escaped_once_more() -> Result {
    const MB: usize = 1 << 20;
    let too_long = StatusCode::PAYLOAD_TOO_LARGE;
    for (length, expected) in
        [(MB, (StatusCode::OK, false)), (3 * MB, (StatusCode::OK, true)), (5 * MB, (too_long, false))]
    {
        let answer = get(move || async move { Json("a".repeat(length)) });
        let router: Router = Router::new().route("/", answer).layer(from_fn(within_limits));
        let response = router.oneshot(Request::get("/").body(Body::empty())?).await?;
        let is_bytes = response.headers().get("content-encoding").is_some_and(|encoding| encoding == "identity");
        assert_eq!((response.status(), is_bytes), expected, "{length}");
    }
    Ok(())
}

/// Where an answer breaks off, the runtime of Lambda writes the failure into it, and ends it as if all were said.
#[test]
fn streams_of_functions_end_in_good_order_and_before_their_function_does() {
    let options = buildscale_cloud::assemble::in_a_function();
    assert!(!options.may_break_off);
    assert!(options.max_life < std::time::Duration::from_secs(15 * 60), "{:?}", options.max_life);
}
