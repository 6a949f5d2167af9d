//! Contents of the archive that differ from their digest or are missing: found by reads and by the scrub, repaired from any good copy, and
//! reported when there is none.
//!
//! A content is identified by its digest, so a copy from any place is good: `latest/`, the trash, a sandbox, or another workspace with the
//! same content. A workspace gets nothing by this that was not its own: it knew the digest because it had the content. Damage that cannot
//! be repaired is kept in the table until it is, so that every process and the next start knows of it.

use crate::{
    Damage, DamageCounts, Damaged, Result, Workspace, Workspaces, contents,
    damages::Damages,
    error,
    handle::{Archive, Shared},
    keys::{DAMAGE, Keys},
    mirror::Area,
    model::FileKind,
    trash_entry::{self, Item},
};
use bytes::Bytes;
use domain::{Code, Error, FilePath, Sha256};
use futures::{StreamExt, stream};
use ports::{Expect, Query, Write};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// How long after a search for a good copy found none the next one waits.
const SEARCH_AGAIN: Duration = Duration::from_secs(60);
/// How many folders, and how many other workspaces, are looked through for a good copy.
const FOLDERS: usize = 2_000;
pub(crate) const OTHERS: usize = 1_000;
/// How many other workspaces are asked at once.
pub(crate) const ASKED_AT_ONCE: usize = 16;
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
        let shared = self.begin_search(digest, damage)?;
        let id = self.keys.0;
        let Some(content) = Shared::handle(&shared, id).good_copy(digest, size).await? else {
            return Err(self.lost(&shared, digest, size, damage).await);
        };
        match self.put_again(digest, &content).await {
            Ok(()) => self.repaired(&shared, digest, damage),
            // It was read, and the next read repairs it.
            Err(error) => tracing::error!(workspace = %id, %digest, %error, "a content of the archive stays damaged"),
        }
        Ok(content)
    }

    /// Counts a damage and allows a search. It is an error when a good copy was searched for a moment ago.
    pub(crate) fn begin_search(&self, digest: Sha256, damage: Damage) -> Result<Arc<Shared>> {
        let Some(shared) = self.shared.upgrade() else { return Err(refusal(digest, damage)) };
        let searched = shared.damages.lost().get(&(self.keys.0, digest)).copied();
        if searched.is_some_and(|searched| shared.clock.now().is_within(SEARCH_AGAIN, searched)) {
            return Err(refusal(digest, damage));
        }
        shared.damages.found.fetch_add(1, Relaxed);
        Ok(shared)
    }

    /// Notes that no good copy was found, and gives the refusal.
    pub(crate) async fn lost(&self, shared: &Shared, digest: Sha256, size: u64, damage: Damage) -> Error {
        let (id, now) = (self.keys.0, shared.clock.now());
        tracing::error!(workspace = %id, %digest, ?damage, "a content of the archive is lost: no good copy was found");
        shared.damages.lost().insert((id, digest), now);
        let record = Damaged { workspace_id: id, sha256: digest, size, damage, found_at: now };
        let noted = async {
            let note = Write::put(Keys(id).damaged(digest), error::json(&record)?, Expect::Any);
            self.table.commit(vec![note]).await.map_err(error::port)
        };
        if let Err(error) = noted.await {
            tracing::warn!(%error, "the damage is not noted; it will be when it is found again");
        }
        refusal(digest, damage)
    }

    pub(crate) fn repaired(&self, shared: &Shared, digest: Sha256, damage: Damage) {
        shared.damages.repaired.fetch_add(1, Relaxed);
        let id = self.keys.0;
        tracing::warn!(workspace = %id, %digest, ?damage, "a content of the archive was repaired from a good copy");
    }

    /// Stores a content that is current already: it changes nothing when the archive has it, and repairs it when it is damaged.
    pub(crate) async fn put_again(&self, digest: Sha256, content: &Bytes) -> Result<()> {
        if let Some(write) = self.put(digest, content).await?
            && !matches!(self.text(digest, content.len() as u64).await?, Some(Ok(_)))
        {
            self.table.commit(vec![write]).await.map_err(error::port)?;
        }
        self.is_good_again(digest).await
    }

    /// Removes the record of a damage after the content was stored.
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
    /// Searches for a good copy of a content outside of the archive.
    async fn good_copy(&self, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        let Some(shared) = self.0.shared.upgrade() else { return Ok(None) };
        // A disk that is a cache got its files from the archive, and a search through the index costs requests.
        let on_disk = match shared.cache.get() {
            None => self.copy_on_disk(digest, size).await,
            Some(_) => Ok(None),
        };
        match on_disk {
            Ok(Some(content)) => Ok(Some(content)),
            none => match self.copy_of_another(&shared, digest, size).await? {
                Some(content) => Ok(Some(content)),
                None => none,
            },
        }
    }

    async fn copy_on_disk(&self, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        let mut folders = vec![(Area::Latest, FilePath::root(), self.0.keys.root())];
        let mut pages = self.0.table.pages(Query::all(self.0.keys.trash(), 500));
        while let Some(items) = pages.next().await.map_err(error::port)? {
            for item in &items {
                // It keeps none of the other copies from being found.
                let Ok(Item { entry, .. }) = error::parse(&item.body) else { continue };
                let place = trash_entry::place(entry.file_id)?;
                if entry.kind == FileKind::Folder {
                    folders.push((Area::Trash, place, entry.file_id));
                } else if entry.sha256 == Some(digest)
                    && let Some(content) = self.intact_in(Area::Trash, place, digest, size).await?
                {
                    return Ok(Some(content));
                }
            }
        }
        let mut unreadable = 0;
        for _ in 0..FOLDERS {
            let Some((area, path, folder)) = folders.pop() else { break };
            let (entries, left_out) = self.readable_entries(folder).await?;
            unreadable += left_out.len();
            for (name, entry) in entries {
                let path = path.join(&name)?;
                if entry.kind == FileKind::Folder {
                    folders.push((area, path, entry.file_id));
                } else if entry.sha256 == Some(digest)
                    && let Some(content) = self.intact_in(area, path, digest, size).await?
                {
                    return Ok(Some(content));
                }
            }
        }
        match unreadable {
            0 => Ok(None),
            // Each of them may be the entry of a good copy: whether there is one is not known.
            _ => Err(error::port(ports::Error::Damaged(format!("{unreadable} entries of folders cannot be read")))),
        }
    }

    async fn intact_in(&self, area: Area, path: FilePath, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        // A disk that cannot give this copy may give another one.
        let read = self.disk("to read a file", move |mirror| mirror.read_in(area, &path, size)).await;
        let Ok(Some(content)) = read else { return Ok(None) };
        let content = Bytes::from(content);
        Ok((contents::digest(&content).await? == digest).then_some(content))
    }

    async fn copy_of_another(&self, shared: &Arc<Shared>, digest: Sha256, size: u64) -> Result<Option<Bytes>> {
        let asked = Shared::others(shared, self.0.id).await?.into_iter().map(|other| async move {
            let archive = Shared::handle(shared, other);
            // Damage in another workspace's archive is reported by that workspace.
            archive.0.archive.stored(digest, size).await.ok().and_then(std::result::Result::ok)
        });
        let mut found = stream::iter(asked).buffer_unordered(ASKED_AT_ONCE).filter_map(std::future::ready).boxed();
        Ok(found.next().await)
    }
}

impl Workspaces {
    /// The counters of damage of this process.
    pub fn damage_counts(&self) -> DamageCounts {
        let Damages { scrubbed, found, repaired, .. } = &self.0.damages;
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        DamageCounts { scrubbed: read(scrubbed), found: read(found), repaired: read(repaired) }
    }

    /// The contents that no process could repair, at most `limit`.
    ///
    /// # Errors
    /// Those of [`Workspaces`].
    pub async fn damaged(&self, limit: usize) -> Result<Vec<Damaged>> {
        Ok(self.damaged_from(None, limit).await?.into_iter().map(|(_, damaged)| damaged).collect())
    }

    /// The same, from this key on, each with the key of its record.
    pub(crate) async fn damaged_from(&self, from: Option<String>, limit: usize) -> Result<Vec<(String, Damaged)>> {
        let range = Query { from, ..Query::all(DAMAGE, limit) };
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let query = Query { limit: limit - found.len(), ..range.clone() }.after(cursor);
            let page = self.0.table.query(&query).await.map_err(error::port)?;
            let readable = ports::readable::<Damaged>(&page.items);
            found.extend(readable.map(|(item, damaged)| (item.key.sk.clone(), damaged)));
            cursor = page.next;
            if cursor.is_none() || found.len() >= limit {
                return Ok(found);
            }
        }
    }
}
