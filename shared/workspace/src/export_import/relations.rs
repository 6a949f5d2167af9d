//! Tags and links in an archive: those of the files and folders in it, with targets in it, by path.

use super::{
    blocks::refused,
    layout::{LinkRow, MentionRow, Missing, Row},
    rows::is_unreadable,
    workspace_builder::{WorkspaceBuilder, author_can_be},
};
use crate::{
    FileContent, Result, Workspace, error,
    mentions::{self, check_tag},
    relations::{Explicit, MAX_LINKS, MAX_TAGS, Marks, Mention, Mentions, check_kind},
};
use domain::{FileId, FilePath};
use ports::{Expect, Query, Write};
use std::collections::{BTreeSet, HashMap};

const PAGE: usize = 500;

/// A walk through the marks, then through the mentions of a workspace.
pub(super) struct RelationWalk<'a> {
    workspace: &'a Workspace,
    /// The partitions that are left, with the cursor in the first of them.
    left: Vec<String>,
    cursor: Option<String>,
}

impl<'a> RelationWalk<'a> {
    pub fn of(workspace: &'a Workspace) -> Self {
        let keys = workspace.0.keys;
        Self { workspace, left: vec![keys.all_marks(), keys.all_mentions()], cursor: None }
    }

    /// The next rows, of the files at these paths alone; none at the end. A damaged row has one that says so in its place.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn next(&mut self, paths: &HashMap<FileId, FilePath>) -> Result<Option<Vec<Row>>> {
        let Some(partition) = self.left.first().cloned() else { return Ok(None) };
        let of_marks = self.left.len() == 2;
        let query = Query::all(partition, PAGE).after(self.cursor.take());
        let page = self.workspace.0.table.query(&query).await.map_err(error::port)?;
        self.cursor = page.next;
        if self.cursor.is_none() {
            self.left.remove(0);
        }
        let mut rows = Vec::new();
        for item in &page.items {
            let Some(path) = item.key.sk.parse().ok().and_then(|id| paths.get(&FileId(id))) else { continue };
            let row = if of_marks { marks_row(path, &item.body, paths) } else { mentions_row(path, &item.body, paths) };
            match row {
                Err(error) if is_unreadable(&error) => {
                    rows.push(Row::Missing(Missing { path: path.clone(), v: None, sha256: None }));
                }
                row => rows.extend(row?),
            }
        }
        Ok(Some(rows))
    }
}

fn marks_row(path: &FilePath, body: &str, paths: &HashMap<FileId, FilePath>) -> Result<Option<Row>> {
    let Marks { tags, links } = error::parse(body)?;
    let link = |Explicit { to, kind, by, at }: Explicit| Some(LinkRow { to: paths.get(&to)?.clone(), kind, by, at });
    let links: Vec<LinkRow> = links.into_iter().filter_map(link).collect();
    let is_empty = tags.is_empty() && links.is_empty();
    Ok((!is_empty).then(|| Row::Marks { path: path.clone(), tags: tags.into_iter().collect(), links }))
}

fn mentions_row(path: &FilePath, body: &str, paths: &HashMap<FileId, FilePath>) -> Result<Option<Row>> {
    let Mentions { v, links, tags } = error::parse(body)?;
    let mention = |Mention { form, target, to }: Mention| {
        let to = to.and_then(|to| paths.get(&to).cloned());
        MentionRow { form, target, to }
    };
    let links = links.into_iter().map(mention).collect();
    Ok(Some(Row::Mentions { path: path.clone(), v, links, tags }))
}

impl WorkspaceBuilder<'_> {
    /// Takes the tags and the links of a file or folder that came before.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for those that no file can have, and for paths that are not in the archive; else those of [`Workspace`].
    pub(super) async fn marks(
        &mut self,
        place: &str,
        path: &FilePath,
        tags: Vec<String>,
        links: Vec<LinkRow>,
    ) -> Result<()> {
        let (file, _) = self.known(place, path)?;
        let keys = self.workspace.0.keys;
        if tags.len() > MAX_TAGS || links.len() > MAX_LINKS {
            return Err(refused(place, format!("a file has at most {MAX_TAGS} tags and {MAX_LINKS} links")));
        }
        let tags = checked_tags(place, &tags)?;
        let mut made = Vec::new();
        for LinkRow { to, kind, by, at } in links {
            let (to, _) = self.known(place, &to)?;
            let kind = check_kind(&kind).map_err(|error| refused(place, error.message))?;
            author_can_be(place, &by)?;
            if to == file {
                return Err(refused(place, "a file has no link to itself"));
            }
            self.hint(keys.linked_from(to, file)).await?;
            made.push(Explicit { to, kind, by, at });
        }
        for tag in &tags {
            self.hint(keys.tagged_with(tag, file)).await?;
        }
        self.count.relations += 1;
        let marks = Marks { tags, links: made };
        // Twice would be a second set for one file.
        self.put_apart(Write::put(keys.marks(file), error::json(&marks)?, Expect::Absent), place).await
    }

    /// Takes the links in the text of a version of a file that came before.
    ///
    /// # Errors
    /// As [`WorkspaceBuilder::marks`].
    pub(super) async fn mentions(
        &mut self,
        place: &str,
        path: &FilePath,
        v: u64,
        links: Vec<MentionRow>,
        tags: Vec<String>,
    ) -> Result<()> {
        let (file, last) = self.known(place, path)?;
        let keys = self.workspace.0.keys;
        if v == 0 || v > last {
            return Err(refused(place, format!("the file has no version {v}")));
        }
        if tags.len() > MAX_TAGS || links.len() > mentions::MOST {
            return Err(refused(place, format!("a text has at most {MAX_TAGS} tags and {} links", mentions::MOST)));
        }
        let tags = checked_tags(place, &tags)?.into_iter().collect();
        let mut made = Vec::new();
        for MentionRow { form, target, to } in links {
            if target.len() > mentions::LONGEST_TARGET {
                return Err(refused(place, "the target of a link is too long"));
            }
            let to = to.map(|to| self.known(place, &to)).transpose()?.map(|(to, _)| to);
            let mention = Mention { form, target, to };
            let named = mention.written().name().map(|name| keys.named_in(name, file));
            for hint in named.into_iter().chain(to.map(|to| keys.linked_from(to, file))) {
                self.hint(hint).await?;
            }
            made.push(mention);
        }
        self.count.relations += 1;
        let mentions = Mentions { v, links: made, tags };
        self.put_apart(Write::put(keys.mentions(file), error::json(&mentions)?, Expect::Absent), place).await
    }

    /// Takes up the links and the tags in the texts of a source that tells none: a repository, and an archive of format 1.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub(super) async fn take_up_texts(&mut self) -> Result<()> {
        for (path, entry) in std::mem::take(&mut self.texts) {
            let Some(digest) = entry.sha256 else { continue };
            let content = match self.workspace.0.archive.get(digest, entry.size).await {
                Ok(content) => content,
                // The archive says that it lacks it.
                Err(error) if is_unreadable(&error) => continue,
                Err(error) => return Err(error),
            };
            let written = mentions::written_in(&path, &FileContent::Bytes(content)).await;
            let mut writes = Vec::new();
            self.workspace.take_up(&path, &entry, &written, &mut writes).await?;
            for write in writes {
                self.put(write).await?;
            }
        }
        Ok(())
    }
}

fn checked_tags(place: &str, tags: &[String]) -> Result<BTreeSet<String>> {
    tags.iter().map(|tag| check_tag(tag).map_err(|error| refused(place, error.message))).collect()
}
