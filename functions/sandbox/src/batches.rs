//! The updates of agents on their way to a caller.

use domain::{ChatId, TurnId};
use parking_lot::{Mutex, MutexGuard};
use ports::{AgentTurn, AgentUpdate};
use sandbox::wire::Updates;
use std::collections::HashMap;

/// The last batch of updates that each thread's turn has handed out. An answer may be lost on its way, and is given again then.
#[derive(Debug, Default)]
pub(crate) struct Batches(Mutex<HashMap<ChatId, Batch>>);

#[derive(Debug)]
struct Batch {
    turn: TurnId,
    number: u64,
    updates: Vec<AgentUpdate>,
    /// Whether a caller has said that it has them.
    is_seen: bool,
}

impl Batches {
    fn all(&self) -> MutexGuard<'_, HashMap<ChatId, Batch>> {
        self.0.lock()
    }

    /// The batch that a caller that has seen `seen` lacks, and its number else.
    pub fn lacks(&self, turn: &AgentTurn, seen: Option<u64>) -> Result<Updates, u64> {
        let mut all = self.all();
        let Some(batch) = all.get_mut(&turn.chat).filter(|batch| batch.turn == turn.turn) else { return Err(0) };
        batch.is_seen |= seen == Some(batch.number);
        match batch.is_seen {
            true => {
                // Updates may be long, and no caller asks again for those that it has.
                batch.updates = Vec::new();
                Err(batch.number)
            }
            false => Ok(Updates { number: batch.number, updates: batch.updates.clone() }),
        }
    }

    /// Makes a batch of updates.
    pub fn hand_out(&self, turn: &AgentTurn, updates: Vec<AgentUpdate>) -> Updates {
        let mut all = self.all();
        let number = 1 + all.get(&turn.chat).filter(|batch| batch.turn == turn.turn).map_or(0, |batch| batch.number);
        all.insert(turn.chat, Batch { turn: turn.turn, number, updates: updates.clone(), is_seen: false });
        Updates { number, updates }
    }

    pub fn forget(&self, chat: ChatId) {
        self.all().remove(&chat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::WorkspaceId;
    use uuid::Uuid;

    fn turn(id: u128) -> AgentTurn {
        let (workspace, chat) = (WorkspaceId(Uuid::from_u128(1)), ChatId(Uuid::from_u128(2)));
        AgentTurn { workspace, chat, turn: TurnId(Uuid::from_u128(id)) }
    }

    #[test]
    fn a_batch_is_given_until_a_caller_says_that_it_has_it() {
        let (batches, text) = (Batches::default(), |text: &str| vec![AgentUpdate::Text(text.into())]);
        assert_eq!(batches.lacks(&turn(1), None), Err(0));
        let one = batches.hand_out(&turn(1), text("one"));
        assert_eq!(batches.lacks(&turn(1), None), Ok(one.clone()), "its answer was lost");
        assert_eq!(batches.lacks(&turn(1), Some(1)), Err(1));
        assert!(batches.all().values().all(|batch| batch.updates.is_empty()), "they are not kept any longer");
        assert_eq!(batches.lacks(&turn(1), None), Err(1), "a new caller goes on where another one was");
        let two = batches.hand_out(&turn(1), text("two"));
        assert_eq!((one.number, two.number), (1, 2));
        assert_eq!(batches.lacks(&turn(1), Some(1)), Ok(two));
        assert_eq!(batches.lacks(&turn(2), Some(2)), Err(0), "another turn");
        assert_eq!(batches.hand_out(&turn(2), text("three")).number, 1);
    }
}
