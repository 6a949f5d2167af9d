//! The text of a turn, which comes in pieces and then whole.

use domain::MessageId;

/// The text of one kind (words, or reasoning) of a turn, as far as a stream has shown it.
///
/// Pieces expire from the log once their message is complete. So a whole message brings the rest that was not seen in pieces: all of it,
/// if the log is replayed later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// The message that is being written.
    message: Option<MessageId>,
    /// Its text so far.
    text: String,
    /// Whether an earlier message of the turn had text: an empty line stands between the two.
    any: bool,
}

/// Stands between the messages of a turn.
pub(crate) const BETWEEN: &str = "\n\n";

impl Shown {
    /// The text to show for a further piece.
    pub(crate) fn piece(&mut self, message: MessageId, piece: &str) -> Option<String> {
        let opening = self.turn_to(message);
        self.text.push_str(piece);
        (!piece.is_empty()).then(|| format!("{opening}{piece}"))
    }

    /// The text to show for the whole message: the part that was not shown in pieces.
    pub(crate) fn whole(&mut self, message: MessageId, whole: &str) -> Option<String> {
        let opening = self.turn_to(message);
        // Pieces of an attempt that was given up are void, and the whole message may differ from them.
        let shown = if whole.starts_with(&self.text) { self.text.len() } else { 0 };
        let rest = whole.get(shown..).unwrap_or_default();
        let rest = (!rest.is_empty()).then(|| format!("{opening}{rest}"));
        whole.clone_into(&mut self.text);
        rest
    }

    /// Forgets the pieces of the message that is being written: it begins again.
    pub(crate) fn again(&mut self) {
        self.text.clear();
    }

    /// Begins `message` if it is another one, and returns the text before its first piece.
    fn turn_to(&mut self, message: MessageId) -> &'static str {
        if self.message != Some(message) {
            self.any |= !self.text.is_empty();
            self.message = Some(message);
            self.text.clear();
        }
        if self.any && self.text.is_empty() { BETWEEN } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> MessageId {
        MessageId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn a_whole_message_brings_the_part_that_no_piece_brought() {
        let mut shown = Shown::default();
        assert_eq!(shown.piece(id(1), "Hel").as_deref(), Some("Hel"));
        assert_eq!(shown.whole(id(1), "Hello").as_deref(), Some("lo"));
        assert_eq!(shown.piece(id(2), "Next").as_deref(), Some("\n\nNext"));
        assert_eq!(shown.whole(id(2), "Next"), None);
        assert_eq!(shown.whole(id(3), "").as_deref(), None);
        assert_eq!(shown.whole(id(4), "Last").as_deref(), Some("\n\nLast"));
    }

    #[test]
    fn pieces_of_an_attempt_that_was_given_up_are_not_counted() {
        let mut shown = Shown::default();
        assert_eq!(shown.piece(id(1), "Tr").as_deref(), Some("Tr"));
        shown.again();
        assert_eq!(shown.piece(id(1), "Again").as_deref(), Some("Again"));
        assert_eq!(shown.whole(id(1), "Again").as_deref(), None);
    }
}
