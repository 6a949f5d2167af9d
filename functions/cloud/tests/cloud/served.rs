//! A server of tools over HTTP, for agents on AWS: a real one, which `scripts/mcp-parts` installs.

use crate::world::{Options, Result, World};
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
";

fn installed() -> PathBuf {
    testkit::installed("mcp", "mcp-parts").join("node_modules")
}

/// The server, and its address.
async fn everything() -> Result<(Child, String)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
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
    let chat = client.chat(&place, "search it").await?;
    let done = client.watch(&chat).until_event("done").await?;
    let said = done.data["message"].as_str().ok_or("no message")?;
    assert!(said.contains("near cannot be used now: addresses in private networks are not allowed"), "{said}");
    assert!(said.contains("program cannot be used now: programs of servers run in a sandbox"), "{said}");
    Ok(())
}
