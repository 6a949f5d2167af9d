//! The output of a command: as text, and only so much of it.

use std::collections::VecDeque;

/// Pieces of the end are joined up to this length, in bytes: each is cut at its beginning as newer ones come.
const JOINED: usize = 16 * 1024;

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
    tail: VecDeque<Piece>,
    tail_room: usize,
    tail_length: usize,
    dropped: u64,
}

impl KeptOutput {
    /// Keeps up to `max` bytes.
    pub fn new(max: usize) -> Self {
        Self {
            head: Vec::new(),
            head_room: max / 2,
            tail: VecDeque::new(),
            tail_room: max - max / 2,
            tail_length: 0,
            dropped: 0,
        }
    }

    pub fn push(&mut self, error: bool, text: &str) {
        let (first, rest) = text.split_at(text.floor_char_boundary(self.head_room.min(text.len())));
        if !first.is_empty() {
            self.head_room -= first.len();
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
        while self.tail_length > self.tail_room
            && let Some(first) = self.tail.front_mut()
        {
            let cut = first.text.ceil_char_boundary((self.tail_length - self.tail_room).min(first.text.len()));
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

    /// How many bytes it holds.
    pub fn bytes(&self) -> usize {
        self.head.iter().map(|piece| piece.text.len()).sum::<usize>() + self.tail_length
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
        assert_eq!(kept.bytes(), 9);
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
        assert_eq!(kept.bytes(), 1000);
        assert_eq!(kept.dropped(), 99_000);
        assert!(kept.tail().len() < 10);
        let mut nothing = KeptOutput::new(0);
        nothing.push(true, "x");
        assert_eq!((nothing.bytes(), nothing.dropped()), (0, 1));
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
