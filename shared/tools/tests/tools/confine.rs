//! A confined tool neither shows nor changes anything outside of its root, with any arguments.

use crate::common::Hands;
use buildscale_tools::{Registry, confined};
use domain::{FilePath, Sha256};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Map, Value, json};
use std::{cell::Cell, collections::BTreeMap};

const ROOT: &str = "/projects/app";
const INSIDE: &str = "/projects/app/src/a.md";
const OUTSIDE: [&str; 3] = ["/projects/app2/outside.md", "/projects/outside.md", "/data/outside.md"];
const SECRET: &str = "S3CRET";
/// No call can name this one: only a listing or a search could show it.
const UNNAMED: &str = "l34k.md";

fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("projects"),
        Just("app"),
        Just("app2"),
        Just("src"),
        Just("a.md"),
        Just("outside.md"),
        Just("data"),
        Just(".."),
        Just("."),
        Just(""),
        Just("%2e%2e"),
        Just("..\\"),
        Just("app\0"),
        Just("app/"),
        Just("../app2"),
        Just("*"),
    ];
    let free = (any::<bool>(), proptest::collection::vec(part, 0..5))
        .prop_map(|(absolute, parts)| format!("{}{}", if absolute { "/" } else { "" }, parts.join("/")));
    let below = free.clone().prop_map(|rest| format!("{ROOT}/{rest}"));
    prop_oneof![
        3 => free,
        2 => below,
        3 => Just(INSIDE.to_owned()),
        2 => proptest::sample::select([&[INSIDE, ROOT][..], &OUTSIDE[..]].concat()).prop_map(String::from),
    ]
}

/// A path, or another value that a model may write in its place.
fn shape() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        12 => path().prop_map(Value::String),
        1 => Just(Value::Null),
        1 => Just(json!(7)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            proptest::collection::vec(inner.clone().prop_map(|path| json!({ "path": path })), 0..3)
                .prop_map(Value::Array),
            inner.prop_map(|path| json!({ "path": path })),
        ]
    })
}

/// A call of some tool: the arguments that it needs, and paths of any shape.
fn call() -> impl Strategy<Value = (String, Value)> {
    let (specs, optional) = (Registry::builtin().specs(), Registry::builtin().optional());
    let tool = proptest::sample::select(specs.iter().chain(optional.iter()).cloned().collect::<Vec<_>>());
    let pattern = proptest::sample::select(vec!["*", "**", "/**", "/projects/**", "../**", "/data/*", SECRET]);
    (tool, proptest::collection::vec((shape(), any::<u8>()), 4), pattern).prop_map(|(tool, mut paths, pattern)| {
        let mut args = Map::new();
        for name in tool.parameters["properties"].as_object().unwrap().keys() {
            let is_optional = buildscale_tools::organizer::READING.contains(&tool.name.as_str())
                || buildscale_tools::organizer::WRITING.contains(&tool.name.as_str());
            let value = match name.as_str() {
                "from" | "to" | "start" if is_optional => json!("2026-12-01"),
                "path" if tool.name == "export_calendar" => json!(format!("{ROOT}/out.ics")),
                "project" => match paths.pop().unwrap() {
                    (_, 0..80) => continue,
                    (_, 80..160) => json!("app"),
                    (value, _) => value,
                },
                "name" if is_optional => json!("x"),
                "entity" => json!("task"),
                "duration_minutes" => json!(30),
                "path" | "from" | "to" | "within" | "paths" | "files" => match paths.pop().unwrap() {
                    (_, 0..40) => continue,
                    (value, 40..160) if name == "paths" => json!([value, INSIDE]),
                    (value, 40..160) if name == "files" => json!([{ "path": value }, { "path": INSIDE }]),
                    (value, _) => value,
                },
                "pattern" => json!(pattern),
                "content" | "title" => json!("x"),
                "steps" | "tags" => json!(["one"]),
                "kind" => json!("answers"),
                "step" => json!(1),
                "status" => json!("done"),
                "edits" => json!([{ "old": "text", "new": "other" }]),
                "mode" => json!("content"),
                _ => continue,
            };
            args.insert(name.clone(), value);
        }
        (tool.name.clone(), Value::Object(args))
    })
}

async fn everything(hands: &Hands) -> BTreeMap<FilePath, Option<Sha256>> {
    let (all, whole) = hands.workspace.list_tree(&FilePath::root(), 10_000).await.unwrap();
    assert!(whole);
    all.into_iter().map(|info| (info.path, info.sha256)).collect()
}

async fn outside(hands: &Hands) -> BTreeMap<FilePath, Option<Sha256>> {
    let root: FilePath = ROOT.parse().unwrap();
    everything(hands).await.into_iter().filter(|(path, _)| !path.is_within(&root)).collect()
}

#[test]
fn s5_no_shape_of_arguments_escapes_the_root() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let root: FilePath = ROOT.parse().unwrap();
    let hands = runtime.block_on(async {
        let hands = Hands::agent().await;
        for path in OUTSIDE.map(String::from).into_iter().chain([
            format!("/data/{UNNAMED}"),
            format!("/projects/{UNNAMED}"),
            format!("/projects/app2/tasks/{UNNAMED}"),
            format!("/projects/app2/notes/{UNNAMED}"),
        ]) {
            hands.put(&path, format!("text {SECRET}\n- [ ] {SECRET}\n")).await;
        }
        hands
    });
    let before = runtime.block_on(outside(&hands));
    let (allowed, worked) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(1_000) });
    let held = runner.run(&call(), |(tool, args)| {
        let Ok(args) = confined(&tool, args, &root) else { return Ok(()) };
        // A person overwrites a file without having read it: only the root limits the call.
        let outcome = runtime.block_on(async {
            hands.put(INSIDE, "text\n- [ ] step\n").await;
            hands.person().call(&tool, &args.to_string()).await
        });
        allowed.set(allowed.get() + 1);
        worked.set(worked.get() + u32::from(outcome.success));
        let shown = format!("{}{}", outcome.output, outcome.result);
        prop_assert!(!shown.contains(SECRET) && !shown.contains(UNNAMED), "{tool} {args} shows {shown}");
        prop_assert_eq!(&runtime.block_on(outside(&hands)), &before, "{} {}", tool, args);
        Ok(())
    });
    held.unwrap_or_else(|failure| panic!("{failure}"));
    let (allowed, worked) = (allowed.get(), worked.get());
    assert!(worked > 40, "{worked} of {allowed} allowed calls did something: the test proves little");
}

/// Makes a call, and says how many paths it changed; an error when it changed any that it did not declare.
async fn changes(hands: &Hands, tool: &str, args: &Value) -> Result<usize, String> {
    let (plan, args) = ("/projects/app/plan.md".parse().unwrap(), args.to_string());
    let effects = Registry::builtin().effects(tool, &args, &plan);
    hands.put(INSIDE, "text\n- [ ] step\n").await;
    let before = everything(hands).await;
    let outcome = hands.person().call(tool, &args).await;
    let after = everything(hands).await;
    let Ok(effects) = effects else {
        let nothing = !outcome.success && before == after;
        return if nothing { Ok(0) } else { Err(format!("{tool} {args} ran without being understood")) };
    };
    let others = before.iter().filter(|(path, digest)| after.get(*path) != Some(*digest)).map(|(path, _)| path);
    let changed: Vec<&FilePath> = others.chain(after.keys().filter(|path| !before.contains_key(*path))).collect();
    // Missing folders above are made.
    let is_declared =
        |path: &&&FilePath| effects.changed().any(|declared| path.is_within(declared) || declared.is_within(path));
    match changed.iter().find(|path| !is_declared(path)) {
        Some(path) => Err(format!("{tool} {args} changed {path}")),
        None => Ok(changed.len()),
    }
}

#[test]
fn a_call_changes_what_it_declares_and_nothing_else() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let hands = runtime.block_on(Hands::agent());
    for (tool, args) in [
        ("write", json!({ "path": "/projects/new/a.md", "content": "x" })),
        ("edit", json!({ "path": INSIDE, "edits": [{ "old": "text", "new": "other" }] })),
        ("mkdir", json!({ "path": "/data/new/folder" })),
        ("mv", json!({ "from": INSIDE, "to": "/data/moved.md" })),
        ("rm", json!({ "path": INSIDE })),
        ("plan_write", json!({ "title": "t", "steps": ["one"], "path": "/data/plan.md" })),
        ("plan_update_step", json!({ "step": 1, "status": "done", "path": INSIDE })),
        ("create_project", json!({ "name": "New one" })),
        ("create_task", json!({ "project": "new", "title": "A task" })),
        ("create_note", json!({ "title": "At home" })),
        ("update_task", json!({ "path": "/projects/new/tasks/a-task.md", "status": "done" })),
        ("export_calendar", json!({ "path": "/data/out.ics" })),
    ] {
        let changed = runtime.block_on(changes(&hands, tool, &args));
        assert!(changed.as_ref().is_ok_and(|changed| *changed > 0), "{tool}: {changed:?}");
    }
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(400) });
    let held = runner.run(&call(), |(tool, args)| {
        let changed = runtime.block_on(changes(&hands, &tool, &args));
        prop_assert!(changed.is_ok(), "{:?}", changed);
        Ok(())
    });
    held.unwrap_or_else(|failure| panic!("{failure}"));
}
