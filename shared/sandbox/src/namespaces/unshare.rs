//! The first of two processes: it leaves the host, and waits until all its processes have ended.

use super::{ChildMessage, INIT, NAME, channel};
use crate::own_user::become_user;
use rustix::{
    process::{getegid, geteuid},
    thread::{
        CapabilitySet, CapabilitySets, UnshareFlags, capabilities, configure_capability_in_ambient_set,
        set_capabilities,
    },
};
use std::{
    fs,
    io::{Result, stdin},
    os::unix::process::CommandExt,
    process::Command,
};

/// The namespaces to leave, by name, and the likely reason if one is missing.
const NAMESPACES: [(UnshareFlags, &str); 6] = [
    (UnshareFlags::NEWUSER, "user"),
    (UnshareFlags::NEWNS, "mount"),
    (UnshareFlags::NEWPID, "pid"),
    (UnshareFlags::NEWIPC, "ipc"),
    (UnshareFlags::NEWNET, "net"),
    (UnshareFlags::NEWCGROUP, "cgroup"),
];

/// As `user`, if one is given.
pub(super) fn run(user: Option<u32>) -> i32 {
    // The host sends a byte when this process is in its control group.
    if channel::hear(stdin(), &mut [0]).is_err() {
        return 1;
    }
    match unshare(user) {
        Ok(mut init) => {
            let status = init.spawn().and_then(|mut init| init.wait());
            status.ok().and_then(|status| status.code()).unwrap_or(1)
        }
        Err(why) => {
            let line = serde_json::to_vec(&ChildMessage::Failed(why)).unwrap_or_default();
            let _ = channel::tell(stdin(), &[line.as_slice(), b"\n"].concat(), &[]);
            1
        }
    }
}

fn unshare(user: Option<u32>) -> std::result::Result<Command, String> {
    if let Some(user) = user {
        become_user(user).map_err(|error| format!("a process cannot become user {user}: {error}"))?;
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    for (flag, name) in NAMESPACES {
        #[expect(deprecated, reason = "it is unsafe for tables of descriptors alone, and these stay as they are")]
        let left = rustix::thread::unshare(flag);
        left.map_err(|error| {
            let why = "user.max_user_namespaces, kernel.unprivileged_userns_clone, \
                       kernel.apparmor_restrict_unprivileged_userns or a container's seccomp may say no";
            format!("this kernel gives no {name} namespace ({error}); {why}")
        })?;
        if flag == UnshareFlags::NEWUSER {
            let mapped = map(user, group);
            mapped.map_err(|error| format!("the user namespace can have no user: {error}"))?;
        }
    }
    hand_on().map_err(|error| format!("the capabilities to make a root cannot be handed on: {error}"))?;
    let mut init = Command::new("/proc/self/exe");
    init.arg0(NAME).arg(INIT).env_clear().current_dir("/");
    Ok(init)
}

/// Hands the capabilities to make a root on to the next process: a user that is not root would lose them by executing a program. They are
/// valid in the new namespaces alone, and the command has none of them.
fn hand_on() -> rustix::io::Result<()> {
    let needed = [CapabilitySet::SYS_ADMIN, CapabilitySet::NET_ADMIN, CapabilitySet::SYS_PTRACE];
    let has = capabilities(None)?;
    let inheritable = needed.into_iter().collect();
    set_capabilities(None, CapabilitySets { inheritable, ..has })?;
    needed.into_iter().try_for_each(|one| configure_capability_in_ambient_set(one, true))
}

/// One user and one group, under the numbers that they have.
fn map(user: u32, group: u32) -> Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}
