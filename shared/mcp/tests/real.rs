//! Real servers, from the registries of npm and PyPI (`scripts/mcp-parts`), as children of the test; and servers that hang, die and flood.

#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_mcp::{Children, Egress, ServerConfig, ServerDependencies, Servers};
use domain::{CallId, Code, FilePath, WorkspaceId, event::Question};
use ports::{
    Listener, Recipient, Secret, SecretRef, Secrets, Served, ServedAnswer, ServedCall, ServedStep, ServersOf,
    ToolServers,
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

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

fn parts() -> ServerDependencies {
    let environment: Vec<_> = std::env::vars().collect();
    ServerDependencies {
        confined: None,
        children: Some(Arc::new(Children::new(&environment))),
        egress: Arc::new(Nowhere),
        secrets: Arc::new(One),
        host_secrets: Arc::new(One),
        accounts: None,
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
    ServersOf::new(WorkspaceId::from_key("tests", "mcp"))
}

fn installed() -> PathBuf {
    testkit::installed("mcp", "mcp-parts")
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

async fn call_of(then: &str) -> Result<ServedAnswer, domain::Error> {
    let mut config = hostile(then);
    config["timeout_s"] = 2.into();
    let servers = servers(&[("h", config)]);
    let served = servers.tools(&of(), PATIENCE).await;
    assert_eq!(names(&served), ["mcp__h__t"], "{served:?}");
    let called = timeout(PATIENCE, servers.call(&of(), "mcp__h__t", Map::new())).await;
    called.expect("a call ends")
}

#[tokio::test]
async fn data_keeps_the_numbers_that_a_double_does_not_hold() {
    let (number, odd) = ("12345678901234567890123", "0.10000000000000000001");
    let data = format!(r#"{{"account":{number},"rate":[{odd},0.5]}}"#);
    let result = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"content":[],"structuredContent":{data}}}}}"#);
    let answer = call_of(&format!("echo '{result}'; sleep 1000")).await.unwrap();
    assert_eq!(answer.data, json!({ "account": number, "rate": [odd, 0.5] }));
    assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), answer.data);
}

#[tokio::test]
async fn a_server_that_hangs_fails_its_call() {
    assert_eq!(call_of("sleep 1000").await.unwrap_err().code, Code::Timeout);
}

#[tokio::test]
async fn a_server_that_dies_fails_its_call_with_its_last_words() {
    let error = call_of("echo 'out of luck' >&2; exit 1").await.unwrap_err();
    assert_eq!(error.code, Code::UpstreamUnavailable);
    assert!(error.message.contains("is gone"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_floods_fails_its_call() {
    for flood in ["yes '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}'", "cat /dev/zero"] {
        let error = call_of(flood).await.unwrap_err();
        assert!(matches!(error.code, Code::UpstreamUnavailable | Code::Timeout), "{flood}: {error:?}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_holds_up_no_other() {
    let servers =
        servers(&[("h", shell("sleep 1000")), ("time", python("mcp_server_time", &["--local-timezone", "UTC"]))]);
    let now = servers.call(&of(), "mcp__time__get_current_time", args(json!({ "timezone": "UTC" }))).await.unwrap();
    assert!(now.text.contains("UTC"));
    // The first list waits for it, the second does not.
    servers.tools(&of(), Duration::from_millis(100)).await;
    let served = timeout(PATIENCE, servers.tools(&of(), 10 * PATIENCE)).await.expect("it is not waited for");
    assert_eq!(served.missing, [("h".to_owned(), "it does not answer yet".to_owned())]);
}

#[tokio::test]
async fn a_server_that_failed_has_its_reason_while_it_is_tried_again() {
    // It refuses its first list of tools, and hangs with the second.
    let config = shell(
        r#"read -r _; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}}'
        read -r _; read -r _; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"not now"}}'; sleep 1000"#,
    );
    let servers = servers(&[("h", config)]);
    let first = servers.tools(&of(), PATIENCE).await.missing;
    assert!(first.len() == 1 && first[0].1.contains("not now"), "{first:?}");
    assert_eq!(servers.tools(&of(), PATIENCE).await.missing, first);
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
async fn a_changed_list_that_fails_once_is_asked_for_again() {
    let config = shell(
        r#"read -r _; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"h","version":"1"}}}'
        read -r _; read -r _; echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}}'
        echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        read -r _; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"not now"}}'
        read -r _; echo '{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"two","inputSchema":{"type":"object"}}]}}'
        read -r _; echo '{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"done"}]}}'; sleep 1000"#,
    );
    let servers = servers(&[("h", config)]);
    let until = Instant::now() + PATIENCE;
    let answer = loop {
        match servers.call(&of(), "mcp__h__two", Map::new()).await {
            Ok(answer) => break answer,
            // Its old list does not have the tool, and while it refuses to list its tools it cannot be used.
            Err(error) => {
                let is_early = matches!(error.code, Code::NotFound | Code::UpstreamUnavailable);
                assert!(is_early && Instant::now() < until, "{error:?}");
            }
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(answer.text, "done");
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

#[tokio::test]
async fn resources_templates_and_prompts_are_files_that_are_read_at_the_server() {
    let servers = servers(&[("everything", node("@modelcontextprotocol/server-everything", &["stdio"]))]);
    let files = servers.files(&of(), PATIENCE).await;
    let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    let below = "/system/mcp/everything/resources/demo/resource";
    let document = paths.iter().find(|path| path.starts_with(&format!("{below}/static/document/"))).unwrap();
    assert!(paths.contains(&format!("{below}/dynamic/text/{{resourceId}}").as_str()), "{paths:?}");
    assert!(paths.contains(&"/system/mcp/everything/prompts/args-prompt.md"), "{paths:?}");
    let read = async |path: &str| servers.read(&of(), &FilePath::parse(path).unwrap()).await;
    assert!(!read(document).await.unwrap().text.is_empty());
    let dynamic = read(&format!("{below}/dynamic/text/7")).await.unwrap();
    assert!(dynamic.text.contains("Resource 7"), "{dynamic:?}");
    let blob = read(&format!("{below}/dynamic/blob/7")).await.unwrap();
    assert!(blob.text.starts_with("[resource demo://"), "{blob:?}");
    let none = read(&format!("{below}/nothing")).await.unwrap_err();
    assert_eq!(none.code, Code::NotFound);
    assert!(none.hint.unwrap().contains("ls /system/mcp/everything"));
    // Prompts: with arguments by a person, without in a file.
    let words = servers.prompt(&of(), "everything__args-prompt", "Paris state=Texas").await.unwrap();
    assert_eq!(words.text, "What's weather in Paris, Texas?");
    let missing = servers.prompt(&of(), "everything__args-prompt", "").await.unwrap_err();
    assert_eq!(missing.code, Code::InvalidArgument);
    assert!(missing.message.contains("city"), "{missing:?}");
    let simple = read("/system/mcp/everything/prompts/simple-prompt.md").await.unwrap();
    assert!(!simple.text.is_empty());
}

#[tokio::test]
async fn progress_is_told_while_the_call_runs() {
    let servers = servers(&[("everything", node("@modelcontextprotocol/server-everything", &["stdio"]))]);
    let heard = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let into = heard.clone();
    let call = ServedCall {
        id: CallId::from_key("progress", "1"),
        tool: "mcp__everything__trigger-long-running-operation".into(),
        args: args(json!({ "duration": 1, "steps": 4 })),
        reply: None,
        told: Some(Listener(Arc::new(move |words| into.lock().push(words)))),
    };
    let ServedStep::Answered(answer) = servers.follow(&of(), call).await.unwrap() else { panic!("it asks nobody") };
    assert!(answer.text.contains("completed"), "{answer:?}");
    let heard = heard.lock().clone();
    assert!(heard.len() >= 3 && heard[0].contains("of 4"), "{heard:?}");
}

/// Calls the tool until its server asks, and gives the question.
async fn asked(servers: &Servers, id: CallId) -> Question {
    let call = ServedCall { id, tool: ELICITS.into(), args: Map::new(), reply: None, told: None };
    the_question(servers.follow(&of(), call).await.unwrap())
}

fn the_question(step: ServedStep) -> Question {
    match step {
        ServedStep::Asks(question) => question,
        other => panic!("it asks no person: {other:?}"),
    }
}

async fn replied(servers: &Servers, id: CallId, reply: Value) -> Result<ServedStep, domain::Error> {
    let call = ServedCall { id, tool: ELICITS.into(), args: Map::new(), reply: Some(reply), told: None };
    servers.follow(&of(), call).await
}

const ELICITS: &str = "mcp__everything__trigger-elicitation-request";

#[tokio::test]
async fn a_server_asks_a_person_by_a_form_and_the_call_waits_for_the_answer() {
    let servers = servers(&[("everything", node("@modelcontextprotocol/server-everything", &["stdio"]))]);
    let until = Instant::now() + PATIENCE;
    while !names(&servers.tools(&of(), PATIENCE).await).contains(&ELICITS) {
        assert!(Instant::now() < until, "the tool is there once the server knows that we can be asked");
        tokio::task::yield_now().await;
    }
    let id = |number: u128| CallId::from_key("elicits", &number.to_string());
    let question = asked(&servers, id(1)).await;
    assert_eq!(question.question, "The MCP server everything asks: Please provide inputs for the following fields:");
    let content = json!({ "name": "Ada", "check": true });
    let answers = args(json!({ "reply": { "action": "accept", "content": content } }));
    assert!(schema_takes(&question.schema, &answers["reply"]));
    assert!(!schema_takes(&question.schema, &json!({ "action": "accept", "content": {} })), "the name is required");
    let ServedStep::Answered(answer) = replied(&servers, id(1), answers["reply"].clone()).await.unwrap() else {
        panic!()
    };
    assert!(answer.text.contains("Ada") && answer.text.contains("It was a dark and stormy night."), "{}", answer.text);
    // A no, and an end.
    for (number, action) in [(2, "decline"), (3, "cancel")] {
        let question = asked(&servers, id(number)).await;
        assert!(question.buttons.unwrap().contains(&json!({ "action": action })));
        let ServedStep::Answered(answer) = replied(&servers, id(number), json!({ "action": action })).await.unwrap()
        else {
            panic!()
        };
        assert!(answer.text.contains(action), "{}", answer.text);
    }
    // An answer to a call that does not wait reaches nobody; a call without a person is cancelled.
    let late = replied(&servers, id(1), json!({ "action": "accept" })).await.unwrap_err();
    assert_eq!(late.code, Code::OutcomeUnknown);
    let alone = servers.call(&of(), ELICITS, Map::new()).await.unwrap();
    assert!(alone.text.contains("cancel"), "{}", alone.text);
}

#[tokio::test]
async fn a_server_has_a_person_open_a_page_in_a_call_or_before_it() {
    let servers = servers(&[("everything", node("@modelcontextprotocol/server-everything", &["stdio"]))]);
    let tool = "mcp__everything__trigger-url-elicitation";
    let until = Instant::now() + PATIENCE;
    while !names(&servers.tools(&of(), PATIENCE).await).contains(&tool) {
        assert!(Instant::now() < until, "the tool is there once the server knows that pages are opened");
        tokio::task::yield_now().await;
    }
    let step = async |number: &str, is_before: bool, reply: Option<&str>| {
        let args = args(json!({ "url": "https://shop.example/pay", "message": "Pay.", "errorPath": is_before }));
        let reply = reply.map(|action| json!(action));
        let call = ServedCall { id: CallId::from_key("opens", number), tool: tool.into(), args, reply, told: None };
        servers.follow(&of(), call).await
    };
    let question = the_question(step("1", false, None).await.unwrap());
    assert_eq!(
        question.question,
        "The MCP server everything asks you to open https://shop.example/pay in a browser: Pay."
    );
    assert!(schema_takes(&question.schema, &json!("accept")));
    let ServedStep::Answered(answer) = step("1", false, Some("accept")).await.unwrap() else { panic!() };
    assert!(answer.text.contains("User completed"), "{}", answer.text);
    step("2", false, None).await.unwrap();
    let ServedStep::Answered(answer) = step("2", false, Some("decline")).await.unwrap() else { panic!() };
    assert!(answer.text.contains("declined"), "{}", answer.text);

    // A call that is refused until a page was opened is made again, and asks for its own page then.
    let before = the_question(step("3", true, None).await.unwrap());
    assert!(before.question.contains("open https://modelcontextprotocol.io/ in a browser"), "{}", before.question);
    let own = the_question(step("3", true, Some("accept")).await.unwrap());
    assert!(own.question.contains("https://shop.example/pay"), "{}", own.question);
    let ServedStep::Answered(answer) = step("3", true, Some("accept")).await.unwrap() else { panic!() };
    assert!(answer.text.contains("User completed"), "{}", answer.text);
    let _ = the_question(step("4", true, None).await.unwrap());
    let refused = step("4", true, Some("decline")).await;
    let is_refused = match &refused {
        Err(error) => error.message.contains("browser-based authorization"),
        Ok(ServedStep::Answered(answer)) => answer.is_error,
        Ok(_) => false,
    };
    assert!(is_refused, "{refused:?}");
}

#[tokio::test]
async fn a_server_asks_the_model_of_the_chat_and_a_no_is_told_to_it() {
    let servers = servers(&[("everything", node("@modelcontextprotocol/server-everything", &["stdio"]))]);
    let tool = "mcp__everything__trigger-sampling-request";
    let until = Instant::now() + PATIENCE;
    while !names(&servers.tools(&of(), PATIENCE).await).contains(&tool) {
        assert!(Instant::now() < until, "the tool is there once the server knows that we have a model");
        tokio::task::yield_now().await;
    }
    let step = async |number: &str, reply: Option<Value>| {
        let (id, args) = (CallId::from_key("samples", number), args(json!({ "prompt": "a poem", "maxTokens": 50 })));
        servers.follow(&of(), ServedCall { id, tool: tool.into(), args, reply, told: None }).await
    };
    let ServedStep::Samples(request) = step("1", None).await.unwrap() else { panic!("it asks no model") };
    assert_eq!((&request["max_tokens"], &request["system"]), (&json!(50), &json!("You are a helpful test server.")));
    assert!(request["messages"][0]["text"].as_str().unwrap().contains("a poem"));
    let answer = step("1", Some(json!({ "text": "Roses are red.", "model": "poet" }))).await.unwrap();
    let ServedStep::Answered(answer) = answer else { panic!("it is done") };
    assert!(answer.text.contains("Roses are red.") && answer.text.contains("poet"), "{}", answer.text);
    step("2", None).await.unwrap();
    match step("2", Some(Value::Null)).await {
        Ok(ServedStep::Answered(answer)) => assert!(answer.is_error && answer.text.contains("refused"), "{answer:?}"),
        Err(error) => assert!(error.message.contains("refused"), "{error:?}"),
        Ok(other) => panic!("{other:?}"),
    }
}

fn schema_takes(schema: &Value, value: &Value) -> bool {
    jsonschema::validator_for(schema).unwrap().is_valid(value)
}

#[test]
fn the_conformance_suite_passes_for_what_the_client_claims() {
    let tests = std::env::current_exe().unwrap();
    let client = tests.parent().and_then(|deps| deps.parent()).unwrap().join("examples/conformance_client");
    let modules = installed().join("node_modules");
    let results = tempfile::tempdir().unwrap();
    for scenario in ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"] {
        let done = std::process::Command::new(modules.join("node/bin/node"))
            .arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"))
            .args(["client", "--command", client.to_str().unwrap(), "--scenario", scenario])
            .current_dir(results.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{scenario}: {done:?}");
    }
}
