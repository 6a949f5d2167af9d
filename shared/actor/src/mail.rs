//! What goes through an actor's mailbox, and the two ways to reach an actor: a command, and a request to stop.

use crate::{ActorId, StopRequest};
use bytes::Bytes;
use domain::{CommandId, Principal, Timestamp};
use ports::{Bus, Expect, Outgoing, Queue, Result, Table, Write};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One message of a mailbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mail<C> {
    /// Its id; the same when it is delivered again.
    pub id: CommandId,
    /// When it was accepted.
    pub at: Timestamp,
    /// Who sent it.
    pub by: Principal,
    /// What it is.
    #[serde(flatten)]
    pub content: Content<C>,
}

/// What a message of a mailbox is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mail", rename_all = "snake_case")]
pub enum Content<C> {
    /// A command for the machine.
    Command {
        /// The command.
        body: C,
    },
    /// A worker ran out of time: go on where it stopped.
    Continue,
    /// Resume an actor that was paused.
    Unpark {
        /// Give up the command that failed instead of trying it again.
        drop: bool,
    },
}

impl<C: Serialize> Mail<C> {
    /// As a message to `actor`.
    pub fn to(&self, actor: &ActorId) -> Result<Outgoing> {
        let body = serde_json::to_string(self).map_err(|error| ports::Error::Invalid(error.to_string()))?;
        Ok(Outgoing { group: actor.as_str().into(), id: self.id.to_string(), body, ..Outgoing::default() })
    }
}

/// The outside's way to actors.
#[derive(Clone)]
pub struct Mailbox {
    /// Where commands go.
    pub queue: Arc<dyn Queue>,
    /// Where requests to stop are kept.
    pub table: Arc<dyn Table>,
    /// Where requests to stop are announced.
    pub bus: Arc<dyn Bus>,
}

impl Mailbox {
    /// Sends what [`Mail::to`] made. It is durable when this returns, and takes effect once however often it is sent.
    pub async fn send(&self, message: Outgoing) -> Result<()> {
        self.queue.send(vec![message]).await
    }

    /// Asks the worker that runs `actor` to stop what it does. It does not queue behind the work that it stops: it is kept
    /// in the table and announced on the bus, and the worker watches both. An actor that no worker runs sees it when it is
    /// next loaded.
    pub async fn stop(&self, actor: &ActorId, request: &StopRequest) -> Result<()> {
        let body = serde_json::to_string(request).map_err(|error| ports::Error::Invalid(error.to_string()))?;
        self.table.commit(vec![Write::put(actor.control_key(request.target), body, Expect::Any)]).await?;
        self.bus.publish(&actor.control_channel(), Bytes::from_static(b"stop")).await
    }
}
