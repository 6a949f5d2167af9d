//! Archives of workspaces on the command line.

use crate::support::{hub, text};
use std::fs;

#[test]
fn a_workspace_goes_out_as_a_file_and_comes_back_with_its_history() {
    let (folder, hub) = hub();
    for content in ["first", "second"] {
        let put = hub.run_with_input(&["files", "put", "-", "/projects/a.md"], content);
        assert!(put.status.success(), "{}", text(&put.stderr));
    }
    let archive = folder.path().join("out.tar");
    let file = archive.to_str().unwrap();
    let out = hub.run(&["export", "default", file]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(!folder.path().join("out.tar.part").exists());
    let made = hub.json(0, &["import", file, "--name", "copy", "--json"]);
    assert_eq!(made[0]["name"], "copy");
    let history = hub.json(0, &["files", "-w", "copy", "history", "/projects/a.md", "--json"]);
    assert_eq!(history[0]["versions"].as_array().map(Vec::len), Some(2), "{history:?}");
    assert_eq!(text(&hub.run(&["files", "-w", "copy", "cat", "/projects/a.md"]).stdout), "second");
    let git = hub.run(&["export", "copy", "-", "--git"]);
    assert!(git.stdout.starts_with(b"feature done\n") && git.stdout.ends_with(b"done\n"));

    let mut broken = fs::read(&archive).unwrap();
    broken.truncate(broken.len() / 2);
    fs::write(&archive, broken).unwrap();
    let refused = hub.run(&["import", file, "--name", "half"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("nothing was imported"), "{}", text(&refused.stderr));
    assert!(!text(&hub.run(&["workspaces"]).stdout).contains("half"));
}

#[test]
fn a_history_of_git_becomes_a_workspace() {
    let (_folder, hub) = hub();
    let stream = "blob\nmark :1\ndata 3\none\nblob\nmark :2\ndata 3\ntwo\ncommit refs/heads/main\nmark :3\n\
        committer Ada <ada@example.org> 1700000000 +0000\ndata 0\nM 100644 :1 a.md\nM 120000 :1 link\n\n\
        commit refs/heads/main\nmark :4\ncommitter Ada <ada@example.org> 1700000001 +0000\ndata 0\nfrom :3\nM 100644 :2 a.md\n";
    let arguments = ["import", "-", "--git", "--folder", "/projects/site", "--name", "site"];
    let made = hub.run_with_input(&arguments, stream);
    let told = text(&made.stdout);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(told.contains("(site): 1 file, 2 versions\nleft out: link\n"), "{told}");
    let history = hub.json(0, &["files", "-w", "site", "history", "/projects/site/a.md", "--json"]);
    assert_eq!(history[0]["versions"].as_array().map(Vec::len), Some(2), "{history:?}");
    let refused = hub.run_with_input(&["import", "-", "--git", "--name", "other"], "no stream of Git\n");
    assert!(text(&refused.stderr).contains("git fast-export"), "{}", text(&refused.stderr));
    let without = hub.run_with_input(&["import", "-", "--folder", "/projects/x"], stream);
    assert!(!without.status.success(), "a folder is for repositories: {}", text(&without.stdout));
}
