//! Workers of two versions, one after the other and at once, on the work that the others have left in flight.
//!
//! The files in `golden` are the content of the table and the queue when the worker of the first version was killed in the middle of
//! several turns, and of several tasks; their times are moved to now. `BLESS=1` makes a missing file. When shapes change, it stays, and the
//! new version makes another one beside it.

use crate::{
    in_flight::{InFlight, Recorder},
    lane::{Lane, chat_id, script},
};
use domain::{ChatId, TaskId, task::ChildName};
use journeys::{Emulators, Options, Watch};
use ports::{Clock, Expect, SystemClock, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::flows::{APPROVAL, NUMBERS};

/// Chats in the middle of a turn.
#[derive(Serialize, Deserialize)]
struct Chats {
    /// Its model was streaming.
    streaming: ChatId,
    /// Its tool had written, and its result was not recorded.
    writing: ChatId,
    /// It waited for an answer.
    asking: ChatId,
    /// Its command was in the queue.
    queued: ChatId,
}

/// Tasks of flows on their way.
#[derive(Serialize, Deserialize)]
struct Tasks {
    /// It waited for a person.
    asking: TaskId,
    /// One of its ways was at the merge, the other waited for a person.
    halfway: TaskId,
    /// The model of its agent was streaming.
    talking: TaskId,
    /// It had decided on subtasks, and none of them had heard of it.
    forking: TaskId,
}

/// Two ways, one of which waits for a person, and their results.
const HALFWAY: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: both, kind: deterministic, role: branch, context: none}
  - {id: quick, kind: deterministic, role: linear, context: none, op: {expr: '7'}}
  - {id: slow, kind: deterministic, role: linear, context: none, ask: {approve: 'Really?'}}
  - {id: gather, kind: deterministic, role: merge, context: none, op: {expr: 'input.map(one, one.output)'}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: both}
  - {from: both, to: quick}
  - {from: both, to: slow}
  - {from: quick, to: gather}
  - {from: slow, to: gather}
  - {from: gather, to: end}
";
/// Has an agent say something.
const TALK: &str = "
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: say, kind: agent, role: linear, context: none, agent_id: voice, prompt: 'slow please'}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: say}
  - {from: say, to: end}
";
const AGENTS: &str = "agents:\n  - {id: voice, system: You are a voice.}\n";

/// Kills the worker in the middle of several turns, and keeps the state in flight.
async fn record_chats(lane: &Lane) -> InFlight<Chats> {
    let recorder = Recorder::start(lane).await;
    let (client, place) = (&recorder.lane.client, &recorder.lane.place);
    let asking = client.chat(place, "ask me").await.unwrap();
    client.watch(&asking).until_event("question").await.unwrap();
    recorder.at_rest().await;
    let streaming = client.chat(place, "slow please").await.unwrap();
    client.watch(&streaming).until_event("chunk").await.unwrap();
    recorder.dies_after("/calls\"");
    let writing = client.chat(place, "small").await.unwrap();
    recorder.until_dead().await;
    let queued = client.chat(place, "say it").await.unwrap();
    let [streaming, writing, asking, queued] = [&streaming, &writing, &asking, &queued].map(|chat| chat_id(chat));
    recorder.recorded(Chats { streaming, writing, asking, queued }).await
}

/// The same with tasks.
async fn record_tasks(lane: &Lane) -> InFlight<Tasks> {
    let recorder = Recorder::start(lane).await;
    let (client, place) = (&recorder.lane.client, &recorder.lane.place);
    for (name, workflow) in [("approval", APPROVAL), ("halfway", HALFWAY), ("numbers", NUMBERS)] {
        client.flow(place, name, &[("workflow.yaml", workflow)]).await.unwrap();
    }
    client.flow(place, "talk", &[("workflow.yaml", TALK), ("agents.yaml", AGENTS)]).await.unwrap();
    let begin = async |flow: &str| client.task(place, flow, json!({ "input": "the report" })).await.unwrap();
    let asking = begin("approval").await;
    client.watch(&asking).until_event("question").await.unwrap();
    let halfway = begin("halfway").await;
    recorder.at_rest().await;
    let talking = begin("talk").await;
    let asked = client.watch(&talking).until_event("agent_asked").await.unwrap();
    let chat = format!("{place}/chats/{}", asked.data["chat_id"].as_str().unwrap());
    client.watch(&chat).until_event("chunk").await.unwrap();
    recorder.dies_after("\\\"forked\\\"");
    let forking = begin("numbers").await;
    recorder.until_dead().await;
    let [asking, halfway, talking, forking] =
        [&asking, &halfway, &talking, &forking].map(|task| task.rsplit('/').next().unwrap().parse().unwrap());
    recorder.recorded(Tasks { asking, halfway, talking, forking }).await
}

pub async fn a_deploy_in_the_middle_of_turns_loses_nothing(emulators: &Arc<Emulators>) {
    tokio::join!(
        the_version_before_left_turns_in_flight(emulators),
        the_version_before_left_tasks_in_flight(emulators),
        a_newer_version_is_at_work(emulators),
    );
}

/// Its worker has begun the work of another one again.
async fn is_begun_again(watch: &Watch) {
    let started = watch.until_nth("turn_started", 2).await.unwrap();
    assert_eq!(started.data["attempt"], 2, "watchers are told that it was begun again");
}

/// A deploy in the middle of several turns: the worker of the version before is gone, and that of today goes on with all that it left.
async fn the_version_before_left_turns_in_flight(emulators: &Arc<Emulators>) {
    let left =
        InFlight::recorded("in_flight.json", async || record_chats(&Lane::deploy(emulators, &[]).await).await).await;
    let mut lane = Lane::deploy(emulators, &[]).await;
    left.restore(&mut lane).await;
    let Chats { streaming, writing, asking, queued } = left.who;
    let chats = [streaming, writing, asking, queued].map(|chat| format!("{}/chats/{chat}", lane.place));
    let watches = chats.each_ref().map(|chat| lane.client.watch(chat));
    let [streaming, writing, asking, queued] = &watches;

    is_begun_again(writing).await;
    assert_eq!(writing.until_event("done").await.unwrap().data["message"], "The file is done.");
    assert_eq!(journeys::count(&writing.events(), "observation"), 2, "one for each call");
    is_begun_again(streaming).await;
    lane.client.post(&format!("{}/stop", chats[0]), Value::Null).await.unwrap();
    streaming.until_event("stopped").await.unwrap();
    lane.answer(&chats[2], asking).await;
    assert_eq!(asking.until_event("done").await.unwrap().data["message"], "You said blue.");
    assert_eq!(queued.until_event("done").await.unwrap().data["message"], "Said.");
    for (chat, watch) in chats.iter().zip(&watches) {
        lane.check(chat, watch, "left by the version before").await;
    }
}

/// The same in the middle of several tasks. The messages of their agents end here.
async fn the_version_before_left_tasks_in_flight(emulators: &Arc<Emulators>) {
    let record = async || record_tasks(&Lane::deploy(emulators, &[]).await).await;
    let left = InFlight::recorded("tasks_in_flight.json", record).await;
    let options = Options { script: script().replace(", hang: true", ""), ..Options::default() };
    let mut lane = Lane::deploy_as(emulators, options).await;
    left.restore(&mut lane).await;
    let Tasks { asking, halfway, talking, forking } = left.who;
    let path = |task: TaskId| format!("{}/tasks/{task}", lane.place);
    let ended = async |task: TaskId| {
        let done = lane.client.watch(&path(task)).until_event("done").await.unwrap();
        assert_eq!(done.data["status"], "success", "{:?}", done.data);
        done.data["output"].clone()
    };
    let approve = async |task: TaskId, node: &str| {
        let asks = lane.client.until(&path(task), |task| task["phase"] == "suspended").await.unwrap();
        assert_eq!(asks["node"], node);
        let yes = json!({ "approved": true, "comment": "fine" });
        lane.client.answer(&format!("{}/answers/{node}", path(task)), yes).await.unwrap();
    };

    assert_eq!(ended(forking).await, json!([10, 20, 30]));
    let asked = lane.client.watch(&path(talking)).until_event("agent_asked").await.unwrap();
    let chat = format!("{}/chats/{}", lane.place, asked.data["chat_id"].as_str().unwrap());
    is_begun_again(&lane.client.watch(&chat)).await;
    assert_eq!(ended(talking).await, "one two three four five");
    approve(asking, "review").await;
    assert_eq!(ended(asking).await, "the report");
    approve(halfway.child(&ChildName("both/slow".into())), "slow").await;
    assert_eq!(ended(halfway).await, json!([7, "the report"]));
    lane.check_tasks("left by the version before").await;
}

/// A worker of today that meets an entry of a newer one does nothing with it, and gives the command back. When the entry can be read, be it
/// by a newer worker or because it is gone, the command is done as if it had come for the first time.
async fn a_newer_version_is_at_work(emulators: &Arc<Emulators>) {
    let lane = Lane::deploy(emulators, &[]).await;
    let (chat, watch) = lane.make("large-newer").await;
    lane.settled().await;
    lane.world.worker.forget_idle();
    let (log, table) = (lane.log(&chat).await, lane.table());
    let actor = chat::actor_id(lane.workspace, chat_id(&chat));
    let next = log.last().unwrap().next;
    let newer = json!({
        "first": next, "next": next + 1, "at": SystemClock.now(), "step": SystemClock.id(),
        "events": [{ "type": "mood_changed", "mood": "merry" }],
    });
    let key = actor.entry_key(next);
    table.commit(vec![Write::put(key.clone(), newer.to_string(), Expect::Absent)]).await.unwrap();

    lane.say(&chat, "say it").await;
    let given_back = lane.world.worker.given_back();
    tokio::time::timeout(journeys::PATIENCE, given_back).await.expect("the command is given back");
    assert!(lane.world.log_of("worker").contains("given back for another version"), "{}", lane.world.log());
    let item = table.get(&actor.entry_key(next + 1)).await.unwrap();
    assert!(item.is_none(), "nothing was written behind the entry that could not be read: {item:?}");
    assert_eq!(lane.world.waiting("commands").await.unwrap(), 1, "the command is kept");

    table.commit(vec![Write::delete(key, Expect::Present)]).await.unwrap();
    // It rests for longer than anybody needs to wait here.
    assert_eq!(lane.world.worker.end_rests().await, 1);
    watch.until(|events| journeys::count(events, "done") == 2).await.unwrap();
    lane.check(&chat, &watch, "the newer entry is gone").await;
}
