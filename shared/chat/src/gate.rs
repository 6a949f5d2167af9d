//! The decision point in front of every tool call: permit, deny, or ask a person (ARCHITECTURE.md, "Security").
//!
//! It is pure: it sees the call and the chat, and reads nothing. Declarative policies will be another [`Gate`].

use crate::mode;
use domain::{ChatConfig, Code, FilePath, Mode};
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
    /// The plan file that a call means which names none.
    pub plan: &'a FilePath,
    /// Whether a version of a plan is approved; that the plan is still the same is looked at before a command runs.
    pub approved: bool,
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
        /// `command`, `file`, `network` or `mcp` (spec 004 §5).
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

    /// Whether a tool is offered to the model in this chat at all. One that [`Gate::decide`] always denies is not.
    fn offers(&self, config: &ChatConfig, tool: &str, kind: Kind) -> bool;
}

/// The default: everything may be read; in `plan` mode only plan files may be written (`mode.rs` says which); what an
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
            Kind::Read | Kind::Ask => GateDecision::Permit,
            Kind::Exec => self.command(request),
            Kind::Write => self.write(request),
        }
    }

    fn offers(&self, config: &ChatConfig, tool: &str, kind: Kind) -> bool {
        mode::offers(config.mode, tool, kind)
    }
}

impl SimpleGate {
    fn write(&self, request: &GateRequest<'_>) -> GateDecision {
        let plans_only = request.config.mode == Mode::Plan;
        if plans_only && !mode::offers(Mode::Plan, request.tool, request.kind) {
            return GateDecision::Deny {
                reason: "in plan mode plan files are written, and nothing is moved or removed".into(),
            };
        }
        let written = match tools::touched(request.tool, request.args, request.plan) {
            Ok(written) => written,
            // The tool does not take such arguments either, and says better why.
            Err(error) if error.code == Code::InvalidArgument && !plans_only => return GateDecision::Permit,
            Err(error) => return GateDecision::Deny { reason: error.message },
        };
        if let Some(path) = written.iter().find(|path| plans_only && !mode::is_plan(request.config, path)) {
            let reason = format!(
                "in plan mode {path} may not be written; plan files are those in /chats/{}/, and elsewhere those named plan.md or \
                 something-plan.md",
                request.config.chat
            );
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

    fn command(&self, request: &GateRequest<'_>) -> GateDecision {
        match request.config.mode {
            Mode::Plan => GateDecision::Deny { reason: "in plan mode no command runs".into() },
            Mode::Build if request.approved => GateDecision::Permit,
            Mode::Chat if request.config.agent.is_some() => GateDecision::Permit,
            Mode::Chat | Mode::Build => GateDecision::Ask {
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
