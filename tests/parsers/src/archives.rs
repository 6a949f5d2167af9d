//! Archives that a new workspace is made of. One that is refused leaves nothing behind.

use bytes::Bytes;
use domain::{FilePath, Principal, WorkspaceId};
use futures::stream;
use std::{sync::Arc, time::Duration};
use testkit::{
    clock::TestClock,
    fakes::{FakeBlobs, FakeTable, Faults},
};
use workspace::{Source, Workspaces};

/// An archive as an export writes it. A text of entries, each behind a line with `=== ` and its name, is packed before: else a change of it would
/// hardly get behind the sums of the heads.
pub(crate) fn archives(bytes: &[u8]) {
    match std::str::from_utf8(bytes).ok().and_then(|text| text.strip_prefix("=== ")) {
        Some(entries) => import(Source::Archive, &packed(entries)),
        None => import(Source::Archive, bytes),
    }
}

fn packed(entries: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for entry in entries.split("=== ") {
        let (name, content) = entry.split_once('\n').unwrap_or((entry, ""));
        let content = content.strip_suffix('\n').unwrap_or(content);
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        // A name that no archive can have ends it.
        if header.set_path(name).is_err() {
            break;
        }
        header.set_cksum();
        // Writing to memory does not fail.
        let _ = archive.append(&header, content.as_bytes());
    }
    archive.into_inner().unwrap_or_default()
}

/// A stream of `git fast-export`.
pub(crate) fn git(bytes: &[u8]) {
    import(Source::Git { folder: FilePath::root() }, bytes);
}

fn import(source: Source, bytes: &[u8]) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
    let Ok(root) = tempfile::tempdir() else { return };
    runtime.block_on(async {
        let clock = Arc::new(TestClock::new(1));
        let table = Arc::new(FakeTable::new(clock.clone(), 1, Faults::none()));
        let blobs = Arc::new(FakeBlobs::new(1, Faults::none()));
        let all = Workspaces::new(table.clone(), blobs, clock, root.path().into());
        let id = WorkspaceId::from_key("fuzz", "workspace");
        // In pieces that end anywhere.
        let pieces: Vec<_> = bytes.chunks(1000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let by = Principal::local();
        let importing = all.import(id, None, &by, source, stream::iter(pieces));
        let Ok(imported) = tokio::time::timeout(Duration::from_secs(20), importing).await else {
            panic!("an import of {} bytes does not end", bytes.len());
        };
        if let Err(error) = imported {
            for partition in [format!("{id}/node"), format!("{id}/text"), "workspaces/deleted".into()] {
                assert!(table.partition(&partition).is_empty(), "{partition} after {error}");
            }
        }
    });
}
