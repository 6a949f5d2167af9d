//! Indexes of texts in SQLite's FTS5, a file per workspace in the folder of its mirror. They are caches: nothing is synced, and a file of another
//! form is made anew.
//!
//! FTS5 gets words that are ready to be compared (`tokenize = 'ascii'` parts them at spaces alone), and keeps no text of its own. It finds phrases, and
//! its vocabulary gives the occurrences of words. Ranks are computed elsewhere, since its own would count files that a caller may not read.

mod look_up;
mod schema;

use crate::readers::failed;
use async_trait::async_trait;
use domain::{FileId, FilePath, Timestamp, WorkspaceId};
use look_up::Known;
use ports::{
    Error, IndexEdit, IndexMatches, IndexTerm, IndexedFile, Passage, Result, SearchIndex, SearchIndexes, Visible,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// The folder of an index beside `latest/`.
const FOLDER: &str = "search";
/// The file in it.
const FILE: &str = "index.sqlite3";

/// The indexes below a folder that has a folder per workspace.
#[derive(Clone, Debug)]
pub struct LocalIndexes {
    root: PathBuf,
}

impl LocalIndexes {
    /// In the folders of the workspaces below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn folder(&self, workspace: WorkspaceId) -> PathBuf {
        self.root.join(workspace.to_string()).join(FOLDER)
    }
}

#[async_trait]
impl SearchIndexes for LocalIndexes {
    async fn open(&self, workspace: WorkspaceId) -> Result<Arc<dyn SearchIndex>> {
        let folder = self.folder(workspace);
        let connection = blocking(move || {
            fs::create_dir_all(&folder).map_err(disk)?;
            schema::open(&folder.join(FILE)).map_err(|error| failed(&error))
        })
        .await?;
        Ok(Arc::new(LocalIndex(Arc::new(Mutex::new(Index { connection, known: None })))))
    }

    async fn remove(&self, workspace: WorkspaceId) -> Result<()> {
        let folder = self.folder(workspace);
        blocking(move || remove(&folder).map_err(disk)).await
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn disk(error: io::Error) -> Error {
    Error::unavailable("the disk of an index", error)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::unavailable("an index", error))?
}

struct LocalIndex(Arc<Mutex<Index>>);

struct Index {
    connection: Connection,
    /// The files, as look-ups count them; none after an edit.
    known: Option<Arc<Known>>,
}

impl LocalIndex {
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Index) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let index = Arc::clone(&self.0);
        blocking(move || {
            let mut index = index.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut index).map_err(|error| failed(&error))
        })
        .await
    }
}

#[async_trait]
impl SearchIndex for LocalIndex {
    async fn progress(&self) -> Result<Option<String>> {
        self.with(|index| index.connection.query_row("SELECT note FROM progress", [], |row| row.get(0)).optional())
            .await
    }

    async fn apply(&self, edits: Vec<IndexEdit>, progress: Option<String>) -> Result<()> {
        self.with(move |index| {
            if !edits.is_empty() {
                index.known = None;
            }
            let transaction = index.connection.transaction()?;
            for edit in &edits {
                match edit {
                    IndexEdit::File(file, name) => put(&transaction, file, name)?,
                    IndexEdit::Content { file_id, seal, passages } => fill(&transaction, *file_id, seal, passages)?,
                    IndexEdit::Gone(file_id) => {
                        if let Some(id) = id_of(&transaction, *file_id)? {
                            empty(&transaction, id, true)?;
                            transaction.prepare_cached("DELETE FROM files WHERE id = ?")?.execute([id])?;
                        }
                    }
                }
            }
            if let Some(note) = progress {
                transaction.execute("INSERT OR REPLACE INTO progress (only_one, note) VALUES (1, ?)", [note])?;
            }
            transaction.commit()
        })
        .await
    }

    async fn waiting(&self, limit: usize) -> Result<Vec<IndexedFile>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.with(move |index| {
            let sql = format!("SELECT {COLUMNS} FROM files f WHERE waits = 1 ORDER BY updated_at DESC LIMIT ?");
            index.connection.prepare_cached(&sql)?.query_map([limit], |row| file_of(row, 0))?.collect()
        })
        .await
    }

    async fn below(&self, path: &FilePath) -> Result<Vec<IndexedFile>> {
        let path = path.clone();
        self.with(move |index| {
            let sql = format!("SELECT {COLUMNS} FROM files f WHERE path = ?1 OR (path >= ?2 AND path < ?3)");
            let path = path.as_str().trim_end_matches('/');
            // '0' follows '/'.
            let bounds = params![path, format!("{path}/"), format!("{path}0")];
            index.connection.prepare_cached(&sql)?.query_map(bounds, |row| file_of(row, 0))?.collect()
        })
        .await
    }

    async fn look_up(&self, terms: Vec<IndexTerm>, visible: Visible) -> Result<IndexMatches> {
        self.with(move |index| {
            let known = match &index.known {
                Some(known) => Arc::clone(known),
                None => Arc::clone(index.known.insert(Arc::new(Known::read(&index.connection)?))),
            };
            look_up::look_up(&mut index.connection, &known, &terms, &visible)
        })
        .await
    }

    async fn passages(&self, ids: Vec<i64>) -> Result<HashMap<i64, Passage>> {
        self.with(move |index| {
            let sql = "SELECT first_line, last_line, heading, text FROM passages WHERE id = ?";
            let mut statement = index.connection.prepare_cached(sql)?;
            let mut found = HashMap::new();
            for id in ids {
                let passage = |row: &Row<'_>| {
                    let (first_line, last_line) = (number(row, 0)?, number(row, 1)?);
                    Ok(Passage { first_line, last_line, heading: row.get(2)?, text: row.get(3)?, words: String::new() })
                };
                found.extend(statement.query_row([id], passage).optional()?.map(|passage| (id, passage)));
            }
            Ok(found)
        })
        .await
    }
}

/// The columns that [`file_of`] reads, of the table `f`.
const COLUMNS: &str = "f.file_id, f.path, f.v, f.author, f.updated_at, f.size, f.derived_from, f.seal";

fn file_of(row: &Row<'_>, first: usize) -> rusqlite::Result<IndexedFile> {
    let path: String = row.get(first + 1)?;
    let derived_from: Option<String> = row.get(first + 6)?;
    Ok(IndexedFile {
        file_id: parsed(&row.get::<_, String>(first)?)?,
        path: parsed(&path)?,
        v: number(row, first + 2)?,
        author: row.get(first + 3)?,
        updated_at: Timestamp::from_millis(row.get(first + 4)?),
        size: number(row, first + 5)?,
        derived_from: derived_from.map(|id| parsed(&id)).transpose()?,
        seal: row.get(first + 7)?,
    })
}

fn parsed<T: std::str::FromStr>(text: &str) -> rusqlite::Result<T> {
    let wrong = || rusqlite::Error::InvalidColumnType(0, text.chars().take(80).collect(), rusqlite::types::Type::Text);
    text.parse().map_err(|_| wrong())
}

fn number(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(at)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(at, number))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn id_of(connection: &Connection, file: FileId) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM files WHERE file_id = ?")?;
    statement.query_row([file.to_string()], |row| row.get(0)).optional()
}

fn put(connection: &Connection, file: &IndexedFile, name: &str) -> rusqlite::Result<()> {
    let (file_id, path) = (file.file_id.to_string(), file.path.as_str());
    let known = connection
        .prepare_cached("SELECT id, path, seal FROM files WHERE file_id = ?")?
        .query_row([&file_id], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?))
        })
        .optional()?;
    let (id, is_renamed) = match &known {
        Some((id, old_path, seal)) => {
            if *seal != file.seal {
                empty(connection, *id, false)?;
                let sql = "UPDATE files SET waits = ?1, passages = 0, words = 0 WHERE id = ?2";
                connection.prepare_cached(sql)?.execute(params![file.seal.is_some(), id])?;
            }
            let sql = "UPDATE files SET path = ?1, v = ?2, author = ?3, updated_at = ?4, size = ?5, derived_from = ?6, seal = ?7 WHERE id = ?8";
            let derived_from = file.derived_from.map(|id| id.to_string());
            connection.prepare_cached(sql)?.execute(params![
                path,
                signed(file.v),
                file.author,
                file.updated_at.as_millis(),
                signed(file.size),
                derived_from,
                file.seal,
                id
            ])?;
            (*id, old_path != path)
        }
        None => {
            let sql = "INSERT INTO files (file_id, path, v, author, updated_at, size, derived_from, seal, waits, name_words, passages, words) \
                       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0)";
            let derived_from = file.derived_from.map(|id| id.to_string());
            connection.prepare_cached(sql)?.execute(params![
                file_id,
                path,
                signed(file.v),
                file.author,
                file.updated_at.as_millis(),
                signed(file.size),
                derived_from,
                file.seal,
                file.seal.is_some()
            ])?;
            (connection.last_insert_rowid(), true)
        }
    };
    if is_renamed {
        let old = "SELECT id FROM passages WHERE file = ? AND first_line = 0";
        let old: Option<i64> = connection.prepare_cached(old)?.query_row([id], |row| row.get(0)).optional()?;
        if let Some(old) = old {
            remove_passage(connection, old)?;
        }
        let passage = Passage { words: name.to_owned(), ..Passage::default() };
        let words = add_passage(connection, id, &passage)?;
        connection.prepare_cached("UPDATE files SET name_words = ?1 WHERE id = ?2")?.execute(params![words, id])?;
    }
    Ok(())
}

fn fill(connection: &Connection, file: FileId, seal: &str, passages: &[Passage]) -> rusqlite::Result<()> {
    let sql = "SELECT id FROM files WHERE file_id = ?1 AND seal = ?2";
    let id = connection.prepare_cached(sql)?.query_row(params![file.to_string(), seal], |row| row.get(0));
    let Some(id) = id.optional()? else { return Ok(()) };
    empty(connection, id, false)?;
    let mut words = 0;
    for passage in passages {
        words += add_passage(connection, id, passage)?;
    }
    let sql = "UPDATE files SET waits = 0, passages = ?1, words = ?2 WHERE id = ?3";
    connection.prepare_cached(sql)?.execute(params![i64::try_from(passages.len()).unwrap_or(i64::MAX), words, id])?;
    Ok(())
}

/// Adds a passage and returns the number of its words.
fn add_passage(connection: &Connection, file: i64, passage: &Passage) -> rusqlite::Result<i64> {
    let words = i64::try_from(passage.words.split(' ').count()).unwrap_or(i64::MAX);
    let sql = "INSERT INTO passages (file, first_line, last_line, words, heading, text) VALUES (?, ?, ?, ?, ?, ?)";
    let Passage { first_line, last_line, heading, text, .. } = passage;
    let row = params![file, signed(*first_line), signed(*last_line), words, heading, text];
    connection.prepare_cached(sql)?.execute(row)?;
    let id = connection.last_insert_rowid();
    connection
        .prepare_cached("INSERT INTO words (rowid, tokens) VALUES (?, ?)")?
        .execute(params![id, passage.words])?;
    Ok(words)
}

fn remove_passage(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM words WHERE rowid = ?")?.execute([id])?;
    connection.prepare_cached("DELETE FROM passages WHERE id = ?")?.execute([id])?;
    Ok(())
}

/// Takes the passages of a file away, that of its name only if `name`.
fn empty(connection: &Connection, file: i64, name: bool) -> rusqlite::Result<()> {
    let sql = "SELECT id FROM passages WHERE file = ?1 AND (first_line > 0 OR ?2)";
    let ids: Vec<i64> = connection
        .prepare_cached(sql)?
        .query_map(params![file, name], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    ids.into_iter().try_for_each(|id| remove_passage(connection, id))
}

#[cfg(test)]
mod tests;
