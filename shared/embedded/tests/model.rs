//! The table against a model of it, under random commits and queries.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_embedded::{Durability, Options, Store};
use ports::{Error, Expect, IndexQuery, Key, Query, Table, Write};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};
use testkit::TestClock;

type Model = BTreeMap<(String, String), (u64, String, Option<String>)>;

fn expectation() -> impl Strategy<Value = Expect> {
    prop_oneof![
        4 => Just(Expect::Any),
        2 => Just(Expect::Absent),
        2 => Just(Expect::Present),
        2 => (1..4_u64).prop_map(Expect::Rev),
    ]
}

fn write() -> impl Strategy<Value = Write> {
    let key = ("[pq]", "[a-c/é]{1,2}").prop_map(|(pk, sk)| Key::new(pk, sk));
    (key, expectation(), 0..3, "[0-9]{0,3}", proptest::option::of("[x-z]")).prop_map(
        |(key, expect, kind, body, index)| match (kind, index) {
            (0, _) => Write::delete(key, expect),
            (1, None) => Write::check(key, expect),
            (_, Some(index)) => Write::put(key, body, expect).indexed(Key::new("i", index)),
            (_, None) => Write::put(key, body, expect),
        },
    )
}

/// The effect of a commit, in the simplest form.
fn expected(model: &mut Model, writes: &[Write]) -> Result<(), usize> {
    let before = model.clone();
    for (position, write) in writes.iter().enumerate() {
        let Key { pk, sk } = write.key().clone();
        let rev = before.get(&(pk.clone(), sk.clone())).map(|(rev, ..)| *rev);
        let holds = match write.expect() {
            Expect::Any => true,
            Expect::Absent => rev.is_none(),
            Expect::Present => rev.is_some(),
            Expect::Rev(expected) => rev == Some(expected),
        };
        if !holds {
            *model = before;
            return Err(position);
        }
        match write {
            Write::Check { .. } => {}
            Write::Delete { .. } => _ = model.remove(&(pk, sk)),
            Write::Put { body, index, .. } => {
                let index = index.as_ref().map(|index| index.sk.clone());
                model.insert((pk, sk), (rev.unwrap_or(0) + 1, body.clone(), index));
            }
        }
    }
    Ok(())
}

async fn everything(table: &dyn Table, mut query: Query, by_index: bool) -> Vec<(String, u64, String)> {
    let mut found = Vec::new();
    loop {
        let page = match by_index {
            true => table.query_index(&query as &IndexQuery).await.unwrap(),
            false => table.query(&query).await.unwrap(),
        };
        found.extend(page.items.into_iter().map(|item| (item.key.sk, item.rev, item.body)));
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return found,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_table_does_what_the_model_does(
        commits in proptest::collection::vec(proptest::collection::vec(write(), 1..6), 1..40),
        bounds in ("[a-c/é]{0,2}", "[a-c/é]{0,2}"),
        limit in 1..5_usize,
        descending: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let options = Options { durability: Durability::Normal, ..Options::default() };
            let clock = Arc::new(TestClock::new(1));
            let store = Store::open(folder.path().join("store.sqlite3"), clock, options).unwrap();
            let table = store.table();
            let mut model = Model::new();
            for mut writes in commits {
                let mut keys = std::collections::BTreeSet::new();
                writes.retain(|write| keys.insert(write.key().clone()));
                let outcome = match table.commit(writes.clone()).await {
                    Ok(()) => Ok(()),
                    Err(Error::Conflict { write }) => Err(write),
                    Err(other) => panic!("{other}"),
                };
                assert_eq!(outcome, expected(&mut model, &writes));
            }
            let (from, to) = bounds;
            let query = Query { from: Some(from.clone()), to: Some(to.clone()), descending, ..Query::all("p", limit) };
            let inside = |sk: &str| *sk >= *from && *sk < *to;
            let mut rows: Vec<_> = model.iter().filter(|((pk, sk), _)| pk == "p" && inside(sk))
                .map(|((_, sk), (rev, body, _))| (sk.clone(), *rev, body.clone())).collect();
            let mut indexed: Vec<_> = model.iter()
                .filter_map(|((pk, sk), (rev, body, index))| Some((index.clone()?, pk, (sk.clone(), *rev, body.clone()))))
                .collect();
            indexed.sort();
            if descending {
                rows.reverse();
                indexed.reverse();
            }
            assert_eq!(everything(&*table, query, false).await, rows);
            let by_index = Query { descending, ..Query::all("i", limit) };
            let indexed: Vec<_> = indexed.into_iter().map(|(_, _, row)| row).collect();
            assert_eq!(everything(&*table, by_index, true).await, indexed);
            store.close().await;
        });
    }
}
