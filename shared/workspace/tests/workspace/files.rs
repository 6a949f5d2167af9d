//! The guarantees of a workspace about its files.

use crate::common::{World, path, person, versions};
use buildscale_workspace::{Expect, FileKind, Op, Workspace, Workspaces, Writer};
use domain::{CallId, ChatId, Code, FileId, FilePath, Principal, Sha256, UserId};
use ports::{Key, Table, Write};
use std::sync::Arc;
use testkit::fakes::{FakeTable, Faults};
use uuid::Uuid;

fn agent() -> Principal {
    Principal::Agent { role: "assistant".into(), chat: ChatId(Uuid::now_v7()), user: UserId(Uuid::nil()) }
}

async fn text(workspace: &Workspace, at: &str) -> String {
    String::from_utf8(workspace.read(&path(at), None).await.unwrap().bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn a_new_workspace_has_its_taxonomy_in_the_index_and_on_disk() {
    let (world, workspace) = World::new().await;
    let home = format!("/users/{}", Uuid::nil());
    for folder in ["/system/skills", "/system/agents", "/chats", "/data", "/projects", &home] {
        assert_eq!(workspace.stat(&path(folder)).await.unwrap().kind, FileKind::Folder, "{folder}");
        assert!(world.on_disk(folder).is_dir(), "{folder}");
    }
    for part in ["latest", "archive", "trash"] {
        assert!(world.home().join(part).is_dir());
    }
    for skill in ["convert-a-table", "review-a-change", "write-a-plan", "write-a-report"] {
        let file = format!("/system/skills/{skill}/SKILL.md");
        assert_eq!(world.disk_text(&file).unwrap(), text(&workspace, &file).await);
        assert!(text(&workspace, &file).await.starts_with(&format!("---\nname: {skill}\n")));
    }
    let script = "/system/skills/convert-a-table/scripts/convert.awk";
    assert_eq!(world.disk_text(script).unwrap(), text(&workspace, script).await);
    let (infos, whole) = workspace.list_tree(&FilePath::root(), 100).await.unwrap();
    let names: Vec<_> = infos.iter().filter(|info| info.path.names().count() == 1).map(|info| &*info.name).collect();
    assert_eq!((names, whole), (vec!["chats", "data", "projects", "system", "users"], true));
}

#[tokio::test]
async fn workspaces_are_made_once_renamed_listed_and_deleted_without_a_trace() {
    let (world, workspace) = World::new().await;
    let all = world.all.clone();
    assert_eq!(all.create(world.id, "other", &Principal::local()).await.unwrap().name, "test");
    let stranger = Principal::User { id: UserId(Uuid::now_v7()) };
    assert_eq!(all.create(world.id, "other", &stranger).await.unwrap_err().code, Code::Conflict);
    assert_eq!(all.rename(world.id, " new ").await.unwrap().name, "new");
    assert_eq!(all.list(10, None).await.unwrap().workspaces, [all.get(world.id).await.unwrap()]);
    assert_eq!(all.rename(world.id, "").await.unwrap_err().code, Code::InvalidArgument);
    workspace.write(&path("/projects/a"), "a", Expect::Any, &person()).await.unwrap();
    workspace.rm(&path("/projects/a"), &person()).await.unwrap();
    let spaces = [world.id.to_string(), ports::kept_index_space(world.id)];
    ports::Blobs::put(&*world.blobs, &spaces[0], "a content".into()).await.unwrap();
    ports::Blobs::put(&*world.blobs, &spaces[1], "a copy of its index".into()).await.unwrap();
    assert!(spaces.iter().all(|space| !world.blobs.digests(space).is_empty()));
    all.delete(world.id).await.unwrap();
    assert!(spaces.iter().all(|space| world.blobs.digests(space).is_empty()));
    assert_eq!(
        all.open(world.id, buildscale_workspace::Access::platform("a test")).await.unwrap_err().code,
        Code::NotFound
    );
    assert_eq!(world.table.items(), []);
    assert!(!world.home().exists());
}

#[tokio::test]
async fn no_move_makes_a_path_that_nothing_could_be_written_at() {
    let (_world, workspace) = World::new().await;
    let deep = |top: &str, names: usize| path(&format!("/data/{top}{}", "/x".repeat(names)));
    workspace.write(&deep("a", 30), "deep", Expect::Any, &person()).await.unwrap();
    workspace.mkdir(&deep("b", 20), &person()).await.unwrap();
    let below = path(&format!("{}/a", deep("b", 20)));
    let refused = workspace.mv(&path("/data/a"), &below, &person()).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument, "{refused}");
    let long = "n".repeat(250);
    for number in 0..15 {
        let at = path(&format!("/data/long{}/{number}", format!("/{long}").repeat(number)));
        workspace.write(&at, "x", Expect::Any, &person()).await.unwrap();
    }
    workspace.mv(&path("/data/long"), &path(&format!("/data/{long}")), &person()).await.unwrap();
    let refused =
        workspace.mv(&path(&format!("/data/{long}")), &path(&format!("/data/b/{long}/{long}/{long}")), &person()).await;
    assert_eq!(refused.unwrap_err().code, Code::InvalidArgument);
    assert_eq!(text(&workspace, deep("a", 30).as_str()).await, "deep");
}

#[tokio::test]
async fn a_deletion_that_was_cut_off_is_finished_by_the_next_one() {
    let (world, workspace) = World::new().await;
    let all = world.all.clone();
    workspace.write(&path("/projects/a"), "a", Expect::Any, &person()).await.unwrap();
    // The first commit of a deletion, after which the process died.
    let id = world.id.to_string();
    let record = Write::delete(Key::new("workspaces", &id), ports::Expect::Any);
    let note = Write::put(Key::new("workspaces/deleted", &id), "{}", ports::Expect::Any);
    world.table.commit(vec![record, note]).await.unwrap();
    assert_eq!(
        all.open(world.id, buildscale_workspace::Access::platform("a test")).await.unwrap_err().code,
        Code::NotFound
    );
    all.delete(world.id).await.unwrap();
    assert_eq!(world.table.items(), []);
    assert!(!world.home().exists());
    assert_eq!(all.delete(world.id).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn equal_contents_of_a_workspace_are_kept_once() {
    let (world, workspace) = World::new().await;
    let space = world.id.to_string();
    let before = world.blobs.digests(&space).len();
    let large = vec![b'x'; 300_000];
    for name in ["/data/one", "/data/other"] {
        workspace.write(&path(name), large.clone(), Expect::Any, &person()).await.unwrap();
    }
    workspace.write(&path("/data/one"), vec![b'y'; 300_000], Expect::Any, &person()).await.unwrap();
    workspace.write(&path("/data/one"), large.clone(), Expect::Any, &person()).await.unwrap();
    assert_eq!(world.blobs.digests(&space).len() - before, 2);
}

#[tokio::test]
async fn a_deletion_that_was_cut_off_is_completed_by_itself() {
    let (world, workspace) = World::new().await;
    workspace.write(&path("/projects/a"), "a", Expect::Any, &person()).await.unwrap();
    let id = world.id.to_string();
    let began = domain::Timestamp::from_millis(1_000);
    let record = Write::delete(Key::new("workspaces", &id), ports::Expect::Any);
    let note = Write::put(Key::new("workspaces/deleted", &id), "{}", ports::Expect::Any)
        .indexed(Key::new("deletions", format!("{began}/{id}")));
    world.table.commit(vec![record, note]).await.unwrap();
    let complete = async |before: i64| {
        let before = domain::Timestamp::from_millis(before);
        world.all.complete_deletions(before, 5, None).await.unwrap()
    };
    assert_eq!(complete(1_000).await, (vec![], 0, None), "one that may be running is left alone");
    assert_eq!(complete(2_000).await, (vec![world.id], 0, None));
    assert_eq!(world.table.items(), []);
    assert!(!world.home().exists());
    assert_eq!(complete(2_000).await, (vec![], 0, None));
}

#[tokio::test]
async fn a_workspace_that_is_made_again_over_a_broken_off_deletion_has_nothing_of_it_and_stays() {
    let (world, workspace) = World::new().await;
    workspace.write(&path("/projects/a"), "a", Expect::Any, &person()).await.unwrap();
    let id = world.id.to_string();
    let note = || {
        let due = Key::new("deletions", format!("{}/{id}", domain::Timestamp::from_millis(1_000)));
        Write::put(Key::new("workspaces/deleted", &id), "{}", ports::Expect::Any).indexed(due)
    };
    let record = Write::delete(Key::new("workspaces", &id), ports::Expect::Any);
    let member = Key::new(format!("{id}/members"), "somebody");
    let membership = Write::put(member.clone(), "{}", ports::Expect::Any);
    world.table.commit(vec![record, note(), membership]).await.unwrap();

    world.all.create(world.id, "anew", &person().principal).await.unwrap();
    let anew = world.all.open(world.id, buildscale_workspace::Access::platform("a test")).await.unwrap();
    assert_eq!(anew.stat(&path("/projects/a")).await.unwrap_err().code, Code::NotFound);
    assert_eq!(world.table.get(&member).await.unwrap(), None, "no member of the earlier one is left");
    let complete = async || {
        let before = domain::Timestamp::from_millis(2_000);
        world.all.complete_deletions(before, 5, None).await.unwrap()
    };
    assert_eq!(complete().await, (vec![], 0, None));
    // A note beside a workspace, as earlier versions left it.
    world.table.commit(vec![note()]).await.unwrap();
    assert_eq!(complete().await, (vec![world.id], 0, None));
    assert_eq!(world.all.get(world.id).await.unwrap().name, "anew");
}

#[tokio::test]
async fn a_write_makes_a_version_and_the_folders_above_and_is_read_back_from_disk() {
    let (world, workspace) = World::new().await;
    let at = path("/projects/app/src/main.rs");
    let first = workspace.write(&at, "one\n", Expect::Absent, &person()).await.unwrap();
    assert_eq!(
        (first.op, first.v, first.size, first.author.as_str()),
        (Op::Written, 1, 4, &*person().principal.to_string())
    );
    let second = workspace.write(&at, "two\n", Expect::Version(1), &Writer::new(agent())).await.unwrap();
    assert_eq!((second.v, second.file_id, second.author.as_str()), (2, first.file_id, "agent:assistant"));
    assert_eq!(world.disk_text("/projects/app/src/main.rs").as_deref(), Some("two\n"));
    let read = workspace.read(&at, Some(1..99)).await.unwrap();
    assert_eq!((&read.bytes[..], read.info.v, read.info.sha256), (&b"wo\n"[..], 2, Some(Sha256::of(b"two\n"))));
    assert_eq!(workspace.by_id(first.file_id).await.unwrap(), read.info);

    let again = workspace.write(&at, "two\n", Expect::Any, &person()).await.unwrap();
    assert_eq!(again.v, 2, "the same content makes no version");
    assert_eq!(versions(&workspace, first.file_id).await, [2, 1]);
    assert_eq!(&workspace.version(first.file_id, 1).await.unwrap().1[..], b"one\n");
    let diff = workspace.diff(first.file_id, 1, 2).await.unwrap().unwrap();
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    let back = workspace.restore_version(first.file_id, 1, Expect::Any, &person()).await.unwrap();
    assert_eq!((back.v, text(&workspace, at.as_str()).await.as_str()), (3, "one\n"));
}

#[tokio::test]
async fn large_and_binary_contents_are_blobs_and_too_large_ones_are_refused() {
    let (world, workspace) = World::new().await;
    let large = vec![b'x'; 300_000];
    for (name, content) in [("/data/large", large), ("/data/binary", vec![0xff, 0, 1]), ("/data/empty", vec![])] {
        let change = workspace.write(&path(name), content.clone(), Expect::Any, &person()).await.unwrap();
        std::fs::remove_file(world.on_disk(name)).unwrap();
        assert_eq!(workspace.read(&path(name), None).await.unwrap().bytes, content, "{name}");
        assert_eq!(workspace.version(change.file_id, 1).await.unwrap().1, content, "{name}");
    }
    let huge = vec![0; buildscale_workspace::MAX_FILE + 1];
    let error = workspace.write(&path("/data/huge"), huge, Expect::Any, &person()).await.unwrap_err();
    assert_eq!(error.code, Code::PayloadTooLarge);
}

#[tokio::test]
async fn a_stale_write_is_refused_and_says_what_changed() {
    let (_world, workspace) = World::new().await;
    let at = path("/projects/notes.md");
    workspace.write(&at, "a\nb\nc\n", Expect::Any, &person()).await.unwrap();
    let seen = Sha256::of(b"a\nb\nc\n");
    workspace.write(&at, "a\nB\nc\n", Expect::Hash(seen), &person()).await.unwrap();
    for stale in [Expect::Hash(seen), Expect::Version(1)] {
        let error = workspace.write(&at, "mine", stale, &person()).await.unwrap_err();
        assert_eq!(error.code, Code::StaleVersion);
        assert!(error.message.contains("version 2"), "{error}");
        assert!(error.details["diff"].as_str().unwrap().contains("-b\n+B\n"));
        assert_eq!(error.details["current_hash"], Sha256::of(b"a\nB\nc\n").to_string());
    }
    let unknown = workspace.write(&at, "mine", Expect::Hash(Sha256::of(b"?")), &person()).await.unwrap_err();
    assert_eq!((unknown.code, unknown.details.contains_key("diff")), (Code::StaleVersion, false));
    assert_eq!(workspace.write(&at, "x", Expect::Absent, &person()).await.unwrap_err().code, Code::Conflict);
    workspace.rm(&at, &person()).await.unwrap();
    assert_eq!(workspace.write(&at, "x", Expect::Version(2), &person()).await.unwrap_err().code, Code::StaleVersion);
    assert_eq!(text(&workspace, "/system/skills/write-a-report/SKILL.md").await.lines().next(), Some("---"));
}

#[tokio::test]
async fn a_call_that_runs_again_does_nothing_and_answers_the_same() {
    let (_world, workspace) = World::new().await;
    let call = || Writer::in_call(agent(), CallId(Uuid::now_v7()));
    let at = path("/projects/a");
    let (one, two, three, four) = (call(), call(), call(), call());
    let written = workspace.write(&at, "1", Expect::Absent, &one).await.unwrap();
    workspace.write(&at, "2", Expect::Any, &person()).await.unwrap();
    assert_eq!(workspace.write(&at, "1", Expect::Absent, &one).await.unwrap(), written);
    assert_eq!(text(&workspace, "/projects/a").await, "2");
    assert_eq!(workspace.applied(&one).await.unwrap(), Some(written));

    let moved = workspace.mv(&at, &path("/projects/b"), &two).await.unwrap();
    assert_eq!(workspace.mv(&at, &path("/projects/b"), &two).await.unwrap(), moved);
    let removed = workspace.rm(&path("/projects/b"), &three).await.unwrap();
    assert_eq!(workspace.rm(&path("/projects/b"), &three).await.unwrap(), removed);
    let made = workspace.mkdir(&path("/projects/c/d"), &four).await.unwrap();
    assert_eq!(workspace.mkdir(&path("/projects/c/d"), &four).await.unwrap(), made);
    assert_eq!(workspace.stat(&path("/projects/c/d")).await.unwrap().file_id, made.file_id);
}

#[tokio::test]
async fn a_folder_moves_with_all_in_it_and_keeps_identities_and_versions() {
    let (world, workspace) = World::new().await;
    let file = workspace.write(&path("/projects/a/b/c.txt"), "1", Expect::Any, &person()).await.unwrap();
    workspace.write(&path("/projects/a/b/c.txt"), "2", Expect::Any, &person()).await.unwrap();
    let moved = workspace.mv(&path("/projects/a"), &path("/data/x/a2"), &person()).await.unwrap();
    assert_eq!((moved.op, moved.from, moved.path.as_str()), (Op::Moved, Some(path("/projects/a")), "/data/x/a2"));
    let info = workspace.by_id(file.file_id).await.unwrap();
    assert_eq!((info.path.as_str(), info.v), ("/data/x/a2/b/c.txt", 2));
    assert_eq!(world.disk_text("/data/x/a2/b/c.txt").as_deref(), Some("2"));
    assert!(!world.on_disk("/projects/a").exists());
    assert_eq!(workspace.stat(&path("/projects/a/b/c.txt")).await.unwrap_err().code, Code::NotFound);

    let into_itself = workspace.mv(&path("/data/x"), &path("/data/x/a2/x"), &person()).await.unwrap_err();
    assert_eq!(into_itself.code, Code::Conflict);
    let taken = workspace.mv(&path("/data/x"), &path("/projects"), &person()).await.unwrap_err();
    assert_eq!(taken.code, Code::Conflict);
    let through_a_file = workspace.write(&path("/data/x/a2/b/c.txt/d"), "", Expect::Any, &person()).await.unwrap_err();
    assert_eq!(through_a_file.code, Code::Conflict);
    let missing = workspace.mv(&path("/projects/nope"), &path("/projects/n"), &person()).await.unwrap_err();
    assert_eq!(missing.code, Code::NotFound);
}

async fn trashed(workspace: &Workspace) -> Vec<String> {
    let (mut paths, mut cursor) = (Vec::new(), None);
    loop {
        let page = workspace.trash(10, cursor).await.unwrap();
        paths.extend(page.files.into_iter().map(|file| file.info.path.to_string()));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return paths;
        }
    }
}

#[tokio::test]
async fn the_trash_keeps_gives_back_and_forgets() {
    let (world, workspace) = World::new().await;
    let file = workspace.write(&path("/projects/a/b.txt"), "1", Expect::Any, &person()).await.unwrap();
    let folder = workspace.stat(&path("/projects/a")).await.unwrap();
    workspace.rm(&path("/projects/a"), &person()).await.unwrap();
    assert!(world.home().join("trash").join(folder.file_id.to_string()).join("b.txt").is_file());
    assert!(!world.on_disk("/projects/a").exists());
    assert_eq!(workspace.by_id(file.file_id).await.unwrap_err().code, Code::NotFound);
    assert_eq!(trashed(&workspace).await, ["/projects/a"]);
    // A file that went to the trash with a folder comes back with that folder, and both refusals name the folder.
    let refusals = [workspace.by_id(file.file_id).await.err(), workspace.restore(file.file_id, &person()).await.err()];
    for refused in refusals.map(Option::unwrap) {
        let named = refused.details["folder_id"].as_str();
        assert_eq!((refused.code, named), (Code::NotFound, Some(&*folder.file_id.to_string())));
        assert!(refused.hint.is_some_and(|hint| hint.contains("with the folder /projects/a")));
    }

    workspace.write(&path("/projects/a"), "in the way", Expect::Any, &person()).await.unwrap();
    assert_eq!(workspace.restore(folder.file_id, &person()).await.unwrap_err().code, Code::Conflict);
    workspace.rm(&path("/projects/a"), &person()).await.unwrap();
    workspace.restore(folder.file_id, &person()).await.unwrap();
    assert_eq!(text(&workspace, "/projects/a/b.txt").await, "1");
    assert_eq!(world.disk_text("/projects/a/b.txt").as_deref(), Some("1"));

    workspace.rm(&path("/projects/a"), &person()).await.unwrap();
    workspace.purge(folder.file_id, &person()).await.unwrap();
    assert_eq!(workspace.restore(folder.file_id, &person()).await.unwrap_err().code, Code::NotFound);
    assert!(versions(&workspace, file.file_id).await.is_empty());
    assert_eq!(trashed(&workspace).await, ["/projects/a"], "the file that was in the way");
}

#[tokio::test]
async fn the_taxonomy_stays_and_only_the_chat_writes_its_file() {
    let (world, workspace) = World::new().await;
    let home = format!("/users/{}", Uuid::nil());
    for part in [&*home, "/", "/system", "/system/skills", "/system/agents", "/chats", "/data", "/users", "/projects"] {
        let removed = workspace.rm(&path(part), &person()).await.unwrap_err();
        assert!(matches!(removed.code, Code::Forbidden | Code::Unprocessable), "{part}: {removed}");
        assert!(workspace.mv(&path(part), &path("/data/elsewhere"), &person()).await.is_err(), "{part}");
    }
    let chat = path(&format!("/chats/{}.md", Uuid::now_v7()));
    let by_agent = workspace.write(&chat, "forged", Expect::Any, &Writer::new(agent())).await.unwrap_err();
    assert_eq!(by_agent.code, Code::Forbidden);
    let id = FileId(Uuid::now_v7());
    let system = Writer::new(Principal::System);
    workspace.create_projection(&chat, id, "head\n", &system).await.unwrap();
    workspace.create_projection(&chat, id, "again", &system).await.unwrap();
    let mut file = workspace.projection(&chat).unwrap();
    assert_eq!(file.append("line\n").await.unwrap(), 10);
    assert_eq!(file.tail(5).await.unwrap(), (10, "line\n".into()));
    file.truncate(7).await.unwrap();
    assert_eq!(text(&workspace, chat.as_str()).await, "head\nli");
    assert_eq!(workspace.stat(&chat).await.unwrap().size, 7);
    file.replace("new").await.unwrap();
    assert_eq!(world.disk_text(chat.as_str()).as_deref(), Some("new"));
    for by in [person(), Writer::new(agent())] {
        assert_eq!(workspace.write(&chat, "x", Expect::Any, &by).await.unwrap_err().code, Code::Forbidden);
    }
    for by in [person(), Writer::new(agent())] {
        assert_eq!(workspace.rm(&chat, &by).await.unwrap_err().code, Code::Forbidden);
    }
    workspace.rm(&chat, &Principal::System.into()).await.unwrap();
    assert_eq!(file.append("x").await.unwrap_err().code, Code::NotFound);
    workspace.restore(id, &person()).await.unwrap();
    assert_eq!(text(&workspace, chat.as_str()).await, "new");
}

#[tokio::test]
async fn a_link_in_latest_leads_nowhere() {
    let (world, workspace) = World::new().await;
    let outside = tempfile::TempDir::new().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    workspace.write(&path("/projects/a/f"), "mine", Expect::Any, &person()).await.unwrap();
    workspace.write(&path("/projects/g"), "mine", Expect::Any, &person()).await.unwrap();
    // A link in place of a folder, and one in place of a file.
    std::fs::remove_dir_all(world.on_disk("/projects/a")).unwrap();
    std::os::unix::fs::symlink(outside.path(), world.on_disk("/projects/a")).unwrap();
    std::fs::remove_file(world.on_disk("/projects/g")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), world.on_disk("/projects/g")).unwrap();

    assert_eq!(text(&workspace, "/projects/g").await, "mine");
    assert_eq!(text(&workspace, "/projects/a/f").await, "mine");
    std::fs::remove_dir_all(world.on_disk("/projects/a")).unwrap();
    std::os::unix::fs::symlink(outside.path(), world.on_disk("/projects/a")).unwrap();
    workspace.write(&path("/projects/a/secret"), "written", Expect::Any, &person()).await.unwrap();
    workspace.write(&path("/projects/g"), "written", Expect::Any, &person()).await.unwrap();
    workspace.rm(&path("/projects/a"), &person()).await.unwrap();
    assert_eq!(workspace.stat(&path("/projects/a/secret")).await.unwrap_err().code, Code::NotFound);
    assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert!(!world.on_disk("/projects/g").is_symlink());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_at_once_lose_nothing_and_flush_in_order() {
    let (world, workspace) = World::new().await;
    let writes = (0..64).map(|n| {
        let workspace = workspace.clone();
        tokio::spawn(async move {
            workspace.write(&path("/projects/one"), format!("{n}"), Expect::Any, &person()).await.unwrap();
            workspace.write(&path(&format!("/projects/new/{n}")), "x", Expect::Absent, &person()).await.unwrap();
        })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }
    let info = workspace.stat(&path("/projects/one")).await.unwrap();
    assert_eq!(info.v, 64);
    let newest = workspace.version(info.file_id, 64).await.unwrap().1;
    assert_eq!(world.disk_text("/projects/one").unwrap().as_bytes(), newest);
    let (mut names, mut cursor) = (Vec::new(), None);
    loop {
        let page = workspace.ls(&path("/projects/new"), 40, cursor).await.unwrap();
        assert!(page.entries.len() <= 40);
        names.extend(page.entries.into_iter().map(|info| info.name));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((names.len(), names.is_sorted()), (64, true));
}

#[tokio::test]
async fn a_move_and_a_removal_leave_another_file_alone_that_took_the_path() {
    let (_world, workspace) = World::new().await;
    let (at, to) = (path("/projects/a"), path("/projects/b"));
    let meant = workspace.write(&at, "mine", Expect::Any, &person()).await.unwrap();
    workspace.mv(&at, &path("/projects/away"), &person()).await.unwrap();
    let other = workspace.write(&at, "theirs", Expect::Any, &person()).await.unwrap();
    assert_eq!((meant.v, other.v), (1, 1), "their numbers do not tell them apart");
    for expect in [Expect::File(meant.file_id), Expect::Exactly(meant.file_id, 1)] {
        let moved = workspace.mv_expecting(&at, &to, expect, &person()).await.unwrap_err();
        let removed = workspace.rm_expecting(&at, expect, &person()).await.unwrap_err();
        let written = workspace.write(&at, "over", expect, &person()).await.unwrap_err();
        assert_eq!([moved.code, removed.code, written.code], [Code::StaleVersion; 3]);
    }
    assert_eq!(text(&workspace, "/projects/a").await, "theirs");
    let expect = Expect::Exactly(other.file_id, 1);
    assert_eq!(workspace.mv_expecting(&at, &to, expect, &person()).await.unwrap().file_id, other.file_id);
}

#[tokio::test]
async fn a_missing_path_is_reported_with_similar_names() {
    let (_world, workspace) = World::new().await;
    workspace.write(&path("/projects/main.rs"), "", Expect::Any, &person()).await.unwrap();
    let error = workspace.read(&path("/projects/mian.rs"), None).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(error.hint.unwrap().contains("main.rs"));
    assert_eq!(workspace.read(&path("/projects"), None).await.unwrap_err().code, Code::Unprocessable);
    let deep = path(&"/d".repeat(41));
    assert_eq!(workspace.mkdir(&deep, &person()).await.unwrap_err().code, Code::InvalidArgument);
    workspace.write(&path(&"/d".repeat(40)), "deep", Expect::Any, &person()).await.unwrap();
}

#[tokio::test]
async fn a_call_tried_again_after_a_store_failed_applies_once() {
    for seed in 0..20 {
        let (world, _) = World::new().await;
        // A store that fails before and after it took effect, as often as not.
        let faults = Faults { unavailable_before: 0.1, unavailable_after: 0.3, ..Faults::none() };
        let flaky = Arc::new(FakeTable::new(world.clock.clone(), seed, faults));
        let root = world.root.path().join("flaky");
        let all = Workspaces::new(flaky, world.blobs.clone(), world.clock.clone(), root);
        while all.create(world.id, "flaky", &Principal::local()).await.is_err() {}
        let workspace = loop {
            if let Ok(workspace) = all.open(world.id, buildscale_workspace::Access::platform("a test")).await {
                break workspace;
            }
        };
        let at = path("/projects/log");
        for n in 1..=5 {
            let call = Writer::in_call(agent(), CallId(Uuid::now_v7()));
            let change = loop {
                match workspace.write(&at, format!("{n}"), Expect::Any, &call).await {
                    Ok(change) => break change,
                    Err(error) => assert_eq!(error.code, Code::UpstreamUnavailable, "{error}"),
                }
            };
            assert_eq!(change.v, n, "seed {seed}");
        }
    }
}

#[tokio::test]
async fn new_names_are_ones_that_people_can_tell_from_others() {
    let (_world, workspace) = World::new().await;
    workspace.write(&path("/projects/a"), "a", Expect::Any, &person()).await.unwrap();
    for odd in ["/projects/a\u{200B}", "/projects/\u{202E}fdp/x", "/u\u{308}bersicht"] {
        let odd = path(odd);
        let tried = [
            workspace.write(&odd, "x", Expect::Any, &person()).await,
            workspace.mkdir(&odd, &person()).await,
            workspace.mv(&path("/projects/a"), &odd, &person()).await,
        ];
        for tried in tried {
            assert_eq!(tried.unwrap_err().code, Code::InvalidArgument, "{odd}");
        }
        assert_eq!(workspace.stat(&odd).await.unwrap_err().code, Code::NotFound, "no entry is found under it");
    }
}
