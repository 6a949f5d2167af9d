//! The history of a file: it only grows.

use crate::{
    Change, Expect, FileContent, Result, Version, VersionPage, Workspace, Writer, blocking, contents::is_large,
    damages, error,
};
use bytes::Bytes;
use domain::{Error, FileId};
use ports::Query;
use std::time::Duration;

/// The longest diff, in bytes.
const MAX_DIFF: usize = 8 * 1024;
/// Contents over this length, in bytes, are not compared line by line.
const MAX_DIFFED: usize = 1024 * 1024;

impl Workspace {
    /// The versions of a file, newest first, also of one in the trash; `limit` is cut to 1 to 1,000.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another file; else those of [`Workspace`]. An unknown file has no versions.
    pub async fn versions(&self, file_id: FileId, limit: usize, cursor: Option<String>) -> Result<VersionPage> {
        if !self.has_history(file_id).await? {
            return Ok(VersionPage::default());
        }
        let query = Query::all(self.0.keys.versions(file_id), limit.clamp(1, 1000)).descending().after(cursor);
        let page = self.0.table.query(&query).await.map_err(ports::validate::of_page(&query, error::port))?;
        let versions = ports::readable::<Version>(&page.items).map(|(_, version)| version).collect();
        Ok(VersionPage { versions, next_cursor: page.next })
    }

    /// One version with its content.
    ///
    /// # Errors
    /// `CONTENT_DAMAGED` and `CONTENT_MISSING`, with the place, when the archive has not got it as it was written and no good copy
    /// was found: so that nothing else is ever taken for it, or made current again. `PAYLOAD_TOO_LARGE` for a large content, which is
    /// read by [`Workspace::pieces`].
    pub async fn version(&self, file_id: FileId, v: u64) -> Result<(Version, Bytes)> {
        let version = self.version_info(file_id, v).await?;
        match self.0.archive.get(version.sha256, version.size).await {
            Ok(content) => Ok((version, content)),
            Err(error) => {
                let path = self.path_of(file_id).await.ok();
                Err(damages::at(error, path.as_ref(), file_id, v))
            }
        }
    }

    /// One version without its content.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such file or version; else those of [`Workspace`].
    pub async fn version_info(&self, file_id: FileId, v: u64) -> Result<Version> {
        let item = match self.has_history(file_id).await? {
            true => self.0.table.get(&self.0.keys.version(file_id, v)).await.map_err(error::port)?,
            false => None,
        };
        let item = item.ok_or_else(|| {
            Error::not_found("version", format!("{v} of the file {file_id}"))
                .hint("list the versions to see which exist")
        })?;
        error::parse(&item.body)
    }

    /// The content of a version, to be written as another one.
    pub(crate) async fn version_content(&self, file_id: FileId, v: u64) -> Result<FileContent> {
        let Version { sha256, size, .. } = self.version_info(file_id, v).await?;
        Ok(match is_large(size) {
            true => FileContent::Large { sha256, size },
            false => FileContent::Bytes(self.version(file_id, v).await?.1),
        })
    }

    /// Makes the content of an old version the newest version.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such version, or the file is in the trash; else those of [`Workspace::version`] and
    /// [`Workspace::write_given`].
    pub async fn restore_version(&self, file_id: FileId, v: u64, expect: Expect, writer: &Writer) -> Result<Change> {
        // Another file may come to its path before the write.
        let expect = if expect == Expect::Any { Expect::File(file_id) } else { expect };
        let content = self.version_content(file_id, v).await?;
        self.write_given(&self.path_of(file_id).await?, content, expect, writer).await
    }

    /// The unified diff of two versions, capped; none when either is not text or too long.
    ///
    /// # Errors
    /// Those of [`Workspace::version_info`] and [`Workspace::version`].
    pub async fn diff(&self, file_id: FileId, from: u64, to: u64) -> Result<Option<String>> {
        for v in [from, to] {
            if self.version_info(file_id, v).await?.size > MAX_DIFFED as u64 {
                return Ok(None);
            }
        }
        let (_, old) = self.version(file_id, from).await?;
        let (_, new) = self.version(file_id, to).await?;
        diff(old, new, (format!("version {from}"), format!("version {to}"))).await
    }
}

/// A unified diff, cut to [`MAX_DIFF`]; on a thread for such work.
pub(crate) async fn diff(old: Bytes, new: Bytes, names: (String, String)) -> Result<Option<String>> {
    blocking::run(move || diff_text(&old, &new, (&names.0, &names.1))).await.map_err(error::task)
}

fn diff_text(old: &[u8], new: &[u8], names: (&str, &str)) -> Option<String> {
    if old.len().max(new.len()) > MAX_DIFFED {
        return None;
    }
    let (old, new) = (std::str::from_utf8(old).ok()?, std::str::from_utf8(new).ok()?);
    let diff = similar::TextDiff::configure().timeout(Duration::from_millis(200)).diff_lines(old, new);
    let mut text = diff.unified_diff().context_radius(3).header(names.0, names.1).to_string();
    if text.len() > MAX_DIFF {
        text.truncate(text.floor_char_boundary(MAX_DIFF));
        text.push_str("\n[the diff is longer and was cut here]\n");
    }
    Some(text)
}
