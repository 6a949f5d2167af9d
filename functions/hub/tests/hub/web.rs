//! The web as tools on a hub: HTTP tools that a workspace declares, and pages, when a person lets an agent.

use crate::support::{Client, Hub, PATIENCE, Result, start};
use axum::{
    Router,
    http::header,
    routing::{get, post},
};
use serde_json::{Value, json};
use std::{future, path::Path, sync::Arc};
use tokio::sync::watch;

const SCRIPT: &str = r#"
rules:
- when: {user: '^convert'}
  steps:
  - {calls: [{tool: http__convert, args: {amount: 5}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}
- when: {user: '^exchange'}
  steps:
  - {calls: [{tool: rates, args: {amount: 7}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}
- when: {user: '^http'}
  steps:
  - {calls: [{tool: web_fetch, args: {url: '{{user}}'}}]}
  - {when: {success: true}, text: 'It said {{result}}', else: {text: 'It failed: {{result}}'}}
"#;

async fn hub(data: &Path, settings: &[(&str, &str)]) -> Result<Hub> {
    std::fs::create_dir_all(data.join("secrets"))?;
    std::fs::write(data.join("secrets/rates"), "k3y-of-rates")?;
    let script = data.join("web.yaml");
    std::fs::write(&script, SCRIPT)?;
    let script = script.display().to_string();
    start(data, &[&[("BUILDSCALE__AI__SCRIPT", script.as_str())], settings].concat()).await
}

/// A server that converts for those who have its key, and has a page.
async fn serve() -> Result<String> {
    let convert = post(|headers: axum::http::HeaderMap, body: String| async move {
        match headers.get("x-key") {
            Some(key) if key == "k3y-of-rates" => format!("converted {body}"),
            _ => "no key".to_owned(),
        }
    });
    let page = get(|| async {
        ([(header::CONTENT_TYPE, "text/html")], "<html><body><h1>Rates</h1><p>of today</p></body></html>")
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(
        async move { axum::serve(listener, Router::new().route("/convert", convert).route("/page", page)).await },
    );
    Ok(url)
}

/// A server that answers no first call, and the number of calls that came.
async fn serve_later() -> Result<(String, watch::Receiver<u32>)> {
    let (calls, came) = watch::channel(0);
    let calls = Arc::new(calls);
    let convert = post(move || {
        let calls = calls.clone();
        async move {
            calls.send_modify(|calls| *calls += 1);
            let is_first = *calls.borrow() == 1;
            if is_first {
                future::pending::<()>().await;
            }
            "converted"
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/convert", convert)).await });
    Ok((url, came))
}

fn declaration(url: &str) -> String {
    format!(
        "description: Converts money.\nparameters: {{type: object, properties: {{amount: {{type: number}}}}, required: [amount]}}\n\
         url: {url}/convert\nheaders: {{x-key: '${{secret:rates}}'}}\n"
    )
}

async fn declare(client: &Client, place: &str, url: &str) -> Result {
    client.file(place, "/system/tools/convert.yaml", &declaration(url)).await?;
    Ok(())
}

/// Writes a flow with an HTTP tool of its own, and a node of this text between its ends.
async fn bring(client: &Client, place: &str, name: &str, (url, node): (&str, &str)) -> Result {
    bring_declared(client, place, name, (&declaration(url), node)).await
}

async fn bring_declared(client: &Client, place: &str, name: &str, (tool, node): (&str, &str)) -> Result {
    let workflow = format!(
        "
nodes:
  - {{id: begin, kind: deterministic, role: start, context: none}}
  - {{id: work, role: linear, context: none, {node}}}
  - {{id: end, kind: deterministic, role: exit, context: none}}
edges:
  - {{from: begin, to: work}}
  - {{from: work, to: end}}
"
    );
    let files = [
        ("workflow.yaml", workflow.as_str()),
        ("agents.yaml", "agents:\n  - {id: clerk, llm: scripted/script}\n"),
        ("tools.yaml", "tools:\n  - {id: rates, entrypoint: http__convert, permissions: {allow_network: true}}\n"),
        ("tools/convert.yaml", tool),
    ];
    client.flow(place, name, &files).await
}

const AGENT: &str = "kind: agent, agent_id: clerk, prompt: '{{input}}'";
const CALLS: &str = "kind: deterministic, op: {tool: rates, args: {amount: 7}}";

async fn asked(client: &Client, chat: &str, outcome: &str) -> Result<Value> {
    let asked = client.watch(chat).until_event("permission_required").await?;
    let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    client.post(&format!("{chat}/permissions/{permission}"), json!({ "outcome": outcome })).await?;
    Ok(asked.data)
}

async fn said(client: &Client, chat: &str) -> Result<String> {
    let done = client.watch(chat).until_event("done").await?;
    Ok(done.data["message"].as_str().ok_or("no message")?.to_owned())
}

#[tokio::test]
async fn an_agent_calls_a_declared_http_tool_when_a_person_lets_it() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[("BUILDSCALE__WEB__ALLOW_PRIVATE", "true")]).await?;
    let (client, url) = (hub.client(), serve().await?);
    let place = client.place().await?;
    declare(&client, &place, &url).await?;
    let chat = client.chat(&place, "convert it").await?;
    let question = asked(&client, &chat, "approved").await?;
    assert_eq!((&question["category"], &question["tool"]), (&json!("network"), &json!("http__convert")));
    assert_eq!(question["always"], json!({ "kind": "tool", "tool": "http__convert" }));
    let words = said(&client, &chat).await?;
    assert!(words.contains(r#"converted {"amount":5}"#), "{words}");
    // The next version of the file counts.
    let write = json!({ "path": "/system/tools/convert.yaml", "content": "description: Nothing." });
    let written = client.post(&format!("{place}/tools"), json!({ "tool": "write", "args": write })).await?;
    assert_eq!(written["success"], true, "{written}");
    let answer =
        client.post(&format!("{place}/tools"), json!({ "tool": "http__convert", "args": { "amount": 5 } })).await?;
    assert!(answer["error"]["hint"].as_str().is_some_and(|hint| hint.contains("convert.yaml")), "{answer}");
    Ok(())
}

#[tokio::test]
async fn an_agent_of_a_flow_calls_the_http_tools_that_the_flow_lets_it() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[("BUILDSCALE__WEB__ALLOW_PRIVATE", "true")]).await?;
    let (client, url) = (hub.client(), serve().await?);
    let place = client.place().await?;
    declare(&client, &place, &url).await?;
    let workflow = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: think, kind: agent, role: linear, context: none, agent_id: clerk, prompt: '{{input}}', tools: [rates]}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: think}
  - {from: think, to: end}
";
    for (name, allowed, word) in [("open", "true", r#"converted {"amount":7}"#), ("closed", "false", "denied")] {
        let tools = format!(
            "tools:\n  - {{id: rates, entrypoint: http__convert, permissions: {{allow_network: {allowed}}}}}\n"
        );
        let agents = "agents:\n  - {id: clerk, llm: scripted/script}\n";
        let files = [("workflow.yaml", workflow), ("agents.yaml", agents), ("tools.yaml", tools.as_str())];
        client.flow(&place, name, &files).await?;
        let task = client.run(&place, name, json!("exchange it")).await?;
        assert!(task["output"].to_string().replace('\\', "").contains(word), "{task}");
    }
    Ok(())
}

#[tokio::test]
async fn a_flow_brings_an_http_tool_that_its_own_nodes_alone_have() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[("BUILDSCALE__WEB__ALLOW_PRIVATE", "true")]).await?;
    let (client, url) = (hub.client(), serve().await?);
    let place = client.place().await?;
    let nodes = [
        ("agent", format!("{AGENT}, tools: [rates]"), true),
        ("calls", CALLS.to_owned(), true),
        ("without", AGENT.to_owned(), false),
    ];
    for (name, node, calls) in &nodes {
        bring(&client, &place, name, (&url, node)).await?;
        let task = client.run(&place, name, json!("exchange it")).await?;
        let text = task.to_string().replace('\\', "");
        assert_eq!(text.contains(r#"converted {"amount":7}"#), *calls, "{name}: {task}");
    }
    // The workspace has no such tool.
    let call = json!({ "tool": "http__convert", "args": { "amount": 5 } });
    let answer = client.post(&format!("{place}/tools"), call).await?;
    assert_eq!((&answer["success"], &answer["error"]["code"]), (&json!(false), &json!("NOT_FOUND")), "{answer}");
    let chat = client.chat(&place, "convert it").await?;
    asked(&client, &chat, "approved").await?;
    let words = said(&client, &chat).await?;
    assert!(words.contains("It failed") && !words.contains("converted"), "{words}");
    Ok(())
}

#[tokio::test]
async fn a_call_of_a_tool_node_in_which_the_hub_died_is_made_again_where_its_tool_only_looks() -> Result {
    let data = tempfile::tempdir()?;
    let mut hub = hub(data.path(), &[("BUILDSCALE__WEB__ALLOW_PRIVATE", "true")]).await?;
    for (effects, calls) in [("write", 1), ("read", 2)] {
        let (client, (url, mut came)) = (hub.client(), serve_later().await?);
        let place = client.place().await?;
        let tool = format!("{}effects: {effects}\n", declaration(&url));
        bring_declared(&client, &place, "calls", (&tool, CALLS)).await?;
        let task = client.task(&place, "calls", json!({ "input": null })).await?;
        tokio::time::timeout(PATIENCE, came.wait_for(|calls| *calls == 1)).await??;
        hub.kill().await?;
        hub.restart().await?;
        let ended = hub.client().until(&task, |task| task["phase"] == "finished").await?;
        assert_eq!(*came.borrow(), calls, "{effects}: {ended}");
        match effects {
            "read" => assert_eq!((&ended["status"], &ended["output"]), (&json!("success"), &json!("converted"))),
            _ => assert_eq!(ended["error"]["code"], "OUTCOME_UNKNOWN", "{ended}"),
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_http_tool_of_a_flow_takes_no_name_of_the_workspace() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[]).await?;
    let (client, url) = (hub.client(), serve().await?);
    let place = client.place().await?;
    bring(&client, &place, "own", (&url, AGENT)).await?;
    let check = format!("{place}/flows/own/check");
    assert_eq!(client.post(&check, json!({})).await?["ok"], true);
    declare(&client, &place, &url).await?;
    let report = client.post(&check, json!({})).await?;
    let fault = &report["faults"][0];
    let found = (&report["ok"], &fault["code"], &fault["file"], &fault["line"]);
    assert_eq!(found, (&json!(false), &json!("taken_name"), &json!("tools/convert.yaml"), &json!(1)), "{report}");
    Ok(())
}

#[tokio::test]
async fn a_page_is_read_by_a_converter_of_its_own() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[("BUILDSCALE__WEB__ALLOW_PRIVATE", "true")]).await?;
    let (client, url) = (hub.client(), serve().await?);
    let place = client.place().await?;
    let chat = client.chat(&place, &format!("{url}/page")).await?;
    assert_eq!(asked(&client, &chat, "approved").await?["category"], "network");
    let words = said(&client, &chat).await?;
    assert!(words.contains("# Rates") && words.contains("of today"), "{words}");
    let other = client.chat(&place, &format!("{url}/page")).await?;
    asked(&client, &other, "declined").await?;
    assert!(said(&client, &other).await?.contains("a person declined"));
    Ok(())
}

#[tokio::test]
async fn private_networks_are_closed_unless_the_operator_opens_them() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path(), &[]).await?;
    let (client, url) = (hub.client(), serve().await?);
    let place = client.place().await?;
    declare(&client, &place, &url).await?;
    for (tool, args) in
        [("http__convert", json!({ "amount": 5 })), ("web_fetch", json!({ "url": format!("{url}/page") }))]
    {
        let answer = client.post(&format!("{place}/tools"), json!({ "tool": tool, "args": args })).await?;
        assert_eq!((&answer["success"], &answer["error"]["code"]), (&json!(false), &json!("FORBIDDEN")), "{answer}");
    }
    let answer =
        client.post(&format!("{place}/tools"), json!({ "tool": "web_search", "args": { "query": "x" } })).await?;
    assert_eq!(answer["error"]["code"], "NOT_FOUND", "{answer}");
    // A tool that a flow brings is no way in.
    let other = client.place().await?;
    bring(&client, &other, "own", (&url, CALLS)).await?;
    let task = client.run(&other, "own", json!("exchange it")).await?;
    assert!(task.to_string().contains("http__convert may not be called"), "{task}");
    Ok(())
}
