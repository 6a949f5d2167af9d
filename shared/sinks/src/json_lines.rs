//! Facts as lines of JSON in a file.

use async_trait::async_trait;
use domain::Error;
use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use telemetry::{Sink, SinkError, TaskFact};
use tokio::{
    fs,
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
};

/// The length at which a file is set aside, in bytes, when nothing is said.
const MOST: u64 = 64 * 1024 * 1024;

/// The greatest such length, in bytes.
const LONGEST: u64 = 256 * 1024 * 1024;
/// The most files that the observers of one workspace write.
const MOST_FILES: usize = 32;

/// A file of JSON lines. When it is long it is set aside under its name with `.1`, in place of the one before; so there are never
/// more than two.
pub struct JsonLines {
    folder: PathBuf,
    path: PathBuf,
    most: u64,
}

impl JsonLines {
    /// The file `path` in `folder`.
    ///
    /// # Errors
    /// The path leads out of the folder.
    pub fn new(folder: &Path, path: &str) -> Result<Self, Error> {
        let bad = |part: &str| part.is_empty() || part == "." || part == ".." || part.contains(['\\', '\0', ':']);
        if path.len() > 512 || path.split('/').any(bad) {
            return Err(Error::invalid("path", "this is no path of a file in the folder of observers")
                .hint("give a name such as `events.jsonl`"));
        }
        Ok(Self { folder: folder.to_owned(), path: folder.join(path), most: MOST })
    }

    /// The same, set aside at this length.
    #[must_use]
    pub fn at_most(self, bytes: u64) -> Self {
        Self { most: bytes.clamp(1, LONGEST), ..self }
    }

    async fn append(&self, text: &[u8]) -> io::Result<()> {
        if !fs::try_exists(&self.path).await? && files_below(&self.folder).await? >= MOST_FILES {
            return Err(io::Error::other(format!(
                "the workspace's observers have {MOST_FILES} files, which is as many as fit"
            )));
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).await?;
        }
        let long = fs::metadata(&self.path).await.is_ok_and(|found| found.len() >= self.most);
        if long {
            fs::rename(&self.path, aside(&self.path)).await?;
        }
        let mut file = fs::OpenOptions::new().create(true).read(true).append(true).open(&self.path).await?;
        if !ends_with_a_line(&mut file).await? {
            // A process that died or a full disk left a part of a line: what comes after it is a line of its own.
            file.write_all(b"\n").await?;
        }
        file.write_all(text).await?;
        file.flush().await
    }
}

/// The name of a file that is set aside.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Whether a file is empty or its last line is whole.
async fn ends_with_a_line(file: &mut fs::File) -> io::Result<bool> {
    if file.metadata().await?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(io::SeekFrom::End(-1)).await?;
    file.read_exact(&mut last).await?;
    Ok(last == *b"\n")
}

/// How many files of observers there are, without those that were set aside.
async fn files_below(folder: &Path) -> io::Result<usize> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let mut entries = match fs::read_dir(&folder).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        while let Some(entry) = entries.next_entry().await? {
            match entry.file_type().await?.is_dir() {
                true => folders.push(entry.path()),
                false => _ = found.insert(entry.path()),
            }
        }
    }
    Ok(found.iter().filter(|path| !was_set_aside(path, &found)).count())
}

/// Whether a file was set aside: its name says so, and the file that it was is there. Of `a`, `a.1` and `a.1.1` it is the second alone, so no chain of
/// names has more files than are counted.
fn was_set_aside(path: &Path, all: &BTreeSet<PathBuf>) -> bool {
    let is_named_so = |path: &Path| path.extension().is_some_and(|end| end == "1");
    let of = path.with_extension("");
    is_named_so(path) && !is_named_so(&of) && all.contains(&of)
}

#[async_trait]
impl Sink for JsonLines {
    async fn send(&self, batch: &[Arc<TaskFact>]) -> Result<(), SinkError> {
        let mut text = Vec::new();
        for fact in batch {
            serde_json::to_writer(&mut text, &**fact).map_err(|error| SinkError::for_good(error.to_string()))?;
            text.push(b'\n');
        }
        // The path on the disk stays out of the message; the cause is in it.
        self.append(&text).await.map_err(|error| SinkError::for_now(format!("the file could not be written: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_their_folder() {
        let folder = Path::new("/data/observers/w");
        for path in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a\\b", "c:x", "a/.."] {
            assert!(JsonLines::new(folder, path).is_err(), "{path}");
        }
        for path in ["events.jsonl", "a/b.jsonl", "..a"] {
            assert!(JsonLines::new(folder, path).is_ok_and(|sink| sink.path == folder.join(path)), "{path}");
        }
    }

    #[tokio::test]
    async fn a_workspace_has_so_many_files_of_observers() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..MOST_FILES {
            let sink = JsonLines::new(folder.path(), &format!("in/{number}.jsonl")).expect("a path");
            sink.append(b"{}\n").await.expect("room for it");
        }
        let more = JsonLines::new(folder.path(), "more.jsonl").expect("a path");
        assert!(more.append(b"{}\n").await.is_err_and(|error| error.to_string().contains("32 files")));
        let known = JsonLines::new(folder.path(), "in/0.jsonl").expect("a path").at_most(1);
        known.append(b"{}\n").await.expect("a file that is there goes on, also past one that is set aside");
    }

    #[tokio::test]
    async fn a_name_like_that_of_a_file_that_was_set_aside_counts_as_well() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..MOST_FILES {
            let sink = JsonLines::new(folder.path(), &format!("{number}.1")).expect("a path");
            sink.append(b"{}\n").await.expect("room for it");
        }
        for more in ["more.1", "0.1.1", "in/more.1"] {
            let more = JsonLines::new(folder.path(), more).expect("a path");
            assert!(more.append(b"{}\n").await.is_err(), "{}", more.path.display());
        }
        assert!(!folder.path().join("in").exists(), "a file that is refused makes no folder");
    }

    #[tokio::test]
    async fn a_line_that_was_cut_takes_no_other_line_along() {
        let folder = tempfile::tempdir().expect("a folder");
        let sink = JsonLines::new(folder.path(), "events.jsonl").expect("a path");
        sink.append(b"{\"n\":1}\n{\"n\"").await.expect("room for it");
        sink.append(b"{\"n\":2}\n").await.expect("room for it");
        sink.append(b"{\"n\":3}\n").await.expect("room for it");
        let text = std::fs::read_to_string(&sink.path).expect("a text");
        assert_eq!(text, "{\"n\":1}\n{\"n\"\n{\"n\":2}\n{\"n\":3}\n");
    }
}
