//! The servers of tools that `scripts/mcp-parts` installs, behind a hub: each goes through the same story of a chat.

use crate::{
    support::{PATIENCE, Result, count, start},
    tool_servers::{connected, installed},
};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command, time::Duration};
use tokio::time::{sleep, timeout};

/// Starts a server in the given folder. `asked` has all that it was asked, and `pid` the number of its process.
const WRAPPER: &str = r#"
PATH=/usr/local/bin:/usr/bin:/bin; export PATH
cd "$1" || exit; shift
mkfifo "pipe.$$"; exec 3<&0
tee -a asked <&3 >"pipe.$$" 2>/dev/null &
echo $$ >pid
exec "$@" <"pipe.$$" 3<&-
"#;

/// A real server, a call of it, and words of its answer.
struct Server {
    name: &'static str,
    program: Vec<String>,
    tool: &'static str,
    args: Value,
    says: &'static str,
}

fn node(package: &str, args: &[&str]) -> Vec<String> {
    let at = installed().join("node_modules");
    let script = at.join("@modelcontextprotocol").join(package).join("dist/index.js");
    let words = [at.join("node/bin/node").display().to_string(), script.display().to_string()];
    words.into_iter().chain(args.iter().map(ToString::to_string)).collect()
}

fn python(module: &str, args: &[&str]) -> Vec<String> {
    let words = [installed().join("python/bin/python").display().to_string(), "-m".into(), module.into()];
    words.into_iter().chain(args.iter().map(ToString::to_string)).collect()
}

/// All of them, over what they show of this folder.
fn servers(folder: &Path) -> Result<Vec<Server>> {
    let folder = folder.canonicalize()?;
    fs::write(folder.join("a.txt"), "the words of the file")?;
    for words in [
        &["init", "-q"][..],
        &["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "the first"],
    ] {
        assert!(Command::new("git").args(words).current_dir(&folder).status()?.success(), "{words:?}");
    }
    let at = folder.display().to_string();
    let server = |name, program, tool, args, says| Server { name, program, tool, args, says };
    Ok(vec![
        server(
            "everything",
            node("server-everything", &["stdio"]),
            "echo",
            json!({ "message": "hello there" }),
            "hello there",
        ),
        server(
            "filesystem",
            node("server-filesystem", &[&at]),
            "read_text_file",
            json!({ "path": folder.join("a.txt") }),
            "the words of the file",
        ),
        server(
            "time",
            python("mcp_server_time", &["--local-timezone", "UTC"]),
            "get_current_time",
            json!({ "timezone": "UTC" }),
            "UTC",
        ),
        server(
            "git",
            python("mcp_server_git", &["--repository", &at]),
            "git_log",
            json!({ "repo_path": at }),
            "the first",
        ),
    ])
}

/// A running server, as its wrapper tells of it.
struct Seen<'a>(&'a Path);

impl Seen<'_> {
    fn process(&self) -> Result<String> {
        Ok(fs::read_to_string(self.0.join("pid"))?.trim().to_owned())
    }

    fn signal(&self, signal: &str) -> Result<bool> {
        Ok(Command::new("kill").args([signal, &self.process()?]).status()?.success())
    }

    fn calls(&self) -> usize {
        let asked = fs::read(self.0.join("asked")).unwrap_or_default();
        String::from_utf8_lossy(&asked).matches("\"tools/call\"").count()
    }

    async fn until_called(&self, times: usize) -> Result {
        let looking = async {
            while self.calls() < times {
                // poll: the wrapper notes a call without telling anybody
                sleep(Duration::from_millis(20)).await;
            }
        };
        Ok(timeout(PATIENCE, looking).await?)
    }
}

#[tokio::test]
async fn each_real_server_is_declined_allowed_stopped_killed_in_a_call_and_there_after_a_restart() -> Result {
    let shown = tempfile::tempdir()?;
    for server in servers(shown.path())? {
        let name = server.name;
        story(server).await.map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

async fn story(Server { name, program, tool, args, says }: Server) -> Result {
    let (data, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (wrapper, script) = (data.path().join("wrapper.sh"), data.path().join("real.yaml"));
    fs::write(&wrapper, WRAPPER)?;
    let rules = json!({ "rules": [{ "steps": [
        { "calls": [{ "tool": format!("mcp__own__{tool}"), "args": args }] },
        { "when": { "success": true }, "text": "It said {{result}}", "else": { "text": "It failed: {{result}}" } },
    ] }] });
    fs::write(&script, rules.to_string())?;
    let words = [wrapper.display().to_string(), folder.path().display().to_string()];
    let words = json!(words.into_iter().chain(program).collect::<Vec<_>>()).to_string();
    let script = script.display().to_string();
    let settings = [
        ("BUILDSCALE__AI__SCRIPT", script.as_str()),
        ("BUILDSCALE__MCP__OWN__COMMAND", "/bin/sh"),
        ("BUILDSCALE__MCP__OWN__ARGS", words.as_str()),
        ("BUILDSCALE__MCP__OWN__CONFINED", "false"),
    ];
    let mut hub = start(data.path(), &settings).await?;
    let client = hub.client();
    let place = client.place().await?;
    connected(&client, &place).await?;
    let seen = Seen(folder.path());
    let chat = client.chat(&place, "call it").await?;
    let watch = client.watch(&chat);
    let again = async || client.post(&chat, json!({ "content": "call it again" })).await.map(drop);
    let decide = async |nth: usize, decision: Value| -> Result {
        let asked = watch.until_nth("permission_required", nth).await?;
        let permission = asked.data["permission_id"].as_str().ok_or("no permission_id")?;
        client.post(&format!("{chat}/permissions/{permission}"), decision).await.map(drop)
    };
    let said = async |nth: usize| -> Result<String> {
        let done = watch.until_nth("done", nth).await?;
        Ok(done.data["message"].as_str().ok_or("no message")?.to_owned())
    };
    let is_answer = |words: &str| words.starts_with("It said ") && words.contains(says);

    decide(1, json!({ "outcome": "declined" })).await?;
    let words = said(1).await?;
    assert!(words.starts_with("It failed: ") && words.contains("a person declined"), "{name}: {words}");
    assert_eq!(seen.calls(), 0, "{name} was asked nothing");
    again().await?;
    decide(2, json!({ "outcome": "approved", "always": true })).await?;
    let words = said(2).await?;
    assert!(is_answer(&words), "{name}: {words}");

    // It hangs in a call, which a person stops; then it goes on.
    assert!(seen.signal("-STOP")?);
    again().await?;
    seen.until_called(2).await?;
    client.post(&format!("{chat}/stop"), json!({})).await?;
    watch.until_event("stopped").await?;
    seen.signal("-CONT")?;
    connected(&client, &place).await?;
    again().await?;
    let words = said(3).await?;
    assert!(is_answer(&words), "{name}: {words}");

    // It dies in a call, and is started again with the next one.
    let first = seen.process()?;
    assert!(seen.signal("-STOP")?);
    again().await?;
    seen.until_called(4).await?;
    assert!(seen.signal("-KILL")?);
    let words = said(4).await?;
    assert!(words.starts_with("It failed: ") && words.contains("is gone"), "{name}: {words}");
    connected(&client, &place).await?;
    again().await?;
    let words = said(5).await?;
    assert!(is_answer(&words), "{name}: {words}");
    let second = seen.process()?;
    assert_ne!(first, second, "{name}");

    assert!(hub.terminate().await?.success(), "{name}");
    hub.restart().await?;
    connected(&client, &place).await?;
    again().await?;
    let words = said(6).await?;
    assert!(is_answer(&words), "{name}: {words}");
    assert_ne!(second, seen.process()?, "{name}");
    assert_eq!((seen.calls(), count(&watch.events(), "permission_required")), (6, 2), "{name}");
    Ok(())
}
