//! The list of the digests of a large content's chunks: with it a part of the content is checked without reading the rest.
//!
//! The list lies beside the content as `<digest>.chunks`. It is written while the content comes in, when every byte is hashed
//! anyway, and names the digest and the length of its content. A digest of the list itself is at its end. A list that is missing
//! or damaged is made again from the content, which is read once and compared whole.

use domain::{Hasher, Sha256};
use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

/// The length of a chunk in bytes; the last one may be shorter.
pub(super) const CHUNK: u64 = 1024 * 1024;
const KIND: &[u8] = b"buildscale chunks 1\n";
const DIGEST: usize = 32;

/// The digests of all chunks of one content, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunks {
    pub digest: Sha256,
    pub length: u64,
    pub list: Vec<Sha256>,
}

impl Chunks {
    /// The path of the list of the content at `path`.
    pub fn place(path: &Path) -> PathBuf {
        path.with_extension("chunks")
    }

    /// Reads a whole content, of at most one chunk at a time.
    ///
    /// # Errors
    /// Those of the disk; `InvalidData` when the file is shorter than `length`.
    pub fn of(file: &File, length: u64) -> io::Result<Self> {
        let (mut whole, mut list, mut piece) = (Hasher::default(), Vec::new(), Vec::new());
        let mut at = 0;
        while at < length {
            read(file, at..(at + CHUNK).min(length), &mut piece)?;
            whole.update(&piece);
            list.push(Sha256::of(&piece));
            at += CHUNK;
        }
        Ok(Self { digest: whole.finish(), length, list })
    }

    /// `kind`, the content's digest, its length (64 bits, big-endian), the digests of its chunks, the digest of all that.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = KIND.to_vec();
        text.extend_from_slice(self.digest.as_bytes());
        text.extend_from_slice(&self.length.to_be_bytes());
        self.list.iter().for_each(|digest| text.extend_from_slice(digest.as_bytes()));
        let seal = Sha256::of(&text);
        text.extend_from_slice(seal.as_bytes());
        text
    }

    /// The list of this content; none when it is another one's, or damaged.
    pub fn decode(text: &[u8], digest: Sha256, length: u64) -> Option<Self> {
        let (text, seal) = text.split_last_chunk::<DIGEST>()?;
        if Sha256::of(text).as_bytes() != seal {
            return None;
        }
        let text = text.strip_prefix(KIND)?.strip_prefix(digest.as_bytes())?.strip_prefix(&length.to_be_bytes())?;
        let list: Vec<Sha256> = text.as_chunks::<DIGEST>().0.iter().map(|digest| Sha256::from(*digest)).collect();
        (list.len() as u64 == length.div_ceil(CHUNK)).then_some(Self { digest, length, list })
    }

    /// Reads the chunks that a range touches, one after the other, and gives each with its beginning.
    ///
    /// # Errors
    /// `InvalidData`, with the chunk, for one that differs from its digest.
    pub fn check(&self, file: &File, range: Range<u64>, mut each: impl FnMut(u64, &[u8])) -> io::Result<()> {
        let (first, mut piece) = (range.start / CHUNK, Vec::new());
        for (number, expected) in (first..range.end.div_ceil(CHUNK)).zip(self.list.iter().skip(place(first))) {
            let from = number * CHUNK;
            read(file, from..(from + CHUNK).min(self.length), &mut piece)?;
            if Sha256::of(&piece) != *expected {
                let (digest, count, length) = (self.digest, self.list.len(), piece.len());
                let what = format!(
                    "the content {digest} has other bytes in its chunk {} of {count} ({length} bytes from byte {from})",
                    number + 1
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            each(from, &piece);
        }
        Ok(())
    }
}

/// A position in memory.
pub(super) fn place(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

fn read(file: &File, range: Range<u64>, into: &mut Vec<u8>) -> io::Result<()> {
    into.resize(place(range.end - range.start), 0);
    file.read_exact_at(into, range.start).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            io::Error::new(io::ErrorKind::InvalidData, "the content was cut while it was read")
        }
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_and_no_other_is() {
        let length = CHUNK + 7;
        let list = Chunks { digest: Sha256::of(b"x"), length, list: vec![Sha256::of(b"a"), Sha256::of(b"b")] };
        let text = list.encode();
        // Lists on existing disks must stay readable for ever.
        assert_eq!(Sha256::of(&text).to_string(), "8954a47bd1d484f6441f205d8b570c8545b16aeeb9d684be2377c4e56e49b7f7");
        assert_eq!(Chunks::decode(&text, list.digest, length), Some(list.clone()));
        assert_eq!(Chunks::decode(&text, Sha256::of(b"y"), length), None);
        assert_eq!(Chunks::decode(&text, list.digest, length + 1), None);
        for position in 0..text.len() {
            let mut damaged = text.clone();
            if let Some(byte) = damaged.get_mut(position) {
                *byte ^= 1;
            }
            assert_eq!(Chunks::decode(&damaged, list.digest, length), None, "{position}");
        }
        assert_eq!(Chunks::decode(text.get(..9).unwrap_or_default(), list.digest, length), None);
        let short = Chunks { list: vec![Sha256::of(b"a")], ..list.clone() };
        assert_eq!(Chunks::decode(&short.encode(), list.digest, length), None);
    }
}
