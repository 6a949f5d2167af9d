//! The parts that the feeds of a process have together, and the map in which they are found.

use super::Feed;
use crate::{frame::LogKind, metrics::Metrics, options::FeedOptions, rendering::Renderings};
use domain::ActorRef;
use parking_lot::Mutex;
use ports::{Bus, Table};
use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};
use tokio_util::sync::CancellationToken;

/// The parts that every feed needs.
pub(crate) struct Shared {
    pub(crate) table: Arc<dyn Table>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) options: FeedOptions,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) renderings: Renderings,
    /// A feed is found here while its task or a subscription holds it. A hold is only gained under this lock.
    feeds: Mutex<HashMap<ActorRef, Weak<Feed>>>,
}

impl Shared {
    pub(crate) fn new(
        table: Arc<dyn Table>,
        bus: Arc<dyn Bus>,
        options: FeedOptions,
        metrics: Arc<Metrics>,
        shutdown: CancellationToken,
    ) -> Self {
        let (renderings, feeds) = (Renderings::default(), Mutex::default());
        Self { table, bus, options, metrics, shutdown, renderings, feeds }
    }

    /// The feed of an actor: the one that is there, or a new one.
    pub(crate) fn find(self: &Arc<Self>, actor: ActorRef, kind: LogKind) -> Arc<Feed> {
        let mut feeds = self.feeds.lock();
        if let Some(feed) = feeds.get(&actor).and_then(Weak::upgrade) {
            return feed;
        }
        let feed = Arc::new(Feed::new(actor, kind, self.clone()));
        feeds.insert(actor, Arc::downgrade(&feed));
        feed
    }

    /// Takes `feed` out when its task is the only one that holds it.
    pub(super) fn retire(&self, feed: &Arc<Feed>) -> bool {
        let mut feeds = self.feeds.lock();
        let alone = Arc::strong_count(feed) == 1;
        if alone {
            feeds.remove(&feed.watched());
        }
        alone
    }

    /// Forgets a feed that is gone, unless a new one has taken its place.
    pub(super) fn dropped(&self, actor: ActorRef) {
        let mut feeds = self.feeds.lock();
        if feeds.get(&actor).is_some_and(|feed| feed.strong_count() == 0) {
            feeds.remove(&actor);
        }
    }
}
