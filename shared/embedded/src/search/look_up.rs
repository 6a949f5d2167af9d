//! Look-ups of terms among the files that a caller may read.

use super::{COLUMNS, file_of};
use domain::FilePath;
use ports::{IndexHit, IndexMatches, IndexTerm, IndexedHit, Visible};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Statement};
use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// How long a look-up takes at most.
const LASTS: Duration = Duration::from_secs(5);
/// How many passages one term has at most; more are left out.
const MOST: usize = 500_000;
/// How many steps of SQLite pass between two looks at the time.
const STEPS: i32 = 10_000;

/// All files, as look-ups count them.
pub(super) struct Known {
    files: Vec<KnownFile>,
}

struct KnownFile {
    id: i64,
    path: FilePath,
    /// Of Markdown the path of its document; none in it when that is not known.
    document: Option<Option<FilePath>>,
    passages: u64,
    words: u64,
    name_words: u64,
}

impl Known {
    pub fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT f.id, f.path, f.derived_from IS NOT NULL, d.path, f.passages, f.words, f.name_words \
                   FROM files f LEFT JOIN files d ON d.file_id = f.derived_from";
        let mut statement = connection.prepare_cached(sql)?;
        let file = |row: &rusqlite::Row<'_>| {
            let document: Option<String> = row.get(3)?;
            let document = document.map(|path| super::parsed(&path)).transpose()?;
            Ok(KnownFile {
                id: row.get(0)?,
                path: super::parsed(&row.get::<_, String>(1)?)?,
                document: row.get::<_, bool>(2)?.then_some(document),
                passages: super::number(row, 4)?,
                words: super::number(row, 5)?,
                name_words: super::number(row, 6)?,
            })
        };
        let files = statement.query_map([], file)?.collect::<rusqlite::Result<_>>()?;
        Ok(Self { files })
    }
}

pub(super) fn look_up(
    connection: &mut Connection,
    known: &Known,
    terms: &[IndexTerm],
    visible: &Visible,
) -> rusqlite::Result<IndexMatches> {
    let mut found = IndexMatches::default();
    let mut seen = HashSet::with_capacity(known.files.len());
    for file in &known.files {
        let is_shown = visible(&file.path)
            && file.document.as_ref().is_none_or(|document| document.as_ref().is_some_and(|path| visible(path)));
        if is_shown {
            seen.insert(file.id);
            found.passages += file.passages;
            found.words += file.words;
            found.names += 1;
            found.name_words += file.name_words;
        }
    }
    let until = Instant::now() + LASTS;
    connection.progress_handler(STEPS, Some(move || Instant::now() >= until))?;
    let looked = all(connection, terms, &seen, &mut found);
    connection.progress_handler(STEPS, None::<fn() -> bool>)?;
    match looked {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => found.cut = true,
        looked => looked?,
    }
    found.hits.resize(terms.len(), Vec::new());
    let ids: HashSet<i64> = found.hits.iter().flatten().map(|hit| hit.file).collect();
    let mut by_id =
        connection.prepare_cached(&format!("SELECT {COLUMNS}, f.derived_from FROM files f WHERE f.id = ?"))?;
    let mut by_file = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM files f WHERE f.file_id = ?"))?;
    for id in ids {
        let file = by_id.query_row([id], |row| file_of(row, 0))?;
        let document = match file.derived_from {
            Some(document) => by_file.query_row([document.to_string()], |row| file_of(row, 0)).optional()?,
            None => None,
        };
        found.files.insert(id, Arc::new(IndexedHit { file, document }));
    }
    Ok(found)
}

fn all(
    connection: &Connection,
    terms: &[IndexTerm],
    seen: &HashSet<i64>,
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
            if seen.contains(&file) {
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
