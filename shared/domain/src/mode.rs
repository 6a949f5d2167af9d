//! The modes of chats.

use serde::{Deserialize, Serialize};

/// How far a chat may go (spec 000 §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Tools run at once; a person is asked before each command.
    #[default]
    Chat,
    /// Only plan files may be written, and no command runs.
    Plan,
    /// An approved plan is carried out: commands run, too, while the plan is the one that was approved.
    Build,
}

impl Mode {
    /// Whether an agent may do more in this mode than in `other`.
    pub fn is_wider_than(self, other: Self) -> bool {
        let width = |mode| match mode {
            Self::Plan => 0,
            Self::Chat => 1,
            Self::Build => 2,
        };
        width(self) > width(other)
    }
}
