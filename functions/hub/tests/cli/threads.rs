//! Threads, turns, permissions and rules in a terminal.

use crate::support::{ANYWHERE, Hub, text};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

const SCRIPT: &str = "\
rules:
- when: {user: '^become'}
  steps:
  - {text: 'May I?', calls: [{tool: write, args: {path: '/system/agents/poet/persona.md', content: 'You rhyme.'}}]}
  - {when: {success: true}, text: 'I have become a poet.', else: {text: 'Then I stay as I am.'}}
- steps:
  - {text: 'Here I am.'}
";

/// The permission that a turn asks for, and the rest of what the turn prints after this answer to it.
fn answered(hub: &Hub, thread: &str, answer: &str) -> (i32, String) {
    let mut turn =
        hub.command(&["turn", thread, "become", "a", "poet", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(turn.stdout.take().unwrap()).lines();
    let asked = lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let asked = asked.into_iter().find(|event| event["event"] == "permission_required").unwrap();
    let permission = asked["data"]["permissionId"].as_str().unwrap().to_owned();
    let open = text(&hub.run(&["permit"]).stdout);
    assert!(open.contains(&permission) && open.contains("write"), "{open}");
    let told = hub.run(&["permit", &permission[..30], answer]);
    assert!(told.status.success(), "{}", text(&told.stderr));
    // The list of open requests follows the chat.
    let again = hub.run(&["permit", &permission[..30], answer]).status.code();
    assert!(matches!(again, Some(3 | 4)), "it is not open any more, or decided: {again:?}");
    let again = hub.run(&["permit", &permission, answer]);
    assert_eq!(again.status.code(), Some(4), "it is decided: {}", text(&again.stderr));
    let rest: String = lines.map(|line| line.unwrap()).collect();
    (turn.wait().unwrap().code().unwrap(), rest)
}

#[test]
fn threads_turns_and_permissions_are_worked_with_in_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.yaml");
    std::fs::write(&script, SCRIPT).unwrap();
    let cwd = folder.path().canonicalize().unwrap().display().to_string();
    let settings = [
        ("BUILDSCALE__AI__SCRIPT", script.to_str().unwrap()),
        ("BUILDSCALE__AI__MODEL", "scripted/script"),
        ("BUILDSCALE__HUB__ALLOWED_ROOTS", &cwd),
    ];
    let hub = Hub::start(folder.path(), ANYWHERE, &settings);
    assert!(text(&hub.run(&["threads"]).stderr).contains("no threads yet"));
    assert!(text(&hub.run(&["turn", "-", "hello"]).stderr).contains("there is no thread yet"));
    let outside = hub.run(&["threads", "new", "--cwd", "/"]);
    assert_eq!(outside.status.code(), Some(2), "{}", text(&outside.stderr));
    for wrong in [["--mode", "wild"], ["--option", "effort"], ["--option", "effort=high"]] {
        let refused = hub.run(&[&["threads", "new", "--cwd", cwd.as_str()][..], &wrong].concat());
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}: {}", text(&refused.stderr));
    }
    let planned = hub.run(&["threads", "new", "--cwd", &cwd, "--mode", "plan", "--model", "scripted/script"]);
    assert!(planned.status.success(), "{}", text(&planned.stderr));
    assert!(hub.run(&["threads", "rm", text(&planned.stdout).trim()]).status.success());
    let made = hub.run(&["threads", "new", "--cwd", &cwd, "--title", "Verses"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let thread = text(&made.stdout).trim().to_owned();
    assert!(text(&hub.run(&["threads"]).stdout).contains("Verses"));
    let other = hub.run(&["threads", "new", "--cwd", &cwd, "--title", "Prose"]);
    let other = text(&other.stdout).trim().to_owned();
    for (limit, has_more) in [("1", true), ("5", false)] {
        let listed = hub.run(&["threads", "list", "--limit", limit]);
        assert_eq!(text(&listed.stderr).contains("there are more; --limit"), has_more, "{limit}");
    }
    assert!(hub.run(&["threads", "rm", &other]).status.success());
    let is_alone = |page: &Value| page["threads"].as_array().is_some_and(|threads| threads.len() == 1);
    hub.until(&["threads", "--json"], is_alone);

    let turn = hub.run(&["turn", &thread, "hello"]);
    assert_eq!((turn.status.code(), text(&turn.stdout).trim()), (Some(0), "Here I am."));
    let begin = &thread[..30];
    for named in ["-", begin, &format!("{begin}…")] {
        let turn = hub.run(&["turn", named, "hello"]);
        assert_eq!((turn.status.code(), text(&turn.stdout).trim()), (Some(0), "Here I am."), "{named}");
        assert!(text(&hub.run(&["threads", "show", named]).stdout).contains("Here I am."), "{named}");
    }
    for (named, code) in [("0000", 3), ("hello", 2), ("abc", 2)] {
        let refused = hub.run(&["turn", named, "hello"]);
        assert_eq!(refused.status.code(), Some(code), "{named}: {}", text(&refused.stderr));
    }
    let note = folder.path().join("note.md");
    std::fs::write(&note, "# A note").unwrap();
    let turn = hub.run(&["turn", &thread, "hello", "--attach", note.to_str().unwrap()]);
    assert_eq!((turn.status.code(), text(&turn.stdout).trim()), (Some(0), "Here I am."), "{}", text(&turn.stderr));
    let attachments = format!("/data/attachments/{thread}");
    let folders = text(&hub.run(&["files", "ls", &attachments]).stdout);
    let kept = format!("{attachments}/{}note.md", folders.trim());
    assert_eq!(text(&hub.run(&["files", "cat", &kept]).stdout).trim(), "# A note", "{folders}");
    let (code, rest) = answered(&hub, &thread, "no");
    assert!(code == 0 && rest.contains("Then I stay as I am."), "{code}: {rest}");
    let (code, rest) = answered(&hub, &thread, "allow_always");
    assert!(code == 0 && rest.contains("I have become a poet."), "{code}: {rest}");

    let rules = hub.json(0, &["rules", &thread, "--json"]);
    assert_eq!(rules[0]["permissions"].as_array().map(Vec::len), Some(1), "{rules:?}");
    assert!(hub.run(&["rules", &thread, "--revoke"]).status.success());
    let granted = hub.until(&["rules", &thread, "--json"], |granted| granted["permissions"] == json!([]));
    assert_eq!(granted, json!({ "permissions": [] }));
    let shown = text(&hub.run(&["threads", "show", &thread]).stdout);
    assert!(shown.contains("become a poet") && shown.contains("Here I am."), "{shown}");
    let asked = hub.run(&["compact", &thread]);
    assert!(text(&asked.stdout).contains("are being summarised"), "{}", text(&asked.stderr));
    assert_eq!(hub.run(&["compact", &thread, "--max", "1"]).status.code(), Some(2), "it is too short");
    // So few words need no summary: there is none to be taken back.
    assert_eq!(hub.run(&["compact", &thread, "--undo"]).status.code(), Some(4));
    let fork = text(&hub.run(&["fork", &thread]).stdout);
    let chats = text(&hub.run(&["chats"]).stdout);
    assert!(fork.get(..8).is_some_and(|id| chats.contains(id)), "{fork} {chats}");
    assert!(hub.run(&["threads", "rm", &thread]).status.success());
    assert_eq!(hub.run(&["turn", &thread, "hello"]).status.code(), Some(3));
}
