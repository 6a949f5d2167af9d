//! The parts of a rule, such as `INTERVAL=2`.

/// The value of a part of a rule.
pub(crate) fn part<'a>(rule: &'a str, name: &str) -> Option<&'a str> {
    rule.split(';').filter_map(|part| part.split_once('=')).find(|(is, _)| *is == name).map(|(_, value)| value)
}
