//! The bus on Redis passes the suite, and survives the loss of its connections and of Redis itself.
#![expect(clippy::unwrap_used, reason = "tests")]

use aws::RedisBus;
use bytes::Bytes;
use emulators::{Emulator, Line, State};
use futures::StreamExt as _;
use ports::{Bus, Error, Subscription, SystemClock};
use std::{sync::Arc, time::Duration};
use testkit::conformance::{self, Env};

fn bus(redis: &Emulator) -> RedisBus {
    RedisBus::new(&format!("redis://127.0.0.1:{}", redis.port())).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bus_conforms() {
    let redis = Emulator::redis().await.unwrap();
    let env = Env::real(Arc::new(SystemClock));
    conformance::bus(&env, || async { Arc::new(bus(&redis)) as Arc<dyn Bus> }).await;
}

/// Publishes until the subscription hears it; the other messages that it heard until then.
async fn hears(bus: &RedisBus, subscription: &mut Subscription, message: &'static str) -> Vec<Bytes> {
    let mut before = Vec::new();
    loop {
        // While Redis is away this fails, as it should.
        _ = bus.publish("c", Bytes::from_static(message.as_bytes())).await;
        while let Ok(heard) = tokio::time::timeout(Duration::from_millis(100), subscription.next()).await {
            let heard = heard.unwrap();
            if heard == message {
                return before;
            }
            before.push(heard);
        }
    }
}

#[tokio::test]
async fn a_broken_connection_is_made_again_and_tells_of_the_gap() {
    let redis = Emulator::redis().await.unwrap();
    let bus = bus(&redis);
    let mut subscription = bus.subscribe("c").await.unwrap();
    assert!(hears(&bus, &mut subscription, "first").await.is_empty());
    let client = redis::Client::open(format!("redis://127.0.0.1:{}", redis.port())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut kill = redis::cmd("CLIENT");
    let killed: u32 = kill.arg("KILL").arg("TYPE").arg("pubsub").query_async(&mut connection).await.unwrap();
    assert_eq!(killed, 1, "one connection listens to everything");
    // Nothing is published: it is the bus that says so.
    while subscription.next().await.unwrap() != "" {}
    hears(&bus, &mut subscription, "second").await;
}

#[tokio::test]
async fn a_redis_that_was_away_is_found_again() {
    let mut redis = Emulator::redis().await.unwrap();
    let bus = bus(&redis);
    let (mut subscription, _other) = (bus.subscribe("c").await.unwrap(), bus.subscribe("d").await.unwrap());
    hears(&bus, &mut subscription, "first").await;
    redis.stop();
    let lost = bus.publish("c", Bytes::from_static(b"lost")).await;
    assert!(matches!(lost, Err(Error::Unavailable { .. })), "{lost:?}");
    let refused = bus.subscribe("not subscribed to yet").await.map(drop);
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    redis.resume().await.unwrap();
    let before = hears(&bus, &mut subscription, "second").await;
    assert!(before.contains(&Bytes::new()), "{before:?}");
    drop(bus);
    while subscription.next().await.is_some() {}
}

#[tokio::test]
async fn a_channel_without_listeners_costs_redis_nothing() {
    let redis = Emulator::redis().await.unwrap();
    let bus = bus(&redis);
    let client = redis::Client::open(format!("redis://127.0.0.1:{}", redis.port())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut channels = async || {
        let listed: Vec<String> = redis::cmd("PUBSUB").arg("CHANNELS").query_async(&mut connection).await.unwrap();
        listed.len()
    };
    let (one, other) = (bus.subscribe("c").await.unwrap(), bus.subscribe("c").await.unwrap());
    assert_eq!(channels().await, 1);
    drop((one, other));
    while channels().await > 0 {
        tokio::task::yield_now().await;
    }
    let mut back = bus.subscribe("c").await.unwrap();
    hears(&bus, &mut back, "again").await;
    assert!(RedisBus::new("http://u:secret@somewhere").is_err_and(|error| !error.to_string().contains("secret")));
}

/// A publisher to a Redis that does not answer waits for it now and then, and not each time.
#[tokio::test]
async fn a_redis_that_is_silent_is_left_alone_for_a_while() {
    let redis = Emulator::redis().await.unwrap();
    let line = Line::to(redis.port()).await.unwrap();
    let bus = RedisBus::new(&format!("redis://127.0.0.1:{}", line.port())).unwrap();
    let mut subscription = bus.subscribe("c").await.unwrap();
    hears(&bus, &mut subscription, "first").await;
    line.set(State::Dead);
    const TIMES: u32 = 20;
    let began = tokio::time::Instant::now();
    for _ in 0..TIMES {
        let lost = bus.publish("c", Bytes::from_static(b"lost")).await;
        assert!(matches!(lost, Err(Error::Unavailable { .. })), "{lost:?}");
    }
    // bound: each that waits takes two seconds
    assert!(began.elapsed() < TIMES * Duration::from_secs(2), "{:?}", began.elapsed());
    line.set(State::Whole);
    hears(&bus, &mut subscription, "second").await;
}

/// As with a function that was frozen between two invocations: the next one publishes at once, without a rest.
#[tokio::test]
async fn a_connection_that_the_network_forgot_is_replaced_by_the_message_that_finds_it_out() {
    let redis = Emulator::redis().await.unwrap();
    let line = Line::to(redis.port()).await.unwrap();
    let publisher = RedisBus::new(&format!("redis://127.0.0.1:{}", line.port())).unwrap();
    let listener = bus(&redis);
    let mut subscription = listener.subscribe("c").await.unwrap();
    for round in ["first", "second", "third"] {
        publisher.publish("c", Bytes::from_static(round.as_bytes())).await.unwrap();
        assert_eq!(subscription.next().await.unwrap(), round);
        line.forget();
    }
}
