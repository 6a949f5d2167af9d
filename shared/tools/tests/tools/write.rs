//! `write`, `edit`, `mkdir`, `mv`, `rm`, and the plan.

use crate::common::{Hands, has};
use domain::{CallId, ChatEvent, Code, Conversion, ConversionStatus, FilePath, Principal, Sha256};
use serde_json::json;
use uuid::Uuid;
use workspace::{Expect, Writer};

fn edit(path: &str, blocks: &[(&str, &str)]) -> String {
    let blocks: Vec<_> = blocks.iter().map(|(old, new)| json!({ "old": old, "new": new })).collect();
    json!({ "path": path, "edits": blocks }).to_string()
}

#[tokio::test]
async fn an_agent_writes_what_is_new_or_what_it_has_read_and_nothing_else() {
    let mut hands = Hands::agent().await;
    let output = hands.ok("write", r#"{"path": "/projects/a/b.md", "content": "one"}"#).await;
    has(&output, &["version 1, 3 bytes", &Sha256::of(b"one").to_string()]);
    assert!(matches!(&hands.events[..], [ChatEvent::FileUpdated { v: 1, author, .. }] if author == "agent:assistant"));
    hands.ok("write", r#"{"path": "/projects/a/b.md", "content": "two"}"#).await;

    hands.put("/projects/a/b.md", "three").await;
    let (code, output) = hands.refused("write", r#"{"path": "/projects/a/b.md", "content": "mine"}"#).await;
    assert_eq!(code, Code::StaleVersion);
    has(&output, &["it is now version 3", "-two", "+three", "read the file again"]);
    let (code, output) = hands.refused("edit", &edit("/projects/a/b.md", &[("nowhere", "x")])).await;
    assert_eq!(code, Code::StaleVersion, "{output}");
    hands.ok("read", r#"{"path": "/projects/a/b.md"}"#).await;
    hands.ok("write", r#"{"path": "/projects/a/b.md", "content": "mine"}"#).await;

    hands.put("/projects/unread", "x").await;
    for (tool, args) in [
        ("write", json!({ "path": "/projects/unread", "content": "y" }).to_string()),
        ("edit", edit("/projects/unread", &[("x", "y")])),
    ] {
        let (code, output) = hands.refused(tool, &args).await;
        assert_eq!(code, Code::StaleVersion);
        has(&output, &["you have not read it", "read it first"]);
    }
    let hash = Sha256::of(b"x");
    hands.ok("write", &json!({ "path": "/projects/unread", "content": "y", "last_read_hash": hash }).to_string()).await;
    let stale = json!({ "path": "/projects/unread", "content": "z", "last_read_hash": hash }).to_string();
    assert_eq!(hands.refused("write", &stale).await.0, Code::StaleVersion);
    let bad = json!({ "path": "/projects/unread", "content": "z", "last_read_hash": "abc" }).to_string();
    assert_eq!(hands.refused("write", &bad).await.0, Code::InvalidArgument);
    assert_eq!(hands.refused("write", r#"{"path": "/projects", "content": ""}"#).await.0, Code::Unprocessable);
    let chat = format!("/chats/{}.md", Uuid::now_v7());
    let forged = json!({ "path": chat, "content": "" }).to_string();
    assert_eq!(hands.refused("write", &forged).await.0, Code::Forbidden);
}

#[tokio::test]
async fn a_change_of_an_attempt_that_died_is_that_of_its_call_however_late_it_arrives() {
    let mut hands = Hands::agent().await;
    hands.ok("write", r#"{"path": "/projects/b.md", "content": "one"}"#).await;
    let made = json!({ "path": "/projects/a.md", "content": "x" }).to_string();
    for (tool, args, path, v) in
        [("write", made, "a.md", 1), ("edit", edit("/projects/b.md", &[("one", "two")]), "b.md", 2)]
    {
        let (call, mut died) = (CallId(Uuid::now_v7()), hands.other(hands.by.clone()));
        died.seen = hands.seen.clone();
        let its_args = args.clone();
        let meanwhile = Box::pin(async move {
            assert!(died.call_as(call, tool, &its_args).await.success);
        });
        let outcome = hands.late(call, meanwhile).await.call_as(call, tool, &args).await;
        assert!(outcome.success, "{}", outcome.output);
        has(&outcome.output, &[path, &format!("version {v}")]);
    }
}

#[tokio::test]
async fn people_overwrite_unless_they_say_what_they_read() {
    let mut hands = Hands::agent().await.person();
    hands.put("/data/a", "one").await;
    hands.ok("write", r#"{"path": "/data/a", "content": "two"}"#).await;
    hands.ok("edit", &edit("/data/a", &[("two", "three")])).await;
    let stale = json!({ "path": "/data/a", "content": "four", "last_read_hash": Sha256::of(b"two") }).to_string();
    assert_eq!(hands.refused("write", &stale).await.0, Code::StaleVersion);
    assert_eq!(hands.text("/data/a").await, "three");
}

#[tokio::test]
async fn edit_applies_all_blocks_or_none_and_says_what_is_wrong() {
    let mut hands = Hands::agent().await;
    let content = "fn one() {\n    work();\n}\nfn two() {\n    work();\n}\n";
    hands.put("/projects/a.rs", content).await;
    hands.ok("read", r#"{"path": "/projects/a.rs"}"#).await;
    for (blocks, parts) in [
        (vec![("work();", "rest();")], vec!["2 times, at lines 2, 5", "replace_all", "nothing was changed"]),
        (vec![("fn one", "fn uno"), ("absent thing", "x")], vec!["edit 2: the old text is not in"]),
        (vec![("fn one() {\n  work();", "x")], vec!["with other white space it is at line 1"]),
        (vec![("fn twoo() {", "x")], vec!["nearest text is at line 4"]),
        (vec![("same", "same")], vec!["are the same"]),
    ] {
        let (_, output) = hands.refused("edit", &edit("/projects/a.rs", &blocks)).await;
        has(&output, &parts);
        assert_eq!(hands.text("/projects/a.rs").await, content);
    }
    let output = hands.ok("edit", &edit("/projects/a.rs", &[("fn one", "fn uno"), ("uno()", "eins()")])).await;
    has(&output, &["now version 2", "-fn one() {", "+fn eins() {"]);
    let all = json!({ "path": "/projects/a.rs", "edits": [{ "old": "work", "new": "rest", "replace_all": true }] });
    hands.ok("edit", &all.to_string()).await;
    assert_eq!(hands.text("/projects/a.rs").await, "fn eins() {\n    rest();\n}\nfn two() {\n    rest();\n}\n");

    hands.put("/projects/crlf", "a\r\nb\r\nc\n").await;
    hands.put("/projects/bin", vec![0, 1]).await;
    for path in ["/projects/crlf", "/projects/bin"] {
        hands.ok("read", &json!({ "path": path }).to_string()).await;
    }
    has(&hands.refused("edit", &edit("/projects/crlf", &[("a\nb", "c")])).await.1, &["\\r\\n"]);
    has(&hands.refused("edit", &edit("/projects/bin", &[("a", "c")])).await.1, &["binary"]);
    assert_eq!(hands.refused("edit", &edit("/projects/none", &[("a", "c")])).await.0, Code::NotFound);
}

#[tokio::test]
async fn an_edit_keeps_the_ends_of_lines_that_a_file_has() {
    let mut hands = Hands::agent().await;
    let content = "a\r\nb\r\nlone \r return\r\nc";
    hands.put("/projects/a.bat", content).await;
    hands.ok("read", r#"{"path": "/projects/a.bat"}"#).await;
    hands.ok("edit", &edit("/projects/a.bat", &[("a\nb\n", "a\nnew\nb\n"), ("return\r\nc", "return\r\nc\n")])).await;
    assert_eq!(hands.text("/projects/a.bat").await, "a\r\nnew\r\nb\r\nlone \r return\r\nc\r\n");
    hands.put("/projects/a.sh", "a\nb\n").await;
    hands.ok("read", r#"{"path": "/projects/a.sh"}"#).await;
    hands.ok("edit", &edit("/projects/a.sh", &[("b", "b\r\nc")])).await;
    assert_eq!(hands.text("/projects/a.sh").await, "a\nb\r\nc\n", "a text with \\n gets what was written");
}

#[tokio::test]
async fn a_call_that_runs_again_answers_the_same_and_changes_nothing() {
    let mut hands = Hands::agent().await;
    hands.put("/data/a", "one two").await;
    hands.put("/data/b", "b").await;
    hands.put("/data/c", "c").await;
    hands.put("/data/plan.md", "- [ ] first\n- [ ] second\n").await;
    hands.ok("read", r#"{"path": "/data/a"}"#).await;
    for (tool, args) in [
        ("write", json!({ "path": "/data/new", "content": "new" }).to_string()),
        ("edit", edit("/data/a", &[("one", "uno")])),
        ("mv", json!({ "from": "/data/b", "to": "/data/b2" }).to_string()),
        ("rm", json!({ "path": "/data/c" }).to_string()),
        ("mkdir", json!({ "path": "/data/d/e" }).to_string()),
        ("plan_update_step", json!({ "step": 1, "status": "done", "path": "/data/plan.md" }).to_string()),
    ] {
        let id = CallId(Uuid::now_v7());
        let seen = hands.seen.clone();
        let first = hands.call_as(id, tool, &args).await;
        assert!(first.success, "{tool}: {}", first.output);
        // As after a crash: the contents that the call has seen are forgotten.
        hands.seen = seen;
        assert_eq!(hands.call_as(id, tool, &args).await, first, "{tool}");
    }
    assert_eq!(hands.text("/data/a").await, "uno two");
}

#[tokio::test]
async fn moving_and_removing_keep_track_of_what_was_read() {
    let mut hands = Hands::agent().await;
    hands.put("/projects/a/x", "x").await;
    hands.ok("read", r#"{"path": "/projects/a/x"}"#).await;
    hands.ok("mv", r#"{"from": "/projects/a", "to": "/projects/b"}"#).await;
    hands.ok("write", r#"{"path": "/projects/b/x", "content": "still known"}"#).await;
    hands.put("/projects/taken", "").await;
    for (args, code) in [
        (json!({ "from": "/projects/b", "to": "/projects/taken" }), Code::Conflict),
        (json!({ "from": "/projects/b", "to": "/projects/b/c" }), Code::Conflict),
        (json!({ "from": "/system", "to": "/data/system" }), Code::Forbidden),
        (json!({ "from": "/nope", "to": "/data/n" }), Code::NotFound),
    ] {
        assert_eq!(hands.refused("mv", &args.to_string()).await.0, code, "{args}");
    }
    has(&hands.ok("rm", r#"{"path": "/projects/b"}"#).await, &["in the trash as"]);
    assert!(matches!(hands.events.last(), Some(ChatEvent::FileUpdated { v: 0, .. })));
    assert_eq!(hands.seen[&FilePath::parse("/projects/b/x").unwrap()], None);
    hands.ok("write", r#"{"path": "/projects/b/x", "content": "anew"}"#).await;
    assert_eq!(hands.refused("rm", r#"{"path": "/chats"}"#).await.0, Code::Forbidden);
    assert_eq!(hands.refused("rm", r#"{"path": "/nope"}"#).await.0, Code::NotFound);
    assert_eq!(hands.refused("mkdir", r#"{"path": "/projects/taken"}"#).await.0, Code::Conflict);
}

#[tokio::test]
async fn a_plan_is_written_and_ticked_by_several_at_once() {
    let mut hands = Hands::agent().await;
    let plan = format!("/chats/{}/plan.md", hands.chat.unwrap());
    let args = json!({ "title": "Build it", "steps": ["first\nthing", "second", "third"], "notes": "why" });
    has(&hands.ok("plan_write", &args.to_string()).await, &["3 steps, version 1", &plan]);
    assert_eq!(hands.text(&plan).await, "# Build it\n\nwhy\n\n- [ ] first thing\n- [ ] second\n- [ ] third\n");

    let told = |event: &ChatEvent| match event {
        ChatEvent::PlanStep { step, status, title, plan_id: Some(_), done: 0, total: 3, .. } => {
            Some(format!("{step} {status} {title}"))
        }
        _ => None,
    };
    let steps: Vec<String> = hands.events.iter().filter_map(told).collect();
    assert_eq!(steps, ["1 pending first thing", "2 pending second", "3 pending third"], "every step is told at once");

    let output = hands.ok("plan_update_step", r#"{"step": 2, "status": "done"}"#).await;
    has(&output, &["step 2 is done: second (1 of 3 done)", "next: step 1, first thing"]);
    let step = hands.events.iter().rfind(|event| matches!(event, ChatEvent::PlanStep { .. }));
    let Some(ChatEvent::PlanStep { step: 2, status, title, done: 1, total: 3, .. }) = step else { panic!("{step:?}") };
    assert_eq!((status.as_str(), title.as_str()), ("done", "second"));
    // Another agent, which has not read the plan, ticks its step; both ticks stay.
    let mut other = hands.other(hands.by.clone());
    other.ok("plan_update_step", &json!({ "step": 3, "status": "failed", "path": plan }).to_string()).await;
    hands.ok("plan_update_step", r#"{"step": 1, "status": "in_progress"}"#).await;
    assert!(hands.text(&plan).await.ends_with("- [~] first thing\n- [x] second\n- [!] third\n"));

    has(&hands.refused("plan_update_step", r#"{"step": 4, "status": "done"}"#).await.1, &["has 3 steps"]);
    has(&hands.refused("plan_write", r#"{"title": "t", "steps": [" "]}"#).await.1, &["has to say something"]);
    let mut person = hands.other(Principal::local());
    assert_eq!(person.refused("plan_write", r#"{"title": "t", "steps": ["a"]}"#).await.0, Code::InvalidArgument);
    let missing = person.refused("plan_update_step", r#"{"step": 1, "status": "done", "path": "/data/p.md"}"#).await;
    has(&missing.1, &["write the plan first"]);
}

#[tokio::test]
async fn a_path_that_ends_with_a_slash_makes_no_file_of_this_name() {
    let mut hands = Hands::agent().await;
    hands.put("/projects/a.md", "a").await;
    hands.put("/projects/app/b.md", "b").await;
    for (tool, args) in [
        ("write", json!({ "path": "/projects/new/", "content": "x" })),
        ("mv", json!({ "from": "/projects/a.md", "to": "/projects/new/" })),
    ] {
        let (code, output) = hands.refused(tool, &args.to_string()).await;
        assert_eq!(code, Code::InvalidArgument, "{tool}");
        has(&output, &["/projects/new/ names a folder", "/projects/new/notes.md"]);
    }
    let (from, to) = ("/projects/app/", "/projects/new/");
    hands.ok("mv", &json!({ "from": from, "to": to }).to_string()).await;
    assert_eq!(hands.text("/projects/new/b.md").await, "b");
}

#[tokio::test]
async fn an_edit_that_takes_the_markdown_of_a_document_for_its_text_is_told_so() {
    let mut hands = Hands::agent().await;
    hands.put("/data/c.csv", "name,qty\nbolt,3\n").await;
    let csv = hands.workspace.stat(&FilePath::parse("/data/c.csv").unwrap()).await.unwrap();
    let converter = Writer { derived_from: Some(csv.file_id), ..Writer::new(Principal::System) };
    let markdown = FilePath::parse("/data/c.csv.md").unwrap();
    let written = hands.workspace.write(&markdown, "| bolt | 3 |\n", Expect::Any, &converter).await.unwrap();
    let done = Conversion::new(ConversionStatus::Done, Some(written.file_id));
    assert!(hands.workspace.note_conversion(&csv, done, None).await.unwrap());
    has(&hands.ok("read", r#"{"path": "/data/c.csv"}"#).await, &["| bolt | 3 |"]);
    let version = json!({ "path": "/data/c.csv", "v": 1 }).to_string();
    has(&hands.ok("read", &version).await, &["| bolt | 3 |"]);
    let (_, output) = hands.refused("edit", &edit("/data/c.csv", &[("| bolt | 3 |", "| bolt | 5 |")])).await;
    has(&output, &["read it with raw"]);
    hands.ok("edit", &edit("/data/c.csv", &[("bolt,3", "bolt,5")])).await;
    assert_eq!(hands.text("/data/c.csv").await, "name,qty\nbolt,5\n");
    has(&hands.ok("read", &version).await, &["bolt,3", "this is version 1", "version 2 is current"]);
}
