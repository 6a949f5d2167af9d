//! Flows to observe.

/// Splits its items, works on each, gathers them.
pub const SPLIT: &str = r#"
name: numbers
nodes:
  - {id: begin, kind: deterministic, role: start, default_start: true, context: none}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: "input.items", as: item}}
  - {id: work, kind: deterministic, role: linear, context: none, op: {expr: "{'twice': input.item * 2}"}}
  - {id: gather, kind: deterministic, role: merge, context: none}
  - {id: done, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: each}
  - {from: each, to: work}
  - {from: work, to: gather}
  - {from: gather, to: done}
"#;

/// A split inside of a branch: children have children.
pub const NESTED: &str = r#"
name: nested
nodes:
  - {id: begin, kind: deterministic, role: start, default_start: true, context: none}
  - {id: both, kind: deterministic, role: branch, context: none}
  - {id: count, kind: deterministic, role: linear, context: none, op: {expr: "size(input.items)"}}
  - {id: each, kind: deterministic, role: split, context: none, split: {over: "input.items"}}
  - {id: work, kind: deterministic, role: linear, context: none, op: {expr: "input * 10"}}
  - {id: gather, kind: deterministic, role: merge, context: none}
  - {id: either, kind: deterministic, role: merge, context: none}
  - {id: done, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: both}
  - {from: both, to: count}
  - {from: both, to: each}
  - {from: each, to: work}
  - {from: work, to: gather}
  - {from: gather, to: either}
  - {from: count, to: either}
  - {from: either, to: done}
"#;

/// Reads a file, asks a person, decides by the answer.
pub const ASKS: &str = r#"
name: asks
nodes:
  - {id: begin, kind: deterministic, role: start, default_start: true, context: none}
  - {id: look, kind: deterministic, role: linear, context: none, tools: [read], op: {tool: read, args: {path: "{{input.path}}"}}}
  - id: people
    kind: deterministic
    role: linear
    context: none
    ask: {questions: [{name: colour, question: "Which colour?", buttons: [red, blue]}]}
  - {id: pick, kind: deterministic, role: decision, context: none, op: {expr: "{'selected_edge': input.colour}"}}
  - {id: red, kind: deterministic, role: linear, context: none, op: {expr: "'it is red'"}}
  - {id: blue, kind: deterministic, role: linear, context: none, op: {expr: "'it is blue'"}}
  - {id: done, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: look}
  - {from: look, to: people}
  - {from: people, to: pick}
  - {from: pick, to: red, label: red}
  - {from: pick, to: blue, label: blue}
  - {from: red, to: done}
  - {from: blue, to: done}
"#;

/// The tools of [`ASKS`].
pub const TOOLS: &str = "tools:\n  - {id: read, entrypoint: read_file}\n";

/// Is refused a tool, then an approval, and goes on past both.
pub const REFUSED: &str = r#"
name: refused
nodes:
  - {id: begin, kind: deterministic, role: start, default_start: true, context: none}
  - id: look
    kind: deterministic
    role: linear
    context: none
    tools: [read]
    op: {tool: read, args: {path: /projects/note.md}}
    continue_on_failure: true
  - {id: allow, kind: deterministic, role: linear, context: none, ask: {approve: "Go on?"}, continue_on_failure: true}
  - {id: done, kind: deterministic, role: exit, context: none}
edges:
  - {from: begin, to: look}
  - {from: look, to: allow}
  - {from: allow, to: done}
"#;

/// The policy of [`REFUSED`].
pub const POLICY: &str = "rules:\n  - {id: no_read, target: tool, names: [read], allow: false, reason: private}\n";
