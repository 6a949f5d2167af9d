//! Moves the contents of the write-ahead log into the file, so that the log is used again and never grows.
//!
//! SQLite would do this inside a commit, which then waits for thousands of pages. Here another connection copies the bulk while commits go
//! on (a passive checkpoint blocks no writer), and the writer itself then copies only the commits that came meanwhile, because only between
//! two commits can the log be found wholly copied and begin anew.

use rusqlite::Connection;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

/// A log of this many pages (32 MiB) is worth copying. A page that many commits changed is copied once, so a longer log writes less. It bounds
/// the bytes that a start after a crash must read again.
const WORTH_COPYING: u64 = 8192;
/// A log of this many pages is copied by the writer itself, should the other connection not keep up.
const TOO_LONG: u64 = 4 * WORTH_COPYING;

pub(crate) struct Checkpointer {
    ask: SyncSender<()>,
    finished: Arc<AtomicU64>,
    asked: u64,
    seen: u64,
    thread: JoinHandle<()>,
}

impl Checkpointer {
    /// Starts the thread; it ends when this is dropped or stopped.
    ///
    /// # Errors
    /// When the thread cannot be started. A failure to open the file is only logged: the writer then copies the log itself.
    pub fn start(path: &Path) -> Result<Self, std::io::Error> {
        let (ask, asked) = sync_channel::<()>(1);
        let finished = Arc::new(AtomicU64::new(0));
        let (path, count) = (path.to_owned(), finished.clone());
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(move || {
            let connection = Connection::open(&path)
                .inspect_err(|error| tracing::warn!(error = %ports::with_causes(error), "no checkpoints"));
            while asked.recv().is_ok() {
                if let Ok(connection) = &connection {
                    copy(connection);
                }
                count.fetch_add(1, Relaxed);
            }
        })?;
        Ok(Self { ask, finished, asked: 0, seen: 0, thread })
    }

    /// Waits for a copy that may be under way: meanwhile no other copy can run.
    pub fn stop(self) {
        drop(self.ask);
        if self.thread.join().is_err() {
            tracing::error!("the thread for checkpoints panicked");
        }
    }

    /// Called by the writer after each commit, with the length of the log, and whether the disk is full: then the log is copied at
    /// once, so that the next commit overwrites it and needs no more of the disk.
    pub fn after_commit(&mut self, writer: &Connection, wal_pages: u64, is_full: bool) {
        let finished = self.finished.load(Relaxed);
        let bulk_is_copied = finished > self.seen;
        self.seen = finished;
        if is_full {
            return copy(writer);
        }
        if wal_pages < WORTH_COPYING {
            return;
        }
        if bulk_is_copied || wal_pages > TOO_LONG {
            copy(writer);
        } else if self.asked == finished && self.ask.try_send(()).is_ok() {
            self.asked += 1;
        }
    }
}

/// Copies the pages that can be copied without a wait.
fn copy(connection: &Connection) {
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
        // The log stays and the next attempt copies it; nothing is lost.
        tracing::warn!(error = %ports::with_causes(&error), "a checkpoint failed");
    }
}
