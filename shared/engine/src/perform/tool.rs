//! Deterministic nodes that call a tool (spec 002 §5).

use crate::{
    call::{call_of, cut},
    machine::Run,
    perform::{
        EffectError, ExecutionFacts, TaskEffects, ToleratedFailure,
        command::{self, is_misuse},
    },
};
use domain::{ChatEvent, Code, Error, FilePath, NodeId, Principal, Status, TaskEvent, task::ToolUse};
use flow::{
    Flow,
    flow::{HttpTool, Node, ToolTarget},
    op::{self, Scope},
    policy::Use,
};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::Call;

impl TaskEffects {
    /// Calls the tool. A misuse (arguments that it does not take, a path that it may not touch, a tool that does not exist) fails the node, and so does an
    /// unknown outcome. A command is as one of the node's own. Another failure is passed on as `{"error": …}`, for the flow to
    /// decide about, unless the node tries it again or has an edge for it.
    #[expect(clippy::too_many_arguments, reason = "the parts of one execution, each used once")]
    pub(super) async fn call_tool(
        &self,
        run: &Run,
        flow: &Flow,
        node: &Node,
        tool: &str,
        args: &Map<String, Value>,
        scope: &Scope<'_>,
        facts: &mut ExecutionFacts,
    ) -> Result<(Value, Option<ToleratedFailure>), EffectError> {
        let Some(binding) = flow.tools.get(tool) else {
            return Err(Error::new(Code::NotFound, format!("the flow has no tool {tool}")).into());
        };
        self.permit(flow, node, &Use::Tool(binding), facts)?;
        let args = op::template::render(&Value::Object(args.clone()), scope)?;
        let (began, mut resources) = (Instant::now(), None);
        let (came, shown) = match &binding.target {
            ToolTarget::Function(name) => as_outcome(self.functions.call(name, &args, scope)),
            ToolTarget::Builtin(name) => {
                let declared = flow.http_tools.get(name);
                as_outcome(self.call_builtin(run, node, (name, declared), &binding.permissions, &args, facts).await)
            }
            ToolTarget::Command(words) => {
                let with_args = scope.with_input(&args);
                match self.run_words(run, node, words, &[], &binding.permissions, &with_args).await {
                    Ok(ran) => {
                        resources = ran.ran.end.resources;
                        let came = command::come_of(ran, command::wants_schema(flow, node));
                        let shown = match &came {
                            Ok((output, _)) => output.to_string(),
                            Err(failure) => in_words(&failure.error),
                        };
                        (came, shown)
                    }
                    Err(error) => {
                        let shown = in_words(&error);
                        (Err(error.into()), shown)
                    }
                }
            }
        };
        let status = match &came {
            Ok((_, None)) => Status::Success,
            Err(failure) if is_misuse(&failure.error) => Status::Failure,
            Ok((_, Some(_))) | Err(_) => Status::Partial,
        };
        let duration_ms = began.elapsed().as_millis() as u64;
        let (args, output) = (cut(&args.to_string()), cut(&shown));
        let code = match &came {
            Ok((_, tolerated)) => tolerated.as_ref().map(|tolerated| tolerated.error.code),
            Err(failure) => Some(failure.error.code),
        };
        // The machine of the task knows how long it waited.
        let (tool, queue_ms) = (tool.into(), 0);
        facts.tools.push(ToolUse { tool, args, status, output, code, duration_ms, queue_ms, resources });
        came
    }

    async fn call_builtin(
        &self,
        run: &Run,
        node: &Node,
        (name, declared): (&str, Option<&HttpTool>),
        permissions: &flow::flow::Permissions,
        args: &Value,
        facts: &mut ExecutionFacts,
    ) -> Result<Value, Error> {
        let mut args = match args {
            Value::Object(fields) => Value::Object(op::alias::arguments(name, fields.clone())),
            other => other.clone(),
        };
        if let Some(root) = &permissions.root {
            let root = FilePath::parse(root).map_err(Error::from);
            args = root.and_then(|root| tools::confined(name, args, &root))?;
        }
        let workspace = self.workspaces.open(run.config.workspace, run.access()).await?;
        // The same call after a crash, another one when it is tried again by decision.
        let call_id = call_of(run.config.task, &node.id, run.retry);
        let by = Principal::Task { task: run.config.task, user: run.config.user };
        let declared = declared.map(|tool| (format!("{name}.json"), tool.declaration.clone()));
        let (waited, declared) = (Some(run.waited), declared.as_slice());
        let call = Call { waited, may_run: true, declared, ..Call::outside(workspace, call_id, by) };
        if run.may_have_run {
            self.tools.check_repeat(&call.workspace, declared, name).await?;
        }
        let outcome = self.tools.call(&call, name, &args.to_string()).await;
        facts.plan.extend(outcome.events.into_iter().filter_map(|event| plan_step(&node.id, event)));
        match outcome.error {
            Some(error) => Err(error),
            None if outcome.result.is_null() => Ok(Value::String(outcome.output)),
            None => Ok(outcome.result),
        }
    }
}

/// The output of a tool that is no command, and its text for history.
fn as_outcome(called: Result<Value, Error>) -> (Result<(Value, Option<ToleratedFailure>), EffectError>, String) {
    match called {
        Ok(output) => {
            let shown = output.to_string();
            (Ok((output, None)), shown)
        }
        Err(error) => {
            let shown = in_words(&error);
            let output = json!({ "error": { "code": error.code, "message": error.message } });
            let fails = is_misuse(&error) || has_no_outcome(&error);
            let tolerated = ToleratedFailure { error, status: Status::Success };
            (if fails { Err(tolerated.error.into()) } else { Ok((output, Some(tolerated))) }, shown)
        }
    }
}

pub(super) fn in_words(error: &Error) -> String {
    format!("{}: {}", error.code, error.message)
}

/// The task's event for a step of a plan that a tool has written; none for files.
fn plan_step(node: &NodeId, event: ChatEvent) -> Option<TaskEvent> {
    let ChatEvent::PlanStep { step, status, title, plan_path, plan_id, done, total } = event else { return None };
    Some(TaskEvent::PlanStep { node: node.clone(), step, status, title, plan_path, plan_id, done, total })
}

/// Whether the effect of the call is unknown: it was not begun, or its outcome was lost.
fn has_no_outcome(error: &Error) -> bool {
    matches!(error.code, Code::NotBegun | Code::OutcomeUnknown)
}
