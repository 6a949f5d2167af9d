//! The table on DynamoDB passes the suite, and tells unknown effects from known ones.
#![expect(clippy::unwrap_used, reason = "tests")]
use aws::{AwsFault, Class, DynamoTable};
use domain::Timestamp;
use emulators::{Emulator, Fate, FaultProxy, account};
use parking_lot::Mutex;
use ports::{Error, Expect, Key, MAX_WRITES, Page, Query, SystemClock, Table, Write};
use std::{
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use testkit::{
    Queue,
    conformance::{self, Env},
    fakes::{FakeQueue, Faults},
};

async fn table(emulator: &Emulator, endpoint: &str, name: &str) -> DynamoTable {
    account::table(&account::sdk(&emulator.endpoint()), name).await.unwrap();
    DynamoTable::new(aws_sdk_dynamodb::Client::new(&account::sdk(endpoint)), name, Arc::new(SystemClock))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_conforms() {
    let emulator = Emulator::dynamodb().await.unwrap();
    let made = AtomicU32::new(0);
    let env = Env { unit: Duration::from_secs(6), ..Env::real(Arc::new(SystemClock)) };
    conformance::table(&env, || async {
        let name = format!("items{}", made.fetch_add(1, Ordering::Relaxed));
        Arc::new(table(&emulator, &emulator.endpoint(), &name).await) as Arc<dyn Table>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_send_conform_in_two_calls() {
    let emulator = Emulator::dynamodb().await.unwrap();
    let made = AtomicU32::new(0);
    let env = Env { unit: Duration::from_secs(6), ..Env::real(Arc::new(SystemClock)) };
    conformance::sending(&env, false, || async {
        let name = format!("sends{}", made.fetch_add(1, Ordering::Relaxed));
        let table = table(&emulator, &emulator.endpoint(), &name).await;
        let queue = FakeQueue::new(Arc::new(SystemClock), 0, Faults::none(), 5);
        (Arc::new(table) as Arc<dyn Table>, Arc::new(queue) as Arc<dyn Queue>)
    })
    .await;
}

/// Every request goes through a proxy that asks for its fate by its number, and notes its operation.
struct Faulty {
    table: DynamoTable,
    requests: Arc<Mutex<Vec<String>>>,
    _proxy: FaultProxy,
    emulator: Emulator,
}

async fn faulty(fate: impl Fn(usize) -> Fate + Send + Sync + 'static) -> Faulty {
    let emulator = Emulator::dynamodb().await.unwrap();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    let proxy = FaultProxy::start(&emulator.endpoint(), move |head, _| {
        let target = head.headers.get("x-amz-target").map(|target| target.to_str().unwrap().to_owned());
        let mut seen = seen.lock();
        seen.push(target.unwrap().rsplit('.').next().unwrap().to_owned());
        fate(seen.len())
    })
    .await
    .unwrap();
    let table = table(&emulator, proxy.endpoint(), "items").await;
    Faulty { table, requests, _proxy: proxy, emulator }
}

fn put(n: u32, expect: Expect) -> Write {
    Write::put(Key::new("p", n.to_string()), "1", expect)
}

fn class(outcome: &Result<(), Error>) -> Option<Class> {
    let Err(Error::Unavailable { .. }) = outcome else { return None };
    outcome.as_ref().err()?.source()?.downcast_ref::<AwsFault>().map(|fault| fault.class)
}

#[tokio::test]
async fn a_conditional_write_whose_answer_was_lost_is_neither_done_nor_lost() {
    let world = faulty(|number| if number == 1 { Fate::AnswerLost } else { Fate::Pass }).await;
    let outcome = world.table.commit(vec![put(1, Expect::Absent)]).await;
    assert_eq!(class(&outcome), Some(Class::Unknown), "{outcome:?}");
    assert_eq!(*world.requests.lock(), ["PutItem", "PutItem"], "the SDK repeated it, and no other code did");
    let found = world.table.get(&Key::new("p", "1")).await.unwrap().unwrap();
    assert_eq!(found.rev, 1, "it had its effect, once");
    let outcome = world.table.commit(vec![put(1, Expect::Absent)]).await;
    assert!(matches!(outcome, Err(Error::Conflict { write: 0 })), "an answered refusal is a conflict: {outcome:?}");
}

#[tokio::test]
async fn a_transaction_whose_answer_was_lost_is_told_by_its_token() {
    let world = faulty(|number| if number == 1 { Fate::AnswerLost } else { Fate::Pass }).await;
    world.table.commit(vec![put(1, Expect::Absent), put(2, Expect::Absent)]).await.unwrap();
    assert_eq!(*world.requests.lock(), ["TransactWriteItems", "TransactWriteItems"]);
}

#[tokio::test]
async fn a_transaction_that_is_still_under_way_is_asked_for_again_by_its_token() {
    // More attempts than the SDK makes by itself.
    let fate = |number| match number {
        1..=4 => Fate::json_after(400, "TransactionInProgressException"),
        _ => Fate::Pass,
    };
    let world = faulty(fate).await;
    world.table.commit(vec![put(1, Expect::Absent), put(2, Expect::Absent)]).await.unwrap();
    for number in ["1", "2"] {
        assert_eq!(world.table.get(&Key::new("p", number)).await.unwrap().unwrap().rev, 1, "written once");
    }
    let world = faulty(|_| Fate::json_after(400, "TransactionInProgressException")).await;
    let outcome = world.table.commit(vec![put(1, Expect::Absent), put(2, Expect::Absent)]).await;
    assert_eq!(class(&outcome), Some(Class::Unknown), "it may come to its end yet: {outcome:?}");
}

#[tokio::test]
async fn a_request_that_never_arrived_is_repeated_and_done_once() {
    let world = faulty(|number| if number == 1 { Fate::Lost } else { Fate::Pass }).await;
    world.table.commit(vec![put(1, Expect::Absent)]).await.unwrap();
    assert_eq!(world.table.get(&Key::new("p", "1")).await.unwrap().unwrap().rev, 1);
}

#[tokio::test]
async fn throttling_is_waited_out_and_then_told_as_throttling() {
    let throttled = |_| {
        let code = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
        Fate::Answered(400, format!(r#"{{"__type":"{code}","message":"slowly"}}"#))
    };
    let world = faulty(throttled).await;
    let outcome = world.table.commit(vec![put(1, Expect::Absent)]).await;
    assert_eq!(class(&outcome), Some(Class::Throttled), "{outcome:?}");
    assert_eq!(world.requests.lock().len(), 3, "the standard mode's attempts and no more");
}

#[tokio::test]
async fn one_write_is_one_request_and_reads_never_scan() {
    let world = faulty(|_| Fate::Pass).await;
    let table = &world.table;
    for expect in [Expect::Absent, Expect::Rev(1), Expect::Present, Expect::Any] {
        table.commit(vec![put(1, expect)]).await.unwrap();
    }
    table.commit(vec![Write::check(Key::new("p", "1"), Expect::Rev(4))]).await.unwrap();
    table.commit(vec![put(2, Expect::Any), Write::check(Key::new("p", "1"), Expect::Any)]).await.unwrap();
    table.commit(vec![put(3, Expect::Any), put(4, Expect::Absent)]).await.unwrap();
    table.commit(vec![Write::delete(Key::new("p", "1"), Expect::Rev(4))]).await.unwrap();
    table.query(&Query::all("p", 10)).await.unwrap();
    let expected = [
        "PutItem",
        "PutItem",
        "UpdateItem",
        "UpdateItem",
        "GetItem",
        "UpdateItem",
        "TransactWriteItems",
        "DeleteItem",
        "Query",
    ];
    assert_eq!(*world.requests.lock(), expected);
}

/// DynamoDB deletes expired items within days, and counts them against the limit of a page until then.
#[tokio::test]
async fn a_page_of_one_behind_many_expired_items_is_a_few_requests() {
    let world = faulty(|_| Fate::Pass).await;
    let table = &world.table;
    let listed = |n: u32| put(n, Expect::Absent).indexed(Key::new("i", n.to_string()));
    for some in (100..300).collect::<Vec<u32>>().chunks(MAX_WRITES) {
        let expired = some.iter().map(|n| listed(*n).expiring(Timestamp::from_millis(1)));
        table.commit(expired.collect()).await.unwrap();
    }
    table.commit((300..303).map(listed).collect()).await.unwrap();
    let keys = |page: &Page| page.items.iter().map(|item| item.key.sk.clone()).collect::<Vec<_>>();
    for by_index in [false, true] {
        let ask = async |query: Query| match by_index {
            true => table.query_index(&query).await.unwrap(),
            false => table.query(&query).await.unwrap(),
        };
        let of = |limit| Query::all(if by_index { "i" } else { "p" }, limit);
        world.requests.lock().clear();
        let first = ask(of(1)).await;
        let asked = world.requests.lock().len();
        assert!(keys(&first) == ["300"] && asked <= 5, "{by_index}: {first:?} by {asked} requests");
        let rest = ask(of(2).after(first.next)).await;
        assert_eq!(keys(&rest), ["301", "302"], "{by_index}");
    }
}

/// A writer that appends to a log as the runtime does: after an unknown effect it reads, and then decides.
#[tokio::test]
async fn nothing_is_lost_or_written_twice_with_any_messages_lost_on_the_way() {
    let fate = |number: usize| match number {
        n if n % 11 == 0 => {
            let code = "com.amazonaws.dynamodb.v20120810#ThrottlingException";
            Fate::Answered(400, format!(r#"{{"__type":"{code}","message":"slowly"}}"#))
        }
        n if n % 7 == 0 => Fate::Lost,
        n if n % 5 == 0 => Fate::Answered(500, r#"{"__type":"InternalServerError","message":"sorry"}"#.into()),
        n if n % 3 == 0 => Fate::AnswerLost,
        _ => Fate::Pass,
    };
    let world = faulty(fate).await;
    let (mut number, mut unknown, total) = (0_u32, 0, 16);
    while number < total {
        let entry = Write::put(Key::new("log", format!("{number:03}")), format!("\"{number}\""), Expect::Absent);
        // Every fourth step is a transaction with its counter.
        let mut writes = vec![entry];
        if number % 4 == 0 {
            let expect = if number == 0 { Expect::Absent } else { Expect::Rev(u64::from(number / 4)) };
            writes.push(Write::put(Key::new("counter", "1"), "1", expect));
        }
        match world.table.commit(writes).await {
            Ok(()) => number += 1,
            Err(Error::Unavailable { .. }) => {
                unknown += 1;
                loop {
                    match world.table.get(&Key::new("log", format!("{number:03}"))).await {
                        Ok(found) => {
                            number += u32::from(found.is_some());
                            break;
                        }
                        Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error}"),
                    }
                }
            }
            Err(error) => panic!("there is no other writer, so there is no conflict: {error}"),
        }
    }
    assert!(unknown > 0, "the test says nothing");
    let direct = DynamoTable::new(
        aws_sdk_dynamodb::Client::new(&account::sdk(&world.emulator.endpoint())),
        "items",
        Arc::new(SystemClock),
    );
    let page = direct.query(&ports::Query::all("log", 100)).await.unwrap();
    assert!(page.items.len() == total as usize && page.items.iter().all(|item| item.rev == 1));
    assert_eq!(direct.get(&Key::new("counter", "1")).await.unwrap().unwrap().rev, u64::from(total / 4));
}
