//! Vectors, and the nearest ones.
//!
//! A vector is kept with a byte per number: the error of a cosine is below a hundredth. For a look, the sign of each number is in memory, one bit
//! each: they say about which vectors are near (the share of equal signs falls with the angle), by an XOR. The best [`CANDIDATES`] of those that
//! may be shown are compared by their bytes. Where there are no more, the result is exact.

use super::{file_catalog::FileCatalog, number, rows::ChangedVectors};
use ports::{Error, IndexNear, IndexNearest, Result};
use rusqlite::{Connection, OptionalExtension};
use std::collections::{HashMap, HashSet};

/// How many vectors are compared by their bytes.
const CANDIDATES: usize = 2048;
/// The bytes of a code before its numbers: their scale.
const SCALE: usize = 4;

/// The one length of these vectors, empty ones aside; none if there are no others.
pub(super) fn length<'a>(vectors: impl Iterator<Item = &'a [f32]>) -> Result<Option<usize>> {
    let mut length = None;
    for vector in vectors.filter(|vector| !vector.is_empty()) {
        if *length.get_or_insert(vector.len()) != vector.len() {
            return Err(Error::Invalid("vectors of one space have different lengths".into()));
        }
        if !vector.iter().all(|number| number.is_finite()) {
            return Err(Error::Invalid("a vector has a number that is none".into()));
        }
    }
    Ok(length)
}

/// A vector as it is kept: its direction, with a byte per number. Empty for an empty one.
pub(super) fn code(vector: &[f32]) -> Vec<u8> {
    if vector.is_empty() {
        return Vec::new();
    }
    let vector = unit(vector);
    let scale = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs())) / 127.0;
    let byte = |number: &f32| if scale > 0.0 { (number / scale).round() as i8 } else { 0 };
    let numbers = vector.iter().map(|number| byte(number).to_le_bytes()[0]);
    scale.to_le_bytes().into_iter().chain(numbers).collect()
}

/// The vector of length one in the same direction.
fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    vector.iter().map(|number| if length > 0.0 { (f64::from(*number) / length) as f32 } else { 0.0 }).collect()
}

/// The cosine of a unit vector and a kept one.
fn similarity(query: &[f32], code: &[u8]) -> f32 {
    let Some((scale, numbers)) = code.split_first_chunk::<SCALE>() else { return 0.0 };
    let product = |(number, byte): (&f32, &u8)| number * f32::from(i8::from_le_bytes([*byte]));
    (query.iter().zip(numbers).map(product).sum::<f32>() * f32::from_le_bytes(*scale)).clamp(-1.0, 1.0)
}

/// The signs of numbers, 64 in a word.
fn signs(are_negative: impl Iterator<Item = bool>) -> Vec<u64> {
    let mut words = Vec::new();
    for (at, is_negative) in are_negative.enumerate() {
        if at % 64 == 0 {
            words.push(0);
        }
        if let Some(word) = words.last_mut() {
            *word |= u64::from(is_negative) << (at % 64);
        }
    }
    words
}

struct Row {
    passage: i64,
    file: i64,
    vector: i64,
}

/// The signs of all vectors.
#[derive(Default)]
pub(super) struct BinaryCodes {
    rows: Vec<Row>,
    /// Of each row so many words.
    width: usize,
    words: Vec<u64>,
    /// The places of passages in the rows.
    places: HashMap<i64, usize>,
}

const SELECT: &str = "SELECT p.id, p.file, v.id, v.code FROM passages p JOIN vectors v ON v.id = p.vector";

impl BinaryCodes {
    pub fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut all = Self::default();
        let mut statement = connection.prepare_cached(SELECT)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            all.add(row)?;
        }
        Ok(all)
    }

    /// The same after these changes; none to be read anew.
    pub fn follow(mut self, connection: &Connection, touched: ChangedVectors) -> rusqlite::Result<Option<Self>> {
        if touched.all {
            return Ok(None);
        }
        touched.gone.iter().for_each(|passage| self.remove(*passage));
        let mut statement = connection.prepare_cached(&format!("{SELECT} WHERE p.id = ?"))?;
        for passage in touched.embedded {
            self.remove(passage);
            let mut rows = statement.query([passage])?;
            if let Some(row) = rows.next()? {
                self.add(row)?;
            }
        }
        Ok(Some(self))
    }

    fn add(&mut self, row: &rusqlite::Row<'_>) -> rusqlite::Result<()> {
        let code = row.get_ref(3)?.as_blob()?;
        let Some((_, numbers)) = code.split_first_chunk::<SCALE>() else { return Ok(()) };
        let words = signs(numbers.iter().map(|byte| i8::from_le_bytes([*byte]) < 0));
        let row = Row { passage: row.get(0)?, file: row.get(1)?, vector: row.get(2)? };
        self.width = words.len();
        self.places.insert(row.passage, self.rows.len());
        self.rows.push(row);
        self.words.extend(words);
        Ok(())
    }

    fn remove(&mut self, passage: i64) {
        let Some(place) = self.places.remove(&passage) else { return };
        self.rows.swap_remove(place);
        if let Some(moved) = self.rows.get(place) {
            self.places.insert(moved.passage, place);
            let last = self.rows.len() * self.width;
            self.words.copy_within(last..last + self.width, place * self.width);
        }
        self.words.truncate(self.rows.len() * self.width);
    }

    /// The nearest passages of these files, which are known.
    pub fn nearest(
        &self,
        connection: &Connection,
        query: &[f32],
        most: usize,
        known: &FileCatalog,
        files: &HashSet<i64>,
    ) -> rusqlite::Result<IndexNearest> {
        let query = unit(query);
        let mut code = connection.prepare_cached("SELECT code FROM vectors WHERE id = ?")?;
        let mut near = Vec::new();
        for place in self.candidates(&query, files) {
            let Some(Row { passage, file, vector }) = self.rows.get(place) else { continue };
            let compare = |row: &rusqlite::Row<'_>| Ok(similarity(&query, row.get_ref(0)?.as_blob()?));
            let Some(similarity) = code.query_row([vector], compare).optional()? else { continue };
            near.push(IndexNear { passage: *passage, file: *file, similarity });
        }
        near.sort_by(|one, other| other.similarity.total_cmp(&one.similarity).then(one.passage.cmp(&other.passage)));
        near.truncate(most);
        let found = known.files(near.iter().map(|near| near.file));
        Ok(IndexNearest { near, files: found, pending: pending(connection, files)? })
    }

    /// The places of the vectors of these files with the most signs in common.
    fn candidates(&self, query: &[f32], files: &HashSet<i64>) -> Vec<usize> {
        let query = signs(query.iter().map(|number| *number < 0.0));
        let seen = self.rows.iter().zip(self.words.chunks_exact(self.width.max(1))).enumerate();
        let mut seen: Vec<(u32, i64, usize)> = seen
            .filter(|(_, (row, _))| files.contains(&row.file))
            .map(|(place, (row, words))| {
                let distance = words.iter().zip(&query).map(|(one, other)| (one ^ other).count_ones()).sum();
                (distance, row.passage, place)
            })
            .collect();
        if seen.len() > CANDIDATES {
            seen.select_nth_unstable(CANDIDATES);
            seen.truncate(CANDIDATES);
        }
        seen.into_iter().map(|(.., place)| place).collect()
    }
}

/// How many passages of these files wait for a vector.
fn pending(connection: &Connection, files: &HashSet<i64>) -> rusqlite::Result<u64> {
    let sql =
        "SELECT file, count(*) FROM passages INDEXED BY passages_without_vector WHERE vector IS NULL GROUP BY file";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut pending = 0;
    while let Some(row) = rows.next()? {
        if files.contains(&row.get(0)?) {
            pending += number(row, 1)?;
        }
    }
    Ok(pending)
}

#[cfg(test)]
mod tests;
