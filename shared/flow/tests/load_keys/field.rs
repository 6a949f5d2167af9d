//! Projects in the format of the engine that the specification was written for.

use crate::{FLOW, Files, loaded, refused, with};
use buildscale_flow::{flow::StoreKind, manifest::SecretReference};
use std::collections::BTreeSet;

/// A project in the format of the engine that the specification was written for: its keys, its wrappers, its words.
fn of_the_field() -> Files {
    let workflow = r#"
version: "1.0"
nodes:
  - {id: start, name: Start, kind: deterministic, role: start, default_start: true, context: none, tools: [], schema_in: request}
  - {id: route, name: Route, kind: agent, role: decision, agent_id: router, context: recent, tools: []}
  - {id: draft, kind: agent, role: linear, agent_id: writer, context: recent, tools: [write_file], schema_out: document}
  - {id: edit, kind: agent, role: linear, agent_id: writer, context: global, tools: [read_file, write_file], schema_out: document}
  - {id: join, kind: deterministic, role: merge, context: none, tools: []}
  - {id: exit, kind: deterministic, role: exit, context: none, tools: [], fail_on_failure: true}
  - {id: refused, kind: deterministic, role: exit, context: none, always_fail: true}
edges:
  - {from: start, to: route}
  - {from: route, to: draft, label: create}
  - {from: route, to: edit, label: edit}
  - {from: route, to: refused, label: refuse}
  - {from: draft, to: join}
  - {from: edit, to: join}
  - {from: join, to: exit}
"#;
    let agents = r#"
agents:
  - id: router
    kind: agent
    llm: anthropic/claude-3-5-sonnet
    config: {temperature: 0.0, max_tokens: 200, top_p: 0.9, timeout: 30, retry_on_failure: true, max_retries: 3}
  - id: writer
    kind: agent
    llm: openai/gpt-4o-mini
    config: {system_prompt: You write., top_p: 1.0, retry_on_failure: false, max_retries: 3}
"#;
    let tools = r#"
tools:
  - {id: read_file, type: filesystem, entrypoint: "agent_engine.tools.filesystem:read_file", permissions: {allow_network: false, allow_shell: false, root: "/projects"}}
  - {id: write_file, type: filesystem, entrypoint: "agent_engine.tools.filesystem:write_file", permissions: {root: false}}
"#;
    let memory = r#"
memory:
  task_store: {type: in_memory}
  project_store: {type: file, config: {path: .memory}}
  global_store: {type: in_memory, max_items: 100}
  context_profiles:
    - {id: recent, max_tokens: 2000, retrieval_policy: recency, sources: [{store: task, tags: []}, {store: project, tags: []}]}
"#;
    let profiles = r#"
profiles:
  - id: default
    label: Default
    default_config_dir: config
    default_workflow_id: workflow
    session_policies: {persist_history: true, persist_attachments: true, history_file: .history, max_history_items: 50}
    input_mappings: {default: {attach_files_as_context: true}}
    presentation_rules: {show_system_messages: true, show_telemetry_inline: false}
    telemetry_overlays: {enabled: true, level: summary}
    custom_commands:
      - {name: again, help: Says it again., aliases: [a], start: start}
"#;
    let files = [
        (FLOW, workflow),
        ("agents.yaml", agents),
        ("tools.yaml", tools),
        ("memory.yaml", memory),
        ("cli_profiles.yaml", profiles),
        ("plugins.yaml", "plugins: []\n"),
        ("scheduler.yaml", "scheduler: {max_concurrency: 4, queue_policy: fifo, max_queued: 100}\n"),
        ("schemas/request.json", "{\"type\": \"object\"}"),
        ("schemas/document.json", "{\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}}}"),
    ];
    files.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
}

#[test]
fn s8_projects_of_the_field_load_and_say_by_name_what_has_no_effect() {
    let flow = loaded(of_the_field());
    let router = &flow.agents["router"];
    assert_eq!((router.top_p, router.temperature, router.limits.max_wall_ms), (Some(0.9), Some(0.0), 30_000));
    assert_eq!(flow.agents["writer"].system.as_deref(), Some("You write."));
    let retries = |node: &str| flow.nodes[&node.into()].failures.retry.times;
    assert_eq!((retries("route"), retries("draft")), (3, 0), "`retry_on_failure: false` goes before `max_retries`");
    assert_eq!(flow.limits.max_concurrency, Some(4), "a key of the file's own name is around everything");
    assert_eq!(flow.memory.profiles["recent"].max_tokens, 2000);
    assert_eq!(flow.memory.stores[&StoreKind::Global].max_items, Some(100));
    assert_eq!(flow.settings.cli_profiles[0].custom_commands[0].help.as_deref(), Some("Says it again."));
    let notes: BTreeSet<String> =
        flow.notes.iter().map(|note| format!("{}:{}: {}", note.file, note.line, note.message)).collect();
    let expected = [
        "cli_profiles.yaml:5: `default_config_dir` has no effect here",
        "cli_profiles.yaml:7: `persist_attachments` has no effect here",
        "cli_profiles.yaml:9: `presentation_rules` has no effect here",
        "memory.yaml:3: the store is kept in the table of this installation, not in `in_memory`",
        "memory.yaml:4: `config` of a store has no effect here",
        "memory.yaml:4: the store is kept in the table of this installation, not in `file`",
        "memory.yaml:5: the store is kept in the table of this installation, not in `in_memory`",
    ];
    assert_eq!(notes, expected.map(str::to_owned).into());
    assert!(flow.notes.iter().all(|note| !note.hint.is_empty()));
    // A mistake in a wrapper is told where it is.
    let mut files = of_the_field();
    let memory = files["memory.yaml"].replace("max_tokens: 2000", "max_tokens: many");
    files.insert("memory.yaml".into(), memory);
    let report = refused(files);
    assert!(report.faults.iter().any(|fault| (fault.line, fault.column) == (7, 32)), "{report}");
}

#[test]
fn s8_small_flows_of_the_field_load() {
    let memory = "memory:\n  task_store: {}\n  project_store: {}\n  global_store: {}\n  context_profiles: []\n";
    let node = |id: &str, role: &str| {
        format!("  - {{id: {id}, kind: deterministic, role: {role}, context: none, tools: []}}\n")
    };
    let flow = |nodes: &[(&str, &str)], edges: &[(&str, &str)]| -> String {
        let nodes: String = nodes.iter().map(|(id, role)| node(id, role)).collect();
        let edges: String = edges.iter().map(|(from, to)| format!("  - {{from: {from}, to: {to}}}\n")).collect();
        format!("nodes:\n{nodes}edges:\n{edges}")
    };
    let chain = flow(&[("a", "start"), ("b", "linear"), ("c", "exit")], &[("a", "b"), ("b", "c")]);
    let branch = flow(
        &[("a", "start"), ("b", "branch"), ("c", "linear"), ("d", "linear"), ("m", "merge"), ("e", "exit")],
        &[("a", "b"), ("b", "c"), ("b", "d"), ("c", "m"), ("d", "m"), ("m", "e")],
    );
    let split = flow(
        &[("a", "start"), ("s", "split"), ("w", "linear"), ("m", "merge"), ("e", "exit")],
        &[("a", "s"), ("s", "w"), ("w", "m"), ("m", "e")],
    );
    let decision = flow(
        &[("a", "start"), ("d", "decision"), ("yes", "exit"), ("no", "exit")],
        &[("a", "d"), ("d", "yes"), ("d", "no")],
    );
    for workflow in [chain, branch, split, decision] {
        let files = [
            (FLOW, workflow.as_str()),
            ("agents.yaml", "agents: []\n"),
            ("tools.yaml", "tools: []\n"),
            ("memory.yaml", memory),
        ];
        let flow = loaded(files.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
        assert!(flow.notes.is_empty(), "{:?}", flow.notes);
    }
}

#[test]
fn the_auth_of_a_credential_names_the_place_of_its_key() {
    for (auth, expected) in [
        ("source: env, env_var: HOUSE_KEY", SecretReference::Env("HOUSE_KEY".into())),
        ("source: file, file_path: /run/secrets/house", SecretReference::File("/run/secrets/house".into())),
        ("source: secret, secret_name: house", SecretReference::Secret("house".into())),
    ] {
        let flow = loaded(with(&[("provider_credentials.yaml", "source: file, file_path: /run/secrets/other", auth)]));
        assert_eq!(flow.settings.credentials[1].reference(), Some(expected), "{auth}");
    }
}
