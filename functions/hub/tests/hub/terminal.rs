//! The REPL as a person meets it: on a terminal, with keys (spec 002 §10.9).

use crate::{
    commands::scripted,
    support::{Client, PATIENCE, Result, start},
};
use pty_process::{Command, Pty, Size};
use reqwest::Method;
use serde_json::json;
use std::{os::unix::fs::PermissionsExt, path::Path};
use testkit::flows::APPROVAL;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CHOICE: &str = r#"
nodes:
  - {id: begin, kind: deterministic, role: start, context: none}
  - {id: say, kind: deterministic, role: linear, context: none, op: {template: 'it is {{input.good}}'}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: say}
  - {from: say, to: end}
"#;
const PROFILES: &str = "
profiles:
  - {id: usual, session_policies: {persist_history: true}}
  - {id: thorough, custom_commands: [{name: draft, input: {good: '{{text}}'}}]}
";

const UP: &str = "\x1b[A";
const LEFT: &str = "\x1b[D";
pub const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
/// Removes the typed line.
const CTRL_U: &str = "\x15";

/// A program on a terminal.
pub struct Screen {
    pub pty: Pty,
    pub child: tokio::process::Child,
    /// The text that was shown and not looked at yet.
    shown: String,
}

impl Screen {
    pub fn start(hub: &Client, state: &Path, args: &[&str]) -> Result<Self> {
        Self::at(&hub.address(""), state, args)
    }

    fn at(url: &str, state: &Path, args: &[&str]) -> Result<Self> {
        Self::of(Command::new(env!("CARGO_BIN_EXE_buildscale")).args(args), url, state)
    }

    fn of(command: Command, url: &str, state: &Path) -> Result<Self> {
        let (pty, pts) = pty_process::open()?;
        pty.resize(Size::new(24, 100))?;
        let command = command.env_clear().env("TERM", "xterm").env("BUILDSCALE_URL", url).env("XDG_STATE_HOME", state);
        let command = command.env("BUILDSCALE_DATA_DIR", state.join("data"));
        let child = command.kill_on_drop(true).spawn(pts)?;
        Ok(Self { pty, child, shown: String::new() })
    }

    pub async fn keys(&mut self, keys: &str) -> Result {
        Ok(self.pty.write_all(keys.as_bytes()).await?)
    }

    /// Waits until this is shown, and forgets the text up to its end; gives the text before it.
    pub async fn until(&mut self, text: &str) -> Result<String> {
        let looking = async {
            loop {
                if let Some(at) = self.shown.find(text) {
                    let before = self.shown.drain(..at + text.len()).collect::<String>();
                    return Ok(before.trim_end_matches(text).to_owned());
                }
                let mut bytes = [0; 4096];
                match self.pty.read(&mut bytes).await {
                    // That is how a terminal reports that its other end is closed.
                    Ok(0) | Err(_) => return Err(format!("it ended before {text:?}")),
                    Ok(read) => self.shown.push_str(&String::from_utf8_lossy(bytes.get(..read).unwrap_or_default())),
                }
            }
        };
        let looked = tokio::time::timeout(PATIENCE, looking).await;
        let looked = looked.unwrap_or_else(|_| Err(format!("{text:?} is not shown")));
        looked.map_err(|why| format!("{why}; there is: {:?}", self.shown).into())
    }

    /// Waits until the next line can be typed after this prompt. A prompt alone may be the one before, drawn anew.
    async fn prompt(&mut self, prompt: &str) -> Result {
        // Pastes are bracketed while a line is edited.
        self.until("\x1b[?2004h").await?;
        self.until(prompt).await.map(drop)
    }

    /// Waits until it has ended.
    pub async fn ended(mut self) -> Result<Option<i32>> {
        let mut rest = Vec::new();
        // Reading on, so that nothing waits for room on the screen; how it ends is no matter.
        let _ = tokio::time::timeout(PATIENCE, self.pty.read_to_end(&mut rest)).await?;
        Ok(tokio::time::timeout(PATIENCE, self.child.wait()).await??.code())
    }
}

#[tokio::test]
async fn s10_9_lines_are_edited_recalled_and_completed_on_a_terminal() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    client.flow(&place, "choice", &[("workflow.yaml", CHOICE), ("cli_profiles.yaml", PROFILES)]).await?;
    client.flow(&place, "approval", &[("workflow.yaml", APPROVAL)]).await?;
    let state = data.path().join("state");
    let mut screen = Screen::start(&client, &state, &["flow", "repl", "choice"])?;
    screen.prompt("usual> ").await?;

    // A slip is mended in the middle of the line.
    screen.keys(&format!("{{\"good\": tue}}{LEFT}{LEFT}{LEFT}r\r")).await?;
    screen.until("it is true").await?;
    screen.prompt("usual> ").await?;
    // The line before comes again, and can be changed.
    screen.keys(&format!("{UP}{LEFT}{LEFT}{LEFT}{LEFT}{LEFT}\x0b1}}\r")).await?;
    screen.until("it is 1").await?;
    screen.prompt("usual> ").await?;

    // Commands, and the words that may come after them.
    screen.keys("/tel\ton\r").await?;
    screen.prompt("usual> ").await?;
    screen.keys("/telemetry\r").await?;
    screen.until("telemetry is on").await?;
    screen.prompt("usual> ").await?;
    screen.keys("/pro\tth\t\r").await?;
    screen.prompt("thorough> ").await?;
    // One of the profile's own.
    screen.keys("/dr\t yes\r").await?;
    screen.until("it is yes").await?;
    screen.prompt("thorough> ").await?;
    // Another flow.
    screen.keys("/fl\tappr\t\r").await?;
    screen.prompt("default> ").await?;

    // Ctrl-C drops the typed line, Ctrl-D leaves.
    screen.keys(&format!("{{half a line{CTRL_C}")).await?;
    screen.until("(Ctrl-D leaves)").await?;
    screen.prompt("default> ").await?;
    screen.keys(CTRL_D).await?;
    assert_eq!(screen.ended().await?, Some(0));

    // The lines are kept for the next session, unreadable for other users.
    let file = state.join("buildscale/repl_history");
    assert_eq!(std::fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&file)?, "{\"good\": true}\n{\"good\": 1}\n");
    let mut screen = Screen::start(&client, &state, &["repl", "choice"])?;
    screen.prompt("usual> ").await?;
    screen.keys(&format!("{UP}{UP}\r")).await?;
    screen.until("it is true").await?;
    screen.prompt("usual> ").await?;
    screen.keys("/quit\r").await?;
    assert_eq!(screen.ended().await?, Some(0));
    Ok(())
}

#[tokio::test]
async fn s10_9_ctrl_c_stops_the_task_that_runs_and_answers_are_typed_in_between() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    client.flow(&client.place().await?, "approval", &[("workflow.yaml", APPROVAL)]).await?;
    let mut screen = Screen::start(&client, &data.path().join("state"), &["flow", "repl", "approval"])?;
    screen.prompt("default> ").await?;
    screen.keys("the report\r").await?;
    screen.until("Publish the report?").await?;
    screen.until("answer").await?;
    screen.keys(CTRL_C).await?;
    screen.until("stopping the task").await?;
    screen.until("stopped").await?;
    // The session goes on.
    screen.prompt("default> ").await?;
    screen.keys("the poem\r").await?;
    screen.until("Publish the poem?").await?;
    screen.until("answer").await?;
    screen.keys("y\r").await?;
    screen.until("success").await?;
    screen.until("the poem").await?;
    screen.prompt("default> ").await?;
    screen.keys(CTRL_D).await?;
    assert_eq!(screen.ended().await?, Some(0));
    Ok(())
}

#[tokio::test]
async fn a_plan_is_read_approved_and_left_on_a_terminal() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let workspace = place.rsplit('/').next().ok_or("no workspace")?;
    let talk = ["chat", "--workspace", workspace, "--mode", "plan"];
    let mut screen = Screen::start(&client, &data.path().join("state"), &talk)?;
    screen.until("What shall the agent do?").await?;
    for line in ["/plan", "/approve 1"] {
        screen.keys(&format!("{line}\r")).await?;
        screen.until("there is no chat yet").await?;
    }
    screen.keys("plan it\r").await?;
    screen.until("Planned.").await?;
    screen.keys("/plan\r").await?;
    screen.until("version 1").await?;
    screen.until("- [ ] build it").await?;
    screen.until("/approve 1 approves this version and starts the work").await?;
    screen.keys("/approve\r").await?;
    screen.until("which version?").await?;
    // The approval starts the turn that carries the plan out, and its command runs unasked.
    screen.keys("/approve 1\r").await?;
    screen.until("It said").await?;
    screen.until("built").await?;
    let chats = client.get(&format!("{place}/chats")).await?;
    let id = chats["chats"][0]["chat_id"].as_str().ok_or("no chat")?;
    let chat = format!("{place}/chats/{id}");
    client.until(&chat, |view| view["mode"] == "build" && view["status"] == "idle").await?;
    screen.keys("/mode plan\r").await?;
    client.until(&chat, |view| view["mode"] == "plan").await?;
    // A mode in which more is allowed is not to be had like this.
    screen.keys("/mode build\r").await?;
    screen.until("build mode begins with the approval of a plan").await?;
    screen.keys("/quit\r").await?;
    assert_eq!(screen.ended().await?, Some(0));
    Ok(())
}

#[tokio::test]
async fn a_command_is_always_allowed_or_declined_with_a_reason_on_a_terminal() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let workspace = place.rsplit('/').next().ok_or("no workspace")?;
    let mut screen = Screen::start(&client, &data.path().join("state"), &["chat", "--workspace", workspace])?;
    screen.until("What shall the agent do?").await?;
    screen.keys("/permissions\r").await?;
    screen.until("there is no chat yet").await?;
    // A person reads what they grant before they grant it.
    screen.keys("say it\r").await?;
    screen.until("a) always here: commands that begin with `echo said`").await?;
    screen.until("allow? (y, n, a, d, or n and why)").await?;
    screen.keys("/permissions\r").await?;
    screen.until("no call is always allowed here").await?;
    screen.keys("a\r").await?;
    screen.until("; always here: commands that begin with `echo said`").await?;
    screen.until("It said").await?;
    screen.until("tokens in").await?;
    screen.keys("/permissions\r").await?;
    screen.until("always here: commands that begin with `echo said`").await?;
    screen.keys("/permissions forget\r").await?;
    screen.until("calls are asked about again").await?;
    screen.keys("say it\r").await?;
    screen.until("allow?").await?;
    screen.keys("n because it is late\r").await?;
    screen.until("Refused: not permitted: a person declined: it is late").await?;
    screen.until("tokens in").await?;
    // A line with a shell's signs offers no rule.
    screen.keys("run it\r").await?;
    screen.until("allow? (y, n, or n and why)").await?;
    screen.keys("a\r").await?;
    screen.until("there is no rule for this").await?;
    screen.keys("n\r").await?;
    screen.until("It failed").await?;
    screen.keys("/quit\r").await?;
    assert_eq!(screen.ended().await?, Some(0));
    Ok(())
}

#[tokio::test]
async fn a_status_line_is_shown_below_the_line_that_is_typed_and_is_erased() -> Result {
    let data = tempfile::tempdir()?;
    let hub = scripted(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let workspace = place.rsplit('/').next().ok_or("no workspace")?;
    let mut screen = Screen::start(&client, &data.path().join("state"), &["chat", "--workspace", workspace])?;
    screen.prompt("> ").await?;
    screen.keys("tell it\r").await?;
    screen.until("allow?").await?;
    screen.keys("y\r").await?;
    screen.until("… tool: exec").await?;
    // The terminal shows the letters, and nothing is written between them and the next status line but the way down to it.
    screen.keys("and then").await?;
    screen.until("and then").await?;
    let way = screen.until("… tool: exec").await?;
    let way = way.rsplit("\x1b8").next().unwrap_or_default();
    assert_eq!(way, "\x1bD\x1bD\x1b[2A\x1b7\x1b[B\x1b[1G\x1b[J\x1b[B\x1b[0m\x1b[2m");
    // It is drawn again, as time goes by, and erased before anything is written.
    screen.until(" s\x1b[0m\x1b8").await?;
    screen.keys(CTRL_C).await?;
    let before = screen.until("stopping").await?;
    assert!(before.contains("\x1b[J\x1b8"), "{before:?}");
    screen.until("stopped").await?;
    screen.prompt("> ").await?;
    screen.keys("/quit\r").await?;
    assert_eq!(screen.ended().await?, Some(0));
    Ok(())
}

#[tokio::test]
async fn a_command_in_the_background_draws_no_status_line() -> Result {
    let data = tempfile::tempdir()?;
    let script = data.path().join("slow.yaml");
    std::fs::write(&script, "rules: [{steps: [{text: 'one two three four', chunks: 4, delay_ms: 900}]}]")?;
    let hub = start(data.path(), &[("BUILDSCALE__AI__SCRIPT", &script.display().to_string())]).await?;
    // With -m each command in the background has a process group of its own, as at a prompt.
    let shell = Command::new("/bin/sh").args(["-mc", "\"$0\" \"$@\" </dev/null & wait"]);
    let chat = shell.args([env!("CARGO_BIN_EXE_buildscale"), "chat", "--once", "count"]);
    let mut screen = Screen::of(chat, &hub.client().address(""), &data.path().join("state"))?;
    let shown = screen.until("three four").await?;
    assert!(!shown.contains("\x1bD"), "{shown:?}");
    Ok(())
}

#[tokio::test]
async fn a_conversation_has_commands_and_lines_that_are_edited_and_recalled() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let workspace = place.rsplit('/').next().ok_or("no workspace")?;
    let state = data.path().join("state");
    let mut screen = Screen::start(&client, &state, &["chat", "--workspace", workspace])?;
    screen.until("model ").await?;
    screen.prompt("> ").await?;
    screen.keys("/hlep\r").await?;
    screen.until("there is no /hlep; did you mean /help?").await?;
    screen.keys("/cost\r").await?;
    screen.until("there is no chat yet").await?;
    assert_eq!(client.get(&format!("{place}/chats")).await?["chats"].as_array().map(Vec::len), Some(0));

    // A slip is mended in the line, two slashes send one, and the line comes again.
    screen.keys(&format!("//usr is wht?{LEFT}{LEFT}a\r")).await?;
    screen.until("tokens in").await?;
    let chats = client.get(&format!("{place}/chats")).await?;
    let id = chats["chats"][0]["chat_id"].as_str().ok_or("no chat")?;
    let chat = client.get(&format!("{place}/chats/{id}")).await?;
    assert_eq!(chat["messages"][0]["content"], "/usr is what?");
    screen.keys("/cost\r").await?;
    screen.until("1 turn, ").await?;
    screen.prompt("> ").await?;

    // A remark may come while a line is being typed: the line is shown again below it.
    let becomes = async |mode: &str| -> Result {
        let changed = client.ask(Method::PATCH, &format!("{place}/chats/{id}"), json!({ "mode": mode })).await?;
        changed.good().map(drop)
    };
    screen.keys("/st").await?;
    screen.until("/st").await?;
    becomes("plan").await?;
    screen.until("mode: plan").await?;
    screen.until("/st").await?;
    // It waits while completions are chosen, and nothing waits for it.
    screen.keys(&format!("{CTRL_U}/mo\t")).await?;
    screen.until("/mode").await?;
    for mode in ["chat", "plan", "chat"] {
        becomes(mode).await?;
    }
    screen.keys("\r").await?;
    screen.until("mode: chat").await?;
    screen.keys("/mode plan\r").await?;
    screen.until("mode: plan").await?;
    screen.keys("/stop\r").await?;
    screen.until("nothing is running").await?;
    screen.keys("/new\r").await?;
    screen.until("a new chat begins").await?;
    screen.keys("/mode fast\r").await?;
    screen.until("there is no mode fast; there are: chat, plan, build").await?;
    screen.keys("/model scripted/demo\r").await?;
    screen.until("the chat begins with model scripted/demo").await?;

    // Lines end between words.
    screen.keys("/help\r").await?;
    screen.until("Ctrl-C stops the turn,\r\nCtrl-D leaves.").await?;
    screen.keys("/quit\r").await?;
    assert_eq!(screen.ended().await?, Some(0));
    let kept = state.join("buildscale/chat_history");
    assert!(std::fs::read_to_string(kept)?.contains("/usr is what?"));
    Ok(())
}

#[tokio::test]
async fn changes_of_a_turn_are_taken_back_and_restored_on_a_terminal() -> Result {
    let data = tempfile::tempdir()?;
    let hub = start(data.path(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let workspace = place.rsplit('/').next().ok_or("no workspace")?;
    let state = data.path().join("state");
    let mut screen = Screen::start(&client, &state, &["chat", "--workspace", workspace])?;
    screen.prompt("> ").await?;
    screen.keys("/undo\r").await?;
    screen.until("there is no chat yet").await?;
    screen.keys("app\r").await?;
    screen.until("tokens in").await?;
    let file = format!("{place}/files/by-path?path=/projects/app/a.md");
    client.look(&file).await?.is(200)?;
    screen.keys("/undo\r").await?;
    screen.until("the agent is not told; /redo restores it").await?;
    client.look(&file).await?.refuses(404, "NOT_FOUND")?;
    screen.keys("/undo\r").await?;
    screen.until("is taken back already").await?;
    screen.keys("/redo\r").await?;
    screen.until("brought back").await?;
    client.look(&file).await?.is(200)?;
    screen.keys("/redo\r").await?;
    screen.until("nothing was taken back with /undo").await?;
    screen.keys("/quit\r").await?;
    assert_eq!(screen.ended().await?, Some(0));

    // A chat that is gone on with names its own model, and not that of new ones.
    let chats = client.get(&format!("{place}/chats")).await?;
    let id = chats["chats"][0]["chat_id"].as_str().ok_or("no chat")?;
    let model = json!({ "model": "openai/other" });
    client.ask(Method::PATCH, &format!("{place}/chats/{id}"), model).await?.good()?;
    client.until(&format!("{place}/chats/{id}"), |view| view["model"] == "openai/other").await?;
    let mut screen = Screen::start(&client, &state, &["chat", "--workspace", workspace, "-c"])?;
    screen.until("model openai/other").await?;
    screen.prompt("> ").await?;
    screen.keys("/undo\r").await?;
    screen.until("no turn has ended since you came").await?;
    screen.keys("/quit\r").await?;
    assert_eq!(screen.ended().await?, Some(0));
    Ok(())
}

/// A process that ends when this goes.
struct Ended(String);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = std::process::Command::new("kill").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_hub_is_started_where_there_is_none() -> Result {
    let data = tempfile::tempdir()?;
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], testkit::free_port()));
    // A person who says nothing has not said yes.
    for keys in [CTRL_D, "n\r"] {
        let mut screen = Screen::at(&format!("http://{address}"), data.path(), &["chat", "write a haiku"])?;
        screen.until("Start one here? [Y/n]").await?;
        screen.keys(keys).await?;
        screen.until("cannot reach the hub").await?;
        assert_eq!(screen.ended().await?, Some(5));
        assert!(!data.path().join("data").exists());
    }
    let mut screen = Screen::at(&format!("http://{address}"), data.path(), &["chat", "write a haiku"])?;
    screen.until("Start one here? [Y/n]").await?;
    screen.keys("y\r").await?;
    screen.until("it ends with: kill ").await?;
    let shown = screen.until("\n").await?;
    let process: String = shown.chars().take_while(char::is_ascii_digit).collect();
    let _ended_with_the_test = Ended(process);
    screen.until("tokens in").await?;
    screen.keys("/quit\r").await?;
    assert_eq!(screen.ended().await?, Some(0));
    // It runs on: another command finds it.
    let chats = Command::new(env!("CARGO_BIN_EXE_buildscale")).args(["chats", "--url", &format!("http://{address}")]);
    let (_pty, pts) = pty_process::open()?;
    assert!(chats.env_clear().spawn(pts)?.wait().await?.success());
    Ok(())
}

#[tokio::test]
async fn results_that_are_sentences_end_between_words_on_a_terminal() -> Result {
    let data = tempfile::tempdir()?;
    let mut screen = Screen::at("http://127.0.0.1:1", data.path(), &["doctor"])?;
    screen.until("(os error 111); start it\r\n").await?;
    assert_eq!(screen.ended().await?, Some(1));
    Ok(())
}

#[tokio::test]
async fn a_terminal_gets_a_flow_as_text() -> Result {
    let data = tempfile::tempdir()?;
    let folder = data.path().join("choice");
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("workflow.yaml"), CHOICE)?;
    let args = ["flow", "graph", folder.to_str().ok_or("no path")?];
    let mut screen = Screen::at("http://127.0.0.1:1", data.path(), &args)?;
    screen.until("begin  start").await?;
    screen.until("└─ → say").await?;
    assert_eq!(screen.ended().await?, Some(0));
    Ok(())
}
