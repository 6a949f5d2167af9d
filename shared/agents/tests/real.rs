//! Real coding agents, as `scripts/agents` installs them, against a model server on this machine: a turn, an approved and a denied permission,
//! a cancel, a crash, and a restart each.

#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_agents::{ChildAgents, Known, Options};
use domain::{AgentOptions, ChatId, ThreadAgent, TurnId, WorkspaceId};
use ports::{AgentPrompt, AgentRequest, AgentTurn, AgentUpdate, Agents};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::time::timeout;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(120);

/// The program of an agent.
fn program(name: &str) -> String {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    let cache = variable("BUILDSCALE_CACHE")
        .unwrap_or_else(|| variable("XDG_CACHE_HOME").unwrap_or_else(home).join("buildscale"));
    let path = cache.join("agents/installed/node_modules/.bin").join(name);
    assert!(path.exists(), "{name} is not installed: run scripts/agents, which puts it at {}", path.display());
    path.display().to_string()
}

/// The model server; it ends with the test.
struct Models {
    process: Child,
    port: u16,
}

impl Models {
    fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models.py");
        let mut command = Command::new("python3");
        let mut process = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap() }
    }
}

impl Drop for Models {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct World {
    folder: TempDir,
    known: Known,
    agents: ChildAgents,
    session: Option<String>,
    turns: u128,
    _models: Models,
}

impl World {
    /// An agent with a home of its own; `setup` gives its program, arguments, sign-in and environment, by the home and the server's address.
    fn new(setup: impl FnOnce(&std::path::Path, &str) -> Known) -> Self {
        let models = Models::start();
        let folder = tempfile::tempdir().unwrap();
        for name in ["app", "home"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let home = folder.path().join("home");
        let mut known = setup(&home, &format!("http://127.0.0.1:{}", models.port));
        known.id = "real".into();
        known.env.insert("HOME".into(), home.display().to_string());
        let agents = Self::agents(&folder, &known);
        Self { folder, known, agents, session: None, turns: 0, _models: models }
    }

    fn agents(folder: &TempDir, known: &Known) -> ChildAgents {
        ChildAgents::new(Options {
            agents: vec![known.clone()],
            roots: vec![folder.path().join("app")],
            environment: vec![("PATH".into(), std::env::var("PATH").unwrap())],
            start: PATIENCE,
            ..Options::default()
        })
    }

    fn app(&self) -> PathBuf {
        fs::canonicalize(self.folder.path().join("app")).unwrap()
    }

    async fn prompt(&mut self, words: &str) -> AgentTurn {
        self.turns += 1;
        let (workspace, chat) = (WorkspaceId(Uuid::from_u128(1)), ChatId(Uuid::from_u128(2)));
        let turn = AgentTurn { workspace, chat, turn: TurnId(Uuid::from_u128(100 + self.turns)) };
        let options = AgentOptions { session_id: self.session.clone(), ..AgentOptions::default() };
        let thread = ThreadAgent { agent: "real".into(), cwd: self.app().display().to_string(), options };
        let content = vec![json!({ "type": "text", "text": words })];
        let prompt = AgentPrompt { turn, thread, content, context: String::new() };
        self.agents.prompt(prompt).await.unwrap();
        turn
    }

    async fn until(&mut self, turn: &AgentTurn, is_last: impl Fn(&AgentUpdate) -> bool) -> Vec<AgentUpdate> {
        let mut all = Vec::new();
        loop {
            let more = timeout(PATIENCE, self.agents.updates(turn)).await;
            let more = more.unwrap_or_else(|_| panic!("nothing more after {all:?}")).unwrap();
            for update in &more {
                if let AgentUpdate::Bound { session } = update {
                    self.session = Some(session.clone());
                }
            }
            all.extend(more);
            if all.iter().any(&is_last) {
                return all;
            }
        }
    }

    async fn end(&mut self, turn: &AgentTurn) -> Vec<AgentUpdate> {
        self.until(turn, |update| matches!(update, AgentUpdate::Ended { .. } | AgentUpdate::Gone { .. })).await
    }

    async fn hello(&mut self) {
        let turn = self.prompt("please hello it now").await;
        let updates = self.end(&turn).await;
        assert!(text(&updates).contains("Hello from the model."), "{updates:?}");
        assert_eq!(updates.last(), Some(&AgentUpdate::Ended { stop_reason: "end_turn".into() }));
    }

    /// Has the agent run its command, and decides on its request; whether the command ran.
    async fn run(&mut self, kind: &str) -> bool {
        let made = self.app().join("made.txt");
        if made.exists() {
            fs::remove_file(&made).unwrap();
        }
        let turn = self.prompt("please run it now").await;
        let asked =
            self.until(&turn, |update| matches!(update, AgentUpdate::Asks(_) | AgentUpdate::Ended { .. })).await;
        let Some(AgentUpdate::Asks(AgentRequest { request, category, options, call, title })) = asked.last() else {
            panic!("it does not ask: {asked:?}");
        };
        assert_eq!(category, "command", "{call}");
        assert!(call.contains("touch made.txt") || title.contains("touch made.txt"), "{title}: {call}");
        let option = options.iter().find(|option| option.kind == kind).map(|option| option.id.clone());
        self.agents.answer(&turn, request, option.as_deref()).await.unwrap();
        let updates = self.end(&turn).await;
        assert!(matches!(updates.last(), Some(AgentUpdate::Ended { .. })), "{updates:?}");
        made.exists()
    }

    /// `loads`: whether the agent loads a session whose last turn was cut off.
    async fn story(&mut self, loads: bool) {
        self.hello().await;
        assert!(self.run("allow_once").await, "an approved command runs");
        assert!(!self.run("reject_once").await, "a denied command does not run");

        let turn = self.prompt("please slow it now").await;
        self.until(&turn, |update| matches!(update, AgentUpdate::Text(text) if text.contains("Slowly"))).await;
        self.agents.cancel(&turn).await.unwrap();
        let updates = self.end(&turn).await;
        assert_eq!(updates.last(), Some(&AgentUpdate::Ended { stop_reason: "cancelled".into() }));

        let turn = self.prompt("please slow it now").await;
        self.until(&turn, |update| matches!(update, AgentUpdate::Text(text) if text.contains("Slowly"))).await;
        self.agents.end(turn.workspace, turn.chat).await.unwrap();
        assert!(self.agents.updates(&turn).await.is_err(), "a turn ends with its process");

        // As after a restart of the hub: nothing is known of the process but its session.
        let before = self.session.clone();
        self.agents = Self::agents(&self.folder, &self.known);
        self.hello().await;
        assert_eq!(self.session == before, loads, "{before:?} and then {:?}", self.session);
    }
}

fn text(updates: &[AgentUpdate]) -> String {
    let texts = updates.iter().filter_map(|update| match update {
        AgentUpdate::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn agent(name: &str, command: &str, args: &[&str], env: &[(&str, String)]) -> Known {
    let env: BTreeMap<String, String> = env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Known {
        name: name.into(),
        command: program(command),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env,
        ..Known::default()
    }
}

#[tokio::test]
async fn codex_completes_the_story() {
    let mut world = World::new(|home, models| {
        let config = format!(
            "model = \"stub\"\nmodel_provider = \"stub\"\napproval_policy = \"untrusted\"\nsandbox_mode = \"read-only\"\n\
             [model_providers.stub]\nname = \"stub\"\nbase_url = \"{models}/v1\"\nwire_api = \"responses\"\nenv_key = \"STUB_KEY\"\n\
             requires_openai_auth = false\n"
        );
        fs::write(home.join("config.toml"), config).unwrap();
        let env = [("CODEX_HOME", home.display().to_string()), ("STUB_KEY", "x".into())];
        agent("Codex", "codex-acp", &[], &env)
    });
    world.story(true).await;
}

#[tokio::test]
async fn opencode_completes_the_story() {
    let mut world = World::new(|_, models| {
        let provider = json!({
            "npm": "@ai-sdk/openai-compatible", "name": "stub", "models": { "stub": { "name": "stub" } },
            "options": { "baseURL": format!("{models}/v1"), "apiKey": "x" },
        });
        let config = json!({
            "provider": { "stub": provider }, "model": "stub/stub", "small_model": "stub/stub",
            "permission": { "bash": "ask", "edit": "ask" },
        });
        let env = [
            ("OPENCODE_CONFIG_CONTENT", config.to_string()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".into()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".into()),
        ];
        agent("OpenCode", "opencode", &["acp"], &env)
    });
    world.story(true).await;
}

#[tokio::test]
async fn gemini_completes_the_story() {
    let mut world = World::new(|_, models| {
        let env = [("GEMINI_API_KEY", "x".into()), ("GOOGLE_GEMINI_BASE_URL", models.to_owned())];
        Known { auth: Some("gemini-api-key".into()), ..agent("Gemini CLI", "gemini", &["--acp"], &env) }
    });
    world.story(false).await;
}

#[tokio::test]
async fn claude_completes_the_story() {
    let mut world = World::new(|_, models| {
        let env = [
            ("ANTHROPIC_BASE_URL", models.to_owned()),
            ("ANTHROPIC_API_KEY", "x".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
        ];
        agent("Claude Code", "claude-agent-acp", &[], &env)
    });
    world.story(true).await;
}
