//! Indexes of texts in SQLite's FTS5, a file per workspace in the folder of its mirror. They are caches: nothing is synced, and a file of another
//! form is made anew.
//!
//! FTS5 gets words that are ready to be compared (`tokenize = 'ascii'` parts them at spaces alone), and keeps no text of its own. It finds phrases, and
//! its vocabulary gives the occurrences of words. Ranks are computed elsewhere, since its own would count files that a caller may not read.

mod archived_indexes;
mod file_catalog;
mod lookup;
mod rows;
mod schema;
mod vectors;

use crate::readers::failed;
pub use archived_indexes::ArchivedIndexes;
use async_trait::async_trait;
use domain::{FilePath, Timestamp, WorkspaceId};
use file_catalog::FileCatalog;

use parking_lot::Mutex;
use ports::{
    Error, FileFilter, IndexEdit, IndexMatches, IndexNearest, IndexTerm, IndexVector, IndexedFile, Passage, Result,
    SearchIndex, SearchIndexes, Unembedded, Visible,
};
use rows::Rows;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use vectors::BinaryCodes;

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

impl LocalIndexes {
    fn file(&self, workspace: WorkspaceId) -> PathBuf {
        self.folder(workspace).join(FILE)
    }

    async fn open_local(&self, workspace: WorkspaceId) -> Result<LocalIndex> {
        let folder = self.folder(workspace);
        let connection = blocking(move || {
            fs::create_dir_all(&folder).map_err(disk)?;
            schema::open(&folder.join(FILE)).map_err(|error| failed(&error))
        })
        .await?;
        Ok(LocalIndex(Arc::new(Mutex::new(Index { connection, known: None, signs: None, version: 0 }))))
    }
}

#[async_trait]
impl SearchIndexes for LocalIndexes {
    async fn open(&self, workspace: WorkspaceId) -> Result<Arc<dyn SearchIndex>> {
        Ok(Arc::new(self.open_local(workspace).await?))
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
    known: Option<Arc<FileCatalog>>,
    /// The directions of the vectors; none until somebody looks for one, and when they are not certain.
    signs: Option<BinaryCodes>,
    /// Tells whether another connection has written.
    version: i64,
}

impl Index {
    /// Forgets all that is in memory if another connection has written: there is one per process, but processes may share a disk.
    fn look(&mut self) -> rusqlite::Result<()> {
        let version = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0))?;
        if version != self.version {
            (self.known, self.signs, self.version) = (None, None, version);
        }
        Ok(())
    }

    fn known(&mut self) -> rusqlite::Result<Arc<FileCatalog>> {
        Ok(match &self.known {
            Some(known) => Arc::clone(known),
            None => Arc::clone(self.known.insert(Arc::new(FileCatalog::read(&self.connection)?))),
        })
    }

    /// Makes changes, all at once.
    fn change<T>(&mut self, change: impl FnOnce(&mut Rows<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        self.look()?;
        let signs = self.signs.take();
        let transaction = self.connection.transaction()?;
        let mut rows = Rows::new(&transaction);
        let changed = change(&mut rows)?;
        let touched = rows.touched;
        transaction.commit()?;
        self.signs = signs.map(|signs| signs.follow(&self.connection, touched)).transpose()?.flatten();
        Ok(changed)
    }
}

impl LocalIndex {
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Index) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let index = Arc::clone(&self.0);
        blocking(move || {
            let mut index = index.lock();
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
            index.change(|rows| {
                for edit in &edits {
                    match edit {
                        IndexEdit::File(file, name) => rows.put(file, name)?,
                        IndexEdit::Content { file_id, seal, passages } => rows.fill(*file_id, seal, passages)?,
                        IndexEdit::Gone(file_id) => rows.gone(*file_id)?,
                    }
                }
                progress.map_or(Ok(()), |note| rows.note(&note))
            })
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
            index.look()?;
            let known = index.known()?;
            lookup::look_up(&mut index.connection, &known, &terms, &visible)
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

    async fn unembedded(&self, space: &str, limit: usize) -> Result<Vec<Unembedded>> {
        let (space, limit) = (space.to_owned(), i64::try_from(limit).unwrap_or(i64::MAX));
        self.with(move |index| {
            index.change(|rows| rows.settle(&space, None))?;
            let sql = "SELECT id, heading, text FROM passages INDEXED BY passages_without_vector \
                       WHERE vector IS NULL ORDER BY id DESC LIMIT ?";
            let passage =
                |row: &Row<'_>| Ok(Unembedded { passage: row.get(0)?, heading: row.get(1)?, text: row.get(2)? });
            index.connection.prepare_cached(sql)?.query_map([limit], passage)?.collect()
        })
        .await
    }

    async fn embed(&self, space: &str, vectors: Vec<IndexVector>) -> Result<()> {
        let space = space.to_owned();
        let dimensions = vectors::length(vectors.iter().map(|vector| vector.vector.as_slice()))?;
        self.with(move |index| {
            index.change(|rows| {
                rows.settle(&space, dimensions)?;
                vectors
                    .iter()
                    .try_for_each(|IndexVector { passage, vector }| rows.embed(*passage, &vectors::code(vector)))
            })
        })
        .await
    }

    async fn nearest(
        &self,
        space: &str,
        vector: Vec<f32>,
        most: usize,
        visible: Visible,
        looked: FileFilter,
    ) -> Result<IndexNearest> {
        let space = space.to_owned();
        let dimensions = vectors::length([vector.as_slice()].into_iter())?;
        self.with(move |index| {
            index.change(|rows| rows.settle(&space, dimensions))?;
            let known = index.known()?;
            let signs = match index.signs.take() {
                Some(signs) => signs,
                None => BinaryCodes::read(&index.connection)?,
            };
            let signs = index.signs.insert(signs);
            signs.nearest(&index.connection, &vector, most, &known, &known.seen(visible.as_ref()).looked(&looked))
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
        file_id: parse_text(&row.get::<_, String>(first)?)?,
        path: parse_text(&path)?,
        v: number(row, first + 2)?,
        author: row.get(first + 3)?,
        updated_at: Timestamp::from_millis(row.get(first + 4)?),
        size: number(row, first + 5)?,
        derived_from: derived_from.map(|id| parse_text(&id)).transpose()?,
        seal: row.get(first + 7)?,
    })
}

fn parse_text<T: std::str::FromStr>(text: &str) -> rusqlite::Result<T> {
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

#[cfg(test)]
mod tests;
