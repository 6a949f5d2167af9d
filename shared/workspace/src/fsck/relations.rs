//! Tags, links, and the links in texts. Items that cannot be read are made again: tags from the list of the files that have each of them, explicit links from the
//! records of their changes, links in texts from the texts. Records are kept for 30 days. Of an older link only the hint of its target is left, which has no
//! kind: it is told of by the path of the target, and cannot come back.

use super::{Check, FaultPlace, FsckPart};
use crate::{
    Change, FileContent, Mark, Result,
    contents::is_large,
    error, mentions,
    relations::{Explicit, Marks, Mentions},
};
use domain::FileId;
use ports::{Expect, Item, Write};
use std::collections::{BTreeMap, BTreeSet};

/// The tags and explicit links of a file, as far as other items than its marks tell of them.
#[derive(Default)]
struct ToldMarks {
    /// The tags whose lists have the file.
    tags: BTreeSet<String>,
    /// The links after the last record of a change.
    links: Vec<Explicit>,
    /// The targets of links in these records and in the text.
    explained: BTreeSet<FileId>,
    /// The targets of hints.
    hinted: BTreeSet<FileId>,
}

impl ToldMarks {
    /// Follows the records in their order. One that comes twice is nothing the second time.
    fn follow(&mut self, change: Change) {
        let Change { mark, author: by, at, .. } = change;
        match mark {
            Some(Mark::Link(to, kind)) => {
                self.explained.insert(to);
                if !self.links.iter().any(|link| link.to == to && link.kind == kind) {
                    self.links.push(Explicit { to, kind, by, at });
                }
            }
            Some(Mark::Unlink(to, kind)) => {
                self.explained.insert(to);
                self.links.retain(|link| link.to != to || link.kind != kind);
            }
            Some(Mark::Tag(_) | Mark::Untag(_)) | None => {}
        }
    }
}

impl Check<'_> {
    pub(super) async fn relations(&mut self) -> Result<()> {
        let keys = self.workspace.0.keys;
        let unreadable = self.unreadable_in::<Marks>(keys.all_marks()).await?;
        let mut told = self.told_elsewhere(&unreadable).await?;
        for item in unreadable {
            let Some(id) = self.goes_to(&item).await else { continue };
            let ToldMarks { tags, links, explained, hinted } = told.remove(&id).unwrap_or_default();
            let marks = Marks { tags, links };
            let put = Write::put(item.key, error::json(&marks)?, Expect::Rev(item.rev));
            // JSON of an unknown form may be of a newer version of the program, and have all links.
            let is_torn = serde_json::from_str::<serde_json::Value>(&item.body).is_err();
            let repaired = is_torn && self.mend(vec![put]).await?;
            let message = "the tags and links of the file cannot be read; its tags are known from their lists, and its links of the last 30 days from the \
                records of changes";
            self.fault(FsckPart::Links, "marks_unreadable", message, repaired);
            for target in hinted.difference(&explained).filter(|_| is_torn) {
                if let Some(target) = self.named(*target).await? {
                    let message =
                        format!("a link of the file to {target} may be lost: no record of a change tells its kind");
                    self.fault(FsckPart::Links, "link_lost", message, false);
                }
            }
        }
        for item in self.unreadable_in::<Mentions>(keys.all_mentions()).await? {
            let Some(id) = self.goes_to(&item).await else { continue };
            let repaired = self.repair && self.taken_up_again(id, item).await?;
            self.fault(
                FsckPart::Links,
                "mentions_unreadable",
                "the links in the text of the file cannot be read",
                repaired,
            );
        }
        self.at = FaultPlace::default();
        Ok(())
    }

    /// Takes each item of a partition, in order.
    async fn each_in(&self, partition: String, mut take: impl FnMut(Item)) -> Result<()> {
        let mut pages = self.pages(partition);
        while let Some(items) = pages.next().await.map_err(error::port)? {
            items.into_iter().for_each(&mut take);
        }
        Ok(())
    }

    /// The items of a partition that are none of these.
    async fn unreadable_in<T: serde::de::DeserializeOwned>(&self, partition: String) -> Result<Vec<Item>> {
        let mut found = Vec::new();
        let take = |item: Item| found.extend(Some(item).filter(|item| error::parse::<T>(&item.body).is_err()));
        self.each_in(partition, take).await?;
        Ok(found)
    }

    /// The tags and explicit links of the files of these items: by the lists of tags; by records of changes, hints and texts.
    async fn told_elsewhere(&self, of: &[Item]) -> Result<BTreeMap<FileId, ToldMarks>> {
        let (inner, keys) = (&self.workspace.0, self.workspace.0.keys);
        let files = of.iter().filter_map(|item| item.key.sk.parse::<FileId>().ok());
        let mut told: BTreeMap<FileId, ToldMarks> = files.map(|file| (file, ToldMarks::default())).collect();
        if told.is_empty() {
            return Ok(told);
        }
        let follow = |item: Item| {
            // One that cannot be read tells nothing.
            let Ok(change) = error::parse::<Change>(&item.body) else { return };
            if let Some(told) = told.get_mut(&change.file_id) {
                told.follow(change);
            }
        };
        self.each_in(keys.changes(), follow).await?;
        let list = |item: Item| {
            let Some((tag, file)) = item.key.sk.rsplit_once('/') else { return };
            let Ok(file) = file.parse::<FileId>() else { return };
            if let Some(told) = told.get_mut(&file) {
                told.tags.insert(tag.to_owned());
            }
        };
        self.each_in(keys.tagged(), list).await?;
        let hint = |item: Item| {
            let Some((to, from)) = item.key.sk.split_once('/') else { return };
            let (Ok(to), Ok(from)) = (to.parse::<FileId>(), from.parse::<FileId>()) else { return };
            if let Some(told) = told.get_mut(&from) {
                told.hinted.insert(to);
            }
        };
        self.each_in(keys.linked(), hint).await?;
        for (file, told) in &mut told {
            let item = inner.table.get(&keys.mentions(*file)).await.map_err(error::port)?;
            let mentions = item.and_then(|item| error::parse::<Mentions>(&item.body).ok());
            let links = mentions.into_iter().flat_map(|mentions| mentions.links);
            told.explained.extend(links.filter_map(|mention| mention.to));
        }
        Ok(told)
    }

    /// A file, for people; none that is purged, to which no link leads any more.
    async fn named(&self, file: FileId) -> Result<Option<String>> {
        if let Ok(path) = self.workspace.path_of(file).await {
            return Ok(Some(path.to_string()));
        }
        let keys = self.workspace.0.keys;
        for key in [keys.node(file), keys.trashed(file)] {
            if self.workspace.0.table.get(&key).await.map_err(error::port)?.is_some() {
                return Ok(Some(format!("the file {file} in the trash")));
            }
        }
        Ok(None)
    }

    /// The file of an item, as the place of the next fault.
    async fn goes_to(&mut self, item: &Item) -> Option<FileId> {
        let file_id = item.key.sk.parse().ok();
        let path = match file_id {
            Some(id) => self.workspace.path_of(id).await.ok().map(|path| path.to_string()),
            None => None,
        };
        self.at = FaultPlace { path, file_id, v: None };
        file_id
    }

    /// Takes up the links in the current text of a file as its write did.
    async fn taken_up_again(&self, id: FileId, item: Item) -> Result<bool> {
        let inner = &self.workspace.0;
        let Ok(path) = self.workspace.path_of(id).await else { return Ok(false) };
        let Some(found) = self.workspace.walk(&path).await?.found else { return Ok(false) };
        let Some(sha256) = found.entry.sha256.filter(|_| !is_large(found.entry.size)) else { return Ok(false) };
        let Ok(content) = inner.archive.get(sha256, found.entry.size).await else { return Ok(false) };
        let written = mentions::written_in(&path, &FileContent::Bytes(content)).await;
        // The text is there, and what it says can be written again if this ends here.
        inner.table.commit(vec![Write::delete(item.key, Expect::Rev(item.rev))]).await.map_err(error::port)?;
        let mut writes = Vec::new();
        self.workspace.take_up(&path, &found.entry, &written, &mut writes).await?;
        if !writes.is_empty() {
            inner.table.commit(writes).await.map_err(error::port)?;
        }
        Ok(true)
    }
}
