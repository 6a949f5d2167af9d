//! Look-ups of terms among the files that a caller may read.

use super::file_catalog::{Counts, FileCatalog, VisibleFiles};
use ports::{IndexHit, IndexMatches, IndexTerm, Visible};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Statement};
use std::{
    collections::{HashMap, hash_map::Entry},
    time::Duration,
};
use tokio::time::Instant;

/// How long a look-up takes at most.
const LASTS: Duration = Duration::from_secs(5);
/// How many passages one term has at most; more are left out.
const MOST: usize = 500_000;
/// How many steps of SQLite pass between two looks at the time.
const STEPS: i32 = 10_000;

pub(super) fn look_up(
    connection: &mut Connection,
    known: &FileCatalog,
    terms: &[IndexTerm],
    visible: &Visible,
) -> rusqlite::Result<IndexMatches> {
    let mut found = IndexMatches::default();
    let seen = known.seen(visible.as_ref());
    let Counts { names, name_words, passages, words } = seen.counts();
    (found.names, found.name_words, found.passages, found.words) = (names, name_words, passages, words);
    let until = Instant::now() + LASTS;
    connection.progress_handler(STEPS, Some(move || Instant::now() >= until))?;
    let looked = all(connection, terms, &seen, &mut found);
    connection.progress_handler(STEPS, None::<fn() -> bool>)?;
    match looked {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => found.cut = true,
        looked => looked?,
    }
    found.hits.resize(terms.len(), Vec::new());
    found.files = known.files(found.hits.iter().flatten().map(|hit| hit.file));
    Ok(found)
}

fn all(
    connection: &Connection,
    terms: &[IndexTerm],
    seen: &VisibleFiles<'_>,
    found: &mut IndexMatches,
) -> rusqlite::Result<()> {
    let mut passage = connection.prepare_cached("SELECT file, first_line = 0, words FROM passages WHERE id = ?")?;
    for term in terms {
        let mut times: HashMap<i64, u64> = HashMap::new();
        match term {
            IndexTerm::Word(word) => {
                let mut of_word = connection.prepare_cached("SELECT doc FROM occurrences WHERE term = ?")?;
                found.cut |= count(&mut of_word, &[word], &mut times)?;
            }
            IndexTerm::Prefix(word, beginning) => {
                // After every word with this beginning.
                let end = format!("{beginning}\u{10FFFF}");
                let sql = "SELECT doc FROM occurrences WHERE term >= ? AND term <= ?";
                let mut of_words = connection.prepare_cached(sql)?;
                found.cut |= count(&mut of_words, &[beginning, &end], &mut times)?;
                if !word.starts_with(beginning.as_str()) {
                    let mut of_word = connection.prepare_cached("SELECT doc FROM occurrences WHERE term = ?")?;
                    found.cut |= count(&mut of_word, &[word], &mut times)?;
                }
            }
            IndexTerm::Phrase(words) => {
                let mut of_phrase = connection.prepare_cached("SELECT rowid FROM words WHERE words MATCH ?")?;
                // No word has a quotation mark in it.
                let phrase = format!("\"{}\"", words.join(" ").replace('"', " "));
                found.cut |= count(&mut of_phrase, &[&phrase], &mut times)?;
            }
        }
        let mut hits = Vec::new();
        for (id, times) in times {
            let row = passage
                .query_row([id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?, super::number(row, 2)?)));
            let Some((file, is_name, words)) = row.optional()? else { continue };
            if seen.has(file) {
                hits.push(IndexHit { passage: id, file, is_name, times, words });
            }
        }
        hits.sort_unstable_by_key(|hit| hit.passage);
        found.hits.push(hits);
    }
    Ok(())
}

/// Counts the rows of each passage; whether there were too many.
fn count(statement: &mut Statement<'_>, values: &[&String], into: &mut HashMap<i64, u64>) -> rusqlite::Result<bool> {
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        let full = into.len() >= MOST;
        match into.entry(row.get(0)?) {
            Entry::Occupied(mut times) => *times.get_mut() += 1,
            Entry::Vacant(_) if full => return Ok(true),
            Entry::Vacant(times) => drop(times.insert(1)),
        }
    }
    Ok(false)
}
