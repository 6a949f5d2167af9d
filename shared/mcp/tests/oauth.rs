//! Sign-ins at servers that OAuth 2.1 protects (spec 004 §11): an issuer of our own that is stricter than most, the server of the protocol's own SDK, and
//! the scenarios of the conformance suite.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "oauth/support.rs"]
mod support;

use async_trait::async_trait;
use buildscale_mcp::{AccountDependencies, Egress, OauthConfig, ServerConfig, ServerDependencies, Servers};
use domain::{Code, WorkspaceId};
use parking_lot::Mutex;
use ports::{
    Address, Clock, Expect, Key, KnownSecrets, Recipient, Secret, SecretRef, Secrets, ServerAccounts, ServerState,
    ServersOf, SignInAnswer, SignedIn, SystemClock, Table, ToolServers, Write,
};
use reqwest::Url;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::PathBuf, process::Stdio, sync::Arc, time::Duration};
use support::{Anywhere, Nothing, PATIENCE, REDIRECT};
use testkit::fakes::{FakeTable, Faults};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdin, Command},
    time::Instant,
};

/// A table with accounts, and the processes that use it.
struct World {
    table: Arc<FakeTable>,
    known: KnownSecrets,
    key: Arc<Mutex<&'static str>>,
}

impl World {
    fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let table = Arc::new(FakeTable::new(clock, 1, Faults::none()));
        Self { table, known: KnownSecrets::default(), key: Arc::new(Mutex::new("a key of the host")) }
    }

    fn accounts(&self) -> AccountDependencies {
        let key = self.key.clone();
        AccountDependencies {
            table: self.table.clone(),
            key: Arc::new(move || Ok(Secret::new(*key.lock()))),
            clock: Arc::new(SystemClock),
            known: self.known.clone(),
        }
    }

    /// A process that reaches a server at this address.
    fn process(&self, url: &str) -> Servers {
        servers(url, Some(self.accounts()))
    }
}

fn servers(url: &str, accounts: Option<AccountDependencies>) -> Servers {
    servers_with(url, OauthConfig::default(), Arc::new(Nothing), accounts)
}

fn servers_with(
    url: &str,
    oauth: OauthConfig,
    host_secrets: Arc<dyn Secrets>,
    accounts: Option<AccountDependencies>,
) -> Servers {
    let config = ServerConfig { url: Some(url.to_owned()), allow_private: true, oauth, ..ServerConfig::default() };
    let secrets = Arc::new(Nothing);
    let parts = ServerDependencies {
        confined: None,
        children: None,
        egress: Arc::new(Anywhere),
        secrets,
        host_secrets,
        accounts,
    };
    Servers::new(&BTreeMap::from([("guarded".to_owned(), config)]), parts).unwrap()
}

fn of() -> ServersOf {
    ServersOf::new(WorkspaceId::from_key("tests", "oauth"))
}

fn installed() -> PathBuf {
    testkit::installed("mcp", "mcp-parts")
}

/// The strict issuer, with a server that it protects. It ends with this.
struct Issuer {
    origin: String,
    _child: Child,
    _input: ChildStdin,
}

impl Issuer {
    async fn start(settings: &[(&str, &str)]) -> Self {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/oauth/issuer.mjs");
        let mut child = Command::new(installed().join("node_modules/node/bin/node"))
            .arg(script)
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let origin = BufReader::new(output).lines().next_line().await.unwrap().unwrap();
        Self { origin, _child: child, _input: input }
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    async fn post(&self, path: &str) {
        let client = Anywhere.client("", true).unwrap();
        assert!(client.post(format!("{}{path}", self.origin)).send().await.unwrap().status().is_success());
    }

    async fn count(&self, path: &str) -> u64 {
        let client = Anywhere.client("", true).unwrap();
        let text = client.get(format!("{}/test/counts", self.origin)).send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<Value>(&text).unwrap()[path].as_u64().unwrap_or(0)
    }
}

/// Opens the address as the browser of a person does who agrees, and gives the answer that comes back.
async fn browse(url: &str) -> SignInAnswer {
    let client = Anywhere.client("", true).unwrap();
    let answer = client.get(url).send().await.unwrap();
    let status = answer.status();
    let location = answer.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
    let back = Url::parse(&location.unwrap_or_else(|| panic!("no redirect: {status}"))).unwrap();
    assert!(back.as_str().starts_with(REDIRECT), "{back}");
    let named = |name: &str| back.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    SignInAnswer { state: named("state").unwrap(), code: named("code"), error: named("error"), iss: named("iss") }
}

async fn sign_in(servers: &Servers) {
    let asked = servers.sign_in(&of(), "guarded", REDIRECT, false).await.unwrap();
    let SignedIn { workspace, server, code } = servers.complete(&browse(&asked.url).await).await.unwrap();
    assert_eq!((workspace, server.as_str(), code), (of().workspace, "guarded", None));
}

async fn call(servers: &Servers) -> Result<String, domain::Error> {
    Ok(servers.call(&of(), "mcp__guarded__whoami", Map::new()).await?.text)
}

async fn state(servers: &Servers) -> (ServerState, bool) {
    let views = servers.servers(&of(), PATIENCE).await;
    (views[0].state, views[0].signed_in)
}

#[tokio::test]
async fn a_person_signs_in_and_the_token_is_renewed_until_the_account_ends() {
    let (issuer, world) = (Issuer::start(&[]).await, World::new());
    let servers = world.process(&issuer.url());
    let missing = servers.tools(&of(), PATIENCE).await.missing;
    assert!(missing[0].1.contains("buildscale mcp login guarded"), "{missing:?}");
    assert_eq!(state(&servers).await, (ServerState::NeedsSignIn, false));
    let refused = call(&servers).await.unwrap_err();
    assert!(refused.hint.unwrap().contains("buildscale mcp login guarded"));

    sign_in(&servers).await;
    assert_eq!(state(&servers).await, (ServerState::Connected, true));
    assert_eq!(call(&servers).await.unwrap(), "you are signed in");
    assert_eq!((issuer.count("/register").await, issuer.count("/token").await), (1, 1));

    // The server takes the token no longer: it is renewed within the call.
    issuer.post("/test/expire").await;
    assert_eq!(call(&servers).await.unwrap(), "you are signed in");
    assert_eq!(issuer.count("/token").await, 2);

    // The account is gone at its issuer: a person is needed, and the observation says so.
    issuer.post("/test/end").await;
    let ended = call(&servers).await.unwrap_err();
    assert_eq!(ended.code, Code::UpstreamRefused);
    assert!(ended.hint.as_ref().is_some_and(|hint| hint.contains("buildscale mcp login guarded")), "{ended:?}");
    assert_eq!(state(&servers).await.0, ServerState::NeedsSignIn);
    sign_in(&servers).await;
    assert_eq!(call(&servers).await.unwrap(), "you are signed in");
}

#[tokio::test]
async fn a_call_that_the_account_lacks_the_scope_for_leaves_the_server_to_all_others() {
    let (issuer, world) = (Issuer::start(&[("RULE", "1")]).await, World::new());
    let servers = world.process(&issuer.url());
    sign_in(&servers).await;
    let refused = servers.call(&of(), "mcp__guarded__rule", Map::new()).await.unwrap_err();
    assert_eq!(refused.code, Code::UpstreamRefused);
    assert!(refused.hint.as_ref().is_some_and(|hint| hint.contains("buildscale mcp login guarded")), "{refused:?}");
    assert_eq!(call(&servers).await.unwrap(), "you are signed in");
    assert_eq!(state(&servers).await, (ServerState::Connected, true));
    // The next sign-in is for the scope that was missing.
    let asked = servers.sign_in(&of(), "guarded", REDIRECT, false).await.unwrap();
    let scope = Url::parse(&asked.url).unwrap().query_pairs().find(|(name, _)| name == "scope").unwrap().1.into_owned();
    assert_eq!(scope, "all");
}

#[tokio::test]
async fn an_account_outlives_its_process_and_is_sealed_under_the_key_of_the_host() {
    let (issuer, world) = (Issuer::start(&[]).await, World::new());
    sign_in(&world.process(&issuer.url())).await;
    let again = world.process(&issuer.url());
    assert_eq!(call(&again).await.unwrap(), "you are signed in");
    assert_eq!(issuer.count("/token").await, 1, "the kept token is used");
    // No row has a token, a code or a secret in it.
    for item in world.table.items() {
        for plain in ["access-", "refresh-", "secret:", "code-", &issuer.origin] {
            assert!(!item.body.contains(plain), "{item:?}");
        }
    }
    *world.key.lock() = "another key";
    let lost = world.process(&issuer.url());
    assert_eq!(state(&lost).await, (ServerState::NeedsSignIn, false));
    // Signing out forgets the account.
    *world.key.lock() = "a key of the host";
    again.sign_out(&of(), "guarded").await.unwrap();
    assert_eq!(state(&again).await, (ServerState::NeedsSignIn, false));
}

#[tokio::test]
async fn a_sign_in_and_a_sign_out_of_another_process_count_with_the_next_call() {
    let (issuer, world) = (Issuer::start(&[]).await, World::new());
    let (people, agents) = (world.process(&issuer.url()), world.process(&issuer.url()));
    let needs_sign_in = async || {
        let refused = call(&agents).await.unwrap_err();
        assert!(refused.hint.as_ref().is_some_and(|hint| hint.contains("mcp login guarded")), "{refused:?}");
    };
    needs_sign_in().await;
    sign_in(&people).await;
    assert_eq!(call(&agents).await.unwrap(), "you are signed in");
    people.sign_out(&of(), "guarded").await.unwrap();
    needs_sign_in().await;
    sign_in(&people).await;
    assert_eq!(call(&agents).await.unwrap(), "you are signed in");
}

#[tokio::test]
async fn a_token_is_renewed_before_its_time_is_up_and_by_one_process_at_a_time() {
    let (issuer, world) = (Issuer::start(&[("LIFETIME", "15")]).await, World::new());
    let (one, other) = (world.process(&issuer.url()), world.process(&issuer.url()));
    sign_in(&one).await;
    // The issuer ends an account whose refresh token comes twice, so a race would show.
    for _ in 0..5 {
        let (a, b) = tokio::join!(call(&one), call(&other));
        assert_eq!((a.unwrap(), b.unwrap()), ("you are signed in".to_owned(), "you are signed in".to_owned()));
    }
    assert!(issuer.count("/token").await > 5, "a token of 15 s is renewed at once");
}

#[tokio::test]
async fn answers_and_metadata_that_do_not_fit_are_refused() {
    let (issuer, world) = (Issuer::start(&[]).await, World::new());
    let servers = world.process(&issuer.url());
    let asked = servers.sign_in(&of(), "guarded", REDIRECT, false).await.unwrap();
    let answer = browse(&asked.url).await;
    let nobody = SignInAnswer { state: "made-up".into(), ..answer.clone() };
    assert_eq!(servers.complete(&nobody).await.unwrap_err().code, Code::NotFound);
    servers.complete(&answer).await.unwrap();
    assert_eq!(servers.complete(&answer).await.unwrap_err().code, Code::NotFound, "an answer is good once");
    let unknown = servers.sign_in(&of(), "absent", REDIRECT, false).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);

    for (settings, word) in
        [(&[("WRONG_ISS", "https://evil.example")], "another issuer"), (&[("DENY", "1")], "access_denied")]
    {
        let issuer = Issuer::start(settings).await;
        let servers = World::new().process(&issuer.url());
        let asked = servers.sign_in(&of(), "guarded", REDIRECT, false).await.unwrap();
        let refused = servers.complete(&browse(&asked.url).await).await.unwrap_err();
        assert!(refused.code == Code::UpstreamRefused && refused.message.contains(word), "{refused:?}");
        assert_eq!(issuer.count("/token").await, 0, "no code is exchanged");
    }
    let issuer = Issuer::start(&[("WRONG_RESOURCE", "https://evil.example/mcp")]).await;
    let refused = World::new().process(&issuer.url()).sign_in(&of(), "guarded", REDIRECT, false).await.unwrap_err();
    assert!(refused.message.contains("another resource"), "{refused:?}");
}

/// One secret, and the addresses that it was looked up for.
#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Secrets for Noting {
    async fn get(&self, _: &SecretRef, to: Recipient<'_>) -> ports::Result<Option<Secret>> {
        let Address::Url(url) = to.address else { panic!("{to:?}") };
        self.0.lock().push(url.to_owned());
        Ok(Some(Secret::new("our-secret")))
    }
}

#[tokio::test]
async fn the_secret_of_a_client_goes_to_the_issuer_that_its_declaration_names() {
    let settings = [("SERVER_HOST", "localhost"), ("CLIENT", "ours"), ("SECRET", "our-secret"), ("REDIRECT", REDIRECT)];
    let (issuer, world, asked) = (Issuer::start(&settings).await, World::new(), Noting::default());
    // The server is at another host than the issuer that it names.
    let url = issuer.url().replace("127.0.0.1", "localhost");
    let process = |named: Option<&str>| {
        let (client_id, client_secret) = (Some("ours".to_owned()), Some("${secret:client}".to_owned()));
        let oauth =
            OauthConfig { client_id, client_secret, issuer: named.map(str::to_owned), ..OauthConfig::default() };
        servers_with(&url, oauth, Arc::new(asked.clone()), Some(world.accounts()))
    };
    for (named, hint) in [(None, "in oauth.issuer"), (Some("https://id.example"), "correct oauth.issuer")] {
        let refused = process(named).sign_in(&of(), "guarded", REDIRECT, false).await.unwrap_err();
        assert_eq!(refused.code, Code::Unprocessable, "{refused:?}");
        assert!(refused.hint.as_ref().is_some_and(|given| given.contains(hint)), "{refused:?}");
    }
    assert!(asked.0.lock().is_empty(), "nothing is looked up for an issuer that nobody declared");

    let servers = process(Some(&issuer.origin));
    sign_in(&servers).await;
    assert_eq!(call(&servers).await.unwrap(), "you are signed in");
    assert_eq!(*asked.0.lock(), [format!("{}/token", issuer.origin)], "a grant is for where it goes");
}

#[tokio::test]
async fn an_account_is_confirmed_by_the_code_that_its_browser_shows() {
    let (issuer, world) = (Issuer::start(&[]).await, World::new());
    let servers = world.process(&issuer.url());
    let completed = async || {
        let asked = servers.sign_in(&of(), "guarded", REDIRECT, true).await.unwrap();
        servers.complete(&browse(&asked.url).await).await.unwrap().code.unwrap()
    };
    let confirm = async |code: &str| servers.confirm(&of(), "guarded", code).await.map_err(|error| error.code);
    assert_eq!(confirm("00000000").await, Err(Code::NotFound), "nobody has signed in");
    let code = completed().await;
    assert_eq!(state(&servers).await, (ServerState::NeedsSignIn, false), "not before the code");
    let wrong = if code == "00000000" { "11111111" } else { "00000000" };
    assert_eq!(confirm(wrong).await, Err(Code::InvalidArgument));
    assert_eq!(confirm(&format!("{} {}", &code[..4], &code[4..])).await, Ok(()));
    assert_eq!(call(&servers).await.unwrap(), "you are signed in");
    assert_eq!(confirm(&code).await, Err(Code::NotFound), "a code is good once");

    servers.sign_out(&of(), "guarded").await.unwrap();
    assert_eq!(state(&servers).await.0, ServerState::NeedsSignIn);
    let code = completed().await;
    let wrong = if code == "00000000" { "11111111" } else { "00000000" };
    for _ in 0..5 {
        assert_eq!(confirm(wrong).await, Err(Code::InvalidArgument));
    }
    assert_eq!(confirm(&code).await, Err(Code::NotFound), "five wrong ones end it");
}

#[tokio::test]
async fn a_workspace_that_ends_takes_its_accounts_along_and_no_others() {
    let world = World::new();
    let [ends, stays] = ["ends", "stays"].map(|name| WorkspaceId::from_key("tests", name));
    for workspace in [ends, stays] {
        // More than are forgotten together.
        for number in 0..60 {
            let place = |kind: &str| Key::new(format!("{workspace}/mcp"), format!("{kind}/{number}"));
            let rows = ["account", "unconfirmed"].map(|kind| Write::put(place(kind), "{}", Expect::Absent));
            world.table.commit(rows.into()).await.unwrap();
        }
    }
    let servers = world.process("https://guarded.example/mcp");
    for _ in 0..2 {
        servers.forget(ends).await.unwrap();
        let left: Vec<_> = world.table.items().into_iter().map(|item| item.key.pk).collect();
        assert_eq!(left, vec![format!("{stays}/mcp"); 120]);
    }
}

#[tokio::test]
async fn without_accounts_a_sign_in_is_refused_with_another_way() {
    let issuer = Issuer::start(&[]).await;
    let servers = servers(&issuer.url(), None);
    let refused = servers.sign_in(&of(), "guarded", REDIRECT, false).await.unwrap_err();
    assert_eq!(refused.code, Code::Unprocessable);
    assert!(refused.hint.unwrap().contains("Bearer ${secret:NAME}"));
    assert_eq!(state(&servers).await.0, ServerState::NeedsSignIn);
}

#[tokio::test]
async fn tokens_are_taken_out_of_all_that_is_written_down() {
    let (issuer, world) = (Issuer::start(&[]).await, World::new());
    let servers = world.process(&issuer.url());
    let asked = servers.sign_in(&of(), "guarded", REDIRECT, false).await.unwrap();
    assert!(!asked.url.contains("secret"), "the address has the client's id, and not its secret");
    servers.complete(&browse(&asked.url).await).await.unwrap();
    assert_eq!(call(&servers).await.unwrap(), "you are signed in");
    let known = format!("{:?}", world.known);
    assert!(!known.contains("access-") && !known.contains("refresh-"), "{known}");
}

/// The server of the protocol's own SDK, with its own issuer at another port.
#[tokio::test]
async fn a_person_signs_in_at_the_server_of_the_sdk() {
    let (port, auth) = (testkit::free_port(), testkit::free_port());
    let modules = installed().join("node_modules");
    let script = modules.join("@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js");
    let _child = Command::new(modules.join("node/bin/node"))
        .arg(script)
        .args(["--oauth", "--oauth-strict"])
        .envs([("MCP_PORT", port.to_string()), ("MCP_AUTH_PORT", auth.to_string())])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    for port in [port, auth] {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            assert!(Instant::now() < until, "it does not listen");
            // poll: a process of others tells nobody that it listens.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let world = World::new();
    let servers = world.process(&format!("http://localhost:{port}/mcp"));
    assert_eq!(state(&servers).await, (ServerState::NeedsSignIn, false));
    sign_in(&servers).await;
    let greeted =
        servers.call(&of(), "mcp__guarded__greet", json!({ "name": "Ada" }).as_object().unwrap().clone()).await;
    assert!(greeted.unwrap().text.contains("Ada"));
}

#[test]
fn the_conformance_suite_passes_for_sign_ins() {
    let tests = std::env::current_exe().unwrap();
    let client = tests.parent().and_then(|deps| deps.parent()).unwrap().join("examples/conformance_client");
    let modules = installed().join("node_modules");
    let results = tempfile::tempdir().unwrap();
    let scenarios = [
        "metadata-default",
        "metadata-var1",
        "metadata-var2",
        "metadata-var3",
        "scope-from-www-authenticate",
        "scope-from-scopes-supported",
        "scope-omitted-when-undefined",
        "scope-step-up",
        "scope-retry-limit",
        "token-endpoint-auth-basic",
        "token-endpoint-auth-post",
        "token-endpoint-auth-none",
        "pre-registration",
        "2025-03-26-oauth-metadata-backcompat",
        "2025-03-26-oauth-endpoint-fallback",
        "resource-mismatch",
    ];
    for scenario in scenarios {
        let done = std::process::Command::new(modules.join("node/bin/node"))
            .arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"))
            .args(["client", "--command", client.to_str().unwrap(), "--scenario", &format!("auth/{scenario}")])
            .current_dir(results.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{scenario}: {said}");
    }
}
