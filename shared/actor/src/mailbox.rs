//! The messages of an actor's mailbox, and the two ways to reach an actor: a command, and a request to stop.

use crate::{ActorId, HoldRequest, StopRequest};
use bytes::Bytes;
use domain::{ActorKind, Code, CommandId, Principal, Timestamp};
use ports::{Bus, Expect, Query, QueueMessage, QueueSender, Result, Table, Write};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{sync::Arc, time::Duration};

/// How long a note of a command that waits is kept at most: longer than a message is in the queue.
const NOTED_FOR: Duration = Duration::from_secs(15 * 24 * 3600);
/// How long a request to stop or hold a tree is kept: longer than any message of the tree is in the queue.
const TREE_CONTROL_KEPT: Duration = Duration::from_secs(15 * 24 * 3600);

/// One message of a mailbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope<C> {
    /// Its id; the same when it is delivered again.
    pub id: CommandId,
    /// When it was accepted.
    pub at: Timestamp,
    /// The sender.
    pub by: Principal,
    /// The content.
    #[serde(flatten)]
    pub content: Content<C>,
}

/// The content of a message of a mailbox.
///
/// An envelope is consumed once, by the worker that receives it: so no part of it may be overlooked, and an unknown field makes all of it
/// unreadable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mail", rename_all = "snake_case", deny_unknown_fields)]
pub enum Content<C> {
    /// A command for the machine.
    Command {
        /// The command.
        body: C,
    },
    /// A worker ran out of time: continue at the same point.
    Continue,
    /// Resume an actor that was paused.
    Unpark {
        /// Give up the command that failed instead of trying it again.
        drop: bool,
    },
}

impl<C: DeserializeOwned> Envelope<C> {
    /// Reads the body of a message.
    ///
    /// # Errors
    /// The error says whether the body is an envelope of a newer version or is damaged.
    pub fn parse(body: &str) -> std::result::Result<Self, Unreadable> {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "whether they are there is what counts")]
        struct Head {
            id: CommandId,
            mail: String,
        }
        serde_json::from_str(body).map_err(|error| match serde_json::from_str::<Head>(body) {
            Ok(_) => Unreadable::Newer(error),
            Err(_) => Unreadable::Damaged(error),
        })
    }
}

/// Why an envelope cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is an envelope, and says something that this version does not know.
    #[error("{0}")]
    Newer(#[source] serde_json::Error),
    /// It is no envelope.
    #[error("{0}")]
    Damaged(#[source] serde_json::Error),
}

impl<C: Serialize> Envelope<C> {
    /// As a message to `actor`.
    ///
    /// # Errors
    /// [`ports::Error::Invalid`] for content that is no JSON.
    pub fn to(&self, actor: &ActorId) -> Result<QueueMessage> {
        let body = serde_json::to_string(self).map_err(|error| ports::Error::Invalid(error.to_string()))?;
        Ok(QueueMessage { group: actor.as_str().into(), id: self.id.to_string(), body, ..QueueMessage::default() })
    }
}

/// The outside's way to actors.
#[derive(Clone)]
pub struct Mailbox {
    /// The queue for commands.
    pub queue: Arc<dyn QueueSender>,
    /// The table that keeps requests to stop.
    pub table: Arc<dyn Table>,
    /// The bus that announces requests to stop.
    pub bus: Arc<dyn Bus>,
}

impl Mailbox {
    /// Sends a message of [`Envelope::to`]. It is durable when this returns, and takes effect once even when it is sent several times.
    ///
    /// # Errors
    /// Those of [`QueueSender::send`].
    pub async fn send(&self, message: QueueMessage) -> Result<()> {
        self.send_all(vec![message]).await
    }

    /// The same with several messages: all of them when it returns without an error.
    ///
    /// # Errors
    /// Those of [`QueueSender::send`].
    pub async fn send_all(&self, messages: Vec<QueueMessage>) -> Result<()> {
        self.queue.send(messages).await
    }

    /// Notes beside the log of `actor` that a command waits in its mailbox, for people to see: before the command is sent, by a sender that
    /// says so in the command ([`crate::Machine::is_noted`]). If the command is then never sent, the note expires after [`NOTED_FOR`].
    ///
    /// # Errors
    /// [`ports::Error::Invalid`] for a note that is no JSON; those of [`Table::commit`].
    pub async fn note(&self, actor: &ActorId, command: CommandId, now: Timestamp, note: &impl Serialize) -> Result<()> {
        let body = serde_json::to_string(note).map_err(|error| ports::Error::Invalid(error.to_string()))?;
        let put = Write::put(actor.waiting_key(command), body, Expect::Any).expiring(now + NOTED_FOR);
        self.table.commit(vec![put]).await
    }

    /// The notes of commands that wait, at most `limit`, in no order. One that cannot be read is left out ([`ports::readable`]).
    ///
    /// # Errors
    /// Those of [`Table::query`].
    pub async fn noted<N: DeserializeOwned>(&self, actor: &ActorId, limit: usize) -> Result<Vec<N>> {
        let all = Query::all(actor.as_str(), limit);
        let range = Query { from: Some("waiting/".into()), to: Some("waiting0".into()), ..all };
        let page = self.table.query(&range).await?;
        Ok(ports::readable(&page.items).map(|(_, note)| note).collect())
    }

    /// Asks the worker that runs `actor` to stop its work. It does not queue behind the work that it stops: it is kept in the table and
    /// announced on the bus, and the worker watches both. An actor that no worker runs sees it when it is next loaded.
    ///
    /// # Errors
    /// Those of [`Table::commit`]. The request is kept when only the bus fails: the worker sees it a moment later.
    pub async fn stop(&self, actor: &ActorId, request: &StopRequest) -> Result<()> {
        let body = serde_json::to_string(request).map_err(|error| ports::Error::Invalid(error.to_string()))?;
        self.table.commit(vec![Write::put(actor.control_key(request.target), body, Expect::Any)]).await?;
        self.announce(actor).await;
        Ok(())
    }

    /// Asks all workers that drive `member`, or anything below it in the tree of `root`, to stop it and to begin nothing more of it. It
    /// overtakes waiting commands: it is kept beside the root's log, which each worker reads before it begins something, and announced on
    /// the root's channel.
    ///
    /// # Errors
    /// As [`Mailbox::stop`].
    pub async fn stop_tree(&self, root: &ActorId, member: uuid::Uuid, request: &StopRequest) -> Result<()> {
        let body = serde_json::to_string(request).map_err(|error| ports::Error::Invalid(error.to_string()))?;
        let put = Write::put(root.tree_control_key(member), body, Expect::Any).expiring(request.at + TREE_CONTROL_KEPT);
        self.table.commit(vec![put]).await?;
        self.announce(root).await;
        Ok(())
    }

    /// Asks all workers that drive the last of `request.path`, or anything below it in the tree of `root`, to begin nothing more of it
    /// until [`Mailbox::release_tree`]. It overtakes waiting commands, as a stop of the tree does.
    ///
    /// # Errors
    /// As [`Mailbox::stop`]. An empty path holds nothing, without an error.
    pub async fn hold_tree(&self, root: &ActorId, request: &HoldRequest) -> Result<()> {
        let Some(member) = request.path.last() else { return Ok(()) };
        let body = serde_json::to_string(request).map_err(|error| ports::Error::Invalid(error.to_string()))?;
        let put = Write::put(root.tree_hold_key(*member), body, Expect::Any).expiring(request.at + TREE_CONTROL_KEPT);
        self.table.commit(vec![put]).await?;
        self.announce(root).await;
        Ok(())
    }

    /// Takes back the requests to hold `member`, and those to hold anything below it, in the tree of `root`.
    ///
    /// # Errors
    /// Those of [`Table::query`] and [`Table::commit`]; [`ports::Error::Damaged`] for a request that cannot be read. Requests may stay;
    /// calling it again takes back the rest.
    pub async fn release_tree(&self, root: &ActorId, member: uuid::Uuid) -> Result<()> {
        let requests = root.tree_controls(&*self.table).await?;
        for item in requests.iter().filter(|item| item.key.sk.ends_with("/hold")) {
            if item.content::<HoldRequest>()?.path.contains(&member) {
                self.table.commit(vec![Write::delete(item.key.clone(), Expect::Any)]).await?;
            }
        }
        Ok(())
    }

    /// The bus is a hint: without it a request to stop is seen a moment later.
    async fn announce(&self, actor: &ActorId) {
        if let Err(error) = self.bus.publish(&actor.control_channel(), Bytes::from_static(b"stop")).await {
            tracing::warn!(%actor, error = %error.with_causes(), "a request to stop was not announced");
        }
    }
}

/// The error of a caller whose command or read did not reach an actor of this kind. The log has its cause; a caller learns that it was not
/// its fault: `STORAGE_FULL` where there is no room, `UPSTREAM_UNAVAILABLE` where a port is away, `CONTENT_MISSING` or `CONTENT_DAMAGED` with the
/// place where stored data is lost, else `INTERNAL`.
pub fn unreachable(kind: ActorKind, error: impl std::error::Error + 'static) -> domain::Error {
    let (kind, cause): (_, &(dyn std::error::Error + 'static)) = (kind.as_str(), &error);
    tracing::error!(error = %ports::with_causes(cause), "a {kind} could not be reached");
    if ports::is_full(cause) {
        return domain::Error::storage_full();
    }
    if let Some(lost) = cause.downcast_ref::<ports::Error>().and_then(ports::Error::lost) {
        return lost;
    }
    let is_away = matches!(cause.downcast_ref(), Some(ports::Error::Unavailable { .. }));
    if is_away {
        return domain::Error::new(Code::UpstreamUnavailable, format!("the {kind} could not be reached"))
            .hint("try again; accepted commands are kept");
    }
    domain::Error::new(Code::Internal, format!("the {kind} could not be read"))
        .hint("try again; if it happens again, report the request_id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_away_or_full_is_told_from_a_fault() {
        for kind in [ActorKind::Chat, ActorKind::Task] {
            let away = ports::Error::unavailable("the store", "x");
            assert_eq!(unreachable(kind, away).code, Code::UpstreamUnavailable);
            assert_eq!(unreachable(kind, ports::Error::full("the store")).code, Code::StorageFull);
            let damaged = unreachable(kind, ports::Error::Damaged("an item".into()));
            assert_eq!((damaged.code, damaged.message.contains("could not be read")), (Code::Internal, true));
            let lost = ports::Error::Lost { place: "an entry".into(), damage: ports::Damage::Missing };
            assert_eq!(unreachable(kind, lost).code, Code::ContentMissing);
        }
    }
}
