//! Accounts at servers whose issuer, table or clock has a fault, and of workspaces that end.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "oauth/support.rs"]
mod support;

use buildscale_mcp::{AccountDependencies, ServerConfig, ServerDependencies, Servers};
use domain::{Code, WorkspaceId};
use parking_lot::Mutex;
use ports::{
    Clock, Expect, Key, KnownSecrets, Secret, ServerAccounts, ServersOf, SignInAnswer, SystemClock, Table, ToolServers,
    Write,
};
use reqwest::Url;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use support::{Anywhere, Nothing, PATIENCE, REDIRECT};
use testkit::fakes::{FakeTable, Faults};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};

/// A server with its own issuer, which takes each refresh token once.
#[derive(Default)]
struct Issuer {
    state: Mutex<IssuerState>,
    /// Each request for a token waits for this while it is held.
    gate: Notify,
    asked: Notify,
}

#[derive(Default)]
struct IssuerState {
    /// How many tokens it has given.
    given: u64,
    /// The access token that the server takes.
    taken: u64,
    /// Answers in the place of the next tokens.
    instead: VecDeque<(&'static str, &'static str)>,
    is_held: bool,
}

type Reply = (&'static str, String, String);

impl Issuer {
    fn change<T>(&self, change: impl FnOnce(&mut IssuerState) -> T) -> T {
        change(&mut self.state.lock())
    }

    /// Has the server take no token that was given.
    fn expire(&self) {
        self.change(|state| state.taken = 0);
    }

    async fn token(&self, form: &str) -> Reply {
        let (reply, is_held) = self.change(|state| {
            if let Some((status, body)) = state.instead.pop_front() {
                return ((status, String::new(), body.to_owned()), state.is_held);
            }
            let is_renewal = form.contains("grant_type=refresh_token");
            if is_renewal && !form.contains(&format!("refresh_token=refresh-{}&", state.given)) {
                let refused = json!({ "error": "invalid_grant" }).to_string();
                return (("400 Bad Request", String::new(), refused), state.is_held);
            }
            state.given += 1;
            state.taken = state.given;
            let (access, refresh) = (format!("access-{}", state.given), format!("refresh-{}", state.given));
            let told = json!({ "access_token": access, "token_type": "Bearer", "refresh_token": refresh });
            (("200 OK", String::new(), told.to_string()), state.is_held)
        });
        if is_held {
            self.asked.notify_one();
            self.gate.notified().await;
        }
        reply
    }

    fn mcp(&self, origin: &str, head: &str, body: &str) -> Reply {
        let taken = self.change(|state| format!("authorization: bearer access-{}", state.taken));
        if !head.lines().any(|line| line == taken) {
            let header = format!("www-authenticate: Bearer resource_metadata=\"{origin}/meta\"\r\n");
            return ("401 Unauthorized", header, String::new());
        }
        let message: Value = serde_json::from_str(body).unwrap_or_default();
        let result = match message["method"].as_str() {
            _ if !head.starts_with("post") => return ("405 Method Not Allowed", String::new(), String::new()),
            _ if message["id"].is_null() => return ("202 Accepted", String::new(), String::new()),
            Some("initialize") => json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
                "serverInfo": { "name": "guarded", "version": "1" },
            }),
            Some("tools/list") => json!({ "tools": [{ "name": "whoami", "inputSchema": { "type": "object" } }] }),
            _ => json!({ "content": [{ "type": "text", "text": "you are signed in" }] }),
        };
        let told = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        ("200 OK", "mcp-session-id: 1\r\n".into(), told.to_string())
    }

    /// Answers one request.
    async fn answer(&self, origin: &str, mut stream: TcpStream) {
        let mut asked = Vec::new();
        let (head, body) = loop {
            if stream.read_buf(&mut asked).await.unwrap_or_default() == 0 {
                return;
            }
            let text = String::from_utf8_lossy(&asked).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0_usize) {
                break (head, body.to_owned());
            }
        };
        let ok = |told: Value| ("200 OK", String::new(), told.to_string());
        let (status, header, body) = match head.split(' ').nth(1).unwrap_or_default() {
            "/mcp" => self.mcp(origin, &head, &body),
            "/meta" => ok(json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] })),
            "/.well-known/oauth-authorization-server" => ok(json!({
                "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
                "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
            })),
            "/register" => ok(json!({ "client_id": "ours" })),
            "/token" => self.token(&format!("{body}&")).await,
            _ => ("404 Not Found", String::new(), String::new()),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{header}connection: close\r\n");
        // A client that is gone reads nothing.
        drop(stream.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).await);
    }
}

struct World {
    issuer: Arc<Issuer>,
    table: Arc<FakeTable>,
    /// Whether the key of the host cannot be had, and so no account be read.
    is_locked: Arc<AtomicBool>,
    servers: Arc<Servers>,
}

impl World {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (issuer, url) = (Arc::<Issuer>::default(), format!("{origin}/mcp"));
        tokio::spawn({
            let issuer = issuer.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let (issuer, origin) = (issuer.clone(), origin.clone());
                    tokio::spawn(async move { issuer.answer(&origin, stream).await });
                }
            }
        });
        let table = Arc::new(FakeTable::new(Arc::new(SystemClock), 1, Faults::none()));
        let is_locked = Arc::<AtomicBool>::default();
        let locked = is_locked.clone();
        let accounts = AccountDependencies {
            table: table.clone(),
            key: Arc::new(move || match locked.load(Ordering::SeqCst) {
                true => Err("the key of the host is away".into()),
                false => Ok(Secret::new("a key of the host")),
            }),
            clock: Arc::new(SystemClock),
            known: KnownSecrets::default(),
        };
        let config = ServerConfig { url: Some(url), allow_private: true, ..ServerConfig::default() };
        let parts = ServerDependencies {
            confined: None,
            children: None,
            egress: Arc::new(Anywhere),
            secrets: Arc::new(Nothing),
            host_secrets: Arc::new(Nothing),
            accounts: Some(accounts),
        };
        let servers = Servers::new(&BTreeMap::from([("guarded".to_owned(), config)]), parts).unwrap();
        Self { issuer, table, is_locked, servers: Arc::new(servers) }
    }

    /// One whose workspace has an account.
    async fn signed_in() -> Self {
        let world = Self::new().await;
        let answer = world.begun().await;
        world.servers.complete(&answer).await.unwrap();
        assert_eq!(world.call().await.unwrap(), "you are signed in");
        world
    }

    /// The answer of the browser to a sign-in that was begun.
    async fn begun(&self) -> SignInAnswer {
        let asked = self.servers.sign_in(&of(), "guarded", REDIRECT, false).await.unwrap();
        let url = Url::parse(&asked.url).unwrap();
        let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
        SignInAnswer { state, code: Some("code".into()), error: None, iss: None }
    }

    async fn call(&self) -> Result<String, domain::Error> {
        let of = of();
        let called = self.servers.call(&of, "mcp__guarded__whoami", Map::new());
        Ok(timeout(PATIENCE, called).await.expect("it is answered in time")?.text)
    }

    /// The rows that the workspace has.
    fn rows(&self) -> Vec<String> {
        self.table.partition(&format!("{}/mcp", of().workspace)).into_iter().map(|item| item.key.sk).collect()
    }

    async fn put(&self, body: impl Into<String>) {
        self.table.commit(vec![Write::put(account(), body, Expect::Present)]).await.unwrap();
    }
}

fn of() -> ServersOf {
    ServersOf::new(WorkspaceId::from_key("tests", "accounts"))
}

/// The row of the account.
fn account() -> Key {
    Key::new(format!("{}/mcp", of().workspace), "account/guarded")
}

#[tokio::test]
async fn an_answer_of_something_else_than_the_issuer_costs_no_account() {
    let world = World::signed_in().await;
    let page = "<html>We will be back soon.</html>";
    let busy = r#"{"error":"temporarily_unavailable"}"#;
    let answers = [("403 Forbidden", r#"{"message":"Forbidden"}"#), ("200 OK", page), ("302 Found", "")];
    for answer in answers.into_iter().chain([("404 Not Found", page), ("400 Bad Request", busy)]) {
        world.issuer.expire();
        world.issuer.change(|state| state.instead.push_back(answer));
        let failed = world.call().await.unwrap_err();
        assert_eq!(failed.code, Code::UpstreamUnavailable, "{answer:?}: {failed:?}");
        assert!(failed.message.contains("its issuer gives no token"), "{answer:?}: {failed:?}");
        assert_eq!(world.call().await.unwrap(), "you are signed in", "{answer:?}");
    }
    // The issuer itself says that nothing makes the account good again.
    world.issuer.expire();
    world.issuer.change(|state| state.instead.push_back(("400 Bad Request", r#"{"error":"invalid_grant"}"#)));
    for _ in 0..2 {
        let ended = world.call().await.unwrap_err();
        assert!(ended.hint.as_ref().is_some_and(|hint| hint.contains("mcp login guarded")), "{ended:?}");
    }
}

#[tokio::test]
async fn a_renewal_whose_call_is_given_up_is_kept() {
    let world = World::signed_in().await;
    world.issuer.expire();
    world.issuer.change(|state| state.is_held = true);
    let servers = world.servers.clone();
    let call = tokio::spawn(async move { servers.call(&of(), "mcp__guarded__whoami", Map::new()).await });
    timeout(PATIENCE, world.issuer.asked.notified()).await.unwrap();
    call.abort();
    assert!(call.await.is_err_and(|error| error.is_cancelled()));
    // The connection takes notice.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    world.issuer.change(|state| state.is_held = false);
    world.issuer.gate.notify_one();
    assert_eq!(world.call().await.unwrap(), "you are signed in");
    assert_eq!(world.issuer.change(|state| state.given), 2, "the refresh token was sent once");
}

#[tokio::test]
async fn a_lease_from_before_the_clock_was_set_back_is_not_waited_for() {
    let world = World::signed_in().await;
    let mut row: Value = serde_json::from_str(&world.table.get(&account()).await.unwrap().unwrap().body).unwrap();
    row["renewing_until"] = serde_json::to_value(SystemClock.now() + Duration::from_secs(3_600)).unwrap();
    world.put(row.to_string()).await;
    world.issuer.expire();
    assert_eq!(world.call().await.unwrap(), "you are signed in");
}

#[tokio::test]
async fn a_lease_of_a_process_whose_clock_is_ahead_is_waited_for() {
    let world = World::signed_in().await;
    let mut row: Value = serde_json::from_str(&world.table.get(&account()).await.unwrap().unwrap().body).unwrap();
    let sound = row.to_string();
    row["renewing_until"] = serde_json::to_value(SystemClock.now() + Duration::from_secs(35)).unwrap();
    world.put(row.to_string()).await;
    world.issuer.expire();
    let servers = world.servers.clone();
    let call = tokio::spawn(async move { servers.call(&of(), "mcp__guarded__whoami", Map::new()).await });
    // The server has refused the token, and the account has been looked up.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.issuer.change(|state| state.given), 1, "the other process renews the token");
    world.put(sound).await;
    assert_eq!(timeout(PATIENCE, call).await.unwrap().unwrap().unwrap().text, "you are signed in");
    assert_eq!(world.issuer.change(|state| state.given), 2);
}

#[tokio::test]
async fn an_account_that_cannot_be_read_for_a_moment_asks_nobody_to_sign_in() {
    let world = World::signed_in().await;
    world.issuer.expire();
    world.is_locked.store(true, Ordering::SeqCst);
    let failed = world.call().await.unwrap_err();
    assert_eq!(failed.code, Code::UpstreamUnavailable, "{failed:?}");
    assert!(failed.message.contains("the account of the workspace cannot be used now"), "{failed:?}");
    world.is_locked.store(false, Ordering::SeqCst);
    assert_eq!(world.call().await.unwrap(), "you are signed in");
}

#[tokio::test]
async fn a_damaged_account_is_signed_in_over() {
    let world = World::signed_in().await;
    world.put("{").await;
    let refused = world.call().await.unwrap_err();
    assert!(refused.hint.as_ref().is_some_and(|hint| hint.contains("mcp login guarded")), "{refused:?}");
    let answer = world.begun().await;
    world.servers.complete(&answer).await.unwrap();
    assert_eq!(world.call().await.unwrap(), "you are signed in");
}

#[tokio::test]
async fn a_sign_in_that_waits_ends_with_its_workspace() {
    let world = World::new().await;
    let answer = world.begun().await;
    world.servers.forget(of().workspace).await.unwrap();
    assert_eq!(world.servers.complete(&answer).await.unwrap_err().code, Code::NotFound);
    assert_eq!(world.issuer.change(|state| state.given), 0, "no code is exchanged");

    // The workspace ends while the issuer is asked.
    let answer = world.begun().await;
    world.issuer.change(|state| state.is_held = true);
    let servers = world.servers.clone();
    let completing = tokio::spawn(async move { servers.complete(&answer).await });
    timeout(PATIENCE, world.issuer.asked.notified()).await.unwrap();
    world.servers.forget(of().workspace).await.unwrap();
    world.issuer.gate.notify_one();
    let completed = timeout(PATIENCE, completing).await.unwrap().unwrap();
    assert_eq!(completed.unwrap_err().code, Code::NotFound);
    assert_eq!(world.rows(), Vec::<String>::new());
}
