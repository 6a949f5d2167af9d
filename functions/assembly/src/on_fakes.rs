//! A workspace on fakes of the stores, for tests.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{Principal, WorkspaceId};
use ports::Table;
use std::sync::Arc;
use tempfile::TempDir;
use testkit::{
    TestClock,
    fakes::{FakeBlobs, FakeTable, Faults},
};
use workspace::Workspaces;

/// One workspace of the local person, and the parts below it.
pub(crate) struct OnFakes {
    pub id: WorkspaceId,
    pub workspaces: Workspaces,
    pub clock: Arc<TestClock>,
    pub table: Arc<dyn Table>,
    pub blobs: Arc<FakeBlobs>,
    _disk: TempDir,
}

impl OnFakes {
    /// Makes it, without faults.
    pub async fn new() -> Self {
        let disk = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock::new(0));
        let table: Arc<dyn Table> = Arc::new(FakeTable::new(clock.clone(), 0, Faults::none()));
        let blobs = Arc::new(FakeBlobs::new(0, Faults::none()));
        let workspaces = Workspaces::new(table.clone(), blobs.clone(), clock.clone(), disk.path().to_owned());
        let id = "019bf537-f228-7cd3-aa1c-3da8af302e12".parse().unwrap();
        workspaces.create(id, "w", &Principal::local()).await.unwrap();
        Self { id, workspaces, clock, table, blobs, _disk: disk }
    }
}
