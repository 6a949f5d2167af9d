//! The client against a server on this machine that answers as it is told, and remembers what it was asked.

use axum::{
    Router,
    body::{Body as Content, to_bytes},
    extract::{Request, State},
    response::Response,
};
use buildscale_client::{Address, Body, Client, Error, Event, Method, Source, TokenSource, Update, UploadPart};
use futures::{StreamExt, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::net::TcpListener;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A request as it came.
#[derive(Clone, Debug)]
struct Asked {
    line: String,
    headers: axum::http::HeaderMap,
    body: String,
}

impl Asked {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

#[derive(Clone, Default)]
struct Server {
    url: String,
    answers: Arc<Mutex<VecDeque<Response>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// Status, headers, body.
type Said = (u16, &'static [(&'static str, &'static str)], String);

fn response((status, headers, body): Said) -> Response {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Content::from(body)).unwrap_or_default()
}

impl Server {
    /// One that gives these answers in this order, and 500 after them.
    async fn start<const N: usize>(answers: [Said; N]) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let answers = answers.into_iter().map(response).collect::<VecDeque<_>>();
        let server = Self { url, answers: Arc::new(Mutex::new(answers)), asked: Arc::default() };
        let router = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(server)
    }

    fn client(&self) -> Result<Client> {
        Ok(Client::new(&self.url, Some("secret"))?)
    }

    fn add(&self, said: Said) {
        self.add_response(response(said));
    }

    fn add_response(&self, response: Response) {
        self.answers.lock().push_back(response);
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }

    fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

async fn answer(State(server): State<Server>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let line = format!("{} {}", parts.method, parts.uri);
    let asked = Asked { line, headers: parts.headers, body: String::from_utf8_lossy(&body).into_owned() };
    server.asked.lock().push(asked);
    let next = server.answers.lock().pop_front();
    next.unwrap_or_else(|| response((500, &[], "nothing more was expected".into())))
}

fn ok(body: &Value) -> Said {
    (200, &[], body.to_string())
}

fn refusal(code: &str) -> String {
    let error = json!({ "code": code, "message": "no", "hint": "later", "request_id": "r1", "details": { "n": 1 } });
    json!({ "error": error }).to_string()
}

fn stream(body: &str) -> Said {
    (200, &[("content-type", "text/event-stream")], body.into())
}

/// A stream that breaks off after these bytes.
fn broken(body: &'static str) -> Response {
    let sent = futures::stream::once(async move { Ok::<_, std::io::Error>(body) });
    let end = futures::stream::once(async {
        // The sent bytes leave first.
        tokio::task::yield_now().await;
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionAborted))
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Content::from_stream(sent.chain(end))).unwrap_or_default()
}

fn event(id: u64, name: &str) -> Event {
    Event { id, name: name.into(), data: json!({}) }
}

#[tokio::test]
async fn a_post_is_repeated_under_one_key_until_it_is_answered() -> Result {
    let server = Server::start([
        (503, &[("retry-after", "0")], refusal("UPSTREAM_UNAVAILABLE")),
        (502, &[], "<html>".into()),
        (429, &[("retry-after", "0")], refusal("RATE_LIMITED")),
        ok(&json!({ "chat_id": "c" })),
        ok(&json!({})),
    ])
    .await?;
    let client = server.client()?;
    assert_eq!(client.post(&["x"], &json!({ "goal": "g" })).await?, json!({ "chat_id": "c" }));
    client.post_as("mine", &["x"], &json!({})).await?;
    let asked = server.asked();
    let keys: Vec<&str> = asked.iter().map(|asked| asked.header("idempotency-key")).collect();
    assert!(keys[0].len() == 36 && keys[..4].iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_eq!(keys[4], "mine");
    assert!(asked[..4].iter().all(|asked| asked.body == r#"{"goal":"g"}"# && asked.line == "POST /api/v1/x"));
    assert!(asked.iter().all(|asked| asked.header("authorization") == "Bearer secret"), "{asked:?}");
    Ok(())
}

#[tokio::test]
async fn a_refusal_has_the_words_of_the_hub_and_is_not_repeated() -> Result {
    let server = Server::start([
        (409, &[], refusal("CONFLICT")),
        (429, &[("retry-after", "3600")], refusal("RATE_LIMITED")),
        (500, &[], "oops".into()),
        (200, &[], "no json".into()),
    ])
    .await?;
    let client = server.client()?;
    let Err(Error::Refused(refused)) = client.get(&["x"], &[]).await else { return Err("it is refused".into()) };
    assert_eq!((refused.status, refused.code.as_str(), refused.message.as_str()), (409, "CONFLICT", "no"));
    assert_eq!((refused.hint.as_deref(), refused.request_id.as_deref()), (Some("later"), Some("r1")));
    assert_eq!((refused.details["n"].as_u64(), refused.retry_after), (Some(1), None));
    let limited = client.get(&["x"], &[]).await.err().ok_or("it is refused")?;
    assert_eq!(limited.retry_after(), Some(Duration::from_secs(3600)), "longer than the client's patience");
    for status in [500, 200] {
        let odd = client.get(&["x"], &[]).await.err().ok_or("it is no hub")?;
        assert!(matches!(odd, Error::Foreign { status: Some(found), .. } if found == status), "{odd:?}");
    }
    assert_eq!(server.lines().len(), 4);
    Ok(())
}

#[tokio::test]
async fn a_change_is_repeated_only_when_it_did_not_begin() -> Result {
    let server = Server::start([
        (429, &[("retry-after", "0")], refusal("RATE_LIMITED")),
        ok(&json!({ "v": 4 })),
        (503, &[("retry-after", "0")], refusal("UPSTREAM_UNAVAILABLE")),
    ])
    .await?;
    let client = server.client()?;
    let path = ["files", "a/b"];
    let changed = client.change(Method::PUT, &path, Body::Bytes("new".into()), Some(3)).await?;
    assert_eq!(changed, json!({ "v": 4 }));
    let refused = client.change(Method::DELETE, &path, Body::None, None).await.err().ok_or("it is refused")?;
    assert_eq!(refused.code(), Some("UPSTREAM_UNAVAILABLE"));
    let asked = server.asked();
    assert_eq!(server.lines(), ["PUT /api/v1/files/a%2Fb", "PUT /api/v1/files/a%2Fb", "DELETE /api/v1/files/a%2Fb"]);
    assert_eq!((asked[1].header("if-match"), asked[1].body.as_str()), ("\"3\"", "new"));
    Ok(())
}

#[tokio::test]
async fn a_hub_that_was_there_is_waited_for_and_one_that_never_was_is_not() -> Result {
    let server = Server::start([ok(&json!(1)), ok(&json!(2))]).await?;
    // A port that is taken, so that no other process gets it, and on which no process listens.
    let silent = tokio::net::TcpSocket::new_v4()?;
    silent.bind("127.0.0.1:0".parse()?)?;
    let gone = silent.local_addr()?;
    let (moves, base) = tokio::sync::watch::channel(format!("http://{gone}").parse()?);
    let client = Client::moving(base, None)?;
    assert!(matches!(client.get(&["x"], &[]).await, Err(Error::Unreachable { .. })));

    moves.send(server.url.parse()?)?;
    assert_eq!(client.get(&["x"], &[]).await?, json!(1));
    moves.send(format!("http://{gone}").parse()?)?;
    let restart = async {
        // The first attempt has failed when the pause after it begins: the hub is back before the second.
        tokio::task::yield_now().await;
        moves.send(server.url.parse()?)?;
        Result::Ok(())
    };
    let (read, moved) = tokio::join!(client.get(&["x"], &[]), restart);
    moved?;
    assert_eq!(read?, json!(2));
    moves.send(format!("http://{gone}").parse()?)?;
    let impatient = client.patient(Duration::ZERO);
    assert!(matches!(impatient.get(&["x"], &[]).await, Err(Error::Unreachable { .. })));
    Ok(())
}

#[tokio::test]
async fn a_list_is_read_page_by_page() -> Result {
    let server = Server::start([
        ok(&json!({ "files": [1, 2], "next_cursor": "p2" })),
        ok(&json!({ "files": [3, 4] })),
        ok(&json!({ "files": [1, 2], "next_cursor": "p2" })),
    ])
    .await?;
    let client = server.client()?;
    assert_eq!(client.list(&["files"], "files", &[("path", "/")], 3).await?, [1, 2, 3], "no more than wanted");
    assert_eq!(client.list(&["files"], "files", &[], 1).await?, [1]);
    assert_eq!(
        server.lines(),
        [
            "GET /api/v1/files?path=%2F&limit=3",
            "GET /api/v1/files?path=%2F&limit=1&cursor=p2",
            "GET /api/v1/files?limit=1"
        ]
    );
    Ok(())
}

#[tokio::test]
async fn events_go_on_after_the_last_one_across_connections_to_the_end() -> Result {
    let opening = |id: u64| format!("id: {id}\nevent: cursor\nretry: 1\n: padding\n\n");
    let frame = |id: u64, name: &str| format!("id: {id}\nevent: {name}\ndata: {{}}\n\n");
    let server = Server::start([
        stream(&opening(0)),
        stream(&format!("{}{}{}id: 9\nevent: cut", opening(0), frame(3, "task_started"), frame(4, "routed"))),
        (502, &[], "<html>".into()),
        (503, &[("retry-after", "0")], refusal("UPSTREAM_UNAVAILABLE")),
        stream(&format!(
            "{}id: 2\nevent: reset\ndata: {{\"reason\":\"cursor_too_old\",\"after\":2}}\n\n{}",
            opening(2),
            frame(5, "done")
        )),
        (204, &[], String::new()),
    ])
    .await?;
    let updates: Vec<_> = server.client()?.watch(Source::task("w", "t")).start().collect().await;
    let told: Vec<String> = updates
        .into_iter()
        .map(|update| match update {
            Ok(Update::Open) => "open".into(),
            Ok(Update::Event(event)) => format!("{} {}", event.id, event.name),
            Ok(Update::Reset(reset)) => format!("reset to {}: {}", reset.after, reset.reason),
            Ok(Update::Lost(error)) => format!("lost: {:?}", error.status()),
            Ok(Update::Back) => "back".into(),
            Err(error) => format!("over: {error}"),
        })
        .collect();
    let expected =
        ["open", "3 task_started", "4 routed", "lost: Some(502)", "back", "reset to 2: cursor_too_old", "5 done"];
    assert_eq!(told, expected);
    let asked = server.asked();
    let cursors: Vec<&str> = asked.iter().map(|asked| asked.header("last-event-id")).collect();
    assert_eq!(cursors, ["", "0", "4", "4", "4", "5"]);
    assert!(asked.iter().all(|asked| asked.line == "GET /api/v1/workspaces/w/tasks/t/events"), "{asked:?}");
    Ok(())
}

#[tokio::test]
async fn a_stream_from_the_first_event_on_is_opened_again_also_when_it_breaks_before_it() -> Result {
    let server = Server::start([]).await?;
    server.add_response(broken("retry: 400\n: padding\n"));
    server.add(stream("id: 3\nevent: turn_started\ndata: {}\n\n"));
    let begun = tokio::time::Instant::now();
    let mut events = server.client()?.watch(Source::Path("/v1/turns/t/events".into())).after(0).start();
    assert_eq!(events.next_event().await?, Some(event(3, "turn_started")));
    let asked = server.asked();
    assert_eq!(asked.iter().map(|asked| asked.header("last-event-id")).collect::<Vec<_>>()[..2], ["0", "0"]);
    assert!(begun.elapsed() >= Duration::from_millis(400), "it comes back sooner than the hub asked for");
    Ok(())
}

#[tokio::test]
async fn events_end_with_the_error_of_a_hub_that_refuses_or_is_no_hub() -> Result {
    let server = Server::start([
        stream("id: 7\nevent: done\ndata: {}\n\n"),
        (404, &[], refusal("NOT_FOUND")),
        (200, &[("content-type", "text/html")], "<html>".into()),
    ])
    .await?;
    let client = server.client()?;
    let mut events = client.watch(Source::chat("w", "c")).after(6).start();
    assert_eq!(events.next_event().await?, Some(event(7, "done")));
    assert_eq!(events.next_event().await.err().and_then(|error| error.status()), Some(404));
    assert_eq!(events.next_event().await?, None, "the error is the last item");
    let odd = client.watch(Source::workspace("w")).start().next_event().await.err().ok_or("it is no stream")?;
    assert!(matches!(odd, Error::Foreign { .. }), "{odd:?}");
    assert_eq!(server.asked()[0].header("last-event-id"), "6");
    Ok(())
}

#[tokio::test]
async fn one_connection_says_where_it_begins_and_follows_redirects_without_giving_the_token_away() -> Result {
    let body = "id: 41\nevent: cursor\n\nid: 42\nevent: done\ndata: {}\n\n";
    let other = Server::start([stream(body)]).await?;
    let to = format!("{}/elsewhere?ticket=t", other.url);
    let to: &'static str = to.leak();
    let here: &'static [(&str, &str)] = &[("location", "/here")];
    let there: &'static [(&str, &str)] = vec![("location", to)].leak();
    let server = Server::start([(307, here, String::new()), (302, there, String::new())]).await?;
    let client = server.client()?;
    let opened = client.watch(Source::chat("w", "c")).after(41).connect().await?;
    let mut connection = opened.ok_or("there are events")?;
    assert_eq!(connection.begins_after().await?, Some(41));
    assert_eq!(connection.next().await?, Some(event(42, "done")));
    assert_eq!(connection.next().await?, None);

    let tokens = |server: &Server| -> Vec<String> {
        server.asked().iter().map(|asked| asked.header("authorization").to_owned()).collect()
    };
    assert_eq!(tokens(&server), ["Bearer secret", "Bearer secret"]);
    assert_eq!(server.lines()[1], "GET /here");
    assert_eq!((tokens(&other), other.lines()), (vec![String::new()], vec!["GET /elsewhere?ticket=t".to_owned()]));
    assert_eq!(other.asked()[0].header("last-event-id"), "41");

    for _ in 0..6 {
        server.add((302, here, String::new()));
    }
    let around = client.watch(Source::chat("w", "c")).connect().await;
    assert!(matches!(around, Err(Error::Foreign { .. })), "it does not go round for ever");
    Ok(())
}

#[tokio::test]
async fn each_connection_by_ticket_has_a_new_one_and_no_token() -> Result {
    let ticket = |n: u8| ok(&json!({ "url": format!("/api/v1/w/events?ticket={n}") }));
    let server = Server::start([
        ticket(1),
        stream("id: 1\nevent: chunk\ndata: {}\n\n"),
        ticket(2),
        stream("id: 2\nevent: done\ndata: {}\n\n"),
    ])
    .await?;
    let mut events = server.client()?.watch(Source::chat("w", "c")).by_ticket().after(0).start();
    assert_eq!(events.next_event().await?, Some(event(1, "chunk")));
    assert_eq!(events.next_event().await?, Some(event(2, "done")));
    drop(events);
    let asked = server.asked();
    assert_eq!(asked[0].line, "POST /api/v1/workspaces/w/stream-tickets");
    assert_eq!((asked[0].body.as_str(), asked[0].header("authorization")), (r#"{"chat_id":"c"}"#, "Bearer secret"));
    for (at, line) in [(1, "GET /api/v1/w/events?ticket=1"), (3, "GET /api/v1/w/events?ticket=2")] {
        assert_eq!((asked[at].line.as_str(), asked[at].header("authorization")), (line, ""));
    }
    assert_eq!((asked[1].header("last-event-id"), asked[3].header("last-event-id")), ("0", "1"));
    Ok(())
}

/// Gives these tokens in this order; without more of them, none can be had.
struct Tokens(Mutex<VecDeque<&'static str>>);

impl TokenSource for Tokens {
    fn token(&self) -> BoxFuture<'_, std::result::Result<Option<String>, Error>> {
        let next = self.0.lock().pop_front();
        let none = || Error::NoToken { reason: "the login is over".into(), is_passing: false };
        Box::pin(async move { next.map(|token| Some(token.to_owned())).ok_or_else(none) })
    }
}

#[tokio::test]
async fn each_connection_has_the_token_of_its_moment() -> Result {
    let server =
        Server::start([stream("id: 1\nevent: chunk\ndata: {}\n\n"), stream("id: 2\nevent: done\ndata: {}\n\n")])
            .await?;
    let tokens = Arc::new(Tokens(Mutex::new(["first", "second"].into())));
    let mut events = server.client()?.watch(Source::chat("w", "c")).with_tokens(tokens).after(0).start();
    assert_eq!(events.next_event().await?, Some(event(1, "chunk")));
    assert_eq!(events.next_event().await?, Some(event(2, "done")));
    let over = events.next_event().await.err().ok_or("there is no third token")?;
    assert_eq!(over.to_string(), "the login is over");
    let asked: Vec<String> = server.asked().iter().map(|asked| asked.header("authorization").to_owned()).collect();
    assert_eq!(asked, ["Bearer first", "Bearer second"]);
    Ok(())
}

#[tokio::test]
async fn https_to_a_hub_without_tls_says_so_at_once() -> Result {
    let server = Server::start([]).await?;
    let client = Client::new(&server.url.replace("http://", "https://"), None)?;
    let error = client.get(&["models"], &[]).await.err().ok_or("it cannot work")?;
    assert!(matches!(error, Error::NoTls { .. }), "{error:?}");
    assert!(error.to_string().ends_with("it speaks http, not https"), "{error}");
    Ok(())
}

#[tokio::test]
async fn contents_go_by_the_address_that_the_hub_gives_and_without_the_token() -> Result {
    let headers = json!({ "x-a": "1", "Content-Length": "9" });
    let address = json!({ "request": { "method": "PUT", "url": "/put?ticket=t", "headers": headers } });
    let past = json!({ "request": { "method": "GET", "url": "/get?ticket=t" } });
    let server = Server::start([
        ok(&address),
        (204, &[], String::new()),
        (412, &[], String::new()),
        (400, &[], refusal("INVALID_ARGUMENT")),
        ok(&past),
        (200, &[], "content".into()),
        ok(&json!({ "expires_at": "x" })),
        (200, &[], "short".into()),
    ])
    .await?;
    let client = server.client()?;
    let to: Address = client.address_for("w", "00", 7).await?.ok_or("there is an address")?;
    client.upload(&to, "content", 7).await?;
    client.upload(&to, "content", 7).await?;
    let refused = client.upload(&to, "another", 7).await.err().ok_or("it is another content")?;
    assert_eq!(refused.code(), Some("INVALID_ARGUMENT"));
    assert_eq!(client.download("w", "f").await?.text().await?, "content");
    assert_eq!(client.download("w", "f").await?.text().await?, "short");

    let asked = server.asked();
    assert_eq!(asked[0].body, r#"{"sha256":"00","size":7}"#);
    let sent = &asked[1];
    assert_eq!((sent.line.as_str(), sent.body.as_str(), sent.header("x-a")), ("PUT /put?ticket=t", "content", "1"));
    assert_eq!((sent.header("content-length"), sent.header("authorization")), ("7", ""));
    assert_eq!((asked[5].line.as_str(), asked[5].header("authorization")), ("GET /get?ticket=t", ""));
    assert_eq!(asked[7].line, "GET /api/v1/workspaces/w/files/f/content");
    assert_eq!(asked[7].header("authorization"), "Bearer secret");
    Ok(())
}

#[tokio::test]
async fn an_import_that_is_refused_after_its_answer_has_begun_fails() -> Result {
    let late = (201, &[][..], format!("  {}", refusal("STORAGE_FULL")));
    let client = Server::start([late]).await?.client()?;
    let refused = client.import(&[], "archive", 7).await;
    assert_eq!(refused.err().as_ref().and_then(Error::code), Some("STORAGE_FULL"));
    Ok(())
}

#[tokio::test]
async fn an_upload_in_parts_goes_on_with_the_part_that_is_missing() -> Result {
    let state = |received: u64, next: Value| {
        let url = format!("/put?ticket={received}");
        let request = if next.is_null() { Value::Null } else { json!({ "method": "PUT", "url": url }) };
        ok(&json!({ "request": request, "parts": { "received": received, "next": next } }))
    };
    let server = Server::start([
        state(4, json!({ "from": 4, "size": 3 })),
        (401, &[], refusal("UNAUTHORIZED")),
        state(4, json!({ "from": 4, "size": 3 })),
        (204, &[], String::new()),
        state(7, Value::Null),
        ok(&json!({ "expires_at": "x" })),
        state(0, json!({ "from": 0, "size": 4 })),
        (400, &[], refusal("INVALID_ARGUMENT")),
    ])
    .await?;
    let client = server.client()?;
    let content = "part1 2";
    let bytes = |received: u64, part: UploadPart| async move {
        assert_eq!(received, part.from);
        let (from, to) = (part.from as usize, (part.from + part.size) as usize);
        Ok::<_, Error>(content[from..to].to_owned())
    };
    let parts = ["aa".to_owned(), "bb".to_owned()];
    assert!(client.upload_in_parts("w", ("00", 7), &parts, bytes).await?);
    assert!(!client.upload_in_parts("w", ("00", 7), &parts, bytes).await?, "the hub takes it whole");
    let refused = client.upload_in_parts("w", ("00", 7), &parts, bytes).await.err().ok_or("other bytes")?;
    assert_eq!(refused.code(), Some("INVALID_ARGUMENT"));
    let asked = server.asked();
    let body: Value = serde_json::from_str(&asked[0].body)?;
    assert_eq!(body, json!({ "parts": ["aa", "bb"], "sha256": "00", "size": 7 }));
    assert_eq!((asked[3].line.as_str(), asked[3].body.as_str()), ("PUT /put?ticket=4", "1 2"));
    assert_eq!(asked[3].header("authorization"), "");
    assert_eq!(asked[7].body, "part");
    Ok(())
}

#[tokio::test]
async fn the_raw_layer_sends_anything_and_repeats_nothing() -> Result {
    let server = Server::start([(503, &[("retry-after", "3"), ("x-a", "1")], refusal("UPSTREAM_UNAVAILABLE"))]).await?;
    let client = server.client()?;
    let odd = client.request(Method::POST, "/api/v1/workspaces?x=%2F").header("content-type", "application/json");
    let answer = client.answer(odd.body("{")).await?;
    assert_eq!((answer.status.as_u16(), answer.header("x-a")), (503, "1"));
    assert_eq!(answer.asked, format!("POST {}/api/v1/workspaces?x=%2F", server.url));
    assert_eq!(answer.retry_after(), Some(Duration::from_secs(3)));
    assert_eq!(answer.refusal().map(|refusal| refusal.code), Some("UPSTREAM_UNAVAILABLE".to_owned()));
    assert_eq!((server.lines().len(), server.asked()[0].body.as_str()), (1, "{"));
    Ok(())
}
