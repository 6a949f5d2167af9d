//! Look-ups of terms among the files that a caller may read.

use super::{COLUMNS, file_of};
use domain::{FilePath, Timestamp};
use ports::{IndexHit, IndexMatches, IndexTerm, IndexedHit, Looked, ShownFile, Visible};
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
    /// Of a document those of it.
    v: u64,
    author: Arc<str>,
    updated_at: Timestamp,
    passages: u64,
    words: u64,
    name_words: u64,
}

impl Known {
    pub fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = "SELECT f.id, f.path, f.derived_from IS NOT NULL, d.path, f.passages, f.words, f.name_words, \
                   coalesce(d.v, f.v), coalesce(d.author, f.author), coalesce(d.updated_at, f.updated_at) \
                   FROM files f LEFT JOIN files d ON d.file_id = f.derived_from";
        let mut statement = connection.prepare_cached(sql)?;
        let mut authors: HashSet<Arc<str>> = HashSet::new();
        let file = |row: &rusqlite::Row<'_>| {
            let document: Option<String> = row.get(3)?;
            let document = document.map(|path| super::parsed(&path)).transpose()?;
            let author: Arc<str> = row.get::<_, String>(8)?.into();
            let author = match authors.get(&author) {
                Some(known) => known.clone(),
                None => {
                    authors.insert(author.clone());
                    author
                }
            };
            Ok(KnownFile {
                id: row.get(0)?,
                path: super::parsed(&row.get::<_, String>(1)?)?,
                document: row.get::<_, bool>(2)?.then_some(document),
                passages: super::number(row, 4)?,
                words: super::number(row, 5)?,
                name_words: super::number(row, 6)?,
                v: super::number(row, 7)?,
                author,
                updated_at: Timestamp::from_millis(row.get(9)?),
            })
        };
        let files = statement.query_map([], file)?.collect::<rusqlite::Result<_>>()?;
        Ok(Self { files })
    }

    /// Those that are visible, the Markdown of a document only with its document.
    fn seen(&self, visible: &Visible) -> impl Iterator<Item = &KnownFile> {
        self.files.iter().filter(|file| {
            visible(&file.path)
                && file.document.as_ref().is_none_or(|document| document.as_ref().is_some_and(|path| visible(path)))
        })
    }

    /// The keys of those that are visible and looked for.
    pub fn looked(&self, visible: &Visible, looked: &Looked) -> HashSet<i64> {
        let wanted = |file: &&KnownFile| {
            let document = file.document.as_ref().and_then(Option::as_ref);
            looked(&ShownFile {
                path: document.unwrap_or(&file.path),
                v: file.v,
                author: &file.author,
                updated_at: file.updated_at,
                is_document: document.is_some(),
            })
        };
        self.seen(visible).filter(wanted).map(|file| file.id).collect()
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
    for file in known.seen(visible) {
        seen.insert(file.id);
        found.passages += file.passages;
        found.words += file.words;
        found.names += 1;
        found.name_words += file.name_words;
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
    found.files = files(connection, ids)?;
    Ok(found)
}

/// These files, with the documents that they are the Markdown of.
pub(super) fn files(connection: &Connection, ids: HashSet<i64>) -> rusqlite::Result<HashMap<i64, Arc<IndexedHit>>> {
    let mut by_id = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM files f WHERE f.id = ?"))?;
    let mut by_file = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM files f WHERE f.file_id = ?"))?;
    let mut files = HashMap::with_capacity(ids.len());
    for id in ids {
        let file = by_id.query_row([id], |row| file_of(row, 0))?;
        let document = match file.derived_from {
            Some(document) => by_file.query_row([document.to_string()], |row| file_of(row, 0)).optional()?,
            None => None,
        };
        files.insert(id, Arc::new(IndexedHit { file, document }));
    }
    Ok(files)
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
