//! A lease of a queue to an invocation: messages that no other receiver sees for a while.

use aws_sdk_sqs::{
    Client,
    types::{ChangeMessageVisibilityBatchRequestEntry, Message},
};
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct Lease {
    client: Client,
    url: String,
    receipts: Arc<[Option<String>]>,
}

impl Lease {
    pub fn of(client: &Client, url: &str, messages: &[Message]) -> Self {
        let receipts = messages.iter().map(|message| message.receipt_handle.clone()).collect();
        Self { client: client.clone(), url: url.to_owned(), receipts }
    }

    /// Whether this is the same one.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.receipts, &other.receipts)
    }

    /// Ends it now: the messages come again.
    pub async fn end(&self) {
        let entries = self.receipts.iter().enumerate().map(|(index, receipt)| {
            let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(index.to_string()).visibility_timeout(0);
            entry.set_receipt_handle(receipt.clone()).build().expect("an entry")
        });
        let change = self.client.change_message_visibility_batch().queue_url(&self.url);
        if let Err(error) = change.set_entries(Some(entries.collect())).send().await {
            tracing::warn!(?error, "messages come again when their lease is over");
        }
    }
}
