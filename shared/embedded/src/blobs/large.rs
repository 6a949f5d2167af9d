//! Large contents: read and compared by their chunks.

use super::{
    Archive, absent_as_none,
    chunks::{Chunks, place},
    cut, damaged,
};
use bytes::Bytes;
use domain::Sha256;
use std::{
    fs::{self, File},
    io::{self, Write as _},
    ops::Range,
    path::Path,
};

impl Archive {
    pub(super) fn is_large(&self, length: u64) -> bool {
        length > self.large_above
    }

    /// The list of a large content's chunks; made again from the content when it is missing or damaged.
    fn list(&self, path: &Path, file: &File, digest: Sha256, length: u64) -> io::Result<Chunks> {
        let kept = || {
            let text = absent_as_none(fs::read(Chunks::place(path)))?;
            Ok::<_, io::Error>(text.and_then(|text| Chunks::decode(&text, digest, length)))
        };
        if let Some(list) = kept()? {
            return Ok(list);
        }
        let _one_at_a_time = self.listing.lock();
        if let Some(list) = kept()? {
            return Ok(list);
        }
        let list = Chunks::of(file, length)?;
        if list.digest != digest {
            return Err(damaged(digest, length, list.digest));
        }
        tracing::warn!(%digest, "the list of a content's chunks was missing or damaged, and was made again");
        self.keep_list(path, &list)?;
        Ok(list)
    }

    /// Not synced: a list that is damaged is known to be so, and made again.
    pub(super) fn keep_list(&self, path: &Path, list: &Chunks) -> io::Result<()> {
        let temporary = self.new_temporary();
        let written = self.create_temporary(&temporary).and_then(|mut file| file.write_all(&list.encode()));
        let kept = written.and_then(|()| fs::rename(&temporary, Chunks::place(path)));
        kept.inspect_err(|_| drop(fs::remove_file(&temporary)))
    }

    /// Compares a content, or the part of it in `range`, with its digests. `NotFound` when it is absent.
    pub(super) fn check(&self, space: &str, digest: Sha256, range: Option<Range<u64>>) -> io::Result<()> {
        let path = self.path(space, digest);
        let file = File::open(&path)?;
        let length = file.metadata()?.len();
        if !self.is_large(length) {
            return self.read(space, digest, None).map(drop);
        }
        self.list(&path, &file, digest, length)?.check(&file, cut(range, length), |_, _| ())
    }

    /// A part of a large content.
    pub(super) fn read_large(
        &self,
        path: &Path,
        file: &File,
        digest: Sha256,
        length: u64,
        range: Option<Range<u64>>,
    ) -> io::Result<Bytes> {
        let part = cut(range, length);
        let mut content = Vec::with_capacity(place(part.end - part.start));
        self.list(path, file, digest, length)?.check(file, part.clone(), |from, chunk| {
            let begin = place(part.start.saturating_sub(from)).min(chunk.len());
            let end = place(part.end.saturating_sub(from)).min(chunk.len());
            content.extend_from_slice(chunk.get(begin..end).unwrap_or_default());
        })?;
        Ok(content.into())
    }
}
