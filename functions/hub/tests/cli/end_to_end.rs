//! The command line against a hub, both as the real binary, with the offline demo script as the model.

use crate::support::{ANYWHERE, Hub, command, hub, text};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

#[test]
fn without_a_hub_it_says_how_to_start_one() {
    // A port that is taken, so that no other test's hub gets it, and on which no process listens.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    for args in [&["chat", "--once", "hello"][..], &["chats"], &["files", "ls"], &["models"]] {
        let output = command(args).env("BUILDSCALE_URL", &url).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.contains(&url) && said.contains("start it with: buildscale serve"), "{said}");
        assert!(output.stdout.is_empty());
    }
    let output = command(&["chats", "--json"]).env("BUILDSCALE_URL", &url).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(said["error"]["code"], "UNREACHABLE");
}

#[test]
fn it_needs_no_hub_for_help_versions_and_completions() {
    let output = command(&["--version"]).output().unwrap();
    assert_eq!(text(&output.stdout), format!("buildscale {}\n", env!("CARGO_PKG_VERSION")));
    let help = text(&command(&["chat", "--help"]).output().unwrap().stdout);
    assert!(help.contains("Exit codes:") && help.contains("Ctrl-C stops the turn"), "{help}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = command(&["completions", shell]).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("buildscale"), "{shell}");
    }
    assert_eq!(command(&["chat", "--nonsense"]).output().unwrap().status.code(), Some(2));
    let odd = command(&["chats", "--url", "ftp://x"]).output().unwrap();
    assert_eq!(odd.status.code(), Some(2), "{}", text(&odd.stderr));
}

#[test]
fn one_turn_and_its_events() {
    let (_folder, hub) = hub();
    let output = hub.run(&["chat", "write a haiku"]);
    let (said, beside) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{beside}");
    assert_eq!(beside.matches("No model is configured: an offline").count(), 1, "said plainly, and once: {beside}");
    assert!(
        beside.contains("* write /projects/demo/hello.md") && beside.contains("+ /projects/demo/hello.md v2"),
        "{beside}"
    );
    assert!(beside.contains("[3/3] 3. Find it again: done") && beside.contains("tokens in"), "{beside}");
    assert!(!said.contains('\x1b') && !beside.contains('\x1b'), "no colours in a pipe");

    let chats = hub.json(0, &["chats", "--json"]);
    let chat = chats[0]["chats"][0]["chat_id"].as_str().unwrap().to_owned();
    assert!(beside.contains(&chat), "{beside}");

    // A second turn of the same chat, as JSON, then all of it once more from the log.
    let events = hub.json(0, &["chat", "--json", "--continue", "again"]);
    assert_eq!(events[0]["event"], "accepted");
    assert_eq!(events[0]["data"]["chat_id"], *chat);
    assert_eq!(events.last().unwrap()["event"], "done");
    let turn = &events[0]["data"]["turn_id"];
    assert_eq!(&events.last().unwrap()["data"]["turn_id"], turn);

    let mut tail = hub.command(&["tail", "--json", "--after", "0", &chat]).stdout(Stdio::piped()).spawn().unwrap();
    let mut ends = 0;
    let mut last = 0;
    for line in BufReader::new(tail.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let number = event["id"].as_u64().unwrap();
        assert!(number > last, "{number} after {last}");
        last = number;
        ends += usize::from(event["event"] == "done");
        if ends == 2 {
            break;
        }
    }
    tail.kill().unwrap();
    tail.wait().unwrap();

    let unknown = "019bf537-f228-7cd3-aa1c-3da8af302e12";
    for args in [&["tail", unknown][..], &["stop", unknown], &["chat", "--once", "--chat", unknown, "x"]] {
        assert_eq!(hub.run(args).status.code(), Some(3), "{args:?}");
    }
}

#[test]
fn questions_are_answered_from_standard_input_or_left_open() {
    let (_folder, hub) = hub();
    let output = hub.run_with_input(&["chat", "ask me"], b"nonsense is allowed here\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("? Which colour should the demo have?\n    1) green\n    2) blue"));
    assert!(text(&output.stdout).contains("Your answer was: nonsense is allowed here"));

    let output = hub.run(&["chat", "ask me"]);
    assert_eq!(output.status.code(), Some(8), "no terminal is there: {}", text(&output.stderr));
    let chat = hub.json(0, &["chats", "--json", "-n", "1"])[0]["chats"][0].clone();
    assert_eq!(chat["status"], "suspended");
    let chat = chat["chat_id"].as_str().unwrap();
    assert!(text(&output.stderr).contains(&format!("buildscale chat --chat {chat}")));

    // Later, as that hint says: the question is asked again, and its button is chosen by number.
    let output = hub.run_with_input(&["chat", "--chat", chat], b"3\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Your answer was: red"), "{}", text(&output.stdout));

    // Messages come one per line, each when the turn before has ended; the second one's question takes the third line.
    let output = hub.run_with_input(&["chat"], b"hello\nask me\n2\n");
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        said.find("Your answer was: blue").is_some_and(|at| at > 40),
        "behind the answer to the first line: {said}"
    );
}

#[test]
fn a_turn_is_stopped_by_the_command_and_by_ctrl_c() {
    let (_folder, hub) = hub();
    for by_signal in [false, true] {
        let mut child = hub.command(&["chat", "--json", "count slowly"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut events = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            event
        });
        let chat = events.next().unwrap()["data"]["chat_id"].as_str().unwrap().to_owned();
        assert!(events.any(|event| event["event"] == "chunk"), "it streams");
        if by_signal {
            let process = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &process]).status().unwrap().success());
        } else {
            assert_eq!(hub.run(&["stop", &chat]).status.code(), Some(0));
        }
        let last = events.last().unwrap();
        assert_eq!(last["event"], "stopped");
        assert_eq!(last["data"]["reason"], "user_cancelled");
        assert_eq!(child.wait().unwrap().code(), Some(6));
    }
}

#[test]
fn a_killed_hub_is_waited_for_and_each_event_is_shown_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut hub = Hub::start(folder.path(), ANYWHERE, &[]);
    let args = ["chat", "--json", "--once", "--", "write a haiku"];
    let mut child = hub.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut events = Vec::<Value>::new();
    let mut killed = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        events.push(serde_json::from_str(&line.unwrap()).unwrap());
        if !killed && events.last().unwrap()["event"] == "file_updated" {
            killed = true;
            hub.kill();
            hub = Hub::start(folder.path(), &hub.address.clone(), &[]);
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(killed);
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["id"].as_u64()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each once and in order: {numbers:?}");
    assert_eq!(events.iter().filter(|event| event["event"] == "done").count(), 1);
    assert_eq!(hub.json(0, &["files", "history", "/projects/demo/hello.md", "--json"])[0]["versions"][0]["v"], 2);
}

#[test]
fn a_file_of_any_length_is_put_in_one_version() {
    let (_folder, hub) = hub();
    // A text, bytes, one longer than a JSON body, and one that goes by an upload's address.
    for (name, content) in [
        ("text.md", b"one\n".to_vec()),
        ("bytes", vec![0xff, 0, 0x80]),
        ("long", vec![b'x'; 3_000_000]),
        ("longer", vec![b'y'; 5_000_000]),
    ] {
        let path = format!("/projects/{name}");
        let put = hub.run_with_input(&["files", "put", "-", &path], &content);
        assert_eq!(text(&put.stdout), format!("wrote {path} v1\n"), "{}", text(&put.stderr));
        let history = hub.json(0, &["files", "history", &path, "--json"]).remove(0);
        let sizes: Vec<_> =
            history["versions"].as_array().unwrap().iter().map(|version| version["size"].clone()).collect();
        assert_eq!(sizes, [content.len()], "{name} has no empty version before it");
    }
    // Its precondition is about the path: a version that must be there, or nothing.
    let put = |version: &str| {
        let args = ["files", "put", "-", "/projects/new.md", "--if-version", version];
        hub.run_with_input(&args, b"one\n").status.code()
    };
    assert_eq!([put("2"), put("0"), put("0"), put("1")], [Some(4), Some(0), Some(4), Some(0)]);
}

#[test]
fn files_by_path() {
    let (folder, hub) = hub();
    let local = folder.path().join("notes.md");
    std::fs::write(&local, "one\n").unwrap();
    let local = local.to_str().unwrap();
    let check = |args: &[&str], input: &[u8], code: i32, expected: &str| {
        let output = hub.run_with_input(args, input);
        let (said, beside) = (text(&output.stdout), text(&output.stderr));
        assert_eq!((output.status.code(), said.as_str()), (Some(code), expected), "{args:?}: {beside}");
    };
    check(&["files", "ls"], b"", 3, ""); // no workspace yet
    check(&["files", "put", local, "/projects/"], b"", 0, "wrote /projects/notes.md v1\n");
    check(&["files", "put", "-", "projects/notes.md"], b"two\n", 0, "wrote /projects/notes.md v2\n");
    check(&["files", "put", "-", "/projects/notes.md", "--if-version", "1"], b"three\n", 4, "");
    check(&["files", "put", "-", "/projects/notes.md", "--if-version", "0"], b"three\n", 4, "");
    check(
        &["files", "put", "-", "/projects/notes.md", "--if-version", "2"],
        b"three\n",
        0,
        "wrote /projects/notes.md v3\n",
    );
    check(&["files", "cat", "/projects/notes.md"], b"", 0, "three\n");
    check(&["files", "cat", "/projects/notes.md", "--version", "1"], b"", 0, "one\n");
    check(&["files", "restore", "/projects/notes.md", "--version", "1"], b"", 0, "restored /projects/notes.md v4\n");
    check(&["files", "ls", "/projects"], b"", 0, "notes.md\n");
    check(&["files", "mv", "/projects/notes.md", "/projects/kept.md"], b"", 0, "moved to /projects/kept.md v4\n");
    check(&["files", "cat", "/projects/notes.md"], b"", 3, "");
    assert_eq!(hub.run(&["files", "rm", "/projects/kept.md"]).status.code(), Some(0));
    check(&["files", "ls", "/projects"], b"", 0, "");
    assert!(text(&hub.run(&["files", "ls", "--trash"]).stdout).ends_with("  /projects/kept.md\n"));
    check(&["files", "restore", "/projects/kept.md"], b"", 0, "restored /projects/kept.md v4\n");
    check(&["files", "restore", "/projects/kept.md"], b"", 3, "");
    check(&["files", "cat", "/../etc/passwd"], b"", 2, "");

    let history = hub.json(0, &["files", "history", "/projects/kept.md", "--json"]);
    let versions = history[0]["versions"].as_array().unwrap();
    assert_eq!(versions.iter().map(|version| version["v"].as_u64().unwrap()).collect::<Vec<_>>(), [4, 3, 2, 1]);

    // Bytes that are no text, and more of them than fit into JSON.
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    check(&["files", "put", "-", "/data/bytes"], &bytes, 0, "wrote /data/bytes v1\n");
    assert_eq!(hub.run(&["files", "cat", "/data/bytes"]).stdout, bytes);
    let shown = hub.json(0, &["files", "cat", "/projects/kept.md", "--json"]);
    assert_eq!(shown[0]["content"], "one\n");
}

#[test]
fn a_large_file_there_and_back() {
    let (folder, hub) = hub();
    let local = folder.path().join("large.bin");
    let content = testkit::content(0..34 << 20, 0);
    std::fs::write(&local, &content).unwrap();
    let put = hub.run(&["files", "put", local.to_str().unwrap(), "/data/"]);
    assert_eq!(text(&put.stdout), "wrote /data/large.bin v1\n", "{}", text(&put.stderr));
    assert_eq!(text(&put.stderr), "", "no progress where no terminal is");
    assert!(hub.run(&["files", "cat", "/data/large.bin"]).stdout == content);
    std::fs::write(&local, "short").unwrap();
    assert_eq!(
        text(&hub.run(&["files", "put", local.to_str().unwrap(), "/data/"]).stdout),
        "wrote /data/large.bin v2\n"
    );
    assert!(hub.run(&["files", "cat", "/data/large.bin", "--version", "1"]).stdout == content);
    let input = hub.run_with_input(&["files", "put", "-", "/data/input"], content.get(..(32 << 20) + 1).unwrap());
    assert_eq!(input.status.code(), Some(2), "its digest is sent before it");
    assert!(text(&input.stderr).contains("write it to a file"), "{}", text(&input.stderr));
}

#[test]
fn workspaces_by_name() {
    let (_folder, hub) = hub();
    let made = hub.run(&["workspaces", "create", "Research"]);
    let id = text(&made.stdout).trim().to_owned();
    assert_eq!(hub.json(0, &["workspaces", "--json"])[0]["workspaces"][0]["workspace_id"], *id);
    for name in ["Research", &id] {
        assert_eq!(hub.run(&["chats", "-w", name]).status.code(), Some(0), "{name}");
    }
    assert_eq!(hub.run(&["chats", "-w", "Nobody's"]).status.code(), Some(3));
    hub.run(&["workspaces", "create", "Research"]);
    let two = hub.run(&["chats", "-w", "Research"]);
    assert_eq!(two.status.code(), Some(2), "two have the name: {}", text(&two.stderr));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let (_folder, hub) = hub();
    let mut child =
        hub.command(&["chat", "--json", "count slowly"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!text(&output.stderr).contains("error"), "{}", text(&output.stderr));
}
