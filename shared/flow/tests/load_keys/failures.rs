//! Names of failures in `retries.on` and `on_error`, and templates of keys: each is checked at its place.

use crate::{FLOW, only, refused, with};

#[test]
fn faults_in_a_nodes_failure_rules_are_refused_by_name_and_place() {
    let retries = |of: &str| format!("    retries: {of}\n");
    let routes = |of: &str| format!("  - id: pick\n    on_error: {of}\n");
    let cases = [
        ("    retries: 2\n", retries("{times: 2, on: [SLOW]}"), "unknown_failure", "`SLOW`", "`passing`"),
        ("    retries: 2\n", retries("{times: 2, on: ['exit:0']}"), "unknown_failure", "`0`", "`exit:22`"),
        ("    retries: 2\n", retries("{times: 2, on: []}"), "wrong_value", "names no failure", "TIMEOUT"),
        (
            "    retries: 2\n",
            retries("{times: 2, backoff_seconds: 9, max_backoff_seconds: 1}"),
            "wrong_value",
            "longer than",
            "raise it",
        ),
        ("  - id: pick\n", routes("[{on: [LATE], to: left}]"), "unknown_failure", "`LATE`", "`any`"),
        ("  - id: pick\n", routes("[{on: [any], to: nowhere}]"), "unknown_edge", "`nowhere`", "add an edge"),
        ("  - id: pick\n", routes("[{on: [], to: left}]"), "wrong_value", "names no failure", "`any`"),
        (
            "  - id: each\n",
            "  - id: each\n    on_error: [{on: [any], to: gather}]\n".into(),
            "misplaced_key",
            "only a linear node",
            "remove it",
        ),
    ];
    for (from, to, code, message, hint) in cases {
        let files = with(&[(FLOW, from, &to)]);
        let line = files[FLOW].lines().position(|line| to.lines().last() == Some(line)).unwrap() + 1;
        let fault = only(refused(files));
        assert_eq!((fault.code, fault.line as usize), (code, line), "{to}: {fault}");
        assert!(fault.message.contains(message) && fault.hint.contains(hint), "{to}: {fault}");
    }
}

#[test]
fn the_key_under_which_a_node_remembers_is_a_template_that_is_checked() {
    for (key, code, told) in [
        ("'k-{{input'", "bad_template", "CEL"),
        ("'{{outputs.thnk}}'", "unknown_node", "did you mean `think`?"),
        ("'{{outputs.done}}'", "output_not_there", "before it"),
    ] {
        let to = format!("store: project, key: {key},");
        let fault = only(refused(with(&[(FLOW, "store: project, key: right,", &to)])));
        assert_eq!((fault.code, fault.file.as_str()), (code, FLOW), "{key}: {fault}");
        assert!(fault.hint.contains(told), "{key}: {fault}");
    }
}

#[test]
fn what_no_store_of_memory_takes_is_refused_before_a_node_has_done_its_work() {
    const REMEMBER: &str = "store: project, key: right, tags: [seen]";
    let (long, tag) = ("k".repeat(513), "t".repeat(129));
    let many: Vec<String> = (0..33).map(|number| format!("t{number}")).collect();
    for (to, told) in [
        ("store: project, key: ''".to_owned(), "a key of 0 bytes"),
        (format!("store: project, key: {long}"), "a key of 513 bytes"),
        (format!("store: project, tags: [{}]", many.join(", ")), "33 tags"),
        (format!("store: project, tags: [{tag}]"), "129 bytes"),
    ] {
        let fault = only(refused(with(&[(FLOW, REMEMBER, &to)])));
        assert_eq!((fault.code, fault.file.as_str()), ("wrong_value", FLOW), "{to}: {fault}");
        assert!(fault.message.contains(told), "{fault}");
    }
}
