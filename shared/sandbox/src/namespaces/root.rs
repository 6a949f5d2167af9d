//! The file system in the namespaces of a command.

use super::{Spec, TMP, WORKSPACE};
use crate::hidden_paths::{FolderMask, folder_masks};
use domain::FilePath;
use rustix::{
    fs::{CWD, StatVfsMountFlags, statvfs},
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
        mount_change, mount_remount, move_mount, unmount,
    },
    process::{chdir, getegid, geteuid, pivot_root},
};
use std::{
    ffi::CString,
    fmt::Display,
    fs,
    os::{fd::OwnedFd, unix::fs::symlink},
    path::{Path, PathBuf},
};

/// The path of the host's files while the root is made.
const HOST: &str = "/host";
/// Devices without data of anyone.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Folders of which every machine with programs has one: something is mounted over it for a moment.
const PLACES: [&str; 3] = ["/tmp", "/usr", "/proc"];
/// How many files may be in `/tmp`: one for each page that it may have, at most so many.
const FILES: u64 = 200_000;

/// The path of a folder of the workspace while it is masked.
const MASKED: &str = "/masked";
/// The most entries of a folder of which others are hidden: each is a mount.
const MOST_KEPT: usize = 10_000;

const SHOWN: MountFlags = MountFlags::BIND.union(MountFlags::RDONLY).union(MountFlags::NOSUID);
const OWN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Puts this process into a root that has only the given parts: `latest` is a mount of the workspace's files.
pub(super) fn make(spec: &Spec, latest: Option<OwnedFd>) -> Result<(), String> {
    step("the mounts of its own", mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC))?;
    let place = PLACES.iter().find(|place| Path::new(place).is_dir()).ok_or("there is no folder to begin in")?;
    step("a root", mount("tmpfs", *place, "tmpfs", OWN, text("size=4m,nr_inodes=4096,mode=755").as_deref()))?;
    let host = format!("{place}{HOST}");
    step("a folder for the host", fs::create_dir(&host))?;
    step("another root", pivot_root(*place, host.as_str()))?;
    step("another root", chdir("/"))?;

    for path in &spec.shown {
        step(path.display(), show(path))?;
    }
    for (link, to) in &spec.links {
        step(link.display(), parents(link).and_then(|()| symlink(to, link)))?;
    }
    step("/etc/passwd", users())?;
    step("/dev", devices())?;
    step("/workspace", fs::create_dir(WORKSPACE))?;
    step("/workspace", workspace(spec, latest))?;
    let (size, files) = (spec.limits.scratch, (spec.limits.scratch / 4096).clamp(1024, FILES));
    let size = text(&format!("size={size},nr_inodes={files},mode=700"));
    step(TMP, fs::create_dir(TMP))?;
    step("a /tmp of its own", mount("tmpfs", TMP, "tmpfs", OWN, size.as_deref()))?;
    // While the host's is still there: the kernel shows no more of it than is to be seen already.
    step("/proc", fs::create_dir("/proc"))?;
    let closed = OWN | MountFlags::NOEXEC | MountFlags::RDONLY;
    step("a /proc of its own", mount("proc", "/proc", "proc", closed, None))?;

    step("to leave the host's files", unmount(HOST, UnmountFlags::DETACH))?;
    step("to leave the host's files", fs::remove_dir(HOST))?;
    step("a root that is read-only", mount_remount("/", SHOWN | MountFlags::NODEV, ""))
}

fn step<T>(what: impl Display, done: Result<T, impl Display>) -> Result<T, String> {
    done.map_err(|error| format!("{what} cannot be had here ({error})"))
}

fn text(options: &str) -> Option<CString> {
    CString::new(options).ok()
}

/// The same place among the host's files.
fn of_host(path: &Path) -> PathBuf {
    Path::new(HOST).join(path.strip_prefix("/").unwrap_or(path))
}

fn parents(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Shows a folder or a file of the host at its place, read-only; skips one that the command's user may not enter.
fn show(path: &Path) -> std::io::Result<()> {
    let source = of_host(path);
    let Ok(there) = fs::metadata(&source) else { return Ok(()) };
    if there.is_dir() {
        fs::create_dir_all(path)?;
    } else {
        parents(path)?;
        fs::write(path, "")?;
    }
    mount_bind_recursive(&source, path)?;
    close(path)
}

/// Makes a mount read-only. The kernel lets no flag of the host's be taken away.
fn close(path: &Path) -> std::io::Result<()> {
    let has = statvfs(path)?.f_flag;
    let kept = if has.contains(StatVfsMountFlags::NOEXEC) { MountFlags::NOEXEC } else { MountFlags::empty() };
    Ok(mount_remount(path, SHOWN | MountFlags::NODEV | kept, "")?)
}

fn workspace(spec: &Spec, latest: Option<OwnedFd>) -> std::io::Result<()> {
    match (latest, &spec.latest) {
        (Some(mounted), _) => move_mount(&mounted, "", CWD, WORKSPACE, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?,
        (None, Some(path)) => mount_bind_recursive(of_host(path), WORKSPACE)?,
        (None, None) => return Err(std::io::ErrorKind::NotFound.into()),
    }
    close(Path::new(WORKSPACE))?;
    hide(&spec.hidden)
}

/// Takes files and folders out of the workspace, with their names: the folder around them is masked by one that has its other entries. An outer folder
/// is masked before one in it, which is an entry of the mask then.
fn hide(hidden: &[FilePath]) -> std::io::Result<()> {
    if hidden.iter().any(FilePath::is_root) {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    folder_masks(Path::new(WORKSPACE), hidden).into_iter().try_for_each(|(folder, mask)| mount_mask(&folder, &mask))
}

/// Fails for a folder that is gone meanwhile: one that is made again would have no mask.
fn mount_mask(folder: &Path, mask: &FolderMask<'_>) -> std::io::Result<()> {
    fs::create_dir(MASKED)?;
    mount_bind(folder, MASKED)?;
    let below = Path::new(MASKED);
    let mut kept = Vec::new();
    for entry in fs::read_dir(below)? {
        let entry = entry?;
        // The workspace has no links; one that somebody else put there would be followed.
        if mask.shows(&entry.file_name()) && !entry.file_type()?.is_symlink() {
            kept.push((entry.file_name(), entry.file_type()?.is_dir()));
        }
        if kept.len() > MOST_KEPT {
            let why = format!("a folder with more than {MOST_KEPT} entries has some that must not be seen");
            return Err(std::io::Error::other(why));
        }
    }
    let options = text(&format!("size=64k,nr_inodes={},mode=755", kept.len() + 2));
    mount("tmpfs", folder, "tmpfs", OWN, options.as_deref())?;
    for (name, is_folder) in kept {
        let path = folder.join(&name);
        if is_folder {
            fs::create_dir(&path)?;
        } else {
            fs::write(&path, "")?;
        }
        mount_bind(below.join(&name), &path)?;
    }
    mount_remount(folder, SHOWN | MountFlags::NODEV, "")?;
    unmount(MASKED, UnmountFlags::DETACH)?;
    fs::remove_dir(MASKED)
}

/// The user that there is, by a name: many programs ask for it.
fn users() -> std::io::Result<()> {
    fs::create_dir_all("/etc")?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    fs::write("/etc/passwd", format!("user:x:{user}:{group}::{TMP}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"))?;
    fs::write("/etc/group", format!("user:x:{group}:\nnogroup:x:65534:\n"))
}

fn devices() -> std::io::Result<()> {
    fs::create_dir("/dev")?;
    for name in DEVICES {
        let (device, source) = (format!("/dev/{name}"), format!("{HOST}/dev/{name}"));
        if Path::new(&source).exists() {
            fs::write(&device, "")?;
            mount_bind_recursive(source.as_str(), device.as_str())?;
            mount_remount(device.as_str(), SHOWN | MountFlags::NOEXEC, "")?;
        }
    }
    symlink("/proc/self/fd", "/dev/fd")?;
    for (number, name) in ["stdin", "stdout", "stderr"].iter().enumerate() {
        symlink(format!("/proc/self/fd/{number}"), format!("/dev/{name}"))?;
    }
    // Shared memory is in the same bounds as files.
    symlink(TMP, "/dev/shm")
}
