//! A coding agent on AWS: it works in the sandbox of its workspace, on a copy of the workspace's files.

use crate::world::{Options, Result, World};
use emulators::ecs::{Deployed, Ecs, environment};
use http::Method;
use serde_json::{Value, json};

/// Agents, as the operator's secret tells the sandboxes. The program does as its prompt says. It is no file: the user of a workspace may not read
/// the folder of the tests.
fn told() -> String {
    let program = include_str!("../../../../shared/agents/tests/agent.py");
    let agent = json!({ "command": "python3", "args": ["-c", program], "env": { "GIVEN_KEY": "hunter2-secret" } });
    json!({ "test": agent }).to_string()
}

/// The text of the last turn of a chat, when so many have ended.
async fn ended(world: &World, chat: &str, turns: usize) -> Result<String> {
    let watch = world.client.watch(chat);
    watch.until_nth("done", turns).await?;
    let said = |event: &journeys::Event| {
        let is_said = event.name == "message" && event.data["role"] == "assistant";
        is_said.then(|| event.data["content"].as_str().unwrap_or_default().to_owned())
    };
    Ok(watch.events().iter().filter_map(said).next_back().unwrap_or_default())
}

async fn say(world: &World, chat: &str, words: &str) -> Result {
    world.client.ask(Method::POST, chat, json!({ "content": words })).await?.is(202)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn section_14_a_coding_agent_works_in_the_sandbox_of_its_workspace() -> Result {
    let ecs = Ecs::start(Deployed::sandboxes(env!("CARGO_BIN_EXE_buildscale-sandbox"))).await?;
    let mut settings = ecs.variables();
    settings.push(("AWS_ENDPOINT_URL_ECS".into(), ecs.endpoint().into()));
    settings.push(("BUILDSCALE__AWS__SANDBOX_AGENTS".into(), "test".into()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let world = World::deploy(Options { settings: &settings, ..Options::default() }).await?;
    let mut of_task = environment();
    of_task.push(("BUILDSCALE__SANDBOX__AGENTS".into(), told()));
    ecs.revise(of_task);
    let (client, place) = (&world.client, world.client.place().await?);
    client.file(&place, "/projects/app/a.txt", "of the workspace\n").await?;

    let known = client.get("/api/v1/agents").await?;
    assert_eq!(
        (&known["agents"][0]["id"], &known["allowed_roots"]),
        (&json!("test"), &json!(["/workspace"])),
        "{known}"
    );
    let elsewhere = json!({ "goal": "x", "agent": "test", "cwd": "/tmp" });
    client.ask(Method::POST, &format!("{place}/chats"), elsewhere).await?.refuses(400, "INVALID_ARGUMENT")?;

    // Its sandbox is started for it, and its change is a version.
    let new = json!({ "goal": "sh cp a.txt b.txt", "agent": "test", "cwd": "/workspace/projects/app" });
    let made = client.ask(Method::POST, &format!("{place}/chats"), new).await?.is(202)?.json();
    let chat = format!("{place}/chats/{}", made["chat_id"].as_str().ok_or("no chat_id")?);
    ended(&world, &chat, 1).await?;
    assert_eq!(ecs.tasks().len(), 1);
    let file = client.get(&format!("{place}/files/by-path?path=/projects/app/b.txt")).await?;
    assert_eq!((file["v"].as_u64(), file["size"].as_u64()), (Some(1), Some(17)), "{file}");
    assert!(file["author"].as_str().is_some_and(|author| author.starts_with("agent")), "{file}");

    // It asks, and a person answers.
    say(&world, &chat, "ask rm b.txt").await?;
    let asked = client.watch(&chat).until_event("permission_required").await?;
    let id = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    client.post(&format!("{chat}/permissions/{id}"), json!({ "outcome": "approved" })).await?;
    assert_eq!(ended(&world, &chat, 2).await?, "once");

    // The sandbox dies under it: the turn ends, nothing of the workspace is lost, and the next message starts the agent afresh.
    say(&world, &chat, "ask rm a.txt").await?;
    let asked = client.watch(&chat).until_nth("permission_required", 2).await?;
    ecs.kill(&ecs.living()[0].task);
    client.until(&format!("{place}/sandbox"), |view| view["state"] == "cold").await?;
    let id = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
    client.post(&format!("{chat}/permissions/{id}"), json!({ "outcome": "approved" })).await?;
    ended(&world, &chat, 3).await?;
    say(&world, &chat, "sh cat a.txt b.txt > c.txt").await?;
    ended(&world, &chat, 4).await?;
    let file = client.get(&format!("{place}/files/by-path?path=/projects/app/c.txt")).await?;
    assert_eq!(file["size"].as_u64(), Some(34), "{file}");
    assert_eq!(ecs.tasks().len(), 2);
    say(&world, &chat, "sh printenv GIVEN_KEY").await?;
    assert_eq!(ended(&world, &chat, 5).await?.trim(), "[redacted]", "it has its key, and nobody reads it");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_without_coding_agents_says_so() -> Result {
    let world = World::deploy(Options::default()).await?;
    let known: Value = world.client.get("/api/v1/agents").await?;
    let why = known["agents"][0]["reason"].as_str().unwrap_or_default();
    assert!(why.contains("CodingAgents"), "{known}");
    Ok(())
}
