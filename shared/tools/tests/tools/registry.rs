//! The list of tools, and how arguments are checked.

use crate::common::{Hands, has};
use buildscale_tools::{Registry, ToolKind, organizer};
use domain::Code;
use serde_json::Value;

#[test]
fn the_tools_have_stable_names_kinds_and_strict_plain_schemas() {
    let registry = Registry::builtin();
    let specs = registry.specs();
    let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ls",
            "glob",
            "read",
            "grep",
            "edit",
            "write",
            "mkdir",
            "mv",
            "rm",
            "cat",
            "find",
            "file_info",
            "read_many",
            "ask_user",
            "plan_write",
            "plan_update_step",
            "tag",
            "link",
            "related"
        ]
    );
    let of_kind = |kind| names.iter().filter(|name| registry.kind(name) == Some(kind)).copied().collect::<Vec<_>>();
    assert_eq!(of_kind(ToolKind::Write), ["edit", "write", "plan_write", "plan_update_step"]);
    assert_eq!(of_kind(ToolKind::Arrange), ["mkdir", "mv", "rm", "tag", "link"]);
    assert_eq!(of_kind(ToolKind::Ask), ["ask_user"]);
    assert_eq!(registry.kind("rn"), None);
    let optional = registry.optional();
    let named: Vec<_> = optional.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(named, [organizer::READING.as_slice(), organizer::WRITING.as_slice()].concat());
    for name in organizer::READING {
        assert_eq!(registry.kind(name), Some(ToolKind::Read), "{name}");
    }
    for name in organizer::WRITING {
        assert_eq!(registry.kind(name), Some(ToolKind::Write), "{name}");
    }
    for spec in specs.iter().chain(optional.iter()) {
        strict(&spec.name, &spec.parameters);
        assert!(!spec.description.is_empty());
        let text = spec.parameters.to_string();
        assert!(!text.contains("\"null\"") && !text.contains("$ref") && !text.contains("$schema"), "{text}");
    }
}

/// Every object refuses unknown fields, and every argument has a description. Fields of entities need none: `get_field_info` tells their meanings.
fn strict(at: &str, schema: &Value) {
    let has_fields = ["create_", "update_"].iter().any(|begin| at.starts_with(begin));
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        assert_eq!(schema["additionalProperties"], false, "{at}");
        for (name, property) in properties {
            assert!(has_fields || property["description"].is_string(), "{at}.{name} says nothing");
            strict(&format!("{at}.{name}"), property);
        }
    }
    if let Some(items) = schema.get("items") {
        strict(&format!("{at}[]"), items);
    }
}

#[tokio::test]
async fn wrong_calls_are_told_what_was_expected() {
    let mut hands = Hands::agent().await;
    for (tool, args, parts) in [
        ("raed", "{}", vec!["no tool \"raed\"", "did you mean \"read\"?"]),
        ("read", "{", vec!["not JSON", "the arguments are: "]),
        ("write", r#"{"path": "/a", "content": "It was a"#, vec!["not JSON", "they break off", "in parts"]),
        ("read", "[]", vec!["the arguments are"]),
        ("read", "{}", vec!["\"path\" is missing"]),
        ("read", r#"{"pth": "/a"}"#, vec!["no argument \"pth\"", "did you mean \"path\"?"]),
        ("read", r#"{"path": 1}"#, vec!["\"path\" is wrong", "string"]),
        ("read", r#"{"path": "/a", "offset": 0}"#, vec!["\"offset\" is wrong", "minimum"]),
        ("read", r#"{"path": "a"}"#, vec!["not absolute"]),
        ("read", r#"{"path": "/a/../b"}"#, vec![".. in it"]),
        ("edit", r#"{"path": "/a", "edits": [{"old": "a"}]}"#, vec!["\"new\" is missing in edits.0"]),
        ("edit", r#"{"path": "/a", "edits": []}"#, vec!["\"edits\" is wrong"]),
        ("grep", r#"{"pattern": "a", "mode": "lines"}"#, vec!["\"mode\" is wrong", "content"]),
        ("plan_update_step", r#"{"step": 1, "status": "finished"}"#, vec!["\"status\" is wrong", "in_progress"]),
    ] {
        let (code, output) = hands.refused(tool, args).await;
        assert!(matches!(code, Code::InvalidArgument | Code::NotFound), "{tool} {args}: {code}");
        has(&output, &parts);
    }
    let (_, output) = hands.refused("read", "[1,]").await;
    assert!(!output.contains("break off"), "{output}");
    // Optional arguments can be null, and all arguments can be left out.
    hands.ok("ls", r#"{"path": null}"#).await;
    hands.ok("ls", "").await;
}
