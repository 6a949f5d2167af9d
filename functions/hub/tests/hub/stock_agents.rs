//! The coding agents that `scripts/agents` installs, each with its whole story over `/v1`: a turn, an approved and a denied permission, a cancel,
//! and a hub that is killed in the middle of a turn and started again.

#[expect(clippy::unwrap_used, reason = "tests")]
#[path = "../../../../shared/agents/tests/support/stock.rs"]
pub(crate) mod stock;

use crate::support::{Client, Hub, Result, start};
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use stock::{Models, Setup, Stock};
use tempfile::TempDir;

struct World {
    hub: Hub,
    client: Client,
    app: PathBuf,
    thread: String,
    _models: Models,
    folder: TempDir,
}

/// The configuration of a hub that knows this agent.
fn configuration(stock: &Stock, app: &str) -> String {
    // A text of JSON is one of TOML, too.
    let text = |value: &str| json!(value).to_string();
    let args: Vec<String> = stock.args.iter().map(|arg| text(arg)).collect();
    let env: Vec<String> = stock.env.iter().map(|(name, value)| format!("{name} = {}", text(value))).collect();
    let auth = stock.auth.map(|auth| format!("auth = {}\n", text(auth))).unwrap_or_default();
    format!(
        "[hub]\nallowed_roots = [{}]\nagent_start_seconds = 150\n[agents.{}]\ncommand = {}\nargs = [{}]\n{auth}env = {{ {} }}\n",
        text(app),
        stock.id,
        text(&stock.command),
        args.join(", "),
        env.join(", "),
    )
}

impl World {
    async fn new(setup: Setup) -> Result<Self> {
        Self::in_folder(setup, None).await
    }

    /// With a thread in this folder; in one of the machine without it.
    async fn in_folder(setup: Setup, folder_of_thread: Option<&str>) -> Result<Self> {
        let (models, folder) = (Models::start(), stock::folder());
        for name in ["app", "home", "hub"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let app = fs::canonicalize(folder.path().join("app"))?;
        let cwd = app.display().to_string();
        let stock = setup(&folder.path().join("home"), &models.address());
        fs::write(folder.path().join("hub/buildscale.toml"), configuration(&stock, &cwd))?;
        let path = std::env::var("PATH")?;
        let hub = start(&folder.path().join("hub"), &[("PATH", &path)]).await?;
        let client = hub.client();
        let new = json!({ "agent": stock.id, "cwd": folder_of_thread.unwrap_or(&cwd) });
        let made = ask(&client, Method::POST, "/v1/threads", new).await?;
        let thread = format!("/v1/threads/{}", made["threadId"].as_str().ok_or("no threadId")?);
        Ok(Self { hub, client, app, thread, _models: models, folder })
    }

    /// Begins a turn; its path.
    async fn begin(&self, words: &str) -> Result<String> {
        let begun =
            ask(&self.client, Method::POST, &format!("{}/turns", self.thread), json!({ "input": words })).await?;
        Ok(format!("/v1/turns/{}", begun["turnId"].as_str().ok_or("no turnId")?))
    }

    /// The frames of a turn up to the first one that fits; all of them where none does.
    async fn until(&self, turn: &str, fits: impl Fn(&str, &Value) -> bool) -> Result<Vec<(String, Value)>> {
        let request = self.client.request(Method::GET, &format!("{turn}/events")).header("x-client-id", "story");
        let fit = |name: &str, data: &Value| fits(name, data) || name == "turn_completed";
        let opened = self.client.open_with(request).await?;
        let events = opened.until(|events| events.last().is_some_and(|last| fit(&last.name, &last.data))).await?;
        Ok(events.into_iter().map(|event| (event.name, event.data)).collect())
    }

    async fn end(&self, turn: &str) -> Result<Vec<(String, Value)>> {
        self.until(turn, |_, _| false).await
    }

    async fn hello(&self) -> Result {
        let turn = self.begin("please hello it now").await?;
        let frames = self.end(&turn).await?;
        let said: String = frames.iter().filter_map(|(_, data)| data["delta"].as_str()).collect();
        assert!(said.contains("Hello from the model."), "{frames:?}");
        assert_eq!(stop_reason(&frames), "end_turn");
        Ok(())
    }

    /// Has the agent run its command, and answers its request with its own option of this kind; whether the command ran.
    async fn run(&self, kind: &str) -> Result<bool> {
        let [made, ended] = ["made.txt", "ended.txt"].map(|name| self.app.join(name));
        for file in [&made, &ended].into_iter().filter(|file| file.exists()) {
            fs::remove_file(file)?;
        }
        for _ in 0..3 {
            self.decide(kind).await?;
            if kind != "allow_once" || stock::comes(|| ended.exists()).await {
                return Ok(made.exists());
            }
        }
        Err("a command that was permitted does not run".into())
    }

    /// A turn in which the agent asks to run its command, and is answered with its own option of this kind.
    async fn decide(&self, kind: &str) -> Result {
        let turn = self.begin("please run it now").await?;
        let frames = self.until(&turn, |name, _| name == "permission_required").await?;
        let (_, asked) = frames.last().filter(|(name, _)| name == "permission_required").ok_or("it does not ask")?;
        assert_eq!(asked["approval"], "command", "{asked}");
        assert!(asked["command"].as_str().is_some_and(|command| command.contains("touch made.txt")), "{asked}");
        let options = asked["options"].as_array().ok_or("no options")?;
        let option = options.iter().find(|option| option["kind"] == kind).ok_or("no such option")?;
        let permission = format!("/v1/permissions/{}", asked["permissionId"].as_str().ok_or("no permissionId")?);
        ask(&self.client, Method::POST, &permission, json!({ "optionId": option["optionId"] })).await?;
        let frames = self.end(&turn).await?;
        assert!(frames.iter().any(|(name, _)| name == "permission_resolved"), "{frames:?}");
        Ok(())
    }

    /// Begins a turn that does not end by itself, and waits for its first words.
    async fn slow(&self) -> Result<String> {
        let turn = self.begin("please slow it now").await?;
        let is_there = |name: &str, data: &Value| name == "message_delta" && data.to_string().contains("Slowly");
        let frames = self.until(&turn, is_there).await?;
        assert_eq!(frames.last().map(|(name, _)| name.as_str()), Some("message_delta"), "{frames:?}");
        Ok(turn)
    }

    async fn story(mut self) -> Result {
        self.hello().await?;
        assert!(self.run("allow_once").await?, "an approved command runs");
        assert!(!self.run("reject_once").await?, "a denied command does not run");

        let turn = self.slow().await?;
        ask(&self.client, Method::POST, &format!("{turn}/cancel"), json!({})).await?;
        assert_eq!(stop_reason(&self.end(&turn).await?), "cancelled");

        let turn = self.slow().await?;
        self.hub.kill().await?;
        self.hub.restart().await?;
        assert_eq!(stop_reason(&self.end(&turn).await?), "error", "its prompt is not given twice");
        self.hello().await?;
        let history = ask(&self.client, Method::GET, &format!("{}/history", self.thread), Value::Null).await?;
        let turns = history["turns"].as_array().ok_or("no turns")?;
        let statuses: Vec<&str> = turns.iter().filter_map(|turn| turn["status"].as_str()).collect();
        // Before these are as many turns as the command took to run.
        assert!(statuses.ends_with(&["cancelled", "error", "completed"]), "{history}");
        Ok(())
    }
}

async fn ask(client: &Client, method: Method, path: &str, body: Value) -> Result<Value> {
    let request = client.request(method, path).header("x-client-id", "story");
    client.send(if body.is_null() { request } else { request.json(&body) }).await?.good()
}

fn stop_reason(frames: &[(String, Value)]) -> &str {
    let last = frames.last().filter(|(name, _)| name == "turn_completed");
    last.and_then(|(_, data)| data["stopReason"].as_str()).unwrap_or_default()
}

#[tokio::test]
async fn codex_completes_its_story_across_a_killed_hub() -> Result {
    World::new(stock::codex).await?.story().await
}

#[tokio::test]
async fn opencode_completes_its_story_across_a_killed_hub() -> Result {
    World::new(stock::opencode).await?.story().await
}

#[tokio::test]
async fn gemini_completes_its_story_across_a_killed_hub() -> Result {
    World::new(stock::gemini).await?.story().await
}

#[tokio::test]
async fn claude_completes_its_story_across_a_killed_hub() -> Result {
    World::new(stock::claude).await?.story().await
}

#[tokio::test]
async fn section_14_stock_agents_work_on_the_files_of_a_workspace() -> Result {
    for setup in [stock::codex as Setup, stock::claude] {
        let world = World::in_folder(setup, Some("/workspace/projects/app")).await?;
        world.hello().await?;
        world.decide("allow_once").await?;
        let listed = world.client.get("/api/v1/workspaces").await?;
        let workspace = listed["workspaces"][0]["workspace_id"].as_str().ok_or("no workspace")?;
        let files = format!("/api/v1/workspaces/{workspace}/files/by-path?path=/projects/app");
        // Some agents end a turn before its command: then the next turn finds the file.
        let thread = world.thread.rsplit('/').next().ok_or("no thread")?;
        let copy = world.folder.path().join("hub/copies").join(workspace).join(thread);
        while !stock::comes(|| copy.join("latest/projects/app/ended.txt").exists()).await {
            world.decide("allow_once").await?;
        }
        if world.client.look(&format!("{files}/ended.txt")).await?.status == 404 {
            world.hello().await?;
        }
        let made = world.client.get(&format!("{files}/made.txt")).await?;
        assert_eq!(made["v"], 1, "{made}");
        assert!(made["author"].as_str().is_some_and(|author| author.starts_with("agent")), "{made}");
    }
    Ok(())
}
