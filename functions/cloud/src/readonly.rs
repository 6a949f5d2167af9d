//! What a function that only reads has for a queue, and for a model.

use async_trait::async_trait;
use ports::{
    DeadLetter, Delivery, Error, Model, ModelError, ModelInfo, ModelRequest, ModelStream, Outgoing, Queue, Receipt,
    Result,
};
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

/// Says nothing: nobody asks it.
pub(crate) struct NoModel;

#[async_trait]
impl Model for NoModel {
    async fn stream(&self, _: ModelRequest) -> std::result::Result<ModelStream, ModelError> {
        Err(ModelError::Rejected("this function asks no models".into()))
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}
