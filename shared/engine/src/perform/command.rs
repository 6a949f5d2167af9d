//! Commands in the workspace's sandbox: nodes that are one, and tools that run one (spec 002 §5).
//!
//! The output of a command is its standard output as JSON, where that is one value and the node has a schema that it fits; else
//! an object with `exit_code`, `stdout`, `stderr`, `signal`, `timed_out`, `duration_ms` and `dropped_bytes`, and for a node that keeps files
//! `kept` and `left_out`.

use crate::{
    call::{call_of, cut},
    machine::Run,
    perform::{EffectError, ExecutionFacts, NO_SANDBOX, TaskEffects, ToleratedFailure, tool::in_words},
};
use domain::{CallId, Code, Error, FilePath, Principal, Status, WorkspaceId, task::ToolUse};
use flow::{
    Flow,
    flow::{CommandRule, KeepManifest, Node, Permissions},
    op::{self, Scope},
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::{Call, Command, CommandResult, RanCommand, SandboxWait};
use workspace::{Access, Action};

/// Whether the call itself was wrong, and not merely its circumstances.
pub(super) fn is_misuse(error: &Error) -> bool {
    matches!(error.code, Code::InvalidArgument | Code::Forbidden | Code::Unauthorized | Code::PayloadTooLarge)
        || error.names_no_tool()
}

/// Why no command runs here.
pub(super) fn no_sandbox() -> Error {
    Error::new(Code::Forbidden, NO_SANDBOX).hint("use a tool or a function, or configure a sandbox")
}

impl TaskEffects {
    /// A node that is a command: it reads the whole workspace and has no network. One that fails is partial, with its exit code
    /// and its output, for the flow to decide about; where the node has an output schema, it has failed.
    pub(super) async fn command(
        &self,
        run: &Run,
        flow: &Flow,
        node: &Node,
        CommandRule { words, keep }: &CommandRule,
        scope: &Scope<'_>,
        facts: &mut ExecutionFacts,
    ) -> Result<(Value, Option<ToleratedFailure>), EffectError> {
        let began = Instant::now();
        let ran = self.run_words(run, node, words, keep, &Permissions::default(), scope).await;
        let failure = match &ran {
            Ok(ran) => ran.failure.clone(),
            Err(error) => Some(error.clone()),
        };
        let status = match (&ran, &failure) {
            (_, None) => Status::Success,
            (Err(error), _) if is_misuse(error) => Status::Failure,
            (_, Some(_)) => Status::Partial,
        };
        let output = match &ran {
            Ok(ran) => cut(ran.text.trim()),
            Err(error) => cut(&in_words(error)),
        };
        let (args, duration_ms) = (cut(&json!(words).to_string()), began.elapsed().as_millis() as u64);
        let code = failure.as_ref().map(|error| error.code);
        let (tool, resources) = ("command".into(), ran.as_ref().ok().and_then(|ran| ran.ran.end.resources));
        // The machine of the task knows how long it waited.
        let queue_ms = 0;
        facts.tools.push(ToolUse { tool, args, status, output, code, duration_ms, queue_ms, resources });
        come_of(ran?, wants_schema(flow, node))
    }

    /// Runs a command under the call of its node, and keeps these of its files.
    pub(super) async fn run_words(
        &self,
        run: &Run,
        node: &Node,
        words: &[String],
        keep: &[KeepManifest],
        permissions: &Permissions,
        scope: &Scope<'_>,
    ) -> Result<RanCommand, Error> {
        let commands = self.tools.commands().ok_or_else(no_sandbox)?;
        let render = |text: &String| op::template::render_text(text, scope);
        let words = words.iter().map(render).collect::<Result<Vec<_>, _>>()?;
        let place = |one: &KeepManifest| -> Result<_, Error> { Ok((render(&one.from)?, render(&one.to)?)) };
        let keep = keep.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let root = permissions.root.as_deref().map_or_else(|| Ok(FilePath::root()), FilePath::parse)?;
        let workspace = self.workspaces.open(run.config.workspace, run.access()).await?;
        workspace.demand(Action::Execute, &root)?;
        let call_id = call_of(run.config.task, &node.id, run.retry);
        let command = Command {
            call: call_id,
            words,
            folder: root.clone(),
            root,
            stdin: None,
            timeout: node.timeout.unwrap_or(commands.timeout).min(commands.longest),
            network: commands.network && permissions.allow_network,
            start_timeout: commands.start_timeout,
            waits: SandboxWait::AsRows(run.waited),
            keep: Vec::new(),
        };
        let by = Principal::Task { task: run.config.task, user: run.config.user };
        let call = Call { may_run: true, ..Call::outside(workspace, call_id, by) };
        tools::run_keeping(&call, command, keep.into_iter()).await
    }

    /// Ends a command whose result is not needed.
    pub(super) async fn kill(&self, workspace: WorkspaceId, call: CallId) {
        if let Ok(workspace) = self.workspaces.open(workspace, Access::platform("ends a command")).await {
            tools::kill_command(&workspace, call).await;
        }
    }
}

/// The output of a node whose command ended, its own or that of its tool. A failed one passes on its texts, for the flow to
/// decide about; where the node has an output schema, it has no output.
pub(super) fn come_of(
    RanCommand { ran, data, failure, .. }: RanCommand,
    wants_schema: bool,
) -> Result<(Value, Option<ToleratedFailure>), EffectError> {
    match failure {
        None if wants_schema => Ok((stdout_as_json(&ran).unwrap_or(data), None)),
        None => Ok((data, None)),
        Some(error) if wants_schema => Err(with_what_it_said(error, &ran).into()),
        Some(error) => Ok((data, Some(ToleratedFailure { error, status: Status::Partial }))),
    }
}

/// Whether a schema says what this node gives.
pub(super) fn wants_schema(flow: &Flow, node: &Node) -> bool {
    node.schema_out.as_deref().is_some_and(|name| flow.schemas.contains_key(name))
}

/// The standard output of a command, where it is one value. JSON with a number that would change is none: the command's text stays whole.
fn stdout_as_json(ran: &CommandResult) -> Option<Value> {
    let said = ran.stdout.trim();
    serde_json::from_str(said).ok().filter(|_| domain::exact_numbers::first_inexact(said).is_none())
}

/// The end of what a command wrote says most about why it failed.
fn with_what_it_said(error: Error, ran: &CommandResult) -> Error {
    const SAID: usize = 500;
    let said = ran.output.trim_end();
    let from = said.ceil_char_boundary(said.len().saturating_sub(SAID));
    let message = format!("{}: {}", error.message, &said[from..]);
    Error { message: message.trim_end_matches([':', ' ']).to_owned(), ..error }
}
