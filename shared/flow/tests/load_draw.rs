//! Pictures of flows.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "support/folder.rs"]
mod folder;

use domain::task::Status;
use flow::{
    Flow,
    draw::{NodePaint, Paint, dot, mermaid, svg},
    load::{Known, load},
};

fn flow() -> Flow {
    load("base", folder::sound(), &Known::default()).unwrap_or_else(|report| panic!("{report}"))
}

fn run() -> Paint {
    let at = |id: &str, status, visits, duration_ms, running| {
        (id.into(), NodePaint { status, visits, duration_ms, running })
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
    insta::assert_snapshot!(svg(&flow, &Paint::default()));
}

#[test]
fn what_people_write_cannot_leave_its_place() {
    let mut files = folder::sound();
    let name = r##"  - id: second
    name: "</text><script>\"]; n0[\"#"
"##;
    let text = files["workflow.yaml"].replace("  - id: second\n", name);
    files.insert("workflow.yaml".into(), text);
    let flow = load("<b>", files, &Known::default()).unwrap_or_else(|report| panic!("{report}"));
    let paint = Paint::default();
    assert!(!svg(&flow, &paint).contains("<script>") && !svg(&flow, &paint).contains("<b>"));
    assert!(mermaid(&flow, &paint).contains("[\"#lt;/text#gt;#lt;script#gt;#quot;]; n0[#quot;#35;\"]"));
    assert!(dot(&flow, &paint).contains(r##"label="</text><script>\"]; n0[\"#"]"##));
}
