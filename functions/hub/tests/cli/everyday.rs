//! Everyday commands: answers in pipes, short ids, folders, usage.

use crate::support::{command, hub, text};
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

#[test]
fn a_pipe_gets_the_answer_alone() {
    let (_folder, hub) = hub();
    let asked = hub.run_with_input(&["chat", "ask me"], b"blue\n");
    let (answer, beside) = (text(&asked.stdout), text(&asked.stderr));
    assert!(answer.starts_with("Thank you. Your answer was: blue\n\nI wrote it to"), "{answer}");
    // Its words on the way are no answer.
    assert!(beside.contains("I have one question before I go on.") && beside.contains("* ask_user"), "{beside}");

    let output = hub.run(&["chat", "write a haiku"]);
    let (answer, beside) = (text(&output.stdout), text(&output.stderr));
    assert!(!answer.contains("* write") && !answer.contains("tokens in") && !answer.trim().is_empty(), "{answer}");
    assert!(beside.contains("* write /projects/demo/hello.md") && beside.contains("tokens in"), "{beside}");
    assert!(!beside.contains(", hash "), "people read no hashes: {beside}");

    let quiet = hub.run(&["chat", "--quiet", "write a haiku"]);
    assert_eq!(text(&quiet.stderr), "");
    assert!(text(&quiet.stdout).lines().count() == answer.lines().count(), "{}", text(&quiet.stdout));
    let all = text(&hub.run(&["chat", "--events", "write a haiku"]).stdout);
    assert!(all.contains("* write /projects/demo/hello.md") && all.contains("tokens in"), "{all}");
    // A message comes from standard input where none is typed.
    let piped = hub.run_with_input(&["chat", "--once"], b"write a haiku\n");
    assert_eq!(text(&piped.stdout).lines().count(), answer.lines().count(), "{}", text(&piped.stderr));
}

#[test]
fn a_tail_of_an_idle_chat_says_how_to_see_the_past() {
    let (_folder, hub) = hub();
    assert!(hub.run(&["chat", "write a haiku"]).status.success());
    let mut tail = hub.command(&["tail", "-"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(tail.stderr.take().unwrap()).read_line(&mut line).unwrap();
    tail.kill().unwrap();
    tail.wait().unwrap();
    assert!(line.contains("no turn runs; --after 0 shows past events"), "{line}");
}

#[test]
fn a_message_without_a_word_is_refused() {
    let (_folder, hub) = hub();
    for empty in ["", " "] {
        let output = hub.run(&["chat", "--once", empty]);
        let why = text(&output.stderr);
        assert!(output.status.code() == Some(2) && why.contains("the message is empty"), "{why}");
    }
    assert_eq!(hub.json(0, &["workspaces", "--json"])[0]["workspaces"], serde_json::json!([]), "nothing was begun");
}

#[test]
fn a_look_at_flows_makes_no_workspace_and_a_run_does() {
    let (_folder, hub) = hub();
    for look in
        [&["flow"][..], &["flow", "show", "plan_and_execute"], &["flow", "check", "plan_and_execute"], &["permit"]]
    {
        let output = hub.run(look);
        let why = text(&output.stderr);
        assert!(output.status.code() == Some(3) && why.contains("there is no workspace yet"), "{look:?}: {why}");
    }
    assert_eq!(hub.json(0, &["workspaces", "--json"])[0]["workspaces"], serde_json::json!([]), "nothing was begun");
    hub.run(&["flow", "run", "nothing"]);
    assert_eq!(hub.json(0, &["workspaces", "--json"])[0]["workspaces"][0]["name"], "default");
}

#[test]
fn a_group_alone_prints_its_list() {
    let (_folder, hub) = hub();
    hub.run_with_input(&["files", "put", "-", "/projects/a.md"], "a");
    for (group, list) in [("flow", "list"), ("task", "list"), ("files", "ls"), ("key", "list"), ("member", "list")] {
        let (alone, listed) = (hub.run(&[group, "--json"]), hub.run(&[group, list, "--json"]));
        assert_eq!(alone.status.code(), listed.status.code(), "{group}: {}", text(&alone.stderr));
        // A refusal has the id of its request.
        if listed.status.success() {
            assert_eq!(text(&alone.stdout), text(&listed.stdout), "{group}");
        }
    }
}

#[test]
fn a_tail_ends_when_its_chat_is_deleted() {
    let (_folder, hub) = hub();
    assert!(hub.run(&["chat", "write a haiku"]).status.success());
    let mut tail = hub.command(&["tail", "--json", "-", "--after", "0"]);
    let mut tail = tail.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut told = BufReader::new(tail.stdout.take().unwrap());
    told.read_line(&mut String::new()).unwrap();
    let chats = hub.json(0, &["chats", "--json"]);
    let removed = hub.run(&["chats", "rm", chats[0]["chats"][0]["chat_id"].as_str().unwrap()]);
    assert!(removed.status.success(), "{}", text(&removed.stderr));
    std::io::copy(&mut told, &mut std::io::sink()).unwrap();
    assert_eq!(tail.wait().unwrap().code(), Some(3));
}

#[test]
fn the_usage_of_a_refusal_has_no_option_that_the_environment_sets() {
    let variables =
        [("BUILDSCALE_URL", "http://127.0.0.1:1"), ("BUILDSCALE_TOKEN", "x"), ("BUILDSCALE_WORKSPACE", "demo")];
    let output = command(&["search"]).envs(variables).output().unwrap();
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{why}");
    assert!(why.contains("\nUsage: buildscale search <QUERY>...\n"), "{why}");
}

#[test]
fn a_workspace_that_is_not_there_is_the_only_thing_told() {
    let (_folder, hub) = hub();
    for (args, told) in [
        (["-w", "nowhere"], "error: there is no workspace \"nowhere\""),
        (["--file", "/nowhere.md"], "error: there is no file or folder /nowhere.md"),
    ] {
        let output = hub.run(&[&["chat"], &args[..], &["hello"]].concat());
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{why}");
        assert!(why.starts_with(told), "{why}");
    }
    let none = text(&hub.run(&["member", "list"]).stderr);
    assert_eq!(none, "no members: a hub without accounts has none\n");
}

#[test]
fn chats_go_by_the_beginning_of_their_id_or_as_the_last_one() {
    let (folder, hub) = hub();
    assert!(hub.run(&["chat", "write a haiku"]).status.success());
    let id = hub.json(0, &["chats", "--json"])[0]["chats"][0]["chat_id"].as_str().unwrap().to_owned();
    for given in [id.as_str(), &id[..8], "-"] {
        let output = hub.run(&["tail", given, "--after", "0", "--until-idle"]);
        assert!(text(&output.stdout).contains("> write a haiku"), "{given}: {}", text(&output.stderr));
    }
    let unknown = if id.starts_with('0') { "1111" } else { "0000" };
    let missing = hub.run(&["tail", unknown]);
    assert_eq!(missing.status.code(), Some(3), "{}", text(&missing.stderr));
    // One that nothing runs in says so, and how its past is seen.
    let idle = hub.run(&["tail", "-", "--until-idle"]);
    assert_eq!(idle.status.code(), Some(0));

    let file = folder.path().join("chat.md");
    assert!(hub.run(&["chats", "export", "-", "-o", file.to_str().unwrap()]).status.success());
    assert!(std::fs::read_to_string(&file).unwrap().contains("write a haiku"));
    let exported = hub.json(0, &["chats", "export", "-", "--json"]);
    assert!(exported[0]["messages"].as_array().unwrap().len() > 2, "{exported:?}");
    assert_eq!(text(&hub.run(&["chats", "rm", &id[..8]]).stdout), "removed\n");
    assert_eq!(text(&hub.run(&["chats"]).stdout), "");
}

#[test]
fn workspaces_are_renamed_and_removed() {
    let (_folder, hub) = hub();
    let id = text(&hub.run(&["workspaces", "create", "Research"]).stdout).trim().to_owned();
    let near = hub.run(&["chats", "-w", "Reserach"]);
    assert!(text(&near.stderr).contains("did you mean \"Research\"?"), "{}", text(&near.stderr));
    for name in ["Research", "Archive"] {
        // The second time it has the name already, and is no namesake of its own.
        let renamed = hub.run(&["workspaces", "rename", name, "Archive"]);
        assert!(renamed.status.success() && !text(&renamed.stderr).contains("another"), "{}", text(&renamed.stderr));
    }
    assert!(text(&hub.run(&["workspaces"]).stdout).ends_with("  Archive\n"));
    assert_eq!(hub.run(&["workspaces", "rm", &id[..13]]).status.code(), Some(2), "no confirmation was given");
    // Of two with one name the ids are given to choose from, also as a narrow table cuts them.
    let other = text(&hub.run(&["workspaces", "create", "Archive"]).stdout).trim().to_owned();
    let both = hub.run(&["chats", "-w", "Archive"]);
    let why = text(&both.stderr);
    assert_eq!(both.status.code(), Some(2), "{why}");
    assert!(why.contains(&id) && why.contains(&other), "{why}");
    assert!(hub.run(&["workspaces", "rename", &other, "Drafts"]).status.success());
    let namesake = hub.run(&["workspaces", "rename", &other, "Archive"]);
    assert_eq!((namesake.status.success(), text(&namesake.stdout).as_str()), (true, "renamed\n"));
    assert!(
        text(&namesake.stderr).contains("another workspace has the name \"Archive\""),
        "{}",
        text(&namesake.stderr)
    );
    assert!(hub.run(&["workspaces", "rm", "--yes", &format!("{}…", &other[..30])]).status.success());
    let asked = hub.run_with_input(&["workspaces", "rm", &id], b"n\n");
    assert_eq!(asked.status.code(), Some(2));
    assert!(text(&asked.stderr).contains(&format!("Remove \"Archive\" ({id})")), "{}", text(&asked.stderr));
    assert!(hub.run_with_input(&["workspaces", "rm", "Archive"], b"y\n").status.success());
    assert_eq!(text(&hub.run(&["workspaces"]).stdout), "");
}

#[test]
fn options_may_follow_the_words_of_a_search() {
    let (folder, hub) = hub();
    let file = folder.path().join("a.md");
    std::fs::write(&file, "# Garden\n\na heliotrope grows\n").unwrap();
    assert!(hub.run(&["files", "put", file.to_str().unwrap(), "/projects/"]).status.success());
    for words in [&["heliotrope"][..], &["a", "heliotrope"], &["heliotrope -rose"]] {
        let answer = hub.json(0, &[&["search"], words, &["--json", "--path", "/projects"]].concat()).remove(0);
        assert_eq!((&answer["total"], &answer["pending"]), (&serde_json::json!(1), &serde_json::json!(0)), "{answer}");
        assert_eq!(answer["results"][0]["path"], "/projects/a.md");
    }
    let plain = text(&hub.run(&["search", "heliotrope"]).stdout);
    assert!(plain.starts_with("/projects/a.md:3-3  heliotrope in 1 passage"), "{plain}");
    let refused = hub.run(&["search", "heliotrope", "--mode", "semantic"]);
    assert!(
        !refused.status.success() && text(&refused.stderr).contains("no embedding model"),
        "{}",
        text(&refused.stderr)
    );
    let both = text(&hub.run(&["search", "heliotrope", "--mode", "hybrid"]).stderr);
    assert!(both.contains("words alone decided: no embedding model is configured"), "{both}");
}

#[test]
fn a_list_that_a_filter_empties_says_so() {
    let (_folder, hub) = hub();
    hub.run_with_input(&["files", "put", "-", "/projects/a.md"], "a");
    for words in [&["files", "changes", "/projects/b.md"][..], &["task", "list", "--phase", "paused"]] {
        let told = text(&hub.run(words).stderr);
        assert!(told.contains(" matches") && !told.contains("run one with"), "{words:?}: {told}");
    }
}

#[test]
fn folders_go_there_and_come_back() {
    let (folder, hub) = hub();
    let here = folder.path().join("site");
    std::fs::create_dir_all(here.join("docs")).unwrap();
    std::fs::write(here.join("index.md"), "one\n").unwrap();
    std::fs::write(here.join("docs/a.md"), "a\n").unwrap();
    std::fs::write(here.join(".env"), "SECRET=1\n").unwrap();
    let here = here.to_str().unwrap();
    let sync = |more: &[&str]| text(&hub.run(&[&["files", "sync", here, "/projects/site"], more].concat()).stdout);
    assert_eq!(sync(&["--dry-run"]), "would write /projects/site/docs/a.md\nwould write /projects/site/index.md\n");
    assert_eq!(sync(&[]), "wrote /projects/site/docs/a.md\nwrote /projects/site/index.md\n");
    assert_eq!(sync(&[]), "", "an equal file makes no version");
    assert_eq!(text(&hub.run(&["files", "sync", here]).stdout), "", "it has gone to the folder of its name");
    std::fs::write(format!("{here}/index.md"), "two\n").unwrap();
    std::fs::remove_file(format!("{here}/docs/a.md")).unwrap();
    assert_eq!(sync(&["--delete"]), "wrote /projects/site/index.md\nremoved /projects/site/docs/a.md\n");

    let diff = text(&hub.run(&["files", "diff", "/projects/site/index.md"]).stdout);
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    let differences =
        |more: &[&str]| text(&hub.run(&[&["files", "diff", "/projects/site", here], more].concat()).stdout);
    assert_eq!(differences(&[]), "");
    std::fs::write(format!("{here}/index.md"), "three\n").unwrap();
    std::fs::write(format!("{here}/new.md"), "new\n").unwrap();
    assert!(hub.run_with_input(&["files", "put", "-", "/projects/site/docs/b.md"], "b\n").status.success());
    let diff = differences(&[]);
    let header = format!("--- /projects/site/index.md\n+++ {here}/index.md\n");
    assert!(diff.contains(&header) && diff.contains("-two\n+three\n"), "{diff}");
    assert!(diff.contains("only in the workspace: /projects/site/docs/b.md\n"), "{diff}");
    assert!(diff.contains(&format!("only here: {here}/new.md\n")) && !diff.contains(".env"), "{diff}");
    let told: serde_json::Value = serde_json::from_str(&differences(&["--json"])).unwrap();
    let states: Vec<_> = told["files"].as_array().unwrap().iter().map(|file| file["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["only_there", "different", "only_here"]);
    let back = folder.path().join("back");
    let got = hub.run(&["files", "get", "/projects/site", back.to_str().unwrap()]);
    assert!(got.status.success(), "{}", text(&got.stderr));
    assert_eq!(std::fs::read_to_string(back.join("index.md")).unwrap(), "two\n");
    assert_eq!(text(&hub.run(&["files", "get", "/projects/site/index.md", "-"]).stdout), "two\n");
}

#[test]
fn a_folder_whose_names_have_letters_in_parts_goes_there_as_a_whole() {
    let (folder, hub) = hub();
    let here = folder.path().join("site");
    std::fs::create_dir_all(here.join("re\u{301}sume\u{301}s")).unwrap();
    std::fs::write(here.join("z.md"), "z\n").unwrap();
    let cafe = here.join("re\u{301}sume\u{301}s/cafe\u{301}.md");
    let sync = || hub.run(&["files", "sync", here.to_str().unwrap(), "--delete"]);
    std::fs::write(&cafe, "one\n").unwrap();
    assert_eq!(text(&sync().stdout), "wrote /projects/site/résumés/café.md\nwrote /projects/site/z.md\n");
    assert_eq!(text(&sync().stdout), "");
    let differences = hub.run(&["files", "diff", "/projects/site", here.to_str().unwrap()]);
    assert_eq!(text(&differences.stdout), "");
    // A disk that keeps them apart has two files for one name there: the first one goes.
    std::fs::write(here.join("z.md "), "other\n").unwrap();
    let synced = sync();
    assert!(synced.status.success() && synced.stdout.is_empty(), "{}", text(&synced.stdout));
    let told = text(&synced.stderr);
    assert!(told.contains("another file has its name in the workspace"), "{told}");
    let put = hub.run(&["files", "put", cafe.to_str().unwrap(), "/data/"]);
    assert_eq!(text(&put.stdout), "wrote /data/café.md v1\n");
}

#[test]
fn a_stop_of_an_idle_chat_says_so() {
    let (_folder, hub) = hub();
    assert!(hub.run(&["chat", "--once", "hello"]).status.success());
    let stopped = hub.run(&["stop", "-"]);
    assert_eq!((stopped.status.code(), text(&stopped.stdout).as_str()), (Some(0), "nothing is running\n"));
}

#[test]
fn models_are_named_whole_in_a_pipe() {
    let (_folder, hub) = hub();
    let listed = text(&hub.run(&["models"]).stdout);
    let all = hub.json(0, &["models", "--json"]);
    for model in all[0]["models"].as_array().unwrap() {
        let id = model["id"].as_str().unwrap();
        assert!(listed.lines().any(|line| line.split("  ").next() == Some(id)), "{id}: {listed}");
    }
    assert!(
        listed.lines().any(|line| line.starts_with("scripted/demo") && line.contains("  available, default  ")),
        "{listed}"
    );
}

#[test]
fn a_folder_comes_without_files_that_git_would_run() {
    let (folder, hub) = hub();
    for path in [
        "/projects/site/index.md",
        "/projects/site/.git/config",
        "/projects/site/lib/.GIT/hooks/x",
        "/projects/site/.gitignore",
    ] {
        assert!(hub.run_with_input(&["files", "put", "-", path], "x").status.success(), "{path}");
    }
    let back = folder.path().join("back");
    let got = hub.run(&["files", "get", "/projects/site", back.to_str().unwrap()]);
    assert!(got.status.success() && text(&got.stderr).contains("2 files in .git"), "{}", text(&got.stderr));
    let is_there = |path: &str| back.join(path).exists();
    assert!(is_there("index.md") && is_there(".gitignore") && !is_there(".git") && !is_there("lib"));
}

#[test]
fn usage_and_identity() {
    let (_folder, hub) = hub();
    assert!(hub.run(&["chat", "write a haiku"]).status.success());
    let used = hub.json(0, &["usage", "--json"]);
    assert_eq!(used[0]["total"]["turns"], 1);
    assert!(text(&hub.run(&["usage"]).stdout).starts_with("20"));
    let by_person = text(&hub.run(&["usage", "--by", "person"]).stdout);
    assert!(by_person.starts_with("operator"), "{by_person}");
    let status = hub.run(&["auth", "status"]);
    assert!(text(&status.stdout).contains("wants no token"), "{}", text(&status.stderr));
    assert!(text(&status.stdout).contains("owner"), "{}", text(&status.stdout));
}

#[test]
fn a_workspace_is_named_before_a_command_or_behind_it() {
    let (_folder, hub) = hub();
    for name in ["one", "two"] {
        assert!(hub.run(&["workspaces", "create", name]).status.success());
    }
    assert!(hub.run_with_input(&["-w", "two", "files", "put", "-", "/projects/a.md"], "x").status.success());
    let listed = |args: &[&str]| text(&hub.run(args).stdout);
    for args in [
        ["-w", "two", "files", "ls", "/projects"],
        ["files", "-w", "two", "ls", "/projects"],
        ["files", "ls", "/projects", "-w", "two"],
    ] {
        assert_eq!(listed(&args), "a.md\n", "{args:?}");
    }
    // It goes before the variable.
    let output = hub.command(&["-w", "two", "files", "ls", "/projects"]).env("BUILDSCALE_WORKSPACE", "one").output();
    assert_eq!(text(&output.unwrap().stdout), "a.md\n");
    for (args, why) in [
        (vec!["-w", "two", "files", "ls", "-w", "one"], "two workspaces are named"),
        (vec!["-w", "two", "models"], "this command has no workspace"),
        (vec!["-w", "two", "config", "show"], "this command has no workspace"),
    ] {
        let refused = hub.run(&args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(text(&refused.stderr).contains(why), "{}", text(&refused.stderr));
    }
    // The variable hides no conflict between two that are typed.
    let both = ["-w", "two", "files", "ls", "-w", "one"];
    let refused = hub.command(&both).env("BUILDSCALE_WORKSPACE", "one").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stdout));
}

#[test]
fn a_hub_is_named_before_a_command_or_behind_it_and_goes_before_the_variable() {
    let (_folder, hub) = hub();
    assert!(hub.run(&["workspaces", "create", "one"]).status.success());
    let nowhere = "http://127.0.0.1:1";
    let listed = |args: &[&str]| {
        let output = hub.command(args).env("BUILDSCALE_URL", nowhere).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let here = hub.address.as_str();
    for args in [
        ["--url", here, "--json", "chats", "list"],
        ["--url", here, "chats", "--json", "list"],
        ["chats", "list", "--json", "--url", here],
    ] {
        assert_eq!(listed(&args), "{\"chats\":[]}\n", "{args:?}");
    }
    // A default gives way as well.
    let output = hub.command(&["--url", here, "workspaces"]).env_remove("BUILDSCALE_URL").output().unwrap();
    assert!(text(&output.stdout).ends_with("  one\n"), "{}", text(&output.stderr));
    for (args, why) in [
        (vec!["--url", here, "chats", "--url", nowhere], "two hubs are named"),
        (vec!["--url", here, "config", "show"], "this command reaches no hub"),
        (vec!["--json", "completions", "bash"], "this command prints no JSON"),
    ] {
        let refused = hub.run(&args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(text(&refused.stderr).contains(why), "{}", text(&refused.stderr));
    }
}
