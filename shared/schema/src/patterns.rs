//! The regular expressions of a schema (`pattern`, `patternProperties`): the library compiles each with bounds of its own, and of those there may be
//! thousands in a schema.

use super::SchemaError;
use jsonschema::{FancyRegex, PatternOptions};
use serde_json::Value;
use std::collections::BTreeSet;

/// The room in which a compiled pattern remembers what it has matched, in bytes, at least.
const LEAST_REMEMBERED: usize = 16 << 10;
/// The most bytes of patterns that are read: the library reads a pattern once more for each `\c` in it.
const MOST_READ: usize = 16 << 20;
/// The beginnings of constructs that only the engine with look-around knows. It compiles the parts of such a pattern by themselves.
const OF_LOOK_AROUND: [&str; 13] =
    ["(?=", "(?!", "(?<", "(?>", "(?(", "(?P", "\\k", "\\g", "\\G", "\\K", "++", "*+", "?+"];

/// The share of each pattern in the bytes that all of them may take once they are compiled.
///
/// # Errors
/// They take too long to read.
pub(super) fn share(source: &Value, all: usize) -> Result<usize, SchemaError> {
    let mut found = BTreeSet::new();
    look(source, &mut found);
    let read = |pattern: &str| pattern.len().saturating_mul(1 + pattern.matches("\\c").count());
    if found.iter().copied().map(read).fold(0, usize::saturating_add) > MOST_READ {
        return Err(SchemaError { pointer: String::new(), message: "its patterns take too long to read".into() });
    }
    let parts: usize = found.iter().copied().map(parts).sum();
    Ok(all / parts.max(1))
}

/// The options for patterns with this share.
pub(super) fn options(share: usize) -> PatternOptions<FancyRegex> {
    PatternOptions::fancy_regex().size_limit(share).dfa_size_limit(share.max(LEAST_REMEMBERED))
}

/// The patterns of a schema, each once: the library compiles each once. A text that is somewhere else under the same key counts, too.
fn look<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("pattern", Value::String(pattern)) => {
                        found.insert(pattern);
                    }
                    ("patternProperties", Value::Object(patterns)) => found.extend(patterns.keys().map(String::as_str)),
                    _ => {}
                }
                look(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| look(item, found)),
        _ => {}
    }
}

/// The most parts of a pattern that are compiled by themselves.
fn parts(pattern: &str) -> usize {
    let is_reference = |pair: &[u8]| pair[0] == b'\\' && pair[1].is_ascii_digit();
    let looks_around = OF_LOOK_AROUND.iter().any(|mark| pattern.contains(mark))
        || pattern.contains("}+")
        || pattern.as_bytes().windows(2).any(is_reference);
    if !looks_around {
        return 1;
    }
    // Each begins or ends at one of these.
    1 + 2 * pattern.matches(['(', '|', '\\', '+']).count()
}
