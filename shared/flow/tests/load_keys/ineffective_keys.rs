//! Keys of nodes that have the right shape: those that could never act are refused or noted, by name.

use crate::{Case, FLOW, loaded, refused_each, with};

#[test]
fn keys_of_nodes_that_could_never_act_are_refused_by_name() {
    let one = |from: &'static str, to: &str| vec![(FLOW, from, to.to_owned())];
    let people = |more: &str| one("  - id: people\n", &format!("  - id: people\n    {more}\n"));
    let split = |rule: &str| one("split: {over: \"input.items\", as: item, max_subtasks: 50}", rule);
    let retries = |policy: &str| one("    retries: 2\n", &format!("    retries: {policy}\n"));
    let routes = |routes: &str| one("  - id: pick\n", &format!("  - id: pick\n    on_error: {routes}\n"));
    let cases: Vec<Case<'_>> = vec![
        // A person answers within no time of a node, and takes no slot.
        (people("timeout_seconds: 60"), FLOW, "misplaced_key", "say in `ask`"),
        (people("max_concurrency: 2"), FLOW, "misplaced_key", "remove it"),
        // One subtask per edge has no element, and is counted.
        (split("split: {as: item}"), FLOW, "misplaced_key", "`over`"),
        (split("split: {max_subtasks: 5}"), FLOW, "misplaced_key", "`over`"),
        (one("size(input.output)", "outputs.think.size"), FLOW, "output_not_there", "it sees `input`"),
        // Retries and routes that nothing takes.
        (retries("{times: 2, on: [TIMEOUT, CANCELLED]}"), FLOW, "unknown_failure", "`passing`"),
        (retries("{times: 2, backoff_seconds: 60, within_seconds: 20}"), FLOW, "wrong_value", "raise it"),
        (routes("[{on: [CANCELLED], to: left}]"), FLOW, "unknown_failure", "`passing`"),
        (routes("[{to: left}, {on: [TIMEOUT], to: right}]"), FLOW, "wrong_value", "the first that matches counts"),
        (
            routes("[{on: [passing], to: left}, {on: [TIMEOUT, NOT_BEGUN], to: right}]"),
            FLOW,
            "wrong_value",
            "the first that matches counts",
        ),
        // A list that is written out has so many elements.
        (
            vec![
                (FLOW, "over: \"input.items\"", "over: \"[1, input]\"".to_owned()),
                (
                    FLOW,
                    "strategy: best_of, score: \"size(input.output)\", on_failure: ignore",
                    "strategy: quorum, quorum: 3".to_owned(),
                ),
            ],
            FLOW,
            "quorum_out_of_reach",
            "write 2 or less",
        ),
    ];
    refused_each(cases);
}

#[test]
fn keys_of_nodes_that_may_act_are_taken() {
    for (from, to) in [
        ("    retries: 2\n", "    retries: {times: 2, backoff_seconds: 60, within_seconds: 30}\n"),
        ("  - id: pick\n", "  - id: pick\n    on_error: [{on: [TIMEOUT], to: left}, {to: right}]\n"),
        (
            "  - id: pick\n",
            "  - id: pick\n    on_error: [{on: [passing], to: left}, {on: [exit, TIMEOUT], to: right}]\n",
        ),
        ("split: {over: \"input.items\", as: item, max_subtasks: 50}", "split: {}"),
    ] {
        loaded(with(&[(FLOW, from, to)]));
    }
}

#[test]
fn a_tool_that_a_deterministic_node_lists_and_never_calls_is_noted() {
    let noted = |node: &str| {
        let (from, to) = (format!("  - id: {node}\n"), format!("  - id: {node}\n    tools: [look, count]\n"));
        let notes = loaded(with(&[(FLOW, &from, &to)])).notes.into_iter().map(|note| note.message);
        notes.filter(|note| note.contains("lists the tool")).collect::<Vec<_>>()
    };
    let never = |node: &str, tool: &str| format!("`{node}` lists the tool `{tool}` and never calls it");
    assert_eq!(noted("left"), [never("left", "look"), never("left", "count")]);
    assert_eq!(noted("right"), [never("right", "count")], "it calls the other one");
}

#[test]
fn exit_codes_of_a_node_that_runs_no_command_are_noted() {
    let noted = |from: &str, to: &str| {
        let notes = loaded(with(&[(FLOW, from, to)])).notes.into_iter().map(|note| note.message);
        notes.filter(|note| note.contains("runs no command")).collect::<Vec<_>>()
    };
    let never = |node: &str, failure: &str| format!("`{node}` runs no command, so it never ends with `{failure}`");
    let retries = noted("    retries: 2\n", "    retries: {times: 2, on: [TIMEOUT, 'exit:22']}\n");
    assert_eq!(retries, [never("think", "exit:22")]);
    assert_eq!(
        noted("  - id: pick\n", "  - id: pick\n    on_error: [{on: [exit], to: left}]\n"),
        [never("pick", "exit")]
    );
    assert_eq!(noted("  - id: work\n", "  - id: work\n    retries: {on: [exit]}\n"), [""; 0], "it is a command");
}

#[test]
fn a_node_that_is_never_to_be_tried_again_is_not_whatever_its_agent_says() {
    let times = |retries: &str| {
        let agent = ("agents.yaml", "max_tokens: 400}", "max_tokens: 400, max_retries: 3}");
        let flow = loaded(with(&[agent, (FLOW, "    retries: 2\n", retries)]));
        flow.nodes[&"think".into()].failures.retry.times
    };
    assert_eq!([times(""), times("    retries: 0\n"), times("    retries: 2\n")], [3, 0, 2]);
}
