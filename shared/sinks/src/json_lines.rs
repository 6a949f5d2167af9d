//! Facts as lines of JSON in a file.

use async_trait::async_trait;
use domain::Error;
use flow::observe::{Lost, Sink, TaskFact};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{fs, io::AsyncWriteExt};

/// The length at which a file is set aside, in bytes, when nothing is said.
const MOST: u64 = 64 * 1024 * 1024;

/// A file of JSON lines. When it is long it is set aside under its name with `.1`, in place of the one before; so there are never
/// more than two.
pub struct JsonLines {
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
        Ok(Self { path: folder.join(path), most: MOST })
    }

    /// The same, set aside at this length.
    #[must_use]
    pub fn at_most(self, bytes: u64) -> Self {
        Self { most: bytes.max(1), ..self }
    }

    async fn append(&self, text: &[u8]) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).await?;
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

#[async_trait]
impl Sink for JsonLines {
    async fn send(&self, batch: &[Arc<TaskFact>]) -> Result<(), Lost> {
        let mut text = Vec::new();
        for fact in batch {
            serde_json::to_writer(&mut text, &**fact).map_err(|error| Lost::for_good(error.to_string()))?;
            text.push(b'\n');
        }
        // Where on the disk is nobody's business; what is wrong is.
        self.append(&text).await.map_err(|error| Lost::for_now(format!("the file could not be written: {error}")))
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
}
