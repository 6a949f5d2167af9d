//! The end of a command reports its usage (spec 002 §10.4).
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_sandbox::{Local, Options};
use domain::{CallId, FilePath, WorkspaceId, task::Resources};
use futures::StreamExt;
use ports::{Exec, ExecEvent, Execution, Reservation, Reserve, Sandboxes};
use std::{collections::BTreeMap, fs, time::Duration};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(240);

async fn used(script: &str, stdin: Option<&str>) -> Resources {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    let workspace = WorkspaceId::from(Uuid::from_u128(1));
    fs::create_dir_all(root.join(format!("files/{workspace}/latest"))).unwrap();
    let local = Local::with(root.join("files"), Options::new(root.join("scratch")));
    let sandbox = local.ready(workspace).await.unwrap().unwrap();
    let call = CallId::from(Uuid::now_v7());
    let asked = Reserve { call, direct: true, wait: PATIENCE };
    let Reservation::Granted(grant) = sandbox.reserve(asked).await.unwrap() else { panic!("there are places") };
    let command = Exec {
        call,
        grant,
        words: ["/bin/sh", "-c", script].map(String::from).to_vec(),
        folder: FilePath::root(),
        root: FilePath::root(),
        hidden: Vec::new(),
        env: BTreeMap::new(),
        stdin: stdin.map(String::from),
        timeout: PATIENCE,
        network: false,
        max_output: 100,
        keep: Vec::new(),
    };
    let Execution::Begun(events) = sandbox.exec(command).await.unwrap() else { panic!("it has a place") };
    let events = tokio::time::timeout(PATIENCE, events.collect::<Vec<_>>()).await.unwrap();
    let end = events.into_iter().find_map(|event| match event.unwrap() {
        ExecEvent::Ended(end) => Some(end),
        ExecEvent::Output { .. } | ExecEvent::Dropped { .. } | ExecEvent::Kept(_) | ExecEvent::LeftOut(_) => None,
    });
    local.end().await;
    end.unwrap().resources.unwrap()
}

#[tokio::test]
async fn s10_4_the_end_of_a_command_says_what_it_used() {
    // A process below it computes and is waited for; its output is more than the kept part.
    let computes =
        "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; head -c 5000 /dev/zero | tr '\\0' a; cat";
    let Resources { cpu_ms, bytes_in, bytes_out, .. } = used(computes, Some("abc")).await;
    assert!(cpu_ms >= 20, "{cpu_ms} ms");
    assert_eq!((bytes_in, bytes_out), (3, 5003));
    // It has much in memory for as long as somebody has to look.
    let holds = used("x=$(head -c 40000000 /dev/zero | tr '\\0' a); sleep 1; echo ${#x}", None).await;
    assert!(holds.peak_memory_bytes >= 40_000_000, "{holds:?}");
    let little = used("sleep 0.2", None).await;
    assert!((1..20_000_000).contains(&little.peak_memory_bytes), "not the host's memory: {little:?}");
    assert_eq!((little.bytes_in, little.bytes_out), (0, 0));
}
