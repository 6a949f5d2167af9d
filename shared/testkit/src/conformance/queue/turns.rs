//! The order of turns: guarantees that an adapter may give beyond the port.

use super::{Env, ack, batch, message, ok, one, receipts, reject};
use crate::Queue;
use ports::{QueueMessage, lane};
use std::{future::Future, sync::Arc, time::Duration};

/// Guarantees that an adapter may give beyond the port: it takes lanes in turn, and within a lane the highest priority, then the longest
/// wait; it counts an attempt only for the first of a batch; and it knows the waiting messages of a lane. SQS promises none of it.
pub async fn queue_in_turn<F: Future<Output = Arc<dyn Queue>>>(env: &Env, fresh: impl Fn() -> F) {
    a_lane_waits_for_one_turn_of_the_others(&*fresh().await, env).await;
    higher_priorities_go_first_but_not_inside_a_group(&*fresh().await, env).await;
    a_message_that_only_came_along_is_not_blamed(&*fresh().await, env).await;
    a_lane_knows_what_waits(&*fresh().await, env).await;
}

async fn a_lane_waits_for_one_turn_of_the_others(queue: &dyn Queue, env: &Env) {
    let crowd = (0..200).map(|n| message(&format!("task/big/{n}"), "1"));
    ok(queue.send(crowd.collect()).await);
    ok(queue.send(["task/small/1", "chat/big/1"].map(|group| message(group, "1")).into()).await);
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let delivery = one(queue, env).await;
        seen.push(lane(&delivery.group).to_owned());
        assert!(ack(queue, &delivery.receipt).await);
    }
    for waiting in ["task/small", "chat/big"] {
        assert!(seen.iter().any(|lane| lane == waiting), "{waiting} waits behind {seen:?}");
    }
}

async fn higher_priorities_go_first_but_not_inside_a_group(queue: &dyn Queue, env: &Env) {
    let with = |group: &str, id: &str, priority| QueueMessage { priority, ..message(group, id) };
    let messages = vec![
        with("task/w/low", "1", -1),
        with("task/w/usual", "1", 0),
        with("task/w/usual", "2", 9),
        with("task/w/older", "1", 5),
        with("task/w/high", "1", 5),
    ];
    ok(queue.send(messages).await);
    for (group, id) in [("older", "1"), ("high", "1"), ("usual", "1"), ("usual", "2"), ("low", "1")] {
        let delivery = one(queue, env).await;
        assert_eq!((delivery.group.as_str(), delivery.id.as_str()), (format!("task/w/{group}").as_str(), id));
        assert!(ack(queue, &delivery.receipt).await);
    }
}

async fn a_message_that_only_came_along_is_not_blamed(queue: &dyn Queue, env: &Env) {
    ok(queue.send((1..=3).map(|n| message("g", &n.to_string())).collect()).await);
    for attempt in 1..=3 {
        let batch = batch(queue, 3, env).await;
        assert_eq!(batch.first().map(|first| (first.id.as_str(), first.attempt)), Some(("1", attempt)));
        assert!(attempt == 1 || batch.len() == 1, "a message that was tried before comes alone");
        assert!(ok(queue.reject(&receipts(&batch), Duration::ZERO).await));
    }
    assert!(ack(queue, &one(queue, env).await.receipt).await);
    let second = one(queue, env).await;
    assert_eq!((second.id.as_str(), second.attempt), ("2", 1));
}

async fn a_lane_knows_what_waits(queue: &dyn Queue, env: &Env) {
    ok(queue.send(vec![message("task/w/1", "1"), message("task/w/1", "2"), message("task/v/1", "1")]).await);
    ok(queue.send(vec![QueueMessage { deliver_at: Some(env.later()), ..message("task/w/2", "1") }]).await);
    assert_eq!(ok(queue.waiting("task/w").await), 2, "neither those of others nor those that are not due");
    assert_eq!(ok(queue.waiting("chat/w").await), 0);
    let taken = one(queue, env).await;
    assert_eq!(ok(queue.waiting(lane(&taken.group)).await), 1, "nor those in flight");
    assert!(reject(queue, &taken.receipt, Duration::ZERO).await);
    assert_eq!(ok(queue.waiting(lane(&taken.group)).await), 2);
}
