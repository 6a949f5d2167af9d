//! The folders in which agents may work. A path counts where it leads to, after symbolic links.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The allowed roots, resolved.
#[derive(Clone, Debug, Default)]
pub struct Roots(Vec<PathBuf>);

impl Roots {
    /// These folders. One that is not there allows nothing, and is told of.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let resolved = |folder: PathBuf| match fs::canonicalize(&folder) {
            Ok(folder) => Some(folder),
            Err(error) => {
                tracing::warn!(%error, folder = %folder.display(), "an allowed root cannot be found, and allows nothing");
                None
            }
        };
        Self(folders.into_iter().filter_map(resolved).collect())
    }

    /// As text.
    pub(crate) fn to_strings(&self) -> Vec<String> {
        self.0.iter().map(|root| root.display().to_string()).collect()
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[PathBuf] {
        &self.0
    }

    /// Whether a path is in one of them.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|root| path.starts_with(root))
    }

    /// The folder under its resolved path, if it is in a root.
    ///
    /// # Errors
    /// Why not, in words.
    pub(crate) fn folder(&self, path: &str) -> Result<PathBuf, String> {
        let asked = Path::new(path);
        if !asked.is_absolute() {
            return Err(format!("{path:?} is no absolute path"));
        }
        let found = fs::canonicalize(asked).map_err(|error| format!("{path:?} cannot be found: {error}"))?;
        if !self.has(&found) {
            return Err(format!("{path:?} is outside of the allowed roots"));
        }
        if !found.is_dir() {
            return Err(format!("{path:?} is no folder"));
        }
        Ok(found)
    }

    /// The file that is there, under its resolved path.
    pub(crate) fn file(&self, path: &str) -> io::Result<PathBuf> {
        let asked = absolute(path)?;
        let found = fs::canonicalize(asked)?;
        if self.has(&found) { Ok(found) } else { Err(outside(path)) }
    }

    /// The file that is there or is to be made, under its resolved path. A link in its place is followed.
    pub(crate) fn target(&self, path: &str) -> io::Result<PathBuf> {
        let asked = absolute(path)?;
        // The operating system ignores this end of the path, and the file would get the folder's name.
        if path.ends_with('/') || path.ends_with("/.") {
            let why = format!("{path:?} names a folder, and not the file in it");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        match fs::canonicalize(asked) {
            Ok(found) if self.has(&found) => return Ok(found),
            Ok(_) => return Err(outside(path)),
            // A link that leads to nothing would be made where it leads.
            Err(_) if fs::symlink_metadata(asked).is_ok() => return Err(outside(path)),
            Err(_) => {}
        }
        let (Some(parent), Some(name)) = (asked.parent(), asked.file_name()) else { return Err(outside(path)) };
        // The nearest folder that is there decides; the names below it are plain, so they lead nowhere else.
        let mut missing = vec![name.to_owned()];
        let mut folder = parent;
        let found = loop {
            match fs::canonicalize(folder) {
                Ok(found) => break found,
                Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(folder).is_err() => {
                    let (Some(up), Some(name)) = (folder.parent(), folder.file_name()) else { return Err(error) };
                    missing.push(name.to_owned());
                    folder = up;
                }
                Err(error) => return Err(error),
            }
        };
        if !self.has(&found) {
            return Err(outside(path));
        }
        Ok(missing.iter().rev().fold(found, |path, name| path.join(name)))
    }
}

fn absolute(path: &str) -> io::Result<&Path> {
    let asked = Path::new(path);
    let is_plain = asked.is_absolute() && !asked.components().any(|part| part == std::path::Component::ParentDir);
    if is_plain {
        Ok(asked)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{path:?} is no plain absolute path")))
    }
}

fn outside(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{path:?} is outside of the allowed roots"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_counts_where_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("in/deep")).unwrap();
        fs::create_dir_all(at("out")).unwrap();
        fs::write(at("out/secret"), "x").unwrap();
        fs::write(at("in/a"), "a").unwrap();
        symlink(at("out"), at("in/link")).unwrap();
        symlink(at("out/secret"), at("in/file")).unwrap();
        symlink(at("out/new"), at("in/dangling")).unwrap();
        let roots = Roots::new([at("in")]);
        let text = |name: &str| at(name).display().to_string();
        assert!(roots.folder(&text("in/deep")).is_ok());
        for refused in ["out", "in/link", "in/a", "in/absent"] {
            assert!(roots.folder(&text(refused)).is_err(), "{refused}");
        }
        assert!(roots.folder("in").is_err());
        assert!(roots.file(&text("in/a")).is_ok());
        for refused in ["in/file", "in/link/secret", "out/secret", "in/../out/secret"] {
            assert!(roots.file(&text(refused)).is_err(), "{refused}");
            assert!(roots.target(&text(refused)).is_err(), "{refused}");
        }
        assert!(roots.target(&text("in/new")).is_ok());
        assert!(roots.target(&text("in/new/")).is_err() && roots.target(&text("in/new/.")).is_err());
        assert!(roots.target(&text("in/deep/new/er")).is_ok());
        for refused in ["in/dangling", "in/link/new", "out/new", "in/link/a/b"] {
            assert!(roots.target(&text(refused)).is_err(), "{refused}");
        }
    }
}
