//! Makes a workspace of a history from Git.
//!
//! Contents are stored as they come, before the commits that have them. The commits are kept until the end, since only the last one says which files
//! there are: some tens of bytes per change.

use super::{
    history::{Files, History, NoFiles},
    is_of_git,
    stream::{Command, Commands, Mark},
};
use crate::{
    Result, blocking, contents, error,
    export_import::{
        blocks::refused,
        layout::{Row, Written},
        workspace_builder::{Imported, MOST, Needed, WorkspaceBuilder},
    },
};
use bytes::Bytes;
use domain::{Code, Error, FileId, FilePath, Principal, Sha256, Timestamp};
use futures::Stream;
use ports::{Expect, Write};
use std::collections::{HashMap, HashSet};

/// The author of folders, which Git does not know.
const FOLDERS_BY: &str = "system";
/// The name of a workspace when none is given.
const NAME: &str = "Imported from Git";

/// A content that is stored.
#[derive(Clone, Copy)]
struct Stored {
    sha256: Sha256,
    size: u64,
    /// Whether it is in the table, and not a blob.
    is_text: bool,
}

/// Reads a stream of `git fast-export`, and puts its files below this folder.
///
/// # Errors
/// `INVALID_ARGUMENT`, with the line or the path, for another stream and for paths that cannot be; `PAYLOAD_TOO_LARGE` for over [`MOST`] changes or
/// contents, and for one above [`ports::LARGE`]; else those of the stream and of [`crate::Workspace`].
pub(in crate::export_import) async fn run(
    builder: WorkspaceBuilder<'_>,
    stream: impl Stream<Item = Result<Bytes>> + Unpin + Send,
    name: Option<String>,
    folder: &FilePath,
    by: &Principal,
) -> Result<Imported> {
    let mut import = Import { builder, contents: HashMap::new(), is_made: HashSet::new() };
    let history = import.read(Commands::new(stream)).await?;
    // Up to a million changes are followed.
    let files = blocking::run(move || history.files()).await.map_err(error::task)?;
    let files = files.map_err(|error| match error {
        NoFiles::Empty => refused("the stream", "it has no commit"),
        NoFiles::Several(names) => refused("the stream", format!("it has the branches {}", names.join(", ")))
            .hint("export one of them: git fast-export BRANCH"),
        NoFiles::TooMany => {
            let message = format!(
                "the history has over {MOST} files at once, or its moves and copies make paths of over 256 MiB"
            );
            Error::new(Code::PayloadTooLarge, message).hint("import a clone with a shorter history: git clone --depth")
        }
    })?;
    import.builder.begin().await?;
    let left_out = import.files(files, folder).await?;
    import.remove_unneeded().await?;
    let imported = import.builder.complete(name.unwrap_or_else(|| NAME.into()), by).await?;
    Ok(Imported { left_out, ..imported })
}

struct Import<'a> {
    builder: WorkspaceBuilder<'a>,
    contents: HashMap<Mark, Stored>,
    /// Folders that have their row.
    is_made: HashSet<FilePath>,
}

impl Import<'_> {
    async fn read<S>(&mut self, mut commands: Commands<S>) -> Result<History>
    where
        S: Stream<Item = Result<Bytes>> + Unpin + Send,
    {
        let mut history = History::default();
        while let Some(command) = commands.next().await? {
            match command {
                Command::Blob { mark, content } => self.store(mark, &content).await?,
                Command::Commit(commit) => {
                    if !history.commit(commit) {
                        return Err(refused("a commit", "its parent did not come before it"));
                    }
                }
                Command::Reset { branch, at } => {
                    if !history.reset(branch, at) {
                        return Err(refused("a branch", "its commit did not come before it"));
                    }
                }
            }
            if self.contents.len() > MOST || history.changes() > MOST {
                let error = Error::new(Code::PayloadTooLarge, format!("the history has over {MOST} changes"));
                return Err(error.hint("import a clone with a shorter history: git clone --depth"));
            }
        }
        Ok(history)
    }

    async fn store(&mut self, mark: Mark, content: &Bytes) -> Result<()> {
        let sha256 = contents::digest(content).await?;
        let size = content.len() as u64;
        let write = self.builder.workspace.0.archive.put(sha256, content).await?;
        let stored = Stored { sha256, size, is_text: write.is_some() };
        // The one before would stay in the archive without a version, and uncounted.
        if self.contents.insert(mark, stored).is_some() {
            return Err(refused("a content", format!("its mark :{mark} is that of another one")));
        }
        let is_new = self.builder.contents.insert(sha256, Needed { size, is_there: true }).is_none();
        // No commit writes one item twice.
        match write.filter(|_| is_new) {
            Some(write) => self.builder.put(write).await,
            None => Ok(()),
        }
    }

    /// Writes the files, and says what was left out.
    async fn files(&mut self, files: Files, folder: &FilePath) -> Result<Vec<String>> {
        let mut left_out: Vec<String> = files.left_out.into_iter().collect();
        let mut used = HashSet::new();
        for (relative, versions) in files.files {
            let path = below(folder, &relative)?;
            if is_of_git(&path) {
                left_out.push(relative);
                continue;
            }
            let begun = versions.first().map_or(Timestamp::from_millis(0), |first| first.at);
            self.folders(&path, begun).await?;
            let file_id = FileId(self.builder.workspace.0.clock.id());
            let row = Row::File { path: path.clone(), file_id, created_at: begun };
            self.builder.row(&relative, row).await?;
            for (v, version) in (1..).zip(versions) {
                let Some(stored) = self.contents.get(&version.content).copied() else {
                    return Err(refused(&relative, "its content did not come"));
                };
                used.insert(stored.sha256);
                let Stored { sha256, size, .. } = stored;
                let author = version.author.as_ref().to_owned();
                let written = Written { v, sha256, size, author, at: version.at, call_id: None };
                self.builder.row(&relative, Row::Version(written)).await?;
            }
        }
        self.builder.finish_file().await?;
        self.contents.retain(|_, stored| !used.contains(&stored.sha256));
        Ok(left_out)
    }

    /// Makes the folders above a path that are not there yet.
    async fn folders(&mut self, path: &FilePath, created_at: Timestamp) -> Result<()> {
        let above = std::iter::successors(path.parent(), FilePath::parent);
        let missing: Vec<_> = above.take_while(|above| !above.is_root() && !self.is_made.contains(above)).collect();
        for path in missing.into_iter().rev() {
            let row = Row::Folder { path: path.clone(), author: FOLDERS_BY.into(), created_at };
            self.builder.row(path.as_str(), row).await?;
            self.is_made.insert(path);
        }
        Ok(())
    }

    /// Removes the contents that no version has: those of files that are gone, and of branches that were merged.
    async fn remove_unneeded(&mut self) -> Result<()> {
        self.builder.flush().await?;
        let inner = &self.builder.workspace.0;
        let space = inner.id.to_string();
        let unneeded: HashMap<Sha256, bool> =
            self.contents.values().map(|stored| (stored.sha256, stored.is_text)).collect();
        for (sha256, is_text) in unneeded {
            match is_text {
                true => self.builder.put(Write::delete(inner.keys.text(sha256), Expect::Any)).await?,
                false => inner.archive.blobs.delete(&space, sha256).await.map_err(error::port)?,
            }
        }
        Ok(())
    }
}

/// The path in the workspace.
fn below(folder: &FilePath, relative: &str) -> Result<FilePath> {
    let joined = relative.split('/').try_fold(folder.clone(), |path, name| path.join(name));
    joined.map_err(|error| refused(relative, error))
}
