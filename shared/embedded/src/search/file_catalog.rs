//! The files of an index in memory, and those among them that a caller may read.
//!
//! Counts are kept per folder, since access is mostly decided for a whole folder: a look-up asks once per folder, and once per file that has a hit.

use super::{COLUMNS, file_of, number};
use domain::{FileId, FilePath};
use ports::{FileFilter, IndexedFile, IndexedHit, ShownFile, Visibility};
use rusqlite::Connection;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// All files whose document, where they are the Markdown of one, is known.
pub(super) struct FileCatalog {
    files: Vec<CatalogFile>,
    /// Places in `files`.
    by_id: HashMap<i64, usize>,
    folders: Vec<Folder>,
}

struct CatalogFile {
    id: i64,
    hit: Arc<IndexedHit>,
    /// The place of its folder; none if its document is in another one, and for the root.
    folder: Option<usize>,
    counts: Counts,
}

struct Folder {
    path: FilePath,
    /// Places of the files in it.
    files: Vec<usize>,
    counts: Counts,
}

/// Counts of files.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    /// Files, each of which has a name.
    pub names: u64,
    pub name_words: u64,
    /// Passages, names aside.
    pub passages: u64,
    pub words: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.names += other.names;
        self.name_words += other.name_words;
        self.passages += other.passages;
        self.words += other.words;
    }
}

impl FileCatalog {
    pub fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let sql = format!("SELECT {COLUMNS}, f.id, f.name_words, f.passages, f.words FROM files f");
        let mut statement = connection.prepare_cached(&sql)?;
        let file = |row: &rusqlite::Row<'_>| {
            let (name_words, passages, words) = (number(row, 9)?, number(row, 10)?, number(row, 11)?);
            Ok((file_of(row, 0)?, row.get(8)?, Counts { names: 1, name_words, passages, words }))
        };
        let rows = statement.query_map([], file)?.collect::<rusqlite::Result<Vec<(IndexedFile, i64, Counts)>>>()?;
        let sources: HashSet<FileId> = rows.iter().filter_map(|(file, ..)| file.derived_from).collect();
        let documents: HashMap<FileId, IndexedFile> = rows
            .iter()
            .filter(|(file, ..)| sources.contains(&file.file_id))
            .map(|(file, ..)| (file.file_id, file.clone()))
            .collect();
        let mut known = Self { files: Vec::with_capacity(rows.len()), by_id: HashMap::new(), folders: Vec::new() };
        let mut folders = HashMap::new();
        for (file, id, counts) in rows {
            let document = match file.derived_from {
                None => None,
                Some(document) => match documents.get(&document) {
                    Some(document) => Some(document.clone()),
                    None => continue,
                },
            };
            known.add(id, IndexedHit { file, document }, counts, &mut folders);
        }
        Ok(known)
    }

    fn add(&mut self, id: i64, hit: IndexedHit, counts: Counts, folders: &mut HashMap<FilePath, usize>) {
        let place = self.files.len();
        let above = hit.file.path.parent();
        let is_together = hit.document.as_ref().is_none_or(|document| document.path.parent() == above);
        let folder = above.filter(|_| is_together).map(|path| {
            *folders.entry(path.clone()).or_insert_with(|| {
                self.folders.push(Folder { path, files: Vec::new(), counts: Counts::default() });
                self.folders.len() - 1
            })
        });
        if let Some(folder) = folder.and_then(|folder| self.folders.get_mut(folder)) {
            folder.files.push(place);
            folder.counts.add(&counts);
        }
        self.by_id.insert(id, place);
        self.files.push(CatalogFile { id, hit: Arc::new(hit), folder, counts });
    }

    /// Those that `visibility` has, the Markdown of a document only with its document.
    pub fn seen<'a>(&'a self, visibility: &'a dyn Visibility) -> VisibleFiles<'a> {
        let folders = self.folders.iter().map(|folder| visibility.has_all_in(&folder.path)).collect();
        VisibleFiles { known: self, visibility, folders }
    }

    /// These files, with the documents that they are the Markdown of.
    pub fn files(&self, ids: impl Iterator<Item = i64>) -> HashMap<i64, Arc<IndexedHit>> {
        ids.filter_map(|id| Some((id, Arc::clone(&self.files.get(*self.by_id.get(&id)?)?.hit)))).collect()
    }
}

/// The files that a caller may read.
pub(super) struct VisibleFiles<'a> {
    known: &'a FileCatalog,
    visibility: &'a dyn Visibility,
    /// Of each folder whether all files in it are seen; none where each is asked for.
    folders: Vec<Option<bool>>,
}

impl VisibleFiles<'_> {
    pub fn has(&self, id: i64) -> bool {
        self.known.by_id.get(&id).and_then(|place| self.known.files.get(*place)).is_some_and(|file| self.has_file(file))
    }

    fn has_file(&self, file: &CatalogFile) -> bool {
        let of_folder = file.folder.and_then(|folder| self.folders.get(folder).copied().flatten());
        of_folder.unwrap_or_else(|| {
            let IndexedHit { file, document } = file.hit.as_ref();
            self.visibility.has(&file.path)
                && document.as_ref().is_none_or(|document| self.visibility.has(&document.path))
        })
    }

    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        let mut add = |file: &CatalogFile| {
            if self.has_file(file) {
                all.add(&file.counts);
            }
        };
        self.known.files.iter().filter(|file| file.folder.is_none()).for_each(&mut add);
        let undecided = self.known.folders.iter().zip(&self.folders).filter(|(_, decided)| decided.is_none());
        undecided.flat_map(|(folder, _)| &folder.files).filter_map(|place| self.known.files.get(*place)).for_each(add);
        for (folder, decided) in self.known.folders.iter().zip(&self.folders) {
            if *decided == Some(true) {
                all.add(&folder.counts);
            }
        }
        all
    }

    /// The keys of those that are looked for.
    pub fn looked(&self, looked: &FileFilter) -> HashSet<i64> {
        let wanted = |file: &&CatalogFile| {
            let IndexedHit { file, document } = file.hit.as_ref();
            let IndexedFile { path, v, author, updated_at, .. } = document.as_ref().unwrap_or(file);
            looked(&ShownFile { path, v: *v, author, updated_at: *updated_at, is_document: document.is_some() })
        };
        self.known.files.iter().filter(wanted).filter(|file| self.has_file(file)).map(|file| file.id).collect()
    }
}
