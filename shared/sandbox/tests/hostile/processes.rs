//! Other processes: the host above all.

use crate::cage::{Cage, VERSIONS, all_done, all_refused};
use std::{
    os::unix::process::CommandExt,
    process::{Child, Command},
};

/// A process of the same user that is not the host; in a group of its own.
pub struct Bystander(pub Child);

impl Bystander {
    pub fn new() -> Self {
        Self(Command::new("sleep").arg("1000").env("SECRET", "of a bystander").process_group(0).spawn().unwrap())
    }
    pub fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

const LOOKS: &str = r#"
for process in sys.argv[1:]:
    for what in ["environ", "mem", "maps", "auxv"]:
        tries(f"{what} of {process}", lambda: open(f"/proc/{process}/{what}", "rb").close())
    for what in ["root/", "cwd/", "fd/0/"]:
        tries(f"{what} of {process}", lambda: os.listdir(f"/proc/{process}/{what}"))
    for what in ["exe", "root", "cwd", "fd/0"]:
        tries(f"{what} of {process}", lambda: os.readlink(f"/proc/{process}/{what}"))
    for task in os.listdir(f"/proc/{process}/task"):
        tries(f"environ of {process}/{task}", lambda: open(f"/proc/{process}/task/{task}/environ", "rb").close())
"#;

const DISTURBS: &str = r#"
for process in map(int, sys.argv[1:]):
    tries(f"limit {process}", lambda: resource.prlimit(process, resource.RLIMIT_NOFILE, resource.prlimit(process, resource.RLIMIT_NOFILE)))
    tries(f"nice {process}", lambda: os.setpriority(os.PRIO_PROCESS, process, os.getpriority(os.PRIO_PROCESS, process)))
    tries(f"pin {process}", lambda: os.sched_setaffinity(process, os.sched_getaffinity(process)))
    read, write = os.pipe()
    tries(f"own for {process}", lambda: fcntl.fcntl(read, fcntl.F_SETOWN, process))
    one, other = socket.socketpair()
    tries(f"own a socket for {process}", lambda: fcntl.ioctl(one, 0x8901, process.to_bytes(4, "little")))
"#;

const SIGNALS: &str = r#"
for process in map(int, sys.argv[1:]):
    tries(f"signal {process}", lambda: os.kill(process, 0))
    tries(f"signal the group of {process}", lambda: os.killpg(os.getpgid(process), 0))
"#;

#[tokio::test]
async fn no_other_process_is_looked_into() {
    let bystander = Bystander::new();
    let (host, other) = (std::process::id().to_string(), bystander.id());
    for version in VERSIONS {
        let cage = Cage::new(version);
        let mut outcomes = cage.attempts(false, LOOKS, &[&host, &other]).await;
        // Threads of other tests of this process end between the listing and the look at one.
        let threads = format!("environ of {host}/");
        outcomes.retain(|name, outcome| !(name.starts_with(&threads) && outcome == "ENOENT"));
        all_refused(&outcomes, outcomes.len());
        assert!(outcomes.len() > 20, "{outcomes:?}");
    }
    let free = Cage::new(u8::MAX).unconfined(LOOKS, &[&other]);
    // Its standard input is no folder.
    all_done(&free.into_iter().filter(|(name, _)| !name.starts_with("fd/0/")).collect(), 11);
}

#[tokio::test]
async fn no_other_process_is_disturbed() {
    let bystander = Bystander::new();
    let (host, other) = (std::process::id().to_string(), bystander.id());
    for version in VERSIONS {
        let cage = Cage::new(version);
        all_refused(&cage.attempts(false, DISTURBS, &[&host, &other]).await, 10);
        all_done(&cage.unconfined(DISTURBS, &[&other]), 5);
    }
}

#[tokio::test]
async fn no_other_process_gets_a_signal() {
    let bystander = Bystander::new();
    let (host, other) = (std::process::id().to_string(), bystander.id());
    for version in VERSIONS {
        let cage = Cage::new(version);
        all_refused(&cage.attempts(false, SIGNALS, &[&host]).await, 2);
        let outcomes = cage.attempts(false, SIGNALS, &[&other]).await;
        if version >= 6 {
            all_refused(&outcomes, 2);
        } else {
            // The kernel would have to tell its own processes from others; the statement about older ones holds: groups are out of reach.
            assert_eq!(outcomes[&format!("signal the group of {other}")], "EPERM", "with version {version}");
        }
        // The guard that ends it when the host is killed is in its group, and out of reach.
        let guard = r#"
tries("guard", lambda: os.kill(os.getpgrp(), 0))
tries("group", lambda: os.killpg(0, 0))"#;
        let outcomes = cage.attempts(false, guard, &[]).await;
        assert_eq!(
            (outcomes["guard"].as_str(), outcomes["group"].as_str()),
            ("EPERM", "DONE"),
            "with version {version}"
        );
        // All processes at once: with a scope that is itself and its children. Never tried if it would reach others.
        if version < 6 {
            let everybody = r#"tries("everybody", lambda: os.kill(-1, 0))"#;
            all_refused(&cage.attempts(false, everybody, &[]).await, 1);
        }
        all_done(&cage.unconfined(SIGNALS, &[&other]), 2);
    }
}

#[tokio::test]
async fn programs_that_behave_are_not_in_the_way() {
    let cage = Cage::new(u8::MAX);
    let script = r#"
import subprocess, threading
tries("threads", lambda: [thread.start() for thread in [threading.Thread(target=lambda: None) for _ in range(8)]])
tries("own group", lambda: os.setpgid(0, os.getpgid(0)))
tries("own limits", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
tries("own priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, 5))
tries("children", lambda: subprocess.run(["sh", "-c", "kill -0 $PPID"], check=True))
tries("pairs", lambda: socket.socketpair())
tries("devices", lambda: [open(name, "rb").read(1) for name in ["/dev/zero", "/dev/urandom"]] and open("/dev/null", "w").write("x"))
tries("scratch", lambda: os.chmod(os.environ["TMPDIR"], 0o755))
tries("itself", lambda: open("/proc/self/environ").read())
"#;
    all_done(&cage.attempts(false, script, &[]).await, 9);
    let pipeline = "seq 1 1000 | sort -n | awk '{ s += $1 } END { print s }' > $TMPDIR/sum && cat $TMPDIR/sum";
    let did = cage.run(cage.command(&["bash", "-c", pipeline])).await;
    assert_eq!((did.output.as_str(), did.errors.as_str()), ("500500\n", ""));
}
