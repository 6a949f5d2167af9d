//! Randomness for secrets, and comparing them.
//!
//! Ids come from the clock, so that a simulation can draw them again. Secrets must not be predictable: they come from the operating system.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// 32 random bytes of the operating system's.
///
/// # Panics
/// When the system has no randomness: there is nothing safe to go on with.
pub(crate) fn bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    #[expect(clippy::expect_used, reason = "a guessable secret is worse than no process")]
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    bytes
}

/// A new secret of 256 bits, as 43 letters, digits, `-` and `_`.
pub fn fresh_secret() -> String {
    URL_SAFE_NO_PAD.encode(bytes())
}

/// Whether two digests or signatures are the same, in a time that does not depend on the position of the first difference.
pub fn equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_and_never_the_same() {
        let (one, other) = (fresh_secret(), fresh_secret());
        assert!(one != other && one.len() == 43);
        assert!(
            equal_in_constant_time(b"abc", b"abc")
                && !equal_in_constant_time(b"abc", b"abd")
                && !equal_in_constant_time(b"abc", b"ab")
                && equal_in_constant_time(b"", b"")
        );
    }
}
