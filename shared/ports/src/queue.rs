//! The queue: ordered in a group, one delivery in flight a group, at least once. Modelled on SQS FIFO.

use crate::Result;
use async_trait::async_trait;
use domain::Timestamp;
use std::time::Duration;

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Outgoing {
    /// Whom it is for; messages of one group are delivered in the order in which they were sent.
    pub group: String,
    /// Sending the same id to the same group again within five minutes has no effect.
    pub id: String,
    /// What it says; at most 256 KiB.
    pub body: String,
    /// Not before this time. A delayed message does not hold up those behind it: it takes its place in the order when it is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver_at: Option<Timestamp>,
}

/// A message that was received and not yet settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its group.
    pub group: String,
    /// Its id.
    pub id: String,
    /// What it says.
    pub body: String,
    /// How often it was delivered, this time included.
    pub attempt: u32,
    /// The right to settle it.
    pub receipt: Receipt,
}

/// The right to settle one delivery; stale once the delivery timed out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Receipt(pub String);

/// A message that was put aside after too many attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The message.
    pub message: Outgoing,
    /// How often it was delivered.
    pub attempts: u32,
    /// When it was put aside.
    pub at: Timestamp,
}

/// A queue of messages in groups.
///
/// Guarantees: a sent message is durable when `send` returns, and is delivered until it is acknowledged or has used up its
/// attempts; at most one message of a group is in flight at a time, the oldest due one.
///
/// Not promised: exactly one delivery (a message whose visibility timed out comes again, and so may one that was
/// acknowledged by a process that then crashed); order between groups.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Sends all or none of `messages`.
    async fn send(&self, messages: Vec<Outgoing>) -> Result<()>;
    /// Waits for messages and takes at most `max`, one a group. They stay invisible for `visibility`.
    /// Returns none only when the adapter's longest wait is over. Dropping the call loses nothing.
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<Delivery>>;
    /// Settles a delivery: it does not come again. False when the receipt is stale; the message then comes again.
    async fn ack(&self, receipt: &Receipt) -> Result<bool>;
    /// Keeps a delivery invisible for `visibility` from now. False when the receipt is stale.
    async fn extend(&self, receipt: &Receipt, visibility: Duration) -> Result<bool>;
    /// Gives a delivery back, to come again after `delay`, still at the head of its group. False when the receipt is stale.
    async fn reject(&self, receipt: &Receipt, delay: Duration) -> Result<bool>;
    /// What was put aside, oldest first.
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>>;
    /// Sends what was put aside of `group` again, in order, with no attempts used. Returns how many there were.
    async fn redrive(&self, group: &str) -> Result<usize>;
}
