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
use serde_json::json;
use std::{fs, io::Write as _, path::Path};

/// `buildscale export`. The file has its name only when all of it is there.
pub(crate) async fn export(args: ExportArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, Some(&args.workspace)).await?;
    let format = if args.git { "git" } else { "tar" };
    let mut response = client.open(&["workspaces", &workspace, "export"], &[("format", format)]).await?;
    if args.file == Path::new("-") {
        while let Some(piece) = response.chunk().await.map_err(|error| client.broken(&error))? {
            out.bytes(&piece)?;
        }
        return Ok(());
    }
    let wrong = |source| CliError::Local { path: args.file.display().to_string(), source };
    let mut name = args.file.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = args.file.with_file_name(name);
    let received = async {
        let (mut file, mut bytes) = (fs::File::create(&part).map_err(wrong)?, 0);
        while let Some(piece) = response.chunk().await.map_err(|error| client.broken(&error))? {
            file.write_all(&piece).map_err(wrong)?;
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
        return out.json(&json!({ "workspace_id": workspace, "file": args.file, "bytes": bytes }));
    }
    out.line(format_args!("wrote {} ({})", args.file.display(), counted(bytes, "byte")))
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
