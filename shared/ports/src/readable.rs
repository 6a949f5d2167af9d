//! Rows of a list, of which some may be damaged.

use crate::{Error, Item};
use serde::de::DeserializeOwned;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// The items that can be read, in order, each with its content. One that cannot be read is counted, logged with its place and left out, so
/// that it keeps none of the others back. Not for a log, whose entries mean nothing without those before them: its readers take
/// [`Item::content`].
pub fn readable<T: DeserializeOwned>(items: &[Item]) -> impl Iterator<Item = (&Item, T)> {
    items.iter().filter_map(|item| Some((item, readable_content(item)?)))
}

/// The content of an item of a list; none for one that cannot be read, which is counted and logged as by [`readable`].
pub fn readable_content<T: DeserializeOwned>(item: &Item) -> Option<T> {
    item.content().inspect_err(|error| leave_out(item, error)).ok()
}

/// Counts and logs that a list leaves an item out because of this error: for a reader that takes more than the item to make its content.
pub fn leave_out(item: &Item, error: &Error) {
    LEFT_OUT.fetch_add(1, Relaxed);
    tracing::error!(key = ?item.key, %error, "a row is damaged, and is left out of a list");
}

/// How often a row was left out ([`leave_out`]) since the process started.
pub fn rows_left_out() -> u64 {
    LEFT_OUT.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn a_row_that_cannot_be_read_keeps_no_other_back_and_is_counted() {
        let item = |sk: &str, body: &str| {
            let key = Key::new("p", sk);
            Item { key, rev: 1, body: body.into(), index: None, expires_at: None }
        };
        let items = [item("a", "1"), item("b", "{"), item("c", "\"x\""), item("d", "4")];
        let before = rows_left_out();
        let read: Vec<_> = readable::<u64>(&items).map(|(item, content)| (item.key.sk.as_str(), content)).collect();
        assert_eq!(read, [("a", 1), ("d", 4)]);
        assert_eq!(rows_left_out() - before, 2);
    }
}
