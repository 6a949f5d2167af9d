//! Every refusal, of any layer, comes in the one envelope.

use crate::support::{Door, Setup};
use buildscale_api::{Auth, Login, Probe};
use serde_json::{Value, json};

const NONE: &str = "/api/v1/workspaces/019bf537-f228-7cd3-aa1c-3da8af302e12";
const JSON: (&str, &str) = ("content-type", "application/json");

/// A name, then the request: method, path, headers, body.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, &'a str)], String);

/// The inside of an envelope, without the parts that differ each time.
fn inside(reply: &crate::support::Reply) -> Value {
    let mut error = reply.json["error"].clone();
    let id = error.as_object_mut().unwrap().remove("request_id").unwrap();
    assert_eq!(id, reply.header("x-request-id"));
    json!({ "status": reply.status.as_u16(), "error": error })
}

#[tokio::test]
async fn refusals() {
    let door = Door::open();
    let workspaces = "/api/v1/workspaces";
    let cases: [Case<'_>; 14] = [
        ("no route", "GET", "/api/v1/nothing", &[], String::new()),
        ("no method", "PUT", workspaces, &[], String::new()),
        ("no such workspace", "GET", NONE, &[], String::new()),
        ("a bad id", "GET", "/api/v1/workspaces/x", &[], String::new()),
        ("not JSON", "POST", workspaces, &[JSON], "{".into()),
        ("not an object", "POST", workspaces, &[JSON], "[]".into()),
        ("a bad version", "GET", &format!("{NONE}/files/{}/versions/x", &NONE[19..]), &[], String::new()),
        ("no type", "POST", workspaces, &[], "{}".into()),
        ("a missing field", "POST", workspaces, &[JSON], "{}".into()),
        ("an unknown field", "POST", workspaces, &[JSON], json!({ "nam": "x" }).to_string()),
        ("a wrong type", "POST", workspaces, &[JSON], json!({ "name": 5 }).to_string()),
        (
            "a field inside",
            "POST",
            &format!("{NONE}/chats"),
            &[JSON],
            json!({ "goal": "x", "limits": { "max_step": 1 } }).to_string(),
        ),
        ("a bad query", "GET", "/api/v1/workspaces?limit=many", &[], String::new()),
        ("too long", "POST", workspaces, &[JSON], json!({ "name": "x".repeat(1024 * 1024) }).to_string()),
    ];
    let mut all = serde_json::Map::new();
    for (name, method, path, headers, body) in cases {
        let reply = door.ask(method, path, headers, body).await;
        all.insert(name.into(), inside(&reply));
    }
    insta::assert_json_snapshot!(all);
    assert_eq!(door.ask("PUT", workspaces, &[], "").await.header("allow"), "POST,GET,HEAD");
}

#[tokio::test]
async fn request_ids_are_taken_over_when_they_are_sane() {
    let door = Door::open();
    let id = |id: &'static str| {
        let door = &door;
        async move { door.ask("GET", "/health", &[("x-request-id", id)], "").await.header("x-request-id").to_owned() }
    };
    assert_eq!(id("client-7:a.b").await, "client-7:a.b");
    for bad in ["a b", "<script>", "", "\u{e9}"] {
        let made = id(bad).await;
        assert_eq!(made.len(), 36, "{bad:?} became {made}");
    }
    assert_eq!(id("x".repeat(129).leak()).await.len(), 36);
}

#[tokio::test]
async fn without_the_token_nothing_is_told() {
    let door = Door::with(Setup { auth: Auth::token("s3cret"), ..Setup::default() });
    for path in ["/api/v1/workspaces", "/metrics", NONE, "/nothing"] {
        let refused = door.get(path).await.refuses(401, "UNAUTHORIZED");
        assert!(refused.header("www-authenticate").starts_with("Bearer"));
        let wrong = door.ask("GET", path, &[("authorization", "Bearer s3cre")], "").await.refuses(401, "UNAUTHORIZED");
        assert!(!wrong.json.to_string().contains("s3cre"));
    }
    for path in ["/", "/health", "/ready", "/openapi.json"] {
        door.get(path).await.is(200);
    }
    door.ask("GET", "/api/v1/workspaces", &[("authorization", "Bearer s3cret")], "").await.is(200);
}

#[tokio::test]
async fn a_server_tells_how_to_get_a_token() {
    let login = Login {
        issuer: Some("https://issuer.example/".into()),
        audience: Some("buildscale".into()),
        client_id: Some("cli".into()),
        console_client_id: Some("console".into()),
        scopes: vec!["openid".into()],
        ..Login::default()
    };
    let door = Door::with(Setup { auth: Auth::token("s3cret").announcing(login), ..Setup::default() });
    let host = ("host", "a.example");
    let refused = door.ask("GET", "/api/v1/workspaces", &[host], "").await.refuses(401, "UNAUTHORIZED");
    let challenge = refused.header("www-authenticate").to_owned();
    assert_eq!(challenge, "Bearer resource_metadata=\"http://a.example/.well-known/oauth-protected-resource\"");
    let path = "/.well-known/oauth-protected-resource";
    assert_eq!(
        door.ask("GET", path, &[host], "").await.is(200).json,
        json!({
            "resource": "http://a.example",
            "authorization_servers": ["https://issuer.example/"],
            "scopes_supported": ["openid"],
            "bearer_methods_supported": ["header"],
            "audience": "buildscale",
            "cli_client_id": "cli",
            "console_client_id": "console",
        })
    );
    // Without an issuer there is nothing to tell.
    let alone = Door::open().ask("GET", path, &[host], "").await.is(200);
    assert_eq!(alone.json, json!({ "resource": "http://a.example", "bearer_methods_supported": ["header"] }));
    door.ask("GET", path, &[("host", "a b")], "").await.refuses(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn pages_of_other_origins_are_kept_out_unless_they_are_allowed() {
    let origins = vec!["http://localhost:5173".to_owned()];
    let door = Door::with(Setup { origins, ..Setup::default() });
    let ask = |origin: &'static str| {
        let headers = [("host", "127.0.0.1:8686"), ("origin", origin)];
        let door = &door;
        async move { door.ask("GET", "/api/v1/workspaces", &headers, "").await }
    };
    ask("https://evil.example").await.refuses(403, "FORBIDDEN");
    let allowed = ask("http://localhost:5173").await.is(200);
    assert_eq!(allowed.header("access-control-allow-origin"), "http://localhost:5173");
    let exposed = "accept-ranges,allow,content-disposition,content-location,content-range,etag,location,retry-after,\
        www-authenticate,idempotency-replayed,x-request-id,x-vercel-ai-ui-message-stream";
    assert_eq!(allowed.header("access-control-expose-headers"), exposed);
    let closed = Door::open();
    let headers = [("host", "rebound.example"), ("origin", "http://rebound.example")];
    closed.ask("GET", "/api/v1/workspaces", &headers, "").await.refuses(403, "FORBIDDEN");
}

#[tokio::test]
async fn the_root_is_a_page_for_browsers_and_a_text_for_others() {
    let door = Door::open();
    let ask = |accept: &'static str| {
        let door = &door;
        async move { door.ask("GET", "/", &[("accept", accept)], "").await.is(200) }
    };
    let text = ask("*/*").await;
    assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
    let words = String::from_utf8(text.bytes.to_vec()).unwrap();
    assert!(words.starts_with(concat!("BuildScale ", env!("CARGO_PKG_VERSION"), "\n")), "{words}");
    let page = ask("text/html,application/xhtml+xml,*/*;q=0.8").await;
    assert_eq!((page.header("content-type"), page.header("vary")), ("text/html; charset=utf-8", "accept"));
    let html = String::from_utf8(page.bytes.to_vec()).unwrap();
    assert!(!html.contains("<script") && !html.contains("src="), "it loads nothing: {html}");
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    assert!(words.matches("\ncurl ").count() == 3 && html.matches("\ncurl ").count() == 3, "{html}");
    for place in ["/openapi.json", "/health", "/ready"] {
        assert!(words.contains(place) && html.contains(&format!("href=\".{place}\"")), "{place}: {html}");
        door.get(place).await.is(200);
    }
    for other in ["/index.html", "//", "/api", "/api/v1/", "/docs"] {
        door.ask("GET", other, &[("accept", "text/html")], "").await.refuses(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn a_query_that_cannot_be_read_is_refused_in_words_of_the_api() {
    let door = Door::open();
    let place = door.workspace().await;
    for (query, told) in [
        ("tasks?limit=abc", "limit is a whole number from 1 to 200"),
        ("tasks?limit=-1", "limit is a whole number from 1 to 200"),
        ("tasks?parent=x", "parent is a UUID like"),
        ("tasks?status=done", "status is one of success"),
        ("files?limit=1e3", "limit is a whole number from 1 to 1000"),
        ("artifacts?after=noon", "after is a time like"),
        ("flows/x/graph?format=png", "format is one of svg, dot, mermaid, text"),
        ("tasks?limit=1&limit=2", "give it once"),
        ("tasks?limt=1", "did you mean limit?"),
    ] {
        let refused = door.get(&format!("{place}/{query}")).await.refuses(400, "INVALID_ARGUMENT");
        let hint = refused.json["error"]["hint"].as_str().unwrap_or_default();
        assert!(hint.contains(told), "{query}: {}", refused.json);
        let words = refused.json.to_string();
        for rust in ["digit", "variant", "invalid type", "u32", "u64", "usize", "parsing failed"] {
            assert!(!words.contains(rust), "{query}: {words}");
        }
    }
}

#[tokio::test]
async fn parts_that_are_not_ready_are_named() {
    let probe = |name, works: bool| Probe {
        name,
        check: Box::new(move || {
            Box::pin(
                async move { if works { Ok(()) } else { Err(ports::Error::unavailable("the queue", "secret path")) } },
            )
        }),
    };
    let door = Door::with(Setup { ready: vec![probe("table", true), probe("queue", false)], ..Setup::default() });
    let refused = door.get("/ready").await.refuses(503, "UPSTREAM_UNAVAILABLE");
    assert_eq!(refused.json["error"]["details"], json!({ "queue": "the queue is unavailable" }));
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(Door::open().get("/ready").await.is(200).text("status"), "ready");
}

#[test]
fn every_code_has_its_status() {
    use domain::Code::*;
    let all = [
        (InvalidArgument, 400),
        (Unauthorized, 401),
        (Forbidden, 403),
        (NotFound, 404),
        (Conflict, 409),
        (IdempotencyMismatch, 409),
        (Paused, 409),
        (StaleVersion, 412),
        (PayloadTooLarge, 413),
        (Unprocessable, 422),
        (LimitReached, 422),
        (RateLimited, 429),
        (Cancelled, 499),
        (Internal, 500),
        (OutcomeUnknown, 502),
        (UpstreamUnavailable, 503),
        (NotBegun, 503),
        (Timeout, 504),
    ];
    for (code, status) in all {
        assert_eq!(buildscale_api::status_of(code).as_u16(), status, "{code}");
    }
}

#[tokio::test]
async fn a_rewind_to_the_future_or_of_nothing_is_refused_with_a_remedy() {
    let door = Door::open();
    let workspace = door.workspace().await;
    door.file(&workspace, "/projects/plan.md", "one").await;
    let rewind = async |path: &str, time: &str| {
        let scope = json!({ "kind": "path", "path": path });
        door.json(
            "POST",
            &format!("{workspace}/rewind"),
            json!({ "scope": scope, "to": { "time": time }, "preview": true }),
        )
        .await
    };
    let past = (ports::Clock::now(&ports::SystemClock) - std::time::Duration::from_secs(3_600)).to_string();
    let (past, future) = (past.as_str(), "2100-01-01T00:00:00Z");
    let refused = rewind("/projects/plan.md", future).await.refuses(400, "INVALID_ARGUMENT");
    let error = &refused.json["error"];
    assert_eq!((&error["details"]["field"], error["hint"].is_string()), (&json!("to"), true), "{error}");
    let nothing = rewind("/projects/nothing.md", past).await.refuses(404, "NOT_FOUND");
    assert!(nothing.json["error"]["hint"].is_string(), "{}", nothing.json);
    let there = rewind("/projects/plan.md", past).await.is(200);
    assert_eq!(there.json["counts"]["deletes"], 1, "{}", there.json);
    let unknown = json!({ "scope": { "kind": "rewind", "rewind_id": "019bf537-f228-7cd3-aa1c-3da8af302e12" } });
    let unknown = door.json("POST", &format!("{workspace}/rewind"), unknown).await.refuses(404, "NOT_FOUND");
    assert!(unknown.json["error"]["hint"].is_string(), "{}", unknown.json);
}

#[tokio::test]
async fn nonsense_is_refused_with_its_field_and_a_remedy() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let file = door.file(&workspace, "/projects/plan.md", "one").await;
    let digest = "0".repeat(64);
    let scope = json!({ "kind": "path", "path": "/projects" });
    let preview = json!({ "scope": scope, "to": { "time": "2026-01-01T00:00:00Z" }, "preview": true, "cursor": "x" });
    let asked = [
        ("GET", format!("{workspace}/usage?from=yesterday"), Value::Null, "from"),
        ("GET", format!("{workspace}/usage?from=2026-02-02&to=2026-01-01"), Value::Null, "from"),
        ("GET", format!("{workspace}/access?path=/projects&action=eat"), Value::Null, "action"),
        ("GET", format!("{workspace}/files?path=projects"), Value::Null, "path"),
        ("GET", format!("{file}/diff?from=0&to=1"), Value::Null, "from"),
        ("PUT", format!("{workspace}/presence"), json!({}), "path"),
        ("POST", format!("{workspace}/files"), json!({ "path": "/a", "kind": "folder", "content": "x" }), "content"),
        ("POST", format!("{workspace}/files"), json!({ "path": "/a.md", "content": "x", "sha256": digest }), "sha256"),
        ("POST", format!("{workspace}/rewind"), preview, "cursor"),
    ];
    for (method, path, body, field) in asked {
        let reply = match body {
            Value::Null => door.get(&path).await,
            body => door.json(method, &path, body).await,
        };
        let refused = reply.refuses(400, "INVALID_ARGUMENT");
        let error = &refused.json["error"];
        assert_eq!(
            (error["details"]["field"].as_str(), error["hint"].is_string()),
            (Some(field), true),
            "{path}: {error}"
        );
    }
}

#[tokio::test]
async fn a_point_behind_the_end_of_a_chat_is_refused_with_its_last_number() {
    let door = Door::open();
    let workspace = door.workspace().await;
    let (chat, chat_id) = door.chat(&workspace).await;
    let at = domain::Timestamp::from_millis(0);
    let events = (0..3).map(|n| domain::ChatEvent::Paused { reason: format!("reason {n}"), at }).collect();
    door.put_events(&chat, events).await;
    let rewind = async |scope: Value, seq: u64| {
        let body = json!({ "scope": scope, "to": { "chat_id": chat_id, "seq": seq }, "preview": true });
        door.json("POST", &format!("{workspace}/rewind"), body).await
    };
    for scope in [json!({ "kind": "chat", "chat_id": chat_id }), json!({ "kind": "workspace" })] {
        for seq in [4, 100_000, i64::MAX as u64] {
            let refused = rewind(scope.clone(), seq).await.refuses(404, "NOT_FOUND");
            let error = &refused.json["error"];
            assert_eq!((&error["details"]["field"], &error["details"]["last_seq"]), (&json!("to.seq"), &json!(3)));
            assert!(error["hint"].as_str().is_some_and(|hint| hint.ends_with("number 3")), "{error}");
        }
        assert_eq!(rewind(scope, 3).await.is(200).json["state"], "preview", "its last event is a point");
    }
}
