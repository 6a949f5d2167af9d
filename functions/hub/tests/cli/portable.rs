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
