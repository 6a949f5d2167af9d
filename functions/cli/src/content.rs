//! Contents on this machine that are sent: short ones in memory, long ones read again and again from their file, with progress.

use crate::failure::CliError;
use ::client::PART;
use domain::{Hasher, Sha256};
use futures::{TryStreamExt, stream};
use std::{
    io::{self, IsTerminal, Read, Write},
    path::{Path, PathBuf},
};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// Up to this length a content is read into memory, in bytes.
const SHORT: u64 = 4 * 1024 * 1024;
/// How many bytes are read at once.
const PIECE: usize = 256 * 1024;
/// The limit of standard input, in bytes: its length and digest are sent before it.
const MOST_OF_INPUT: u64 = 32 * 1024 * 1024;

/// A content.
pub(crate) enum Local {
    /// In memory.
    Bytes(Vec<u8>),
    /// In a file of this length.
    File(PathBuf, u64),
}

impl Local {
    /// The content of a file, or of standard input where that is `-`.
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let wrong = |source| CliError::Local { path: path.display().to_string(), source };
        if path == Path::new("-") {
            let mut content = Vec::new();
            io::stdin().lock().take(MOST_OF_INPUT + 1).read_to_end(&mut content).map_err(wrong)?;
            if content.len() as u64 > MOST_OF_INPUT {
                let most = MOST_OF_INPUT / (1024 * 1024);
                return Err(CliError::Usage(format!(
                    "standard input has more than {most} MiB: write it to a file, and put that"
                )));
            }
            return Ok(Self::Bytes(content));
        }
        let about = std::fs::metadata(path).map_err(wrong)?;
        if about.is_dir() {
            return Err(CliError::Folder(path.display().to_string()));
        }
        match about.is_file() && about.len() > SHORT {
            true => Ok(Self::File(path.to_owned(), about.len())),
            false => std::fs::read(path).map(Self::Bytes).map_err(wrong),
        }
    }

    /// How many bytes it has.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, length) => *length,
        }
    }

    /// All of it.
    pub(crate) async fn bytes(&self) -> Result<Vec<u8>, CliError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::File(path, _) => tokio::fs::read(path).await.map_err(wrong(path)),
        }
    }

    /// Its digest, and the digests of its parts.
    pub(crate) async fn digests(&self) -> Result<(Sha256, Vec<String>), CliError> {
        let (path, length) = match self {
            Self::Bytes(bytes) => {
                let parts = bytes.chunks(usize::try_from(PART).unwrap_or(usize::MAX));
                return Ok((Sha256::of(bytes), parts.map(|part| Sha256::of(part).to_string()).collect()));
            }
            Self::File(path, length) => (path, *length),
        };
        let mut file = tokio::fs::File::open(path).await.map_err(wrong(path))?;
        let mut progress = Progress::of("read", length, true);
        let (mut whole, mut parts, mut piece) = (Hasher::default(), Vec::new(), vec![0; PIECE]);
        loop {
            let mut part = (&mut file).take(PART);
            let mut hasher = Hasher::default();
            loop {
                let read = part.read(&mut piece).await.map_err(wrong(path))?;
                let read = piece.get(..read).unwrap_or_default();
                if read.is_empty() {
                    break;
                }
                progress.add(read.len());
                whole.update(read);
                hasher.update(read);
            }
            if part.limit() == PART {
                return Ok((whole.finish(), parts));
            }
            parts.push(hasher.finish().to_string());
        }
    }

    /// A body that reads it, from a byte on, as it is sent.
    pub(crate) async fn body(&self, from: u64, size: u64, sent: u64) -> Result<reqwest::Body, CliError> {
        let (path, length) = match self {
            Self::Bytes(bytes) => {
                let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                return Ok(bytes.get(place(from)..place(from + size)).unwrap_or_default().to_vec().into());
            }
            Self::File(path, length) => (path, *length),
        };
        let mut file = tokio::fs::File::open(path).await.map_err(wrong(path))?;
        file.seek(io::SeekFrom::Start(from)).await.map_err(wrong(path))?;
        let begun = (file.take(size), Progress::of("sent", length, true).after(sent));
        let pieces = stream::try_unfold(begun, |(mut file, mut progress)| async move {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece).await?;
            piece.truncate(read);
            progress.add(read);
            Ok::<_, io::Error>((read > 0).then_some((piece, (file, progress))))
        });
        Ok(reqwest::Body::wrap_stream(pieces.into_stream()))
    }
}

fn wrong(path: &Path) -> impl FnOnce(io::Error) -> CliError {
    move |source| CliError::Local { path: path.display().to_string(), source }
}

/// How much of a long content has passed, on one line of a terminal; nothing where standard error is none.
pub(crate) struct Progress {
    what: &'static str,
    length: u64,
    passed: u64,
    /// The last value shown, in hundredths; none when nothing is shown.
    shown: Option<u64>,
}

impl Progress {
    /// Of a content of this length.
    pub(crate) fn of(what: &'static str, length: u64, is_wanted: bool) -> Self {
        let shown = (is_wanted && length > SHORT && io::stderr().is_terminal()).then_some(u64::MAX);
        Self { what, length, passed: 0, shown }
    }

    /// So many bytes passed before.
    fn after(self, passed: u64) -> Self {
        Self { passed, ..self }
    }

    /// So many bytes more.
    pub(crate) fn add(&mut self, bytes: usize) {
        const MIB: u64 = 1024 * 1024;
        self.passed += bytes as u64;
        let Some(shown) = &mut self.shown else { return };
        let hundredths = self.passed.saturating_mul(100) / self.length.max(1);
        if *shown != hundredths {
            *shown = hundredths;
            let (what, passed, length) = (self.what, self.passed / MIB, self.length / MIB);
            // A terminal that is gone needs no progress.
            drop(write!(io::stderr(), "\r\x1b[K{what} {passed} of {length} MiB ({hundredths} %)"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some_and(|shown| shown != u64::MAX) {
            drop(write!(io::stderr(), "\r\x1b[K"));
        }
    }
}
