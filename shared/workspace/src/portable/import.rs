//! Reads an archive into a new workspace.
//!
//! Nothing of an archive is a path on a disk: names of its entries are compared with the layout, and the paths in its rows are parsed as those of
//! requests are. Items of the index are written as they come, below an id that has no workspace yet. A note in the table says so, until the last
//! commit makes the workspace and takes the note away. An import that fails removes all that it wrote; of one that dies, `fsck --repair` does.

use super::{
    blocks::{Head, Reader, refused},
    layout::{
        CONTENTS, Count, END, FORMAT, MANIFEST, MOST_ROWS, Manifest, ROWS, Row, Written, content_name, rows_name,
    },
};
use crate::{
    FileKind, Result, Version, Workspace, WorkspaceInfo, Workspaces, Writer, archive,
    commit::whole,
    error,
    index::MAX_DEPTH,
    large::is_large,
    model::{Entry, Node, Record},
    taxonomy,
    workspaces::valid_name,
};
use bytes::Bytes;
use domain::{Code, Error, FileId, FilePath, Principal, Sha256, Timestamp, WorkspaceId};
use futures::Stream;
use ports::{Expect, LARGEST, Write};
use std::collections::{BTreeMap, HashMap, HashSet};

/// How many writes are committed together, and about how many bytes.
const AT_ONCE: usize = 80;
const BYTES_AT_ONCE: usize = 512 * 1024;
/// The most files, folders and contents of an archive.
const MOST: usize = 1_000_000;
/// The longest manifest or count, in bytes, and the longest author, in characters.
const MOST_TEXT: u64 = 64 * 1024;
const MOST_AUTHOR: usize = 300;

/// A workspace that was imported.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// It.
    pub workspace: WorkspaceInfo,
    /// Its files.
    pub files: u64,
    /// Their versions.
    pub versions: u64,
}

impl Workspaces {
    /// Makes a new workspace from an archive, with its files, their versions, authors and times; `name` goes before the archive's. Files get new ids.
    /// The same id by the same person again, once it is there, is the same workspace.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, with the `entry`, for an archive that is not as [`Workspace::export`] writes it, ends early, or has a path or an author that
    /// cannot be; `UNPROCESSABLE` for policies with a fault; `PAYLOAD_TOO_LARGE` for over a million files; `CONFLICT` when the id is taken or another
    /// import of it is under way; those of the stream, and those of [`Workspaces`]. Nothing is left then.
    pub async fn import(
        &self,
        id: WorkspaceId,
        name: Option<&str>,
        by: &Principal,
        archive: impl Stream<Item = Result<Bytes>> + Send + Unpin + 'static,
    ) -> Result<Imported> {
        let name = name.map(valid_name).transpose()?;
        let workspace = crate::workspaces::Shared::handle(&self.0, id);
        let by = by.clone();
        whole(async move {
            let _tree = workspace.0.tree.write().await;
            if let Some((found, _)) = workspace.record().await? {
                let same = found.owner == by.user();
                let workspace = found.info();
                // It was imported by the same request before.
                return if same { Ok(Imported { workspace, files: 0, versions: 0 }) } else { Err(taken()) };
            }
            let note = Write::put(workspace.0.keys.deletion(), "{}", Expect::Absent);
            match workspace.0.table.commit(vec![note]).await {
                Ok(()) => {}
                Err(ports::Error::Conflict { .. }) => return Err(taken()),
                Err(error) => return Err(error::port(error)),
            }
            match Import::new(&workspace, archive).run(name, &by).await {
                Ok(imported) => Ok(imported),
                Err(error) => {
                    if let Err(left) = workspace.remove_rest().await {
                        tracing::error!(workspace = %workspace.0.id, error = %left, "a part of a failed import is left: fsck --repair removes it");
                    }
                    Err(error)
                }
            }
        })
        .await
    }
}

fn taken() -> Error {
    Error::new(Code::Conflict, "this id is taken, or another import with it is under way")
        .hint("use another Idempotency-Key")
}

/// The file whose versions come.
struct File {
    path: FilePath,
    folder: FileId,
    entry: Entry,
}

/// A content that versions have.
#[derive(Clone, Copy)]
struct Needed {
    size: u64,
    is_there: bool,
}

struct Import<'a, S> {
    workspace: &'a Workspace,
    reader: Reader<S>,
    count: Count,
    folders: HashMap<FilePath, FileId>,
    paths: HashSet<FilePath>,
    contents: HashMap<Sha256, Needed>,
    missing: u64,
    policies: BTreeMap<FilePath, (Sha256, u64)>,
    file: Option<File>,
    writes: Vec<Write>,
    bytes: usize,
}

impl<'a, S: Stream<Item = Result<Bytes>> + Unpin + Send> Import<'a, S> {
    fn new(workspace: &'a Workspace, archive: S) -> Self {
        Self {
            workspace,
            reader: Reader::new(archive),
            count: Count::default(),
            folders: HashMap::from([(FilePath::root(), workspace.0.keys.root())]),
            paths: HashSet::from([FilePath::root()]),
            contents: HashMap::new(),
            missing: 0,
            policies: BTreeMap::new(),
            file: None,
            writes: Vec::new(),
            bytes: 0,
        }
    }

    async fn run(mut self, name: Option<String>, by: &Principal) -> Result<Imported> {
        let manifest = self.manifest().await?;
        let name = match name {
            Some(name) => name,
            None => valid_name(&manifest.name).map_err(|error| refused(MANIFEST, error.message))?,
        };
        let root = Node { folder: None, name: String::new() };
        let put =
            Write::put(self.workspace.0.keys.node(self.workspace.0.keys.root()), error::json(&root)?, Expect::Absent);
        self.put(put).await?;
        let (mut last, mut files) = (MANIFEST.to_owned(), 0);
        let told: Count = loop {
            let Some(head) = self.reader.next(&last).await? else {
                return Err(refused(&last, "the archive ends after it, without end.json"));
            };
            if head.name == END {
                self.finish_file().await?;
                break self.text(&head).await?;
            }
            if head.name == rows_name(files + 1) {
                files += 1;
                self.rows(&head).await?;
            } else if head.name.starts_with(ROWS) {
                return Err(refused(&head.name, format!("{} is next", rows_name(files + 1))));
            } else if head.name.starts_with(CONTENTS) {
                self.finish_file().await?;
                self.content(&head).await?;
            } else {
                return Err(refused(&head.name, "an archive of a workspace has no such entry"));
            }
            last = head.name;
        };
        if let Some(more) = self.reader.next(END).await? {
            return Err(refused(&more.name, "it comes after end.json"));
        }
        if self.missing > 0 {
            let missing = self.contents.iter().find(|(_, needed)| !needed.is_there).map(|(digest, _)| *digest);
            let name = missing.map(content_name).unwrap_or_default();
            return Err(refused(&name, format!("it is missing, and {} others", self.missing - 1)));
        }
        if (Count { left_out: told.left_out, ..self.count }) != told {
            return Err(refused(END, "it does not count what is in the archive"));
        }
        self.complete(name, by).await
    }

    async fn manifest(&mut self) -> Result<Manifest> {
        let first = self.reader.next("the beginning").await?;
        let Some(head) = first.filter(|head| head.name == MANIFEST) else {
            return Err(refused("the first entry", format!("it is not {MANIFEST}: this is no archive of a workspace")));
        };
        let manifest: serde_json::Value = self.text(&head).await?;
        if manifest.get("format").and_then(serde_json::Value::as_u64) != Some(FORMAT) {
            let program = manifest.get("program").and_then(serde_json::Value::as_str).unwrap_or("another version");
            return Err(refused(MANIFEST, format!("{program} wrote a format that this version does not know")));
        }
        serde_json::from_value(manifest).map_err(|error| refused(MANIFEST, error))
    }

    async fn text<T: serde::de::DeserializeOwned>(&mut self, head: &Head) -> Result<T> {
        if head.size > MOST_TEXT {
            return Err(refused(&head.name, "it is too long"));
        }
        let content = self.reader.content(head).await?;
        serde_json::from_slice(&content).map_err(|error| refused(&head.name, error))
    }

    async fn rows(&mut self, head: &Head) -> Result<()> {
        if head.size > MOST_ROWS {
            return Err(refused(&head.name, "it is too long"));
        }
        let content = self.reader.content(head).await?;
        for (number, line) in content.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
            let place = format!("{} line {}", head.name, number + 1);
            let row: Row = serde_json::from_slice(line).map_err(|error| refused(&place, error))?;
            match row {
                Row::Folder { path, author, created_at } => {
                    self.finish_file().await?;
                    self.folder(&place, path, author, created_at).await?;
                }
                Row::File { path, file_id: _, created_at } => {
                    self.finish_file().await?;
                    let (path, folder) = self.new_path(&place, path)?;
                    let file_id = FileId(self.workspace.0.clock.id());
                    let entry = Entry::folder(file_id, &Writer::new(Principal::System), created_at);
                    self.node(&path, folder, file_id).await?;
                    let entry = Entry { kind: FileKind::File, ..entry };
                    self.file = Some(File { path, folder, entry });
                    self.count.files += 1;
                }
                Row::Version(version) => self.version(&place, version).await?,
            }
        }
        Ok(())
    }

    /// The folder of a path that is new, if such a path can be.
    fn new_path(&mut self, place: &str, path: FilePath) -> Result<(FilePath, FileId)> {
        let at = |why: String| refused(&format!("{place}, {path}"), why);
        if path.names().count() > MAX_DEPTH {
            return Err(at(format!("it has more than {MAX_DEPTH} names")));
        }
        taxonomy::check_new_names(path.names()).map_err(|error| at(error.message))?;
        let Some(folder) = path.parent().and_then(|above| self.folders.get(&above).copied()) else {
            return Err(at("the folder that it is in does not come before it".into()));
        };
        if !self.paths.insert(path.clone()) {
            return Err(at("it is there twice".into()));
        }
        if self.paths.len() > MOST {
            return Err(Error::new(Code::PayloadTooLarge, format!("the archive has over {MOST} files and folders")));
        }
        Ok((path, folder))
    }

    async fn folder(&mut self, place: &str, path: FilePath, author: String, at: Timestamp) -> Result<()> {
        author_can_be(place, &author)?;
        let (path, folder) = self.new_path(place, path)?;
        self.count.folders += 1;
        let made = Entry::folder(FileId(self.workspace.0.clock.id()), &Writer::new(Principal::System), at);
        self.made(path, folder, Entry { author, ..made }).await
    }

    async fn made(&mut self, path: FilePath, folder: FileId, entry: Entry) -> Result<()> {
        self.node(&path, folder, entry.file_id).await?;
        let key = self.workspace.0.keys.entry(folder, path.name());
        self.put(Write::put(key, error::json(&entry)?, Expect::Absent)).await?;
        self.folders.insert(path, entry.file_id);
        Ok(())
    }

    /// First of a file: by its node all else is found when the import is undone.
    async fn node(&mut self, path: &FilePath, folder: FileId, file: FileId) -> Result<()> {
        let node = Node { folder: Some(folder), name: path.name().into() };
        self.put(Write::put(self.workspace.0.keys.node(file), error::json(&node)?, Expect::Absent)).await
    }

    async fn version(&mut self, place: &str, written: Written) -> Result<()> {
        let Written { v, sha256, size, author, at, call_id } = written;
        let Some(file) = &mut self.file else { return Err(refused(place, "no file comes before this version")) };
        if v != file.entry.v + 1 {
            return Err(refused(place, format!("version {} of {} is next", file.entry.v + 1, file.path)));
        }
        author_can_be(place, &author)?;
        if size > LARGEST {
            return Err(refused(place, format!("a content has at most {LARGEST} bytes")));
        }
        let needed = self.contents.entry(sha256).or_insert_with(|| {
            self.missing += 1;
            Needed { size, is_there: false }
        });
        if needed.size != size {
            return Err(refused(place, format!("the content {sha256} has two lengths")));
        }
        if self.contents.len() > MOST {
            return Err(Error::new(Code::PayloadTooLarge, format!("the archive has over {MOST} contents")));
        }
        file.entry =
            Entry { v, sha256: Some(sha256), size, author: author.clone(), updated_at: at, ..file.entry.clone() };
        let key = self.workspace.0.keys.version(file.entry.file_id, v);
        let version = Version { v, sha256, size, author, at, call_id };
        self.count.versions += 1;
        self.put(Write::put(key, error::json(&version)?, Expect::Absent)).await
    }

    /// Writes the entry of the file whose versions have all come.
    async fn finish_file(&mut self) -> Result<()> {
        let Some(File { path, folder, mut entry }) = self.file.take() else { return Ok(()) };
        let Some(sha256) = entry.sha256 else { return Err(refused(path.as_str(), "the file has no version")) };
        if access::is_policy(&path) {
            self.policies.insert(path.clone(), (sha256, entry.size));
        }
        let writer = Writer::new(Principal::System);
        entry.conversion = self.workspace.conversion_of(&path, entry.size, None, &writer);
        let waits = self.workspace.unconverted_item(&entry, self.workspace.0.clock.now())?;
        let key = self.workspace.0.keys.entry(folder, path.name());
        self.put(Write::put(key, error::json(&entry)?, Expect::Absent)).await?;
        match waits {
            Some(waits) => self.put(waits).await,
            None => Ok(()),
        }
    }

    async fn content(&mut self, head: &Head) -> Result<()> {
        let digest = head.name.rsplit('/').next().and_then(|name| name.parse::<Sha256>().ok());
        // One name for one content: no other spelling of the digest, and no other folder.
        let Some(digest) = digest.filter(|digest| content_name(*digest) == head.name) else {
            return Err(refused(&head.name, "its name is not that of a content"));
        };
        let needed = self.contents.get_mut(&digest).filter(|needed| !needed.is_there);
        let Some(needed) = needed else {
            return Err(refused(&head.name, "no version needs it, or it came before"));
        };
        if needed.size != head.size {
            return Err(refused(&head.name, format!("it has {} bytes, and {} are needed", head.size, needed.size)));
        }
        needed.is_there = true;
        self.missing -= 1;
        self.count.content(head.size);
        if is_large(head.size) {
            return self.large(head, digest).await;
        }
        let content = self.reader.content(head).await?;
        if archive::digest(&content).await? != digest {
            return Err(refused(&head.name, "its content has another digest"));
        }
        match self.workspace.0.archive.put(digest, &content).await? {
            Some(write) => self.put(write).await,
            None => Ok(()),
        }
    }

    async fn large(&mut self, head: &Head, digest: Sha256) -> Result<()> {
        let space = self.workspace.0.id.to_string();
        let incoming = self.workspace.0.archive.blobs.incoming(&space, digest, head.size).await.map_err(error::port)?;
        let Some(mut incoming) = incoming else {
            let message = format!("{}: contents over 32 MiB do not come through this server", head.name);
            return Err(Error::new(Code::PayloadTooLarge, message).hint("import the archive into a hub"));
        };
        let mut left = head.size;
        while left > 0 {
            let piece = self.reader.some(left).await?;
            if piece.is_empty() {
                return Err(refused(&head.name, "the archive ends in the middle of it"));
            }
            left -= piece.len() as u64;
            incoming.write(piece).await.map_err(error::port)?;
        }
        match incoming.finish().await {
            Ok(()) => self.reader.skip_padding(head).await,
            Err(ports::Error::Invalid(_)) => Err(refused(&head.name, "its content has another digest")),
            Err(error) => Err(error::port(error)),
        }
    }

    /// Makes the folders that every workspace has and the archive lacks, then `latest/`, then the workspace.
    async fn complete(mut self, name: String, by: &Principal) -> Result<Imported> {
        let now = self.workspace.0.clock.now();
        for path in taxonomy::folders(by.user())? {
            if self.folders.contains_key(&path) {
                continue;
            }
            let (path, folder) = self.new_path(END, path)?;
            let entry = Entry::folder(FileId(self.workspace.0.clock.id()), &Writer::new(Principal::System), now);
            self.made(path, folder, entry).await?;
        }
        self.flush().await?;
        let inner = &self.workspace.0;
        let policies = self.workspace.in_force(&self.policies, &BTreeMap::new()).await?;
        let is_cache = inner.shared.upgrade().is_none_or(|shared| shared.cache.get().is_some());
        if !is_cache {
            self.workspace.rebuild().await?;
        }
        let record = Record { workspace_id: inner.id, name, owner: by.user(), created_at: now, policies };
        let made = Write::put(inner.keys.workspace(), error::json(&record)?, Expect::Absent);
        let note = Write::delete(inner.keys.deletion(), Expect::Present);
        inner.table.commit(vec![made, note]).await.map_err(error::port)?;
        let Count { files, versions, .. } = self.count;
        Ok(Imported { workspace: record.info(), files, versions })
    }

    async fn put(&mut self, write: Write) -> Result<()> {
        if let Write::Put { body, .. } = &write {
            self.bytes += body.len();
        }
        self.writes.push(write);
        if self.writes.len() >= AT_ONCE || self.bytes >= BYTES_AT_ONCE { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
        let writes = std::mem::take(&mut self.writes);
        if writes.is_empty() {
            return Ok(());
        }
        self.workspace.0.table.commit(writes).await.map_err(error::port)
    }
}

/// Authors are texts that the index keeps; an archive says who they are, and nobody vouches for it.
fn author_can_be(place: &str, author: &str) -> Result<()> {
    let length = author.chars().count();
    match (1..=MOST_AUTHOR).contains(&length) && !author.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(refused(place, format!("an author has 1 to {MOST_AUTHOR} characters, none of them control"))),
    }
}
