//! The tags in the front matter of a Markdown file: `tags: [a, b]`, `tags: a, b`, or a list with a dash per line.
//!
//! This is no parser of YAML: it reads this one key in the forms that people write, and leaves out what is no tag.

use crate::Result;
use domain::Error;

/// The most tags of a text that are taken up.
const MOST: usize = 64;
/// The longest front matter that is looked through, in bytes.
const LONGEST: usize = 64 * 1024;

/// The longest tag, in characters.
const MAX_TAG: usize = 64;

/// A tag as it is kept: in lower case, without a leading `#`.
///
/// # Errors
/// `INVALID_ARGUMENT` about `tag` for one that is empty, has over 64 characters, or others than letters, digits, `-`, `_`, `.` and `:`.
pub fn check_tag(tag: &str) -> Result<String> {
    let tag = tag.trim().trim_start_matches('#').to_lowercase();
    let length = tag.chars().count();
    let allowed = |char: char| char.is_alphanumeric() || "-_.:".contains(char);
    if (1..=MAX_TAG).contains(&length) && tag.chars().all(allowed) && tag.chars().any(char::is_alphanumeric) {
        return Ok(tag);
    }
    let shown: String = tag.chars().take(MAX_TAG).collect();
    Err(Error::invalid("tag", format!("{shown:?} is no tag"))
        .hint(format!("a tag has 1 to {MAX_TAG} characters: letters, digits, -, _, . and :, such as status:open")))
}

/// The tags of a text with front matter, each once; none for a text without front matter.
pub(crate) fn of(text: &str) -> Option<Vec<String>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let (mut tags, mut in_list, mut read): (Vec<String>, bool, usize) = (Vec::new(), false, 0);
    for line in lines {
        read += line.len();
        if read > LONGEST {
            return None;
        }
        let line = line.trim_end();
        if line == "---" || line == "..." {
            tags.dedup();
            return Some(tags);
        }
        if in_list {
            if let Some(item) = line.trim_start().strip_prefix('-') {
                add(&mut tags, item);
                continue;
            }
            in_list = line.trim().is_empty() || line.trim_start().starts_with('#');
        }
        if let Some(rest) = line.strip_prefix("tags:") {
            let rest = without_comment(rest).trim();
            in_list = rest.is_empty();
            let inside = rest.strip_prefix('[').map_or(rest, |list| list.strip_suffix(']').unwrap_or(list));
            inside.split(',').for_each(|item| add(&mut tags, item));
        }
    }
    // It does not end, so it is no front matter.
    None
}

fn add(tags: &mut Vec<String>, item: &str) {
    let item = without_comment(item).trim();
    let item = item.trim_matches(['"', '\'']);
    if let Ok(tag) = check_tag(item)
        && tags.len() < MOST
        && !tags.contains(&tag)
    {
        tags.push(tag);
    }
}

/// A `#` after a space begins a comment; `#tag` is a tag.
fn without_comment(text: &str) -> &str {
    text.find(" # ").map_or(text, |at| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_in_the_forms_that_people_write() {
        let check = |text: &str, expected: Option<&[&str]>| {
            let expected = expected.map(|tags| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>());
            assert_eq!(of(text), expected, "{text:?}");
        };
        check("---\ntags: [Plan, \"status:open\", 'x']\n---\nbody", Some(&["plan", "status:open", "x"]));
        check("---\r\ntitle: a\r\ntags: a, b # both\r\n---\r\n", Some(&["a", "b"]));
        check("---\ntags:\n  - a\n  # a note\n  - \"b\"\n-  c\nother:\n  - no\n---\n", Some(&["a", "b", "c"]));
        check("---\ntags:\n- a\n- a\n- A\n---", Some(&["a"]));
        check("---\ntags: []\n---\n", Some(&[]));
        check("---\ntitle: x\n---\n", Some(&[]));
        check("---\ntags: [two words, {a: b}, ok]\n---\n", Some(&["ok"]));
        check("---\n  tags: [nested]\n---\n", Some(&[]));
        check("---\ntags: [a]\n", None);
        check("# no front matter\ntags: [a]\n", None);
        check("", None);
        let many = format!("---\ntags: [{}]\n---\n", (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
        assert_eq!(of(&many).map(|tags| tags.len()), Some(MOST));
    }
}
