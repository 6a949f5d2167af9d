//! Calls of the kernel that a command has no business with.

use crate::cage::{Cage, VERSIONS, all_done, all_refused};
use std::{
    collections::BTreeMap,
    net::TcpListener,
    os::unix::net::{UnixDatagram, UnixListener},
};

/// Out of the group by which it is ended.
const LEAVES: &str = r#"
child = os.fork()
if child == 0: signal.pause()
tries("move a child", lambda: os.setpgid(child, child))
tries("follow", lambda: os.setpgid(0, child))
os.kill(child, signal.SIGKILL)
grandchild = os.fork()
if grandchild == 0:
    tries("a group of its own", lambda: os.setpgid(0, 0))
    os._exit(0)
os.waitpid(grandchild, 0)
another = os.fork()
if another == 0:
    tries("a session of its own", lambda: os.setsid())
    os._exit(0)
os.waitpid(another, 0)
"#;

const SOCKETS: &str = r#"
stream, datagram, port = sys.argv[1:]
def connected(family, kind, address):
    with socket.socket(family, kind) as it: it.connect(address)
tries("tcp", lambda: connected(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(port))))
tries("udp", lambda: connected(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(port))))
"#;

/// Services of the machine, which obey any client.
const SERVICES: &str = r#"
stream, datagram, port = sys.argv[1:]
def connected(family, kind, address):
    with socket.socket(family, kind) as it: it.connect(address)
tries("a stream", lambda: connected(socket.AF_UNIX, socket.SOCK_STREAM, stream))
tries("a datagram", lambda: connected(socket.AF_UNIX, socket.SOCK_DGRAM, datagram))
tries("a pair that is turned", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", datagram))
"#;

#[tokio::test]
async fn nothing_leaves_the_group() {
    for version in VERSIONS {
        let cage = Cage::new(version);
        all_refused(&cage.attempts(true, LEAVES, &[]).await, 4);
        all_done(&cage.unconfined(LEAVES, &[]), 4);
    }
}

#[tokio::test]
async fn there_are_no_sockets_but_those_that_are_asked_for() {
    for version in VERSIONS {
        let cage = Cage::new(version);
        let (stream, datagram) = (cage.root().join("stream"), cage.root().join("datagram"));
        let _one = UnixListener::bind(&stream).unwrap();
        let _two = UnixDatagram::bind(&datagram).unwrap();
        let three = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = three.local_addr().unwrap().port().to_string();
        let names = [stream.to_str().unwrap(), datagram.to_str().unwrap(), &port];
        all_refused(&cage.attempts(false, SOCKETS, &names).await, 2);
        all_done(&cage.attempts(true, SOCKETS, &names).await, 2);
        for network in [false, true] {
            all_refused(&cage.attempts(network, SERVICES, &names).await, 3);
        }
        all_done(&cage.unconfined(SERVICES, &names), 3);
    }
}

#[tokio::test]
async fn the_kernel_is_not_asked_for_more_than_a_command_needs() {
    let calls: BTreeMap<&str, i64> = BTreeMap::from([
        ("unshare", libc::SYS_unshare),
        ("inotify_add_watch", libc::SYS_inotify_add_watch),
        ("memfd_create", libc::SYS_memfd_create),
        ("setns", libc::SYS_setns),
        ("clone3", libc::SYS_clone3),
        ("mount", libc::SYS_mount),
        ("umount2", libc::SYS_umount2),
        ("open_tree", libc::SYS_open_tree),
        ("fsopen", libc::SYS_fsopen),
        ("pivot_root", libc::SYS_pivot_root),
        ("chroot", libc::SYS_chroot),
        ("ptrace", libc::SYS_ptrace),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("pidfd_open", libc::SYS_pidfd_open),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("pidfd_send_signal", libc::SYS_pidfd_send_signal),
        ("keyctl", libc::SYS_keyctl),
        ("add_key", libc::SYS_add_key),
        ("request_key", libc::SYS_request_key),
        ("bpf", libc::SYS_bpf),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("init_module", libc::SYS_init_module),
        ("finit_module", libc::SYS_finit_module),
        ("delete_module", libc::SYS_delete_module),
        ("kexec_load", libc::SYS_kexec_load),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("shmget", libc::SYS_shmget),
        ("semget", libc::SYS_semget),
        ("msgget", libc::SYS_msgget),
        ("mq_open", libc::SYS_mq_open),
        ("syslog", libc::SYS_syslog),
        ("reboot", libc::SYS_reboot),
        ("newer than this list", 463),
        ("newer still", 1000),
        ("the other way into the same kernel", 0x4000_0000 + libc::SYS_getpid),
    ]);
    let arguments: Vec<String> = calls.iter().map(|(name, number)| format!("{name}={number}")).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let script = r#"
for argument in sys.argv[1:]:
    name, number = argument.split("=")
    call(name, int(number), 0, 0, 0, 0, 0, 0)
for name, flag in [("user", 0x10000000), ("mount", 0x20000), ("pid", 0x20000000), ("network", 0x40000000), ("parent", 0x8000)]:
    call("clone into another " + name, CLONE, flag | 17, 0, 0, 0, 0)
call("not refused", GETPID)
"#;
    let script = script.replace("CLONE", &libc::SYS_clone.to_string()).replace("GETPID", &libc::SYS_getpid.to_string());
    for version in VERSIONS {
        let mut outcomes = Cage::new(version).attempts(true, &script, &arguments).await;
        assert_eq!(outcomes.remove("not refused").as_deref(), Some("DONE"), "how it is asked works");
        all_refused(&outcomes, calls.len() + 5);
    }
}

#[tokio::test]
async fn a_command_cannot_change_its_user_and_root_is_only_an_owner() {
    let did = {
        let cage = Cage::new(u8::MAX);
        // Limits come a moment after the beginning.
        let status = "while [ $(ulimit -n) != 4096 ]; do :; done; ulimit -c; ulimit -n; \
                      grep -E '^(NoNewPrivs|Seccomp|Cap(Inh|Prm|Eff|Amb)):' /proc/self/status";
        cage.run(cage.command(&["sh", "-c", status])).await
    };
    let mut lines: Vec<String> = did.output.lines().map(|line| line.replace('\t', " ")).collect();
    lines.sort();
    let nothing = "0000000000000000";
    let capabilities = ["Amb", "Eff", "Inh", "Prm"].map(|set| format!("Cap{set}: {nothing}"));
    let mut expected = vec!["0".to_owned(), "4096".into(), "NoNewPrivs: 1".into(), "Seccomp: 2".into()];
    expected.extend(capabilities);
    expected.sort();
    assert_eq!(lines, expected);
}
