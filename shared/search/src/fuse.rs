//! The orders of files, by words and by meaning, and both as one (reciprocal rank fusion).
//!
//! The two kinds of scores have no common scale, and places have: a file gets 1 / (60 + place) of each order that it is in.

use crate::{
    HitKind,
    query::{Role, Term},
    rank::Ranked,
    refresh::kind,
};
use domain::FileId;
use ports::{IndexMatches, IndexNearest, IndexedFile, IndexedHit, ShownFile};
use std::collections::{HashMap, HashSet, hash_map::Entry};

/// How little the very first places count more than those after them.
const FUSION: f64 = 60.0;

/// A file as it is shown: the document instead of its Markdown.
#[derive(Clone, Debug)]
pub(crate) struct RankedFile<'a> {
    pub file: &'a IndexedFile,
    pub kind: HitKind,
    /// The best passage; none when only the name matches.
    pub passage: Option<i64>,
    /// How many passages match.
    pub passages: usize,
    /// How many of them by words.
    pub with_words: usize,
    /// BM25 of the best passage, and of the name.
    pub text: f64,
    pub name: f64,
    /// The nearness of the meaning, and its place among the files, from 1.
    pub meaning: Option<(f64, usize)>,
    pub total: f64,
    /// The positions of the terms that match.
    pub terms: Vec<usize>,
}

fn shown_file(hit: &IndexedHit) -> ShownFile<'_> {
    let IndexedFile { path, v, author, updated_at, .. } = hit.document.as_ref().unwrap_or(&hit.file);
    ShownFile { path, v: *v, author, updated_at: *updated_at, is_document: hit.document.is_some() }
}

/// The files that match by words and fit, best first. A document by its name and by its Markdown is one result, in the better place.
pub(crate) fn by_words<'a>(
    ranked: &[Ranked],
    found: &'a IndexMatches,
    fits: impl Fn(&ShownFile<'_>) -> bool,
) -> Vec<RankedFile<'a>> {
    let mut known = HashSet::new();
    let mut all = Vec::new();
    for ranked in ranked {
        let Some(hit) = found.files.get(&ranked.file) else { continue };
        let (file, shown) = (hit.document.as_ref().unwrap_or(&hit.file), shown_file(hit));
        if fits(&shown) && known.insert(file.file_id) {
            all.push(RankedFile {
                file,
                kind: kind(&shown),
                passage: ranked.passage,
                passages: ranked.passages,
                with_words: ranked.passages,
                text: ranked.text,
                name: ranked.name,
                meaning: None,
                total: ranked.total(),
                terms: ranked.terms.clone(),
            });
        }
    }
    all
}

/// The files of the nearest passages, best first; equals by path.
pub(crate) fn by_meaning(found: &IndexNearest) -> Vec<RankedFile<'_>> {
    let mut files: HashMap<FileId, RankedFile<'_>> = HashMap::new();
    // A passage that is not near at all is no result, however few there are.
    for near in found.near.iter().filter(|near| near.similarity > 0.0) {
        let Some(hit) = found.files.get(&near.file) else { continue };
        let file = hit.document.as_ref().unwrap_or(&hit.file);
        match files.entry(file.file_id) {
            Entry::Occupied(mut known) => known.get_mut().passages += 1,
            Entry::Vacant(free) => {
                let near_by = f64::from(near.similarity);
                free.insert(RankedFile {
                    file,
                    kind: kind(&shown_file(hit)),
                    passage: Some(near.passage),
                    passages: 1,
                    with_words: 0,
                    text: 0.0,
                    name: 0.0,
                    meaning: Some((near_by, 0)),
                    total: near_by,
                    terms: Vec::new(),
                });
            }
        }
    }
    let mut files: Vec<RankedFile<'_>> = files.into_values().collect();
    sort(&mut files);
    for (place, file) in (1..).zip(&mut files) {
        file.meaning = file.meaning.map(|(near, _)| (near, place));
    }
    files
}

fn sort(files: &mut [RankedFile<'_>]) {
    files.sort_by(|one, other| {
        other.total.total_cmp(&one.total).then_with(|| one.file.path.as_str().cmp(other.file.path.as_str()))
    });
}

/// The two orders as one.
pub(crate) fn both<'a>(by_words: Vec<RankedFile<'a>>, by_meaning: Vec<RankedFile<'a>>) -> Vec<RankedFile<'a>> {
    let mut files: HashMap<FileId, RankedFile<'a>> = HashMap::new();
    let mut places: HashMap<FileId, usize> = HashMap::new();
    for (place, file) in (1..).zip(by_words) {
        places.insert(file.file.file_id, place);
        files.insert(file.file.file_id, RankedFile { total: part(place), ..file });
    }
    for (place, near) in (1..).zip(by_meaning) {
        let total = part(place);
        match files.entry(near.file.file_id) {
            Entry::Vacant(free) => drop(free.insert(RankedFile { total, ..near })),
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.total += total;
                known.meaning = near.meaning;
                known.passages = known.passages.max(near.passages);
                // The passage of the better place is shown.
                if places.get(&near.file.file_id).is_none_or(|by_words| place < *by_words) {
                    known.passage = near.passage;
                }
            }
        }
    }
    let mut files: Vec<RankedFile<'a>> = files.into_values().collect();
    sort(&mut files);
    files
}

fn part(place: usize) -> f64 {
    1.0 / (FUSION + place as f64)
}

/// The files that needed and unwanted terms of a query leave, for an order that knows no words.
pub(crate) struct Allowed {
    unwanted: HashSet<FileId>,
    needed: Option<HashSet<FileId>>,
}

impl Allowed {
    pub fn of(terms: &[Term], found: &IndexMatches, by_words: &[RankedFile<'_>]) -> Self {
        let both = terms.iter().zip(&found.hits);
        let unwanted = both.filter(|(term, _)| term.role == Role::Unwanted).flat_map(|(_, hits)| hits);
        let unwanted = unwanted.filter_map(|hit| found.files.get(&hit.file));
        let unwanted = unwanted.map(|hit| hit.document.as_ref().unwrap_or(&hit.file).file_id).collect();
        let has_needed = terms.iter().any(|term| term.role == Role::Needed);
        let needed = has_needed.then(|| by_words.iter().map(|shown| shown.file.file_id).collect());
        Self { unwanted, needed }
    }

    pub fn has(&self, shown: &RankedFile<'_>) -> bool {
        let file = shown.file.file_id;
        !self.unwanted.contains(&file) && self.needed.as_ref().is_none_or(|needed| needed.contains(&file))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::{FilePath, Timestamp};
    use uuid::Uuid;

    fn file(id: u128) -> IndexedFile {
        IndexedFile {
            file_id: FileId(Uuid::from_u128(id)),
            path: FilePath::parse(&format!("/{id}")).unwrap(),
            v: 1,
            author: "a".into(),
            updated_at: Timestamp::default(),
            size: 1,
            derived_from: None,
            seal: None,
        }
    }

    fn of(file: &IndexedFile, passage: i64, meaning: Option<(f64, usize)>) -> RankedFile<'_> {
        let (kind, passages, with_words) = (HitKind::File, 1, usize::from(meaning.is_none()));
        let (text, name, total, terms) = (1.0, 0.0, 1.0, Vec::new());
        RankedFile { file, kind, passage: Some(passage), passages, with_words, text, name, meaning, total, terms }
    }

    #[test]
    fn a_file_in_both_orders_comes_before_the_first_of_each_and_shows_its_better_passage() {
        let files: Vec<IndexedFile> = (0..4).map(file).collect();
        let by_words = vec![of(&files[0], 1, None), of(&files[1], 2, None), of(&files[3], 3, None)];
        let near = |at: usize, place| of(&files[at], 10, Some((0.5, place)));
        let by_meaning = vec![near(2, 1), near(3, 2), near(1, 3)];
        let order = both(by_words, by_meaning);
        let seen: Vec<(&str, Option<i64>)> =
            order.iter().map(|shown| (shown.file.path.as_str(), shown.passage)).collect();
        assert_eq!(seen, [("/1", Some(2)), ("/3", Some(10)), ("/0", Some(1)), ("/2", Some(10))]);
        assert!((order[0].total - (1.0 / 62.0 + 1.0 / 63.0)).abs() < 1e-12);
    }
}
