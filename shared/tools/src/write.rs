//! `write`, `mkdir`, `mv` and `rm`.

use crate::{
    call::{self, Answer, Call, Done, file_updated},
    effects::{Declaration, Declare},
};
use domain::{Error, text::counted};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use workspace::{Change, FileKind};

pub(crate) const WRITE: &str =
    "Write a whole file, with the folders above it. One that is there has to be read first; edit changes a part.";
pub(crate) const MKDIR: &str = "Make a folder, and those above it; write makes folders by itself.";
pub(crate) const MV: &str = "Move or rename a file or a folder with all in it. The new path must be free; folders above it are \
    made. Versions are kept.";
pub(crate) const RM: &str = "Put a file, or a folder with all in it, into the trash. People can restore it from there.";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    /// The file.
    path: String,
    /// The whole content.
    content: String,
    /// The hash of the content that this replaces; the one that you read last by default.
    last_read_hash: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mkdir {
    /// The folder.
    path: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mv {
    /// The path to move.
    from: String,
    /// Its new path, with its name.
    to: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rm {
    /// The path to remove.
    path: String,
}

impl Declare for WriteFile {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.writes("path", &self.path)
    }
}

impl Declare for Mkdir {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.writes("path", &self.path)
    }
}

impl Declare for Mv {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.removes("from", &self.from)?;
        into.writes("to", &self.to)
    }
}

impl Declare for Rm {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.removes("path", &self.path)
    }
}

pub(crate) async fn write(call: &Call<'_>, args: WriteFile) -> Answer {
    let path = call::new_file("path", &args.path)?;
    let last_read = call::digest(args.last_read_hash.as_deref())?;
    let change = match call.applied().await? {
        Some(done) => done,
        None => {
            let expect = call.expectation(&path, last_read).await?;
            call.workspace.write(&path, args.content, expect, &call.writer()).await?
        }
    };
    let hash = change.sha256.map(|digest| digest.to_string()).unwrap_or_default();
    let size = counted(change.size, "byte");
    let output = format!("wrote {}: version {}, {size}, hash {hash}", change.path, change.v);
    Ok(written(&change, output))
}

/// The answer of a call that wrote one version.
pub(crate) fn written(change: &Change, output: String) -> Done {
    let Change { path, file_id, v, size, sha256, .. } = change;
    let result = json!({ "path": path, "file_id": file_id, "v": v, "size": size, "hash": sha256 });
    Done { output, result, seen: vec![(path.clone(), *sha256)], events: file_updated(change, None), ..Done::default() }
}

pub(crate) async fn mkdir(call: &Call<'_>, args: Mkdir) -> Answer {
    let path = call::path("path", &args.path)?;
    let change = call.workspace.mkdir(&path, &call.writer()).await?;
    let result = json!({ "path": change.path, "file_id": change.file_id });
    Ok(Done { output: format!("{} is there", change.path), result, ..Done::default() })
}

pub(crate) async fn mv(call: &Call<'_>, args: Mv) -> Answer {
    let (from, to) = (call::path("from", &args.from)?, call::path("to", &args.to)?);
    // A call that runs again finds nothing there.
    if let Err(names_folder) = call::new_file("to", &args.to)
        && call.workspace.stat(&from).await.is_ok_and(|info| info.kind != FileKind::Folder)
    {
        return Err(names_folder);
    }
    let change = call.workspace.mv(&from, &to, &call.writer()).await?;
    // Files that were read before the move still count as read.
    let mut seen = Vec::new();
    for (path, digest) in call.seen.iter().filter(|(path, _)| from != to && path.is_within(&from)) {
        let below = path.as_str().strip_prefix(from.as_str()).unwrap_or_default();
        seen.push((path.clone(), None));
        seen.push((call::path("to", &format!("{to}{below}"))?, *digest));
    }
    let result = json!({ "from": from, "path": to, "file_id": change.file_id, "v": change.v });
    let events = if change.kind == FileKind::Folder { Vec::new() } else { file_updated(&change, None) };
    Ok(Done { output: format!("moved {from} to {to}"), result, seen, events, ..Done::default() })
}

pub(crate) async fn rm(call: &Call<'_>, args: Rm) -> Answer {
    let path = call::path("path", &args.path)?;
    let change = call.workspace.rm(&path, &call.writer()).await?;
    let gone = call.seen.keys().filter(|seen| seen.is_within(&path) && **seen != path);
    let seen = gone.cloned().chain([path.clone()]).map(|path| (path, None)).collect();
    let result = json!({ "path": path, "file_id": change.file_id });
    let output = format!("removed {path}; it is in the trash as {}", change.file_id);
    let events = file_updated(&change, None);
    Ok(Done { output, result, seen, events, ..Done::default() })
}
