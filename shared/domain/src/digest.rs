//! SHA-256 as a value: the name of a content in the archive.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::Digest as _;
use std::{fmt, str::FromStr};

/// The SHA-256 of a content; 64 lower-case hexadecimal digits in text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// The digest of `content`.
    pub fn of(content: &[u8]) -> Self {
        Self(sha2::Sha256::digest(content).into())
    }
    /// The digest itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Sha256 {
    fn from(digest: [u8; 32]) -> Self {
        Self(digest)
    }
}

/// Computes the digest of a content that comes in pieces.
#[derive(Clone, Debug, Default)]
pub struct Hasher(sha2::Sha256);

impl Hasher {
    /// Adds the bytes that come next.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }
    /// The digest of all pieces.
    pub fn finish(self) -> Sha256 {
        Sha256(self.0.finalize().into())
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One text for all bytes: each write of a step has digests, and a formatter is slow byte by byte.
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
        let digits: String = self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        f.write_str(&digits)
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Sha256 {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WHAT: &str = "a SHA-256 is 64 hexadecimal digits";
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(WHAT);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| WHAT)?;
            if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(WHAT);
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| WHAT)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_the_digest_of_the_whole() {
        let mut hasher = Hasher::default();
        ["", "one ", "two"].into_iter().for_each(|piece| hasher.update(piece.as_bytes()));
        assert_eq!(hasher.finish(), Sha256::of(b"one two"));
        assert_eq!(Sha256::from(*Sha256::of(b"").as_bytes()), Sha256::of(b""));
    }

    #[test]
    fn text_round_trips_and_rejects_what_is_not_a_digest() {
        let empty = Sha256::of(b"");
        assert_eq!(empty.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(empty.to_string().parse(), Ok(empty));
        for bad in ["", "e3b0", &"+1".repeat(32), &"é".repeat(32)] {
            assert!(bad.parse::<Sha256>().is_err(), "{bad:?}");
        }
    }
}
