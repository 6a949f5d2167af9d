//! From the bytes of a terminal to keys (ECMA-48 §5.4; xterm's control sequences for modifiers, pastes and the mouse).

/// The longest control sequence; a longer one is none.
const LONGEST: usize = 64;
/// How much of a paste is held back until its end comes, in bytes.
const PASTE: usize = 64 * 1024;
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// A key, a turn of the wheel or a paste.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    /// A new line in the text: Alt-Enter, Shift-Enter where the terminal tells it, Ctrl-J.
    NewLine,
    Tab,
    BackTab,
    Esc,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    PageUp,
    PageDown,
    WheelUp,
    WheelDown,
    /// With a lower-case letter.
    Ctrl(char),
    /// A text, or a part of a long one.
    Paste(String),
}

/// The bytes that are no whole key yet.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    rest: Vec<u8>,
    pasting: bool,
}

/// The beginning of the bytes.
enum Begin {
    /// A key, or nothing that means anything, of this length.
    Whole(Option<Key>, usize),
    /// More bytes are needed.
    Part,
}

impl Keys {
    /// Takes bytes; gives the keys that are complete with them.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.rest.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while !self.rest.is_empty() {
            if self.pasting {
                match self.pasted() {
                    Some(key) => keys.extend(key),
                    None => break,
                }
            } else if self.rest.starts_with(PASTE_BEGIN) {
                self.rest.drain(..PASTE_BEGIN.len());
                self.pasting = true;
            } else {
                let Begin::Whole(key, length) = first(&self.rest) else { break };
                self.rest.drain(..length.clamp(1, self.rest.len()));
                keys.extend(key);
            }
        }
        keys
    }

    /// Whether the next byte decides about the last one: an escape alone is a key, and the beginning of others.
    pub(crate) fn is_open(&self) -> bool {
        !self.pasting && !self.rest.is_empty()
    }

    /// Nothing came after what is open: it is complete.
    pub(crate) fn settle(&mut self) -> Vec<Key> {
        if !self.is_open() {
            return Vec::new();
        }
        let escaped = self.rest.first() == Some(&0x1b);
        self.rest.clear();
        escaped.then_some(Key::Esc).into_iter().collect()
    }

    /// A part of a paste, or its end; none when more bytes are needed.
    fn pasted(&mut self) -> Option<Option<Key>> {
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n").replace('\r', "\n");
            Some(Key::Paste(text)).filter(|_| !bytes.is_empty())
        };
        if let Some(at) = self.rest.windows(PASTE_END.len()).position(|bytes| bytes == PASTE_END) {
            let pasted = self.rest.drain(..at).collect();
            self.rest.drain(..PASTE_END.len());
            self.pasting = false;
            return Some(text(pasted));
        }
        if self.rest.len() < PASTE {
            return None;
        }
        // Neither a character nor the mark of the end is cut.
        let mut end = self.rest.len() - PASTE_END.len();
        while end > 0 && self.rest.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
            end -= 1;
        }
        Some(text(self.rest.drain(..end).collect()))
    }
}

fn first(bytes: &[u8]) -> Begin {
    let key = |key| Begin::Whole(Some(key), 1);
    match bytes {
        [] => Begin::Part,
        [0x1b] => Begin::Part,
        [0x1b, b'[', rest @ ..] => control(rest),
        [0x1b, b'O'] => Begin::Part,
        [0x1b, b'O', letter, ..] => Begin::Whole(arrow(*letter, 1), 3),
        [0x1b, 0x1b, ..] => key(Key::Esc),
        [0x1b, b'\r' | b'\n', ..] => Begin::Whole(Some(Key::NewLine), 2),
        [0x1b, 0x7f | 0x08, ..] => Begin::Whole(Some(Key::Ctrl('w')), 2),
        [0x1b, b'b', ..] => Begin::Whole(Some(Key::WordLeft), 2),
        [0x1b, b'f', ..] => Begin::Whole(Some(Key::WordRight), 2),
        [0x1b, _, ..] => Begin::Whole(None, 2),
        [b'\r', ..] => key(Key::Enter),
        [b'\n', ..] => key(Key::NewLine),
        [b'\t', ..] => key(Key::Tab),
        [0x7f | 0x08, ..] => key(Key::Backspace),
        [byte @ 1..=0x1a, ..] => key(Key::Ctrl(char::from(byte + b'a' - 1))),
        [0..=0x1f, ..] => Begin::Whole(None, 1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Begin {
    let length = match bytes.first() {
        Some(0..=0x7f) => 1,
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => return Begin::Whole(None, 1),
    };
    let Some(bytes) = bytes.get(..length) else { return Begin::Part };
    match std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next()) {
        // Eight-bit controls are no text.
        Some(c) => Begin::Whole(Some(Key::Char(c)).filter(|_| !c.is_control()), length),
        None => Begin::Whole(None, 1),
    }
}

/// The sequence after `ESC [`.
fn control(bytes: &[u8]) -> Begin {
    let Some(end) = bytes.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return if bytes.len() > LONGEST { Begin::Whole(None, bytes.len() + 2) } else { Begin::Part };
    };
    let (parameters, last) = (bytes.get(..end).unwrap_or_default(), bytes.get(end).copied().unwrap_or_default());
    let mouse = parameters.first() == Some(&b'<');
    let numbers: Vec<u32> = String::from_utf8_lossy(parameters)
        .trim_start_matches('<')
        .split(';')
        .map(|number| number.parse().unwrap_or_default())
        .collect();
    let number = |place: usize| numbers.get(place).copied().unwrap_or_default();
    let key = match (last, mouse) {
        (b'M', true) => match number(0) {
            64 => Some(Key::WheelUp),
            65 => Some(Key::WheelDown),
            _ => None,
        },
        (_, true) => None,
        (b'Z', _) => Some(Key::BackTab),
        // Enter with a modifier, as terminals with extended keys tell it.
        (b'u', _) if number(0) == 13 => Some(Key::NewLine),
        (b'~', _) if number(0) == 27 && number(2) == 13 => Some(Key::NewLine),
        (b'~', _) => match number(0) {
            1 | 7 => Some(Key::Home),
            3 => Some(Key::Delete),
            4 | 8 => Some(Key::End),
            5 => Some(Key::PageUp),
            6 => Some(Key::PageDown),
            _ => None,
        },
        (letter, _) => arrow(letter, number(1)),
    };
    Begin::Whole(key, end + 3)
}

/// A key that a letter stands for; `modifier` is xterm's number, 1 or 0 without any.
fn arrow(letter: u8, modifier: u32) -> Option<Key> {
    let by_words = modifier > 2;
    Some(match letter {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if by_words => Key::WordRight,
        b'D' if by_words => Key::WordLeft,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'M' => Key::Enter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_keys_however_they_are_cut() {
        let bytes = "aé\r\x1b\r\x1b[A\x1b[1;5D\x1b[3~\x1bOH\x03\x7f\x1b[<64;3;4M\x1b[<0;1;1M\x1b[13;2u\x1b\x7fz";
        let expected = [
            Key::Char('a'),
            Key::Char('é'),
            Key::Enter,
            Key::NewLine,
            Key::Up,
            Key::WordLeft,
            Key::Delete,
            Key::Home,
            Key::Ctrl('c'),
            Key::Backspace,
            Key::WheelUp,
            Key::NewLine,
            Key::Ctrl('w'),
            Key::Char('z'),
        ];
        assert_eq!(Keys::default().take(bytes.as_bytes()), expected);
        let mut keys = Keys::default();
        let single: Vec<Key> = bytes.bytes().flat_map(|byte| keys.take(&[byte])).collect();
        assert_eq!(single, expected);
    }

    #[test]
    fn an_escape_alone_is_a_key_when_nothing_follows() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"\x1b"), []);
        assert!(keys.is_open());
        assert_eq!(keys.settle(), [Key::Esc]);
        assert_eq!((keys.settle(), keys.is_open()), (vec![], false));
    }

    #[test]
    fn a_paste_is_text_whatever_it_has_and_a_long_one_comes_in_parts() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"\x1b[200~one\r\ntwo\x1b[A\x03"), []);
        assert_eq!(keys.take(b"\x1b[201~x"), [Key::Paste("one\ntwo\x1b[A\x03".into()), Key::Char('x')]);
        let long = "é".repeat(PASTE);
        let mut got = keys.take(format!("\x1b[200~{long}").as_bytes());
        got.extend(keys.take(b"\x1b[201~"));
        let whole: String =
            got.iter().map(|key| if let Key::Paste(text) = key { text.as_str() } else { "?" }).collect();
        assert!(got.len() > 1 && whole == long);
    }

    #[test]
    fn noise_is_passed_over() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(&[0xff, 0x80, 0x00, b'a']), [Key::Char('a')]);
        assert_eq!(keys.take("\u{9b}b".as_bytes()), [Key::Char('b')]);
        assert_eq!(keys.take(&[&b"\x1b["[..], &[b'1'; 80], b"q"].concat()).last(), None);
        assert_eq!(keys.take(b"c"), [Key::Char('c')]);
    }
}
