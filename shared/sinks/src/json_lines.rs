//! Facts as lines of JSON in a file.

use async_trait::async_trait;
use domain::Error;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use telemetry::{Sink, SinkError, TaskFact};
use tokio::{fs, io::AsyncWriteExt};

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
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).await?;
        }
        if !fs::try_exists(&self.path).await? && files_below(&self.folder).await? >= MOST_FILES {
            return Err(io::Error::other(format!(
                "the workspace's observers have {MOST_FILES} files, which is as many as fit"
            )));
        }
        let long = fs::metadata(&self.path).await.is_ok_and(|found| found.len() >= self.most);
        if long {
            let mut aside = self.path.clone().into_os_string();
            aside.push(".1");
            fs::rename(&self.path, aside).await?;
        }
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.path).await?;
        file.write_all(text).await?;
        file.flush().await
    }
}

/// How many files of observers there are, without those that are set aside.
async fn files_below(folder: &Path) -> io::Result<usize> {
    let (mut count, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let mut entries = match fs::read_dir(&folder).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        while let Some(entry) = entries.next_entry().await? {
            match entry.file_type().await? {
                kind if kind.is_dir() => folders.push(entry.path()),
                _ if entry.path().extension().is_some_and(|end| end == "1") => {}
                _ => count += 1,
            }
        }
    }
    Ok(count)
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
}
