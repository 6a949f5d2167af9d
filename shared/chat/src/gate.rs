//! The decision point in front of every tool call: permit, deny, or ask a person (docs/architecture/security.md).
//!
//! It is pure: it sees the call and the chat, and reads nothing. Policies of a workspace are files: the workspace itself decides by them when the
//! call runs, and a question that they ask comes back here ([`Gate::ask`]).

use domain::{ChatConfig, PermissionRule};
use std::time::Duration;
use tools::{Effects, ToolKind};

/// A call that wants to run.
#[derive(Clone, Copy, Debug)]
pub struct GateRequest<'a> {
    /// The chat that it is made in: persona, mode, workspace.
    pub config: &'a ChatConfig,
    /// Its effects, by its arguments.
    pub effects: &'a Effects,
    /// The name of the tool.
    pub tool: &'a str,
    /// Its arguments, as JSON, for people to read.
    pub args: &'a str,
    /// Whether a version of a plan is approved; that the plan is still the same is looked at before a command runs.
    pub approved: bool,
    /// The rules that a person has granted in this chat; none in a turn of somebody who may not approve.
    pub permissions: &'a [PermissionRule],
}

/// Whether and how the call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateDecision {
    /// It runs.
    Permit,
    /// It does not run; the model reads why.
    Deny {
        /// The reason.
        reason: String,
    },
    /// A person decides; no answer in time is a no.
    Ask {
        /// `command`, `file`, `network` or `mcp` (spec 004 §5).
        category: String,
        /// The reason.
        reason: String,
        /// The rule that the person can grant along with a yes.
        always: Option<PermissionRule>,
        /// How long to wait.
        timeout: Duration,
    },
}

/// Decides on calls.
pub trait Gate: Send + Sync {
    /// Decides on this call. A call that it does not know is denied.
    fn decide(&self, request: &GateRequest<'_>) -> GateDecision;

    /// The question to a person about a call that a policy of the workspace asks about, for this reason.
    fn ask(&self, request: &GateRequest<'_>, reason: &str) -> GateDecision;

    /// How long the request of a coding agent waits for a person.
    fn patience(&self) -> Duration;

    /// Whether a tool is offered to the model in this chat at all. One that [`Gate::decide`] always denies is not.
    fn offers(&self, config: &ChatConfig, kind: ToolKind) -> bool;
}
