//! The bus's suite: a bus promises little, so most checks are for forbidden behaviour.

use super::{Env, table::ok};
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use ports::{Bus, Subscription};
use std::{future::Future, sync::Arc, time::Duration};

/// Holds a bus to its documentation.
pub async fn bus<F: Future<Output = Arc<dyn Bus>>>(env: &Env, fresh: impl Fn() -> F) {
    subscribers_get_what_is_published_after(&*fresh().await).await;
    channels_are_apart(&*fresh().await).await;
    publishing_waits_for_no_subscriber(&*fresh().await, env.unread).await;
}

async fn subscribers_get_what_is_published_after(bus: &dyn Bus) {
    publish(bus, "c", "before").await;
    let (mut one, mut other) = (ok(bus.subscribe("c").await), ok(bus.subscribe("c").await));
    for subscription in [&mut one, &mut other] {
        hears(bus, "c", subscription, "after").await;
    }
    drop(one);
    hears(bus, "c", &mut other, "later").await;
}

async fn channels_are_apart(bus: &dyn Bus) {
    let (mut c, mut d) = (ok(bus.subscribe("c").await), ok(bus.subscribe("c/d").await));
    hears(bus, "c", &mut c, "for c").await;
    hears(bus, "c/d", &mut d, "for d").await;
    while let Some(message) = d.next().now_or_never().flatten() {
        assert_eq!(message, "for d");
    }
}

async fn publishing_waits_for_no_subscriber(bus: &dyn Bus, unread: u32) {
    let mut slow = ok(bus.subscribe("c").await);
    let mut quick = ok(bus.subscribe("c").await);
    for n in 0..unread {
        publish(bus, "c", &n.to_string()).await;
        _ = quick.next().now_or_never();
    }
    hears(bus, "c", &mut quick, "to the quick").await;
    hears(bus, "c", &mut slow, "to the slow").await;
}

async fn publish(bus: &dyn Bus, channel: &str, message: &str) {
    ok(bus.publish(channel, Bytes::copy_from_slice(message.as_bytes())).await);
}

/// The subscription hears `message`, which is published until it does: any one may be lost.
async fn hears(bus: &dyn Bus, channel: &str, subscription: &mut Subscription, message: &str) {
    for _ in 0..100 {
        publish(bus, channel, message).await;
        let heard = async {
            while let Some(heard) = subscription.next().await {
                assert_ne!(heard, "before", "published before the subscription");
                if heard == message {
                    return true;
                }
            }
            false
        };
        if tokio::time::timeout(Duration::from_millis(100), heard).await == Ok(true) {
            return;
        }
    }
    panic!("{message:?} was lost a hundred times");
}
