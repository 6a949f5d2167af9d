//! Writing a batch: at most one file per kind, then the rows of the index.

use super::{Artifact, ArtifactKind, Artifacts, Batch, Entry, Owner, index, path};
use domain::{Code, Error, Principal, Sha256};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use workspace::{Access, Expect, Writer};

/// The longest file, in bytes. An artifact that does not fit has its digest in the index, and nothing in the file.
const MAX_FILE: usize = 16 * 1024 * 1024;

impl Artifacts {
    /// Keeps a batch; how many files it is in. The same batch again changes nothing.
    ///
    /// # Errors
    /// The workspace's and the table's. Artifacts that were written until then are whole: files first, and no row without its file.
    pub async fn flush(&self, owner: &Owner, mut batch: Batch) -> Result<u32, Error> {
        batch.end();
        let rules = batch.rules().clone();
        let (mut texts, mut artifacts) =
            (BTreeMap::<ArtifactKind, String>::new(), Vec::with_capacity(batch.entries.len()));
        let mut numbers = BTreeMap::<String, u32>::new();
        for mut entry in batch.entries {
            self.redactor.value(&mut entry.content);
            let text = texts.entry(entry.kind).or_default();
            let artifact = lay(owner, entry, &mut numbers, text, rules.max_bytes)?;
            artifacts.push(artifact);
        }
        if artifacts.is_empty() {
            return Ok(0);
        }
        let by = Principal::Task { task: owner.task, user: owner.user };
        let workspace = self.workspaces.open(owner.workspace, Access::of(&by, None)).await?;
        let writer = Writer::new(by);
        let mut files = 0;
        for (kind, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            workspace.write(&path(owner.task, kind)?, text, Expect::Any, &writer).await?;
            files += 1;
        }
        index::write(&*self.table, owner.workspace, &artifacts, rules.retention_days).await?;
        Ok(files)
    }

    /// The content of an artifact.
    ///
    /// # Errors
    /// `NOT_FOUND` when it was too large to keep, or its file is gone; `CONFLICT` when the file was changed by others; those of reading the
    /// workspace.
    pub async fn read(&self, owner: domain::WorkspaceId, artifact: &Artifact) -> Result<Value, Error> {
        let Some(offset) = artifact.offset else {
            return Err(Error::not_found("content of", &artifact.id).hint("it was too large; its digest was kept"));
        };
        let workspace =
            self.workspaces.open(owner, Access::platform("artifacts are read with the history of their task")).await?;
        // The line's frame is at most as long as the longest names in it.
        let end = offset + artifact.bytes + FRAME;
        let content = workspace.read(&artifact.path, Some(offset..end)).await?;
        let changed = || Error::new(Code::Conflict, format!("{} was changed after the task ended", artifact.path));
        let text = String::from_utf8_lossy(&content.bytes);
        let line = text.lines().next().ok_or_else(changed)?;
        let mut line: Value = serde_json::from_str(line).map_err(|_| changed())?;
        let content = line.get_mut("content").map(Value::take).ok_or_else(changed)?;
        let is_same = Sha256::of(content.to_string().as_bytes()) == artifact.sha256;
        if is_same { Ok(content) } else { Err(changed()) }
    }
}

/// The most bytes of a line besides its content: an id, a node, a schema, each escaped.
const FRAME: u64 = 16 * 1024;

fn lay(
    owner: &Owner,
    entry: Entry,
    numbers: &mut BTreeMap<String, u32>,
    text: &mut String,
    max_bytes: usize,
) -> Result<Artifact, Error> {
    let Entry { kind, node, attempt, schema, at, content } = entry;
    let place = match &node {
        Some(node) => format!("{node}/{attempt}/{}", kind.name()),
        None => format!("/{}", kind.name()),
    };
    let number = numbers.entry(place.clone()).and_modify(|number| *number += 1).or_insert(1);
    let id = format!("{place}/{number}");
    let json = content.to_string();
    let (bytes, sha256) = (json.len(), Sha256::of(json.as_bytes()));
    let line = json!({
        "id": id, "node": node, "attempt": attempt, "kind": kind, "schema": schema, "at": at, "content": content,
    });
    let line = line.to_string();
    let fits = bytes <= max_bytes && text.len() + line.len() < MAX_FILE && line.len() - bytes <= FRAME as usize;
    let offset = fits.then_some(text.len() as u64);
    if fits {
        text.push_str(&line);
        text.push('\n');
    }
    let (task_id, flow, path, bytes) = (owner.task, owner.flow.clone(), path(owner.task, kind)?, bytes as u64);
    Ok(Artifact { id, task_id, flow, kind, node, attempt, schema, at, path, offset, bytes, sha256 })
}
