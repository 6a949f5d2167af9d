//! The bus on Momento Topics, against a server made from the stubs of Momento's protocol crate, which Momento's own client
//! takes for the real one. In a feature of its own, because the crate brings a second provider of TLS.
#![expect(clippy::unwrap_used, reason = "tests")]

use aws::{Class, Fault, Keys, MomentoBus};
use bytes::Bytes;
use futures::{StreamExt as _, channel::mpsc};
use momento::{CredentialProvider, TopicClient, topics::ValueKind, topics::configurations::Laptop};
use momento_protos::{
    cache_client::pubsub::{
        Discontinuity, Heartbeat, PublishRequest, SubscriptionItem, SubscriptionRequest, TopicItem,
        pubsub_server::{Pubsub, PubsubServer},
        subscription_item::Kind,
    },
    common::Empty,
};
use ports::{Bus, Error, Secret, Subscription, SystemClock};
use std::{
    collections::HashMap,
    error::Error as _,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use testkit::conformance::{self, Env};
use tonic::{
    Request, Response, Status,
    transport::{Server, server::TcpIncoming},
};

const QUIET: Duration = Duration::from_millis(300);

#[derive(Clone, Default)]
struct Topics(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    key: String,
    subscribers: HashMap<String, Vec<mpsc::UnboundedSender<Result<SubscriptionItem, Status>>>>,
    numbers: HashMap<String, u64>,
    /// How often anybody subscribed.
    subscriptions: usize,
    /// It takes messages and delivers none.
    is_mute: bool,
    last_topic: String,
}

impl Topics {
    async fn start() -> (Self, SocketAddr) {
        let topics = Self::default();
        topics.change(|state| state.key = "first".into());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = PubsubServer::new(topics.clone());
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(TcpIncoming::from(listener)));
        (topics, address)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    fn admit<T>(&self, request: Request<T>) -> Result<T, Status> {
        assert_eq!(request.metadata().get("cache").unwrap(), "events");
        let key = request.metadata().get("authorization").unwrap().to_str().unwrap().to_owned();
        match self.change(|state| state.key == key) {
            true => Ok(request.into_inner()),
            false => Err(Status::unauthenticated("this key is not good")),
        }
    }
}

fn item(kind: Kind) -> Result<SubscriptionItem, Status> {
    Ok(SubscriptionItem { kind: Some(kind) })
}

#[tonic::async_trait]
impl Pubsub for Topics {
    type SubscribeStream = mpsc::UnboundedReceiver<Result<SubscriptionItem, Status>>;

    async fn publish(&self, request: Request<PublishRequest>) -> Result<Response<Empty>, Status> {
        let PublishRequest { topic, value, .. } = self.admit(request)?;
        self.change(|state| {
            let number = state.numbers.entry(topic.clone()).or_default();
            *number += 1;
            let sent = TopicItem { topic_sequence_number: *number, value, ..TopicItem::default() };
            if !state.is_mute {
                let subscribers = state.subscribers.entry(topic.clone()).or_default();
                subscribers.retain(|subscriber| subscriber.unbounded_send(item(Kind::Item(sent.clone()))).is_ok());
            }
            state.last_topic = topic;
        });
        Ok(Response::new(Empty {}))
    }

    async fn subscribe(
        &self,
        request: Request<SubscriptionRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let SubscriptionRequest { topic, .. } = self.admit(request)?;
        let (to, from) = mpsc::unbounded();
        to.unbounded_send(item(Kind::Heartbeat(Heartbeat {}))).unwrap();
        self.change(|state| {
            state.subscriptions += 1;
            state.subscribers.entry(topic).or_default().push(to);
        });
        Ok(Response::new(from))
    }
}

fn key(address: SocketAddr, key: &str) -> Secret {
    Secret::new(format!(r#"{{"api_key": "{key}", "endpoint": "http://{address}"}}"#))
}

fn keys(address: SocketAddr) -> Keys {
    Arc::new(move || Box::pin(async move { Ok(key(address, "first")) }))
}

async fn world() -> (Topics, MomentoBus) {
    let (topics, address) = Topics::start().await;
    (topics, MomentoBus::with_quiet("events", keys(address), QUIET))
}

async fn hears(bus: &MomentoBus, subscription: &mut Subscription, message: &'static str) {
    loop {
        _ = bus.publish("c", Bytes::from_static(message.as_bytes())).await;
        while let Ok(heard) = tokio::time::timeout(Duration::from_millis(100), subscription.next()).await {
            if heard.unwrap() == message {
                return;
            }
        }
    }
}

async fn hears_of_a_gap(subscription: &mut Subscription) {
    while subscription.next().await.unwrap() != "" {}
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_conforms() {
    let env = Env::real(Arc::new(SystemClock));
    conformance::bus(&env, || async {
        let (_, address) = Topics::start().await;
        Arc::new(MomentoBus::new("events", keys(address))) as Arc<dyn Bus>
    })
    .await;
}

#[tokio::test]
async fn whatever_may_have_been_missed_is_told() {
    let (topics, bus) = world().await;
    let mut subscription = bus.subscribe("c").await.unwrap();
    hears(&bus, &mut subscription, "first").await;
    let topic = topics.change(|state| state.last_topic.clone());

    topics.change(|state| state.subscribers.clear());
    hears_of_a_gap(&mut subscription).await;
    hears(&bus, &mut subscription, "after a broken subscription").await;

    let skipped = Discontinuity { last_topic_sequence: 1, new_topic_sequence: 9, new_sequence_page: 0 };
    topics.change(|state| {
        state.subscribers[&topic].iter().for_each(|to| to.unbounded_send(item(Kind::Discontinuity(skipped))).unwrap());
    });
    hears_of_a_gap(&mut subscription).await;
    hears(&bus, &mut subscription, "after a discontinuity").await;

    topics.change(|state| *state.numbers.get_mut(&topic).unwrap() += 1);
    bus.publish("c", Bytes::from_static(b"after a lost one")).await.unwrap();
    assert_eq!(subscription.next().await.unwrap(), "");
    assert_eq!(subscription.next().await.unwrap(), "after a lost one");
    bus.publish("c", Bytes::from(vec![b'x'; 4096])).await.unwrap();
    assert_eq!(subscription.next().await.unwrap(), "", "what is too long goes without its content");
}

#[tokio::test]
async fn a_subscription_that_brings_nothing_any_more_is_noticed() {
    let (topics, bus) = world().await;
    let mut subscription = bus.subscribe("c").await.unwrap();
    hears(&bus, &mut subscription, "first").await;
    let before = topics.change(|state| {
        state.is_mute = true;
        state.subscriptions
    });
    while topics.change(|state| state.subscriptions) == before {
        tokio::task::yield_now().await;
    }
    topics.change(|state| state.is_mute = false);
    hears_of_a_gap(&mut subscription).await;
    hears(&bus, &mut subscription, "second").await;
}

#[tokio::test]
async fn many_channels_share_few_subscriptions() {
    let (topics, bus) = world().await;
    let mut held = Vec::new();
    for n in 0..300 {
        held.push(bus.subscribe(&format!("chat/w/{n}")).await.unwrap());
        drop(bus.subscribe(&format!("chat/w/{n}/control")).await.unwrap());
    }
    assert_eq!(topics.change(|state| state.subscribers.len()), 20);
    bus.publish("chat/w/7", Bytes::from_static(b"for seven")).await.unwrap();
    assert_eq!(held[7].next().await.unwrap(), "for seven");
    drop(bus);
    assert!(held[7].next().await.is_none(), "a subscription ends with its bus");
}

#[tokio::test]
async fn a_rotated_key_is_fetched_when_the_old_one_is_refused() {
    let (topics, address) = Topics::start().await;
    let (fetched, current) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new("first")));
    let (count, holds) = (fetched.clone(), current.clone());
    let keys: Keys = Arc::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        let found = key(address, *holds.lock().unwrap());
        Box::pin(async move { Ok(found) })
    });
    let bus = MomentoBus::with_quiet("events", keys, QUIET);
    let mut subscription = bus.subscribe("c").await.unwrap();
    hears(&bus, &mut subscription, "first").await;
    assert_eq!(fetched.load(Ordering::Relaxed), 1);

    topics.change(|state| {
        state.key = "second".into();
        state.subscribers.clear();
    });
    let refused = bus.publish("c", Bytes::from_static(b"too early")).await.unwrap_err();
    let class = refused.source().unwrap().downcast_ref::<Fault>().map(|fault| fault.class);
    assert!(matches!(refused, Error::Unavailable { .. }) && class == Some(Class::Refused), "{refused:?}");
    *current.lock().unwrap() = "second";
    hears(&bus, &mut subscription, "second").await;
}

/// What Momento's own client says and hears is what this bus says and hears: the server is none of our own making.
#[tokio::test]
async fn the_stock_client_speaks_with_the_same_server() {
    let (topics, address) = Topics::start().await;
    let bus = MomentoBus::new("events", keys(address));
    let token = aws_smithy_types::base64::encode(r#"{"api_key": "first", "endpoint": "nowhere.test"}"#);
    let credentials = CredentialProvider::from_disposable_token(token).unwrap();
    let credentials = credentials.insecure_endpoint_override(&format!("http://{address}"));
    let stock =
        TopicClient::builder().configuration(Laptop::latest()).credential_provider(credentials).build().unwrap();
    bus.publish("c", Bytes::from_static(b"where")).await.unwrap();
    let topic = topics.change(|state| state.last_topic.clone());
    let mut heard = stock.subscribe("events", topic.clone()).await.unwrap();
    bus.publish("c", Bytes::from_static(b"from us")).await.unwrap();
    let ValueKind::Binary(content) = heard.next().await.unwrap().kind else { panic!("binary") };
    assert_eq!(content, b"\0\x01cfrom us");
    let mut subscription = bus.subscribe("c").await.unwrap();
    stock.publish("events", topic, b"\0\x01cfrom them".to_vec()).await.unwrap();
    assert_eq!(subscription.next().await.unwrap(), "from them");
}
