#![expect(clippy::unwrap_used, reason = "tests")]
use super::*;
use domain::{FileId, Timestamp};
use ports::SystemClock;
use tempfile::TempDir;
use testkit::fakes::{FakeBlobs, FakeTable, Faults};
use uuid::Uuid;

const HERE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));

struct Archive {
    table: Arc<dyn Table>,
    blobs: Arc<dyn Blobs>,
}

impl Archive {
    fn new() -> Self {
        let faults = Faults { yields: 0.2, ..Faults::none() };
        let table = Arc::new(FakeTable::new(Arc::new(SystemClock), 1, faults.clone()));
        Self { table, blobs: Arc::new(FakeBlobs::new(1, faults)) }
    }

    /// An instance with an empty disk.
    fn instance(&self) -> (ArchivedIndexes, TempDir) {
        let root = TempDir::new().unwrap();
        (ArchivedIndexes::new(root.path(), self.table.clone(), self.blobs.clone()), root)
    }
}

/// As many files as make a copy due.
fn files(author: &str) -> Vec<IndexEdit> {
    let file = |id: u128| IndexedFile {
        file_id: FileId(Uuid::from_u128(id)),
        path: format!("/{id}").parse().unwrap(),
        v: 1,
        author: author.into(),
        updated_at: Timestamp::from_millis(1),
        size: 3,
        derived_from: None,
        seal: None,
    };
    (1..=CHANGES as u128).map(|id| IndexEdit::File(file(id), format!("{author} {id}"))).collect()
}

async fn note(index: &Arc<dyn SearchIndex>) -> Option<String> {
    index.progress().await.unwrap()
}

async fn filled(indexes: &ArchivedIndexes, name: &str) -> Arc<dyn SearchIndex> {
    let index = indexes.open(HERE).await.unwrap();
    index.apply(files(name), Some(name.into())).await.unwrap();
    index
}

#[tokio::test]
async fn a_new_instance_begins_with_the_copy_and_few_changes_make_none() {
    let archive = Archive::new();
    let (first, _root) = archive.instance();
    let index = filled(&first, "one").await;
    index.keep(10).await.unwrap();
    let (second, _root) = archive.instance();
    let here = second.open(HERE).await.unwrap();
    assert_eq!(note(&here).await.as_deref(), Some("one"));
    assert_eq!(here.below(&FilePath::root()).await.unwrap().len(), CHANGES);
    here.apply(files("few").into_iter().take(3).collect(), Some("few".into())).await.unwrap();
    here.keep(20).await.unwrap();
    let (third, _root) = archive.instance();
    assert_eq!(note(&third.open(HERE).await.unwrap()).await.as_deref(), Some("one"), "it is not due");
    assert_eq!(note(&second.open(HERE).await.unwrap()).await.as_deref(), Some("few"), "the disk goes before the copy");
}

#[tokio::test]
async fn an_index_takes_the_room_of_others_which_come_back_from_their_copies() {
    const THERE: WorkspaceId = WorkspaceId(Uuid::from_u128(2));
    let archive = Archive::new();
    let (indexes, root) = archive.instance();
    let are_there = || [HERE, THERE].map(|workspace| root.path().join(workspace.to_string()).join(FOLDER).exists());
    let open = filled(&indexes, "one").await;
    open.keep(10).await.unwrap();
    indexes.open(THERE).await.unwrap();
    assert_eq!(are_there(), [true, true], "there is room");

    let indexes = ArchivedIndexes { beside: 0, ..indexes };
    indexes.open(THERE).await.unwrap();
    assert_eq!(are_there(), [false, true]);
    assert_eq!(note(&open).await.as_deref(), Some("one"), "one that is open goes on");
    open.apply(files("two"), Some("two".into())).await.unwrap();
    open.keep(20).await.unwrap();
    assert_eq!(note(&indexes.open(HERE).await.unwrap()).await.as_deref(), Some("two"), "and is kept, too");
    assert_eq!(are_there(), [true, false]);
}

#[tokio::test]
async fn of_two_that_keep_one_the_later_stays_and_the_loser_leaves_nothing() {
    let archive = Archive::new();
    let ((first, _one), (second, _two)) = (archive.instance(), archive.instance());
    let (early, late) = (filled(&first, "early").await, filled(&second, "late").await);
    late.keep(20).await.unwrap();
    early.keep(10).await.unwrap();
    let (third, _root) = archive.instance();
    assert_eq!(note(&third.open(HERE).await.unwrap()).await.as_deref(), Some("late"));

    // Both at once: one of them is there whole, and nothing of the other.
    let folder = TempDir::new().unwrap();
    let archive = Archive { blobs: Arc::new(crate::LocalBlobs::new(folder.path())), ..Archive::new() };
    for round in 0..10 {
        let ((first, _one), (second, _two)) = (archive.instance(), archive.instance());
        let (one, two) = (filled(&first, "one").await, filled(&second, "two").await);
        let (left, right) = tokio::join!(one.keep(100 + round), two.keep(100 + round));
        left.and(right).unwrap();
        let (reader, _root) = archive.instance();
        let kept = note(&reader.open(HERE).await.unwrap()).await.unwrap();
        assert!(["one", "two"].contains(&kept.as_str()), "{kept}");
        assert_eq!(contents(folder.path()), reader.copy(HERE).await.unwrap().unwrap().0.parts.len());
    }
}

#[tokio::test]
async fn a_search_that_ends_after_the_deletion_of_its_workspace_keeps_no_copy() {
    let folder = TempDir::new().unwrap();
    let archive = Archive { blobs: Arc::new(crate::LocalBlobs::new(folder.path())), ..Archive::new() };
    let (indexes, _root) = archive.instance();
    let index = filled(&indexes, "one").await;
    let deletion = Write::put(deleted_workspace(HERE), "{}", Expect::Absent);
    archive.table.commit(vec![deletion]).await.unwrap();
    index.keep(10).await.unwrap();
    assert!(indexes.copy(HERE).await.unwrap().is_none());
    assert_eq!(contents(folder.path()), 0, "its parts are taken back");
}

/// How many files of the size of a part are in a folder.
fn contents(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let count = |entry: fs::DirEntry| match entry.metadata().unwrap() {
        found if found.is_dir() => contents(&entry.path()),
        found => usize::from(found.len() > 10_000),
    };
    entries.map(count).sum()
}

#[tokio::test]
async fn a_copy_that_is_damaged_or_missing_is_none_and_is_forgotten() {
    let archive = Archive::new();
    let (first, _root) = archive.instance();
    filled(&first, "one").await.keep(10).await.unwrap();
    let (copy, item) = first.copy(HERE).await.unwrap().unwrap();
    // A part is missing.
    let space = kept_index_space(HERE);
    archive.blobs.delete(&space, copy.parts[0]).await.unwrap();
    let (second, _root) = archive.instance();
    assert_eq!(note(&second.open(HERE).await.unwrap()).await, None);
    // The parts are no database: the index says so, and is removed with its copy.
    let part = archive.blobs.put(&space, Bytes::from("no database".repeat(1_000))).await.unwrap();
    let body = serde_json::to_string(&ArchivedCopy { parts: vec![part], ..copy }).unwrap();
    archive.table.commit(vec![Write::put(kept_index(HERE), body, Expect::Rev(item.rev))]).await.unwrap();
    let (third, _root) = archive.instance();
    assert!(matches!(third.open(HERE).await, Err(Error::Damaged(_))));
    third.remove(HERE).await.unwrap();
    assert_eq!(note(&third.open(HERE).await.unwrap()).await, None);
    assert!(archive.blobs.get(&space, part, None).await.unwrap().is_none());
    // A copy of another form.
    let body = serde_json::to_string(&ArchivedCopy { form: 1, age: 1, parts: Vec::new(), space: None }).unwrap();
    archive.table.commit(vec![Write::put(kept_index(HERE), body, Expect::Absent)]).await.unwrap();
    let (fourth, _root) = archive.instance();
    let index = filled(&fourth, "four").await;
    index.keep(0).await.unwrap();
    let (fifth, _root) = archive.instance();
    assert_eq!(note(&fifth.open(HERE).await.unwrap()).await.as_deref(), Some("four"), "it is replaced, of any age");
}

#[tokio::test]
async fn a_copy_of_an_earlier_version_is_read_where_its_parts_are_and_leaves_none_there() {
    let archive = Archive::new();
    let (first, _root) = archive.instance();
    filled(&first, "one").await.keep(10).await.unwrap();
    let (copy, item) = first.copy(HERE).await.unwrap().unwrap();
    // As earlier versions wrote it: the parts are among the contents of the workspace.
    let (old, new) = (HERE.to_string(), kept_index_space(HERE));
    for part in &copy.parts {
        let bytes = archive.blobs.get(&new, *part, None).await.unwrap().unwrap();
        archive.blobs.put(&old, bytes).await.unwrap();
    }
    archive.blobs.delete_space(&new).await.unwrap();
    let body = serde_json::to_string(&ArchivedCopy { space: None, ..copy }).unwrap();
    assert!(!body.contains("space"), "{body}");
    archive.table.commit(vec![Write::put(kept_index(HERE), body, Expect::Rev(item.rev))]).await.unwrap();
    let (second, _root) = archive.instance();
    let index = second.open(HERE).await.unwrap();
    assert_eq!(note(&index).await.as_deref(), Some("one"));
    index.apply(files("two"), Some("two".into())).await.unwrap();
    index.keep(20).await.unwrap();
    let (copy, _) = second.copy(HERE).await.unwrap().unwrap();
    assert_eq!(copy.space.as_deref(), Some(new.as_str()));
    for part in copy.parts {
        assert!(archive.blobs.get(&new, part, None).await.unwrap().is_some());
        assert!(archive.blobs.get(&old, part, None).await.unwrap().is_none());
    }
    let (third, _root) = archive.instance();
    assert_eq!(note(&third.open(HERE).await.unwrap()).await.as_deref(), Some("two"));
}
