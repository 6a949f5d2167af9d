//! Contents of the archive that are not what was written: found when they are read or scrubbed, repaired from any good copy, and
//! told of where there is none.
//!
//! A content is its digest, so a copy is good whoever has it: `latest/`, the trash, a sandbox, or another workspace with the same
//! content. A workspace is given nothing by this that was not its own: it knew the digest because it had the content. Damage that
//! cannot be repaired is kept in the table until it is, so that every process and the next start knows of it.

use crate::{
    Result, Workspace, Workspaces,
    archive::{self, Archive, is_blob},
    error,
    keys::{DAMAGE, Keys, WORKSPACES},
    mirror::Area,
    model::{Kind, Version},
    trash::{self, Item},
    workspaces::Shared,
};
use bytes::Bytes;
use domain::{Code, Error, FileId, FilePath, Sha256, Timestamp, WorkspaceId};
use futures::{StreamExt, stream};
use ports::{Expect, Query, Write};
use serde::{Deserialize, Serialize};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// How long after a search for a good copy found none the next one waits.
const SEARCH_AGAIN: Duration = Duration::from_secs(60);
/// How many folders, and how many other workspaces, are looked through for a good copy.
const FOLDERS: usize = 2_000;
const OTHERS: usize = 1_000;
/// How many other workspaces are asked at once.
const ASKED_AT_ONCE: usize = 16;
/// How many files, contents and bytes one step of a scrub looks at.
const FILES_A_STEP: usize = 500;
const CONTENTS_A_STEP: u64 = 500;
const BYTES_A_STEP: u64 = 64 << 20;

/// What is wrong with a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// It is not there.
    Missing,
    /// Something else is there.
    Altered,
}

/// A content that could not be repaired.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Damaged {
    /// Whose.
    pub workspace_id: WorkspaceId,
    /// The digest that it should have.
    pub sha256: Sha256,
    /// Its length in bytes.
    pub size: u64,
    /// What is wrong.
    pub damage: Damage,
    /// When that was seen last.
    pub found_at: Timestamp,
}

/// What this process has seen of damage, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DamageCounts {
    /// Contents that scrubs compared with their digests.
    pub scrubbed: u64,
    /// Times that a content was found missing or altered.
    pub found: u64,
    /// Contents that were repaired from a good copy.
    pub repaired: u64,
}

/// What a step of a scrub did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// How many contents it compared.
    pub contents: u64,
    /// Where the next step goes on; none when everything was looked at.
    pub next: Option<String>,
}

#[derive(Default)]
pub(crate) struct Damages {
    scrubbed: AtomicU64,
    found: AtomicU64,
    repaired: AtomicU64,
    /// Those of which no good copy was found, and when.
    lost: Mutex<HashMap<(WorkspaceId, Sha256), Timestamp>>,
}

impl Damages {
    fn lost(&self) -> std::sync::MutexGuard<'_, HashMap<(WorkspaceId, Sha256), Timestamp>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an error says that a content is damaged or missing.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error.code, Code::ContentDamaged | Code::ContentMissing)
}

/// The same error with its place, where it is about a content.
pub(crate) fn at(error: Error, path: Option<&FilePath>, file_id: FileId, v: u64) -> Error {
    if !is_damage(&error) {
        return error;
    }
    let error = error.detail("file_id", file_id.to_string()).detail("v", v);
    match path {
        Some(path) => error.detail("path", path.to_string()),
        None => error,
    }
}

fn refusal(digest: Sha256, damage: Damage) -> Error {
    let (code, what) = match damage {
        Damage::Missing => (Code::ContentMissing, "is missing in the archive"),
        Damage::Altered => (Code::ContentDamaged, "is damaged in the archive"),
    };
    Error::new(code, format!("the content {digest} {what}, and no good copy of it was found"))
        .hint("write the same content again, or put a backup of the archive in its place: either repairs it")
        .detail("sha256", digest.to_string())
}

impl Archive {
    /// Repairs a content from a good copy and gives it; an error with the damage when there is none.
    pub(crate) async fn recover(&self, digest: Sha256, size: u64, damage: Damage) -> Result<Bytes> {
        let Some(shared) = self.shared.upgrade() else { return Err(refusal(digest, damage)) };
        let (id, now, damages) = (self.keys.0, shared.clock.now(), &shared.damages);
        let searched = damages.lost().get(&(id, digest)).copied();
        if searched.is_some_and(|searched| now.since(searched) < SEARCH_AGAIN) {
            return Err(refusal(digest, damage));
        }
        damages.found.fetch_add(1, Relaxed);
        let Some(content) = Shared::handle(&shared, id).good_copy(digest, size).await? else {
            tracing::error!(workspace = %id, %digest, ?damage, "a content of the archive is lost: no good copy was found");
            damages.lost().insert((id, digest), now);
            let record = Damaged { workspace_id: id, sha256: digest, size, damage, found_at: now };
            let note = Write::put(Keys(id).damaged(digest), error::json(&record)?, Expect::Any);
            if let Err(error) = self.table.commit(vec![note]).await {
                tracing::warn!(%error, "the damage is not noted; it will be when it is found again");
            }
            return Err(refusal(digest, damage));
        };
        match self.put_again(digest, &content).await {
            Ok(()) => {
                damages.repaired.fetch_add(1, Relaxed);
                tracing::warn!(workspace = %id, %digest, ?damage, "a content of the archive was repaired from a good copy");
            }
            // It was read, and the next read repairs it.
            Err(error) => tracing::error!(workspace = %id, %digest, %error, "a content of the archive stays damaged"),
        }
        Ok(content)
    }

    /// Stores a content that is current already: where the archive has it, nothing changes, and where it is damaged it is repaired.
    pub(crate) async fn put_again(&self, digest: Sha256, content: &Bytes) -> Result<()> {
        if let Some(write) = self.put(digest, content).await?
            && !matches!(self.text(digest, content.len() as u64).await?, Some(Ok(_)))
        {
            self.table.commit(vec![write]).await.map_err(error::port)?;
        }
        self.is_good_again(digest).await
    }

    /// Forgets what was known of a damage, after the content was stored.
    pub(crate) async fn is_good_again(&self, digest: Sha256) -> Result<()> {
        let Some(shared) = self.shared.upgrade() else { return Ok(()) };
        let was_lost = shared.damages.lost().remove(&(self.keys.0, digest)).is_some();
        if was_lost {
            let forget = Write::delete(self.keys.damaged(digest), Expect::Any);
            self.table.commit(vec![forget]).await.map_err(error::port)?;
        }
        Ok(())
    }
}

impl Workspace {
    /// A content from wherever else it is.
    async fn good_copy(&self, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        let Some(shared) = self.0.shared.upgrade() else { return Ok(None) };
        // Where the disk is only a cache, what it has came from the archive, and to look through the index costs requests.
        if shared.cache.get().is_none()
            && let Some(content) = self.copy_on_disk(digest, size).await?
        {
            return Ok(Some(content));
        }
        self.copy_of_another(&shared, digest, size).await
    }

    async fn copy_on_disk(&self, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        let mut folders = vec![(Area::Latest, FilePath::root(), self.0.keys.root())];
        let mut cursor = None;
        loop {
            let page = self.0.table.query(&Query::all(self.0.keys.trash(), 500).after(cursor)).await;
            let page = page.map_err(error::port)?;
            for item in &page.items {
                let Item { entry, .. } = error::parse(&item.body)?;
                let place = trash::place(entry.file_id)?;
                if entry.kind == Kind::Folder {
                    folders.push((Area::Trash, place, entry.file_id));
                } else if entry.sha256 == Some(digest)
                    && let Some(content) = self.intact_in(Area::Trash, place, digest, size).await?
                {
                    return Ok(Some(content));
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        for _ in 0..FOLDERS {
            let Some((area, path, folder)) = folders.pop() else { break };
            for (name, entry) in self.all_entries(folder).await? {
                let path = path.join(&name)?;
                if entry.kind == Kind::Folder {
                    folders.push((area, path, entry.file_id));
                } else if entry.sha256 == Some(digest)
                    && let Some(content) = self.intact_in(area, path, digest, size).await?
                {
                    return Ok(Some(content));
                }
            }
        }
        Ok(None)
    }

    async fn intact_in(&self, area: Area, path: FilePath, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        // A disk that cannot give this copy may give another one.
        let read = self.disk("to read a file", move |mirror| mirror.read_in(area, &path, size)).await;
        let Ok(Some(content)) = read else { return Ok(None) };
        let content = Bytes::from(content);
        Ok((archive::digest(&content).await? == digest).then_some(content))
    }

    async fn copy_of_another(&self, shared: &Arc<Shared>, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        let (mut others, mut cursor) = (Vec::new(), None);
        while others.len() < OTHERS {
            let page = shared.table.query(&Query::all(WORKSPACES, 200).after(cursor)).await.map_err(error::port)?;
            others.extend(page.items.iter().filter_map(|item| item.key.sk.parse::<WorkspaceId>().ok()));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let asked = others.into_iter().filter(|other| *other != self.0.id).map(|other| async move {
            let archive = Shared::handle(shared, other);
            // What is wrong with the archive of another is its own to find.
            archive.0.archive.stored(digest, size).await.ok().and_then(std::result::Result::ok)
        });
        let mut found = stream::iter(asked).buffer_unordered(ASKED_AT_ONCE).filter_map(std::future::ready).boxed();
        Ok(found.next().await)
    }
}

/// A key after `key` and before every other one.
fn after(key: &str) -> String {
    // An id has no such character, and all have the same length.
    format!("{key}~")
}

/// How far a scrub has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Position {
    workspace: WorkspaceId,
    /// Whether it is at what the trash has.
    #[serde(default)]
    trash: bool,
    /// The file that it is at; none at the beginning.
    #[serde(default)]
    file: Option<FileId>,
    /// The version of it that is next; none when all were looked at.
    #[serde(default)]
    v: Option<u64>,
}

impl Workspaces {
    /// What this process has seen of damage.
    pub fn damage_counts(&self) -> DamageCounts {
        let Damages { scrubbed, found, repaired, .. } = &self.0.damages;
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        DamageCounts { scrubbed: read(scrubbed), found: read(found), repaired: read(repaired) }
    }

    /// The contents that no process could repair, at most `limit`.
    pub async fn damaged(&self, limit: usize) -> Result<Vec<Damaged>> {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let query = Query::all(DAMAGE, limit - found.len()).after(cursor);
            let page = self.0.table.query(&query).await.map_err(error::port)?;
            for item in &page.items {
                found.push(error::parse(&item.body)?);
            }
            cursor = page.next;
            if cursor.is_none() || found.len() >= limit {
                return Ok(found);
            }
        }
    }

    /// Compares some contents of the archive with their digests, from where the last step ended; repairs those that are damaged. A
    /// round begins with those that are known to be damaged. It does little at once, so that it can be done beside everything else:
    /// how often it is called is its pace.
    ///
    /// What the table keeps outside of it (long bodies of logs) is compared when it is read.
    pub async fn scrub(&self, from: Option<&str>) -> Result<Scrubbed> {
        let mut step = Step { workspaces: self, contents: 0, bytes: 0, files: 0, seen: HashSet::new() };
        let mut position = match from.and_then(|from| serde_json::from_str::<Position>(from).ok()) {
            Some(position) => position,
            None => {
                step.recheck().await?;
                match self.workspace_after(None).await? {
                    Some(workspace) => Position { workspace, trash: false, file: None, v: None },
                    None => return Ok(Scrubbed { contents: step.contents, next: None }),
                }
            }
        };
        while !step.is_long() {
            match step.next(&mut position).await? {
                true => {}
                false if !position.trash => {
                    position = Position { trash: true, file: None, v: None, ..position };
                }
                false => match self.workspace_after(Some(position.workspace)).await? {
                    Some(workspace) => position = Position { workspace, trash: false, file: None, v: None },
                    None => return Ok(Scrubbed { contents: step.contents, next: None }),
                },
            }
        }
        Ok(Scrubbed { contents: step.contents, next: Some(error::json(&position)?) })
    }

    async fn workspace_after(&self, id: Option<WorkspaceId>) -> Result<Option<WorkspaceId>> {
        let from = id.map(|id| after(&id.to_string()));
        Ok(self.first(Query { from, ..Query::all(WORKSPACES, 1) }).await?.and_then(|name| name.parse().ok()))
    }

    /// The name of the first item of a range.
    async fn first(&self, range: Query) -> Result<Option<String>> {
        let mut cursor = None;
        loop {
            let page = self.0.table.query(&range.clone().after(cursor)).await.map_err(error::port)?;
            cursor = page.next;
            let first = page.items.into_iter().next().map(|item| item.key.sk);
            if first.is_some() || cursor.is_none() {
                return Ok(first);
            }
        }
    }
}

/// One step of a scrub.
struct Step<'a> {
    workspaces: &'a Workspaces,
    contents: u64,
    bytes: u64,
    files: usize,
    /// Many versions have the same content.
    seen: HashSet<(WorkspaceId, Sha256)>,
}

impl Step<'_> {
    fn is_long(&self) -> bool {
        self.contents >= CONTENTS_A_STEP || self.bytes >= BYTES_A_STEP || self.files >= FILES_A_STEP
    }

    /// Looks again at what is known to be damaged: somebody may have written it anew, or put a backup in its place.
    async fn recheck(&mut self) -> Result<()> {
        const AT_ONCE: usize = 100;
        for Damaged { workspace_id, sha256, size, .. } in self.workspaces.damaged(AT_ONCE).await? {
            let workspace = Shared::handle(&self.workspaces.0, workspace_id);
            let exists = self.workspaces.0.table.get(&Keys(workspace_id).workspace()).await.map_err(error::port)?;
            self.workspaces.0.damages.lost().remove(&(workspace_id, sha256));
            self.seen.insert((workspace_id, sha256));
            self.contents += 1;
            let archive = &workspace.0.archive;
            if exists.is_some() && archive.get(sha256, size).await.is_err() {
                continue;
            }
            let forget = Write::delete(Keys(workspace_id).damaged(sha256), Expect::Any);
            archive.table.commit(vec![forget]).await.map_err(error::port)?;
        }
        Ok(())
    }

    /// Goes on by some versions of a file, or to the next file; false when there is none.
    async fn next(&mut self, position: &mut Position) -> Result<bool> {
        const VERSIONS: usize = 50;
        let workspace = Shared::handle(&self.workspaces.0, position.workspace);
        let keys = Keys(position.workspace);
        let (Some(file), Some(v)) = (position.file, position.v) else {
            let partition = if position.trash { keys.trash() } else { keys.nodes() };
            let from = position.file.map(|file| after(&file.to_string()));
            let first = self.workspaces.first(Query { from, ..Query::all(partition, 1) }).await?;
            let Some(file) = first.and_then(|name| name.parse().ok()) else { return Ok(false) };
            self.files += 1;
            (position.file, position.v) = (Some(file), Some(0));
            return Ok(true);
        };
        let query = Query { from: Some(keys.version(file, v).sk), ..Query::all(keys.versions(file), VERSIONS) };
        let page = self.workspaces.0.table.query(&query).await.map_err(error::port)?;
        for item in &page.items {
            let version: Version = error::parse(&item.body)?;
            self.check(&workspace, file, &version).await?;
            position.v = Some(version.v + 1);
            if self.is_long() {
                return Ok(true);
            }
        }
        if page.next.is_none() {
            position.v = None;
        }
        Ok(true)
    }

    async fn check(&mut self, workspace: &Workspace, file: FileId, version: &Version) -> Result<()> {
        let Version { sha256, size, v, .. } = *version;
        if !self.seen.insert((workspace.0.id, sha256)) {
            return Ok(());
        }
        self.contents += 1;
        self.bytes += size;
        self.workspaces.0.damages.scrubbed.fetch_add(1, Relaxed);
        if workspace.0.archive.is_intact(sha256, size).await? {
            return Ok(());
        }
        // To read it is to repair it.
        if let Err(error) = workspace.0.archive.get(sha256, size).await {
            let path = workspace.path_of(file).await.ok().map(|path| path.to_string());
            tracing::error!(workspace = %workspace.0.id, %file, v, path, %error, "a scrub found a version that cannot be read");
        }
        Ok(())
    }
}

impl Archive {
    /// Whether the stores have a content as it was written, at the least price.
    async fn is_intact(&self, digest: Sha256, size: u64) -> Result<bool> {
        if !is_blob(size)
            && let Some(text) = self.text(digest, size).await?
        {
            return Ok(text.is_ok());
        }
        match self.blobs.verify(&self.keys.0.to_string(), digest).await {
            Ok(is_there) => Ok(is_there),
            Err(ports::Error::Damaged(_)) => Ok(false),
            Err(error) => Err(error::port(error)),
        }
    }
}
