//! The hub's sandbox conforms.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_sandbox::{Isolation, Local, Options};
use domain::WorkspaceId;
use ports::Sandboxes;
use std::{fs, path::PathBuf};
use tempfile::TempDir;
use testkit::conformance::{self, Bench};
use uuid::Uuid;

const WORKSPACE: Uuid = Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001);

fn local() -> (TempDir, Local, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().canonicalize().unwrap();
    let latest = root.join(format!("files/{WORKSPACE}/latest"));
    fs::create_dir_all(&latest).unwrap();
    let mut options = Options::new(root.join("scratch"));
    options.isolation = Isolation::Namespaces(env!("CARGO_BIN_EXE_sandbox-namespaces").into());
    (home, Local::with(root.join("files"), options), latest)
}

#[tokio::test]
async fn the_sandbox_conforms() {
    let homes = parking_lot::Mutex::new(Vec::new());
    conformance::sandbox(|| async {
        let (home, local, latest) = local();
        homes.lock().push(home);
        let sandbox = local.ready(WorkspaceId::from(WORKSPACE)).await.unwrap().unwrap();
        let within = latest.clone();
        let put = move |path: &domain::FilePath, content: &[u8]| {
            let file = within.join(path.relative());
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        };
        Bench { sandbox, put: Box::new(put), latest: "/workspace".into() }
    })
    .await;
}

#[tokio::test]
async fn the_sandboxes_conform() {
    let (_home, local, _) = local();
    conformance::sandboxes(&local, WorkspaceId::from(WORKSPACE)).await;
}
