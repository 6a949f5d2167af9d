//! Ranking of texts by a query: a port, and the ranking by words behind it.

use async_trait::async_trait;
use domain::{Error, WorkspaceId};
use std::collections::{BTreeMap, BTreeSet};

/// Says how near texts are to a query.
///
/// Guarantees: one score per text, in their order; a higher one is nearer; the same question gives the same scores.
#[async_trait]
pub trait Ranker: Send + Sync {
    /// The scores of `texts`, which are remembered in this workspace: what the ranking costs is noted there.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when the service behind it does not answer. The ranking by words has none.
    async fn rank(&self, workspace: WorkspaceId, query: &str, texts: &[&str]) -> Result<Vec<f64>, Error>;
}

/// Okapi BM25 over words: rare words that the query and a text have in common count most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bm25;

/// How soon a word that comes again counts no more, and how much the length of a text counts.
const K1: f64 = 1.2;
const B: f64 = 0.75;
/// The part of a text, and of a query, that is ranked, in bytes.
const LOOK_AT: usize = 32 * 1024;

#[async_trait]
impl Ranker for Bm25 {
    async fn rank(&self, _: WorkspaceId, query: &str, texts: &[&str]) -> Result<Vec<f64>, Error> {
        // In order, so that the sums below are the same to the last bit.
        let wanted: BTreeSet<String> = words(query).collect();
        let counted: Vec<(BTreeMap<&str, f64>, f64)> = texts.iter().map(|text| count(text, &wanted)).collect();
        let all = texts.len() as f64;
        let average = counted.iter().map(|(_, length)| length).sum::<f64>() / all.max(1.0);
        let rarity: BTreeMap<&str, f64> = wanted
            .iter()
            .map(|word| {
                let with = counted.iter().filter(|(counts, _)| counts.contains_key(word.as_str())).count() as f64;
                (word.as_str(), (1.0 + (all - with + 0.5) / (with + 0.5)).ln())
            })
            .collect();
        let score = |(counts, length): &(BTreeMap<&str, f64>, f64)| {
            let weigh = |(word, count): (&&str, &f64)| {
                let longer = 1.0 - B + B * length / average.max(1.0);
                rarity.get(word).unwrap_or(&0.0) * count * (K1 + 1.0) / (count + K1 * longer)
            };
            counts.iter().map(weigh).sum()
        };
        Ok(counted.iter().map(score).collect())
    }
}

/// How often each wanted word is in a text, and the length of the text in words.
fn count<'a>(text: &str, wanted: &'a BTreeSet<String>) -> (BTreeMap<&'a str, f64>, f64) {
    let (mut counts, mut length) = (BTreeMap::new(), 0.0);
    for word in words(text) {
        length += 1.0;
        if let Some(word) = wanted.get(&word) {
            *counts.entry(word.as_str()).or_insert(0.0) += 1.0;
        }
    }
    (counts, length)
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let end = text.floor_char_boundary(LOOK_AT.min(text.len()));
    let text = text.get(..end).unwrap_or_default();
    text.split(|each: char| !each.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn s4_rare_words_count_most_and_long_texts_win_nothing_by_their_length() {
        let at = WorkspaceId::from_key("tests", "ranked");
        let long = format!("the router {}", "and the rest of it ".repeat(50));
        let texts = ["the cat and the dog", "the router routes", &long, "", "ÄPFEL und Birnen"];
        let scores = Bm25.rank(at, "the Router", &texts).await.unwrap();
        assert!(scores[1] > scores[2] && scores[2] > scores[0] && scores[0] > scores[3], "{scores:?}");
        assert_eq!(scores[3], 0.0);
        assert!(Bm25.rank(at, "äpfel", &texts).await.unwrap()[4] > 0.0);
        assert_eq!(Bm25.rank(at, "", &texts).await.unwrap(), [0.0; 5]);
        assert_eq!(Bm25.rank(at, "x", &[]).await.unwrap(), [0.0; 0]);
    }
}
