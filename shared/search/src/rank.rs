//! Ranking: BM25 over the passages that the caller may read. No count of anything else comes in, so no score tells of it.

use crate::query::{Role, Term};
use domain::FileId;
use ports::{IndexHit, IndexMatches, IndexTerm};
use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
};

/// The constants of BM25, as they are usually chosen: how soon repetitions stop to count, and how much long passages are held back.
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// How much a word in the name of a file counts, beside one in its text.
const NAME: f64 = 0.5;

/// The rank of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranked {
    /// The key of [`IndexMatches::files`].
    pub file: i64,
    /// The best passage; none when only the name matches.
    pub passage: Option<i64>,
    /// How many passages match.
    pub passages: usize,
    /// The part of the best passage.
    pub text: f64,
    /// The part of the name.
    pub name: f64,
    /// The positions of the terms that match, in order.
    pub terms: Vec<usize>,
}

impl Ranked {
    pub fn total(&self) -> f64 {
        self.text + self.name
    }
}

#[derive(Default)]
struct Candidate {
    name: f64,
    /// The score of each passage.
    passages: HashMap<i64, f64>,
    terms: HashSet<usize>,
}

/// The files that match, best first; equals by path.
pub(crate) fn rank(terms: &[Term], found: &IndexMatches) -> Vec<Ranked> {
    let mut files: HashMap<i64, Candidate> = HashMap::new();
    // A document and its Markdown are one result.
    let shown = |file: i64| found.files.get(&file).map(|hit| hit.document.as_ref().unwrap_or(&hit.file).file_id);
    let mut unwanted: HashSet<FileId> = HashSet::new();
    for (position, (term, hits)) in terms.iter().zip(&found.hits).enumerate() {
        if term.role == Role::Unwanted {
            unwanted.extend(hits.iter().filter_map(|hit| shown(hit.file)));
            continue;
        }
        let weight = |is_name: bool| {
            let with = hits.iter().filter(|hit| hit.is_name == is_name).count() as f64;
            let all = if is_name { found.names } else { found.passages } as f64;
            rarity(all, with)
        };
        let (of_names, of_texts) = (weight(true), weight(false));
        for hit in hits {
            let candidate = files.entry(hit.file).or_default();
            candidate.terms.insert(position);
            if hit.is_name {
                candidate.name += NAME * of_names * weight_in(hit, average(found.name_words, found.names));
            } else {
                let score = of_texts * weight_in(hit, average(found.words, found.passages));
                *candidate.passages.entry(hit.passage).or_default() += score;
            }
        }
    }
    let needed: Vec<usize> = positions(terms, Role::Needed);
    let mut ranked: Vec<Ranked> = files
        .into_iter()
        .filter(|(file, _)| shown(*file).is_none_or(|file| !unwanted.contains(&file)))
        .filter(|(_, found)| needed.iter().all(|term| found.terms.contains(term)))
        .map(|(file, found)| {
            let best = found.passages.iter().max_by(|one, other| by_score(*one.1, *other.1).then(other.0.cmp(one.0)));
            let (passage, text) = best.map_or((None, 0.0), |(passage, score)| (Some(*passage), *score));
            let mut terms: Vec<usize> = found.terms.iter().copied().collect();
            terms.sort_unstable();
            Ranked { file, passage, passages: found.passages.len(), text, name: found.name, terms }
        })
        .collect();
    let path = |ranked: &Ranked| found.files.get(&ranked.file).map(|hit| hit.file.path.as_str());
    ranked.sort_by(|one, other| by_score(other.total(), one.total()).then_with(|| path(one).cmp(&path(other))));
    ranked
}

fn positions(terms: &[Term], role: Role) -> Vec<usize> {
    terms.iter().enumerate().filter(|(_, term)| term.role == role).map(|(position, _)| position).collect()
}

fn by_score(one: f64, other: f64) -> Ordering {
    one.total_cmp(&other)
}

fn average(words: u64, of: u64) -> f64 {
    words as f64 / (of as f64).max(1.0)
}

/// The inverse document frequency, which is never below zero.
fn rarity(all: f64, with: f64) -> f64 {
    (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln()
}

fn weight_in(hit: &IndexHit, average: f64) -> f64 {
    let (times, words) = (hit.times as f64, hit.words as f64);
    times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * words / average.max(1.0)))
}

/// Whether a word of a text is one of a term.
pub(crate) fn is_of(term: &IndexTerm, stem: &str, plain: &str) -> bool {
    match term {
        IndexTerm::Word(word) => word == stem,
        IndexTerm::Prefix(word, beginning) => word == stem || plain.starts_with(beginning.as_str()),
        IndexTerm::Phrase(words) => words.iter().any(|word| word == stem),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::query::parse;
    use ports::{IndexedFile, IndexedHit};
    use std::sync::Arc;

    fn hit(file: i64, times: u64, words: u64) -> IndexHit {
        IndexHit { passage: file * 10, file, is_name: false, times, words }
    }

    fn matches(hits: Vec<Vec<IndexHit>>) -> IndexMatches {
        let file = |id: i64| IndexedFile {
            file_id: FileId(uuid::Uuid::from_u128(u128::try_from(id).unwrap())),
            path: domain::FilePath::parse(&format!("/{id}")).unwrap(),
            v: 1,
            author: "a".into(),
            updated_at: domain::Timestamp::default(),
            size: 1,
            derived_from: None,
            seal: None,
        };
        let files = (1..9).map(|id| (id, Arc::new(IndexedHit { file: file(id), document: None }))).collect();
        IndexMatches { passages: 100, words: 10_000, names: 100, name_words: 300, hits, files, cut: false }
    }

    fn order(query: &str, hits: Vec<Vec<IndexHit>>) -> Vec<i64> {
        rank(&parse(query).unwrap(), &matches(hits)).iter().map(|ranked| ranked.file).collect()
    }

    #[test]
    fn more_terms_rarer_terms_and_shorter_passages_come_first() {
        let (rare, common) = (vec![hit(1, 1, 100)], (1..9).map(|id| hit(id, 1, 100)).collect::<Vec<_>>());
        assert_eq!(order("rare common", vec![rare, common])[0], 1);
        assert_eq!(order("a", vec![vec![hit(1, 1, 400), hit(2, 1, 20), hit(3, 1, 100)]]), [2, 3, 1]);
        assert_eq!(order("a", vec![vec![hit(1, 1, 100), hit(2, 5, 100)]]), [2, 1]);
        assert_eq!(
            order("a", vec![vec![hit(3, 1, 100), hit(2, 1, 100)]]),
            [2, 3],
            "equals are in the order of their paths"
        );
    }

    #[test]
    fn needed_terms_have_to_match_and_unwanted_ones_must_not() {
        let hits = || {
            vec![vec![hit(1, 1, 9), hit(2, 1, 9), hit(3, 1, 9)], vec![hit(1, 1, 9), hit(2, 1, 9)], vec![hit(2, 1, 9)]]
        };
        assert_eq!(order("a +b -c", hits()), [1]);
        assert_eq!(order("a b -c", hits()), [1, 3]);
    }

    #[test]
    fn a_name_that_matches_adds_to_the_score() {
        let name = IndexHit { is_name: true, passage: 1, words: 3, ..hit(2, 1, 3) };
        let ranked = rank(&parse("a").unwrap(), &matches(vec![vec![hit(1, 1, 100), hit(2, 1, 100), name]]));
        assert_eq!(
            ranked.iter().map(|ranked| (ranked.file, ranked.passage)).collect::<Vec<_>>(),
            [(2, Some(20)), (1, Some(10))]
        );
        assert!(ranked[0].name > 0.0 && ranked[1].name == 0.0);
    }
}
