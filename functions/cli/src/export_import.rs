//! `buildscale export` and `buildscale import`: a workspace as an archive.

use crate::{
    args::{ExportArgs, ImportArgs},
    client::Client,
    content::Local,
    failure::CliError,
    locate,
    output::{Output, counted, one_line},
    value::{number, text},
};
use ::client::Error;
use serde_json::{Value, json};
use std::{fs, io::Write as _, path::Path};

/// The length of a block of a tar archive, in bytes.
const BLOCK: usize = 512;

/// The end of an archive: the head and the content of `end.json`, one block each, and the two blocks of zeros behind it.
#[derive(Default)]
struct End(Vec<u8>);

impl End {
    fn take(&mut self, piece: &[u8]) {
        let last = piece.len().saturating_sub(4 * BLOCK);
        self.0.extend_from_slice(piece.get(last..).unwrap_or_default());
        let beginning = self.0.len().saturating_sub(4 * BLOCK);
        self.0.drain(..beginning);
    }

    /// How much the archive says that it lacks; nothing for a stream of Git, which lacks nothing or breaks off.
    fn missing(&self) -> u64 {
        let count = self.0.strip_prefix(b"end.json\0").and_then(|_| self.0.get(BLOCK..2 * BLOCK));
        let text = count.and_then(|count| count.split(|byte| *byte == 0).next()).unwrap_or_default();
        serde_json::from_slice::<Value>(text).map_or(0, |count| number(&count, "missing"))
    }
}

/// `buildscale export`. The file has its name only when all of it is there.
pub(crate) async fn export(args: ExportArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, Some(&args.workspace)).await?;
    let format = if args.git { "git" } else { "tar" };
    let mut response = client.open(&["workspaces", &workspace, "export"], &[("format", format)]).await?;
    let mut end = End::default();
    let broken = |error: &reqwest::Error| broken_off(client.broken(error));
    let whole = |end: &End| match end.missing() {
        0 => Ok(()),
        missing => Err(CliError::Incomplete { path: args.file.display().to_string(), missing }),
    };
    if args.file == Path::new("-") {
        while let Some(piece) = response.chunk().await.map_err(|error| broken(&error))? {
            out.bytes(&piece)?;
            end.take(&piece);
        }
        return whole(&end);
    }
    let wrong = |source| CliError::Local { path: args.file.display().to_string(), source };
    let mut name = args.file.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = args.file.with_file_name(name);
    let received = async {
        let (mut file, mut bytes) = (fs::File::create(&part).map_err(wrong)?, 0);
        while let Some(piece) = response.chunk().await.map_err(|error| broken(&error))? {
            file.write_all(&piece).map_err(wrong)?;
            end.take(&piece);
            bytes += piece.len() as u64;
        }
        file.sync_all().map_err(wrong)?;
        fs::rename(&part, &args.file).map_err(wrong)?;
        Ok(bytes)
    };
    let received: Result<u64, CliError> = received.await;
    if received.is_err() {
        drop(fs::remove_file(&part));
    }
    let bytes = received?;
    if out.is_json() {
        let missing = end.missing();
        out.json(&json!({ "workspace_id": workspace, "file": args.file, "bytes": bytes, "missing": missing }))?;
    } else {
        out.line(format_args!("wrote {} ({})", args.file.display(), counted(bytes, "byte")))?;
    }
    whole(&end)
}

/// The failure of an export that had begun: the hub answered, so the advice to start it would mislead.
fn broken_off(failure: CliError) -> CliError {
    match failure {
        CliError::Client(Error::Unreachable { reason, .. }) => CliError::BrokenOff { reason },
        other => other,
    }
}

/// `buildscale import`.
pub(crate) async fn import(args: ImportArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let query: Vec<(&str, &str)> = [
        args.name.as_deref().map(|name| ("name", name)),
        args.git.then_some(("format", "git")),
        args.folder.as_deref().map(|folder| ("folder", folder)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let archive = Local::open(&args.file)?;
    let made = client.import(&query, archive.body(0, archive.length(), 0).await?, archive.length()).await?;
    if out.is_json() {
        return out.json(&made);
    }
    out.line(format_args!(
        "made the workspace {} ({}): {}, {}",
        text(&made, "workspace_id"),
        one_line(text(&made, "name"), 200),
        counted(number(&made, "files"), "file"),
        counted(number(&made, "versions"), "version"),
    ))?;
    for path in made["left_out"].as_array().into_iter().flatten().filter_map(|path| path.as_str()) {
        out.line(format_args!("left out: {}", one_line(path, 200)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(count: &str) -> Vec<u8> {
        let mut archive = vec![7; 3 * BLOCK];
        for block in ["end.json", count] {
            archive.extend_from_slice(block.as_bytes());
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.resize(archive.len() + 2 * BLOCK, 0);
        archive
    }

    #[test]
    fn the_end_of_an_archive_tells_what_it_lacks() {
        for (count, missing) in [(r#"{"files":9}"#, 0), (r#"{"files":9,"missing":3}"#, 3), ("no JSON", 0)] {
            for length in [1, 100, 10_000] {
                let mut end = End::default();
                archive(count).chunks(length).for_each(|piece| end.take(piece));
                assert_eq!((end.missing(), end.0.len()), (missing, 4 * BLOCK), "{count} in pieces of {length}");
            }
        }
        let mut end = End::default();
        end.take(b"done\n");
        assert_eq!(end.missing(), 0);
    }

    #[test]
    fn an_export_that_breaks_off_advises_no_start_of_the_hub() {
        let failure = broken_off(Error::Unreachable { url: "u".into(), reason: "unexpected EOF".into() }.into());
        assert_eq!(failure.to_string(), "the export broke off: unexpected EOF");
        assert!(failure.hint().is_some_and(|hint| hint.contains("its log") && !hint.contains("serve")));
    }
}
