//! Servers of tools, for agents on AWS: a real one over HTTP, which `scripts/mcp-parts` installs, and a program in the sandbox of a workspace.

use crate::world::{Client, Options, Result, World};
use emulators::ecs::{Deployed, Ecs};
use reqwest::{Method, header::LOCATION, redirect::Policy};
use serde_json::{Value, json};
use std::{path::PathBuf, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

const PATIENCE: Duration = Duration::from_secs(60);

const SCRIPT: &str = "rules:
- when: {user: '^echo'}
  steps:
  - {calls: [{tool: mcp__far__echo, args: {message: 'from far away'}}]}
  - {text: 'It said {{result}}'}
- when: {user: '^search'}
  steps:
  - {calls: [{tool: mcp_search, args: {query: x}}]}
  - {text: 'It said {{result}}'}
- when: {user: '^look'}
  steps:
  - {calls: [{tool: mcp__own__notes, args: {}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}
- when: {user: '^who'}
  steps:
  - {calls: [{tool: mcp__guarded__whoami, args: {}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}
- when: {user: '^wait'}
  steps:
  - {calls: [{tool: mcp__own__hang, args: {}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}
";

/// A server as small as one can be. It runs at the root of the workspace. It tells that a call of `hang` has come and never answers it, and takes others
/// meanwhile.
const SERVER: &str = r#"
tool() { printf '{"name":"%s","inputSchema":{"type":"object"}}' "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"own","version":"1"}}' ;;
  *'"tools/list"'*) r="{\"tools\":[$(tool notes),$(tool hang)]}" ;;
  *'"hang"'*) r='{"level":"info","data":"it hangs"}'
    printf '{"jsonrpc":"2.0","method":"notifications/message","params":%s}\n' "$r"
    continue ;;
  *'"notes"'*) r="{\"content\":[{\"type\":\"text\",\"text\":\"$(cat projects/*.md | tr '\n' ' ') for $WHOM\"}]}" ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

fn installed() -> PathBuf {
    testkit::installed("mcp", "mcp-parts").join("node_modules")
}

/// The server, and its address.
async fn everything() -> Result<(Child, String)> {
    let port = testkit::free_port();
    let modules = installed();
    let mut command = Command::new(modules.join("node/bin/node"));
    command.arg(modules.join("@modelcontextprotocol/server-everything/dist/index.js")).arg("streamableHttp");
    command.env("PORT", port.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = command.kill_on_drop(true).spawn()?;
    let mut told = BufReader::new(server.stderr.take().ok_or("no stderr")?).lines();
    let listens = async {
        while let Some(line) = told.next_line().await? {
            if line.contains("listening") {
                return Ok(true);
            }
        }
        Ok::<_, std::io::Error>(false)
    };
    assert!(timeout(PATIENCE, listens).await??, "the server listens");
    // It has to be able to go on saying things.
    tokio::spawn(async move { while let Ok(Some(_)) = told.next_line().await {} });
    Ok((server, format!("http://127.0.0.1:{port}/mcp")))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_on_aws_calls_servers_over_http_after_its_function_was_frozen_and_after_a_sign_in() -> Result {
    let ((_server, url), (_guarded, guarded)) = (everything().await?, guarded().await?);
    let settings = [
        ("BUILDSCALE__MCP__FAR__URL", url.as_str()),
        ("BUILDSCALE__MCP__FAR__ALLOW_PRIVATE", "true"),
        ("BUILDSCALE__MCP__GUARDED__URL", guarded.as_str()),
        ("BUILDSCALE__MCP__GUARDED__ALLOW_PRIVATE", "true"),
        ("BUILDSCALE__WEBHOOKS__SECRET", "a key of webhooks of at least thirty-two bytes"),
    ];
    let world = World::deploy(Options { script: SCRIPT.into(), settings: &settings, ..Options::default() }).await?;
    signs_in_and_out(&world).await?;
    let (client, place) = (&world.client, world.client.place().await?);
    for _ in 0..2 {
        let chat = client.chat(&place, "echo it").await?;
        // The turn rests meanwhile, and instances are frozen between invocations: a connection of theirs stands still.
        let asked = client.watch(&chat).until_event("permission_required").await?;
        let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
        world.until_settled().await?;
        client.post(&format!("{chat}/permissions/{permission}"), json!({ "outcome": "approved" })).await?;
        let done = client.watch(&chat).until_event("done").await?;
        assert!(done.data["message"].as_str().is_some_and(|said| said.contains("from far away")), "{:?}", done.data);
    }

    // A workspace's own declaration reaches no private address, and no program runs here.
    let own = json!({ "mcpServers": { "near": { "url": url }, "program": { "command": "npx" } } });
    client.file(&place, "/system/mcp.json", &own.to_string()).await?;
    let said = loop {
        let chat = client.chat(&place, "search it").await?;
        let done = client.watch(&chat).until_event("done").await?;
        let said = done.data["message"].as_str().ok_or("no message")?.to_owned();
        // A turn does not wait long for a server, which may not have answered yet on a busy machine.
        if !said.contains("it does not answer yet") {
            break said;
        }
    };
    assert!(said.contains("near cannot be used now: addresses in private networks are not allowed"), "{said}");
    assert!(said.contains("program cannot be used now: programs of servers run in a sandbox"), "{said}");
    Ok(())
}

/// Lets the agent of a chat make its call, after all functions have come to rest. Instances are frozen between invocations.
async fn approve(world: &World, chat: &str) -> Result {
    let asked = world.client.watch(chat).until_event("permission_required").await?;
    let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    world.until_settled().await?;
    world.client.post(&format!("{chat}/permissions/{permission}"), json!({ "outcome": "approved" })).await?;
    Ok(())
}

async fn said(client: &Client, chat: &str) -> Result<String> {
    let done = client.watch(chat).until_event("done").await?;
    Ok(done.data["message"].as_str().ok_or("no message")?.to_owned())
}

/// A server that its own issuer protects, and its address. It ends with the child.
async fn guarded() -> Result<(Child, String)> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/mcp/tests/oauth/issuer.mjs");
    let mut command = Command::new(installed().join("node/bin/node"));
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.kill_on_drop(true).spawn()?;
    let mut lines = BufReader::new(server.stdout.take().ok_or("no output")?).lines();
    let origin = timeout(PATIENCE, lines.next_line()).await??.ok_or("it says no address")?;
    Ok((server, format!("{origin}/mcp")))
}

/// Goes where a sign-in leads, as the browser of a person who agrees does. The words of the page at its end.
async fn browse(authorize_url: &str) -> Result<String> {
    let http = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build()?;
    let agreed = http.get(authorize_url).send().await?;
    let back = agreed.headers().get(LOCATION).ok_or("no way back")?.to_str()?;
    assert!(back.starts_with("https://"), "the public address has HTTPS: {back}");
    // Here it has none.
    Ok(http.get(back.replacen("https://", "http://", 1)).send().await?.text().await?)
}

/// An admin signs in at a server and out again: agents and people call it under the account meanwhile.
async fn signs_in_and_out(world: &World) -> Result {
    let (client, place) = (&world.client, world.client.place().await?);
    let asks_who = async || {
        let chat = client.chat(&place, "who am I?").await?;
        approve(world, &chat).await?;
        said(client, &chat).await
    };
    // An instance of the worker has heard that the server wants a sign-in.
    let words = asks_who().await?;
    assert!(words.starts_with("It failed"), "{words}");

    let asked = client.post(&format!("{place}/mcp/guarded/authorize"), json!({})).await?;
    assert_eq!(asked["confirm"], true, "{asked}");
    let shown = browse(asked["authorize_url"].as_str().ok_or("no address")?).await?;
    let (_, code) = shown.split_once("The code is ").ok_or_else(|| shown.clone())?;
    let code = code.split_once('.').ok_or("no code")?.0;
    let confirm = format!("{place}/mcp/guarded/authorize/confirm");
    assert_eq!(client.call(Method::POST, &confirm, json!({ "code": code })).await?.0, 204);
    let of_server = |listed: &Value| {
        let guarded = listed["servers"].as_array()?.iter().find(|one| one["name"] == "guarded")?;
        Some((guarded["state"].clone(), guarded["signed_in"].clone()))
    };
    let connected = Some((json!("connected"), json!(true)));
    client.until(&format!("{place}/mcp/servers"), |listed| of_server(listed) == connected).await?;

    // The instance that was refused sees the account.
    let words = asks_who().await?;
    assert!(words.starts_with("It said") && words.contains("you are signed in"), "{words}");
    let of_person = json!({ "tool": "mcp__guarded__whoami", "args": {} });
    let answer = client.post(&format!("{place}/tools"), of_person).await?;
    assert!(answer["success"] == true && answer["output"].to_string().contains("you are signed in"), "{answer}");

    // The account ends for all instances.
    let (status, _) = client.call(Method::DELETE, &format!("{place}/mcp/guarded/authorize"), Value::Null).await?;
    assert_eq!(status, 204);
    let words = asks_who().await?;
    assert!(words.starts_with("It failed"), "{words}");
    for secret in ["access-", "refresh-", "code-"] {
        assert!(!world.has_logged(secret)?, "{secret} is in a log");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_on_aws_calls_a_program_in_the_sandbox_of_its_workspace() -> Result {
    let ecs = Ecs::start(Deployed::sandboxes(env!("CARGO_BIN_EXE_buildscale-sandbox"))).await?;
    let mut settings = ecs.variables();
    settings.push(("AWS_ENDPOINT_URL_ECS".into(), ecs.endpoint().into()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let world = World::deploy(Options { script: SCRIPT.into(), settings: &settings, ..Options::default() }).await?;
    let (client, place) = (&world.client, world.client.place().await?);
    client.file(&place, "/projects/server.sh", SERVER).await?;
    client.file(&place, "/projects/a.md", "some words").await?;
    let own = json!({ "command": "/bin/sh", "args": ["projects/server.sh"], "env": { "WHOM": "everybody" } });
    client.file(&place, "/system/mcp.json", &json!({ "mcpServers": { "own": own } }).to_string()).await?;

    // The sandbox is started for it.
    let chat = client.chat(&place, "look at it").await?;
    client.until(&format!("{place}/sandbox"), |view| view["state"] == "ready").await?;
    approve(&world, &chat).await?;
    let words = said(client, &chat).await?;
    assert!(words.starts_with("It said") && words.contains("some words for everybody"), "{words}");
    assert_eq!(ecs.tasks().len(), 1);

    // It sees a file that came since it started.
    client.file(&place, "/projects/b.md", " and more").await?;
    let chat = client.chat(&place, "look again").await?;
    approve(&world, &chat).await?;
    let words = said(client, &chat).await?;
    assert!(words.starts_with("It said") && words.contains("some words and more for everybody"), "{words}");

    // The sandbox dies under a call, of which the program has told: the call fails, and the turn goes on.
    let chat = client.chat(&place, "wait for it").await?;
    approve(&world, &chat).await?;
    let told = client.watch(&chat).until_event("agent_update").await?;
    assert!(told.data.to_string().contains("it hangs"), "{:?}", told.data);
    ecs.kill(&ecs.living()[0].task);
    let words = said(client, &chat).await?;
    assert!(words.starts_with("It failed") && words.contains("is gone"), "{words}");
    // An instance that was frozen with the program asks whether it is there before it makes a call, and has another sandbox started, which may take a while.
    let words = loop {
        let chat = client.chat(&place, "look once more").await?;
        approve(&world, &chat).await?;
        let words = said(client, &chat).await?;
        assert!(!words.contains("is gone"), "no call is made of a program that has gone: {words}");
        if !words.starts_with("It failed") {
            break words;
        }
    };
    assert!(words.starts_with("It said") && words.contains("some words and more for everybody"), "{words}");
    assert!(ecs.tasks().len() > 1, "another sandbox is started for it");
    Ok(())
}
