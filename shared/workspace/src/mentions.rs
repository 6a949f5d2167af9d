//! Links in the text of Markdown files: `[text](path)` and `[[name]]`, and the paths that they may mean. No I/O.
//!
//! A Markdown link names one path: relative to the folder of its file, or from the root with a leading `/`. A wiki link names a file with or without
//! its ending `.md`. It is looked for in the folder of its file, then in each folder above it: the nearest one counts, and in one folder the exact
//! name goes before the one with the ending. Links in code, links with a scheme (`https:`) and links to a place in the same file are none.

mod tags;

use crate::{FileContent, blocking};
use domain::{FilePath, text::percent_decoded};
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};
use serde::{Deserialize, Serialize};

pub use tags::check_tag;

/// The most links of a version that are taken up.
pub(crate) const MOST: usize = 100;
/// The longest target of a link, in bytes; a longer one is no link.
pub(crate) const LONGEST_TARGET: usize = 512;
/// The longest name of a target, in bytes, as of any name.
const LONGEST_NAME: usize = 255;
/// The longest text that is looked through, in bytes.
const LONGEST_TEXT: usize = 256 * 1024;

/// The forms of links in texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// `[text](path)`, `![text](path)`, and references.
    Markdown,
    /// `[[name]]`.
    Wiki,
}

impl Form {
    /// The kind of such a link, among the kinds of explicit links.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Wiki => "wiki",
        }
    }
}

/// A link as a text has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Written {
    pub form: Form,
    /// The path or name, without a fragment; decoded.
    pub target: String,
}

impl Written {
    /// The last name of the target; none when it ends in a step up.
    pub fn name(&self) -> Option<&str> {
        let name = self.target.rsplit('/').find(|name| !name.is_empty() && *name != ".")?;
        (name != ".." && name.len() <= LONGEST_NAME).then_some(name)
    }

    /// The paths that it may mean in a file of `folder`, the first that is there counts.
    pub fn candidates(&self, folder: &FilePath) -> Vec<FilePath> {
        match self.form {
            Form::Markdown => resolve(folder, &self.target).into_iter().collect(),
            Form::Wiki => {
                let (mut found, mut at) = (Vec::new(), Some(folder.clone()));
                while let Some(base) = at {
                    at = if self.target.starts_with('/') { None } else { base.parent() };
                    let named = [self.target.clone(), format!("{}.md", self.target)];
                    found.extend(named.iter().filter_map(|target| resolve(&base, target)));
                }
                found
            }
        }
    }
}

/// The links and tags in a text.
#[derive(Debug, Default)]
pub(crate) struct InText {
    pub links: Vec<Written>,
    /// Those of its front matter; none for a text without front matter.
    pub tags: Option<Vec<String>>,
}

/// The links and tags in the content of a file; none but for Markdown. A text that is not UTF-8 or over 256 KiB has none.
pub(crate) async fn written_in(path: &FilePath, content: &FileContent) -> InText {
    let FileContent::Bytes(content) = content else { return InText::default() };
    if !is_markdown(path) || content.len() > LONGEST_TEXT {
        return InText::default();
    }
    let Ok(text) = std::str::from_utf8(content) else { return InText::default() };
    let tags = tags::of(text);
    let may_link = ["](", "[[", "]:"].iter().any(|mark| text.contains(mark));
    if !may_link {
        return InText { links: Vec::new(), tags };
    }
    let content = content.clone();
    let parsed = blocking::run(move || std::str::from_utf8(&content).map(parse).unwrap_or_default()).await;
    let links = parsed.unwrap_or_else(|error| {
        // The text is the author's, whatever a parser makes of it: the write goes on.
        tracing::error!(%path, %error, "the links of a text were not taken up");
        Vec::new()
    });
    InText { links, tags }
}

/// Whether a file of this length at this path has a text whose links and tags are taken up.
pub(crate) fn may_mention(path: &FilePath, size: u64) -> bool {
    is_markdown(path) && size <= LONGEST_TEXT as u64
}

fn is_markdown(path: &FilePath) -> bool {
    let ending = path.name().rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    matches!(ending.as_deref(), Some("md" | "markdown"))
}

/// The paths that the links of a Markdown text may mean, in a file of `folder`: at most 100 links, each with the names up to the root.
pub fn linked_paths(folder: &FilePath, text: &str) -> Vec<FilePath> {
    parse(text).iter().flat_map(|written| written.candidates(folder)).collect()
}

/// The links of a text in their order, each once, at most [`MOST`].
pub(crate) fn parse(text: &str) -> Vec<Written> {
    let options = Options::ENABLE_WIKILINKS
        | Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut found: Vec<Written> = Vec::new();
    for event in Parser::new_ext(text, options) {
        let Event::Start(Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. }) = event else {
            continue;
        };
        let written = match link_type {
            LinkType::WikiLink { .. } => wiki(&dest_url),
            LinkType::Email | LinkType::Autolink => None,
            _ => markdown(&dest_url),
        };
        let written = written.filter(|written| written.target.len() <= LONGEST_TARGET && !found.contains(written));
        found.extend(written);
        if found.len() >= MOST {
            break;
        }
    }
    found
}

fn wiki(target: &str) -> Option<Written> {
    let target = target.split('#').next().unwrap_or_default().trim();
    let is_name = !target.is_empty() && !target.contains("://");
    is_name.then(|| Written { form: Form::Wiki, target: target.into() })
}

fn markdown(url: &str) -> Option<Written> {
    if url.starts_with("//") || has_scheme(url) {
        return None;
    }
    let path = url.split(['#', '?']).next().unwrap_or_default();
    let target = decoded(path);
    (!target.trim().is_empty()).then_some(Written { form: Form::Markdown, target })
}

/// Whether it begins with a scheme as of RFC 3986 §3.1.
fn has_scheme(url: &str) -> bool {
    let Some((scheme, _)) = url.split_once(':') else { return false };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '+' | '-' | '.'))
}

/// The text with its percent-encoded bytes decoded; as it is where that is no UTF-8.
fn decoded(text: &str) -> String {
    String::from_utf8(percent_decoded(text)).unwrap_or_else(|_| text.into())
}

/// The path of a target that is relative to a folder, or from the root; none when it leads out of the workspace, or is none.
fn resolve(folder: &FilePath, target: &str) -> Option<FilePath> {
    let mut names: Vec<&str> = if target.starts_with('/') { Vec::new() } else { folder.names().collect() };
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    FilePath::parse(&format!("/{}", names.join("/"))).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use proptest::prelude::*;

    fn targets(text: &str) -> Vec<(Form, String)> {
        parse(text).into_iter().map(|written| (written.form, written.target)).collect()
    }

    fn candidates(form: Form, folder: &str, target: &str) -> Vec<String> {
        let written = Written { form, target: target.into() };
        let paths = written.candidates(&FilePath::parse(folder).unwrap());
        paths.into_iter().map(|path| path.to_string()).collect()
    }

    #[test]
    fn both_forms_are_found_once_each_and_in_order() {
        let text = "---\nsee: \"[x](front.md)\"\n---\n# A [[plan|the plan]] and [b](b%20c.md#part \"title\").\n\
            ![picture](../a.png) [again](<b c.md>) [ref] [[plan#later]]\n\n[ref]: /system/x.md?raw=1\n\n| [[cell]] |\n|---|\n";
        let found = targets(text);
        let wiki = |target: &str| (Form::Wiki, target.to_owned());
        let markdown = |target: &str| (Form::Markdown, target.to_owned());
        assert_eq!(
            found,
            [wiki("plan"), markdown("b c.md"), markdown("../a.png"), markdown("/system/x.md"), wiki("cell")]
        );
    }

    #[test]
    fn code_other_places_and_this_file_are_no_links() {
        let text = "`[a](a.md)` [b](https://example.org/b.md) [c](mailto:c@example.org) <https://d> [e](#e) [f](//host/f)\n\n\
            ```\n[[g]] [h](h.md)\n```\n\n    [[i]]\n\n[j](?q) [[https://k]] [[#l]] [m]()\n";
        assert_eq!(targets(text), []);
    }

    #[test]
    fn a_markdown_link_is_relative_to_its_folder() {
        assert_eq!(candidates(Form::Markdown, "/a/b", "c.md"), ["/a/b/c.md"]);
        assert_eq!(candidates(Form::Markdown, "/a/b", "../c.md"), ["/a/c.md"]);
        assert_eq!(candidates(Form::Markdown, "/a/b", "/c.md"), ["/c.md"]);
        assert_eq!(candidates(Form::Markdown, "/a", "../../c.md"), [""; 0]);
    }

    #[test]
    fn a_wiki_link_means_the_nearest_name_and_the_exact_one_first() {
        assert_eq!(candidates(Form::Wiki, "/a", "n"), ["/a/n", "/a/n.md", "/n", "/n.md"]);
        assert_eq!(candidates(Form::Wiki, "/a", "/b/n"), ["/b/n", "/b/n.md"]);
    }

    #[test]
    fn the_name_of_a_target_is_its_last() {
        let name = |target: &str| Written { form: Form::Markdown, target: target.into() }.name().map(str::to_owned);
        assert_eq!(name("../a/b.md").as_deref(), Some("b.md"));
        assert_eq!(name("a/./").as_deref(), Some("a"));
        assert_eq!((name("../.."), name("/")), (None, None));
    }

    #[test]
    fn a_text_of_many_links_has_a_bound() {
        let text: String = (0..10_000).map(|n| format!("[[{n}]] [x]({}) ", "y".repeat(n % 700))).collect();
        let found = parse(&text);
        assert_eq!(found.len(), MOST);
        assert!(found.iter().all(|written| written.target.len() <= LONGEST_TARGET));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_within_the_bounds(text in r"(\PC|[\[\]()#%/.`!<>:|\n -]|\[\[|\]\(|%2e){0,300}", folder in "(/[a-z.]{1,8}){0,5}") {
            let folder = FilePath::parse(if folder.is_empty() { "/" } else { &folder }).unwrap_or_else(|_| FilePath::root());
            let found = parse(&text);
            prop_assert!(found.len() <= MOST);
            for written in found {
                prop_assert!(!written.target.is_empty() && written.target.len() <= LONGEST_TARGET);
                prop_assert!(written.name().is_none_or(|name| !name.contains('/') && name.len() <= LONGEST_NAME));
                let paths = written.candidates(&folder);
                prop_assert!(paths.len() <= 2 * (folder.names().count() + 1));
            }
        }
    }
}
