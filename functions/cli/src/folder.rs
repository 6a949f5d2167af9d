//! A folder of this machine that a chat works on (`buildscale chat --folder`): functions of the client, which the agent calls and this process
//! runs. The hub asks a person before a change or a command. The request shows a change as a diff, and this very change is made: a
//! file that changes in between is written by nobody.
//!
//! Nothing here outlives the process but the files themselves. A call that waits is in the chat's log, and a process that joins the chat later
//! carries it out.

mod calls;
mod command;
mod look;
mod place;

pub(crate) use calls::Calls;
use domain::{CLIENT_PREFIX, Sha256};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

const LIST: &str = "list_files";
const SEARCH: &str = "search_files";
const READ: &str = "read_file";
const WRITE: &str = "write_file";
const EDIT: &str = "edit_file";
const RUN: &str = "run_command";

/// The longest file that is read, searched or written, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// A folder, and the state of its files that the agent knows.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Without links on the way.
    root: PathBuf,
    /// The digests of the contents that the agent has read or written.
    known: Mutex<HashMap<PathBuf, Sha256>>,
    /// The digests of the files as they were when a person was shown a change, by the call; none of a file that was not there.
    shown: Mutex<HashMap<String, Option<Sha256>>>,
}

/// A change of a file that a call asks for.
struct Change {
    path: PathBuf,
    /// None for a file that is not there.
    before: Option<String>,
    after: String,
}

impl Folder {
    /// # Errors
    /// When it is no folder.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root, known: Mutex::default(), shown: Mutex::default() })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The functions of a new chat, as `POST …/chats` takes them.
    pub(crate) fn functions(&self) -> Value {
        let text = |description: &str| json!({ "type": "string", "description": description });
        let count = |description: &str| json!({ "type": "integer", "minimum": 1, "description": description });
        let path = || text("The path, below the person's folder.");
        let below = || text("The folder to look in, below the person's folder; all of it without this.");
        let glob = || text("Only files whose paths match this pattern, such as *.rs or src/**/*.ts.");
        let folder = self.root.display();
        let function = |name: &str, effects: &str, description: &str, properties: Value, required: &[&str]| {
            json!({
                "name": name, "effects": effects,
                "description": format!("{description} The person's folder is {folder}, on their own machine; it is not part of the workspace."),
                "parameters": {
                    "type": "object", "properties": properties, "required": required, "additionalProperties": false,
                },
            })
        };
        json!([
            function(
                LIST,
                "read",
                "Lists the files of the person's folder, but for those that git ignores.",
                json!({ "path": below(), "glob": glob() }),
                &[],
            ),
            function(
                SEARCH,
                "read",
                "Searches the files of the person's folder for a regular expression, and answers with path, line number and line.",
                json!({ "pattern": text("The regular expression."), "path": below(), "glob": glob() }),
                &["pattern"],
            ),
            function(
                READ,
                "read",
                "Reads a text file of the person's folder.",
                json!({ "path": path(), "line": count("The first line; 1 without it."), "limit": count("The most lines.") }),
                &["path"],
            ),
            function(
                WRITE,
                "write",
                "Writes a text file of the person's folder, a new one or one that you have read. The person sees the difference and decides.",
                json!({ "path": path(), "content": text("The whole content.") }),
                &["path", "content"],
            ),
            function(
                EDIT,
                "write",
                "Replaces a passage of a text file of the person's folder that you have read. The person sees the difference and decides.",
                json!({
                    "path": path(), "old": text("The passage, exactly as the file has it, which occurs once."),
                    "new": text("The words in its place."),
                }),
                &["path", "old", "new"],
            ),
            function(
                RUN,
                "execute",
                "Runs a shell command in the person's folder, on their machine, and answers with the end of its output. The person is asked before.",
                json!({ "command": text("The command line.") }),
                &["command"],
            ),
        ])
    }

    /// The result of a call for the agent; an error has the reason, for the agent, too.
    pub(crate) async fn run(&self, call: &str, tool: &str, args: &Value) -> Result<String, String> {
        match name(tool) {
            RUN => command::run(&self.root, text(args, "command")?).await,
            LIST | SEARCH => {
                let (root, args, searches) = (self.root.clone(), args.clone(), name(tool) == SEARCH);
                let look = move || if searches { look::search(&root, &args) } else { look::list(&root, &args) };
                tokio::task::spawn_blocking(look).await.map_err(|error| error.to_string())?
            }
            READ => self.read(args),
            WRITE | EDIT => self.write(call, tool, args),
            _ => Err(format!("this folder has no function {tool}")),
        }
    }

    /// The change that a call asks for, as a diff, for the person who decides on it; none for a call that changes no file, and for one that fails by
    /// itself.
    pub(crate) fn preview(&self, call: &str, tool: &str, args: &Value) -> Option<String> {
        let change = self.change(tool, args)?.ok()?;
        self.shown.lock().insert(call.to_owned(), change.before.as_deref().map(digest));
        let path = change.path.strip_prefix(&self.root).unwrap_or(&change.path).display().to_string();
        let before = change.before.as_deref().unwrap_or_default();
        let diff = similar::TextDiff::from_lines(before, &change.after);
        let from = if change.before.is_some() { path.as_str() } else { "/dev/null" };
        Some(diff.unified_diff().header(from, &path).to_string())
    }

    fn read(&self, args: &Value) -> Result<String, String> {
        let path = place::below(&self.root, text(args, "path")?)?;
        let content = content(&path)?.ok_or_else(|| format!("there is no file {}", path.display()))?;
        self.known.lock().insert(path, digest(&content));
        let number = |field: &str| args[field].as_u64().and_then(|number| usize::try_from(number).ok());
        Ok(look::lines(&content, number("line").unwrap_or(1), number("limit").unwrap_or(usize::MAX)))
    }

    fn write(&self, call: &str, tool: &str, args: &Value) -> Result<String, String> {
        let shown = self.shown.lock().remove(call);
        let change = self.change(tool, args).unwrap_or_else(|| Err(format!("{tool} changes no file")))?;
        let before = change.before.as_deref().map(digest);
        if shown.is_some_and(|shown| shown != before) {
            return Err("the file changed after the person was shown the difference: read it again".into());
        }
        let told = |error: io::Error| format!("{} cannot be written: {error}", change.path.display());
        if let Some(folder) = change.path.parent() {
            fs::create_dir_all(folder).map_err(told)?;
        }
        place::replace(&change.path, change.after.as_bytes()).map_err(told)?;
        self.known.lock().insert(change.path, digest(&change.after));
        Ok(if change.before.is_some() { "It is changed.".into() } else { "It is made.".into() })
    }

    /// None for a call that changes no file.
    fn change(&self, tool: &str, args: &Value) -> Option<Result<Change, String>> {
        matches!(name(tool), WRITE | EDIT).then(|| {
            let path = place::below(&self.root, text(args, "path")?)?;
            let before = content(&path)?;
            let is_known = |before: &String| self.known.lock().get(&path) == Some(&digest(before));
            if before.as_ref().is_some_and(|before| !is_known(before)) {
                return Err(format!("{} is another file than you have read: read it first", path.display()));
            }
            let after = match name(tool) {
                WRITE => text(args, "content")?.to_owned(),
                _ => replaced(before.as_deref().unwrap_or_default(), text(args, "old")?, text(args, "new")?)?,
            };
            if after.len() as u64 > MAX_FILE {
                return Err(format!("a file here has at most {} MiB", MAX_FILE >> 20));
            }
            Ok(Change { path, before, after })
        })
    }
}

/// A text with the one occurrence of a passage replaced.
fn replaced(text: &str, old: &str, new: &str) -> Result<String, String> {
    match text.matches(old).take(2).count() {
        _ if old.is_empty() => Err("old is empty: write the whole file".into()),
        0 => Err("the file does not have that passage: read it again, and copy it exactly".into()),
        1 => Ok(text.replacen(old, new, 1)),
        _ => Err("the passage occurs more than once: take more lines around it".into()),
    }
}

/// The content of a text file; none where nothing is.
fn content(path: &Path) -> Result<Option<String>, String> {
    let told = |error: io::Error| format!("{} cannot be read: {error}", path.display());
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(error)),
        Ok(found) if found.is_dir() => return Err(format!("{} is a folder", path.display())),
        Ok(found) if found.len() > MAX_FILE => {
            return Err(format!("{} has over {} MiB", path.display(), MAX_FILE >> 20));
        }
        // A pipe or a device may never end.
        Ok(found) if !found.is_file() => return Err(format!("{} is no file", path.display())),
        Ok(_) => {}
    }
    let bytes = fs::read(path).map_err(told)?;
    String::from_utf8(bytes).map(Some).map_err(|_| format!("{} is no text", path.display()))
}

fn digest(content: &str) -> Sha256 {
    Sha256::of(content.as_bytes())
}

/// Whether a function changes a file or runs a command: a person permits each of its calls.
fn acts(tool: &str) -> bool {
    matches!(name(tool), WRITE | EDIT | RUN)
}

/// A function's name without the mark of functions of clients.
fn name(tool: &str) -> &str {
    tool.strip_prefix(CLIENT_PREFIX).unwrap_or(tool)
}

fn text<'a>(args: &'a Value, field: &str) -> Result<&'a str, String> {
    args[field].as_str().ok_or_else(|| format!("{field} is missing, or no text"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Folder) {
        let kept = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = kept.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let folder = Folder::open(kept.path()).unwrap();
        (kept, folder)
    }

    async fn run(folder: &Folder, tool: &str, args: Value) -> Result<String, String> {
        folder.run("call", &format!("client__{tool}"), &args).await
    }

    #[tokio::test]
    async fn a_file_is_written_as_it_was_shown_or_not_at_all() {
        let (kept, folder) = folder(&[("src/a.txt", "one\ntwo\n")]);
        let path = kept.path().join("src/a.txt");
        let edit = json!({ "path": "src/a.txt", "old": "two", "new": "three" });
        let unread = run(&folder, EDIT, edit.clone()).await.unwrap_err();
        assert!(unread.contains("read it first"), "{unread}");
        assert_eq!(run(&folder, READ, json!({ "path": "src/a.txt" })).await.unwrap(), "one\ntwo\n");
        let diff = folder.preview("call", "client__edit_file", &edit).unwrap();
        assert!(diff.contains("--- src/a.txt\n+++ src/a.txt\n") && diff.contains("-two\n+three\n"), "{diff}");
        fs::write(&path, "one\ntwo\nmore\n").unwrap();
        let changed = run(&folder, EDIT, edit.clone()).await.unwrap_err();
        assert!(changed.contains("read it first"), "{changed}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nmore\n", "nothing of the person's is lost");

        // Read again between the diff and the answer: the person has not seen this difference.
        folder.preview("call", "client__edit_file", &edit);
        run(&folder, READ, json!({ "path": "src/a.txt" })).await.unwrap();
        folder.preview("call", "client__edit_file", &edit);
        fs::write(&path, "two\n").unwrap();
        run(&folder, READ, json!({ "path": "src/a.txt" })).await.unwrap();
        let changed = run(&folder, EDIT, edit.clone()).await.unwrap_err();
        assert!(changed.contains("after the person was shown"), "{changed}");

        folder.preview("call", "client__edit_file", &edit);
        run(&folder, EDIT, edit).await.unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        run(&folder, WRITE, json!({ "path": "new/b.txt", "content": "b" })).await.unwrap();
        assert_eq!(fs::read_to_string(kept.path().join("new/b.txt")).unwrap(), "b");
    }

    #[tokio::test]
    async fn nothing_outside_is_reached() {
        let (kept, folder) = folder(&[("a.txt", "a"), (".git/config", "x")]);
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(outside.path(), kept.path().join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("new"), kept.path().join("dangling")).unwrap();
        let absolute = outside.path().join("secret").display().to_string();
        for path in ["../secret", "a/../../secret", "link/secret", &absolute] {
            assert!(run(&folder, READ, json!({ "path": path })).await.is_err(), "{path}");
        }
        for path in ["link/new", "../new", "dangling", ".git/config", ".git/hooks/pre-commit", "x/.GIT/config"] {
            let written = run(&folder, WRITE, json!({ "path": path, "content": "x" })).await;
            assert!(written.is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        let inside = kept.path().join("a.txt").canonicalize().unwrap().display().to_string();
        assert_eq!(run(&folder, READ, json!({ "path": inside })).await.unwrap(), "a", "an absolute path inside");
    }

    #[tokio::test]
    async fn files_are_listed_and_searched_without_those_that_git_ignores() {
        let (_kept, folder) = folder(&[
            (".gitignore", "out/\n"),
            ("out/x.txt", "needle"),
            ("src/a.rs", "one\nneedle here\n"),
            ("b.txt", "needle\n"),
            ("c.bin", "needle\0"),
        ]);
        assert_eq!(run(&folder, LIST, json!({})).await.unwrap(), ".gitignore\nb.txt\nc.bin\nsrc/a.rs");
        assert_eq!(run(&folder, LIST, json!({ "glob": "*.rs" })).await.unwrap(), "src/a.rs");
        assert_eq!(run(&folder, LIST, json!({ "path": "src" })).await.unwrap(), "src/a.rs");
        let found = run(&folder, SEARCH, json!({ "pattern": "need.e" })).await.unwrap();
        assert_eq!(found, "b.txt:1: needle\nsrc/a.rs:2: needle here");
        assert_eq!(run(&folder, SEARCH, json!({ "pattern": "absent" })).await.unwrap(), "Nothing matches.");
        assert!(run(&folder, SEARCH, json!({ "pattern": "(" })).await.unwrap_err().contains("regular expression"));
    }

    #[tokio::test]
    async fn a_command_tells_its_output_and_its_end() {
        let (_kept, folder) = folder(&[("a.txt", "a")]);
        assert_eq!(run(&folder, RUN, json!({ "command": "ls; echo err >&2" })).await.unwrap(), "a.txt\nerr\n");
        let failed = run(&folder, RUN, json!({ "command": "echo no; exit 3" })).await.unwrap_err();
        assert_eq!(failed, "no\n\n(exit code 3)");
        let long = run(&folder, RUN, json!({ "command": "seq 1 100000" })).await.unwrap();
        assert!(long.starts_with("(The beginning of the output was cut.)\n") && long.ends_with("\n100000\n"));
        assert!(long.len() < 60_000);
    }

    #[test]
    fn its_functions_are_such_that_a_chat_takes() {
        let (_kept, folder) = folder(&[]);
        let declared = protocols::functions::declared(&folder.functions()).unwrap();
        assert_eq!(declared.len(), 6);
        assert!(declared.iter().all(|function| !function.effects.are_own()));
    }
}
