#![expect(clippy::unwrap_used, reason = "tests")]
use super::*;
use uuid::Uuid;

struct TestIndex {
    folder: tempfile::TempDir,
    workspace: WorkspaceId,
}

impl TestIndex {
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

#[tokio::test]
async fn a_damaged_file_says_so_and_one_of_another_form_is_made_anew() {
    let place = TestIndex::new();
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
