//! References between files, and the texts in them that are expressions (step 2).

use super::{
    Loader,
    documents::Documents,
    expressions::{Text, bad_call, check_template, check_template_calls, expression_reads, short, texts},
    report::{At, ENTRYPOINTS, listed, nearest},
};
use crate::{
    graph::Role,
    manifest::{AssertionKind, NodeManifest, OpManifest},
    op,
};
use domain::task::Status;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The file that a reference is in.
#[derive(Clone, Copy)]
enum In {
    Workflow,
    Agents,
    Evaluations,
    Inspector,
    Artifacts,
    CliProfiles,
    Policy,
}

fn place_in<'a>(docs: &'a Documents, file: In, pointer: &str) -> At<'a> {
    match file {
        In::Workflow => docs.workflow.at(pointer),
        In::Agents => docs.agents.at(pointer),
        In::Evaluations => docs.evaluations.at(pointer),
        In::Inspector => docs.inspector.at(pointer),
        In::Artifacts => docs.artifacts.at(pointer),
        In::CliProfiles => docs.cli_profiles.at(pointer),
        In::Policy => docs.policy.at(pointer),
    }
}

impl Loader<'_> {
    /// Step 2: every name that is used must be there, and every expression must be one.
    pub(super) fn validate_references(&mut self) {
        let nodes = std::mem::take(&mut self.docs.workflow.value.nodes);
        let ids: BTreeSet<String> = nodes.iter().filter_map(|node| node.id.clone()).collect();
        let starts: BTreeSet<String> =
            nodes.iter().filter(|node| node.role == Some(Role::Start)).filter_map(|node| node.id.clone()).collect();
        for (place, node) in nodes.iter().enumerate() {
            self.node_names(&format!("/nodes/{place}"), node);
            self.node_texts(&format!("/nodes/{place}"), node);
            self.decision_outputs(&format!("/nodes/{place}"), node);
            self.decision_ways(&format!("/nodes/{place}"), node);
        }
        self.docs.workflow.value.nodes = nodes;
        self.check_read_names();
        self.agent_names();
        self.evaluation_names(&ids, &starts);
        self.check_answers();
        self.check_rules();
        self.check_commands();
        self.other_names(&ids, &starts);
    }

    fn refer(&mut self, file: In, pointer: &str, code: &'static str, message: String, hint: impl Into<String>) {
        self.faults.add(place_in(&self.docs, file, pointer), code, message, hint);
    }

    fn schema(&mut self, file: In, pointer: &str, name: Option<&str>) {
        let Some(name) = name.filter(|name| !self.docs.schema_names.contains(*name)) else { return };
        let hint = nearest(name, self.docs.schema_names.iter().map(String::as_str), "the folder schemas")
            .unwrap_or_else(|| format!("write schemas/{name}.json"));
        self.refer(file, pointer, "unknown_schema", format!("there is no schema `{name}`"), hint);
    }

    fn tool(&mut self, pointer: &str, name: &str) {
        if self.docs.tools.ids.contains(name) || !self.docs.tools.listed {
            return;
        }
        let hint = nearest(name, self.docs.tools.ids.iter().map(String::as_str), "tools.yaml")
            .unwrap_or_else(|| format!("declare `{name}` in tools.yaml"));
        self.refer(In::Workflow, pointer, "unknown_tool", format!("there is no tool `{name}` in tools.yaml"), hint);
    }

    fn node_names(&mut self, pointer: &str, node: &NodeManifest) {
        self.schema(In::Workflow, &format!("{pointer}/schema_in"), node.schema_in.as_deref());
        self.schema(In::Workflow, &format!("{pointer}/schema_out"), node.schema_out.as_deref());
        for (index, tool) in node.tools.iter().enumerate() {
            self.tool(&format!("{pointer}/tools/{index}"), tool);
        }
        let agents = &self.docs.agents;
        if let Some(agent) = node.agent_id.as_deref().filter(|agent| agents.listed && !agents.ids.contains(*agent)) {
            let hint = nearest(agent, agents.ids.iter().map(String::as_str), "agents.yaml")
                .unwrap_or_else(|| format!("declare `{agent}` in agents.yaml"));
            let message = format!("there is no agent `{agent}` in agents.yaml");
            self.refer(In::Workflow, &format!("{pointer}/agent_id"), "unknown_agent", message, hint);
        }
        let profile = node.context.as_deref().filter(|context| !matches!(*context, "none" | "global"));
        let memory = &self.docs.memory;
        if let Some(profile) = profile.filter(|profile| memory.listed && !memory.ids.contains(*profile)) {
            let known = ["none", "global"].into_iter().chain(memory.ids.iter().map(String::as_str));
            let hint = nearest(profile, known, "memory.yaml").unwrap_or_default();
            let message = format!("there is no context profile `{profile}` in memory.yaml");
            self.refer(In::Workflow, &format!("{pointer}/context"), "unknown_profile", message, hint);
        }
        if let Some(OpManifest::Spec(op)) = &node.op {
            if let Some(tool) = &op.tool {
                self.tool(&format!("{pointer}/op/tool"), tool);
            }
            if let Some(function) = op.function.as_ref().filter(|name| !self.known.functions.contains(*name)) {
                let hint = self.functions(function);
                let message = format!("no function `{function}` is registered");
                self.refer(In::Workflow, &format!("{pointer}/op/function"), "unknown_entrypoint", message, hint);
            }
        }
    }

    /// The hint for a function that is not registered.
    pub(super) fn functions(&self, name: &str) -> String {
        let known = self.known.functions.iter().map(String::as_str);
        nearest(name, known, ENTRYPOINTS).unwrap_or_else(|| "no functions are registered".into())
    }

    fn node_texts(&mut self, pointer: &str, node: &NodeManifest) {
        for (at, text) in texts(node) {
            match text {
                Text::Expression(text) => self.expression(In::Workflow, &format!("{pointer}{at}"), Some(text)),
                Text::Template(text) => self.template(&format!("{pointer}{at}"), Some(text)),
            }
        }
        if let Some(merge) = &node.merge {
            self.expression(In::Workflow, &format!("{pointer}/merge/score"), merge.score.as_deref());
        }
        if let Some(ask) = &node.ask {
            let mut names = BTreeSet::new();
            for (index, question) in ask.questions.iter().enumerate() {
                let at = format!("{pointer}/ask/questions/{index}");
                if !names.insert(&question.name) {
                    let message = format!("two questions are named `{}`", question.name);
                    let hint = "give one of them another name: answers are told apart by it";
                    self.refer(In::Workflow, &format!("{at}/name"), "duplicate_id", message, hint);
                }
                let schema = question.schema.clone().map_or(Value::Bool(true), Value::Object);
                if let Err(error) = crate::flow::Schema::compile(&question.name, schema) {
                    let at = format!("{at}/schema{}", error.pointer);
                    self.refer(In::Workflow, &at, "invalid_schema", error.message, "it is read as JSON Schema 2020-12");
                }
            }
        }
    }

    /// A decision whose schema lists its choices must list edges that it has, and must be able to select one.
    fn decision_outputs(&mut self, pointer: &str, node: &NodeManifest) {
        let (Some(Role::Decision), Some(id), Some(name)) = (node.role, &node.id, &node.schema_out) else { return };
        if !self.docs.workflow.has("edges") {
            return;
        }
        let Some(schema) = self.schemas.get(name).cloned() else { return };
        let ways = self.ways_of(id);
        let at = format!("{pointer}/schema_out");
        // It answers a text, or an object with one.
        let is_text = schema.source.get("type") == Some(&Value::String("string".into()));
        let properties = schema.source.get("properties").and_then(Value::as_object);
        let selected = properties.and_then(|properties| properties.get("selected_edge"));
        let Some(selected) = selected.or_else(|| is_text.then_some(&schema.source)) else {
            if schema.source.get("additionalProperties") == Some(&Value::Bool(false)) {
                let message = format!("the schema of the decision `{id}` lets it select no edge");
                let ways = listed(ways.iter().map(String::as_str)).unwrap_or_default();
                let hint = format!("it answers `{{\"selected_edge\": …}}`; {ways}");
                self.refer(In::Workflow, &at, "decision_without_outputs", message, hint);
            }
            return;
        };
        let options = selected.get("enum").and_then(Value::as_array).into_iter().flatten().chain(selected.get("const"));
        let astray: Vec<String> = options
            .filter(|option| !option.as_str().is_some_and(|way| ways.contains(way)))
            .map(Value::to_string)
            .collect();
        if !astray.is_empty() {
            let message = format!("the schema of `{id}` lets it select {}, which is no edge of it", astray.join(", "));
            let hint = listed(ways.iter().map(String::as_str)).unwrap_or_else(|| "it has no edges to select".into());
            self.refer(In::Workflow, &at, "decision_without_outputs", message, hint);
        }
    }

    /// The names that select an edge of this node.
    fn ways_of(&self, id: &str) -> BTreeSet<String> {
        let edges = self.docs.workflow.value.edges.iter().filter(|edge| edge.from.as_deref() == Some(id));
        edges.flat_map(|edge| [edge.label.clone(), edge.to.clone()]).flatten().collect()
    }

    /// People or a command whose outcome selects no edge fail the decision. `on_error` may be the way that is meant for it.
    fn decision_ways(&mut self, pointer: &str, node: &NodeManifest) {
        let (Some(Role::Decision), Some(id)) = (node.role, &node.id) else { return };
        if !self.docs.workflow.has("edges") || !node.on_error.is_empty() {
            return;
        }
        let (key, message, hint) = match (&node.ask, &node.op) {
            (Some(ask), _) if ask.approve.is_some() => {
                let ways = self.ways_of(id);
                let lost = ["approved", "declined"].into_iter().find(|way| !ways.contains(*way));
                let Some(lost) = lost else { return };
                let message = format!("the approval `{id}` has no edge for the answer `{lost}`");
                ("ask", message, "label one of its edges `approved` and another one `declined`")
            }
            (Some(ask), _) if !ask.questions.iter().any(|question| question.name == "selected_edge") => {
                let message = format!("no answer to `{id}` selects an edge");
                ("ask", message, "name a question `selected_edge`, with a schema that lists the edges")
            }
            (None, Some(OpManifest::Spec(op))) if op.command.is_some() && node.schema_out.is_none() => {
                let message = format!("the output of the command of `{id}` selects no edge");
                ("op", message, "give it a `schema_out`, and have it print the name of an edge as JSON")
            }
            _ => return,
        };
        let at = place_in(&self.docs, In::Workflow, &format!("{pointer}/{key}"));
        self.faults.refuse(at, "decision_without_outputs", message, hint);
    }

    fn expression(&mut self, file: In, pointer: &str, text: Option<&str>) {
        let Some(text) = text else { return };
        if let Err(reason) = op::expr::check(text) {
            let hint = "expressions are CEL over `input`, `context`, `outputs` and `task`";
            self.refer(file, pointer, "bad_expression", format!("this is no expression: {}", short(&reason)), hint);
        }
        self.calls(file, pointer, || op::expr::check_calls(text));
    }

    /// Flows that were accepted with a call that fails run on: it may stand where nothing evaluates it.
    fn calls(&mut self, file: In, pointer: &str, check: impl FnOnce() -> Result<(), String>) {
        if !self.faults.is_accepted()
            && let Err(why) = check()
        {
            bad_call(&mut self.faults, place_in(&self.docs, file, pointer), &why);
        }
    }

    fn template(&mut self, pointer: &str, text: Option<&str>) {
        let Some(text) = text else { return };
        if let Err(reason) = check_template(text) {
            let hint = "a template is a text with CEL in `{{…}}`";
            let message = format!("this is no template: {}", short(&reason));
            return self.refer(In::Workflow, pointer, "bad_template", message, hint);
        }
        self.calls(In::Workflow, pointer, || check_template_calls(text));
    }

    fn agent_names(&mut self) {
        let agents = std::mem::take(&mut self.docs.agents.value.agents);
        for (index, agent) in agents.iter().enumerate() {
            self.schema(In::Agents, &format!("/agents/{index}/schema_out"), agent.schema_out.as_deref());
            if agent.system.is_some() && agent.config.system_prompt.is_some() {
                let hint = "keep one of them: they mean the same";
                let message = format!("`{}` has `system` and `config.system_prompt`", agent.id);
                let at = format!("/agents/{index}/config/system_prompt");
                self.refer(In::Agents, &at, "conflicting_keys", message, hint);
            }
            let missing = |persona: &&str| self.known.personas.as_ref().is_some_and(|known| !known.contains(*persona));
            if let Some(persona) = agent.persona.as_deref().filter(missing) {
                let known = self.known.personas.iter().flatten().map(String::as_str);
                let hint = nearest(persona, known, "/system/agents")
                    .unwrap_or_else(|| format!("write /system/agents/{persona}, or leave `persona` out"));
                let message = format!("there is no persona `{persona}`");
                self.refer(In::Agents, &format!("/agents/{index}/persona"), "unknown_persona", message, hint);
            }
        }
        self.docs.agents.value.agents = agents;
    }

    fn a_node(&mut self, file: In, pointer: &str, name: &str, ids: &BTreeSet<String>) {
        // A node whose id could not be read is not missed.
        let known = self.docs.workflow.listed && self.docs.workflow.value.nodes.iter().all(|node| node.id.is_some());
        if !ids.contains(name) && known {
            let hint = nearest(name, ids.iter().map(String::as_str), "workflow.yaml").unwrap_or_else(no_nodes);
            self.refer(file, pointer, "unknown_node", format!("there is no node `{name}`"), hint);
        }
    }

    fn a_start(&mut self, file: In, pointer: &str, name: Option<&str>, starts: &BTreeSet<String>) {
        if let Some(name) = name.filter(|name| self.docs.workflow.listed && !starts.contains(*name)) {
            let hint = nearest(name, starts.iter().map(String::as_str), "workflow.yaml").unwrap_or_else(no_nodes);
            self.refer(file, pointer, "unknown_node", format!("there is no start `{name}`"), hint);
        }
    }

    fn evaluation_names(&mut self, ids: &BTreeSet<String>, starts: &BTreeSet<String>) {
        let suites = std::mem::take(&mut self.docs.evaluations.value.suites);
        for (suite_place, suite) in suites.iter().enumerate() {
            let mut cases = BTreeSet::new();
            for (case_place, case) in suite.cases.iter().enumerate() {
                let at = format!("/suites/{suite_place}/cases/{case_place}");
                if !cases.insert(&case.id) {
                    let message = format!("the id `{}` is taken by an earlier case of the suite", case.id);
                    let hint = "give one of them another id: results are told apart by it";
                    self.refer(In::Evaluations, &format!("{at}/id"), "duplicate_id", message, hint);
                }
                self.a_start(In::Evaluations, &format!("{at}/start"), case.start.as_deref(), starts);
                for (place, assertion) in case.assertions.iter().enumerate() {
                    let at = format!("{at}/assertions/{place}");
                    if let Some(node) = &assertion.node {
                        self.a_node(In::Evaluations, &format!("{at}/node"), node, ids);
                    }
                    self.schema(In::Evaluations, &format!("{at}/schema"), assertion.schema.as_deref());
                    self.expression(In::Evaluations, &format!("{at}/expression"), assertion.expression.as_deref());
                    for name in assertion.expression.as_deref().map(expression_reads).unwrap_or_default() {
                        self.a_node(In::Evaluations, &format!("{at}/expression"), &name, ids);
                    }
                    self.expected(&at, assertion.kind, &assertion.expected, assertion.expression.is_some());
                }
            }
        }
        self.docs.evaluations.value.suites = suites;
    }

    /// The expected value of an assertion must be possible.
    fn expected(&mut self, pointer: &str, kind: AssertionKind, expected: &Value, expression: bool) {
        // With the bound of the evaluation, which compiles it again.
        let pattern = |text: &str| regex::RegexBuilder::new(text).size_limit(crate::op::MAX_COMPILED).build();
        let (wrong, hint) = match kind {
            AssertionKind::Status if Status::deserialize(expected).is_err() => {
                ("a status".into(), "there are: `success`, `failure`, `partial`")
            }
            AssertionKind::Matches => match expected.as_str().map(pattern) {
                Some(Ok(_)) => return,
                // The last line names the fault; those before it show where.
                Some(Err(error)) => {
                    let hint = match error {
                        regex::Error::CompiledTooBig(_) => "repeat less in it: `{99}` of `{99}` is large",
                        _ => "put a `\\` before what stands for itself, such as `(`",
                    };
                    let error = error.to_string();
                    let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                    (format!("a regular expression: {reason}"), hint)
                }
                None => ("a regular expression".into(), "write it as a text, such as `\"^a+$\"`"),
            },
            AssertionKind::Expression if !expression => {
                ("an `expression`".into(), "write `expression: …`, a CEL expression")
            }
            _ => return,
        };
        let message = format!("this assertion expects {wrong}");
        self.refer(In::Evaluations, &format!("{pointer}/expected"), "wrong_value", message, hint);
    }

    fn other_names(&mut self, ids: &BTreeSet<String>, starts: &BTreeSet<String>) {
        for (place, node) in self.docs.inspector.value.breakpoints.clone().iter().enumerate() {
            self.a_node(In::Inspector, &format!("/breakpoints/{place}"), node, ids);
        }
        for (place, node) in self.docs.artifacts.value.nodes.clone().iter().enumerate() {
            self.a_node(In::Artifacts, &format!("/nodes/{place}"), node, ids);
        }
        let rules: Vec<Vec<String>> = self.docs.policy.value.rules.iter().map(|rule| rule.nodes.clone()).collect();
        for (rule, nodes) in rules.iter().enumerate() {
            for (place, node) in nodes.iter().enumerate().filter(|(_, node)| !node.contains('*')) {
                self.a_node(In::Policy, &format!("/rules/{rule}/nodes/{place}"), node, ids);
            }
        }
        let profiles = std::mem::take(&mut self.docs.cli_profiles.value.profiles);
        for (place, profile) in profiles.iter().enumerate() {
            let at = format!("/profiles/{place}");
            self.a_start(In::CliProfiles, &format!("{at}/start"), profile.start.as_deref(), starts);
            for (name, mapping) in &profile.input_mappings {
                let at = format!("{at}/input_mappings/{name}/start");
                self.a_start(In::CliProfiles, &at, mapping.start.as_deref(), starts);
            }
            for (place, command) in profile.custom_commands.iter().enumerate() {
                let at = format!("{at}/custom_commands/{place}");
                self.a_start(In::CliProfiles, &format!("{at}/start"), command.start.as_deref(), starts);
                let missing = command.entrypoint.as_ref().filter(|name| !self.known.functions.contains(*name));
                if let Some(function) = missing {
                    let (message, hint) = (format!("no function `{function}` is registered"), self.functions(function));
                    self.refer(In::CliProfiles, &format!("{at}/entrypoint"), "unknown_entrypoint", message, hint);
                }
            }
        }
        self.docs.cli_profiles.value.profiles = profiles;
    }
}

fn no_nodes() -> String {
    "workflow.yaml has none".into()
}
