//! The gate that chats have. It decides by the modes, by granted rules, and by the built-in policies of `shared/access`.

use crate::{
    agent, allow,
    gate::{Gate, GateDecision, GateRequest},
    mode,
};
use domain::{ChatConfig, ClientEffects, FilePath, Mode, SessionContext};
use serde_json::Value;
use std::time::Duration;
use tools::{Access, ToolKind, TouchedPath};
use workspace::{Action, BRIEF_SETTINGS, Effect, Policies, Subject};

/// The default: everything may be read; in `plan` mode only plan files may be written (`mode.rs` says which); a write of an
/// agent under `/system`, the place of personas, skills and policies, needs a person's permission. So does each command, but
/// for the commands of an approved plan, and of flows, whose manifests list the commands of their agents; in `plan` mode none
/// runs. A call that a granted rule covers needs no further permission.
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
        match request.effects.kind {
            ToolKind::Exec => self.command(request),
            ToolKind::Served => self.served(request),
            ToolKind::Read | ToolKind::Ask | ToolKind::Write | ToolKind::Arrange => self.files(request),
        }
    }

    fn ask(&self, request: &GateRequest<'_>, reason: &str) -> GateDecision {
        let (category, reason) = ("file".into(), format!("{reason}{}", allow::note(request)));
        GateDecision::Ask { category, reason, always: allow::rule(request), timeout: self.timeout }
    }

    fn patience(&self) -> Duration {
        self.timeout
    }

    fn offers(&self, config: &ChatConfig, kind: ToolKind) -> bool {
        mode::offers(config.mode, kind)
    }
}

impl SimpleGate {
    fn files(&self, request: &GateRequest<'_>) -> GateDecision {
        let GateRequest { config, effects, .. } = request;
        if config.mode == Mode::Plan {
            let removes = effects.touches.iter().any(|touch| touch.access == Access::Remove);
            if removes || !mode::offers(Mode::Plan, effects.kind) {
                let reason = "in plan mode plan files are written, and nothing is moved or removed".into();
                return GateDecision::Deny { reason };
            }
            if let Some(path) = effects.changed().find(|path| !mode::is_plan(config, path)) {
                let reason = format!(
                    "in plan mode {path} may not be written; plan files are those in /chats/{}/, and elsewhere those named plan.md or \
                     something-plan.md",
                    config.chat
                );
                return GateDecision::Deny { reason };
            }
        }
        match asked_about(request) {
            // A refusal is left to the workspace, which knows all policies: an error of its own has the policy.
            None => GateDecision::Permit,
            Some(_) if allow::is_covered(request) => GateDecision::Permit,
            Some(touch) => self.ask(request, &sets_up(touch)),
        }
    }

    /// An approved plan is no permission for a tool of a server: a plan is carried out with files and commands of the workspace.
    /// The same holds for a function of the client.
    fn served(&self, request: &GateRequest<'_>) -> GateDecision {
        let effects = agent::of_client(request.config, request.tool);
        // No rule is for commands whose words are read by a shell elsewhere.
        let is_command = effects == Some(ClientEffects::Execute);
        match request.config.mode {
            Mode::Plan => GateDecision::Deny {
                reason: "in plan mode no tool of a server is called, and none of the client that changes something"
                    .into(),
            },
            // The manifests of a flow list the tools of its agents, as they list its commands.
            Mode::Chat if request.config.agent.as_ref().is_some_and(|agent| agent.of_task().is_some()) => {
                GateDecision::Permit
            }
            Mode::Chat | Mode::Build if !is_command && allow::is_covered(request) => GateDecision::Permit,
            Mode::Chat | Mode::Build => GateDecision::Ask {
                category: match effects {
                    Some(ClientEffects::Execute) => "command",
                    Some(ClientEffects::Mcp) => "mcp",
                    Some(_) => "file",
                    None if is_network(request.tool) => "network",
                    None => "mcp",
                }
                .into(),
                reason: match is_command {
                    true => format!("it wants to run a command where its client is: {}", command_of(request.args)),
                    false => format!("it wants to call {} with {}", request.tool, beginning(request.args)),
                },
                always: allow::rule(request).filter(|_| !is_command),
                timeout: self.timeout,
            },
        }
    }

    fn command(&self, request: &GateRequest<'_>) -> GateDecision {
        match request.config.mode {
            Mode::Plan => GateDecision::Deny { reason: "in plan mode no command runs".into() },
            // No plan lets a command set up agents.
            Mode::Chat | Mode::Build if asked_about(request).is_some() => self.ask_for_command(request),
            Mode::Build if request.approved => GateDecision::Permit,
            Mode::Chat if request.config.agent.is_some() => GateDecision::Permit,
            Mode::Chat | Mode::Build if allow::is_covered(request) => GateDecision::Permit,
            Mode::Chat | Mode::Build => self.ask_for_command(request),
        }
    }

    fn ask_for_command(&self, request: &GateRequest<'_>) -> GateDecision {
        let GateRequest { effects, args, .. } = request;
        let places: Vec<&str> = effects.changed().map(FilePath::as_str).collect();
        let keeps = match places.is_empty() {
            true => String::new(),
            false => format!(", and to keep files of it at {}", beginning(&places.join(", "))),
        };
        // Not cut, wherever in the list it is.
        let set_up = asked_about(request).map(|touch| format!("; {}", sets_up(touch))).unwrap_or_default();
        let reason = format!("it wants to run a command: {}{keeps}{set_up}{}", command_of(args), allow::note(request));
        let always = allow::rule(request);
        GateDecision::Ask { category: "command".into(), reason, always, timeout: self.timeout }
    }
}

fn sets_up(touch: &TouchedPath) -> String {
    format!("{} is part of how agents in this workspace are set up", touch.path)
}

/// The first place of the call that no agent changes without a person's permission.
fn asked_about<'a>(request: &GateRequest<'a>) -> Option<&'a TouchedPath> {
    let GateRequest { config, effects, .. } = request;
    let subject = Subject::Agent { persona: config.role.clone(), person: config.user, has_home: true };
    // A person begins a session of this context to have this file changed, and a session cannot ask.
    let of_brief = config.session.as_ref().is_some_and(|one| one.context == SessionContext::DailyBriefUpdate);
    let settings = of_brief.then(|| format!("/users/{}/{BRIEF_SETTINGS}", config.user));
    let asks = |touch: &&TouchedPath| {
        if touch.access != Access::Remove && settings.as_deref() == Some(touch.path.as_str()) {
            return false;
        }
        let action = match touch.access {
            Access::Read => Action::Read,
            Access::Write => Action::Write,
            Access::Remove => Action::Delete,
        };
        // With all in it: a folder that becomes the home of the person brings what sets up their agents.
        let decision = Policies::builtin().decide_tree(&subject, action, &touch.path);
        decision.is_some_and(|decision| decision.effect == Effect::Ask)
    };
    effects.touches.iter().find(asks)
}

/// Whether a tool of a server is one of the web. Another one speaks the Model Context Protocol, or reads a file of a server that does.
fn is_network(tool: &str) -> bool {
    tools::is_served(tool) && !tools::is_of_mcp(tool)
}

/// A command as people read it before they let it run; the whole of it is in the call's arguments.
fn command_of(text: &str) -> String {
    let args: Value = serde_json::from_str(text).unwrap_or_default();
    let line = match (&args["command"], &args["words"]) {
        (Value::String(line), _) => line.clone(),
        (_, Value::Array(words)) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => text.to_owned(),
    };
    beginning(&line)
}

/// The beginning of a text that may be long.
fn beginning(line: &str) -> String {
    const SHOWN: usize = 200;
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
