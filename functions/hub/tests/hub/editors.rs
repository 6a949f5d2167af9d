//! An editor at `buildscale acp` (spec 004 §13): the client library of the Agent Client Protocol, in Node.js, as `scripts/agents` installs it.

use crate::{
    agents,
    stock_agents::stock::packages,
    support::{PATIENCE, Result, start},
    tool_servers::installed,
};
use serde_json::{Value, json};
use std::{path::Path, process::Stdio};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
    time::timeout,
};

#[tokio::test]
async fn an_editors_library_completes_a_story_and_its_session_outlives_it() -> Result {
    let data = tempfile::tempdir()?;
    let app = data.path().join("app");
    std::fs::create_dir(&app)?;
    let cwd = std::fs::canonicalize(&app)?.display().to_string();
    let hub = start(&data.path().join("hub"), &[("BUILDSCALE__HUB__ALLOWED_ROOTS", &cwd)]).await?;
    let url = hub.client().address("/");
    let library = packages().join("@agentclientprotocol/sdk");
    assert!(
        library.exists(),
        "the library is not installed: run scripts/agents, which puts it at {}",
        library.display()
    );
    let servers = installed().join("node_modules");
    let [node, everything] = ["node/bin/node", "@modelcontextprotocol/server-everything/dist/index.js"]
        .map(|path| servers.join(path).display().to_string());
    let program = env!("CARGO_BIN_EXE_buildscale");
    let run = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editor.mjs"))
        .args([&library.display().to_string(), program, url.trim_end_matches('/'), &cwd, &node, &everything])
        .kill_on_drop(true)
        .output();
    let done = timeout(PATIENCE, run).await??;
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.trim().ends_with("ok"), "{said}");
    Ok(())
}

#[tokio::test]
async fn the_slash_commands_of_a_coding_agent_are_told_to_an_editor_once() -> Result {
    let world = agents::world().await?;
    let url = world.client.address("/");
    let mut child = Command::new(env!("CARGO_BIN_EXE_buildscale"))
        .args(["acp", "--agent", "test", "--url", url.trim_end_matches('/')])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no input")?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    // The result of a request, and the updates about commands that come before it.
    let mut ask = async |id: u64, method: &str, params: Value| -> Result<(Value, Vec<Value>)> {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        input.write_all(format!("{message}\n").as_bytes()).await?;
        input.flush().await?;
        let mut told = Vec::new();
        loop {
            let line = timeout(PATIENCE, lines.next_line()).await??.ok_or("it ended")?;
            let mut heard: Value = serde_json::from_str(&line)?;
            if heard["id"] == id {
                return Ok((heard["result"].take(), told));
            }
            if heard["params"]["update"]["sessionUpdate"] == "available_commands_update" {
                told.push(heard["params"]["update"]["availableCommands"].take());
            }
        }
    };
    let (made, told) = ask(1, "session/new", json!({ "cwd": world.cwd, "mcpServers": [] })).await?;
    assert_eq!(told, Vec::<Value>::new(), "no process of it has a session");
    let session = made["sessionId"].as_str().ok_or_else(|| made.to_string())?;
    let say = |words: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": words }] });
    let (ended, told) = ask(2, "session/prompt", say("say hello there")).await?;
    assert_eq!(ended["stopReason"], "end_turn", "{ended}");
    assert_eq!(told, [json!([{ "name": "web", "description": "Looks it up" }])]);
    let (ended, told) = ask(3, "session/prompt", say("say it again")).await?;
    assert_eq!((&ended["stopReason"], told.len()), (&json!("end_turn"), 0), "{told:?}");
    // Another process of the editor hears them as soon as it has loaded the session.
    let mut second = Command::new(env!("CARGO_BIN_EXE_buildscale"))
        .args(["acp", "--agent", "test", "--url", url.trim_end_matches('/')])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = second.stdin.take().ok_or("no input")?;
    let mut lines = BufReader::new(second.stdout.take().ok_or("no output")?).lines();
    let params = json!({ "sessionId": session, "cwd": world.cwd, "mcpServers": [] });
    let load = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params });
    input.write_all(format!("{load}\n").as_bytes()).await?;
    input.flush().await?;
    let mut is_loaded = false;
    let commands = loop {
        let line = timeout(PATIENCE, lines.next_line()).await??.ok_or("it ended")?;
        let mut heard: Value = serde_json::from_str(&line)?;
        is_loaded |= heard["id"] == 1;
        if heard["params"]["update"]["sessionUpdate"] == "available_commands_update" {
            break heard["params"]["update"]["availableCommands"].take();
        }
    };
    assert!(is_loaded, "they follow the result");
    assert_eq!(commands, json!([{ "name": "web", "description": "Looks it up" }]));
    Ok(())
}
