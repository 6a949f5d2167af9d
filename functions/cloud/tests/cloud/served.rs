//! Servers of tools, for agents on AWS: a real one over HTTP, which `scripts/mcp-parts` installs, and a program in the sandbox of a workspace.

use crate::world::{Client, Options, Result, World};
use emulators::ecs::{Deployed, Ecs};
use serde_json::json;
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
- when: {user: '^wait'}
  steps:
  - {calls: [{tool: mcp__own__hang, args: {}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}
";

/// A server as small as one can be. It runs at the root of the workspace. It never answers a call of `hang`, and takes others meanwhile.
const SERVER: &str = r#"
tool() { printf '{"name":"%s","inputSchema":{"type":"object"}}' "$1"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"own","version":"1"}}' ;;
  *'"tools/list"'*) r="{\"tools\":[$(tool notes),$(tool hang)]}" ;;
  *'"hang"'*) continue ;;
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
async fn an_agent_on_aws_calls_a_server_over_http_also_after_its_function_was_frozen() -> Result {
    let (_server, url) = everything().await?;
    let settings = [("BUILDSCALE__MCP__FAR__URL", url.as_str()), ("BUILDSCALE__MCP__FAR__ALLOW_PRIVATE", "true")];
    let world = World::deploy(Options { script: SCRIPT.into(), settings: &settings, ..Options::default() }).await?;
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

    // The sandbox dies under a call, or right before it, so that the call hangs in another sandbox: the call fails, and the turn goes on.
    let chat = client.chat(&place, "wait for it").await?;
    approve(&world, &chat).await?;
    ecs.kill(&ecs.living()[0].task);
    let words = said(client, &chat).await?;
    assert!(words.starts_with("It failed"), "{words}");
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
