//! Searches by meaning, with an embedder that counts words: they show that the nearest passages are found, followed and hidden, and nothing of how
//! well a model understands.
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_search::{Answer, Bounds, HitKind, Mode, Request, Search};
use domain::{Code, FilePath, Principal, UserId, WorkspaceId};
use embedded::LocalIndexes;
use ports::{Clock, Embedder, ModelError, SystemClock};
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use testkit::fakes::{FakeBlobs, FakeEmbedder, FakeTable, Faults};
use uuid::Uuid;
use workspace::{Access, Expect, Purpose, Role, Workspace, Workspaces, Writer};

const ANN: UserId = UserId(Uuid::from_u128(1 << 90));
const BOB: UserId = UserId(Uuid::from_u128(2 << 90));

struct World {
    all: Workspaces,
    id: WorkspaceId,
    here: Workspace,
    embedder: Arc<FakeEmbedder>,
    search: Search,
    clock: Arc<dyn Clock>,
    root: TempDir,
}

impl World {
    async fn new() -> Self {
        let faults = Faults { yields: 0.2, short_pages: 0.5, ..Faults::none() };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let table = Arc::new(FakeTable::new(clock.clone(), 1, faults.clone()));
        let blobs = Arc::new(FakeBlobs::new(1, faults));
        let root = TempDir::new().unwrap();
        let all = Workspaces::new(table, blobs, clock.clone(), root.path().into());
        let id = WorkspaceId(Uuid::now_v7());
        all.create(id, "test", &Principal::local()).await.unwrap();
        let here = all.open(id, Access::platform("a test")).await.unwrap();
        let embedder = Arc::new(FakeEmbedder::new("fake/one"));
        let search = search(&all, &clock, &root, embedder.clone());
        Self { all, id, here, embedder, search, clock, root }
    }

    /// As after a restart, with this embedder.
    fn with(&self, embedder: Arc<dyn Embedder>) -> Search {
        search(&self.all, &self.clock, &self.root, embedder)
    }

    async fn person(&self, id: UserId) -> Workspace {
        self.all.open(self.id, Access::of(&Principal::User { id }, Some(Role::Editor))).await.unwrap()
    }

    async fn put(&self, at: &str, text: &str) {
        let by = Writer::new(Principal::System);
        self.here.write(&path(at), text.to_owned(), Expect::Any, &by).await.unwrap();
    }

    async fn find(&self, query: &str, mode: Mode) -> Answer {
        self.search.find(&self.here, &asked(query), mode).await.unwrap()
    }
}

fn search(all: &Workspaces, clock: &Arc<dyn Clock>, root: &TempDir, embedder: Arc<dyn Embedder>) -> Search {
    // Long enough on any machine: each search has all vectors then.
    let bounds = Bounds { embedding: Duration::from_secs(60), ..Bounds::default() };
    Search::new(all.clone(), Arc::new(LocalIndexes::new(root.path())), clock.clone())
        .embedding(Some(embedder))
        .within(bounds)
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

/// Below `/projects`, since each workspace begins with skills.
fn asked(query: &str) -> Request {
    let (kinds, author, tag, since, until) = (Vec::new(), None, None, None, None);
    Request { query: query.into(), path: path("/projects"), kinds, author, tag, since, until, limit: 10 }
}

fn paths(answer: &Answer) -> Vec<&str> {
    answer.results.iter().map(|hit| hit.path.as_str()).collect()
}

#[tokio::test]
async fn a_file_without_a_word_of_the_query_is_found_by_its_meaning_with_its_place() {
    let world = World::new().await;
    world.put("/projects/a.md", "# Garage\n\n## Repairs\n\nthe automobile stands outside\n").await;
    world.put("/projects/b.md", "# Kitchen\n\nsoup boils\n").await;
    assert_eq!(world.find("my cars", Mode::Text).await.results.len(), 0);
    let found = world.find("my cars", Mode::Semantic).await;
    assert_eq!((paths(&found), found.total, found.pending), (vec!["/projects/a.md"], 1, 0));
    assert_eq!((found.mode, found.complete, found.usage.input_tokens), (Mode::Semantic, true, 2));
    let hit = &found.results[0];
    assert_eq!((hit.v, hit.heading.as_str(), hit.kind), (1, "Garage > Repairs", HitKind::File));
    assert_eq!(hit.lines.map(|lines| (lines.first, lines.last)), Some((3, 5)));
    assert!(hit.score.meaning.unwrap() > 0.2 && hit.score.text == 0.0, "{:?}", hit.score);
    assert!(hit.why.starts_with("near in meaning"), "{}", hit.why);
}

#[tokio::test]
async fn tokens_of_passages_and_queries_are_in_the_usage_of_their_workspace() {
    let world = World::new().await;
    world.put("/projects/a.md", "# Garage\n\nthe automobile stands outside\n").await;
    world.find("car", Mode::Text).await;
    assert_eq!(world.here.spent("2000-01-01", "2999-12-31").await.unwrap(), [], "words cost nothing");
    let query = world.find("my cars", Mode::Semantic).await.usage;
    let spent = world.here.spent("2000-01-01", "2999-12-31").await.unwrap();
    let [one] = spent.as_slice() else { panic!("one day, purpose and model: {spent:?}") };
    assert_eq!((one.purpose, one.model.as_str()), (Purpose::Embedding, "fake/one"));
    assert!(one.calls >= 2 && one.usage.input_tokens > query.input_tokens, "{one:?}");
    world.find("my cars", Mode::Semantic).await;
    let again = world.here.spent(&one.day, &one.day).await.unwrap();
    let more = one.usage.input_tokens + query.input_tokens;
    assert_eq!((again[0].calls, again[0].usage.input_tokens), (one.calls + 1, more), "the query alone");
    let day = |day: &str| format!("{day}-01-01");
    assert_eq!(world.here.spent(&day("2000"), &day("2001")).await.unwrap(), []);
}

#[tokio::test]
async fn a_hybrid_search_puts_a_file_with_words_and_meaning_first() {
    let world = World::new().await;
    world.put("/projects/both.md", "the car and its automobile vehicle\n").await;
    world.put("/projects/meaning.md", "a vehicle\n").await;
    world.put("/projects/words.md", &format!("a car {}\n", "among other things ".repeat(40))).await;
    world.put("/projects/none.md", "soup\n").await;
    let found = world.find("car", Mode::Hybrid).await;
    assert_eq!(found.mode, Mode::Hybrid);
    assert_eq!(paths(&found)[0], "/projects/both.md");
    assert_eq!(found.total, 3);
    let both = &found.results[0];
    assert!(both.score.text > 0.0 && both.score.meaning.is_some() && both.score.total > 0.03, "{:?}", both.score);
    assert!(both.why.contains("car in 1 passage; near in meaning (place"), "{}", both.why);
    let without = world.find("car -automobile", Mode::Hybrid).await;
    assert!(!paths(&without).contains(&"/projects/both.md"), "an unwanted word keeps a file out by its meaning, too");
    assert_eq!(paths(&world.find("car +things", Mode::Hybrid).await), ["/projects/words.md"]);
}

#[tokio::test]
async fn only_changed_passages_are_embedded_again() {
    let world = World::new().await;
    let text = |end: &str| format!("# One\n\nthe first passage\n\n# Two\n\nthe car {end}\n");
    world.put("/projects/a.md", &text("stands")).await;
    world.find("car", Mode::Semantic).await;
    world.embedder.take_asked();
    world.put("/projects/a.md", &text("drives")).await;
    world.here.mv(&path("/projects/a.md"), &path("/projects/b.md"), &Writer::new(Principal::System)).await.unwrap();
    let found = world.find("car drives", Mode::Semantic).await;
    assert_eq!((paths(&found)[0], found.pending), ("/projects/b.md", 0));
    assert_eq!(
        world.embedder.take_asked(),
        ["car drives", "Two\n# Two\n\nthe car drives\n"],
        "the query, and one passage"
    );
    let again = world.with(world.embedder.clone());
    again.find(&world.here, &asked("car"), Mode::Semantic).await.unwrap();
    assert_eq!(world.embedder.take_asked(), ["car"], "vectors outlast a restart");
    let other = Arc::new(FakeEmbedder::new("fake/other"));
    let found = world.with(other.clone()).find(&world.here, &asked("automobile"), Mode::Semantic).await.unwrap();
    assert_eq!(paths(&found), ["/projects/b.md"]);
    assert!(other.take_asked().len() > 2, "another model embeds all anew");
}

#[tokio::test]
async fn the_home_of_another_person_changes_neither_results_nor_counts_nor_scores_nor_what_waits() {
    let world = World::new().await;
    for number in 0..20 {
        world.put(&format!("/projects/{number}.md"), &format!("shared car number {number}")).await;
    }
    let everywhere = |query: &str, limit| Request { path: FilePath::root(), limit, ..asked(query) };
    let bob = world.person(BOB).await;
    let (one, ten) = (everywhere("car", 1), everywhere("automobile number 7", 10));
    let mut before = Vec::new();
    for mode in [Mode::Semantic, Mode::Hybrid] {
        for request in [&one, &ten] {
            before.push((mode, request, world.search.find(&bob, request, mode).await.unwrap()));
        }
    }
    for number in 0..300 {
        let text = format!("automobile {}number 7", "car ".repeat(number % 9));
        world.put(&format!("/users/{ANN}/car/{number}.md"), &text).await;
    }
    for is_embedded in [false, true] {
        let failure = (!is_embedded).then(|| ModelError::Rejected("none of these".into()));
        for (mode, request, expected) in &before {
            // While the passages of Ann wait, and when they do not. A query is embedded either way.
            let search = match &failure {
                Some(_) => world.with(Arc::new(QueriesAlone(world.embedder.clone()))),
                None => world.search.clone(),
            };
            assert_eq!(&search.find(&bob, request, *mode).await.unwrap(), expected, "{is_embedded}");
        }
    }
    let ann = world.person(ANN).await;
    let found = world.search.find(&ann, &everywhere("car", 100), Mode::Semantic).await.unwrap();
    assert!(paths(&found).iter().any(|path| path.starts_with("/users/")), "{found:?}");
    // A file that was shared and is in a home now is out of sight at once.
    world.put("/projects/secret.md", "physician").await;
    let seen = async || world.search.find(&bob, &everywhere("doctor", 10), Mode::Semantic).await.unwrap();
    assert_eq!(paths(&seen().await), ["/projects/secret.md"]);
    let by = Writer::new(Principal::System);
    world.here.mv(&path("/projects/secret.md"), &path(&format!("/users/{ANN}/secret.md")), &by).await.unwrap();
    assert_eq!(paths(&seen().await), [""; 0]);
}

/// Embeds queries and no passages.
struct QueriesAlone(Arc<FakeEmbedder>);

#[async_trait::async_trait]
impl Embedder for QueriesAlone {
    fn space(&self) -> &str {
        self.0.space()
    }
    fn most_texts(&self) -> usize {
        self.0.most_texts()
    }
    async fn embed(&self, texts: &[String], purpose: ports::EmbedAs) -> Result<ports::Embedded, ModelError> {
        match purpose {
            ports::EmbedAs::Query => self.0.embed(texts, purpose).await,
            ports::EmbedAs::Passage => Err(ModelError::Unavailable("down".into())),
        }
    }
}

/// Embeds the first passage of a request and fails at the second, as a model that takes a text per request may.
struct Breaking(Arc<FakeEmbedder>, ModelError);

#[async_trait::async_trait]
impl Embedder for Breaking {
    fn space(&self) -> &str {
        self.0.space()
    }
    fn most_texts(&self) -> usize {
        self.0.most_texts()
    }
    async fn embed(&self, texts: &[String], purpose: ports::EmbedAs) -> Result<ports::Embedded, ModelError> {
        match texts {
            [first, _, ..] => {
                let embedded = self.0.embed(std::slice::from_ref(first), purpose).await?;
                Ok(ports::Embedded { failed: Some(self.1.clone()), ..embedded })
            }
            texts => self.0.embed(texts, purpose).await,
        }
    }
}

#[tokio::test]
async fn passages_before_the_one_that_failed_keep_their_vectors_and_are_counted_once() {
    let world = World::new().await;
    for number in 0..5 {
        world.put(&format!("/projects/{number}.md"), &format!("the car number {number}")).await;
    }
    let embedder = Arc::new(FakeEmbedder::new("fake/breaking"));
    let with = |failure| world.with(Arc::new(Breaking(embedder.clone(), failure)));
    let search = with(ModelError::Unavailable("503".into()));
    search.find(&world.here, &asked("car"), Mode::Semantic).await.unwrap();
    let first = embedder.take_asked();
    assert_eq!(first.len(), 2, "the query, and the passage before the one that failed: {first:?}");
    // After a refusal the texts from there on are asked one by one.
    let search = with(ModelError::Rejected("400".into()));
    let found = search.find(&world.here, &asked("car"), Mode::Semantic).await.unwrap();
    assert_eq!((found.total, found.pending), (5, 0), "{found:?}");
    let again = embedder.take_asked();
    assert!(!again.contains(&first[1]), "{again:?} has a passage that is paid for: {first:?}");
}

#[tokio::test]
async fn filters_select_before_the_nearest_are_taken() {
    let world = World::new().await;
    for number in 0..300 {
        world.put(&format!("/projects/near/{number}.md"), "car").await;
    }
    let by = Writer::new(Principal::User { id: BOB });
    let far = format!("car {}", "and other things ".repeat(20));
    world.here.write(&path("/projects/far/a.md"), far, Expect::Any, &by).await.unwrap();
    let of_bob = Request { author: Some(Principal::User { id: BOB }.to_string()), ..asked("car") };
    let below = Request { path: path("/projects/far"), ..asked("car") };
    let of_chats = Request { kinds: vec![HitKind::Chat], ..asked("car") };
    for (request, expected) in [(of_bob, 1), (below, 1), (of_chats, 0)] {
        let found = world.search.find(&world.here, &request, Mode::Semantic).await.unwrap();
        assert_eq!(found.total, expected, "{found:?}");
    }
}

#[tokio::test]
async fn a_model_that_fails_is_told_and_never_keeps_words_from_being_found() {
    let world = World::new().await;
    world.put("/projects/a.md", "a car").await;
    for (failure, code) in [
        (ModelError::Unavailable("down".into()), Code::UpstreamUnavailable),
        (ModelError::RateLimited { retry_after: None }, Code::UpstreamUnavailable),
        (ModelError::Unauthorized("no".into()), Code::UpstreamRefused),
        (ModelError::Rejected("no such model".into()), Code::Unprocessable),
    ] {
        world.embedder.fail(Some(failure));
        let error = world.search.find(&world.here, &asked("car"), Mode::Semantic).await.unwrap_err();
        assert_eq!(error.code, code);
        assert_eq!(paths(&world.find("car", Mode::Text).await), ["/projects/a.md"]);
        let hybrid = world.find("car", Mode::Hybrid).await;
        assert_eq!((hybrid.mode, paths(&hybrid)), (Mode::Text, vec!["/projects/a.md"]));
        assert!(hybrid.note.unwrap().starts_with("words alone decided"));
    }
    // Queries are embedded, and passages are not: the answer says how many wait.
    let search = world.with(Arc::new(QueriesAlone(world.embedder.clone())));
    world.embedder.fail(None);
    let found = search.find(&world.here, &asked("automobile"), Mode::Semantic).await.unwrap();
    assert_eq!((found.total, found.pending, found.complete), (0, 1, false));
    let found = search.find(&world.here, &asked("car"), Mode::Hybrid).await.unwrap();
    assert_eq!((paths(&found), found.pending), (vec!["/projects/a.md"], 1));
    assert_eq!(world.find("automobile", Mode::Semantic).await.total, 1, "another try has them");
}

#[tokio::test]
async fn a_text_that_the_model_does_not_take_holds_no_other_up() {
    let world = World::new().await;
    world.embedder.refuse("poison");
    for number in 0..30 {
        let text = if number % 10 == 3 { "car poison" } else { "a car" };
        world.put(&format!("/projects/{number}.md"), text).await;
    }
    let found = world.find("automobile", Mode::Semantic).await;
    assert_eq!((found.total, found.pending), (27, 0));
    assert_eq!(paths(&world.find("poison", Mode::Text).await).len(), 3);
}

#[tokio::test]
async fn queries_that_mean_nothing_are_refused() {
    let world = World::new().await;
    for query in ["", "  ", "?!", &"a".repeat(5_000)] {
        let error = world.search.find(&world.here, &asked(query), Mode::Semantic).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{query:?}");
    }
    world.put("/projects/a.md", "a car").await;
    let odd = world.find("\"car\" OR -automobile; DROP TABLE vectors", Mode::Semantic).await;
    assert_eq!(odd.total, 1, "signs mean nothing");
    let alone = world.search.clone().embedding(None);
    let error = alone.find(&world.here, &asked("car"), Mode::Semantic).await.unwrap_err();
    assert_eq!((error.code, error.details["reason"].as_str()), (Code::Unprocessable, Some("NO_EMBEDDING_MODEL")));
    let found = alone.find(&world.here, &asked("car"), Mode::Hybrid).await.unwrap();
    let note = "words alone decided: no embedding model is configured";
    assert_eq!((found.mode, found.note.as_deref()), (Mode::Text, Some(note)));
    assert_eq!(alone.find(&world.here, &asked("car"), Mode::Text).await.unwrap().note, None);
}
