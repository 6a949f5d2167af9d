//! A queue that loses messages: as if somebody had purged it, or as if whoever sends had died.

use async_trait::async_trait;
use ports::{DeadLetter, Delivery, Error, Outgoing, Queue, Receipt, Result};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// What becomes of messages that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mail {
    /// They come.
    Comes,
    /// They are taken, and gone.
    IsLost,
    /// They are not taken.
    IsRefused,
}

/// A queue that does with messages what it is told to.
pub struct Losing {
    inner: Arc<dyn Queue>,
    mail: Mutex<(Mail, usize)>,
}

impl Losing {
    pub fn new(inner: Arc<dyn Queue>) -> Self {
        Self { inner, mail: Mutex::new((Mail::Comes, 0)) }
    }

    /// From now on.
    pub fn set(&self, mail: Mail) {
        self.mail.lock().unwrap().0 = mail;
    }

    /// How many did not come.
    pub fn missed(&self) -> usize {
        self.mail.lock().unwrap().1
    }
}

#[async_trait]
impl Queue for Losing {
    async fn send(&self, messages: Vec<Outgoing>) -> Result<()> {
        let mail = {
            let mut mail = self.mail.lock().unwrap();
            mail.1 += if mail.0 == Mail::Comes { 0 } else { messages.len() };
            mail.0
        };
        match mail {
            Mail::Comes => self.inner.send(messages).await,
            Mail::IsLost => Ok(()),
            Mail::IsRefused => Err(Error::Invalid("nothing is taken".into())),
        }
    }
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
    async fn waiting(&self, lane: &str) -> Result<usize> {
        self.inner.waiting(lane).await
    }
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>> {
        self.inner.dead_letters(limit).await
    }
    async fn redrive(&self, group: &str) -> Result<usize> {
        self.inner.redrive(group).await
    }
}
