//! How results of searches look.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// The kind of a result.
#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// A file.
    File,
    /// A document under `/data`, by its Markdown.
    Document,
    /// A conversation.
    Chat,
}

/// The files that match.
#[derive(Serialize, ToSchema)]
pub struct SearchAnswer {
    /// The way that was searched: `text`, `regex`, `semantic` or `hybrid`. A `hybrid` search without an embedding model, or with one that fails, is
    /// `text`.
    pub mode: String,
    /// The best ones, best first.
    pub results: Vec<SearchResult>,
    /// How many files match; in a `semantic` search, how many have one of the nearest passages.
    pub total: u64,
    /// Whether everything that was committed was searched. When it is false, the index is being made, or the search was cut: a later or a narrower
    /// search finds more.
    pub complete: bool,
    /// How many passages of the files that were searched have no vector yet, in the modes `semantic` and `hybrid`: they are not found by their meaning,
    /// and a later search finds them.
    pub pending: u64,
    /// The reason if a `hybrid` search was one by words: no embedding model is configured, or it failed.
    pub note: Option<String>,
    /// The tokens for the query, of the modes `semantic` and `hybrid`.
    pub usage: Option<super::Usage>,
}

/// A file that matches.
#[derive(Serialize, ToSchema)]
pub struct SearchResult {
    /// Its path.
    pub path: String,
    /// Its identity.
    pub file_id: Uuid,
    /// Its version; 0 for a conversation.
    pub v: u64,
    /// Its kind.
    pub kind: SearchKind,
    /// The principal that wrote the version.
    pub author: String,
    /// When it was written.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// The lines of the snippet, of a document those of its Markdown; none when only the name matches.
    pub lines: Option<SearchLines>,
    /// The headings above the snippet, or the items of code around it, from the outermost: `Parser > next`.
    pub heading: Option<String>,
    /// The place that matches best, in parts that follow each other.
    pub snippet: Vec<SnippetPart>,
    /// How many passages of the file match; of a regular expression how many lines.
    pub passages: u64,
    /// The parts of its score.
    pub score: SearchScore,
    /// Why it was found, for people.
    pub why: String,
}

/// Lines, from 1.
#[derive(Serialize, ToSchema)]
pub struct SearchLines {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

/// A part of a snippet.
#[derive(Serialize, ToSchema)]
pub struct SnippetPart {
    /// The text.
    pub text: String,
    /// Whether it is a word that matches.
    pub mark: bool,
}

/// The parts of a score. Statistics are those of files that the caller may read, so scores of two callers cannot be compared.
#[derive(Serialize, ToSchema)]
pub struct SearchScore {
    /// By words the sum of `text` and `name`, by meaning `meaning`; in a `hybrid` search the sum of 1 / (60 + place) over the orders by words and by
    /// meaning; 0 for a regular expression.
    pub total: f64,
    /// BM25 of the best passage.
    pub text: f64,
    /// BM25 of the name, which counts half.
    pub name: f64,
    /// The cosine of the angle between the vectors of the query and of the nearest passage, up to 1.
    pub meaning: Option<f64>,
}
