//! The front matter of Markdown that is derived from a document.

use domain::{FileId, FilePath, Sha256, text::shortened};
use frontmatter::json as yaml;
use ports::Converted;
use serde_json::{Value, json};
use workspace::Info;

/// The key behind those of the source.
const KIND: &str = "\nkind: ";
/// The longest text of a fact, in characters. Documents choose their titles, and readers take no front matter above [`frontmatter::MAX`].
const LONGEST_FACT: usize = 1_000;

/// The version that Markdown is derived from.
pub(crate) struct Source {
    path: FilePath,
    file_id: FileId,
    v: u64,
    sha256: Option<Sha256>,
}

impl Source {
    pub fn of(info: &Info) -> Self {
        Self { path: info.path.clone(), file_id: info.file_id, v: info.v, sha256: info.sha256 }
    }

    /// In YAML, of which JSON's texts and numbers are a part.
    fn head(&self) -> String {
        let Self { path, file_id, v, sha256 } = self;
        format!(
            "---\nderived_from:\n  path: {}\n  file_id: {file_id}\n  version: {v}\n  sha256: {}",
            yaml(&json!(path)),
            yaml(&json!(sha256))
        )
    }
}

/// The whole text.
pub(crate) fn render(source: &Source, converted: &Converted) -> String {
    let mut text = source.head();
    text.push_str(KIND);
    text.push_str(&converted.kind);
    for (name, value) in &converted.facts {
        let value = match value {
            Value::String(words) => Value::String(shortened(words, LONGEST_FACT)),
            other => other.clone(),
        };
        text.push_str(&format!("\n{name}: {}", yaml(&value)));
    }
    text.push_str("\n---\n\n");
    text.push_str(converted.markdown.trim_end());
    text.push('\n');
    text
}

/// The same text, derived from another source with the same content; none for a text that was not rendered here.
pub(crate) fn with_source(source: &Source, text: &str) -> Option<String> {
    let rest = text.strip_prefix("---\nderived_from:\n")?;
    let at = rest.find(KIND)?;
    Some(format!("{}{}", source.head(), rest.get(at..)?))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn source(path: &str, v: u64) -> Source {
        let file_id = FileId(Default::default());
        Source { path: FilePath::parse(path).unwrap(), file_id, v, sha256: Some(Sha256::of(b"x")) }
    }

    #[test]
    fn the_text_says_what_it_is_derived_from() {
        let facts = vec![("pages".into(), json!(2)), ("title".into(), json!("A: \"b\""))];
        let converted = Converted { kind: "pdf".into(), facts, markdown: "# A\n\n".into(), ..Converted::default() };
        let text = render(&source("/data/a.pdf", 3), &converted);
        let expected = "---\nderived_from:\n  path: \"/data/a.pdf\"\n  file_id: 00000000-0000-0000-0000-000000000000\n  version: 3\n  \
            sha256: \"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\"\nkind: pdf\npages: 2\ntitle: \"A: \\\"b\\\"\"\n---\n\n# A\n";
        assert_eq!(text, expected);
        let other = with_source(&source("/data/b.pdf", 1), &text).unwrap();
        assert_eq!(other, render(&source("/data/b.pdf", 1), &converted));
    }

    #[test]
    fn the_front_matter_can_be_read_whatever_title_a_document_has() {
        for title in
            ["x".repeat(100_000), "\u{1}".repeat(100_000), "caf\u{e9} \u{85}\u{92}\u{7f}\u{feff}\u{ffff}".to_owned()]
        {
            let facts = vec![("title".into(), json!(title)), ("author".into(), json!(title))];
            let converted = Converted { kind: "pdf".into(), facts, markdown: "# A".into(), ..Converted::default() };
            let text = render(&source("/data/a.pdf", 1), &converted);
            let parts = frontmatter::read(&text);
            assert_eq!((parts.fault, parts.body), (None, "\n# A\n"));
            assert_eq!(parts.keys["title"], json!(shortened(&title, LONGEST_FACT)));
        }
    }

    #[test]
    fn a_text_of_somebody_else_has_no_source() {
        assert_eq!(with_source(&source("/data/a.pdf", 1), "# A\n"), None);
    }
}
