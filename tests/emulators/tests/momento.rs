//! The bus on Momento Topics, against a server made from the stubs of Momento's protocol crate, which Momento's own client
//! takes for the real one. In a feature of its own, because the crate brings a second provider of TLS.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use aws::{
    AwsFault, Class, Keys, MomentoBus,
    momento_wire::{self as ours, Kind as OurKind},
};
use aws_smithy_types::base64;
use bytes::Bytes;
use emulators::momento::{CACHE, FIRST_KEY, Topics, item};
use futures::StreamExt as _;
use momento::{CredentialProvider, TopicClient, topics::ValueKind, topics::configurations::Laptop};
use momento_protos::{
    cache_client::pubsub::{self as theirs, subscription_item::Kind, topic_value},
    common,
};
use ports::{Bus, Error, Secret, Subscription, SystemClock};
use prost::Message;
use std::{
    error::Error as _,
    fmt::Debug,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use testkit::conformance::{self, Env};

const QUIET: Duration = Duration::from_millis(300);

fn keys(topics: &Topics) -> Keys {
    let key = Secret::new(topics.key(FIRST_KEY));
    Arc::new(move || Box::pin(std::future::ready(Ok(key.clone()))))
}

async fn world() -> (Topics, MomentoBus) {
    let topics = Topics::start().await.unwrap();
    let bus = MomentoBus::with_quiet(CACHE, keys(&topics), QUIET);
    (topics, bus)
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
        let topics = Topics::start().await.unwrap();
        Arc::new(MomentoBus::new(CACHE, keys(&topics))) as Arc<dyn Bus>
    })
    .await;
}

#[tokio::test]
async fn a_possible_gap_is_told() {
    let (topics, bus) = world().await;
    let mut subscription = bus.subscribe("c").await.unwrap();
    hears(&bus, &mut subscription, "first").await;
    let topic = topics.change(|state| state.last_topic.clone());

    topics.change(|state| state.subscribers.clear());
    hears_of_a_gap(&mut subscription).await;
    hears(&bus, &mut subscription, "after a broken subscription").await;

    let skipped = theirs::Discontinuity { last_topic_sequence: 1, new_topic_sequence: 9, new_sequence_page: 0 };
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
    assert_eq!(subscription.next().await.unwrap(), "", "a message that is too long goes without its content");
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
    let topics = Topics::start().await.unwrap();
    let (fetched, current) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(FIRST_KEY)));
    let (count, holds, console) = (fetched.clone(), current.clone(), topics.clone());
    let keys: Keys = Arc::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        let found = Secret::new(console.key(*holds.lock().unwrap()));
        Box::pin(async move { Ok(found) })
    });
    let bus = MomentoBus::with_quiet(CACHE, keys, QUIET);
    let mut subscription = bus.subscribe("c").await.unwrap();
    hears(&bus, &mut subscription, "first").await;
    assert_eq!(fetched.load(Ordering::Relaxed), 1);

    topics.take_only("second");
    let refused = bus.publish("c", Bytes::from_static(b"too early")).await.unwrap_err();
    let class = refused.source().unwrap().downcast_ref::<AwsFault>().map(|fault| fault.class);
    assert!(matches!(refused, Error::Unavailable { .. }) && class == Some(Class::Refused), "{refused:?}");
    *current.lock().unwrap() = "second";
    hears(&bus, &mut subscription, "second").await;
}

/// Momento's own client.
fn stock(topics: &Topics) -> TopicClient {
    let token = base64::encode(r#"{"api_key": "first", "endpoint": "nowhere.test"}"#);
    let credentials = CredentialProvider::from_disposable_token(token).unwrap();
    let credentials = credentials.insecure_endpoint_override(&format!("http://{}", topics.address));
    TopicClient::builder().configuration(Laptop::latest()).credential_provider(credentials).build().unwrap()
}

/// A bus over Momento's own client, with a topic for each channel. It tells of no gap.
struct Stock(TopicClient);

#[async_trait]
impl Bus for Stock {
    async fn publish(&self, channel: &str, message: Bytes) -> ports::Result<()> {
        let published = self.0.publish(CACHE, channel.to_owned(), message.to_vec()).await;
        published.map(drop).map_err(|error| Error::unavailable("the bus", error.to_string()))
    }

    async fn subscribe(&self, channel: &str) -> ports::Result<Subscription> {
        let subscribed = self.0.subscribe(CACHE, channel.to_owned()).await;
        let items = subscribed.map_err(|error| Error::unavailable("the bus", error.to_string()))?;
        let contents = items.filter_map(|item| {
            std::future::ready(match item.kind {
                ValueKind::Binary(content) => Some(Bytes::from(content)),
                ValueKind::Text(_) => None,
            })
        });
        Ok(contents.boxed())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_over_the_stock_client_conforms() {
    let env = Env::real(Arc::new(SystemClock));
    conformance::bus(&env, || async {
        let topics = Topics::start().await.unwrap();
        Arc::new(Stock(stock(&topics))) as Arc<dyn Bus>
    })
    .await;
}

/// Momento's own client and this bus exchange the same messages: the server is none of our own making.
#[tokio::test]
async fn the_stock_client_speaks_with_the_same_server() {
    let topics = Topics::start().await.unwrap();
    let bus = MomentoBus::new(CACHE, keys(&topics));
    let stock = stock(&topics);
    bus.publish("c", Bytes::from_static(b"where")).await.unwrap();
    let topic = topics.change(|state| state.last_topic.clone());
    let mut heard = stock.subscribe(CACHE, topic.clone()).await.unwrap();
    bus.publish("c", Bytes::from_static(b"from us")).await.unwrap();
    let ValueKind::Binary(content) = heard.next().await.unwrap().kind else { panic!("binary") };
    assert_eq!(content, b"\0\x01cfrom us");
    let mut subscription = bus.subscribe("c").await.unwrap();
    stock.publish(CACHE, topic, b"\0\x01cfrom them".to_vec()).await.unwrap();
    assert_eq!(subscription.next().await.unwrap(), "from them");
}

/// Bytes of ours are read as the same by Momento's own type, and its bytes by ours.
fn agree<Ours, Theirs>(ours: Ours, theirs: Theirs)
where
    Ours: Message + Default + PartialEq + Debug,
    Theirs: Message + Default + PartialEq + Debug,
{
    assert_eq!(Theirs::decode(&*ours.encode_to_vec()).unwrap(), theirs);
    assert_eq!(Ours::decode(&*theirs.encode_to_vec()).unwrap(), ours);
}

#[test]
fn every_message_is_read_the_same_by_the_protocols_own_types() {
    let named = || ("the cache".to_owned(), "a topic".to_owned());
    let value = |content: &'static [u8]| {
        let ours = ours::TopicValue { binary: Some(Bytes::from_static(content)) };
        (Some(ours), Some(theirs::TopicValue { kind: Some(topic_value::Kind::Binary(content.to_vec())) }))
    };
    for content in [&b"\0\xff"[..], b""] {
        let (our_value, their_value) = value(content);
        let (cache_name, topic) = named();
        let ours = ours::PublishRequest { cache_name, topic, value: our_value.clone() };
        let (cache_name, topic) = named();
        agree(ours, theirs::PublishRequest { cache_name, topic, value: their_value.clone() });

        let item = ours::TopicItem { topic_sequence_number: 1 << 40, value: our_value, sequence_page: 7 };
        let theirs = theirs::TopicItem {
            topic_sequence_number: 1 << 40,
            value: their_value,
            publisher_id: String::new(),
            sequence_page: 7,
        };
        let brought = theirs::SubscriptionItem { kind: Some(Kind::Item(theirs)) };
        agree(ours::SubscriptionItem { kind: Some(OurKind::Item(item)) }, brought);
    }
    let (cache_name, topic) = named();
    let ours = ours::SubscriptionRequest { cache_name, topic };
    let (cache_name, topic) = named();
    agree(ours, theirs::SubscriptionRequest { cache_name, topic, ..Default::default() });
    for (ours, theirs) in [
        (OurKind::Heartbeat(()), Kind::Heartbeat(theirs::Heartbeat {})),
        (OurKind::Discontinuity(()), Kind::Discontinuity(theirs::Discontinuity::default())),
    ] {
        let theirs = theirs::SubscriptionItem { kind: Some(theirs) };
        agree(ours::SubscriptionItem { kind: Some(ours) }, theirs);
    }
    agree((), common::Empty {});
}

/// Fields that we leave out do not keep us from reading the rest.
#[test]
fn unneeded_fields_are_skipped() {
    let read = |kind| {
        let item = theirs::SubscriptionItem { kind: Some(kind) };
        ours::SubscriptionItem::decode(&*item.encode_to_vec()).unwrap().kind.unwrap()
    };
    let skipped = theirs::Discontinuity { last_topic_sequence: 1, new_topic_sequence: 9, new_sequence_page: 3 };
    assert_eq!(read(Kind::Discontinuity(skipped)), OurKind::Discontinuity(()));
    let text = theirs::TopicValue { kind: Some(topic_value::Kind::Text("not ours".into())) };
    let item = theirs::TopicItem { value: Some(text), publisher_id: "somebody".into(), ..Default::default() };
    let value = Some(ours::TopicValue { binary: None });
    assert_eq!(read(Kind::Item(item)), OurKind::Item(ours::TopicItem { value, ..Default::default() }));
}
