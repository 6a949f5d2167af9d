//! Makes a new workspace of rows, with their contents stored beside them.
//!
//! Paths in rows are parsed as those of requests are. Items of the index are written as they come, below an id that has no workspace yet.

use super::{
    blocks::refused,
    layout::{Count, END, Missing, Row, Written},
};
use crate::{
    FileKind, Result, Version, Workspace, WorkspaceInfo, Writer, error,
    index::MAX_DEPTH,
    mentions,
    model::{Entry, Node, Record},
    taxonomy,
};
use domain::{Code, Error, FileId, FilePath, PathError, Principal, Sha256, Timestamp};
use ports::{Expect, Key, LARGEST, Write};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A workspace that was imported.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// It.
    pub workspace: WorkspaceInfo,
    /// Its files.
    pub files: u64,
    /// Their versions.
    pub versions: u64,
    /// Of a repository, the paths that no workspace can have: symbolic links, submodules, and files that Git would take for its own. Of an archive,
    /// the first 1,000 files, folders and versions that it lacks, because they were damaged when it was made.
    pub left_out: Vec<String>,
}

/// How many writes are committed together, and about how many bytes.
const AT_ONCE: usize = 80;
const BYTES_AT_ONCE: usize = 512 * 1024;
/// The most files, folders and contents of an import.
pub(super) const MOST: usize = 1_000_000;
/// The remedy for too many of anything.
const PARTS: &str = "import parts of it as workspaces of their own";
/// How many things that an archive lacks are named.
const MOST_NAMED: usize = 1_000;
/// The highest version that a row about missing ones may name.
const MOST_VERSIONS: u64 = 1 << 32;
/// The longest author, in characters.
pub(super) const MOST_AUTHOR: usize = 300;

/// The file whose versions come.
struct File {
    path: FilePath,
    folder: FileId,
    entry: Entry,
}

/// A file or folder that came.
struct MadeEntry {
    kind: FileKind,
    file_id: FileId,
    /// Its last version; 0 for a folder, and for a file whose versions come.
    v: u64,
}

/// A content that versions have.
#[derive(Clone, Copy)]
pub(super) struct Needed {
    pub size: u64,
    pub is_there: bool,
}

/// A workspace that is being made.
pub(super) struct WorkspaceBuilder<'a> {
    pub workspace: &'a Workspace,
    pub count: Count,
    /// All that came so far, and the root.
    known: HashMap<FilePath, MadeEntry>,
    /// The items that rows of marks and mentions have made.
    apart: HashSet<Key>,
    /// The Markdown files whose texts are to be taken up; none where the source tells of them.
    pub texts: Vec<(FilePath, Entry)>,
    pub derives: bool,
    pub contents: HashMap<Sha256, Needed>,
    /// How many contents are still to come.
    pub missing: u64,
    /// Further writes of the commit that makes the workspace.
    pub beside: Vec<Write>,
    policies: BTreeMap<FilePath, (Sha256, u64)>,
    /// Contents that the source says it lacks.
    lost: HashSet<Sha256>,
    left_out: Vec<String>,
    file: Option<File>,
    writes: Vec<Write>,
    bytes: usize,
}

impl<'a> WorkspaceBuilder<'a> {
    pub fn new(workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            count: Count::default(),
            known: HashMap::from([(
                FilePath::root(),
                MadeEntry { kind: FileKind::Folder, file_id: workspace.0.keys.root(), v: 0 },
            )]),
            apart: HashSet::new(),
            texts: Vec::new(),
            derives: true,
            contents: HashMap::new(),
            missing: 0,
            beside: Vec::new(),
            policies: BTreeMap::new(),
            lost: HashSet::new(),
            left_out: Vec::new(),
            file: None,
            writes: Vec::new(),
            bytes: 0,
        }
    }

    /// Makes the root.
    pub async fn begin(&mut self) -> Result<()> {
        let root = Node { folder: None, name: String::new() };
        let key = self.workspace.0.keys.node(self.workspace.0.keys.root());
        self.put(Write::put(key, error::json(&root)?, Expect::Absent)).await
    }

    /// Takes the next row. The place is for errors.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a row out of turn, and for a path, an author or a length that cannot be; `PAYLOAD_TOO_LARGE` for over [`MOST`] of anything;
    /// else those of [`Workspace`].
    pub async fn row(&mut self, place: &str, row: Row) -> Result<()> {
        match row {
            Row::Folder { path, author, created_at } => {
                self.finish_file().await?;
                self.folder(place, path, author, created_at).await?;
            }
            Row::File { path, file_id: _, created_at } => {
                self.finish_file().await?;
                let (folder, file_id) = self.new_path(place, &path, FileKind::File)?;
                let entry = Entry::folder(file_id, &Writer::new(Principal::System), created_at);
                self.node(&path, folder, file_id).await?;
                let entry = Entry { kind: FileKind::File, ..entry };
                self.file = Some(File { path, folder, entry });
                self.count.files += 1;
            }
            Row::Version(version) => self.version(place, version).await?,
            Row::Marks { path, tags, links } => {
                self.finish_file().await?;
                self.marks(place, &path, tags, links).await?;
            }
            Row::Mentions { path, v, links, tags } => {
                self.finish_file().await?;
                self.mentions(place, &path, v, links, tags).await?;
            }
            Row::Missing(missing) => self.missing(place, missing).await?,
        }
        Ok(())
    }

    /// Takes note of something that the source lacks. A file keeps the numbers of its other versions, and a version whose content is missing is damaged in
    /// the new workspace as it was in the old one.
    async fn missing(&mut self, place: &str, missing: Missing) -> Result<()> {
        let Missing { path, v, sha256 } = missing;
        match (v, sha256, &mut self.file) {
            (Some(v), None, Some(file)) if file.path == path => {
                if v <= file.entry.v || v > MOST_VERSIONS {
                    return Err(refused(place, format!("version {} of {path} is next", file.entry.v + 1)));
                }
                file.entry.v = v;
            }
            (Some(_), None, _) => return Err(refused(place, "its file does not come before this version")),
            (_, Some(sha256), _) => {
                self.finish_file().await?;
                let Some(needed) = self.contents.get_mut(&sha256).filter(|needed| !needed.is_there) else {
                    return Err(refused(place, "no version needs that content, or it came before"));
                };
                needed.is_there = true;
                self.missing -= 1;
                self.lost.insert(sha256);
            }
            (None, None, _) => {
                self.finish_file().await?;
                // A file or folder that came before lacks its tags and links alone. Any other one may have been a policy, or had policies in it.
                let may_be_policy = access::is_policy(&path) || FilePath::parse(access::FOLDER)?.is_within(&path);
                if may_be_policy && !self.known.contains_key(&path) {
                    return Err(refused(path.as_str(), "it is a policy or has policies, and the archive lacks it"));
                }
            }
        }
        self.count.missing += 1;
        if self.left_out.len() < MOST_NAMED {
            self.left_out.push(match v {
                Some(v) => format!("{path}, version {v}"),
                None => path.to_string(),
            });
        }
        Ok(())
    }

    /// The folder of a path that is new, if such a path can be, and an id for what is there.
    fn new_path(&mut self, place: &str, path: &FilePath, kind: FileKind) -> Result<(FileId, FileId)> {
        let at = |why: String| refused(&format!("{place}, {path}"), why);
        if path.names().count() > MAX_DEPTH {
            return Err(at(format!("it has more than {MAX_DEPTH} names")));
        }
        for name in path.names() {
            match domain::check_new_name(name) {
                // Earlier versions made files with such names, and an export has them as they are.
                Ok(()) | Err(PathError::Padded(_)) => {}
                Err(error) => return Err(at(error.to_string())),
            }
        }
        let above = path.parent().and_then(|above| self.known.get(&above));
        let Some(folder) = above.filter(|above| above.kind == FileKind::Folder).map(|above| above.file_id) else {
            return Err(at("the folder that it is in does not come before it".into()));
        };
        if self.known.contains_key(path) {
            return Err(at("it is there twice".into()));
        }
        let file_id = FileId(self.workspace.0.clock.id());
        self.known.insert(path.clone(), MadeEntry { kind, file_id, v: 0 });
        if self.known.len() > MOST {
            let message = format!("the archive has over {MOST} files and folders");
            return Err(Error::new(Code::PayloadTooLarge, message).hint(PARTS));
        }
        Ok((folder, file_id))
    }

    async fn folder(&mut self, place: &str, path: FilePath, author: String, at: Timestamp) -> Result<()> {
        author_can_be(place, &author)?;
        let (folder, file_id) = self.new_path(place, &path, FileKind::Folder)?;
        self.count.folders += 1;
        let made = Entry::folder(file_id, &Writer::new(Principal::System), at);
        self.made(&path, folder, Entry { author, ..made }).await
    }

    async fn made(&mut self, path: &FilePath, folder: FileId, entry: Entry) -> Result<()> {
        self.node(path, folder, entry.file_id).await?;
        let key = self.workspace.0.keys.entry(folder, path.name());
        self.put(Write::put(key, error::json(&entry)?, Expect::Absent)).await
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
            return Err(Error::new(Code::PayloadTooLarge, format!("the archive has over {MOST} contents")).hint(PARTS));
        }
        file.entry =
            Entry { v, sha256: Some(sha256), size, author: author.clone(), updated_at: at, ..file.entry.clone() };
        let key = self.workspace.0.keys.version(file.entry.file_id, v);
        let version = Version { v, sha256, size, author, at, call_id };
        self.count.versions += 1;
        self.put(Write::put(key, error::json(&version)?, Expect::Absent)).await
    }

    /// Writes the entry of the file whose versions have all come.
    pub async fn finish_file(&mut self) -> Result<()> {
        let Some(File { path, folder, mut entry }) = self.file.take() else { return Ok(()) };
        let Some(sha256) = entry.sha256 else { return Err(refused(path.as_str(), "the file has no version")) };
        if access::is_policy(&path) {
            self.policies.insert(path.clone(), (sha256, entry.size));
        }
        // No version that is imported starts a flow, and neither does one that is made from it.
        let writer = Writer { may_run: false, ..Writer::new(Principal::System) };
        entry.conversion = self.workspace.conversion_of(&path, (entry.size, None), None, &writer);
        let waits = self.workspace.unconverted_item(&entry, None, &writer, self.workspace.0.clock.now()).await?;
        let key = self.workspace.0.keys.entry(folder, path.name());
        self.put(Write::put(key, error::json(&entry)?, Expect::Absent)).await?;
        if let Some(known) = self.known.get_mut(&path) {
            known.v = entry.v;
        }
        if self.derives && mentions::may_mention(&path, entry.size) {
            self.texts.push((path, entry));
        }
        match waits {
            Some(waits) => self.put(waits).await,
            None => Ok(()),
        }
    }

    /// Makes the folders that every workspace has and the archive lacks, then `latest/`, then the workspace.
    pub async fn complete(mut self, name: String, by: &Principal) -> Result<Imported> {
        let now = self.workspace.0.clock.now();
        for path in taxonomy::folders(by.user())? {
            if self.known.get(&path).is_some_and(|known| known.kind == FileKind::Folder) {
                continue;
            }
            let (folder, file_id) = self.new_path(END, &path, FileKind::Folder)?;
            let entry = Entry::folder(file_id, &Writer::new(Principal::System), now);
            self.made(&path, folder, entry).await?;
        }
        self.flush().await?;
        self.take_up_texts().await?;
        self.flush().await?;
        let inner = &self.workspace.0;
        // Without one of its policies a workspace could permit what it did not permit before.
        if let Some((path, _)) = self.policies.iter().find(|(_, (digest, _))| self.lost.contains(digest)) {
            return Err(refused(path.as_str(), "it is a policy, and the archive lacks its content"));
        }
        let policies = self.workspace.in_force(&self.policies, &BTreeMap::new()).await?;
        if self.workspace.writes_alone() {
            self.workspace.rebuild().await?;
        }
        let record = Record { workspace_id: inner.id, name, owner: by.user(), created_at: now, policies };
        let made = Write::put(inner.keys.workspace(), error::json(&record)?, Expect::Absent);
        let note = Write::delete(inner.keys.deletion(), Expect::Present);
        let writes = [made, note].into_iter().chain(std::mem::take(&mut self.beside)).collect();
        inner.table.commit(writes).await.map_err(error::port)?;
        inner.system.forget();
        let Count { files, versions, .. } = self.count;
        Ok(Imported { workspace: record.info(), files, versions, left_out: self.left_out })
    }

    /// The id and the last version of something that came before.
    pub(super) fn known(&self, place: &str, path: &FilePath) -> Result<(FileId, u64)> {
        let known = self.known.get(path).filter(|_| !path.is_root());
        let known = known.map(|known| (known.file_id, known.v));
        known.ok_or_else(|| refused(place, format!("{path} does not come before it")))
    }

    /// The same as [`WorkspaceBuilder::put`], for an item that comes once.
    pub(super) async fn put_apart(&mut self, write: Write, place: &str) -> Result<()> {
        if !self.apart.insert(write.key().clone()) {
            return Err(refused(place, "it is there twice"));
        }
        self.put(write).await
    }

    /// Writes an item that says no more than its key, once: a commit writes to a key once.
    pub(super) async fn hint(&mut self, key: Key) -> Result<()> {
        if !self.apart.insert(key.clone()) {
            return Ok(());
        }
        self.put(Write::put(key, "{}", Expect::Any)).await
    }

    pub async fn put(&mut self, write: Write) -> Result<()> {
        if let Write::Put { body, .. } = &write {
            self.bytes += body.len();
        }
        self.writes.push(write);
        if self.writes.len() >= AT_ONCE || self.bytes >= BYTES_AT_ONCE { self.flush().await } else { Ok(()) }
    }

    /// Commits what waits.
    pub async fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
        let writes = std::mem::take(&mut self.writes);
        if writes.is_empty() {
            return Ok(());
        }
        self.workspace.0.table.commit(writes).await.map_err(error::port)
    }
}

/// Authors are texts that the index keeps; an archive says who they are, and nobody vouches for it.
pub(super) fn author_can_be(place: &str, author: &str) -> Result<()> {
    let length = author.chars().count();
    match (1..=MOST_AUTHOR).contains(&length) && !author.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(refused(place, format!("an author has 1 to {MOST_AUTHOR} characters, none of them control"))),
    }
}
