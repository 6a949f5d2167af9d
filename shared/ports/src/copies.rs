//! Working copies: folders with the files of a workspace, for programs that know nothing of workspaces (spec 004 §14).

use crate::Result;
use async_trait::async_trait;
use bytes::Bytes;
use domain::{ChatId, FileId, FilePath, Sha256, WorkspaceId};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, path::PathBuf};

/// The working copies on the machine on which coding agents work, one per chat.
///
/// # Errors
/// Of every method: `Unavailable` when the disk fails.
#[async_trait]
pub trait WorkingCopies: fmt::Debug + Send + Sync {
    /// The folder on disk that has the root of a chat's copy. Makes it, and `folder` in it.
    ///
    /// # Errors
    /// Those of [`WorkingCopies`].
    async fn path(&self, workspace: WorkspaceId, chat: ChatId, folder: &FilePath) -> Result<PathBuf>;
    /// The copy of a chat, for one holder at a time: waits until no other has it.
    ///
    /// # Errors
    /// Those of [`WorkingCopies`].
    async fn hold(&self, workspace: WorkspaceId, chat: ChatId) -> Result<Box<dyn WorkingCopy>>;
    /// Removes the copy of a chat. One that is not there is fine.
    ///
    /// # Errors
    /// Those of [`WorkingCopies`]. Some of it may be gone then.
    async fn remove(&self, workspace: WorkspaceId, chat: ChatId) -> Result<()>;
}

/// A working copy in one hand. The program may change its files at any moment, also while it is held.
///
/// # Errors
/// Of every method: `Unavailable` when the disk fails.
#[async_trait]
pub trait WorkingCopy: Send {
    /// The knowledge that the copy keeps of itself.
    fn record(&mut self) -> &mut CopyRecord;
    /// The files at and below a folder as they are on disk: those of the record, and all others that are regular files and that no
    /// `.gitignore` of the copy names. Folders of dependencies and of Git are left out. No link is followed.
    ///
    /// # Errors
    /// Those of [`WorkingCopy`]; `Invalid` when there are more than [`MOST_COPIED`] files, very many folders, or `.gitignore` files of great length.
    async fn scan(&mut self, folder: &FilePath) -> Result<BTreeMap<FilePath, CopiedFile>>;
    /// The content of a file; none when it is another one by now.
    ///
    /// # Errors
    /// Those of [`WorkingCopy`].
    async fn read(&self, path: &FilePath, found: CopiedFile) -> Result<Option<Bytes>>;
    /// Puts a content at a path where `over` was found, at once. False when something else is there by now: it stays.
    ///
    /// # Errors
    /// Those of [`WorkingCopy`].
    async fn put(&mut self, path: &FilePath, content: Bytes, over: Option<CopiedFile>) -> Result<bool>;
    /// Removes a file. False when it is another one by now: it stays.
    ///
    /// # Errors
    /// Those of [`WorkingCopy`].
    async fn take_away(&mut self, path: &FilePath, found: CopiedFile) -> Result<bool>;
    /// Keeps the record on disk.
    ///
    /// # Errors
    /// Those of [`WorkingCopy`].
    async fn keep(&mut self) -> Result<()>;
}

/// The most files of a working copy.
pub const MOST_COPIED: usize = 20_000;

/// A file on the disk of a working copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedFile {
    /// The SHA-256 of its content. A file of more than [`crate::LARGE`] bytes, which no version is made of, has another digest that changes with it.
    pub digest: Sha256,
    /// Its length in bytes.
    pub size: u64,
}

/// The version of a file that a workspace and a working copy had in common last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// The file.
    pub file: FileId,
    /// Its version.
    pub v: u64,
    /// The SHA-256 of the content of that version.
    pub digest: Sha256,
}

/// The knowledge that a working copy keeps of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRecord {
    /// The versions in common, by path.
    pub common: BTreeMap<FilePath, Common>,
    /// The contents on disk that the workspace cannot have, by path. They are not tried again.
    #[serde(default)]
    pub stays: BTreeMap<FilePath, Sha256>,
    /// Refusals that the agent has not read yet.
    #[serde(default)]
    pub untold: Vec<String>,
}
