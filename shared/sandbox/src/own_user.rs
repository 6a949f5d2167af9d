//! The user of a workspace. A host that root starts gives each workspace a user of its own, so what the kernel counts and forbids by user is
//! that of one workspace alone.

use domain::WorkspaceId;
use rustix::{
    process::{DumpableBehavior, geteuid, set_dumpable_behavior},
    thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid},
};
use std::{fs, io::Result, os::unix::fs::chown, path::Path};

/// The user of a workspace, if this process may change its own: one of those that no system assigns (0x70000000 and above), by the last digits
/// of the workspace's id, which are random.
pub(crate) fn of(workspace: WorkspaceId) -> Option<u32> {
    let is_root = geteuid().is_root() && fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| maps_all(&map));
    is_root.then_some(number_of(workspace))
}

fn number_of(workspace: WorkspaceId) -> u32 {
    // The last 28 bits.
    let digits = u32::try_from(workspace.0.as_u128() & 0x0fff_ffff).unwrap_or_default();
    0x7000_0000 + digits % 0x0fff_0000
}

fn maps_all(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Becomes the user with this number for good. This process has one thread.
pub(crate) fn become_user(number: u32) -> Result<()> {
    let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    // Else its own files in /proc would still be root's, and it could not write them.
    Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}

/// Becomes the user of a workspace, which gets these folders, if root started this process; does nothing otherwise. For a host of one workspace, which
/// calls it while it has one thread. No capability is left afterwards.
///
/// # Errors
/// Those of the kernel: the folders cannot be made, or the container lacks the capabilities CHOWN, SETGID or SETUID.
pub fn become_user_of(workspace: WorkspaceId, folders: &[&Path]) -> Result<Option<u32>> {
    let Some(user) = of(workspace) else { return Ok(None) };
    for folder in folders {
        fs::create_dir_all(folder)?;
        chown(folder, Some(user), Some(user))?;
    }
    become_user(user)?;
    Ok(Some(user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_workspace_has_the_same_user_each_time_and_none_that_a_system_assigns() {
        let user = |id: u128| number_of(WorkspaceId(Uuid::from_u128(id)));
        assert_eq!(user(0x0199_aaaa_0000_7000_8000_0000_0123_4567), 0x7123_4567);
        assert_eq!(user(u128::MAX), 0x7000_ffff);
        assert!(
            [0, 1, 0x0ffe_ffff, 0x0fff_0000].map(user).iter().all(|user| (0x7000_0000..0x7fff_0000).contains(user))
        );
    }

    #[test]
    fn only_a_user_of_the_whole_machine_gives_users_away() {
        assert!(maps_all("         0          0 4294967295\n"));
        assert!(!maps_all("         0       1000          1\n") && !maps_all("0 100000 65536\n") && !maps_all(""));
    }
}
