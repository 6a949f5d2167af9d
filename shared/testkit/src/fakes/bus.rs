//! A bus in memory that may lose, repeat and reorder.

use super::{Fate, Faults};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, channel::mpsc};
use parking_lot::{Mutex, MutexGuard};
use ports::{Bus, Result, Subscription};
use std::collections::HashMap;

const WHAT: &str = "the fake bus";

/// A bus in memory: for each subscriber and message by itself it may lose it, deliver it twice, or deliver it behind the next.
pub struct FakeBus {
    fate: Fate,
    channels: Mutex<HashMap<String, Vec<Subscriber>>>,
}

struct Subscriber {
    to: mpsc::UnboundedSender<Bytes>,
    /// A message that waits for the next one to overtake it. If none comes, it is lost.
    held_back: Option<Bytes>,
}

impl FakeBus {
    /// A bus without channels.
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self { fate: Fate::new(seed, faults), channels: Mutex::default() }
    }

    /// How many subscriptions are alive.
    pub fn subscriptions(&self) -> usize {
        self.lock().values().flatten().filter(|subscriber| !subscriber.to.is_closed()).count()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Subscriber>>> {
        self.channels.lock()
    }
}

#[async_trait]
impl Bus for FakeBus {
    async fn publish(&self, channel: &str, message: Bytes) -> Result<()> {
        self.fate.before(WHAT).await?;
        if let Some(subscribers) = self.lock().get_mut(channel) {
            subscribers.retain(|subscriber| !subscriber.to.is_closed());
            for subscriber in subscribers {
                if self.fate.chance(|faults| faults.bus_lost) {
                    continue;
                }
                if subscriber.held_back.is_none() && self.fate.chance(|faults| faults.bus_reordered) {
                    subscriber.held_back = Some(message.clone());
                    continue;
                }
                let copies = 1 + usize::from(self.fate.chance(|faults| faults.bus_duplicated));
                let messages = std::iter::repeat_n(message.clone(), copies).chain(subscriber.held_back.take());
                // A subscriber that is gone is removed at the next message.
                messages.for_each(|message| drop(subscriber.to.unbounded_send(message)));
            }
        }
        self.fate.after(WHAT, ()).await
    }

    async fn subscribe(&self, channel: &str) -> Result<Subscription> {
        self.fate.before(WHAT).await?;
        let (to, from) = mpsc::unbounded();
        self.lock().entry(channel.to_owned()).or_default().push(Subscriber { to, held_back: None });
        self.fate.after(WHAT, from.boxed()).await
    }
}
