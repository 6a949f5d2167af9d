//! The bus on Momento Topics, and Momento's own client, against a server made from our messages.
#![expect(clippy::unwrap_used, reason = "tests")]

mod stock;
mod wire;

use aws::{
    AwsFault, Class, Keys, MomentoBus,
    momento_wire::{Content, Kind, TopicItem, TopicValue},
};
use bytes::Bytes;
use emulators::momento::{CACHE, FIRST_KEY, Topics, item};
use futures::StreamExt as _;
use parking_lot::Mutex;
use ports::{Bus, Error, Secret, Subscription, SystemClock};
use std::{
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use testkit::conformance::{self, Env};
use tokio::time::Instant;

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

/// Has the server send this to all subscribers of a topic.
fn tell(topics: &Topics, topic: &str, kind: &Kind) {
    topics.change(|state| {
        state.subscribers[topic].iter().for_each(|to| to.unbounded_send(item(kind.clone())).unwrap());
    });
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

    tell(&topics, &topic, &Kind::Discontinuity(()));
    hears_of_a_gap(&mut subscription).await;
    hears(&bus, &mut subscription, "after a discontinuity").await;

    topics.change(|state| *state.numbers.get_mut(&topic).unwrap() += 1);
    bus.publish("c", Bytes::from_static(b"after a lost one")).await.unwrap();
    // `hears` publishes again while a message is late: another copy may be in front of the gap.
    hears_of_a_gap(&mut subscription).await;
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

/// Each new subscription is announced as a gap, and each reader of a log then reads it again.
#[tokio::test]
async fn a_subscription_that_ends_as_soon_as_it_stands_is_made_ever_more_slowly() {
    let (topics, bus) = world().await;
    let _subscription = bus.subscribe("c").await.unwrap();
    let begun = Instant::now();
    for made in 1..=6 {
        while topics.change(|state| state.subscriptions) < made {
            tokio::task::yield_now().await;
        }
        topics.change(|state| state.subscribers.clear());
    }
    // 50 ms, and each pause twice as long as the one before.
    assert!(begun.elapsed() >= Duration::from_millis(50 + 100 + 200 + 400 + 800));
}

#[tokio::test]
async fn a_text_that_is_not_utf_8_ends_no_subscription() {
    let topics = Topics::start().await.unwrap();
    let bus = MomentoBus::new(CACHE, keys(&topics));
    let mut subscription = bus.subscribe("c").await.unwrap();
    hears(&bus, &mut subscription, "first").await;
    let (topic, subscriptions) = topics.change(|state| (state.last_topic.clone(), state.subscriptions));
    let value = Some(TopicValue { content: Some(Content::Text(Bytes::from_static(b"\xff"))) });
    tell(&topics, &topic, &Kind::Item(TopicItem { value, ..TopicItem::default() }));
    hears(&bus, &mut subscription, "second").await;
    assert_eq!(topics.change(|state| state.subscriptions), subscriptions);
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
        let found = Secret::new(console.key(*holds.lock()));
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
    *current.lock() = "second";
    hears(&bus, &mut subscription, "second").await;
}
