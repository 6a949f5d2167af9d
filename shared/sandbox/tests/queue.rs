//! More commands than places: they wait outside, and none that has not begun is anything but not begun.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_sandbox::{Local, Options};
use domain::{CallId, FilePath, WorkspaceId};
use futures::{StreamExt, future::join_all};
use ports::{Exec, ExecEvent, Execution, Grant, Reservation, Reserve, Sandbox, Sandboxes};
use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(240);

fn local(change: impl FnOnce(&mut Options)) -> (TempDir, Local) {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    let mut options = Options::new(root.join("scratch"));
    change(&mut options);
    (home, Local::with(root.join("files"), options))
}

async fn sandbox(home: &Path, local: &Local, workspace: u128) -> Arc<dyn Sandbox> {
    let workspace = WorkspaceId::from(Uuid::from_u128(workspace));
    fs::create_dir_all(home.join(format!("files/{workspace}/latest"))).unwrap();
    local.ready(workspace).await.unwrap().unwrap()
}

fn command(words: &[&str]) -> Exec {
    Exec {
        call: CallId::from(Uuid::now_v7()),
        grant: Grant::default(),
        words: words.iter().map(|word| (*word).into()).collect(),
        folder: FilePath::root(),
        root: FilePath::root(),
        hidden: Vec::new(),
        env: BTreeMap::new(),
        stdin: None,
        timeout: PATIENCE,
        network: false,
        max_output: 1 << 16,
        keep: Vec::new(),
    }
}

async fn place(sandbox: &dyn Sandbox, call: CallId, wait: Duration) -> Reservation {
    let asked = Reserve { call, direct: false, wait };
    tokio::time::timeout(PATIENCE, sandbox.reserve(asked)).await.unwrap().unwrap()
}

/// Waits for a place, runs a command to its end, and returns its output.
async fn run(sandbox: &dyn Sandbox, command: Exec) -> String {
    let Reservation::Granted(grant) = place(sandbox, command.call, PATIENCE).await else {
        panic!("it is granted no place")
    };
    let Execution::Begun(events) = sandbox.exec(Exec { grant, ..command }).await.unwrap() else {
        panic!("it has a place")
    };
    let events = tokio::time::timeout(PATIENCE, events.collect::<Vec<_>>()).await.unwrap();
    let text = events.into_iter().filter_map(|event| match event.unwrap() {
        ExecEvent::Output { text, .. } => Some(text),
        ExecEvent::Dropped { .. } | ExecEvent::Kept(_) | ExecEvent::LeftOut(_) | ExecEvent::Ended(_) => None,
    });
    text.collect()
}

/// Takes all places for commands of agents and nodes, with commands that do not end by themselves.
async fn fill(sandbox: &dyn Sandbox) {
    loop {
        let sleeps = command(&["sleep", "100000"]);
        let Reservation::Granted(grant) = place(sandbox, sleeps.call, Duration::ZERO).await else { return };
        let Execution::Begun(_) = sandbox.exec(Exec { grant, ..sleeps }).await.unwrap() else {
            panic!("it has a place")
        };
    }
}

#[tokio::test]
async fn a_person_runs_a_command_while_agents_have_all_places() {
    let (home, local) = local(|_| {});
    let (one, other) = (sandbox(home.path(), &local, 1).await, sandbox(home.path(), &local, 2).await);
    fill(&*one).await;
    for sandbox in [one, other] {
        let asked = command(&["echo", "hello"]);
        let direct = Reserve { call: asked.call, direct: true, wait: PATIENCE };
        let Reservation::Granted(grant) = sandbox.reserve(direct).await.unwrap() else {
            panic!("it is granted no place")
        };
        let Execution::Begun(events) = sandbox.exec(Exec { grant, ..asked }).await.unwrap() else {
            panic!("it has a place")
        };
        let first = tokio::time::timeout(PATIENCE, events.collect::<Vec<_>>()).await.unwrap().remove(0);
        assert!(matches!(&first, Ok(ExecEvent::Output { text, .. }) if text == "hello\n"), "{first:?}");
    }
    local.end().await;
}

#[tokio::test]
async fn many_more_than_there_are_places_all_run_once() {
    let (home, local) = local(|options| options.at_once = 4);
    let sandbox = sandbox(home.path(), &local, 1).await;
    let all = (0..100).map(|_| run(&*sandbox, command(&["cat", "/proc/sys/kernel/random/uuid"])));
    let mut outputs = join_all(all).await;
    outputs.sort_unstable();
    outputs.dedup();
    assert_eq!((outputs.len(), outputs.contains(&String::new())), (100, false));
    local.end().await;
}

#[tokio::test]
async fn a_machine_without_a_place_says_so_and_one_that_is_closed_begins_nothing() {
    let (home, local) = local(|options| options.at_once = 1);
    let sandbox = sandbox(home.path(), &local, 1).await;
    let (runs, waits) = (command(&["sleep", "100000"]), CallId::from(Uuid::now_v7()));
    let Reservation::Granted(grant) = place(&*sandbox, runs.call, Duration::ZERO).await else {
        panic!("it comes first")
    };
    let Execution::Begun(events) = sandbox.exec(Exec { grant, ..runs }).await.unwrap() else {
        panic!("it has a place")
    };
    assert_eq!(place(&*sandbox, waits, Duration::ZERO).await, Reservation::Busy);
    local.end().await;
    let last = events.collect::<Vec<_>>().await.pop();
    assert!(matches!(&last, Some(Ok(ExecEvent::Ended(end))) if end.signal == Some(9)), "{last:?}");
    assert_eq!(place(&*sandbox, waits, Duration::ZERO).await, Reservation::Busy);
}
