//! The end of a log: the number after which clients see no other event, so that their streams end there.
//!
//! A task has one last event. A chat takes messages until it is deleted. A turn that runs then is stopped, and may end in a later entry: so the
//! end of a chat follows from its deletion and the end of this turn. A reader behind the window finds them apart from the window, in any order.

use domain::TurnId;

/// A fact of one event about the end of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndFact {
    /// Clients see no event after it.
    Last,
    /// Clients see no event after the end of this turn.
    LastTurn(TurnId),
    /// This turn has ended.
    TurnEnded(TurnId),
}

/// The facts of a stretch of a log about its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// The number of the last event, if the stretch says so.
    last: Option<u64>,
    /// The turn whose end is the last event.
    last_turn: Option<TurnId>,
    /// The newest end of a turn: its number, and the turn.
    ended: Option<(u64, TurnId)>,
}

impl LogEnd {
    /// Takes in the fact of the event with this number.
    pub(crate) fn note(&mut self, number: u64, fact: EndFact) {
        self.join(match fact {
            EndFact::Last => Self { last: Some(number), ..Self::default() },
            EndFact::LastTurn(turn) => Self { last_turn: Some(turn), ..Self::default() },
            EndFact::TurnEnded(turn) => Self { ended: Some((number, turn)), ..Self::default() },
        });
    }

    /// Takes in the facts of another stretch of the same log, earlier or later.
    pub(crate) fn join(&mut self, other: Self) {
        self.last = self.last.or(other.last);
        self.last_turn = self.last_turn.or(other.last_turn);
        // No turn begins in a deleted chat, so the newest turn is the last one.
        self.ended = [self.ended, other.ended].into_iter().flatten().max_by_key(|(number, _)| *number);
    }

    /// The number of the last event that clients see; none while it is not known.
    pub(crate) fn number(&self) -> Option<u64> {
        let turn = self.ended.filter(|(_, turn)| self.last_turn == Some(*turn));
        self.last.or(turn.map(|(number, _)| number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn turn(n: u128) -> TurnId {
        TurnId(Uuid::from_u128(n))
    }

    fn of(facts: &[(u64, EndFact)]) -> LogEnd {
        let mut end = LogEnd::default();
        facts.iter().for_each(|(number, fact)| end.note(*number, *fact));
        end
    }

    #[test]
    fn a_deleted_chat_ends_with_its_last_turn_in_whatever_order_its_log_is_read() {
        let facts =
            [(3, EndFact::TurnEnded(turn(1))), (7, EndFact::LastTurn(turn(2))), (9, EndFact::TurnEnded(turn(2)))];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut end = LogEnd::default();
            for (taken, place) in (1..).zip(order) {
                end.join(of(&facts[place..=place]));
                let has_both = order[..taken].contains(&1) && order[..taken].contains(&2);
                assert_eq!(end.number(), has_both.then_some(9), "{order:?} up to {taken}");
            }
        }
    }

    #[test]
    fn without_a_turn_the_deletion_is_the_end_and_the_end_of_a_turn_alone_is_none() {
        assert_eq!(of(&[(4, EndFact::Last)]).number(), Some(4));
        assert_eq!(of(&[(4, EndFact::TurnEnded(turn(1)))]).number(), None);
        assert_eq!(of(&[(4, EndFact::LastTurn(turn(1)))]).number(), None);
    }
}
