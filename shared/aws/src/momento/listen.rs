//! One topic's subscription, for as long as the bus is there.

use super::{
    Shared, topic, unwrap,
    wire::{Content, Kind, SubscriptionItem, TopicItem},
    wrap,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tonic::Streaming;

const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a subscription has to last before the next one may follow it at once. A message alone proves nothing: each begins with a heartbeat, also one
/// that breaks at once.
const LASTING: Duration = Duration::from_secs(5);

/// A place in a topic: its page, and the number in it.
type TopicPosition = (u64, u64);

impl Shared {
    /// Subscribes, and again whenever that ends, ever more slowly while nothing comes of it.
    pub(super) async fn listen(self: Arc<Self>, topic: String, stands: watch::Sender<bool>) {
        let (mut pause, mut was_there) = (SHORTEST_PAUSE, false);
        loop {
            match self.connection.subscribe(&self.cache, &topic).await {
                Ok(stream) => {
                    stands.send_replace(true);
                    if was_there {
                        tracing::info!(topic, "the bus is back");
                        self.gap(&topic);
                    }
                    was_there = true;
                    let begun = Instant::now();
                    if self.follow(&topic, stream).await && begun.elapsed() >= LASTING {
                        pause = SHORTEST_PAUSE;
                    }
                    tracing::warn!(topic, "a subscription of the bus ended");
                    stands.send_replace(false);
                }
                Err(error) => {
                    tracing::warn!(topic, error = %ports::with_causes(&error), "the bus cannot be reached")
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Passes on messages until the stream ends. Returns whether any came.
    async fn follow(&self, topic: &str, mut stream: Streaming<SubscriptionItem>) -> bool {
        let (mut heard, mut asked, mut place) = (false, false, None);
        loop {
            let item = match timeout(self.quiet, stream.message()).await {
                Ok(Ok(Some(item))) => item,
                Ok(Ok(None)) => return heard,
                Ok(Err(status)) => {
                    tracing::debug!(topic, %status, "a subscription broke");
                    return heard;
                }
                // Asked, and still nothing: it stands and brings nothing.
                Err(_) if asked => return heard,
                Err(_) => {
                    asked = true;
                    self.ask(topic).await;
                    continue;
                }
            };
            (heard, asked) = (true, false);
            match item.kind {
                Some(Kind::Item(item)) => self.take(topic, item, &mut place),
                Some(Kind::Discontinuity(())) => {
                    place = None;
                    self.gap(topic);
                }
                Some(Kind::Heartbeat(())) | None => {}
            }
        }
    }

    fn take(&self, topic: &str, item: TopicItem, place: &mut Option<TopicPosition>) {
        let here = (item.sequence_page, item.topic_sequence_number);
        let follows = place.is_none_or(|(page, number)| page == here.0 && number.checked_add(1) == Some(here.1));
        *place = Some(here);
        if !follows {
            self.gap(topic);
        }
        if let Some(Content::Binary(content)) = item.value.and_then(|value| value.content)
            && let Some((channel, message)) = unwrap(content)
        {
            self.fanout.deliver(&channel, &message);
        }
    }

    /// A message without a channel, which comes back to all listeners of the topic.
    async fn ask(&self, topic: &str) {
        let asked = async { self.connection.send(&self.cache, topic.to_owned(), wrap("", &[])?).await };
        if let Err(error) = asked.await {
            tracing::debug!(
                topic,
                error = %ports::with_causes(&error),
                "the bus could not be asked whether it is there"
            );
        }
    }

    /// Tells the subscribers of the topic's channels that they may have missed something.
    fn gap(&self, of: &str) {
        self.fanout.gap(|channel| topic(channel) == of);
    }
}
