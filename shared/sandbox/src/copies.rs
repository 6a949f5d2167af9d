//! Working copies on this disk: one folder per chat, in which a coding agent works.
//!
//! The agent is not trusted with more than its copy. So all access here goes through [`Folder`], or by names below it that are opened as there,
//! and follows no link that the agent may have put into its way.

mod walk;

use crate::mirror::replace;
use async_trait::async_trait;
use bytes::Bytes;
use domain::{ChatId, FilePath, Sha256, WorkspaceId};
use parking_lot::Mutex;
use ports::{CopiedFile, CopyRecord, Error, LARGE, MOST_COPIED, Result, WorkingCopies, WorkingCopy};
use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{sync::OwnedMutexGuard, task::spawn_blocking};
use uuid::Uuid;
use walk::{Walked, walked};
use workspace::mirror::{Area, Mirror as Folder};

/// The name of the record, beside the files.
const RECORD: &str = "record.json";

/// Working copies in a folder of this disk.
#[derive(Debug)]
pub struct LocalCopies {
    home: PathBuf,
    copies: Mutex<HashMap<(WorkspaceId, ChatId), Turns>>,
}

/// The holders of one copy take turns by it, and hand on what they have seen.
type Turns = Arc<tokio::sync::Mutex<SeenFiles>>;

/// The files as they were looked at last: one that looks the same is not read again.
type SeenFiles = HashMap<FilePath, (Look, CopiedFile)>;

/// Length, inode, and the times of its content and of its inode.
type Look = (u64, u64, (i64, i64), (i64, i64));

impl LocalCopies {
    /// The copies in `home`, which need not be there.
    pub fn new(home: PathBuf) -> Self {
        Self { home, copies: Mutex::default() }
    }

    fn folder(&self, workspace: WorkspaceId, chat: ChatId) -> PathBuf {
        self.home.join(workspace.to_string()).join(chat.to_string())
    }

    /// Waits until no other has the copy.
    async fn alone(&self, workspace: WorkspaceId, chat: ChatId) -> OwnedMutexGuard<SeenFiles> {
        let copy = {
            let mut copies = self.copies.lock();
            if copies.len() > 1_000 {
                copies.retain(|_, copy| Arc::strong_count(copy) > 1);
            }
            copies.entry((workspace, chat)).or_default().clone()
        };
        copy.lock_owned().await
    }
}

#[async_trait]
impl WorkingCopies for LocalCopies {
    async fn path(&self, workspace: WorkspaceId, chat: ChatId, folder: &FilePath) -> Result<PathBuf> {
        let (home, folder) = (self.folder(workspace, chat), folder.clone());
        disk(move || {
            lay_out(&home)?;
            Folder::new(home.clone()).make(&folder)?;
            fs::canonicalize(Folder::new(home).latest())
        })
        .await
    }

    async fn hold(&self, workspace: WorkspaceId, chat: ChatId) -> Result<Box<dyn WorkingCopy>> {
        let (seen, home) = (self.alone(workspace, chat).await, self.folder(workspace, chat));
        let record = disk({
            let home = home.clone();
            // One that was removed is not made again by a turn that ends late.
            move || {
                match fs::read(home.join(RECORD)) {
                    // One that is damaged is as one that is gone: all is compared by its content then.
                    Ok(text) => Ok(serde_json::from_slice(&text).unwrap_or_default()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(CopyRecord::default()),
                    Err(error) => Err(error),
                }
            }
        })
        .await?;
        Ok(Box::new(LocalCopy { folder: Folder::new(home.clone()), home, seen, record }))
    }

    async fn remove(&self, workspace: WorkspaceId, chat: ChatId) -> Result<()> {
        let mut seen = self.alone(workspace, chat).await;
        seen.clear();
        let home = self.folder(workspace, chat);
        disk(move || Folder::new(home).delete()).await
    }
}

/// A copy in one hand.
struct LocalCopy {
    folder: Folder,
    home: PathBuf,
    seen: OwnedMutexGuard<SeenFiles>,
    record: CopyRecord,
}

impl LocalCopy {
    /// The look of a file when it was found as this one.
    fn look_of(&self, path: &FilePath, found: CopiedFile) -> Option<Look> {
        self.seen.get(path).filter(|(_, file)| *file == found).map(|(look, _)| *look)
    }
}

#[async_trait]
impl WorkingCopy for LocalCopy {
    fn record(&mut self) -> &mut CopyRecord {
        &mut self.record
    }

    async fn scan(&mut self, folder: &FilePath) -> Result<BTreeMap<FilePath, CopiedFile>> {
        let (at, folder, seen) = (self.folder.clone(), folder.clone(), std::mem::take(&mut *self.seen));
        let known: BTreeMap<FilePath, Sha256> =
            self.record.common.iter().map(|(path, common)| (path.clone(), common.digest)).collect();
        let found = disk(move || {
            let root = at.latest();
            let mut paths = match walked(&root, &folder)? {
                Walked::Files(paths) => paths,
                Walked::TooMuch(of_what) => return Ok(Err(of_what)),
            };
            // Also those that a `.gitignore` names.
            paths.extend(known.keys().cloned());
            paths.sort();
            paths.dedup();
            if paths.len() > MOST_COPIED {
                return Ok(Err(format!("more than {MOST_COPIED} files")));
            }
            let mut found = SeenFiles::new();
            for path in paths {
                match looked_at(&at, &path, &seen) {
                    Ok(Some(file)) => drop(found.insert(path, file)),
                    Ok(None) => {}
                    // The agent has closed it even for itself: it counts as it was.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        let as_it_was = known.get(&path).map(|digest| CopiedFile { digest: *digest, size: 0 });
                        found.extend(as_it_was.map(|file| (path, (Look::default(), file))));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(Ok(found))
        })
        .await?;
        let found = found.map_err(|of_what| Error::Invalid(format!("the folder of the agent has {of_what}")))?;
        let files = found.iter().map(|(path, (_, file))| (path.clone(), *file)).collect();
        *self.seen = found;
        Ok(files)
    }

    async fn read(&self, path: &FilePath, found: CopiedFile) -> Result<Option<Bytes>> {
        let (folder, path) = (self.folder.clone(), path.clone());
        let content = disk(move || folder.read(&path, found.size.min(LARGE))).await?;
        Ok(content.map(Bytes::from).filter(|content| Sha256::of(content) == found.digest))
    }

    async fn put(&mut self, path: &FilePath, content: Bytes, over: Option<CopiedFile>) -> Result<bool> {
        let seen = over.and_then(|over| self.look_of(path, over));
        let (folder, home, at) = (self.folder.clone(), self.home.clone(), path.clone());
        let put = disk(move || {
            if over.is_some() != seen.is_some() || !is_as_seen(&folder, &at, seen)? {
                return Ok(None);
            }
            lay_out(&home)?;
            folder.write(&at, &content, Uuid::now_v7())?;
            let file = CopiedFile { digest: Sha256::of(&content), size: content.len() as u64 };
            Ok(look(&folder, &at)?.map(|look| (look, file)))
        })
        .await?;
        let is_put = put.is_some();
        self.seen.extend(put.map(|put| (path.clone(), put)));
        Ok(is_put)
    }

    async fn take_away(&mut self, path: &FilePath, found: CopiedFile) -> Result<bool> {
        let (folder, seen, at) = (self.folder.clone(), self.look_of(path, found), path.clone());
        let taken = disk(move || {
            let is_so = seen.is_some() && is_as_seen(&folder, &at, seen)?;
            Ok(is_so && folder.remove(Area::Latest, &at, Uuid::now_v7())?)
        })
        .await?;
        if taken {
            self.seen.remove(path);
        }
        Ok(taken)
    }

    async fn keep(&mut self) -> Result<()> {
        let (home, record) = (self.home.clone(), self.record.clone());
        disk(move || {
            lay_out(&home)?;
            replace(&home, RECORD, &serde_json::to_vec(&record)?)
        })
        .await
    }
}

fn lay_out(home: &Path) -> io::Result<()> {
    for part in ["latest", "tmp"] {
        fs::create_dir_all(home.join(part))?;
    }
    Ok(())
}

async fn disk<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    let done = spawn_blocking(work).await.map_err(io::Error::other).flatten();
    done.map_err(|error| Error::unavailable("the disk of the working copy", error))
}

/// A file as it is, read only where it looks other than last; none where there is none.
///
/// A file that is too long for a version from here is known by its look: it may be a terabyte of holes, or grow without end.
fn looked_at(folder: &Folder, path: &FilePath, seen: &SeenFiles) -> io::Result<Option<(Look, CopiedFile)>> {
    let Some(look) = look(folder, path)? else { return Ok(None) };
    if let Some((_, file)) = seen.get(path).filter(|(last, _)| *last == look) {
        return Ok(Some((look, *file)));
    }
    let content = if look.0 > LARGE { None } else { folder.read(path, LARGE)? };
    let digest = match content {
        Some(content) => Sha256::of(&content),
        None => Sha256::of(format!("{look:?}").as_bytes()),
    };
    Ok(Some((look, CopiedFile { digest, size: look.0 })))
}

/// The look of a regular file; none where there is none.
fn look(folder: &Folder, path: &FilePath) -> io::Result<Option<Look>> {
    match folder.open(path).and_then(|file| file.metadata()) {
        Ok(found) => {
            let (changed, inode) = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
            Ok(Some((found.len(), found.ino(), changed, inode)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_as_seen(folder: &Folder, path: &FilePath, seen: Option<Look>) -> io::Result<bool> {
    match look(folder, path) {
        Ok(look) => Ok(look == seen),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use domain::FileId;
    use ports::Common;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    fn file(content: &str) -> CopiedFile {
        CopiedFile { digest: Sha256::of(content.as_bytes()), size: content.len() as u64 }
    }

    #[tokio::test]
    async fn a_file_of_any_length_is_told_apart_without_reading_it() {
        let disk = tempfile::tempdir().unwrap();
        let copies = LocalCopies::new(disk.path().join("copies"));
        let (workspace, chat) = (WorkspaceId(Uuid::from_u128(1)), ChatId(Uuid::from_u128(2)));
        let root = copies.path(workspace, chat, &FilePath::root()).await.unwrap();
        let mut copy = copies.hold(workspace, chat).await.unwrap();
        // Terabytes that take no room, as databases have them.
        let holes = fs::File::create(root.join("holes")).unwrap();
        holes.set_len(1 << 40).unwrap();
        let first = copy.scan(&FilePath::root()).await.unwrap();
        assert_eq!(first[&path("/holes")].size, 1 << 40);
        assert_eq!(copy.scan(&FilePath::root()).await.unwrap(), first);
        holes.set_len(2 << 40).unwrap();
        assert_ne!(copy.scan(&FilePath::root()).await.unwrap()[&path("/holes")].digest, first[&path("/holes")].digest);
    }

    #[tokio::test]
    async fn section_14_a_copy_is_scanned_and_changed_without_following_links() {
        let (disk, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let copies = LocalCopies::new(disk.path().join("copies"));
        let (workspace, chat) = (WorkspaceId(Uuid::from_u128(1)), ChatId(Uuid::from_u128(2)));
        let root = copies.path(workspace, chat, &path("/app")).await.unwrap();
        let mut copy = copies.hold(workspace, chat).await.unwrap();
        assert!(copy.put(&path("/app/a"), "one".into(), None).await.unwrap());
        assert!(copy.put(&path("/app/deep/.gitignore"), "*.log".into(), None).await.unwrap());
        for name in ["app/deep/x.log", "app/deep/kept.log", "app/node_modules/m", "app/.git/config", "other"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "x").unwrap();
        }
        fs::write(outside.path().join("secret"), "secret").unwrap();
        symlink(outside.path(), root.join("app/link")).unwrap();
        symlink(outside.path().join("secret"), root.join("app/secret")).unwrap();
        let common = Common { file: FileId(Uuid::from_u128(3)), v: 1, digest: Sha256::of(b"x") };
        copy.record().common.insert(path("/app/deep/kept.log"), common);
        let found = copy.scan(&path("/app")).await.unwrap();
        let expected = [("/app/a", "one"), ("/app/deep/.gitignore", "*.log"), ("/app/deep/kept.log", "x")];
        let expected: Vec<_> = expected.map(|(name, content)| (path(name), file(content))).into();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);

        // A path that leads over a link is no path of the copy.
        assert_eq!(copy.read(&path("/app/link/secret"), file("secret")).await.unwrap(), None);
        assert!(
            copy.put(&path("/app/link/new"), "mine".into(), None).await.is_err()
                || !outside.path().join("new").exists()
        );
        assert!(!copy.take_away(&path("/app/link/secret"), file("secret")).await.unwrap());
        assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");

        // The agent was faster: its file stays.
        fs::write(root.join("app/a"), "two").unwrap();
        assert_eq!(copy.read(&path("/app/a"), file("one")).await.unwrap(), None);
        assert!(!copy.put(&path("/app/a"), "mine".into(), Some(file("one"))).await.unwrap());
        assert!(!copy.put(&path("/app/a"), "mine".into(), None).await.unwrap());
        assert!(!copy.take_away(&path("/app/a"), file("one")).await.unwrap());
        assert_eq!(copy.scan(&path("/app")).await.unwrap()[&path("/app/a")], file("two"));
        assert!(copy.put(&path("/app/a"), "three".into(), Some(file("two"))).await.unwrap());
        assert_eq!(fs::read_to_string(root.join("app/a")).unwrap(), "three");
        assert!(copy.take_away(&path("/app/a"), file("three")).await.unwrap());

        copy.keep().await.unwrap();
        drop(copy);
        let mut copy = LocalCopies::new(disk.path().join("copies")).hold(workspace, chat).await.unwrap();
        assert_eq!(copy.record().common.len(), 1, "the record outlives the process");
        drop(copy);
        copies.remove(workspace, chat).await.unwrap();
        assert!(!root.exists());
        copies.remove(workspace, chat).await.unwrap();
    }
}
