//! From the nodes of `workflow.yaml` to their operations (step 3).

use super::{
    Loader,
    checks::{MAX_SUBTASKS, acts},
    report::listed,
};
use crate::{
    failure::{self, ErrorRoute, FailureName, Handling, RetryPolicy},
    flow::{AskRule, CommandRule, ContextUse, Node, Op, Remember, SplitRule},
    graph::{Join, NewNode, OnFailure, Role, Strategy},
    manifest::{
        AskManifest, EdgeManifest, MergeManifest, NodeKind, NodeManifest, OpManifest, OpSpec, RetriesManifest,
        StrategyName,
    },
};
use domain::{NodeId, event::Question};
use serde_json::{Value, json};
use std::{collections::HashMap, time::Duration};

impl Loader<'_> {
    /// Step 3: makes the nodes, and checks each against its role.
    pub(super) fn construct_nodes(&mut self) -> HashMap<NodeId, Node> {
        let manifests = std::mem::take(&mut self.docs.workflow.value.nodes);
        let mut nodes = HashMap::with_capacity(manifests.len());
        for (place, manifest) in manifests.iter().enumerate() {
            let mut check = NodeCheck { loader: self, pointer: format!("/nodes/{place}"), node: manifest };
            check.role();
            check.failure_handling();
            check.retries();
            check.error_routes();
            check.default_answers();
            check.merge();
            let op = check.op();
            if let (Some(id), Some(role)) = (manifest.id.as_deref(), manifest.role) {
                let mut node = node(manifest, id.into(), role, op);
                node.failures.routes = self.error_routes(manifest);
                if manifest.retries.is_none() {
                    node.failures.retry.times = self.retries_of_agent(&node.op);
                }
                nodes.insert(id.into(), node);
            }
        }
        self.docs.workflow.value.nodes = manifests;
        self.check_default_start();
        self.check_ids();
        self.check_agent_ids();
        self.note_wide_limits();
        self.check_splits();
        self.check_triggers();
        nodes
    }

    /// The routes of a node's failures that have an edge of their own.
    fn error_routes(&self, node: &NodeManifest) -> Vec<ErrorRoute> {
        let names = |on: &[String]| on.iter().filter_map(|name| name.parse().ok()).collect();
        let to = |name: &str| self.target_of(node, name).map(NodeId::from);
        node.on_error.iter().filter_map(|route| Some(ErrorRoute { on: names(&route.on), to: to(&route.to)? })).collect()
    }

    /// The target of this node's edge that has this label or leads to this node.
    fn target_of(&self, node: &NodeManifest, name: &str) -> Option<&str> {
        let edges = || self.docs.workflow.value.edges.iter().filter(|edge| edge.from.is_some() && edge.from == node.id);
        let labelled = edges().find(|edge| edge.label.as_deref() == Some(name));
        labelled.or_else(|| edges().find(|edge| edge.to.as_deref() == Some(name))).and_then(|edge| edge.to.as_deref())
    }

    /// Whether only failures go along this edge: one that `on_error` of a linear node names. A decision can choose all of its edges.
    pub(super) fn takes_errors(&self, edge: &EdgeManifest) -> bool {
        let mut nodes = self.docs.workflow.value.nodes.iter().filter(|node| !node.on_error.is_empty());
        let from = nodes.find(|node| node.id.is_some() && node.id == edge.from && node.role == Some(Role::Linear));
        from.is_some_and(|node| {
            node.on_error.iter().any(|route| self.target_of(node, &route.to) == edge.to.as_deref() && edge.to.is_some())
        })
    }

    fn check_default_start(&mut self) {
        let nodes = &self.docs.workflow.value.nodes;
        let starts: Vec<usize> = (0..nodes.len()).filter(|place| nodes[*place].role == Some(Role::Start)).collect();
        let defaults: Vec<usize> = (0..nodes.len()).filter(|place| nodes[*place].default_start).collect();
        let mut first = None;
        for place in defaults {
            let name = nodes[place].id.clone().unwrap_or_default();
            let at = self.docs.workflow.at(&format!("/nodes/{place}/default_start"));
            if nodes[place].role.is_some_and(|role| role != Role::Start) {
                let hint = "remove it, or give the node `role: start`";
                self.faults.add(at, "default_start_on_non_start", format!("`{name}` is no start"), hint);
            } else if let Some(first) = &first {
                let message = format!("`{first}` already is the default start");
                self.faults.add(at, "second_default_start", message, "keep one of them");
            } else {
                first = Some(name);
            }
        }
        if let (None, [earliest, _, ..]) = (&first, starts.as_slice()) {
            let at = self.docs.workflow.at(&format!("/nodes/{earliest}"));
            let hint = "give one of them `default_start: true`";
            self.faults.add(at, "no_default_start", "there are several starts, and none is the default one", hint);
        }
    }

    /// The node at which a task begins by default.
    pub(super) fn default_start(&self) -> Option<NodeId> {
        let starts = || self.docs.workflow.value.nodes.iter().filter(|node| node.role == Some(Role::Start));
        let start = starts().find(|node| node.default_start).or_else(|| starts().next())?;
        start.id.as_deref().map(Into::into)
    }

    /// A node as the graph takes it. One whose role is missing or none is given the role that its edges look like.
    pub(super) fn new_node(&self, node: &NodeManifest) -> Option<NewNode> {
        let id: NodeId = node.id.as_deref()?.into();
        let edges = &self.docs.workflow.value.edges;
        let looks_like = || {
            let inbound = edges.iter().filter(|edge| edge.to.as_deref() == Some(id.as_str())).count();
            let outbound = edges.iter().filter(|edge| edge.from.as_deref() == Some(id.as_str())).count();
            match (inbound, outbound) {
                (_, 0) => Role::Exit,
                (0, _) => Role::Start,
                (1, 1) => Role::Linear,
                (1, _) => Role::Decision,
                _ => Role::Merge,
            }
        };
        let role = node.role.unwrap_or_else(looks_like);
        let join = node.merge.as_ref().filter(|_| role == Role::Merge).map(join).unwrap_or_default();
        let continue_on_failure = continues(node);
        let fails_partial = role == Role::Exit && node.fail_on_failure == Some(true);
        Some(NewNode { id, role, continue_on_failure, always_fail: node.always_fail, fails_partial, join })
    }
}

/// One node while it is checked.
struct NodeCheck<'l, 'a> {
    loader: &'l mut Loader<'a>,
    pointer: String,
    node: &'l NodeManifest,
}

impl NodeCheck<'_, '_> {
    /// A fault at a key of the node; at the node when it has no such key.
    fn fault(&mut self, key: &str, code: &'static str, message: String, hint: impl Into<String>) {
        let at = self.loader.docs.workflow.at(&format!("{}/{key}", self.pointer));
        self.loader.faults.add(at, code, message, hint);
    }

    /// The same of a flow that could run all the same.
    fn refuse(&mut self, key: &str, code: &'static str, message: String, hint: impl Into<String>) {
        let at = self.loader.docs.workflow.at(&format!("{}/{key}", self.pointer));
        self.loader.faults.refuse(at, code, message, hint);
    }

    fn name(&self) -> &str {
        self.node.id.as_deref().unwrap_or("the node")
    }

    /// The kind of the node must fit its role (spec 002 §3.3).
    fn role(&mut self) {
        let node = self.node;
        let Some(role) = node.role else { return };
        if matches!(role, Role::Start | Role::Exit) && node.kind == Some(NodeKind::Agent) {
            let message = format!("`{}` is of role {role}, which is deterministic", self.name());
            self.fault("kind", "wrong_kind", message, "put the agent into a linear node beside it");
        }
        if role == Role::Exit {
            let acts = [
                ("agent_id", node.agent_id.is_some()),
                ("tools", !node.tools.is_empty()),
                ("ask", node.ask.is_some()),
                ("remember", node.remember.is_some()),
                ("op", node.op.as_ref().is_some_and(acts)),
                ("schema_in", node.schema_in.is_some()),
                ("schema_out", node.schema_out.is_some()),
                ("timeout_seconds", node.timeout_seconds.is_some()),
                ("retries", node.retries.as_ref().is_some_and(|retries| *retries != RetriesManifest::Times(0))),
                ("max_concurrency", node.max_concurrency.is_some()),
                ("continue_on_failure", node.continue_on_failure == Some(true)),
            ];
            for (key, _) in acts.into_iter().filter(|(_, there)| *there) {
                let message = format!(
                    "the exit `{}` has `{key}`; an exit neither changes nor fails what comes to it",
                    self.name()
                );
                self.refuse(key, "exit_not_read_only", message, "do it in a node before the exit");
            }
            if node.context.as_deref().is_some_and(|context| context != "none") {
                let at = self.loader.docs.workflow.at(&format!("{}/context", self.pointer));
                let message = format!("the context of the exit `{}` has no effect", self.name());
                self.loader.faults.note(at, "no_effect", message, "write `context: none`: an exit reads nothing");
            }
        }
        if node.split.is_some() && role != Role::Split {
            let message = format!("`{}` is of role {role}; only a split has `split`", self.name());
            self.misplaced("split", message);
        }
        if node.merge.is_some() && role != Role::Merge {
            let message = format!("`{}` is of role {role}; only a merge has `merge`", self.name());
            self.misplaced("merge", message);
        }
    }

    fn misplaced(&mut self, key: &str, message: String) {
        let at = self.loader.docs.workflow.at_key(&self.pointer, key);
        self.loader.faults.add(at, "misplaced_key", message, "remove it, or change the role or kind");
    }

    fn failure_handling(&mut self) {
        let name = self.name().to_string();
        match (self.node.continue_on_failure, self.node.fail_on_failure) {
            (Some(true), Some(true)) => {
                let message = format!("`{name}` has both `continue_on_failure` and `fail_on_failure`");
                self.fault("fail_on_failure", "conflicting_failure_handling", message, "keep one of them");
            }
            (Some(false), Some(false)) => {
                let message = format!("`{name}` neither continues nor fails when it fails");
                self.fault("fail_on_failure", "conflicting_failure_handling", message, "one must be true");
            }
            _ if self.node.role == Some(Role::Decision) && continues(self.node) => {
                let message = format!("`{name}` is a decision; when it fails it has selected no edge to go on along");
                let key =
                    if self.node.continue_on_failure.is_some() { "continue_on_failure" } else { "fail_on_failure" };
                let hint = "remove it; `on_error` leads its failures along an edge of their own";
                self.refuse(key, "decision_cannot_continue", message, hint);
            }
            _ => {}
        }
    }

    fn retries(&mut self) {
        let Some(RetriesManifest::Policy(policy)) = &self.node.retries else { return };
        self.failure_names("retries/on", &policy.on);
        if policy.backoff_seconds > policy.max_backoff_seconds {
            let message = format!("the first pause of `{}` is longer than its longest", self.name());
            self.fault("retries/max_backoff_seconds", "wrong_value", message, "raise it, or shorten `backoff_seconds`");
        }
    }

    /// Failures go along edges that there are, from nodes that have several or may have them.
    fn error_routes(&mut self) {
        let node = self.node;
        let name = self.name().to_owned();
        if node.on_error.is_empty() {
            return;
        }
        if let Some(role) = node.role.filter(|role| !matches!(role, Role::Linear | Role::Decision)) {
            let message = format!("`{name}` is of role {role}; only a linear node and a decision have `on_error`");
            return self.misplaced("on_error", message);
        }
        for (place, route) in node.on_error.iter().enumerate() {
            self.failure_names(&format!("on_error/{place}/on"), &route.on);
            if self.loader.target_of(node, &route.to).is_none() {
                let message = format!("no edge of `{name}` is labelled `{}` or leads there", route.to);
                let hint = "add an edge from this node with that label, or name one that there is";
                self.fault(&format!("on_error/{place}/to"), "unknown_edge", message, hint);
            }
        }
    }

    /// The default answers have to be such as people could give.
    fn default_answers(&mut self) {
        let Some((ask, default)) = self.node.ask.as_ref().and_then(|ask| Some((ask, ask.default.as_ref()?))) else {
            return;
        };
        let name = self.name().to_owned();
        if ask.timeout_seconds.is_none() {
            let hint = "say how long to wait, in seconds, or remove it";
            let message = format!("`{name}` has a default answer and waits for ever");
            return self.fault("ask/default", "missing_key", message, hint.to_owned() + ": `timeout_seconds`");
        }
        let Op::Ask(rule) = ask_op(ask) else { return };
        if let Err(error) = schema::check_answers(&rule.all_questions(), &rule.asked_of(default)) {
            let message = format!("the default of `{name}` is no answer to what it asks: {}", error.message);
            let hint = "give each question a value; an approval has `approved`";
            self.refuse("ask/default", "wrong_value", message, hint);
        }
    }

    /// Names of failures that there are.
    fn failure_names(&mut self, key: &str, names: &[String]) {
        for (place, name) in names.iter().enumerate() {
            if let Err(message) = name.parse::<FailureName>() {
                self.fault(&format!("{key}/{place}"), "unknown_failure", message, failure::NAMES);
            }
        }
        if names.is_empty() {
            let message = format!("`{}` of `{}` names no failure", key.replace('/', "."), self.name());
            self.fault(key, "wrong_value", message, failure::NAMES);
        }
    }

    fn merge(&mut self) {
        let Some(merge) = self.node.merge.as_ref() else { return };
        let name = self.name().to_string();
        if merge.quorum.is_some() && merge.strategy != StrategyName::Quorum {
            let hint = "write `strategy: quorum`, or remove it";
            self.fault("merge/quorum", "misplaced_key", format!("`{name}` has a quorum and another strategy"), hint);
        }
        match (&merge.score, merge.strategy == StrategyName::BestOf) {
            (None, true) => {
                let hint = "an expression that gives a number, such as `input.output.score`";
                self.fault("merge", "missing_key", format!("`{name}` takes the best and has no `score`"), hint);
            }
            (Some(_), false) => {
                let hint = "write `strategy: best_of`, or remove it";
                self.fault("merge/score", "misplaced_key", format!("`{name}` has a score and another strategy"), hint);
            }
            _ => {}
        }
    }

    /// The operation of the node; identity for a wrong one.
    fn op(&mut self) -> Op {
        let node = self.node;
        let name = self.name().to_string();
        let agent = node.kind == Some(NodeKind::Agent);
        match (&node.agent_id, node.kind) {
            (None, Some(NodeKind::Agent)) => {
                let hint = listed(self.loader.docs.agents.ids.iter().map(String::as_str))
                    .unwrap_or_else(|| "declare an agent in agents.yaml".into());
                self.fault("kind", "missing_agent", format!("`{name}` is of kind agent and has no `agent_id`"), hint);
            }
            (Some(_), Some(NodeKind::Deterministic)) if node.role != Some(Role::Exit) => {
                self.misplaced("agent_id", format!("`{name}` is deterministic; only `kind: agent` has an agent"));
            }
            _ => {}
        }
        if node.prompt.is_some() && node.kind == Some(NodeKind::Deterministic) {
            self.misplaced("prompt", format!("`{name}` is deterministic; only `kind: agent` has a prompt"));
        }
        for (key, there) in [("op", node.op.is_some()), ("ask", node.ask.is_some())] {
            if there && agent {
                self.misplaced(key, format!("`{name}` is of kind agent; only `kind: deterministic` has `{key}`"));
            }
        }
        if let (Some(_), Some(ask)) = (&node.op, &node.ask) {
            self.misplaced("ask", format!("`{name}` has `op` and `ask`; a node does one thing"));
            return ask_op(ask);
        }
        match (&node.agent_id, &node.ask, &node.op) {
            (Some(agent_id), ..) if agent => Op::Agent { agent: agent_id.clone(), prompt: node.prompt.clone() },
            (_, Some(ask), _) => {
                if ask.questions.is_empty() == ask.approve.is_none() {
                    let hint = "it has either `questions` or `approve`";
                    self.fault("ask", "wrong_value", format!("`{name}` must ask one thing"), hint);
                }
                ask_op(ask)
            }
            (_, None, Some(OpManifest::Spec(spec))) => self.spec(&name, spec),
            _ => Op::Identity,
        }
    }

    fn spec(&mut self, name: &str, spec: &OpSpec) -> Op {
        let mut ops = [
            spec.expr.clone().map(Op::Expr),
            spec.template.clone().map(Op::Template),
            spec.tool.clone().map(|tool| Op::Tool { tool, args: spec.args.clone().unwrap_or_default() }),
            spec.command.clone().map(|words| Op::Command(CommandRule { words, keep: spec.keep.clone() })),
            spec.function.clone().map(Op::Function),
        ]
        .into_iter()
        .flatten();
        let op = ops.next();
        if op.is_none() || ops.next().is_some() {
            let hint = "`identity`, or one of `expr`, `template`, `tool`, `command`, `function`";
            self.fault("op", "wrong_value", format!("`{name}` must do exactly one thing"), hint);
        }
        if spec.args.is_some() && spec.tool.is_none() {
            self.fault(
                "op/args",
                "misplaced_key",
                format!("`{name}` has `args` and calls no tool"),
                "remove it, or name a `tool`",
            );
        }
        if !spec.keep.is_empty() && spec.command.is_none() {
            let message = format!("`{name}` has `keep` and runs no command");
            self.fault("op/keep", "misplaced_key", message, "remove it, or name a `command`");
        }
        if matches!(&op, Some(Op::Command(rule)) if rule.words.is_empty()) {
            self.fault(
                "op/command",
                "wrong_value",
                format!("the command of `{name}` is empty"),
                "list its words: `[wc, -l]`",
            );
        }
        op.unwrap_or(Op::Identity)
    }
}

pub(super) fn ask_op(ask: &AskManifest) -> Op {
    let questions = ask.questions.iter().map(|question| Question {
        name: question.name.clone(),
        question: question.question.clone(),
        schema: question.schema.clone().map_or_else(|| json!({"type": "string"}), Value::Object),
        buttons: question.buttons.clone(),
    });
    Op::Ask(AskRule {
        questions: questions.collect(),
        approve: ask.approve.clone(),
        timeout: seconds(ask.timeout_seconds),
        default: ask.default.clone(),
    })
}

/// Whether the task goes on when this node fails.
fn continues(node: &NodeManifest) -> bool {
    node.continue_on_failure.unwrap_or(node.fail_on_failure == Some(false))
}

/// The handling of the node's failures.
fn handling(manifest: &NodeManifest) -> Handling {
    let retry = match &manifest.retries {
        None => RetryPolicy::default(),
        Some(RetriesManifest::Times(times)) => RetryPolicy { times: *times, ..RetryPolicy::default() },
        Some(RetriesManifest::Policy(policy)) => {
            let duration = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
            RetryPolicy {
                times: policy.times,
                on: policy.on.iter().filter_map(|name| name.parse().ok()).collect(),
                backoff: duration(policy.backoff_seconds),
                rate: policy.backoff_rate,
                longest: duration(policy.max_backoff_seconds),
                jitter: policy.jitter,
                within: seconds(policy.within_seconds),
            }
        }
    };
    Handling { retry, routes: Vec::new() }
}

fn seconds(seconds: Option<f64>) -> Option<Duration> {
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn join(merge: &MergeManifest) -> Join {
    let strategy = match merge.strategy {
        StrategyName::All => Strategy::All,
        StrategyName::FirstSuccess => Strategy::FirstSuccess,
        StrategyName::Quorum => Strategy::Quorum(merge.quorum.unwrap_or_default()),
        StrategyName::BestOf => Strategy::BestOf,
    };
    let default = match strategy {
        Strategy::All | Strategy::BestOf => OnFailure::Fail,
        Strategy::FirstSuccess | Strategy::Quorum(_) => OnFailure::Ignore,
    };
    Join { strategy, on_failure: merge.on_failure.unwrap_or(default), of: merge.of.as_deref().map(Into::into) }
}

fn node(manifest: &NodeManifest, id: NodeId, role: Role, op: Op) -> Node {
    // To call a tool is to list it.
    let called = match &op {
        Op::Tool { tool, .. } => Some(tool),
        _ => None,
    };
    let mut tools: Vec<String> = Vec::new();
    for tool in manifest.tools.iter().chain(called) {
        if !tools.contains(tool) {
            tools.push(tool.clone());
        }
    }
    let split = (role == Role::Split).then(|| {
        let split = manifest.split.clone().unwrap_or_default();
        let max_subtasks = split.max_subtasks.unwrap_or(MAX_SUBTASKS);
        SplitRule { over: split.over, item: split.item, max_subtasks }
    });
    Node {
        id,
        name: manifest.name.clone(),
        role,
        op,
        schema_in: manifest.schema_in.clone(),
        schema_out: manifest.schema_out.clone(),
        context: match manifest.context.as_deref() {
            None | Some("none") => ContextUse::None,
            _ if role == Role::Exit => ContextUse::None,
            Some("global") => ContextUse::Global,
            Some(profile) => ContextUse::Profile(profile.into()),
        },
        tools,
        split,
        score: manifest.merge.as_ref().and_then(|merge| merge.score.clone()),
        remember: manifest.remember.clone().map(|remember| Remember {
            store: remember.store,
            key: remember.key,
            tags: remember.tags,
        }),
        timeout: seconds(manifest.timeout_seconds),
        failures: handling(manifest),
        max_concurrency: manifest.max_concurrency,
    }
}
