//! How dead letters look.

use serde::Serialize;
use utoipa::ToSchema;

/// Dead letters, the oldest first.
#[derive(Serialize, ToSchema)]
pub struct DeadLetters {
    /// The letters.
    pub dead_letters: Vec<DeadLetter>,
    /// Whether there are more.
    pub has_more: bool,
}

/// A message that was put aside. Its content is not shown.
#[derive(Serialize, ToSchema)]
pub struct DeadLetter {
    /// The receiver: a kind of actor, its workspace and its id.
    pub group: String,
    /// The id of the message, in its group.
    pub id: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was put aside.
    #[schema(format = DateTime)]
    pub put_aside_at: String,
}

/// The dead letters that were sent again.
#[derive(Serialize, ToSchema)]
pub struct Redriven {
    /// How many.
    pub redriven: usize,
}
