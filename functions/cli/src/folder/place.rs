//! The place of a path of an agent: inside of the folder, whatever links there are.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Component, Path, PathBuf},
};

/// The file or folder at a path, without links on the way.
///
/// # Errors
/// The reason, for the agent, where it is outside of the folder or one of git's own.
pub(super) fn below(root: &Path, path: &str) -> Result<PathBuf, String> {
    let outside = || format!("{path} is outside of the person's folder");
    let mut named = PathBuf::new();
    for part in root.join(path).components() {
        match part {
            Component::ParentDir => drop(named.pop()),
            Component::CurDir => {}
            other => named.push(other),
        }
    }
    // The part that exists decides; the rest is made there.
    let (mut there, mut rest) = (named.clone(), Vec::new());
    let place = loop {
        match there.canonicalize() {
            Ok(found) => break found,
            // A link that leads to nothing leads nowhere that could be compared.
            Err(_) if there.is_symlink() => return Err(outside()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                rest.push(there.file_name().ok_or_else(outside)?.to_owned());
                there.pop();
            }
            Err(error) => return Err(format!("{path}: {error}")),
        }
    };
    let place = rest.iter().rev().fold(place, |place, name| place.join(name));
    let inside = place.strip_prefix(root).map_err(|_| outside())?;
    // Some disks take names in any letters for the same.
    if inside.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git")) {
        return Err(format!("{path} is one of git's own files: use its commands"));
    }
    Ok(place)
}

/// Gives the file at a place its content by a rename, with the permissions that it has: a crash leaves the old content or the new one.
pub(super) fn replace(at: &Path, content: &[u8]) -> io::Result<()> {
    let name = at.file_name().unwrap_or_default().to_string_lossy();
    let beside = at.with_file_name(format!(".{name}.{}", uuid::Uuid::now_v7()));
    let written = (|| {
        let mut file = File::create_new(&beside)?;
        file.write_all(content)?;
        if let Ok(found) = fs::metadata(at) {
            file.set_permissions(found.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&beside, at)
    })();
    if written.is_err() {
        // It may not be there.
        let _ = fs::remove_file(&beside);
    }
    written
}
