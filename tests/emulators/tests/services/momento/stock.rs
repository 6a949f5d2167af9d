//! Momento's own client for Node.js, unmodified, at the server that the bus is tested with. `scripts/clients momento` installs it.

use super::{keys, tell};
use async_trait::async_trait;
use aws::{MomentoBus, momento_wire::Kind};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use emulators::momento::{CACHE, FIRST_KEY, Topics};
use futures::{StreamExt as _, channel::mpsc};
use parking_lot::Mutex;
use ports::{Bus, Error, Subscription, SystemClock};
use serde_json::{Value, json};
use std::{collections::HashMap, path::Path, process::Stdio, sync::Arc};
use testkit::conformance::{self, Env};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, Command},
    sync::Mutex as AsyncMutex,
};

/// The client, as a process. Dropping it ends it.
pub struct Stock {
    input: AsyncMutex<ChildStdin>,
    /// The receivers of its answers, by the number of the request; none once its output has ended.
    asked: Arc<Mutex<Option<HashMap<usize, Answers>>>>,
    _process: Child,
}

type Answers = mpsc::UnboundedSender<Value>;

impl Stock {
    /// A client of this server, which it connects to with its first request.
    pub fn of(topics: &Topics) -> Self {
        Self::start(&topics.address.to_string())
    }

    /// A client of this address, with the first key.
    pub fn start(address: &str) -> Self {
        let modules = testkit::installed("momento", "clients momento").join("node_modules");
        let mut process = Command::new("node")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/momento.cjs"))
            .args([address, FIRST_KEY])
            .env("NODE_PATH", modules)
            // It would ask the proxy of the machine for this address, too.
            .env("no_grpc_proxy", "127.0.0.1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = AsyncMutex::new(process.stdin.take().unwrap());
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let asked = Arc::new(Mutex::new(Some(HashMap::<usize, Answers>::new())));
        let answered = asked.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                // A line that is no answer ends all of them, so that no test waits for one.
                let Some((id, answer)) = answer_of(&line) else { break };
                let Some(to) = answered.lock().as_ref().and_then(|asked| asked.get(&id).cloned()) else {
                    break;
                };
                // The test may have dropped a subscription.
                _ = to.unbounded_send(answer);
            }
            *answered.lock() = None;
        });
        Self { input, asked, _process: process }
    }

    /// Asks it for something. Returns its answers, which end with its process.
    pub async fn ask(&self, deed: &str, mut request: Value) -> mpsc::UnboundedReceiver<Value> {
        let (to, answers) = mpsc::unbounded();
        let mut input = self.input.lock().await;
        let id = match self.asked.lock().as_mut() {
            Some(asked) => {
                let id = asked.len();
                asked.insert(id, to);
                id
            }
            None => panic!("Momento's client has ended"),
        };
        request["id"] = id.into();
        request["deed"] = deed.into();
        input.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        answers
    }

    /// Asks it for something that has one answer.
    pub async fn answer(&self, deed: &str, request: Value) -> Value {
        self.ask(deed, request).await.next().await.unwrap()
    }

    async fn publish_value(&self, topic: &str, value: Value) -> Value {
        self.answer("publish", json!({ "cache": CACHE, "topic": topic, "value": value })).await
    }

    /// The events of a subscription that stands: its first heartbeat has come.
    async fn events(&self, topic: &str) -> mpsc::UnboundedReceiver<Value> {
        let mut events = self.ask("subscribe", json!({ "cache": CACHE, "topic": topic })).await;
        assert_eq!(events.next().await.unwrap(), json!({ "heartbeat": {} }));
        events
    }
}

/// The number of a request and an answer to it; none of another line.
fn answer_of(line: &str) -> Option<(usize, Value)> {
    let mut answer: Value = serde_json::from_str(line).ok()?;
    let id = answer.as_object_mut()?.remove("id")?.as_u64()?;
    Some((usize::try_from(id).ok()?, answer))
}

fn binary(content: &[u8]) -> Value {
    json!({ "binary": STANDARD.encode(content) })
}

fn item(number: u64, value: &Value) -> Value {
    json!({ "item": { "number": number, "value": value } })
}

/// A bus over Momento's own client, with a topic for each channel. It tells of no gap.
#[async_trait]
impl Bus for Stock {
    async fn publish(&self, channel: &str, message: Bytes) -> ports::Result<()> {
        match self.publish_value(channel, binary(&message)).await.get("error") {
            None => Ok(()),
            Some(error) => Err(Error::unavailable("the bus", error.to_string())),
        }
    }

    async fn subscribe(&self, channel: &str) -> ports::Result<Subscription> {
        let contents = self.events(channel).await.filter_map(|event| {
            let content = event["item"]["value"]["binary"].as_str();
            std::future::ready(content.map(|content| Bytes::from(STANDARD.decode(content).unwrap())))
        });
        Ok(contents.boxed())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_over_the_stock_client_conforms() {
    // Each message passes through another process, which has read it before the next one comes: more of them prove no more.
    let env = Env { unread: 500, ..Env::real(Arc::new(SystemClock)) };
    conformance::bus(&env, || async {
        let topics = Topics::start().await.unwrap();
        Arc::new(Stock::of(&topics)) as Arc<dyn Bus>
    })
    .await;
}

/// Momento's own client and this bus exchange the same messages: the server speaks no dialect of our own making.
#[tokio::test]
async fn the_stock_client_speaks_with_the_same_server() {
    let topics = Topics::start().await.unwrap();
    let bus = MomentoBus::new(CACHE, keys(&topics));
    let stock = Stock::of(&topics);
    bus.publish("c", Bytes::from_static(b"where")).await.unwrap();
    let topic = topics.change(|state| state.last_topic.clone());
    let mut heard = stock.events(&topic).await;
    bus.publish("c", Bytes::from_static(b"from us")).await.unwrap();
    assert_eq!(heard.next().await.unwrap(), item(2, &binary(b"\0\x01cfrom us")));

    let mut subscription = bus.subscribe("c").await.unwrap();
    // A text of another publisher has no channel, and keeps nobody from the next message.
    for value in [json!({ "text": "not ours" }), binary(b"\0\x01cfrom them")] {
        assert_eq!(stock.publish_value(&topic, value).await, json!({ "published": topic }));
    }
    assert_eq!(subscription.next().await.unwrap(), "from them");
}

#[tokio::test]
async fn the_stock_client_sees_texts_bytes_numbers_and_discontinuities() {
    let topics = Topics::start().await.unwrap();
    let stock = Stock::of(&topics);
    let mut heard = stock.events("t").await;
    let values = [json!({ "text": "é" }), binary(b"\0\xff"), binary(b"")];
    for (number, value) in (1..).zip(&values) {
        assert_eq!(stock.publish_value("t", value.clone()).await, json!({ "published": "t" }));
        assert_eq!(heard.next().await.unwrap(), item(number, value));
    }
    tell(&topics, "t", &Kind::Discontinuity(()));
    assert_eq!(heard.next().await.unwrap(), json!({ "discontinuity": [0, 0, 0] }));
}

/// The server asks Momento's own client for the same key and the same cache as the bus.
#[tokio::test]
async fn the_stock_client_is_refused_with_another_key_and_in_another_cache() {
    let topics = Topics::start().await.unwrap();
    let stock = Stock::of(&topics);
    let elsewhere = json!({ "cache": "elsewhere", "topic": "t", "value": { "text": "lost" } });
    for deed in ["publish", "subscribe"] {
        assert_eq!(stock.answer(deed, elsewhere.clone()).await, json!({ "error": "NOT_FOUND_ERROR" }));
    }
    topics.take_only("second");
    let here = json!({ "cache": CACHE, "topic": "t", "value": { "text": "lost" } });
    for deed in ["publish", "subscribe"] {
        assert_eq!(stock.answer(deed, here.clone()).await, json!({ "error": "AUTHENTICATION_ERROR" }));
    }
}
