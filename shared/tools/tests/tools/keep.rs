//! `keep` of `exec`: files that a command leaves become versions.

use crate::{common::has, exec::with_commands};
use domain::{CallId, ChatEvent, Code, FilePath};
use ports::{ExecEvent, KeptFile, LeftOut};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

fn path(text: &str) -> FilePath {
    text.parse().unwrap()
}

fn file(of: usize, below: &str, content: &str) -> ExecEvent {
    ExecEvent::Kept(KeptFile { of, below: path(below), content: content.to_owned().into() })
}

fn left_out(of: usize, below: &str, why: &str) -> ExecEvent {
    ExecEvent::LeftOut(LeftOut { of, below: path(below), why: why.into() })
}

fn asked(command: &str, keep: &[(&str, &str)]) -> String {
    let keep: Vec<Value> = keep.iter().map(|(from, to)| json!({ "from": from, "to": to })).collect();
    json!({ "command": command, "keep": keep }).to_string()
}

/// A file is older than a command that begins later.
async fn later() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

const COPIED: [(&str, &str); 2] = [("src", "/projects/app/src"), ("out/chart.png", "/projects/app/chart.png")];

#[tokio::test(start_paused = true)]
async fn files_that_a_command_leaves_become_versions_once() {
    let (mut hands, sandboxes) = with_commands().await;
    hands.put("/projects/app/src/a.rs", "fn  a() {}").await;
    hands.put("/projects/app/src/b.rs", "fn b() {}").await;
    later().await;
    let sandbox = sandboxes.come_up(hands.workspace.id());
    sandbox.leaves(vec![
        file(0, "/a.rs", "fn a() {}"),
        file(0, "/b.rs", "fn b() {}"),
        file(0, "/deep/c.rs", ""),
        file(1, "/", "PNG"),
        left_out(0, "/link", "it is a link"),
    ]);
    let (call, args) = (CallId(Uuid::now_v7()), asked("cargo fmt", &COPIED));
    let outcome = hands.call_as(call, "exec", &args).await;
    assert_eq!(sandbox.begun()[0].keep, [path("/src"), path("/out/chart.png")]);
    assert_eq!(
        outcome.output,
        "cargo fmt in /\n[exit code 0, 0.0 s]\nnot kept: src/link: it is a link\n\
         kept src/a.rs as /projects/app/src/a.rs (version 2)\n\
         kept src/b.rs as /projects/app/src/b.rs (version 1, unchanged)\n\
         kept src/deep/c.rs as /projects/app/src/deep/c.rs (version 1)\n\
         kept out/chart.png as /projects/app/chart.png (version 1)"
    );
    let first = json!({ "from": "src/a.rs", "path": "/projects/app/src/a.rs", "v": 2, "changed": true });
    assert_eq!((outcome.success, &outcome.result["kept"][0]), (true, &first));
    assert_eq!(outcome.result["left_out"], json!([{ "from": "src/link", "why": "it is a link" }]));
    assert_eq!(hands.text("/projects/app/src/a.rs").await, "fn a() {}");
    assert_eq!(hands.events.iter().filter(|one| matches!(one, ChatEvent::FileUpdated { .. })).count(), 3);
    // Under the call, by which a turn is taken back; and nothing of it counts as read.
    let changed = hands.workspace.stat(&path("/projects/app/src/a.rs")).await.unwrap();
    let version = hands.workspace.version_info(changed.file_id, 2).await.unwrap();
    assert_eq!(version.call_id, Some(call));
    assert_eq!(changed.author, hands.by.to_string());
    let unread = json!({ "path": "/projects/app/src/a.rs", "content": "" }).to_string();
    has(&hands.refused("write", &unread).await.1, &["you have not read it"]);

    // The next worker, which follows the command; and another command that leaves the same.
    hands.call_as(call, "exec", &args).await;
    later().await;
    let events = hands.events.len();
    let outcome = hands.call("exec", &args).await;
    has(&outcome.output, &["kept src/a.rs as /projects/app/src/a.rs (version 2, unchanged)", "(version 1, unchanged)"]);
    assert_eq!(hands.events.len(), events);
    assert_eq!(hands.workspace.stat(&changed.path).await.unwrap().v, 2);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_written_is_told_and_the_others_are_kept() {
    let (mut hands, sandboxes) = with_commands().await;
    hands.put("/projects/a.md", "old").await;
    hands.put("/projects/folder/b.md", "old").await;
    later().await;
    let sandbox = sandboxes.come_up(hands.workspace.id());
    sandbox.leaves(vec![file(0, "/", "mine"), file(1, "/", "mine"), file(2, "/", "mine")]);
    let keep = [("a", "/projects/a.md"), ("b", "/projects/folder"), ("c", "/projects/c.md"), ("d", "/projects/d.md")];
    let (call, args, person) = (CallId(Uuid::now_v7()), asked("hang", &keep), hands.person());
    let meanwhile = async {
        later().await;
        person.put("/projects/a.md", "theirs").await;
        sandbox.finish(call, 4);
    };
    let (outcome, ()) = tokio::join!(hands.call_as(call, "exec", &args), meanwhile);
    // The command failed, and its files are kept all the same.
    assert_eq!(outcome.error.map(|error| error.code), Some(Code::Unprocessable));
    has(
        &outcome.output,
        &[
            "not kept: a: user:",
            "has changed /projects/a.md since the command began (version 2)",
            "not kept: b: ",
            "kept c as /projects/c.md (version 1)",
            "not kept: d: the sandbox has an earlier version, which keeps no files",
        ],
    );
    assert_eq!(hands.text("/projects/a.md").await, "theirs");
    assert_eq!(outcome.result["left_out"].as_array().map(Vec::len), Some(3));

    let many: Vec<ExecEvent> = (0..500).map(|number| file(0, &format!("/{number:03}"), "x")).collect();
    sandbox.leaves(many);
    let outcome = hands.call("exec", &asked("make", &[("out", "/projects/out")])).await;
    assert!(outcome.output.len() < 5_000 && outcome.output.ends_with(" files more]"), "{}", outcome.output);
    assert_eq!(outcome.result["kept"].as_array().map(Vec::len), Some(500));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_follows_long_after_the_end_replaces_no_newer_file() {
    let (mut hands, sandboxes) = with_commands().await;
    hands.put("/projects/a.md", "old").await;
    later().await;
    let sandbox = sandboxes.come_up(hands.workspace.id());
    sandbox.leaves(vec![file(0, "/", "mine"), file(1, "/", "mine")]);
    let (call, args) = (CallId(Uuid::now_v7()), asked("hang", &[("a", "/projects/a.md"), ("b", "/projects/b.md")]));
    let dies = tokio::time::timeout(Duration::from_secs(1), hands.call_as(call, "exec", &args)).await;
    assert!(dies.is_err());
    sandbox.finish(call, 0);
    hands.put("/projects/a.md", "theirs").await;
    later().await;
    let outcome = hands.call_as(call, "exec", &args).await;
    has(&outcome.output, &["not kept: a: user:", "kept b as /projects/b.md (version 1)"]);
    assert_eq!(hands.text("/projects/a.md").await, "theirs");

    // The same long after the files were written: each is told as changed, and none is written again.
    later().await;
    let outcome = hands.call_as(call, "exec", &args).await;
    has(&outcome.output, &["not kept: a: user:", "kept b as /projects/b.md (version 1)"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_may_not_keep_its_files_does_not_run() {
    let (mut hands, sandboxes) = with_commands().await;
    let sandbox = sandboxes.come_up(hands.workspace.id());
    let senseless = [("", "/a"), ("/tmp/a", "/a"), ("$TMPDIR/a", "/a"), ("../a", "/a"), ("a", "a"), ("a", "/../a")];
    for (from, to) in senseless {
        let (code, _) = hands.refused("exec", &asked("make", &[(from, to)])).await;
        assert_eq!(code, Code::InvalidArgument, "{from} {to}");
        let effects = hands.registry.effects("exec", &asked("make", &[(from, to)]), &path("/plan.md"));
        assert_eq!(effects.err().map(|error| error.code), Some(Code::InvalidArgument), "{from} {to}");
    }
    let (code, _) = hands.refused("exec", &asked("make", &[("a", "/a"); 21])).await;
    assert_eq!(code, Code::InvalidArgument);
    // As policies see the agent: a person has to allow such a file, and is asked before the command runs.
    let mut judged = hands.judged_with(sandboxes.clone()).await;
    let sets_up = asked("make", &[("a", "/projects/a"), ("b", "/system/policies/b.cedar")]);
    let (code, output) = judged.refused("exec", &sets_up).await;
    assert_eq!(code, Code::Forbidden, "{output}");
    has(&output, &["/system/policies/b.cedar"]);
    assert!(sandbox.begun().is_empty());
    let effects = hands.registry.effects("exec", &sets_up, &path("/plan.md")).unwrap();
    assert_eq!(effects.changed().collect::<Vec<_>>(), [&path("/projects/a"), &path("/system/policies/b.cedar")]);
    assert_eq!(effects.about(), None, "it is about its command");
}
