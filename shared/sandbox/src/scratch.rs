//! Scratch folders: what a command may write to, for as long as it runs.

use domain::CallId;
use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// How many entries a scratch folder may have, whatever their size.
const ENTRIES: u64 = 200_000;

/// A folder that goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one. It has the number of this process in its name, so that a later one knows what was left behind.
    pub fn make(within: &Path, call: CallId) -> io::Result<Self> {
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(within)?;
        let path = within.canonicalize()?.join(format!("{}-{call}", std::process::id()));
        clear(&path)?;
        folder.recursive(false).create(&path)?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now.
    pub fn remove(&self) -> io::Result<()> {
        clear(&self.path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::warn!(%error, folder = %self.path.display(), "a scratch folder is left behind");
        }
    }
}

/// Removes what processes left behind that are no more: one that was killed could not.
pub(crate) fn sweep(within: &Path) {
    for entry in fs::read_dir(within).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(|name| name.split_once('-')).map(|(owner, _)| owner) else { continue };
        let is_number = !owner.is_empty() && owner.bytes().all(|byte| byte.is_ascii_digit());
        if is_number
            && !Path::new("/proc").join(owner).exists()
            && let Err(error) = clear(&entry.path())
        {
            tracing::warn!(%error, folder = %entry.path().display(), "a scratch folder is left behind");
        }
    }
}

/// Whether the files below a folder take more than `limit` bytes. What vanishes meanwhile counts as nothing.
pub(crate) fn is_over(folder: &Path, limit: u64) -> bool {
    let (mut bytes, mut entries, mut folders) = (0_u64, 0_u64, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            entries += 1;
            // Blocks and not lengths: a file with holes takes no room.
            bytes += std::os::unix::fs::MetadataExt::blocks(&found) * 512;
            if bytes > limit || entries > ENTRIES {
                return true;
            }
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}

/// Removes a folder, also one whose owner may not look into it: a command can set that of its own.
fn clear(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            unlock(path);
            fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

/// Gives its owner a folder and all below it. Nobody else runs there any more.
fn unlock(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_also_what_was_locked() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let scratch = Scratch::make(&home.path().join("scratch"), CallId::from(Uuid::from_u128(7)))?;
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o700);
        fs::create_dir_all(path.join("a/b"))?;
        fs::write(path.join("a/b/c"), "x")?;
        std::os::unix::fs::symlink("/", path.join("a/link"))?;
        fs::set_permissions(path.join("a/b"), fs::Permissions::from_mode(0o000))?;
        fs::set_permissions(path.join("a"), fs::Permissions::from_mode(0o500))?;
        drop(scratch);
        assert!(!path.exists());
        Ok(())
    }

    #[test]
    fn folders_of_processes_that_are_no_more_are_swept() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let mine = Scratch::make(home.path(), CallId::from(Uuid::from_u128(1)))?;
        // No process has a number over 2^22.
        for left in ["4294967295-0", "4294967295-1"] {
            fs::create_dir(home.path().join(left))?;
        }
        fs::create_dir(home.path().join("else"))?;
        sweep(home.path());
        let mut names: Vec<_> = fs::read_dir(home.path())?.flatten().map(|entry| entry.path()).collect();
        names.sort();
        assert_eq!(names, [mine.path().canonicalize()?, home.path().canonicalize()?.join("else")]);
        Ok(())
    }

    #[test]
    fn what_takes_room_is_counted() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        fs::create_dir(home.path().join("a"))?;
        fs::write(home.path().join("a/b"), vec![1; 100_000])?;
        assert!(is_over(home.path(), 50_000));
        assert!(!is_over(home.path(), 1_000_000));
        Ok(())
    }
}
