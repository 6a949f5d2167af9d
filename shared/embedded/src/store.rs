//! One SQLite file with the table and the queue in it.

use crate::{
    attempts::Attempts,
    checkpoint::Checkpointer,
    items::NextNumbers,
    lazy_writes::LazyWrites,
    mailbox::Mailbox,
    messages,
    open::{Lock, OpenError, check_schema},
    queue::SqliteQueue,
    readers::{self, Readers},
    request::Request,
    reserve::{Reserve, folder_of},
    schema,
    shared_mailbox::SharedMailbox,
    stats::{Counters, Stats},
    table::SqliteTable,
    writer::{SWEEP_EVERY, Writer, WriterThread},
};
use domain::Timestamp;
use ports::{Clock, Table};
use rusqlite::Connection;
use std::{
    fs::File,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, channel},
    },
};
use tokio::time::Instant;

/// The guarantee after a power cut. A crash of the process alone loses nothing either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Everything that was answered: each group of commits is synced before its answers (`synchronous=FULL`).
    #[default]
    Full,
    /// Everything up to some moment shortly before: syncs happen at checkpoints only (`synchronous=NORMAL`). The file is
    /// never damaged, but the newest commits may be gone, also some that were answered.
    Normal,
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The guarantee after a power cut.
    pub durability: Durability,
    /// How often a message is delivered without being settled before it is put aside; at least 1.
    pub max_attempts: u32,
    /// How many groups the worker behind the queue drives at once; see [`ports::tenant`] for the share of each tenant.
    pub places: usize,
    /// Whether other data belongs to this file, so that an empty file is a loss and not a beginning.
    pub has_data: bool,
    /// How much of the disk is kept for deletions and the log when it is full, in bytes, in a file beside the store; 0 for none.
    pub reserve: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { durability: Durability::Full, max_attempts: 5, places: 512, has_data: false, reserve: 0 }
    }
}

/// A table and a queue in one SQLite file, with one writer between them.
///
/// Dropping the store and all that came from it writes lazy changes in the background; [`Store::close`] waits for it.
pub struct Store {
    table: Arc<SqliteTable>,
    queue: Arc<SqliteQueue>,
    writer: Writer,
    shared_mailbox: Arc<SharedMailbox>,
    counters: Arc<Counters>,
    reserve: Arc<Reserve>,
}

impl Store {
    /// Opens or makes the file at `path`, whose folder it makes too, and starts the writer.
    ///
    /// `clock` decides which items and ids have expired, and which messages are due. Blocks for some milliseconds, more after a crash. A
    /// file `<path>` with the ending `.lock` keeps other processes out.
    ///
    /// # Errors
    /// [`OpenError::InUse`] when another process has the store; [`OpenError::Empty`], [`OpenError::TooNew`] and [`OpenError::TooOld`] for a
    /// file that this version must not use; [`OpenError::Migration`] when it cannot be brought up to date, and stays as it was;
    /// [`OpenError::Folder`] and [`OpenError::Database`] for errors of the disk and of SQLite.
    pub fn open(path: impl AsRef<Path>, clock: Arc<dyn Clock>, options: Options) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let lock = Lock::take(path)?;
        // First: on a full disk the following steps need the room of the reserve.
        let reserve = Arc::new(Reserve::new(path, options.reserve));
        let database = |source| OpenError::Database { path: path.to_owned(), source };
        // Looked at before SQLite makes the file.
        if options.has_data && !path.exists() {
            return Err(OpenError::Empty(path.to_owned()));
        }
        let mut connection = Connection::open(path).map_err(database)?;
        let found = schema::version(&connection).map_err(database)?;
        if found != 0 || options.has_data {
            check_schema(path, found)?;
        }
        prepare(&connection, options.durability).map_err(database)?;
        schema::bring_up_to_date(&connection, found).map_err(|source| match found {
            0 => database(source),
            _ => OpenError::Migration { path: path.to_owned(), found, source },
        })?;
        let folder = |source| OpenError::Folder { path: path.to_owned(), source };
        // The file itself must survive a power cut as well as its contents.
        File::open(folder_of(path)).and_then(|opened| opened.sync_all()).map_err(folder)?;

        let counters = Arc::new(Counters::default());
        let wal = counters.clone();
        let hook = move |_: &mut rusqlite::hooks::Wal, pages| {
            wal.wal_pages.store(u64::try_from(pages).unwrap_or(0), Relaxed);
            Ok(())
        };
        // It also replaces SQLite's own checkpoints inside commits.
        connection.wal_hook(Some(hook)).map_err(database)?;

        let (attempts, left) = Attempts::open(path).map_err(folder)?;
        match messages::raise(&connection, &left) {
            Ok(()) => attempts.clear().map_err(folder)?,
            // As on a full disk, on which the store serves all the same.
            Err(error) => {
                tracing::warn!(error = %ports::with_causes(&error), "the last attempts of the process before are not counted")
            }
        }
        let (waiting, highest) = messages::load(&connection, clock.now()).map_err(database)?;
        // A number that the process before gave to a message is not given again while the count of its deliveries may be there.
        let noted = left.iter().map(|(seq, _)| *seq).filter(|seq| *seq < i64::MAX / 2);
        let next_seq = noted.fold(highest, i64::max) + 1;
        let next_numbers = NextNumbers::read(&connection).map_err(database)?;
        counters.dead.store(messages::count_dead(&connection).map_err(database)?, Relaxed);
        let mut mailbox = Mailbox::new(options.max_attempts, options.places);
        mailbox.arrive(waiting, clock.now());
        mailbox.only_urgent(reserve.is_given_up());
        let mut lazy = LazyWrites::default();
        lazy.add(mailbox.lazy.drain(..), Instant::now());
        let shared_mailbox = Arc::new(SharedMailbox::new(mailbox));

        let (requests, requested) = channel();
        let writer = Writer(requests);
        let readers = Arc::new(Readers::new(path.to_owned()));
        let thread = WriterThread {
            connection,
            shared_mailbox: shared_mailbox.clone(),
            clock: clock.clone(),
            counters: counters.clone(),
            reserve: reserve.clone(),
            checkpointer: Checkpointer::start(path).map_err(folder)?,
            next_seq,
            next_numbers,
            lazy,
            next_sweep: Timestamp::default(),
            sweep_every: SWEEP_EVERY,
            lock,
        };
        start(thread, requested).map_err(folder)?;
        let opening = clock.id().simple().to_string();
        let table = Arc::new(SqliteTable { readers: readers.clone(), writer: writer.clone(), clock: clock.clone() });
        let queue = SqliteQueue {
            shared_mailbox: shared_mailbox.clone(),
            readers,
            attempts,
            writer: writer.clone(),
            clock,
            opening,
        };
        Ok(Self { table, queue: Arc::new(queue), writer, shared_mailbox, counters, reserve })
    }

    /// Its table.
    pub fn table(&self) -> Arc<dyn Table> {
        self.table.clone()
    }

    /// Its queue.
    pub fn queue(&self) -> Arc<SqliteQueue> {
        self.queue.clone()
    }

    /// Whether the writer answers; it touches no disk. Waits behind the commits that are under way.
    ///
    /// # Errors
    /// [`ports::Error::Unavailable`] when the writer failed or was closed.
    pub async fn ping(&self) -> ports::Result<()> {
        self.writer.ask(|answer| Request::Ping { answer }).await
    }

    /// Whether its disk has room for more. While it has not, items can be read and deleted, commits go on as long as the reserve lasts, and
    /// the queue delivers only groups with something urgent. Asks the disk, which takes microseconds.
    pub fn has_room(&self) -> bool {
        let has_room = self.reserve.has_room();
        if !has_room && !self.reserve.is_given_up() {
            self.writer.note(Request::Look);
        }
        has_room
    }

    /// The counters, and the numbers of messages.
    pub fn stats(&self) -> Stats {
        self.counters.read(self.shared_mailbox.with(|mailbox| mailbox.counts()))
    }

    /// Writes lazy changes, moves the log into the file and releases it. Later calls get `Unavailable`; closing again is fine.
    pub async fn close(&self) {
        // An error says that it is closed.
        drop(self.writer.ask(|answer| Request::Close { answer }).await);
    }
}

/// Sets the connection up.
fn prepare(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(64);
    readers::plan_once(connection)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.pragma_update(
        None,
        "synchronous",
        match durability {
            Durability::Full => "FULL",
            Durability::Normal => "NORMAL",
        },
    )?;
    // A log that a burst made long is cut back to this when it begins anew; below, it keeps its length, so that a commit
    // overwrites it and its sync has no new length to record.
    connection.query_row("PRAGMA journal_size_limit = 67108864", [], |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", -8_192)
}

fn start(thread: WriterThread, requested: Receiver<Request>) -> io::Result<()> {
    std::thread::Builder::new().name("writer".into()).spawn(move || thread.run(&requested))?;
    Ok(())
}
