#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use domain::{Code, Timestamp, task::AssembledContext};
use flow::flow::{Bounds, ContextUse, Profile, Retrieval, Source, StoreKind};
use ports::{SPILL_ABOVE, Spilling, spill_space};
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeTable, Faults},
};

struct World {
    memory: Memory,
    scope: Scope,
    table: Arc<FakeTable>,
}

fn world() -> World {
    // Short pages and calls that interleave are within the table's contract.
    let faults = Faults { yields: 0.5, short_pages: 0.5, ..Faults::none() };
    let table = Arc::new(FakeTable::new(Arc::new(TestClock::new(1)), 1, faults));
    let id = |name: &str| WorkspaceId::from_key("test", name);
    let scope = Scope { workspace: id("one"), flow: "demo".into(), root: TaskId::from_key("test", "root") };
    World { memory: Memory::new(table.clone()), scope, table }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
}

fn profile(policy: Retrieval, max_tokens: u64, sources: &[(StoreKind, &[&str])]) -> flow::flow::Memory {
    let source = |(store, tags): &(StoreKind, &[&str])| Source {
        store: *store,
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
    };
    let sources = sources.iter().map(source).collect();
    let profile = Profile { id: "p".into(), max_tokens, policy, sources };
    flow::flow::Memory { profiles: [("p".to_owned(), profile)].into(), ..flow::flow::Memory::default() }
}

impl World {
    async fn remember(&self, store: StoreKind, key: &str, content: Value, tags: &[&str], seconds: i64) {
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        self.remember_within(store, key, content, &tags, seconds, Bounds::default()).await;
    }

    async fn remember_within(
        &self,
        store: StoreKind,
        key: &str,
        content: Value,
        tags: &[String],
        seconds: i64,
        bounds: Bounds,
    ) {
        self.memory.remember(None, &self.scope, store, key, &content, tags, at(seconds), bounds).await.unwrap();
    }

    async fn assemble(&self, memory: &flow::flow::Memory, query: &str) -> AssembledContext {
        let context = ContextUse::Profile("p".into());
        self.memory.assemble(&self.scope, memory, &context, query).await.unwrap()
    }
}

fn keys(context: &AssembledContext) -> Vec<&str> {
    context.items.iter().map(|item| item.key.as_str()).collect()
}

#[tokio::test]
async fn s4_the_newest_come_first_and_a_key_holds_the_newest_only() {
    let world = world();
    world.remember(StoreKind::Task, "a", json!("first"), &[], 1).await;
    world.remember(StoreKind::Task, "b", json!({"x": 1}), &["t"], 2).await;
    world.remember(StoreKind::Task, "a", json!("second"), &[], 3).await;
    let memory = profile(Retrieval::Recency, 100, &[(StoreKind::Task, &[])]);
    let context = world.assemble(&memory, "").await;
    assert_eq!(keys(&context), ["a", "b"]);
    assert_eq!(context.items[0].content, json!("second"));
    assert_eq!((context.items[0].store.as_str(), context.items[0].at), ("task", at(3)));
    assert_eq!((context.profile.as_str(), context.tokens, context.left_out), ("p", 4, 0));
    assert_eq!(world.table.items().len(), 4, "an item and a pointer for each key");
}

#[tokio::test]
async fn s4_a_stage_that_runs_again_changes_nothing_and_undoes_nothing() {
    let world = world();
    world.remember(StoreKind::Task, "k", json!(1), &[], 1).await;
    let once = world.table.items().into_iter().map(|item| (item.key, item.body)).collect::<Vec<_>>();
    world.remember(StoreKind::Task, "k", json!(1), &[], 1).await;
    assert_eq!(world.table.items().into_iter().map(|item| (item.key, item.body)).collect::<Vec<_>>(), once);
    world.remember(StoreKind::Task, "k", json!(2), &[], 5).await;
    world.remember(StoreKind::Task, "k", json!(1), &[], 1).await;
    let item = world.memory.recall(&world.scope, StoreKind::Task, "k").await.unwrap().unwrap();
    assert_eq!(item.content, json!(2));
    assert_eq!(world.memory.recall(&world.scope, StoreKind::Task, "other").await.unwrap(), None);
}

#[tokio::test]
async fn s4_layers_are_apart_and_so_are_tasks_flows_and_workspaces() {
    let world = world();
    for (store, key) in [(StoreKind::Task, "t"), (StoreKind::Project, "p"), (StoreKind::Global, "g")] {
        world.remember(store, key, json!(key), &[], 1).await;
    }
    let memory = flow::flow::Memory::default();
    let seen = async |scope: &Scope| {
        let context = world.memory.assemble(scope, &memory, &ContextUse::Global, "").await.unwrap();
        context.items.into_iter().map(|item| item.key).collect::<Vec<_>>().join("")
    };
    let scope = &world.scope;
    assert_eq!(seen(scope).await, "tpg", "of one moment the nearer layer first");
    assert_eq!(seen(&Scope { root: TaskId::from_key("test", "other"), ..scope.clone() }).await, "pg");
    assert_eq!(seen(&Scope { flow: "other".into(), root: TaskId::from_key("x", "y"), ..scope.clone() }).await, "g");
    assert_eq!(seen(&Scope { workspace: WorkspaceId::from_key("test", "two"), ..scope.clone() }).await, "");
    let nothing = world.memory.assemble(scope, &memory, &ContextUse::None, "").await.unwrap();
    assert_eq!(nothing, AssembledContext::default());
    let missing = ContextUse::Profile("no".into());
    assert_eq!(world.memory.assemble(scope, &memory, &missing, "").await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn after_the_clock_was_set_back_a_key_takes_new_content() {
    const DAY: i64 = 24 * 3600;
    let world = world();
    let kept = async || {
        let found = world.memory.recall(&world.scope, StoreKind::Global, "k").await.unwrap();
        found.map(|item| item.content)
    };
    world.remember(StoreKind::Global, "k", json!("ahead"), &[], DAY).await;
    // A clock that is a little behind another one undoes nothing.
    world.remember(StoreKind::Global, "k", json!("late"), &[], DAY - 5).await;
    assert_eq!(kept().await, Some(json!("ahead")));
    world.remember(StoreKind::Global, "k", json!("since then"), &[], 0).await;
    assert_eq!(kept().await, Some(json!("since then")));
}

#[tokio::test]
async fn s4_tags_choose_and_one_item_is_given_once() {
    let world = world();
    world.remember(StoreKind::Global, "a", json!(1), &["x", "y"], 1).await;
    world.remember(StoreKind::Global, "b", json!(2), &["z"], 2).await;
    world.remember(StoreKind::Global, "c", json!(3), &[], 3).await;
    let both = profile(Retrieval::Recency, 100, &[(StoreKind::Global, &["x"]), (StoreKind::Global, &["y", "z"])]);
    assert_eq!(keys(&world.assemble(&both, "").await), ["b", "a"]);
}

#[tokio::test]
async fn s4_semantic_is_by_words_and_hybrid_takes_both() {
    let world = world();
    let texts =
        ["the parser reads manifests", "budgets of tokens", "lunch was good", "weather is fine", "a parser of parsers"];
    for (seconds, text) in (0..).zip(texts) {
        world.remember(StoreKind::Project, &format!("k{seconds}"), json!(text), &[], seconds).await;
    }
    let sources: &[(StoreKind, &[&str])] = &[(StoreKind::Project, &[])];
    let semantic = world.assemble(&profile(Retrieval::Semantic, 100, sources), "which parser reads?").await;
    assert_eq!(keys(&semantic)[..2], ["k0", "k4"]);
    let hybrid = world.assemble(&profile(Retrieval::Hybrid, 100, sources), "which parser reads?").await;
    assert_eq!(keys(&hybrid)[0], "k4", "second by meaning and first by time");
    let recency = world.assemble(&profile(Retrieval::Recency, 100, sources), "which parser reads?").await;
    assert_eq!(keys(&recency), ["k4", "k3", "k2", "k1", "k0"]);
    let without_words = world.assemble(&profile(Retrieval::Semantic, 100, sources), "").await;
    assert_eq!(keys(&without_words), keys(&recency));
}

#[tokio::test]
async fn s4_a_store_without_bound_is_not_read_as_a_whole() {
    let world = world();
    for n in 0..1010 {
        world.remember(StoreKind::Global, &format!("k{n:04}"), json!("x"), &[], n).await;
    }
    let memory = profile(Retrieval::Recency, 100_000, &[(StoreKind::Global, &[])]);
    let context = world.assemble(&memory, "").await;
    assert_eq!((context.items.len(), context.left_out), (1000, 1));
    assert_eq!(keys(&context)[0], "k1009");
}

#[tokio::test]
async fn s4_keys_tags_and_content_that_are_too_long_are_refused() {
    let world = world();
    let code = async |key: &str, content: Value, tags: &[String]| {
        let done =
            world.memory.remember(None, &world.scope, StoreKind::Task, key, &content, tags, at(1), Bounds::default());
        done.await.unwrap_err().code
    };
    assert_eq!(code("k", json!("x".repeat(MAX_CONTENT)), &[]).await, Code::PayloadTooLarge);
    assert_eq!(code("", json!(1), &[]).await, Code::InvalidArgument);
    assert_eq!(code(&"k".repeat(600), json!(1), &[]).await, Code::InvalidArgument);
    assert_eq!(code("k", json!(1), &vec![String::new(); 33]).await, Code::InvalidArgument);
}

#[tokio::test]
async fn s4_an_item_that_is_lost_keeps_no_other_from_its_key_and_its_store() {
    let (world, blobs) = (world(), Arc::new(FakeBlobs::new(1, Faults::none())));
    let memory = Memory::new(Arc::new(Spilling::new(world.table.clone(), blobs.clone())));
    let remember = async |key: &str, content: Value, seconds: i64| {
        let by = Writer { root: world.scope.root, rank: 1, node: key.into(), place: Vec::new() };
        let bounds = Bounds { max_items: Some(2), ..Bounds::default() };
        let (scope, store) = (&world.scope, StoreKind::Project);
        memory.remember(Some(by), scope, store, key, &content, &[], at(seconds), bounds).await.unwrap();
    };
    let lost = async |key: &str, seconds: i64| {
        remember(key, json!("x".repeat(SPILL_ABOVE)), seconds).await;
        let space = spill_space(world.scope.workspace);
        blobs.digests(&space).into_iter().for_each(|body| blobs.lose(&space, body));
    };
    let recall = async |key: &str| memory.recall(&world.scope, StoreKind::Project, key).await;
    lost("a/b", 1).await;
    assert_eq!(recall("a/b").await.unwrap_err().code, Code::ContentMissing);
    remember("a/b", json!(2), 2).await;
    assert_eq!(recall("a/b").await.unwrap().unwrap().content, json!(2));
    // One that is beyond the bounds goes, be it lost or not.
    lost("c/d", 3).await;
    remember("e", json!(4), 4).await;
    remember("f", json!(5), 5).await;
    assert_eq!((recall("a/b").await.unwrap(), recall("c/d").await.unwrap()), (None, None));
    assert_eq!(world.table.items().len(), 4, "an item and a pointer for each of the two others");
}

#[tokio::test]
async fn s10_10_a_snapshot_is_indexed_by_key_and_outlives_what_comes_after_it() {
    let world = world();
    for (key, seconds) in [("b", 1), ("a", 2), ("c", 0)] {
        world.remember(StoreKind::Task, key, json!({"of": key}), &["t"], seconds).await;
        world.remember(StoreKind::Global, key, json!("x".repeat(50_000)), &[], seconds).await;
    }
    let task = world.scope.root;
    world.memory.keep_snapshot(&world.scope, task, at(9)).await.unwrap();
    world.remember(StoreKind::Task, "a", json!("later"), &[], 10).await;
    world.memory.keep_snapshot(&world.scope, task, at(11)).await.unwrap();
    let kept = world.memory.kept_snapshot(world.scope.workspace, task).await.unwrap().unwrap();
    let order: Vec<String> = kept.items.iter().map(|item| format!("{}/{}", item.store, item.key)).collect();
    assert_eq!(order, ["task/a", "task/b", "task/c", "global/a", "global/b", "global/c"]);
    assert_eq!((kept.items[0].content.clone(), kept.at), (json!({"of": "a"}), at(9)));
    assert!(kept.cut.is_empty());
    let other = TaskId::from_key("test", "other");
    assert_eq!(world.memory.kept_snapshot(world.scope.workspace, other).await.unwrap(), None);
    let empty = Scope { workspace: WorkspaceId::from_key("test", "empty"), ..world.scope.clone() };
    world.memory.keep_snapshot(&empty, other, at(1)).await.unwrap();
    assert_eq!(world.memory.kept_snapshot(empty.workspace, other).await.unwrap().unwrap().items, []);
}

#[tokio::test]
async fn the_memory_of_a_task_that_is_deleted_is_gone_and_no_other() {
    let world = world();
    let other = Scope { root: TaskId::from_key("test", "other"), ..world.scope.clone() };
    for store in StoreKind::ALL {
        world.remember(store, "a", json!(store.name()), &[], 1).await;
    }
    let (task, bounds) = (StoreKind::Task, Bounds::default());
    world.memory.remember(None, &other, task, "a", &json!(1), &[], at(1), bounds).await.unwrap();
    for scope in [&world.scope, &other] {
        world.memory.keep_snapshot(scope, scope.root, at(2)).await.unwrap();
    }
    for _ in 0..2 {
        world.memory.forget_task(&world.scope).await.unwrap();
        let has =
            async |scope: &Scope, store: StoreKind| world.memory.recall(scope, store, "a").await.unwrap().is_some();
        let kept =
            async |scope: &Scope| world.memory.kept_snapshot(scope.workspace, scope.root).await.unwrap().is_some();
        assert!(!has(&world.scope, StoreKind::Task).await && !kept(&world.scope).await);
        assert!(has(&world.scope, StoreKind::Project).await && has(&world.scope, StoreKind::Global).await);
        assert!(has(&other, StoreKind::Task).await && kept(&other).await);
    }
}

fn any_policy() -> impl Strategy<Value = Retrieval> {
    prop_oneof![Just(Retrieval::Recency), Just(Retrieval::Semantic), Just(Retrieval::Hybrid)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For all items, in all orders: the budget holds, nothing is given twice, nothing is cut, everything is accounted
    /// for, and the context does not depend on the order in which the items were remembered.
    #[test]
    fn s4_the_budget_holds(
        items in prop::collection::btree_map("[a-e]{1,3}", ("[a-z ]{0,120}", 0_i64..5), 0..20),
        policy in any_policy(),
        max_tokens in 0_u64..60,
        query in "[a-z ]{0,20}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let memory = profile(policy, max_tokens, &[(StoreKind::Task, &[])]);
        let run = |backwards: bool| {
            let mut items: Vec<_> = items.clone().into_iter().collect();
            if backwards {
                items.reverse();
            }
            let (memory, query) = (&memory, &query);
            runtime.block_on(async move {
                let world = world();
                for (key, (text, seconds)) in items {
                    world.remember(StoreKind::Task, &key, json!(text), &[], seconds).await;
                }
                world.assemble(memory, query).await
            })
        };
        let context = run(false);
        prop_assert_eq!(&run(true), &context);
        prop_assert!(context.tokens <= max_tokens);
        prop_assert_eq!(context.tokens, context.items.iter().map(|item| item.tokens).sum::<u64>());
        prop_assert_eq!(context.items.len() + context.left_out as usize, items.len());
        for item in &context.items {
            prop_assert_eq!(&item.content, &json!(items[&item.key].0));
        }
        let given: std::collections::BTreeSet<_> = context.items.iter().map(|item| &item.key).collect();
        prop_assert_eq!(given.len(), context.items.len());
    }
}

#[tokio::test]
async fn of_one_run_the_later_execution_stays_whichever_is_faster() {
    let world = world();
    let by = |root: u128, rank, node: &str, place: &[u32]| {
        let root = domain::TaskId(uuid::Uuid::from_u128(root));
        Some(super::Writer { root, rank, node: node.into(), place: place.to_vec() })
    };
    let put = async |by, content: &str, seconds| {
        let content = json!(content);
        world
            .memory
            .remember(by, &world.scope, StoreKind::Project, "k", &content, &[], at(seconds), Bounds::default())
            .await
            .unwrap();
    };
    let held = async || world.memory.recall(&world.scope, StoreKind::Project, "k").await.unwrap().unwrap().content;
    put(by(1, 3, "work", &[2]), "third", 1).await;
    put(by(1, 3, "work", &[0]), "first", 2).await;
    put(by(1, 3, "work", &[1]), "second", 3).await;
    assert_eq!(held().await, "third", "the last of the list, not the slowest");
    put(by(1, 1, "begin", &[]), "begin", 4).await;
    assert_eq!(held().await, "third", "a node before the split does not undo it");
    put(by(1, 5, "gather", &[]), "gathered", 2).await;
    assert_eq!(held().await, "gathered");
    // Another run: the newer one.
    put(by(2, 3, "work", &[0]), "next", 9).await;
    assert_eq!(held().await, "next");
}

#[tokio::test]
async fn of_a_store_with_a_limit_the_newest_are_given() {
    let world = world();
    for n in 0..5 {
        world.remember(StoreKind::Project, &format!("k{n}"), json!(n), &[], n).await;
    }
    let mut memory = profile(Retrieval::Recency, 1000, &[(StoreKind::Project, &[])]);
    memory.stores = [(StoreKind::Project, Bounds { max_items: Some(2), retention: None })].into();
    let context = world.assemble(&memory, "").await;
    assert_eq!((keys(&context), context.left_out), (vec!["k4", "k3"], 0));
}

#[tokio::test]
async fn a_large_store_is_pruned_in_steps_and_never_far_beyond_its_bound() {
    let world = world();
    let bounds = Bounds { max_items: Some(320), retention: None };
    let partition = format!("{}/memory/global", world.scope.workspace);
    let (mut most, mut least_after) = (0, usize::MAX);
    for n in 0..1000 {
        world.remember_within(StoreKind::Global, &format!("k{n:04}"), json!(n), &[], n, bounds).await;
        let items = world.table.partition(&partition);
        let kept = items.iter().filter(|item| item.key.sk.starts_with("at/")).count();
        let keys = items.iter().filter(|item| item.key.sk.starts_with("key/")).count();
        assert_eq!(kept, keys, "an item goes with its key");
        most = most.max(kept);
        if n >= 320 {
            least_after = least_after.min(kept);
        }
    }
    assert_eq!(least_after, 320, "the newest stay");
    assert!((321..=400).contains(&most), "it is not looked at with every write, and soon enough: {most}");
}

#[test]
fn a_store_that_is_full_or_away_is_told_from_a_fault_of_ours() {
    assert_eq!(port(ports::Error::full("the store")).code, Code::StorageFull);
    assert_eq!(port(ports::Error::unavailable("the store", "x")).code, Code::UpstreamUnavailable);
    assert_eq!(port(ports::Error::Invalid("a body is too long".into())).code, Code::Internal);
}
