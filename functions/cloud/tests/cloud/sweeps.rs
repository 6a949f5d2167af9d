//! Sweeps by the timer's own binary: work stranded by a death, a lost message or an idle machine goes on and ends, and the next sweep finds
//! nothing to do.
//!
//! One deployment, one story after the other, since a sweep goes through everything that there is. The tests do not wait for the hour after
//! which work counts as stranded: they make its items older in the table.

use crate::world::{Client, Options, Result, World, count};
use aws::DynamoTable;
use domain::WorkspaceId;
use emulators::{
    Fate,
    ecs::{Deployed, Ecs},
};
use http::Method;
use journeys::PATIENCE;
use ports::{Expect, Key, Table, Write};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};
use testkit::{
    age_indexed, age_log, age_partition,
    flows::{CHOICE, NUMBERS},
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// Longer than anything may lie about before it is looked after.
const LONG: Duration = Duration::from_secs(2 * 3600);
/// Longer than the trash is kept.
const MONTH: Duration = Duration::from_secs(31 * 24 * 3600);

const SCRIPT: &str = "rules:
- steps:
  - {text: 'I write it.', calls: [{tool: write, args: {path: /projects/a.md, content: one}}]}
  - {text: 'It is written.'}
";
const SUITES: &str = "
suites:
  - name: first
    cases: [{id: right, input: {good: true}, assertions: [{type: status, expected: success}]}]
";

/// The deployment that stories are played on.
struct Ground {
    world: World,
    table: DynamoTable,
    ecs: Ecs,
    client: Client,
}

#[tokio::test(flavor = "multi_thread")]
async fn stranded_work_goes_on_and_ends() -> Result {
    let ground = Ground::deploy().await?;
    assert_eq!(ground.swept().await?, json!({}), "nothing is there yet");
    a_chat_whose_message_was_lost(&ground).await?;
    an_actor_that_fails_holds_up_no_other(&ground).await?;
    a_task_whose_messages_were_lost(&ground).await?;
    a_task_that_never_began(&ground).await?;
    an_evaluation_whose_message_was_lost(&ground).await?;
    idle_and_ended_sandboxes(&ground).await?;
    trash_after_a_month(&ground).await
}

/// The worker dies right after the first entry of a turn, and the delivery that would have made up for it is purged.
async fn a_chat_whose_message_was_lost(ground: &Ground) -> Result {
    let place = ground.client.place().await?;
    let chat = ground.dies_after("log/0", ground.client.chat(&place, "write it")).await?;
    let actor = chat::actor_id(workspace(&place)?, id(&chat).parse()?);
    assert_eq!(ground.swept().await?, json!({}), "it may only be slow");
    ground.age(actor.as_str()).await?;
    assert_eq!(ground.swept().await?, json!({ "behind": 1 }));
    let watch = ground.client.watch(&chat);
    assert_eq!(watch.until_event("done").await?.data["message"], "It is written.");
    let file = ground.client.get(&format!("{place}/files/by-path?path=/projects/a.md")).await?;
    assert_eq!((&file["v"], count(&watch.events(), "observation")), (&json!(1), 1), "{file}");
    ground.is_done_with(actor.as_str()).await
}

/// Of two that were left behind, the one that is looked at first cannot be read.
async fn an_actor_that_fails_holds_up_no_other(ground: &Ground) -> Result {
    let place = ground.client.place().await?;
    let mut lost = Vec::new();
    for _ in 0..2 {
        let chat = ground.dies_after("log/0", ground.client.chat(&place, "write it")).await?;
        let actor = chat::actor_id(workspace(&place)?, id(&chat).parse()?);
        ground.age(actor.as_str()).await?;
        lost.push((chat, actor));
    }
    let unreadable = lost[1].1.to_string();
    ground.world.dynamodb.plan_calls(move |call| {
        let fits = call.function == "timer" && call.operation == "Query" && says(&call.body, &unreadable);
        let refused = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","message":"a planned fault"}"#;
        if fits { Fate::Answered(400, refused.into()) } else { Fate::Pass }
    });
    assert_eq!(ground.swept().await?, json!({ "behind": 1 }));
    ground.client.watch(&lost[0].0).until_event("done").await?;
    ground.world.dynamodb.pass();
    assert_eq!(ground.swept().await?, json!({ "behind": 1 }), "it is looked at again in the next round");
    ground.client.watch(&lost[1].0).until_event("done").await?;
    ground.is_done_with(lost[1].1.as_str()).await
}

/// The same between the entry that makes a task's children and the messages that they begin with.
async fn a_task_whose_messages_were_lost(ground: &Ground) -> Result {
    let place = ground.client.place().await?;
    ground.client.flow(&place, "numbers", &[("workflow.yaml", NUMBERS)]).await?;
    let messages = r#"\"outbox\":[{"#;
    let task = ground.dies_after(messages, ground.client.task(&place, "numbers", json!({}))).await?;
    let actor = engine::machine::actor_id(workspace(&place)?, id(&task).parse()?);
    ground.age(actor.as_str()).await?;
    assert_eq!(ground.swept().await?, json!({ "behind": 1 }));
    let ended = ground.client.until(&task, |task| task["phase"] == "finished").await?;
    assert_eq!((&ended["status"], &ended["output"]), (&json!("success"), &json!([10, 20, 30])), "{ended}");
    assert_eq!(ended["children"], 3);
    ground.is_done_with(actor.as_str()).await
}

/// The API has written a task down and cannot send its message.
async fn a_task_that_never_began(ground: &Ground) -> Result {
    let place = ground.client.place().await?;
    ground.client.flow(&place, "choice", &[("workflow.yaml", CHOICE)]).await?;
    let sends = |operation: &str| operation.starts_with("SendMessage");
    ground.world.sqs_of_api.plan(move |operation| if sends(operation) { Fate::Lost } else { Fate::Pass });
    let new = json!({ "input": { "good": true } });
    let refused = ground.client.ask(Method::POST, &format!("{place}/flows/choice/tasks"), new).await?;
    assert!(refused.status.is_server_error(), "{}", refused.text());
    ground.world.sqs_of_api.pass();
    let listed = ground.client.get(&format!("{place}/tasks")).await?;
    assert_eq!((listed["tasks"].as_array().map(Vec::len), &listed["tasks"][0]["phase"]), (Some(1), &json!("queued")));
    assert_eq!(ground.swept().await?, json!({}), "it may only be slow");
    ground.age_shards("starts", engine::tasks::START_SHARDS, LONG).await?;
    assert_eq!(ground.swept().await?, json!({ "never_begun": 1 }));
    let task = format!("{place}/tasks/{}", listed["tasks"][0]["task_id"].as_str().ok_or("no task_id")?);
    let ended = ground.client.until(&task, |task| task["phase"] == "finished").await?;
    assert_eq!(ended["output"], "well done", "{ended}");
    let actor = engine::machine::actor_id(workspace(&place)?, id(&task).parse()?);
    ground.is_done_with(actor.as_str()).await
}

/// The worker dies before it has written down anything that came of an evaluation, and the message is purged.
async fn an_evaluation_whose_message_was_lost(ground: &Ground) -> Result {
    let place = ground.client.place().await?;
    ground.client.flow(&place, "choice", &[("workflow.yaml", CHOICE), ("evaluations.yaml", SUITES)]).await?;
    let path = format!("{place}/flows/choice/evaluations");
    let begun = ground.dies_after(r#"\"status\":\"running\""#, ground.client.post(&path, json!({}))).await?;
    let evaluation = format!("{place}/evaluations/{}", begun["evaluation_id"].as_str().ok_or("no evaluation_id")?);
    assert_eq!(ground.swept().await?, json!({}), "it may only be slow");
    assert_eq!(age_partition(&ground.table, "evaluations/open", LONG).await?, 1);
    assert_eq!(ground.swept().await?, json!({ "evaluations": 1 }));
    let ended = ground.client.until(&evaluation, |evaluation| evaluation["status"] == "finished").await?;
    assert_eq!((&ended["total"], &ended["passed"]), (&json!(1), &json!(1)), "{ended}");
    ground.world.until_settled().await?;
    assert_eq!(ground.swept().await?, json!({}));
    Ok(())
}

/// One has ended by itself, as an idle one does, and has not been looked at since; the second is unknown to its workspace; the third one
/// stays.
async fn idle_and_ended_sandboxes(ground: &Ground) -> Result {
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let place = ground.client.place().await?;
        let sandbox = format!("{place}/sandbox");
        ground.client.ask(Method::POST, &sandbox, Value::Null).await?.is(202)?;
        ground.client.until(&sandbox, |view| view["state"] == "ready").await?;
        let workspace = id(&place).to_owned();
        let task = ground.ecs.living().into_iter().find(|task| task.started_by.starts_with(&workspace));
        tasks.push((workspace, sandbox, task.ok_or("it has no task")?.task));
    }
    let [(_, idle, of_idle), (lost, ..), (_, kept, of_kept)] = &tasks[..] else { return Err("not three".into()) };
    ground.ecs.end(of_idle);
    while ground.ecs.living().iter().any(|task| task.task == *of_idle) {
        // poll: a process that ends tells its parent, which is ECS
        sleep(Duration::from_millis(10)).await;
    }
    ground.table.commit(vec![Write::delete(Key::new("sandboxes", lost.as_str()), Expect::Present)]).await?;
    assert_eq!(ground.swept().await?, json!({ "sandboxes": 2 }));
    let living: Vec<String> = ground.ecs.living().into_iter().map(|task| task.task).collect();
    assert_eq!(living, std::slice::from_ref(of_kept));
    assert_eq!(ground.client.get(kept).await?["state"], "ready");
    let view = ground.client.get(idle).await?;
    assert!(view["state"] == "cold" && view["reason"].is_string(), "{view}");
    assert_eq!(ground.swept().await?, json!({}));
    Ok(())
}

/// A file removed a month ago goes for good, and a file removed now stays.
async fn trash_after_a_month(ground: &Ground) -> Result {
    let place = ground.client.place().await?;
    let remove = async |path: &str| -> Result {
        let file = ground.client.file(&place, path, "x").await?;
        ground.client.ask(Method::DELETE, &file, Value::Null).await?.good().map(drop)
    };
    remove("/projects/old.md").await?;
    assert_eq!(ground.swept().await?, json!({}));
    ground.age_shards("trash", workspace::TRASH_SHARDS, MONTH).await?;
    remove("/projects/young.md").await?;
    assert_eq!(ground.swept().await?, json!({ "trash": 1 }));
    let left = ground.client.get(&format!("{place}/files/trash")).await?;
    assert_eq!(left["files"].as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!(left["files"][0]["info"]["path"], "/projects/young.md", "{left}");
    assert_eq!(ground.swept().await?, json!({}));
    Ok(())
}

impl Ground {
    async fn deploy() -> Result<Self> {
        let ecs = Ecs::start(Deployed::sandboxes(env!("CARGO_BIN_EXE_buildscale-sandbox"))).await?;
        let settings = ecs.variables();
        let mut settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        settings.push(("AWS_ENDPOINT_URL_ECS", ecs.endpoint()));
        let world = World::deploy(Options { script: SCRIPT.into(), settings: &settings, ..Options::default() }).await?;
        let (table, client) = (world.table(), world.client.clone());
        Ok(Self { world, table, ecs, client })
    }

    /// Sweeps, as if the round before had been over for an hour. How many things each sweep dealt with that found some.
    async fn swept(&self) -> Result<Value> {
        self.table.commit(vec![Write::delete(Key::new("sweeps", "behind"), Expect::Any)]).await?;
        let said = self.world.timer.invoke(r#"{"sweep": "all"}"#).await?;
        let said: BTreeMap<String, BTreeMap<String, u64>> = serde_json::from_slice(&said)?;
        let swept = said.get("swept").ok_or("it did not sweep")?;
        assert_eq!(swept.len(), 13, "{swept:?}");
        // The scrub looks at contents also when nothing was left behind.
        let left_behind = |(name, count): &(&String, &u64)| **count > 0 && *name != "scrub";
        Ok(swept.iter().filter(left_behind).map(|(name, count)| (name.clone(), json!(count))).collect())
    }

    /// Has the worker die once a write of its that contains this text has taken effect. It keeps nothing that it had received.
    async fn dies_after<T>(&self, what: &'static str, deed: impl Future<Output = Result<T>>) -> Result<T> {
        self.world.until_settled().await?;
        let (death, mut died) = watch::channel(false);
        let (worker, lives) = (self.world.worker.clone(), AtomicBool::new(true));
        self.world.dynamodb.plan_calls(move |call| {
            let fits = call.function == "worker" && !call.reads() && says(&call.body, what);
            if !fits || !lives.swap(false, Relaxed) {
                return Fate::Pass;
            }
            let (worker, death) = (worker.clone(), death.clone());
            Fate::then(move || {
                assert_eq!(worker.kill_busy(), 1);
                death.send_replace(true);
            })
        });
        let done = deed.await?;
        timeout(PATIENCE, died.wait_for(|died| *died)).await??;
        self.world.dynamodb.pass();
        while self.world.worker.running() > 0 {
            // poll: only its parent is told that a process was killed
            sleep(Duration::from_millis(10)).await;
        }
        self.world.purge("commands").await?;
        assert_eq!(self.world.waiting("commands").await?, 0);
        Ok(done)
    }

    /// An actor has done nothing for long.
    async fn age(&self, actor: &str) -> Result {
        assert!(age_log(&self.table, actor, LONG).await? > 0, "{actor} has written nothing");
        Ok(())
    }

    /// The one thing that an index has in so many parts has been there for so long.
    async fn age_shards(&self, index: &str, shards: u8, by: Duration) -> Result {
        let mut aged = 0;
        for shard in 0..shards {
            aged += age_indexed(&self.table, &format!("{index}/{shard:x}"), by).await?;
        }
        assert_eq!(aged, 1);
        Ok(())
    }

    /// After any rest of an actor that has ended its work: nothing is left of it.
    async fn is_done_with(&self, actor: &str) -> Result {
        self.world.until_settled().await?;
        assert_eq!(self.swept().await?, json!({}));
        self.age(actor).await?;
        assert_eq!(self.swept().await?, json!({}));
        Ok(())
    }
}

/// The last part of a path.
fn id(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn workspace(place: &str) -> Result<WorkspaceId> {
    Ok(id(place).parse()?)
}

fn says(body: &[u8], what: &str) -> bool {
    String::from_utf8_lossy(body).contains(what)
}
