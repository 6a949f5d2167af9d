//! The bus: pub/sub of short messages. Lossy by contract: the log is the truth, the bus is a hint.

use crate::Result;
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

/// The messages of one channel from the subscription on. An empty one, which is never published, says that some may have been missed: a
/// follower of a log then reads it. Ends when the bus is gone.
pub type Subscription = BoxStream<'static, Bytes>;

/// A bus.
///
/// Guarantees: publishing never waits for a subscriber; a subscriber gets messages published after `subscribe` returned.
///
/// Not promised: that each message arrives, arrives once, or arrives in order. A subscriber that is too slow loses messages.
#[async_trait]
pub trait Bus: Send + Sync {
    /// Sends `message` to all subscribers of `channel`.
    ///
    /// # Errors
    /// [`Error::Unavailable`](crate::Error::Unavailable) when the bus does not take the message; [`Error::Invalid`](crate::Error::Invalid)
    /// for a channel name that it cannot have.
    async fn publish(&self, channel: &str, message: Bytes) -> Result<()>;
    /// Listens to `channel`.
    ///
    /// # Errors
    /// [`Error::Unavailable`](crate::Error::Unavailable) when the bus does not confirm the subscription in time.
    async fn subscribe(&self, channel: &str) -> Result<Subscription>;
}
