//! A folder without a fault, to plant faults in.

use std::collections::BTreeMap;

const WORKFLOW: &str = r#"version: 1
name: base
description: A bit of everything
# A flow without a fault:
# each kind of node,
# and of edge.
nodes:
  - id: begin
    kind: deterministic
    role: start
    default_start: true
    context: none
    schema_in: request
  - id: begin_again
    kind: deterministic
    role: start
    context: none
  - id: think
    kind: agent
    role: linear
    agent_id: thinker
    prompt: "Think of {{input}}"
    context: notes
    tools: [look, change]
    schema_out: thought
    timeout_seconds: 30
    retries: 2
    max_concurrency: 4
  - id: pick
    kind: deterministic
    role: decision
    context: none
    op: {expr: "'left'"}
    schema_out: choice
  - id: left
    kind: deterministic
    role: linear
    context: none
    op: {template: {text: "{{input}}", many: ["{{outputs.think}}"]}}
    continue_on_failure: true
  - id: right
    kind: deterministic
    role: linear
    context: global
    op: {tool: look, args: {path: "/{{input}}"}}
    remember: {store: project, key: right, tags: [seen]}
  - id: either
    kind: deterministic
    role: merge
    context: none
    merge: {strategy: all, on_failure: include}
    op: {function: "merge:outputs"}
  - id: people
    kind: deterministic
    role: linear
    context: none
    ask:
      questions:
        - {name: colour, question: "Which colour for {{input}}?", buttons: [red, blue]}
      timeout_seconds: 3600
  - id: each
    kind: deterministic
    role: split
    context: none
    split: {over: "input.items", as: item, max_subtasks: 50}
  - id: work
    kind: deterministic
    role: linear
    context: none
    op: {command: [wc, "{{input.item}}"]}
  - id: gather
    kind: deterministic
    role: merge
    context: none
    merge: {strategy: best_of, score: "size(input.output)", on_failure: ignore}
  - id: second
    kind: deterministic
    role: linear
    context: none
  - id: done
    kind: deterministic
    role: exit
    context: none
  - id: failed
    kind: deterministic
    role: exit
    context: none
    always_fail: true
edges:
  - {from: begin, to: think}
  - {from: think, to: pick}
  - {from: pick, to: left, label: left}
  - {from: pick, to: right, label: right}
  - {from: left, to: either}
  - {from: right, to: either}
  - {from: either, to: people}
  - {from: people, to: each}
  - {from: each, to: work}
  - {from: work, to: gather}
  - {from: gather, to: done}
  - {from: begin_again, to: second}
  - {from: second, to: failed}
"#;

const AGENTS: &str = r#"agents:
  - id: thinker
    llm: openai/gpt-4o-mini
    system: You think.
    config: {temperature: 0.2, max_tokens: 400}
    limits: {max_steps: 5}
  - id: local
    llm: house/small
    persona: coder
"#;

const TOOLS: &str = r#"tools:
  - id: look
    type: filesystem
    entrypoint: "tools.fs:read_file"
    permissions: {root: /projects, allow_network: false, allow_shell: false}
  - id: change
    entrypoint: write_file
  - id: count
    command: [wc, -l]
    permissions: {allow_shell: true}
  - id: lines
    entrypoint: "text:lines"
"#;

const MEMORY: &str = r#"context_profiles:
  - id: notes
    max_tokens: 800
    retrieval_policy: recency
    sources:
      - {store: task}
      - {store: project, tags: [seen]}
"#;

const PROVIDERS: &str = r#"providers:
  - id: house
    adapter: openai
    base_url: http://127.0.0.1:9999/v1
    credentials: house_key
    models: [small, large]
    max_concurrency: 2
"#;

const CREDENTIALS: &str = r#"provider_credentials:
  - id: house_key
    provider: house
    env: HOUSE_API_KEY
  - id: other_key
    auth: {type: api_key, source: file, file_path: /run/secrets/other}
"#;

const EVALUATIONS: &str = r#"suites:
  - name: basics
    cases:
      - id: one
        input: {question: why}
        start: begin_again
        assertions:
          - {type: status, expected: failure}
          - {type: matches, field_path: text, expected: "^w.y$"}
          - {type: expression, expression: "input.output != null"}
          - {type: schema_valid, schema: thought, node: think}
"#;

const REST: &[(&str, &str)] = &[
    (
        "policy.yaml",
        "rules:\n  - {id: no_rm, target: tool, names: [\"rm*\"], nodes: [think], allow: false, reason: no}\n",
    ),
    (
        "execution.yaml",
        "max_concurrency: 8\nmax_queued: 100\nproviders: {openai: 4}\nbudget: {max_tokens: 100000, max_cost_usd: 2.5, max_seconds: 3600}\n",
    ),
    (
        "plugins.yaml",
        "plugins:\n  - {id: hook, type: webhook, config: {url: \"https://example.com\", secret: {env: HOOK}}}\n",
    ),
    ("inspector.yaml", "enabled: true\nbreakpoints: [think]\n"),
    ("metrics.yaml", "metrics:\n  - {name: node_duration, type: histogram, buckets: [0.1, 1]}\n"),
    ("artifacts.yaml", "retention_days: 30\nnodes: [think]\n"),
    (
        "cli_profiles.yaml",
        "profiles:\n  - {id: default, start: begin_again, input_mappings: {default: {key: question}}}\n",
    ),
    ("persistent_memory.yaml", "stores:\n  - {store: project, backend: table, retention_days: 90}\n"),
    ("engine_metadata.yaml", "flow_version: 1.2.3\nschema_revisions: {thought: \"2\"}\n"),
    ("deployment.yaml", "name: base\nenvironment:\n  - {name: HOUSE_API_KEY, required: true}\n"),
    ("schemas/request.json", "{\n\t\"type\": \"object\"\n}\n"),
    ("schemas/thought.json", "{\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}}}\n"),
    (
        "schemas/choice.json",
        "{\"properties\": {\"selected_edge\": {\"enum\": [\"left\", \"right\"]}}, \"required\": [\"selected_edge\"]}\n",
    ),
    ("README.md", "not a manifest: {{{\n"),
];

/// The files of a flow in which nothing is wrong.
pub fn sound() -> BTreeMap<String, String> {
    let named = [
        ("workflow.yaml", WORKFLOW),
        ("agents.yaml", AGENTS),
        ("tools.yaml", TOOLS),
        ("memory.yaml", MEMORY),
        ("providers.yaml", PROVIDERS),
        ("provider_credentials.yaml", CREDENTIALS),
        ("evaluations.yaml", EVALUATIONS),
    ];
    named.iter().chain(REST).map(|(path, text)| ((*path).into(), (*text).into())).collect()
}
