//! Changes of an index's rows, within a transaction.

use super::{number, signed};
use domain::{FileId, Sha256};
use ports::{IndexedFile, Passage};
use rusqlite::{Connection, OptionalExtension, params};

/// Changes of rows, and the passages that they concern.
pub(super) struct Rows<'a> {
    connection: &'a Connection,
    pub touched: ChangedVectors,
}

/// The passages whose vectors changed.
#[derive(Default)]
pub(super) struct ChangedVectors {
    /// Those that are gone.
    pub gone: Vec<i64>,
    /// Those that have a vector now.
    pub embedded: Vec<i64>,
    /// Whether all vectors are gone.
    pub all: bool,
}

impl<'a> Rows<'a> {
    pub fn new(connection: &'a Connection) -> Self {
        Self { connection, touched: ChangedVectors::default() }
    }

    /// Keeps the note.
    pub fn note(&mut self, note: &str) -> rusqlite::Result<()> {
        let sql = "INSERT INTO progress (only_one, note) VALUES (1, ?) ON CONFLICT DO UPDATE SET note = excluded.note";
        self.connection.prepare_cached(sql)?.execute([note])?;
        Ok(())
    }

    /// The file is known now, or is as told.
    pub fn put(&mut self, file: &IndexedFile, name: &str) -> rusqlite::Result<()> {
        let (file_id, path) = (file.file_id.to_string(), file.path.as_str());
        let known = self
            .connection
            .prepare_cached("SELECT id, path, seal FROM files WHERE file_id = ?")?
            .query_row([&file_id], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?))
            })
            .optional()?;
        if let Some((id, _, seal)) = &known
            && *seal != file.seal
        {
            self.empty(*id, false)?;
        }
        // On the right are the columns as they were.
        let sql = "INSERT INTO files (file_id, path, v, author, updated_at, size, derived_from, seal, waits, name_words, passages, words) \
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0) \
                   ON CONFLICT (file_id) DO UPDATE SET path = excluded.path, v = excluded.v, author = excluded.author, \
                   updated_at = excluded.updated_at, size = excluded.size, derived_from = excluded.derived_from, seal = excluded.seal, \
                   waits = CASE WHEN seal IS excluded.seal THEN waits ELSE excluded.waits END, \
                   passages = CASE WHEN seal IS excluded.seal THEN passages ELSE 0 END, \
                   words = CASE WHEN seal IS excluded.seal THEN words ELSE 0 END \
                   RETURNING id";
        let row = params![
            file_id,
            path,
            signed(file.v),
            file.author,
            file.updated_at.as_millis(),
            signed(file.size),
            file.derived_from.map(|id| id.to_string()),
            file.seal,
            file.seal.is_some()
        ];
        let id: i64 = self.connection.prepare_cached(sql)?.query_row(row, |row| row.get(0))?;
        if known.is_some_and(|(_, old_path, _)| old_path == path) {
            return Ok(());
        }
        let old = "SELECT id FROM passages WHERE file = ? AND first_line = 0";
        let old: Option<i64> = self.connection.prepare_cached(old)?.query_row([id], |row| row.get(0)).optional()?;
        if let Some(old) = old {
            self.remove(old)?;
        }
        let passage = Passage { words: name.to_owned(), ..Passage::default() };
        let words = self.add(id, &passage)?;
        self.connection
            .prepare_cached("UPDATE files SET name_words = ?1 WHERE id = ?2")?
            .execute(params![words, id])?;
        Ok(())
    }

    /// The passages of a file's content with this seal.
    pub fn fill(&mut self, file: FileId, seal: &str, passages: &[Passage]) -> rusqlite::Result<()> {
        let sql = "SELECT id FROM files WHERE file_id = ?1 AND seal = ?2";
        let id = self.connection.prepare_cached(sql)?.query_row(params![file.to_string(), seal], |row| row.get(0));
        let Some(id) = id.optional()? else { return Ok(()) };
        self.empty(id, false)?;
        let mut words = 0;
        for passage in passages {
            words += self.add(id, passage)?;
        }
        let sql = "UPDATE files SET waits = 0, passages = ?1, words = ?2 WHERE id = ?3";
        let count = i64::try_from(passages.len()).unwrap_or(i64::MAX);
        self.connection.prepare_cached(sql)?.execute(params![count, words, id])?;
        let sql = "DELETE FROM vectors WHERE file = ?1 AND id NOT IN (SELECT vector FROM passages WHERE file = ?1 AND vector > 0)";
        self.connection.prepare_cached(sql)?.execute([id])?;
        Ok(())
    }

    /// There is no such file.
    pub fn gone(&mut self, file: FileId) -> rusqlite::Result<()> {
        let mut known = self.connection.prepare_cached("SELECT id FROM files WHERE file_id = ?")?;
        let id: Option<i64> = known.query_row([file.to_string()], |row| row.get(0)).optional()?;
        let Some(id) = id else { return Ok(()) };
        self.empty(id, true)?;
        self.connection.prepare_cached("DELETE FROM vectors WHERE file = ?")?.execute([id])?;
        self.connection.prepare_cached("DELETE FROM files WHERE id = ?")?.execute([id])?;
        Ok(())
    }

    /// Vectors are of this space from now on, and of this length if it is given.
    pub fn settle(&mut self, space: &str, dimensions: Option<usize>) -> rusqlite::Result<()> {
        let mut kept = self.connection.prepare_cached("SELECT name, dimensions FROM space")?;
        let kept = kept.query_row([], |row| Ok((row.get::<_, String>(0)?, number(row, 1)? as usize))).optional()?;
        // 0 until the first one.
        let (is_same, known) = kept.as_ref().map_or((false, 0), |(name, known)| (name == space, *known));
        let is_kept = is_same && dimensions.is_none_or(|asked| known == 0 || asked == known);
        if is_kept && (known > 0 || dimensions.is_none()) {
            return Ok(());
        }
        if kept.is_some() && !is_kept {
            self.connection.execute("DELETE FROM vectors", [])?;
            self.connection.execute("UPDATE passages SET vector = NULL WHERE vector > 0", [])?;
            self.touched.all = true;
        }
        let sql = "INSERT INTO space (only_one, name, dimensions) VALUES (1, ?1, ?2) \
                   ON CONFLICT DO UPDATE SET name = excluded.name, dimensions = excluded.dimensions";
        let dimensions = signed(dimensions.unwrap_or(0) as u64);
        self.connection.prepare_cached(sql)?.execute(params![space, dimensions])?;
        Ok(())
    }

    /// Keeps the vector of a passage, for all equal passages of its file.
    pub fn embed(&mut self, passage: i64, code: &[u8]) -> rusqlite::Result<()> {
        let sql = "SELECT file, hash FROM passages WHERE id = ?";
        let of: Option<(i64, Vec<u8>)> = self
            .connection
            .prepare_cached(sql)?
            .query_row([passage], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((file, hash)) = of else { return Ok(()) };
        let sql = "INSERT INTO vectors (file, hash, code) VALUES (?, ?, ?) \
                   ON CONFLICT (file, hash) DO UPDATE SET code = excluded.code RETURNING id";
        let id: i64 = self.connection.prepare_cached(sql)?.query_row(params![file, hash, code], |row| row.get(0))?;
        let sql = "UPDATE passages SET vector = ?1 WHERE file = ?2 AND hash = ?3 AND vector IS NULL RETURNING id";
        let mut update = self.connection.prepare_cached(sql)?;
        let ids = update.query_map(params![id, file, hash], |row| row.get(0))?;
        for id in ids {
            self.touched.embedded.push(id?);
        }
        Ok(())
    }

    /// Adds a passage and returns the number of its words.
    fn add(&mut self, file: i64, passage: &Passage) -> rusqlite::Result<i64> {
        let Passage { first_line, last_line, heading, text, words } = passage;
        let hash = hash(heading, text);
        // A name is found by its words alone.
        let vector = if *first_line == 0 {
            Some(0)
        } else {
            let sql = "SELECT id FROM vectors WHERE file = ?1 AND hash = ?2";
            self.connection
                .prepare_cached(sql)?
                .query_row(params![file, hash], |row| row.get::<_, i64>(0))
                .optional()?
        };
        let count = i64::try_from(words.split(' ').count()).unwrap_or(i64::MAX);
        let sql = "INSERT INTO passages (file, first_line, last_line, words, heading, text, hash, vector) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
        let row = params![file, signed(*first_line), signed(*last_line), count, heading, text, hash, vector];
        self.connection.prepare_cached(sql)?.execute(row)?;
        let id = self.connection.last_insert_rowid();
        self.connection
            .prepare_cached("INSERT INTO words (rowid, tokens) VALUES (?, ?)")?
            .execute(params![id, words])?;
        if vector.is_some_and(|vector| vector > 0) {
            self.touched.embedded.push(id);
        }
        Ok(count)
    }

    fn remove(&mut self, id: i64) -> rusqlite::Result<()> {
        self.connection.prepare_cached("DELETE FROM words WHERE rowid = ?")?.execute([id])?;
        self.connection.prepare_cached("DELETE FROM passages WHERE id = ?")?.execute([id])?;
        self.touched.gone.push(id);
        Ok(())
    }

    /// Takes the passages of a file away, that of its name only if `name`. Their vectors stay until its content is there.
    fn empty(&mut self, file: i64, name: bool) -> rusqlite::Result<()> {
        let sql = "SELECT id FROM passages WHERE file = ?1 AND (first_line > 0 OR ?2)";
        let ids: Vec<i64> = self
            .connection
            .prepare_cached(sql)?
            .query_map(params![file, name], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        ids.into_iter().try_for_each(|id| self.remove(id))
    }
}

/// Names all that is embedded of a passage.
fn hash(heading: &str, text: &str) -> Vec<u8> {
    Sha256::of(format!("{heading}\n{text}").as_bytes()).as_bytes().to_vec()
}
