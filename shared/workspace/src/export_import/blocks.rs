//! The blocks of a tar archive: heads of entries, and a reader that takes regular files alone. A link, a device, a sparse file and an extended head
//! have no place in an archive of ours, so no program has to decide where one leads.

use crate::Result;
use bytes::{Buf, Bytes, BytesMut};
use domain::{Error, Timestamp};
use futures::{Stream, StreamExt as _};

/// The length of a block.
const BLOCK: usize = 512;
/// How many bytes of padding may follow the end.
const MOST_PADDING: u64 = 1024 * 1024;

/// The head of a regular file.
pub(super) fn head(name: &str, size: u64, at: Timestamp) -> Result<Bytes> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name).map_err(|error| Error::invalid("name", error.to_string()))?;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(u64::try_from(at.as_millis() / 1000).unwrap_or(0));
    header.set_cksum();
    Ok(Bytes::copy_from_slice(header.as_bytes()))
}

/// The zeros after a content of this length.
pub(super) fn padding(size: u64) -> Bytes {
    Bytes::from_static(&[0; BLOCK]).slice(..padding_length(size))
}

/// The end of an archive.
pub(super) fn end() -> Bytes {
    Bytes::from_static(&[0; 2 * BLOCK])
}

fn padding_length(size: u64) -> usize {
    (BLOCK - (size % BLOCK as u64) as usize) % BLOCK
}

/// The refusal of an archive, with the entry.
pub(super) fn refused(entry: &str, why: impl std::fmt::Display) -> Error {
    let shown: String = entry.chars().map(|c| if c.is_control() { '?' } else { c }).take(200).collect();
    Error::invalid("body", format!("{shown}: {why}"))
        .hint("import an archive as `buildscale export` wrote it; nothing was imported")
        .detail("entry", shown)
}

/// An entry of an archive that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub name: String,
    pub size: u64,
}

/// Reads an archive from pieces of any length.
pub(super) struct Reader<S> {
    pieces: S,
    piece: Bytes,
}

impl<S: Stream<Item = Result<Bytes>> + Unpin> Reader<S> {
    pub fn new(pieces: S) -> Self {
        Self { pieces, piece: Bytes::new() }
    }

    /// Some bytes, at most this many; none at the end of the stream.
    pub async fn some(&mut self, most: u64) -> Result<Bytes> {
        while self.piece.is_empty() {
            match self.pieces.next().await {
                Some(piece) => self.piece = piece?,
                None => return Ok(Bytes::new()),
            }
        }
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(self.piece.len());
        Ok(self.piece.split_to(length))
    }

    /// So many bytes; fewer only at the end of the stream.
    async fn up_to(&mut self, length: usize) -> Result<Bytes> {
        let first = self.some(length as u64).await?;
        if first.len() == length {
            return Ok(first);
        }
        let mut whole = BytesMut::from(&*first);
        while whole.len() < length {
            let more = self.some((length - whole.len()) as u64).await?;
            if more.is_empty() {
                break;
            }
            whole.extend_from_slice(&more);
        }
        Ok(whole.freeze())
    }

    /// So many bytes; none when the stream ends before.
    pub async fn exactly(&mut self, length: u64) -> Result<Option<Bytes>> {
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let bytes = self.up_to(length).await?;
        Ok((bytes.len() == length).then_some(bytes))
    }

    /// The bytes up to the next line feed, without it, or up to the end; none at the end of the stream.
    pub async fn line(&mut self, most: usize) -> Result<Option<Bytes>> {
        let (mut line, mut is_there) = (BytesMut::new(), false);
        loop {
            let mut piece = self.some(u64::MAX).await?;
            if piece.is_empty() {
                return Ok(is_there.then(|| line.freeze()));
            }
            is_there = true;
            let end = piece.iter().position(|byte| *byte == b'\n');
            line.extend_from_slice(&piece.split_to(end.unwrap_or(piece.len())));
            if line.len() > most {
                let error = Error::invalid("body", format!("a line has over {most} bytes"));
                return Err(error.hint("send the output of git fast-export as it is"));
            }
            if end.is_some() {
                piece.advance(1);
                self.piece = piece;
                return Ok(Some(line.freeze()));
            }
        }
    }

    /// The content of an entry that fits into memory.
    pub async fn content(&mut self, of: &Head) -> Result<Bytes> {
        let length = usize::try_from(of.size).map_err(|_| refused(&of.name, "it is too long"))?;
        let content = self.up_to(length).await?;
        if content.len() < length {
            return Err(refused(&of.name, "the archive ends in the middle of it"));
        }
        self.skip_padding(of).await?;
        Ok(content)
    }

    /// The zeros after the content of an entry.
    pub async fn skip_padding(&mut self, of: &Head) -> Result<()> {
        let length = padding_length(of.size);
        if self.up_to(length).await?.len() < length {
            return Err(refused(&of.name, "the archive ends in the middle of it"));
        }
        Ok(())
    }

    /// The next entry; none at the end of the archive.
    pub async fn next(&mut self, after: &str) -> Result<Option<Head>> {
        let block = self.up_to(BLOCK).await?;
        if block.iter().all(|byte| *byte == 0) {
            self.nothing_more(after).await?;
            return Ok(None);
        }
        if block.len() < BLOCK {
            return Err(refused(after, "the archive ends after it, in the middle of an entry"));
        }
        let header = tar::Header::from_byte_slice(&block);
        let name = std::str::from_utf8(&header.path_bytes()).map(str::to_owned);
        let name = name.map_err(|_| refused(after, "the entry after it has a name that is no text in UTF-8"))?;
        if header.cksum().ok() != Some(sum_of(&block)) {
            return Err(refused(after, "what follows it is no entry of a tar archive"));
        }
        if header.entry_type() != tar::EntryType::Regular {
            return Err(refused(&name, "it is no regular file"));
        }
        let size = header.entry_size().map_err(|_| refused(&name, "its length cannot be read"))?;
        Ok(Some(Head { name, size }))
    }

    /// After the end only zeros follow.
    async fn nothing_more(&mut self, after: &str) -> Result<()> {
        let mut seen = 0;
        loop {
            let mut piece = self.some(u64::MAX).await?;
            seen += piece.len() as u64;
            if piece.is_empty() {
                return Ok(());
            }
            while piece.has_remaining() {
                if piece.get_u8() != 0 || seen > MOST_PADDING {
                    return Err(refused(after, "more follows after the end of the archive"));
                }
            }
        }
    }
}

/// The sum of a head's bytes, as if the field of the sum had spaces.
fn sum_of(block: &[u8]) -> u32 {
    let field = 148..156;
    block.iter().enumerate().map(|(at, byte)| if field.contains(&at) { 32 } else { u32::from(*byte) }).sum()
}
