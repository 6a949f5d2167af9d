//! Files and folders to this machine and back, and their differences. A content goes through [`Files::content`] and [`Files::save`], which
//! know how long ones travel.

use super::{Files, is_folder};
use crate::{
    content::{Local, Progress},
    failure::CliError,
    output::{Output, clean, counted, one_line},
    render::words::of_diff,
    value::{number, text},
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Component, Path, PathBuf},
};

/// The longest content whose changes are shown; of longer ones it is only told that they differ.
const COMPARED: u64 = 1024 * 1024;

/// How a folder is made like another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sync {
    /// Whether files that are not here go into the trash.
    pub(crate) delete: bool,
    /// Whether it is only told.
    pub(crate) dry_run: bool,
}

impl Files {
    /// The paths of files below a folder, some thousand at most.
    pub(crate) async fn paths(&self, folder: &str, most: usize) -> Result<Vec<String>, CliError> {
        let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        // Hidden system files of a hub are no help to a person who types a path.
        while let Some(folder) = folders.pop().filter(|_| found.len() < most) {
            for entry in self.client.list(&self.at(&[]), "entries", &[("path", &folder)], most).await? {
                let path = text(&entry, "path").to_owned();
                match is_folder(&entry) {
                    true if !["/chats", "/tasks"].contains(&path.as_str()) => folders.push(path),
                    true => {}
                    false => found.push(path),
                }
            }
        }
        found.sort();
        found.truncate(most);
        Ok(found)
    }

    /// Brings a file or a folder here.
    pub(crate) async fn get(&self, path: &str, local: Option<&Path>, out: &mut Output) -> Result<(), CliError> {
        let found = self.find(path).await?;
        if local == Some(Path::new("-")) {
            return out.bytes(&self.content(path).await?);
        }
        let name = text(&found, "name").to_owned();
        if !is_folder(&found) {
            let to = match local {
                Some(local) if local.is_dir() => local.join(&name),
                Some(local) => local.to_owned(),
                None => PathBuf::from(&name),
            };
            self.bring(&found, &to).await?;
            return print_paths(&[to.display().to_string()], "wrote", out);
        }
        let to = local.map_or_else(|| PathBuf::from(if name.is_empty() { "workspace" } else { &name }), Path::to_owned);
        let (mut written, mut of_git) = (Vec::new(), 0_usize);
        for file in self.tree(path).await? {
            let from = text(&file, "path");
            let Some(rest) = below(from, path) else { continue };
            let place = to.join(rest);
            if is_of_git(&place) {
                of_git += 1;
                continue;
            }
            if place.is_file() && Local::open(&place)?.digests().await?.0.to_string() == text(&file, "sha256") {
                continue;
            }
            self.bring(&file, &place).await?;
            written.push(place.display().to_string());
        }
        if of_git > 0 {
            let files = counted(of_git, "file");
            out.notice(format_args!("left in the workspace: {files} in .git, as git would run what is in there"))?;
        }
        print_paths(&written, "wrote", out)
    }

    /// Writes the content of a file here, piece by piece. Until all of it is there it has another name.
    async fn bring(&self, file: &Value, to: &Path) -> Result<(), CliError> {
        let failed = |source| CliError::Local { path: to.display().to_string(), source };
        if let Some(folder) = to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        // A pipe, a device or a link is written to, and not replaced.
        if fs::symlink_metadata(to).is_ok_and(|there| !there.is_file()) {
            return self.receive(file, to).await;
        }
        let part = part_of(to);
        let received = match self.receive(file, &part).await {
            Ok(()) => fs::rename(&part, to).map_err(failed),
            Err(error) => Err(error),
        };
        received.inspect_err(|_| drop(fs::remove_file(&part)))
    }

    async fn receive(&self, file: &Value, to: &Path) -> Result<(), CliError> {
        let failed = |source| CliError::Local { path: to.display().to_string(), source };
        let mut response = self.open(file).await?;
        let mut progress = Progress::of("received", number(file, "size"), true);
        let mut out = fs::File::create(to).map_err(failed)?;
        while let Some(bytes) = response.chunk().await.map_err(|error| self.client.broken(&error))? {
            progress.add(bytes.len());
            out.write_all(&bytes).map_err(failed)?;
        }
        Ok(())
    }

    /// Makes a folder of the workspace as one here is.
    pub(crate) async fn sync(&self, local: &Path, path: &str, how: Sync, out: &mut Output) -> Result<(), CliError> {
        let root = path.trim_end_matches('/');
        let mut there: HashMap<String, Value> =
            self.tree(path).await?.into_iter().map(|file| (text(&file, "path").to_owned(), file)).collect();
        let (mut changed, mut taken) = (Vec::new(), HashSet::new());
        for (rest, place) in walk(local)? {
            let to = format!("{root}/{rest}");
            if !taken.insert(to.clone()) {
                let name = one_line(&place.display().to_string(), 4096);
                out.notice(format_args!("left here: {name}: another file has its name in the workspace"))?;
                continue;
            }
            let content = Local::open(&place)?;
            let hash = content.digests().await?.0.to_string();
            if there.remove(&to).is_some_and(|file| text(&file, "sha256") == hash) {
                continue;
            }
            if !how.dry_run {
                self.save_local(&to, content, None).await?;
            }
            changed.push(to);
        }
        print_paths(&changed, if how.dry_run { "would write" } else { "wrote" }, out)?;
        if !how.delete {
            return Ok(());
        }
        let mut gone: Vec<(String, Value)> =
            there.into_iter().filter(|(to, file)| !belongs_there(to, root, file)).collect();
        gone.sort_by(|a, b| a.0.cmp(&b.0));
        for (_, file) in gone.iter().filter(|_| !how.dry_run) {
            self.remove(file).await?;
        }
        let gone: Vec<String> = gone.into_iter().map(|(path, _)| path).collect();
        print_paths(&gone, if how.dry_run { "would remove" } else { "removed" }, out)
    }

    /// Shows the differences between two versions.
    pub(crate) async fn diff(
        &self,
        path: &str,
        from: Option<u64>,
        to: Option<u64>,
        out: &mut Output,
    ) -> Result<(), CliError> {
        let file = self.find(path).await?;
        let to = to.unwrap_or_else(|| number(&file, "v"));
        let Some(from) = from.or_else(|| to.checked_sub(1).filter(|from| *from > 0)) else {
            return Err(CliError::Usage(format!("{path} has one version: there is nothing to compare it with")));
        };
        let answer = self.compare(&file, from, to).await?;
        if out.is_json() {
            return out.json(&answer);
        }
        match answer.get("diff").and_then(Value::as_str) {
            Some(diff) => paint(diff, out),
            None => out.notice("one of the versions is no text, or too long to compare"),
        }
    }

    /// Shows the differences from the workspace to a file or a folder here.
    pub(crate) async fn diff_with(&self, path: &str, local: &Path, out: &mut Output) -> Result<(), CliError> {
        let found = self.find(path).await?;
        let mut pairs: Vec<(Option<Value>, PathBuf)> = Vec::new();
        if is_folder(&found) {
            let mut here: HashMap<String, PathBuf> = walk(local)?.into_iter().rev().collect();
            for file in self.tree(path).await? {
                let Some(rest) = below(text(&file, "path"), path) else { continue };
                let place = rest.to_str().and_then(|rest| here.remove(rest)).unwrap_or_else(|| local.join(rest));
                pairs.push((Some(file), place));
            }
            pairs.extend(here.into_values().map(|place| (None, place)));
            pairs.sort_by(|a, b| a.1.cmp(&b.1));
        } else {
            let place = if local.is_dir() { local.join(text(&found, "name")) } else { local.to_owned() };
            pairs.push((Some(found), place));
        }
        let mut different = Vec::new();
        for (file, place) in pairs {
            let at = file.as_ref().map(|file| text(file, "path").to_owned());
            let content = place.is_file().then(|| Local::open(&place)).transpose()?;
            let shown = place.display().to_string();
            let state = match (&file, &content) {
                (Some(file), Some(content)) => {
                    if content.digests().await?.0.to_string() == text(file, "sha256") {
                        continue;
                    }
                    if !out.is_json() {
                        paint(&self.differences(file, content, &shown).await?, out)?;
                    }
                    "different"
                }
                (Some(file), None) => {
                    if !out.is_json() {
                        out.line(format_args!("only in the workspace: {}", one_line(text(file, "path"), 4096)))?;
                    }
                    "only_there"
                }
                (None, _) => {
                    if !out.is_json() {
                        out.line(format_args!("only here: {}", one_line(&shown, 4096)))?;
                    }
                    "only_here"
                }
            };
            different.push(json!({ "path": at, "local": shown, "state": state }));
        }
        match (out.is_json(), different.is_empty()) {
            (true, _) => out.json(&json!({ "files": different })),
            (false, true) => out.notice("nothing differs"),
            (false, false) => Ok(()),
        }
    }

    /// The differences from a file of the workspace to a content here, as a diff where both are texts.
    async fn differences(&self, file: &Value, content: &Local, place: &str) -> Result<String, CliError> {
        let path = text(file, "path");
        let told = format!("{path} and {place} differ");
        if number(file, "size").max(content.length()) > COMPARED {
            return Ok(told);
        }
        Ok(match (String::from_utf8(self.content(path).await?), String::from_utf8(content.bytes().await?)) {
            (Ok(there), Ok(here)) => {
                let diff = similar::TextDiff::from_lines(there.as_str(), here.as_str());
                diff.unified_diff().header(path, place).to_string()
            }
            _ => told,
        })
    }

    async fn compare(&self, file: &Value, from: u64, to: u64) -> Result<Value, CliError> {
        let (from, to) = (from.to_string(), to.to_string());
        self.client.get(&self.at(&[text(file, "file_id"), "diff"]), &[("from", &from), ("to", &to)]).await
    }

    /// The changes in a file. A new file, one that moved and one that is gone are named as such.
    pub(crate) async fn changes_in(&self, compared: &ComparedFile) -> Result<FileDiff, CliError> {
        let heading = |words: String| format!("{}  {words}", one_line(&compared.path, 400));
        let without_lines = |words: String| FileDiff { heading: heading(words), diff: String::new() };
        if matches!(compared.versions, Some((_, 0))) {
            return Ok(without_lines("gone".into()));
        }
        let file = self.find(&compared.path).await?;
        let v = number(&file, "v");
        let (from, to) = compared.versions.unwrap_or((v.saturating_sub(1), v));
        if from == 0 {
            return Ok(without_lines(format!("new, v{v}")));
        }
        if from == to {
            return Ok(without_lines(format!("moved, v{v}")));
        }
        let answer = self.compare(&file, from, to).await?;
        Ok(match answer.get("diff").and_then(Value::as_str) {
            Some(diff) => FileDiff { heading: heading(format!("v{from} → v{to}")), diff: diff.to_owned() },
            None => without_lines(format!("v{from} → v{to}: one of them is no text, or too long to compare")),
        })
    }

    /// Shows them.
    pub(crate) async fn show_diff(&self, compared: &ComparedFile, out: &mut Output) -> Result<(), CliError> {
        let FileDiff { heading, diff } = self.changes_in(compared).await?;
        out.notice(heading)?;
        paint(&diff, out)
    }
}

/// A file whose versions are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ComparedFile {
    pub(crate) path: String,
    /// The version before and the one after: 0 before a new file, and 0 after one that is gone. None: the last change of the file.
    pub(crate) versions: Option<(u64, u64)>,
}

/// The changes in a file.
#[derive(Debug)]
pub(crate) struct FileDiff {
    /// The path and the versions, in one line.
    pub(crate) heading: String,
    /// A unified diff; empty where there is nothing to compare.
    pub(crate) diff: String,
}

fn paint(diff: &str, out: &mut Output) -> Result<(), CliError> {
    for line in diff.lines() {
        let look = of_diff(line);
        let line = clean(line);
        out.line(look.map_or_else(|| line.clone(), |look| out.style().paint(look, &line)))?;
    }
    Ok(())
}

fn print_paths(paths: &[String], what: &str, out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(&json!({ "done": what, "paths": paths }));
    }
    paths.iter().try_for_each(|path| out.line(format_args!("{what} {}", one_line(path, 4096))))?;
    if paths.is_empty() && what.ends_with("wrote") { out.notice("nothing differs") } else { Ok(()) }
}

/// The temporary name of a file while its content comes. The name of the file is cut in it: that may be as long as the disk allows, and this one has
/// more.
fn part_of(to: &Path) -> PathBuf {
    // Of the 255 bytes that names have on the usual disks. Each byte that is no text becomes three.
    const MOST: usize = 200;
    let name = to.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.get(..name.floor_char_boundary(MOST)).unwrap_or_default();
    to.with_file_name(format!(".{name}.part"))
}

/// Whether a file of the workspace below `root` has no place in a folder here, so that its absence says nothing: hidden files are never brought, and
/// attachments are made of a message by the workspace.
fn belongs_there(path: &str, root: &str, file: &Value) -> bool {
    let rest = path.strip_prefix(root).unwrap_or(path);
    rest.split('/').any(|name| name.starts_with('.')) || file.get("derived_from").is_some_and(Value::is_string)
}

/// The path of a file below a folder, if it stays below one here.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a Path> {
    let rest = Path::new(path.strip_prefix(folder.trim_end_matches('/'))?.trim_start_matches('/'));
    let stays = rest.components().all(|part| matches!(part, Component::Normal(_)));
    Some(rest).filter(|rest| stays && !rest.as_os_str().is_empty())
}

/// Whether a file is one of git's own. Git runs programs that they name, and anybody who writes in the workspace could name one. Some disks take names in
/// any letters for the same.
fn is_of_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

/// The name that a file or folder here has in a workspace, which takes none that people could not tell from another: macOS writes letters in parts.
pub(super) fn name_there(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    Some(domain::nearest_new_name(&name)).filter(|nearest| !nearest.is_empty()).unwrap_or_else(|| name.into_owned())
}

/// The files of a folder here, by their paths in a folder of a workspace, without hidden ones and links.
fn walk(folder: &Path) -> Result<Vec<(String, PathBuf)>, CliError> {
    let (mut files, mut open) = (Vec::new(), vec![(folder.to_path_buf(), String::new())]);
    while let Some((place, above)) = open.pop() {
        let failed = |source| CliError::Local { path: place.display().to_string(), source };
        for entry in fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (name, kind) = (name_there(&entry.file_name()), entry.file_type().map_err(failed)?);
            if name.starts_with('.') {
                continue;
            }
            if kind.is_dir() {
                open.push((entry.path(), format!("{above}{name}/")));
            } else if kind.is_file() {
                files.push((format!("{above}{name}"), entry.path()));
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloaded_files_stay_below_the_folder() {
        assert_eq!(below("/a/b/c.md", "/a"), Some(Path::new("b/c.md")));
        assert_eq!(below("/a.md", "/"), Some(Path::new("a.md")));
        assert_eq!(below("/a/../../etc/passwd", "/a"), None);
        assert_eq!(below("/a", "/a"), None);
    }

    #[test]
    fn the_longest_name_has_a_name_for_the_time_before_it_is_whole() {
        assert_eq!(part_of(Path::new("a/b c.md")), Path::new("a/.b c.md.part"));
        for long in ["n".repeat(255), "漢".repeat(85)] {
            let part = part_of(&Path::new("a").join(&long));
            let name = part.file_name().unwrap_or_default();
            assert!(name.len() <= 255 && part.starts_with("a"), "{}", part.display());
            let text = name.to_string_lossy().into_owned();
            assert!(text.starts_with('.') && text.ends_with(".part") && long.starts_with(&text[1..text.len() - 5]));
        }
    }

    #[test]
    fn what_is_never_brought_is_not_missed_here_either() {
        let made = json!({ "derived_from": "019bf537-f228-7cd3-aa1c-3da8af302e12" });
        for (path, file, belongs) in [
            ("/projects/app/a.md", json!({}), false),
            ("/projects/app/a.md", json!({ "derived_from": null }), false),
            ("/projects/app/.env", json!({}), true),
            ("/projects/app/.github/workflows/ci.yaml", json!({}), true),
            ("/projects/app/mail.eml.attachments/a.pdf", made, true),
        ] {
            assert_eq!(belongs_there(path, "/projects/app", &file), belongs, "{path}");
        }
        // The folder itself may be a hidden one.
        assert!(!belongs_there("/projects/.app/a.md", "/projects/.app", &json!({})));
    }

    #[test]
    fn files_have_names_that_a_workspace_takes() {
        for (here, there) in
            [("cafe\u{301}.txt", "café.txt"), (" a ", "a"), ("a\u{200b}b\n", "ab"), (" ", " "), ("😀.md", "😀.md")]
        {
            assert_eq!(name_there(OsStr::new(here)), there, "{here:?}");
        }
    }

    #[test]
    fn hidden_files_and_links_stay_here() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        fs::create_dir_all(folder.path().join("src/.git"))?;
        for name in ["a.md", ".env", "src/b.rs", "src/.git/config"] {
            fs::write(folder.path().join(name), "x")?;
        }
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link"))?;
        let found = walk(folder.path()).map(|files| files.into_iter().map(|(path, _)| path).collect::<Vec<_>>());
        assert!(found.is_ok_and(|found| found == ["a.md", "src/b.rs"]));
        Ok(())
    }
}
