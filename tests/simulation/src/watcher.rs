//! A person who watches a chat through an event stream, and loses the connection now and then.

use crate::world::World;
use domain::{ActorRef, ChatId};
use parking_lot::Mutex;
use std::sync::Arc;
use stream::{Cursor, FeedOptions, Feeds, Start};
use testkit::Random;
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

/// An event as a client got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its `id:`.
    pub number: u64,
    /// Its `event:`.
    pub name: String,
    /// Its `data:`.
    pub data: String,
}

/// A client of one event stream, from the chat's beginning on.
pub struct Watcher {
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

/// The stream server: a process of its own, over the same table and bus.
pub fn feeds(world: &World) -> Feeds {
    let (options, shutdown) = (FeedOptions::default(), CancellationToken::new());
    Feeds::new(world.table.clone(), world.bus.clone(), options, Arc::default(), shutdown)
}

impl Watcher {
    /// Watches `chat`. With `drops` the connection is lost now and then, by these choices.
    pub fn start(feeds: Feeds, world: &World, chat: ChatId, mut drops: Option<Random>) -> Self {
        let seen = Arc::new(Mutex::new(Vec::<Seen>::new()));
        let actor = ActorRef::Chat { workspace: world.workspace, chat };
        let into = seen.clone();
        let task = tokio::spawn(async move {
            loop {
                let last = into.lock().last().map_or(0, |seen| seen.number);
                let Ok(mut stream) = feeds.subscribe(actor, Cursor::After(last), Start::Live).await else {
                    sleep(std::time::Duration::from_millis(50)).await;
                    continue;
                };
                let is_cut = loop {
                    let Some(bytes) = stream.next().await else { break false };
                    into.lock().extend(String::from_utf8_lossy(&bytes).split("\n\n").filter_map(event));
                    if drops.as_mut().is_some_and(|random| random.chance(0.1)) {
                        break true;
                    }
                };
                // A stream that the server ends says when to come back. That of a deleted chat ends again each time.
                if !is_cut {
                    sleep(std::time::Duration::from_secs(2)).await;
                }
            }
        });
        Self { seen, task }
    }

    /// The events that it has got so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    /// The number of the last event that it got; 0 for none.
    pub fn last(&self) -> u64 {
        self.seen.lock().last().map_or(0, |seen| seen.number)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A frame that is an event; comments and the opening are none.
fn event(frame: &str) -> Option<Seen> {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    Some(Seen { number: field("id: ")?.parse().ok()?, name: field("event: ")?, data: field("data: ")? })
}
