//! Floors: the fastest that durable storage can be.

use crate::{Bench, Result, report::Figure, samples::Samples};
use rusqlite::Connection;
use std::{
    fs::File,
    io::{Seek, Write},
    path::Path,
    time::Duration,
};
use tokio::time::Instant;

/// The length of an append: a page, as SQLite's log takes it.
const PAGE: [u8; 4096] = [7; 4096];
/// About the length of a log entry, in bytes.
const ENTRY: usize = 500;
/// Steps that are ready at one time.
pub(crate) const READY: usize = 64;

/// F: one page appended to a file and made durable with `fdatasync`.
pub(crate) struct Append(File);

impl Append {
    pub fn new(folder: &Path) -> Result<Self> {
        Ok(Self(File::create(folder.join("append"))?))
    }

    /// Into a file that has its length already, so that the file system has nothing to record beside the page.
    fn over(folder: &Path, pages: usize) -> Result<Self> {
        let mut file = File::create(folder.join("overwrite"))?;
        file.write_all(&vec![1; PAGE.len() * pages])?;
        file.sync_all()?;
        file.rewind()?;
        Ok(Self(file))
    }

    pub fn once(&mut self) -> Result<Duration> {
        let began = Instant::now();
        self.0.write_all(&PAGE)?;
        self.0.sync_data()?;
        Ok(began.elapsed())
    }
}

/// The least that a program on SQLite can do a step: one row, in a log that is synced at each commit.
pub(crate) struct Sqlite {
    connection: Connection,
    body: String,
    number: usize,
}

impl Sqlite {
    pub fn new(folder: &Path) -> Result<Self> {
        let connection = Connection::open(folder.join("floor.sqlite3"))?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.execute_batch(
            "PRAGMA synchronous = FULL;
             CREATE TABLE log (pk TEXT NOT NULL, sk TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (pk, sk)) WITHOUT ROWID",
        )?;
        Ok(Self { connection, body: "x".repeat(ENTRY), number: 0 })
    }

    /// One transaction with a row for each of `actors`.
    pub fn commit(&mut self, actors: usize) -> Result<Duration> {
        self.number += 1;
        let began = Instant::now();
        let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO log (pk, sk, body) VALUES (?1, ?2, ?3)")?;
            for actor in 0..actors {
                insert.execute((format!("chat/{actor}"), format!("log/{:020}", self.number), &self.body))?;
            }
        }
        transaction.commit()?;
        Ok(began.elapsed())
    }

    /// Rows a second when always so many are ready, over `groups` commits.
    pub fn grouped(&mut self, groups: usize) -> Result<f64> {
        let began = Instant::now();
        for _ in 0..groups {
            self.commit(READY)?;
        }
        Ok((groups * READY) as f64 / began.elapsed().as_secs_f64())
    }
}

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    const ROUNDS: usize = 1000;
    const GROUPS: usize = 50;
    let folder = bench.folder("floor")?;
    let (mut append, mut sqlite) = (Append::new(&folder)?, Sqlite::new(&folder)?);
    let mut overwrite = Append::over(&folder, ROUNDS)?;
    let (mut appended, mut overwritten, mut alone, mut grouped) = <(Samples, Samples, Samples, Samples)>::default();
    for _ in 0..ROUNDS {
        appended.add(append.once()?);
        overwritten.add(overwrite.once()?);
        alone.add(sqlite.commit(1)?);
    }
    for _ in 0..10 {
        grouped.push(sqlite.grouped(GROUPS)?);
    }
    let f = appended.median();
    bench.report.add(
        Figure::new("floor.append", f, "ms")
            .beside("overwrite", overwritten.median())
            .more("p99", appended.p99())
            .more("overwrite_p99", overwritten.p99())
            .more("is", "F: 4 KiB appended to a file, then fdatasync"),
    )?;
    bench.report.add(
        Figure::new("floor.sqlite_alone", alone.median(), "ms a step")
            .beside("F", f)
            .more("p99", alone.p99())
            .more("is", "one row of 500 bytes per commit, WAL, synchronous=FULL"),
    )?;
    bench.report.add(
        Figure::new("floor.sqlite_grouped", grouped.median(), "steps/s")
            .beside("alone", 1e3 / alone.median())
            .more("is", "64 rows per commit, one thread, nothing else to do"),
    )
}
