//! `/tmp`: each command's own, which is its scratch folder and goes with it.
//!
//! The thread that starts a command leaves the host's mounts for a copy of its own, and puts the scratch folder over `/tmp` there. That
//! takes a privilege (CAP_SYS_ADMIN) that a hub run by root has, and one run by somebody else, or in most containers, has not. There
//! nothing is mounted: the fence keeps commands from the machine's `/tmp`, and `TMPDIR` leads to the scratch folder.
//!
//! Where the workspace itself is below `/tmp`, the folder that the command reads would be hidden with the rest. It is mounted at its place
//! in the new one, read-only by the mount: there Landlock sees a folder within scratch, which can be written to.

use crate::{plan::open_folder, run::Refusal};
use domain::FilePath;
use rustix::{
    io,
    mount::{MountFlags, MountPropagationFlags, mount_bind, mount_bind_recursive, mount_change, mount_remount},
    thread::{CapabilitySet, UnshareFlags, capabilities},
};
use std::{
    fs::{DirBuilder, canonicalize},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::DirBuilderExt,
    },
    path::{Path, PathBuf},
    sync::OnceLock,
    thread,
};

/// Where programs look for a folder that they may write to.
pub(crate) const TMP: &str = "/tmp";

const READ_ONLY: MountFlags =
    MountFlags::BIND.union(MountFlags::RDONLY).union(MountFlags::NOSUID).union(MountFlags::NODEV);

/// Why commands have no `/tmp` of their own on this machine; none where they have. Found out by trying, once.
pub(crate) fn missing() -> Option<&'static str> {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        // What this thread mounts goes with it.
        let tries = thread::Builder::new().name("mounts".into()).spawn(|| {
            leave()?;
            mount_bind("/usr", TMP)?;
            mount_remount(TMP, READ_ONLY, "")
        });
        let tried = tries.map_err(|error| error.to_string())?.join().map_err(|_| "the attempt panicked".to_owned())?;
        tried.map_err(|error| format!("a mount of its own takes a privilege that this host has not ({error})"))
    });
    found.as_ref().err().map(String::as_str)
}

/// Leaves the host's mounts for a copy of them, with all that this thread starts.
fn leave() -> io::Result<()> {
    if !capabilities(None)?.effective.contains(CapabilitySet::SYS_ADMIN) {
        return Err(io::Errno::PERM);
    }
    #[expect(deprecated, reason = "it is unsafe for tables of descriptors alone, and these stay as they are")]
    rustix::thread::unshare(UnshareFlags::NEWNS)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
}

/// What a command sees of its workspace, by paths, for the mounts of its own.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// The workspace's files.
    pub latest: PathBuf,
    /// The folder that the command runs in.
    pub folder: FilePath,
    /// The only folder of the workspace that it can read.
    pub root: FilePath,
}

impl Shown {
    /// Puts `scratch` over `/tmp` for this thread and all that it starts. The folder that the command is to run in, opened among the
    /// mounts that it has; before `/tmp` covers it, so that Landlock keeps what it is read through from being written, too.
    pub fn under_own_tmp(&self, scratch: &Path) -> Result<OwnedFd, Refusal> {
        let failed = |error: &dyn std::fmt::Display| Refusal::Failed(format!("/tmp cannot be mounted: {error}"));
        leave().map_err(|error| failed(&error))?;
        let folder = open_folder(&self.latest, &self.folder)?;
        let root = open_folder(&self.latest, &self.root)?;
        let place = canonicalize(&self.latest).map_err(|error| failed(&error))?.join(self.root.relative());
        let below = place.strip_prefix(TMP).ok().map(|below| scratch.join(below));
        if let Some(at) = &below {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(at);
            made.map_err(|error| failed(&error))?;
            mount_bind(format!("/proc/self/fd/{}", root.as_raw_fd()), at).map_err(|error| failed(&error))?;
            mount_remount(at, READ_ONLY, "").map_err(|error| failed(&error))?;
        }
        mount_bind_recursive(scratch, TMP).map_err(|error| failed(&error))?;
        Ok(folder)
    }
}
