//! The check of a data folder: damage is named with its place and repaired, and a hub that runs keeps it off.

use crate::support::{command, hub, text};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A file of the archive, by its content.
fn blob(folder: &Path, workspace: &str, content: &str) -> PathBuf {
    let digest = domain::Sha256::of(content.as_bytes());
    folder.join("workspaces").join(embedded::place_of(workspace, digest))
}

#[test]
fn fsck_names_damage_with_its_place_repairs_it_and_keeps_off_a_running_hub() {
    let (folder, mut hub) = hub();
    let data = folder.path().to_str().unwrap().to_owned();
    let (kept, lost) = ("kept ".repeat(5_000), "lost ".repeat(5_000));
    for content in [&lost, &kept] {
        assert!(hub.run_with_input(&["files", "put", "-", "/projects/a.md"], content).status.success());
    }
    let workspaces = hub.json(0, &["workspaces", "--json"]);
    let workspace = workspaces[0]["workspaces"][0]["workspace_id"].as_str().unwrap().to_owned();
    let fsck = |more: &[&str]| {
        let mut fsck = command(&["fsck", "--data-dir", &data]);
        fsck.args(more).output().unwrap()
    };
    let busy = fsck(&[]);
    assert_eq!(busy.status.code(), Some(1));
    assert!(text(&busy.stderr).contains("in use by another process"), "{}", text(&busy.stderr));
    hub.kill();
    let clean = fsck(&[]);
    assert_eq!(clean.status.code(), Some(0), "{}", text(&clean.stdout));
    assert!(text(&clean.stdout).contains("no faults"), "{}", text(&clean.stdout));

    fs::write(blob(folder.path(), &workspace, &kept), kept.replace("kept", "kepd")).unwrap();
    fs::remove_file(blob(folder.path(), &workspace, &lost)).unwrap();
    let found = fsck(&[]);
    let told = text(&found.stdout);
    assert_eq!(found.status.code(), Some(1), "{told}");
    assert!(told.contains("archive /projects/a.md v1: ") && told.contains("archive /projects/a.md v2: "), "{told}");
    let repaired = fsck(&["--repair", "--json"]);
    assert_eq!(repaired.status.code(), Some(1), "one content has no good copy");
    let report: Value = serde_json::from_slice(&repaired.stdout).unwrap();
    assert_eq!((&report["checked"]["faults"], &report["checked"]["repaired"]), (&2.into(), &1.into()), "{report}");
    assert_eq!(report["sound"], false);
    fs::write(blob(folder.path(), &workspace, &lost), &lost).unwrap();
    assert_eq!(fsck(&["--repair"]).status.code(), Some(0));
    let none = command(&["fsck", "--data-dir", "/nowhere"]).output().unwrap();
    assert!(text(&none.stderr).contains("no data folder of a hub"), "{}", text(&none.stderr));
}
