//! Deterministic nodes that call a tool (seed 002 §5).

use crate::{
    Flow,
    flow::{Node, ToolTarget},
    machine::Run,
    op::{self, Scope},
    perform::{Failure, Gathered, TaskEffects, command},
    policy::{self, Use},
};
use domain::{Code, Error, FilePath, Principal, Status, task::ToolUse};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tokio::time::Instant;
use tools::Call;

/// What history shows of arguments and outputs, in bytes.
const SHOWN: usize = 4096;

impl TaskEffects {
    /// Calls the tool. A misuse (arguments that it does not take, a path that it may not touch) fails the node; what merely
    /// went wrong is recorded, and given on as `{"error": …}`, for the flow to decide about.
    #[expect(clippy::too_many_arguments, reason = "the parts of one execution, each used once")]
    pub(super) async fn call_tool(
        &self,
        run: &Run,
        flow: &Flow,
        node: &Node,
        tool: &str,
        args: &Map<String, Value>,
        scope: &Scope<'_>,
        gathered: &mut Gathered,
    ) -> Result<(Value, bool), Failure> {
        let Some(binding) = flow.tools.get(tool) else {
            return Err(Error::new(Code::NotFound, format!("the flow has no tool {tool}")).into());
        };
        self.permit(flow, node, &Use::Tool(binding), gathered)?;
        let args = op::template::render(&Value::Object(args.clone()), scope)?;
        let began = Instant::now();
        // Why a command that ran is no success; what it gave says it, too.
        let mut failed = None;
        let (output, error) = match &binding.target {
            ToolTarget::Function(name) => match self.functions.call(name, &args, scope) {
                Ok(output) => (output, None),
                Err(error) => (Value::Null, Some(error)),
            },
            ToolTarget::Command(words) => {
                let with_args = scope.with_input(&args);
                match self.run_words(run, node, words, &binding.permissions, &with_args).await {
                    Ok(ran) => {
                        failed = ran.failure();
                        (command::given(&ran, node.schema_out.is_some() && failed.is_none()), None)
                    }
                    Err(error) => (Value::Null, Some(error)),
                }
            }
            ToolTarget::Builtin(name) => self.call_builtin(run, node, name, &binding.permissions, &args).await,
        };
        let status = match &error {
            None if failed.is_some() => Status::Partial,
            None => Status::Success,
            Some(error) if is_misuse(error) => Status::Failure,
            Some(_) => Status::Partial,
        };
        let shown = match &error {
            Some(error) => format!("{}: {}", error.code, error.message),
            None => output.to_string(),
        };
        let duration_ms = began.elapsed().as_millis() as u64;
        let (args, output_shown) = (cut(args.to_string()), cut(shown));
        let code = error.as_ref().or(failed.as_ref()).map(|error| error.code);
        gathered.tools.push(ToolUse { tool: tool.into(), args, status, output: output_shown, code, duration_ms });
        // Of a command that has not come to its end there is nothing to give on.
        let is_command = matches!(binding.target, ToolTarget::Command(_));
        match error {
            None if node.retries > run.retry && failed.clone().is_some_and(|error| Failure::from(error).passing) => {
                Err(failed.unwrap_or_else(command::no_sandbox).into())
            }
            None => Ok((output, false)),
            Some(error) if is_command || is_misuse(&error) || has_no_outcome(&error) => Err(error.into()),
            Some(error) if node.retries > run.retry && Failure::from(error.clone()).passing => Err(error.into()),
            Some(error) => Ok((json!({ "error": { "code": error.code, "message": error.message } }), false)),
        }
    }

    async fn call_builtin(
        &self,
        run: &Run,
        node: &Node,
        name: &str,
        permissions: &crate::flow::Permissions,
        args: &Value,
    ) -> (Value, Option<Error>) {
        let mut args = match args {
            Value::Object(fields) => Value::Object(op::alias::arguments(name, fields.clone())),
            other => other.clone(),
        };
        if let Some(root) = &permissions.root {
            let root = FilePath::parse(root).map_err(Error::from);
            args = match root.and_then(|root| policy::confined(name, args, &root)) {
                Ok(confined) => confined,
                Err(error) => return (Value::Null, Some(error)),
            };
        }
        let workspace = match self.workspaces.open(run.config.workspace).await {
            Ok(workspace) => workspace,
            Err(error) => return (Value::Null, Some(error)),
        };
        // The same call after a crash, another one when it is tried again by decision.
        let call_id = command::call_of(run.config.task, &node.id, run.retry);
        let by = Principal::Task { task: run.config.task, user: run.config.user };
        let seen = BTreeMap::new();
        let call = Call { workspace, call_id, by, chat: None, seen: &seen, plan_path: None };
        let outcome = self.tools.call(&call, name, &args.to_string()).await;
        match outcome.error {
            Some(error) => (Value::Null, Some(error)),
            None if outcome.result.is_null() => (Value::String(outcome.output), None),
            None => (outcome.result, None),
        }
    }
}

/// Whether the call itself was wrong, and not merely what it met.
pub(super) fn is_misuse(error: &Error) -> bool {
    matches!(error.code, Code::InvalidArgument | Code::Forbidden | Code::Unauthorized)
}

/// Whether nothing can be said of what the call did: it was not begun, or nobody knows what became of it.
fn has_no_outcome(error: &Error) -> bool {
    matches!(error.code, Code::NotBegun | Code::OutcomeUnknown)
}

pub(super) fn cut(mut text: String) -> String {
    if text.len() > SHOWN {
        let mut end = SHOWN;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}
