//! A queue that loses messages: as if it had been purged, as if the sender had died, or as if no message had been sent.

use crate::Queue;
use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use ports::{DeadLetter, DeadLetterQueue, Delivery, Error, QueueMessage, QueueReceiver, QueueSender, Receipt, Result};
use std::{sync::Arc, time::Duration};

/// The fate of a sent message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posting {
    /// It comes.
    Comes,
    /// It is taken, and gone.
    IsLost,
    /// It is not taken, and neither are messages that are sent with it.
    IsRefused,
}

/// A queue that treats messages as it is told, and otherwise behaves as the one behind it.
pub struct LosingQueue {
    inner: Arc<dyn Queue>,
    state: Mutex<State>,
}

struct State {
    decide: Box<dyn FnMut(&QueueMessage) -> Posting + Send>,
    missed: usize,
}

impl LosingQueue {
    /// In front of this one; everything comes.
    pub fn new(inner: Arc<dyn Queue>) -> Self {
        let state = State { decide: Box::new(|_| Posting::Comes), missed: 0 };
        Self { inner, state: Mutex::new(state) }
    }

    /// Sets the fate of every message from now on.
    pub fn set(&self, fate: Posting) {
        self.decide(move |_| fate);
    }

    /// The same, by the message.
    pub fn decide(&self, decide: impl FnMut(&QueueMessage) -> Posting + Send + 'static) {
        self.state().decide = Box::new(decide);
    }

    /// How many did not come.
    pub fn missed(&self) -> usize {
        self.state().missed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Applies their fates to these messages, and returns those to send.
    fn pass(&self, messages: Vec<QueueMessage>) -> Result<Vec<QueueMessage>> {
        let mut state = self.state();
        let sent = messages.len();
        let fates: Vec<Posting> = messages.iter().map(|message| (state.decide)(message)).collect();
        if fates.contains(&Posting::IsRefused) {
            state.missed += sent;
            return Err(Error::Invalid("nothing is taken".into()));
        }
        let comes = messages.into_iter().zip(fates).filter(|(_, fate)| *fate == Posting::Comes);
        let comes: Vec<QueueMessage> = comes.map(|(message, _)| message).collect();
        state.missed += sent - comes.len();
        Ok(comes)
    }
}

#[async_trait]
impl QueueSender for LosingQueue {
    async fn send(&self, messages: Vec<QueueMessage>) -> Result<()> {
        let messages = self.pass(messages)?;
        if messages.is_empty() { Ok(()) } else { self.inner.send(messages).await }
    }
    async fn waiting(&self, lane: &str) -> Result<usize> {
        self.inner.waiting(lane).await
    }
}

#[async_trait]
impl QueueReceiver for LosingQueue {
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<Delivery>> {
        self.inner.receive(max, visibility).await
    }
    async fn ack(&self, receipts: &[Receipt]) -> Result<bool> {
        self.inner.ack(receipts).await
    }
    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Result<bool> {
        self.inner.extend(receipts, visibility).await
    }
    async fn reject(&self, receipts: &[Receipt], delay: Duration) -> Result<bool> {
        self.inner.reject(receipts, delay).await
    }
}

#[async_trait]
impl DeadLetterQueue for LosingQueue {
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>> {
        self.inner.dead_letters(limit).await
    }
    async fn redrive(&self, group: &str) -> Result<usize> {
        self.inner.redrive(group).await
    }
}
