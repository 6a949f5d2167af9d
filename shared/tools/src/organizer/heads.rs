//! The entities of folders, without reading each file again and again: a listing tells the digest of every file, and a content with a digest
//! never changes, so what was read of it once stays true.

use crate::call::Call;
use domain::{Code, Error, FilePath, Sha256, WorkspaceId};
use futures::{StreamExt as _, TryStreamExt as _};
use organizer::{Entity, EntityKind};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};
use workspace::{Content, FileKind, Info, Workspace};

/// How much of a file is read, in bytes.
const READ: u64 = 256 * 1024;
/// How much of each text is kept, in characters.
const KEPT: usize = 1_000;
/// How many bytes all of them have. Then all are forgotten.
const ROOM: usize = 16 * 1024 * 1024;
/// The most entities of one call.
const MOST: usize = 5_000;
/// How many files are read, and folders listed, at once.
const AT_ONCE: usize = 16;

/// An entity, and its file.
#[derive(Clone, Debug)]
pub(crate) struct FoundEntity {
    pub info: Info,
    pub entity: Arc<Entity>,
}

/// The entities that were read.
#[derive(Debug, Default)]
pub(crate) struct Heads(Mutex<KeptHeads>);

#[derive(Debug, Default)]
struct KeptHeads {
    known: HashMap<(WorkspaceId, FilePath), (Sha256, Arc<Entity>)>,
    size: usize,
    counts: EntityCounts,
}

/// The looks for entities in the memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntityCounts {
    /// Entities that were there.
    pub hits: u64,
    /// Entities that were not there, whose files were read.
    pub misses: u64,
    /// Entities whose files had changed, and were read again.
    pub outdated: u64,
}

impl Heads {
    /// Those of this process.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Heads> = LazyLock::new(Heads::default);
        &SHARED
    }

    /// The entities of a kind in these folders, whose texts have 1,000 characters each, and whether these are all. A folder that is not there has
    /// none, and neither has one whose files the caller may not read.
    ///
    /// # Errors
    /// Those of reading the workspace's files.
    pub async fn find(
        &self,
        workspace: &Workspace,
        kind: EntityKind,
        folders: Vec<FilePath>,
    ) -> Result<(Vec<FoundEntity>, bool), Error> {
        let listed: Vec<Vec<Info>> = futures::stream::iter(folders)
            .map(|folder| files_of(workspace, kind, folder))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        let mut files: Vec<Info> = listed.into_iter().flatten().collect();
        let all = files.len() <= MOST;
        files.truncate(MOST);
        let found: Vec<Option<FoundEntity>> = futures::stream::iter(files)
            .map(|info| self.head(workspace, kind, info))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        Ok((found.into_iter().flatten().collect(), all))
    }

    async fn head(&self, workspace: &Workspace, kind: EntityKind, info: Info) -> Result<Option<FoundEntity>, Error> {
        let Some(digest) = info.sha256.filter(|_| workspace.may_read(&info.path)) else { return Ok(None) };
        let key = (workspace.id(), info.path.clone());
        if let Some(entity) = self.known(&key, digest) {
            return Ok(Some(FoundEntity { info, entity }));
        }
        let content = match workspace.read(&info.path, Some(0..READ)).await {
            Ok(content) => content,
            // It was moved or removed meanwhile, or its content is lost.
            Err(error) if matches!(error.code, Code::NotFound | Code::ContentMissing | Code::ContentDamaged) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let entity = Arc::new(read(kind, &info.path, &content.bytes).abbreviated(KEPT));
        self.keep(key, content.info.sha256.unwrap_or(digest), Arc::clone(&entity));
        Ok(Some(FoundEntity { info: content.info, entity }))
    }

    fn known(&self, key: &(WorkspaceId, FilePath), digest: Sha256) -> Option<Arc<Entity>> {
        let mut kept = self.0.lock();
        let KeptHeads { known, counts, .. } = &mut *kept;
        match known.get(key) {
            Some((known, entity)) if *known == digest => {
                counts.hits += 1;
                return Some(Arc::clone(entity));
            }
            Some(_) => counts.outdated += 1,
            None => counts.misses += 1,
        }
        None
    }

    pub fn counts(&self) -> EntityCounts {
        self.0.lock().counts
    }

    fn keep(&self, key: (WorkspaceId, FilePath), digest: Sha256, entity: Arc<Entity>) {
        let texts: usize = entity.fields.iter().map(|(name, value)| name.len() + domain::json_length(value)).sum();
        let mut kept = self.0.lock();
        kept.size += texts + 512;
        if kept.size > ROOM {
            kept.known.clear();
            kept.size = texts + 512;
        }
        kept.known.insert(key, (digest, entity));
    }
}

/// The files of a kind that are directly in a folder.
async fn files_of(workspace: &Workspace, kind: EntityKind, folder: FilePath) -> Result<Vec<Info>, Error> {
    if kind == EntityKind::Project {
        return match workspace.stat(&EntityKind::Project.at(folder.as_str())?).await {
            Ok(info) if info.kind == FileKind::File => Ok(vec![info]),
            Ok(_) => Ok(Vec::new()),
            Err(error) if matches!(error.code, Code::NotFound | Code::Unprocessable) => Ok(Vec::new()),
            Err(error) => Err(error),
        };
    }
    let (mut files, mut cursor) = (Vec::new(), None);
    loop {
        let page = match workspace.ls(&folder, 1_000, cursor).await {
            Ok(page) => page,
            Err(error) if matches!(error.code, Code::NotFound | Code::Unprocessable) => return Ok(files),
            Err(error) => return Err(error),
        };
        files.extend(
            page.entries
                .into_iter()
                .filter(|info| info.kind == FileKind::File && EntityKind::of(&info.path) == Some(kind)),
        );
        cursor = page.next_cursor;
        if cursor.is_none() || files.len() > MOST {
            return Ok(files);
        }
    }
}

/// A file as an entity.
pub(crate) fn read(kind: EntityKind, path: &FilePath, bytes: &[u8]) -> Entity {
    let name = match kind {
        EntityKind::Project => path.parent().map(|folder| folder.name().to_owned()).unwrap_or_default(),
        _ => path.name().trim_end_matches(".md").to_owned(),
    };
    Entity::read(kind, &String::from_utf8_lossy(bytes), &name)
}

/// A whole entity.
///
/// # Errors
/// `INVALID_ARGUMENT` for a path that is the place of another kind, `NOT_FOUND` when nothing is there; those of reading a file.
pub(crate) async fn whole(call: &Call<'_>, kind: EntityKind, path: &str) -> Result<(Info, Entity, String), Error> {
    let content = content(call, kind, path).await?;
    let entity = read(kind, &content.info.path, &content.bytes);
    Ok((content.info, entity, String::from_utf8_lossy(&content.bytes).into_owned()))
}

/// The text of an entity that is to be changed.
///
/// # Errors
/// Those of [`whole`] and [`Entity::text_of`].
pub(crate) async fn changeable(call: &Call<'_>, kind: EntityKind, path: &str) -> Result<(Info, String), Error> {
    let content = content(call, kind, path).await?;
    let text = Entity::text_of(&content.bytes)?.to_owned();
    Ok((content.info, text))
}

async fn content(call: &Call<'_>, kind: EntityKind, path: &str) -> Result<Content, Error> {
    let path = kind.at(path)?;
    call.workspace.read(&path, None).await.map_err(|error| match error.code {
        Code::NotFound => Error::not_found(kind.words(), &path).hint("lists and searches tell the paths"),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::Principal;
    use testkit::{
        TestClock,
        fakes::{FakeBlobs, FakeTable, Faults},
    };
    use workspace::{Expect, Workspaces, Writer};

    #[tokio::test]
    async fn a_list_reads_each_version_of_a_file_once() {
        let clock = Arc::new(TestClock::new(1));
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        let root = tempfile::TempDir::new().unwrap();
        let all = Workspaces::new(table, blobs, clock, root.path().into());
        let id = WorkspaceId(uuid::Uuid::now_v7());
        all.create(id, "test", &Principal::local()).await.unwrap();
        let files = all.open(id, workspace::Access::platform("a test")).await.unwrap();
        let writer = Writer::new(Principal::local());
        let folder = FilePath::parse("/projects/atlas/tasks").unwrap();
        let put = async |number: usize, status: &str| {
            let path = folder.join(&format!("task-{number}.md")).unwrap();
            let text = format!("---\ntitle: Task {number}\nstatus: {status}\n---\n");
            files.write(&path, text, Expect::Any, &writer).await.unwrap();
        };
        for number in 0..40 {
            put(number, "backlog").await;
        }
        let heads = Heads::default();
        let done = async || {
            let (found, whole) = heads.find(&files, EntityKind::Task, vec![folder.clone()]).await.unwrap();
            assert!(whole && found.len() == 40);
            found.iter().filter(|one| one.entity.text("status") == Some("done")).count()
        };
        let counts = |hits, misses, outdated| EntityCounts { hits, misses, outdated };
        assert_eq!((done().await, heads.counts()), (0, counts(0, 40, 0)));
        assert_eq!((done().await, heads.counts()), (0, counts(40, 40, 0)), "nothing is read again");
        put(7, "done").await;
        assert_eq!((done().await, heads.counts()), (1, counts(79, 40, 1)), "a new version is read");
    }
}
