//! The queue of functions that only read: it refuses to send.

use async_trait::async_trait;
use ports::{DeadLetter, Delivery, Error, Outgoing, Queue, Receipt, Result};
use std::time::Duration;

/// Sends nothing: its function has no right to.
pub(crate) struct NoQueue;

fn refused<T>() -> Result<T> {
    Err(Error::Invalid("this function takes no commands".into()))
}

#[async_trait]
impl Queue for NoQueue {
    async fn send(&self, _: Vec<Outgoing>) -> Result<()> {
        refused()
    }
    async fn receive(&self, _: usize, _: Duration) -> Result<Vec<Delivery>> {
        refused()
    }
    async fn ack(&self, _: &[Receipt]) -> Result<bool> {
        refused()
    }
    async fn extend(&self, _: &[Receipt], _: Duration) -> Result<bool> {
        refused()
    }
    async fn reject(&self, _: &[Receipt], _: Duration) -> Result<bool> {
        refused()
    }
    async fn waiting(&self, _: &str) -> Result<usize> {
        refused()
    }
    async fn dead_letters(&self, _: usize) -> Result<Vec<DeadLetter>> {
        refused()
    }
    async fn redrive(&self, _: &str) -> Result<usize> {
        refused()
    }
}
