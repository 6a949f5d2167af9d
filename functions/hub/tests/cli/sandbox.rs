//! `buildscale sandbox`: a person looks at the sandbox of a workspace, runs a command there, and ends it.

use crate::support::{hub, text};

#[test]
fn a_person_runs_a_command_beside_the_files_and_ends_the_sandbox() {
    let (folder, hub) = hub();
    let state = |args: &[&str]| hub.json(0, args)[0]["state"].as_str().unwrap().to_owned();
    assert!(hub.run(&["workspaces", "create", "demo"]).status.success());
    let notes = folder.path().join("notes.md");
    std::fs::write(&notes, "the words of the notes\n").unwrap();
    assert!(hub.run(&["files", "put", notes.to_str().unwrap(), "/projects/"]).status.success());

    let ran = hub.run(&["sandbox", "run", "--", "cat", "projects/notes.md"]);
    assert_eq!((ran.status.code(), text(&ran.stdout).as_str()), (Some(0), "the words of the notes\n"), "{ran:?}");
    assert_eq!(text(&ran.stderr), "");

    // Its output and its end are told apart; its own code is for programs.
    let line = "cat; pwd | sed 's|.*/||'; echo oops >&2; exit 3";
    let args = ["sandbox", "run", "--stdin", "--folder", "projects", "--timeout", "30s", "--", "sh", "-c", line];
    let ran = hub.run_with_input(&args, b"from outside\n");
    assert_eq!((ran.status.code(), text(&ran.stdout).as_str()), (Some(1), "from outside\nprojects\n"), "{ran:?}");
    let beside = text(&ran.stderr);
    assert!(beside.starts_with("oops\n") && beside.contains("the command ended with exit code 3"), "{beside}");
    let as_json = hub.json(1, &["sandbox", "run", "--json", "--", "sh", "-c", line]);
    assert_eq!((&as_json[0]["exit_code"], &as_json[0]["stderr"]), (&3.into(), &"oops\n".into()));
    assert_eq!(hub.run(&["sandbox", "run", "--folder", "/nowhere", "--", "true"]).status.code(), Some(3));
    assert_eq!(hub.run(&["sandbox", "run", "--", "no-such-program"]).status.code(), Some(2));

    // Files that it leaves become files of the workspace.
    let line = "mkdir $TMPDIR/out; wc -l <projects/notes.md >$TMPDIR/out/lines; echo done";
    let keep = ["--keep", "out=/projects/out", "--keep", "absent=projects/absent"];
    let ran = hub.run(&[&["sandbox", "run"][..], &keep[..], &["--", "sh", "-c", line][..]].concat());
    assert_eq!((ran.status.code(), text(&ran.stdout).as_str()), (Some(0), "done\n"), "{ran:?}");
    let beside = text(&ran.stderr);
    assert!(beside.contains("kept out/lines as /projects/out/lines (version 1)"), "{beside}");
    assert!(beside.contains("not kept: absent: it is not there"), "{beside}");
    assert_eq!(text(&hub.run(&["sandbox", "run", "--", "cat", "projects/out/lines"]).stdout).trim(), "1");
    assert_eq!(hub.run(&["sandbox", "run", "--keep", "out", "--", "true"]).status.code(), Some(2));

    assert_eq!(state(&["sandbox", "start", "--json"]), state(&["sandbox", "--json"]));
    assert!(text(&hub.run(&["-w", "demo", "sandbox", "status"]).stdout).starts_with("ready"));
    assert_eq!(text(&hub.run(&["sandbox", "stop"]).stdout), "stopped\n");
    let after = text(&hub.run(&["sandbox"]).stdout);
    assert!(!after.is_empty() && !after.starts_with("failed"), "{after}");
}
