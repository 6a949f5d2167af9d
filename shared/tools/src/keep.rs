//! `keep` of `exec`: files that a command leaves below `$TMPDIR` become versions, in the way of the tool `write` (spec 000 §7).
//!
//! No agent has read such a file before. So a file is replaced only if it is as it was when the command began, and its new content does not count as
//! read. A content that is current makes no version: a worker that follows the command after a crash writes nothing twice.

use crate::{
    call::{self, Call, Done},
    caps,
    command::CommandResult,
};
use domain::{ChatEvent, Code, Error, FileId, FilePath, Sha256, Timestamp, text::counted};
use ports::{KeptFile, LeftOut};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use workspace::{Action, Expect, FileKind, Writer};

/// How much about the files is told to a model, in bytes; programs get all of it.
const MOST_TOLD: usize = 4 * 1024;
/// The most bytes of one line of that.
const MOST_LINE: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keep {
    /// A file or a folder below $TMPDIR, such as out/chart.png.
    pub from: String,
    /// Its path in the workspace, such as /projects/app/chart.png; the files of a folder get their paths below it.
    pub to: String,
}

impl Keep {
    /// Its path from the scratch folder.
    pub fn source(&self) -> Result<FilePath, Error> {
        if self.from.is_empty() || self.from.starts_with(['/', '$', '~']) {
            let why = format!("{:?} is no path below $TMPDIR", self.from);
            return Err(Error::invalid("keep", why).hint("name it from there, such as out/chart.png"));
        }
        call::path("keep", &format!("/{}", self.from))
    }

    /// The name of an entry at or below it, for people and models.
    fn name(&self, below: &FilePath) -> String {
        let below = if below.is_root() { "" } else { below.as_str() };
        format!("{}{below}", self.from.trim_end_matches('/'))
    }

    /// The path of a file at or below it.
    fn place(&self, below: &FilePath) -> Result<FilePath, Error> {
        match below.is_root() {
            true => call::new_file("keep", &self.to),
            false => call::path("keep", &format!("{}{below}", self.to)),
        }
    }
}

/// Refuses a command that may not write where it is asked to keep files.
pub(crate) fn demand(call: &Call<'_>, keep: &[Keep]) -> Result<(), Error> {
    keep.iter().try_for_each(|one| call.workspace.demand(Action::Write, &call::path("keep", &one.to)?))
}

/// A file of the workspace that has the content of one that a command left.
struct KeptVersion {
    path: FilePath,
    file_id: FileId,
    v: u64,
    /// Whether the call made this version.
    is_new: bool,
}

/// Writes the files of a command, and adds the outcome of each to the answer of the call.
pub(crate) async fn write(call: &Call<'_>, keep: &[Keep], ran: &CommandResult, done: &mut Done) {
    if keep.is_empty() {
        return;
    }
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for LeftOut { of, below, why } in &ran.left_out {
        left_out.extend(keep.get(*of).map(|one| (one.name(below), why.clone())));
    }
    for (of, one) in keep.iter().enumerate() {
        let files: Vec<&KeptFile> = ran.kept.iter().filter(|file| file.of == of).collect();
        if files.is_empty() && ran.left_out.iter().all(|left| left.of != of) {
            let why = "the sandbox has an earlier version, which keeps no files: once it is ended, the next one does";
            left_out.push((one.name(&FilePath::root()), why.into()));
        }
        for file in files {
            let from = one.name(&file.below);
            match version(call, one, file, ran.began).await {
                Ok(version) => kept.push((from, version)),
                Err(error) => left_out.push((from, error.message)),
            }
        }
    }
    let author = call.by.to_string();
    for (_, KeptVersion { path, file_id, v, .. }) in kept.iter().filter(|(_, version)| version.is_new) {
        let (path, author) = (path.clone(), author.clone());
        done.events.push(ChatEvent::FileUpdated { path, v: *v, file_id: *file_id, author, call_id: None });
    }
    tell(&kept, &left_out, done);
}

/// Makes the content of a file of a command that began at this time the newest version at its place.
async fn version(call: &Call<'_>, one: &Keep, file: &KeptFile, began: Timestamp) -> Result<KeptVersion, Error> {
    let path = one.place(&file.below)?;
    let content = &file.content;
    let expect = match call.workspace.stat(&path).await {
        // A folder, a chat file: the workspace refuses it with a precise error.
        Ok(info) if info.kind != FileKind::File => Expect::Any,
        // The caller may not read it.
        Ok(info) if info.sha256.is_none() => call.expectation(&path, None).await?,
        Ok(info) if info.size == content.len() as u64 && info.sha256 == Some(Sha256::of(content)) => {
            // By an earlier attempt of the call, if it is younger than the command.
            let is_new = info.updated_at > began && info.author == call.by.to_string();
            return Ok(KeptVersion { path, file_id: info.file_id, v: info.v, is_new });
        }
        Ok(info) if info.updated_at > began => {
            let why = format!("{} has changed {path} since the command began (version {})", info.author, info.v);
            return Err(Error::new(Code::StaleVersion, why));
        }
        Ok(info) => Expect::Exactly(info.file_id, info.v),
        Err(error) if error.code == Code::NotFound => Expect::Absent,
        Err(error) => return Err(error),
    };
    let writer = Writer { key: None, ..call.writer() };
    let change = call.workspace.write(&path, content.clone(), expect, &writer).await?;
    Ok(KeptVersion { path, file_id: change.file_id, v: change.v, is_new: true })
}

/// The failure of a command of which something could not be kept, by the result of its call; none where everything was.
pub(crate) fn failure(result: &Value) -> Option<Error> {
    let left_out = result.get("left_out")?.as_array()?;
    let text = |key: &str| left_out.first()?.get(key)?.as_str();
    let (from, why) = (text("from")?, text("why")?);
    let count = counted(left_out.len(), "file");
    let message = format!("{count} of the command could not be kept, the first is {from}: {why}");
    Some(Error::new(Code::Unprocessable, message))
}

/// Adds a line per file to the output, as many as fit, and all of them to the result.
fn tell(kept: &[(String, KeptVersion)], left_out: &[(String, String)], done: &mut Done) {
    let mut lines: Vec<String> = left_out.iter().map(|(from, why)| format!("not kept: {from}: {why}")).collect();
    lines.extend(kept.iter().map(|(from, KeptVersion { path, v, is_new, .. })| {
        let unchanged = if *is_new { "" } else { ", unchanged" };
        format!("kept {from} as {path} (version {v}{unchanged})")
    }));
    let (mut told, mut cut) = (0, 0);
    for line in lines {
        let line = caps::line(&line, MOST_LINE);
        told += line.len();
        if told > MOST_TOLD {
            cut += 1;
            continue;
        }
        done.output.push('\n');
        done.output.push_str(&line);
    }
    if cut > 0 {
        done.truncated = true;
        done.output.push_str(&format!("\n[cut here: {} more]", counted(cut, "file")));
    }
    let kept = kept.iter().map(
        |(from, KeptVersion { path, v, is_new, .. })| json!({ "from": from, "path": path, "v": v, "changed": is_new }),
    );
    let left_out = left_out.iter().map(|(from, why)| json!({ "from": from, "why": why }));
    done.result["kept"] = kept.collect::<Vec<Value>>().into();
    done.result["left_out"] = left_out.collect::<Vec<Value>>().into();
}
