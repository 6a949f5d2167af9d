//! Hosts of the Model Context Protocol at a hub (spec 004 §12): the conformance suite, our own client, and a host that starts programs.

use crate::{
    support::{PATIENCE, Result, start},
    tool_servers::{installed, searched},
};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
    time::timeout,
};

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[tokio::test]
async fn the_conformance_suite_passes_for_what_is_claimed() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let modules = installed().join("node_modules");
    for scenario in
        ["server-initialize", "ping", "tools-list", "dns-rebinding-protection", "resources-list", "prompts-list"]
    {
        let run = Command::new(modules.join("node/bin/node"))
            .arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"))
            .args(["server", "--url", &client.address(&format!("{place}/mcp")), "--scenario", scenario])
            .current_dir(data.path())
            .kill_on_drop(true)
            .output();
        let done = timeout(PATIENCE, run).await??;
        let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{scenario}: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn a_host_works_with_files_chats_and_flows_under_the_api() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let at = format!("{place}/mcp");
    let call = async |name: &str, args: Value| -> Result<Value> {
        let answer = client.post(&at, request(1, "tools/call", json!({ "name": name, "arguments": args }))).await?;
        Ok(answer["result"].clone())
    };
    let write = call("write", json!({ "path": "/projects/a.md", "content": "a heliotrope" })).await?;
    assert_eq!(write["isError"], false, "{write}");
    let read = call("read", json!({ "path": "/projects/a.md" })).await?;
    assert!(read["content"][0]["text"].as_str().is_some_and(|text| text.contains("a heliotrope")), "{read}");
    let found = call("search", json!({ "query": "heliotrope" })).await?;
    assert!(found["content"][0]["text"].as_str().is_some_and(|text| text.contains("/projects/a.md")), "{found}");
    let flows = call("flow_list", json!({})).await?;
    assert_eq!(flows["isError"], false, "{flows}");
    let made = call("chat_start", json!({ "goal": "hello" })).await?;
    let chat = made["structuredContent"]["chat_id"].as_str().ok_or("no chat_id")?.to_owned();
    client.until(&format!("{place}/chats/{chat}"), |view| view["turns"] == 1).await?;
    let read = call("chat_read", json!({ "chat_id": chat })).await?;
    assert!(read["structuredContent"]["messages"].as_array().is_some_and(|all| all.len() >= 2), "{read}");
    // Nothing leads out of the workspace, and a refusal is a result.
    let out = call("chat_read", json!({ "chat_id": "../members" })).await?;
    assert_eq!(out["isError"], true, "{out}");
    // Files are resources, and skills prompts.
    let ask = async |method: &str, params: Value| client.post(&at, request(2, method, params)).await;
    let listed = ask("resources/list", json!({})).await?;
    let resources = listed["result"]["resources"].as_array().ok_or("no resources")?;
    assert!(resources.iter().any(|resource| resource["uri"] == "file:///projects/a.md"), "{listed}");
    let read = ask("resources/read", json!({ "uri": "file:///projects/a.md" })).await?;
    assert_eq!(read["result"]["contents"][0]["text"], "a heliotrope", "{read}");
    let image = client.request(reqwest::Method::PUT, &format!("{place}/files/by-path/content?path=/projects/a.png"));
    client.send(image.body(vec![0x89, 0x50, 0xff])).await?.is(201)?;
    let read = ask("resources/read", json!({ "uri": "file:///projects/a.png" })).await?;
    assert_eq!(read["result"]["contents"][0]["blob"], "iVD/", "{read}");
    assert_eq!(read["result"]["contents"][0]["mimeType"], "image/png");
    let missing = ask("resources/read", json!({ "uri": "file:///projects/b.md" })).await?;
    assert_eq!(missing["error"]["code"], -32_002, "{missing}");
    let prompts = ask("prompts/list", json!({})).await?;
    let first = prompts["result"]["prompts"][0]["name"].as_str().ok_or_else(|| prompts.to_string())?;
    let prompt = ask("prompts/get", json!({ "name": first, "arguments": { "request": "on heliotropes" } })).await?;
    let words = prompt["result"]["messages"][0]["content"]["text"].as_str().ok_or_else(|| prompt.to_string())?;
    assert!(words.ends_with("on heliotropes"), "{words}");
    let (status, _) = client.call(reqwest::Method::GET, &at, Value::Null).await?;
    assert_eq!(status, 405, "there is no stream");
    Ok(())
}

#[tokio::test]
async fn a_host_that_starts_programs_speaks_through_the_command_line() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    client.workspace().await?;
    let url = client.address("/");
    let mut child = Command::new(env!("CARGO_BIN_EXE_buildscale"))
        .args(["mcp", "--url", url.trim_end_matches('/')])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no input")?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut say = async |message: &str| -> Result {
        input.write_all(format!("{message}\n").as_bytes()).await?;
        Ok(input.flush().await?)
    };
    let mut hear = async || -> Result<Value> {
        let line = timeout(PATIENCE, lines.next_line()).await??.ok_or("it ended")?;
        Ok(serde_json::from_str(&line)?)
    };
    say(&request(1, "initialize", json!({ "protocolVersion": "2025-06-18" })).to_string()).await?;
    assert_eq!(hear().await?["result"]["serverInfo"]["name"], "buildscale");
    say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await?;
    say("no json").await?;
    assert_eq!(hear().await?["error"]["code"], -32_700);
    say(&request(2, "tools/call", json!({ "name": "ls", "arguments": { "path": "/" } })).to_string()).await?;
    let listed = hear().await?;
    assert_eq!((&listed["id"], &listed["result"]["isError"]), (&json!(2), &json!(false)), "{listed}");
    drop(input);
    assert!(timeout(PATIENCE, child.wait()).await??.success());
    Ok(())
}

/// One hub is a server of tools for another: our client over HTTP, at our server.
#[tokio::test]
async fn a_server_over_http_is_reached_where_its_address_is_allowed() -> Result {
    let (data, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let far = start(other.path(), &[]).await?;
    let place = far.client().place().await?;
    far.client().file(&place, "/far.md", "from far away").await?;
    let url = far.client().address(&format!("{place}/mcp"));
    let script = data.path().join("far.yaml");
    std::fs::write(
        &script,
        "rules:\n- when: {user: '^far'}\n  steps:\n  - {calls: [{tool: mcp__far__read, args: {path: /far.md}}]}\n  - {text: 'It said {{result}}'}\n\
         - when: {user: '^search'}\n  steps:\n  - {calls: [{tool: mcp_search, args: {query: x}}]}\n  - {text: 'It said {{result}}'}\n",
    )?;
    let script = script.display().to_string();
    let settings = [
        ("BUILDSCALE__AI__SCRIPT", script.as_str()),
        ("BUILDSCALE__MCP__FAR__URL", url.as_str()),
        ("BUILDSCALE__MCP__FAR__ALLOW_PRIVATE", "true"),
    ];
    let hub = start(data.path(), &settings).await?;
    let client = hub.client();
    let place = client.place().await?;
    let chat = client.chat(&place, "far it").await?;
    let asked = client.watch(&chat).until_event("permission_required").await?;
    let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    client.post(&format!("{chat}/permissions/{permission}"), json!({ "outcome": "approved" })).await?;
    let done = client.watch(&chat).until_event("done").await?;
    assert!(done.data["message"].as_str().is_some_and(|said| said.contains("from far away")), "{:?}", done.data);
    // A workspace's own declaration reaches no private address.
    let own = json!({ "mcpServers": { "near": { "url": url } } });
    client.file(&place, "/system/mcp.json", &own.to_string()).await?;
    let said = searched(&client, &place).await?;
    assert!(said.contains("near cannot be used now: addresses in private networks are not allowed"), "{said}");
    Ok(())
}
