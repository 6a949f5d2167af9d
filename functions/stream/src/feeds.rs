//! The feeds of a process, one per actor with watchers.

use crate::{
    cursor::{Cursor, Position, Start},
    feed::Feed,
    frame::Kind,
    lock,
    metrics::Metrics,
    options::FeedOptions,
    subscription::Subscription,
};
use actor::log::next_number;
use domain::ActorRef;
use ports::{Bus, Table};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};
use tokio_util::sync::CancellationToken;

/// The feeds of all watched actors. Cheap to clone; clones share one state.
#[derive(Clone)]
pub struct Feeds(Arc<Shared>);

/// The parts that every feed needs.
pub(crate) struct Shared {
    pub(crate) table: Arc<dyn Table>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) options: FeedOptions,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) shutdown: CancellationToken,
    /// A feed is found here while its task or a subscription holds it. A hold is only gained under this lock.
    feeds: Mutex<HashMap<ActorRef, Weak<Feed>>>,
}

impl Feeds {
    /// Feeds over the log in `table` and the hints of `bus`. Cancelling `shutdown` ends every stream, each with a hint when
    /// to come back, spread over some seconds so that not all do at once.
    pub fn new(
        table: Arc<dyn Table>,
        bus: Arc<dyn Bus>,
        options: FeedOptions,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) -> Self {
        Self(Arc::new(Shared { table, bus, options, metrics, shutdown, feeds: Mutex::default() }))
    }

    /// The counters that this counts in.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    pub(crate) fn options(&self) -> &FeedOptions {
        &self.0.options
    }

    pub(crate) fn table(&self) -> &Arc<dyn Table> {
        &self.0.table
    }

    pub(crate) fn bus(&self) -> &Arc<dyn Bus> {
        &self.0.bus
    }

    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }

    /// A stream of the events of `actor` after `cursor`; without a cursor of use, from `start` on. A cursor that is unknown
    /// or too old is no error: the stream then begins with a `reset` event.
    ///
    /// # Errors
    /// [`ports::Error::Unavailable`] when the table does not answer, and [`ports::Error::Damaged`] when the log cannot be read. The bus is
    /// not needed: without it the feed looks at the log at every beat. [`ports::Error::Invalid`] for an evaluation, which has no events.
    pub async fn subscribe(&self, actor: ActorRef, cursor: Cursor, start: Start) -> ports::Result<Subscription> {
        let Some(kind) = Kind::of(actor) else {
            return Err(ports::Error::Invalid(format!("{actor} has no events")));
        };
        let feed = self.0.find(actor, kind);
        let (oldest, mut next) = feed.start().await?;
        if matches!(cursor, Cursor::After(after) if after >= next) {
            // Beyond the last event that this feed has heard of; but the bus may be late, and another server may have been faster.
            next = next_number(&*self.0.table, feed.actor()).await?.max(next);
        }
        Ok(Subscription::new(feed, Position::resolve(cursor, start, oldest, next)))
    }
}

impl Shared {
    fn find(self: &Arc<Self>, actor: ActorRef, kind: Kind) -> Arc<Feed> {
        let mut feeds = lock(&self.feeds);
        if let Some(feed) = feeds.get(&actor).and_then(Weak::upgrade) {
            return feed;
        }
        let feed = Arc::new(Feed::new(actor, kind, self.clone()));
        feeds.insert(actor, Arc::downgrade(&feed));
        feed
    }

    /// Takes `feed` out when its task is the only one that holds it.
    pub(crate) fn retire(&self, feed: &Arc<Feed>) -> bool {
        let mut feeds = lock(&self.feeds);
        let alone = Arc::strong_count(feed) == 1;
        if alone {
            feeds.remove(&feed.watched());
        }
        alone
    }

    /// Forgets a feed that is gone, unless a new one has taken its place.
    pub(crate) fn dropped(&self, actor: ActorRef) {
        let mut feeds = lock(&self.feeds);
        if feeds.get(&actor).is_some_and(|feed| feed.strong_count() == 0) {
            feeds.remove(&actor);
        }
    }
}
