//! Views of actors, of which a row may be damaged.

use crate::{ActorId, LogReader, Machine};
use ports::{Item, Key, Result, Table};
use serde::de::DeserializeOwned;

/// The view of an actor as its row has it, or as its log has it where the row is damaged: until the actor changes the next time, which writes
/// the row again. None of an actor that the log does not have.
///
/// # Errors
/// Those of [`read_after`](crate::read_after): [`ports::Error::Damaged`] and [`ports::Error::Lost`] where the log is damaged, too.
pub async fn view_of<M: Machine, V: DeserializeOwned>(
    table: &dyn Table,
    row: &Item,
    actor: &ActorId,
) -> Result<Option<V>> {
    match row.content() {
        Ok(view) => Ok(Some(view)),
        Err(error) => of_log::<M, V>(table, actor, &error).await,
    }
}

/// The view of an actor that has its row under `key`, as [`view_of`] gives it. None where there is no row.
///
/// # Errors
/// Those of [`Table::get`] for a table that does not answer, and those of [`view_of`].
pub async fn view_at<M: Machine, V: DeserializeOwned>(
    table: &dyn Table,
    key: &Key,
    actor: &ActorId,
) -> Result<Option<V>> {
    match table.get(key).await {
        Ok(Some(row)) => view_of::<M, V>(table, &row, actor).await,
        Ok(None) => Ok(None),
        Err(error) if error.is_damage() => of_log::<M, V>(table, actor, &error).await,
        Err(error) => Err(error),
    }
}

async fn of_log<M: Machine, V: DeserializeOwned>(
    table: &dyn Table,
    actor: &ActorId,
    error: &ports::Error,
) -> Result<Option<V>> {
    tracing::error!(%actor, %error, "the view of an actor is damaged, and is made of its log");
    let mut log = LogReader::<M::Event>::starting_at(actor.clone(), 1);
    let mut state = M::State::default();
    while let Some((number, _, event)) = log.next(table).await? {
        M::apply(&mut state, number, &event);
    }
    let body = M::view(&state).and_then(|view| view.body);
    body.map(|body| serde_json::from_str(&body)).transpose().map_err(|error| ports::Error::Damaged(error.to_string()))
}
