//! The removal of old entries of an actor that lives for ever, such as a semaphore: its log would grow with each message.
//!
//! A mark beside the log names a number before which the actor was as new. When the mark is old, the log begins with that number: a fold from there gives the
//! same state, whichever version folds it. The entries before it are removed afterwards, some with each snapshot.

use crate::{ActorId, Machine, load::Loaded, log::LogBeginning};
use domain::Timestamp;
use ports::{Expect, MAX_WRITES, Query, Result, Table, Write};
use std::time::Duration;

/// How long an entry stays at least. A worker that has the actor in memory from before could write in the place of a removed entry, and no condition would
/// fail: so it [reads the actor again](is_too_old) when half of this time is over.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How many times [`MAX_WRITES`] entries are removed with each snapshot: more than come between two snapshots, so that a long log gets shorter.
const AT_ONCE: usize = 10;

/// Whether an actor in memory is so old that the entries after it may have been removed.
pub(crate) fn is_too_old<M: Machine>(loaded: &Loaded<M>, now: Timestamp) -> bool {
    M::TRUNCATES && !now.is_within(KEPT / 2, loaded.newest_at)
}

/// Sets the mark where the actor is as new, lets the log begin at an old mark, and removes entries before the beginning.
///
/// # Errors
/// Those of [`Table::query`] and [`Table::commit`]; [`ports::Error::Damaged`] and [`ports::Error::Lost`] for a mark that cannot be read.
pub(crate) async fn truncate<M: Machine>(
    table: &dyn Table,
    actor: &ActorId,
    loaded: &Loaded<M>,
    now: Timestamp,
) -> Result<()> {
    let item = table.get(&actor.truncation_key()).await?;
    let before = item.as_ref().map(|item| item.content::<LogBeginning>()).transpose()?;
    let is_as_new = !loaded.parked && M::is_as_new(&loaded.state);
    // The newest entry stays, so that numbers go on.
    let is_due = |mark: &LogBeginning| now.since(mark.at) >= KEPT && mark.as_new_before < loaded.next;
    let begins = match before {
        Some(mark) if !is_as_new || !is_due(&mark) => mark.begins,
        None if !is_as_new => return Ok(()),
        before => {
            let begins = before.map_or(1, |mark| mark.as_new_before);
            let mark = LogBeginning { begins, as_new_before: loaded.next, at: now };
            let body = serde_json::to_string(&mark).map_err(|error| ports::Error::Invalid(error.to_string()))?;
            let expect = item.as_ref().map_or(Expect::Absent, |item| Expect::Rev(item.rev));
            table.commit(vec![Write::put(actor.truncation_key(), body, expect)]).await?;
            begins
        }
    };
    remove_before(table, actor, begins).await
}

async fn remove_before(table: &dyn Table, actor: &ActorId, begins: u64) -> Result<()> {
    let to = actor.entry_key(begins).sk;
    let older = Query { to: Some(to), ..actor.entries(MAX_WRITES) };
    for _ in 0..AT_ONCE {
        let page = table.query(&older).await?;
        let gone: Vec<_> = page.items.into_iter().map(|item| Write::delete(item.key, Expect::Any)).collect();
        if gone.is_empty() {
            break;
        }
        table.commit(gone).await?;
    }
    Ok(())
}
