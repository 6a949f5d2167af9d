//! Limits across workers: as many as allowed through any of them, over a store on disk and over one in memory that races.

use async_trait::async_trait;
use buildscale_identity::{Allowance, Ledger, Limits, TurnTokens};
use domain::{Code, Error, Timestamp, UserId};
use embedded::{Options, Store};
use parking_lot::Mutex;
use ports::{Clock, Table};
use std::{sync::Arc, time::Duration};
use testkit::{
    TestClock, clock,
    fakes::{FakeTable, Faults},
};
use uuid::Uuid;

const ANN: UserId = UserId(Uuid::from_u128(1));
const BOB: UserId = UserId(Uuid::from_u128(2));

/// The usage of turns, set by the test.
#[derive(Default)]
struct Turns(Mutex<Vec<TurnTokens>>);

#[async_trait]
impl Ledger for Turns {
    async fn spent(&self, user: UserId, since: Timestamp, _: u64) -> Result<Vec<TurnTokens>, Error> {
        let mut all = if user == ANN { self.0.lock().clone() } else { Vec::new() };
        all.retain(|spent| spent.at >= since);
        all.sort_by_key(|spent| std::cmp::Reverse(spent.at));
        Ok(all)
    }
}

/// 64 tasks ask at once, each as a worker of its own; returns how many were let in, and the errors of the others.
async fn at_once(workers: &[Limits]) -> (usize, Vec<Error>) {
    let asking = (0..64).map(|n| {
        let limits = workers[n % workers.len()].clone();
        tokio::spawn(async move { limits.admit(ANN).await })
    });
    let answers = futures::future::join_all(asking).await;
    let refused: Vec<_> = answers.into_iter().filter_map(|answer| answer.unwrap().err()).collect();
    (64 - refused.len(), refused)
}

fn limits(table: Arc<dyn Table>, clock: Arc<TestClock>) -> Limits {
    Limits::new(table, clock, Arc::new(Turns::default()), Allowance::default())
}

#[tokio::test(start_paused = true)]
async fn exactly_twenty_a_minute_in_any_race() {
    for seed in 0..20 {
        let clock = Arc::new(TestClock::new(seed));
        let faults = Faults { yields: 0.8, ..Faults::none() };
        let table = Arc::new(FakeTable::new(clock.clone(), seed, faults));
        let workers: Vec<_> = (0..8).map(|_| limits(table.clone(), clock.clone())).collect();
        for minute in 0..3 {
            let (admitted, refused) = at_once(&workers).await;
            assert_eq!(admitted, 20, "seed {seed}, minute {minute}");
            let commits = table.commits();
            for error in refused {
                assert_eq!(error.code, Code::RateLimited);
                assert_eq!(
                    (&error.details["limit"], &error.details["retry_after_s"]),
                    (&"requests".into(), &61.into())
                );
            }
            assert_eq!(at_once(&workers).await.0, 0);
            assert_eq!(table.commits(), commits, "a refusal writes nothing");
            assert_eq!(workers[0].admit(BOB).await, Ok(()), "another person is another count");
            tokio::time::advance(Duration::from_secs(61)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn never_more_than_twenty_also_when_calls_fail_or_take_effect_unheard() {
    for seed in 0..50 {
        let clock = Arc::new(TestClock::new(seed));
        let table = Arc::new(FakeTable::new(clock.clone(), seed, Faults::some()));
        let workers: Vec<_> = (0..8).map(|_| limits(table.clone(), clock.clone())).collect();
        let (admitted, refused) = at_once(&workers).await;
        assert!(admitted <= 20, "seed {seed}: {admitted}");
        let known = [Code::RateLimited, Code::UpstreamUnavailable];
        assert!(refused.iter().all(|error| known.contains(&error.code)), "seed {seed}: {refused:?}");
    }
}

#[tokio::test(start_paused = true, flavor = "current_thread")]
async fn exactly_twenty_a_minute_over_the_store_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(TestClock::new(1));
    let store = Store::open(folder.path().join("t.sqlite3"), clock.clone(), Options::default()).unwrap();
    let workers: Vec<_> = (0..8).map(|_| limits(store.table(), clock.clone())).collect();
    for minute in 0..2 {
        let (admitted, _) = clock::holding_time(at_once(&workers)).await;
        assert_eq!(admitted, 20, "minute {minute}");
        tokio::time::advance(Duration::from_secs(61)).await;
    }
    store.close().await;
}

#[tokio::test(start_paused = true)]
async fn tokens_of_turns_that_ended_count_for_a_minute() {
    let clock = Arc::new(TestClock::new(1));
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
    let turns = Arc::new(Turns::default());
    let limits = Limits::new(table, clock.clone(), turns.clone(), Allowance { requests: 1000, tokens: 30_000 });
    let ends = |tokens| turns.0.lock().push(TurnTokens { at: clock.now(), tokens });
    ends(20_000);
    assert_eq!(limits.admit(ANN).await, Ok(()));
    tokio::time::advance(Duration::from_millis(20_500)).await;
    ends(9_999);
    assert_eq!(limits.admit(ANN).await, Ok(()), "one token is left");
    ends(1);
    let refused = limits.admit(ANN).await.unwrap_err();
    assert_eq!((refused.code, &refused.details["limit"]), (Code::RateLimited, &"tokens".into()));
    assert_eq!(refused.details["retry_after_s"], 40, "when the first turn leaves the window");
    assert_eq!(limits.admit(BOB).await, Ok(()));
    tokio::time::advance(Duration::from_secs(39)).await;
    assert!(limits.admit(ANN).await.is_err());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(limits.admit(ANN).await, Ok(()));
}
