//! The suite of the indexes for searches.
#![expect(clippy::unwrap_used, reason = "a suite panics at the first sentence that does not hold")]

use super::table::ok;
use domain::{FileId, FilePath, Timestamp, WorkspaceId};
use ports::{
    Error, FileFilter, IndexEdit, IndexHit, IndexNearest, IndexTerm, IndexVector, IndexedFile, Passage, SearchIndex,
    SearchIndexes, Visibility, Visible,
};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use uuid::Uuid;

const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));

/// Holds indexes to their documentation.
pub async fn search_indexes<F: Future<Output = Arc<dyn SearchIndexes>>>(fresh: impl Fn() -> F) {
    let index = async || ok(fresh().await.open(WORKSPACE).await);
    words_phrases_and_beginnings_are_found_in_texts_and_names(&*index().await).await;
    counts_are_of_visible_files_alone(&*index().await).await;
    a_folder_that_is_decided_as_a_whole_spares_the_questions_for_its_files(&*index().await).await;
    markdown_is_hidden_with_its_document(&*index().await).await;
    contents_wait_newest_first_and_a_move_keeps_them(&*index().await).await;
    the_nearest_come_first_and_hidden_files_are_not_even_counted(&Vectors(index().await)).await;
    only_changed_passages_wait_again_and_a_move_keeps_all(&Vectors(index().await)).await;
    another_model_or_another_length_begins_anew(&Vectors(index().await)).await;
    workspaces_are_apart_and_an_index_lasts_until_it_is_removed(&*fresh().await).await;
    vectors_last_and_what_is_in_memory_follows_them(&*fresh().await).await;
}

fn file(id: u128, path: &str, seal: Option<&str>) -> IndexedFile {
    IndexedFile {
        file_id: FileId(Uuid::from_u128(id)),
        path: path.parse().unwrap(),
        v: 1,
        author: "user:x".into(),
        updated_at: Timestamp::from_millis(i64::try_from(id).unwrap()),
        size: 3,
        derived_from: None,
        seal: seal.map(str::to_owned),
    }
}

fn known(file: IndexedFile) -> IndexEdit {
    let name = file.path.as_str().trim_start_matches('/').replace('/', " ");
    IndexEdit::File(file, name)
}

fn content(id: u128, seal: &str, words: &[&str]) -> IndexEdit {
    let passage = |(line, words): (u64, &&str)| Passage {
        first_line: line,
        last_line: line,
        text: (*words).to_owned(),
        words: (*words).to_owned(),
        ..Passage::default()
    };
    let passages = (1..).zip(words).map(passage).collect();
    IndexEdit::Content { file_id: FileId(Uuid::from_u128(id)), seal: seal.into(), passages }
}

async fn paths(index: &dyn SearchIndex, term: IndexTerm, hidden: &'static str) -> Vec<String> {
    let visible: Visible = Arc::new(move |path: &FilePath| !path.as_str().starts_with(hidden) || hidden.is_empty());
    let found = index.look_up(vec![term], visible).await.unwrap();
    let path = |hit: &IndexHit| found.files[&hit.file].file.path.to_string();
    let mut paths: Vec<String> = found.hits[0].iter().map(path).collect();
    paths.sort();
    paths
}

fn word(word: &str) -> IndexTerm {
    IndexTerm::Word(word.into())
}

async fn words_phrases_and_beginnings_are_found_in_texts_and_names(index: &dyn SearchIndex) {
    let edits = vec![
        known(file(1, "/plan", Some("1"))),
        content(1, "1", &["red fox runs", "blue fox"]),
        known(file(2, "/b/fox", Some("2"))),
        content(2, "2", &["fox red"]),
    ];
    index.apply(edits, Some("note".into())).await.unwrap();
    assert_eq!(index.progress().await.unwrap().as_deref(), Some("note"));
    assert_eq!(paths(index, word("fox"), "").await, ["/b/fox", "/b/fox", "/plan", "/plan"]);
    assert_eq!(paths(index, IndexTerm::Phrase(vec!["red".into(), "fox".into()]), "").await, ["/plan"]);
    assert_eq!(paths(index, IndexTerm::Prefix("ru".into(), "ru".into()), "").await, ["/plan"]);
    assert_eq!(paths(index, IndexTerm::Prefix("blue".into(), "bluer".into()), "").await, ["/plan"]);
    assert_eq!(
        paths(index, IndexTerm::Phrase(vec!["fox\" OR \"red".into(), "x".into()]), "").await,
        Vec::<String>::new()
    );
}

async fn counts_are_of_visible_files_alone(index: &dyn SearchIndex) {
    let one = vec![known(file(1, "/a", Some("1"))), content(1, "1", &["fox one"])];
    index.apply(one, None).await.unwrap();
    let visible: Visible = Arc::new(|path: &FilePath| !path.as_str().starts_with("/users"));
    let alone = index.look_up(vec![word("fox")], visible.clone()).await.unwrap();
    let hidden = vec![known(file(2, "/users/x", Some("2"))), content(2, "2", &["fox fox", "fox"])];
    index.apply(hidden, None).await.unwrap();
    assert_eq!(index.look_up(vec![word("fox")], visible).await.unwrap(), alone);
    assert_eq!((alone.passages, alone.words, alone.names, alone.name_words), (1, 2, 1, 1));
    assert_eq!(paths(index, word("fox"), "/users").await, ["/a"]);
}

/// Decides by the beginning of paths, for whole folders except for one, and counts the files that it is asked for.
struct Beginning {
    hidden: &'static str,
    undecided: &'static str,
    asked: AtomicUsize,
}

impl Visibility for Beginning {
    fn has(&self, file: &FilePath) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        !file.as_str().starts_with(self.hidden)
    }

    fn has_all_in(&self, folder: &FilePath) -> Option<bool> {
        (folder.as_str() != self.undecided).then(|| !folder.as_str().starts_with(self.hidden))
    }
}

async fn a_folder_that_is_decided_as_a_whole_spares_the_questions_for_its_files(index: &dyn SearchIndex) {
    let markdown = IndexedFile { derived_from: Some(FileId(Uuid::from_u128(90))), ..file(91, "/a/doc.md", Some("1")) };
    let apart = IndexedFile { derived_from: Some(FileId(Uuid::from_u128(92))), ..file(93, "/a/far.md", Some("1")) };
    let mut edits: Vec<IndexEdit> = (0..60)
        .flat_map(|number| {
            let folder = ["a", "b", "users"][usize::try_from(number % 3).unwrap()];
            [known(file(number + 1, &format!("/{folder}/{number}"), Some("1"))), content(number + 1, "1", &["fox one"])]
        })
        .collect();
    edits.extend([known(file(90, "/a/doc", None)), known(markdown), content(91, "1", &["fox"])]);
    edits.extend([known(file(92, "/users/far", None)), known(apart), content(93, "1", &["fox"])]);
    index.apply(edits, None).await.unwrap();
    let each: Visible = Arc::new(|path: &FilePath| !path.as_str().starts_with("/users"));
    let expected = index.look_up(vec![word("fox")], each.clone()).await.unwrap();
    assert_eq!((expected.names, expected.passages), (42, 41));
    for (undecided, questions) in [("", 0), ("/b", 20)] {
        let visibility = Arc::new(Beginning { hidden: "/users", undecided, asked: AtomicUsize::new(0) });
        assert_eq!(index.look_up(vec![word("fox")], visibility.clone()).await.unwrap(), expected, "{undecided:?}");
        let asked = visibility.asked.load(Ordering::Relaxed);
        assert!((questions..=2 * questions + 4).contains(&asked), "{asked} questions where {undecided:?} is undecided");
    }
}

async fn markdown_is_hidden_with_its_document(index: &dyn SearchIndex) {
    let markdown = IndexedFile { derived_from: Some(FileId(Uuid::from_u128(1))), ..file(2, "/data/a.md", Some("2")) };
    index.apply(vec![known(markdown), content(2, "2", &["fox"])], None).await.unwrap();
    assert!(paths(index, word("fox"), "").await.is_empty(), "its document is not known");
    index.apply(vec![known(file(1, "/other/a", None))], None).await.unwrap();
    assert_eq!(paths(index, word("fox"), "").await, ["/data/a.md"]);
    assert!(paths(index, word("fox"), "/other").await.is_empty());
}

async fn contents_wait_newest_first_and_a_move_keeps_them(index: &dyn SearchIndex) {
    index
        .apply(vec![known(file(1, "/a", Some("1"))), known(file(2, "/b", Some("1"))), known(file(3, "/c", None))], None)
        .await
        .unwrap();
    let waiting = index.waiting(10).await.unwrap();
    assert_eq!(waiting.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["/b", "/a"]);
    let late = content(2, "0", &["late"]);
    index.apply(vec![content(1, "1", &["fox"]), late], None).await.unwrap();
    assert!(paths(index, word("late"), "").await.is_empty());
    index.apply(vec![known(file(1, "/d/e", Some("1")))], None).await.unwrap();
    assert_eq!(paths(index, word("fox"), "").await, ["/d/e"]);
    assert_eq!(paths(index, word("e"), "").await, ["/d/e"]);
    assert!(paths(index, word("a"), "").await.is_empty(), "its old name");
    let below = index.below(&"/d".parse().unwrap()).await.unwrap();
    assert_eq!(below.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["/d/e"]);
    index
        .apply(vec![known(file(1, "/d/e", Some("2"))), IndexEdit::Gone(FileId(Uuid::from_u128(2)))], None)
        .await
        .unwrap();
    assert!(paths(index, word("fox"), "").await.is_empty());
    assert_eq!(index.waiting(10).await.unwrap().len(), 1);
    assert_eq!(index.below(&"/".parse().unwrap()).await.unwrap().len(), 2);
}

fn shown(found: &IndexNearest) -> Vec<(String, f32)> {
    let rounded = |number: f32| (number * 100.0).round() / 100.0;
    found.near.iter().map(|near| (found.files[&near.file].file.path.to_string(), rounded(near.similarity))).collect()
}

/// `a` points along the first axis, `b` along the second; other letters are not taken.
fn letter(text: &str) -> Vec<f32> {
    match text.get(..1) {
        Some("a") => vec![3.0, 0.0, 0.0],
        Some("b") => vec![0.0, 2.0, 0.0],
        _ => Vec::new(),
    }
}

/// An index whose passages get vectors.
struct Vectors(Arc<dyn SearchIndex>);

impl Vectors {
    async fn apply(&self, edits: Vec<IndexEdit>) {
        self.0.apply(edits, None).await.unwrap();
    }

    /// The texts that wait for a vector.
    async fn waiting(&self, space: &str) -> Vec<String> {
        let mut texts: Vec<String> =
            self.0.unembedded(space, 100).await.unwrap().into_iter().map(|each| each.text).collect();
        texts.sort();
        texts
    }

    /// Embeds each text that waits as the vector that its letter says.
    async fn embed(&self, space: &str, vector: impl Fn(&str) -> Vec<f32>) {
        let waiting = self.0.unembedded(space, 100_000).await.unwrap();
        let vectors = waiting.into_iter().map(|each| IndexVector { passage: each.passage, vector: vector(&each.text) });
        self.0.embed(space, vectors.collect()).await.unwrap();
    }

    async fn nearest(&self, space: &str, query: &[f32], hidden: &'static str) -> IndexNearest {
        let visible: Visible = Arc::new(move |path: &FilePath| hidden.is_empty() || !path.as_str().starts_with(hidden));
        let looked: FileFilter = Arc::new(|_| true);
        self.0.nearest(space, query.to_vec(), 10, visible, looked).await.unwrap()
    }
}

async fn the_nearest_come_first_and_hidden_files_are_not_even_counted(world: &Vectors) {
    world
        .apply(vec![
            known(file(1, "/one", Some("1"))),
            content(1, "1", &["a"]),
            known(file(2, "/two", Some("1"))),
            content(2, "1", &["b", "a2"]),
        ])
        .await;
    let none = world.nearest("m", &[1.0, 1.0, 0.0], "").await;
    assert_eq!((none.near.len(), none.pending), (0, 3));
    world.embed("m", letter).await;
    let found = world.nearest("m", &[5.0, 1.0, 0.0], "").await;
    assert_eq!(shown(&found), [("/one".into(), 0.98), ("/two".into(), 0.98), ("/two".into(), 0.2)]);
    assert_eq!(found.pending, 0);
    world.apply(vec![known(file(3, "/users/x", Some("1"))), content(3, "1", &["a", "b", "c", "d"])]).await;
    assert_eq!(world.nearest("m", &[5.0, 1.0, 0.0], "/users").await, found, "also while its passages wait");
    world.embed("m", letter).await;
    assert_eq!(world.nearest("m", &[5.0, 1.0, 0.0], "/users").await, found);
    assert_eq!(world.nearest("m", &[5.0, 1.0, 0.0], "").await.near.len(), 5, "passages that the model does not take");
    assert!(world.waiting("m").await.is_empty(), "wait no more");
}

async fn only_changed_passages_wait_again_and_a_move_keeps_all(world: &Vectors) {
    world.apply(vec![known(file(1, "/one", Some("1"))), content(1, "1", &["a", "b"])]).await;
    world.embed("m", letter).await;
    world.apply(vec![known(file(1, "/moved", Some("2")))]).await;
    world.apply(vec![content(1, "2", &["b", "a new", "a"])]).await;
    assert_eq!(world.waiting("m").await, ["a new"]);
    let found = world.nearest("m", &[1.0, 0.0, 0.0], "").await;
    assert_eq!((shown(&found), found.pending), (vec![("/moved".into(), 1.0), ("/moved".into(), 0.0)], 1));
    // The same passage of another file is embedded for itself.
    world.apply(vec![known(file(2, "/copy", Some("2"))), content(2, "2", &["b"])]).await;
    assert_eq!(world.waiting("m").await, ["a new", "b"]);
    world.apply(vec![IndexEdit::Gone(FileId(Uuid::from_u128(1)))]).await;
    assert_eq!(world.waiting("m").await, ["b"]);
    assert!(world.nearest("m", &[1.0, 0.0, 0.0], "").await.near.is_empty());
}

async fn another_model_or_another_length_begins_anew(world: &Vectors) {
    world.apply(vec![known(file(1, "/one", Some("1"))), content(1, "1", &["a"])]).await;
    world.embed("m", letter).await;
    let found = world.nearest("other", &[1.0, 0.0, 0.0], "").await;
    assert_eq!((found.near.len(), found.pending), (0, 1));
    world.embed("other", letter).await;
    assert_eq!(world.nearest("other", &[1.0, 0.0, 0.0], "").await.near.len(), 1);
    let found = world.nearest("other", &[1.0, 0.0], "").await;
    assert_eq!((found.near.len(), found.pending), (0, 1), "the model has another length now");
    let different =
        vec![IndexVector { passage: 1, vector: vec![1.0] }, IndexVector { passage: 2, vector: vec![1.0, 2.0] }];
    assert!(matches!(world.0.embed("other", different).await, Err(Error::Invalid(_))));
    let no_number = vec![IndexVector { passage: 1, vector: vec![f32::NAN] }];
    assert!(matches!(world.0.embed("other", no_number).await, Err(Error::Invalid(_))));
}

async fn workspaces_are_apart_and_an_index_lasts_until_it_is_removed(indexes: &dyn SearchIndexes) {
    let other = WorkspaceId(Uuid::from_u128(2));
    let index = ok(indexes.open(WORKSPACE).await);
    ok(index.apply(vec![known(file(1, "/a", Some("1"))), content(1, "1", &["fox"])], Some("note".into())).await);
    let apart = ok(indexes.open(other).await);
    assert_eq!(ok(apart.progress().await), None);
    assert!(paths(&*apart, word("fox"), "").await.is_empty());
    drop(index);
    let again = ok(indexes.open(WORKSPACE).await);
    assert_eq!(ok(again.progress().await).as_deref(), Some("note"));
    assert_eq!(paths(&*again, word("fox"), "").await, ["/a"]);
    drop(again);
    ok(indexes.remove(WORKSPACE).await);
    ok(indexes.remove(WORKSPACE).await);
    assert_eq!(ok(ok(indexes.open(WORKSPACE).await).progress().await), None);
}

async fn vectors_last_and_what_is_in_memory_follows_them(indexes: &dyn SearchIndexes) {
    let world = Vectors(ok(indexes.open(WORKSPACE).await));
    let both = vec![
        known(file(1, "/one", Some("1"))),
        content(1, "1", &["a", "b"]),
        known(file(2, "/two", Some("1"))),
        content(2, "1", &["a"]),
    ];
    world.apply(both).await;
    world.embed("m", letter).await;
    world.nearest("m", &[1.0, 0.0, 0.0], "").await;
    world.apply(vec![known(file(1, "/one", Some("2"))), content(1, "2", &["b", "b too"])]).await;
    world.embed("m", letter).await;
    let here = world.nearest("m", &[1.0, 0.5, 0.0], "").await;
    drop(world);
    let anew = Vectors(ok(indexes.open(WORKSPACE).await));
    assert_eq!(anew.nearest("m", &[1.0, 0.5, 0.0], "").await, here);
    assert_eq!(shown(&here), [("/two".into(), 0.89), ("/one".into(), 0.45), ("/one".into(), 0.45)]);
}
