//! More than a command may have, of all that there is.

use super::namespaced;
use crate::{
    cage::{Cage, Did},
    leftovers::marked,
};
use buildscale_sandbox::Limits;
use ports::Exec;
use std::time::Duration;

fn small() -> Cage {
    namespaced(|options| {
        options.limits = Limits { memory: 96 << 20, scratch: 4 << 20, files: 64, processes: 48, output: 1 << 20 };
    })
}

/// Runs a command, and shows that nothing of it is left.
async fn alone(cage: &Cage, name: &str, command: Exec) -> Did {
    let (key, value) = (format!("MARK_{name}"), std::process::id().to_string());
    let mut command = command;
    command.env.insert(key.clone(), value.clone());
    let did = cage.run(command).await;
    assert_eq!(marked(&format!("{key}={value}")), [""; 0], "{name} left something: {did:?}");
    did
}

fn python(cage: &Cage, script: &str) -> Exec {
    let begin = "
import ctypes, errno, mmap, os, signal, socket, sys, threading, time
rest = time.sleep
def again(do):
    # The kernel says no a moment before the command is ended.
    while True:
        try: return do()
        except (OSError, RuntimeError): rest(0.01)
";
    cage.command(&["/usr/bin/python3", "-I", "-c", &format!("{begin}{script}")])
}

/// Each takes without end; with the limit that ends it.
const ENDED: &[(&str, &str, &str)] = &[
    ("forks", "while True: again(os.fork)", "more processes and threads"),
    ("a_row", "while True:\n  if again(os.fork) == 0: signal.pause()", "more processes and threads"),
    (
        "daemons",
        "while True:\n  if again(os.fork) == 0:\n    os.setsid()\n    if again(os.fork): os._exit(0)\n    signal.pause()",
        "more processes and threads",
    ),
    (
        "threads",
        "threading.stack_size(1 << 16)\nwhile True: again(lambda: threading.Thread(target=time.sleep, args=(1000,)).start())",
        "more processes and threads",
    ),
    (
        "together",
        "for n in range(8):\n  if os.fork() == 0:\n    a = bytearray(b'x' * (30 << 20)); signal.pause()\nsignal.pause()",
        "more memory",
    ),
    (
        "shared",
        "a = mmap.mmap(-1, 400 << 20)\nfor at in range(0, 400 << 20, 4096): a[at] = 1\nsignal.pause()",
        "more memory",
    ),
    (
        "shared_by_parts",
        "kept = []\nwhile True:\n  a = mmap.mmap(-1, 8 << 20); kept.append(a)\n  for at in range(0, 8 << 20, 4096): a[at] = 1",
        "more memory",
    ),
];

#[tokio::test]
async fn a_command_that_takes_without_end_is_ended() {
    let cage = small();
    for (name, script, why) in ENDED {
        let did = alone(&cage, name, python(&cage, script)).await;
        let said = format!("[ended: {why}");
        assert!(did.errors.contains(&said) && did.end.signal == Some(9) && !did.end.timed_out, "{name}: {did:?}");
    }
}

/// Each takes as much as it can and prints the limit that stopped it.
const REFUSED: &[(&str, &str, &str)] = &[
    ("memory", "try: bytearray(b'x' * (400 << 20))\nexcept MemoryError: print('ENOMEM')", "ENOMEM"),
    ("plain", "os.write(1, said(lambda: fill(open('/tmp/a', 'wb'))))", "EFBIG or ENOSPC"),
    ("several", "os.write(1, said(lambda: [fill(open(f'/tmp/{n}', 'wb'), 1 << 20) for n in range(100)]))", "ENOSPC"),
    (
        "unlinked",
        "kept = []\ndef more():\n  for n in range(60):\n    file = open('/tmp/u', 'wb'); os.unlink('/tmp/u'); kept.append(file); fill(file, 1 << 20)\nos.write(1, said(more))",
        "ENOSPC",
    ),
    ("shm", "os.write(1, said(lambda: [fill(open(f'/dev/shm/{n}', 'wb'), 1 << 20) for n in range(100)]))", "ENOSPC"),
    (
        "room",
        "os.write(1, said(lambda: os.posix_fallocate(os.open('/tmp/r', os.O_RDWR | os.O_CREAT), 0, 1 << 40)))",
        "EFBIG or ENOSPC",
    ),
    (
        "locked",
        "os.mkdir('/tmp/l'); os.chmod('/tmp/l', 0o300)\nos.write(1, said(lambda: [fill(open(f'/tmp/l/{n}', 'wb'), 1 << 20) for n in range(100)]))",
        "ENOSPC",
    ),
    (
        "long",
        "os.chdir('/tmp')\nfor n in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\nos.write(1, said(lambda: [fill(open(f'{n}', 'wb'), 1 << 20) for n in range(100)]))",
        "ENOSPC",
    ),
    ("entries", "os.write(1, said(lambda: [open(f'/tmp/{n}', 'w').close() for n in range(300_000)]))", "ENOSPC"),
    (
        "deep",
        "os.chdir('/tmp')\ndef down():\n  for n in range(5000): os.mkdir('d'); os.chdir('d')\nos.write(1, said(down))",
        "ENOSPC",
    ),
    ("links", "os.write(1, said(lambda: [os.symlink('/' * 4000, f'/tmp/{n}') for n in range(300_000)]))", "ENOSPC"),
    ("descriptors", "os.write(1, said(lambda: [os.open('/dev/null', os.O_RDONLY) for n in range(10_000)]))", "EMFILE"),
    ("pairs", "os.write(1, said(lambda: [socket.socketpair() for n in range(10_000)]))", "EMFILE"),
    ("memfd", "os.write(1, said(lambda: os.memfd_create('x')))", "ENOSYS"),
    ("root", "os.write(1, said(lambda: fill(open('/big', 'wb'))))", "EACCES or EROFS"),
];

const SAID: &str = "
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill(file, most=1 << 30):
    for at in range(0, most, 1 << 18): file.write(bytes(1 << 18)); file.flush()
def said(do):
    try: do()
    except OSError as error: return errno.errorcode[error.errno].encode()
    return b'DONE'
";

#[tokio::test]
async fn files_descriptors_and_memory_have_an_end() {
    let cage = small();
    for (name, script, expected) in REFUSED {
        let did = alone(&cage, name, python(&cage, &format!("{SAID}{script}"))).await;
        let output = did.output.trim();
        assert!(expected.split(" or ").any(|one| one == output), "{name}: {did:?}");
    }
}

#[tokio::test]
async fn nothing_outlives_its_namespaces() {
    let cage = small();
    let stays = "
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(0); os.close(1); os.close(2)
        while True: rest(1000)
    os._exit(0)
print('begun', flush=True)
if sys.argv[1:] == ['stay']: rest(1000)";
    let did = alone(&cage, "goes", python(&cage, stays)).await;
    assert_eq!((did.end.code, did.output.as_str()), (Some(0), "begun\n"), "{did:?}");
    let mut command = python(&cage, stays);
    command.words.push("stay".into());
    let did = alone(&cage, "late", Exec { timeout: Duration::from_secs(1), ..command }).await;
    assert_eq!((did.end.signal, did.end.timed_out), (Some(9), true), "{did:?}");
    for (name, script) in [
        ("stopped", "os.kill(os.getpid(), signal.SIGSTOP); rest(1000)"),
        ("all_killed", "os.fork(); os.kill(-1, signal.SIGKILL); rest(0.2)"),
        ("computes", "while True: pass"),
    ] {
        let did = alone(&cage, name, Exec { timeout: Duration::from_secs(1), ..python(&cage, script) }).await;
        assert!(did.end.timed_out || did.end.signal == Some(9) || did.end.code == Some(0), "{name}: {did:?}");
    }
}
