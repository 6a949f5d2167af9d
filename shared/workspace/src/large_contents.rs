//! Large contents ([`ports::LARGE`]): only ever blobs, never whole in memory. They come in as a stream or past the process, are read in
//! parts, and are put into `latest/` by a link, or as a stream when the archive is remote.

use crate::{
    Damage, Result, Workspace,
    contents::{is_large, too_large},
    damage::ASKED_AT_ONCE,
    error,
    handle::{Archive, Shared},
    mirror::{Area, Mirror, OnDisk},
};
use bytes::Bytes;
use domain::{FilePath, Hasher, Sha256, WorkspaceId};
use futures::{Stream, StreamExt, stream};
use ports::Blobs;
use std::{
    fs::File,
    io::{self, Write as _},
    ops::Range,
    path::PathBuf,
    sync::Arc,
};

pub use crate::contents::digest_of;

/// How many bytes are read at once.
const PIECE: u64 = 4 * 1024 * 1024;

/// Puts a content at the free path `at`: by a link, or as a stream that is compared with the digest. False when the store lacks it or has
/// it damaged; `at` is then still free.
///
/// # Errors
/// When the store does not answer, or the disk fails.
async fn bring(blobs: &dyn Blobs, space: &str, digest: Sha256, size: u64, at: PathBuf) -> ports::Result<bool> {
    if blobs.link(space, digest, &at).await? {
        return Ok(true);
    }
    let brought = stream_to(blobs, space, digest, size, at.clone()).await;
    if !matches!(brought, Ok(true)) {
        drop(disk(move || std::fs::remove_file(at)).await);
    }
    brought
}

async fn stream_to(blobs: &dyn Blobs, space: &str, digest: Sha256, size: u64, at: PathBuf) -> ports::Result<bool> {
    let mut file = disk(move || File::create_new(at)).await?;
    let (mut hasher, mut from) = (Hasher::default(), 0);
    while from < size {
        let piece = match blobs.get(space, digest, Some(from..(from + PIECE).min(size))).await {
            Ok(Some(piece)) if !piece.is_empty() => piece,
            Ok(_) => return Ok(false),
            Err(ports::Error::Damaged(what)) => {
                tracing::error!(%what, "stored data is damaged");
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        from += piece.len() as u64;
        (file, hasher) = disk(move || {
            hasher.update(&piece);
            file.write_all(&piece)?;
            Ok((file, hasher))
        })
        .await?;
    }
    Ok(hasher.finish() == digest)
}

async fn disk<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> ports::Result<T> {
    let done = crate::blocking::run(work).await.map_err(io::Error::other).flatten();
    done.map_err(|error| ports::Error::unavailable("the disk", error))
}

impl Archive {
    /// A part of a large content. One that the store has not got as it was written is repaired from a good copy.
    ///
    /// # Errors
    /// `PAYLOAD_TOO_LARGE` for a part that is large itself; `CONTENT_MISSING` and `CONTENT_DAMAGED` when there is no good copy.
    pub async fn part(&self, digest: Sha256, size: u64, range: Range<u64>) -> Result<Bytes> {
        let end = range.end.min(size);
        let range = range.start.min(end)..end;
        if is_large(range.end - range.start) {
            return Err(too_large(range.end - range.start));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        for _ in 0..2 {
            let damage = match self.blobs.get(&self.space(), digest, Some(range.clone())).await {
                Ok(Some(bytes)) => return Ok(bytes),
                Ok(None) => Damage::Missing,
                Err(ports::Error::Damaged(what)) => {
                    tracing::error!(%what, "stored data is damaged");
                    Damage::Altered
                }
                Err(error) => return Err(error::port(error)),
            };
            self.recover_large(digest, size, damage).await?;
        }
        Err(error::busy())
    }

    /// That the store has a large content, by its length.
    ///
    /// # Errors
    /// `CONTENT_MISSING` or `CONTENT_DAMAGED` when neither this workspace nor another one has it with that length; else those of
    /// [`Archive`].
    pub async fn expect_there(&self, digest: Sha256, size: u64) -> Result<()> {
        let damage = match self.blobs.length(&self.space(), digest).await {
            Ok(Some(length)) if length == size => return Ok(()),
            Ok(None) => Damage::Missing,
            Ok(Some(_)) | Err(ports::Error::Damaged(_)) => Damage::Altered,
            Err(error) => return Err(error::port(error)),
        };
        self.recover_large(digest, size, damage).await
    }

    /// Repairs a large content from another workspace that has the same. Copies in `latest/` and the trash do not help: they are links to
    /// the archive's own file, or came from it.
    ///
    /// # Errors
    /// `CONTENT_MISSING` or `CONTENT_DAMAGED`, as `damage` says, when no workspace has a good copy, and at once within a minute after such
    /// a search; else those of [`Archive`].
    pub async fn recover_large(&self, digest: Sha256, size: u64, damage: Damage) -> Result<()> {
        let shared = self.begin_search(digest, damage)?;
        let own = self.space();
        let others = Shared::others(&shared, self.keys.0).await?;
        let looking = others.into_iter().map(|other| {
            let blobs = self.blobs.clone();
            async move {
                let space = other.to_string();
                let is_there = matches!(blobs.length(&space, digest).await, Ok(Some(length)) if length == size);
                is_there.then_some(space)
            }
        });
        let mut found = stream::iter(looking).buffer_unordered(ASKED_AT_ONCE).filter_map(std::future::ready).boxed();
        while let Some(other) = found.next().await {
            match self.copy(&other, &own, digest, size).await {
                Ok(true) => {
                    self.repaired(&shared, digest, damage);
                    return self.is_good_again(digest).await;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(%digest, error = %error.with_causes(), "a good copy could not be read"),
            }
        }
        drop(found);
        Err(self.lost(&shared, digest, size, damage).await)
    }

    /// Copies a content as a stream; false when the store takes no streams, or the copy is damaged.
    async fn copy(&self, from: &str, to: &str, digest: Sha256, size: u64) -> ports::Result<bool> {
        let Some(mut incoming) = self.blobs.incoming(to, digest, size).await? else { return Ok(false) };
        let mut at = 0;
        while at < size {
            match self.blobs.get(from, digest, Some(at..(at + PIECE).min(size))).await? {
                Some(piece) if !piece.is_empty() => {
                    at += piece.len() as u64;
                    incoming.write(piece).await?;
                }
                _ => return Ok(false),
            }
        }
        incoming.finish().await.map(|()| true)
    }

    fn space(&self) -> String {
        self.keys.0.to_string()
    }
}

impl Workspace {
    /// The bytes of a content in `range`, in pieces: `digest` and `size` are those of a version or a file.
    ///
    /// # Errors
    /// Items are those of [`Workspace`], `CONTENT_MISSING` or `CONTENT_DAMAGED` when no good copy of the content was found, and `INTERNAL`
    /// when it ends before `size`. The first error ends the stream.
    pub fn pieces(
        &self,
        digest: Sha256,
        size: u64,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
        let end = range.end.min(size);
        stream::try_unfold((self.clone(), range.start), move |(this, at)| async move {
            if at >= end {
                return Ok(None);
            }
            let piece = this.0.archive.part(digest, size, at..(at + PIECE).min(end)).await?;
            let next = at + piece.len() as u64;
            if next == at {
                return Err(error::port(ports::Error::Damaged(format!("the content {digest} ends at byte {at}"))));
            }
            Ok(Some((piece, (this, next))))
        })
    }

    /// Puts a large file into `latest/`; says whether it was missing there. A disk that is only a cache gets a sparse file of the same
    /// length instead.
    pub(crate) async fn put_large(&self, path: &FilePath, digest: Sha256, size: u64) -> Result<bool> {
        let is_cache = self.0.shared.upgrade().is_none_or(|shared| shared.cache.get().is_some());
        let (id, at) = (self.0.clock.id(), path.clone());
        if is_cache {
            return self.disk("to write a file", move |mirror| mirror.stand_in(&at, size, id).map(|()| true)).await;
        }
        let temporary = self.disk("to write a file", move |mirror| mirror.temporary(id)).await?;
        let (archive, space) = (&self.0.archive, self.0.id.to_string());
        if !archive.blobs.link(&space, digest, &temporary).await.map_err(error::port)? {
            let same = move |mirror: &Mirror| match mirror.look(Area::Latest, &at)? {
                OnDisk::File(found) if found == size => Ok(digest_of(mirror.open(&at)?)? == digest),
                _ => Ok(false),
            };
            // A content that the archive lacks stays out of `latest/`, and no read accepts the wrong file that is there instead.
            if self.disk("to read a file", same).await?
                || !bring(&*archive.blobs, &space, digest, size, temporary).await.map_err(error::port)?
            {
                return Ok(false);
            }
        }
        let path = path.clone();
        self.disk("to write a file", move |mirror| mirror.adopt(&path, id)).await
    }

    /// The same after a commit; a failure is only logged, because the commit alone decides.
    pub(crate) async fn flush_large(&self, path: &FilePath, digest: Sha256, size: u64) {
        if let Err(error) = self.put_large(path, digest, size).await {
            self.falls_behind(&error);
        }
    }
}

impl Shared {
    /// Some other workspaces, to look through for a good copy.
    pub(crate) async fn others(this: &Arc<Self>, id: WorkspaceId) -> Result<Vec<WorkspaceId>> {
        let (mut others, mut pages) = (Vec::new(), this.table.pages(ports::Query::all(crate::keys::WORKSPACES, 200)));
        while others.len() < crate::damage::OTHERS
            && let Some(items) = pages.next().await.map_err(error::port)?
        {
            others.extend(items.iter().filter_map(|item| item.key.sk.parse::<WorkspaceId>().ok()));
        }
        others.retain(|other| *other != id);
        Ok(others)
    }
}
