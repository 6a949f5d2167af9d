//! What is of a newer version: given back for a worker of that version to take, without an attempt being counted.
//!
//! While a deploy goes on, workers of two versions take deliveries of the same actors. What the newer one wrote may have in it
//! what the older one does not know: a kind of event, a kind of command, a field of an envelope. The older one then does nothing
//! at all. It gives the delivery back to rest, and the queue counts that as an attempt, as it must; so it also leaves a note
//! beside the log of how often each was delivered until then, and whoever is about to judge a command by its attempts takes
//! those off.

use crate::{ActorId, log, retry::while_unavailable};
use ports::{Clock, Delivery, Error, Expect, Result, Table, Write};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long what cannot be read rests before it comes again.
pub(crate) const RESTS: Duration = Duration::from_secs(40);
/// How often mail that cannot be read may come before its actor is paused with it: a quarter of an hour of rests, longer than a deploy takes. Mail
/// that is paused is kept; a person resumes the actor when there is a worker that can read it.
pub(crate) const PATIENCE: u32 = 25;
/// How long the note stays: longer than any message is in the queue.
const KEPT: Duration = Duration::from_secs(15 * 24 * 3600);
/// How many deliveries it is about.
const REMEMBERED: usize = 2 * ports::MAX_BATCH;

/// The note.
#[derive(Default, Serialize, Deserialize)]
struct GivenBack {
    /// Ids of deliveries, with the attempt that each of them was when it was given back.
    deliveries: Vec<(String, u32)>,
}

/// Notes that these were given back unread. Without the note they would only be tried less often.
pub(crate) async fn note(table: &dyn Table, clock: &dyn Clock, actor: &ActorId, deliveries: &[Delivery]) {
    let noted = async {
        let mut note = read(table, actor).await?;
        note.deliveries.retain(|(id, _)| deliveries.iter().all(|delivery| delivery.id != *id));
        note.deliveries.extend(deliveries.iter().map(|delivery| (delivery.id.clone(), delivery.attempt)));
        let forgotten = note.deliveries.len().saturating_sub(REMEMBERED);
        note.deliveries.drain(..forgotten);
        let body = serde_json::to_string(&note).map_err(|error| Error::Invalid(error.to_string()))?;
        let put = Write::put(actor.given_back_key(), body, Expect::Any).expiring(clock.now() + KEPT);
        while_unavailable(|| table.commit(vec![put.clone()])).await
    };
    if let Err(error) = noted.await {
        tracing::warn!(%actor, %error, "deliveries were given back unread, and that is not noted");
    }
}

async fn read(table: &dyn Table, actor: &ActorId) -> Result<GivenBack> {
    let key = actor.given_back_key();
    let item = while_unavailable(|| table.get(&key)).await?;
    item.map_or_else(|| Ok(GivenBack::default()), |item| log::parse(&item.body))
}

/// The deliveries, each with the attempts that were some: all but those after which it was given back unread. Costs nothing
/// before one was delivered `judged_at` times.
pub(crate) async fn tried(
    table: &dyn Table,
    actor: &ActorId,
    deliveries: &[Delivery],
    judged_at: u32,
) -> Result<Vec<Delivery>> {
    let mut tried = deliveries.to_vec();
    if deliveries.iter().all(|delivery| delivery.attempt < judged_at) {
        return Ok(tried);
    }
    let note = read(table, actor).await?;
    for delivery in &mut tried {
        if let Some((_, attempt)) = note.deliveries.iter().find(|(id, _)| *id == delivery.id) {
            delivery.attempt = delivery.attempt.saturating_sub(*attempt).max(1);
        }
    }
    Ok(tried)
}
