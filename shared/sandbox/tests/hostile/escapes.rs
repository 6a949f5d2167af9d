//! Attempts to get out of a command's namespaces, in classes: some thousand attempts, most of them a list of names times a list of actions. The
//! first review made 332 of them by hand; `new.py` has those that it lacked.
//!
//! An attempt prints its outcome. It is refused by one of the errors of its class, or harmless by what it is; and for any output, nothing
//! around the namespaces has changed, heard of it, or ended.

mod resources;

use crate::{
    cage::{Cage, Did},
    other_tenant::NAMESPACES,
    processes::Bystander,
};
use buildscale_sandbox::{Isolation, Options};
use ports::Exec;
use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    os::unix::{fs::MetadataExt, net::UnixListener},
    path::{Path, PathBuf},
};

/// A secret that no command ever reads.
const SECRET: &str = "CANARY-of-somebody-else";

/// How attempts are told: `outcome name`.
const PRELUDE: &str = r#"
import ctypes, errno, fcntl, json, os, resource, signal, socket, stat, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
SYS = json.loads(sys.argv.pop(1))
def told(outcome, name): print(outcome, name.replace("\n", " "), flush=True)
def refuse(number): raise OSError(number, "")
def check(result):
    if result < 0: refuse(ctypes.get_errno())
def attempt(name, do, well):
    try: outcome = well(do())
    except OSError as error: outcome = errno.errorcode.get(error.errno, type(error).__name__)
    told(outcome, name)
def tries(name, do): attempt(name, do, lambda _: "DONE")
def harmless(name, do): attempt(name, do, lambda _: "HARMLESS")
def shown(name, do): attempt(name, do, lambda text: "LEAK" if "CANARY" in str(text) else "SHOWN")
def asked(number, *arguments):
    kept = [ctypes.create_string_buffer(it) if isinstance(it, bytes) else it for it in arguments]
    plain = (ctypes.addressof(it) if isinstance(it, ctypes.Array) else it for it in kept)
    check(libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, plain)))
def call(name, number, *arguments): tries(name, lambda: asked(number, *arguments))
def renameat2(one, other, flags): asked(SYS["renameat2"], -100, os.fsencode(one), -100, os.fsencode(other), flags)
"#;

/// The numbers of system calls by their names.
macro_rules! numbers {
    ($($name:literal = $number:expr),* $(,)?) => { BTreeMap::from([$(($name, $number)),*]) };
}

fn numbers() -> BTreeMap<&'static str, i64> {
    numbers![
        "acct" = libc::SYS_acct,
        "add_key" = libc::SYS_add_key,
        "adjtimex" = libc::SYS_adjtimex,
        "bpf" = libc::SYS_bpf,
        "capset" = libc::SYS_capset,
        "chroot" = libc::SYS_chroot,
        "clock_adjtime" = libc::SYS_clock_adjtime,
        "clock_settime" = libc::SYS_clock_settime,
        "clone" = libc::SYS_clone,
        "clone3" = libc::SYS_clone3,
        "delete_module" = libc::SYS_delete_module,
        "fanotify_init" = libc::SYS_fanotify_init,
        "finit_module" = libc::SYS_finit_module,
        "fsconfig" = libc::SYS_fsconfig,
        "fsmount" = libc::SYS_fsmount,
        "fsopen" = libc::SYS_fsopen,
        "fspick" = libc::SYS_fspick,
        "get_robust_list" = libc::SYS_get_robust_list,
        "init_module" = libc::SYS_init_module,
        "io_uring_enter" = libc::SYS_io_uring_enter,
        "io_uring_register" = libc::SYS_io_uring_register,
        "io_uring_setup" = libc::SYS_io_uring_setup,
        "ioperm" = libc::SYS_ioperm,
        "iopl" = libc::SYS_iopl,
        "ioprio_set" = libc::SYS_ioprio_set,
        "kcmp" = libc::SYS_kcmp,
        "kexec_file_load" = libc::SYS_kexec_file_load,
        "kexec_load" = libc::SYS_kexec_load,
        "keyctl" = libc::SYS_keyctl,
        "linkat" = libc::SYS_linkat,
        "memfd_create" = libc::SYS_memfd_create,
        "memfd_secret" = libc::SYS_memfd_secret,
        "migrate_pages" = libc::SYS_migrate_pages,
        "modify_ldt" = libc::SYS_modify_ldt,
        "mount" = libc::SYS_mount,
        "mount_setattr" = libc::SYS_mount_setattr,
        "move_mount" = libc::SYS_move_mount,
        "move_pages" = libc::SYS_move_pages,
        "mq_open" = libc::SYS_mq_open,
        "mq_unlink" = libc::SYS_mq_unlink,
        "msgctl" = libc::SYS_msgctl,
        "msgget" = libc::SYS_msgget,
        "msgrcv" = libc::SYS_msgrcv,
        "msgsnd" = libc::SYS_msgsnd,
        "open_by_handle_at" = libc::SYS_open_by_handle_at,
        "open_tree" = libc::SYS_open_tree,
        "perf_event_open" = libc::SYS_perf_event_open,
        "pidfd_getfd" = libc::SYS_pidfd_getfd,
        "pidfd_open" = libc::SYS_pidfd_open,
        "pidfd_send_signal" = libc::SYS_pidfd_send_signal,
        "pivot_root" = libc::SYS_pivot_root,
        "prctl" = libc::SYS_prctl,
        "process_madvise" = libc::SYS_process_madvise,
        "process_mrelease" = libc::SYS_process_mrelease,
        "process_vm_readv" = libc::SYS_process_vm_readv,
        "process_vm_writev" = libc::SYS_process_vm_writev,
        "ptrace" = libc::SYS_ptrace,
        "quotactl" = libc::SYS_quotactl,
        "quotactl_fd" = libc::SYS_quotactl_fd,
        "reboot" = libc::SYS_reboot,
        "renameat2" = libc::SYS_renameat2,
        "request_key" = libc::SYS_request_key,
        "rt_sigqueueinfo" = libc::SYS_rt_sigqueueinfo,
        "semctl" = libc::SYS_semctl,
        "semget" = libc::SYS_semget,
        "semop" = libc::SYS_semop,
        "semtimedop" = libc::SYS_semtimedop,
        "setdomainname" = libc::SYS_setdomainname,
        "setfsgid" = libc::SYS_setfsgid,
        "setfsuid" = libc::SYS_setfsuid,
        "sethostname" = libc::SYS_sethostname,
        "setns" = libc::SYS_setns,
        "setsid" = libc::SYS_setsid,
        "settimeofday" = libc::SYS_settimeofday,
        "shmat" = libc::SYS_shmat,
        "shmctl" = libc::SYS_shmctl,
        "shmget" = libc::SYS_shmget,
        "socket" = libc::SYS_socket,
        "socketpair" = libc::SYS_socketpair,
        "swapoff" = libc::SYS_swapoff,
        "swapon" = libc::SYS_swapon,
        "syslog" = libc::SYS_syslog,
        "tgkill" = libc::SYS_tgkill,
        "tkill" = libc::SYS_tkill,
        "umount2" = libc::SYS_umount2,
        "unshare" = libc::SYS_unshare,
        "uselib" = libc::SYS_uselib,
        "userfaultfd" = libc::SYS_userfaultfd,
        "vhangup" = libc::SYS_vhangup,
        "statmount" = 457,
        "listmount" = 458,
        "lsm_set_self_attr" = 460,
    ]
}

/// A cage whose commands have namespaces of their own.
pub fn namespaced(change: impl FnOnce(&mut Options)) -> Cage {
    let beside = std::env::current_exe().unwrap().with_file_name("sandbox-namespaces");
    let program = if beside.exists() { beside } else { PathBuf::from(NAMESPACES) };
    Cage::with(|options| {
        options.isolation = Isolation::Namespaces(program);
        change(options);
    })
}

/// The mode, owner, links, time and content of every file below a folder.
fn snapshot(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let is = fs::symlink_metadata(&path).unwrap();
        let content = if is.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
        let said = format!("{:o} {} {} {} {content}", is.mode(), is.uid(), is.nlink(), is.mtime());
        found.insert(path.clone(), said);
        if is.is_dir() {
            snapshot(&path, found);
        }
    }
}

/// Errors that say no.
const REFUSED: &[&str] = &[
    "EACCES",
    "EPERM",
    "ENOSYS",
    "ENOENT",
    "EROFS",
    "ESRCH",
    "ENXIO",
    "ENODEV",
    "ENOTDIR",
    "EISDIR",
    "EXDEV",
    "ELOOP",
    "ECHILD",
    "ENOTTY",
    "EBADF",
    "ESPIPE",
    "EBUSY",
    "ENOMEM",
    "ENOSPC",
    "EOPNOTSUPP",
    "EAFNOSUPPORT",
    "ENETUNREACH",
    "ECONNREFUSED",
    "EISCONN",
    "EPIPE",
    "EHOSTUNREACH",
    "ETXTBSY",
    "ENAMETOOLONG",
    "EPROTONOSUPPORT",
    "ESOCKTNOSUPPORT",
    "TimeoutError",
    "HARMLESS",
    "SHOWN",
];

/// Makes the attempts of a class: at least so many, each refused, or by one of these errors.
async fn holds(script: &str, at_least: usize, network: bool, also: &[&str]) {
    let cage = namespaced(|_| {});
    let (root, latest) = (cage.root(), cage.latest());
    for name in ["secret", "buildscale.toml", "files/other/latest/c.md"] {
        fs::write(root.join(name), SECRET).unwrap();
    }
    fs::write(latest.join("outside/b.md"), SECRET).unwrap();
    let victim = Bystander::new();
    let stream = UnixListener::bind(root.join("stream")).unwrap();
    let tcp = TcpListener::bind("0.0.0.0:0").unwrap();
    stream.set_nonblocking(true).unwrap();
    tcp.set_nonblocking(true).unwrap();
    let mut before = BTreeMap::new();
    snapshot(&root, &mut before);

    let numbers = serde_json::to_string(&numbers()).unwrap();
    let port = tcp.local_addr().unwrap().port().to_string();
    let (root_name, latest_name) = (root.display().to_string(), latest.display().to_string());
    let (host, victim_id) = (std::process::id().to_string(), victim.id());
    let with_network = if network { "network" } else { "none" };
    let own = own_address();
    let script = format!("{PRELUDE}root, latest = sys.argv[1:3]\n{script}");
    let words = [
        "/usr/bin/python3",
        "-I",
        "-c",
        &script,
        &numbers,
        &root_name,
        &latest_name,
        &host,
        &victim_id,
        with_network,
        &port,
        &own,
    ];
    let did = cage.run(Exec { network, max_output: 4 << 20, ..cage.command(&words) }).await;
    let Did { output, errors, end, dropped, .. } = &did;
    assert_eq!(
        (end.code, errors.as_str(), *dropped),
        (Some(0), "", 0),
        "{}",
        output.lines().last().unwrap_or_default()
    );
    let outcomes: Vec<(&str, &str)> = output.lines().filter_map(|line| line.split_once(' ')).collect();
    let through: Vec<_> =
        outcomes.iter().filter(|(outcome, _)| !REFUSED.contains(outcome) && !also.contains(outcome)).collect();
    assert!(through.is_empty(), "{} of {}: {through:#?}", through.len(), outcomes.len());
    assert!(outcomes.len() >= at_least, "{} attempts", outcomes.len());
    assert!(!output.contains(SECRET));

    let mut after = BTreeMap::new();
    snapshot(&root, &mut after);
    assert_eq!(before, after, "nothing around it has changed");
    assert!(stream.accept().is_err() && tcp.accept().is_err(), "no connection came in");
    let Bystander(child) = &mut { victim };
    assert_eq!(child.try_wait().unwrap(), None, "no other process was ended");
}

/// An address of this machine that is not its loopback, if it has one.
fn own_address() -> String {
    // Nothing is sent: a route is looked up.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let found = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    found.map_or_else(|_| "127.0.0.3".into(), |address| address.ip().to_string())
}

#[tokio::test]
async fn files_of_others_are_not_there_and_the_rest_is_only_read() {
    holds(include_str!("escapes/files.py"), 800, false, &["EINVAL"]).await;
}

#[tokio::test]
async fn other_processes_are_not_there() {
    holds(include_str!("escapes/others.py"), 300, false, &[]).await;
}

#[tokio::test]
async fn the_kernel_gives_no_way_out() {
    holds(include_str!("escapes/kernel.py"), 600, false, &["EINVAL"]).await;
}

#[tokio::test]
async fn there_is_no_socket_to_anybody() {
    holds(include_str!("escapes/sockets.py"), 270, false, &[]).await;
}

#[tokio::test]
async fn with_a_network_private_addresses_are_out_of_reach() {
    holds(include_str!("escapes/sockets.py"), 300, true, &["EINVAL"]).await;
}

#[tokio::test]
async fn attempts_that_the_first_review_lacked_are_refused_as_well() {
    holds(include_str!("escapes/new.py"), 120, false, &["EINVAL"]).await;
}
