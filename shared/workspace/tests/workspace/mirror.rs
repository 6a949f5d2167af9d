//! The mirror on a real disk: its temporary files, its links, and the errors that it passes on.

use crate::common::{World, path};
use buildscale_workspace::mirror::Mirror;
use domain::FilePath;
use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::{MetadataExt, PermissionsExt},
};
use tempfile::TempDir;
use uuid::Uuid;

fn mirror() -> (Mirror, TempDir) {
    let home = TempDir::new().unwrap();
    let mirror = Mirror::new(home.path().into());
    mirror.lay_out().unwrap();
    (mirror, home)
}

#[test]
fn a_stand_in_that_cannot_be_made_leaves_nothing_behind() {
    let (mirror, home) = mirror();
    // No file is so long.
    assert!(mirror.stand_in(&path("/data/a"), u64::MAX, Uuid::from_u128(1)).is_err());
    assert_eq!(fs::read_dir(home.path().join("tmp")).unwrap().count(), 0);
    mirror.stand_in(&path("/data/a"), 7, Uuid::from_u128(1)).unwrap();
    assert_eq!(fs::metadata(mirror.latest().join("data/a")).unwrap().len(), 7);
    assert_eq!(fs::read_dir(home.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn a_link_tells_that_there_can_be_none_from_an_error() {
    let (mirror, home) = mirror();
    mirror.write(&path("/data/a"), b"a", Uuid::from_u128(1)).unwrap();
    let (free, taken) = (home.path().join("tmp/free"), home.path().join("tmp/taken"));
    fs::write(&taken, "").unwrap();
    assert!(!mirror.link(&path("/data/none"), &free).unwrap());
    assert!(!mirror.link(&path("/none/at/all"), &free).unwrap());
    assert_eq!(mirror.link(&path("/data/a"), &taken).unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert!(mirror.link(&path("/data/a"), &free).unwrap());
    assert_eq!(fs::metadata(&free).unwrap().nlink(), 2);
}

#[test]
fn a_file_or_a_link_has_no_names() {
    let (mirror, _home) = mirror();
    mirror.write(&path("/data/a"), b"a", Uuid::from_u128(1)).unwrap();
    std::os::unix::fs::symlink("/", mirror.latest().join("data/link")).unwrap();
    for at in ["/data/a", "/data/link", "/data/a/below", "/none"] {
        assert_eq!(mirror.names(&path(at)).unwrap_err().kind(), ErrorKind::NotFound, "{at}");
    }
    assert_eq!(mirror.names(&FilePath::root()).unwrap(), ["data"]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_listed_is_an_error_of_the_repair() {
    let (world, workspace) = World::new().await;
    workspace.mkdir(&path("/data/locked"), &crate::common::person()).await.unwrap();
    drop(workspace);
    let locked = world.on_disk("/data/locked");
    fs::write(locked.join("planted"), "").unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    let is_refused = fs::read_dir(&locked).is_err();
    fs::remove_file(world.home().join("mark")).ok();
    let repaired = world.workspaces().repair_all().await;
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
    // The superuser may list every folder.
    assert_eq!(repaired.is_err(), is_refused, "{repaired:?}");
    world.workspaces().repair_all().await.unwrap();
    assert!(!locked.join("planted").exists());
}
