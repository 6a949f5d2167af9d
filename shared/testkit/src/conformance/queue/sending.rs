//! Commits that send: the suite of a table together with the queue that its messages go to.

use super::{Env, ack, message, nothing_comes, ok, one};
use crate::Queue;
use ports::{Error, Expect, Key, QueueMessage, Result, Table, Write, validate::MAX_MESSAGE};
use std::{future::Future, sync::Arc};

type Stores = (Arc<dyn Table>, Arc<dyn Queue>);

/// Holds a table to its documentation of [`Table::commit_sending`]. `fresh` makes one with the queue beside it, which is in the same store if
/// `is_one_store`.
pub async fn sending<F: Future<Output = Stores>>(env: &Env, is_one_store: bool, fresh: impl Fn() -> F) {
    writes_and_messages_are_both_there(&fresh().await, env, is_one_store).await;
    a_commit_that_is_refused_sends_nothing(&fresh().await, env).await;
    messages_are_sent_as_by_the_queue(&fresh().await, env).await;
    messages_of_a_commit_that_makes_an_item_are_sent_once(&fresh().await, env).await;
    if is_one_store {
        a_waiting_receive_is_woken_by_a_commit(&fresh().await, env).await;
    }
}

fn put(sk: &str) -> Vec<Write> {
    vec![Write::put(Key::new("p", sk), "1", Expect::Absent)]
}

/// A write that succeeds as often as it is asked for.
fn replace(sk: &str) -> Vec<Write> {
    vec![Write::put(Key::new("p", sk), "1", Expect::Any)]
}

async fn is_there((table, _): &Stores, sk: &str) -> bool {
    ok(table.get(&Key::new("p", sk)).await).is_some()
}

/// Commits and sends as an actor does.
async fn commit((table, queue): &Stores, writes: Vec<Write>, messages: Vec<QueueMessage>) -> Result<()> {
    table.commit_sending(writes, messages.clone()).await?;
    if table.sends() { Ok(()) } else { queue.send(messages).await }
}

/// The ids of the next messages, each settled at once.
async fn next_ids((_, queue): &Stores, env: &Env, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let delivery = one(&**queue, env).await;
        assert!(ack(&**queue, &delivery.receipt).await);
        ids.push(delivery.id);
    }
    ids
}

async fn writes_and_messages_are_both_there(stores: &Stores, env: &Env, is_one_store: bool) {
    let (table, queue) = stores;
    ok(queue.send(vec![message("g", "1")]).await);
    assert_eq!(table.sends(), is_one_store);
    ok(table.commit_sending(put("a"), vec![message("g", "2"), message("g", "3")]).await);
    assert!(is_there(stores, "a").await);
    if !is_one_store {
        assert_eq!(next_ids(stores, env, 1).await, ["1"]);
        nothing_comes(&**queue, env).await;
        ok(queue.send(vec![message("g", "2"), message("g", "3")]).await);
    }
    ok(queue.send(vec![message("g", "4")]).await);
    let expected = if is_one_store { &["1", "2", "3", "4"][..] } else { &["2", "3", "4"] };
    assert_eq!(next_ids(stores, env, expected.len()).await, expected, "in the order of sending");
    ok(table.commit_sending(put("b"), Vec::new()).await);
    assert!(is_there(stores, "b").await, "no message is fine");
    nothing_comes(&**queue, env).await;
}

async fn a_commit_that_is_refused_sends_nothing(stores: &Stores, env: &Env) {
    let (table, queue) = stores;
    ok(table.commit(put("a")).await);
    let taken = table.commit_sending([put("b"), put("a")].concat(), vec![message("g", "1")]).await;
    assert!(matches!(taken, Err(Error::Conflict { write: 1 })), "{taken:?}");
    let long = QueueMessage { body: "x".repeat(MAX_MESSAGE + 1), ..message("g", "1") };
    for wrong in [message("", "1"), message("g", ""), long] {
        let refused = table.commit_sending(put("b"), vec![message("g", "1"), wrong]).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    let refused = table.commit_sending([put("b"), put("b")].concat(), vec![message("g", "1")]).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert!(!is_there(stores, "b").await, "nothing was written");
    nothing_comes(&**queue, env).await;
}

async fn messages_are_sent_as_by_the_queue(stores: &Stores, env: &Env) {
    let (_, queue) = stores;
    let due = env.later();
    let delayed = QueueMessage { deliver_at: Some(due), ..message("h", "delayed") };
    ok(queue.send(vec![message("g", "1")]).await);
    ok(commit(stores, replace("a"), vec![message("g", "2"), delayed]).await);
    // The same ids again have no effect, whichever way they come.
    ok(commit(stores, replace("a"), vec![message("g", "1"), message("g", "2")]).await);
    ok(queue.send(vec![message("g", "2")]).await);
    assert_eq!(next_ids(stores, env, 2).await, ["1", "2"]);
    nothing_comes(&**queue, env).await;
    assert!(env.clock.now() < due, "this took too long to say anything");
    assert_eq!(next_ids(stores, env, 1).await, ["delayed"]);
    assert!(env.clock.now() >= due);
}

async fn messages_of_a_commit_that_makes_an_item_are_sent_once(stores: &Stores, env: &Env) {
    let makes_one = || [replace("a"), put("b")].concat();
    let messages = || vec![message("g", "1"), message("g", "2")];
    ok(commit(stores, makes_one(), messages()).await);
    for _ in 0..2 {
        // Also once one of them is settled.
        let again = commit(stores, makes_one(), messages()).await;
        assert!(matches!(again, Err(Error::Conflict { write: 1 })), "{again:?}");
        let delivery = one(&*stores.1, env).await;
        assert!(ack(&*stores.1, &delivery.receipt).await);
    }
    nothing_comes(&*stores.1, env).await;
}

async fn a_waiting_receive_is_woken_by_a_commit(stores: &Stores, env: &Env) {
    let (queue, visibility) = (stores.1.clone(), env.unit);
    let waiting = tokio::spawn(async move {
        loop {
            if let Some(delivery) = ok(queue.receive(1, visibility).await).pop() {
                return delivery.id;
            }
        }
    });
    tokio::task::yield_now().await;
    ok(commit(stores, put("a"), vec![message("g", "1")]).await);
    assert_eq!(waiting.await.ok().as_deref(), Some("1"));
}
