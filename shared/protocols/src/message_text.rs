//! The words of messages as clients have them, over pieces that expire and messages that begin again.

use domain::MessageId;

/// The words of one kind (text, or reasoning) of the message that is being written.
#[derive(Debug, Default)]
pub(crate) struct MessageText {
    /// The message, the words that clients have of it, and its words since it was begun last.
    message: Option<(MessageId, String, String)>,
}

impl MessageText {
    /// The message begins, for the first time or again after a crash: pieces of the attempt before are void.
    pub(crate) fn begin(&mut self, id: MessageId) {
        if let Some((of, _, now)) = &mut self.message
            && *of == id
        {
            now.clear();
        }
    }

    /// The words of a further piece that clients do not have yet. A message that differs from its attempt before is shown again, after an
    /// empty line.
    pub(crate) fn piece(&mut self, id: MessageId, piece: &str) -> String {
        let (_, shown, now) = match &mut self.message {
            Some(message) if message.0 == id => message,
            _ => self.message.insert((id, String::new(), String::new())),
        };
        now.push_str(piece);
        if shown.starts_with(now.as_str()) {
            return String::new();
        }
        let new = match now.strip_prefix(shown.as_str()) {
            Some(rest) => rest.to_owned(),
            None => format!("\n\n{now}"),
        };
        shown.clone_from(now);
        new
    }

    /// The words of the whole message that clients do not have yet.
    pub(crate) fn whole(&mut self, id: MessageId, text: &str) -> String {
        self.begin(id);
        self.piece(id, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_once_whether_or_not_their_pieces_are_there() {
        let id = MessageId(uuid::Uuid::from_u128(1));
        let mut said = MessageText::default();
        assert_eq!(said.piece(id, "Hel"), "Hel");
        said.begin(id);
        assert_eq!(said.piece(id, "He"), "");
        assert_eq!(said.whole(id, "Hello"), "lo");
        assert_eq!(said.whole(id, "Bye"), "\n\nBye");
    }
}
