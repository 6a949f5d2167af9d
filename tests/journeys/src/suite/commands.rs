//! The command line, as people use it against any deployment: it knows one address and a token.

use super::Stage;
use crate::{Client, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use testkit::flows::CHOICE;
use tokio::process::Command;

/// The binary in somebody's home, with a workspace of their own.
struct Terminal {
    binary: PathBuf,
    client: Client,
    home: tempfile::TempDir,
    workspace: String,
}

impl Terminal {
    /// The output of a command that ends with this code.
    async fn says(&self, code: i32, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        command.args(args).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").stdin(std::process::Stdio::null());
        command.env("XDG_STATE_HOME", self.home.path()).env("BUILDSCALE_WORKSPACE", &self.workspace);
        command
            .env("BUILDSCALE_URL", self.client.address(""))
            .env("BUILDSCALE_TOKEN", self.client.token().unwrap_or(""));
        let output = tokio::time::timeout(crate::PATIENCE, command.kill_on_drop(true).output()).await??;
        let beside = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {beside}");
        Ok(String::from_utf8(output.stdout)?)
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
    let client = stage.client();
    let place = client.place().await?;
    let workspace = place.rsplit('/').next().unwrap_or_default().to_owned();
    let terminal =
        Terminal { binary: stage.world.binary("buildscale")?, client, home: tempfile::tempdir()?, workspace };

    // A turn, with a watcher of its events while it runs; then all of them once more.
    let turn = terminal.tells(&["chat", "--json", "--once", "--model", "scripted/demo", "write a haiku"]).await?;
    let chat = turn[0]["data"]["chat_id"].as_str().ok_or("no chat")?;
    assert_eq!(turn.last().map(|event| &event["event"]), Some(&Value::from("done")));
    let again = terminal.tells(&["tail", "--json", "--after", "0", "--until-idle", chat]).await?;
    assert_eq!(again, turn[1..], "the stream from its beginning is equal to the live one");
    assert!(terminal.says(0, &["files", "ls", "/projects/demo"]).await?.contains("hello.md"));

    // A file there and back.
    let local = terminal.home.path().join("notes.md");
    std::fs::write(&local, "one\n")?;
    terminal.says(0, &["files", "put", text(&local)?, "/projects/"]).await?;
    assert_eq!(terminal.says(0, &["files", "cat", "/projects/notes.md"]).await?, "one\n");

    // A long one goes past the functions.
    let long = terminal.home.path().join("long.txt");
    std::fs::write(&long, "0123456789abcdef\n".repeat(400_000))?;
    terminal.says(0, &["files", "put", text(&long)?, "/data/"]).await?;
    assert!(terminal.says(0, &["files", "cat", "/data/long.txt"]).await? == std::fs::read_to_string(&long)?);

    // A flow, and its task.
    let flow = terminal.home.path().join("choice");
    std::fs::create_dir(&flow)?;
    std::fs::write(flow.join("workflow.yaml"), CHOICE)?;
    let run = terminal.says(0, &["flow", "run", text(&flow)?, "--input", r#"{"good": true}"#]).await?;
    assert!(run.contains("well done"), "{run}");
    assert!(terminal.says(0, &["task", "list"]).await?.contains("choice"));
    terminal.says(3, &["tail", "--until-idle", "019bf537-f228-7cd3-aa1c-3da8af302e12"]).await?;
    Ok(())
}
