//! Rows that may be damaged: those of lists, and the views of actors.

use crate::{ActorId, LogReader, Machine};
use ports::{Item, Result, Table};
use serde::de::DeserializeOwned;

/// The items that can be read, in order, each with its content. One that cannot be read is logged with its place and left out, so that it
/// keeps none of the others back.
pub fn readable<T: DeserializeOwned>(items: &[Item]) -> impl Iterator<Item = (&Item, T)> {
    items.iter().filter_map(|item| match serde_json::from_str(&item.body) {
        Ok(content) => Some((item, content)),
        Err(error) => {
            tracing::error!(key = ?item.key, %error, "a row is damaged, and is left out of a list");
            None
        }
    })
}

/// The view of an actor as its row has it, or as its log has it where the row is damaged: until the actor changes the next time, which writes
/// the row again. None of an actor that the log does not have.
///
/// # Errors
/// Those of [`read_after`](crate::read_after): [`ports::Error::Damaged`] where the log is damaged, too.
pub async fn view_of<M: Machine, V: DeserializeOwned>(
    table: &dyn Table,
    row: &Item,
    actor: &ActorId,
) -> Result<Option<V>> {
    match serde_json::from_str(&row.body) {
        Ok(view) => return Ok(Some(view)),
        Err(error) => tracing::error!(%actor, %error, "the view of an actor is damaged, and is made of its log"),
    }
    let mut log = LogReader::<M::Event>::starting_at(actor.clone(), 1);
    let mut state = M::State::default();
    while let Some((number, _, event)) = log.next(table).await? {
        M::apply(&mut state, number, &event);
    }
    let body = M::view(&state).and_then(|view| view.body);
    body.map(|body| serde_json::from_str(&body)).transpose().map_err(|error| ports::Error::Damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::Key;

    #[test]
    fn a_row_that_cannot_be_read_keeps_no_other_back() {
        let item = |sk: &str, body: &str| {
            let key = Key::new("p", sk);
            Item { key, rev: 1, body: body.into(), index: None, expires_at: None }
        };
        let items = [item("a", "1"), item("b", "{"), item("c", "\"x\""), item("d", "4")];
        let read: Vec<_> = readable::<u64>(&items).map(|(item, content)| (item.key.sk.as_str(), content)).collect();
        assert_eq!(read, [("a", 1), ("d", 4)]);
    }
}
