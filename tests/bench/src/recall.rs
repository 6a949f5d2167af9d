//! `search`: words among many files, against `rg` on the same tree and against SQLite's FTS5 bare; and the nearest of many vectors.
//!
//! `BUILDSCALE_BENCH_FILES` and `BUILDSCALE_BENCH_VECTORS` make it smaller.

use crate::{Bench, Result, files::Embedded, report::Figure, samples::Samples, server};
use ::search::{Mode, Request, Search};
use domain::{FileId, FilePath, Timestamp, WorkspaceId};
use embedded::LocalIndexes;
use ports::{Clock, FileFilter, IndexEdit, IndexVector, IndexedFile, Passage, SearchIndexes, SystemClock, Visible};
use rusqlite::{Connection, params};
use std::{
    fmt::Write,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use uuid::Uuid;

const FILES: usize = 100_000;
const VECTORS: usize = 200_000;
const DIMENSIONS: usize = 1536;
const FOLDERS: usize = 500;
const ROUNDS: usize = 30;

/// A name, and the word; how many files have it.
const QUERIES: [(&str, &str, usize); 3] =
    [("rare_word", "heliotrope", 2_000), ("word", "amaranth", 50), ("nothing", "zinnia", usize::MAX)];

pub(crate) fn asked(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let (files, vectors) = (asked("BUILDSCALE_BENCH_FILES", FILES), asked("BUILDSCALE_BENCH_VECTORS", VECTORS));
    let folder = bench.folder("search")?;
    server(words(bench, &folder, files))?;
    let folder = bench.folder("search")?;
    server(nearest(bench, &folder, vectors))
}

async fn words(bench: &mut Bench, folder: &Path, files: usize) -> Result<()> {
    let embedded = Embedded::new(folder).await?;
    let path = |number: usize| format!("/projects/{}/{number}.md", number % FOLDERS);
    embedded.fill((0..files).map(|number| (path(number), text(number)))).await?;
    let indexes = Arc::new(LocalIndexes::new(folder.join("workspaces")));
    let search = Search::new(embedded.workspaces.clone(), indexes, Arc::new(SystemClock));
    let began = Instant::now();
    while !search.find(&embedded.workspace, &request("zinnia")?, Mode::Text).await?.complete {}
    let made = began.elapsed();
    let is = format!("{files} files of 10 KB, cache warm");
    bench
        .report
        .add(Figure::new("search.index", files as f64 / made.as_secs_f64(), "files/s").more("is", is.clone()))?;
    let bare = bare(&folder.join("bare.sqlite3"), files)?;
    let has_rg = Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_ok();
    for (name, word, every) in QUERIES {
        let (mut ours, mut fts, mut rg) = <(Samples, Samples, Samples)>::default();
        for round in 0..=ROUNDS {
            let began = Instant::now();
            let found = search.find(&embedded.workspace, &request(word)?, Mode::Text).await?.total;
            let took = began.elapsed();
            let expected = files.div_ceil(every);
            if every != usize::MAX && found != expected {
                return Err(format!("{word} is in {expected} files, and {found} were found").into());
            }
            if round > 0 {
                ours.add(took);
                fts.add(of_bare(&bare, word)?);
            }
            if has_rg && round > 0 && round <= 3 {
                let began = Instant::now();
                Command::new("rg")
                    .args(["-l", "-w", word])
                    .arg(embedded.workspace.latest())
                    .stdout(Stdio::null())
                    .status()?;
                rg.add(began.elapsed());
            }
        }
        let mut figure = Figure::new(format!("search.{name}"), ours.median(), "ms")
            .beside("FTS5 bare", fts.median())
            .at_most(20.0, "20 ms")
            .more("p99", ours.p99())
            .more("is", is.clone());
        if has_rg {
            figure = figure.more("rg", rg.median());
        }
        bench.report.add(figure)?;
    }
    embedded.close().await;
    Ok(())
}

fn request(query: &str) -> Result<Request> {
    let (kinds, author, tag, since, until) = (Vec::new(), None, None, None, None);
    Ok(Request {
        query: query.into(),
        path: FilePath::parse("/projects")?,
        kinds,
        author,
        tag,
        since,
        until,
        limit: 10,
    })
}

/// About 10 KB of words, the same every time.
fn text(number: usize) -> String {
    let words = ["alpha", "error", "queue", "worker", "stream", "table", "commit", "warning", "actor", "version"];
    let mut random = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut text = format!("# Notes {number}\n\n");
    while text.len() < 10_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let word = |shift: u32| words[(random >> shift) as usize % words.len()];
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {} term{} {} {}", word(0), word(8), random % 50_000, word(16), word(24));
    }
    for (_, word, _) in QUERIES.iter().filter(|(_, _, every)| *every != usize::MAX && number.is_multiple_of(*every)) {
        let _ = writeln!(text, "here grows {word}");
    }
    text
}

/// The same texts in FTS5 by itself, a row per file.
fn bare(path: &Path, files: usize) -> Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE texts USING fts5 (path, text, tokenize = 'porter')",
    )?;
    let transaction = connection.transaction()?;
    for number in 0..files {
        let row = params![format!("/projects/{}/{number}.md", number % FOLDERS), text(number)];
        transaction.prepare_cached("INSERT INTO texts VALUES (?, ?)")?.execute(row)?;
    }
    transaction.commit()?;
    Ok(connection)
}

fn of_bare(connection: &Connection, word: &str) -> Result<Duration> {
    let began = Instant::now();
    let sql = "SELECT path, snippet(texts, 1, '[', ']', '', 20) FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT 10";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([word], |row| row.get::<_, String>(0))?;
    rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(began.elapsed())
}

/// The look-up among vectors, without the model that makes that of a query.
async fn nearest(bench: &mut Bench, folder: &Path, vectors: usize) -> Result<()> {
    const PART: usize = 1_000;
    const SPACE: &str = "bench";
    let index = LocalIndexes::new(folder).open(WorkspaceId(SystemClock.id())).await?;
    let mut seed = 0x2545_f491_4f6c_dd1d;
    let centres: Vec<Vec<f32>> = (0..200).map(|_| (0..DIMENSIONS).map(|_| noise(&mut seed)).collect()).collect();
    for part in 0..vectors.div_ceil(PART) {
        index.apply(file(part as u128 + 1, PART)?, None).await?;
        let waiting = index.unembedded(SPACE, PART).await?;
        let vector = |passage| {
            let centre = &centres[passage as usize % centres.len()];
            let mut seed = 0x9e37_79b9_7f4a_7c15_u64 ^ passage as u64;
            IndexVector { passage, vector: centre.iter().map(|number| number + 0.7 * noise(&mut seed)).collect() }
        };
        index.embed(SPACE, waiting.into_iter().map(|each| vector(each.passage)).collect()).await?;
    }
    let (visible, looked): (Visible, FileFilter) = (Arc::new(|_: &FilePath| true), Arc::new(|_| true));
    let mut samples = Samples::default();
    let mut first = Duration::ZERO;
    for round in 0..=ROUNDS {
        let query = centres[round % centres.len()].clone();
        let began = Instant::now();
        let found = index.nearest(SPACE, query, 200, visible.clone(), looked.clone()).await?;
        match round {
            0 => first = began.elapsed(),
            _ => samples.add(began.elapsed()),
        }
        if found.near.len() != 200.min(vectors) || found.pending > 0 {
            return Err(format!("{} of {vectors} vectors were found near", found.near.len()).into());
        }
    }
    bench.report.add(
        Figure::new("search.nearest", samples.median(), "ms")
            .at_most(50.0, "50 ms")
            .more("p99", samples.p99())
            .more("first_ms", first.as_secs_f64() * 1e3)
            .more("is", format!("{vectors} vectors of {DIMENSIONS} numbers; the model of the query aside")),
    )?;
    Ok(())
}

/// A file with so many passages.
fn file(id: u128, passages: usize) -> Result<Vec<IndexEdit>> {
    let (file_id, seal) = (FileId(Uuid::from_u128(id)), "1".to_owned());
    let file = IndexedFile {
        file_id,
        path: FilePath::parse(&format!("/projects/{id}"))?,
        v: 1,
        author: "bench".into(),
        updated_at: Timestamp::from_millis(1),
        size: 1,
        derived_from: None,
        seal: Some(seal.clone()),
    };
    let passage = |line: u64| Passage {
        first_line: line,
        last_line: line,
        text: format!("passage {line} of {id}"),
        words: format!("passag {line}"),
        ..Passage::default()
    };
    let passages = (1..=passages as u64).map(passage).collect();
    Ok(vec![IndexEdit::File(file, "file".into()), IndexEdit::Content { file_id, seal, passages }])
}

/// Numbers that look like chance, and are the same every time.
fn noise(seed: &mut u64) -> f32 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed % 20_001) as f32 / 10_000.0 - 1.0
}
