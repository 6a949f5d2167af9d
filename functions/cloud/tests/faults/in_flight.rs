//! The state of a deployment whose worker is killed in the middle of its work: recorded, kept for ever, and put into another one.

use crate::lane::Lane;
use domain::{Timestamp, WorkspaceId};
use emulators::{Call, Fate};
use parking_lot::Mutex;
use ports::{Clock, Expect, Item, Key, MAX_WRITES, Query, QueueMessage, SystemClock, Table, Write};
use regex::{Captures, Regex};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

/// The state in flight: items of the table, and messages of the queue.
#[derive(Serialize, Deserialize)]
pub struct InFlight<Who> {
    /// When it was recorded.
    at: Timestamp,
    pub workspace: WorkspaceId,
    /// The actors, by their role in the test.
    #[serde(flatten)]
    pub who: Who,
    items: Vec<Stored>,
    messages: Vec<QueueMessage>,
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

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/faults/golden").join(name)
}

impl<Who: Serialize + DeserializeOwned> InFlight<Who> {
    /// The content of the file of this name; `BLESS=1` records a missing one.
    pub async fn recorded(name: &str, record: impl AsyncFnOnce() -> Self) -> Self {
        let path = golden(name);
        if std::env::var_os("BLESS").is_some() && !path.exists() {
            let left = record().await;
            std::fs::write(&path, format!("{:#}\n", serde_json::to_value(left).unwrap())).unwrap();
        }
        Self::read(&std::fs::read_to_string(path).unwrap())
    }

    /// As if it had been recorded a moment ago: everything in it happened as long before now as it did before then.
    fn read(text: &str) -> Self {
        let at = serde_json::from_str::<Self>(text).unwrap().at;
        let later = SystemClock.now().as_millis() - at.as_millis();
        let moment = Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z").unwrap();
        let moved = moment.replace_all(text, |found: &Captures<'_>| {
            let at: Timestamp = found[0].parse().unwrap();
            Timestamp::from_millis(at.as_millis() + later).to_string()
        });
        serde_json::from_str(&moved).unwrap()
    }

    /// Puts it into a deployment, which has this workspace from then on.
    pub async fn restore(&self, lane: &mut Lane) {
        (lane.workspace, lane.place) = (self.workspace, format!("/api/v1/workspaces/{}", self.workspace));
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

/// Notes writes and messages, until the worker is killed.
pub struct Recorder {
    /// A workspace in which nothing was written before.
    pub lane: Lane,
    noted: Arc<Noted>,
}

#[derive(Default)]
struct Noted {
    partitions: Mutex<BTreeSet<String>>,
    sent: Mutex<Vec<QueueMessage>>,
    /// Part of the write after which the worker dies.
    dies_after: Mutex<Option<&'static str>>,
    is_dead: AtomicBool,
}

impl Noted {
    fn note(&self, call: &Call) {
        let text = String::from_utf8_lossy(&call.body);
        if call.operation == "SendMessageBatch" {
            let batch: Value = serde_json::from_str(&text).unwrap();
            // A delayed message is not in flight.
            let is_now = batch["QueueUrl"].as_str().is_some_and(|url| url.ends_with("-commands.fifo"));
            let entries = batch["Entries"].as_array().into_iter().flatten().filter(|_| is_now);
            let bodies = entries.map(|entry| serde_json::from_str(entry["MessageBody"].as_str().unwrap()).unwrap());
            self.sent.lock().extend(bodies);
        } else if !call.reads() {
            let key = Regex::new(r#""pk":\{"S":"([^"]+)"\}"#).unwrap();
            let keys = key.captures_iter(&text).map(|found| found[1].to_owned());
            self.partitions.lock().extend(keys);
        }
    }

    fn is_the_last(&self, call: &Call) -> bool {
        let last = self.dies_after.lock();
        last.is_some_and(|part| !call.reads() && String::from_utf8_lossy(&call.body).contains(part))
    }
}

impl Recorder {
    pub async fn start(lane: &Lane) -> Self {
        let noted: Arc<Noted> = Arc::default();
        let (notes, worker) = (noted.clone(), lane.world.worker.clone());
        lane.plan(move |call| {
            let of_worker = call.function == "worker";
            if of_worker && notes.is_dead.load(Relaxed) {
                return Fate::Lost;
            }
            notes.note(call);
            if !of_worker || !notes.is_the_last(call) {
                return Fate::Pass;
            }
            let (notes, worker) = (notes.clone(), worker.clone());
            Fate::then(move || {
                notes.is_dead.store(true, Relaxed);
                worker.kill_busy();
            })
        });
        Self { lane: lane.beside().await, noted }
    }

    /// All work sent until now has been done.
    pub async fn at_rest(&self) {
        self.lane.settled().await;
        self.noted.sent.lock().clear();
    }

    /// Once the worker has written an entry that contains this text, no worker gets anything done.
    pub fn dies_after(&self, part: &'static str) {
        *self.noted.dies_after.lock() = Some(part);
    }

    /// Waits for that.
    pub async fn until_dead(&self) {
        while !self.noted.is_dead.load(Relaxed) {
            // poll: a proxy does not tell about its work
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn recorded<Who>(self, who: Who) -> InFlight<Who> {
        let partitions = self.noted.partitions.lock().clone();
        let items = stored(&*self.lane.table(), partitions).await;
        let messages = self.noted.sent.lock().clone();
        InFlight { at: SystemClock.now(), workspace: self.lane.workspace, who, items, messages }
    }
}

/// Every item of these partitions.
async fn stored(table: &dyn Table, partitions: BTreeSet<String>) -> Vec<Stored> {
    let mut items = Vec::new();
    for partition in partitions {
        let mut query = Query::all(partition, 200);
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
