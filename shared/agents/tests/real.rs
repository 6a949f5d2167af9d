//! Real coding agents, as `scripts/agents` installs them, against a model server on this machine: a turn, an approved and a denied permission,
//! a cancel, a crash, and a restart each.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/stock.rs"]
mod stock;

use buildscale_agents::{ChildAgents, ConfineThread, Confined, KnownAgent, Options, built_in_agents};
use domain::{AgentOptions, ChatId, ThreadAgent, TurnId, WorkspaceId};
use ports::{AgentPrompt, AgentRequest, AgentTurn, AgentUpdate, Agents};
use serde_json::json;
use std::{fs, path::PathBuf, time::Duration};
use stock::{Models, Setup};
use tempfile::TempDir;
use tokio::time::timeout;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(120);

struct World {
    folder: TempDir,
    known: KnownAgent,
    agents: ChildAgents,
    session: Option<String>,
    turns: u128,
    _models: Models,
}

impl World {
    /// An agent with a home of its own, confined as it is by default.
    fn new(setup: Setup) -> Self {
        Self::with(setup, Confined::WherePossible)
    }

    fn with(setup: Setup, confined: Confined) -> Self {
        let models = Models::start();
        let folder = stock::folder();
        for name in ["app", "home"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let stock = setup(&folder.path().join("home"), &models.address());
        let known = KnownAgent {
            id: "real".into(),
            name: stock.id.into(),
            command: stock.command,
            args: stock.args.into_iter().map(ToOwned::to_owned).collect(),
            env: stock.env,
            auth: stock.auth.map(ToOwned::to_owned),
            ..built_in_agents().into_iter().find(|known| known.id == stock.id).unwrap()
        };
        assert_eq!(known.confined, Confined::WherePossible, "it works so");
        let known = KnownAgent { confined, ..known };
        fs::write(folder.path().join("secret.txt"), "a secret").unwrap();
        let agents = Self::agents(&folder, &known);
        Self { folder, known, agents, session: None, turns: 0, _models: models }
    }

    fn agents(folder: &TempDir, known: &KnownAgent) -> ChildAgents {
        ChildAgents::new(Options {
            agents: vec![known.clone()],
            roots: vec![folder.path().join("app")],
            environment: vec![("PATH".into(), std::env::var("PATH").unwrap())],
            start: PATIENCE,
            confine: sandbox::can_confine().map(|()| sandbox::confine as ConfineThread),
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
        let prompt = AgentPrompt { turn, thread, content, context: String::new(), own_mode: false };
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
        self.command("run", "touch made.txt", kind).await
    }

    /// Has the agent run the command of this verb, which makes a file, and decides on its request; whether the file is there once the command has
    /// ended, if it runs.
    async fn command(&mut self, verb: &str, command: &str, kind: &str) -> bool {
        for _ in 0..3 {
            if let Some(is_made) = self.commanded(verb, command, kind).await {
                return is_made;
            }
        }
        panic!("a command that was permitted does not run");
    }

    /// The same, once; none if it was permitted, and the agent ended its turn without its effect.
    async fn commanded(&mut self, verb: &str, command: &str, kind: &str) -> Option<bool> {
        let [made, ended] = ["made.txt", "ended.txt"].map(|name| self.app().join(name));
        for file in [&made, &ended].into_iter().filter(|file| file.exists()) {
            fs::remove_file(file).unwrap();
        }
        let turn = self.prompt(&format!("please {verb} it now")).await;
        let mut is_asked = false;
        // Some ask for the folder and for the command.
        loop {
            let updates = self.until(&turn, is_pause).await;
            let asked = updates.into_iter().find(is_pause);
            let Some(AgentUpdate::Asks(AgentRequest { request, options, call, title, .. })) = asked else {
                assert!(matches!(asked, Some(AgentUpdate::Ended { .. })), "{asked:?}");
                break;
            };
            assert!(call.contains(command) || title.contains(command), "{title}: {call}");
            let option = options.iter().find(|option| option.kind == kind).map(|option| option.id.clone());
            self.agents.answer(&turn, &request, option.as_deref()).await.unwrap();
            is_asked = true;
        }
        assert!(is_asked, "it does not ask");
        let has_ended = kind != "allow_once" || stock::comes(|| ended.exists()).await;
        has_ended.then(|| made.exists())
    }

    /// `loads`: whether the agent loads a session whose last turn was cut off; none where that depends on the clock.
    async fn story(&mut self, loads: Option<bool>) {
        self.hello().await;
        assert!(self.run("allow_once").await, "an approved command runs");
        assert!(!self.run("reject_once").await, "a denied command does not run");
        let stolen = self.command("spy", "cp ../secret.txt made.txt", "allow_once").await;
        assert!(!stolen, "a confined agent reads no file beside its folders, also where a person allows the command");

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
        let has_loaded = self.session == before;
        assert_eq!(loads.unwrap_or(has_loaded), has_loaded, "{before:?} and then {:?}", self.session);
    }
}

fn is_pause(update: &AgentUpdate) -> bool {
    matches!(update, AgentUpdate::Asks(_) | AgentUpdate::Ended { .. } | AgentUpdate::Gone { .. })
}

fn text(updates: &[AgentUpdate]) -> String {
    let texts = updates.iter().filter_map(|update| match update {
        AgentUpdate::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn codex_completes_the_story() {
    World::new(stock::codex).story(Some(true)).await;
}

#[tokio::test]
async fn an_agent_that_is_not_confined_reads_what_its_person_reads() {
    let mut world = World::with(stock::codex, Confined::No);
    assert!(world.command("spy", "cp ../secret.txt made.txt", "allow_once").await);
}

#[tokio::test]
async fn opencode_completes_the_story() {
    World::new(stock::opencode).story(Some(true)).await;
}

#[tokio::test]
async fn gemini_completes_the_story() {
    // A process names the file of a session by the minute. In the minute of the process before, it begins that file anew, and then has nothing to load.
    World::new(stock::gemini).story(None).await;
}

#[tokio::test]
async fn claude_completes_the_story() {
    World::new(stock::claude).story(Some(true)).await;
}
