//! Uploads in parts: `{root}/.uploads/{space}/{digest}/` has the file `content`, into which each part is written at its place, and the file `parts` with a
//! line for each part that is durable there. So parts come in any order, and those that came stay when a connection or the process ends.
//!
//! When all are there, the folder gets the ending `.whole`: a part that still comes finds no file then. The content is read once, compared with its
//! digest, and moved into the archive. A folder with that ending that a dead process left is completed by the next request.

use super::{
    Archive, absent_as_none,
    chunks::{CHUNK, Chunks, place},
    failed,
    incoming::SPARE,
};
use crate::reserve::free;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use domain::{Hasher, Sha256, Timestamp};
use parking_lot::MutexGuard;
use ports::{Error, MOST_UNFINISHED, Part, Progress, Result, ResumableUpload};
use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

/// Beside the spaces, in whose names is no dot.
const UPLOADS: &str = ".uploads";
const CONTENT: &str = "content";
const PARTS: &str = "parts";
const WHOLE: &str = "whole";

impl Archive {
    fn uploads(&self, space: &str) -> PathBuf {
        self.root.join(UPLOADS).join(space)
    }

    fn upload(&self, space: &str, digest: Sha256) -> PathBuf {
        self.uploads(space).join(digest.to_string())
    }

    fn uploading(&self) -> MutexGuard<'_, ()> {
        self.uploading.lock()
    }

    pub(super) fn resume(&self, space: &str, upload: &ResumableUpload) -> Result<Progress> {
        let digest = upload.digest();
        let folder = self.upload(space, digest);
        let whole = folder.with_extension(WHOLE);
        if !whole.exists() {
            if self.is_there(space, digest).map_err(failed)? {
                return Ok(Progress::Whole);
            }
            let there = received(&folder).map_err(failed)?;
            let is_missing = |part: &Part| there.get(&part.number) != Some(&part.digest);
            let received = upload.parts().filter(|part| !is_missing(part)).map(|part| part.length).sum();
            if let Some(part) = upload.parts().find(is_missing) {
                self.begin(space, &folder, upload.length() - received)?;
                return Ok(Progress::Missing { received, part, request: None });
            }
        }
        self.complete(space, upload, &folder, &whole)
    }

    /// Whether the archive has the content, intact and durable.
    fn is_there(&self, space: &str, digest: Sha256) -> io::Result<bool> {
        match self.check(space, digest, None) {
            Ok(()) => self.is_durable(&self.path(space, digest)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes the folder of an upload and its files, as far as they are not there: an earlier attempt may have found no room for all of them. Room for the
    /// content is not reserved: an upload may never be finished.
    fn begin(&self, space: &str, folder: &Path, missing: u64) -> Result<()> {
        let _alone = self.uploading();
        // Made last.
        if !folder.join(PARTS).exists() {
            let others = absent_as_none(fs::read_dir(self.uploads(space))).map_err(failed)?;
            if !folder.exists() && others.map_or(0, Iterator::count) >= MOST_UNFINISHED {
                return Err(Error::Invalid(format!(
                    "{MOST_UNFINISHED} uploads of this workspace are unfinished: finish one of them first"
                )));
            }
            fs::create_dir_all(folder).map_err(failed)?;
            File::create(folder.join(CONTENT)).map_err(failed)?;
            let mut above = folder.ancestors().take_while(|above| above.starts_with(&self.root));
            above.try_for_each(self.sync).map_err(failed)?;
            File::create(folder.join(PARTS)).map_err(failed)?;
            (self.sync)(folder).map_err(failed)?;
        }
        match free(folder) < missing.saturating_add(SPARE) {
            true => Err(Error::full("the archive")),
            false => Ok(()),
        }
    }

    fn complete(&self, space: &str, upload: &ResumableUpload, folder: &Path, whole: &Path) -> Result<Progress> {
        // One content at a time is read whole.
        let alone = self.listing.lock();
        let is_gone = {
            let _names = self.uploading();
            !whole.exists() && absent_as_none(fs::rename(folder, whole)).map_err(failed)?.is_none()
        };
        if is_gone {
            // Another request completed it. To look may make a list, which takes the lock.
            drop(alone);
            return match self.is_there(space, upload.digest()).map_err(failed)? {
                true => Ok(Progress::Whole),
                false => Err(Error::unavailable("the archive", "the upload ended meanwhile")),
            };
        }
        let content = whole.join(CONTENT);
        let kept = self.keep_upload(space, upload, &content);
        // A content that is not the announced one is of no use, and one that was kept has left the folder. Any other failure leaves it for the next request.
        if !matches!(kept, Err(Error::Unavailable { .. })) {
            absent_as_none(fs::remove_dir_all(whole)).map_err(failed)?;
        }
        kept.map(|()| Progress::Whole)
    }

    fn keep_upload(&self, space: &str, upload: &ResumableUpload, content: &Path) -> Result<()> {
        let (digest, length) = (upload.digest(), upload.length());
        let Some(file) = absent_as_none(File::open(content)).map_err(failed)? else {
            // A process that died after the move has left a folder without it; so has a move that was not synced.
            return match self.is_durable(&self.path(space, digest)).map_err(failed)? {
                true => Ok(()),
                false => Err(Error::Invalid(format!("the content {digest} was not kept: send it from the beginning"))),
            };
        };
        let list = match Chunks::of(&file, length) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            list => Some(list.map_err(failed)?).filter(|list| list.digest == digest),
        };
        let Some(list) = list else {
            return Err(Error::Invalid(format!(
                "the parts that came are not the content {digest}: send it from the beginning"
            )));
        };
        let keep = || {
            file.set_permissions(Permissions::from_mode(0o444))?;
            file.sync_all()?;
            let path = self.path(space, digest);
            self.place(content, &path)?;
            if self.is_large(length) { self.keep_list(&path, &list) } else { Ok(()) }
        };
        keep().map_err(failed)
    }

    pub(super) fn delete_unfinished(&self, space: &str) -> io::Result<()> {
        let _alone = self.uploading();
        absent_as_none(fs::remove_dir_all(self.uploads(space))).map(drop)
    }

    pub(super) fn forget_unfinished(&self, before: Timestamp) -> io::Result<u64> {
        let mut forgotten = 0;
        for space in folders(&self.root.join(UPLOADS))? {
            for upload in folders(&space)? {
                let _alone = self.uploading();
                if last_change(&upload)?.is_some_and(|last| last < before) {
                    absent_as_none(fs::remove_dir_all(&upload))?;
                    forgotten += 1;
                }
            }
            // Only an empty one goes.
            drop(fs::remove_dir(space));
        }
        Ok(forgotten)
    }
}

fn folders(above: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(entries) = absent_as_none(fs::read_dir(above))? else { return Ok(Vec::new()) };
    entries.map(|entry| entry.map(|entry| entry.path())).collect()
}

/// The time of the last change of a folder or a file in it; none when it is gone.
fn last_change(upload: &Path) -> io::Result<Option<Timestamp>> {
    let mut last = None;
    for path in [upload.to_owned(), upload.join(CONTENT), upload.join(PARTS)] {
        let Some(found) = absent_as_none(fs::metadata(path))? else { continue };
        let since = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        last = last.max(Some(Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))));
    }
    Ok(last)
}

/// The parts that are there, by their numbers. A line that a power cut left broken counts as none.
fn received(folder: &Path) -> io::Result<HashMap<usize, Sha256>> {
    let text = absent_as_none(fs::read(folder.join(PARTS)))?.unwrap_or_default();
    let lines = String::from_utf8_lossy(&text);
    let whole = lines.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let read = |line: &str| line.split_once(' ').and_then(|(n, digest)| Some((n.parse().ok()?, digest.parse().ok()?)));
    Ok(whole.filter_map(read).collect())
}

/// A part that is being received.
pub(super) struct IncomingPart {
    archive: Arc<Archive>,
    folder: PathBuf,
    part: Part,
    /// Less than a chunk.
    buffer: BytesMut,
    hasher: Hasher,
    written: u64,
    has_failed: bool,
}

impl IncomingPart {
    /// # Errors
    /// [`Error::Conflict`] when its upload did not begin.
    pub async fn begin(archive: Arc<Archive>, space: &str, digest: Sha256, part: Part) -> Result<Self> {
        let folder = archive.upload(space, digest);
        if !folder.join(CONTENT).is_file() {
            return Err(not_begun());
        }
        let (buffer, hasher) = (BytesMut::new(), Hasher::default());
        Ok(Self { archive, folder, part, buffer, hasher, written: 0, has_failed: false })
    }

    async fn add(&mut self, chunk: Bytes) -> Result<()> {
        let (archive, path, at) = (self.archive.clone(), self.folder.join(CONTENT), self.part.from + self.written);
        self.hasher.update(&chunk);
        self.written += chunk.len() as u64;
        let written = blocking(move || {
            let _alone = archive.uploading();
            let file = OpenOptions::new().write(true).open(path)?;
            if free(&archive.root) < SPARE {
                return Err(io::ErrorKind::StorageFull.into());
            }
            file.write_all_at(&chunk, at)
        });
        written.await.inspect_err(|_| self.has_failed = true)
    }
}

#[async_trait]
impl ports::Incoming for IncomingPart {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        if self.has_failed || self.written + (self.buffer.len() + bytes.len()) as u64 > self.part.length {
            self.has_failed = true;
            return Err(Error::Invalid(format!("the part is longer than its {} bytes", self.part.length)));
        }
        self.buffer.extend_from_slice(&bytes);
        while self.buffer.len() >= place(CHUNK) {
            let chunk = self.buffer.split_to(place(CHUNK)).freeze();
            self.add(chunk).await?;
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<()> {
        if self.has_failed {
            return Err(Error::Invalid("the part failed before".into()));
        }
        if !self.buffer.is_empty() {
            let rest = std::mem::take(&mut self.buffer).freeze();
            self.add(rest).await?;
        }
        let Self { archive, folder, part, hasher, written, .. } = *self;
        if written != part.length {
            return Err(Error::Invalid(format!("the part has {written} bytes, not {}", part.length)));
        }
        let found = hasher.finish();
        if found != part.digest {
            return Err(Error::Invalid(format!("the part has the SHA-256 {found}, not {}", part.digest)));
        }
        blocking(move || {
            let open = |name: &str, options: &mut OpenOptions| {
                let _alone = archive.uploading();
                options.open(folder.join(name))
            };
            open(CONTENT, OpenOptions::new().write(true))?.sync_data()?;
            let mut parts = open(PARTS, OpenOptions::new().append(true))?;
            parts.write_all(format!("{} {found}\n", part.number).as_bytes())?;
            parts.sync_data()
        })
        .await
    }
}

/// It did not begin, or another request completed or removed it.
fn not_begun() -> Error {
    Error::Conflict { write: 0 }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Err(not_begun()),
        Ok(done) => done.map_err(failed),
        Err(error) => Err(Error::unavailable("the archive", error)),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::LocalBlobs;
    use super::*;
    use ports::{Blobs, Clock as _, PART, SystemClock, UNFINISHED};
    use std::time::{Duration, SystemTime};

    const FOR: Duration = Duration::from_secs(60);

    fn upload(fill: u8) -> (Bytes, ResumableUpload) {
        let content = Bytes::from(vec![fill; place(PART) + 5]);
        let parts = content.chunks(place(PART)).map(Sha256::of).collect();
        (content.clone(), ResumableUpload::new(Sha256::of(&content), content.len() as u64, parts).unwrap())
    }

    async fn bring(blobs: &LocalBlobs, (content, upload): &(Bytes, ResumableUpload), number: usize) {
        let part = upload.parts().nth(number).unwrap();
        let mut incoming = blobs.incoming_part("w", upload.digest(), part).await.unwrap().unwrap();
        incoming.write(content.slice(place(part.from)..place(part.range().end))).await.unwrap();
        incoming.finish().await.unwrap();
    }

    async fn received(blobs: &LocalBlobs, upload: &ResumableUpload) -> Option<u64> {
        match blobs.resume("w", upload, FOR).await.unwrap().unwrap() {
            Progress::Missing { received, .. } => Some(received),
            Progress::Whole => None,
        }
    }

    #[tokio::test]
    async fn parts_and_a_completion_that_began_outlive_the_process() {
        let root = tempfile::tempdir().unwrap();
        let sent = upload(1);
        let digest = sent.1.digest();
        let blobs = LocalBlobs::new(root.path());
        assert_eq!(received(&blobs, &sent.1).await, Some(0));
        // The last part may come first. One that breaks off in the middle counts as none.
        bring(&blobs, &sent, 1).await;
        let part = sent.1.parts().next().unwrap();
        let mut broken = blobs.incoming_part("w", digest, part).await.unwrap().unwrap();
        broken.write(Bytes::from(vec![9; 3 << 20])).await.unwrap();
        drop((broken, blobs));
        let blobs = LocalBlobs::new(root.path());
        assert_eq!(received(&blobs, &sent.1).await, Some(5));
        bring(&blobs, &sent, 0).await;
        // It dies when it has begun to make the content of them.
        let folder = blobs.0.upload("w", digest);
        fs::rename(&folder, folder.with_extension(WHOLE)).unwrap();
        let late = blobs.incoming_part("w", digest, part).await;
        assert!(matches!(late, Err(Error::Conflict { .. })), "no part changes it any more");
        let blobs = LocalBlobs::new(root.path());
        assert_eq!(received(&blobs, &sent.1).await, None);
        assert_eq!(blobs.get("w", digest, None).await.unwrap(), Some(sent.0));
        assert_eq!(fs::read_dir(blobs.0.uploads("w")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn an_upload_whose_beginning_found_no_room_begins_with_the_next_request() {
        let root = tempfile::tempdir().unwrap();
        let sent = upload(2);
        let blobs = LocalBlobs::new(root.path());
        fs::create_dir_all(blobs.0.upload("w", sent.1.digest())).unwrap();
        assert_eq!(received(&blobs, &sent.1).await, Some(0));
        for number in [0, 1] {
            bring(&blobs, &sent, number).await;
        }
        assert_eq!(received(&blobs, &sent.1).await, None);
    }

    #[tokio::test]
    async fn an_upload_whose_content_was_not_synced_is_not_whole_and_begins_anew() {
        let root = tempfile::tempdir().unwrap();
        let sent = upload(3);
        let mut blobs = LocalBlobs::new(root.path());
        assert_eq!(received(&blobs, &sent.1).await, Some(0));
        for number in [0, 1] {
            bring(&blobs, &sent, number).await;
        }
        Arc::get_mut(&mut blobs.0).unwrap().sync = |_: &Path| Err(io::Error::other("the disk fails"));
        assert!(matches!(blobs.resume("w", &sent.1, FOR).await, Err(Error::Unavailable { .. })));
        Arc::get_mut(&mut blobs.0).unwrap().sync = super::super::durable::sync_folder;
        assert!(matches!(blobs.resume("w", &sent.1, FOR).await, Err(Error::Invalid(_))), "it is sent again");
        assert_eq!(received(&blobs, &sent.1).await, Some(0));
        for number in [0, 1] {
            bring(&blobs, &sent, number).await;
        }
        assert_eq!(received(&blobs, &sent.1).await, None);
    }

    #[tokio::test]
    async fn unfinished_uploads_are_bounded_and_forgotten_after_their_time() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path());
        let (_, first) = upload(0);
        let length = first.length();
        for number in 0..MOST_UNFINISHED {
            let digest = Sha256::of(&number.to_be_bytes());
            let other = ResumableUpload::new(digest, length, vec![digest; 2]).unwrap();
            assert_eq!(received(&blobs, &other).await, Some(0));
        }
        assert!(matches!(blobs.resume("w", &first, FOR).await, Err(Error::Invalid(_))));
        assert_eq!(blobs.forget_unfinished(SystemClock.now() - UNFINISHED).await.unwrap(), 0);
        // Of one a part came lately.
        let now = u64::try_from(SystemClock.now().as_millis()).unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_millis(now) - UNFINISHED - Duration::from_secs(1);
        for (position, folder) in folders(&blobs.0.uploads("w")).unwrap().iter().enumerate() {
            let names = if position == 0 { vec![PARTS] } else { vec![CONTENT, PARTS] };
            let times = fs::FileTimes::new().set_modified(old);
            names.iter().for_each(|name| {
                File::options().write(true).open(folder.join(name)).unwrap().set_times(times).unwrap()
            });
            File::open(folder).unwrap().set_times(times).unwrap();
        }
        let forgotten = blobs.forget_unfinished(SystemClock.now() - UNFINISHED).await.unwrap();
        assert_eq!(forgotten, MOST_UNFINISHED as u64 - 1);
        assert_eq!(received(&blobs, &first).await, Some(0));
        blobs.delete_space("w").await.unwrap();
        assert_eq!(fs::read_dir(root.path().join(UPLOADS)).unwrap().count(), 0);
    }
}
