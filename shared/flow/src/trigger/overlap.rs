//! Whether one version can fulfil two triggers.

use super::Trigger;
use serde_json::Value;

/// Whether some version of a file can fulfil both. It errs on the side of yes for patterns with `[…]` and `{…}`.
pub fn overlap(one: &Trigger, other: &Trigger) -> bool {
    let (left, right) = (&one.pattern, &other.pattern);
    let events = left.event.is_none() || right.event.is_none() || left.event == right.event;
    let statuses = match (status(one), status(other)) {
        (Some(left), Some(right)) => left.eq_ignore_ascii_case(right),
        _ => true,
    };
    let keys = left.front_matter.iter().flatten().all(|(key, wanted)| {
        let others = right.front_matter.as_ref().and_then(|keys| keys.get(key));
        others.is_none_or(|other| other == wanted)
    });
    let names = |path: &str| path.split('/').skip(1).map(str::to_owned).collect::<Vec<_>>();
    events && statuses && keys && paths(&names(&left.path), &names(&right.path))
}

fn status(of: &Trigger) -> Option<&str> {
    let keys = of.pattern.front_matter.as_ref();
    of.pattern.status.as_deref().or_else(|| keys.and_then(|keys| keys.get("status")).and_then(Value::as_str))
}

/// Whether some path fits both lists of names, of which `**` stands for any number of names.
fn paths(one: &[String], other: &[String]) -> bool {
    meet(one, other, |name| name == "**", |left, right| names(left.as_bytes(), right.as_bytes()))
}

/// Whether some name fits both patterns, in which `*` stands for any number of characters and `?` for one.
fn names(one: &[u8], other: &[u8]) -> bool {
    if [one, other].iter().any(|name| name.iter().any(|byte| b"[]{}\\".contains(byte))) {
        return true;
    }
    meet(one, other, |byte| *byte == b'*', |left, right| left == right || *left == b'?' || *right == b'?')
}

/// Whether two patterns have something in common: row by row, the rest of `one` from a place on is compared with the rest of `other` from each place
/// on. So it takes as many steps as the product of the lengths, whatever the patterns are.
fn meet<T>(one: &[T], other: &[T], is_many: impl Fn(&T) -> bool, fits: impl Fn(&T, &T) -> bool) -> bool {
    let at = |row: &[bool], place: usize| row.get(place).copied().unwrap_or(false);
    let mut below = vec![false; other.len() + 1];
    for left in (0..=one.len()).rev() {
        let mut row = vec![false; other.len() + 1];
        for right in (0..=other.len()).rev() {
            let (a, b) = (one.get(left), other.get(right));
            let met = match (a, b) {
                (None, None) => true,
                // The many end here, or take one more of the other side.
                (Some(a), _) if is_many(a) => at(&below, right) || b.is_some() && at(&row, right + 1),
                (_, Some(b)) if is_many(b) => at(&row, right + 1) || a.is_some() && at(&below, right),
                (Some(a), Some(b)) => fits(a, b) && at(&below, right + 1),
                (None, Some(_)) | (Some(_), None) => false,
            };
            if let Some(cell) = row.get_mut(right) {
                *cell = met;
            }
        }
        below = row;
    }
    at(&below, 0)
}
