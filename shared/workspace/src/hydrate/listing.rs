//! Lists the index below a path: one query per folder, level by level.

use crate::{
    FileKind, Result, Workspace,
    cache::{Budget, KnownContent},
    contents::is_large,
    model::Entry,
};
use domain::{Code, Error, FileId, FilePath};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;

/// How many folders are listed at once, and how many entries a query gives.
const LISTED_AT_ONCE: usize = 16;
const PAGE: usize = 500;

/// The target state of a path.
pub(crate) enum Listed {
    Folder,
    File(KnownContent),
    Projection,
}

impl Listed {
    /// The target state that an entry stands for.
    ///
    /// # Errors
    /// `INTERNAL` for a file without a digest.
    pub fn of(entry: &Entry) -> Result<Self> {
        Ok(match entry.kind {
            FileKind::Folder => Self::Folder,
            FileKind::File => Self::File(KnownContent::of(entry)?),
            FileKind::Projection => Self::Projection,
        })
    }
}

/// The listing so far, with its budget.
struct Listing<'a> {
    path: &'a FilePath,
    budget: &'a Budget,
    found: BTreeMap<FilePath, Listed>,
    bytes: u64,
    next: Vec<(FilePath, FileId)>,
}

impl Listing<'_> {
    fn add(&mut self, path: FilePath, entry: &Entry) -> Result<()> {
        if entry.kind == FileKind::Folder {
            self.next.push((path.clone(), entry.file_id));
        }
        // Large contents are not fetched into a cache, so they take no bytes.
        let size = if is_large(entry.size) { 0 } else { entry.size };
        self.bytes = self.bytes.saturating_add(size);
        self.found.insert(path, Listed::of(entry)?);
        let Budget { files, bytes, .. } = *self.budget;
        if self.found.len() <= files && self.bytes <= bytes {
            return Ok(());
        }
        let message = format!(
            "there is too much in {} to be searched from here: the limit is {files} files and folders, and {} MiB",
            self.path,
            bytes / (1024 * 1024)
        );
        Err(Error::new(Code::PayloadTooLarge, message)
            .hint("name a smaller folder in path, or warm the workspace's sandbox, which has all files at hand"))
    }
}

impl Workspace {
    /// The entries of the index at and below `path`; empty when there is none.
    pub(crate) async fn listed(&self, path: &FilePath, budget: &Budget) -> Result<BTreeMap<FilePath, Listed>> {
        let (found, bytes, next) = (BTreeMap::new(), 0, Vec::new());
        let mut listing = Listing { path, budget, found, bytes, next };
        if path.is_root() {
            listing.found.insert(path.clone(), Listed::Folder);
            listing.next.push((path.clone(), self.0.keys.root()));
        } else {
            match self.walk(path).await {
                Ok(walk) => walk.found.map_or(Ok(()), |found| listing.add(path.clone(), &found.entry))?,
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        while !listing.next.is_empty() {
            let level = std::mem::take(&mut listing.next).into_iter().map(|(path, folder)| (path, folder, None));
            let mut level: Vec<(FilePath, FileId, Option<String>)> = level.collect();
            while !level.is_empty() {
                let mut pages = stream::iter(std::mem::take(&mut level))
                    .map(|(path, folder, cursor)| async move {
                        // An entry that cannot be read keeps none of the others from being searched.
                        let page = self.readable_page(folder, PAGE, cursor).await?;
                        Ok::<_, Error>((path, folder, page))
                    })
                    .buffer_unordered(LISTED_AT_ONCE);
                while let Some((path, folder, page)) = pages.try_next().await? {
                    for (name, entry) in page.entries {
                        listing.add(path.join(&name)?, &entry)?;
                    }
                    if page.next.is_some() {
                        level.push((path, folder, page.next));
                    }
                }
            }
        }
        Ok(listing.found)
    }
}
