//! Views of actors, of which a row may be damaged, and pages of them.

use crate::{ActorId, LogReader, Machine};
use ports::{Error, Item, Key, Query, Result, Table};
use serde::de::DeserializeOwned;

/// The reads for one page, at most, and the rows of each but the first.
const READS: usize = 6;
const ROWS: usize = 200;

/// The view of an actor as its row has it, or as its log has it where the row is damaged: until the actor changes the next time, which writes
/// the row again. None of an actor that the log does not have.
///
/// # Errors
/// Those of [`read_after`](crate::read_after): [`Error::Damaged`] and [`Error::Lost`] where the log is damaged, too.
async fn view_of<M: Machine, V: DeserializeOwned>(table: &dyn Table, row: &Item, actor: &ActorId) -> Result<Option<V>> {
    match row.content() {
        Ok(view) => Ok(Some(view)),
        Err(error) => of_log::<M, V>(table, actor, &error).await,
    }
}

/// The view of an actor that has its row under `key`; where the row is damaged, that of its log, until the actor changes the next time. None where
/// there is no row.
///
/// # Errors
/// Those of [`Table::get`] for a table that does not answer; [`Error::Damaged`] and [`Error::Lost`] where the log is damaged, too.
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

/// The view in a row of a list; `actor` tells by its key whose it is. None for one that cannot be read: it keeps none of the others back.
///
/// # Errors
/// Those of a table that does not answer.
pub async fn view_in_list<M: Machine, V: DeserializeOwned>(
    table: &dyn Table,
    row: &Item,
    actor: &impl Fn(&Key) -> Option<ActorId>,
) -> Result<Option<V>> {
    let view = match actor(&row.key) {
        Some(actor) => view_of::<M, V>(table, row, &actor).await,
        None => Err(Error::Damaged(format!("{:?} is the view of no actor", row.key))),
    };
    match view {
        Err(error) if error.is_damage() => {
            ports::leave_out(row, &error);
            Ok(None)
        }
        view => view,
    }
}

/// A page of the views in a range of the index that are `wanted`, with the cursor of the next page. While rows are not wanted, more of them are read, up
/// to a bound: a page that is not full may have a next one, and one that is empty, too.
///
/// # Errors
/// Those of [`Table::query_index`].
pub async fn page_of_views<M: Machine, V: DeserializeOwned>(
    table: &dyn Table,
    query: &Query,
    actor: impl Fn(&Key) -> Option<ActorId>,
    wanted: impl Fn(&V) -> bool,
) -> Result<(Vec<V>, Option<String>)> {
    let (mut found, mut reads, most) = (Vec::new(), 0, query.limit);
    let mut query = query.clone();
    loop {
        let page = table.query_index(&query).await?;
        let (before, mut looked_at, mut is_filtered) = (found.len(), 0, false);
        for row in &page.items {
            if found.len() == most {
                break;
            }
            looked_at += 1;
            match view_in_list::<M, V>(table, row, &actor).await? {
                Some(view) if wanted(&view) => found.push(view),
                view => is_filtered |= view.is_some(),
            }
        }
        if looked_at < page.items.len() {
            // Only the table knows the cursor behind a row within its page: it is asked for a page that ends there.
            found.truncate(before);
            query.limit = looked_at;
            continue;
        }
        reads += 1;
        let goes_on = is_filtered && found.len() < most && reads < READS;
        match page.next {
            Some(next) if goes_on => query = Query { limit: ROWS, ..query.after(Some(next)) },
            next => return Ok((found, next)),
        }
    }
}

async fn of_log<M: Machine, V: DeserializeOwned>(
    table: &dyn Table,
    actor: &ActorId,
    error: &Error,
) -> Result<Option<V>> {
    tracing::error!(%actor, %error, "the view of an actor is damaged, and is made of its log");
    let mut log = LogReader::<M::Event>::starting_at(actor.clone(), 1);
    let mut state = M::State::default();
    while let Some((number, _, event)) = log.next(table).await? {
        M::apply(&mut state, number, &event);
    }
    let body = M::view(&state).and_then(|view| view.body);
    body.map(|body| serde_json::from_str(&body)).transpose().map_err(|error| Error::Damaged(error.to_string()))
}
