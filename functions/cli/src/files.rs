//! `buildscale files`: the files of a workspace, by path.

mod transfer;

pub(crate) use transfer::{ComparedFile, FileDiff};

use crate::{
    args::{FilesArgs, FilesCommand},
    client::{Body, Client},
    content::{Local, Progress},
    failure::{CliError, Exit},
    locate::{self, absolute},
    output::{Look, Output, one_line},
    table::{Table, moment, when},
    value::{author, number, text},
};
use ::client::UploadPart;
use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use std::{
    io::{self, IsTerminal},
    path::Path,
};

/// Above this length contents travel past the server where it has an address for them, since a function takes and gives no more.
const PAST: u64 = 4 * 1024 * 1024;

/// Runs one of them.
pub(crate) async fn run(args: FilesArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = match &args.command {
        Some(FilesCommand::Put { .. } | FilesCommand::Sync { .. }) => {
            locate::workspace_or_new(&client, args.workspace.as_deref()).await?
        }
        _ => locate::workspace(&client, args.workspace.as_deref()).await?,
    };
    let files = Files { client, workspace };
    let listed = FilesCommand::Ls { path: "/".into(), trash: false, long: false, all: false };
    match args.command.unwrap_or(listed) {
        FilesCommand::Ls { trash: true, .. } => files.trash(out).await,
        FilesCommand::Ls { path, long, all, .. } => files.ls(&absolute(&path), long, all, out).await,
        FilesCommand::Cat { path, version } => files.cat(&path, version, out).await,
        FilesCommand::Put { local, path, if_version } => files.put(&local, &path, if_version, out).await,
        FilesCommand::Get { path, local } => files.get(&absolute(&path), local.as_deref(), out).await,
        FilesCommand::Diff { path, local: Some(local), .. } => files.diff_with(&absolute(&path), &local, out).await,
        FilesCommand::Diff { path, from, to, .. } => files.diff(&absolute(&path), from, to, out).await,
        FilesCommand::Sync { local, path, delete, dry_run } => {
            let path = path.map_or_else(|| place_of(&local), |path| Ok(absolute(&path)))?;
            files.sync(&local, &path, transfer::Sync { delete, dry_run }, out).await
        }
        FilesCommand::History { path } => files.history(&path, out).await,
        FilesCommand::Changes { path, author, op, since, until, limit } => {
            let path = Some(absolute(&path));
            let asked = [("path", path), ("author", author), ("op", op), ("since", since), ("until", until)];
            files.changes(&asked, limit, out).await
        }
        FilesCommand::Restore { path, version: Some(version) } => files.restore_version(&path, version, out).await,
        FilesCommand::Restore { path, version: None } => files.restore_removed(&absolute(&path), out).await,
        FilesCommand::Mv { from, to } => files.mv(&from, &to, out).await,
        FilesCommand::Rm { paths } => files.rm(&paths, out).await,
        FilesCommand::Tag { path, tags } => files.tag(&path, &tags, out).await,
        FilesCommand::Untag { path, tags } => files.untag(&path, &tags, out).await,
        FilesCommand::Link { from, to, kind, remove } => files.link((&from, &to), &kind, remove, out).await,
        FilesCommand::Links { path } => files.links(&path, out).await,
    }
}

/// The folder of the workspace for a folder here, where none is named.
fn place_of(local: &Path) -> Result<String, CliError> {
    let shown = local.display();
    let whole = local.canonicalize().map_err(|source| CliError::Local { path: shown.to_string(), source })?;
    let name = whole.file_name().and_then(|name| name.to_str());
    let nameless = || CliError::Usage(format!("{shown} has no name for a path: name the folder of the workspace"));
    name.map(|name| format!("/projects/{name}")).ok_or_else(nameless)
}

/// The files of one workspace.
pub(crate) struct Files {
    pub(crate) client: Client,
    workspace: String,
}

impl Files {
    /// Of this workspace.
    pub(crate) fn of(client: &Client, workspace: &str) -> Self {
        Self { client: client.clone(), workspace: workspace.to_owned() }
    }

    pub(crate) fn at<'a>(&'a self, rest: &[&'a str]) -> Vec<&'a str> {
        [&["workspaces", self.workspace.as_str(), "files"], rest].concat()
    }

    pub(crate) async fn find(&self, path: &str) -> Result<Value, CliError> {
        locate::file(&self.client, &self.workspace, path).await
    }

    async fn find_if_any(&self, path: &str) -> Result<Option<Value>, CliError> {
        match self.find(path).await {
            Ok(file) => Ok(Some(file)),
            Err(failure) if failure.exit() == Exit::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The path of something named `name` whose destination is `path`: inside `path` when that is a folder.
    async fn destination(&self, path: &str, name: &str) -> Result<String, CliError> {
        let path = absolute(path);
        if let Some(folder) = path.strip_suffix('/') {
            return Ok(format!("{folder}/{name}"));
        }
        match self.find_if_any(&path).await? {
            Some(found) if is_folder(&found) => Ok(format!("{path}/{name}")),
            _ => Ok(path),
        }
    }

    async fn ls(&self, path: &str, long: bool, all: bool, out: &mut Output) -> Result<(), CliError> {
        let query: &[(&str, &str)] = if all { &[("path", path), ("hidden", "true")] } else { &[("path", path)] };
        let entries = self.client.list(&self.at(&[]), "entries", query, usize::MAX).await?;
        if out.is_json() {
            return out.json(&json!({ "entries": entries }));
        }
        let has_status = entries.iter().any(|entry| conversion(entry).is_some());
        let headings = ["v", "size", "changed", "name", "by", "conversion"];
        let columns = headings.len() - usize::from(!has_status);
        let mut table = Table::new(headings.get(..columns).unwrap_or_default());
        for entry in &entries {
            let style = out.style();
            let name = one_line(text(entry, "name"), 255);
            let (name, look) = if is_folder(entry) { (name + "/", Some(Look::Bold)) } else { (name, None) };
            if !long {
                let status = conversion(entry).map(|status| style.paint(Look::Dim, format!("  [{status}]")));
                let name = look.map_or_else(|| name.clone(), |look| style.paint(look, &name));
                out.line(name + &status.unwrap_or_default())?;
                continue;
            }
            let version = if is_folder(entry) { String::new() } else { format!("v{}", number(entry, "v")) };
            let (size, time) = (number(entry, "size").to_string(), when(text(entry, "updated_at"), out));
            let author = author(entry, "author");
            let status = conversion(entry).unwrap_or_default();
            let mut row = vec![(version, None), (size, None), (time, None), (name, look), (author, Some(Look::Dim))];
            row.extend(has_status.then_some((status, Some(Look::Dim))));
            table.row(row);
        }
        table.print(out)
    }

    async fn trash(&self, out: &mut Output) -> Result<(), CliError> {
        let removed = self.client.list(&self.at(&["trash"]), "files", &[], usize::MAX).await?;
        if out.is_json() {
            return out.json(&json!({ "files": removed }));
        }
        for file in &removed {
            let info = file.get("info").unwrap_or(file);
            let slash = if is_folder(info) { "/" } else { "" };
            out.line(format_args!("{}  {}{slash}", moment(text(file, "at")), one_line(text(info, "path"), 4096)))?;
        }
        Ok(())
    }

    async fn cat(&self, path: &str, version: Option<u64>, out: &mut Output) -> Result<(), CliError> {
        let file = self.find(path).await?;
        let id = text(&file, "file_id");
        let version = version.map(|version| version.to_string());
        let place = match &version {
            Some(version) => self.at(&[id, "versions", version, "content"]),
            None => self.at(&[id, "content"]),
        };
        let mut response = match (&version, number(&file, "size") > PAST) {
            (None, true) => self.open_past(id).await?,
            _ => self.client.open(&place, &[]).await?,
        };
        let mut whole = Vec::new();
        // On a terminal, the content itself shows the progress.
        let mut progress = Progress::of("received", number(&file, "size"), !io::stdout().is_terminal());
        while let Some(bytes) = response.chunk().await.map_err(|error| self.client.broken(&error))? {
            progress.add(bytes.len());
            if out.is_json() { whole.extend_from_slice(&bytes) } else { out.bytes(&bytes)? }
        }
        if !out.is_json() {
            return Ok(());
        }
        let v = version.and_then(|version| version.parse().ok()).unwrap_or_else(|| number(&file, "v"));
        let (encoding, content) = match String::from_utf8(whole) {
            Ok(content) => ("text", content),
            Err(bytes) => ("base64", STANDARD.encode(bytes.as_bytes())),
        };
        out.json(&json!({ "path": text(&file, "path"), "v": v, "encoding": encoding, "content": content }))
    }

    async fn put(&self, local: &Path, path: &str, if_version: Option<u64>, out: &mut Output) -> Result<(), CliError> {
        let name = local.file_name().map(transfer::name_there).unwrap_or_default();
        if name == "-" && path.ends_with('/') {
            return Err(CliError::Usage("standard input has no name: give the whole path".into()));
        }
        let content = Local::open(local)?;
        let path = self.destination(path, &name).await?;
        let change = self.save_local(&path, content, if_version).await?;
        self.print_change("wrote", &change, out)
    }

    /// Makes a file, or a new version of it.
    pub(crate) async fn save(&self, path: &str, content: Vec<u8>, if_version: Option<u64>) -> Result<Value, CliError> {
        self.save_local(path, Local::Bytes(content), if_version).await
    }

    /// The same; both in one request and one version, so no reader sees the file without its content.
    pub(crate) async fn save_local(
        &self,
        path: &str,
        content: Local,
        if_version: Option<u64>,
    ) -> Result<Value, CliError> {
        if content.length() > PAST
            && let Some(sha256) = self.send_past(&content).await?
        {
            let body = Body::Json(json!({ "sha256": sha256 }));
            return self.client.put_at(&self.at(&["by-path"]), path, body, if_version).await;
        }
        let body = Body::Bytes(content.bytes().await?.into());
        self.client.put_at(&self.at(&["by-path", "content"]), path, body, if_version).await
    }

    /// Everything below a folder; nothing when there is no such folder.
    pub(crate) async fn tree(&self, folder: &str) -> Result<Vec<Value>, CliError> {
        let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(folder) = folders.pop() {
            let entries = match self.client.list(&self.at(&[]), "entries", &[("path", &folder)], usize::MAX).await {
                Err(failure) if failure.exit() == Exit::NotFound => Vec::new(),
                entries => entries?,
            };
            for entry in entries {
                if is_folder(&entry) { folders.push(text(&entry, "path").to_owned()) } else { found.push(entry) }
            }
        }
        Ok(found)
    }

    /// Puts a file or folder into the trash.
    pub(crate) async fn remove(&self, file: &Value) -> Result<Value, CliError> {
        self.client.change(Method::DELETE, &self.at(&[text(file, "file_id")]), Body::None, None).await
    }

    /// Begins to read the content of a file as it is now.
    pub(crate) async fn open(&self, file: &Value) -> Result<Response, CliError> {
        let id = text(file, "file_id");
        match number(file, "size") > PAST {
            true => self.open_past(id).await,
            false => self.client.open(&self.at(&[id, "content"]), &[]).await,
        }
    }

    /// The content of a file as it is now.
    pub(crate) async fn content(&self, path: &str) -> Result<Vec<u8>, CliError> {
        let file = self.find(path).await?;
        let id = text(&file, "file_id");
        match number(&file, "size") > PAST {
            true => Ok(self.open_past(id).await?.bytes().await.map_err(|error| self.client.broken(&error))?.to_vec()),
            false => self.client.bytes(&self.at(&[id, "content"]), &[]).await,
        }
    }

    /// Begins to read a long content: from its address, or through the server where it has none.
    async fn open_past(&self, id: &str) -> Result<Response, CliError> {
        self.client.download(&self.workspace, id).await
    }

    /// Sends a content to an address of its own, from where an earlier attempt ended, and gives its digest; none where the server has no address for it.
    async fn send_past(&self, content: &Local) -> Result<Option<String>, CliError> {
        let ((sha256, parts), size) = (content.digests().await?, content.length());
        let sha256 = sha256.to_string();
        let open = move |received, part: UploadPart| content.body(part.from, part.size, received);
        if parts.len() > 1 && self.client.upload_in_parts(&self.workspace, (&sha256, size), &parts, open).await? {
            return Ok(Some(sha256));
        }
        let Some(address) = self.client.address_for(&self.workspace, &sha256, size).await? else { return Ok(None) };
        self.client.upload(&address, content.body(0, size, 0).await?, size).await?;
        Ok(Some(sha256))
    }

    async fn history(&self, path: &str, out: &mut Output) -> Result<(), CliError> {
        let file = self.find(path).await?;
        let place = self.at(&[text(&file, "file_id"), "versions"]);
        let versions = self.client.list(&place, "versions", &[], usize::MAX).await?;
        if out.is_json() {
            return out.json(&json!({ "path": text(&file, "path"), "versions": versions }));
        }
        let mut table = Table::new(&["v", "size", "made", "sha256", "by"]);
        for version in &versions {
            let (size, time) = (number(version, "size").to_string(), when(text(version, "at"), out));
            let hash: String = text(version, "sha256").chars().take(12).collect();
            let author = author(version, "author");
            let v = format!("v{}", number(version, "v"));
            table.row(vec![(v, None), (size, None), (time, None), (hash, None), (author, Some(Look::Dim))]);
        }
        table.print(out)
    }

    async fn changes(&self, asked: &[(&str, Option<String>)], limit: usize, out: &mut Output) -> Result<(), CliError> {
        let query: Vec<(&str, &str)> =
            asked.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?))).collect();
        let place = ["workspaces", self.workspace.as_str(), "changes"];
        let changes = self.client.list(&place, "changes", &query, limit).await?;
        if out.is_json() {
            return out.json(&json!({ "changes": changes }));
        }
        let mut table = Table::new(&["when", "change", "path", "by"]);
        for change in &changes {
            let (time, op) = (when(text(change, "at"), out), one_line(text(change, "op"), 20));
            let path = match text(change, "from") {
                "" => text(change, "path").to_owned(),
                from => format!("{from} -> {}", text(change, "path")),
            };
            let author = author(change, "author");
            table.row(vec![(time, None), (op, None), (one_line(&path, 4096), None), (author, Some(Look::Dim))]);
        }
        table.print(out)?;
        if changes.is_empty() { out.notice("no change matches") } else { Ok(()) }
    }

    async fn restore_version(&self, path: &str, version: u64, out: &mut Output) -> Result<(), CliError> {
        let file = self.find(path).await?;
        let version = version.to_string();
        let place = self.at(&[text(&file, "file_id"), "versions", &version, "restore"]);
        let change = self.client.post(&place, &json!({})).await?;
        self.print_change("restored", &change, out)
    }

    async fn restore_removed(&self, path: &str, out: &mut Output) -> Result<(), CliError> {
        let removed = self.client.list(&self.at(&["trash"]), "files", &[], usize::MAX).await?;
        let info = |file: &Value| file.get("info").cloned().unwrap_or_default();
        let here = removed.iter().filter(|file| text(&info(file), "path") == path);
        // Times are written so that their texts are in order.
        let last = here.max_by(|a, b| text(a, "at").cmp(text(b, "at"))).map(info);
        let last = last.ok_or_else(|| {
            CliError::NotFound(format!(
                "nothing that was at {path} is in the trash; `buildscale files ls --trash` lists it, and --version N \
                 restores an old version of a file that is there"
            ))
        })?;
        let change = self.client.post(&self.at(&[text(&last, "file_id"), "restore"]), &json!({})).await?;
        self.print_change("restored", &change, out)
    }

    async fn mv(&self, from: &str, to: &str, out: &mut Output) -> Result<(), CliError> {
        let file = self.find(from).await?;
        let to = self.destination(to, text(&file, "name")).await?;
        let place = self.at(&[text(&file, "file_id")]);
        let change = self.client.change(Method::PATCH, &place, Body::Json(json!({ "path": to })), None).await?;
        self.print_change("moved to", &change, out)
    }

    async fn rm(&self, paths: &[String], out: &mut Output) -> Result<(), CliError> {
        for path in paths {
            let change = self.remove(&self.find(path).await?).await?;
            self.print_change("removed", &change, out)?;
        }
        Ok(())
    }

    fn print_change(&self, what: &str, change: &Value, out: &mut Output) -> Result<(), CliError> {
        if out.is_json() {
            return out.json(change);
        }
        let version = Some(number(change, "v")).filter(|v| *v > 0).map(|v| format!(" v{v}")).unwrap_or_default();
        out.line(format_args!("{what} {}{version}", one_line(text(change, "path"), 4096)))
    }
}

/// How far the conversion of a document is, while people have a reason to look: it waits, or it failed.
fn conversion(entry: &Value) -> Option<String> {
    let conversion = entry.get("conversion")?;
    match (text(conversion, "status"), text(conversion, "reason")) {
        ("failed", reason) => Some(format!("failed: {reason}")),
        (status @ ("queued" | "running"), _) => Some(status.to_owned()),
        _ => None,
    }
}

pub(crate) fn is_folder(info: &Value) -> bool {
    text(info, "kind") == "folder"
}
