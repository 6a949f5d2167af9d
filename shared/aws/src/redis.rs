//! The bus on Redis or Valkey: one connection that publishes, and one that listens to every channel with subscribers here.

use crate::{AwsFault, cooldown::Cooldown, fanout::Fanout};
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use ports::{Bus, Error, Result, Subscription};
use redis::{
    AsyncConnectionConfig, Client, RedisError, RedisResult,
    aio::{MultiplexedConnection, PubSub, PubSubSink},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, interval_at, sleep, timeout},
};

const WHAT: &str = "the bus";
/// How long Redis may take to answer, and to take a connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long Redis may take for one message. The publisher has a step to go on with.
const PROMPTLY: Duration = Duration::from_secs(1);
/// After so long without a message the publisher's connection is replaced: Lambda freezes processes for minutes, and the network in between
/// drops idle connections silently (AWS's after 350 s).
const IDLE: Duration = Duration::from_secs(30);
/// How long a subscription may take, reconnecting included.
const SUBSCRIBING: Duration = Duration::from_secs(5);
/// How often a silent connection is asked whether it is there: a firewall that forgot it says nothing by itself.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long a subscription may take while it is left alone: a Redis that is back answers at once.
const BRIEFLY: Duration = Duration::from_millis(100);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Channels in one command.
const TOGETHER: usize = 1000;

/// A bus on Redis or Valkey.
///
/// It reconnects by itself, ever more slowly, and listens again to every channel that has subscribers. Each of them then gets an empty
/// message: something may have been missed, look at the log. While Redis is away, publishing fails within seconds, and so does subscribing
/// to a channel without listeners; for a moment after that, they fail at once.
pub struct RedisBus {
    publisher: Publisher,
    cooldown: Cooldown,
    fanout: Arc<Fanout>,
    listener: mpsc::UnboundedSender<Listen>,
}

/// The connection that publishes. It does not heal by itself: a message that fails on one that was kept is tried once more on a
/// new one.
struct Publisher {
    client: Client,
    kept: Mutex<Option<KeptConnection>>,
}

#[derive(Clone)]
struct KeptConnection {
    connection: MultiplexedConnection,
    /// Its number, so that many messages that fail on it together make one new connection.
    number: u64,
    used: Instant,
}

impl Publisher {
    async fn publish(&self, channel: &str, message: &[u8]) -> RedisResult<()> {
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(channel).arg(message);
        let (mut connection, number, is_new) = self.connection(None).await?;
        match publish.exec_async(&mut connection).await {
            Err(_) if !is_new => {
                let (mut connection, ..) = self.connection(Some(number)).await?;
                publish.exec_async(&mut connection).await
            }
            outcome => outcome,
        }
    }

    /// The one that is kept, unless it was idle for long or is the one that has failed; else a new one. With its number, and whether
    /// it is new.
    async fn connection(&self, failed: Option<u64>) -> RedisResult<(MultiplexedConnection, u64, bool)> {
        let mut kept = self.kept.lock().await;
        let now = Instant::now();
        if let Some(kept) = kept.as_mut()
            && failed != Some(kept.number)
            && now - kept.used < IDLE
        {
            kept.used = now;
            return Ok((kept.connection.clone(), kept.number, false));
        }
        let number = kept.take().map_or(0, |kept| kept.number + 1).max(failed.map_or(0, |failed| failed + 1));
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(PATIENCE)).set_response_timeout(Some(PROMPTLY));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        *kept = Some(KeptConnection { connection: connection.clone(), number, used: now });
        Ok((connection, number, true))
    }
}

/// Asks the listener for a channel; answered when Redis has confirmed it.
struct Listen {
    channel: String,
    confirmed: oneshot::Sender<()>,
}

impl RedisBus {
    /// With the Redis at `address` (`redis://…` or `rediss://…`), which is connected to when it is first needed. Must be called
    /// in a runtime of tokio.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a text that is no address of a Redis. It does not quote the address, which may hold a password.
    pub fn new(address: &str) -> Result<Self> {
        // Not with the address, which may hold a password.
        let client = Client::open(address).map_err(|_| Error::Invalid("this is no address of a Redis".into()))?;
        let publisher = Publisher { client: client.clone(), kept: Mutex::new(None) };
        let (fanout, abandoned) = Fanout::new();
        let (listener, wanted) = mpsc::unbounded_channel();
        let listening = Listener { client, fanout: fanout.clone(), wanted, abandoned, waiting: HashMap::new() };
        tokio::spawn(listening.run());
        Ok(Self { publisher, cooldown: Cooldown::default(), fanout, listener })
    }
}

#[async_trait]
impl Bus for RedisBus {
    async fn publish(&self, channel: &str, message: Bytes) -> Result<()> {
        if self.cooldown.is_on() {
            return Err(Error::unavailable(WHAT, AwsFault::unknown("it did not answer a moment ago")));
        }
        self.publisher.publish(channel, &message).await.map_err(|error| {
            self.cooldown.begin();
            unavailable(error)
        })
    }

    async fn subscribe(&self, channel: &str) -> Result<Subscription> {
        let subscription = self.fanout.join(channel);
        let (confirmed, wait) = oneshot::channel();
        // The listener ends with the last sender, which this is not.
        _ = self.listener.send(Listen { channel: channel.to_owned(), confirmed });
        let patience = if self.cooldown.is_on() { BRIEFLY } else { SUBSCRIBING };
        match timeout(patience, wait).await {
            Ok(Ok(())) => Ok(subscription),
            _ => {
                self.cooldown.begin();
                Err(Error::unavailable(WHAT, AwsFault::unknown("it did not confirm a subscription in time")))
            }
        }
    }
}

fn unavailable(error: RedisError) -> Error {
    Error::unavailable(WHAT, error)
}

/// The connection that listens.
struct Listener {
    client: Client,
    fanout: Arc<Fanout>,
    wanted: mpsc::UnboundedReceiver<Listen>,
    abandoned: mpsc::UnboundedReceiver<String>,
    /// The subscriptions that wait for a channel to be confirmed, across connections.
    waiting: HashMap<String, Vec<oneshot::Sender<()>>>,
}

enum Ended {
    /// The connection is gone, or says nothing.
    Broken,
    /// The bus is.
    Dropped,
}

impl Listener {
    async fn run(mut self) {
        // There are no subscriptions yet: a process that only publishes makes no second connection.
        let Some(first) = self.wanted.recv().await else { return };
        self.wait_for(first);
        let mut pause = SHORTEST_PAUSE;
        let mut was_connected = false;
        loop {
            match timeout(PATIENCE, self.client.get_async_pubsub()).await {
                Ok(Ok(connection)) => {
                    if was_connected {
                        tracing::info!("the bus is back");
                    }
                    if matches!(self.listen(connection, was_connected, &mut pause).await, Ended::Dropped) {
                        return;
                    }
                    was_connected = true;
                    tracing::warn!("the connection to the bus broke");
                }
                Ok(Err(error)) => tracing::warn!(error = %ports::with_causes(&error), "the bus cannot be reached"),
                Err(_) => tracing::warn!("the bus does not answer"),
            }
            if self.wanted.is_closed() {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Listens on one connection until it breaks.
    async fn listen(&mut self, connection: PubSub, may_have_missed: bool, pause: &mut Duration) -> Ended {
        let (mut redis, mut messages) = connection.split();
        let channels = self.fanout.channels();
        let mut listening: HashSet<String> = HashSet::new();
        for some in channels.chunks(TOGETHER) {
            if !answered(redis.subscribe(some)).await {
                return Ended::Broken;
            }
            for channel in some {
                self.confirm(channel);
            }
        }
        listening.extend(channels);
        if may_have_missed {
            self.fanout.gap(|_| true);
        }
        let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        loop {
            let is_alive = tokio::select! {
                message = messages.next() => match message {
                    Some(message) => {
                        *pause = SHORTEST_PAUSE;
                        let content = Bytes::copy_from_slice(message.get_payload_bytes());
                        self.fanout.deliver(message.get_channel_name(), &content);
                        true
                    }
                    None => false,
                },
                wanted = self.wanted.recv() => match wanted {
                    None => return Ended::Dropped,
                    Some(wanted) => {
                        let channel = wanted.channel.clone();
                        self.wait_for(wanted);
                        self.begin(&mut redis, &mut listening, channel).await
                    }
                },
                Some(channel) = self.abandoned.recv() => {
                    // Somebody may have come since; then it is still listened to.
                    let is_idle = !self.fanout.has(&channel) && listening.remove(&channel);
                    !is_idle || answered(redis.unsubscribe(&channel)).await
                }
                _ = heartbeat.tick() => {
                    let is_alive = answered(redis.ping::<redis::Value>()).await;
                    if is_alive {
                        *pause = SHORTEST_PAUSE;
                    }
                    is_alive
                }
            };
            if !is_alive {
                return Ended::Broken;
            }
        }
    }

    async fn begin(&mut self, redis: &mut PubSubSink, listening: &mut HashSet<String>, channel: String) -> bool {
        if !listening.contains(&channel) {
            if !answered(redis.subscribe(&channel)).await {
                return false;
            }
            listening.insert(channel.clone());
        }
        self.confirm(&channel);
        true
    }

    fn wait_for(&mut self, wanted: Listen) {
        self.waiting.entry(wanted.channel).or_default().push(wanted.confirmed);
    }

    /// A subscription that gave up waiting does not hear it.
    fn confirm(&mut self, channel: &str) {
        for waiting in self.waiting.remove(channel).into_iter().flatten() {
            _ = waiting.send(());
        }
    }
}

async fn answered<T>(request: impl Future<Output = std::result::Result<T, RedisError>>) -> bool {
    matches!(timeout(PATIENCE, request).await, Ok(Ok(_)))
}
