//! Real servers, from the registries of npm and PyPI (`scripts/mcp-parts`), as children of the test; and servers that hang, die and flood.

#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_mcp::{Children, Egress, Parts, ServerConfig, Servers};
use domain::{Code, WorkspaceId};
use ports::{Recipient, Secret, SecretRef, Secrets, Served, ServersOf, ToolServers};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);

struct Nowhere;

impl Egress for Nowhere {
    fn client(&self, url: &str, _: bool) -> Result<reqwest::Client, String> {
        Err(format!("{url} may not be reached"))
    }
}

struct One;

#[async_trait]
impl Secrets for One {
    async fn get(&self, reference: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
        Ok((*reference == SecretRef::Named("word".into())).then(|| Secret::new("open-sesame")))
    }
}

fn parts() -> Parts {
    let environment: Vec<_> = std::env::vars().collect();
    Parts {
        confined: None,
        children: Some(Arc::new(Children::new(&environment))),
        egress: Arc::new(Nowhere),
        secrets: Arc::new(One),
        host_secrets: Arc::new(One),
    }
}

fn servers(list: &[(&str, Value)]) -> Servers {
    let own: BTreeMap<String, ServerConfig> = list
        .iter()
        .map(|(name, config)| {
            let mut config = config.clone();
            config["confined"] = false.into();
            ((*name).to_owned(), serde_json::from_value(config).unwrap())
        })
        .collect();
    Servers::new(&own, parts()).unwrap()
}

fn of() -> ServersOf {
    ServersOf { workspace: WorkspaceId::from_key("tests", "mcp"), declared: None, tools: [].into() }
}

fn installed() -> PathBuf {
    let cache = std::env::var_os("BUILDSCALE_CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        Some(home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?.join("buildscale"))
    });
    let folder = cache.unwrap().join("mcp/installed");
    assert!(folder.exists(), "scripts/mcp-parts installs the servers");
    folder.canonicalize().unwrap()
}

fn node(package: &str, args: &[&str]) -> Value {
    let at = installed().join("node_modules");
    let script = at.join(package).join("dist/index.js").display().to_string();
    let args: Vec<_> = [script.as_str()].into_iter().chain(args.iter().copied()).collect();
    json!({ "command": at.join("node/bin/node"), "args": args })
}

fn python(module: &str, args: &[&str]) -> Value {
    let args: Vec<_> = ["-m", module].into_iter().chain(args.iter().copied()).collect();
    json!({ "command": installed().join("python/bin/python"), "args": args })
}

fn shell(script: &str) -> Value {
    json!({ "command": "/bin/sh", "args": ["-c", script] })
}

fn args(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn names(served: &Served) -> Vec<&str> {
    served.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn everything_lists_its_tools_and_answers() {
    let config = node("@modelcontextprotocol/server-everything", &["stdio"]);
    let servers = servers(&[("everything", config)]);
    let served = servers.tools(&of(), PATIENCE).await;
    assert!(names(&served).contains(&"mcp__everything__echo"), "{served:?}");
    let answer = servers.call(&of(), "mcp__everything__echo", args(json!({ "message": "hello" }))).await.unwrap();
    assert!(answer.text.contains("hello") && !answer.is_error, "{answer:?}");
    // A tool that reports an error, and an image.
    let wrong = servers.call(&of(), "mcp__everything__echo", args(json!({ "message": 7 }))).await;
    assert!(wrong.is_err() || wrong.is_ok_and(|answer| answer.is_error));
    let image = servers.call(&of(), "mcp__everything__get-tiny-image", Map::new()).await.unwrap();
    assert!(image.text.contains("[image image/png"), "{}", image.text);
    let none = servers.call(&of(), "mcp__everything__nothing", Map::new()).await.unwrap_err();
    assert_eq!(none.code, Code::NotFound);
}

#[tokio::test]
async fn files_of_a_folder_are_read_through_a_server() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "the words").unwrap();
    let at = folder.path().canonicalize().unwrap();
    let config = node("@modelcontextprotocol/server-filesystem", &[at.to_str().unwrap()]);
    let servers = servers(&[("files", config)]);
    let read = json!({ "path": at.join("a.txt") });
    let answer = servers.call(&of(), "mcp__files__read_text_file", args(read)).await.unwrap();
    assert!(answer.text.contains("the words"), "{answer:?}");
    let served = servers.tools(&of(), PATIENCE).await;
    let repeatable = |name: &str| served.tools.iter().any(|tool| tool.name == name && tool.is_repeatable);
    assert!(repeatable("mcp__files__read_text_file") && !repeatable("mcp__files__move_file"), "{served:?}");
}

#[tokio::test]
async fn servers_in_python_answer() {
    let folder = tempfile::tempdir().unwrap();
    let git = |words: &[&str]| {
        let done = std::process::Command::new("git").args(words).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "the first"]);
    let repository = folder.path().to_str().unwrap();
    let servers = servers(&[
        ("time", python("mcp_server_time", &["--local-timezone", "UTC"])),
        ("git", python("mcp_server_git", &["--repository", repository])),
    ]);
    let served = servers.tools(&of(), PATIENCE).await;
    assert!(served.missing.is_empty(), "{served:?}");
    let now = servers.call(&of(), "mcp__time__get_current_time", args(json!({ "timezone": "UTC" }))).await.unwrap();
    assert!(now.text.contains("UTC"), "{now:?}");
    let log = servers.call(&of(), "mcp__git__git_log", args(json!({ "repo_path": repository }))).await.unwrap();
    assert!(log.text.contains("the first"), "{log:?}");
}

#[tokio::test]
async fn a_server_that_does_not_start_is_told_of_with_its_words() {
    let servers = servers(&[
        ("absent", json!({ "command": "/there/is/none" })),
        ("broken", shell("echo 'no such module' >&2; exit 3")),
        ("far", json!({ "url": "http://10.0.0.1/mcp" })),
        ("keyed", json!({ "command": "true", "env": { "KEY": "${secret:missing}" } })),
    ]);
    let missing: BTreeMap<_, _> = servers.tools(&of(), PATIENCE).await.missing.into_iter().collect();
    assert!(missing["absent"].contains("does not start"), "{missing:?}");
    assert!(missing["broken"].contains("no such module"), "{missing:?}");
    assert_eq!(missing["far"], "http://10.0.0.1/mcp may not be reached");
    assert!(missing["keyed"].contains("the secret missing, which KEY refers to, is not there"), "{missing:?}");
}

/// Answers the handshake and the list of tools, then does `then` for each call.
fn hostile(then: &str) -> Value {
    shell(&format!(
        r#"read -r _; echo '{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"h","version":"1"}}}}}}'
        read -r _; read -r _; echo '{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"t","inputSchema":{{"type":"object"}}}}]}}}}'
        read -r _; {then}"#
    ))
}

async fn call_of(then: &str) -> (domain::Error, Duration) {
    let mut config = hostile(then);
    config["timeout_s"] = 2.into();
    let servers = servers(&[("h", config)]);
    let served = servers.tools(&of(), PATIENCE).await;
    assert_eq!(names(&served), ["mcp__h__t"], "{served:?}");
    let began = Instant::now();
    (servers.call(&of(), "mcp__h__t", Map::new()).await.unwrap_err(), began.elapsed())
}

#[tokio::test]
async fn a_server_that_hangs_fails_its_call() {
    let (error, took) = call_of("sleep 1000").await;
    assert_eq!(error.code, Code::Timeout);
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test]
async fn a_server_that_dies_fails_its_call_with_its_last_words() {
    let (error, _) = call_of("echo 'out of luck' >&2; exit 1").await;
    assert_eq!(error.code, Code::UpstreamUnavailable);
    assert!(error.message.contains("is gone"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_floods_fails_its_call() {
    for flood in ["yes '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}'", "cat /dev/zero"] {
        let (error, took) = call_of(flood).await;
        assert!(matches!(error.code, Code::UpstreamUnavailable | Code::Timeout), "{flood}: {error:?}");
        assert!(took < Duration::from_secs(20), "{flood}: {took:?}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_holds_up_no_other() {
    let servers =
        servers(&[("h", shell("sleep 1000")), ("time", python("mcp_server_time", &["--local-timezone", "UTC"]))]);
    let began = Instant::now();
    let now = servers.call(&of(), "mcp__time__get_current_time", args(json!({ "timezone": "UTC" }))).await.unwrap();
    assert!(now.text.contains("UTC"));
    // The first list waits for it, the second does not.
    servers.tools(&of(), Duration::from_millis(100)).await;
    let again = Instant::now();
    let served = servers.tools(&of(), PATIENCE).await;
    assert_eq!(served.missing, [("h".to_owned(), "it does not answer yet".to_owned())]);
    assert!(again.elapsed() < Duration::from_secs(10) && began.elapsed() < PATIENCE);
}

#[tokio::test]
async fn a_changed_list_is_asked_for_again() {
    let config = shell(
        r#"read -r _; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"h","version":"1"}}}'
        read -r _; read -r _; echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}}'
        echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        read -r _; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"two","inputSchema":{"type":"object"}}]}}'; sleep 1000"#,
    );
    let servers = servers(&[("h", config)]);
    let until = Instant::now() + PATIENCE;
    loop {
        let served = servers.tools(&of(), PATIENCE).await;
        if names(&served) == ["mcp__h__two"] {
            break;
        }
        assert!(Instant::now() < until, "{served:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_workspace_declares_servers_in_the_format_of_hosts() {
    let servers = servers(&[("own", shell("exit 0"))]);
    let declared =
        json!({ "mcpServers": { "own": { "command": "x" }, "theirs": { "command": "cat" }, "bad name": {} } });
    let of = ServersOf { declared: Some(declared.to_string().into()), ..of() };
    let missing: BTreeMap<_, _> = servers.tools(&of, PATIENCE).await.missing.into_iter().collect();
    assert!(missing["theirs"].contains("run in a sandbox, and there is none"), "{missing:?}");
    assert!(missing.contains_key("own") && missing.contains_key("bad name"), "{missing:?}");
    let wrong = ServersOf { declared: Some("{".into()), ..of };
    assert!(servers.tools(&wrong, PATIENCE).await.missing.iter().any(|(name, _)| name == "mcp.json"));
}

#[test]
fn the_conformance_suite_passes_for_what_the_client_claims() {
    let tests = std::env::current_exe().unwrap();
    let client = tests.parent().and_then(|deps| deps.parent()).unwrap().join("examples/conformance_client");
    let modules = installed().join("node_modules");
    let results = tempfile::tempdir().unwrap();
    for scenario in ["initialize", "tools_call"] {
        let done = std::process::Command::new(modules.join("node/bin/node"))
            .arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"))
            .args(["client", "--command", client.to_str().unwrap(), "--scenario", scenario])
            .current_dir(results.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{scenario}: {done:?}");
    }
}
