//! The indexes of workspaces that are deleted.
#![expect(clippy::unwrap_used, reason = "tests")]

use async_trait::async_trait;
use buildscale_search::{Request, Search};
use domain::{FilePath, Principal, WorkspaceId};
use embedded::LocalIndexes;
use parking_lot::Mutex;
use ports::{Result, SearchIndex, SearchIndexes, SystemClock};
use std::sync::{Arc, Weak};
use tempfile::TempDir;
use testkit::fakes::{FakeBlobs, FakeTable, Faults};
use workspace::{Access, Expect, Workspaces, Writer};

/// Indexes that are told apart by whether somebody has them open.
struct Counted(LocalIndexes, Mutex<Vec<(WorkspaceId, Weak<dyn SearchIndex>)>>);

impl Counted {
    fn now_open(&self) -> Vec<WorkspaceId> {
        let all = self.1.lock();
        all.iter().filter(|(_, index)| index.strong_count() > 0).map(|(id, _)| *id).collect()
    }
}

#[async_trait]
impl SearchIndexes for Counted {
    async fn open(&self, workspace: WorkspaceId) -> Result<Arc<dyn SearchIndex>> {
        let index = self.0.open(workspace).await?;
        self.1.lock().push((workspace, Arc::downgrade(&index)));
        Ok(index)
    }

    async fn remove(&self, workspace: WorkspaceId) -> Result<()> {
        self.0.remove(workspace).await
    }
}

#[tokio::test]
async fn the_index_of_a_deleted_workspace_is_closed_and_answers_for_no_later_one() {
    let clock = Arc::new(SystemClock);
    let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
    let root = TempDir::new().unwrap();
    let all = Workspaces::new(table, Arc::new(FakeBlobs::new(1, Faults::none())), clock.clone(), root.path().into());
    let indexes = Arc::new(Counted(LocalIndexes::new(root.path()), Mutex::default()));
    let search = Search::new(all.clone(), indexes.clone(), clock);
    let [first, second] = ["first", "second"].map(|name| WorkspaceId::from_key("tests", name));
    let find = async |id: WorkspaceId, query: &str| {
        let here = all.open(id, Access::platform("a test")).await.unwrap();
        let (kinds, author, tag, since, until) = (Vec::new(), None, None, None, None);
        let path = FilePath::parse("/projects").unwrap();
        let request = Request { query: query.into(), path, kinds, author, tag, since, until, limit: 10 };
        search.text(&here, &request).await.unwrap().results.len()
    };
    let make = async |id: WorkspaceId, text: &str| {
        all.create(id, "test", &Principal::local()).await.unwrap();
        let here = all.open(id, Access::platform("a test")).await.unwrap();
        let by = Writer::new(Principal::System);
        here.write(&FilePath::parse("/projects/a.md").unwrap(), text.to_owned(), Expect::Any, &by).await.unwrap();
    };
    for id in [first, second] {
        make(id, "heliotrope").await;
        assert_eq!(find(id, "heliotrope").await, 1);
    }
    all.delete(first).await.unwrap();
    assert_eq!(indexes.now_open(), [second]);

    make(first, "roses").await;
    assert_eq!((find(first, "heliotrope").await, find(first, "roses").await), (0, 1));
    assert_eq!(indexes.now_open(), [second, first]);
}
