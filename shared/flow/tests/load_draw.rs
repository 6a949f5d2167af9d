//! Pictures of flows.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/folder.rs"]
mod folder;

use buildscale_flow::{
    Flow,
    draw::{NodeVisits, RunVisits, dot, mermaid, outline, svg},
    load::{KnownNames, load},
};
use domain::task::Status;

fn flow() -> Flow {
    load("base", folder::sound(), &KnownNames::default()).unwrap_or_else(|report| panic!("{report}"))
}

fn run() -> RunVisits {
    let at = |id: &str, status, visits, duration_ms, running| {
        (id.into(), NodeVisits { status, visits, duration_ms, running, more: false })
    };
    [
        at("begin", Some(Status::Success), 1, 0, false),
        at("think", Some(Status::Success), 2, 12_345, false),
        at("pick", Some(Status::Success), 1, 3, false),
        at("right", Some(Status::Failure), 1, 250, false),
        at("either", Some(Status::Partial), 1, 61_000, false),
        at("people", None, 0, 0, true),
    ]
    .into()
}

#[test]
fn a_flow_is_drawn_as_mermaid() {
    insta::assert_snapshot!(mermaid(&flow(), &run()));
}

#[test]
fn a_flow_is_drawn_as_dot() {
    insta::assert_snapshot!(dot(&flow(), &run()));
}

#[test]
fn a_flow_is_drawn_as_svg() {
    let flow = flow();
    let drawn = svg(&flow, &run());
    assert_eq!(drawn, svg(&flow, &run()));
    for node in flow.graph.nodes() {
        assert!(drawn.contains(&format!("<title>{} ({})</title>", node.id, node.role)), "{}", node.id);
    }
    assert_eq!(drawn.matches("<path class=\"edge").count(), 13);
    assert!(drawn.contains("agent thinker · 2× · 12.3 s"));
    if let Ok(path) = std::env::var("FLOW_DRAW_TO") {
        std::fs::write(path, &drawn).unwrap();
    }
    insta::assert_snapshot!(svg(&flow, &RunVisits::default()));
}

#[test]
fn a_flow_is_outlined_for_terminals_with_every_edge_leading_down() {
    let flow = flow();
    let drawn = outline(&flow, &run());
    let at = |line: &str| drawn.lines().position(|other| other == line).unwrap_or_else(|| panic!("{line}: {drawn}"));
    let pick = at("pick  decision, expression, 3 ms, success");
    assert_eq!((at("├─ left → left"), at("└─ right → right")), (pick + 1, pick + 2));
    let heads: Vec<&str> =
        drawn.lines().filter(|line| !line.starts_with(['├', '└'])).filter_map(|line| line.split("  ").next()).collect();
    assert_eq!(heads.len(), flow.graph.nodes().len());
    for node in flow.graph.nodes() {
        for edge in &node.out {
            let place = |id: &str| heads.iter().position(|head| *head == id);
            assert!(place(node.id.as_str()) < place(edge.to.as_str()), "{} → {}: {drawn}", node.id, edge.to);
        }
    }
    assert_eq!(drawn.lines().count(), heads.len() + 13);
}

/// Forks in forks, a merge across levels, edges over several layers, exits of their own.
const BUSY: &str = r#"
nodes:
  - {id: receive, name: Receive the brief, kind: deterministic, role: start, context: none}
  - {id: plan, name: Plan the campaign, kind: deterministic, role: linear, context: none, op: {expr: input}}
  - {id: size, name: How large is it?, kind: deterministic, role: decision, context: none, op: {expr: "'large'"}}
  - {id: reject, name: Too vague, kind: deterministic, role: exit, context: none, always_fail: true}
  - {id: quick, name: Write it in one go, kind: deterministic, role: linear, context: none}
  - {id: teams, name: All teams, kind: deterministic, role: branch, context: none}
  - {id: texts, name: Every channel, kind: deterministic, role: split, context: none, split: {over: input}}
  - {id: write, name: Write, kind: deterministic, role: linear, context: none, op: {template: "{{input}}"}}
  - {id: good, name: Good enough?, kind: deterministic, role: decision, context: none}
  - {id: polish, name: Polish, kind: deterministic, role: linear, context: none}
  - {id: text_done, name: One text, kind: deterministic, role: merge, context: none, merge: {of: good}}
  - {id: pictures, name: Choose pictures, kind: deterministic, role: linear, context: none}
  - {id: law, name: Ask the lawyers, kind: deterministic, role: linear, context: none, ask: {approve: "{{input}}"}}
  - {id: log, name: Write to the log, kind: deterministic, role: linear, context: none}
  - {id: logged, name: Logged, kind: deterministic, role: exit, context: none}
  - {id: gather, name: Put it together, kind: deterministic, role: merge, context: none}
  - {id: publish, name: Publish, kind: deterministic, role: linear, context: none}
  - {id: done, name: Done, kind: deterministic, role: exit, context: none}
edges:
  - {from: receive, to: plan}
  - {from: plan, to: size}
  - {from: size, to: reject, label: vague}
  - {from: size, to: quick, label: small}
  - {from: size, to: teams, label: large}
  - {from: teams, to: texts}
  - {from: teams, to: pictures}
  - {from: teams, to: law}
  - {from: teams, to: log}
  - {from: log, to: logged}
  - {from: texts, to: write}
  - {from: write, to: good}
  - {from: good, to: text_done, label: yes}
  - {from: good, to: polish, label: no}
  - {from: polish, to: text_done}
  - {from: text_done, to: gather}
  - {from: pictures, to: gather}
  - {from: law, to: gather}
  - {from: quick, to: gather}
  - {from: gather, to: publish}
  - {from: publish, to: done}
"#;

#[test]
fn a_busy_flow_is_drawn_without_boxes_on_boxes() {
    let files = [("workflow.yaml".to_string(), BUSY.to_string())].into();
    let flow = load("campaign", files, &KnownNames::default()).unwrap_or_else(|report| panic!("{report}"));
    let drawn = svg(&flow, &RunVisits::default());
    if let Ok(path) = std::env::var("FLOW_DRAW_BUSY_TO") {
        std::fs::write(path, &drawn).unwrap();
    }
    insta::assert_snapshot!(drawn);
}

#[test]
fn peoples_text_cannot_leave_its_place() {
    let mut files = folder::sound();
    let name = r##"  - id: second
    name: "</text><script>\"]; n0[\"#"
"##;
    let text = files["workflow.yaml"].replace("  - id: second\n", name);
    files.insert("workflow.yaml".into(), text);
    let flow = load("<b>", files, &KnownNames::default()).unwrap_or_else(|report| panic!("{report}"));
    let run_visits = RunVisits::default();
    assert!(!svg(&flow, &run_visits).contains("<script>") && !svg(&flow, &run_visits).contains("<b>"));
    assert!(mermaid(&flow, &run_visits).contains("[\"#lt;/text#gt;#lt;script#gt;#quot;]; n0[#quot;#35;\"]"));
    assert!(dot(&flow, &run_visits).contains(r##"label="</text><script>\"]; n0[\"#"]"##));
}
