//! The converter of documents: bytes in, Markdown out, in a place where a hostile file hurts nobody.

use async_trait::async_trait;
use bytes::Bytes;

/// A document as Markdown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Converted {
    /// The kind of document, such as `pdf`.
    pub kind: String,
    /// Facts about it in order, such as its number of pages: names and JSON values.
    pub facts: Vec<(String, serde_json::Value)>,
    /// The Markdown.
    pub markdown: String,
}

/// Why there is no Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotConverted {
    /// There is nothing to convert, such as in a text.
    Skipped {
        /// A stable name for it.
        reason: String,
        /// The explanation, for people.
        message: String,
    },
    /// The document cannot be converted; a repetition would fail alike.
    Failed {
        /// A stable name for it, such as `encrypted`, `timeout` or `crashed`.
        reason: String,
        /// The explanation, for people.
        message: String,
    },
    /// The converter could not be started; a repetition may succeed.
    Unavailable(String),
}

/// Converts documents.
///
/// Guarantees: a document that makes a parser crash, loop or take all memory ends as [`NotConverted::Failed`] within a bounded time, and touches
/// nothing but its own conversion. A dropped call ends what it started.
#[async_trait]
pub trait Converter: Send + Sync {
    /// Converts a content. Its kind is found by the content, and by `name` where that tells nothing.
    ///
    /// # Errors
    /// [`NotConverted`].
    async fn convert(&self, name: &str, content: Bytes) -> Result<Converted, NotConverted>;
}
