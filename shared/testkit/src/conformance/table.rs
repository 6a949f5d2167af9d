//! The table's suite.

use super::Env;
use futures::future::join_all;
use ports::{Error, Expect, Item, Key, MAX_BODY, MAX_WRITES, Page, Query, Result, Table, Write};
use std::{future::Future, sync::Arc};

/// Holds a table to its documentation.
pub async fn table<F: Future<Output = Arc<dyn Table>>>(env: &Env, fresh: impl Fn() -> F) {
    items_are_read_as_they_were_written(&*fresh().await, env).await;
    expectations_decide(&*fresh().await).await;
    commits_are_all_or_nothing(&*fresh().await).await;
    impossible_requests_are_invalid(&*fresh().await).await;
    ranges_are_ordered_bytes(&*fresh().await).await;
    pages_join_up(&*fresh().await).await;
    pages_end_at_a_mebibyte(&*fresh().await).await;
    cursors_are_checked(&*fresh().await).await;
    the_index_follows(&*fresh().await).await;
    expired_items_are_gone(&*fresh().await, env).await;
    racing_writers_lose_no_update(fresh().await).await;
}

async fn items_are_read_as_they_were_written(table: &dyn Table, env: &Env) {
    let (key, index) = (Key::new("p/é", "s\u{1}"), Key::new("i", "é"));
    assert_eq!(ok(table.get(&key).await), None);
    ok(table.commit(Vec::new()).await);
    let (body, expires_at) = (r#"{"text":"é\u0000"}"#.to_owned(), Some(env.later()));
    let put = Write::put(key.clone(), &body, Expect::Absent).indexed(index.clone()).expiring(env.later());
    ok(table.commit(vec![put]).await);
    let found = ok(table.get(&key).await);
    assert_eq!(found, Some(Item { key: key.clone(), rev: 1, body, index: Some(index), expires_at }));
    let longest = "x".repeat(MAX_BODY);
    ok(table.commit(vec![Write::put(key.clone(), &longest, Expect::Rev(1))]).await);
    let found = ok(table.get(&key).await);
    assert_eq!(found, Some(Item { key: key.clone(), rev: 2, body: longest, index: None, expires_at: None }));
    ok(table.commit(vec![Write::delete(key.clone(), Expect::Rev(2))]).await);
    assert_eq!(ok(table.get(&key).await), None);
    ok(table.commit(vec![Write::put(key.clone(), "1", Expect::Any)]).await);
    assert_eq!(rev(table, &key).await, Some(1), "an item that is made anew begins anew");
}

async fn expectations_decide(table: &dyn Table) {
    let (there, absent) = (Key::new("p", "there"), Key::new("p", "absent"));
    ok(table.commit(vec![Write::put(there.clone(), "1", Expect::Any)]).await);
    let cases = [
        (Expect::Absent, false, true),
        (Expect::Rev(1), true, false),
        (Expect::Rev(0), false, false),
        (Expect::Rev(2), false, false),
        (Expect::Rev(u64::MAX), false, false),
        (Expect::Present, true, false),
        (Expect::Any, true, true),
    ];
    for (expect, holds_there, holds_absent) in cases {
        for (key, holds) in [(&there, holds_there), (&absent, holds_absent)] {
            let before = ok(table.get(key).await);
            let checked = table.commit(vec![Write::check(key.clone(), expect)]).await;
            assert_eq!(holds, conflict(checked).is_none(), "check {key:?} {expect:?}");
            assert_eq!(ok(table.get(key).await), before, "a check changes nothing");
            for write in [Write::put(key.clone(), "2", expect), Write::delete(key.clone(), expect)] {
                let outcome = conflict(table.commit(vec![write]).await);
                assert_eq!(outcome, if holds { None } else { Some(0) }, "{key:?} {expect:?}");
                restore(table, key, before.is_some()).await;
            }
        }
    }
}

/// Back to revision 1 or absent.
async fn restore(table: &dyn Table, key: &Key, present: bool) {
    ok(table.commit(vec![Write::delete(key.clone(), Expect::Any)]).await);
    if present {
        ok(table.commit(vec![Write::put(key.clone(), "1", Expect::Absent)]).await);
    }
}

async fn commits_are_all_or_nothing(table: &dyn Table) {
    let keys: Vec<Key> = (0..MAX_WRITES).map(|n| Key::new(format!("p{}", n % 7), format!("{n:03}"))).collect();
    let puts = |expect| keys.iter().map(move |key| Write::put(key.clone(), "1", expect)).collect::<Vec<_>>();
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return };
    ok(table.commit(vec![Write::put(last.clone(), "0", Expect::Absent)]).await);
    let outcome = conflict(table.commit(puts(Expect::Absent)).await);
    assert_eq!(outcome, Some(MAX_WRITES - 1), "the position of the first write that lost");
    assert_eq!(rev(table, first).await, None);
    ok(table.commit(puts(Expect::Any)).await);
    for key in &keys {
        assert_eq!(rev(table, key).await, Some(if key == last { 2 } else { 1 }));
    }
    let mixed = vec![
        Write::delete(first.clone(), Expect::Present),
        Write::check(last.clone(), Expect::Rev(1)),
        Write::put(Key::new("new", "new"), "1", Expect::Absent),
    ];
    assert_eq!(conflict(table.commit(mixed).await), Some(1));
    assert_eq!((rev(table, first).await, rev(table, &Key::new("new", "new")).await), (Some(1), None));
}

async fn impossible_requests_are_invalid(table: &dyn Table) {
    let put = |pk: &str, sk: &str| Write::put(Key::new(pk, sk), "1", Expect::Any);
    let too_many = (0..=MAX_WRITES).map(|n| put("p", &n.to_string())).collect();
    let too_long = Write::put(Key::new("p", "s"), "x".repeat(table.max_body() + 1), Expect::Any);
    let cases = [
        too_many,
        vec![put("p", "s"), put("p", "t"), put("p", "s")],
        vec![put("p", "s"), Write::check(Key::new("p", "s"), Expect::Any)],
        vec![put("", "s")],
        vec![put("p", "")],
        vec![too_long],
        vec![put("p", "s").indexed(Key::new("", "s"))],
    ];
    for (case, writes) in cases.into_iter().enumerate() {
        assert!(matches!(table.commit(writes).await, Err(Error::Invalid(_))), "case {case}");
    }
    assert_eq!(ok(table.query(&Query::all("p", 10)).await), Page::default(), "nothing was written");
    assert!(matches!(table.query(&Query::all("p", 0)).await, Err(Error::Invalid(_))));
}

async fn ranges_are_ordered_bytes(table: &dyn Table) {
    let sorted = ["A", "a", "a/", "a/1", "a/10", "a/2", "a/é", "a/\u{ffff}", "a/😀", "a0", "b"];
    for sk in sorted.iter().rev() {
        ok(table.commit(vec![Write::put(Key::new("p", *sk), "1", Expect::Absent)]).await);
        ok(table.commit(vec![Write::put(Key::new("p2", *sk), "1", Expect::Absent)]).await);
    }
    let all = Query::all("p", 100);
    assert_eq!(sort_keys(table, &all).await, sorted);
    let backwards: Vec<&str> = sorted.iter().rev().copied().collect();
    assert_eq!(sort_keys(table, &all.clone().descending()).await, backwards);
    let prefix = Query::prefix("p", "a/", 100);
    assert_eq!(sort_keys(table, &prefix).await, sorted.get(2..9).unwrap_or_default());
    let bounds = Query { from: Some("a/1".into()), to: Some("a/2".into()), ..all.clone() };
    assert_eq!(sort_keys(table, &bounds).await, ["a/1", "a/10"], "from is inclusive, to is exclusive");
    assert_eq!(sort_keys(table, &bounds.clone().descending()).await, ["a/10", "a/1"]);
    let empty = Query { from: Some("b".into()), to: Some("a".into()), ..all };
    assert!(sort_keys(table, &empty).await.is_empty());
    assert!(sort_keys(table, &Query::all("nobody", 5)).await.is_empty());
}

async fn pages_join_up(table: &dyn Table) {
    for n in 0..25 {
        let put = Write::put(Key::new("p", format!("{n:02}")), "1", Expect::Absent);
        ok(table.commit(vec![put.indexed(Key::new("i", format!("{}", n % 3)))]).await);
    }
    for limit in [1, 4, 24, 25, 26] {
        for query in [Query::all("p", limit), Query::all("p", limit).descending()] {
            let (items, pages) = drain(table, &query, false).await;
            let mut expected: Vec<String> = (0..25).map(|n| format!("{n:02}")).collect();
            if query.descending {
                expected.reverse();
            }
            assert_eq!(items.iter().map(|item| &item.key.sk).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
            assert!(pages.iter().all(|length| *length <= limit), "{pages:?}");
        }
        let by_index = Query { from: Some("1".into()), ..Query::all("i", limit) };
        for query in [by_index.clone(), by_index.descending()] {
            let (items, _) = eventually(table, &query, 16).await;
            let mut expected: Vec<String> = [1, 2]
                .iter()
                .flat_map(|rest| (0..25).filter(move |n| n % 3 == *rest))
                .map(|n| format!("{n:02}"))
                .collect();
            if query.descending {
                expected.reverse();
            }
            assert_eq!(items.iter().map(|item| &item.key.sk).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        }
    }
}

async fn pages_end_at_a_mebibyte(table: &dyn Table) {
    let body = "x".repeat(300 * 1024);
    for n in 0..5 {
        ok(table.commit(vec![Write::put(Key::new("p", n.to_string()), &body, Expect::Absent)]).await);
    }
    let (items, pages) = drain(table, &Query::all("p", 100), false).await;
    assert_eq!(items.len(), 5);
    assert!(pages.iter().all(|length| *length <= 3), "3 bodies fit into 1 MiB: {pages:?}");
}

async fn cursors_are_checked(table: &dyn Table) {
    for n in 0..3 {
        let put = Write::put(Key::new("p", n.to_string()), "1", Expect::Absent);
        ok(table.commit(vec![put.indexed(Key::new("i", n.to_string()))]).await);
    }
    let query = Query::all("p", 1);
    let Some(cursor) = ok(table.query(&query).await).next else { panic!("there is more") };
    for broken in ["", "x", "0", &cursor[1..], &format!("{cursor}0")] {
        let query = query.clone().after(Some(broken.to_owned()));
        assert!(matches!(table.query(&query).await, Err(Error::Invalid(_))), "{broken:?}");
        assert!(matches!(table.query_index(&query).await, Err(Error::Invalid(_))), "{broken:?}");
    }
}

async fn the_index_follows(table: &dyn Table) {
    let (one, other) = (Key::new("p", "1"), Key::new("q", "2"));
    let put = |key: &Key, at: &str| Write::put(key.clone(), "1", Expect::Any).indexed(Key::new("i", at));
    ok(table.commit(vec![put(&one, "b"), put(&other, "a")]).await);
    let query = Query::all("i", 10);
    let keys = async |count| {
        let (items, _) = eventually(table, &query, count).await;
        items.into_iter().map(|item| item.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(2).await, [other.clone(), one.clone()], "in the order of the index");
    ok(table.commit(vec![put(&other, "c")]).await);
    for _ in 0..100 {
        if keys(2).await == [one.clone(), other.clone()] {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(keys(2).await, [one.clone(), other.clone()], "moved");
    ok(table.commit(vec![Write::put(one.clone(), "1", Expect::Any)]).await);
    assert_eq!(keys(1).await.as_slice(), std::slice::from_ref(&other), "taken out");
    ok(table.commit(vec![Write::delete(other, Expect::Any)]).await);
    assert!(keys(0).await.is_empty(), "deleted");
}

async fn expired_items_are_gone(table: &dyn Table, env: &Env) {
    let key = Key::new("p", "1");
    let at = env.later();
    let put = Write::put(key.clone(), "1", Expect::Absent).indexed(Key::new("i", "1"));
    ok(table.commit(vec![put.expiring(at), Write::put(Key::new("p", "2"), "2", Expect::Absent)]).await);
    assert_eq!(rev(table, &key).await, Some(1));
    env.until(at).await;
    assert_eq!(rev(table, &key).await, None);
    assert_eq!(sort_keys(table, &Query::all("p", 1)).await, ["2"], "also a page of one is full");
    assert!(eventually(table, &Query::all("i", 10), 0).await.0.is_empty());
    assert_eq!(conflict(table.commit(vec![Write::check(key.clone(), Expect::Present)]).await), Some(0));
    ok(table.commit(vec![Write::put(key.clone(), "3", Expect::Absent)]).await);
    assert_eq!(rev(table, &key).await, Some(1), "it begins anew");
    // The commit after next may sweep expired items: the new item is not one.
    env.until(env.later()).await;
    ok(table.commit(vec![Write::put(Key::new("p", "4"), "4", Expect::Absent)]).await);
    assert_eq!(sort_keys(table, &Query::all("p", 9)).await, ["1", "2", "4"]);
}

async fn racing_writers_lose_no_update(table: Arc<dyn Table>) {
    const WRITERS: usize = 64;
    const EACH: usize = 4;
    let writer = |name: usize| {
        let table = table.clone();
        async move {
            for _ in 0..EACH {
                loop {
                    let key = Key::new("counter", "1");
                    let found = ok(table.get(&key).await);
                    let (count, expect) = found.map_or((0, Expect::Absent), |item| {
                        (item.body.parse::<usize>().unwrap_or(0), Expect::Rev(item.rev))
                    });
                    let mine = Write::put(Key::new("log", format!("{count:05}")), name.to_string(), Expect::Absent);
                    let update = Write::put(key, (count + 1).to_string(), expect);
                    if conflict(table.commit(vec![update, mine]).await).is_none() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
        }
    };
    let writers: Vec<_> = (0..WRITERS).map(|name| tokio::spawn(writer(name))).collect();
    for finished in join_all(writers).await {
        assert!(finished.is_ok(), "a writer panicked");
    }
    let counter = ok(table.get(&Key::new("counter", "1")).await);
    let total = WRITERS * EACH;
    assert_eq!(counter.map(|item| (item.body, item.rev)), Some((total.to_string(), total as u64)));
    assert_eq!(drain(&*table, &Query::all("log", 100), false).await.0.len(), total);
}

async fn drain(table: &dyn Table, query: &Query, by_index: bool) -> (Vec<Item>, Vec<usize>) {
    let (mut items, mut pages, mut query) = (Vec::new(), Vec::new(), query.clone());
    loop {
        let page = ok(if by_index { table.query_index(&query).await } else { table.query(&query).await });
        pages.push(page.items.len());
        items.extend(page.items);
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return (items, pages),
        }
    }
}

/// The items of the index, once it shows `count` of them: it may lag.
async fn eventually(table: &dyn Table, query: &Query, count: usize) -> (Vec<Item>, Vec<usize>) {
    for _ in 0..1000 {
        let found = drain(table, query, true).await;
        if found.0.len() == count {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the index never showed {count} items of {query:?}");
}

async fn sort_keys(table: &dyn Table, query: &Query) -> Vec<String> {
    drain(table, query, false).await.0.into_iter().map(|item| item.key.sk).collect()
}

async fn rev(table: &dyn Table, key: &Key) -> Option<u64> {
    ok(table.get(key).await).map(|item| item.rev)
}

fn conflict(outcome: Result<()>) -> Option<usize> {
    match outcome {
        Ok(()) => None,
        Err(Error::Conflict { write }) => Some(write),
        Err(other) => panic!("neither done nor a conflict: {other}"),
    }
}

pub(super) fn ok<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error:?}"),
    }
}
