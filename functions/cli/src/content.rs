//! Contents on this machine that are sent: short ones in memory, long ones read again and again from their file, with progress.

use crate::failure::CliError;
use domain::{Hasher, Sha256};
use futures::{TryStreamExt, stream};
use std::{
    io::{self, IsTerminal, Read, Write},
    path::{Path, PathBuf},
};
use tokio::io::AsyncReadExt;

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

    /// Its digest.
    pub(crate) async fn digest(&self) -> Result<Sha256, CliError> {
        let (path, length) = match self {
            Self::Bytes(bytes) => return Ok(Sha256::of(bytes)),
            Self::File(path, length) => (path, *length),
        };
        let mut file = tokio::fs::File::open(path).await.map_err(wrong(path))?;
        let (mut hasher, mut piece, mut progress) =
            (Hasher::default(), vec![0; PIECE], Progress::of("read", length, true));
        loop {
            let read = file.read(&mut piece).await.map_err(wrong(path))?;
            if read == 0 {
                return Ok(hasher.finish());
            }
            progress.add(read);
            hasher.update(piece.get(..read).unwrap_or_default());
        }
    }

    /// A body that reads it as it is sent.
    pub(crate) async fn body(&self) -> Result<reqwest::Body, CliError> {
        let (path, length) = match self {
            Self::Bytes(bytes) => return Ok(bytes.clone().into()),
            Self::File(path, length) => (path, *length),
        };
        let file = tokio::fs::File::open(path).await.map_err(wrong(path))?;
        let begun = (file, Progress::of("sent", length, true));
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
