//! `glob`, `find`, `grep`.

use crate::common::{Hands, has};
use domain::{Code, FilePath, Principal};
use serde_json::json;
use workspace::{Expect, Writer};

async fn with_files() -> Hands {
    let hands = Hands::agent().await;
    for (path, content) in [
        ("/projects/app/src/main.rs", "fn main() {\n    let Needle = 1;\n}\n"),
        ("/projects/app/src/lib.rs", "// nothing\n"),
        ("/projects/app/.hidden/needle.txt", "needle one\nb\nc\nd\nneedle two\n"),
        ("/projects/app/.gitignore", "target\n"),
        ("/projects/app/target/out.txt", "needle in target\n"),
        ("/data/b.in", "needle\0needle"),
    ] {
        hands.put(path, content).await;
    }
    hands
}

#[tokio::test]
async fn glob_finds_by_path_below_path_and_name() {
    let mut hands = with_files().await;
    for (args, wanted) in [
        (json!({ "pattern": "*.rs" }), "/projects/app/src/lib.rs\n/projects/app/src/main.rs"),
        (
            json!({ "pattern": "src/*.rs", "path": "/projects/app" }),
            "/projects/app/src/lib.rs\n/projects/app/src/main.rs",
        ),
        (json!({ "pattern": "src/*.rs" }), "nothing matches"),
        (json!({ "pattern": "/data/**" }), "/data/b.in"),
        (json!({ "pattern": "**/*.txt" }), "/projects/app/.hidden/needle.txt\n/projects/app/target/out.txt"),
        (json!({ "pattern": "sr?" }), "/projects/app/src/"),
    ] {
        assert_eq!(hands.ok("glob", &args.to_string()).await, wanted, "{args}");
    }
    let capped = hands.call("glob", r#"{"pattern": "*.rs", "limit": 1}"#).await;
    assert!(capped.truncated);
    has(&capped.output, &["[1 of 2 paths;"]);
    assert_eq!(hands.refused("glob", r#"{"pattern": "a[" }"#).await.0, Code::InvalidArgument);
    assert_eq!(hands.refused("glob", r#"{"pattern": "*", "path": "/nope"}"#).await.0, Code::NotFound);
}

#[tokio::test]
async fn a_folder_that_the_disk_does_not_give_is_named() {
    let mut hands = with_files().await;
    // The index takes paths of 4,096 bytes; with the path of the workspace before it, the system refuses this one.
    let deep = format!("/data{}", format!("/{}", "d".repeat(252)).repeat(16));
    hands.put(&format!("{deep}/needle.txt"), "needle").await;
    let told = format!("[not searched, as the disk of the server did not give it: {deep}]");
    for (tool, args) in [("glob", r#"{"pattern": "*.txt"}"#), ("grep", r#"{"pattern": "needle"}"#)] {
        let found = hands.call(tool, args).await;
        assert!(found.success);
        has(&found.output, &["/projects/app/.hidden/needle.txt", &told]);
        assert_eq!(found.result["not_searched"], json!([deep]), "{tool}");
    }
    let found = hands.call("glob", r#"{"pattern": "*", "path": "/projects"}"#).await;
    assert_eq!(found.result.get("not_searched"), None);
}

#[tokio::test]
async fn find_takes_name_type_size_and_time() {
    let mut hands = with_files().await;
    for (args, wanted) in [
        (json!({ "name": "*.txt", "path": "/projects" }), vec!["needle.txt", "out.txt"]),
        (json!({ "name": "src", "type": "folder" }), vec!["/projects/app/src/"]),
        (json!({ "min_size": 30, "path": "/projects", "type": "file" }), vec!["main.rs"]),
        (json!({ "max_size": 7, "path": "/projects" }), vec![".gitignore"]),
    ] {
        let output = hands.ok("find", &args.to_string()).await;
        assert_eq!(output.lines().count(), wanted.len(), "{args}: {output}");
        has(&output, &wanted);
    }
    assert_eq!(hands.ok("find", r#"{"modified_after": "2030-01-01T00:00:00Z"}"#).await, "nothing matches");
    has(&hands.ok("find", r#"{"modified_after": "2020-01-01T00:00:00Z", "limit": 1}"#).await, &["[1 of "]);
    assert_eq!(hands.refused("find", r#"{"modified_before": "yesterday"}"#).await.0, Code::InvalidArgument);
    let never = r#"{"modified_after": "2020-01-02T00:00:00Z", "modified_before": "2020-01-01T00:00:00Z"}"#;
    let (code, output) = hands.refused("find", never).await;
    assert_eq!(code, Code::InvalidArgument);
    has(&output, &["modified_before is later than modified_after"]);
}

#[tokio::test]
async fn grep_shows_lines_context_files_and_counts_of_everything_but_binaries() {
    let mut hands = with_files().await;
    let output = hands.ok("grep", r#"{"pattern": "needle"}"#).await;
    assert_eq!(
        output,
        "/projects/app/.hidden/needle.txt\n1: needle one\n5: needle two\n\n\
         /projects/app/target/out.txt\n1: needle in target\n[3 matching lines in 2 files]"
    );
    for (args, parts) in [
        (json!({ "pattern": "needle", "ignore_case": true, "glob": "*.rs" }), vec!["main.rs\n2:     let Needle = 1;"]),
        (
            json!({ "pattern": "n.edle (one|two)", "context": 1 }),
            vec!["1: needle one\n2- b\n--\n4- d\n5: needle two\n"],
        ),
        (json!({ "pattern": "main() {", "literal": true }), vec!["1: fn main() {"]),
        (json!({ "pattern": "needle", "mode": "files" }), vec!["needle.txt\n/projects/app/target/out.txt\n[2 files]"]),
        (json!({ "pattern": "needle", "mode": "count" }), vec!["needle.txt: 2\n/projects/app/target/out.txt: 1\n"]),
        (json!({ "pattern": "needle", "path": "/projects/app/target/out.txt" }), vec!["[1 matching line in 1 file]"]),
        (json!({ "pattern": "absent" }), vec!["nothing matches"]),
        (json!({ "pattern": "absent", "mode": "count" }), vec!["nothing matches"]),
    ] {
        has(&hands.ok("grep", &args.to_string()).await, &parts);
    }
    let (code, output) = hands.refused("grep", r#"{"pattern": "main("}"#).await;
    assert_eq!(code, Code::InvalidArgument);
    has(&output, &["set literal to true"]);
    assert_eq!(hands.refused("grep", r#"{"pattern": "a", "path": "/nope"}"#).await.0, Code::NotFound);
}

#[tokio::test]
async fn grep_caps_a_file_the_whole_and_each_line() {
    let mut hands = Hands::agent().await;
    hands.put("/data/many", "needle\n".repeat(300)).await;
    hands.put("/data/wide", format!("{}needle", "w".repeat(2000))).await;
    let outcome = hands.call("grep", r#"{"pattern": "needle", "limit": 5}"#).await;
    assert!(outcome.truncated);
    has(&outcome.output, &["[5 of 301 matching lines in 2 files;"]);
    assert_eq!(outcome.result["matches"].as_array().unwrap().len(), 5);
    let outcome = hands.call("grep", r#"{"pattern": "needle", "limit": 2000}"#).await;
    has(&outcome.output, &["[100 more in this file]", "more in this line]", "[201 of 301"]);
}

#[cfg(unix)]
#[tokio::test]
async fn searches_follow_no_links() {
    let mut hands = with_files().await;
    let outside = tempfile::TempDir::new().unwrap();
    std::fs::write(outside.path().join("secret"), "needle secret").unwrap();
    let latest = hands.workspace.latest();
    std::os::unix::fs::symlink(outside.path(), latest.join("data/link")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), latest.join("data/secret")).unwrap();
    std::fs::remove_dir_all(latest.join("projects/app/target")).unwrap();
    std::os::unix::fs::symlink(outside.path(), latest.join("projects/app/target")).unwrap();
    for path in ["/", "/data", "/projects/app"] {
        let output = hands.ok("grep", &json!({ "pattern": "needle", "path": path }).to_string()).await;
        assert!(!output.contains("secret"), "{output}");
        assert!(!hands.ok("glob", &json!({ "pattern": "sec*", "path": path }).to_string()).await.contains("secret"));
    }
    let inside = json!({ "pattern": "needle", "path": "/projects/app/target" }).to_string();
    assert_eq!(hands.refused("grep", &inside).await.0, Code::NotFound);
}

/// Tools that only walk files answer the same over a folder as over the workspace whose folder it is.
#[tokio::test]
async fn a_search_of_the_folder_alone_answers_the_same() {
    let mut hands = with_files().await;
    let latest = hands.workspace.latest();
    for (tool, args) in [
        ("grep", json!({ "pattern": "needle" })),
        ("grep", json!({ "pattern": "needle", "path": "/projects", "mode": "count", "ignore_case": true })),
        ("grep", json!({ "pattern": "needle", "context": 2, "limit": 1, "glob": null })),
        ("grep", json!({ "pattern": "needle", "path": "/projects/app/target/out.txt", "mode": "files" })),
        ("grep", json!({ "pattern": "main(" })),
        ("glob", json!({ "pattern": "**/*.txt" })),
        ("glob", json!({ "pattern": "a[" })),
        ("glob", json!({ "pattern": "*.rs", "path": "/projects/app", "limit": 1 })),
    ] {
        let args = args.to_string();
        let here = hands.call(tool, &args).await;
        let there = buildscale_tools::search_folder(&latest, tool, &args).await;
        assert_eq!(there, here, "{tool} {args}");
        let told: buildscale_tools::CallOutcome =
            serde_json::from_str(&serde_json::to_string(&there).unwrap()).unwrap();
        assert_eq!(told, there);
    }
    let nowhere = buildscale_tools::search_folder(&latest, "glob", r#"{"pattern": "*", "path": "/nope"}"#).await;
    assert_eq!(nowhere.error.unwrap().code, Code::NotFound);
    // The caller has checked the arguments; nonsense is refused all the same.
    let refused = [
        ("find", r#"{"path": "/data"}"#),
        ("read", r#"{"path": "/data"}"#),
        ("nothing", "{}"),
        ("grep", "{}"),
        ("grep", r#"{"pattern": "a", "no": 1}"#),
        ("glob", ""),
    ];
    for (tool, args) in refused {
        assert!(!buildscale_tools::search_folder(&latest, tool, args).await.success, "{tool} {args}");
    }
}

/// A machine with an empty disk finds the files of others, also after moves and removals.
#[tokio::test]
async fn searches_on_a_cold_disk_find_everything() {
    let mut warm = with_files().await;
    let mut cold = warm.elsewhere().await;
    for round in 0..2 {
        for (tool, args) in [("grep", json!({ "pattern": "needle" })), ("glob", json!({ "pattern": "*" }))] {
            let args = args.to_string();
            assert_eq!(cold.ok(tool, &args).await, warm.ok(tool, &args).await, "{tool}");
        }
        if round == 0 {
            warm.ok("mv", r#"{"from": "/projects/app/target", "to": "/projects/moved"}"#).await;
            warm.ok("rm", r#"{"path": "/projects/app/src"}"#).await;
            warm.put("/projects/app/target/new.txt", "needle 3\n").await;
        }
    }
}

/// Somebody puts a file into `latest/` by hand: no tool knows it, so no search shows it.
#[tokio::test]
async fn searches_show_no_file_that_the_workspace_has_not_got() {
    let mut hands = with_files().await;
    let latest = hands.workspace.latest();
    std::fs::write(latest.join("projects/app/by-hand.txt"), "needle by hand\n").unwrap();
    std::fs::create_dir(latest.join("projects/by-hand")).unwrap();
    for mode in ["content", "files", "count"] {
        let outcome = hands.call("grep", &json!({ "pattern": "needle", "mode": mode }).to_string()).await;
        assert!(!outcome.output.contains("by-hand") && !outcome.result.to_string().contains("by-hand"), "{mode}");
        has(&outcome.output, &["2 files]"]);
    }
    assert_eq!(hands.ok("glob", r#"{"pattern": "by-hand*"}"#).await, "nothing matches");
    // The same with so many matches that the workspace is listed.
    for number in 0..600 {
        hands.put(&format!("/data/many/{number}.txt"), "haystack\n").await;
    }
    std::fs::write(latest.join("data/many/by-hand.txt"), "haystack\n").unwrap();
    let outcome = hands.call("grep", r#"{"pattern": "haystack", "mode": "files", "limit": 2000}"#).await;
    assert_eq!(outcome.result["total"], 600);
}

#[tokio::test]
async fn patterns_are_bounded_before_a_library_sees_them() {
    let mut hands = with_files().await;
    let braces = |depth: usize| format!("{}b{}", "{a,".repeat(depth), "}".repeat(depth));
    let (deep, fits) = (braces(20_000), braces(8));
    for (tool, args) in [
        ("glob", json!({ "pattern": deep })),
        ("glob", json!({ "pattern": braces(300) })),
        ("glob", json!({ "pattern": braces(9) })),
        ("glob", json!({ "pattern": "a".repeat(1025) })),
        ("find", json!({ "name": deep })),
        ("grep", json!({ "pattern": "needle", "glob": deep })),
        ("grep", json!({ "pattern": "a{100000}" })),
        ("grep", json!({ "pattern": r"\pL{5000}" })),
        ("grep", json!({ "pattern": "(".repeat(1000) + "a" + &")".repeat(1000) })),
        ("grep", json!({ "pattern": "a".repeat(5000) })),
    ] {
        let (code, message) = hands.refused(tool, &args.to_string()).await;
        assert_eq!(code, Code::InvalidArgument, "{tool}: {message}");
        assert!(message.len() < 12_000, "{tool}: {} bytes of message", message.len());
    }
    assert_eq!(hands.ok("glob", &json!({ "pattern": fits }).to_string()).await, "nothing matches");
}

#[tokio::test]
async fn globs_are_understood_as_shells_write_them() {
    let mut hands = with_files().await;
    for (pattern, path, wanted) in [
        ("src/", "/projects/app", "/projects/app/src/"),
        ("/projects/app/*/", "/", "/projects/app/.hidden/\n/projects/app/src/\n/projects/app/target/"),
        ("./src/*.rs", "/projects/app", "/projects/app/src/lib.rs\n/projects/app/src/main.rs"),
        ("./*.rs", "/projects/app", "nothing matches"),
        ("main.rs/", "/", "nothing matches"),
    ] {
        let args = json!({ "pattern": pattern, "path": path }).to_string();
        assert_eq!(hands.ok("glob", &args).await, wanted, "{pattern}");
    }
    let found = hands.ok("find", r#"{"path": "/projects/app", "name": "src/"}"#).await;
    assert_eq!(found, "/projects/app/src/");
    for (tool, args, hint) in [
        ("glob", json!({ "pattern": "!*.rs" }), "excludes nothing"),
        ("grep", json!({ "pattern": "a", "glob": "!*.rs" }), "excludes nothing"),
        ("grep", json!({ "pattern": "a", "glob": "src/" }), "/**"),
        ("grep", json!({ "pattern": "a\nb" }), "search for one of the lines"),
    ] {
        let (code, output) = hands.refused(tool, &args.to_string()).await;
        assert_eq!(code, Code::InvalidArgument, "{args}");
        has(&output, &[hint]);
    }
}

#[tokio::test]
async fn a_page_without_entries_is_not_an_empty_folder() {
    let mut hands = Hands::agent().await;
    hands.put("/projects/a.pdf", "a").await;
    let path = |text: &str| FilePath::parse(text).unwrap();
    let of = hands.workspace.stat(&path("/projects/a.pdf")).await.unwrap().file_id;
    let converter = Writer { derived_from: Some(of), ..Writer::new(Principal::System) };
    hands.workspace.write(&path("/projects/a.pdf.md"), "# A", Expect::Any, &converter).await.unwrap();
    hands.put("/projects/b.md", "b").await;
    let first = hands.call("ls", r#"{"path": "/projects", "limit": 1}"#).await;
    let cursor = first.result["next_cursor"].as_str().unwrap().to_owned();
    let args = json!({ "path": "/projects", "limit": 1, "cursor": cursor }).to_string();
    has(&hands.ok("ls", &args).await, &["nothing to show on this page\n[more: "]);
}

#[tokio::test]
async fn a_damaged_entry_ends_no_search_and_is_told() {
    let mut hands = with_files().await;
    for name in ["one", "two"] {
        hands.put(&format!("/data/{name}.log"), "haystack\n").await;
    }
    hands.damage("/data", "one.log").await;
    let told = "[not searched, as the index of the workspace is damaged there: /data/one.log]";
    // One path after the other is looked up, and with so many matches the workspace is listed.
    for many in [0, 600] {
        for number in 0..many {
            hands.put(&format!("/data/many/{number}.log"), "haystack\n").await;
        }
        for (tool, args) in [
            ("grep", r#"{"pattern": "haystack", "mode": "files", "limit": 2000}"#),
            ("glob", r#"{"pattern": "*.log", "limit": 2}"#),
        ] {
            let outcome = hands.call(tool, args).await;
            assert!(outcome.success && outcome.truncated, "{tool}: {}", outcome.output);
            assert_eq!(outcome.result["total"], many + 1, "{tool}");
            has(&outcome.output, &[told]);
        }
        let found = hands.call("find", r#"{"name": "*.log"}"#).await;
        assert!(found.success && found.truncated, "{}", found.output);
        assert_eq!((&found.result["total"], &found.result["complete"]), (&json!(many + 1), &json!(false)));
        has(&found.output, &["[1 entry left out, as the index of the workspace is damaged there]"]);
    }
}
