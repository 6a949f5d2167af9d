//! The effects of a task: executing one node, from its context to its checked output (spec 002 §3.2).
//!
//! ```text
//!   replayed? ─ policy ─ schema_in ─ context ─ op ─ schema_out ─ remember ─ Done
//!                                               └─ an agent: AgentReady; people: Questions
//! ```

mod agents;
mod archive;
mod clear;
mod command;
mod recorded_answers;
mod tool;

use crate::{
    artifact::Artifacts,
    call::call_of,
    flows::Flows,
    machine::{NodeResult, Run, TaskEffect, TaskMachine, TaskReport, TaskState},
    memory::{Memory, Scope as MemoryScope, Writer},
};
use actor::{ActorId, EffectContext, EffectRunner, Mailbox};
use async_trait::async_trait;
use domain::{
    Code, Error, NodeId, Sha256, Status, TaskCommand, TaskConfig, TaskEvent, TaskId, json_length,
    task::{AssembledContext, ChildName, ToolUse},
    text::counted,
};
use flow::{
    Flow,
    flow::{ContextUse, Node, Op, StoreKind},
    graph::Role,
    op::{self, Functions, Scope},
    policy::{self, Use},
    router::MAX_OUTPUT,
};
use ports::{Clock, Table};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tools::Registry;
use workspace::Workspaces;

/// Why a command does not run.
const NO_SANDBOX: &str = "no sandbox is configured, and commands run nowhere else";

/// Runs the effects of tasks.
pub struct TaskEffects {
    /// The flows of the tasks that are driven.
    pub flows: Flows,
    /// The tools.
    pub tools: Arc<Registry>,
    /// Registered Rust functions.
    pub functions: Arc<Functions>,
    /// The files that tools work on.
    pub workspaces: Workspaces,
    /// Task, project and global memory.
    pub memory: Memory,
    /// The artifacts of tasks.
    pub artifacts: Artifacts,
    /// The table, which has the logs.
    pub table: Arc<dyn Table>,
    /// The way to the chats of agents.
    pub mailbox: Mailbox,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The context budget of agents, in tokens.
    pub context_tokens: u64,
}

#[async_trait]
impl EffectRunner<TaskMachine> for TaskEffects {
    /// The flow has to be in memory before the machine decides: the manifests that the task began with, by their hash.
    async fn prepare(&self, _actor: &ActorId, state: &TaskState, next: Option<&TaskCommand>) -> ports::Result<()> {
        let config = match (&state.config, next) {
            (Some(config), _) => config,
            (None, Some(TaskCommand::Start { config })) => &**config,
            (None, _) => return Ok(()),
        };
        self.flows.read_bundle(config.workspace, &config.flow).await?;
        self.read_record(config).await
    }

    async fn perform(&self, effect: TaskEffect, context: EffectContext<TaskMachine>) -> TaskReport {
        match effect {
            TaskEffect::Run(run) => {
                let report = tokio::select! {
                    biased;
                    report = self.run(&run) => report,
                    // Of a tool of a server alone, which is told so: each other node completes.
                    () = context.cancelled.cancelled() => return TaskReport::Told,
                };
                // The machine decides on the report by the record in memory, which may have been evicted by others.
                if let Err(error) = self.read_record(&run.config).await {
                    tracing::warn!(task = %run.config.task, %error, "a re-run cannot read what it follows");
                }
                report
            }
            TaskEffect::KillCommand(workspace, call) => {
                self.kill(workspace, call).await;
                TaskReport::Told
            }
            TaskEffect::Archive(config) => TaskReport::Archived { files: self.archive(&config).await },
            TaskEffect::Clear(config) => {
                self.clear(&config).await;
                TaskReport::Cleared
            }
            TaskEffect::StopAgent(chat, request) => {
                if let Err(error) = self.mailbox.stop(&chat, &request).await {
                    tracing::warn!(%chat, %error, key = context.key.0, "an agent runs to its end: it could not be stopped");
                }
                TaskReport::Told
            }
        }
    }
}

/// The facts about a node's execution so far.
#[derive(Default)]
struct ExecutionFacts {
    context: Option<Box<AssembledContext>>,
    denied: Vec<(String, String)>,
    tools: Vec<ToolUse>,
    /// Steps of plans that its tools have changed.
    plan: Vec<TaskEvent>,
    rejected: Vec<String>,
    /// The output of a recorded node that failed.
    failed_with: Value,
}

/// A failed node.
struct EffectError {
    error: Error,
    /// Whether it failed so in the recorded task.
    recorded: bool,
}

impl From<Error> for EffectError {
    fn from(error: Error) -> Self {
        Self { error, recorded: false }
    }
}

/// The result of a node's operation.
enum OperationResult {
    Output { output: Value, elements: Option<u32>, partial: bool, tolerated: Option<ToleratedFailure> },
    Report(TaskReport),
}

/// A failure with an output: a node whose policy neither tries it again nor takes it along an edge has this output and this
/// status.
struct ToleratedFailure {
    error: Error,
    status: Status,
}

impl TaskEffects {
    async fn run(&self, run: &Run) -> TaskReport {
        let Some(flow) = self.flows.cached(&run.config.flow) else {
            return failed(&run.node, Error::new(Code::Internal, "the flow's manifests are gone"));
        };
        let Some(node) = flow.nodes.get(&run.node) else {
            return failed(&run.node, Error::new(Code::Internal, "the flow has no such node"));
        };
        let mut facts = ExecutionFacts::default();
        let running = self.execute(run, &flow, node, &mut facts);
        let outcome = match node.timeout.filter(|_| !matches!(node.op, Op::Agent { .. } | Op::Ask(_))) {
            None => running.await,
            Some(limit) => match tokio::time::timeout(limit, running).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    if flow.runs_command(node) {
                        self.kill(run.config.workspace, call_of(run.config.task, &node.id, run.retry)).await;
                    }
                    Err(timed_out(limit).into())
                }
            },
        };
        let ExecutionFacts { context, denied, tools, plan, rejected, failed_with } = facts;
        let done = NodeResult {
            node: Some(run.node.clone()),
            context,
            denied,
            tools,
            plan,
            rejected,
            ..NodeResult::default()
        };
        match outcome {
            Ok(OperationResult::Report(report)) => report,
            Ok(OperationResult::Output { output, elements, partial, tolerated }) => {
                let (error, tolerated) = tolerated.map(|it| (it.error, it.status)).unzip();
                TaskReport::Done(Box::new(NodeResult { output, elements, partial, error, tolerated, ..done }))
            }
            Err(EffectError { error, recorded }) => {
                TaskReport::Done(Box::new(NodeResult { error: Some(error), recorded, output: failed_with, ..done }))
            }
        }
    }

    async fn execute(
        &self,
        run: &Run,
        flow: &Arc<Flow>,
        node: &Node,
        facts: &mut ExecutionFacts,
    ) -> Result<OperationResult, EffectError> {
        if let Some(given) = run.given.clone() {
            let (context, task) = (self.context_had(run, node, run.config.task).await?, about(&run.config));
            let outputs = |id: &str| run.outputs.get(&NodeId::from(id)).cloned();
            let scope = Scope { input: &run.input, context: &context, outputs: &outputs, task: &task };
            let (output, elements) = split(node, given, &scope)?;
            self.remember(run, flow, node, &context, &output).await?;
            return Ok(OperationResult::Output { output, elements, partial: false, tolerated: None });
        }
        if let Some(recorded) = self.recorded(run, flow, node, facts).await? {
            if let OperationResult::Output { output, .. } = &recorded {
                self.remember_again(run, flow, node, output, facts).await?;
            }
            return Ok(recorded);
        }
        if node.role == Role::Start && run.config.replay.is_none() {
            self.flows.providers().bind(run.config.workspace, flow, &node.id).await?;
        }
        // An exit presents its input, with any status (spec 002 §3.3, §3.4).
        if node.role == Role::Exit {
            let output = (*run.input).clone();
            return Ok(OperationResult::Output { output, elements: None, partial: false, tolerated: None });
        }
        self.permit(flow, node, &Use::Node, facts)?;
        let input = self.input_of(run, node)?;
        fits(flow, node.schema_in.as_deref(), &input)
            .map_err(|errors| schema_mismatch("input", node.schema_in.as_deref(), &errors))?;
        let context = self.context(run, flow, node, &input, facts).await?;
        let context = serde_json::to_value(&context).map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        let task = about(&run.config);
        let outputs = |id: &str| run.outputs.get(&NodeId::from(id)).cloned();
        let scope = Scope { input: &input, context: &context, outputs: &outputs, task: &task };
        let came = match &node.op {
            Op::Tool { tool, args } => self.call_tool(run, flow, node, tool, args, &scope, facts).await?,
            Op::Command(rule) => {
                self.permit(flow, node, &Use::Command, facts)?;
                self.command(run, flow, node, rule, &scope, facts).await?
            }
            Op::Agent { agent, prompt } => {
                return Ok(OperationResult::Report(
                    self.agent(run, flow, node, agent, prompt.as_deref(), &scope, facts).await?,
                ));
            }
            Op::Ask(rule) => return Ok(OperationResult::Report(self.questions(run, rule, &scope)?)),
            pure => match op::pure(pure, &self.functions, &scope) {
                Some(output) => (output?, None),
                None => return Err(Error::new(Code::Internal, "the node has no operation").into()),
            },
        };
        let (output, tolerated) = came;
        if let Err(errors) = fits(flow, node.schema_out.as_deref(), &output) {
            // A failure that has an output in place of the node's own says why there is none.
            if let Some(ToleratedFailure { error, .. }) = tolerated {
                return Err(error.into());
            }
            facts.rejected.clone_from(&errors);
            return Err(schema_mismatch("output", node.schema_out.as_deref(), &errors).into());
        }
        let (output, elements) = split(node, output, &scope)?;
        let bytes = json_length(&output);
        if bytes > MAX_OUTPUT && node.role != Role::Merge && elements.is_none() {
            let text = format!("the output of {} is {bytes} bytes long; {MAX_OUTPUT} fit", node.id);
            return Err(Error::new(Code::PayloadTooLarge, text).hint("write it to a file and give its path on").into());
        }
        if tolerated.is_none() {
            self.remember(run, flow, node, &context, &output).await?;
        }
        Ok(OperationResult::Output { output, elements, partial: false, tolerated })
    }

    fn input_of(&self, run: &Run, node: &Node) -> Result<Arc<Value>, EffectError> {
        let best = node.role == Role::Merge && node.score.is_some();
        let Some(score) = node.score.as_deref().filter(|_| best) else { return Ok(run.input.clone()) };
        let task = about(&run.config);
        let has_failed = |entry: &Value| entry.get("status").and_then(Value::as_str) == Some("failure");
        let entries = || run.input.as_array().into_iter().flatten();
        let mut winner: Option<(f64, &Value)> = None;
        for entry in entries().filter(|entry| !has_failed(entry)) {
            let scope = Scope { task: &task, ..Scope::of(entry) };
            let points = op::score(score, entry, &scope)?;
            // The first of equals, in the order of the manifest.
            if winner.is_none_or(|(best, _)| points > best) {
                winner = Some((points, entry));
            }
        }
        // Those that failed are shown beside the best where the merge includes them.
        let Some((_, best)) = winner else { return Ok(run.input.clone()) };
        let shown = entries().filter(|entry| std::ptr::eq(*entry, best) || has_failed(entry));
        Ok(Arc::new(shown.cloned().collect()))
    }

    fn permit(&self, flow: &Flow, node: &Node, what: &Use<'_>, facts: &mut ExecutionFacts) -> Result<(), EffectError> {
        match policy::permit(flow, node, what) {
            policy::Decision::Permit => Ok(()),
            policy::Decision::Deny { rule, what, reason } => {
                tracing::info!(node = %node.id, what, rule, "denied");
                facts.denied.push((what.clone(), rule.clone()));
                let error = Error::new(Code::Forbidden, format!("{what} is denied by {rule}"));
                Err(match reason {
                    Some(reason) => error.hint(reason),
                    None => error,
                }
                .into())
            }
        }
    }

    async fn context(
        &self,
        run: &Run,
        flow: &Flow,
        node: &Node,
        input: &Value,
        facts: &mut ExecutionFacts,
    ) -> Result<AssembledContext, EffectError> {
        if node.context == ContextUse::None {
            return Ok(AssembledContext::default());
        }
        for store in [StoreKind::Task, StoreKind::Project, StoreKind::Global] {
            if flow.memory.uses(&node.context, store) {
                self.permit(flow, node, &Use::Context(store), facts)?;
            }
        }
        if run.config.repeats() {
            // Items that were remembered since must not change the output of a re-run.
            let context = self.recorded_context(run, &node.id).await?;
            facts.context = Some(Box::new(context.clone()));
            return Ok(context);
        }
        let scope = memory_scope(&run.config);
        let query = match input {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let context = self.memory.assemble(&scope, &flow.memory, &node.context, &query).await?;
        facts.context = Some(Box::new(context.clone()));
        Ok(context)
    }

    /// Remembers an output where the node says so: of an operation, an agent or people.
    async fn remember(
        &self,
        run: &Run,
        flow: &Flow,
        node: &Node,
        context: &Value,
        output: &Value,
    ) -> Result<(), EffectError> {
        // A re-run with recorded answers leaves no trace in memory.
        let repeats = run.config.repeats();
        let Some(remember) = node.remember.as_ref().filter(|_| !repeats) else { return Ok(()) };
        let key = match &remember.key {
            Some(template) => {
                let task = about(&run.config);
                let outputs = |id: &str| run.outputs.get(&NodeId::from(id)).cloned();
                let scope = Scope { input: &run.input, context, outputs: &outputs, task: &task };
                op::template::render_text(template, &scope)?
            }
            None => own_key(&run.config, node),
        };
        let (store, tags) = (remember.store, remember.tags.as_slice());
        let by = Some(writer(&run.config, flow, node));
        let scope = memory_scope(&run.config);
        let bounds = flow.memory.stores.get(&store).copied().unwrap_or_default();
        self.memory.remember(by, &scope, store, &key, output, tags, self.clock.now(), bounds).await?;
        Ok(())
    }

    /// A re-run has a task memory of its own: an item of a node whose recorded output is taken is put there again, for
    /// nodes that run for real. The other stores have it still.
    async fn remember_again(
        &self,
        run: &Run,
        flow: &Flow,
        node: &Node,
        output: &Value,
        facts: &mut ExecutionFacts,
    ) -> Result<(), EffectError> {
        let is_of_task = node.remember.as_ref().is_some_and(|remember| remember.store == StoreKind::Task);
        let is_kept = is_of_task && !run.config.repeats();
        let Some(replay) = run.config.replay.as_ref().filter(|_| is_kept) else { return Ok(()) };
        let context = self.context_had(run, node, replay.of).await?;
        // Into its own log, too: a re-run of this one reads it there.
        facts.context = serde_json::from_value(context.clone()).ok();
        self.remember(run, flow, node, &context, output).await
    }

    /// The context that a task had for a node, for the key and the split of the node: these are evaluated after its operation. Null where neither reads it.
    async fn context_had(&self, run: &Run, node: &Node, task: TaskId) -> Result<Value, EffectError> {
        let key = node.remember.as_ref().and_then(|remember| remember.key.as_deref());
        let over = node.split.as_ref().and_then(|rule| rule.over.as_deref());
        if ![key, over].into_iter().flatten().any(|text| text.contains("context")) {
            return Ok(Value::Null);
        }
        let context = self.context_in(run.config.workspace, task, &node.id).await?;
        Ok(serde_json::to_value(&context).map_err(|error| Error::new(Code::Internal, error.to_string()))?)
    }
}

/// The key under which a node remembers that names none: its own, and in a clone or subtask the names of these, so that each has
/// its own and the next run of the same input the same.
fn own_key(config: &TaskConfig, node: &Node) -> String {
    let Some(origin) = &config.origin else { return node.id.to_string() };
    let line: Vec<&str> = origin.line.iter().map(ChildName::as_str).collect();
    let line = line.join("/");
    // A key has a limit; a name of many levels does not.
    match line.len() + node.id.as_str().len() < 500 {
        true => format!("{}@{line}", node.id),
        false => format!("{}@{}", node.id, Sha256::of(line.as_bytes())),
    }
}

/// The place of an execution in the flow, by which memory knows the later one of two.
fn writer(config: &TaskConfig, flow: &Flow, node: &Node) -> Writer {
    let before = flow.graph.nodes().iter().filter(|other| flow.graph.reaches(&other.id, &node.id));
    let rank = u32::try_from(before.count()).unwrap_or(u32::MAX);
    let place = config.origin.as_ref().map(|origin| origin.place.clone()).unwrap_or_default();
    Writer { root: memory_scope(config).root, rank, node: node.id.clone(), place }
}

/// The memory that a task sees.
pub(crate) fn memory_scope(config: &TaskConfig) -> MemoryScope {
    MemoryScope { workspace: config.workspace, flow: config.flow.name.clone(), root: config.root() }
}

/// The variable `task` of expressions.
fn about(config: &TaskConfig) -> Value {
    json!({
        "id": config.task,
        "flow": config.flow.name,
        "name": config.origin.as_ref().map(|origin| origin.name()),
        "index": config.origin.as_ref().map(|origin| origin.index),
        "files": config.files,
    })
}

fn split(node: &Node, output: Value, scope: &Scope<'_>) -> Result<(Value, Option<u32>), EffectError> {
    let Some((rule, over)) = node.split.as_ref().and_then(|rule| Some((rule, rule.over.as_ref()?))) else {
        return Ok((output, None));
    };
    let elements = op::expr::eval_list(over, &scope.with_input(&output))?;
    if elements.len() > rule.max_subtasks as usize {
        let (made, most) = (counted(elements.len(), "subtask"), rule.max_subtasks);
        let text = format!("{} would make {made}; the limit is {most}", node.id);
        return Err(Error::new(Code::LimitReached, text)
            .hint("raise split.max_subtasks, or split in two steps")
            .into());
    }
    if let Some(large) = elements.iter().map(json_length).find(|bytes| *bytes > MAX_OUTPUT) {
        let text = format!("an element of {} is {large} bytes long; {MAX_OUTPUT} fit", node.id);
        return Err(Error::new(Code::PayloadTooLarge, text).hint("write it to a file and give its path on").into());
    }
    let count = elements.len() as u32;
    Ok((Value::Array(elements), Some(count)))
}

fn fits(flow: &Flow, schema: Option<&str>, value: &Value) -> Result<(), Vec<String>> {
    let errors = schema.and_then(|name| flow.schemas.get(name)).map(|schema| schema.errors(value)).unwrap_or_default();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn schema_mismatch(what: &str, schema: Option<&str>, errors: &[String]) -> Error {
    let first = errors.first().map(String::as_str).unwrap_or_default();
    let schema = schema.unwrap_or_default();
    Error::new(Code::Unprocessable, format!("the {what} does not fit the schema {schema}: {first}"))
        .detail("errors", errors.to_vec())
}

fn timed_out(limit: Duration) -> Error {
    Error::new(Code::Timeout, format!("the node did not end within {} s", limit.as_secs_f64()))
}

fn failed(node: &NodeId, error: Error) -> TaskReport {
    TaskReport::Done(Box::new(NodeResult { node: Some(node.clone()), error: Some(error), ..NodeResult::default() }))
}
