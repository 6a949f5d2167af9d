//! The system calls of a command: seccomp.
//!
//! Two filters, of which the stricter answer counts. The first knows every call up to a certain number, and says of all others that
//! there is no such call: those of newer kernels, those of the x32 way into x86-64, and a few that programs have an older call for.
//! The second refuses calls that a command does not need.

use super::terminals::{TIOCLINUX, TIOCSTI};
use crate::run::Refusal;
use libc::{ENOSYS, EPERM};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};
use std::{collections::BTreeMap, sync::OnceLock};

/// The newest call that was looked at (`mseal`, Linux 6.10). All architectures have the same numbers from 424 on.
const NEWEST: i64 = 462;

/// Calls that do not exist here. Their arguments are in memory, out of a filter's sight, they are new, or the memory that they make is
/// counted nowhere (files that have no folder); every C library and runtime has another way.
const ABSENT: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pidfd_getfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_memfd_create,
    SYS_MEMFD_SECRET,
    SYS_STATMOUNT,
    SYS_LISTMOUNT,
];

/// Calls that are refused with any arguments.
#[rustfmt::skip]
const REFUSED: &[i64] = &[
    // into other processes
    libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_process_madvise,
    libc::SYS_process_mrelease, libc::SYS_kcmp, libc::SYS_migrate_pages, libc::SYS_move_pages,
    // mounts and namespaces
    libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_move_mount, libc::SYS_open_tree,
    libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick, libc::SYS_mount_setattr, libc::SYS_unshare,
    libc::SYS_setns, libc::SYS_quotactl, libc::SYS_quotactl_fd, libc::SYS_open_by_handle_at,
    // objects of the kernel beside files: keys, and memory and messages by numbers that others use, too
    libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key, libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmctl,
    libc::SYS_semget, libc::SYS_semop, libc::SYS_semtimedop, libc::SYS_semctl, libc::SYS_msgget, libc::SYS_msgsnd,
    libc::SYS_msgrcv, libc::SYS_msgctl, libc::SYS_mq_open, libc::SYS_mq_unlink,
    // more kernel than a command needs
    libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_fanotify_init, libc::SYS_lookup_dcookie,
    libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module, libc::SYS_kexec_load,
    // the machine
    libc::SYS_reboot, libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_acct, libc::SYS_syslog, libc::SYS_vhangup,
    libc::SYS_sethostname, libc::SYS_setdomainname, libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_adjtimex,
    libc::SYS_clock_adjtime, libc::SYS_nfsservctl,
    // attributes of files, lists of their readers among those: Landlock does not know of them
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr, libc::SYS_removexattr, libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // watches of other processes' files: they tell names of folders that the command may not list
    libc::SYS_inotify_add_watch,
];
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[libc::SYS_kexec_file_load];

/// Calls that open sockets to somebody, or wait for them. Pairs stay: many programs talk to themselves by one.
const OF_SOCKETS: &[i64] =
    &[libc::SYS_socket, libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];

/// The processes beside a command that has no namespaces of its own.
pub(super) struct Beside {
    /// The process group of the command.
    pub group: u32,
    /// The process that starts it.
    pub process: u32,
    /// The thread of it that does, which is confined in the same way.
    pub thread: u32,
}

/// The parameters of a command's filters.
pub(super) struct Rules {
    /// The version of Landlock that holds.
    pub landlock: u8,
    pub network: bool,
    /// None if there are no processes of the host to reach.
    pub beside: Option<Beside>,
}

/// Restricts this thread.
pub(super) fn restrict(rules: &Rules) -> Result<(), Refusal> {
    let cannot = |error: &dyn std::fmt::Display| {
        Refusal::Refused(format!("commands are confined by seccomp, and cannot be here: {error}"))
    };
    let known = known().as_ref().map_err(|error| cannot(error))?;
    let refused = rules.refused().map_err(|error| cannot(&error))?;
    apply_filter(known).and_then(|()| apply_filter(&refused)).map_err(|error| cannot(&error))
}

impl Beside {
    fn refuse(&self, landlock: u8, refused: &mut Conditions) -> Result<(), seccompiler::BackendError> {
        // The one group that it may enter is the one that it is in: the command itself is put there.
        refused.always(libc::SYS_setsid);
        refused.when(libc::SYS_setpgid, &[other(0, 0)])?;
        refused.when(libc::SYS_setpgid, &[other(1, self.group)])?;
        // The thread that starts the command is confined in the same way, so Landlock's scope lets signals to it through. Such a signal ends
        // the whole host.
        let to =
            [libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo];
        for call in to {
            refused.when(call, &[equal(0, self.process)])?;
            refused.when(call, &[equal(0, self.thread)])?;
            // The guard of the group, which has its number.
            refused.when(call, &[equal(0, self.group)])?;
        }
        if landlock < 6 {
            // Everybody (-1), and every group but the own one.
            let group = -i64::from(self.group);
            refused.when(libc::SYS_kill, &[(0, SeccompCmpOp::Gt, bits(i64::from(i32::MAX))), other(0, group)])?;
        }
        Ok(())
    }
}

type Compiled = Result<BpfProgram, seccompiler::BackendError>;

fn target() -> Result<TargetArch, seccompiler::BackendError> {
    std::env::consts::ARCH.try_into()
}

/// Everything else does not exist.
fn known() -> &'static Compiled {
    static KNOWN: OnceLock<Compiled> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let numbers = (0..=NEWEST).filter(|number| !ABSENT.contains(number)).map(|number| (number, Vec::new()));
        let absent = SeccompAction::Errno(ENOSYS.cast_unsigned());
        SeccompFilter::new(numbers.collect(), absent, SeccompAction::Allow, target()?)?.try_into()
    })
}

/// An argument of a call, by its place, and the condition on it.
type ArgumentTest = (u8, SeccompCmpOp, u64);

/// The conditions under which calls are refused. All of one rule have to hold, of any rule.
#[derive(Default)]
struct Conditions(BTreeMap<i64, Vec<SeccompRule>>);

impl Conditions {
    fn always(&mut self, call: i64) {
        // An empty list of rules always holds.
        self.0.insert(call, Vec::new());
    }

    fn when(&mut self, call: i64, asked: &[ArgumentTest]) -> Result<(), seccompiler::BackendError> {
        let condition = |(place, operator, value): &ArgumentTest| {
            SeccompCondition::new(*place, SeccompCmpArgLen::Dword, operator.clone(), *value)
        };
        let rule = SeccompRule::new(asked.iter().map(condition).collect::<Result<_, _>>()?)?;
        match self.0.get_mut(&call) {
            // It is refused always.
            Some(rules) if rules.is_empty() => {}
            Some(rules) => rules.push(rule),
            None => drop(self.0.insert(call, vec![rule])),
        }
        Ok(())
    }
}

fn equal(place: u8, value: impl Into<i64>) -> ArgumentTest {
    (place, SeccompCmpOp::Eq, bits(value))
}

fn other(place: u8, value: impl Into<i64>) -> ArgumentTest {
    (place, SeccompCmpOp::Ne, bits(value))
}

/// That all bits of `value` are set, and none of the rest of `mask`.
fn masked(place: u8, mask: impl Into<i64>, value: impl Into<i64>) -> ArgumentTest {
    (place, SeccompCmpOp::MaskedEq(bits(mask)), bits(value))
}

/// An argument of 32 bits.
fn bits(value: impl Into<i64>) -> u64 {
    value.into().cast_unsigned() & 0xffff_ffff
}

impl Rules {
    fn refused(&self) -> Compiled {
        let mut refused = Conditions::default();
        REFUSED.iter().chain(REFUSED_HERE).for_each(|call| refused.always(*call));
        self.processes(&mut refused)?;
        self.sockets(&mut refused)?;
        self.files(&mut refused)?;
        let action = SeccompAction::Errno(EPERM.cast_unsigned());
        SeccompFilter::new(refused.0, SeccompAction::Allow, action, target()?)?.try_into()
    }

    /// Refuses calls that leave the group, or reach processes outside of it.
    fn processes(&self, refused: &mut Conditions) -> Result<(), seccompiler::BackendError> {
        let namespaces = [
            libc::CLONE_NEWNS,
            libc::CLONE_NEWCGROUP,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
            // A child of the host would stay a zombie until the host ends.
            libc::CLONE_PARENT,
        ];
        for flag in namespaces {
            refused.when(libc::SYS_clone, &[masked(0, flag, flag)])?;
        }
        if let Some(beside) = &self.beside {
            beside.refuse(self.landlock, refused)?;
        }
        // Signals that come with the readiness of a file: the kernel sends them to whomever was named.
        for command in [libc::F_SETOWN, F_SETOWN_EX] {
            refused.when(libc::SYS_fcntl, &[equal(1, command)])?;
        }
        for command in [FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX] {
            refused.when(libc::SYS_ioctl, &[equal(1, command)])?;
        }
        // Limits and priorities of others.
        refused.when(libc::SYS_prlimit64, &[other(0, 0)])?;
        let of = [
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setattr,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setscheduler,
        ];
        for call in of {
            refused.when(call, &[other(0, 0)])?;
        }
        for (call, process) in [(libc::SYS_setpriority, libc::PRIO_PROCESS as i64), (libc::SYS_ioprio_set, 1)] {
            refused.when(call, &[other(0, process)])?;
            refused.when(call, &[other(1, 0)])?;
        }
        Ok(())
    }

    fn sockets(&self, refused: &mut Conditions) -> Result<(), seccompiler::BackendError> {
        // A pair of datagram sockets can be turned to somebody else; one of streams cannot.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            refused.when(libc::SYS_socketpair, &[masked(1, 0xf, kind)])?;
        }
        if self.network {
            // Resolvers ask for interfaces by netlink. Not sockets on this machine's files: behind one may be a daemon that obeys any
            // client, as root.
            let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|family| other(0, family));
            // Of the kernel's own subjects only routes: others have more to say than a command needs.
            refused.when(libc::SYS_socket, &[equal(0, libc::AF_NETLINK), other(2, libc::NETLINK_ROUTE)])?;
            return refused.when(libc::SYS_socket, &families);
        }
        OF_SOCKETS.iter().for_each(|call| refused.always(*call));
        Ok(())
    }

    /// Refuses operations on files that Landlock does not see.
    fn files(&self, refused: &mut Conditions) -> Result<(), seccompiler::BackendError> {
        let modes = [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (SYS_FCHMODAT2, 2)];
        #[cfg(target_arch = "x86_64")]
        let modes = modes.into_iter().chain([(libc::SYS_chmod, 1)]);
        for (call, place) in modes {
            for bit in [0o4000, 0o2000] {
                refused.when(call, &[masked(place, bit, bit)])?;
            }
        }
        // A lease makes others wait for its holder, in `open`; a notice tells of other processes' work.
        for command in [libc::F_SETLEASE, libc::F_NOTIFY] {
            refused.when(libc::SYS_fcntl, &[equal(1, command)])?;
        }
        if self.landlock < 3 {
            refused.always(libc::SYS_truncate);
            let (mask, cut) = (libc::O_TRUNC | libc::O_ACCMODE, libc::O_TRUNC | libc::O_RDONLY);
            refused.when(libc::SYS_openat, &[masked(2, mask, cut)])?;
            #[cfg(target_arch = "x86_64")]
            refused.when(libc::SYS_open, &[masked(1, mask, cut)])?;
            // Its flags are in memory.
            refused.always(libc::SYS_openat2);
        }
        Ok(())
    }
}

// Not all of these are in `libc` for all systems.
const F_SETOWN_EX: i32 = 15;
const FIOSETOWN: i32 = 0x8901;
const SIOCSPGRP: i32 = 0x8902;
const SYS_FCHMODAT2: i64 = 452;
const SYS_MEMFD_SECRET: i64 = 447;
const SYS_STATMOUNT: i64 = 457;
const SYS_LISTMOUNT: i64 = 458;
