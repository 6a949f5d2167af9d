//! The command line, as people use it against any deployment: it knows one address and a token.

use super::Stage;
use crate::{Client, Result};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};
use testkit::flows::{APPROVAL, CHOICE};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

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

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("XDG_STATE_HOME", self.home.path()).env("BUILDSCALE_WORKSPACE", &self.workspace);
        command
            .env("BUILDSCALE_URL", self.client.address(""))
            .env("BUILDSCALE_TOKEN", self.client.token().unwrap_or(""));
        command
    }

    /// A command that tells a JSON object a line while it runs.
    fn begins(&self, args: &[&str]) -> Result<Running> {
        let mut child = self.command(args).stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        Ok(Running { child, lines })
    }

    /// The standard output and the messages of a command, which is given these lines and ends with this code.
    async fn answers(&self, code: i32, args: &[&str], lines: &str) -> Result<(String, String)> {
        let mut child = self.command(args).spawn()?;
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
        self.tells_and_ends(0, args).await
    }

    async fn tells_and_ends(&self, code: i32, args: &[&str]) -> Result<Vec<Value>> {
        let said = self.says(code, args).await?;
        said.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// The folder of a new flow.
    fn flow(&self, name: &str, workflow: &str) -> Result<String> {
        let folder = self.home.path().join(name);
        fs::create_dir(&folder)?;
        fs::write(folder.join("workflow.yaml"), workflow)?;
        Ok(text(&folder)?.to_owned())
    }
}

/// A command that runs.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// The next event of this name.
    async fn until(&mut self, name: &str) -> Result<Value> {
        let reading = async {
            while let Some(line) = self.lines.next_line().await? {
                let event: Value = serde_json::from_str(&line)?;
                if event["event"] == name {
                    return Ok(event);
                }
            }
            Err(format!("it ended before {name}").into())
        };
        tokio::time::timeout(crate::PATIENCE, reading).await?
    }

    /// The code with which it ends.
    async fn ends(mut self) -> Result<Option<i32>> {
        let reading = async {
            while self.lines.next_line().await?.is_some() {}
            Ok(self.child.wait().await?.code())
        };
        tokio::time::timeout(crate::PATIENCE, reading).await?
    }
}

/// The id that follows these words.
fn id_behind(words: &str, said: &str) -> Result<String> {
    let (_, rest) = said.split_once(words).ok_or_else(|| format!("no {words:?} in {said:?}"))?;
    Ok(rest.get(..36).ok_or("no id")?.to_owned())
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
    let flow = terminal.flow("choice", CHOICE)?;
    let run = terminal.says(0, &["flow", "run", &flow, "--input", r#"{"good": true}"#]).await?;
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

    // Work that begins by itself.
    terminal.says(0, &["schedule", "add", "brief", "--at", "2099-01-01T00:00:00Z", "--goal", "write it"]).await?;
    terminal.says(0, &["schedule", "pause", "brief"]).await?;
    assert!(terminal.says(0, &["schedule"]).await?.contains("brief"));
    terminal.says(0, &["schedule", "remove", "brief"]).await?;
    assert!(terminal.says(0, &["usage"]).await?.contains("total"));
    Ok(())
}

pub(super) async fn the_command_line_answers_and_stops_turns(stage: Stage) -> Result {
    let terminal = Terminal::new(&stage).await?;
    // A question, answered at once; and one that is left open and answered later.
    let ask = ["chat", "--model", "scripted/demo", "ask me"];
    let (answer, beside) = terminal.answers(0, &ask, "blue\n").await?;
    assert!(answer.contains("Your answer was: blue"), "{answer}{beside}");
    let (_, beside) = terminal.answers(8, &ask, "").await?;
    let chat = id_behind("buildscale chat --chat ", &beside)?;
    let (answer, beside) = terminal.answers(0, &["chat", "--chat", &chat], "3\n").await?;
    assert!(answer.contains("Your answer was: red"), "{answer}{beside}");

    // Another terminal stops a turn.
    let mut turn = terminal.begins(&["chat", "--json", "--model", "scripted/demo", "count slowly"])?;
    let chat = turn.until("accepted").await?["data"]["chat_id"].as_str().ok_or("no chat")?.to_owned();
    turn.until("chunk").await?;
    terminal.says(0, &["stop", &chat]).await?;
    assert_eq!(turn.until("stopped").await?["data"]["reason"], "user_cancelled");
    assert_eq!(turn.ends().await?, Some(6));
    terminal.tells(&["context", "--json", &chat]).await?;
    let exported = terminal.tells(&["chats", "export", "--json", &chat]).await?;
    assert!(exported[0]["messages"].as_array().is_some_and(|all| !all.is_empty()), "{exported:?}");
    terminal.says(0, &["chats", "rm", &chat]).await?;

    // A folder goes to another workspace and comes back, and that ends.
    let made = terminal.says(0, &["workspaces", "create", "Of a terminal"]).await?;
    let other = made.trim();
    terminal.says(0, &["workspaces", "rename", other, "Still of a terminal"]).await?;
    let site = terminal.home.path().join("site");
    fs::create_dir(&site)?;
    fs::write(site.join("a.md"), "one\n")?;
    let sync = ["files", "-w", other, "sync", text(&site)?, "/projects/site"];
    assert_eq!(terminal.says(0, &sync).await?, "wrote /projects/site/a.md\n");
    assert_eq!(terminal.says(0, &sync).await?, "", "an equal file makes no version");
    assert_eq!(terminal.says(0, &["files", "-w", other, "get", "/projects/site/a.md", "-"]).await?, "one\n");
    terminal.answers(0, &["workspaces", "rm", other], "y\n").await?;
    terminal.says(3, &["files", "-w", other, "cat", "/projects/site/a.md"]).await?;
    Ok(())
}

pub(super) async fn the_command_line_steers_tasks(stage: Stage) -> Result {
    let terminal = Terminal::new(&stage).await?;
    let flow = terminal.flow("choice", CHOICE)?;
    let run = |input: &'static str| ["flow", "run", &flow, "--json", "--input", input];
    let task = |events: &[Value]| -> Result<String> {
        Ok(events.first().and_then(|event| event["data"]["task_id"].as_str()).ok_or("no task")?.to_owned())
    };
    let one = task(&terminal.tells(&run(r#"{"good": true}"#)).await?)?;
    let other = task(&terminal.tells_and_ends(1, &run(r#"{"good": false}"#)).await?)?;

    // It is shown, traced, drawn, compared and done again.
    let shown = terminal.tells(&["task", "show", &one, "--json"]).await?;
    let stages = shown[0]["stages"].as_array().ok_or("no stages")?;
    let nodes: Vec<_> = stages.iter().filter_map(|stage| stage["node"].as_str()).collect();
    assert_eq!(nodes, ["begin", "choose", "good", "end"]);
    let trace = terminal.says(0, &["task", "show", &one, "--trace"]).await?;
    assert_eq!(terminal.says(0, &["task", "show", &one, "--trace"]).await?, trace, "rebuilt, it has the same bytes");
    assert!(terminal.says(1, &["task", "diff", &one, &other]).await?.contains("part"));
    assert!(terminal.says(1, &["task", "tail", &other]).await?.contains("+ choose"));
    assert!(terminal.says(0, &["flow", "graph", "--task", &one]).await?.contains("<svg"));
    let again = terminal.tells(&["task", "replay", &one, "--follow", "--json"]).await?;
    assert_eq!(again.last().map(|event| &event["data"]["output"]), Some(&Value::from("well done")));
    assert!(terminal.says(0, &["flow", "list"]).await?.contains("choice"));
    let (said, _) = terminal.answers(0, &["flow", "repl", &flow], "{\"good\": true}\n").await?;
    assert_eq!(said, "well done\n");

    // Another terminal steps through it, and stops it.
    let paused = ["flow", "run", &flow, "--input", r#"{"good": true}"#, "--detach", "--break", "good"];
    let made = terminal.says(0, &paused).await?;
    let mut tail = terminal.begins(&["task", "tail", made.trim(), "--json"])?;
    assert_eq!(tail.until("paused").await?["data"]["node"], "good");
    terminal.says(0, &["task", "step", made.trim()]).await?;
    assert_eq!(tail.until("paused").await?["data"]["node"], "end");
    terminal.says(0, &["task", "resume", made.trim()]).await?;
    assert_eq!(tail.until("done").await?["data"]["status"], "success");
    assert_eq!(tail.ends().await?, Some(0));
    let made = terminal.says(0, &paused).await?;
    terminal.says(0, &["task", "stop", made.trim()]).await?;
    terminal.says(6, &["task", "tail", made.trim()]).await?;

    // A person is asked in the terminal, or answers later.
    let flow = terminal.flow("approval", APPROVAL)?;
    let asks = ["flow", "run", &flow, "--input", "the report"];
    let (said, beside) = terminal.answers(0, &asks, "y\n").await?;
    assert_eq!(said, "the report\n", "{beside}");
    let (_, beside) = terminal.answers(8, &asks, "").await?;
    let waits = id_behind("buildscale task answer ", &beside)?;
    terminal.says(0, &["task", "answer", &waits, "--approve"]).await?;
    terminal.says(0, &["task", "tail", &waits, "--follow"]).await?;
    Ok(())
}

pub(super) async fn the_command_line_works_with_threads_and_keys(stage: Stage) -> Result {
    let mut terminal = Terminal::new(&stage).await?;
    let made = terminal.says(0, &["threads", "new", "--cwd", "/workspace", "--title", "Verses"]).await?;
    let thread = made.trim();
    assert!(terminal.says(0, &["threads"]).await?.contains("Verses"));
    let answer = terminal.says(0, &["turn", thread, "novel"]).await?;
    assert!(answer.trim().ends_with("is done."), "{answer}");

    // A turn asks for a permission, which another terminal gives for all such calls.
    let mut turn = terminal.begins(&["turn", thread, "become", "a", "poet", "--json"])?;
    let asked = turn.until("permission_required").await?;
    let permission = asked["data"]["permissionId"].as_str().ok_or("no permission")?;
    let open = terminal.says(0, &["permit"]).await?;
    assert!(open.contains(permission) && open.contains("write"), "{open}");
    terminal.says(0, &["permit", permission, "allow_always"]).await?;
    assert_eq!(turn.ends().await?, Some(0));
    let rules = terminal.tells(&["rules", thread, "--json"]).await?;
    assert_eq!(rules[0]["permissions"].as_array().map(Vec::len), Some(1), "{rules:?}");
    terminal.says(0, &["rules", thread, "--revoke"]).await?;
    assert!(terminal.says(0, &["threads", "show", thread]).await?.contains("become a poet"));
    terminal.says(0, &["threads", "rm", thread]).await?;

    // A key opens its scope alone, until it is revoked.
    let new = ["key", "create", "nightly", "--scope", "read", "--only", &terminal.workspace, "--json"];
    let made = terminal.tells(&new).await?;
    let (key, id) = (made[0]["key"].as_str().ok_or("no key")?, made[0]["api_key"]["key_id"].as_str().ok_or("no id")?);
    let person = terminal.client.clone();
    terminal.client = person.with_token(Some(key));
    terminal.says(0, &["files", "ls"]).await?;
    let (_, refusal) = terminal.answers(1, &["key", "list"], "").await?;
    assert!(!refusal.contains(key), "{refusal}");
    let key_holder = std::mem::replace(&mut terminal.client, person);
    terminal.says(0, &["key", "revoke", id]).await?;
    terminal.client = key_holder;
    terminal.says(10, &["files", "ls"]).await?;
    Ok(())
}
