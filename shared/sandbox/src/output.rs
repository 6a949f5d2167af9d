//! The output of a command: as text, and only so much of it.

use std::collections::VecDeque;

/// Pieces of the end are joined up to this length, in bytes: each is cut at its beginning as newer ones come.
const JOINED: usize = 16 * 1024;
/// The memory of a piece beside its text, in bytes: its entry in the list, and the smallest block that the allocator gives for its text.
const PIECE: usize = 64;
/// A half has a piece for each so many bytes of its room. Both streams in turn make a piece of each write, and without this bound a command that
/// writes single bytes would cost [`PIECE`] bytes for each of them. So a half costs five times its room at the most, and
/// a little for its first pieces.
const BYTES_OF_A_PIECE: usize = 16;
/// The pieces that a half of any size may have.
const FEW: usize = 64;

/// Text that a command wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Whether to standard error.
    pub error: bool,
    pub text: String,
}

/// The first and the last half of an output; the bytes between are counted and dropped.
///
/// The first half only grows, so followers read it as it comes. Only the end shows whether something is dropped before the last half, so
/// that half is given out then: early and late followers read the same.
#[derive(Debug)]
pub(crate) struct KeptOutput {
    head: Vec<Piece>,
    head_room: usize,
    head_length: usize,
    /// The most pieces of each half.
    most_pieces: usize,
    tail: VecDeque<Piece>,
    tail_room: usize,
    tail_length: usize,
    dropped: u64,
}

impl KeptOutput {
    /// Keeps up to `max` bytes of text, in a number of pieces that follows from it.
    pub fn new(max: usize) -> Self {
        Self {
            head: Vec::new(),
            head_room: max / 2,
            head_length: 0,
            most_pieces: FEW + max / 2 / BYTES_OF_A_PIECE,
            tail: VecDeque::new(),
            tail_room: max - max / 2,
            tail_length: 0,
            dropped: 0,
        }
    }

    pub fn push(&mut self, error: bool, text: &str) {
        if self.head.len() >= self.most_pieces && self.head.last().is_some_and(|last| last.error != error) {
            self.head_room = 0;
        }
        let (first, rest) = text.split_at(text.floor_char_boundary(self.head_room.min(text.len())));
        if !first.is_empty() {
            self.head_room -= first.len();
            self.head_length += first.len();
            match self.head.last_mut() {
                Some(last) if last.error == error => last.text.push_str(first),
                _ => self.head.push(Piece { error, text: first.into() }),
            }
        }
        if rest.is_empty() {
            return;
        }
        // From here on everything is behind dropped bytes.
        self.head_room = 0;
        self.tail_length += rest.len();
        match self.tail.back_mut() {
            Some(last) if last.error == error && last.text.len() + rest.len() <= JOINED => last.text.push_str(rest),
            _ => self.tail.push_back(Piece { error, text: rest.into() }),
        }
        while self.tail_length > self.tail_room || self.tail.len() > self.most_pieces {
            let (excess, is_too_long) =
                (self.tail_length.saturating_sub(self.tail_room), self.tail.len() > self.most_pieces);
            let Some(first) = self.tail.front_mut() else { break };
            let cut = if is_too_long { first.text.len() } else { excess.min(first.text.len()) };
            let cut = first.text.ceil_char_boundary(cut);
            self.tail_length -= cut;
            self.dropped += cut as u64;
            if cut == first.text.len() {
                self.tail.pop_front();
            } else {
                first.text.drain(..cut);
            }
        }
    }

    pub fn head(&self) -> &[Piece] {
        &self.head
    }

    pub fn tail(&self) -> &VecDeque<Piece> {
        &self.tail
    }

    /// How many bytes were dropped between the two.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The memory that it takes, in bytes: its text, and its pieces beside that.
    pub fn bytes(&self) -> usize {
        self.head_length + self.tail_length + PIECE * (self.head.len() + self.tail.len())
    }
}

/// Bytes as text, also when a character comes in two reads.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    /// The text so far; the beginning of a character is kept for later.
    pub fn decode(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let (mut text, mut rest) = (String::with_capacity(self.pending.len()), self.pending.as_slice());
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                    rest = after;
                    let Some(invalid) = error.error_len() else { break };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = rest.get(invalid..).unwrap_or_default();
                }
            }
        }
        self.pending = rest.to_vec();
        text
    }

    /// The rest at the end.
    pub fn end(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined<'a>(pieces: impl IntoIterator<Item = &'a Piece>) -> String {
        pieces.into_iter().map(|piece| piece.text.as_str()).collect()
    }

    fn text_of(kept: &KeptOutput) -> String {
        joined(kept.head()) + &joined(kept.tail())
    }

    #[test]
    fn the_first_and_the_last_half_are_kept_and_the_rest_is_counted() {
        let mut kept = KeptOutput::new(10);
        for text in ["ab", "cdé", "fgh", "ijklm", "nop"] {
            kept.push(false, text);
        }
        // The é would be the fifth and the sixth byte.
        assert_eq!(joined(kept.head()), "abcd");
        assert_eq!(joined(kept.tail()), "lmnop");
        assert_eq!(kept.dropped(), "éfghijk".len() as u64);
        assert_eq!(text_of(&kept).len(), 9);
    }

    #[test]
    fn output_that_fits_is_kept_whole_and_in_order() {
        let mut kept = KeptOutput::new(8);
        for (error, text) in [(false, "a"), (true, "b"), (true, "c"), (false, "defgh")] {
            kept.push(error, text);
        }
        assert_eq!(joined(kept.head()) + &joined(kept.tail()), "abcdefgh");
        assert_eq!(kept.head().iter().map(|piece| piece.error).collect::<Vec<_>>(), [false, true, false]);
        assert_eq!(kept.dropped(), 0);
    }

    #[test]
    fn a_flood_costs_what_is_kept() {
        let mut kept = KeptOutput::new(1000);
        for _ in 0..10_000 {
            kept.push(false, "0123456789");
        }
        assert_eq!(text_of(&kept).len(), 1000);
        assert_eq!(kept.dropped(), 99_000);
        assert!(kept.tail().len() < 10);
        let mut nothing = KeptOutput::new(0);
        nothing.push(true, "x");
        assert_eq!((nothing.bytes(), nothing.dropped()), (0, 1));
    }

    /// Both streams in turn make a piece of each byte.
    #[test]
    fn single_bytes_on_both_streams_cost_a_small_multiple_of_the_bound() {
        const ROOM: usize = 50 * 1024;
        let mut kept = KeptOutput::new(ROOM);
        for round in 0..2 * ROOM {
            kept.push(round % 2 == 1, if round % 2 == 1 { "e" } else { "o" });
        }
        let pieces = kept.head().len() + kept.tail().len();
        assert!(pieces <= 2 * FEW + ROOM / BYTES_OF_A_PIECE, "{pieces}");
        assert_eq!(kept.bytes(), text_of(&kept).len() + PIECE * pieces, "the pieces are counted, too");
        assert_eq!(kept.dropped() + text_of(&kept).len() as u64, 2 * ROOM as u64, "each byte is kept or counted");
        assert!(text_of(&kept).starts_with("oeoe") && text_of(&kept).ends_with("oeoe"));
        assert!(kept.head().iter().chain(kept.tail()).all(|piece| piece.error == (piece.text == "e")));
        // The last piece of the first half is no wall for its own stream.
        let mut one = KeptOutput::new(ROOM);
        (0..FEW + ROOM / 2 / BYTES_OF_A_PIECE).for_each(|round| one.push(round % 2 == 1, "x"));
        let last = one.head().last().is_some_and(|piece| piece.error);
        one.push(last, "more");
        assert!(one.tail().is_empty() && one.head().last().is_some_and(|piece| piece.text == "xmore"));
    }

    #[test]
    fn characters_may_come_in_parts_and_bytes_that_are_none_are_replaced() {
        let mut decoder = Decoder::default();
        let text: String = [&b"a\xc3"[..], b"\xa9\xff", b"b\xf0\x9f"].iter().map(|part| decoder.decode(part)).collect();
        assert_eq!(text, "aé\u{fffd}b");
        assert_eq!(decoder.end(), "\u{fffd}");
        assert_eq!(decoder.end(), "");
    }
}
