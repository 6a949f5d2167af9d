//! Rewinds: a folder, and the work of a chat, a turn or a task goes back to how it was, and nothing is lost on the way.

use crate::common::{World, path, person, put, tree};
use buildscale_workspace::{
    Access, Expect, Mark, Workspace, Workspaces, Writer,
    rewind::{Rewind, RewindOp, RewindState, Selection, StepPage, Target},
};
use domain::{CallId, ChatId, Code, Principal, TaskId, Timestamp, UserId};
use ports::Clock;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use testkit::crash::{Crash, Side};
use uuid::Uuid;

const BUDGET: Duration = Duration::from_secs(60);
const ALL: StepPage = StepPage { after: 0, limit: 1000 };
const CHAT: ChatId = ChatId(Uuid::from_u128(7));

fn agent(call: u128) -> Writer {
    let by = Principal::Agent { role: "assistant".into(), chat: CHAT, user: UserId(Uuid::nil()) };
    Writer::in_call(by, CallId(Uuid::from_u128(call)))
}

async fn write(workspace: &Workspace, at: &str, content: &str, by: &Writer) {
    workspace.write(&path(at), content.to_owned(), Expect::Any, by).await.unwrap();
}

fn since(since: Timestamp) -> Target {
    below("/", since)
}

fn below(at: &str, since: Timestamp) -> Target {
    Target { selection: Selection::Below { path: path(at), since }, as_of: None }
}

fn by(actor: Uuid) -> Target {
    Target { selection: Selection::By { actors: vec![actor], calls: None, since: None }, as_of: None }
}

async fn rewind(workspace: &Workspace, id: u128, target: &Target) -> Rewind {
    workspace.rewind(Uuid::from_u128(id), target, "asked", &person(), BUDGET).await.unwrap()
}

/// The steps as words.
fn steps(rewind: &Rewind) -> Vec<String> {
    let word = |op: RewindOp| match op {
        RewindOp::Create => "create",
        RewindOp::Update => "update",
        RewindOp::Delete => "delete",
        RewindOp::Move => "move",
        RewindOp::Mark => "mark",
    };
    rewind.steps.iter().map(|shown| format!("{} {}", word(shown.step.op), shown.step.path)).collect()
}

fn kept(rewind: &Rewind) -> Vec<&str> {
    rewind.conflicts.iter().map(|conflict| conflict.path.as_str()).collect()
}

/// The files under `/projects` as readers of the disk see them.
fn projects(world: &World) -> BTreeMap<String, Option<Vec<u8>>> {
    tree(&world.on_disk("/projects"))
}

/// A chat that writes, edits, moves and removes, and a folder on the way.
async fn work(workspace: &Workspace) {
    write(workspace, "/projects/edited.md", "two", &agent(1)).await;
    write(workspace, "/projects/new/deep/made.md", "new", &agent(2)).await;
    workspace.mv(&path("/projects/moved.md"), &path("/projects/away/moved.md"), &agent(3)).await.unwrap();
    workspace.rm(&path("/projects/folder"), &agent(4)).await.unwrap();
    write(workspace, "/projects/moved.md", "at the place of another", &agent(5)).await;
}

async fn prepared() -> (World, Workspace) {
    let (world, workspace) = World::new().await;
    for (at, content) in [
        ("/projects/edited.md", "one"),
        ("/projects/moved.md", "moved"),
        ("/projects/folder/inside.md", "inside"),
        ("/projects/other.md", "other"),
    ] {
        put(&workspace, at, content).await;
    }
    world.clock.skip(1000);
    (world, workspace)
}

#[tokio::test]
async fn all_pages_of_a_preview_are_of_the_plan_of_the_first_one() {
    let (world, workspace) = prepared().await;
    let point = world.clock.now();
    world.clock.skip(1000);
    for at in ["/projects/a.md", "/projects/b.md"] {
        put(&workspace, at, "new").await;
    }
    let first = workspace.preview_rewind(&since(point), StepPage { after: 0, limit: 1 }).await.unwrap();
    world.clock.skip(1000);
    put(&workspace, "/projects/later.md", "later").await;
    let (after, as_of) = StepPage::place(first.next_cursor.as_deref().unwrap()).unwrap();
    let target = Target { as_of, ..since(point) };
    let next = workspace.preview_rewind(&target, StepPage { after, ..ALL }).await.unwrap();
    let shown: BTreeSet<_> = steps(&first).into_iter().chain(steps(&next)).collect();
    let both = ["delete /projects/a.md", "delete /projects/b.md"].map(str::to_owned);
    assert_eq!(shown, BTreeSet::from(both));
    assert_eq!((next.as_of, next.next_cursor), (first.as_of, None));
    assert_eq!(StepPage::place("200"), Some((200, None)), "of an earlier version");
    for broken in ["", "x", "1/x", "/", "-1"] {
        assert_eq!(StepPage::place(broken), None, "{broken}");
    }
}

#[tokio::test]
async fn a_folder_goes_back_to_a_time_and_forth_again() {
    let (world, workspace) = prepared().await;
    let (before, point) = (projects(&world), world.clock.now());
    world.clock.skip(1000);
    work(&workspace).await;
    let worked = projects(&world);

    let preview = workspace.preview_rewind(&below("/projects", point), ALL).await.unwrap();
    assert_eq!(preview.state, RewindState::Preview);
    assert_eq!(projects(&world), worked, "a preview changes nothing");
    let diff = preview.steps.iter().find_map(|shown| shown.diff.as_deref()).unwrap();
    assert!(diff.contains("-two") && diff.contains("+one"), "{diff}");

    let done = rewind(&workspace, 1, &below("/projects", point)).await;
    assert_eq!((done.state, kept(&done)), (RewindState::Done, vec![]));
    let listed: BTreeSet<_> = steps(&done).into_iter().collect();
    assert_eq!(listed, steps(&preview).into_iter().collect());
    assert_eq!(projects(&world), before);

    let undone = rewind(&workspace, 2, &by(Uuid::from_u128(1))).await;
    assert_eq!(kept(&undone), Vec::<&str>::new());
    assert_eq!(projects(&world), worked);
    let again = rewind(&workspace, 3, &by(Uuid::from_u128(2))).await;
    assert_eq!(kept(&again), Vec::<&str>::new());
    assert_eq!(projects(&world), before);
}

#[tokio::test]
async fn folders_that_moved_into_each_other_and_into_the_trash_go_back_and_forth() {
    let (world, workspace) = World::new().await;
    for old in ["/projects/c/c/a", "/projects/d/file", "/projects/x/y/z"] {
        put(&workspace, old, "old").await;
    }
    world.clock.skip(1000);
    let (before, point) = (projects(&world), world.clock.now());
    world.clock.skip(1000);
    let mv = async |from: &str, to: &str| workspace.mv(&path(from), &path(to), &person()).await.unwrap();
    let rm = async |at: &str| workspace.rm(&path(at), &person()).await.unwrap();
    // The new folders `b/c` and `c/c` are empty in the end, and the first one takes the path of the second one when `b` goes back to `c`.
    mv("/projects/c", "/projects/b").await;
    mv("/projects/b/c", "/projects/a/a/c").await;
    put(&workspace, "/projects/b/c/c", "new").await;
    put(&workspace, "/projects/c/c/c", "new").await;
    // The new folder `d/e` comes back from the trash with `d`.
    put(&workspace, "/projects/d/e/new", "new").await;
    rm("/projects/d").await;
    // `x` is in the trash inside of `y`, which goes back into it.
    mv("/projects/x/y", "/projects/y").await;
    mv("/projects/x", "/projects/y/x").await;
    rm("/projects/y").await;
    let worked = projects(&world);

    let done = rewind(&workspace, 1, &below("/projects", point)).await;
    assert_eq!((kept(&done), projects(&world)), (vec![], before));
    let undone = rewind(&workspace, 2, &by(Uuid::from_u128(1))).await;
    assert_eq!((kept(&undone), projects(&world)), (vec![], worked));
}

#[tokio::test]
async fn a_rewind_to_now_does_nothing() {
    let (world, workspace) = prepared().await;
    work(&workspace).await;
    let worked = projects(&world);
    let done = rewind(&workspace, 1, &since(world.clock.now())).await;
    assert_eq!((steps(&done), done.state), (vec![], RewindState::Done));
    assert_eq!(projects(&world), worked);
}

#[tokio::test]
async fn of_a_chat_only_its_own_changes_go_and_files_of_others_are_kept() {
    let (world, workspace) = prepared().await;
    work(&workspace).await;
    put(&workspace, "/projects/other.md", "other, again").await;
    put(&workspace, "/projects/edited.md", "by a person").await;

    let done = rewind(&workspace, 1, &by(CHAT.0)).await;
    assert_eq!(kept(&done), ["/projects/edited.md"]);
    assert_eq!(done.conflicts[0].by.as_deref(), Some("user:00000000-0000-0000-0000-000000000000"));
    assert_eq!(world.disk_text("/projects/edited.md").as_deref(), Some("by a person"));
    assert_eq!(world.disk_text("/projects/other.md").as_deref(), Some("other, again"));
    assert_eq!(world.disk_text("/projects/moved.md").as_deref(), Some("moved"));
    assert_eq!(world.disk_text("/projects/folder/inside.md").as_deref(), Some("inside"));
    assert!(!world.on_disk("/projects/new").exists() && !world.on_disk("/projects/away").exists());
}

#[tokio::test]
async fn of_a_turn_only_its_calls_go() {
    let (world, workspace) = prepared().await;
    work(&workspace).await;
    let calls = Some([1, 4].map(|call| CallId(Uuid::from_u128(call))).into());
    let selection = Selection::By { actors: vec![CHAT.0], calls, since: None };
    let done = rewind(&workspace, 1, &Target { selection, as_of: None }).await;
    assert_eq!(steps(&done), ["create /projects/folder", "update /projects/edited.md"]);
    assert_eq!(world.disk_text("/projects/new/deep/made.md").as_deref(), Some("new"));
}

#[tokio::test]
async fn of_a_task_all_its_actors_go() {
    let (world, workspace) = prepared().await;
    let task = TaskId(Uuid::from_u128(9));
    let node = Writer::new(Principal::Task { task, user: UserId(Uuid::nil()) });
    write(&workspace, "/projects/node.md", "by a node", &node).await;
    write(&workspace, "/projects/agent.md", "by an agent", &agent(1)).await;
    let selection = Selection::By { actors: vec![task.0, CHAT.0], calls: None, since: None };
    let done = rewind(&workspace, 1, &Target { selection, as_of: None }).await;
    assert_eq!(done.counts.deletes, 2);
    assert!(!world.on_disk("/projects/node.md").exists() && !world.on_disk("/projects/agent.md").exists());
}

#[tokio::test]
async fn changes_after_a_preview_are_conflicts() {
    let (world, workspace) = prepared().await;
    let point = world.clock.now();
    write(&workspace, "/projects/edited.md", "two", &person()).await;
    write(&workspace, "/projects/other.md", "two", &person()).await;
    let as_of = workspace.preview_rewind(&since(point), ALL).await.unwrap().as_of;
    write(&workspace, "/projects/edited.md", "meanwhile", &person()).await;
    let done = rewind(&workspace, 1, &Target { as_of: Some(as_of), ..since(point) }).await;
    assert_eq!((steps(&done), kept(&done)), (vec!["update /projects/other.md".into()], vec!["/projects/edited.md"]));
    assert_eq!(world.disk_text("/projects/edited.md").as_deref(), Some("meanwhile"));
}

#[tokio::test]
async fn a_file_whose_old_place_others_took_stays_and_keeps_its_place_from_the_ones_behind_it() {
    let [a, b, c, d] = ["/projects/a", "/projects/b", "/projects/c", "/projects/d"];
    // Each file went to the place of the next one, and others took that of the first. The order of the names does not matter.
    for [first, second, third] in [[a, b, c], [c, b, a], [b, c, a], [b, a, c]] {
        let (world, workspace) = World::new().await;
        for at in [first, second, third] {
            put(&workspace, at, at).await;
        }
        world.clock.skip(1000);
        for (call, from, to) in [(1, third, d), (2, second, third), (3, first, second)] {
            workspace.mv(&path(from), &path(to), &agent(call)).await.unwrap();
        }
        put(&workspace, first, "of others").await;
        let before = projects(&world);
        let done = rewind(&workspace, 1, &by(CHAT.0)).await;
        assert_eq!(
            (steps(&done), kept(&done).len(), projects(&world)),
            (Vec::new(), 3, before),
            "{first} {second} {third}"
        );
    }
}

#[tokio::test]
async fn one_file_goes_back_to_a_version() {
    let (world, workspace) = prepared().await;
    for content in ["two", "three"] {
        put(&workspace, "/projects/edited.md", content).await;
    }
    let file_id = workspace.stat(&path("/projects/edited.md")).await.unwrap().file_id;
    let target = |v| Target { selection: Selection::Version { file_id, v }, as_of: None };
    let done = rewind(&workspace, 1, &target(1)).await;
    assert_eq!(steps(&done), ["update /projects/edited.md"]);
    assert_eq!(world.disk_text("/projects/edited.md").as_deref(), Some("one"));
    let missing = workspace.preview_rewind(&target(9), ALL).await.unwrap_err();
    assert_eq!(missing.code, Code::NotFound);
}

#[tokio::test]
async fn a_purged_file_is_unavailable_and_the_rest_goes_back() {
    let (world, workspace) = prepared().await;
    let point = world.clock.now();
    let gone = workspace.rm(&path("/projects/other.md"), &person()).await.unwrap();
    workspace.rm(&path("/projects/moved.md"), &person()).await.unwrap();
    workspace.purge(gone.file_id, &person()).await.unwrap();
    let done = rewind(&workspace, 1, &since(point)).await;
    assert_eq!(steps(&done), ["create /projects/moved.md"]);
    assert_eq!(done.unavailable[0].path, path("/projects/other.md"));
    let old = workspace.preview_rewind(&since(Timestamp::from_millis(0)), ALL).await.unwrap();
    assert_eq!((steps(&old), old.unavailable.len()), (vec![], 1), "records of that time are gone");
}

#[tokio::test]
async fn an_id_is_of_one_rewind() {
    let (world, workspace) = prepared().await;
    let point = world.clock.now();
    put(&workspace, "/projects/other.md", "again").await;
    let id = Uuid::from_u128(1);
    let by = person();
    let first = workspace.rewind(id, &since(point), "one", &by, BUDGET).await.unwrap();
    put(&workspace, "/projects/other.md", "later").await;
    assert_eq!(workspace.rewind(id, &since(point), "one", &by, BUDGET).await.unwrap(), first, "it was done already");
    assert_eq!(world.disk_text("/projects/other.md").as_deref(), Some("later"));
    let other = workspace.rewind(id, &since(point), "two", &by, BUDGET).await.unwrap_err();
    assert_eq!((other.code, other.details["field"].as_str()), (Code::Conflict, Some("rewind_id")));
}

#[tokio::test]
async fn a_rewind_without_time_left_goes_on_when_it_is_asked_again() {
    let (world, workspace) = prepared().await;
    let (before, point) = (projects(&world), world.clock.now());
    work(&workspace).await;
    let (id, by) = (Uuid::from_u128(1), person());
    let begun = workspace.rewind(id, &since(point), "asked", &by, Duration::ZERO).await.unwrap();
    assert_eq!((begun.state, begun.steps), (RewindState::Running, vec![]));
    let done = rewind(&workspace, 1, &since(point)).await;
    assert_eq!(done.state, RewindState::Done);
    assert_eq!(projects(&world), before);
}

/// Dies at each call of a port, before and after it took effect, and is repeated by another process.
#[tokio::test]
async fn a_rewind_that_died_is_whole_after_it_is_repeated() {
    let mut call = 0;
    loop {
        call += 1;
        let mut died = false;
        for side in [Side::Before, Side::After] {
            let (world, workspace) = prepared().await;
            let (before, point) = (projects(&world), world.clock.now());
            world.clock.skip(1000);
            work(&workspace).await;
            let crash = Crash::at(call, side);
            let (table, blobs) = (crash.table(world.table.clone()), crash.blobs(world.blobs.clone()));
            let mortal = Workspaces::new(table, blobs, world.clock.clone(), world.root.path().into());
            let target = since(point);
            let first = async {
                let workspace = mortal.open(world.id, Access::platform("a test")).await?;
                workspace.rewind(Uuid::from_u128(1), &target, "asked", &person(), BUDGET).await
            };
            tokio::select! {
                _ = first => {}
                () = crash.died() => died = true,
            }
            let others = world.workspaces();
            others.repair_all().await.unwrap();
            let again = others.open(world.id, Access::platform("a test")).await.unwrap();
            let done = rewind(&again, 1, &target).await;
            assert_eq!((done.state, kept(&done)), (RewindState::Done, vec![]), "{call} {side:?}");
            assert_eq!(projects(&world), before, "{call} {side:?}");
            let file = again.stat(&path("/projects/edited.md")).await.unwrap();
            assert_eq!(file.v, 3, "an update is done once: {call} {side:?}");
        }
        if !died {
            assert!(call > 20, "it dies somewhere");
            return;
        }
    }
}

#[tokio::test]
async fn a_change_that_was_taken_back_itself_keeps_nothing_from_going_back() {
    let (world, workspace) = prepared().await;
    let before = projects(&world);
    let of = |turn: u128| {
        Writer::in_call(
            Principal::Task { task: TaskId(Uuid::from_u128(turn)), user: UserId(Uuid::nil()) },
            CallId(Uuid::from_u128(turn)),
        )
    };
    write(&workspace, "/projects/edited.md", "one, two", &of(41)).await;
    write(&workspace, "/projects/edited.md", "one, two, three", &of(42)).await;
    let later = rewind(&workspace, 1, &by(Uuid::from_u128(42))).await;
    assert_eq!((steps(&later), kept(&later)), (vec!["update /projects/edited.md".into()], vec![]));
    let earlier = rewind(&workspace, 2, &by(Uuid::from_u128(41))).await;
    assert_eq!((steps(&earlier), kept(&earlier)), (vec!["update /projects/edited.md".into()], vec![]));
    assert_eq!(projects(&world), before);
    // A file that somebody else has changed since stays.
    write(&workspace, "/projects/edited.md", "one, four", &of(43)).await;
    write(&workspace, "/projects/edited.md", "mine", &person()).await;
    assert_eq!(kept(&rewind(&workspace, 3, &by(Uuid::from_u128(43))).await), ["/projects/edited.md"]);
}

#[tokio::test]
async fn tags_and_links_go_back_with_the_work_that_made_them() {
    let (_world, workspace) = prepared().await;
    let id = async |at: &str| workspace.stat(&path(at)).await.unwrap().file_id;
    let (edited, other) = (id("/projects/edited.md").await, id("/projects/other.md").await);
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    let mark = async |file, mark: Mark, by: &Writer| workspace.mark(file, mark, by).await.unwrap();
    mark(edited, Mark::Tag(tags(&["draft", "mine"])), &person()).await;
    mark(edited, Mark::Untag(tags(&["draft"])), &agent(1)).await;
    mark(edited, Mark::Tag(tags(&["done", "mine"])), &agent(2)).await;
    mark(edited, Mark::Link(other, "answers".into()), &agent(3)).await;
    write(&workspace, "/projects/new.md", "new", &agent(4)).await;
    mark(id("/projects/new.md").await, Mark::Tag(tags(&["new"])), &agent(5)).await;
    mark(other, Mark::Tag(tags(&["seen"])), &agent(6)).await;
    mark(other, Mark::Untag(tags(&["seen"])), &person()).await;
    mark(other, Mark::Tag(tags(&["seen"])), &person()).await;
    let state = async || {
        let relations = workspace.relations(edited).await.unwrap();
        (relations.tags, relations.links.len(), workspace.relations(other).await.unwrap().tags)
    };
    let worked = (tags(&["done", "mine"]), 1, tags(&["seen"]));
    assert_eq!(state().await, worked);
    let shown = workspace.preview_rewind(&by(CHAT.0), ALL).await.unwrap();
    assert_eq!((shown.counts.marks, shown.counts.deletes), (3, 1), "{shown:?}");
    assert_eq!(state().await, worked, "a preview changes nothing");
    let back = rewind(&workspace, 1, &by(CHAT.0)).await;
    assert_eq!(state().await, (tags(&["draft", "mine"]), 0, tags(&["seen"])));
    assert_eq!(kept(&back), ["/projects/other.md"], "the last word on that tag is a person's");
    assert!(workspace.stat(&path("/projects/new.md")).await.is_err());
    let again = rewind(&workspace, 1, &by(CHAT.0)).await;
    assert_eq!((again.counts, again.state), (back.counts, RewindState::Done), "again is nothing more");
    rewind(&workspace, 2, &by(Uuid::from_u128(1))).await;
    assert_eq!(state().await, worked, "and forth");
    assert_eq!(workspace.relations(id("/projects/new.md").await).await.unwrap().tags, ["new"]);
}
