//! The feeds of a process, one per actor with watchers.

use crate::{
    cursor::{Cursor, Position, Start},
    feed::Shared,
    frame::LogKind,
    metrics::Metrics,
    options::FeedOptions,
    rendering::Renderings,
    subscription::Subscription,
};
use actor::log::next_number;
use domain::ActorRef;
use ports::{Bus, Table};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The feeds of all watched actors. Cheap to clone; clones share one state.
#[derive(Clone)]
pub struct Feeds(Arc<Shared>);

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
        Self(Arc::new(Shared::new(table, bus, options, metrics, shutdown)))
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

    pub(crate) fn renderings(&self) -> &Renderings {
        &self.0.renderings
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
        let Some(kind) = LogKind::of(actor) else {
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
