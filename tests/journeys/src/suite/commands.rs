//! The command line, as people use it against any deployment: it knows one address and a token.

use super::Stage;
use crate::{Client, Result};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};
use testkit::flows::CHOICE;
use tokio::{io::AsyncWriteExt, process::Command};

/// The binary in somebody's home, with a workspace of their own.
struct Terminal {
    binary: PathBuf,
    client: Client,
    home: tempfile::TempDir,
    workspace: String,
}

impl Terminal {
    async fn new(stage: &Stage) -> Result<Self> {
        let client = stage.client();
        let place = client.place().await?;
        let workspace = place.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Self { binary: stage.world.binary("buildscale")?, client, home: tempfile::tempdir()?, workspace })
    }

    /// The output of a command that ends with this code.
    async fn says(&self, code: i32, args: &[&str]) -> Result<String> {
        Ok(self.answers(code, args, "").await?.0)
    }

    /// What a command writes to standard output and beside it, which is given these lines and ends with this code.
    async fn answers(&self, code: i32, args: &[&str], lines: &str) -> Result<(String, String)> {
        let mut command = Command::new(&self.binary);
        command.args(args).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("XDG_STATE_HOME", self.home.path()).env("BUILDSCALE_WORKSPACE", &self.workspace);
        command
            .env("BUILDSCALE_URL", self.client.address(""))
            .env("BUILDSCALE_TOKEN", self.client.token().unwrap_or(""));
        let mut child = command.kill_on_drop(true).spawn()?;
        let mut input = child.stdin.take().ok_or("no input")?;
        // A command that needs no line may have ended before.
        let _ = input.write_all(lines.as_bytes()).await;
        drop(input);
        let output = tokio::time::timeout(crate::PATIENCE, child.wait_with_output()).await??;
        let beside = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {beside}");
        Ok((String::from_utf8(output.stdout)?, beside))
    }

    /// The same, a JSON object a line.
    async fn tells(&self, args: &[&str]) -> Result<Vec<Value>> {
        let said = self.says(0, args).await?;
        said.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}

fn text(path: &Path) -> Result<&str> {
    Ok(path.to_str().ok_or("an odd folder")?)
}

pub(super) async fn the_command_line_talks_watches_and_runs_flows(stage: Stage) -> Result {
    let terminal = Terminal::new(&stage).await?;

    // A turn, with a watcher of its events while it runs; then all of them once more.
    let turn = terminal.tells(&["chat", "--json", "--once", "--model", "scripted/demo", "write a haiku"]).await?;
    let chat = turn[0]["data"]["chat_id"].as_str().ok_or("no chat")?;
    assert_eq!(turn.last().map(|event| &event["event"]), Some(&Value::from("done")));
    let again = terminal.tells(&["tail", "--json", "--after", "0", "--until-idle", chat]).await?;
    assert_eq!(again, turn[1..], "the stream from its beginning is equal to the live one");
    assert!(terminal.says(0, &["files", "ls", "/projects/demo"]).await?.contains("hello.md"));

    // A file there and back.
    let local = terminal.home.path().join("notes.md");
    fs::write(&local, "one\n")?;
    terminal.says(0, &["files", "put", text(&local)?, "/projects/"]).await?;
    assert_eq!(terminal.says(0, &["files", "cat", "/projects/notes.md"]).await?, "one\n");

    // A long one goes past the functions.
    let long = terminal.home.path().join("long.txt");
    fs::write(&long, "0123456789abcdef\n".repeat(400_000))?;
    terminal.says(0, &["files", "put", text(&long)?, "/data/"]).await?;
    assert!(terminal.says(0, &["files", "cat", "/data/long.txt"]).await? == fs::read_to_string(&long)?);

    // A flow, and its task.
    let flow = terminal.home.path().join("choice");
    fs::create_dir(&flow)?;
    fs::write(flow.join("workflow.yaml"), CHOICE)?;
    let run = terminal.says(0, &["flow", "run", text(&flow)?, "--input", r#"{"good": true}"#]).await?;
    assert!(run.contains("well done"), "{run}");
    assert!(terminal.says(0, &["task", "list"]).await?.contains("choice"));
    terminal.says(3, &["tail", "--until-idle", "019bf537-f228-7cd3-aa1c-3da8af302e12"]).await?;
    Ok(())
}

pub(super) async fn the_command_line_keeps_files_with_their_history(stage: Stage) -> Result {
    let terminal = Terminal::new(&stage).await?;
    let local = terminal.home.path().join("notes.md");
    let path = "/projects/notes.md";
    for words in ["one\n", "two\n"] {
        fs::write(&local, words)?;
        terminal.says(0, &["files", "put", text(&local)?, "/projects/"]).await?;
    }
    assert_eq!(terminal.says(0, &["files", "history", path]).await?.lines().count(), 2);
    let changes = terminal.tells(&["files", "changes", path, "--op", "written", "--json"]).await?;
    assert_eq!(changes[0]["changes"].as_array().map(Vec::len), Some(2), "{changes:?}");
    assert!(terminal.says(0, &["files", "diff", path]).await?.ends_with("-one\n+two\n"));
    terminal.says(0, &["files", "restore", "--version", "1", path]).await?;
    assert_eq!(terminal.says(0, &["files", "cat", path]).await?, "one\n");

    // Marks stay with a file that is moved.
    terminal.says(0, &["files", "put", text(&local)?, "/projects/other.md"]).await?;
    terminal.says(0, &["files", "tag", path, "status:open"]).await?;
    terminal.says(0, &["files", "link", path, "/projects/other.md", "--kind", "answers"]).await?;
    terminal.says(0, &["files", "mv", path, "/projects/moved.md"]).await?;
    let links = terminal.says(0, &["files", "links", "/projects/moved.md"]).await?;
    assert!(links.contains("status:open") && links.contains("answers"), "{links}");

    // Back and forth.
    let (_, beside) = terminal.answers(0, &["rewind", "/projects/moved.md", "--version", "2"], "").await?;
    assert!(beside.contains("nothing was changed"), "{beside}");
    assert_eq!(terminal.says(0, &["files", "cat", "/projects/moved.md"]).await?, "one\n");
    let done = terminal.tells(&["rewind", "/projects/moved.md", "--version", "2", "--yes", "--json"]).await?;
    assert_eq!(terminal.says(0, &["files", "cat", "/projects/moved.md"]).await?, "two\n", "{done:?}");
    terminal.says(0, &["files", "rm", "/projects/moved.md"]).await?;
    terminal.says(3, &["files", "cat", "/projects/moved.md"]).await?;
    terminal.says(0, &["files", "restore", "/projects/moved.md"]).await?;

    // The whole of it, elsewhere.
    let archive = terminal.home.path().join("all.tar");
    terminal.says(0, &["export", &terminal.workspace, text(&archive)?]).await?;
    let copy = terminal.tells(&["import", text(&archive)?, "--name", "Copy", "--json"]).await?;
    let copy = copy[0]["workspace_id"].as_str().ok_or("no workspace")?.to_owned();
    assert_eq!(terminal.says(0, &["files", "cat", "-w", &copy, "/projects/moved.md"]).await?, "two\n");
    assert_eq!(terminal.says(0, &["files", "history", "-w", &copy, "/projects/moved.md"]).await?.lines().count(), 4);
    let allowed = terminal.tells(&["access", "/system/agents", "--action", "write", "--json"]).await?;
    assert!(allowed[0].to_string().contains("editor-changes"), "{allowed:?}");
    Ok(())
}

pub(super) async fn the_command_line_asks_its_person_and_keeps_their_folder(stage: Stage) -> Result {
    let terminal = Terminal::new(&stage).await?;
    let folder = terminal.home.path().join("project");
    fs::create_dir(&folder)?;
    fs::write(folder.join("a.txt"), "teh word\n")?;
    let chat = ["chat", "--folder", text(&folder)?, "mend my folder"];
    let (answer, beside) = terminal.answers(0, &chat, "n\n").await?;
    assert_eq!(answer.trim(), "It stays.", "{beside}");
    let (answer, beside) = terminal.answers(0, &chat, "y\n").await?;
    assert_eq!(answer.trim(), "Mended.", "{beside}");
    assert!(beside.contains("-teh word\n+the word\n"), "{beside}");
    assert_eq!(fs::read_to_string(folder.join("a.txt"))?, "the word\n");

    // A turn that waits for a person who is elsewhere: another command answers.
    let (_, beside) = terminal.answers(8, &["chat", "--once", "become a poet"], "").await?;
    assert!(beside.contains("waits for a person"), "{beside}");
    let open = terminal.tells(&["permit", "--json"]).await?;
    let permission = open[0].pointer("/permissions/0/request/permission_id").and_then(Value::as_str);
    let permission = permission.ok_or_else(|| format!("{open:?}"))?;
    terminal.says(0, &["permit", permission, "yes"]).await?;
    terminal.says(0, &["tail", "-", "--until-idle"]).await?;
    assert!(terminal.says(0, &["files", "ls", "/system/agents/poet"]).await?.contains("persona.md"));
    let fork = terminal.says(0, &["fork", "-"]).await?;
    assert!(terminal.says(0, &["chats"]).await?.contains(fork.trim().get(..8).ok_or("no id")?));

    // What begins by itself.
    terminal.says(0, &["schedule", "add", "brief", "--at", "2099-01-01T00:00:00Z", "--goal", "write it"]).await?;
    terminal.says(0, &["schedule", "pause", "brief"]).await?;
    assert!(terminal.says(0, &["schedule"]).await?.contains("brief"));
    terminal.says(0, &["schedule", "remove", "brief"]).await?;
    assert!(terminal.says(0, &["usage"]).await?.contains("total"));
    Ok(())
}
