//! The scrub compares contents of the archive with their digests in small steps, so that damage is found while a good copy may still exist.
//! [`crate::damage`] then repairs or reports it.

use crate::{
    Damage, Damaged, Result, Workspace, Workspaces,
    contents::{is_blob, is_large},
    crashes, error,
    handle::{Archive, Shared},
    keys::{Keys, WORKSPACES},
    model::Version,
};
use domain::{Code, Error, FileId, Sha256, WorkspaceId};
use ports::{Expect, Query, Write};
use serde::{Deserialize, Serialize};
use std::{collections::HashSet, ops::Range, sync::atomic::Ordering::Relaxed};

/// How many files, contents and bytes one step of a scrub looks at.
const FILES_A_STEP: usize = 500;
const CONTENTS_A_STEP: u64 = 500;
const BYTES_A_STEP: u64 = 64 << 20;
/// How many contents of known damage are compared again in one step.
const RECHECKED: usize = 100;

/// The result of one step of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// How many contents it compared.
    pub contents: u64,
    /// How many versions it passed over, as the index has them in no form that can be read.
    pub unreadable: u64,
    /// The cursor of the next step; none after the last content.
    pub next: Option<String>,
}

/// A key after `key` and before every other one.
fn after(key: &str) -> String {
    // Neither an id nor a digest has such a character, and all have the same length.
    format!("{key}~")
}

/// How far a scrub has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Position {
    workspace: WorkspaceId,
    /// Whether the scrub is at the contents of the trash.
    #[serde(default)]
    trash: bool,
    /// The file that it is at; none at the beginning.
    #[serde(default)]
    file: Option<FileId>,
    /// The version of it that is next; none when all were looked at.
    #[serde(default)]
    v: Option<u64>,
    /// The byte that is next of the content of that version, when it is a large one.
    #[serde(default, skip_serializing_if = "is_first")]
    byte: u64,
    /// While the records of known damage are looked at, with which a round begins: the key of the last one, which is empty before the first. None once all
    /// of them were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    known: Option<String>,
}

fn is_first(byte: &u64) -> bool {
    *byte == 0
}

impl Position {
    fn beginning(workspace: WorkspaceId, trash: bool) -> Self {
        Self { workspace, trash, file: None, v: None, byte: 0, known: None }
    }
}

impl Workspaces {
    /// Compares some contents of the archive with their digests, from the cursor of the last step on, and repairs damaged ones. A round
    /// begins with contents of known damage. One step does little, so that it can run beside other work: its pace is how often it is
    /// called.
    ///
    /// Bodies in the table outside of the archive (long bodies of logs) are compared when they are read.
    ///
    /// # Errors
    /// Those of [`Workspaces`], when the index cannot be read or a store does not answer. The step can be repeated. A content without a
    /// good copy is no error: it is logged and [kept](Workspaces::damaged).
    pub async fn scrub(&self, from: Option<&str>) -> Result<Scrubbed> {
        let mut step = Step::of(self);
        let mut position = match from.and_then(|from| serde_json::from_str::<Position>(from).ok()) {
            Some(position) => position,
            None => match self.workspace_after(None).await? {
                Some(workspace) => Position { known: Some(String::new()), ..Position::beginning(workspace, false) },
                None => {
                    self.recheck_all().await?;
                    return Ok(step.end(None));
                }
            },
        };
        if let Some(last) = position.known.take() {
            position.known = step.recheck(&last).await?;
            if position.known.is_some() {
                return Ok(step.end(Some(error::json(&position)?)));
            }
        }
        while !step.is_long() {
            match step.next(&mut position).await? {
                true => {}
                false if !position.trash => {
                    position = Position::beginning(position.workspace, true);
                }
                false => match self.workspace_after(Some(position.workspace)).await? {
                    Some(workspace) => position = Position::beginning(workspace, false),
                    None => return Ok(step.end(None)),
                },
            }
        }
        let next = error::json(&position)?;
        Ok(step.end(Some(next)))
    }

    /// Compares some contents of known damage again, and removes the records of those that another process has repaired, or that were put
    /// back by hand. It goes on where the call before ended in this process. It searches for no copies, so that it can be called between the rounds of
    /// the scrub.
    ///
    /// # Errors
    /// As [`Workspaces::scrub`].
    pub async fn recheck(&self) -> Result<()> {
        let from = self.0.damages.rechecked().as_deref().map(after);
        let found = self.damaged_from(from, RECHECKED).await?;
        let (mut bytes, mut last, mut has_more) = (0, None, found.len() == RECHECKED);
        for (key, Damaged { workspace_id, sha256, size, .. }) in found {
            if bytes >= BYTES_A_STEP {
                has_more = true;
                break;
            }
            last = Some(key);
            // A large one is looked at part by part, when its turn comes.
            if is_large(size) {
                continue;
            }
            bytes += size;
            let workspace = Shared::handle(&self.0, workspace_id);
            if workspace.0.archive.is_intact(sha256, size, None).await? {
                self.0.damages.lost().remove(&(workspace_id, sha256));
                workspace.0.archive.forget_damage(sha256).await?;
            }
        }
        *self.0.damages.rechecked() = last.filter(|_| has_more);
        Ok(())
    }

    /// Compares all contents of known damage again, as the steps at the beginning of a round do.
    ///
    /// # Errors
    /// As [`Workspaces::scrub`].
    pub(crate) async fn recheck_all(&self) -> Result<()> {
        let mut last = Some(String::new());
        while let Some(key) = last {
            last = Step::of(self).recheck(&key).await?;
        }
        Ok(())
    }

    async fn workspace_after(&self, id: Option<WorkspaceId>) -> Result<Option<WorkspaceId>> {
        let from = id.map(|id| after(&id.to_string()));
        Ok(self.first(Query { from, ..Query::all(WORKSPACES, 1) }).await?.and_then(|name| name.parse().ok()))
    }

    /// The name of the first item of a range.
    async fn first(&self, range: Query) -> Result<Option<String>> {
        let mut pages = self.0.table.pages(range);
        while let Some(items) = pages.next().await.map_err(error::port)? {
            if let Some(first) = items.into_iter().next() {
                return Ok(Some(first.key.sk));
            }
        }
        Ok(None)
    }
}

/// One step of a scrub.
struct Step<'a> {
    workspaces: &'a Workspaces,
    contents: u64,
    unreadable: u64,
    bytes: u64,
    files: usize,
    /// Many versions have the same content.
    seen: HashSet<(WorkspaceId, Sha256)>,
}

impl<'a> Step<'a> {
    fn of(workspaces: &'a Workspaces) -> Self {
        Self { workspaces, contents: 0, unreadable: 0, bytes: 0, files: 0, seen: HashSet::new() }
    }

    fn end(self, next: Option<String>) -> Scrubbed {
        Scrubbed { contents: self.contents, unreadable: self.unreadable, next }
    }

    fn is_long(&self) -> bool {
        self.contents >= CONTENTS_A_STEP || self.bytes >= BYTES_A_STEP || self.files >= FILES_A_STEP
    }

    /// Compares contents of known damage again whose records lie behind this key: a write or a restored backup may have repaired them. Returns the key of
    /// the last one; none when there are no more.
    async fn recheck(&mut self, behind: &str) -> Result<Option<String>> {
        let from = Some(behind).filter(|behind| !behind.is_empty()).map(after);
        let found = self.workspaces.damaged_from(from, RECHECKED).await?;
        let (mut last, has_more) = (None, found.len() == RECHECKED);
        for (key, Damaged { workspace_id, sha256, size, .. }) in found {
            if self.bytes >= BYTES_A_STEP {
                return Ok(last);
            }
            last = Some(key);
            let workspace = Shared::handle(&self.workspaces.0, workspace_id);
            let exists = self.workspaces.0.table.get(&Keys(workspace_id).workspace()).await.map_err(error::port)?;
            self.workspaces.0.damages.lost().remove(&(workspace_id, sha256));
            self.seen.insert((workspace_id, sha256));
            self.contents += 1;
            let archive = &workspace.0.archive;
            // A large one is looked at part by part, when its turn comes.
            if exists.is_some() && is_large(size) {
                continue;
            }
            self.bytes += if exists.is_some() { size } else { 0 };
            if exists.is_some()
                && let Err(error) = archive.get(sha256, size).await
            {
                match is_away(&error) {
                    true => return Err(error),
                    false => continue,
                }
            }
            let forget = Write::delete(Keys(workspace_id).damaged(sha256), Expect::Any);
            archive.table.commit(vec![forget]).await.map_err(error::port)?;
        }
        Ok(last.filter(|_| has_more))
    }

    /// Goes on by some versions of a file, or to the next file; false when there is none.
    async fn next(&mut self, position: &mut Position) -> Result<bool> {
        const VERSIONS: usize = 50;
        let workspace = Shared::handle(&self.workspaces.0, position.workspace);
        let keys = Keys(position.workspace);
        let (Some(file), Some(v)) = (position.file, position.v) else {
            let partition = if position.trash { keys.trash() } else { keys.nodes() };
            let from = position.file.map(|file| after(&file.to_string()));
            let first = self.workspaces.first(Query { from, ..Query::all(partition, 1) }).await?;
            let Some(file) = first.and_then(|name| name.parse().ok()) else { return Ok(false) };
            self.files += 1;
            (position.file, position.v) = (Some(file), Some(0));
            return Ok(true);
        };
        let query = Query { from: Some(keys.version(file, v).sk), ..Query::all(keys.versions(file), VERSIONS) };
        let page = self.workspaces.0.table.query(&query).await.map_err(error::port)?;
        for item in &page.items {
            let version: Version = match error::parse(&item.body) {
                Ok(version) => version,
                // It holds up no other: its file is an error when it is read.
                Err(error) => {
                    let (workspace, key) = (position.workspace, &item.key.sk);
                    tracing::error!(%workspace, %file, version = %key, %error, "a scrub passed over a version that the index cannot give");
                    self.unreadable += 1;
                    (position.byte, position.v) = (0, key.parse::<u64>().ok().map(|v| v + 1));
                    continue;
                }
            };
            let compared = self.check(&workspace, file, &version, position.byte);
            let compared = crashes::unless_refused(&keys, file, Some(version.sha256), compared).await;
            position.byte = compared.unwrap_or(Ok(0))?;
            position.v = Some(version.v + u64::from(position.byte == 0));
            if self.is_long() {
                return Ok(true);
            }
        }
        if page.next.is_none() {
            position.v = None;
        }
        Ok(true)
    }

    /// Compares a content, or the part of a large one that begins at `byte`. Returns the offset of the next part; 0 after the last.
    async fn check(&mut self, workspace: &Workspace, file: FileId, version: &Version, byte: u64) -> Result<u64> {
        let Version { sha256, size, v, .. } = *version;
        if byte == 0 && !self.seen.insert((workspace.0.id, sha256)) {
            return Ok(0);
        }
        let (archive, end) = (&workspace.0.archive, byte + BYTES_A_STEP);
        let part = is_large(size).then_some(byte..end.min(size));
        self.bytes += part.as_ref().map_or(size, |part| part.end.saturating_sub(part.start));
        if byte == 0 {
            self.contents += 1;
            self.workspaces.0.damages.scrubbed.fetch_add(1, Relaxed);
        }
        let is_large = part.is_some();
        if archive.is_intact(sha256, size, part).await? {
            if is_large && end < size {
                return Ok(end);
            }
            if is_large {
                archive.forget_damage(sha256).await?;
            }
            return Ok(0);
        }
        // To read it is to repair it.
        let repaired = match is_large {
            true => archive.recover_large(sha256, size, Damage::Altered).await,
            false => archive.get(sha256, size).await.map(drop),
        };
        if let Err(error) = repaired {
            // That is no damage: the step is repeated, so that no content is passed over.
            if is_away(&error) {
                return Err(error);
            }
            let path = workspace.path_of(file).await.ok().map(|path| path.to_string());
            tracing::error!(workspace = %workspace.0.id, %file, v, path, %error, "a scrub found a version that cannot be read");
        }
        Ok(0)
    }
}

/// Whether a store did not answer.
fn is_away(error: &Error) -> bool {
    error.code == Code::UpstreamUnavailable
}

impl Archive {
    /// Removes the record of damage of a content that is whole again.
    async fn forget_damage(&self, digest: Sha256) -> Result<()> {
        let key = self.keys.damaged(digest);
        if self.table.get(&key).await.map_err(error::port)?.is_some() {
            self.table.commit(vec![Write::delete(key, Expect::Any)]).await.map_err(error::port)?;
        }
        Ok(())
    }

    /// Whether the stores have a content, or a part of it, as it was written, at the least price.
    pub(crate) async fn is_intact(&self, digest: Sha256, size: u64, part: Option<Range<u64>>) -> Result<bool> {
        if !is_blob(size)
            && let Some(text) = self.text(digest, size).await?
        {
            return Ok(text.is_ok());
        }
        match self.blobs.verify(&self.keys.0.to_string(), digest, part).await {
            Ok(is_there) => Ok(is_there),
            Err(ports::Error::Damaged(what)) => {
                tracing::error!(%what, "stored data is damaged");
                Ok(false)
            }
            Err(error) => Err(error::port(error)),
        }
    }
}
