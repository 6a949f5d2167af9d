//! Values that commands and views of tasks share.

use buildscale_domain::{
    TaskCommand, TaskId,
    task::{ChildKind, ChildName, Origin},
};
use uuid::Uuid;

pub fn origin() -> Origin {
    let child = ChildName::of(&"items".into(), &"worker".into(), 17, ChildKind::Subtask);
    let parent = TaskId(Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0014));
    Origin {
        parent,
        ancestors: vec![parent],
        line: vec![child],
        place: vec![17],
        kind: ChildKind::Subtask,
        node: "items".into(),
        to: "worker".into(),
        index: 17,
    }
}

pub fn label() -> TaskCommand {
    TaskCommand::Label { changes: crate::chat_values::label_changes() }
}
