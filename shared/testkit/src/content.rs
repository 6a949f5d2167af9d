//! Long contents that are made piece by piece.

use std::ops::Range;

const WORD: u64 = 8;

/// The bytes of a range of a content. No two of its words of 8 bytes are the same, and another seed makes another content.
///
/// Tests of large files make hundreds of MiB. This crate is optimised in debug builds, and their own crates are not.
pub fn content(range: Range<u64>, seed: u64) -> Vec<u8> {
    let words = range.start / WORD..range.end.div_ceil(WORD);
    let mut bytes = vec![0; ((words.end - words.start) * WORD) as usize];
    for (n, word) in words.zip(bytes.chunks_exact_mut(WORD as usize)) {
        word.copy_from_slice(&(n ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    bytes.truncate((range.end - range.start / WORD * WORD) as usize);
    bytes.drain(..(range.start % WORD) as usize);
    bytes
}

#[cfg(test)]
mod tests {
    use super::content;

    #[test]
    fn a_range_of_a_content_is_that_part_of_the_whole() {
        let whole = content(0..50, 3);
        assert_eq!(whole.len(), 50);
        for (from, to) in [(0, 0), (0, 8), (1, 7), (5, 21), (8, 16), (9, 50), (49, 50), (50, 50)] {
            assert_eq!(content(from as u64..to as u64, 3), whole[from..to], "{from}..{to}");
        }
        assert_ne!(content(0..50, 4), whole);
    }
}
