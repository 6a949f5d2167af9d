//! Reading tags and links: what the party of the handle may list, and nothing of the rest.

use super::{Marks, Mention, in_order, places::Places, readable};
use crate::{FileKind, Info, Result, Workspace, check_tag, error};
use domain::{FileId, FilePath, Timestamp};
use futures::FutureExt;
use ports::Query;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The most files that are compared for the backlinks of a file.
const MOST_SOURCES: usize = 500;
/// The most pairs of a tag and a file that are counted.
const MOST_TAGGED: usize = 10_000;

/// A file or folder at the end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRef {
    /// Its identity.
    pub file_id: FileId,
    /// Its path now.
    pub path: FilePath,
    /// Its kind.
    pub kind: FileKind,
}

/// A link as one of its ends sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Its kind; `markdown` or `wiki` for one in a text.
    pub kind: String,
    /// The file at the other end; none where a text names something that is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileRef>,
    /// Of a link in a text: its target as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Of an explicit link: its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Of an explicit link: the time at which it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// The tags and links of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relations {
    /// The file.
    pub file: FileRef,
    /// Its tags, in order.
    pub tags: Vec<String>,
    /// The links from it: explicit ones first, then those of its text, in their order.
    pub links: Vec<Link>,
    /// The links to it, by the path of the other file.
    pub backlinks: Vec<Link>,
    /// Whether there may be more links to it: of those in question 500 files per kind of hint are looked at.
    pub truncated: bool,
}

/// A tag, and the number of files that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagCount {
    /// The tag.
    pub tag: String,
    /// The number of files and folders that have it.
    pub files: u64,
}

/// The tags of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagCounts {
    /// The tags, in order.
    pub tags: Vec<TagCount>,
    /// Whether only the first 10,000 pairs of a tag and a file were counted.
    pub truncated: bool,
}

/// A page of the files that have a tag.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaggedPage {
    /// The files and folders, oldest identity first.
    pub files: Vec<Info>,
    /// The cursor of the next page; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Workspace {
    /// The tags of a file and its links in both directions.
    ///
    /// # Errors
    /// `NOT_FOUND` when it is not there or in the trash; else those of [`Workspace`].
    pub async fn relations(&self, file: FileId) -> Result<Relations> {
        let places = Places::of(self);
        let info = self.start(&places, file).await?;
        let tags = self.marks(file).await?.0.tags.into_iter().collect();
        let links = self.links_from(&places, &info).await?;
        let (backlinks, truncated) = self.links_to(&places, &info).await?;
        Ok(Relations { file: FileRef::from(&info), tags, links, backlinks, truncated })
    }

    /// The tags of a file that exists for the party, in order.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn tags_of(&self, info: &Info) -> Result<Vec<String>> {
        Ok(self.marks(info.file_id).await?.0.tags.into_iter().collect())
    }

    /// The files that have a tag; `limit` is cut to 1 to 1,000.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` as of [`check_tag`], and for a cursor of another tag; else those of [`Workspace`].
    pub async fn tagged(&self, tag: &str, limit: usize, cursor: Option<String>) -> Result<TaggedPage> {
        let tag = check_tag(tag)?;
        let places = Places::of(self);
        let (tag, places) = (&tag, &places);
        let read = |limit, cursor| {
            let read = async move {
                let query = Query::prefix(self.0.keys.tagged(), &format!("{tag}/"), limit).after(cursor);
                let page = self.0.table.query(&query).await.map_err(ports::validate::of_page(&query, error::port))?;
                let ids = page.items.iter().filter_map(|item| ends(&item.key.sk).map(|(_, id)| id));
                Ok((self.visible_files(places, ids.collect()).await?, page.next))
            };
            read.boxed()
        };
        let (files, next_cursor) = self.page(limit.clamp(1, 1000), cursor, None, read).await?;
        Ok(TaggedPage { files, next_cursor })
    }

    /// The identities of all files that have a tag, also of those that do not exist for the party: to filter what it sees.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` as of [`check_tag`]; else those of [`Workspace`].
    pub async fn ids_tagged(&self, tag: &str) -> Result<HashSet<FileId>> {
        let prefix = format!("{}/", check_tag(tag)?);
        let mut ids = HashSet::new();
        let mut pages = self.0.table.pages(Query::prefix(self.0.keys.tagged(), &prefix, 1000));
        while let Some(items) = pages.next().await.map_err(error::port)? {
            ids.extend(items.iter().filter_map(|item| ends(&item.key.sk).map(|(_, id)| id)));
        }
        Ok(ids)
    }

    /// The tags of the workspace with the number of files that have each.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn tags(&self) -> Result<TagCounts> {
        let places = Places::of(self);
        let (mut pairs, mut pages) = (Vec::new(), self.0.table.pages(Query::all(self.0.keys.tagged(), 1000)));
        while pairs.len() < MOST_TAGGED
            && let Some(items) = pages.next().await.map_err(error::port)?
        {
            pairs.extend(items.iter().filter_map(|item| ends(&item.key.sk)).map(|(tag, id)| (tag.to_owned(), id)));
        }
        let ids: BTreeSet<FileId> = pairs.iter().map(|(_, id)| *id).collect();
        let shown = self.visible_files(&places, ids.into_iter().collect()).await?;
        let shown: HashSet<FileId> = shown.into_iter().map(|info| info.file_id).collect();
        let mut counts = BTreeMap::<String, u64>::new();
        for (tag, _) in pairs.into_iter().filter(|(_, id)| shown.contains(id)) {
            *counts.entry(tag).or_default() += 1;
        }
        let tags = counts.into_iter().map(|(tag, files)| TagCount { tag, files }).collect();
        Ok(TagCounts { tags, truncated: pages.has_more() })
    }

    /// The file that a question is about.
    pub(super) async fn start(&self, places: &Places<'_>, file: FileId) -> Result<Info> {
        if let Some(info) = places.file(file).await? {
            return Ok(info);
        }
        // The root, or an error that says why it is not there.
        self.by_id(file).await
    }

    /// Those of these files that exist for the party, in this order.
    async fn visible_files(&self, places: &Places<'_>, ids: Vec<FileId>) -> Result<Vec<Info>> {
        let found = in_order(ids.into_iter().map(|id| places.file(id).boxed()).collect()).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The links that begin at a file.
    pub(super) async fn links_from(&self, places: &Places<'_>, from: &Info) -> Result<Vec<Link>> {
        let mut links = Vec::new();
        for link in self.marks(from.file_id).await?.0.links {
            if let Some(file) = places.file(link.to).await? {
                links.push(explicit(link, &file));
            }
        }
        let mentions = self.readable_mentions(from).await?;
        let mean = |mention: Mention| {
            let link = async move {
                let file = self.meant_by(places, from, &mention).await?;
                Ok(mentioned(mention, file.as_ref()))
            };
            link.boxed()
        };
        let found = in_order(mentions.into_iter().map(mean).collect()).await?;
        links.extend(found.into_iter().filter(|link| link.file.as_ref().is_none_or(|to| to.file_id != from.file_id)));
        Ok(links)
    }

    /// The links that lead to a file, and whether more of them may be there.
    pub(super) async fn links_to(&self, places: &Places<'_>, to: &Info) -> Result<(Vec<Link>, bool)> {
        let keys = self.0.keys;
        let stem = to.name.strip_suffix(".md").map(|stem| (keys.named(), format!("{stem}/")));
        let hints = [(keys.linked(), format!("{}/", to.file_id)), (keys.named(), format!("{}/", to.name))];
        let (mut sources, mut truncated) = (BTreeSet::new(), false);
        for (partition, prefix) in hints.into_iter().chain(stem) {
            let page =
                self.0.table.query(&Query::prefix(partition, &prefix, MOST_SOURCES)).await.map_err(error::port)?;
            truncated |= page.next.is_some();
            sources.extend(page.items.iter().filter_map(|item| ends(&item.key.sk).map(|(_, id)| id)));
        }
        sources.remove(&to.file_id);
        let between = |source| self.links_between(places, source, to).boxed();
        let found = in_order(sources.into_iter().map(between).collect()).await?;
        let mut links: Vec<Link> = found.into_iter().flatten().collect();
        let path = |link: &Link| link.file.as_ref().map(|file| file.path.clone());
        links.sort_by(|one, other| path(one).cmp(&path(other)).then_with(|| one.kind.cmp(&other.kind)));
        Ok((links, truncated))
    }

    /// The links of a source to a file, as backlinks of that file.
    async fn links_between(&self, places: &Places<'_>, source: FileId, to: &Info) -> Result<Vec<Link>> {
        let Some(from) = places.file(source).await? else { return Ok(Vec::new()) };
        let marks: Option<Marks> = readable(self.0.table.get(&self.0.keys.marks(source)).await)?;
        let marks = marks.unwrap_or_default().links.into_iter();
        let mut links: Vec<Link> =
            marks.filter(|link| link.to == to.file_id).map(|link| explicit(link, &from)).collect();
        for mention in self.readable_mentions(&from).await? {
            let written = mention.written();
            let name = written.name().unwrap_or_default();
            let may_be = mention.to == Some(to.file_id) || name == to.name || format!("{name}.md") == to.name;
            if may_be && self.meant_by(places, &from, &mention).await?.is_some_and(|found| found.file_id == to.file_id)
            {
                links.push(mentioned(mention, Some(&from)));
            }
        }
        Ok(links)
    }

    /// The links in the current text of a file, if the party may read it.
    async fn readable_mentions(&self, from: &Info) -> Result<Vec<Mention>> {
        match from.kind == FileKind::File && self.may_read(&from.path) {
            true => self.mentions(from.file_id, from.v).await,
            false => Ok(Vec::new()),
        }
    }

    /// The file that a link in a text means: the one that it meant when it was written, else what is at its path now.
    async fn meant_by(&self, places: &Places<'_>, from: &Info, mention: &Mention) -> Result<Option<Info>> {
        if let Some(to) = mention.to
            && let Some(found) = places.file(to).await?
        {
            return Ok(Some(found));
        }
        let folder = from.path.parent().unwrap_or_else(FilePath::root);
        for candidate in mention.written().candidates(&folder) {
            if let Some(found) = places.at(&candidate).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// The two parts of a sort key of a relation: a tag, an identity or a name, and an identity.
fn ends(sk: &str) -> Option<(&str, FileId)> {
    let (first, id) = sk.rsplit_once('/')?;
    Some((first, id.parse().ok()?))
}

fn explicit(link: super::Explicit, other: &Info) -> Link {
    Link { kind: link.kind, file: Some(other.into()), target: None, by: Some(link.by), at: Some(link.at) }
}

fn mentioned(mention: Mention, other: Option<&Info>) -> Link {
    let kind = mention.form.kind().into();
    Link { kind, file: other.map(FileRef::from), target: Some(mention.target), by: None, at: None }
}
