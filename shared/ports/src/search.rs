//! The index of a workspace's texts: a cache of what is committed elsewhere, which may be lost and made anew at any time.

use crate::{Key, Result};
use async_trait::async_trait;
use domain::{FileId, FilePath, Timestamp, WorkspaceId};
use std::{collections::HashMap, sync::Arc};

/// The item that says where the copy of a workspace's index is, of those that are kept.
pub fn kept_index(workspace: WorkspaceId) -> Key {
    Key::new(format!("{workspace}/search"), "index")
}

/// The space of the parts of that copy. It is not that of the workspace's contents: old copies need not be kept as long as old contents, and a bucket
/// tells them apart by the beginning of their keys (`infra/data.yaml`).
pub fn kept_index_space(workspace: WorkspaceId) -> String {
    format!("index-{workspace}")
}

/// The note that a workspace was deleted, which stays until all of it is removed, an hour later or more. No copy of an index is kept beside it: a search
/// may end after the deletion.
pub fn deleted_workspace(workspace: WorkspaceId) -> Key {
    Key::new("workspaces/remains", workspace.to_string())
}

/// A file as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedFile {
    /// Its identity.
    pub file_id: FileId,
    /// Its path.
    pub path: FilePath,
    /// Its version; 0 for a projection.
    pub v: u64,
    /// The principal that wrote the version.
    pub author: String,
    /// When it was written.
    pub updated_at: Timestamp,
    /// Its length in bytes.
    pub size: u64,
    /// Of the Markdown of a document: that document.
    pub derived_from: Option<FileId>,
    /// Names the content whose passages are indexed, such as its digest; none for a file that is found by its name alone.
    pub seal: Option<String>,
}

/// A part of a file's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// Its first line, from 1; 0 for the name of a file.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// The headings above it, or the items of code around it, from the outermost: `Parser > next`.
    pub heading: String,
    /// The text.
    pub text: String,
    /// Its words, as they are searched for, with spaces between them. They hold neither ASCII punctuation nor upper-case ASCII letters.
    pub words: String,
}

/// A change of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexEdit {
    /// The file is known now, or is as told. A seal other than the known one takes its passages away: its content waits.
    File(IndexedFile, String),
    /// The passages of the content with this seal. A file that has another seal meanwhile keeps what it has.
    Content {
        /// The file.
        file_id: FileId,
        /// The seal.
        seal: String,
        /// The passages.
        passages: Vec<Passage>,
    },
    /// There is no such file.
    Gone(FileId),
}

/// A term that is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexTerm {
    /// A word.
    Word(String),
    /// A word that is this one, or begins with the other.
    Prefix(String, String),
    /// Words that follow each other.
    Phrase(Vec<String>),
}

/// The occurrences of a term in one passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexHit {
    /// The passage.
    pub passage: i64,
    /// Its file, as a key of [`IndexMatches::files`].
    pub file: i64,
    /// Whether the passage is the name of the file.
    pub is_name: bool,
    /// The number of occurrences; of a phrase 1.
    pub times: u64,
    /// The number of words in the passage.
    pub words: u64,
}

/// A file with a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedHit {
    /// The file.
    pub file: IndexedFile,
    /// The document that it is the Markdown of.
    pub document: Option<IndexedFile>,
}

/// The passages that match. Everything in it is about visible files alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexMatches {
    /// The number of passages, names aside.
    pub passages: u64,
    /// The number of words in them.
    pub words: u64,
    /// The number of files, which is that of names.
    pub names: u64,
    /// The number of words in names.
    pub name_words: u64,
    /// The hits of each term, in the order of the terms.
    pub hits: Vec<Vec<IndexHit>>,
    /// The files that have hits.
    pub files: HashMap<i64, Arc<IndexedHit>>,
    /// Whether hits are missing, because there were too many or it took too long.
    pub cut: bool,
}

/// Which files the caller of a search may read. A function of paths is one, too.
pub trait Visibility: Send + Sync {
    /// Whether the file may be read.
    fn has(&self, file: &FilePath) -> bool;

    /// The same for all files directly in a folder; none where each of them is asked for. It spares a search most questions.
    fn has_all_in(&self, _folder: &FilePath) -> Option<bool> {
        None
    }
}

impl<F: Fn(&FilePath) -> bool + Send + Sync> Visibility for F {
    fn has(&self, file: &FilePath) -> bool {
        self(file)
    }
}

/// The files that the caller of a search may read.
pub type Visible = Arc<dyn Visibility>;

/// A file as a look-up shows it: a document instead of its Markdown.
#[derive(Clone, Copy, Debug)]
pub struct ShownFile<'a> {
    /// Its path.
    pub path: &'a FilePath,
    /// Its version; 0 for a projection.
    pub v: u64,
    /// The principal that wrote the version.
    pub author: &'a str,
    /// When it was written.
    pub updated_at: Timestamp,
    /// Whether it is a document that is found by its Markdown.
    pub is_document: bool,
}

/// Whether a file is looked for, of those that are visible.
pub type FileFilter = Arc<dyn Fn(&ShownFile<'_>) -> bool + Send + Sync>;

/// A passage without a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unembedded {
    /// The passage.
    pub passage: i64,
    /// The headings above it, or the items of code around it, from the outermost: `Parser > next`.
    pub heading: String,
    /// Its text.
    pub text: String,
}

/// The vector of a passage.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexVector {
    /// The passage.
    pub passage: i64,
    /// The vector; an empty one for a passage that the model does not take, which waits no more.
    pub vector: Vec<f32>,
}

/// A passage near a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexNear {
    /// The passage.
    pub passage: i64,
    /// Its file, as a key of [`IndexNearest::files`].
    pub file: i64,
    /// The cosine of the angle between the two vectors, from -1 to 1.
    pub similarity: f32,
}

/// The passages nearest to a query. Everything in it is about files alone that are visible and looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IndexNearest {
    /// The nearest first; equals in the order of the passages.
    pub near: Vec<IndexNear>,
    /// Their files.
    pub files: HashMap<i64, Arc<IndexedHit>>,
    /// How many passages have no vector yet.
    pub pending: u64,
}

/// The indexes of workspaces.
#[async_trait]
pub trait SearchIndexes: Send + Sync {
    /// The index of a workspace; an empty one where there is none.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] for one that cannot be used; [`crate::Error::Unavailable`] when the disk fails.
    async fn open(&self, workspace: WorkspaceId) -> Result<Arc<dyn SearchIndex>>;

    /// Takes the index of a workspace away, so that the next one is empty.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`] when the disk fails.
    async fn remove(&self, workspace: WorkspaceId) -> Result<()>;

    /// How many indexes a caller may keep open that it does not use.
    fn most_open(&self) -> usize {
        32
    }
}

/// The index of one workspace.
///
/// # Errors
/// Every call fails with [`crate::Error::Damaged`] for an index that cannot be used any longer, and with [`crate::Error::Unavailable`] when the disk
/// fails or has no room.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// The note of the last edit that had one; none for an empty index.
    ///
    /// # Errors
    /// Those of [`SearchIndex`].
    async fn progress(&self) -> Result<Option<String>>;

    /// Makes these changes and keeps the note, all at once.
    ///
    /// # Errors
    /// Those of [`SearchIndex`].
    async fn apply(&self, edits: Vec<IndexEdit>, progress: Option<String>) -> Result<()>;

    /// Files whose content waits, the newest first.
    ///
    /// # Errors
    /// Those of [`SearchIndex`].
    async fn waiting(&self, limit: usize) -> Result<Vec<IndexedFile>>;

    /// The known files at and below a path.
    ///
    /// # Errors
    /// Those of [`SearchIndex`].
    async fn below(&self, path: &FilePath) -> Result<Vec<IndexedFile>>;

    /// Looks terms up among the files that are visible, the Markdown of a document only where the document is visible, too.
    ///
    /// # Errors
    /// Those of [`SearchIndex`].
    async fn look_up(&self, terms: Vec<IndexTerm>, visible: Visible) -> Result<IndexMatches>;

    /// These passages; those that are gone are left out.
    ///
    /// # Errors
    /// Those of [`SearchIndex`].
    async fn passages(&self, ids: Vec<i64>) -> Result<HashMap<i64, Passage>>;

    /// Passages that have no vector of this space yet, the latest first. Vectors of another space are taken away.
    ///
    /// # Errors
    /// Those of [`SearchIndex`].
    async fn unembedded(&self, space: &str, limit: usize) -> Result<Vec<Unembedded>>;

    /// Keeps vectors of this space. A passage of a file keeps its vector as long as the file has the same passage, also when its content waits
    /// meanwhile. Vectors of another space, or of another length, are taken away; vectors of passages that are gone are left out.
    ///
    /// # Errors
    /// Those of [`SearchIndex`]; [`crate::Error::Invalid`] for vectors of different lengths, and for numbers that are none.
    async fn embed(&self, space: &str, vectors: Vec<IndexVector>) -> Result<()>;

    /// The passages nearest to a vector of this space, at most so many, among files that are visible and looked for.
    ///
    /// # Errors
    /// Those of [`SearchIndex`].
    async fn nearest(
        &self,
        space: &str,
        vector: Vec<f32>,
        most: usize,
        visible: Visible,
        looked: FileFilter,
    ) -> Result<IndexNearest>;

    /// Keeps a copy where another instance finds it, if the index is one that does, and enough has changed. `age` tells copies apart: a later one
    /// stays.
    ///
    /// # Errors
    /// Those of [`SearchIndex`], and those of the place of the copy.
    async fn keep(&self, _age: i64) -> Result<()> {
        Ok(())
    }
}
