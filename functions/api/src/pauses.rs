//! Pauses of chats that have ended.

use crate::Context;
use domain::{ChatEvent, ChatId, Error, Timestamp, TurnId, WorkspaceId};

/// The event of a chat before which all pauses have ended for a message under an idempotency key, which begins this turn or steers with its id. The
/// message resumes a chat that is paused now. A repeated one finds its turn begun, and a pause of that may last.
pub(crate) async fn resumed(
    context: &Context,
    workspace: WorkspaceId,
    chat: ChatId,
    turn: TurnId,
) -> Result<u64, Error> {
    let (mut resumed, mut next, mut has_begun) = (0, 1, false);
    let take_in = |number: u64, _: Timestamp, event: &ChatEvent| {
        next = number + 1;
        match event {
            ChatEvent::Unpaused { .. } => resumed = number,
            ChatEvent::TurnStarted { turn_id, .. } => has_begun |= *turn_id == turn,
            ChatEvent::Steered { words } => has_begun |= words.command_id.0 == turn.0,
            _ => {}
        }
    };
    context.threads().reader().log(workspace, chat, 1, take_in).await?;
    Ok(if has_begun { resumed } else { next })
}
