//! The converter of documents: bytes in, Markdown out, in a place where a hostile file hurts nobody.

use async_trait::async_trait;
use bytes::Bytes;

/// The most attachments that a message gives.
pub const MAX_ATTACHMENTS: usize = 100;
/// The most bytes that the attachments of one message have together.
pub const MAX_ATTACHED: usize = 32 * 1024 * 1024;

/// The longest name of an attachment that is handed on, in bytes, before an end for its type. With a number and the ends of derived files it fits into
/// 255.
pub const MAX_ATTACHMENT_NAME: usize = 200;
/// The longest end of a name that stays when the name is cut, in bytes.
const ENDING: usize = 16;

/// The stem and the end of the name of an attachment, such as `report` and `.pdf`; the stem is cut so that both have at most [`MAX_ATTACHMENT_NAME`]
/// bytes. A name that begins with its only dot, and one with a long end, is all stem.
pub fn cut_name(name: &str) -> (&str, &str) {
    let (stem, ending) = match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= ENDING => name.split_at(at),
        _ => (name, ""),
    };
    let end = stem.floor_char_boundary(MAX_ATTACHMENT_NAME - ending.len());
    (stem.get(..end).unwrap_or_default(), ending)
}

/// The reason for which a text is skipped: for programs, and for people.
pub const IS_TEXT: (&str, &str) = ("text", "it is text already, and is read as it is");

/// The extensions of Markdown.
const MARKDOWN: [&str; 2] = ["md", "markdown"];
/// The extensions of other texts that agents and people write.
const TEXTS: [&str; 41] = [
    "bash", "c", "cfg", "conf", "cpp", "cs", "css", "diff", "go", "graphql", "h", "hpp", "ini", "java", "js", "json",
    "jsonl", "jsx", "kt", "log", "lua", "mjs", "ndjson", "patch", "php", "proto", "py", "r", "rb", "rs", "rst", "scss",
    "sh", "sql", "swift", "toml", "ts", "tsx", "txt", "yaml", "yml",
];
/// The header fields that an e-mail may begin with.
const FIELDS: [&str; 5] = ["received:", "return-path:", "delivered-to:", "mime-version:", "message-id:"];

/// Whether a content under this name is a text that needs no conversion: its name has the extension of a text, and it is UTF-8 without a byte order mark and
/// without control characters. HTML is none, under any name. An e-mail, a notebook or a PDF is none, unless its name is one of Markdown.
pub fn is_plain_text(name: &str, content: &[u8]) -> bool {
    let Some((_, ending)) = name.rsplit_once('.') else { return false };
    let ending = ending.to_ascii_lowercase();
    let is_markdown = MARKDOWN.contains(&ending.as_str());
    let is_strange = |byte: &u8| matches!(byte, 0..=8 | 14..=31);
    if !(is_markdown || TEXTS.contains(&ending.as_str())) || content.iter().any(is_strange) {
        return false;
    }
    let Ok(text) = std::str::from_utf8(content) else { return false };
    let text = text.trim_start();
    !text.starts_with(['<', '\u{feff}']) && (is_markdown || !has_document(text))
}

/// Whether a text is an e-mail or a notebook, or may have a PDF in it.
fn has_document(text: &str) -> bool {
    let is_message = |field: &&str| text.get(..field.len()).is_some_and(|start| start.eq_ignore_ascii_case(field));
    FIELDS.iter().any(is_message) || text.starts_with('{') && text.contains("\"nbformat\"") || text.contains("%PDF-")
}

/// A document as Markdown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Converted {
    /// The kind of document, such as `pdf`.
    pub kind: String,
    /// Facts about it in order, such as its number of pages: names and JSON values.
    pub facts: Vec<(String, serde_json::Value)>,
    /// The Markdown.
    pub markdown: String,
    /// The attachments of a message, at most [`MAX_ATTACHMENTS`] with [`MAX_ATTACHED`] bytes together.
    pub attachments: Vec<Attachment>,
}

/// A file that came with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Its name as the message has it, or one that was made up. It may be that of another attachment, and no name that a file can have.
    pub name: String,
    /// Its content, as it was before it was encoded for the message.
    pub content: Vec<u8>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_needs_no_other_form_is_utf_8_under_its_name() {
        for (name, content, is) in [
            ("a.md", "# Grüße", true),
            ("A.MARKDOWN", "", true),
            ("a.md", "{\"a\": 1}", true),
            ("a.md", "Message-ID: one\nTo: two", true),
            ("a.txt", "# Text", true),
            ("a.JSON", "{\"a\": 1}", true),
            ("a.py", "print()", true),
            ("a.YML", "a: 1", true),
            ("a.json", "{\"nbformat\": 4}", false),
            ("a.txt", "message-id: one\nTo: two", false),
            ("a.txt", "junk\n%PDF-1.7", false),
            ("a.csv", "a,b", false),
            ("a.html", "text", false),
            ("a.unknown", "text", false),
            ("md", "# Text", false),
            ("a.md", " <html>", false),
            ("a.md", "\u{feff}# Marked", false),
            ("a.md", "a\0b", false),
            ("a.md", "ISO-2022-JP: \u{1b}$B", false),
        ] {
            assert_eq!(is_plain_text(name, content.as_bytes()), is, "{name}: {content:?}");
        }
        assert!(!is_plain_text("a.md", b"Gr\xfc\xdfe"));
    }

    #[test]
    fn a_long_name_is_cut_before_its_end() {
        let (long, wide, strange) = ("a".repeat(300), "ü".repeat(150), format!("a.{}", "b".repeat(20)));
        let cases = [
            ("report.pdf".to_owned(), "report", ".pdf"),
            ("README".to_owned(), "README", ""),
            (".profile".to_owned(), ".profile", ""),
            (format!("{long}.pdf"), &long[..196], ".pdf"),
            (long.clone(), &long[..200], ""),
            // A character of two bytes is not cut in half.
            (format!("{wide}.xml1"), &wide[..194], ".xml1"),
            (strange.clone(), &strange[..], ""),
        ];
        for (name, stem, ending) in cases {
            assert_eq!(cut_name(&name), (stem, ending), "{name}");
        }
    }
}
