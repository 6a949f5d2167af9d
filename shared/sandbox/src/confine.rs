//! The inner wall of a command: Landlock and seccomp, the same way on a laptop and in a container, with nothing to install and no
//! privilege.
//!
//! All children of a thread inherit a filter, which can never be taken off. So each command has a [thread](launch) of its own, which puts all
//! of this on itself, starts the command, and ends: a thread of process 1 of the command's own [namespaces](crate::namespaces), or of the host if the
//! command is among the host's processes.
//!
//! | from | kept away by |
//! |---|---|
//! | files | Landlock: the system's folders and one folder of the workspace can be read, scratch can be written to |
//! | other processes: memory, environment, files | Landlock (`ptrace` and `/proc/<pid>`), no capabilities, a host that [cannot be looked into](harden) |
//! | signals to others | Landlock's scope if the kernel has it; in any case none to the host |
//! | its own end | among the host's processes it cannot leave its process group, by which it is ended |
//! | the network, sockets of services | seccomp: without `network` there is no socket but pairs, with it only those of the internet |
//! | the kernel's wider surface | seccomp: no mounts, namespaces, keys, BPF, io_uring, ...; calls that are newer than this list do not exist |
//! | other processes' work on files | seccomp: no watching of files, no leases on them |
//! | becoming somebody else | `no_new_privs`; capabilities are dropped, so that root is only the owner of its files |
//!
//! This wall alone leaves open, among the host's processes: names and sizes of files anywhere can be asked for (not listed, not read), and of
//! the files of the user that the host runs as, permission bits and times can be set, because Landlock knows neither; names and arguments of
//! the host's processes can be read. In namespaces of its own a command finds none of these.
//!
//! Older kernels: before 6.12 (no signal scope), a command among the host's processes can send signals to processes of the same user, other
//! than the host and processes in no group with it, and so rid itself of the guard that would end it if the host were killed; before 6.7, the
//! network is refused by seccomp alone; before 6.2, files are kept from being cut by refusing `truncate(2)`; before 5.19, no file moves from
//! one folder to another. Before 5.13 there is no Landlock, and nothing runs.

mod calls;
mod files;
mod terminals;

pub(crate) use files::Readable;

use crate::run::Refusal;
use rustix::{
    process::{DumpableBehavior, set_dumpable_behavior},
    thread::{CapabilitySet, CapabilitySets, gettid, set_capabilities},
};
use std::{
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Child, Command},
    thread,
};

/// The first descriptor behind the three that every process has.
const FIRST: i32 = 3;

/// The confinement of one command.
#[derive(Debug)]
pub(crate) struct Confinement {
    /// The folders of the system that it can read.
    pub readable: Readable,
    /// The only folder of the workspace that it can read.
    pub root: OwnedFd,
    /// The folder that it can write to.
    pub scratch: PathBuf,
    /// Whether it can open sockets.
    pub network: bool,
    /// The newest version of Landlock to make use of.
    pub landlock: u8,
}

/// Keeps commands from looking into this process: their starting thread shares its memory, so Landlock sees no border there. There is no core
/// dump of it then, and no debugger without privileges. It also closes this process's open files to them: its parent may have left it files
/// without the mark that closes them. A repetition changes nothing.
pub(crate) fn harden() -> io::Result<()> {
    close_fds::set_fds_cloexec_threadsafe(FIRST, &[]);
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Takes files, sockets and other processes away from this thread and all that it starts, for ever: for a program that reads its input and writes its
/// output. A kernel that lacks a part of the wall gives the rest.
pub(crate) fn shut() {
    let none = CapabilitySet::empty();
    // A failure leaves the other walls, and the limits of the process.
    let _ = set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none });
    let landlock = files::shut().unwrap_or(0);
    let _ = calls::restrict(&calls::Rules { landlock, network: false, beside: None });
}

/// Confines this thread and all that it starts, for ever, to the system's folders, to more that it can read and run, and to folders that it can change:
/// for a program that acts as the person who runs the host, and that needs their network. It types into no terminal.
///
/// # Errors
/// Why this machine cannot, for people.
pub fn confine(readable: &[PathBuf], writable: &[PathBuf]) -> Result<(), String> {
    harden().map_err(|error| format!("this process can be looked into: {error}"))?;
    let files = files::confine(&Readable::new(readable, &[]), writable);
    files.and_then(|_| terminals::keep_from_typing()).map_err(|refusal| refusal.to_string())
}

/// Whether this machine can confine a program so, found out on a thread.
///
/// # Errors
/// Why not, for people.
pub fn can_confine() -> Result<(), String> {
    let tried = thread::Builder::new().name("confined".into()).spawn(|| confine(&[], &[]));
    let tried = tried.map_err(|error| format!("there is no thread: {error}"))?;
    tried.join().unwrap_or_else(|_| Err("the thread that tried came to its end".into()))
}

/// Starts a command that is confined: in this process group, among the host's processes; or, without one, in a group of its own without other
/// processes.
pub(crate) fn launch(confinement: Confinement, mut command: Command, group: Option<i32>) -> Result<Child, Refusal> {
    harden().map_err(|error| Refusal::Failed(format!("this process can be looked into: {error}")))?;
    let start = move || {
        confinement.apply(group)?;
        command.process_group(group.unwrap_or(0)).spawn().map_err(|error| cannot_run(&command, &error))
    };
    let thread = thread::Builder::new().name("confined".into()).spawn(start);
    let thread = thread.map_err(|error| Refusal::Failed(format!("there is no thread: {error}")))?;
    thread.join().unwrap_or_else(|_| Err(Refusal::Failed("the thread that starts a command came to its end".into())))
}

fn cannot_run(command: &Command, error: &io::Error) -> Refusal {
    let text = format!("{} cannot be run: {error}", command.get_program().display());
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => Refusal::Failed(text),
        _ => Refusal::Refused(text),
    }
}

impl Confinement {
    /// Puts it around this thread and all that it starts, for ever.
    fn apply(&self, group: Option<i32>) -> Result<(), Refusal> {
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
            .map_err(|error| Refusal::Failed(format!("capabilities cannot be dropped: {error}")))?;
        let landlock = files::restrict(self)?;
        let beside = group.map(|group| calls::Beside {
            group: group.cast_unsigned(),
            process: std::process::id(),
            thread: gettid().as_raw_nonzero().get().cast_unsigned(),
        });
        calls::restrict(&calls::Rules { landlock, network: self.network, beside })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::group::Group;
    use std::fs::File;
    use testkit::Means;

    #[test]
    fn a_program_that_is_confined_inherits_no_file_of_its_host_and_cannot_look_into_it() {
        use rustix::{
            io::{FdFlags, fcntl_getfd, fcntl_setfd},
            process::dumpable_behavior,
        };
        let file = File::open("/dev/null").unwrap();
        fcntl_setfd(&file, FdFlags::empty()).unwrap();
        let Some(()) = Means::Landlock.needed(can_confine()) else { return };
        assert!(fcntl_getfd(&file).unwrap().contains(FdFlags::CLOEXEC));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }

    /// A call on no file at all: a filter answers before the kernel looks for the file.
    const TYPES: &str = r#"
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for request in [0x5412, 0x541c, 0x5413]:
    libc.ioctl(-1, request, b"x")
    print(errno.errorcode[ctypes.get_errno()])
"#;

    #[test]
    fn a_program_that_is_confined_types_into_no_terminal() {
        let Some(()) = Means::Landlock.needed(can_confine()) else { return };
        let behind = thread::spawn(|| {
            confine(&[], &[]).unwrap();
            Command::new("/usr/bin/python3").args(["-I", "-c", TYPES]).output().unwrap()
        });
        let output = behind.join().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, "EPERM\nEPERM\nEBADF\n", "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Tries actions that Landlock lets through, because they are within the same domain: that of the thread.
    const PROBE: &str = r#"
import ctypes, errno, os, sys
host, thread, tgkill = map(int, sys.argv[1:])
def tries(attempt):
    try: attempt()
    except OSError as error: print(errno.errorcode[error.errno])
    else: print("DONE")
def by_thread():
    if ctypes.CDLL(None, use_errno=True).syscall(tgkill, host, thread, 0) < 0: raise OSError(ctypes.get_errno(), "")
for name in [f"{host}", f"{host}/task/{thread}", f"{thread}"]:
    tries(lambda: open(f"/proc/{name}/environ", "rb").read())
    tries(lambda: open(f"/proc/{name}/mem", "rb").close())
    tries(lambda: os.readlink(f"/proc/{name}/fd/0"))
tries(lambda: os.kill(host, 0))
tries(lambda: os.kill(thread, 0))
tries(by_thread)
"#;

    #[test]
    fn the_thread_that_starts_a_command_is_out_of_its_reach_while_it_lives() {
        let home = tempfile::tempdir().unwrap();
        for landlock in [1, 5, u8::MAX] {
            harden().unwrap();
            let root = OwnedFd::from(File::open(home.path()).unwrap());
            let readable = Readable::new(&[], &[]);
            let confinement = Confinement { readable, root, scratch: home.path().to_owned(), network: false, landlock };
            let behind = thread::spawn(move || {
                let group = Group::new().unwrap();
                confinement.apply(Some(group.id())).unwrap();
                let numbers = [i64::from(std::process::id()), gettid().as_raw_nonzero().get().into(), libc::SYS_tgkill];
                let mut python = Command::new("/usr/bin/python3");
                python.args(["-I", "-c", PROBE]).args(numbers.map(|number| number.to_string()));
                python.process_group(group.id()).output().unwrap()
            });
            let output = behind.join().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let refused = text.lines().filter(|line| matches!(*line, "EACCES" | "EPERM")).count();
            assert_eq!((refused, text.lines().count()), (12, 12), "{text}{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
