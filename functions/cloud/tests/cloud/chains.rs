//! A flow whose agents follow each other is one chain of messages from the worker to itself, as long as the flow is.

use crate::world::Result;
use journeys::{Aws, Binaries, Client, Emulators, Options, RecursiveLoop};
use serde_json::json;
use std::{fmt::Write as _, sync::Arc};

const AGENTS: &str = "agents:\n  - {id: voice, system: You are a voice.}\n";
const SCRIPT: &str = "rules:\n- steps: [{text: 'Said.'}]\n";

/// So many agents, one after the other. Each is two messages: to its chat, and back to the task.
fn in_a_row(agents: usize) -> String {
    let mut flow = "nodes:\n  - {id: begin, kind: deterministic, role: start, context: none}\n".to_owned();
    let mut edges = "edges:\n".to_owned();
    let mut last = "begin".to_owned();
    for n in 0..agents {
        let node = "kind: agent, role: linear, context: none, agent_id: voice, prompt: go";
        let _ = writeln!(flow, "  - {{id: say{n}, {node}}}");
        let _ = writeln!(edges, "  - {{from: {last}, to: say{n}}}");
        last = format!("say{n}");
    }
    let _ = writeln!(edges, "  - {{from: {last}, to: end}}");
    format!("{flow}  - {{id: end, kind: deterministic, role: exit, context: none}}\n{edges}")
}

async fn run(client: &Client) -> Result<String> {
    let place = client.place().await?;
    client.flow(&place, "row", &[("workflow.yaml", &in_a_row(10)), ("agents.yaml", AGENTS)]).await?;
    client.task(&place, "row", json!({})).await
}

async fn deploy(emulators: &Arc<Emulators>, recursive_loop: RecursiveLoop) -> Result<Aws> {
    let binaries = Binaries::beside(env!("CARGO_BIN_EXE_buildscale-worker"));
    Aws::deploy(&binaries, emulators.clone(), Options { recursive_loop, script: SCRIPT.into(), ..Options::default() })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_twenty_messages_is_one_that_lambda_has_to_allow() -> Result {
    let emulators = Arc::new(Emulators::start().await?);
    let allowed = deploy(&emulators, RecursiveLoop::Allow).await?;
    let task = run(&allowed.client()).await?;
    let ended = allowed.client().until(&task, |task| task["phase"] == "finished").await?;
    assert_eq!(ended["status"], "success", "{ended}\n{}", allowed.log());
    assert_eq!(allowed.commands.dropped(), 0);
    drop(allowed);

    // The outcome with Lambda's own default.
    let terminated = deploy(&emulators, RecursiveLoop::Terminate).await?;
    let task = run(&terminated.client()).await?;
    while terminated.commands.dropped() == 0 {
        // poll: Lambda tells no caller about dropped messages
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let task = terminated.client().get(&task).await?;
        assert_ne!(task["phase"], "finished", "its hops were not counted: {task}");
    }
    Ok(())
}
