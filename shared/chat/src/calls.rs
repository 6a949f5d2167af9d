//! The calls of a turn, one by one: what they do, whether they may run, how they begin, and how they are answered.

use crate::{
    agent::{self, Refusal, Runs},
    gate::{GateDecision, GateRequest},
    keys::tool_key,
    machine::ChatEffect,
    mode,
    phase::Phase,
    step::Step,
    tool_allowlist,
};
use domain::{ChatConfig, ChatEvent, Code, Error, FilePath, PermissionRule, Status, ToolCall};
use serde_json::Value;
use std::time::Duration;
use tools::{Effects, ToolKind};

impl Step<'_> {
    /// Whether nobody can be asked: nobody is there, or the chat is a session, whose protocol has no questions, and requests for
    /// permission for plans alone.
    pub fn is_unattended(&self) -> bool {
        self.config().is_some_and(|config| config.is_unattended() || config.session.is_some())
    }

    pub fn gate(&self, call: &ToolCall) -> GateDecision {
        self.gate_as(call, self.is_approved())
    }

    /// Decides on a call of a turn that has the rights of an approved plan or not.
    pub fn gate_as(&self, call: &ToolCall, approved: bool) -> GateDecision {
        let Some(config) = self.config() else { return GateDecision::Deny { reason: "there is no chat".into() } };
        let decision = match self.effects(call) {
            Some(Ok(effects)) => {
                self.machine.gate.decide(&GateRequest { approved, ..self.request(config, call, &effects) })
            }
            Some(Err(error)) => GateDecision::Deny { reason: error.message },
            None => GateDecision::Deny { reason: "the effect of this call is unknown".into() },
        };
        tracing::debug!(tool = call.tool, args = call.args, ?decision, "decided on a call");
        decision
    }

    /// A call as gates and rules see it, with the rules that count in this turn.
    pub fn request<'c>(&'c self, config: &'c ChatConfig, call: &'c ToolCall, effects: &'c Effects) -> GateRequest<'c> {
        let (approved, permissions) = (self.is_approved(), self.permissions());
        GateRequest { config, effects, tool: &call.tool, args: &call.args, approved, permissions }
    }

    /// The effects of a call, by its arguments; an error for a call that has none. None without a configuration.
    pub fn effects(&self, call: &ToolCall) -> Option<Result<Effects, Error>> {
        let config = self.config()?;
        Some(agent::effects(&self.machine.tools, config, call, &self.plan_path(config)))
    }

    /// The built-in tool or the tool of a server behind a call, as a call with the arguments that it gets, and its effects. A flow gives tools names and
    /// folders of its own. None for functions, for commands of flows, and for a call that does not run.
    pub fn behind(&self, call: &ToolCall) -> Option<(ToolCall, Effects)> {
        let config = self.config()?;
        let Ok(Runs::Builtin(tool, args)) = agent::runs(config, call) else { return None };
        let effects = match &config.agent {
            None => self.effects(call)?.ok()?,
            Some(_) => self.machine.tools.effects(tool, &args, &self.plan_path(config)).ok()?,
        };
        Some((ToolCall { call_id: call.call_id, tool: tool.to_owned(), args: args.into_owned() }, effects))
    }

    fn plan_path(&self, config: &ChatConfig) -> FilePath {
        self.state().plan_path.clone().unwrap_or_else(|| mode::default_plan(config))
    }

    pub fn kind(&self, tool: &str) -> Option<ToolKind> {
        let config = self.config()?;
        agent::kind(&self.machine.tools, config, tool)
    }

    /// Why a call does not run: its arguments are none of its tool, it touches a path that none of its tool's globs means, or it keeps files of a
    /// command where the chat may not write.
    pub fn out_of_allowlist(&self, call: &ToolCall) -> Option<Refusal> {
        match self.effects(call)? {
            Ok(effects) => {
                let config = self.config()?;
                let is_kept = effects.kind == ToolKind::Exec;
                if let Some(place) = effects.changed().find(|place| is_kept && !agent::may_keep_at(config, place)) {
                    let why =
                        format!("a command's files are kept as by write, which may not write at and below {place}");
                    return Some(Error::new(Code::Forbidden, why).hint("leave it out of keep").into());
                }
                let tool = agent::listed_name(config, &call.tool)?;
                tool_allowlist::violation(config, tool, &effects).map(Refusal::from)
            }
            Err(error) => Some(error.into()),
        }
    }

    /// Whether the client of the chat runs the call.
    pub fn is_of_client(&self, call: &ToolCall) -> bool {
        self.config().is_some_and(|config| agent::of_client(config, &call.tool).is_some())
    }

    pub fn run_tool(&mut self, call: ToolCall, attempt: u32) {
        self.run_with(call, attempt, None);
    }

    /// Goes on with a call whose server has asked a person.
    pub fn reply(&mut self, call: ToolCall, reply: Value) {
        let Some(turn) = self.turn() else { return };
        let attempt = match turn.phase {
            Phase::Tool { call_id, attempt } if call_id == call.call_id => attempt,
            _ => turn.tried.filter(|tried| tried.call_id == call.call_id).map_or(0, |tried| tried.attempt),
        };
        self.run_with(call, attempt + 1, Some(reply));
    }

    fn run_with(&mut self, call: ToolCall, attempt: u32, reply: Option<Value>) {
        let Some(config) = self.config().cloned() else { return };
        self.started(&call, attempt);
        let state = self.state();
        let place = config.scenario.as_ref().and_then(|setup| setup.plan_path.clone());
        let (seen, plan_path) = (state.seen.iter().cloned().collect(), state.plan_path.clone().or(place));
        let allowed = self.is_allowed(&call);
        let unready_since = state.turn.as_ref().and_then(|turn| turn.unready_since);
        let waited = unready_since.map_or(Duration::ZERO, |since| self.stamp.at.since(since));
        let key = tool_key(call.call_id, attempt);
        let (may_run, has_home) = (self.may_run(), self.has_home());
        self.run(
            key,
            ChatEffect::CallTool { call, config, attempt, seen, plan_path, waited, allowed, may_run, has_home, reply },
        );
    }

    pub fn started(&mut self, call: &ToolCall, attempt: u32) {
        let effects = self.effects(call).and_then(Result::ok);
        let path = effects.and_then(|effects| effects.about().map(ToString::to_string));
        let (call_id, tool, args) = (call.call_id, call.tool.clone(), call.args.clone());
        self.push(ChatEvent::CallStarted { call_id, attempt, tool, path, args, at: Some(self.stamp.at) });
    }

    /// Answers a call that does not run.
    pub fn refuse(&mut self, call: &ToolCall, why: &str, status: Status) {
        self.started(call, 1);
        self.observe(call, why.to_owned(), status);
    }

    /// Answers a call: a `Failure` is a misuse, and `Partial` any other error (spec 002 §3.4).
    pub fn observe(&mut self, call: &ToolCall, output: String, status: Status) {
        let (call_id, tool, at) = (call.call_id, call.tool.clone(), self.stamp.at);
        let (success, misuse) = (status == Status::Success, status == Status::Failure);
        let output = self.told_of_repetition(call, output, success);
        let (truncated, seen, code, resources) = (false, Vec::new(), None, None);
        self.push(ChatEvent::Observed { call_id, tool, output, success, misuse, code, resources, truncated, seen, at });
    }

    /// Answers a call that came to nothing, for a reason that programs know.
    pub fn failed(&mut self, call: &ToolCall, output: String, code: Code) {
        let (call_id, tool, at) = (call.call_id, call.tool.clone(), self.stamp.at);
        let (success, misuse, truncated, seen) = (false, false, false, Vec::new());
        let (code, resources) = (Some(code), None);
        self.push(ChatEvent::Observed { call_id, tool, output, success, misuse, code, resources, truncated, seen, at });
    }
}

/// The answer to a call that needs a person's permission where nobody is there.
pub(crate) fn unpermitted(reason: &str) -> String {
    format!("not permitted: nobody is there to permit it: {reason}")
}

/// The answer to a call that a rule denies: the model reads which one, so that it does not try the same in other words.
pub(crate) fn denied(rule: &PermissionRule) -> String {
    let covered = rule.denies().unwrap_or(rule);
    format!("not permitted: a person has denied {covered} from now on (rule {}), and is not asked again", rule.id())
}

/// An error as a model reads it.
pub(crate) fn describe(error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{}: {} ({hint})", error.code, error.message),
        None => format!("{}: {}", error.code, error.message),
    }
}
