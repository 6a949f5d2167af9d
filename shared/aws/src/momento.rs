//! The bus on Momento Topics: channels share a few topics, and each topic with subscribers here has one long-lived
//! subscription.
//!
//! It speaks the protocol itself ([`wire`]) rather than by Momento's own client. That one hides facts that a bus has to know: it swallows
//! discontinuities and heartbeats, asks again without a pause when a subscription breaks or the key is refused, and never gives the place
//! of a dropped subscription back, so that after a few hundred it cannot subscribe at all.

mod connection;
mod listen;
pub mod wire;

use crate::{AwsFault, fanout::Fanout};
use async_trait::async_trait;
use bytes::Bytes;
use connection::MomentoConnection;
use domain::Sha256;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use ports::{Bus, Error, Result, Secret, Subscription};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{sync::watch, task::AbortHandle, time::timeout};

const WHAT: &str = "the bus";
/// The topics that logs share, and those that requests to running actors share. The second kind carries little, so that a worker that
/// listens for one actor's does not receive the streams of all the others.
const LOGS: u32 = 16;
const CONTROLS: u32 = 4;
/// The longest message, in bytes. A longer one goes without its content: look at the log.
const MOST_BYTES: usize = 4096;
/// How long a subscription may take, connecting included.
const SUBSCRIBING: Duration = Duration::from_secs(5);
/// How long it may take while Momento is left alone: a Momento that is back answers at once.
const BRIEFLY: Duration = Duration::from_millis(100);
/// How long a topic may be quiet before a listener tests by a message of its own whether it works. One message is enough for all listeners
/// of it.
const QUIET: Duration = Duration::from_secs(15);

/// The source of the key, asked each time that it is needed: it may have been rotated.
pub type Keys = Arc<dyn Fn() -> BoxFuture<'static, Result<Secret>> + Send + Sync>;

/// A bus on Momento Topics.
///
/// A gap that Momento tells of, or that shows in a topic's numbers, and every new subscription after a broken one, reach the subscribers of
/// all channels of that topic as an empty message. Keys are asked for again when one is refused. While Momento is away, publishing fails
/// within seconds, and so does subscribing to a topic without listeners; for a moment after that, they fail at once.
///
/// A key is the text that Momento's console gives: a token that holds its endpoint, or, for keys that do not, the JSON object `{"api_key":
/// …, "endpoint": …}`.
pub struct MomentoBus {
    shared: Arc<Shared>,
    /// The topics with a subscription, and whether it stands.
    topics: Mutex<HashMap<String, (watch::Receiver<bool>, AbortHandle)>>,
}

/// The parts that the listening tasks share with the bus.
struct Shared {
    connection: MomentoConnection,
    cache: String,
    fanout: Arc<Fanout>,
    quiet: Duration,
}

impl MomentoBus {
    /// In the topics of `cache`, which must exist. It connects when it is first needed.
    pub fn new(cache: impl Into<String>, keys: Keys) -> Self {
        Self::with_quiet(cache, keys, QUIET)
    }

    /// The same, where a topic that was quiet for so long is tried.
    pub fn with_quiet(cache: impl Into<String>, keys: Keys, quiet: Duration) -> Self {
        let (fanout, _) = Fanout::new();
        let shared = Arc::new(Shared { connection: MomentoConnection::new(keys), cache: cache.into(), fanout, quiet });
        Self { shared, topics: Mutex::default() }
    }

    /// Whether the topic's subscription stands; begins it with the first call for that topic.
    fn listening(&self, topic: &str) -> watch::Receiver<bool> {
        let mut topics = self.topics.lock();
        if let Some((stands, _)) = topics.get(topic) {
            return stands.clone();
        }
        let (tell, stands) = watch::channel(false);
        let task = tokio::spawn(self.shared.clone().listen(topic.to_owned(), tell)).abort_handle();
        topics.insert(topic.to_owned(), (stands.clone(), task));
        stands
    }
}

impl Drop for MomentoBus {
    fn drop(&mut self) {
        for (_, task) in self.topics.lock().values() {
            task.abort();
        }
    }
}

#[async_trait]
impl Bus for MomentoBus {
    async fn publish(&self, channel: &str, message: Bytes) -> Result<()> {
        let mut content = wrap(channel, &message)?;
        if content.len() > MOST_BYTES {
            content = wrap(channel, &[])?;
        }
        self.shared.connection.publish(&self.shared.cache, topic(channel), content).await
    }

    async fn subscribe(&self, channel: &str) -> Result<Subscription> {
        let subscription = self.shared.fanout.join(channel);
        let mut stands = self.listening(&topic(channel));
        let cooldown = &self.shared.connection.cooldown;
        let patience = if cooldown.is_on() { BRIEFLY } else { SUBSCRIBING };
        match timeout(patience, stands.wait_for(|stands| *stands)).await {
            Ok(Ok(_)) => Ok(subscription),
            _ => {
                cooldown.begin();
                Err(Error::unavailable(WHAT, AwsFault::unknown("a topic could not be subscribed to in time")))
            }
        }
    }
}

/// The topic that carries a channel.
fn topic(channel: &str) -> String {
    let (kind, count) = if channel.ends_with("/control") { ("control", CONTROLS) } else { ("log", LOGS) };
    let [a, b, c, d, ..] = *Sha256::of(channel.as_bytes()).as_bytes();
    format!("{kind}-{}", u32::from_be_bytes([a, b, c, d]) % count)
}

/// A message with its channel in front.
fn wrap(channel: &str, message: &[u8]) -> Result<Bytes> {
    let length = u16::try_from(channel.len()).map_err(|_| Error::Invalid("a channel of that length".into()))?;
    let mut content = Vec::with_capacity(2 + channel.len() + message.len());
    content.extend(length.to_be_bytes());
    content.extend(channel.as_bytes());
    content.extend(message);
    Ok(content.into())
}

/// The channel and the message; none for a foreign message.
fn unwrap(content: Bytes) -> Option<(String, Bytes)> {
    let (length, _) = content.split_first_chunk::<2>()?;
    let begin = 2 + usize::from(u16::from_be_bytes(*length));
    let channel = std::str::from_utf8(content.get(2..begin)?).ok()?.to_owned();
    Some((channel, content.slice(begin..)))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn channels_share_few_topics_and_come_out_of_them_again() {
        let names = |end: &str| (0..1000).map(|n| topic(&format!("chat/w/{n}{end}"))).collect::<BTreeSet<_>>();
        assert_eq!((names("").len(), names("/control").len()), (16, 4));
        assert!(names("").is_disjoint(&names("/control")));
        assert_eq!(unwrap(wrap("chat/é", b"\0").unwrap()).unwrap(), ("chat/é".to_owned(), Bytes::from_static(b"\0")));
        assert_eq!(unwrap(wrap("", b"").unwrap()).unwrap(), (String::new(), Bytes::new()));
        for broken in [&b""[..], b"\0", b"\0\x05abc", b"\0\x01\xff"] {
            assert_eq!(unwrap(Bytes::from_static(broken)), None, "{broken:?}");
        }
    }
}
