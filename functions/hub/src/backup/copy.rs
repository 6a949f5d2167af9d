//! Copies of files, with their digests.

use domain::{Hasher, Sha256};
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

const PIECE: usize = 1024 * 1024;

/// Copies files one after the other, with one buffer for all.
pub(super) struct Copier {
    piece: Vec<u8>,
}

/// The length and the digest of the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copied {
    pub bytes: u64,
    pub digest: Sha256,
}

impl Copier {
    pub fn new() -> Self {
        Self { piece: vec![0; PIECE] }
    }

    /// Reads a file to its end.
    ///
    /// # Errors
    /// The disk's, `NotFound` among them.
    pub fn read(&mut self, from: &Path) -> io::Result<Copied> {
        self.pass(&mut File::open(from)?, &mut io::sink())
    }

    /// Copies a file. The copy has another name until `is_right` agrees to what was read, so nothing ever finds a part of it; it is
    /// not synced. A copy that `is_right` refuses is removed.
    ///
    /// # Errors
    /// The disk's. The part that was copied is removed then, and `to` is as it was.
    pub fn copy(&mut self, from: &Path, to: &Path, is_right: impl FnOnce(Copied) -> bool) -> io::Result<Copied> {
        let mut source = File::open(from)?;
        let folder = to.parent().unwrap_or(Path::new("."));
        let part = part_of(to);
        let mut target = match File::create(&part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(folder)?;
                File::create(&part)?
            }
            created => created?,
        };
        let copied = self.pass(&mut source, &mut target).and_then(|read| {
            if is_right(read) { fs::rename(&part, to).map(|()| read) } else { fs::remove_file(&part).map(|()| read) }
        });
        copied.inspect_err(|_| drop(fs::remove_file(&part)))
    }

    fn pass(&mut self, from: &mut impl Read, to: &mut impl Write) -> io::Result<Copied> {
        let (mut hasher, mut bytes) = (Hasher::default(), 0);
        loop {
            match from.read(&mut self.piece) {
                Ok(0) => return Ok(Copied { bytes, digest: hasher.finish() }),
                Ok(length) => {
                    let piece = self.piece.get(..length).unwrap_or_default();
                    hasher.update(piece);
                    to.write_all(piece)?;
                    bytes += length as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The name of a file that is not whole yet; none of a content is such a name.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

/// Makes all of a file system durable that has this folder: a sync of each of many thousand files would take hours.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    let folder = File::open(folder)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&folder)?;
    folder.sync_all()
}

/// All files below a folder, by their paths in it, in order. A link to a file counts as that file, as platforms mount secrets as links; a
/// link to a folder does not, as it may lead anywhere.
pub(super) fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(within) = folders.pop() {
        let entries = match fs::read_dir(folder.join(&within)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = within.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if fs::metadata(entry.path()).is_ok_and(|about| about.is_file()) {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
