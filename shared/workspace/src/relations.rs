//! Tags of files and links between them (spec 001 §3A).
//!
//! Tags and explicit links are *marks*: one item per file, which is replaced under its revision. Links in texts are *mentions*: one item per file,
//! which the commit of a version writes with the version's number, so that it counts for this version alone. Both name files by identity: a move
//! of a file or of a folder above it changes nothing here.
//!
//! Backlinks are found by *hints*: an item per target and source that says that the source may link to the target. Each is compared with the marks and
//! mentions of its source when it is read. So no hint has to be taken back in the moment in which its link goes, and a crash leaves none that counts.

mod network;
mod places;
mod read;
mod take_up;

use crate::{
    Change, FileKind, Info, Mark, Op, Result, Workspace, Writer,
    commit::{ATTEMPTS, CALLS_KEPT, whole},
    error,
    mentions::{Form, Written, check_tag},
};
use access::Action;
use domain::{CallId, Code, Error, FileId, FilePath, Timestamp};
use futures::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use ports::{Expect, Query, Write};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeSet;

pub use network::{MAX_NETWORK_DEPTH, MAX_NETWORK_NODES, Network, NetworkEdge, NetworkNode};
pub use read::{FileRef, Link, Relations, TagCount, TagCounts, TaggedPage};

/// The most tags of a file.
pub(crate) const MAX_TAGS: usize = 64;
/// The most explicit links that begin at a file.
pub(crate) const MAX_LINKS: usize = 200;
/// The longest kind of a link, in characters.
const MAX_KIND: usize = 32;

/// The result of a change of marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkChange {
    /// The file.
    pub file_id: FileId,
    /// Its path.
    pub path: FilePath,
    /// All its tags after the change, in order.
    pub tags: Vec<String>,
    /// False when all was so before.
    pub changed: bool,
}

/// An explicit link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Explicit {
    pub to: FileId,
    pub kind: String,
    pub by: String,
    pub at: Timestamp,
}

/// The tags and explicit links of a file. They are rewritten as a whole, as entries are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Marks {
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Explicit>,
}

/// A link in a text, with the file that it meant when the version was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mention {
    pub form: Form,
    pub target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<FileId>,
}

impl Mention {
    pub(crate) fn written(&self) -> Written {
        Written { form: self.form, target: self.target.clone() }
    }
}

/// The links in the text of one version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mentions {
    pub v: u64,
    pub links: Vec<Mention>,
    /// The tags in its front matter. They are among the marks, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Runs some of these at once; the results are in their order.
async fn in_order<T>(futures: Vec<BoxFuture<'_, Result<T>>>) -> Result<Vec<T>> {
    const AT_ONCE: usize = 16;
    stream::iter(futures).buffered(AT_ONCE).try_collect().await
}

/// The content of a row that may not be there. One that cannot be read is as none, and is in the log: it keeps neither lists nor writes of other files
/// back.
fn readable<T: DeserializeOwned>(found: ports::Result<Option<ports::Item>>) -> Result<Option<T>> {
    let read = found.map_err(error::port).and_then(|item| item.map(|item| error::parse(&item.body)).transpose());
    match read {
        Err(error) if error::is_damage_of_index(&error) => Ok(None),
        read => read,
    }
}

/// The kind of an explicit link.
///
/// # Errors
/// `INVALID_ARGUMENT` about `kind` for one that is no lower-case word of up to 32 characters, or that links in texts have.
pub fn check_kind(kind: &str) -> Result<String> {
    let is_word = (1..=MAX_KIND).contains(&kind.len())
        && kind.starts_with(|first: char| first.is_ascii_lowercase())
        && kind.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_');
    let is_reserved = [Form::Markdown, Form::Wiki].iter().any(|form| form.kind() == kind);
    if is_word && !is_reserved {
        return Ok(kind.into());
    }
    let shown: String = kind.chars().take(MAX_KIND).collect();
    let hint = match is_reserved {
        true => "links in the text of a file are taken up by themselves; choose another kind",
        false => {
            "a kind is a word of a-z, 0-9 and _ with up to 32 characters, such as implements, answers, derived_from"
        }
    };
    Err(Error::invalid("kind", format!("{shown:?} is no kind of link")).hint(hint))
}

impl Mark {
    fn checked(self) -> Result<Self> {
        let tags = |tags: Vec<String>| {
            if tags.is_empty() || tags.len() > MAX_TAGS {
                let message = format!("there are {} tags; 1 to {MAX_TAGS} are taken at once", tags.len());
                return Err(Error::invalid("tags", message).hint("name at least one; many go in several calls"));
            }
            tags.iter().map(|tag| check_tag(tag)).collect::<Result<Vec<_>>>()
        };
        Ok(match self {
            Self::Tag(added) => Self::Tag(tags(added)?),
            Self::Untag(gone) => Self::Untag(tags(gone)?),
            Self::Link(to, kind) => Self::Link(to, check_kind(&kind)?),
            Self::Unlink(to, kind) => Self::Unlink(to, check_kind(&kind)?),
        })
    }

    /// The part of it that is other than these marks.
    fn effect(&self, marks: &Marks) -> Self {
        let filtered = |tags: &[String], there: bool| -> Vec<String> {
            tags.iter().filter(|tag| marks.tags.contains(*tag) == there).cloned().collect()
        };
        match self {
            Self::Tag(tags) => Self::Tag(filtered(tags, false)),
            Self::Untag(tags) => Self::Untag(filtered(tags, true)),
            Self::Link(..) | Self::Unlink(..) => self.clone(),
        }
    }

    fn target(&self) -> Option<FileId> {
        match self {
            Self::Link(to, _) | Self::Unlink(to, _) => Some(*to),
            Self::Tag(_) | Self::Untag(_) => None,
        }
    }
}

/// The record of a change of marks.
fn marked_change(info: &Info, effect: Mark, writer: &Writer, at: Timestamp) -> Change {
    Change {
        op: Op::Marked,
        path: info.path.clone(),
        from: None,
        file_id: info.file_id,
        kind: info.kind,
        v: info.v,
        sha256: info.sha256,
        size: info.size,
        author: writer.principal.to_string(),
        at,
        conversion: info.conversion.clone(),
        mark: Some(effect),
        rewind: writer.rewind,
    }
}

impl Workspace {
    /// Changes the tags or the explicit links of a file or folder. The same call again has no further effect and gives the same result.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` as of [`check_tag`] and [`check_kind`], for over 64 tags or 200 links of a file, and for a link to itself; `NOT_FOUND` when the
    /// file or its target is not there; `UNPROCESSABLE` for the root; `CONFLICT` when others were faster again and again; else those of [`Workspace`].
    pub async fn mark(&self, file: FileId, mark: Mark, writer: &Writer) -> Result<MarkChange> {
        let (this, mark, writer) = (self.clone(), mark.checked()?, writer.clone());
        whole(async move { this.mark_whole(file, &mark, &writer).await }).await
    }

    async fn mark_whole(&self, file: FileId, mark: &Mark, writer: &Writer) -> Result<MarkChange> {
        let _tree = self.0.tree.read().await;
        let keys = self.0.keys;
        for _ in 0..ATTEMPTS {
            if let Some(done) = self.marked(writer.key).await? {
                return Ok(done);
            }
            let info = self.by_id(file).await?;
            let path = info.path.clone();
            if path.is_root() {
                return Err(error::wrong_kind(&path, "the root folder", "name something inside of it"));
            }
            self.demand(Action::Write, &path)?;
            if let Some(to) = mark.target() {
                if to == file {
                    return Err(Error::invalid("to", "a file has no link to itself").hint("name another file"));
                }
                self.path_of(to).await.map_err(|error| error.detail("field", "to"))?;
            }
            let (mut marks, rev) = self.marks(file).await?;
            let effect = mark.effect(&marks);
            // The record has the digest of the content, also of one that its author may not read.
            let info = match info.kind {
                FileKind::File if info.sha256.is_none() => {
                    Info { sha256: self.found(&path).await?.entry.sha256, ..info }
                }
                _ => info,
            };
            let mut writes = self.changed(&mut marks, file, mark, writer)?;
            let changed = !writes.is_empty();
            let done = MarkChange { file_id: file, path, tags: marks.tags.iter().cloned().collect(), changed };
            if changed {
                let expect = rev.map_or(Expect::Absent, Expect::Rev);
                writes.push(Write::put(keys.marks(file), error::json(&marks)?, expect));
                writes.push(Write::check(keys.node(file), Expect::Present));
                let change = marked_change(&info, effect, writer, self.0.clock.now());
                if self.commit_answering(writes, &change, writer, error::json(&done)?).await? {
                    return Ok(done);
                }
                continue;
            }
            if let Some(key) = writer.key {
                let record = Write::put(keys.call(key), error::json(&done)?, Expect::Absent);
                writes.push(record.expiring(self.0.clock.now() + CALLS_KEPT));
            }
            if writes.is_empty() {
                return Ok(done);
            }
            match self.0.table.commit(writes).await {
                Ok(()) => return Ok(done),
                Err(ports::Error::Conflict { .. }) => {}
                Err(error) => return Err(error::port(error)),
            }
        }
        Err(error::busy())
    }

    /// Makes the change in `marks`; returns its writes beside that of the marks, none when nothing changes.
    fn changed(&self, marks: &mut Marks, file: FileId, mark: &Mark, writer: &Writer) -> Result<Vec<Write>> {
        let keys = self.0.keys;
        let mut writes = Vec::new();
        match mark {
            Mark::Tag(added) => {
                for tag in added.iter().filter(|tag| marks.tags.insert((*tag).clone())) {
                    writes.push(Write::put(keys.tagged_with(tag, file), "{}", Expect::Any));
                }
                if marks.tags.len() > MAX_TAGS {
                    let message = format!("the file would have {} tags; the limit is {MAX_TAGS}", marks.tags.len());
                    return Err(Error::invalid("tags", message).hint("remove tags first"));
                }
            }
            Mark::Untag(gone) => {
                for tag in gone.iter().filter(|tag| marks.tags.remove(*tag)) {
                    writes.push(Write::delete(keys.tagged_with(tag, file), Expect::Any));
                }
            }
            Mark::Link(to, kind) => {
                if !marks.links.iter().any(|link| link.to == *to && link.kind == *kind) {
                    let (by, at) = (writer.principal.to_string(), self.0.clock.now());
                    marks.links.push(Explicit { to: *to, kind: kind.clone(), by, at });
                    writes.push(Write::put(keys.linked_from(*to, file), "{}", Expect::Any));
                    writes.push(Write::check(keys.node(*to), Expect::Present));
                }
                if marks.links.len() > MAX_LINKS {
                    let message = format!("the file has {MAX_LINKS} links already, which is the limit");
                    return Err(
                        Error::invalid("to", message).hint("remove links first, or link a file that lists them")
                    );
                }
            }
            Mark::Unlink(to, kind) => {
                let before = marks.links.len();
                marks.links.retain(|link| link.to != *to || link.kind != *kind);
                if marks.links.len() != before {
                    writes.push(Write::check(keys.node(*to), Expect::Present));
                }
            }
        }
        Ok(writes)
    }

    /// The result of an earlier run of a call.
    async fn marked(&self, call: Option<CallId>) -> Result<Option<MarkChange>> {
        let Some(call) = call else { return Ok(None) };
        let item = self.0.table.get(&self.0.keys.call(call)).await.map_err(error::port)?;
        // A call that changed a file is another one.
        let parse = |item: ports::Item| {
            serde_json::from_str(&item.body)
                .map_err(|_| Error::new(Code::Conflict, "this call has done something else"))
        };
        item.map(parse).transpose()
    }

    /// The marks of a file, with their revision if there are any.
    pub(crate) async fn marks(&self, file: FileId) -> Result<(Marks, Option<u64>)> {
        let item = self.0.table.get(&self.0.keys.marks(file)).await.map_err(error::port)?;
        let marks = item.map(|item| Ok::<_, Error>((error::parse(&item.body)?, Some(item.rev)))).transpose()?;
        Ok(marks.unwrap_or_default())
    }

    /// The links in the text of a version; none when that text has none.
    pub(crate) async fn mentions(&self, file: FileId, v: u64) -> Result<Vec<Mention>> {
        Ok(self
            .last_mentions(file)
            .await?
            .filter(|mentions| mentions.v == v)
            .map(|mentions| mentions.links)
            .unwrap_or_default())
    }

    /// The links in the text of the last version that had any; none where they cannot be read, which the next version with links writes anew.
    pub(crate) async fn last_mentions(&self, file: FileId) -> Result<Option<Mentions>> {
        readable(self.0.table.get(&self.0.keys.mentions(file)).await)
    }

    /// Removes all that the relations have of a file that is purged, again and again if need be.
    pub(crate) async fn forget_relations(&self, file: FileId) -> Result<()> {
        let keys = self.0.keys;
        // Of marks that cannot be read, the items under their tags stay. They say no more than their keys.
        let marks: Marks = readable(self.0.table.get(&keys.marks(file)).await)?.unwrap_or_default();
        let mentions = self.last_mentions(file).await?.map(|mentions| mentions.links).unwrap_or_default();
        let mut gone: BTreeSet<ports::Key> = marks.tags.iter().map(|tag| keys.tagged_with(tag, file)).collect();
        gone.extend(marks.links.iter().map(|link| keys.linked_from(link.to, file)));
        gone.extend(mentions.iter().filter_map(|mention| mention.to).map(|to| keys.linked_from(to, file)));
        gone.extend(mentions.iter().filter_map(|mention| Some(keys.named_in(mention.written().name()?, file))));
        let linked = self.0.table.all(Query::prefix(keys.linked(), &format!("{file}/"), 500)).await;
        gone.extend(linked.map_err(error::port)?.into_iter().map(|item| item.key));
        // The item that names the others goes last: a repetition after a crash needs it.
        let gone: Vec<Write> = gone.into_iter().map(|key| Write::delete(key, Expect::Any)).collect();
        for some in gone.chunks(ports::MAX_WRITES) {
            self.0.table.commit(some.to_vec()).await.map_err(error::port)?;
        }
        let own = [keys.marks(file), keys.mentions(file)].map(|key| Write::delete(key, Expect::Any));
        self.0.table.commit(own.into()).await.map_err(error::port)
    }
}

/// A file as links show it.
impl From<&Info> for FileRef {
    fn from(info: &Info) -> Self {
        Self { file_id: info.file_id, path: info.path.clone(), kind: info.kind }
    }
}
