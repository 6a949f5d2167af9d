//! Documents as Markdown: a pure function from a name and bytes to text, or to the reason for which there is none (spec 001 §2 B).
//!
//! The kind of a document is found by its content; the name counts only where a content has no mark of its own, such as for CSV. Each format has a
//! library made for it and a module here, which writes its parts as Markdown and keeps to the [`Budget`].
//!
//! It is not safe to call on its own. Parsers of strange files panic, overflow the stack, and take memory without asking; a budget bounds only the part
//! that is seen from here. So a process of its own calls [`convert`] (`sandbox::ChildConverter`), which has limits from outside.

mod books;
mod bounded_zip;
mod budget;
mod html;
mod kind;
mod mail;
mod markdown;
mod media;
mod notebook;
mod pdf;
mod sheets;
mod slides;
mod tables;
mod text;
mod word;
mod xml;

pub use budget::Budget;
pub use kind::DocumentKind;
pub use ports::{Attachment, Converted, NotConverted};

use budget::Limits;
use markdown::FACT;
use ports::shortened;
use serde_json::Value;

/// Converts a document of any kind.
///
/// # Errors
/// [`NotConverted::Skipped`] for a text, which needs no conversion, and for kinds that have no text; [`NotConverted::Failed`] for a document that is
/// damaged, encrypted, or over the budget.
pub fn convert(name: &str, content: &[u8], budget: Budget) -> Result<Converted, NotConverted> {
    let limits = &Limits::new(budget);
    let kind = DocumentKind::of(name, content);
    let converted = match kind {
        DocumentKind::Pdf => pdf::convert(content, limits),
        DocumentKind::Docx => word::convert(content, limits),
        DocumentKind::Pptx => slides::convert(content, limits),
        DocumentKind::Spreadsheet => sheets::convert(content, limits),
        DocumentKind::Epub => books::convert(content, limits),
        DocumentKind::Html => html::convert(content, limits),
        DocumentKind::Email => mail::convert(content, limits),
        DocumentKind::Notebook => notebook::convert(content, limits),
        DocumentKind::Csv => tables::convert(name, content, limits),
        DocumentKind::Image => media::image(content),
        DocumentKind::Audio => media::sound(kind, content),
        DocumentKind::Video => media::film(content),
        DocumentKind::Text => text::convert(content, limits),
        DocumentKind::Encrypted => Err(failed("encrypted", "it is protected by a password")),
        DocumentKind::Unknown => Err(skipped("unknown_kind", "no converter knows this kind of file")),
    }?;
    if converted.markdown.trim().is_empty() && converted.facts.is_empty() {
        return Err(skipped("no_text", "there is no text in it"));
    }
    limits.fits(converted.markdown.len())?;
    Ok(Converted { kind: kind.as_str().into(), ..converted })
}

fn failed(reason: &str, message: impl Into<String>) -> NotConverted {
    NotConverted::Failed { reason: reason.into(), message: message.into() }
}

fn skipped(reason: &str, message: impl Into<String>) -> NotConverted {
    NotConverted::Skipped { reason: reason.into(), message: message.into() }
}

/// A document that does not keep to its format. The words of a parser often quote the content, so they are left out.
fn damaged(what: &str) -> NotConverted {
    failed("damaged", format!("it is damaged: {what}"))
}

/// A document with these facts, as far as they have a value. A document controls the length of its texts, so long ones are cut.
fn converted<const N: usize>(markdown: String, facts: [(&str, Value); N]) -> Converted {
    let has_value = |(_, value): &(&str, Value)| !value.is_null() && *value != "";
    let bounded = |value: Value| match value {
        Value::String(text) => shortened(&text, FACT).into(),
        other => other,
    };
    let facts = facts.into_iter().filter(has_value).map(|(name, value)| (name.to_owned(), bounded(value))).collect();
    Converted { facts, markdown, ..Converted::default() }
}
