//! The words of what cannot be read, and that only mistakes are told.

use crate::{FLOW, Files, only, refused, with};
use buildscale_flow::load::read_folder;

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
