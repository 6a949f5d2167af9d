//! The decision point in front of every tool call: permit, deny, or ask a person (architecture.md, "Security").
//!
//! It is pure: it sees the call and the chat, and reads nothing. Declarative policies will be another [`Gate`].

use domain::{ChatConfig, FilePath, Mode};
use serde_json::Value;
use std::time::Duration;
use tools::Kind;

/// A call that wants to run.
#[derive(Clone, Copy, Debug)]
pub struct GateRequest<'a> {
    /// The chat that it is made in: persona, mode, workspace.
    pub config: &'a ChatConfig,
    /// The built-in tool, or the registered function, that it runs; an agent may call it by another name.
    pub tool: &'a str,
    /// What kind of tool it is.
    pub kind: Kind,
    /// Its arguments.
    pub args: &'a Value,
}

/// What may happen with the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateDecision {
    /// It runs.
    Permit,
    /// It does not run; the model reads why.
    Deny {
        /// Why.
        reason: String,
    },
    /// A person decides; no answer in time is a no.
    Ask {
        /// `command`, `file`, `network` or `mcp` (seed 004 §5).
        category: String,
        /// Why.
        reason: String,
        /// How long to wait.
        timeout: Duration,
    },
}

/// Decides on calls.
pub trait Gate: Send + Sync {
    /// What may happen with this call. What it does not know it denies.
    fn decide(&self, request: &GateRequest<'_>) -> GateDecision;
}

/// The default: everything may be read; in `plan` mode only what is under the chat's own folder may be written; what an
/// agent writes under `/system`, where personas, skills and policies live, needs a person's permission. So does each command,
/// but where an approved plan is carried out, and in flows, which say themselves what their agents may run; in `plan` mode none
/// runs.
#[derive(Clone, Copy, Debug)]
pub struct SimpleGate {
    /// How long a person has to answer.
    pub timeout: Duration,
}

impl Default for SimpleGate {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(3600) }
    }
}

impl Gate for SimpleGate {
    fn decide(&self, request: &GateRequest<'_>) -> GateDecision {
        match request.kind {
            Kind::Read | Kind::Ask => return GateDecision::Permit,
            Kind::Exec => return self.command(request),
            Kind::Write => {}
        }
        let written = written_paths(request.args);
        let own_folder = format!("/chats/{}/", request.config.chat);
        let is_plan = |path: &FilePath| path.as_str().starts_with(&own_folder);
        if request.config.mode == Mode::Plan && !(request.tool.starts_with("plan_") || written.iter().all(is_plan)) {
            let reason = format!("in plan mode only files under {own_folder} may be written");
            return GateDecision::Deny { reason };
        }
        match written.iter().find(|path| path.names().next() == Some("system")) {
            None => GateDecision::Permit,
            Some(path) => GateDecision::Ask {
                category: "file".into(),
                reason: format!("{path} is part of how agents in this workspace are set up"),
                timeout: self.timeout,
            },
        }
    }
}

impl SimpleGate {
    fn command(&self, request: &GateRequest<'_>) -> GateDecision {
        match request.config.mode {
            Mode::Plan => GateDecision::Deny { reason: "in plan mode no command runs".into() },
            Mode::Build => GateDecision::Permit,
            Mode::Chat if request.config.agent.is_some() => GateDecision::Permit,
            Mode::Chat => GateDecision::Ask {
                category: "command".into(),
                reason: format!("it wants to run a command: {}", shown(request.args)),
                timeout: self.timeout,
            },
        }
    }
}

/// A command as people read it before they let it run; the whole of it is in the call's arguments.
fn shown(args: &Value) -> String {
    const SHOWN: usize = 200;
    let line = match (&args["command"], &args["words"]) {
        (Value::String(line), _) => line.clone(),
        (_, Value::Array(words)) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => args.to_string(),
    };
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The paths that a call names, wherever its arguments have them. Arguments that name none (they are malformed) change nothing.
fn written_paths(args: &Value) -> Vec<FilePath> {
    match args {
        Value::String(text) => FilePath::parse(text).into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(written_paths).collect(),
        Value::Object(fields) => {
            let named = ["path", "paths", "from", "to", "files", "edits", "target", "source", "destination"];
            fields
                .iter()
                .filter(|(name, _)| named.contains(&name.as_str()))
                .flat_map(|(_, value)| written_paths(value))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
