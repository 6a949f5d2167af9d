//! The check beyond the shape of manifests: references in expressions, keys that could never act, keys without effect,
//! and the words of what cannot be read at all.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/folder.rs"]
mod folder;

#[path = "load_keys/failures.rs"]
mod failures;
#[path = "load_keys/field.rs"]
mod field;
#[path = "load_keys/ids.rs"]
mod ids;
#[path = "load_keys/ineffective_keys.rs"]
mod ineffective_keys;
#[path = "load_keys/messages.rs"]
mod messages;
#[path = "load_keys/stores.rs"]
mod stores;

use buildscale_flow::{
    Flow,
    flow::Op,
    load::{KnownNames, ManifestFault, Report, load},
};
use folder::sound;
use std::collections::BTreeMap;

type Files = BTreeMap<String, String>;

fn known() -> KnownNames {
    KnownNames { sandbox: true, ..KnownNames::default() }
}

fn refused(files: Files) -> Report {
    load("base", files, &known()).err().unwrap_or_else(|| panic!("it loads"))
}

fn loaded(files: Files) -> Flow {
    load("base", files, &known()).unwrap_or_else(|report| panic!("{report}"))
}

/// The sound folder, in which this text of a file becomes that one; an empty text is put at the end.
fn with(changes: &[(&str, &str, &str)]) -> Files {
    let mut files = sound();
    for (file, from, to) in changes {
        let text = files.entry((*file).to_owned()).or_default();
        assert!(text.contains(from), "{file} has no {from:?}");
        *text = match from.is_empty() {
            true => format!("{text}{to}"),
            false => text.replacen(from, to, 1),
        };
    }
    files
}

#[track_caller]
fn only(report: Report) -> ManifestFault {
    let [fault] = report.faults.as_slice() else { panic!("{report}") };
    fault.clone()
}

const FLOW: &str = "workflow.yaml";

/// A workflow of a split, in which `read` stands in the node `inner`, executed by subtasks.
fn split(read: &str) -> Files {
    let workflow = format!(
        "
nodes:
  - {{id: begin, kind: deterministic, role: start, context: none}}
  - {{id: plan, kind: deterministic, role: linear, context: none}}
  - {{id: each, kind: deterministic, role: split, context: none, split: {{over: outputs.plan}}}}
  - {{id: inner, kind: deterministic, role: linear, context: none, op: {{expr: \"{read}\"}}}}
  - {{id: after, kind: deterministic, role: linear, context: none, op: {{expr: outputs.inner}}}}
  - {{id: gather, kind: deterministic, role: merge, context: none}}
  - {{id: end, kind: deterministic, role: exit, context: none}}
edges:
  - {{from: begin, to: plan}}
  - {{from: plan, to: each}}
  - {{from: each, to: inner}}
  - {{from: inner, to: after}}
  - {{from: after, to: gather}}
  - {{from: gather, to: end}}
"
    );
    [(FLOW.to_owned(), workflow)].into()
}

#[test]
fn s8_outputs_that_expressions_read_are_there_by_then() {
    loaded(split("input"));
    for (read, code, message, hint) in [
        ("outputs.plan", "output_not_there", "executed by the task above `inner`", "as part of each element"),
        ("outputs.after", "output_not_there", "`after` comes after `inner`", "it reads `input` only"),
        ("outputs.inner", "output_not_there", "cannot read its own output", "it reads `input` only"),
        ("outputs.plna", "unknown_node", "there is no node `plna`", "did you mean `plan`?"),
        ("has(outputs.gather) ? 1 : 2", "output_not_there", "`gather` comes after `inner`", ""),
    ] {
        let fault = only(refused(split(read)));
        assert_eq!((fault.code, fault.file.as_str(), fault.line), (code, FLOW, 6), "{read}: {fault}");
        assert!(fault.message.contains(message) && fault.hint.contains(hint), "{read}: {fault}");
    }
    let up = split("input")[FLOW]
        .replace("role: merge, context: none", "role: merge, context: none, op: {expr: outputs.inner}");
    let fault = only(refused([(FLOW.to_owned(), up)].into()));
    assert!(fault.message.contains("by clones or subtasks below `gather`"), "{fault}");

    // Every text of a node is looked at, and its place told.
    for (from, to, column) in [
        ("prompt: \"Think of {{input}}\"", "prompt: \"Think of {{outputs.right}}\"", 13),
        ("{path: \"/{{input}}\"}", "{path: \"/{{outputs.left}}\"}", 35),
        ("[wc, \"{{input.item}}\"]", "[wc, \"{{outputs.each}}\"]", 24),
        ("over: \"input.items\"", "over: \"outputs.work\"", 19),
        ("question: \"Which colour for {{input}}?\"", "question: \"{{outputs.done}}\"", 36),
    ] {
        let fault = only(refused(with(&[(FLOW, from, to)])));
        assert_eq!((fault.code, fault.column), ("output_not_there", column), "{to}: {fault}");
    }
    let fault = only(refused(with(&[("tools.yaml", "command: [wc, -l]", "command: [wc, \"{{outputs.think}}\"]")])));
    assert_eq!((fault.code, fault.file.as_str()), ("output_not_there", "tools.yaml"));
}

#[test]
fn s8_keys_that_can_never_act_are_refused_with_their_place() {
    let rules = |rule: &str| ("policy.yaml", "  - {id: no_rm,", format!("  - {rule}\n  - {{id: no_rm,"));
    let rule = |text: &'static str| vec![rules(text)];
    let one = |file: &'static str, from: &'static str, to: &str| vec![(file, from, to.to_owned())];
    let cases: Vec<Case<'_>> = vec![
        // Rules that are about nothing.
        (
            rule("{id: a, target: tool, names: [lok], allow: false}"),
            "policy.yaml",
            "unknown_tool",
            "did you mean `look`?",
        ),
        (
            rule("{id: a, target: node, names: [thnk], allow: false}"),
            "policy.yaml",
            "unknown_node",
            "did you mean `think`?",
        ),
        (rule("{id: a, target: context, names: [projct], allow: false}"), "policy.yaml", "unknown_store", "`project`"),
        (rule("{id: a, target: model, names: [opnai/x], allow: false}"), "policy.yaml", "unknown_provider", "`openai`"),
        (
            rule("{id: a, target: node, names: [done], allow: false}"),
            "policy.yaml",
            "exit_not_read_only",
            "before the exit",
        ),
        // Limits, models, quorums, splits.
        (
            one("execution.yaml", "{openai: 4}", "{opnai: 4}"),
            "execution.yaml",
            "unknown_provider",
            "did you mean `openai`?",
        ),
        (
            one("agents.yaml", "openai/gpt-4o-mini", "opnai/gpt-4o-mini"),
            "agents.yaml",
            "unknown_provider",
            "did you mean `openai`?",
        ),
        (
            one(FLOW, "strategy: all, on_failure: include", "strategy: quorum, quorum: 2"),
            FLOW,
            "quorum_out_of_reach",
            "write 1 or less",
        ),
        (
            one(
                FLOW,
                "strategy: best_of, score: \"size(input.output)\", on_failure: ignore",
                "strategy: quorum, quorum: 51",
            ),
            FLOW,
            "quorum_out_of_reach",
            "write 50 or less",
        ),
        (one(FLOW, "over: \"input.items\"", "over: \"42\""), FLOW, "wrong_value", "gives a list"),
        // Versions.
        (one(FLOW, "version: 1\n", "version: 99\n"), FLOW, "unsupported_version", "`version: 1`"),
        (one("tools.yaml", "", "version: \"2.0\"\n"), "tools.yaml", "unsupported_version", "`flow_version`"),
        (
            one("engine_metadata.yaml", "", "engine_version: \">=99\"\n"),
            "engine_metadata.yaml",
            "engine_version",
            "correct the range",
        ),
        (one("deployment.yaml", "", "engine_version: 99.0\n"), "deployment.yaml", "wrong_type", ""),
        (
            one("deployment.yaml", "", "engine_version: \"99.0\"\n"),
            "deployment.yaml",
            "engine_version",
            "an engine of that version",
        ),
        (
            one("deployment.yaml", "", "engine_version: newest\n"),
            "deployment.yaml",
            "wrong_value",
            "such as `>=0.1, <0.3`",
        ),
        (
            one("engine_metadata.yaml", "thought:", "thougt:"),
            "engine_metadata.yaml",
            "unknown_schema",
            "did you mean `thought`?",
        ),
        (
            one("engine_metadata.yaml", "thought: \"2\"", "thought: \"deadbeef00\""),
            "engine_metadata.yaml",
            "schema_revision",
            "records both",
        ),
        // Commands, decisions, triggers, answers, ids.
        (
            one("tools.yaml", "permissions: {allow_shell: true}", "permissions: {}"),
            "tools.yaml",
            "shell_not_allowed",
            "{allow_shell: true}",
        ),
        (
            one(FLOW, "    schema_out: choice\n", "    schema_out: choice\n    continue_on_failure: true\n"),
            FLOW,
            "decision_cannot_continue",
            "`on_error`",
        ),
        (one(FLOW, "nodes:\n", "on: [projects/*.md]\nnodes:\n"), FLOW, "wrong_trigger", "/projects/*/plan.md"),
        (
            one(FLOW, "nodes:\n", "on: [{path: /data/*.md, event: creatd}]\nnodes:\n"),
            FLOW,
            "wrong_value",
            "did you mean `created`?",
        ),
        (
            one(
                "evaluations.yaml",
                "        start: begin_again",
                "        answers: {poeple: {colour: red}}\n        start: begin_again",
            ),
            "evaluations.yaml",
            "unknown_node",
            "did you mean `people`?",
        ),
        (
            one(
                "evaluations.yaml",
                "        start: begin_again",
                "        answers: {left: {colour: red}}\n        start: begin_again",
            ),
            "evaluations.yaml",
            "asks_nobody",
            "`",
        ),
        (
            one(
                "evaluations.yaml",
                "        start: begin_again",
                "        answers: {people: {colour: 5}}\n        start: begin_again",
            ),
            "evaluations.yaml",
            "wrong_value",
            "give each question a value",
        ),
        (
            one("evaluations.yaml", "input.output != null", "outputs.thnk != null"),
            "evaluations.yaml",
            "unknown_node",
            "did you mean `think`?",
        ),
        // Stores.
        (one("memory.yaml", "", "task_store: {type: redis}\n"), "memory.yaml", "unsupported_store", "write `table`"),
        (
            one("persistent_memory.yaml", "backend: table", "backend: mongodb"),
            "persistent_memory.yaml",
            "unsupported_store",
            "write `table`",
        ),
        (
            one("persistent_memory.yaml", "", "  - {store: project}\n"),
            "persistent_memory.yaml",
            "duplicate_id",
            "keep one",
        ),
        (
            one("agents.yaml", "max_tokens: 400", "system_prompt: You think."),
            "agents.yaml",
            "conflicting_keys",
            "keep one",
        ),
    ];
    refused_each(cases);
}

#[test]
fn faults_of_roles_have_their_article() {
    let fault = only(refused(with(&[(FLOW, "  - id: done\n", "  - id: done\n    merge: {of: each}\n")])));
    assert_eq!(fault.message, "`done` is of role exit; only a merge has `merge`");
    let fault = only(refused(with(&[(FLOW, "  - id: second\n", "  - id: second\n    always_fail: true\n")])));
    assert_eq!(fault.message, "`second` is a linear; only an exit can be always_fail");
    let report = refused(with(&[(FLOW, "edges:\n", "edges:\n  - {from: done, to: gather}\n")]));
    assert!(!report.to_string().contains(" a exit"), "{report}");
}

type Case<'a> = (Vec<(&'a str, &'a str, String)>, &'a str, &'a str, &'a str);

/// Each change alone is one fault in this file, of this code, with this in its hint.
fn refused_each(cases: Vec<Case<'_>>) {
    for (changes, file, code, hint) in cases {
        let borrowed: Vec<(&str, &str, &str)> =
            changes.iter().map(|(file, from, to)| (*file, *from, to.as_str())).collect();
        let report = refused(with(&borrowed));
        let fault = only(report);
        assert_eq!((fault.file.as_str(), fault.code), (file, code), "{changes:?}: {fault}");
        assert!(fault.hint.contains(hint), "{changes:?}: {fault}");
        assert!(fault.line > 1 || fault.column > 1 || matches!(code, "unsupported_version"), "{changes:?}: {fault}");
    }
}

#[test]
fn s10_6_sinks_are_validated_when_a_flow_is_loaded() {
    let one = |file: &'static str, from: &'static str, to: &str| vec![(file, from, to.to_owned())];
    refused_each(vec![
        (
            one("plugins.yaml", "url: \"https://example.com\", ", ""),
            "plugins.yaml",
            "missing_key",
            "write `config: {url:",
        ),
        (
            one("plugins.yaml", "https://example.com", "ftp://example.com"),
            "plugins.yaml",
            "wrong_value",
            "without a password",
        ),
        (
            one("plugins.yaml", "https://example.com", "https://a:b@example.com"),
            "plugins.yaml",
            "wrong_value",
            "without a password",
        ),
        (one("plugins.yaml", "url: \"", "ulr: x, url: \""), "plugins.yaml", "unknown_key", "did you mean `url`?"),
        (
            one("plugins.yaml", "type: webhook,", "type: webhook, events: [node_finish],"),
            "plugins.yaml",
            "unknown_event",
            "did you mean `node_finished`?",
        ),
        (
            one("plugins.yaml", "type: webhook,", "type: webhook, events: [\"nod_*\"],"),
            "plugins.yaml",
            "unknown_event",
            "`",
        ),
        (
            one("plugins.yaml", "url: \"https://example.com\"", "url: 5"),
            "plugins.yaml",
            "wrong_value",
            "https://host/path",
        ),
        (
            one(
                "plugins.yaml",
                "type: webhook, config: {url: \"https://example.com\"",
                "type: otlp, config: {endpoint: \"https://example.com\"",
            ),
            "plugins.yaml",
            "unknown_key",
            "`endpoint`",
        ),
        (
            one(
                "plugins.yaml",
                "type: webhook, config: {url: \"https://example.com\", secret: {env: HOOK}}",
                "type: json_lines, config: {max_bytes: many}",
            ),
            "plugins.yaml",
            "wrong_value",
            "whole number",
        ),
    ]);
    let all = "- {id: a, type: otlp, events: [\"node_*\", done], config: {endpoint: \"https://example.com\", content: true, headers: {k: {env: K}}}}\n  - {id: b, type: json_lines, name: B, description: b}\n  - {id: hook,";
    let flow = loaded(with(&[("plugins.yaml", "- {id: hook,", all)]));
    assert_eq!(flow.settings.plugins.len(), 3);
}

/// Everything of a flow that acts.
fn acting(flow: &Flow) -> String {
    let mut nodes: Vec<String> = flow
        .nodes
        .values()
        .map(|node| format!("{:?}", buildscale_flow::flow::Node { name: None, ..node.clone() }))
        .collect();
    nodes.sort();
    let mut tools: Vec<String> = flow.tools.values().map(|tool| format!("{tool:?}")).collect();
    tools.sort();
    let mut agents: Vec<String> = flow.agents.values().map(|agent| format!("{agent:?}")).collect();
    agents.sort();
    let profile = &flow.memory.profiles["notes"];
    format!(
        "{:?} {nodes:?} {tools:?} {agents:?} {profile:?} {:?} {:?} {:?}",
        flow.graph.nodes(),
        flow.policy,
        flow.limits,
        flow.default_start
    )
}

#[test]
fn s8_keys_for_people_are_taken_and_change_nothing() {
    let people = with(&[
        (FLOW, "name: base\n", "name: other\nmetadata: {team: bees}\n"),
        (FLOW, "  - id: second\n", "  - id: second\n    name: Second\n    description: Comes second.\n"),
        (
            "agents.yaml",
            "  - id: thinker\n",
            "  - id: thinker\n    name: T\n    description: Thinks.\n    kind: agent\n",
        ),
        ("tools.yaml", "  - id: change\n", "  - id: change\n    name: C\n    type: filesystem\n"),
        ("memory.yaml", "  - id: notes\n", "  - id: notes\n    name: N\n    description: What was noted.\n"),
        ("evaluations.yaml", "  - name: basics\n", "  - name: basics\n    description: First of all.\n"),
        ("evaluations.yaml", "      - id: one\n", "      - id: one\n        description: One.\n"),
        ("plugins.yaml", "{id: hook,", "{id: hook, name: H, description: Tells.,"),
        ("providers.yaml", "  - id: house\n", "  - id: house\n    name: H\n    description: Ours.\n"),
        ("provider_credentials.yaml", "  - id: house_key\n", "  - id: house_key\n    description: Ours.\n"),
        ("provider_credentials.yaml", "{type: api_key, ", "{type: bearer, "),
        ("cli_profiles.yaml", "{id: default,", "{id: default, label: D, description: d,"),
    ]);
    let (flow, plain) = (loaded(people), loaded(sound()));
    assert_eq!(acting(&flow), acting(&plain));
    assert_eq!(flow.notes, plain.notes);
    assert_ne!(flow.reference.hash, plain.reference.hash);
}

#[test]
fn s8_limits_of_agents_are_those_of_their_conversations() {
    let limits = "limits: {max_steps: 5, max_tokens: 600, max_seconds: 1.5, max_cost_usd: 0.25}";
    let flow = loaded(with(&[("agents.yaml", "limits: {max_steps: 5}", limits)]));
    let limits = flow.agents["thinker"].limits;
    assert_eq!((limits.max_steps, limits.max_tokens, limits.max_wall_ms, limits.max_cost_usd), (5, 600, 1500, 0.25));
}

#[test]
fn s8_config_without_effect_is_noted() {
    let flow = loaded(with(&[
        (
            "provider_credentials.yaml",
            "    env: HOUSE_API_KEY\n",
            "    env: HOUSE_API_KEY\n    config: {region: here}\n",
        ),
        ("persistent_memory.yaml", "backend: table,", "backend: table, config: {path: x},"),
    ]));
    let notes: Vec<(&str, u32)> = flow.notes.iter().map(|note| (note.file.as_str(), note.line)).collect();
    assert_eq!(notes, [("persistent_memory.yaml", 2), ("provider_credentials.yaml", 5)]);
    let fault = only(refused(with(&[("provider_credentials.yaml", "provider: house", "provider: huose")])));
    assert_eq!((fault.code, fault.line), ("unknown_provider", 3));
    assert!(fault.hint.contains("`house`"), "{fault}");
}

#[test]
fn s3_3_an_exit_that_would_change_or_fail_what_comes_is_refused() {
    for key in [
        "schema_out: thought",
        "schema_in: thought",
        "op: {expr: \"{'changed': input}\"}",
        "op: {expr: input.nope}",
        "op: {template: x}",
        "op: {function: \"merge:outputs\"}",
        "tools: [look]",
        "remember: {store: task}",
        "timeout_seconds: 3",
        "retries: 1",
        "max_concurrency: 1",
        "continue_on_failure: true",
        "ask: {approve: it}",
    ] {
        let to = format!("  - id: done\n    {key}\n");
        let fault = only(refused(with(&[(FLOW, "  - id: done\n", &to)])));
        assert_eq!(fault.code, "exit_not_read_only", "{key}: {fault}");
        assert!(fault.hint.contains("before the exit"), "{fault}");
    }
    for key in ["fail_on_failure: true", "op: identity", "name: The end", "always_fail: true"] {
        loaded(with(&[(FLOW, "  - id: done\n", &format!("  - id: done\n    {key}\n"))]));
    }
}

#[test]
fn s8_manifests_that_were_accepted_once_run_on_whatever_is_checked_since() {
    let files = with(&[
        (FLOW, "  - id: done\n", "  - id: done\n    op: {expr: input}\n"),
        (FLOW, "over: \"input.items\"", "over: \"42\""),
        (FLOW, "timeout_seconds: 3600\n", "timeout_seconds: 3600\n      default: {colour: red, comment: why}\n"),
        ("deployment.yaml", "", "engine_version: \"=0.0.1\"\n"),
    ]);
    assert_eq!(refused(files.clone()).faults.len(), 4);
    let flow = Flow::from_bundle("base", files, &known()).unwrap();
    assert!(!flow.is_checked && matches!(flow.nodes[&"done".into()].op, Op::Expr(_)));
}
