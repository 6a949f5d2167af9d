//! More commands than a hub has places for: they wait, and each runs once. An observer outside the hub counts them, so that the hub's words
//! can be held against the facts.

use crate::support::{Hub, PATIENCE, Result, start};
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    sync::watch,
};

const WORKFLOW: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, default_start: true, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: input}}
  - {id: work, kind: deterministic, role: linear, context: none, tools: [tell], op: {tool: tell, args: {n: '{{input}}'}}}
  - {id: gather, kind: deterministic, role: merge, context: none}
  - {id: done, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: each}
  - {from: each, to: work}
  - {from: work, to: gather}
  - {from: gather, to: done}
";
const HELLO: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, default_start: true, context: none}
  - {id: say, kind: deterministic, role: linear, context: none, op: {command: [echo, hello]}}
  - {id: show, kind: deterministic, role: linear, context: none, op: {expr: input.stdout}}
  - {id: done, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: say}, {from: say, to: show}, {from: show, to: done}]
";

/// The counter: each command sends its number, and goes on when it is told to.
struct Outside {
    port: u16,
    counted: watch::Receiver<BTreeMap<u64, usize>>,
    may_go_on: watch::Sender<bool>,
}

impl Outside {
    async fn new() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (counts, counted) = watch::channel(BTreeMap::new());
        let (may_go_on, leave) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (counts, mut leave) = (counts.clone(), leave.clone());
                tokio::spawn(async move {
                    let mut connection = BufReader::new(connection);
                    let mut line = String::new();
                    connection.read_line(&mut line).await.ok()?;
                    let number = line.trim().parse().ok()?;
                    counts.send_modify(|counts| *counts.entry(number).or_default() += 1);
                    leave.wait_for(|may| *may).await.ok()?;
                    connection.get_mut().write_all(b"go\n").await.ok()
                });
            }
        });
        Ok(Self { port, counted, may_go_on })
    }

    /// Waits until so many commands have begun.
    async fn until(&self, begun: usize) -> Result {
        let mut counted = self.counted.clone();
        let waited = tokio::time::timeout(PATIENCE, counted.wait_for(|counts| counts.len() >= begun));
        drop(waited.await??);
        Ok(())
    }

    /// A flow whose subtasks each run a command that is counted here.
    fn tools(&self) -> String {
        // Through the proxy, as everything goes that leaves a command's namespaces.
        let line = r#"exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT 127.0.0.1:%s HTTP/1.1\r\n\r\n' "$0" >&3
            read -r status <&3; read -r end <&3; echo "$1" >&3; read -r line <&3; echo "$line""#;
        let port = self.port.to_string();
        let tool = json!({
            "id": "tell", "command": ["bash", "-c", line, port, "{{input.n}}"],
            "permissions": { "allow_shell": true, "allow_network": true },
        });
        json!({ "tools": [tool] }).to_string()
    }
}

async fn hub(data: &Path) -> Result<Hub> {
    start(data, &[("BUILDSCALE__SANDBOX__NETWORK", "true"), ("BUILDSCALE__SANDBOX__ALLOW_PRIVATE", "true")]).await
}

fn once(of: u64) -> BTreeMap<u64, usize> {
    (0..of).map(|number| (number, 1)).collect()
}

#[tokio::test]
async fn a_split_over_300_commands_runs_each_of_them_once() -> Result {
    let (data, outside) = (tempfile::tempdir()?, Outside::new().await?);
    outside.may_go_on.send_replace(true);
    let hub = hub(data.path()).await?;
    let client = hub.client();
    let place = client.place().await?;
    client.flow(&place, "tell", &[("workflow.yaml", WORKFLOW), ("tools.yaml", &outside.tools())]).await?;
    let numbers: Vec<u64> = (0..300).collect();
    let task = client.run(&place, "tell", json!(numbers)).await?;
    assert_eq!(task["status"], "success", "{task}");
    let outputs = task["output"].as_array().ok_or("no list")?;
    assert_eq!(outputs.iter().filter(|entry| entry["output"]["stdout"] == "go\n").count(), 300, "{task}");
    assert_eq!(*outside.counted.borrow(), once(300));
    Ok(())
}

#[tokio::test]
async fn a_queue_of_commands_holds_up_no_other_tenant_and_outlives_the_hub() -> Result {
    const COMMANDS: u64 = 40;
    let (data, outside) = (tempfile::tempdir()?, Outside::new().await?);
    let mut hub = hub(data.path()).await?;
    let client = hub.client();
    let place = client.place().await?;
    client.flow(&place, "tell", &[("workflow.yaml", WORKFLOW), ("tools.yaml", &outside.tools())]).await?;
    let numbers: Vec<u64> = (0..COMMANDS).collect();
    let task = client.task(&place, "tell", json!({ "input": numbers })).await?;
    // All that one tenant may run at once; none of them ends, and the others wait.
    outside.until(24).await?;
    // Those are rows: their tasks rest, each with its place in the line.
    let parent = task.rsplit('/').next().ok_or("a task without an id")?;
    let rest = |tasks: &Value| {
        let waits = |task: &&Value| task["phase"] == "suspended" && task["wait"]["reason"] == "place";
        tasks["tasks"].as_array().is_some_and(|tasks| tasks.iter().filter(waits).count() == 16)
    };
    client.until(&format!("{place}/tasks?parent={parent}&limit=100"), rest).await?;

    let other = client.place().await?;
    client.flow(&other, "hello", &[("workflow.yaml", HELLO)]).await?;
    let said = client.run(&other, "hello", Value::Null).await?;
    assert_eq!((&said["status"], &said["output"]), (&json!("success"), &json!("hello\n")), "{said}");
    let counted = outside.counted.borrow().clone();
    assert!(counted.len() == 24 && counted.values().all(|times| *times == 1), "the others still wait: {counted:?}");

    hub.kill().await?;
    outside.may_go_on.send_replace(true);
    hub.restart().await?;
    let ended = hub.client().until(&task, |task| task["phase"] == "finished").await?;
    // The running command was interrupted, and is no success; the waiting ones run once.
    let message = ended["error"]["message"].as_str().unwrap_or_default();
    assert!(ended["status"] == "failure" && message.starts_with("24 of those that it joins failed"), "{ended}");
    assert_eq!(*outside.counted.borrow(), once(COMMANDS));
    Ok(())
}
