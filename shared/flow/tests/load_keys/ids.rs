//! Odd ids of nodes.

use crate::{FLOW, Files, known};
use buildscale_flow::load::load;
use domain::{
    NodeId,
    task::{ChildKind, ChildName},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// For any ids, a flow is refused with a hint, or no two children of a task have one name.
    #[test]
    fn s2_3_children_of_odd_ids_have_different_names(
        ids in prop::collection::btree_set("[ab/\\[\\]01~%.: é]{1,5}", 4..7),
        kinds in prop::collection::vec(any::<bool>(), 6),
    ) {
        let ids: Vec<String> = ids.into_iter().collect();
        let odd = |id: &String| id.contains('/') || id.trim() != id;
        let node = |id: &str, rest: &str| format!("  - {{id: {}, kind: deterministic, context: none, {rest}}}\n", serde_json::json!(id));
        let edge = |from: &str, to: &str| format!("  - {{from: {}, to: {}}}\n", serde_json::json!(from), serde_json::json!(to));
        // Every id is the target of every fork in one flow or another; here a fork leads to two of them.
        let (fork, ways) = ids.split_first().unwrap();
        let role = if kinds[0] { "role: branch" } else { "role: split" };
        let mut nodes = node("begin", "role: start") + &node(fork, role) + &node("meet", "role: merge") + &node("end", "role: exit");
        let mut edges = edge("begin", fork) + &edge("meet", "end");
        for way in ways {
            nodes += &node(way, "role: linear");
            edges += &(edge(fork, way) + &edge(way, "meet"));
        }
        let files = Files::from([(FLOW.to_owned(), format!("nodes:\n{nodes}edges:\n{edges}"))]);
        match load("odd", files, &known()) {
            Err(report) => {
                prop_assert!(ids.iter().any(odd), "{}", report);
                prop_assert!(report.faults.iter().all(|fault| fault.code == "bad_id" && fault.hint.contains("`/`")), "{}", report);
            }
            Ok(flow) => {
                prop_assert!(!ids.iter().any(odd));
                // Any of these may fork in a task, to any other.
                let all: Vec<NodeId> = flow.graph.nodes().iter().map(|node| node.id.clone()).collect();
                let mut names = BTreeSet::new();
                for (place, from) in all.iter().enumerate() {
                    let kind = if kinds[place % kinds.len()] { ChildKind::Clone } else { ChildKind::Subtask };
                    for to in &all {
                        for index in [0, 1, 10] {
                            let name = ChildName::of(from, to, index, kind);
                            prop_assert!(names.insert(name.clone()) || (kind == ChildKind::Clone && index > 0), "{}", name);
                        }
                    }
                }
            }
        }
    }
}
