//! The first requests to a process: who it is, its sign-in, its session.

use crate::{connection::Failure, process::Process, registry::Known, world::World};
use domain::{AgentOptions, ThreadAgent};
use ports::{AgentMessage, AgentOffers, Error, Result};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

/// The version of the protocol that is spoken.
const PROTOCOL: u64 = 1;

/// A process that has been greeted.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub process: Process,
    name: String,
    /// Its capabilities.
    pub offers: Value,
    patience: Duration,
}

/// A session that is open.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Whether the agent knows the conversation so far.
    pub is_loaded: bool,
    /// The answer to the request that made it.
    pub answer: Value,
}

impl Greeted {
    /// Starts a process and greets it.
    pub async fn start(agent: &Known, cwd: &Path, world: &World, patience: Duration) -> Result<Self> {
        let process = Process::spawn(agent, cwd, world)?;
        let mut greeted = Self { process, name: agent.name.clone(), offers: Value::Null, patience };
        let hello = json!({
            "protocolVersion": PROTOCOL,
            "clientCapabilities": { "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true },
            "clientInfo": { "name": "buildscale", "title": "BuildScale", "version": env!("CARGO_PKG_VERSION") },
        });
        let answer = greeted.ask("initialize", hello).await?;
        let version = answer["protocolVersion"].as_u64();
        if version != Some(PROTOCOL) {
            let why = format!("{} speaks version {version:?} of the protocol, and not {PROTOCOL}", greeted.name);
            return Err(Error::unavailable("the agent", why));
        }
        greeted.offers = answer["agentCapabilities"].clone();
        if let Some(method) = &agent.auth {
            greeted.ask("authenticate", json!({ "methodId": method })).await?;
        }
        Ok(greeted)
    }

    /// A request of the start.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value> {
        let asked = self.process.shared.connection.request_within(self.patience, method, params).await;
        match asked {
            Ok(answer) => Ok(answer),
            Err(failure) => Err(self.failed(method, failure).await),
        }
    }

    async fn failed(&self, method: &str, failure: Failure) -> Error {
        let name = &self.name;
        let why = match failure {
            Failure::Refused(why) => format!("{name} refused {method}: {why}"),
            Failure::Silent => format!("{name} did not answer {method} within {} s", self.patience.as_secs()),
            Failure::Closed => {
                self.process.gone().await.unwrap_or_else(|| format!("{name} ended before it answered {method}"))
            }
        };
        Error::unavailable("the agent", why)
    }

    /// The content of a prompt as the agent takes it: in place of an image that it does not take come words about it.
    pub fn takes(&self, content: Vec<Value>) -> Vec<Value> {
        let sees = self.offers["promptCapabilities"]["image"] == true;
        let as_taken = |block: Value| match block["type"].as_str() {
            Some("image") if !sees => {
                let name = block["uri"].as_str().unwrap_or("without a name");
                json!({ "type": "text", "text": format!("the image {name} is attached, and {} takes no images", self.name) })
            }
            _ => block,
        };
        content.into_iter().map(as_taken).collect()
    }

    pub fn loads(&self) -> bool {
        self.offers["loadSession"] == true
    }

    /// Opens the session of a thread: the one that it had, where the agent can load it, else a new one. `cwd` is
    /// the folder on this disk.
    pub async fn open(&self, thread: &ThreadAgent, cwd: &str) -> Result<Opened> {
        if let Some(session) = thread.options.session_id.as_deref().filter(|_| self.loads()) {
            match self.load(session, cwd).await {
                Ok((answer, _)) => {
                    self.process.shared.state().session = session.to_owned();
                    return Ok(Opened { is_loaded: true, answer });
                }
                Err(error @ Error::Unavailable { .. }) if self.process.shared.state().gone.is_some() => {
                    return Err(error);
                }
                Err(error) => tracing::info!(agent = self.name, %error, "a session is not loaded: a new one is begun"),
            }
        }
        let answer = self.ask("session/new", json!({ "cwd": cwd, "mcpServers": [] })).await?;
        let Some(session) = answer["sessionId"].as_str() else {
            return Err(Error::unavailable("the agent", format!("{} gave no session", self.name)));
        };
        self.process.shared.state().session = session.to_owned();
        Ok(Opened { is_loaded: false, answer })
    }

    /// Loads a session; its updates so far, which are history.
    async fn load(&self, session: &str, cwd: &str) -> Result<(Value, Vec<Value>)> {
        self.process.shared.state().replayed = Some(Vec::new());
        let asked = self.ask("session/load", json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] })).await;
        let replayed = self.process.shared.state().replayed.take().unwrap_or_default();
        Ok((asked?, replayed))
    }

    /// Sets what a thread wants of its session.
    pub async fn set(&self, options: &AgentOptions) -> Result<()> {
        let session = self.process.shared.state().session.clone();
        if let Some(mode) = &options.mode {
            self.choose("session/set_mode", json!({ "sessionId": session, "modeId": mode })).await?;
        }
        if let Some(model) = &options.model_id {
            self.choose("session/set_model", json!({ "sessionId": session, "modelId": model })).await?;
        }
        for (option, value) in &options.config_overrides {
            let chosen = json!({ "sessionId": session, "configId": option, "value": value });
            self.choose("session/set_config_option", chosen).await?;
        }
        Ok(())
    }

    async fn choose(&self, method: &str, params: Value) -> Result<()> {
        match self.process.shared.connection.request_within(self.patience, method, params).await {
            Ok(_) => Ok(()),
            Err(Failure::Refused(why)) => Err(Error::Invalid(format!("{} refused {method}: {why}", self.name))),
            Err(failure) => Err(self.failed(method, failure).await),
        }
    }

    /// The messages of a session.
    pub async fn history(&self, session: &str, cwd: &str) -> Result<Vec<AgentMessage>> {
        let (_, replayed) = self.load(session, cwd).await?;
        let mut messages: Vec<AgentMessage> = Vec::new();
        for update in &replayed {
            let role = match update["sessionUpdate"].as_str() {
                Some("user_message_chunk") => "user",
                Some("agent_message_chunk") => "assistant",
                _ => continue,
            };
            let text = update["content"]["text"].as_str().unwrap_or_default();
            match messages.last_mut().filter(|last| last.role == role) {
                Some(last) => last.content.push_str(text),
                None => messages.push(AgentMessage { role: role.into(), content: text.into() }),
            }
        }
        Ok(messages)
    }
}

/// The offers of a new session.
pub(crate) fn offers(answer: &Value) -> AgentOffers {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let named = |all: &Value, id: &str| {
        let one = |one: &Value| {
            let mut one = one.clone();
            one["id"] = one[id].clone();
            one
        };
        all.as_array().into_iter().flatten().map(one).collect()
    };
    AgentOffers {
        models: named(&answer["models"]["availableModels"], "modelId"),
        modes: named(&answer["modes"]["availableModes"], "id"),
        model: answer["models"]["currentModelId"].as_str().map(ToOwned::to_owned),
        mode: answer["modes"]["currentModeId"].as_str().map(ToOwned::to_owned),
        options: list(&answer["configOptions"]),
    }
}
