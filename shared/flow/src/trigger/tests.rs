#![expect(clippy::unwrap_used, reason = "tests")]
use super::*;
use serde_json::json;

fn trigger(manifest: Value) -> Trigger {
    Trigger::new(&serde_json::from_value(manifest).unwrap()).unwrap()
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

fn keys(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_version_starts_a_flow_when_it_fulfils_every_condition() {
    let plan = trigger(json!({ "path": "/projects/*/plan.md", "status": "ready" }));
    let ready = keys(json!({ "status": "ready", "title": "x" }));
    assert!(plan.matches(&path("/projects/app/plan.md"), true, &ready));
    assert!(plan.matches(&path("/projects/app/plan.md"), false, &ready));
    assert!(!plan.matches(&path("/projects/app/plan.md"), true, &keys(json!({ "status": "done" }))));
    assert!(plan.matches(&path("/projects/app/plan.md"), true, &keys(json!({ "status": "Ready" }))));
    assert!(!plan.matches(&path("/projects/app/plan.md"), true, &Map::new()));
    assert!(!plan.matches(&path("/projects/app/deep/plan.md"), true, &ready), "* stays in one folder");
    let first = trigger(json!({ "path": "/data/**/*.csv", "event": "created" }));
    assert!(first.matches(&path("/data/a/b/c.csv"), true, &Map::new()));
    assert!(first.matches(&path("/data/c.csv"), true, &Map::new()));
    assert!(!first.matches(&path("/data/c.csv"), false, &Map::new()));
    let later =
        trigger(json!({ "path": "/data/*.md", "event": "updated", "front_matter": { "round": 2, "tags": ["a"] } }));
    let round = keys(json!({ "round": 2, "tags": ["a"], "more": true }));
    assert!(later.matches(&path("/data/c.md"), false, &round));
    assert!(!later.matches(&path("/data/c.md"), false, &keys(json!({ "round": "2", "tags": ["a"] }))));
    assert!(!later.matches(&path("/data/c.md"), true, &round));
}

#[test]
fn files_of_chats_start_nothing_unless_the_pattern_names_their_folder() {
    let all = trigger(json!("/**"));
    assert!(all.concerns(&path("/projects/a.txt"), true));
    assert!(!all.concerns(&path("/chats/1/plan.md"), true));
    assert!(!all.concerns(&path("/system/flows/x/workflow.yaml"), true));
    assert!(trigger(json!("/chats/*/plan.md")).concerns(&path("/chats/1/plan.md"), true));
}

#[test]
fn nonsense_is_refused_with_its_key() {
    let refused = |manifest: Value| Trigger::new(&serde_json::from_value(manifest).unwrap()).unwrap_err();
    for (manifest, key, said) in [
        (json!("projects/*.md"), "path", "no pattern of paths"),
        (json!("/projects/"), "path", "no pattern of paths"),
        (json!("/projects/[a"), "path", "no pattern"),
        (json!("/projects/{a,b"), "path", "no pattern"),
        (json!("/projects/../*.md"), "path", "can be called"),
        (json!(format!("/{}", "x".repeat(300))), "path", "301 bytes"),
        (json!("/system/flows/**"), "path", "under /system/"),
        (json!({ "path": "/data/a.csv", "status": "ready" }), "path", "no Markdown"),
        (json!({ "path": "/a.md", "status": "x", "front_matter": { "status": "y" } }), "front_matter", "twice"),
    ] {
        let fault = refused(manifest.clone());
        assert!(fault.key == key && fault.message.contains(said), "{manifest}: {fault}");
        assert!(!fault.hint.is_empty());
    }
}

#[test]
fn front_matter_is_yaml_between_lines_and_bounded() {
    assert_eq!(front_matter("---\nstatus: ready\nn: 1\n---\ntext"), keys(json!({ "status": "ready", "n": 1 })));
    assert_eq!(front_matter("---\r\nstatus: ready\r\n---\r\ntext"), keys(json!({ "status": "ready" })));
    for none in
        ["", "status: ready", "---\nstatus: ready\n", "---\nstatus: [\n---\n", "---\n- a\n---\n", " ---\na: 1\n---\n"]
    {
        assert_eq!(front_matter(none), Map::new(), "{none:?}");
    }
    let long = format!("---\nstatus: ready\ntext: {}\n---\n", "x".repeat(MAX_FRONT_MATTER));
    assert_eq!(front_matter(&long), Map::new());
}

#[test]
fn triggers_overlap_when_one_version_can_fulfil_both() {
    let plan = json!({ "path": "/projects/*/plan.md", "status": "ready" });
    for (one, other, expected) in [
        (plan.clone(), plan.clone(), true),
        (plan.clone(), json!({ "path": "/projects/*/plan.md", "status": "review" }), false),
        (plan.clone(), json!("/projects/**"), true),
        (plan.clone(), json!("/**/p*n.md"), true),
        (plan.clone(), json!("/**/p*m.md"), false),
        (plan.clone(), json!("/data/**"), false),
        (json!("/a/b?d.md"), json!("/a/*c*.md"), true),
        (json!("/a/**/x.md"), json!("/a/x.md"), true),
        (json!({ "path": "/a.md", "event": "created" }), json!({ "path": "/a.md", "event": "updated" }), false),
        (
            json!({ "path": "/a.md", "front_matter": { "n": 1 } }),
            json!({ "path": "/a.md", "front_matter": { "n": 2 } }),
            false,
        ),
        (
            json!({ "path": "/a.md", "front_matter": { "n": 1 } }),
            json!({ "path": "/a.md", "front_matter": { "m": 2 } }),
            true,
        ),
    ] {
        let (left, right) = (trigger(one.clone()), trigger(other.clone()));
        assert_eq!((overlap(&left, &right), overlap(&right, &left)), (expected, expected), "{one} {other}");
    }
}
