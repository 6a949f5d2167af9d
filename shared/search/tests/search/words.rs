//! Searches over a workspace that people write to, as several parties see it.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_search::{Answer, Bounds, Hit, HitKind, Request, Search};
use domain::{Code, FileId, FilePath, Principal, Timestamp, UserId, WorkspaceId};
use embedded::LocalIndexes;
use ports::{Clock, Key, SearchIndexes, SystemClock, Table as _};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};
use tempfile::TempDir;
use testkit::fakes::{FakeBlobs, FakeTable, Faults};
use uuid::Uuid;
use workspace::{Access, Expect, Mark, Role, Workspace, Workspaces, Writer};

const ANN: UserId = UserId(Uuid::from_u128(1 << 90));
const BOB: UserId = UserId(Uuid::from_u128(2 << 90));

struct World {
    all: Workspaces,
    id: WorkspaceId,
    here: Workspace,
    search: Search,
    table: Arc<FakeTable>,
    clock: Arc<dyn Clock>,
    root: TempDir,
}

impl World {
    async fn new() -> Self {
        Self::by(Arc::new(SystemClock)).await
    }

    async fn by(clock: Arc<dyn Clock>) -> Self {
        // Pages that end early are within the contract.
        let faults = Faults { yields: 0.2, short_pages: 0.5, ..Faults::none() };
        let table = Arc::new(FakeTable::new(clock.clone(), 1, faults.clone()));
        let blobs = Arc::new(FakeBlobs::new(1, faults));
        let root = TempDir::new().unwrap();
        let all = Workspaces::new(table.clone(), blobs, clock.clone(), root.path().into());
        let id = WorkspaceId(Uuid::now_v7());
        all.create(id, "test", &Principal::local()).await.unwrap();
        let here = all.open(id, Access::platform("a test")).await.unwrap();
        let search = Search::new(all.clone(), Arc::new(LocalIndexes::new(root.path())), clock.clone());
        Self { all, id, here, search, table, clock, root }
    }

    /// As after a restart, with the same index and these bounds.
    fn again(&self, bounds: Bounds) -> Search {
        Search::new(self.all.clone(), Arc::new(LocalIndexes::new(self.root.path())), self.clock.clone()).within(bounds)
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join(self.id.to_string()).join("search")
    }

    async fn person(&self, id: UserId) -> Workspace {
        self.all.open(self.id, Access::of(&Principal::User { id }, Some(Role::Editor))).await.unwrap()
    }

    async fn put(&self, at: &str, text: &str) -> FileId {
        self.here.write(&path(at), text.to_owned(), Expect::Any, &writer()).await.unwrap().file_id
    }

    async fn find(&self, query: &str) -> Vec<String> {
        let mut found = paths(&self.search.text(&self.here, &asked(query)).await.unwrap());
        // The skills that each workspace begins with have common words, too.
        found.retain(|path| !path.starts_with("/system/"));
        found
    }

    async fn one(&self, query: &str) -> Hit {
        self.search.text(&self.here, &asked(query)).await.unwrap().results.remove(0)
    }
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

fn writer() -> Writer {
    Writer::new(Principal::System)
}

fn asked(query: &str) -> Request {
    let (kinds, author, tag, since, until) = (Vec::new(), None, None, None, None);
    Request { query: query.into(), path: FilePath::root(), kinds, author, tag, since, until, limit: 10 }
}

fn paths(answer: &Answer) -> Vec<String> {
    answer.results.iter().map(|hit| hit.path.to_string()).collect()
}

fn marked(hit: &Hit) -> String {
    hit.snippet.iter().map(|part| if part.mark { format!("[{}]", part.text) } else { part.text.clone() }).collect()
}

#[tokio::test]
async fn a_committed_write_is_found_by_the_next_search() {
    let world = World::new().await;
    assert_eq!(world.find("heliotrope").await, [""; 0]);
    world.put("/projects/a.md", "# Flowers\n\nA heliotrope grows.\n").await;
    let hit = world.one("heliotropes").await;
    assert_eq!(
        (hit.path.as_str(), hit.v, hit.kind, hit.heading.as_str()),
        ("/projects/a.md", 1, HitKind::File, "Flowers")
    );
    assert_eq!(marked(&hit), "A [heliotrope] grows.");
    assert_eq!(hit.lines.map(|lines| (lines.first, lines.last)), Some((3, 3)));
    assert!(hit.score.total > 0.0 && hit.why.contains("heliotropes"), "{hit:?}");
    world.put("/projects/a.md", "roses\n").await;
    assert_eq!(world.find("heliotrope").await, [""; 0]);
    assert_eq!(world.one("rose").await.v, 2);
}

/// The clock of the machine, set forward by some milliseconds.
struct Forward(AtomicI64);

impl Clock for Forward {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() + self.0.load(Relaxed))
    }
    fn id(&self) -> Uuid {
        SystemClock.id()
    }
}

#[tokio::test]
async fn the_records_of_a_burst_are_not_read_by_each_search_after_it() {
    let clock = Arc::new(Forward(AtomicI64::new(0)));
    let world = World::by(clock.clone()).await;
    assert_eq!(world.find("heliotrope").await, [""; 0]);
    for number in 0..20 {
        world.put(&format!("/projects/{number}.md"), "a heliotrope\n").await;
    }
    assert_eq!(world.find("heliotrope").await.len(), 10);
    let known = async || {
        let index = LocalIndexes::new(world.root.path()).open(world.id).await.unwrap();
        let note: serde_json::Value = serde_json::from_str(&index.progress().await.unwrap().unwrap()).unwrap();
        note["recent"].as_array().unwrap().len()
    };
    assert!(known().await >= 20, "another writer may be late: they are looked at again");
    clock.0.store(120_000, Relaxed);
    world.find("heliotrope").await;
    assert_eq!(known().await, 0, "nobody is as late as that");
}

#[tokio::test]
async fn a_file_that_is_written_after_the_clock_was_set_back_is_found() {
    let clock = Arc::new(Forward(AtomicI64::new(3_600_000)));
    let world = World::by(clock.clone()).await;
    assert_eq!(world.find("heliotrope").await, [""; 0]);
    clock.0.store(0, Relaxed);
    world.put("/projects/a.md", "a heliotrope\n").await;
    assert_eq!(world.find("heliotrope").await, ["/projects/a.md"]);
}

#[tokio::test]
async fn words_phrases_beginnings_and_signs_select_and_rank() {
    let world = World::new().await;
    world.put("/both.txt", "error recovery in the parser").await;
    world.put("/apart.txt", "recovery of an error; lexing and a parser").await;
    world.put("/one.txt", "the parsers").await;
    assert_eq!(world.find("\"error recovery\"").await, ["/both.txt"]);
    assert_eq!(world.find("parse -lexing").await.len(), 0, "the stem of parser is another one");
    assert_eq!(world.find("parser -lexing").await, ["/one.txt", "/both.txt"]);
    assert_eq!(world.find("lex*").await, ["/apart.txt"]);
    assert_eq!(world.find("parser +error").await.len(), 2);
    let any = world.find("parser recovery error").await;
    assert!(any.len() == 3 && any[2] == "/one.txt", "{any:?}");
    assert_eq!(world.find("apart").await, ["/apart.txt"], "by its name");
}

#[tokio::test]
async fn moves_removals_and_restores_are_followed() {
    let world = World::new().await;
    let file = world.put("/projects/crocus/deep/a.md", "heliotrope").await;
    assert_eq!(world.find("heliotrope").await, ["/projects/crocus/deep/a.md"]);
    world.here.mv(&path("/projects/crocus"), &path("/projects/dahlia"), &writer()).await.unwrap();
    assert_eq!(world.find("heliotrope").await, ["/projects/dahlia/deep/a.md"]);
    assert_eq!(world.find("dahlia").await, ["/projects/dahlia/deep/a.md"], "by its new name");
    assert_eq!(world.find("crocus").await, [""; 0], "not by its old one");
    let folder = world.here.stat(&path("/projects/dahlia")).await.unwrap().file_id;
    world.here.rm(&path("/projects/dahlia"), &writer()).await.unwrap();
    assert_eq!(world.find("heliotrope").await, [""; 0]);
    world.here.restore(folder, &writer()).await.unwrap();
    assert_eq!(world.find("heliotrope").await, ["/projects/dahlia/deep/a.md"]);
    world.here.rm(&path("/projects/dahlia/deep/a.md"), &writer()).await.unwrap();
    assert_eq!(world.find("heliotrope").await, [""; 0]);
    world.here.restore(file, &writer()).await.unwrap();
    world.put("/projects/dahlia/deep/a.md", "other").await;
    world.here.restore_version(file, 1, Expect::Any, &writer()).await.unwrap();
    assert_eq!(world.one("heliotrope").await.v, 3);
    // Several changes of a place between two searches.
    world.here.mv(&path("/projects/dahlia"), &path("/projects/b"), &writer()).await.unwrap();
    world.here.mv(&path("/projects/b/deep"), &path("/deep"), &writer()).await.unwrap();
    world.put("/projects/b/deep/a.md", "heliotrope").await;
    assert_eq!(world.find("heliotrope").await, ["/deep/a.md", "/projects/b/deep/a.md"]);
}

#[tokio::test]
async fn the_home_of_another_person_changes_neither_results_nor_counts_nor_scores() {
    let world = World::new().await;
    for number in 0..20 {
        world.put(&format!("/projects/{number}.md"), &format!("shared word {number}")).await;
    }
    let bob = world.person(BOB).await;
    let before = world.search.text(&bob, &asked("word heliotrope")).await.unwrap();
    for number in 0..50 {
        let text = format!("heliotrope {}", "word ".repeat(number));
        world.put(&format!("/users/{ANN}/word/{number}.md"), &text).await;
    }
    assert_eq!(world.search.text(&bob, &asked("word heliotrope")).await.unwrap(), before);
    assert_eq!((before.total, before.results.len()), (20, 10), "a page is filled from what is shown");
    assert_eq!(world.search.text(&bob, &asked("heliotrope")).await.unwrap().total, 0);
    let ann = world.person(ANN).await;
    assert_eq!(world.search.text(&ann, &asked("heliotrope")).await.unwrap().total, 50);
    let at = |home: String| Request { path: path(&home), ..asked("heliotrope") };
    let hidden = world.search.text(&bob, &at(format!("/users/{ANN}"))).await.unwrap_err();
    let missing = world.search.text(&bob, &at(format!("/users/{}", UserId(Uuid::from_u128(9))))).await.unwrap_err();
    assert_eq!((hidden.code, &hidden.hint), (Code::NotFound, &missing.hint));
    // A file that was shared and is in a home now is out of sight at once.
    world.put("/projects/secret.md", "amaranth").await;
    assert_eq!(world.search.text(&bob, &asked("amaranth")).await.unwrap().total, 1);
    world.here.mv(&path("/projects/secret.md"), &path(&format!("/users/{ANN}/secret.md")), &writer()).await.unwrap();
    assert_eq!(world.search.text(&bob, &asked("amaranth")).await.unwrap().total, 0);
}

#[tokio::test]
async fn an_index_that_is_behind_shows_nothing_that_went_out_of_sight() {
    let world = World::new().await;
    world.put("/projects/secret.md", "amaranth").await;
    world.put("/projects/other.md", "amaranth").await;
    assert_eq!(world.find("amaranth").await.len(), 2);
    // More changes than one page of records has, of which a search without time reads one page.
    for number in 0..600 {
        world.put("/projects/other.md", &format!("amaranth {number}")).await;
    }
    world.here.mv(&path("/projects/secret.md"), &path(&format!("/users/{ANN}/secret.md")), &writer()).await.unwrap();
    let late = world.again(Bounds { time: Duration::ZERO, ..Bounds::default() });
    let bob = world.person(BOB).await;
    let answer = late.text(&bob, &asked("amaranth")).await.unwrap();
    assert!(!answer.complete && answer.total == answer.results.len(), "{answer:?}");
    assert!(!paths(&answer).contains(&"/projects/secret.md".to_owned()), "{answer:?}");
    let found = world.again(Bounds::default()).text(&bob, &asked("amaranth")).await.unwrap();
    assert!(found.complete);
    assert_eq!(paths(&found), ["/projects/other.md"]);
}

#[tokio::test]
async fn filters_select_before_anything_is_counted() {
    let world = World::new().await;
    let started = SystemClock.now();
    for number in 0..30 {
        world.put(&format!("/projects/a/{number}.md"), "heliotrope").await;
    }
    world.put("/projects/ab.md", "heliotrope").await;
    let by = Writer::new(Principal::User { id: BOB });
    world.here.write(&path("/projects/bob.md"), "heliotrope", Expect::Any, &by).await.unwrap();
    let total = async |request: Request| world.search.text(&world.here, &request).await.unwrap().total;
    assert_eq!(total(asked("heliotrope")).await, 32);
    assert_eq!(total(Request { path: path("/projects/a"), ..asked("heliotrope") }).await, 30);
    assert_eq!(total(Request { path: path("/projects/ab.md"), ..asked("heliotrope") }).await, 1);
    let author = Some(Principal::User { id: BOB }.to_string());
    assert_eq!(total(Request { author, ..asked("heliotrope") }).await, 1);
    assert_eq!(total(Request { until: Some(started), ..asked("heliotrope") }).await, 0);
    assert_eq!(total(Request { since: Some(started), ..asked("heliotrope") }).await, 32);
    assert_eq!(total(Request { since: Some(Timestamp::from_millis(i64::MAX)), ..asked("heliotrope") }).await, 0);
    assert_eq!(total(Request { kinds: vec![HitKind::Chat, HitKind::Document], ..asked("heliotrope") }).await, 0);
    assert_eq!(total(Request { kinds: vec![HitKind::File], ..asked("heliotrope") }).await, 32);
    let tagged = |tag: &str| Request { tag: Some(tag.into()), ..asked("heliotrope") };
    assert_eq!(total(tagged("blue")).await, 0);
    for at in ["/projects/a/7.md", "/projects/ab.md"] {
        let file = world.here.stat(&path(at)).await.unwrap().file_id;
        world.here.mark(file, Mark::Tag(vec!["blue".into()]), &writer()).await.unwrap();
    }
    assert_eq!(total(tagged("Blue")).await, 2);
    assert_eq!(total(Request { path: path("/projects/a"), ..tagged("blue") }).await, 1);
    let wrong = world.search.text(&world.here, &tagged("no tag")).await.unwrap_err();
    assert_eq!(wrong.code, Code::InvalidArgument);
}

#[tokio::test]
async fn a_chat_is_found_by_what_was_said_last() {
    let world = World::new().await;
    let (chat, id) = (path("/chats/a.md"), FileId(Uuid::now_v7()));
    world.here.create_projection(&chat, id, "# A chat\n", &writer()).await.unwrap();
    assert_eq!(world.find("heliotrope").await, [""; 0]);
    world.here.projection(&chat).unwrap().append("\nI like the heliotrope.\n").await.unwrap();
    let hit = world.one("heliotrope").await;
    assert_eq!((hit.path.as_str(), hit.kind, hit.v), ("/chats/a.md", HitKind::Chat, 0));
    assert_eq!(hit.lines.map(|lines| lines.first), Some(3));
}

#[tokio::test]
async fn a_document_is_found_by_its_markdown() {
    let world = World::new().await;
    let document = world.put("/data/tulip.bin", "\0binary").await;
    let by = Writer { derived_from: Some(document), ..writer() };
    world.here.write(&path("/data/tulip.bin.md"), "# Tulip\n\nheliotrope\n", Expect::Any, &by).await.unwrap();
    let hit = world.one("heliotrope").await;
    assert_eq!((hit.path.as_str(), hit.kind, hit.file_id), ("/data/tulip.bin", HitKind::Document, document));
    assert_eq!(world.find("tulip heliotrope").await, ["/data/tulip.bin"], "it is one result");
    assert_eq!(world.find("tulip -heliotrope").await, [""; 0], "and has an unwanted word as a whole");
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_keeps_no_other_file_from_being_found() {
    let clock = Arc::new(Forward(AtomicI64::new(0)));
    let world = World::by(clock.clone()).await;
    for name in ["a", "b", "c"] {
        world.put(&format!("/projects/{name}.md"), "heliotrope").await;
    }
    assert_eq!(world.find("heliotrope").await.len(), 3);
    let tag = async |at: &str| {
        let file = world.here.stat(&path(at)).await.unwrap().file_id;
        world.here.mark(file, Mark::Tag(vec!["blue".into()]), &writer()).await.unwrap();
    };
    tag("/projects/a.md").await;
    tag("/projects/b.md").await;
    world.put("/projects/b.md", "another heliotrope").await;
    let folder = world.here.stat(&path("/projects")).await.unwrap().file_id;
    let key = Key::new(format!("{}/dir/{folder}", world.id), "b.md");
    let sound = world.table.get(&key).await.unwrap().unwrap().body;
    world.table.damage(&key, "{}");

    let (others, request) = (["/projects/a.md", "/projects/c.md"], asked("heliotrope"));
    let followed = world.search.text(&world.here, &request).await.unwrap();
    assert_eq!((paths(&followed), followed.complete), (others.map(str::to_owned).to_vec(), false));
    let tagged = Request { tag: Some("blue".into()), ..asked("heliotrope") };
    assert_eq!(paths(&world.search.text(&world.here, &tagged).await.unwrap()), ["/projects/a.md"]);
    // An index that is made anew has the others, too.
    std::fs::remove_dir_all(world.folder()).unwrap();
    let again = world.again(Bounds::default());
    let listed = again.text(&world.here, &request).await.unwrap();
    assert_eq!((paths(&listed), listed.complete), (others.map(str::to_owned).to_vec(), false));

    // It is repaired without a record of a change, and found an hour later.
    world.table.damage(&key, sound);
    clock.0.store(3_700_000, Relaxed);
    let repaired = again.text(&world.here, &request).await.unwrap();
    assert_eq!((repaired.total, repaired.complete), (3, true));
}

#[tokio::test]
async fn a_file_whose_entry_cannot_be_read_when_its_content_is_due_is_found_once_it_is_repaired() {
    let clock = Arc::new(Forward(AtomicI64::new(0)));
    let world = World::by(clock.clone()).await;
    world.put("/projects/a.md", "heliotrope").await;
    // Later on, no search reads the record of that change any more.
    clock.0.store(3_700_000, Relaxed);
    let request = asked("heliotrope");
    let late = world.again(Bounds { time: Duration::ZERO, ..Bounds::default() });
    assert!(!late.text(&world.here, &request).await.unwrap().complete, "its content waits");
    let folder = world.here.stat(&path("/projects")).await.unwrap().file_id;
    let key = Key::new(format!("{}/dir/{folder}", world.id), "a.md");
    let sound = world.table.get(&key).await.unwrap().unwrap().body;
    world.table.damage(&key, "{}");
    for _ in 0..2 {
        let damaged = world.search.text(&world.here, &request).await.unwrap();
        assert_eq!((damaged.total, damaged.complete), (0, false));
    }
    world.table.damage(&key, sound);
    clock.0.store(7_400_000, Relaxed);
    let repaired = world.search.text(&world.here, &request).await.unwrap();
    assert_eq!((repaired.total, repaired.complete), (1, true));
}

#[tokio::test]
async fn a_lost_or_damaged_index_is_made_anew() {
    let world = World::new().await;
    world.put("/a.md", "heliotrope").await;
    assert_eq!(world.find("heliotrope").await, ["/a.md"]);
    std::fs::remove_dir_all(world.folder()).unwrap();
    let search = world.again(Bounds::default());
    assert_eq!(paths(&search.text(&world.here, &asked("heliotrope")).await.unwrap()), ["/a.md"]);
    for damage in ["no database at all".repeat(3000), "SQLite format 3\0".to_owned() + &"x".repeat(60_000)] {
        drop(std::fs::remove_dir_all(world.folder()));
        std::fs::create_dir_all(world.folder()).unwrap();
        std::fs::write(world.folder().join("index.sqlite3"), damage).unwrap();
        let search = world.again(Bounds::default());
        assert_eq!(paths(&search.text(&world.here, &asked("heliotrope")).await.unwrap()), ["/a.md"]);
    }
}

#[tokio::test]
async fn an_index_that_is_being_made_says_so_and_goes_on() {
    let world = World::new().await;
    for number in 0..200 {
        world.put(&format!("/{number}.md"), "heliotrope").await;
    }
    let small = world.again(Bounds { bytes: 64, ..Bounds::default() });
    let first = small.text(&world.here, &asked("heliotrope")).await.unwrap();
    assert!(!first.complete && (1..200).contains(&first.total), "{}", first.total);
    let mut totals = vec![first.total];
    while totals.last() != Some(&200) {
        let answer = small.text(&world.here, &asked("heliotrope")).await.unwrap();
        assert!(answer.total > *totals.last().unwrap(), "each search indexes more: {totals:?}");
        totals.push(answer.total);
    }
    assert!(small.text(&world.here, &asked("heliotrope")).await.unwrap().complete);
}

#[tokio::test]
async fn hostile_queries_and_contents_find_nothing_and_break_nothing() {
    let world = World::new().await;
    world.put("/a.md", "heliotrope\" OR 1=1; DROP TABLE files").await;
    world.put("/binary", "heliotrope \0 heliotrope").await;
    world.put("/long.txt", &"heliotrope".repeat(200_000)).await;
    for query in [
        "\"",
        "heliotrope\" OR \"",
        "heliotrope*\u{0}",
        "NEAR(heliotrope)",
        "words:heliotrope",
        "^heliotrope",
        "{heliotrope}",
    ] {
        match world.search.text(&world.here, &asked(query)).await {
            Ok(answer) => {
                let own = answer.results.iter().filter(|hit| !hit.path.as_str().starts_with("/system/"));
                assert!(own.count() <= 2, "{query:?}: {answer:?}");
            }
            Err(error) => assert_eq!(error.code, Code::InvalidArgument, "{query:?}"),
        }
    }
    let endless = world.search.text(&world.here, &asked(&"a ".repeat(50_000))).await.unwrap_err();
    assert_eq!(endless.code, Code::InvalidArgument);
    assert_eq!(world.find("heliotrope").await, ["/a.md"]);
    assert_eq!(world.find("binary").await, ["/binary"], "by its name");
}

#[tokio::test]
async fn a_text_in_any_encoding_is_found_by_its_words_as_it_is_read() {
    let world = World::new().await;
    let old = b"// Gr\xf6\xdfe der Stra\xdfe, f\xfcr die \xdcbersicht der Laternenpf\xe4hle\n";
    let wide: Vec<u8> = "\u{feff}Bericht über die Zeppeline\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (at, bytes) in [("/projects/old.c", old.to_vec()), ("/projects/wide.txt", wide)] {
        world.here.write(&path(at), bytes, Expect::Any, &writer()).await.unwrap();
    }
    world.here.write(&path("/projects/a.bin"), b"zeppeline\0\x01".to_vec(), Expect::Any, &writer()).await.unwrap();
    assert_eq!(world.find("laternenpfähle").await, ["/projects/old.c"]);
    assert_eq!(world.find("zeppeline").await, ["/projects/wide.txt"]);
    let snippet: String = world.one("laternenpfähle").await.snippet.into_iter().map(|part| part.text).collect();
    assert!(snippet.contains("Größe der Straße"), "{snippet}");
}
