//! The queue: ordered in a group, one batch in flight a group, at least once. Modelled on SQS FIFO.
//!
//! It has three sides, each a trait of its own: [`QueueSender`] and [`QueueReceiver`] for its two ends, and [`DeadLetterQueue`] for
//! operators. An adapter has all three; a caller takes the one that it uses.

use crate::{Error, Result};
use async_trait::async_trait;
use domain::Timestamp;
use std::time::Duration;

/// The longest body of one message, in bytes (SQS: 256 KiB).
pub const MAX_MESSAGE: usize = 256 * 1024;
/// The most messages of one group that are in flight at once.
pub const MAX_BATCH: usize = 128;

/// The lane of a group: its first two parts, which are a kind of actor and a tenant, as in `task/<workspace>/<task>`.
pub fn lane(group: &str) -> &str {
    let second = group.match_indices('/').nth(1).map(|(at, _)| at);
    second.and_then(|at| group.get(..at)).unwrap_or(group)
}

/// The tenant of a group or lane: the second part, as the workspace in `task/<workspace>/<task>`; the whole of one that has no
/// parts.
pub fn tenant(group: &str) -> &str {
    group.split('/').nth(1).unwrap_or(group)
}

/// The priority of a message that has to overtake, such as a stop: its group goes before all others of its lane, with any message in front
/// of it. Above every priority that people can give.
pub const URGENT: i8 = i8::MAX;

/// How much waiting one point of priority stands for. A hundred points are a quarter of an hour.
pub const POINT: Duration = Duration::from_secs(10);

/// The rank of a waiting item in its lane or party: an item that came at `since`, in milliseconds, goes before all with a greater rank. A
/// higher priority goes first, and a long wait makes up for a low one, so that no item starves.
pub fn rank(since: i64, priority: i8) -> i64 {
    let point = i64::try_from(POINT.as_millis()).unwrap_or(i64::MAX);
    since.saturating_sub(i64::from(priority).saturating_mul(point))
}

/// A message to send.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueMessage {
    /// The receiver; messages of one group are delivered in the order in which they were sent.
    pub group: String,
    /// Sending the same id to the same group again within five minutes has no effect.
    pub id: String,
    /// The body; at most 256 KiB.
    pub body: String,
    /// Not before this time. A delayed message does not hold up those behind it: it takes its place in the order when it is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver_at: Option<Timestamp>,
    /// Of the waiting groups of a lane, one whose next message has a higher priority goes first, if the adapter promises it; see also
    /// [`URGENT`]. It never changes the order inside a group.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub priority: i8,
}

impl QueueMessage {
    /// Checks that it can be sent: it has a group and an id, and no body over [`MAX_MESSAGE`].
    ///
    /// # Errors
    /// [`Error::Invalid`] with its fault.
    pub fn check(&self) -> Result<()> {
        if self.group.is_empty() || self.id.is_empty() {
            return Err(Error::Invalid("a message has a group and an id".into()));
        }
        if self.body.len() > MAX_MESSAGE {
            let message = format!("a message has at most {MAX_MESSAGE} bytes, not {}", self.body.len());
            return Err(Error::Invalid(message));
        }
        Ok(())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_usual(priority: &i8) -> bool {
    *priority == 0
}

/// A message that was received and not yet settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its group.
    pub group: String,
    /// Its id.
    pub id: String,
    /// The body.
    pub body: String,
    /// How often it was delivered as the first one of its batch, this time included, and at least 1. A message behind others may never have
    /// been looked at, so a failure of the batch is not its fault. (An adapter that cannot tell, such as one for SQS, counts every
    /// delivery.)
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
    pub message: QueueMessage,
    /// How often it was delivered.
    pub attempts: u32,
    /// When it was put aside.
    pub at: Timestamp,
}

/// Sends messages to groups.
///
/// Guarantees: a sent message is durable when [`send`](Self::send) returns, and is delivered until it is acknowledged or has used up its
/// attempts.
///
/// # Errors
/// Of every method: [`Error::Unavailable`](crate::Error::Unavailable) when the queue does not answer or has no room. The call may have
/// taken effect.
#[async_trait]
pub trait QueueSender: Send + Sync {
    /// Sends `messages`: all of them when it returns without an error. One that is invalid keeps all others back.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a message without a group or an id, or with a body over
    /// [`MAX_MESSAGE`]; those of [`QueueSender`]. After [`Error::Unavailable`](crate::Error::Unavailable)
    /// none, some or all of the messages may have been sent: sending all of them again under their ids has no effect for those that were.
    async fn send(&self, messages: Vec<QueueMessage>) -> Result<()>;
    /// The backpressure of a [lane]: about how many of its messages are due and wait for a worker. It is enough to tell a tenant to come
    /// back later. An adapter that cannot tell lanes apart counts them all.
    ///
    /// # Errors
    /// Those of [`QueueSender`]; [`Error::Damaged`](crate::Error::Damaged) for an answer that cannot be read.
    async fn waiting(&self, lane: &str) -> Result<usize>;
}

/// Takes messages off the queue, and settles them.
///
/// Guarantees: a group is delivered in order, its oldest due messages first, one batch at a time: while a message is in flight, no other
/// batch of its group is. If one of a batch is rejected or times out, it comes again together with those behind it, in order, once those
/// before it are settled. A message that was the first of a batch before comes alone, so that the failing message is found.
///
/// Not promised: exactly one delivery. A message whose visibility timed out comes again, and so may one that was acknowledged. Changes by
/// the methods of this trait need not survive a power cut or the end of the process, so an adapter writes them along with a
/// later write that must, and no caller waits for it: their loss leads to a redelivery at most, or to an attempt that is not counted. Only a
/// power cut may lose the count of an attempt: the process may have died of the message itself. Nor is an order between groups promised. An
/// adapter that can takes [lanes](lane) in turn, and within a lane the group of the highest priority, then the one that waits longest, where
/// a long wait makes up for a low priority; and it leaves places for other [tenants](tenant) when one has many groups in flight. SQS cannot,
/// and is only fair enough not to starve a group.
///
/// # Errors
/// Of every method: [`Error::Unavailable`](crate::Error::Unavailable) when the queue does not answer, and
/// [`Error::Damaged`](crate::Error::Damaged) for a stored message that cannot be read. The call may have taken effect.
#[async_trait]
pub trait QueueReceiver: Send + Sync {
    /// Waits for messages and takes at most `max`, of one group at most [`MAX_BATCH`], beside each other and in order. They
    /// stay invisible for `visibility`. Returns none only when the adapter's longest wait is over. Dropping the call
    /// loses nothing.
    ///
    /// # Errors
    /// Those of [`QueueReceiver`], also once the queue is closed.
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<Delivery>>;
    /// Settles deliveries of one group: they do not come again. False when a receipt is stale; that message comes again.
    ///
    /// # Errors
    /// Those of [`QueueReceiver`]. A stale receipt is no error.
    async fn ack(&self, receipts: &[Receipt]) -> Result<bool>;
    /// Keeps deliveries of one group invisible for `visibility` from now, and with them perhaps the others of their batch.
    /// False when a receipt is stale.
    ///
    /// # Errors
    /// Those of [`QueueReceiver`]. A stale receipt is no error.
    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Result<bool>;
    /// Gives deliveries of one batch back, and those behind them too, to come again after `delay`, still at the head of
    /// their group. False when a receipt is stale.
    ///
    /// # Errors
    /// Those of [`QueueReceiver`]. A stale receipt is no error.
    async fn reject(&self, receipts: &[Receipt], delay: Duration) -> Result<bool>;
}

/// The dead-letter queue: messages that were put aside after too many attempts, for an operator.
///
/// Guarantees: a dead letter is durable, is never delivered by itself, and does not hold up its group. It stays until it is sent again, or
/// for as long as the adapter keeps messages (SQS: 14 days).
///
/// # Errors
/// Of every method: [`Error::Invalid`](crate::Error::Invalid) when the queue puts nothing aside,
/// [`Error::Unavailable`](crate::Error::Unavailable) when it does not answer, and [`Error::Damaged`](crate::Error::Damaged) for a stored
/// message that cannot be read.
#[async_trait]
pub trait DeadLetterQueue: Send + Sync {
    /// The dead letters, oldest first.
    ///
    /// # Errors
    /// Those of [`DeadLetterQueue`].
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>>;
    /// Sends the dead letters of `group` again, in order, with no attempts used. Returns their number.
    ///
    /// # Errors
    /// Those of [`DeadLetterQueue`]. Some letters may be sent again by then; calling it again sends the rest.
    async fn redrive(&self, group: &str) -> Result<usize>;
}
