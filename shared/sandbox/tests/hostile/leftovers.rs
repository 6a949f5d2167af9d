//! More than its share, for longer than its time.

use crate::{
    cage::{Cage, Did, VERSIONS, WORKSPACE},
    escapes::namespaced,
};
use futures::StreamExt;
use ports::{Exec, Execution, Reservation, Reserve, Sandboxes};
use processes::ProcessStat;
use std::{fs, time::Duration};

/// The processes that have this in their environment and are not over.
pub fn marked(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let is_marked = |folder: &std::path::Path| {
        fs::read(folder.join("environ"))
            .is_ok_and(|text| text.windows(mark.len()).any(|found| found == mark.as_bytes()))
    };
    let processes = entries.map(|entry| entry.path()).filter(|folder| is_marked(folder));
    processes.map(|folder| fs::read_to_string(folder.join("cmdline")).unwrap_or_default()).collect()
}

/// Runs a command, and shows that nothing of it is left.
async fn alone(cage: &Cage, name: &str, command: Exec) -> Did {
    let mark = format!("MARK_{name}={}", std::process::id());
    let (key, value) = mark.split_once('=').unwrap();
    let mut command = command;
    command.env.insert(key.into(), value.into());
    let did = cage.run(command).await;
    assert_eq!(marked(&mark), [""; 0], "{name} left something: {did:?}");
    assert_eq!(fs::read_dir(cage.scratch()).unwrap().count(), 0, "{name} left files");
    did
}

#[tokio::test]
async fn nothing_outlives_a_command() {
    let daemon = r#"
import os, signal, sys
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except OSError: pass
print("begun", flush=True)
for how in range(4):
    if os.fork() == 0:
        if os.fork() == 0:
            try: os.setsid()
            except OSError: pass
            for number in (0, 1, 2): os.close(number)
            while True: signal.pause()
        os._exit(0)
if sys.argv[1] == "stay": signal.pause()
"#;
    for version in VERSIONS {
        let cage = Cage::new(version);
        let did = alone(&cage, "daemon", cage.command(&["python3", "-I", "-c", daemon, "go"])).await;
        assert_eq!((did.end.code, did.output.as_str()), (Some(0), "begun\n"));
        // Output that somebody else could still write is not waited for.
        let shells = "setsid sleep 1000 & nohup sleep 1000 & (sleep 1000 &) ; sh -c 'trap \"\" TERM HUP; sleep 1000 & wait' & exit 7";
        let did = alone(&cage, "shells", cage.command(&["bash", "-c", shells])).await;
        assert_eq!(did.end.code, Some(7));
        let command = cage.command(&["python3", "-I", "-c", daemon, "stay"]);
        let did = alone(&cage, "late", Exec { timeout: Duration::from_secs(2), ..command }).await;
        assert_eq!((did.end.signal, did.end.timed_out), (Some(9), true), "{did:?}");
        let stopped = cage.command(&["sh", "-c", "sleep 1000 & kill -STOP $!; while :; do kill -STOP $$; done"]);
        let did = alone(&cage, "stopped", Exec { timeout: Duration::from_secs(1), ..stopped }).await;
        assert!(did.end.timed_out, "{did:?}");
    }
}

#[tokio::test]
async fn processes_without_end_come_to_one() {
    let cage = Cage::with(|options| options.limits.processes = 64);
    // Both have an end of their own, for the day on which nothing else ends them.
    let doubling = "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & f $(($1 - 1)) & fi; sleep 1000; }; f 7";
    let in_a_row = "for i in $(seq 200); do sleep 1000 & done; wait";
    for (name, bomb) in [("doubling", doubling), ("in_a_row", in_a_row)] {
        let did = alone(&cage, name, cage.command(&["bash", "-c", bomb])).await;
        assert!(did.end.signal == Some(9) && !did.end.timed_out, "{did:?}");
        assert!(
            did.errors.ends_with("[ended: more processes and threads than a command may have at once]\n"),
            "{did:?}"
        );
    }
    let few = Exec {
        timeout: Duration::from_secs(1),
        ..cage.command(&["bash", "-c", "for i in 1 2 3; do sleep 1000 & done; wait"])
    };
    assert!(alone(&cage, "few", few).await.end.timed_out);
}

#[tokio::test]
async fn output_without_end_costs_what_is_kept() {
    let cage = Cage::new(u8::MAX);
    let flood =
        Exec { max_output: 10_000, timeout: Duration::from_secs(1), ..cage.command(&["sh", "-c", "yes & yes >&2"]) };
    let did = alone(&cage, "flood", flood).await;
    assert!(did.end.timed_out && did.dropped > 10_000, "{} bytes were dropped", did.dropped);
    assert!(did.output.len() + did.errors.len() <= 10_000);
    let greedy = Cage::with(|options| options.limits.output = 1000);
    let asked = Exec { max_output: usize::MAX, ..greedy.command(&["head", "-c", "5000", "/dev/zero"]) };
    let did = alone(&greedy, "greedy", asked).await;
    assert_eq!((did.output.len(), did.dropped), (1000, 4000));
}

#[tokio::test]
async fn files_and_memory_without_end_are_refused() {
    let cage = Cage::with(|options| {
        options.limits.scratch = 1 << 20;
        options.limits.memory = 64 << 20;
    });
    let large = "cat /dev/zero >$TMPDIR/a; echo $?; rm $TMPDIR/a";
    let did = alone(&cage, "large", cage.command(&["bash", "-c", large])).await;
    // By SIGXFSZ, the 25th; or by the watcher of the folder, which counts the folder's own blocks, where it looks before the file is removed.
    let is_watched = did.errors.ends_with("[ended: more in its scratch folder than a command may have there]\n");
    assert!(did.output == "153\n" || is_watched && did.output.is_empty(), "{did:?}");
    let many = "for i in $(seq 1000); do head -c 100000 /dev/zero >$TMPDIR/$i; done; sleep 1000";
    let did = alone(&cage, "many", cage.command(&["bash", "-c", many])).await;
    assert!(did.errors.ends_with("[ended: more in its scratch folder than a command may have there]\n"), "{did:?}");
    let memory = "
import resource
while resource.getrlimit(resource.RLIMIT_DATA)[0] < 0: pass
try: print(len(bytearray(200 << 20)))
except MemoryError: print('no')";
    let did = alone(&cage, "memory", cage.command(&["python3", "-I", "-c", memory])).await;
    assert_eq!(did.output, "no\n", "{did:?}");
}

/// The number of the parent of a process, and of its group.
fn parent_and_group(process: &str) -> Option<(i32, i32)> {
    ProcessStat::of(process).map(|stat| (stat.parent, stat.group))
}

#[tokio::test]
async fn a_signal_to_the_group_of_the_host_does_not_reach_its_commands() {
    let cage = namespaced(|_| {});
    let sandbox = cage.sandboxes().ready(WORKSPACE.into()).await.unwrap().unwrap();
    let command = cage.command(&["sh", "-c", "echo begun; sleep 1000"]);
    let (call, wait) = (command.call, Duration::from_secs(240));
    let Reservation::Granted(grant) = sandbox.reserve(Reserve { call, direct: false, wait }).await.unwrap() else {
        panic!("it is granted no place")
    };
    let Execution::Begun(mut events) = sandbox.exec(Exec { grant, ..command }).await.unwrap() else {
        panic!("it does not begin")
    };
    events.next().await.unwrap().unwrap();
    let (own, (_, group)) = (std::process::id().cast_signed(), parent_and_group("self").unwrap());
    let processes = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_sandbox = |process: &String| {
        fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|it| it.starts_with(b"buildscale-sandbox"))
    };
    let theirs = processes.filter(is_sandbox).filter_map(|process| parent_and_group(&process));
    let groups: Vec<i32> = theirs.filter(|(parent, _)| *parent == own).map(|(_, group)| group).collect();
    assert!(!groups.is_empty() && !groups.contains(&group), "{groups:?} beside {group}");
    sandbox.kill(call).await.unwrap();
}

#[tokio::test]
async fn the_end_of_a_workspace_ends_all_of_it() {
    let cage = Cage::new(u8::MAX);
    let command = cage.command(&["sh", "-c", "sleep 1000 & sleep 1000"]);
    let ending = async {
        while marked("MARK_all=").len() < 2 {
            // poll: a process does not announce that it began.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cage.sandboxes().release("01990000-0000-7000-8000-000000000001".parse().unwrap()).await.unwrap();
        assert_eq!(marked("MARK_all="), [""; 0], "when it returns all processes have ended");
    };
    let (did, ()) = tokio::join!(alone(&cage, "all", command), ending);
    assert_eq!((did.end.signal, did.end.timed_out), (Some(9), false));
}
