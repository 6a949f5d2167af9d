//! A workspace as several parties see it: each its own, and nothing of what is hidden from it.

use crate::common::{World, path, person, put, tree};
use buildscale_workspace::{Access, Budget, Expect, Mark, Profile, Role, Subject, Workspace, Writer};
use domain::{Code, Error, FileId, FileOp, FilePath, PresenceTarget, Principal, Timestamp, UserId, WorkspaceEvent};
use std::sync::Arc;
use testkit::fakes::FakeSandboxes;
use uuid::Uuid;

const ANN: UserId = UserId(Uuid::from_u128(1 << 90));
const BOB: UserId = UserId(Uuid::from_u128(2 << 90));

fn home(of: UserId) -> String {
    format!("/users/{of}")
}

async fn as_person(world: &World, id: UserId, role: Role) -> Workspace {
    world.all.open(world.id, Access::of(&Principal::User { id }, Some(role))).await.unwrap()
}

async fn as_agent(world: &World, person: UserId) -> Workspace {
    let subject = Subject::Agent { persona: "assistant".into(), person, has_home: true };
    world.all.open(world.id, Access::subject(subject)).await.unwrap()
}

fn by(id: UserId) -> Writer {
    Writer::new(Principal::User { id })
}

/// Code, message without the path, and hint: all that an error tells.
fn told(error: &Error, at: &str) -> String {
    format!("{:?} {} {:?} {:?}", error.code, error.message.replace(at, "…"), error.hint, error.details)
}

#[tokio::test]
async fn a_hidden_path_answers_as_one_where_nothing_is() {
    let (world, all) = World::new().await;
    put(&all, &format!("{}/notes/draft.md", home(ANN)), "secret").await;
    let nobody = home(UserId(Uuid::from_u128(3 << 90)));
    for (at, there) in [("", ""), ("/notes", "/nothing"), ("/notes/draft.md", "/nothing/draft.md")] {
        let bob = as_person(&world, BOB, Role::Owner).await;
        let (hidden, missing) = (format!("{}{at}", home(ANN)), format!("{nobody}{there}"));
        let same = |one: Error, other: Error| assert_eq!(told(&one, &hidden), told(&other, &missing));
        same(bob.stat(&path(&hidden)).await.unwrap_err(), bob.stat(&path(&missing)).await.unwrap_err());
        same(bob.read(&path(&hidden), None).await.unwrap_err(), bob.read(&path(&missing), None).await.unwrap_err());
        same(bob.ls(&path(&hidden), 10, None).await.unwrap_err(), bob.ls(&path(&missing), 10, None).await.unwrap_err());
        same(bob.rm(&path(&hidden), &by(BOB)).await.unwrap_err(), bob.rm(&path(&missing), &by(BOB)).await.unwrap_err());
        let new = path("/projects/mine.md");
        same(
            bob.mv(&path(&hidden), &new, &by(BOB)).await.unwrap_err(),
            bob.mv(&path(&missing), &new, &by(BOB)).await.unwrap_err(),
        );
        let write = async |at: &str| bob.write(&path(at), "x", Expect::Any, &by(BOB)).await.unwrap_err();
        same(write(&hidden).await, write(&missing).await);
        let absent = async |at: &str| bob.write(&path(at), "x", Expect::Absent, &by(BOB)).await.unwrap_err();
        same(absent(&hidden).await, absent(&missing).await);
    }
}

#[tokio::test]
async fn pages_are_filled_with_what_is_shown() {
    let (world, all) = World::new().await;
    for number in 0..20_u128 {
        put(&all, &format!("{}/a.md", home(UserId(Uuid::from_u128((100 + number) << 90)))), "secret").await;
    }
    put(&all, "/users/zoo/a.md", "shared").await;
    put(&all, &format!("{}/a.md", home(ANN)), "secret").await;
    let ann = as_person(&world, ANN, Role::Viewer).await;
    let first = ann.ls(&path("/users"), 1, None).await.unwrap();
    assert_eq!(first.entries.len(), 1, "a page is not short because of what is left out");
    let names: Vec<String> =
        ann.ls(&path("/users"), 100, None).await.unwrap().entries.into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, [ANN.to_string(), "zoo".to_owned()]);
    let (tree, whole) = ann.list_tree(&path("/users"), 3).await.unwrap();
    assert!(tree.len() == 3 && !whole, "{tree:?}");
    assert_eq!(ann.folders_in(&path("/users")).await.unwrap(), names);
}

#[tokio::test]
async fn the_trash_and_the_history_of_a_home_are_of_its_person() {
    let (world, all) = World::new().await;
    let folder = format!("{}/old", home(ANN));
    put(&all, &format!("{folder}/a.md"), "one").await;
    put(&all, &format!("{folder}/a.md"), "two").await;
    let file = all.stat(&path(&format!("{folder}/a.md"))).await.unwrap().file_id;
    let (ann, bob) = (as_person(&world, ANN, Role::Editor).await, as_person(&world, BOB, Role::Owner).await);
    let nobody = FileId(Uuid::from_u128(9));
    let unseen = async |of: FileId| {
        let at = |error: Error| told(&error, &of.to_string());
        [
            at(bob.by_id(of).await.unwrap_err()),
            at(bob.version_info(of, 1).await.unwrap_err()),
            at(bob.version(of, 2).await.unwrap_err()),
            at(bob.diff(of, 1, 2).await.unwrap_err()),
            at(bob.restore_version(of, 1, Expect::Any, &by(BOB)).await.unwrap_err()),
            at(bob.restore(of, &by(BOB)).await.unwrap_err()),
            at(bob.purge(of, &by(BOB)).await.unwrap_err()),
            format!("{:?}", bob.versions(of, 10, None).await.unwrap()),
        ]
    };
    assert_eq!(unseen(file).await, unseen(nobody).await);
    let gone = ann.rm(&path(&folder), &by(ANN)).await.unwrap().file_id;
    assert_eq!(unseen(file).await, unseen(nobody).await, "in a folder in the trash");
    assert_eq!(unseen(gone).await, unseen(nobody).await);
    assert_eq!(bob.trash(10, None).await.unwrap().files, []);
    assert_eq!(ann.trash(10, None).await.unwrap().files.len(), 1);
    assert_eq!(ann.versions(file, 10, None).await.unwrap().versions.len(), 2);
    ann.restore(gone, &by(ANN)).await.unwrap();
    assert_eq!(ann.version(file, 1).await.unwrap().1, "one");
}

#[tokio::test]
async fn a_stream_of_changes_tells_what_its_watcher_sees() {
    let (world, all) = World::new().await;
    let draft = format!("{}/draft.md", home(ANN));
    put(&all, &draft, "secret").await;
    let published = path("/projects/draft.md");
    all.mv(&path(&draft), &published, &person()).await.unwrap();
    all.mv(&published, &path(&draft), &person()).await.unwrap();
    let seen = async |files: Workspace| {
        let page = files.changes_from(Timestamp::default(), None).await.unwrap();
        let told = page.changes.into_iter().filter_map(|(_, event)| match event {
            WorkspaceEvent::FileUpdated { path, from, op, .. } => {
                Some((op, path.to_string(), from.map(|from| from.to_string())))
            }
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let of_bob = seen(as_person(&world, BOB, Role::Owner).await).await;
    let at = published.to_string();
    assert_eq!(of_bob, [(FileOp::Made, at.clone(), None), (FileOp::Removed, at, None)]);
    assert_eq!(seen(as_person(&world, ANN, Role::Viewer).await).await.len(), 3);
    assert_eq!(seen(as_agent(&world, BOB).await).await.len(), 2);
}

#[tokio::test]
async fn a_presence_is_seen_by_those_who_may_read_there() {
    let (world, all) = World::new().await;
    let draft = path(&format!("{}/draft.md", home(ANN)));
    put(&all, draft.as_str(), "secret").await;
    let at = |at: PresenceTarget| WorkspaceEvent::Presence { user_id: ANN, at, here: true };
    let chat = PresenceTarget::ChatId(domain::ChatId(uuid::Uuid::from_u128(9)));
    let (ann, bob) = (as_person(&world, ANN, Role::Viewer).await, as_person(&world, BOB, Role::Owner).await);
    for event in [at(PresenceTarget::Path(path("/projects"))), at(chat)] {
        assert_eq!(bob.seen(event.clone()), Some(event));
    }
    let hidden = at(PresenceTarget::Path(draft.clone()));
    assert_eq!((ann.seen(hidden.clone()).is_some(), bob.seen(hidden)), (true, None));
    let looks = async |files: &Workspace, place: &FilePath, here| {
        files.announce_presence(ANN, PresenceTarget::Path(place.clone()), here).await.map_err(|error| error.code)
    };
    assert_eq!(looks(&bob, &draft, true).await, Err(Code::NotFound));
    assert_eq!(looks(&bob, &path("/projects/none.md"), true).await, Err(Code::NotFound));
    assert_eq!(looks(&ann, &draft, true).await, Ok(()));
}

#[tokio::test]
async fn the_home_of_a_member_is_made_once_and_is_theirs() {
    let (world, all) = World::new().await;
    let (name, role) = (Some("bob@example.org"), "editor");
    let profile = Profile { user: BOB, name, role };
    world.all.welcome(world.id, &profile).await.unwrap();
    let at = Profile::path_of(BOB).unwrap();
    let text = async || String::from_utf8(all.read(&at, None).await.unwrap().bytes.to_vec()).unwrap();
    let begins = "---\nname: \"bob@example.org\"\nrole: editor\ntime_zone: UTC\n---\n";
    assert!(text().await.starts_with(begins), "{}", text().await);
    let bob = as_person(&world, BOB, Role::Viewer).await;
    bob.write(&at, "mine", Expect::Any, &by(BOB)).await.unwrap();
    world.all.welcome(world.id, &Profile { role: "owner", ..profile }).await.unwrap();
    assert_eq!(text().await, "mine");
    let of_ann = as_person(&world, ANN, Role::Owner).await;
    assert_eq!(of_ann.read(&at, None).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_folder_moves_and_goes_only_with_all_that_is_in_it() {
    let (world, all) = World::new().await;
    let policy = r#"@id("signed") forbid (principal is Agent, action in Action::"change", resource in Path::"/projects/legal/signed");"#;
    put(&all, "/system/policies/team.cedar", policy).await;
    put(&all, "/projects/legal/signed/a.md", "x").await;
    put(&all, "/projects/legal/draft.md", "x").await;
    let (agent, writer) = (as_agent(&world, ANN).await, Writer::new(Principal::local()));
    let legal = path("/projects/legal");
    for refused in [agent.rm(&legal, &writer).await, agent.mv(&legal, &path("/projects/b"), &writer).await] {
        let error = refused.unwrap_err();
        assert_eq!(
            (error.code, &error.details["policy"]),
            (Code::Forbidden, &"/system/policies/team.cedar#signed".into())
        );
    }
    agent.rm(&path("/projects/legal/draft.md"), &writer).await.unwrap();
    let by_name =
        r#"forbid (principal is Agent, action in Action::"change", resource) when { resource.name like "*.env" };"#;
    put(&all, "/system/policies/team.cedar", by_name).await;
    put(&all, "/projects/app/deep/.env", "x").await;
    let agent = as_agent(&world, ANN).await;
    assert_eq!(agent.rm(&path("/projects/app"), &writer).await.unwrap_err().code, Code::Forbidden);
    agent.rm(&legal, &writer).await.unwrap();
}

#[tokio::test]
async fn a_cursor_tells_of_nothing_that_is_out_of_sight() {
    let (world, all) = World::new().await;
    let tag = Mark::Tag(vec!["mine".into()]);
    for name in ["a", "b", "c", "d", "z-hidden"] {
        put(&all, &format!("/projects/{name}"), name).await;
        put(&all, &format!("/projects/gone/{name}"), name).await;
        let id = all.stat(&path(&format!("/projects/{name}"))).await.unwrap().file_id;
        all.mark(id, tag.clone(), &person()).await.unwrap();
        all.rm(&path(&format!("/projects/gone/{name}")), &person()).await.unwrap();
    }
    let hidden =
        r#"forbid (principal is Agent, action == Action::"list", resource) when { resource.name like "*-hidden" };"#;
    put(&all, "/system/policies/a.cedar", hidden).await;
    let agent = as_agent(&world, ANN).await;
    let list = path("/projects");
    for (limit, is_more) in [(2, true), (4, true), (5, false)] {
        // The folder that is left of those that were removed is the fifth.
        let listing = agent.ls(&list, limit, None).await.unwrap();
        assert_eq!((listing.entries.len(), listing.next_cursor.is_some()), (limit, is_more), "{limit}");
    }
    for (limit, is_more) in [(2, true), (4, false)] {
        let trash = agent.trash(limit, None).await.unwrap();
        assert_eq!((trash.files.len(), trash.next_cursor.is_some()), (limit, is_more), "{limit}");
        let tagged = agent.tagged("mine", limit, None).await.unwrap();
        assert_eq!((tagged.files.len(), tagged.next_cursor.is_some()), (limit, is_more), "{limit}");
    }
    assert!(all.ls(&list, 5, None).await.unwrap().next_cursor.is_some());
    // A hidden file stays hidden when its folder goes to the trash.
    put(&all, "/projects/box/seen", "seen").await;
    put(&all, "/projects/box/z-hidden", "hidden").await;
    let mut hints = Vec::new();
    let ids = ["seen", "z-hidden"].map(|name| path(&format!("/projects/box/{name}")));
    let ids = [all.stat(&ids[0]).await.unwrap().file_id, all.stat(&ids[1]).await.unwrap().file_id];
    all.rm(&path("/projects/box"), &person()).await.unwrap();
    for id in ids {
        hints.push(agent.by_id(id).await.unwrap_err().hint.is_some());
    }
    assert_eq!(hints, [true, false]);
}

#[tokio::test]
async fn the_last_good_policies_stay_in_force_by_whatever_way_others_come() {
    let (world, all) = World::new().await;
    let closed = r#"@id("closed") forbid (principal is Agent, action == Action::"write", resource in Path::"/data");"#;
    put(&all, "/system/policies/a.cedar", closed).await;
    let is_closed = async || {
        let agent = as_agent(&world, ANN).await;
        agent
            .write(&path("/data/x.md"), "x", Expect::Any, &by(ANN))
            .await
            .is_err_and(|error| error.code == Code::Forbidden)
    };
    assert!(is_closed().await);
    let unread = |error: Error| {
        assert_eq!(error.code, Code::Unprocessable, "{error:?}");
        assert!(error.details.contains_key("line") && error.details.contains_key("column"), "{error:?}");
    };
    let policy = path("/system/policies/a.cedar");
    unread(all.write(&policy, "forbid (nobody);", Expect::Any, &person()).await.unwrap_err());
    put(&all, "/projects/bad.cedar", "permit").await;
    put(&all, "/projects/set/bad.cedar", "permit").await;
    unread(all.mv(&path("/projects/bad.cedar"), &path("/system/policies/b.cedar"), &person()).await.unwrap_err());
    assert!(is_closed().await);
    // A whole folder in the place of the present one.
    let folder = all.rm(&path("/system/policies"), &person()).await.unwrap().file_id;
    assert!(!is_closed().await);
    unread(all.mv(&path("/projects/set"), &path("/system/policies"), &person()).await.unwrap_err());
    all.restore(folder, &person()).await.unwrap();
    assert!(is_closed().await);
    let id = all.stat(&policy).await.unwrap().file_id;
    put(&all, "/system/policies/a.cedar", "").await;
    assert!(!is_closed().await);
    all.restore_version(id, 1, Expect::Any, &person()).await.unwrap();
    assert!(is_closed().await);
    // Another process, after a restart.
    let again = world
        .workspaces()
        .open(world.id, Access::subject(Subject::Agent { persona: "a".into(), person: ANN, has_home: true }))
        .await
        .unwrap();
    assert_eq!(again.write(&path("/data/x.md"), "x", Expect::Any, &by(ANN)).await.unwrap_err().code, Code::Forbidden);
}

#[tokio::test]
async fn a_mirror_has_what_everybody_may_read() {
    let (world, all) = World::new().await;
    put(&all, &format!("{}/draft.md", home(ANN)), "secret").await;
    put(&all, "/projects/a.md", "shared").await;
    put(&all, "/vault/key.md", "secret").await;
    let near = world.machine(world.blobs.clone(), |all| all.caching(Budget::default())).await;
    let search = |_, _, _| Box::pin(async { "found".to_owned() }) as futures::future::BoxFuture<'static, String>;
    let sandboxes = Arc::new(FakeSandboxes::default().with_mirrors(&near.disk.path().join("mirrors"), search));
    let sandbox = sandboxes.come_up(world.id);
    let _all = near.all.clone().with_sandboxes(sandboxes.clone());
    let mirrored = async |here: &Workspace| {
        here.bring_to(&*sandbox, None).await.unwrap();
        let files = tree(sandbox.fake_mirror().unwrap().latest());
        files
            .into_iter()
            .filter(|(_, content)| content.is_some())
            .map(|(at, _)| at)
            .filter(|at| !at.contains("system"))
            .collect::<Vec<_>>()
    };
    assert_eq!(mirrored(&near.here).await, ["/projects/a.md", "/vault/key.md"]);
    let closed = r#"forbid (principal is Service, action == Action::"read", resource in Path::"/vault");"#;
    put(&all, "/system/policies/a.cedar", closed).await;
    let reopened = near.all.open(world.id, Access::platform("a test")).await.unwrap();
    assert_eq!(mirrored(&reopened).await, ["/projects/a.md"], "what was there before is gone");
    // Long afterwards, so that the mirror is told of the changes since then alone.
    world.clock.skip(10 * 60_000);
    assert_eq!(mirrored(&reopened).await, ["/projects/a.md"]);
    all.mv(&path("/system/policies/a.cedar"), &path("/projects/a.cedar"), &person()).await.unwrap();
    let reopened = near.all.open(world.id, Access::platform("a test")).await.unwrap();
    let opened = ["/projects/a.cedar", "/projects/a.md", "/vault/key.md"];
    assert_eq!(mirrored(&reopened).await, opened, "a policy that leaves its folder closes nothing any more");
    // A record that cannot be read may be about any file.
    world.clock.skip(10 * 60_000);
    assert_eq!(mirrored(&reopened).await, opened);
    put(&all, "/projects/b.md", "new").await;
    let record = world.table.partition(&format!("{}/changes", world.id)).pop().unwrap();
    world.table.damage(&record.key, "{");
    let all_files = ["/projects/a.cedar", "/projects/a.md", "/projects/b.md", "/vault/key.md"];
    assert_eq!(mirrored(&reopened).await, all_files);
    // Searches of somebody who sees more or less than everybody are not answered by it.
    let agent = |person| {
        near.all.open(world.id, Access::subject(Subject::Agent { persona: "a".into(), person, has_home: true }))
    };
    let everything = FilePath::root();
    assert_eq!(agent(ANN).await.unwrap().search_on_sandbox(&everything, "grep", "{}").await, None);
    assert!(agent(BOB).await.unwrap().search_on_sandbox(&path("/projects"), "grep", "{}").await.is_some());
}

#[tokio::test]
async fn no_command_begins_where_the_row_of_a_home_cannot_be_read() {
    let (world, all) = World::new().await;
    all.mkdir(&path(&home(ANN)), &person()).await.unwrap();
    let agent = as_agent(&world, Principal::local().user()).await;
    assert_eq!(agent.hidden_from_commands(&FilePath::root(), false).await.unwrap(), [path(&home(ANN))]);
    let homes = all.stat(&path("/users")).await.unwrap().file_id;
    world.table.damage(&ports::Key::new(format!("{}/dir/{homes}", world.id), ANN.to_string()), "{}");
    let refused = agent.hidden_from_commands(&FilePath::root(), false).await.unwrap_err();
    assert_eq!(refused.code, Code::Internal);
}

#[tokio::test]
async fn a_command_does_not_see_what_its_party_may_not_read() {
    let (world, all) = World::new().await;
    let root = FilePath::root();
    let hidden = async |of: UserId, at: &FilePath, mirrored: bool| {
        let hidden = as_agent(&world, of).await.hidden_from_commands(at, mirrored).await;
        hidden.map(|paths| paths.iter().map(FilePath::to_string).collect::<Vec<_>>()).map_err(|error| error.code)
    };
    let paths = |paths: &[&str]| Ok(paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
    let (local, anns) = (home(Principal::local().user()), home(ANN));
    all.mkdir(&path(&anns), &person()).await.unwrap();
    all.mkdir(&path(&local), &person()).await.unwrap();
    // Homes of others, also those that nobody has touched yet, and of those who join later.
    let [but_anns, but_bobs] = [ANN, BOB].map(|id| format!("/users/-/{id}"));
    let homes = [&but_bobs, &local, &anns].map(String::as_str);
    assert_eq!(hidden(BOB, &root, false).await, paths(&homes));
    assert_eq!(hidden(BOB, &path("/projects"), false).await, paths(&homes), "names beside its folder are hidden, too");
    assert_eq!(hidden(ANN, &root, false).await, paths(&[&but_anns, &local]));
    assert_eq!(hidden(Principal::local().user(), &root, false).await, paths(&[&anns]), "nobody joins");
    assert_eq!(hidden(BOB, &path(&anns), false).await, Err(Code::Forbidden));
    assert_eq!(hidden(BOB, &root, true).await, paths(&[]), "a mirror has no home");
    // Beside a mirror two people do not share a program either, though it has nothing to hide.
    let from_programs = async |of: UserId| as_agent(&world, of).await.hidden_from_programs(true).await.unwrap();
    assert_eq!(from_programs(ANN).await, [path(&but_anns)]);
    assert_eq!(from_programs(BOB).await, [path(&but_bobs)]);
    assert!(from_programs(Principal::local().user()).await.is_empty(), "nobody joins");
    // An agent without home has none of them.
    let homeless = Access::subject(Subject::Agent { persona: "assistant".into(), person: ANN, has_home: false });
    let homeless = world.all.open(world.id, homeless).await.unwrap();
    let all_homes = homeless.hidden_from_commands(&root, false).await.unwrap();
    assert_eq!(all_homes, ["/users/-", &local, &anns].map(path));
    let names = [&as_agent(&world, ANN).await, &as_agent(&world, BOB).await, &homeless].map(Workspace::party_name);
    assert!(names[0] != names[1] && names[0] != names[2] && names[1] != names[2], "{names:?}");
    // A path that a policy names is hidden before it exists.
    let closed = r#"forbid (principal is Agent, action == Action::"read", resource in Path::"/vault");"#;
    put(&all, "/system/policies/a.cedar", closed).await;
    assert_eq!(hidden(ANN, &root, false).await, paths(&[&but_anns, &local, "/vault"]));
    assert_eq!(hidden(ANN, &root, true).await, paths(&[]));
    put(&all, "/vault/deep/key.md", "secret").await;
    assert_eq!(hidden(ANN, &root, true).await, Err(Code::Forbidden), "a mirror has it, and hides nothing");
    assert_eq!(hidden(ANN, &path("/vault"), false).await, Err(Code::Forbidden));
    // Policies that look at names.
    let keys =
        r#"forbid (principal is Agent, action == Action::"read", resource) when { resource.name like "*.key" };"#;
    put(&all, "/system/policies/a.cedar", keys).await;
    put(&all, "/projects/a.key", "secret").await;
    assert_eq!(hidden(ANN, &root, false).await, paths(&["/projects/a.key", &but_anns, &local]));
}

#[tokio::test]
async fn a_file_that_may_be_listed_and_not_read_tells_no_digest_and_is_not_moved_to_where_it_could_be_read() {
    let (world, all) = World::new().await;
    let closed = r#"forbid (principal is Agent, action == Action::"read", resource in Path::"/vault");"#;
    put(&all, "/system/policies/a.cedar", closed).await;
    put(&all, "/vault/key.md", "secret").await;
    put(&all, "/projects/open.md", "shared").await;
    let key = path("/vault/key.md");
    let file = all.stat(&key).await.unwrap();
    all.mark(file.file_id, Mark::Tag(vec!["mine".into()]), &person()).await.unwrap();
    let (agent, writer) = (as_agent(&world, ANN).await, Writer::new(Principal::local()));
    assert_eq!(agent.read(&key, None).await.unwrap_err().code, Code::Forbidden);
    let listed = agent.ls(&path("/vault"), 10, None).await.unwrap().entries;
    let (tree, _) = agent.list_tree(&path("/vault"), 10).await.unwrap();
    let tagged = agent.tagged("mine", 10, None).await.unwrap().files;
    let by_id = agent.by_id(file.file_id).await.unwrap();
    for found in [listed, tree, tagged, vec![by_id]] {
        let found: Vec<_> = found.iter().map(|info| (info.file_id, info.sha256)).collect();
        assert_eq!(found, [(file.file_id, None)]);
    }
    assert!(agent.stat(&path("/projects/open.md")).await.unwrap().sha256.is_some());
    let digest = file.sha256.unwrap().to_string();
    for expect in [Expect::Version(9), Expect::Absent] {
        let refused = agent.write(&key, "x", expect, &writer).await.unwrap_err();
        assert!(!format!("{refused:?}").contains(&digest), "{refused:?}");
    }
    let refused = agent.mv(&key, &path("/projects/key.md"), &writer).await.unwrap_err();
    assert_eq!(refused.code, Code::Forbidden, "{refused:?}");
    assert_eq!(agent.rm(&key, &writer).await.unwrap().sha256, None);
    assert_eq!(agent.trash(10, None).await.unwrap().files[0].info.sha256, None);
    assert_eq!(agent.restore(file.file_id, &writer).await.unwrap().sha256, None);
    assert_eq!(all.stat(&key).await.unwrap().sha256, file.sha256, "those who may read it are told");
}

#[tokio::test]
async fn a_file_that_a_person_has_allowed_to_be_read_tells_its_digest() {
    let (world, all) = World::new().await;
    let asks = r#"@decision("ask") forbid (principal is Agent, action == Action::"read", resource in Path::"/vault");"#;
    put(&all, "/system/policies/a.cedar", asks).await;
    put(&all, "/vault/key.md", "secret").await;
    let key = path("/vault/key.md");
    let digest = all.stat(&key).await.unwrap().sha256;
    let subject = Subject::Agent { persona: "assistant".into(), person: ANN, has_home: true };
    for (is_allowed, told) in [(false, None), (true, digest)] {
        let access = Access::subject(subject.clone()).gated(is_allowed);
        let agent = world.all.open(world.id, access).await.unwrap();
        assert_eq!(agent.read(&key, None).await.is_ok(), is_allowed);
        assert_eq!(agent.stat(&key).await.unwrap().sha256, told);
    }
}
