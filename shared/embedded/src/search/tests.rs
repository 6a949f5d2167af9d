#![expect(clippy::unwrap_used, reason = "tests")]
use super::*;
use domain::FileId;
use ports::{IndexHit, Visibility};
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;

struct Place {
    folder: tempfile::TempDir,
    workspace: WorkspaceId,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), workspace: WorkspaceId(Uuid::from_u128(1)) }
    }
    fn indexes(&self) -> LocalIndexes {
        LocalIndexes::new(self.folder.path())
    }
    async fn open(&self) -> Arc<dyn SearchIndex> {
        self.indexes().open(self.workspace).await.unwrap()
    }
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

async fn paths(index: &Arc<dyn SearchIndex>, term: IndexTerm, hidden: &'static str) -> Vec<String> {
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

#[tokio::test]
async fn words_phrases_and_beginnings_are_found_in_texts_and_names() {
    let index = Place::new().open().await;
    let edits = vec![
        known(file(1, "/plan", Some("1"))),
        content(1, "1", &["red fox runs", "blue fox"]),
        known(file(2, "/b/fox", Some("2"))),
        content(2, "2", &["fox red"]),
    ];
    index.apply(edits, Some("note".into())).await.unwrap();
    assert_eq!(index.progress().await.unwrap().as_deref(), Some("note"));
    assert_eq!(paths(&index, word("fox"), "").await, ["/b/fox", "/b/fox", "/plan", "/plan"]);
    assert_eq!(paths(&index, IndexTerm::Phrase(vec!["red".into(), "fox".into()]), "").await, ["/plan"]);
    assert_eq!(paths(&index, IndexTerm::Prefix("ru".into(), "ru".into()), "").await, ["/plan"]);
    assert_eq!(paths(&index, IndexTerm::Prefix("blue".into(), "bluer".into()), "").await, ["/plan"]);
    assert_eq!(
        paths(&index, IndexTerm::Phrase(vec!["fox\" OR \"red".into(), "x".into()]), "").await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn counts_are_of_visible_files_alone() {
    let index = Place::new().open().await;
    let one = vec![known(file(1, "/a", Some("1"))), content(1, "1", &["fox one"])];
    index.apply(one, None).await.unwrap();
    let visible: Visible = Arc::new(|path: &FilePath| !path.as_str().starts_with("/users"));
    let alone = index.look_up(vec![word("fox")], visible.clone()).await.unwrap();
    let hidden = vec![known(file(2, "/users/x", Some("2"))), content(2, "2", &["fox fox", "fox"])];
    index.apply(hidden, None).await.unwrap();
    assert_eq!(index.look_up(vec![word("fox")], visible).await.unwrap(), alone);
    assert_eq!((alone.passages, alone.words, alone.names, alone.name_words), (1, 2, 1, 1));
    assert_eq!(paths(&index, word("fox"), "/users").await, ["/a"]);
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

#[tokio::test]
async fn a_folder_that_is_decided_as_a_whole_spares_the_questions_for_its_files() {
    let index = Place::new().open().await;
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

#[tokio::test]
async fn markdown_is_hidden_with_its_document() {
    let index = Place::new().open().await;
    let markdown = IndexedFile { derived_from: Some(FileId(Uuid::from_u128(1))), ..file(2, "/data/a.md", Some("2")) };
    index.apply(vec![known(markdown), content(2, "2", &["fox"])], None).await.unwrap();
    assert!(paths(&index, word("fox"), "").await.is_empty(), "its document is not known");
    index.apply(vec![known(file(1, "/other/a", None))], None).await.unwrap();
    assert_eq!(paths(&index, word("fox"), "").await, ["/data/a.md"]);
    assert!(paths(&index, word("fox"), "/other").await.is_empty());
}

#[tokio::test]
async fn contents_wait_newest_first_and_a_move_keeps_them() {
    let index = Place::new().open().await;
    index
        .apply(vec![known(file(1, "/a", Some("1"))), known(file(2, "/b", Some("1"))), known(file(3, "/c", None))], None)
        .await
        .unwrap();
    let waiting = index.waiting(10).await.unwrap();
    assert_eq!(waiting.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["/b", "/a"]);
    let late = content(2, "0", &["late"]);
    index.apply(vec![content(1, "1", &["fox"]), late], None).await.unwrap();
    assert!(paths(&index, word("late"), "").await.is_empty());
    index.apply(vec![known(file(1, "/d/e", Some("1")))], None).await.unwrap();
    assert_eq!(paths(&index, word("fox"), "").await, ["/d/e"]);
    assert_eq!(paths(&index, word("e"), "").await, ["/d/e"]);
    assert!(paths(&index, word("a"), "").await.is_empty(), "its old name");
    let below = index.below(&"/d".parse().unwrap()).await.unwrap();
    assert_eq!(below.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["/d/e"]);
    index
        .apply(vec![known(file(1, "/d/e", Some("2"))), IndexEdit::Gone(FileId(Uuid::from_u128(2)))], None)
        .await
        .unwrap();
    assert!(paths(&index, word("fox"), "").await.is_empty());
    assert_eq!(index.waiting(10).await.unwrap().len(), 1);
    assert_eq!(index.below(&"/".parse().unwrap()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_damaged_file_says_so_and_one_of_another_form_is_made_anew() {
    let place = Place::new();
    let at = place.indexes().folder(place.workspace).join(FILE);
    place.open().await.apply(vec![], Some("note".into())).await.unwrap();
    rusqlite::Connection::open(&at).unwrap().execute_batch("PRAGMA user_version = 9").unwrap();
    assert_eq!(place.open().await.progress().await.unwrap(), None);
    place.indexes().remove(place.workspace).await.unwrap();
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    fs::write(&at, "no database at all".repeat(1000)).unwrap();
    assert!(matches!(place.indexes().open(place.workspace).await, Err(Error::Damaged(_))));
    place.indexes().remove(place.workspace).await.unwrap();
    assert_eq!(place.open().await.progress().await.unwrap(), None);
}
