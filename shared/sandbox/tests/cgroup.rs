//! Commands in control groups of version 2, which hold the memory, the threads and the CPU of all processes of a command together.
//!
//! Many machines have none, or give none away. So these tests are run by `scripts/kernel`, which boots a kernel that has them: as root in the root of
//! the tree, and as another user in a part that was delegated to them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_sandbox::{Isolation, Local, Options};
use domain::{CallId, FilePath, WorkspaceId};
use futures::StreamExt;
use ports::{Exec, ExecEnd, ExecEvent, Execution, Reservation, Reserve, Sandboxes};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(120);
const MIB: u64 = 1 << 20;

/// A sandbox whose commands have little.
struct Small {
    local: Local,
    home: TempDir,
}

impl Small {
    fn new() -> Self {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = home.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(format!("files/{}/latest", Self::workspace()))).unwrap();
        let mut options = Options::new(root.join("scratch"));
        let program = std::env::var_os("BUILDSCALE_SANDBOX_NAMESPACES");
        options.isolation = Isolation::Namespaces(
            program.map_or_else(|| env!("CARGO_BIN_EXE_sandbox-namespaces").into(), PathBuf::from),
        );
        (options.limits.memory, options.limits.scratch, options.limits.processes) = (96 * MIB, 32 * MIB, 40);
        Self { local: Local::with(root.join("files"), options), home }
    }

    fn workspace() -> WorkspaceId {
        WorkspaceId::from(Uuid::from_u128(1))
    }

    /// The end of a script, and its output. `seen` looks at the groups once the script has said `ready`.
    async fn run(&self, call: CallId, script: &str, mut seen: impl FnMut()) -> (ExecEnd, String) {
        let sandbox = self.local.ready(Self::workspace()).await.unwrap().unwrap();
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
            stdin: None,
            timeout: PATIENCE,
            network: false,
            max_output: 10_000,
            keep: Vec::new(),
        };
        let Execution::Begun(mut events) = sandbox.exec(command).await.unwrap() else { panic!("it has a place") };
        let mut output = String::new();
        while let Some(event) = tokio::time::timeout(PATIENCE, events.next()).await.unwrap() {
            match event.unwrap() {
                ExecEvent::Output { text, .. } => {
                    output.push_str(&text);
                    if text.contains("ready") {
                        seen();
                    }
                }
                ExecEvent::Dropped { .. } | ExecEvent::Kept(_) | ExecEvent::LeftOut(_) => {}
                ExecEvent::Ended(end) => return (end, output),
            }
        }
        panic!("it did not end: {output}");
    }

    async fn end(self) {
        self.local.end().await;
        drop(self.home);
    }
}

/// The group that this process was in when it began: before the first command, in which it moves aside.
fn own() -> PathBuf {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap();
    let path = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    let path = path.strip_suffix("/hub").unwrap_or(path);
    Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'))
}

fn call(number: u128) -> CallId {
    CallId::from(Uuid::from_u128(number))
}

#[tokio::test]
#[ignore = "scripts/kernel runs it: it needs control groups of version 2"]
async fn all_processes_of_a_command_are_in_one_group_that_holds_them_and_goes_with_them() {
    let small = Small::new();
    let group = own().join(call(1).to_string());
    let said = |file: &str| fs::read_to_string(group.join(file)).unwrap_or_default().trim().to_owned();
    let mut bounds = Vec::new();
    let mut inside = 0;
    // Three processes, of which one has left its session, beside process 1 and the one that left the host.
    let script = "setsid sleep 60 & sleep 60 & echo ready; read x < /dev/null; sleep 0.5";
    let (end, output) = small
        .run(call(1), script, || {
            bounds = ["memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.weight"].map(said).to_vec();
            inside = said("cgroup.procs").lines().count();
        })
        .await;
    assert_eq!((end.code, output.as_str()), (Some(0), "ready\n"));
    assert_eq!(bounds[0], (128 * MIB).to_string());
    assert!(["0", ""].contains(&bounds[1].as_str()), "{bounds:?}");
    assert_eq!(bounds[2..], ["1", "48", "20"]);
    assert!(inside >= 4, "{inside} processes are in its group");
    assert!(!group.exists(), "the group goes with the command");
    small.end().await;
}

#[tokio::test]
#[ignore = "scripts/kernel runs it: it needs control groups of version 2"]
async fn memory_of_all_processes_together_is_what_ends_a_command() {
    let small = Small::new();
    // Each has a third of what all of them may have, and one more would be too much for any limit of a single process.
    let script = "for i in 1 2 3 4 5; do (x=$(head -c 30000000 /dev/zero | tr '\\0' a); sleep 20; echo ${#x}) & done; wait; echo survived";
    let (end, output) = small.run(call(2), script, || {}).await;
    assert!(!output.contains("survived"), "{end:?} {output}");
    assert!(output.contains("more memory than a command may have"), "{end:?} {output}");
    // Files in its /tmp are memory, too, and of the same sum.
    let (end, output) = small.run(call(3), "head -c 20000000 /dev/zero > /tmp/a && echo written", || {}).await;
    assert_eq!((end.code, output.as_str()), (Some(0), "written\n"));
    small.end().await;
}

#[tokio::test]
#[ignore = "scripts/kernel runs it: it needs control groups of version 2"]
async fn a_bomb_of_processes_gets_as_many_as_it_may_and_the_host_goes_on() {
    let small = Small::new();
    let bomb = "b() { b | b & }; b; sleep 2; echo alive";
    let mut most = 0;
    let group = own().join(call(4).to_string());
    let watched = tokio::spawn(async move {
        while !group.exists() {
            // poll: a group that is made tells nobody
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        while let Ok(now) =
            fs::read_to_string(group.join("pids.peak")).or_else(|_| fs::read_to_string(group.join("pids.current")))
        {
            most = most.max(now.trim().parse::<u64>().unwrap_or(0));
            // poll: the same
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        most
    });
    let (end, _) = small.run(call(4), bomb, || {}).await;
    let most = tokio::time::timeout(PATIENCE, watched).await.unwrap().unwrap();
    assert!((20..=48).contains(&most), "{most} at once, {end:?}");
    let (end, output) = small.run(call(5), "echo next", || {}).await;
    assert_eq!((end.code, output.as_str()), (Some(0), "next\n"));
    small.end().await;
}
