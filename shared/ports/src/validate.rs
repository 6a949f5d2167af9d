//! The checks that every adapter makes in the same words, before anything takes effect: the limits that the traits document.

use crate::{Error, MAX_BODY, MAX_WRITES, Query, QueueMessage, Result, Write};
use std::collections::HashSet;

pub use crate::queue::MAX_MESSAGE;

/// Checks the writes of one commit: not too many, no key twice, no empty key, no body over [`MAX_BODY`].
///
/// # Errors
/// [`Error::Invalid`] with the fault of the first write that has one.
pub fn writes(writes: &[Write]) -> Result<()> {
    writes_up_to(writes, MAX_BODY)
}

/// The same with another limit for bodies.
pub(crate) fn writes_up_to(writes: &[Write], max_body: usize) -> Result<()> {
    if writes.len() > MAX_WRITES {
        return invalid(format!("a commit has at most {MAX_WRITES} writes, not {}", writes.len()));
    }
    for write in writes {
        let key = write.key();
        if key.pk.is_empty() || key.sk.is_empty() {
            return invalid(format!("both parts of a key must say something: {key:?}"));
        }
        if let Write::Put { body, index, .. } = write {
            if body.len() > max_body {
                return invalid(format!("a body has at most {max_body} bytes, not {}", body.len()));
            }
            if index.as_ref().is_some_and(|index| index.pk.is_empty() || index.sk.is_empty()) {
                return invalid(format!("both parts of the index key of {key:?} must say something"));
            }
        }
    }
    // Most commits have one or two writes; only larger ones are worth a set.
    let repeated = match writes {
        [] | [_] => None,
        [one, other] => (one.key() == other.key()).then(|| one.key()),
        many => {
            let mut seen = HashSet::with_capacity(many.len());
            many.iter().map(Write::key).find(|key| !seen.insert(*key))
        }
    };
    repeated.map_or(Ok(()), |key| invalid(format!("a commit writes to a key once, not twice to {key:?}")))
}

/// Checks a range: of some partition, with a limit of at least 1.
///
/// # Errors
/// [`Error::Invalid`] for a limit of 0 or an empty partition.
pub fn query(query: &Query) -> Result<()> {
    match query {
        Query { limit: 0, .. } => invalid("the limit of a query is at least 1"),
        Query { pk, .. } if pk.is_empty() => invalid("a query names a partition"),
        _ => Ok(()),
    }
}

/// The refusal of a request for a page, when the request is what is wrong: it names the limit or the cursor.
///
/// # Errors
/// Any other error of the query, as it came.
pub fn refusal(query: &Query, error: Error) -> std::result::Result<domain::Error, Error> {
    match (&error, query) {
        (Error::Invalid(why), Query { limit: 0, .. }) => Ok(domain::Error::invalid("limit", why)),
        (Error::Invalid(_), Query { cursor: Some(_), .. }) => {
            let refusal = domain::Error::invalid("cursor", "this is no cursor of this list");
            Ok(refusal.hint("use next_cursor as it was given"))
        }
        _ => Err(error),
    }
}

/// The error of a request for a page: one for which the request is at fault names it ([`refusal`]); `otherwise` tells any other.
pub fn of_page(query: &Query, otherwise: impl FnOnce(Error) -> domain::Error) -> impl FnOnce(Error) -> domain::Error {
    move |error| refusal(query, error).unwrap_or_else(otherwise)
}

/// Checks messages to send: with group and id, no body over [`MAX_MESSAGE`].
///
/// # Errors
/// [`Error::Invalid`] for a message without a group or an id, or with a longer body.
pub fn messages(messages: &[QueueMessage]) -> Result<()> {
    messages.iter().try_for_each(QueueMessage::check)
}

/// Checks a space of blobs: 1 to 64 lower-case letters, digits, `-` and `_`. So it is never a path out of its folder.
///
/// # Errors
/// [`Error::Invalid`] for any other text.
pub fn space(space: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    if (1..=64).contains(&space.len()) && space.bytes().all(allowed) {
        return Ok(());
    }
    invalid(format!("a space is 1 to 64 lower-case letters, digits, '-' and '_', not {space:?}"))
}

fn invalid<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(what.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_that_is_wrong_is_named() {
        let field = |query: &Query, error: Error| {
            refusal(query, error).ok().map(|refusal| refusal.details.get("field").cloned().unwrap_or_default())
        };
        let page = |limit: usize, cursor: Option<&str>| Query::all("p", limit).after(cursor.map(str::to_owned));
        let wrong = || Error::Invalid("no".into());
        assert_eq!(field(&page(0, None), wrong()), Some("limit".into()));
        assert_eq!(field(&page(0, Some("c")), wrong()), Some("limit".into()));
        assert_eq!(field(&page(1, Some("c")), wrong()), Some("cursor".into()));
        assert_eq!(field(&page(1, None), wrong()), None, "the request is right");
        assert_eq!(field(&page(1, Some("c")), Error::unavailable("a table", "x")), None);
    }
}
