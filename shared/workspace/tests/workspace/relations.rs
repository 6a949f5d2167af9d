//! Tags and links: by identity, in both directions, and only as far as the party sees.

use crate::common::{World, path, person, put};
use buildscale_workspace::{Access, Expect, Link, Mark, MarkChange, Role, Workspace, Writer};
use domain::{CallId, Code, FileId, Principal, UserId};
use ports::Table;
use uuid::Uuid;

const ANN: UserId = UserId(Uuid::from_u128(1 << 90));
const BOB: UserId = UserId(Uuid::from_u128(2 << 90));

async fn id(workspace: &Workspace, at: &str) -> FileId {
    workspace.stat(&path(at)).await.unwrap().file_id
}

async fn mark(workspace: &Workspace, at: &str, mark: Mark) -> MarkChange {
    workspace.mark(id(workspace, at).await, mark, &person()).await.unwrap()
}

async fn tag(workspace: &Workspace, at: &str, tags: &[&str]) -> Vec<String> {
    mark(workspace, at, Mark::Tag(tags.iter().map(ToString::to_string).collect())).await.tags
}

async fn link(workspace: &Workspace, from: &str, to: &str, kind: &str) {
    let to = id(workspace, to).await;
    mark(workspace, from, Mark::Link(to, kind.into())).await;
}

fn told(links: &[Link]) -> Vec<String> {
    let one = |link: &Link| {
        let place = link
            .file
            .as_ref()
            .map_or_else(|| format!("?{}", link.target.as_deref().unwrap()), |file| file.path.to_string());
        format!("{} {place}", link.kind)
    };
    links.iter().map(one).collect()
}

async fn from(workspace: &Workspace, at: &str) -> Vec<String> {
    told(&workspace.relations(id(workspace, at).await).await.unwrap().links)
}

async fn to(workspace: &Workspace, at: &str) -> Vec<String> {
    told(&workspace.relations(id(workspace, at).await).await.unwrap().backlinks)
}

async fn counts(workspace: &Workspace) -> Vec<(String, u64)> {
    workspace.tags().await.unwrap().tags.into_iter().map(|count| (count.tag, count.files)).collect()
}

async fn network(workspace: &Workspace, at: &str, depth: usize, limit: usize) -> (Vec<String>, usize, bool) {
    let found = workspace.network(id(workspace, at).await, depth, limit).await.unwrap();
    let nodes = found.nodes.iter().map(|node| format!("{} {}", node.distance, node.file.path)).collect();
    (nodes, found.edges.len(), found.truncated)
}

#[tokio::test]
async fn tags_stay_through_moves_and_versions_and_are_counted() {
    let (_world, all) = World::new().await;
    put(&all, "/projects/a.md", "one").await;
    put(&all, "/b.md", "one").await;
    assert_eq!(tag(&all, "/projects/a.md", &["Open", "#draft", "open"]).await, ["draft", "open"]);
    tag(&all, "/b.md", &["open"]).await;
    put(&all, "/projects/a.md", "two").await;
    all.mv(&path("/projects/a.md"), &path("/projects/x/c.md"), &person()).await.unwrap();
    assert_eq!(counts(&all).await, [("draft".into(), 1), ("open".into(), 2)]);
    let tagged = all.tagged("OPEN", 10, None).await.unwrap().files;
    assert_eq!(tagged.iter().map(|info| info.path.as_str()).collect::<Vec<_>>(), ["/projects/x/c.md", "/b.md"]);
    assert!(!mark(&all, "/b.md", Mark::Tag(vec!["open".into()])).await.changed);
    assert!(mark(&all, "/b.md", Mark::Untag(vec!["open".into()])).await.changed);
    assert_eq!(counts(&all).await, [("draft".into(), 1), ("open".into(), 1)]);
}

#[tokio::test]
async fn explicit_links_follow_both_files_wherever_they_move() {
    let (_world, all) = World::new().await;
    for at in ["/projects/spec.md", "/projects/app/main.rs"] {
        put(&all, at, "x").await;
    }
    link(&all, "/projects/app/main.rs", "/projects/spec.md", "implements").await;
    all.mv(&path("/projects/app"), &path("/projects/new"), &person()).await.unwrap();
    all.mv(&path("/projects/spec.md"), &path("/data/old.md"), &person()).await.unwrap();
    assert_eq!(from(&all, "/projects/new/main.rs").await, ["implements /data/old.md"]);
    assert_eq!(to(&all, "/data/old.md").await, ["implements /projects/new/main.rs"]);
    let target = id(&all, "/data/old.md").await;
    mark(&all, "/projects/new/main.rs", Mark::Unlink(target, "implements".into())).await;
    assert_eq!((from(&all, "/projects/new/main.rs").await, to(&all, "/data/old.md").await), (vec![], vec![]));
}

#[tokio::test]
async fn links_in_a_text_belong_to_its_version() {
    let (_world, all) = World::new().await;
    put(&all, "/projects/b.md", "x").await;
    put(&all, "/projects/app/c.md", "x").await;
    put(&all, "/projects/app/a.md", "[b](../b.md) [[c]] `[[no]]` [w](https://example.org)").await;
    assert_eq!(from(&all, "/projects/app/a.md").await, ["markdown /projects/b.md", "wiki /projects/app/c.md"]);
    assert_eq!(to(&all, "/projects/b.md").await, ["markdown /projects/app/a.md"]);
    put(&all, "/projects/app/a.md", "only [[c]]").await;
    assert_eq!(
        (to(&all, "/projects/b.md").await, to(&all, "/projects/app/c.md").await),
        (vec![], vec!["wiki /projects/app/a.md".to_owned()])
    );
    put(&all, "/projects/app/a.md", "nothing").await;
    assert_eq!((from(&all, "/projects/app/a.md").await, to(&all, "/projects/app/c.md").await), (vec![], vec![]));
}

#[tokio::test]
async fn a_renamed_target_keeps_the_links_in_texts_also_in_later_versions_of_them() {
    let (_world, all) = World::new().await;
    put(&all, "/projects/b.md", "x").await;
    put(&all, "/a.md", "[b](projects/b.md)").await;
    all.mv(&path("/projects/b.md"), &path("/projects/c.md"), &person()).await.unwrap();
    assert_eq!(from(&all, "/a.md").await, ["markdown /projects/c.md"]);
    assert_eq!(to(&all, "/projects/c.md").await, ["markdown /a.md"]);
    put(&all, "/a.md", "[b](projects/b.md) and more").await;
    assert_eq!(from(&all, "/a.md").await, ["markdown /projects/c.md"]);
    // Another file at the written path is what the next version means.
    put(&all, "/projects/b.md", "new").await;
    put(&all, "/a.md", "[b](projects/b.md) once more").await;
    assert_eq!(
        (from(&all, "/a.md").await, to(&all, "/projects/c.md").await),
        (vec!["markdown /projects/b.md".to_owned()], vec![])
    );
}

#[tokio::test]
async fn a_dangling_link_resolves_when_its_file_comes() {
    let (_world, all) = World::new().await;
    put(&all, "/projects/a.md", "[[later]] [x](sub/x.md)").await;
    assert_eq!(from(&all, "/projects/a.md").await, ["wiki ?later", "markdown ?sub/x.md"]);
    put(&all, "/later.md", "far").await;
    put(&all, "/projects/sub/x.md", "x").await;
    assert_eq!(from(&all, "/projects/a.md").await, ["wiki /later.md", "markdown /projects/sub/x.md"]);
    assert_eq!(to(&all, "/later.md").await, ["wiki /projects/a.md"]);
    assert_eq!(to(&all, "/projects/sub/x.md").await, ["markdown /projects/a.md"]);
    put(&all, "/projects/later.md", "near").await;
    assert_eq!(from(&all, "/projects/a.md").await[0], "wiki /projects/later.md", "the nearest name counts");
}

#[tokio::test]
async fn the_trash_hides_tags_and_links_and_a_purge_removes_them() {
    let (world, all) = World::new().await;
    put(&all, "/b.md", "x").await;
    put(&all, "/projects/x/a.md", "[[b]]").await;
    link(&all, "/projects/x/a.md", "/b.md", "answers").await;
    tag(&all, "/projects/x/a.md", &["open"]).await;
    let (folder, file) = (id(&all, "/projects/x").await, id(&all, "/projects/x/a.md").await);
    all.rm(&path("/projects/x"), &person()).await.unwrap();
    assert_eq!((to(&all, "/b.md").await, counts(&all).await), (vec![], vec![]));
    assert_eq!(all.relations(file).await.unwrap_err().code, Code::NotFound);
    all.restore(folder, &person()).await.unwrap();
    assert_eq!(to(&all, "/b.md").await, ["answers /projects/x/a.md", "wiki /projects/x/a.md"]);
    assert_eq!(counts(&all).await, [("open".into(), 1)]);
    // The same from the other end: the text still names something.
    let target = id(&all, "/b.md").await;
    all.rm(&path("/b.md"), &person()).await.unwrap();
    assert_eq!(from(&all, "/projects/x/a.md").await, ["wiki ?b"]);
    all.restore(target, &person()).await.unwrap();
    all.rm(&path("/projects/x"), &person()).await.unwrap();
    all.purge(folder, &person()).await.unwrap();
    for partition in ["marks", "mentions", "tagged", "linked", "named"] {
        let left = world.table.query(&ports::Query::all(format!("{}/{partition}", world.id), 10)).await.unwrap().items;
        assert_eq!(left, [], "{partition}");
    }
}

#[tokio::test]
async fn a_repeated_call_writes_once_and_answers_the_same() {
    let (_world, all) = World::new().await;
    put(&all, "/a.md", "x").await;
    let file = id(&all, "/a.md").await;
    let call = Writer::in_call(Principal::local(), CallId(Uuid::now_v7()));
    let tags = || Mark::Tag(vec!["open".into()]);
    let first = all.mark(file, tags(), &call).await.unwrap();
    mark(&all, "/a.md", Mark::Untag(vec!["open".into()])).await;
    assert_eq!(all.mark(file, tags(), &call).await.unwrap(), first);
    assert_eq!(counts(&all).await, []);
    let other = all.mark(file, tags(), &Writer::in_call(Principal::local(), CallId(Uuid::now_v7()))).await.unwrap();
    assert!(other.changed);
}

#[tokio::test]
async fn marks_made_at_once_are_all_kept() {
    let (_world, all) = World::new().await;
    put(&all, "/a.md", "x").await;
    let file = id(&all, "/a.md").await;
    let (by, all) = (person(), &all);
    let tags = (0..8).map(|n| {
        let by = by.clone();
        async move { all.mark(file, Mark::Tag(vec![format!("t{n}")]), &by).await.unwrap() }
    });
    futures::future::join_all(tags).await;
    assert_eq!(counts(all).await.len(), 8);
}

#[tokio::test]
async fn bounds_are_held_and_told() {
    let (_world, all) = World::new().await;
    put(&all, "/a.md", "x").await;
    let file = id(&all, "/a.md").await;
    let refused = async |mark: Mark| all.mark(file, mark, &person()).await.unwrap_err();
    for tag in ["", " ", "a b", "a/b", "..", &"x".repeat(65), "#"] {
        let error = refused(Mark::Tag(vec![tag.into()])).await;
        assert_eq!(
            (error.code, error.details["field"].as_str(), error.hint.is_some()),
            (Code::InvalidArgument, Some("tag"), true)
        );
    }
    for kind in ["", "Answers", "a-b", "1a", "wiki", "markdown", &"x".repeat(33)] {
        let error = refused(Mark::Link(id(&all, "/projects").await, kind.into())).await;
        assert_eq!(
            (error.code, error.details["field"].as_str(), error.hint.is_some()),
            (Code::InvalidArgument, Some("kind"), true)
        );
    }
    assert_eq!(refused(Mark::Link(file, "answers".into())).await.details["field"], "to");
    assert_eq!(refused(Mark::Link(FileId(Uuid::now_v7()), "answers".into())).await.code, Code::NotFound);
    let some = |from: usize, to: usize| Mark::Tag((from..to).map(|n| format!("t{n}")).collect());
    all.mark(file, some(0, 64), &person()).await.unwrap();
    assert_eq!(refused(some(64, 65)).await.details["field"], "tags");
    for n in 0..200 {
        all.mark(file, Mark::Link(id(&all, "/projects").await, format!("k{n}")), &person()).await.unwrap();
    }
    assert_eq!(refused(Mark::Link(id(&all, "/projects").await, "more".into())).await.code, Code::InvalidArgument);
    let root = all.by_id(FileId(_world.id.0)).await.unwrap().file_id;
    assert_eq!(all.mark(root, Mark::Tag(vec!["a".into()]), &person()).await.unwrap_err().code, Code::Unprocessable);
}

#[tokio::test]
async fn a_text_with_more_links_than_a_commit_has_room_for_keeps_its_backlinks() {
    let (_world, all) = World::new().await;
    let text: String = (0..100).map(|n| format!("[[n{n}]] ")).collect();
    for n in [0, 50, 99] {
        put(&all, &format!("/projects/n{n}.md"), "x").await;
    }
    put(&all, "/projects/a.md", &text).await;
    assert_eq!(from(&all, "/projects/a.md").await.len(), 100);
    assert_eq!(to(&all, "/projects/n99.md").await, ["wiki /projects/a.md"]);
}

#[tokio::test]
async fn a_network_goes_both_ways_step_by_step_within_its_bounds() {
    let (_world, all) = World::new().await;
    put(&all, "/d.md", "x").await;
    put(&all, "/c.md", "[[d]]").await;
    put(&all, "/b.md", "[[c]]").await;
    put(&all, "/a.md", "[[b]]").await;
    let nodes = |nodes: &[&str]| nodes.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(network(&all, "/a.md", 1, 10).await, (nodes(&["0 /a.md", "1 /b.md"]), 1, false));
    assert_eq!(network(&all, "/c.md", 1, 10).await, (nodes(&["0 /c.md", "1 /d.md", "1 /b.md"]), 2, false));
    let three = nodes(&["0 /a.md", "1 /b.md", "2 /c.md", "3 /d.md"]);
    assert_eq!(network(&all, "/a.md", 3, 10).await, (three.clone(), 3, false));
    assert_eq!(network(&all, "/a.md", 99, 10).await.0, three);
    assert_eq!(network(&all, "/a.md", 3, 3).await, (three[..3].to_vec(), 2, true));
}

#[tokio::test]
async fn links_to_and_from_hidden_files_do_not_exist() {
    let (world, all) = World::new().await;
    let home = format!("/users/{ANN}");
    put(&all, "/projects/a.md", "x").await;
    put(&all, &format!("{home}/draft.md"), "[a](/projects/a.md)").await;
    link(&all, &format!("{home}/draft.md"), "/projects/a.md", "answers").await;
    link(&all, "/projects/a.md", &format!("{home}/draft.md"), "answers").await;
    tag(&all, &format!("{home}/draft.md"), &["open", "mine"]).await;
    tag(&all, "/projects/a.md", &["open"]).await;
    let as_person = async |id: UserId| {
        world.all.open(world.id, Access::of(&Principal::User { id }, Some(Role::Owner))).await.unwrap()
    };
    let (ann, bob) = (as_person(ANN).await, as_person(BOB).await);
    assert_eq!(to(&ann, "/projects/a.md").await.len(), 2);
    assert_eq!((from(&bob, "/projects/a.md").await, to(&bob, "/projects/a.md").await), (vec![], vec![]));
    assert_eq!(counts(&ann).await, [("mine".into(), 1), ("open".into(), 2)]);
    assert_eq!(counts(&bob).await, [("open".into(), 1)]);
    assert_eq!(bob.tagged("mine", 10, None).await.unwrap().files, []);
    assert_eq!(network(&bob, "/projects/a.md", 5, 10).await, (vec!["0 /projects/a.md".into()], 0, false));
    assert_eq!(network(&ann, "/projects/a.md", 5, 10).await.0.len(), 2);
    let draft = id(&ann, &format!("{home}/draft.md")).await;
    let by = Writer::new(Principal::User { id: BOB });
    let a = id(&bob, "/projects/a.md").await;
    assert_eq!(bob.mark(draft, Mark::Tag(vec!["x".into()]), &by).await.unwrap_err().code, Code::NotFound);
    assert_eq!(bob.mark(a, Mark::Link(draft, "x".into()), &by).await.unwrap_err().code, Code::NotFound);
    assert_eq!(bob.relations(draft).await.unwrap_err().code, Code::NotFound);
    // A text that names a hidden path looks as if nothing were there, for its author, too.
    let text = format!("[d]({home}/draft.md)");
    bob.write(&path("/projects/b.md"), text, Expect::Any, &by).await.unwrap();
    assert_eq!(from(&bob, "/projects/b.md").await, [format!("markdown ?{home}/draft.md")]);
    assert_eq!(from(&ann, "/projects/b.md").await, [format!("markdown {home}/draft.md")]);
}

#[tokio::test]
async fn tags_in_front_matter_are_taken_up_with_each_version() {
    let (_world, all) = World::new().await;
    let at = "/projects/plan.md";
    let write = async |text: &str| all.write(&path(at), text.to_owned(), Expect::Any, &person()).await.unwrap();
    let tags = async || all.relations(id(&all, at).await).await.unwrap().tags;
    write("---\ntags: [Plan, status:open]\n---\n# Plan\n").await;
    assert_eq!(tags().await, ["plan", "status:open"]);
    tag(&all, at, &["mine"]).await;
    write("---\ntags:\n  - plan\n  - status:done\n---\nSee [other](other.md).\n").await;
    assert_eq!(tags().await, ["mine", "plan", "status:done"], "a tag of its own stays");
    assert_eq!(counts(&all).await, [("mine".into(), 1), ("plan".into(), 1), ("status:done".into(), 1)]);
    write("no front matter, but [a link](other.md)\n").await;
    write("nothing\n").await;
    assert_eq!(tags().await, ["mine", "plan", "status:done"], "a text without front matter says nothing of tags");
    write("---\ntitle: x\n---\n").await;
    assert_eq!(tags().await, ["mine"], "front matter without tags has none");
    assert_eq!(all.tagged("plan", 10, None).await.unwrap().files, []);
    all.write(&path("/projects/x.txt"), "---\ntags: [x]\n---\n", Expect::Any, &person()).await.unwrap();
    assert_eq!(all.tags_of(&all.stat(&path("/projects/x.txt")).await.unwrap()).await.unwrap(), [""; 0]);
    // An old version has its tags back.
    all.restore_version(id(&all, at).await, 1, Expect::Any, &person()).await.unwrap();
    assert_eq!(tags().await, ["mine", "plan", "status:open"]);
}

#[tokio::test]
async fn a_change_of_tags_or_links_is_in_the_workspaces_stream() {
    let (_world, all) = World::new().await;
    put(&all, "/projects/a.md", "a").await;
    put(&all, "/projects/b.md", "b").await;
    let told = async || {
        let page = all.changes_from(domain::Timestamp::default(), None).await.unwrap();
        let marked = page.changes.into_iter().filter_map(|(_, event)| match event {
            domain::WorkspaceEvent::FileUpdated { path, op: domain::FileOp::Marked, v, .. } => {
                Some((path.to_string(), v))
            }
            _ => None,
        });
        marked.collect::<Vec<_>>()
    };
    tag(&all, "/projects/a.md", &["x"]).await;
    tag(&all, "/projects/a.md", &["x"]).await;
    link(&all, "/projects/b.md", "/projects/a.md", "answers").await;
    let expected = [("/projects/a.md".to_owned(), 1), ("/projects/b.md".to_owned(), 1)];
    assert_eq!(told().await, expected, "what changes nothing is not told");
}
