//! The first requests to a process: who it is, its sign-in, its session.

use crate::{
    connection::RequestFailure, content, host_environment::HostEnvironment, process::Process, registry::KnownAgent,
};
use domain::{AgentOptions, ThreadAgent, text::beginning};
use ports::{AgentMessage, AgentOffers, Error, Result};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

/// The version of the protocol that is spoken.
const PROTOCOL: u64 = 1;
/// The longest name of a session, in bytes. It stays in the settings of its thread.
const SESSION: usize = 1024;
/// How many sign-ins of an agent are told, and the longest id of one, in bytes.
const SIGN_INS: usize = 10;
const SIGN_IN: usize = 100;

/// A process that has answered `initialize`.
#[derive(Debug)]
pub(crate) struct InitializedAgent {
    pub process: Process,
    name: String,
    /// The ids of its sign-ins, for people.
    sign_ins: Vec<String>,
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

impl InitializedAgent {
    /// Starts a process and greets it.
    pub async fn start(agent: &KnownAgent, cwd: &Path, host: &HostEnvironment, patience: Duration) -> Result<Self> {
        let process = Process::spawn(agent, cwd, host)?;
        let (name, sign_ins) = (agent.name.clone(), Vec::new());
        let mut greeted = Self { process, name, sign_ins, offers: Value::Null, patience };
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
        let methods = answer["authMethods"].as_array().into_iter().flatten();
        let ids = methods.filter_map(|method| method["id"].as_str()).take(SIGN_INS);
        greeted.sign_ins = ids.map(|id| beginning(id, SIGN_IN)).collect();
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

    async fn failed(&self, method: &str, failure: RequestFailure) -> Error {
        let name = &self.name;
        let why = match failure {
            RequestFailure::Refused(why) => format!("{name} refused {method}: {why}"),
            RequestFailure::SignedOut(why) => self.signed_out(&why),
            RequestFailure::Silent => format!("{name} did not answer {method} within {} s", self.patience.as_secs()),
            RequestFailure::Closed => {
                self.process.gone().await.unwrap_or_else(|| format!("{name} ended before it answered {method}"))
            }
        };
        Error::unavailable("the agent", why)
    }

    /// Why an agent that nobody has signed in to does not work, for the person who can change that.
    pub fn signed_out(&self, why: &str) -> String {
        let own = format!("{} wants a sign-in: {why}. Sign in with its own program where it runs", self.name);
        match self.sign_ins.join(", ") {
            none if none.is_empty() => own,
            ids => format!("{own}, or give it a key in `env` and choose its `auth` in the configuration: {ids}"),
        }
    }

    /// The content of a prompt as the agent takes it.
    pub fn takes(&self, content: Vec<Value>) -> Vec<Value> {
        content::as_taken(&self.offers["promptCapabilities"], content)
    }

    pub fn loads(&self) -> bool {
        self.offers["loadSession"] == true
    }

    /// Opens the session of a thread: the one that it had, where the agent can load it, else a new one. `cwd` is
    /// the folder on this disk.
    pub async fn open(&self, thread: &ThreadAgent, cwd: &str) -> Result<Opened> {
        let known = thread.options.session_id.as_deref().filter(|session| !session.is_empty());
        if let Some(session) = known.filter(|_| self.loads()) {
            match self.load(session, cwd).await {
                Ok((answer, _)) => {
                    self.begun(session, &answer);
                    return Ok(Opened { is_loaded: true, answer });
                }
                Err(error @ Error::Unavailable { .. }) if self.process.shared.state().gone.is_some() => {
                    return Err(error);
                }
                Err(error) => tracing::info!(agent = self.name, %error, "a session is not loaded: a new one is begun"),
            }
        }
        let answer = self.ask("session/new", json!({ "cwd": cwd, "mcpServers": [] })).await?;
        let named = answer["sessionId"].as_str();
        let Some(session) = named.filter(|session| !session.is_empty() && session.len() <= SESSION) else {
            let why = format!("{} gave its session no name of 1 to {SESSION} bytes", self.name);
            return Err(Error::unavailable("the agent", why));
        };
        self.begun(session, &answer);
        Ok(Opened { is_loaded: false, answer })
    }

    fn begun(&self, session: &str, answer: &Value) {
        let mut state = self.process.shared.state();
        state.session = session.to_owned();
        state.list_values(&answer["configOptions"]);
    }

    /// Loads a session; its updates so far, which are history.
    async fn load(&self, session: &str, cwd: &str) -> Result<(Value, Vec<Value>)> {
        self.process.shared.state().replayed = Some(Vec::new());
        let asked = self.ask("session/load", json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] })).await;
        let replayed = self.process.shared.state().replayed.take().unwrap_or_default();
        Ok((asked?, replayed))
    }

    /// Sets what a thread wants of its session, where the agent offers it. A session that was loaded need not tell its offers again. A mode that the
    /// agent chose by itself and refuses now is left out, and the next turn tells so.
    pub async fn set(&self, options: &AgentOptions, own_mode: bool, opened: &Opened) -> Result<()> {
        let set = self.set_each(options, own_mode, opened).await;
        set.map_err(|error| match (error, offers(&opened.answer).check(options)) {
            // The agent alone refuses: what it offers may depend on what was set before. Its offers tell more than its no.
            (Error::Invalid(_), Err(unoffered)) if !opened.is_loaded => {
                Error::Invalid(format!("{unoffered}; {}", unoffered.hint()))
            }
            (error, _) => error,
        })
    }

    async fn set_each(&self, options: &AgentOptions, own_mode: bool, opened: &Opened) -> Result<()> {
        let session = self.process.shared.state().session.clone();
        let mut left_out = None;
        if let Some(mode) = &options.mode {
            let params = json!({ "sessionId": session, "modeId": mode });
            match self.choose("session/set_mode", params, ("mode", mode)).await {
                Err(Error::Invalid(why)) if own_mode => left_out = Some((mode, why)),
                set => drop(set?),
            }
        }
        if let Some(model) = &options.model_id {
            let params = json!({ "sessionId": session, "modelId": model });
            self.choose("session/set_model", params, ("modelId", model)).await?;
        }
        for (option, value) in &options.config_overrides {
            let params = json!({ "sessionId": session, "configId": option, "value": value });
            let name = format!("configOverrides.{option}");
            let answer = match self.choose("session/set_config_option", params, (&name, value)).await {
                Err(Error::Invalid(why)) if own_mode && option == "mode" => {
                    left_out = Some((value, why));
                    continue;
                }
                answer => answer?,
            };
            let mut state = self.process.shared.state();
            state.list_values(&json!([{ "id": option, "currentValue": value }]));
            state.list_values(&answer["configOptions"]);
        }
        let mut state = self.process.shared.state();
        state.started(options);
        if let Some((mode, why)) = left_out {
            tracing::info!(agent = self.name, mode, why, "an agent refuses the mode that it had chosen");
            let listed = AgentOptions::current(&opened.answer["configOptions"]).remove("mode");
            let default = opened.answer["modes"]["currentModeId"].as_str().map(ToOwned::to_owned).or(listed);
            state.fell_back(default, mode, &why);
        }
        Ok(())
    }

    async fn choose(&self, method: &str, params: Value, (option, value): (&str, &str)) -> Result<Value> {
        match self.process.shared.connection.request_within(self.patience, method, params).await {
            Ok(answer) => Ok(answer),
            Err(RequestFailure::Refused(why)) => {
                Err(Error::Invalid(format!("{} refused the value {value:?} of its option {option}: {why}", self.name)))
            }
            Err(failure) => Err(self.failed(method, failure).await),
        }
    }

    /// The messages of a session.
    pub async fn history(&self, session: &str, cwd: &str) -> Result<Vec<AgentMessage>> {
        let (_, replayed) = self.load(session, cwd).await?;
        let (mut messages, mut is_ended): (Vec<AgentMessage>, bool) = (Vec::new(), false);
        for update in &replayed {
            let role = match update["sessionUpdate"].as_str() {
                Some("user_message_chunk") => "user",
                Some("agent_message_chunk") => "assistant",
                other => {
                    is_ended |= other == Some("tool_call");
                    continue;
                }
            };
            let text = update["content"]["text"].as_str().unwrap_or_default();
            // As in the histories of threads: a tool call ends a message, and an empty line is between the two.
            let between = if std::mem::take(&mut is_ended) { "\n\n" } else { "" };
            match messages.last_mut().filter(|last| last.role == role) {
                Some(last) if last.content.is_empty() => last.content.push_str(text),
                Some(last) => last.content.extend([between, text]),
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
            let mut fields = one.as_object()?.clone();
            fields.insert("id".into(), one[id].clone());
            Some(Value::Object(fields))
        };
        all.as_array().into_iter().flatten().filter_map(one).collect()
    };
    AgentOffers {
        models: named(&answer["models"]["availableModels"], "modelId"),
        modes: named(&answer["modes"]["availableModes"], "id"),
        model: answer["models"]["currentModelId"].as_str().map(ToOwned::to_owned),
        mode: answer["modes"]["currentModeId"].as_str().map(ToOwned::to_owned),
        options: list(&answer["configOptions"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_modes_of_another_shape_are_left_out() {
        let models = json!({ "availableModels": ["x", 7, null, ["y"], { "modelId": "m", "name": "M" }] });
        let offers = offers(&json!({ "models": models, "modes": { "availableModes": "all" } }));
        assert_eq!(offers.models, [json!({ "modelId": "m", "name": "M", "id": "m" })]);
        assert!(offers.modes.is_empty() && offers.options.is_empty());
    }
}
