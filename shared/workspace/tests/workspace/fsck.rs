//! The check finds damage in each store by its place, and repairs what can be repaired.

use crate::{
    common::{path, person},
    real::{Real, fill, long},
};
use buildscale_workspace::{Expect, FsckFault, FsckPart, Link, Mark, Relations, Workspaces};
use domain::{Principal, WorkspaceId};
use embedded::LocalBlobs;
use ports::{Key, Query, SystemClock, Write};
use std::{fs, sync::Arc};
use testkit::fakes::RecordingTable;
use uuid::Uuid;

/// Another byte in the middle.
fn flip(at: &std::path::Path) {
    let mut content = fs::read(at).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(at, content).unwrap();
}

#[tokio::test]
async fn a_sound_workspace_has_no_faults_and_is_counted() {
    let (real, workspace) = Real::new().await;
    // A new workspace has files of its own.
    let (_, new) = real.check(false).await;
    fill(&workspace).await;
    let before = real.disk();
    let (faults, checked) = real.check(false).await;
    assert_eq!(faults, []);
    let more = (checked.workspaces, checked.files - new.files, checked.versions - new.versions);
    assert_eq!(more, (1, 4, 6), "{checked:?}");
    assert_eq!(checked.contents - new.contents, 6, "each content once");
    assert!(checked.mirrored > 12, "{checked:?}");
    assert!(real.disk() == before);
}

#[tokio::test]
async fn a_mirror_that_is_not_there_at_all_is_no_fault_and_a_repair_makes_it() {
    let (real, workspace) = Real::new().await;
    fill(&workspace).await;
    fs::remove_dir_all(real.latest("/")).unwrap();
    let (faults, checked) = real.check(false).await;
    assert_eq!((faults, checked.without_mirror, checked.mirrored), (vec![], 1, 0));
    let made = real.told(true).await;
    assert!(made.contains(&"file_missing /projects/demo/notes.md v3 repaired".to_owned()), "{made:?}");
    let (faults, checked) = real.check(false).await;
    assert_eq!((faults, checked.without_mirror), (vec![], 0));
}

#[tokio::test]
async fn each_deletion_that_broke_off_is_told_of() {
    let (real, _) = Real::new().await;
    let note = |n: u128| {
        let key = Key::new("workspaces/deleted", WorkspaceId(Uuid::from_u128(n)).to_string());
        Write::put(key, "{}", ports::Expect::Any)
    };
    let notes: Vec<Write> = (1..=600).map(note).collect();
    for some in notes.chunks(50) {
        real.table.commit(some.to_vec()).await.unwrap();
    }
    let (faults, _) = real.check(false).await;
    assert_eq!(faults.iter().filter(|fault| fault.code == "remains").count(), 600);
}

#[tokio::test]
async fn lost_folders_come_back_in_one_walk_through_all_nodes() {
    const FOLDERS: usize = 20;
    let (real, workspace) = Real::new().await;
    for n in 0..FOLDERS {
        let at = path(&format!("/projects/f{n:02}/a.txt"));
        workspace.write(&at, "a", Expect::Absent, &person()).await.unwrap();
    }
    let projects = workspace.stat(&path("/projects")).await.unwrap().file_id;
    for n in 0..FOLDERS {
        real.forget(format!("{}/dir/{projects}", real.id), format!("f{n:02}")).await;
    }
    let (table, files) = (Arc::new(RecordingTable::new(real.table.clone())), real.root.path().join("workspaces"));
    let all = Workspaces::new(table.clone(), Arc::new(LocalBlobs::new(&files)), Arc::new(SystemClock), files);
    let mut told = Vec::new();
    all.fsck(true, &mut |fault: &FsckFault| told.push((fault.code, fault.repaired))).await.unwrap();
    assert_eq!(told.iter().filter(|told| **told == ("entry_missing", true)).count(), FOLDERS, "{told:?}");
    let nodes = Key::new(format!("{}/node", real.id), "");
    let walks = table.take_reads().into_iter().filter(|read| *read == nodes).count();
    assert!(walks <= 4, "the first page of the nodes was read {walks} times");
}

#[tokio::test]
async fn a_flipped_byte_of_the_archive_is_found_and_repaired_from_latest() {
    let (real, workspace) = Real::new().await;
    fill(&workspace).await;
    flip(&real.content(long("now ").as_bytes()));
    let before = real.disk();
    assert_eq!(real.told(false).await, ["content_damaged /projects/demo/current.md v1"]);
    assert!(real.disk() == before, "a check writes nothing");
    assert_eq!(real.told(true).await, ["content_damaged /projects/demo/current.md v1 repaired"]);
    assert_eq!(real.told(false).await, [""; 0]);
    assert_eq!(fs::read(real.content(long("now ").as_bytes())).unwrap(), long("now ").as_bytes());
}

#[tokio::test]
async fn a_content_that_is_gone_is_named_with_its_version_until_it_comes_back() {
    let (real, workspace) = Real::new().await;
    let file = fill(&workspace).await;
    let at = real.content(long("two ").as_bytes());
    let kept = fs::read(&at).unwrap();
    fs::remove_file(&at).unwrap();
    for repair in [false, true] {
        assert_eq!(real.told(repair).await, ["content_missing /projects/demo/notes.md v2"]);
    }
    assert_eq!(real.all.damaged(10).await.unwrap().len(), 1, "the hub knows of it, too");
    fs::write(&at, kept).unwrap();
    assert_eq!(real.told(true).await, [""; 0]);
    assert_eq!(real.all.damaged(10).await.unwrap(), []);
    assert_eq!(workspace.version(file, 2).await.unwrap().1, long("two "));
}

#[tokio::test]
async fn a_damaged_text_of_the_table_is_found_and_repaired_from_latest() {
    let (real, workspace) = Real::new().await;
    fill(&workspace).await;
    let digest = domain::Sha256::of(b"three").to_string();
    let altered = Write::put(Key::new(format!("{}/text", real.id), digest), "\"thrEe\"", ports::Expect::Present);
    real.table.commit(vec![altered]).await.unwrap();
    assert_eq!(real.told(false).await, ["content_damaged /projects/demo/notes.md v3"]);
    assert_eq!(real.told(true).await, ["content_damaged /projects/demo/notes.md v3 repaired"]);
    assert_eq!(real.told(false).await, [""; 0]);
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_made_again_and_ends_no_check() {
    let (real, workspace) = Real::new().await;
    let notes = fill(&workspace).await;
    let folder = workspace.stat(&path("/projects/demo")).await.unwrap().file_id;
    let projects = workspace.stat(&path("/projects")).await.unwrap().file_id;
    for (folder, name) in [(folder, "notes.md"), (projects, "demo")] {
        let key = Key::new(format!("{}/dir/{folder}", real.id), name);
        let garbled = Write::put(key, "{broken", ports::Expect::Present);
        real.table.commit(vec![garbled]).await.unwrap();
    }
    flip(&real.content(long("now ").as_bytes()));
    let told = real.told(false).await;
    assert!(told.contains(&"entry_unreadable /projects/demo".to_owned()), "{told:?}");
    let mut told = real.told(true).await;
    told.retain(|fault| !fault.ends_with("repaired"));
    assert_eq!(told, [""; 0]);
    assert_eq!(real.told(false).await, [""; 0]);
    let again = real.open(real.id).await;
    assert_eq!(again.stat(&path("/projects/demo/notes.md")).await.unwrap().file_id, notes);
}

#[tokio::test]
async fn tags_and_links_that_cannot_be_read_are_made_again() {
    let (real, workspace) = Real::new().await;
    let notes = fill(&workspace).await;
    workspace.mark(notes, Mark::Tag(vec!["mine".into(), "draft".into()]), &person()).await.unwrap();
    let linked = workspace
        .write(&path("/projects/demo/links.md"), "see [the notes](notes.md)", Expect::Any, &person())
        .await
        .unwrap();
    for (part, file) in [("marks", notes), ("mentions", linked.file_id)] {
        let garbled =
            Write::put(Key::new(format!("{}/{part}", real.id), file.to_string()), "{", ports::Expect::Present);
        real.table.commit(vec![garbled]).await.unwrap();
    }
    let faults = ["marks_unreadable /projects/demo/notes.md", "mentions_unreadable /projects/demo/links.md"];
    assert_eq!(real.told(false).await, faults);
    assert_eq!(real.told(true).await, faults.map(|fault| format!("{fault} repaired")));
    assert_eq!(real.told(false).await, [""; 0]);
    assert_eq!(workspace.relations(notes).await.unwrap().tags, ["draft", "mine"]);
    let links = workspace.relations(linked.file_id).await.unwrap().links;
    assert_eq!(links.iter().map(|link| link.file.as_ref().unwrap().file_id).collect::<Vec<_>>(), [notes]);
}

#[tokio::test]
async fn links_by_people_come_back_from_the_records_of_changes_and_older_ones_are_told_by_name() {
    let (real, workspace) = Real::new().await;
    let notes = fill(&workspace).await;
    let id = async |at: &str| workspace.stat(&path(at)).await.unwrap().file_id;
    let (current, raw, empty) =
        (id("/projects/demo/current.md").await, id("/data/raw").await, id("/projects/empty").await);
    for mark in [
        Mark::Tag(vec!["mine".into()]),
        Mark::Link(current, "answers".into()),
        Mark::Link(raw, "implements".into()),
        Mark::Link(empty, "about".into()),
        Mark::Link(current, "quotes".into()),
        Mark::Unlink(raw, "implements".into()),
    ] {
        workspace.mark(notes, mark, &person()).await.unwrap();
    }
    let kept = |relations: Relations| {
        let of = |link: &Link| (link.kind.clone(), link.file.as_ref().unwrap().file_id, link.by.clone());
        (relations.tags, relations.links.iter().map(of).collect::<Vec<_>>())
    };
    let (tags, mut links) = kept(workspace.relations(notes).await.unwrap());
    assert_eq!(links.len(), 3, "{links:?}");
    // One record is gone, as after 30 days.
    let partition = format!("{}/changes", real.id);
    let records = real.table.query(&Query::all(&partition, 1000)).await.unwrap().items;
    let old = records.iter().find(|item| item.body.contains("\"about\"")).unwrap();
    real.forget(partition, old.key.sk.clone()).await;
    let torn = Write::put(Key::new(format!("{}/marks", real.id), notes.to_string()), "{", ports::Expect::Present);
    real.table.commit(vec![torn]).await.unwrap();

    let faults = ["marks_unreadable /projects/demo/notes.md", "link_lost /projects/demo/notes.md"];
    assert_eq!(real.told(false).await, faults);
    let (told, _) = real.check(true).await;
    let repaired: Vec<_> = told.iter().map(|fault| (fault.code, fault.repaired)).collect();
    assert_eq!(repaired, [("marks_unreadable", true), ("link_lost", false)]);
    assert!(told[1].message.contains("a link of the file to /projects/empty may be lost"), "{told:?}");
    assert_eq!(real.told(false).await, [""; 0]);
    links.retain(|(kind, ..)| kind != "about");
    assert_eq!(kept(workspace.relations(notes).await.unwrap()), (tags, links));
    let backlinks = workspace.relations(current).await.unwrap().backlinks;
    assert_eq!(backlinks.iter().map(|link| link.kind.as_str()).collect::<Vec<_>>(), ["answers", "quotes"]);
}

#[tokio::test]
async fn latest_is_put_right_where_files_are_altered_gone_or_strange() {
    let (real, workspace) = Real::new().await;
    fill(&workspace).await;
    flip(&real.latest("/projects/demo/current.md"));
    fs::remove_file(real.latest("/projects/demo/notes.md")).unwrap();
    fs::remove_dir(real.latest("/projects/empty")).unwrap();
    fs::write(real.latest("/projects/stray.md"), "not ours").unwrap();
    std::os::unix::fs::symlink("/etc", real.latest("/data/link")).unwrap();
    let expected = [
        "file_altered /projects/demo/current.md v1",
        "file_missing /projects/demo/notes.md v3",
        "folder_missing /projects/empty",
        "stray /data/link",
        "stray /projects/stray.md",
    ];
    let sorted = |mut told: Vec<String>| {
        told.sort();
        told
    };
    assert_eq!(sorted(real.told(false).await), expected);
    let repaired = expected.map(|fault| format!("{fault} repaired"));
    assert_eq!(sorted(real.told(true).await), repaired);
    assert_eq!(real.told(false).await, [""; 0]);
    assert_eq!(fs::read_to_string(real.latest("/projects/demo/notes.md")).unwrap(), "three");
    assert!(fs::metadata("/etc").is_ok_and(|etc| etc.is_dir()), "links are not followed");
}

#[tokio::test]
async fn each_of_entry_node_and_version_is_made_again_from_the_other_two() {
    let (real, workspace) = Real::new().await;
    let file = fill(&workspace).await;
    let at = path("/projects/demo/notes.md");
    let before = workspace.stat(&at).await.unwrap();
    let folder = workspace.stat(&path("/projects/demo")).await.unwrap().file_id;
    let partition = |name: &str| format!("{}/{name}", real.id);

    real.forget(partition("node"), file.to_string()).await;
    assert_eq!(real.told(false).await, ["node_missing /projects/demo/notes.md"]);
    assert_eq!(real.told(true).await, ["node_missing /projects/demo/notes.md repaired"]);

    real.forget(partition(&format!("versions/{file}")), "0000000003").await;
    assert_eq!(real.told(false).await, ["version_missing /projects/demo/notes.md v3"]);
    assert_eq!(real.told(true).await, ["version_missing /projects/demo/notes.md v3 repaired"]);

    real.forget(partition(&format!("dir/{folder}")), "notes.md").await;
    let told = real.told(false).await;
    assert!(told.contains(&"entry_missing /projects/demo/notes.md".to_owned()), "{told:?}");
    let told = real.told(true).await;
    assert!(told.contains(&"entry_missing /projects/demo/notes.md repaired".to_owned()), "{told:?}");

    assert_eq!(real.told(false).await, [""; 0]);
    assert_eq!(workspace.stat(&at).await.unwrap(), before);
    assert_eq!(workspace.read(&at, None).await.unwrap().bytes, "three");
}

#[tokio::test]
async fn a_folder_whose_entry_is_lost_comes_back_with_all_that_is_in_it() {
    let (real, workspace) = Real::new().await;
    fill(&workspace).await;
    let projects = workspace.stat(&path("/projects")).await.unwrap().file_id;
    real.forget(format!("{}/dir/{projects}", real.id), "demo").await;
    let told = real.told(true).await;
    assert!(told.contains(&"entry_missing /projects/demo repaired".to_owned()), "{told:?}");
    assert!(told.iter().all(|fault| fault.ends_with("repaired")), "{told:?}");
    assert_eq!(real.told(false).await, [""; 0]);
    assert_eq!(workspace.read(&path("/projects/demo/notes.md"), None).await.unwrap().bytes, "three");
}

#[tokio::test]
async fn a_version_in_the_middle_that_is_lost_is_told_and_stays_lost() {
    let (real, workspace) = Real::new().await;
    let file = fill(&workspace).await;
    real.forget(format!("{}/versions/{file}", real.id), "0000000002").await;
    for repair in [false, true] {
        assert_eq!(real.told(repair).await, ["version_missing /projects/demo/notes.md v2"]);
    }
}

#[tokio::test]
async fn remains_of_a_broken_off_import_or_deletion_are_removed() {
    let (real, _workspace) = Real::new().await;
    let rest = WorkspaceId(Uuid::now_v7());
    real.all.create(rest, "rest", &Principal::local()).await.unwrap();
    let other = real.open(rest).await;
    other.write(&path("/a.md"), long("rest "), Expect::Absent, &person()).await.unwrap();
    let note = Write::put(Key::new("workspaces/deleted", rest.to_string()), "{}", ports::Expect::Absent);
    let record = Write::delete(Key::new("workspaces", rest.to_string()), ports::Expect::Present);
    real.table.commit(vec![note, record]).await.unwrap();
    let (faults, _) = real.check(false).await;
    assert_eq!((faults.len(), faults[0].part, faults[0].code), (1, FsckPart::Index, "remains"));
    assert_eq!(real.told(true).await, ["remains  repaired"]);
    assert_eq!(real.told(false).await, [""; 0]);
    assert_eq!(real.names(&format!("{rest}/node")).await, [""; 0]);
    assert!(!real.root.path().join("workspaces").join(rest.to_string()).exists());
}
