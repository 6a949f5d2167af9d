//! Writes a stream for `git fast-import`: a format of plain text that Git itself reads, so that no library of Git is needed here.
//!
//! Each version of each file is a commit, in the order of time, with its author and time. A file has the path that it has now: the index
//! knows earlier paths for as long as it keeps changes, and versions for ever. Removed files and empty folders are not in it.

use super::{DOMAIN, is_of_git};
use crate::{
    Result, Workspace, WorkspaceInfo,
    portable::{
        export::Sink,
        layout::Written,
        rows::{Exported, Step, Walk, at},
    },
};
use domain::{FilePath, Timestamp};
use std::fmt::Write as _;

pub(crate) async fn write(workspace: Workspace, sink: Sink, info: &WorkspaceInfo) -> Result<()> {
    sink.send("feature done\n").await?;
    let (mut files, mut order) = (Vec::new(), Vec::new());
    let mut walk = Walk::new(workspace.clone());
    while let Some(step) = walk.next().await? {
        let Step::File(file) = step else { continue };
        if is_of_git(&file.path) {
            sink.send(format!("progress left out, as Git keeps its own files there: {}\n", file.path)).await?;
            continue;
        }
        let (number, mut last) = (files.len(), 0);
        loop {
            let versions = file.versions(&workspace, last).await?;
            let Some(newest) = versions.last() else { break };
            last = newest.v;
            order.extend(versions.iter().map(|version| (version.at, number, version.v)));
        }
        files.push(file);
    }
    order.sort_unstable();
    for (_, number, v) in order {
        let Some(file) = files.get(number) else { continue };
        // Versions never change, and stay until their file is purged.
        let Some(version) = file.versions(&workspace, v - 1).await?.into_iter().next().filter(|found| found.v == v)
        else {
            continue;
        };
        commit(&workspace, &sink, info, file, &version).await.map_err(|error| at(error, file, v))?;
    }
    sink.send("done\n").await
}

async fn commit(
    workspace: &Workspace,
    sink: &Sink,
    info: &WorkspaceInfo,
    file: &Exported,
    version: &Written,
) -> Result<()> {
    let Written { v, sha256, size, author, at, call_id } = version;
    let verb = if *v == 1 { "Make" } else { "Change" };
    let mut message = format!(
        "{verb} {}\n\nWorkspace: {}\nFile: {}\nVersion: {v}\n",
        file.path, info.workspace_id, file.entry.file_id
    );
    if let Some(call) = call_id {
        // A text takes what is written to it.
        let _ = writeln!(message, "Call: {call}");
    }
    let (who, when) = (person(author), seconds(*at));
    let head = format!(
        "commit refs/heads/main\nauthor {who} {when} +0000\ncommitter {who} {when} +0000\ndata {}\n{message}\nM 100644 inline {}\ndata {size}\n",
        message.len(),
        quoted(&file.path),
    );
    sink.send(head).await?;
    match &file.projection {
        Some(content) => sink.send(content.clone()).await?,
        None => sink.content(workspace, *sha256, *size).await?,
    }
    sink.send("\n\n").await
}

/// An author as Git has one: a name, and an address that is made of it.
fn person(author: &str) -> String {
    let name: String = author.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).collect();
    let address: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{name} <{address}@{DOMAIN}>")
}

/// Seconds since 1970. Git takes none before.
fn seconds(at: Timestamp) -> i64 {
    (at.as_millis() / 1000).max(0)
}

/// A path in quotes, as Git reads one. It has no control characters.
fn quoted(path: &FilePath) -> String {
    format!("\"{}\"", path.relative().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_paths_and_times_are_as_git_reads_them() {
        assert_eq!(person("agent:a<b>\nc"), "agent:abc <agent-abc@buildscale.invalid>");
        assert_eq!(seconds(Timestamp::from_millis(-5)), 0);
        let path = FilePath::parse(r#"/a "b"\c/.GIT/x"#);
        assert_eq!(path.as_ref().map(quoted).ok(), Some(r#""a \"b\"\\c/.GIT/x""#.to_owned()));
        assert_eq!(path.as_ref().map(is_of_git).ok(), Some(true));
    }
}
