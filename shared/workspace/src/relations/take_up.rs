//! Takes up the links and the tags in the text of a version, in the commit that makes it. A version without links and front matter costs nothing.

use super::{MAX_TAGS, Mention, Mentions, in_order, places::Places};
use crate::{
    Result, Workspace, error,
    mentions::{InText, Written},
    model::Entry,
};
use domain::FilePath;
use futures::FutureExt;
use ports::{Expect, Write};
use std::collections::BTreeMap;

/// The writes that a commit may still get after these.
const SPARE: usize = 10;

impl Workspace {
    /// Adds to `writes`, which make a version of the file at `path`, what its links need. Hints for which the commit has no room are written before
    /// it: one that is never followed by its version counts for nothing.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub(crate) async fn take_up(
        &self,
        path: &FilePath,
        entry: &Entry,
        written: &InText,
        writes: &mut Vec<Write>,
    ) -> Result<()> {
        let keys = self.0.keys;
        let tags = self.take_up_tags(entry, written, writes).await?;
        if written.links.is_empty() && tags.is_none() {
            return Ok(());
        }
        let links = self.meant(path, entry, &written.links).await?;
        let mut hints = BTreeMap::new();
        for mention in &links {
            let named = mention.written().name().map(|name| keys.named_in(name, entry.file_id));
            let linked = mention.to.map(|to| keys.linked_from(to, entry.file_id));
            hints.extend(named.into_iter().chain(linked).map(|key| (key, ())));
        }
        let body = error::json(&Mentions { v: entry.v, links, tags: tags.unwrap_or_default() })?;
        writes.push(Write::put(keys.mentions(entry.file_id), body, Expect::Any));
        let hints: Vec<Write> = hints.into_keys().map(|key| Write::put(key, "{}", Expect::Any)).collect();
        if writes.len() + hints.len() + SPARE <= ports::MAX_WRITES {
            writes.extend(hints);
            return Ok(());
        }
        for some in hints.chunks(ports::MAX_WRITES) {
            self.0.table.commit(some.to_vec()).await.map_err(error::port)?;
        }
        Ok(())
    }

    /// Makes the tags of the front matter marks of the file, and takes off those that the version before had and this one has not. Returns the tags to
    /// note; none when there is nothing to note. A text without front matter changes no tag.
    async fn take_up_tags(
        &self,
        entry: &Entry,
        written: &InText,
        writes: &mut Vec<Write>,
    ) -> Result<Option<Vec<String>>> {
        let before = match (&written.tags, written.links.is_empty(), entry.v > 1) {
            (Some(tags), _, false) if tags.is_empty() => return Ok(None),
            // The note is written anew with the links, and must not forget the tags.
            (Some(_), _, true) | (None, false, true) => {
                self.last_mentions(entry.file_id).await?.map(|before| before.tags).unwrap_or_default()
            }
            (Some(_), _, false) => Vec::new(),
            (None, ..) => return Ok(None),
        };
        let Some(tags) = &written.tags else { return Ok(Some(before)) };
        if *tags == before {
            return Ok((!tags.is_empty()).then(|| tags.clone()));
        }
        let keys = self.0.keys;
        let (mut marks, rev) = self.marks(entry.file_id).await?;
        let had = marks.tags.clone();
        for gone in before.iter().filter(|tag| !tags.contains(tag)) {
            if marks.tags.remove(gone) {
                writes.push(Write::delete(keys.tagged_with(gone, entry.file_id), Expect::Any));
            }
        }
        for tag in tags {
            if marks.tags.len() < MAX_TAGS && marks.tags.insert(tag.clone()) {
                writes.push(Write::put(keys.tagged_with(tag, entry.file_id), "{}", Expect::Any));
            }
        }
        if marks.tags != had {
            let expect = rev.map_or(Expect::Absent, Expect::Rev);
            writes.push(Write::put(keys.marks(entry.file_id), error::json(&marks)?, expect));
        }
        Ok(Some(tags.clone()))
    }

    /// The files that links mean now. One whose path leads nowhere keeps the file that it meant in the version before, which may have been moved.
    async fn meant(&self, path: &FilePath, entry: &Entry, written: &[Written]) -> Result<Vec<Mention>> {
        let folder = path.parent().unwrap_or_else(FilePath::root);
        let (places, folder) = (&Places::of(self), &folder);
        let mean = |written: &Written| {
            let written = written.clone();
            let look = async move {
                let mut to = None;
                for candidate in written.candidates(folder) {
                    to = places.at(&candidate).await?.map(|found| found.file_id);
                    if to.is_some() {
                        break;
                    }
                }
                Ok(Mention { form: written.form, target: written.target, to })
            };
            look.boxed()
        };
        let mut links = in_order(written.iter().map(mean).collect()).await?;
        if entry.v > 1 && links.iter().any(|link| link.to.is_none()) {
            let before = self.last_mentions(entry.file_id).await?.map(|before| before.links).unwrap_or_default();
            for link in links.iter_mut().filter(|link| link.to.is_none()) {
                let same = before.iter().find(|one| one.form == link.form && one.target == link.target);
                link.to = same.and_then(|one| one.to);
            }
        }
        Ok(links)
    }
}
