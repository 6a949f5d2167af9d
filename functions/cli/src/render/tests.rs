//! The output for people, as snapshots of scripted event sequences.

use super::*;
use serde_json::json;
use std::{
    cell::RefCell,
    io::{self, Write},
    rc::Rc,
};

/// Collects standard output and standard error, in order.
#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn shown(role: Role, style: Style, events: &[(&str, Value)]) -> String {
    let sink = Sink::default();
    let mut out = Output::to(sink.clone(), sink.clone(), style, false);
    let mut renderer = Renderer::new(role);
    for (place, (name, data)) in events.iter().enumerate() {
        let event = Event { number: Some(place as u64 + 1), name: (*name).into(), data: data.clone() };
        assert!(renderer.event(&event, &mut out).is_ok(), "{event:?}");
    }
    let bytes = sink.0.borrow();
    // Escape codes as text, so that the snapshot can be read.
    String::from_utf8_lossy(&bytes).replace('\x1b', "<ESC>")
}

fn turn() -> Vec<(&'static str, Value)> {
    vec![
        ("turn_started", json!({ "turn_id": "t1", "attempt": 1 })),
        ("message", json!({ "message_id": "m1", "role": "user", "content": "tidy up" })),
        ("thought", json!({ "text": "Where is ", "message_id": "m2" })),
        ("thought", json!({ "text": "everything?", "message_id": "m2" })),
        ("chunk", json!({ "text": "I look ", "message_id": "m2" })),
        ("chunk", json!({ "text": "around.", "message_id": "m2" })),
        ("message", json!({ "message_id": "m2", "role": "assistant", "content": "I look around." })),
        (
            "usage",
            json!({ "input_tokens": 1000, "output_tokens": 20, "cached_tokens": 800, "cost_usd": 0.001,
            "context_used": 1000, "context_limit": 100_000 }),
        ),
        ("call", json!({ "call_id": "c1", "tool": "ls", "path": "/", "args": { "path": "/" } })),
        ("call", json!({ "call_id": "c2", "tool": "grep", "args": { "pattern": "to\ndo", "limit": 5 } })),
        ("observation", json!({ "call_id": "c1", "tool": "ls", "output": "a/\nb/\n", "success": true })),
        (
            "observation",
            json!({ "call_id": "c2", "tool": "grep", "output": "Error (NOT_FOUND): no", "success": false }),
        ),
        (
            "plan_step",
            json!({ "step": 2, "status": "done", "title": "Tidy", "plan_path": "/p", "done": 2, "total": 5 }),
        ),
        ("file_updated", json!({ "path": "/projects/a.md", "v": 3, "file_id": "f", "author": "x" })),
        ("file_updated", json!({ "path": "/projects/b.md", "v": 0, "file_id": "f", "author": "x" })),
        (
            "permission_required",
            json!({ "permission_id": "p1", "call_id": "c3", "category": "command", "tool": "run",
            "args": { "command": "rm -rf build\nmake" }, "reason": "commands are asked for", "expires_at": "x" }),
        ),
        ("permission_resolved", json!({ "permission_id": "p1", "outcome": "approved", "by": "user u" })),
        ("something_new", json!({ "a": 1 })),
        ("chunk", json!({ "text": "All tidy.\n", "message_id": "m3" })),
        ("message", json!({ "message_id": "m3", "role": "assistant", "content": "All tidy." })),
        (
            "usage",
            json!({ "input_tokens": 1100, "output_tokens": 30, "cached_tokens": 1000, "cost_usd": 0.001,
            "context_used": 1100, "context_limit": 100_000 }),
        ),
        ("done", json!({ "turn_id": "t1", "message": "All tidy.", "stop_reason": "end_turn" })),
    ]
}

#[test]
fn a_turn_in_a_conversation() {
    insta::assert_snapshot!(shown(Role::Talker, Style::Plain, &turn()));
}

#[test]
fn a_turn_in_colours() {
    insta::assert_snapshot!(shown(Role::Talker, Style::Colour, &turn()));
}

#[test]
fn a_turn_for_a_watcher() {
    let mut events = turn();
    events.truncate(4);
    events.push(("waiting", json!({ "reason": "slots", "message_id": "m2" })));
    events
        .push(("waiting", json!({ "reason": "model", "code": "RATE_LIMITED", "message": "the provider is limiting" })));
    events.push(("question", json!({ "question_id": "q", "questions": [{ "name": "n", "question": "Which?" }] })));
    events.push(("error", json!({ "code": "UPSTREAM_UNAVAILABLE", "message": "no answer", "hint": "try again" })));
    events.push(("done", json!({ "turn_id": "t1", "message": "", "stop_reason": "error" })));
    insta::assert_snapshot!(shown(Role::Watcher, Style::Plain, &events));
}

fn message(content: &str) -> (&'static str, Value) {
    ("message", json!({ "message_id": "m", "role": "assistant", "content": content }))
}

fn chunk(text: &str) -> (&'static str, Value) {
    ("chunk", json!({ "text": text, "message_id": "m" }))
}

#[test]
fn text_is_shown_once_after_any_gap() {
    let check = |events: &[(&str, Value)], expected: &str| {
        assert_eq!(shown(Role::Talker, Style::Plain, events), expected, "{events:?}");
    };
    check(&[chunk("Hello "), chunk("you"), message("Hello you")], "Hello you\n");
    check(&[chunk("Hello "), message("Hello you")], "Hello you\n");
    check(&[message("Hello you")], "Hello you\n");
    check(&[chunk("Hello you  \n"), message("Hello you")], "Hello you  \n\n");
    check(&[message("")], "");
    check(&[chunk("Hello "), ("thought", json!({ "text": "hm" })), message("Hello you")], "Hello \nhm\nyou\n");
}

#[test]
fn a_step_of_the_plan_is_one_line_and_a_failure_says_which() {
    let args = json!({ "step": 2, "status": "done" });
    let call = ("call", json!({ "call_id": "c1", "tool": "plan_update_step", "args": args }));
    let answer = |output: &str, success: bool| {
        let data = json!({ "call_id": "c1", "tool": "plan_update_step", "output": output, "success": success });
        ("observation", data)
    };
    let file = |path: &str| ("file_updated", json!({ "path": path, "v": 4 }));
    let step =
        json!({ "step": 2, "status": "done", "title": "Tidy", "plan_path": "/p/plan.md", "done": 2, "total": 5 });
    let marked = answer("step 2 is done: Tidy (2 of 5 done)", true);
    let events = [call.clone(), marked, file("/p/plan.md"), ("plan_step", step), file("/projects/a.md")];
    assert_eq!(shown(Role::Talker, Style::Plain, &events), "  [2/5] 2. Tidy: done\n  + /projects/a.md v4\n");

    let refused = "  ! plan_update_step step=2 status=done: Error (CONFLICT): another agent has it\n";
    let events = [call, answer("Error (CONFLICT): another agent has it", false)];
    assert_eq!(shown(Role::Talker, Style::Plain, &events), refused);
}

#[test]
fn a_second_attempt_voids_the_text_of_the_first() {
    let again = ("turn_started", json!({ "turn_id": "t", "attempt": 2 }));
    let events = [chunk("Once upon"), again.clone(), chunk("In the beginning"), message("In the beginning")];
    let void = "the turn goes on after a restart: the unfinished text above is void\n";
    assert_eq!(shown(Role::Talker, Style::Plain, &events), format!("Once upon\n{void}In the beginning\n"));
    let events = [chunk("Done."), message("Done."), again];
    assert_eq!(shown(Role::Talker, Style::Plain, &events), "Done.\nthe turn goes on after a restart\n");
}

#[test]
fn text_of_agents_does_not_drive_the_terminal() {
    let evil = "\x1b[2J\x1b]0;owned\x07\u{202e}";
    let names = [
        "thought",
        "chunk",
        "message",
        "call",
        "observation",
        "file_updated",
        "plan_step",
        "error",
        "reset",
        "permission_required",
        "permission_resolved",
        "question",
        "stopped",
        "done",
        "mode_changed",
        "plan_approved",
    ];
    for name in names {
        for role in ["assistant", "system", "user"] {
            let data = json!({
                "text": evil, "content": evil, "role": role, "tool": evil, "path": evil, "args": { evil: evil },
                "output": evil, "title": evil, "status": evil, "message": evil, "hint": evil, "code": evil,
                "reason": evil, "by": evil, "outcome": evil, "stop_reason": evil, "mode": evil, "plan_path": evil,
                "questions": [{ "question": evil }], "call_id": evil, "v": 1,
            });
            let text = shown(Role::Watcher, Style::Plain, &[(name, data)]);
            assert!(!text.contains(['\u{202e}', '\x07']) && !text.contains("<ESC>"), "{name}: {text:?}");
        }
    }
}

#[test]
fn a_person_who_is_asked_sees_a_change_as_a_diff() {
    let asked = |args: Value| {
        let data =
            json!({ "permission_id": "p1", "call_id": "c1", "tool": "edit", "reason": "Edit a.rs", "args": args });
        shown(Role::Talker, Style::Plain, &[("permission_required", data)])
    };
    // The form of coding agents, and those of the hub's own tools.
    let part = json!({ "type": "diff", "path": "/w/a.rs", "oldText": "one\ntwo\n", "newText": "one\nthree\n" });
    let told = asked(json!({ "title": "Edit a.rs", "content": [{ "type": "content" }, part] }));
    assert!(told.contains("--- /w/a.rs\n+++ /w/a.rs") && told.contains("\n-two\n+three\n"), "{told}");
    let told = asked(json!({ "path": "/system/a.md", "old": "x", "new": "y" }));
    assert!(told.contains("The agent asks to run edit: Edit a.rs") && told.contains("\n-x\n"), "{told}");
    let told = asked(json!({ "path": "/system/a.md", "content": "x\n".repeat(500) }));
    assert!(told.contains("+++ /system/a.md\n") && told.contains("… 103 more lines"), "{told}");
    assert!(asked(json!({ "command": "ls" })).contains("command: ls"));
}
