//! Restarts an actor whose message was lost after a commit: a worker died before it had sent the outbox of its entry, and the delivery that
//! would have made up for it was put aside or purged.

use crate::{ActorId, Content, Envelope};
use domain::{CommandId, Principal, Timestamp};
use ports::{Clock, QueueMessage, QueueSender, Result, Table};
use serde::Deserialize;

/// How many entries back it searches for unsent messages: more than lie between two commands.
const LOOKED_AT: usize = 64;

/// The part of an entry that has its outbox.
#[derive(Deserialize)]
struct SentEntry {
    next: u64,
    at: Timestamp,
    #[serde(default)]
    commands: Vec<CommandId>,
    #[serde(default)]
    outbox: Vec<QueueMessage>,
}

/// Sends the outboxes of the entries since the last command again, and tells the actor to go on; false when it has moved since `since`, or
/// has never begun.
///
/// Ids make it harmless: a receiver knows the messages that it has received, and an actor with nothing in flight and nothing to ask for anew writes
/// nothing.
///
/// # Errors
/// Those of [`Table::query`] and [`QueueSender::send`]; [`ports::Error::Damaged`] for an entry that cannot be read.
pub async fn resend_outbox(
    table: &dyn Table,
    queue: &dyn QueueSender,
    clock: &dyn Clock,
    actor: &ActorId,
    since: Timestamp,
) -> Result<bool> {
    let page = table.query(&actor.entries(LOOKED_AT).descending()).await?;
    let mut outboxes = Vec::new();
    let mut next = None;
    for item in &page.items {
        let SentEntry { next: following, at, commands, outbox } = item.content()?;
        if next.is_none() && at > since {
            return Ok(false);
        }
        next.get_or_insert(following);
        outboxes.push(outbox);
        if !commands.is_empty() {
            break;
        }
    }
    let Some(next) = next else { return Ok(false) };
    // Two that resend it at once send the same message.
    let id = CommandId::from_key(actor.as_str(), &format!("nudge/{next}"));
    let envelope: Envelope<()> = Envelope { id, at: clock.now(), by: Principal::System, content: Content::Continue };
    let messages: Vec<QueueMessage> = outboxes.into_iter().rev().flatten().chain([envelope.to(actor)?]).collect();
    queue.send(messages).await?;
    Ok(true)
}
