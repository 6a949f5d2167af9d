//! Items of the index in every version of their format.

use crate::{
    Change, Damage, Damaged, FileKind, Op, Version, WorkspaceInfo,
    commit::Note,
    model::{Entry, Node},
    trash::Item,
};
use domain::{CallId, FileId, FilePath, Sha256, Timestamp, UserId, WorkspaceId};
use ports::Grant;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use testkit::golden;
use uuid::Uuid;

const AT: Timestamp = Timestamp::from_millis(1_767_225_600_042);

const fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0000 + number)
}

fn check<T: Serialize + DeserializeOwned>(shape: &str, values: &T) {
    golden::check(env!("CARGO_MANIFEST_DIR"), shape, values);
}

fn path() -> FilePath {
    FilePath::parse("/projects/demo/a.md").unwrap_or_else(|_| FilePath::root())
}

fn entry(kind: FileKind) -> Entry {
    Entry {
        file_id: FileId(id(1)),
        kind,
        v: 4,
        sha256: Some(Sha256::of(b"text")),
        size: 4,
        author: "agent:assistant".into(),
        created_at: AT,
        updated_at: AT,
    }
}

fn change(op: Op) -> Change {
    Change {
        op,
        path: path(),
        from: Some(path()),
        file_id: FileId(id(1)),
        kind: FileKind::File,
        v: 4,
        sha256: Some(Sha256::of(b"text")),
        size: 4,
        author: "agent:assistant".into(),
        at: AT,
    }
}

#[test]
fn the_index_is_read_for_ever() {
    check("entries", &[FileKind::File, FileKind::Folder, FileKind::Projection].map(entry));
    check("nodes", &[None, Some(FileId(id(2)))].map(|folder| Node { folder, name: "a.md".into() }));
    let version = Version {
        v: 4,
        sha256: Sha256::of(b"text"),
        size: 4,
        author: "agent:assistant".into(),
        at: AT,
        call_id: Some(CallId(id(3))),
    };
    check("versions", &version);
    check("trash", &Item { path: path(), entry: entry(FileKind::File), by: "user:1".into(), at: AT });
    check("changes", &[Op::Made, Op::Written, Op::Moved, Op::Removed, Op::Restored, Op::Purged].map(change));
    let workspace =
        WorkspaceInfo { workspace_id: WorkspaceId(id(4)), name: "tests".into(), owner: UserId(id(5)), created_at: AT };
    check("workspaces", &workspace);
    let grant = Grant { machine: id(6), number: 7 };
    check("begun", &vec![Note::Under(Some(grant)), Note::Under(None)]);
    let damaged = [Damage::Missing, Damage::Altered].map(|damage| Damaged {
        workspace_id: WorkspaceId(id(4)),
        sha256: Sha256::of(b"text"),
        size: 4,
        damage,
        found_at: AT,
    });
    check("damage", &damaged);
}

/// Entries are rewritten as a whole, which would drop unknown fields; so an entry with unknown fields is refused.
#[test]
fn items_with_unknown_fields_are_refused() {
    let with_more = |mut value: serde_json::Value| {
        value["newer"] = json!("more");
        value
    };
    assert!(serde_json::from_value::<Entry>(with_more(json!(entry(FileKind::File)))).is_err());
    assert!(serde_json::from_value::<Node>(with_more(json!(Node { folder: None, name: String::new() }))).is_err());
    // Items that are written only once may have unknown fields.
    assert_eq!(serde_json::from_value(with_more(json!(change(Op::Made)))).ok(), Some(change(Op::Made)));
}
