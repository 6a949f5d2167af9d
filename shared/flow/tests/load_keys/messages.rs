//! The words of what cannot be read, and that only mistakes are told.

use crate::{FLOW, Files, known, loaded, only, refused, with};
use buildscale_flow::{Flow, load::read_folder};

#[test]
fn s8_a_file_that_cannot_be_read_is_reported_in_our_words() {
    let deep = format!("x-deep: {}1{}\n", "[".repeat(70), "]".repeat(70));
    let many: String = (1..7).fold("x-a0: &a0 [1,1,1,1,1,1,1,1]\n".to_owned(), |text, level| {
        let last = level - 1;
        format!("{text}x-a{level}: &a{level} [{}]\n", vec![format!("*a{last}"); 8].join(","))
    });
    for (text, line, column, message, hint) in [
        ("op: {template: {{input}}}\n", 1, 16, "has to be quoted", "quote it: \"{{input}}\""),
        ("name: x\nprompt: {{input}} and\n", 2, 9, "has to be quoted", "quote it: \"{{input}}\""),
        ("name: x\nnodes:\n\t- id: a\n", 3, 1, "a tab indents the line", "put spaces"),
        ("name: x\nnodes:\n  - id: a\n \tkind: b\n", 4, 2, "a tab indents the line", "put spaces"),
        (deep.as_str(), 1, 0, "it nests too deep", "64 levels"),
        (many.as_str(), 0, 0, "it is too much", "fewer aliases"),
        ("name: x\n---\nname: y\n", 2, 1, "more than one document", "remove the line `---`"),
        ("nodes: [1\n", 0, 0, "this is no YAML", "look for a bracket"),
    ] {
        let files = Files::from([(FLOW.to_owned(), text.to_owned())]);
        let fault = only(refused(files));
        assert_eq!(fault.code, "malformed", "{text}: {fault}");
        assert!(fault.message.contains(message) && fault.hint.contains(hint), "{text}: {fault}");
        assert!(line == 0 || fault.line == line, "{text}: {fault}");
        assert!(column == 0 || fault.column == column, "{text}: {fault}");
        for word in ["budget", "from_str", "Nodes {", "Depth {", "resolve-http", "serde"] {
            assert!(!fault.to_string().contains(word), "{word}: {fault}");
        }
    }
    let fault = only(refused(with(&[(
        "schemas/thought.json",
        "{\"type\": \"string\"}",
        "{\"$ref\": \"https://example.com/text.json\"}",
    )])));
    assert_eq!((fault.code, fault.line, fault.column), ("invalid_schema", 1, 52), "{fault}");
    assert!(fault.message.contains("nothing is fetched") && fault.hint.contains("`$defs`"), "{fault}");
}

#[test]
fn s8_bytes_that_are_no_text_are_one_fault_with_their_place_and_the_rest_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in with(&[(FLOW, "agent_id: thinker", "agent_id: thinkr")]) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut agents = std::fs::read(folder.path().join("agents.yaml")).unwrap();
    let at = agents.windows(5).position(|bytes| bytes == b"think").unwrap();
    agents.splice(at + 5..at + 5, *b"\xff\xfe");
    std::fs::write(folder.path().join("agents.yaml"), agents).unwrap();
    let report = refused(read_folder(folder.path()).unwrap());
    let told: Vec<(&str, u32, u32, &str)> =
        report.faults.iter().map(|fault| (fault.file.as_str(), fault.line, fault.column, fault.code)).collect();
    assert_eq!(told[0], ("agents.yaml", 2, 14, "not_utf8"), "{report}");
    assert!(told.iter().any(|fault| fault.0 == FLOW && fault.3 == "unknown_agent"), "{report}");
}

#[test]
fn s8_faults_that_only_follow_from_a_mistake_are_not_told() {
    for (from, to, code) in [
        ("  - {from: second, to: failed}\n", "  - {from: second, to: faild}\n", "unknown_node"),
        ("  - {from: second, to: failed}\n", "  - {from: secnd, to: failed}\n", "unknown_node"),
        ("  - {from: gather, to: done}\n", "  - {from: gather, to: nowhere_at_all}\n", "unknown_node"),
        ("  - {from: gather, to: done}\n", "  - {from: gather, to: done}\n  - {from: gather, to: think}\n", "cycle"),
        ("  - id: second\n", "  - id: 2\n", "wrong_type"),
    ] {
        let report = refused(with(&[(FLOW, from, to)]));
        assert_eq!(only(report).code, code, "{to}");
    }
    // Two mistakes are two faults, also when the one hides the other.
    let report = refused(with(&[
        (FLOW, "  - {from: second, to: failed}\n", "  - {from: second, to: faild}\n"),
        (FLOW, "edges:\n", "  - {id: lost, kind: deterministic, role: exit, context: none}\nedges:\n"),
    ]));
    let codes: Vec<_> = report.faults.iter().map(|fault| fault.code).collect();
    assert_eq!(codes, ["unreachable_node", "unknown_node"], "{report}");
}

#[test]
fn s8_a_call_that_fails_in_every_run_is_told_with_the_way_to_call_it() {
    for (over, form) in [("split(input.items, ',')", "value.split(…)"), ("input.items.max()", "max(value)")] {
        let over = format!("over: \"{over}\"");
        let files = with(&[(FLOW, "over: \"input.items\"", over.as_str())]);
        let fault = only(refused(files.clone()));
        assert_eq!(fault.code, "bad_call", "{fault}");
        assert!(fault.message.contains(form) && fault.hint.contains("input.name.trim()"), "{fault}");
        assert!(Flow::from_bundle("base", files, &known()).is_ok(), "a flow that was accepted with it runs on");
    }
    let word = "command: [wc, \"{{trim(input.path)}}\"]";
    let fault = only(refused(with(&[("tools.yaml", "command: [wc, -l]", word)])));
    assert_eq!((fault.code, fault.file.as_str()), ("bad_call", "tools.yaml"), "{fault}");
}

#[test]
fn s8_a_decision_of_people_or_of_a_command_that_selects_no_edge_is_told() {
    const DECISION: &str = "    op: {expr: \"'left'\"}\n    schema_out: choice\n";
    for (does, expected) in [
        ("    ask: {approve: Left?}\n", Some("no edge for the answer `approved`")),
        ("    ask: {questions: [{name: way, question: Which way?}]}\n", Some("no answer to `pick` selects an edge")),
        ("    ask: {questions: [{name: selected_edge, question: Which way?}]}\n", None),
        ("    op: {command: [which-way]}\n", Some("the output of the command of `pick`")),
        ("    op: {command: [which-way]}\n    schema_out: choice\n", None),
    ] {
        let files = with(&[(FLOW, DECISION, does)]);
        match expected {
            None => drop(loaded(files)),
            Some(message) => {
                let fault = only(refused(files));
                assert_eq!(fault.code, "decision_without_outputs", "{does}: {fault}");
                assert!(fault.message.contains(message), "{does}: {fault}");
            }
        }
    }
    // Each answer has its edge, and a comment may be `null` as in an answer of people.
    let answered = "        answers: {pick: {approved: true, comment: null}}\n        start: begin_again";
    loaded(with(&[
        ("evaluations.yaml", "        start: begin_again", answered),
        (FLOW, DECISION, "    ask: {approve: Left?}\n"),
        (FLOW, "to: left, label: left", "to: left, label: approved"),
        (FLOW, "to: right, label: right", "to: right, label: declined"),
    ]));
}

#[test]
fn s8_an_answer_of_a_case_to_an_agent_is_noted_and_is_no_fault() {
    let answered = "        answers: {think: {colour: red}}\n        start: begin_again";
    let notes = loaded(with(&[("evaluations.yaml", "        start: begin_again", answered)])).notes;
    let is_it = |note: &&str| note.contains("`think` is an agent");
    assert_eq!(notes.iter().map(|note| note.message.as_str()).filter(is_it).count(), 1, "{notes:?}");
}
