//! Items of the index in every version of their format.

use crate::{
    Change, DailyUsage, Damage, Damaged, FileKind, Op, PendingHandoff, Purpose, Version, WorkspaceInfo,
    commit::{Beginning, Note},
    documents::{ConversionOutcome, ConvertedAttachment, Pending},
    mentions::Form,
    model::{Entry, InForce, Node, Record},
    relations::{Explicit, MarkChange, Marks, Mention, Mentions},
    trash_entry::Item,
};
use domain::{
    CallId, ChatId, Conversion, ConversionStatus, FileId, FilePath, Principal, Sha256, Timestamp, Usage, UserId,
    WorkspaceId,
};
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
        conversion: None,
        derived_from: None,
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
        conversion: None,
        mark: None,
        rewind: None,
    }
}

fn rewind_plan() -> crate::rewind::Plan {
    use crate::rewind::{RewindConflict, RewindLoss, RewindOp, RewindStep};
    let step = |op| RewindStep {
        op,
        file_id: FileId(id(1)),
        kind: FileKind::File,
        path: path(),
        from: Some(path()),
        v: Some(4),
        to_v: Some(3),
        if_empty: true,
        mark: Some(crate::Mark::Link(FileId(id(3)), "answers".into())),
    };
    let (by, at) = (Some("user:1".into()), Some(AT));
    let conflict = RewindConflict { path: path(), file_id: FileId(id(1)), by, at, reason: "changed since".into() };
    let loss = RewindLoss { path: path(), file_id: Some(FileId(id(1))), reason: "purged".into() };
    let steps = [RewindOp::Create, RewindOp::Update, RewindOp::Delete, RewindOp::Move].map(step).to_vec();
    crate::rewind::Plan { as_of: id(7), steps, conflicts: vec![conflict], unavailable: vec![loss] }
}

#[test]
fn the_index_is_read_for_ever() {
    check("entries", &[FileKind::File, FileKind::Folder, FileKind::Projection].map(entry));
    let failed =
        Conversion::new(ConversionStatus::Failed, Some(FileId(id(8)))).because("encrypted", "it has a password");
    let document = Entry { conversion: Some(failed.clone()), ..entry(FileKind::File) };
    let markdown = Entry { derived_from: Some(FileId(id(1))), ..entry(FileKind::File) };
    check("documents", &[document, markdown]);
    let attached = Conversion { attached: true, ..Conversion::new(ConversionStatus::Queued, None) };
    check("attached_documents", &Entry { conversion: Some(attached), ..entry(FileKind::File) });
    check("document_changes", &Change { conversion: Some(failed), from: None, ..change(Op::Converted) });
    let waiting = |markdown, attachments| Pending { at: AT, markdown, attachments, from: None, may_not_run: false };
    check("unconverted", &waiting(Some(FileId(id(8))), None));
    check(
        "conversions",
        &[
            ConversionOutcome::Done { file_id: FileId(id(8)), v: 2, attachments: Vec::new() },
            ConversionOutcome::Failed { reason: "encrypted".into(), message: "it has a password".into() },
            ConversionOutcome::Skipped { reason: "text".into(), message: "it is text already".into() },
        ],
    );
    let converted = Conversion::new(ConversionStatus::Done, Some(FileId(id(8)))).with_attachments(Some(FileId(id(6))));
    let message = Entry { conversion: Some(converted), ..entry(FileKind::File) };
    let (markdown, folder) = (Some(FileId(id(8))), Some(FileId(id(6))));
    let pending = waiting(markdown, folder);
    let attachments = vec![ConvertedAttachment { name: "a.pdf".into(), file_id: FileId(id(9)), v: 1 }];
    check("messages", &(message, pending, ConversionOutcome::Done { file_id: FileId(id(8)), v: 2, attachments }));
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
    check("trash", &Item { path: path(), entry: entry(FileKind::File), by: "user:1".into(), at: AT, is_going: false });
    check("changes", &[Op::Made, Op::Written, Op::Moved, Op::Removed, Op::Restored, Op::Purged].map(change));
    check("rewound_changes", &Change { rewind: Some(id(9)), ..change(Op::Written) });
    let workspace =
        WorkspaceInfo { workspace_id: WorkspaceId(id(4)), name: "tests".into(), owner: UserId(id(5)), created_at: AT };
    check("workspaces", &workspace);
    let policy = InForce {
        path: FilePath::parse("/system/policies/team.cedar").unwrap_or_else(|_| FilePath::root()),
        sha256: Sha256::of(b"text"),
        size: 4,
    };
    let WorkspaceInfo { workspace_id, name, owner, created_at } = workspace.clone();
    let plain = Record { workspace_id, name, owner, created_at, policies: Vec::new() };
    assert_eq!(serde_json::to_value(&plain).ok(), serde_json::to_value(&workspace).ok());
    check("records", &[plain.clone(), Record { policies: vec![policy], ..plain }]);
    let usage = Usage { input_tokens: 12, output_tokens: 3, cached_tokens: 0, cost_usd: 0.25 };
    check(
        "spent",
        &[Purpose::Embedding, Purpose::Description].map(|purpose| DailyUsage {
            day: "2026-11-30".into(),
            purpose,
            model: "openai/text-embedding-3-small".into(),
            calls: 2,
            usage,
        }),
    );
    check("causes", &[Some(CallId(id(3))), None].map(|call_id| crate::commit::Cause { call_id }));
    let rewind = crate::rewind::Item {
        asked: Sha256::of(b"request"),
        plan: Sha256::of(b"plan"),
        size: 4,
        next: 3,
        skipped: vec![0],
        refused: vec![(1, "others were faster".into())],
        lost: vec![(2, "the content is missing".into())],
    };
    check("rewinds", &rewind);
    check("rewind_plans", &rewind_plan());
    let beginning = Beginning { grant: Grant { machine: id(6), number: 7 }, at: AT };
    check("begun", &vec![Note::Under(Some(beginning)), Note::Under(None)]);
    let damaged = [Damage::Missing, Damage::Altered].map(|damage| Damaged {
        workspace_id: WorkspaceId(id(4)),
        sha256: Sha256::of(b"text"),
        size: 4,
        damage,
        found_at: AT,
    });
    check("damage", &damaged);
    let by = Principal::Agent { role: "assistant".into(), chat: ChatId(id(8)), user: UserId(id(5)) };
    let links = vec![Explicit { to: FileId(id(8)), kind: "answers".into(), by: "user:1".into(), at: AT }];
    check("marks", &[Marks::default(), Marks { tags: ["open".to_owned()].into(), links }]);
    let mention = |form, to| Mention { form, target: "a b".into(), to };
    let links = vec![mention(Form::Markdown, None), mention(Form::Wiki, Some(FileId(id(8))))];
    let marked = Some(crate::Mark::Untag(vec!["plan".into()]));
    check("marked_changes", &Change { mark: marked, from: None, ..change(Op::Marked) });
    check("mentions", &Mentions { v: 4, links, tags: vec!["plan".into()] });
    check("marked", &MarkChange { file_id: FileId(id(1)), path: path(), tags: vec!["open".into()], changed: true });
    check("handoffs", &PendingHandoff { change: change(Op::Written), by, may_run: true });
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
