//! Folders of this machine, below the allowed roots.

use async_trait::async_trait;
use ports::{Error, Folders, Result};
use std::{
    io,
    path::{Component, Path, PathBuf},
};

/// How many entries of one folder are looked at.
const MOST_ENTRIES: usize = 10_000;

/// The allowed roots, resolved when they were given.
#[derive(Clone, Debug, Default)]
pub struct LocalFolders {
    roots: Vec<PathBuf>,
}

impl LocalFolders {
    /// Below these roots.
    ///
    /// # Errors
    /// `Invalid` for a root that is relative, absent or no folder: a typing error must not allow another folder later.
    pub fn below(roots: &[PathBuf]) -> Result<Self> {
        let mut resolved = Vec::new();
        for root in roots {
            let path = resolve(root).map_err(|reason| Error::Invalid(format!("the allowed root {root:?} {reason}")))?;
            resolved.push(path);
        }
        Ok(Self { roots: resolved })
    }

    fn is_within(&self, path: &Path) -> bool {
        // By whole components: /work is no root of /workshop.
        self.roots.iter().any(|root| path.starts_with(root))
    }

    fn check(&self, cwd: &str) -> Result<PathBuf> {
        let path = resolve(Path::new(cwd)).map_err(|reason| Error::Invalid(format!("the folder {cwd:?} {reason}")))?;
        if self.is_within(&path) {
            return Ok(path);
        }
        Err(Error::Invalid(format!("the folder {cwd:?} is outside of the allowed roots")))
    }

    fn complete(&self, text: &str, limit: usize) -> Vec<String> {
        if text.trim().is_empty() {
            return self.roots.iter().filter_map(|root| text_of(root)).take(limit).collect();
        }
        let (folder, beginning) = text.rsplit_once('/').map_or(("", text), |(folder, name)| (folder, name));
        let folder = if folder.is_empty() { "/" } else { folder };
        let Ok(folder) = self.check(folder) else {
            let begins = |root: &String| root.starts_with(text);
            return self.roots.iter().filter_map(|root| text_of(root)).filter(begins).take(limit).collect();
        };
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let beginning = beginning.to_lowercase();
        let mut found: Vec<String> = entries
            .take(MOST_ENTRIES)
            .filter_map(|entry| entry.ok()?.path().into_os_string().into_string().ok())
            .filter(|path| {
                let name = path.rsplit('/').next().unwrap_or_default();
                name.to_lowercase().starts_with(&beginning) && (!name.starts_with('.') || beginning.starts_with('.'))
            })
            // Resolved again: an entry may be a link that leads out.
            .filter(|path| self.check(path).is_ok())
            .collect();
        found.sort();
        found.truncate(limit);
        found
    }
}

/// The path without links; the reason in words if it is no folder.
fn resolve(path: &Path) -> std::result::Result<PathBuf, &'static str> {
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return Err("is not an absolute path");
    }
    let resolved = std::fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "does not exist",
        _ => "cannot be read",
    })?;
    if resolved.is_dir() { Ok(resolved) } else { Err("is no folder") }
}

fn text_of(path: &Path) -> Option<String> {
    path.to_str().map(String::from)
}

#[async_trait]
impl Folders for LocalFolders {
    fn roots(&self) -> Vec<String> {
        self.roots.iter().filter_map(|root| text_of(root)).collect()
    }

    async fn allowed(&self, cwd: &str) -> Result<String> {
        let (folders, cwd) = (self.clone(), cwd.to_owned());
        let path = blocking(move || folders.check(&cwd)).await??;
        text_of(&path).ok_or_else(|| Error::Invalid("the path of the folder is not UTF-8".into()))
    }

    async fn search(&self, text: &str, limit: usize) -> Result<Vec<String>> {
        let (folders, text) = (self.clone(), text.to_owned());
        blocking(move || folders.complete(&text, limit)).await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::unavailable("the folders of this machine", error))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn text(path: &Path) -> String {
        text_of(path).unwrap()
    }

    #[tokio::test]
    async fn a_folder_is_allowed_below_a_root_after_its_links_are_resolved() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        for folder in ["work/app", "workshop", "work/.git"] {
            std::fs::create_dir_all(place.join(folder)).unwrap();
        }
        std::fs::write(place.join("work/file"), "x").unwrap();
        std::os::unix::fs::symlink(place.join("workshop"), place.join("work/out")).unwrap();
        std::os::unix::fs::symlink(place.join("work/app"), place.join("in")).unwrap();
        let folders = LocalFolders::below(&[place.join("work")]).unwrap();
        let allowed = async |path: &str| folders.allowed(&text(&place.join(path))).await;
        for inside in ["work", "work/app", "work/./app", "in"] {
            assert!(allowed(inside).await.is_ok(), "{inside}");
        }
        assert_eq!(allowed("in").await.unwrap(), text(&place.join("work/app")));
        for outside in ["workshop", "work/out", "work/missing", "work/file", "work/app/../app", ""] {
            assert!(matches!(allowed(outside).await, Err(Error::Invalid(_))), "{outside}");
        }
        for relative in ["work", "", "./work"] {
            assert!(matches!(folders.allowed(relative).await, Err(Error::Invalid(_))), "{relative}");
        }
        assert!(matches!(LocalFolders::below(&["work".into()]), Err(Error::Invalid(_))));
        assert!(matches!(LocalFolders::default().allowed("/").await, Err(Error::Invalid(_))));
    }

    #[tokio::test]
    async fn a_search_completes_a_path_and_never_leaves_the_roots() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        for folder in ["root/alpha/deep", "root/Also", "root/beta", "root/.hidden", "other/alpha"] {
            std::fs::create_dir_all(place.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(place.join("other"), place.join("root/alias")).unwrap();
        let root = text(&place.join("root"));
        let folders = LocalFolders::below(&[place.join("root")]).unwrap();
        let search = async |text: &str, limit| folders.search(text, limit).await.unwrap();
        let below = |names: &[&str]| names.iter().map(|name| format!("{root}/{name}")).collect::<Vec<_>>();
        assert_eq!(search("", 10).await, std::slice::from_ref(&root));
        assert_eq!(search(&root[..root.len() - 2], 10).await, std::slice::from_ref(&root));
        assert_eq!(search(&format!("{root}/"), 10).await, below(&["Also", "alpha", "beta"]));
        assert_eq!(search(&format!("{root}/al"), 10).await, below(&["Also", "alpha"]));
        assert_eq!(search(&format!("{root}/al"), 1).await, below(&["Also"]));
        assert_eq!(search(&format!("{root}/."), 10).await, below(&[".hidden"]));
        assert_eq!(search("/", 10).await, std::slice::from_ref(&root));
        for nothing in [format!("{}/other/", place.display()), format!("{root}/../other/")] {
            assert!(search(&nothing, 10).await.is_empty(), "{nothing}");
        }
    }
}
