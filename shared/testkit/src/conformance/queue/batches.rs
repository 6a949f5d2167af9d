//! Several messages of one group at once.

use super::{Env, ack, batch, message, nothing_comes, ok, one, receipts, reject};
use crate::Queue;
use std::time::Duration;

pub(super) async fn a_batch_is_in_order_and_locks_its_group(queue: &dyn Queue, env: &Env) {
    ok(queue.send((1..=6).map(|n| message("g", &n.to_string())).collect()).await);
    let mut expected = 1..=6;
    let mut batches = 0;
    while let Some(next) = expected.next() {
        let batch = batch(queue, 4, env).await;
        assert!((1..=4).contains(&batch.len()));
        let mut follow = Some(next);
        for delivery in &batch {
            assert_eq!(follow.take().or_else(|| expected.next()).map(|n| n.to_string()), Some(delivery.id.clone()));
            assert_eq!(delivery.attempt, 1);
        }
        // The last first: the group stays locked until all are settled.
        for delivery in batch.iter().rev() {
            nothing_comes(queue, env).await;
            assert!(ack(queue, &delivery.receipt).await);
        }
        batches += 1;
    }
    assert!(batches <= 6);
    nothing_comes(queue, env).await;
}

pub(super) async fn messages_given_back_of_a_batch_come_again_in_order(queue: &dyn Queue, env: &Env) {
    ok(queue.send((1..=6).map(|n| message("g", &n.to_string())).collect()).await);
    let first = batch(queue, 6, env).await;
    let (done, failed) = first.split_at(first.len() / 2);
    if !done.is_empty() {
        assert!(ok(queue.ack(&receipts(done)).await));
    }
    let rejected_at = env.clock.now();
    assert!(ok(queue.reject(&receipts(failed), env.unit).await));
    assert!(!ok(queue.ack(&receipts(failed)).await), "their receipts are stale");
    for n in done.len() + 1..=6 {
        let delivery = one(queue, env).await;
        assert_eq!(delivery.id, n.to_string());
        assert!(env.clock.now() >= rejected_at + env.unit, "the group rests meanwhile");
        assert!(ack(queue, &delivery.receipt).await);
    }
    // Only one in the middle is given back: those behind it come again, too, but not before those in front of it are settled.
    ok(queue.send((1..=3).map(|n| message("h", &n.to_string())).collect()).await);
    let all = batch(queue, 3, env).await;
    if let [first, second, third] = all.as_slice() {
        assert!(reject(queue, &second.receipt, Duration::ZERO).await);
        assert!(!ack(queue, &third.receipt).await);
        nothing_comes(queue, env).await;
        assert!(ack(queue, &first.receipt).await);
        for id in ["2", "3"] {
            let delivery = one(queue, env).await;
            assert_eq!(delivery.id, id);
            assert!(ack(queue, &delivery.receipt).await);
        }
    }
}

pub(super) async fn a_batch_times_out_and_is_extended_as_one(queue: &dyn Queue, env: &Env) {
    ok(queue.send((1..=3).map(|n| message("g", &n.to_string())).collect()).await);
    let taken_at = env.clock.now();
    let first = batch(queue, 3, env).await;
    env.until(taken_at + env.unit / 2).await;
    assert!(ok(queue.extend(&receipts(&first), env.unit).await));
    let again = one(queue, env).await;
    assert!(env.clock.now() >= taken_at + env.unit + env.unit / 2);
    assert_eq!((again.id.as_str(), again.attempt), ("1", 2));
    assert!(!ok(queue.ack(&receipts(&first)).await), "all of them timed out");
    assert!(!ok(queue.extend(&receipts(&first), env.unit).await));
    nothing_comes(queue, env).await;
    assert!(ack(queue, &again.receipt).await);
    for id in ["2", "3"] {
        let delivery = one(queue, env).await;
        assert_eq!(delivery.id, id);
        assert!(ack(queue, &delivery.receipt).await);
    }
}

pub(super) async fn no_batch_is_longer_than_promised(queue: &dyn Queue, env: &Env) {
    const MORE: usize = ports::MAX_BATCH + 10;
    ok(queue.send((0..MORE).map(|n| message("g", &n.to_string())).collect()).await);
    let mut next = 0;
    while next < MORE {
        let batch = ok(queue.receive(10 * MORE, env.unit).await);
        assert!(batch.len() <= ports::MAX_BATCH);
        for delivery in &batch {
            assert_eq!(delivery.id, next.to_string());
            next += 1;
        }
        if !batch.is_empty() {
            assert!(ok(queue.ack(&receipts(&batch)).await));
        }
    }
}
