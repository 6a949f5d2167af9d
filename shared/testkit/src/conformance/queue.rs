//! The queue's suite.

mod batches;
mod sending;
mod turns;

pub use sending::sending;
pub use turns::queue_in_turn;

use super::{Env, table::ok};
use crate::Queue;
use domain::Timestamp;
use futures::{FutureExt as _, future::join_all};
use parking_lot::Mutex;
use ports::{Delivery, Error, QueueMessage, Receipt};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::Arc,
    time::Duration,
};
/// Holds a queue to its documentation. `fresh` makes one that puts a message aside after `max_attempts` deliveries.
pub async fn queue<F: Future<Output = Arc<dyn Queue>>>(env: &Env, max_attempts: u32, fresh: impl Fn() -> F) {
    a_group_is_delivered_in_order_one_at_a_time(&*fresh().await, env).await;
    groups_do_not_wait_for_each_other(&*fresh().await, env).await;
    batches::a_batch_is_in_order_and_locks_its_group(&*fresh().await, env).await;
    batches::messages_given_back_of_a_batch_come_again_in_order(&*fresh().await, env).await;
    batches::a_batch_times_out_and_is_extended_as_one(&*fresh().await, env).await;
    batches::no_batch_is_longer_than_promised(&*fresh().await, env).await;
    an_unsettled_message_comes_again_first(&*fresh().await, env).await;
    a_rejected_message_comes_again_first(&*fresh().await, env).await;
    stale_receipts_settle_nothing(&*fresh().await, env).await;
    an_extended_delivery_stays_invisible(&*fresh().await, env).await;
    delayed_messages_take_their_place_when_due(&*fresh().await, env).await;
    repeated_ids_have_no_effect(&*fresh().await, env).await;
    used_up_messages_are_put_aside_and_sent_again(&*fresh().await, env, max_attempts).await;
    impossible_requests_are_invalid(&*fresh().await).await;
    queue_races(env, fresh).await;
}

/// The part that is about racing callers. It waits for no visibility, so it also runs quickly on many threads in real time.
pub async fn queue_races<F: Future<Output = Arc<dyn Queue>>>(env: &Env, fresh: impl Fn() -> F) {
    a_waiting_receive_is_woken(fresh().await, env).await;
    a_dropped_receive_loses_nothing(&*fresh().await, env).await;
    two_workers_never_hold_one_group(fresh().await, env).await;
}

async fn a_group_is_delivered_in_order_one_at_a_time(queue: &dyn Queue, env: &Env) {
    ok(queue.send(vec![message("g", "1"), message("g", "2")]).await);
    ok(queue.send(vec![message("g", "3")]).await);
    for id in ["1", "2", "3"] {
        let delivery = one(queue, env).await;
        assert_eq!((delivery.group.as_str(), delivery.id.as_str(), delivery.attempt), ("g", id, 1));
        assert_eq!(delivery.body, format!("body {id}"));
        nothing_comes(queue, env).await;
        assert!(ack(queue, &delivery.receipt).await);
    }
    nothing_comes(queue, env).await;
}

async fn groups_do_not_wait_for_each_other(queue: &dyn Queue, env: &Env) {
    let messages = ["a", "b", "c"].iter().flat_map(|group| [message(group, "1"), message(group, "2")]).collect();
    ok(queue.send(messages).await);
    let mut groups = BTreeSet::new();
    while groups.len() < 3 {
        let some = ok(queue.receive(2, env.unit).await);
        assert!(some.len() <= 2, "at most as many as asked for");
        for batch in some.chunk_by(|one, next| one.group == next.group) {
            assert!(ids(batch).starts_with(&["1"]));
            assert!(groups.insert(batch.first().map(|first| first.group.clone())), "one batch per group");
        }
    }
    assert!(ok(queue.receive(0, env.unit).await).is_empty());
}

async fn an_unsettled_message_comes_again_first(queue: &dyn Queue, env: &Env) {
    ok(queue.send(vec![message("g", "1"), message("g", "2")]).await);
    let taken_at = env.clock.now();
    let first = one(queue, env).await;
    let again = one(queue, env).await;
    assert!(env.clock.now() >= taken_at + env.unit, "not before its visibility is over");
    assert_eq!((again.id.as_str(), again.attempt), ("1", 2), "order holds under redelivery");
    assert_ne!(first.receipt, again.receipt);
    assert!(ack(queue, &again.receipt).await);
    assert_eq!(one(queue, env).await.id, "2");
}

async fn a_rejected_message_comes_again_first(queue: &dyn Queue, env: &Env) {
    ok(queue.send(vec![message("g", "1"), message("g", "2")]).await);
    let delivery = one(queue, env).await;
    assert!(reject(queue, &delivery.receipt, Duration::ZERO).await);
    assert!(!ack(queue, &delivery.receipt).await, "its receipt is stale");
    let again = one(queue, env).await;
    assert_eq!((again.id.as_str(), again.attempt), ("1", 2));
    let rejected_at = env.clock.now();
    assert!(reject(queue, &again.receipt, env.unit).await);
    let third = one(queue, env).await;
    assert!(env.clock.now() >= rejected_at + env.unit, "the group rests meanwhile");
    assert_eq!((third.id.as_str(), third.attempt), ("1", 3));
}

async fn stale_receipts_settle_nothing(queue: &dyn Queue, env: &Env) {
    ok(queue.send(vec![message("g", "1")]).await);
    let stale = one(queue, env).await.receipt;
    let fresh = one(queue, env).await;
    assert_eq!(fresh.attempt, 2);
    assert!(!ack(queue, &stale).await);
    assert!(!extend(queue, &stale, env.unit).await);
    assert!(!reject(queue, &stale, Duration::ZERO).await);
    assert!(!ack(queue, &Receipt("no receipt".into())).await);
    assert!(ack(queue, &fresh.receipt).await);
    assert!(!ack(queue, &fresh.receipt).await, "settled once");
    nothing_comes(queue, env).await;
}

async fn an_extended_delivery_stays_invisible(queue: &dyn Queue, env: &Env) {
    ok(queue.send(vec![message("g", "1")]).await);
    let taken_at = env.clock.now();
    let delivery = one(queue, env).await;
    env.until(taken_at + env.unit / 2).await;
    assert!(extend(queue, &delivery.receipt, env.unit).await);
    env.until(taken_at + env.unit + env.unit / 4).await;
    assert!(extend(queue, &delivery.receipt, env.unit / 2).await, "it is still in flight");
    let again = one(queue, env).await;
    assert!(env.clock.now() >= taken_at + env.unit + env.unit / 2);
    assert_eq!(again.attempt, 2);
}

async fn delayed_messages_take_their_place_when_due(queue: &dyn Queue, env: &Env) {
    let due = env.later();
    let delayed = QueueMessage { deliver_at: Some(due), ..message("g", "delayed") };
    let past = QueueMessage { deliver_at: Some(Timestamp::from_millis(0)), ..message("g", "past") };
    ok(queue.send(vec![delayed, past, message("g", "1"), message("g", "2")]).await);
    for id in ["past", "1"] {
        let delivery = one(queue, env).await;
        assert_eq!(delivery.id, id, "it holds up no other message");
        assert!(env.clock.now() < due, "this took too long to say anything");
        assert!(ack(queue, &delivery.receipt).await);
    }
    env.until(due).await;
    for id in if env.is_lazy { ["2", "delayed"] } else { ["delayed", "2"] } {
        let delivery = one(queue, env).await;
        assert_eq!(delivery.id, id, "the oldest due one");
        assert!(ack(queue, &delivery.receipt).await);
    }
    // Nothing else is in the queue: only the date can wake the waiter.
    let due = env.later();
    ok(queue.send(vec![QueueMessage { deliver_at: Some(due), ..message("g", "alone") }]).await);
    assert_eq!(one(queue, env).await.id, "alone");
    assert!(env.clock.now() >= due);
}

async fn repeated_ids_have_no_effect(queue: &dyn Queue, env: &Env) {
    ok(queue.send(vec![message("g", "1"), message("g", "1")]).await);
    ok(queue.send(vec![QueueMessage { body: "other".into(), ..message("g", "1") }]).await);
    ok(queue.send(vec![message("h", "1")]).await);
    let mut seen = BTreeSet::new();
    for _ in 0..2 {
        let delivery = one(queue, env).await;
        assert_eq!(delivery.body, "body 1");
        assert!(seen.insert(delivery.group.clone()), "{seen:?}");
        assert!(ack(queue, &delivery.receipt).await);
    }
    ok(queue.send(vec![message("g", "1")]).await);
    nothing_comes(queue, env).await;
    if env.skips_time {
        env.until(env.clock.now() + Duration::from_secs(5 * 60)).await;
        ok(queue.send(vec![message("g", "1")]).await);
        assert_eq!(one(queue, env).await.id, "1", "five minutes later it is a new message");
    }
}

async fn used_up_messages_are_put_aside_and_sent_again(queue: &dyn Queue, env: &Env, max_attempts: u32) {
    ok(queue.send(vec![message("g", "1"), message("g", "2"), message("g", "3"), message("h", "1")]).await);
    let held = ok(queue.receive(1, env.unit * 1000).await);
    assert_eq!(held.first().map(|delivery| delivery.group.as_str()), Some("g"));
    for delivery in held {
        assert!(reject(queue, &delivery.receipt, Duration::ZERO).await);
    }
    let mut delivered = BTreeMap::<String, u32>::new();
    delivered.insert("1".into(), 1);
    let mut other_group_waits = true;
    while other_group_waits || !delivered.contains_key("3") {
        let delivery = one(queue, env).await;
        if delivery.group == "h" {
            other_group_waits = false;
            assert!(ack(queue, &delivery.receipt).await);
            continue;
        }
        *delivered.entry(delivery.id.clone()).or_default() += 1;
        if delivery.id == "3" {
            assert!(ack(queue, &delivery.receipt).await);
        } else {
            assert!(reject(queue, &delivery.receipt, Duration::ZERO).await);
        }
    }
    assert_eq!(delivered, BTreeMap::from([("1".into(), max_attempts), ("2".into(), max_attempts), ("3".into(), 1)]));
    let letters = ok(queue.dead_letters(10).await);
    let found: Vec<_> = letters.iter().map(|letter| (letter.message.id.as_str(), letter.attempts)).collect();
    assert_eq!(found, [("1", max_attempts), ("2", max_attempts)], "oldest first");
    assert_eq!(letters.first().map(|letter| letter.message.clone()), Some(message("g", "1")));
    assert_eq!(ok(queue.dead_letters(1).await).len(), 1);
    nothing_comes(queue, env).await;

    assert_eq!(ok(queue.redrive("nobody").await), 0);
    ok(queue.send(vec![message("g", "4")]).await);
    assert_eq!(ok(queue.redrive("g").await), 2);
    assert!(ok(queue.dead_letters(10).await).is_empty());
    for id in ["4", "1", "2"] {
        let delivery = one(queue, env).await;
        assert_eq!((delivery.id.as_str(), delivery.attempt), (id, 1), "in order, with no attempts used");
        assert!(ack(queue, &delivery.receipt).await);
    }
    nothing_comes(queue, env).await;

    // Without a receive, a message whose last visibility ends is put aside all the same.
    ok(queue.send(vec![message("i", "1")]).await);
    for _ in 1..max_attempts {
        let delivery = one(queue, env).await;
        assert!(reject(queue, &delivery.receipt, Duration::ZERO).await);
    }
    let last = one(queue, env).await;
    assert_eq!(last.attempt, max_attempts);
    assert!(ok(queue.dead_letters(10).await).is_empty(), "the last attempt may still succeed");
    env.until(env.later()).await;
    for _ in 0..100 {
        if !env.is_lazy || !ok(queue.dead_letters(10).await).is_empty() {
            break;
        }
        nothing_comes(queue, env).await;
    }
    assert_eq!(ok(queue.dead_letters(10).await).len(), 1);
}

async fn impossible_requests_are_invalid(queue: &dyn Queue) {
    let long = QueueMessage { body: "x".repeat(ports::validate::MAX_MESSAGE + 1), ..message("g", "1") };
    for wrong in [message("", "1"), message("g", ""), long] {
        let outcome = queue.send(vec![message("g", "right"), wrong]).await;
        assert!(matches!(outcome, Err(Error::Invalid(_))));
    }
    ok(queue.send(Vec::new()).await);
    assert_eq!(ok(queue.redrive("g").await), 0);
}

async fn a_waiting_receive_is_woken(queue: Arc<dyn Queue>, env: &Env) {
    const WORKERS: usize = 8;
    let visibility = env.unit;
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                loop {
                    if let Some(delivery) = ok(queue.receive(1, visibility).await).pop() {
                        return delivery.group;
                    }
                }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    for n in 0..WORKERS {
        ok(queue.send(vec![message(&n.to_string(), "1")]).await);
    }
    let groups: BTreeSet<_> = join_all(workers).await.into_iter().flatten().collect();
    assert_eq!(groups.len(), WORKERS, "each of them got one");
}

async fn a_dropped_receive_loses_nothing(queue: &dyn Queue, env: &Env) {
    for n in 0..20_u32 {
        let mut waiting = Box::pin(queue.receive(1, env.unit));
        assert!(waiting.as_mut().now_or_never().is_none_or(|empty| ok(empty).is_empty()));
        ok(queue.send(vec![message("g", &n.to_string())]).await);
        drop(waiting);
        let delivery = one(queue, env).await;
        assert_eq!((delivery.id, delivery.attempt), (n.to_string(), 1));
        assert!(ack(queue, &delivery.receipt).await);
    }
}

async fn two_workers_never_hold_one_group(queue: Arc<dyn Queue>, env: &Env) {
    const GROUPS: usize = 5;
    const EACH: usize = 12;
    let sends = (0..GROUPS).map(|group| {
        let queue = queue.clone();
        async move {
            for n in 0..EACH {
                ok(queue.send(vec![message(&format!("g{group}"), &n.to_string())]).await);
            }
        }
    });
    let seen = Arc::new(Mutex::new(Seen::default()));
    let worker = || {
        let (queue, seen) = (queue.clone(), seen.clone());
        let visibility = env.unit * 100;
        let now = move |look: &mut dyn FnMut(&mut Seen)| look(&mut seen.lock());
        async move {
            loop {
                let mut finished = 0;
                now(&mut |seen| finished = seen.finished.values().map(Vec::len).sum());
                if finished == GROUPS * EACH {
                    return;
                }
                // The last messages go to one worker; the others look again whether all is done.
                let received = tokio::time::timeout(Duration::from_millis(50), queue.receive(4, visibility)).await;
                let received = received.map(ok).unwrap_or_default();
                for batch in received.chunk_by(|one, next| one.group == next.group) {
                    let Some(Delivery { group, .. }) = batch.first() else { continue };
                    now(&mut |seen| assert!(seen.held.insert(group.clone()), "two workers hold {group}"));
                    for _ in 0..3 {
                        tokio::task::yield_now().await;
                    }
                    now(&mut |seen| {
                        let ids = batch.iter().map(|delivery| delivery.id.clone());
                        seen.finished.entry(group.clone()).or_default().extend(ids);
                        seen.held.remove(group);
                    });
                    assert!(ok(queue.ack(&receipts(batch)).await));
                }
            }
        }
    };
    let workers: Vec<_> = (0..8).map(|_| tokio::spawn(worker())).collect();
    join_all(sends).await;
    for finished in join_all(workers).await {
        assert!(finished.is_ok(), "a worker panicked");
    }
    let finished = std::mem::take(&mut seen.lock().finished);
    assert_eq!(finished.len(), GROUPS);
    let in_order: Vec<String> = (0..EACH).map(|n| n.to_string()).collect();
    assert!(finished.values().all(|ids| *ids == in_order), "{finished:?}");
}

/// The record of the racing workers: the groups that are held now, and the finished messages, by group.
#[derive(Default)]
struct Seen {
    held: BTreeSet<String>,
    finished: BTreeMap<String, Vec<String>>,
}

fn message(group: &str, id: &str) -> QueueMessage {
    QueueMessage { group: group.into(), id: id.into(), body: format!("body {id}"), ..QueueMessage::default() }
}

async fn ack(queue: &dyn Queue, receipt: &Receipt) -> bool {
    ok(queue.ack(std::slice::from_ref(receipt)).await)
}

async fn extend(queue: &dyn Queue, receipt: &Receipt, visibility: Duration) -> bool {
    ok(queue.extend(std::slice::from_ref(receipt), visibility).await)
}

async fn reject(queue: &dyn Queue, receipt: &Receipt, delay: Duration) -> bool {
    ok(queue.reject(std::slice::from_ref(receipt), delay).await)
}

fn receipts(deliveries: &[Delivery]) -> Vec<Receipt> {
    deliveries.iter().map(|delivery| delivery.receipt.clone()).collect()
}

fn ids(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.id.as_str()).collect()
}

/// The next deliveries, all of one group because only one has any.
async fn batch(queue: &dyn Queue, max: usize, env: &Env) -> Vec<Delivery> {
    loop {
        let deliveries = ok(queue.receive(max, env.unit).await);
        if !deliveries.is_empty() {
            return deliveries;
        }
    }
}

/// The next delivery; an adapter may return from a receive with none when its longest wait is over.
async fn one(queue: &dyn Queue, env: &Env) -> Delivery {
    loop {
        let mut deliveries = ok(queue.receive(1, env.unit).await);
        assert!(deliveries.len() <= 1);
        if let Some(delivery) = deliveries.pop() {
            return delivery;
        }
    }
}

/// A waiting message is delivered at once, so a receive that returns nothing at once shows an empty queue.
async fn nothing_comes(queue: &dyn Queue, env: &Env) {
    let found = tokio::time::timeout(env.unit / 100, queue.receive(10, env.unit)).await;
    assert_eq!(found.map(ok).unwrap_or_default(), []);
}
