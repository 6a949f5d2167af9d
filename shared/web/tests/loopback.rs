//! The tools of the web against servers on loopback that check what they get.

#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use buildscale_web::{Egress, Provider, SearchConfig, Web, WebConfig, WebDependencies};
use domain::{Code, Error, WorkspaceId};
use parking_lot::Mutex;
use ports::{
    Converted, Converter, NotConverted, Recipient, Secret, SecretRef, Secrets, Served, ServedAnswer, ServersOf,
    SystemClock, ToolServers,
};
use serde_json::{Map, Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

struct Loopback;

impl Egress for Loopback {
    fn client(&self, url: &str, allow_private: bool) -> Result<reqwest::Client, String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        if !url.starts_with("http://") {
            return Err("only http is spoken".into());
        }
        if !allow_private && url.contains("127.0.0.1") {
            return Err("addresses in private networks are not allowed here".into());
        }
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
        client.build().map_err(|error| error.to_string())
    }
}

/// One secret, for one host.
struct Granted;

#[async_trait]
impl Secrets for Granted {
    async fn get(&self, reference: &SecretRef, to: Recipient<'_>) -> ports::Result<Option<Secret>> {
        match reference {
            SecretRef::Named(name) if name == "signing" => Ok(Some(Secret::new("s3cret of the test"))),
            SecretRef::Named(name) if name == "token" => Ok(Some(Secret::new("t0ken of the test"))),
            _ => Err(ports::Error::Invalid(format!("{reference} cannot be used for {:?}", to.address))),
        }
    }
}

struct InProcess;

#[async_trait]
impl Converter for InProcess {
    async fn convert(&self, name: &str, content: Bytes) -> Result<Converted, NotConverted> {
        ingest::convert(name, &content, ingest::Budget::default())
    }
}

fn web(config: &WebConfig) -> Web {
    let parts = WebDependencies {
        egress: Arc::new(Loopback),
        secrets: Arc::new(Granted),
        converter: Arc::new(InProcess),
        clock: Arc::new(SystemClock),
        sign: sinks::signature,
    };
    Web::new(config, parts).unwrap()
}

fn allowed() -> WebConfig {
    WebConfig { allow_private: true, ..WebConfig::default() }
}

fn of(files: &[(&str, String)]) -> ServersOf {
    let tools: Vec<_> = files.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect();
    ServersOf { tools: tools.into(), ..ServersOf::new(WorkspaceId::from_key("tests", "web")) }
}

fn args(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

async fn fetched(web: &Web, url: &str, start: usize) -> Result<ServedAnswer, Error> {
    web.call(&of(&[]), "web_fetch", args(json!({ "url": url, "start": start }))).await
}

/// A server of tickets: it checks the token and the signature, fails the first time, and keeps what it was sent.
#[derive(Clone, Default)]
struct Tickets {
    times: Arc<AtomicU32>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

async fn open(
    State(tickets): State<Tickets>,
    Path(project): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let (id, timestamp) = (text("webhook-id"), text("webhook-timestamp").parse().unwrap_or_default());
    let signed = sinks::signature("s3cret of the test", &id, timestamp, &body);
    if text("authorization") != "Bearer t0ken of the test"
        || text("webhook-signature") != signed
        || !id.starts_with("msg_")
    {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    tickets.seen.lock().push((id, json!({ "project": project, "body": body })));
    if tickets.times.fetch_add(1, Ordering::SeqCst) == 0 {
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "0")]).into_response();
    }
    axum::Json(json!({ "ticket": 7 })).into_response()
}

fn ticket(url: &str) -> String {
    format!(
        "description: Opens a ticket.\nparameters:\n  type: object\n  properties: {{project: {{type: string}}, title: {{type: string}}}}\n  \
         required: [project, title]\nurl: {url}/projects/{{project}}/tickets\nheaders: {{Authorization: 'Bearer ${{secret:token}}'}}\n\
         sign: ${{secret:signing}}\nretry: {{statuses: [503], times: 2, backoff_ms: 1}}\n"
    )
}

#[tokio::test]
async fn a_declared_tool_is_signed_and_sent_again_as_one_call() {
    let tickets = Tickets::default();
    let url = serve(Router::new().route("/projects/{project}/tickets", post(open)).with_state(tickets.clone())).await;
    let of = of(&[("open_ticket.yaml", ticket(&url)), ("bad.yaml", "url: x".into())]);
    let web = web(&allowed());
    let Served { tools, missing } = web.tools(&of, Duration::ZERO).await;
    let names: Vec<_> = tools.iter().map(|tool| (tool.name.as_str(), tool.is_repeatable)).collect();
    assert_eq!(names, [("http__open_ticket", false), ("web_fetch", true)]);
    assert_eq!(missing[0].0, "bad.yaml");

    let call = |given: Value| web.call(&of, "http__open_ticket", args(given));
    let answer = call(json!({ "project": "a/b", "title": "It breaks" })).await.unwrap();
    assert_eq!((answer.data, answer.is_error), (json!({ "ticket": 7 }), false));
    let seen = tickets.seen.lock().clone();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1], "both attempts are one call");
    assert_eq!(seen[0].1, json!({ "project": "a/b", "body": { "title": "It breaks" } }));

    let wrong = call(json!({ "project": "a" })).await.unwrap_err();
    assert_eq!((wrong.code, tickets.seen.lock().len()), (Code::InvalidArgument, 2));
    let unknown = web.call(&of, "http__nothing", Map::new()).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);
    assert!(unknown.hint.unwrap().contains("bad.yaml"));
}

#[tokio::test]
async fn an_answer_with_a_number_that_would_change_stays_a_text() {
    const ANSWER: &str = r#"{"account": 12345678901234567890123}"#;
    let answer = || async { ([(header::CONTENT_TYPE, "application/json")], ANSWER) };
    let url = serve(Router::new().route("/account", get(answer))).await;
    let tool = format!("description: d\nmethod: GET\nurl: {url}/account\neffects: read\n");
    let of = of(&[("account.yaml", tool)]);
    let answer = web(&allowed()).call(&of, "http__account", args(json!({}))).await.unwrap();
    assert_eq!((answer.data, answer.is_error), (Value::Null, false));
    assert!(answer.text.contains("12345678901234567890123"), "{}", answer.text);
}

#[tokio::test]
async fn a_tool_is_bounded_and_follows_no_redirect() {
    let router = Router::new()
        .route("/long", get(|| async { "x".repeat(10_000) }))
        .route("/away", get(|| async { (StatusCode::FOUND, [(header::LOCATION, "/long")]) }))
        .route("/never", get(std::future::pending::<()>))
        .route("/none", get(|| async { (StatusCode::NOT_FOUND, "no such thing") }));
    let url = serve(router).await;
    let tool = |path: &str| {
        (
            path.to_owned(),
            format!("description: d\nmethod: GET\nurl: {url}/{path}\nmax_bytes: 100\ntimeout_s: 1\neffects: read\n"),
        )
    };
    let files = ["long", "away", "never", "none"].map(tool);
    let files: Vec<_> = files.into_iter().map(|(name, text)| (format!("{name}.yaml"), text)).collect();
    let of = ServersOf { tools: files.into(), ..ServersOf::new(WorkspaceId::from_key("tests", "web")) };
    let web = web(&allowed());
    let call = |name: &'static str| web.call(&of, name, Map::new());
    let long = call("http__long").await.unwrap();
    assert_eq!((long.text.len(), long.is_cut, long.is_error), (100, true, false));
    let away = call("http__away").await.unwrap();
    assert!(away.is_error && away.text.contains("redirects"), "{}", away.text);
    let none = call("http__none").await.unwrap();
    assert!(none.is_error && none.text.contains("404") && none.text.contains("no such thing"), "{}", none.text);
    assert_eq!(call("http__never").await.unwrap_err().code, Code::Timeout);
}

#[tokio::test]
async fn private_networks_and_secrets_need_the_operator() {
    let url = serve(Router::new().route("/x", get(|| async { "inside" }))).await;
    let plain = format!("description: d\nmethod: GET\nurl: {url}/x\n");
    let secret = format!("{plain}headers: {{x-key: '${{secret:other}}'}}\n");
    let of = of(&[("plain.yaml", plain), ("secret.yaml", secret)]);
    let refused = web(&WebConfig::default()).call(&of, "http__plain", Map::new()).await.unwrap_err();
    assert_eq!(refused.code, Code::Forbidden);
    let refused = web(&allowed()).call(&of, "http__secret", Map::new()).await.unwrap_err();
    assert!(refused.message.contains("the secret other cannot be used"), "{}", refused.message);
    let refused = fetched(&web(&WebConfig::default()), &format!("{url}/x"), 0).await.unwrap_err();
    assert_eq!(refused.code, Code::Forbidden);
}

#[tokio::test]
async fn a_page_is_read_as_its_owner_allows_and_kept_for_a_while() {
    let times = Arc::new(AtomicU32::new(0));
    let counted = times.clone();
    let html = |body: &str| {
        (
            [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
            format!("<html><head><title>The page</title></head>{body}</html>"),
        )
    };
    let page = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let words = html(
            "<body><nav>Menu</nav><main><h1>Hello</h1><p>Some <b>bold</b> words.</p><script>bad()</script></main></body>",
        );
        async move { words }
    };
    let router = Router::new()
        .route("/robots.txt", get(|| async { "User-agent: *\nDisallow: /private\n" }))
        .route("/page", get(page))
        .route("/private/page", get(|| async { "secret" }))
        .route("/moved", get(|| async { (StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, "/page")]) }))
        .route("/into", get(|| async { (StatusCode::FOUND, [(header::LOCATION, "/private/page")]) }))
        .route("/round", get(|| async { (StatusCode::FOUND, [(header::LOCATION, "/round")]) }))
        .route("/data", get(|| async { axum::Json(json!({ "a": 1 })) }))
        .route(
            "/picture",
            get(|| async { ([(header::CONTENT_TYPE, "application/octet-stream")], vec![0_u8, 1, 2, 255]) }),
        );
    let url = serve(router).await;
    let web = web(&allowed());
    let fetch = |path: &str| {
        let at = format!("{url}{path}");
        let web = &web;
        async move { fetched(web, &at, 0).await }
    };
    let read = fetch("/moved").await.unwrap();
    assert_eq!(read.text, format!("The page\n{url}/page\n\n# Hello\n\nSome **bold** words.\n").trim_end());
    assert_eq!(read.data["title"], "The page");
    fetch("/moved").await.unwrap();
    assert_eq!(times.load(Ordering::SeqCst), 1, "it is kept");
    assert!(fetch("/data").await.unwrap().text.ends_with("{\"a\":1}"));
    for (path, code) in [
        ("/private/page", Code::Forbidden),
        ("/into", Code::Forbidden),
        ("/round", Code::Unprocessable),
        ("/nothing", Code::Unprocessable),
        ("/picture", Code::Unprocessable),
    ] {
        assert_eq!(fetch(path).await.unwrap_err().code, code, "{path}");
    }
    assert_eq!(fetched(&web, "file:///etc/passwd", 0).await.unwrap_err().code, Code::Forbidden);
}

#[tokio::test]
async fn a_page_is_read_in_the_encoding_that_its_server_names() {
    let text = || async { ([(header::CONTENT_TYPE, "text/plain; charset=iso-8859-1")], b"caf\xe9".to_vec()) };
    let page = || async {
        let body = b"<html><body><p>\xcc\xe8\xf0</p></body></html>".to_vec();
        ([(header::CONTENT_TYPE, "text/html; charset=windows-1251")], body)
    };
    let url = serve(Router::new().route("/text", get(text)).route("/page", get(page))).await;
    let web = web(&allowed());
    for (path, expected) in [("/text", "café"), ("/page", "Мир")] {
        let read = fetched(&web, &format!("{url}{path}"), 0).await.unwrap();
        assert!(read.text.trim_end().ends_with(expected), "{}", read.text);
    }
}

#[tokio::test]
async fn a_server_whose_rules_cannot_be_had_is_not_read() {
    let ill = serve(
        Router::new()
            .route("/robots.txt", get(|| async { StatusCode::INTERNAL_SERVER_ERROR }))
            .route("/", get(|| async { "x" })),
    )
    .await;
    let web = web(&allowed());
    assert_eq!(fetched(&web, &ill, 0).await.unwrap_err().code, Code::Forbidden);
    let open = serve(Router::new().route("/", get(|| async { "words" }))).await;
    assert!(fetched(&web, &open, 0).await.unwrap().text.ends_with("words"));
}

#[tokio::test]
async fn searches_of_each_provider_have_one_form() {
    let hit = |excerpt: &str| json!({ "title": "T", "url": "https://a.example/", excerpt: "Words." });
    let odd = json!({ "title": "T", "url": "javascript:alert(1)" });
    let brave = json!({ "web": { "results": [odd, hit("description")] } });
    let plain = json!({ "results": [hit("content"), hit("content")] });
    let (of_tavily, of_searxng) = (plain.clone(), plain);
    let router = Router::new()
        .route(
            "/brave",
            get(move |headers: HeaderMap, uri: axum::http::Uri| async move {
                let is_right = headers.get("x-subscription-token").is_some_and(|key| key == "k3y")
                    && uri.query() == Some("q=a%20b%26c&count=5");
                if is_right { axum::Json(brave).into_response() } else { StatusCode::UNAUTHORIZED.into_response() }
            }),
        )
        .route(
            "/tavily",
            post(move |headers: HeaderMap, axum::Json(body): axum::Json<Value>| async move {
                let is_right = headers.get("authorization").is_some_and(|key| key == "Bearer k3y")
                    && body == json!({ "query": "a b&c", "max_results": 1 });
                if is_right { axum::Json(of_tavily).into_response() } else { StatusCode::UNAUTHORIZED.into_response() }
            }),
        )
        .route(
            "/search",
            get(move |uri: axum::http::Uri| async move {
                if uri.query() == Some("q=a%20b%26c&format=json") {
                    axum::Json(of_searxng).into_response()
                } else {
                    StatusCode::BAD_REQUEST.into_response()
                }
            }),
        );
    let url = serve(router).await;
    let expected = json!({ "title": "T", "url": "https://a.example/", "text": "Words." });
    for (provider, path, key, count, found) in [
        (Provider::Brave, "/brave", Some("k3y"), None, 1),
        (Provider::Tavily, "/tavily", Some("k3y"), Some(1), 1),
        (Provider::Searxng, "", None, None, 2),
    ] {
        let search =
            SearchConfig { provider: Some(provider), url: Some(format!("{url}{path}")), api_key: key.map(Secret::new) };
        // The operator's own provider may be anywhere.
        let web = web(&WebConfig { fetch: false, search, ..WebConfig::default() });
        let names: Vec<_> = web.tools(&of(&[]), Duration::ZERO).await.tools.into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["web_search"]);
        let mut given = args(json!({ "query": "a b&c" }));
        given.extend(count.map(|count: u64| ("count".to_owned(), json!(count))));
        let answer = web.call(&of(&[]), "web_search", given).await.unwrap();
        assert_eq!(answer.data["results"], json!(vec![expected.clone(); found]), "{provider:?}");
        assert!(answer.text.starts_with("1. T\nhttps://a.example/\nWords.\n"), "{}", answer.text);
    }
    let none = web(&WebConfig::default());
    assert_eq!(
        none.call(&of(&[]), "web_search", args(json!({ "query": "x" }))).await.unwrap_err().code,
        Code::NotFound
    );
}
