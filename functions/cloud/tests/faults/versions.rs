//! Workers of two versions, one after the other and at once, on what the others have left in flight.
//!
//! `golden/in_flight.json` is what the table and the queue held when the worker of the first version was killed in the middle of several
//! turns; its times are moved to now. `BLESS=1` makes the file where there is none. When shapes change, it stays, and the new version makes
//! another one beside it.

use crate::lane::{Lane, chat_id, emulators, tell};
use domain::{ChatId, Timestamp, WorkspaceId};
use emulators::Fate;
use journeys::Emulators;
use ports::{Clock, Expect, Item, Key, MAX_WRITES, Outgoing, Query, SystemClock, Table, Write};
use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

/// What was left in flight.
#[derive(Serialize, Deserialize)]
struct InFlight {
    /// When it was recorded.
    at: Timestamp,
    workspace: WorkspaceId,
    /// Its model was streaming.
    streaming: ChatId,
    /// Its tool had written, and nobody had heard of it.
    writing: ChatId,
    /// It waited for an answer.
    asking: ChatId,
    /// Its command was in the queue.
    queued: ChatId,
    items: Vec<Stored>,
    messages: Vec<Outgoing>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    pk: String,
    sk: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    body: String,
}

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/faults/golden/in_flight.json")
}

impl InFlight {
    /// As if it had been recorded a moment ago: everything in it happened as long before now as it did before then.
    fn read() -> Self {
        let text = std::fs::read_to_string(golden()).unwrap();
        let at = serde_json::from_str::<Self>(&text).unwrap().at;
        let later = SystemClock.now().as_millis() - at.as_millis();
        let moment = Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z").unwrap();
        let moved = moment.replace_all(&text, |found: &Captures<'_>| {
            let at: Timestamp = found[0].parse().unwrap();
            Timestamp::from_millis(at.as_millis() + later).to_string()
        });
        serde_json::from_str(&moved).unwrap()
    }

    async fn restore(&self, lane: &Lane) {
        let table = lane.table();
        let writes: Vec<Write> = self.items.iter().map(Stored::write).collect();
        for some in writes.chunks(MAX_WRITES / 4) {
            table.commit(some.to_vec()).await.unwrap();
        }
        for (number, message) in self.messages.iter().enumerate() {
            lane.send(message, &format!("restored-{number}")).await;
        }
    }
}

impl Stored {
    fn of(item: Item) -> Self {
        let index = item.index.map(|key| (key.pk, key.sk));
        Self { pk: item.key.pk, sk: item.key.sk, index, expires_at: item.expires_at, body: item.body }
    }

    fn write(&self) -> Write {
        Write::Put {
            key: Key::new(&self.pk, &self.sk),
            body: self.body.clone(),
            index: self.index.as_ref().map(|(pk, sk)| Key::new(pk, sk)),
            expires_at: self.expires_at,
            expect: Expect::Any,
        }
    }
}

/// Every item of these partitions.
async fn partitions(table: &dyn Table, names: Vec<String>) -> Vec<Stored> {
    let mut items = Vec::new();
    for name in names {
        let mut query = Query::all(name, 200);
        loop {
            let page = table.query(&query).await.unwrap();
            items.extend(page.items.into_iter().map(Stored::of));
            match page.next {
                Some(next) => query = query.after(Some(next)),
                None => break,
            }
        }
    }
    items
}

/// Kills the worker in the middle of several turns, and keeps what is left.
async fn record(lane: &Lane) -> InFlight {
    let sent: Arc<Mutex<Vec<Outgoing>>> = Arc::default();
    let noted = sent.clone();
    lane.world.sqs_of_api.plan_calls(move |call| {
        if call.operation == "SendMessageBatch" {
            let batch: Value = serde_json::from_slice(&call.body).unwrap();
            let bodies =
                batch["Entries"].as_array().unwrap().iter().map(|entry| entry["MessageBody"].as_str().unwrap());
            noted.lock().unwrap().extend(bodies.map(|body| serde_json::from_str::<Outgoing>(body).unwrap()));
        }
        Fate::Pass
    });
    let asking = lane.client.chat(&lane.place, "ask me").await.unwrap();
    lane.client.watch(&asking).until_event("question").await.unwrap();
    lane.settled().await;
    sent.lock().unwrap().clear();
    let streaming = lane.client.chat(&lane.place, "slow please").await.unwrap();
    lane.client.watch(&streaming).until_event("chunk").await.unwrap();
    // From its death on no worker gets anything done.
    let (dead, worker) = (Arc::new(AtomicBool::new(false)), lane.world.worker.clone());
    for calls in [&lane.world.dynamodb, &lane.world.sqs, &lane.world.s3] {
        let (dead, worker) = (dead.clone(), worker.clone());
        calls.plan_calls(move |call| {
            let writes =
                call.operation == "TransactWriteItems" && String::from_utf8_lossy(&call.body).contains("/calls\"");
            match (call.function.as_str(), dead.load(Relaxed)) {
                ("worker", true) => Fate::Lost,
                ("worker", false) if writes => {
                    let (dead, worker) = (dead.clone(), worker.clone());
                    Fate::then(move || {
                        dead.store(true, Relaxed);
                        worker.kill_busy();
                    })
                }
                _ => Fate::Pass,
            }
        });
    }
    let writing = lane.client.chat(&lane.place, "small").await.unwrap();
    while !dead.load(Relaxed) {
        // poll: a proxy tells nobody what it has done
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let queued = lane.client.chat(&lane.place, "say it").await.unwrap();
    let (table, workspace) = (lane.table(), lane.workspace);
    let ids = [&streaming, &writing, &asking, &queued].map(|chat| chat_id(chat));
    let nodes = partitions(&*table, vec![format!("{workspace}/node")]).await;
    let mut names: Vec<String> = ["node", "members", "owners", "text", "calls", "changes", "chats", "usage", "trash"]
        .iter()
        .map(|name| format!("{workspace}/{name}"))
        .collect();
    names.extend(
        nodes.iter().flat_map(|node| ["dir", "versions"].map(|what| format!("{workspace}/{what}/{}", node.sk))),
    );
    names.extend(ids.iter().map(|chat| chat::actor_id(workspace, *chat).as_str().to_owned()));
    names.push("workspaces".into());
    let [streaming, writing, asking, queued] = ids;
    let items = partitions(&*table, names).await;
    let messages = sent.lock().unwrap().clone();
    InFlight { at: SystemClock.now(), workspace, streaming, writing, asking, queued, items, messages }
}

/// Beside each other, as one of them mostly waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_deploy_in_the_middle_of_turns_loses_nothing() {
    let emulators = emulators().await;
    tokio::join!(the_version_before_left_turns_in_flight(&emulators), a_newer_version_is_at_work(&emulators));
}

/// A deploy in the middle of several turns: the worker of the version before is gone, and that of today goes on with all that it left.
async fn the_version_before_left_turns_in_flight(emulators: &Arc<Emulators>) {
    if std::env::var_os("BLESS").is_some() && !golden().exists() {
        let left = record(&Lane::deploy(emulators, &[]).await).await;
        std::fs::create_dir_all(golden().parent().unwrap()).unwrap();
        std::fs::write(golden(), format!("{:#}\n", serde_json::to_value(left).unwrap())).unwrap();
    }
    let left = InFlight::read();
    let mut lane = Lane::deploy(emulators, &[]).await;
    (lane.workspace, lane.place) = (left.workspace, format!("/api/v1/workspaces/{}", left.workspace));
    left.restore(&lane).await;
    let chats =
        [left.streaming, left.writing, left.asking, left.queued].map(|chat| format!("{}/chats/{chat}", lane.place));
    let watches = chats.each_ref().map(|chat| lane.client.watch(chat));
    let [streaming, writing, asking, queued] = &watches;

    let attempts = async |watch: &journeys::Watch| {
        let started = watch.until_nth("turn_started", 2).await.unwrap();
        assert_eq!(started.data["attempt"], 2, "who watches is told that it was begun again");
    };
    attempts(writing).await;
    assert_eq!(writing.until_event("done").await.unwrap().data["message"], "The file is done.");
    assert_eq!(journeys::count(&writing.events(), "observation"), 2, "one for each call");
    attempts(streaming).await;
    lane.client.post(&format!("{}/stop", chats[0]), Value::Null).await.unwrap();
    streaming.until_event("stopped").await.unwrap();
    let question = asking.until_event("question").await.unwrap();
    let answers = format!("{}/answers/{}", chats[2], question.data["question_id"].as_str().unwrap());
    lane.client.post(&answers, json!({ "answers": { "colour": "blue" } })).await.unwrap();
    assert_eq!(asking.until_event("done").await.unwrap().data["message"], "You said blue.");
    assert_eq!(queued.until_event("done").await.unwrap().data["message"], "Said.");
    for (chat, watch) in chats.iter().zip(&watches) {
        lane.check(chat, watch, "left by the version before").await;
    }
}

/// A worker of today that meets what a newer one wrote does nothing with it, and gives the command back. When it can be read, be it by a
/// newer worker or because it is no longer there, the command is done as if it had come for the first time.
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
    let began = tokio::time::Instant::now();
    while !lane.world.log_of("worker").contains("given back for another version") {
        assert!(began.elapsed() < journeys::PATIENCE, "{}", lane.world.log());
        // poll: a log tells nobody that it has grown
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let item = table.get(&actor.entry_key(next + 1)).await.unwrap();
    assert!(item.is_none(), "nothing was written behind what could not be read: {item:?}");
    assert_eq!(lane.world.waiting("commands").await.unwrap(), 1, "the command is kept");

    table.commit(vec![Write::delete(key, Expect::Present)]).await.unwrap();
    watch.until(|events| journeys::count(events, "done") == 2).await.unwrap();
    lane.check(&chat, &watch, "the newer entry is gone").await;
    tell(&format!("the command came again after {:?}", began.elapsed()));
}
