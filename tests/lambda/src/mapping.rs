//! An event source mapping: it takes messages off a queue of SQS, gives them to a function in batches, and deletes all but those
//! that the function reports (`ReportBatchItemFailures`). A batch whose invocation failed is left to its visibility time-out.

use crate::{Failure, Function, RecursiveLoop, lease::Lease, lineage::Lineage};
use aws_sdk_sqs::{
    Client,
    types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName},
};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// How a queue feeds a function.
#[derive(Clone, Debug)]
pub struct MappingSettings {
    pub queue_url: String,
    /// At most 10.
    pub batch: i32,
    /// The most invocations at once.
    pub concurrency: usize,
    /// The fate of a batch at the end of a chain that is too long.
    pub recursive_loop: RecursiveLoop,
}

/// A queue that feeds a function, until it is stopped or dropped.
pub struct Mapping {
    stop: CancellationToken,
    polling: tokio::task::JoinHandle<()>,
    dropped: Arc<AtomicUsize>,
}

impl Mapping {
    pub fn start(client: Client, function: Function, settings: MappingSettings) -> Self {
        let (stop, dropped) = (CancellationToken::new(), Arc::<AtomicUsize>::default());
        let polling = tokio::spawn(poll(client, function, settings, stop.clone(), dropped.clone()));
        Self { stop, polling, dropped }
    }

    /// How many batches were dropped because their chain was too long: `RecursiveInvocationsDropped`.
    pub fn dropped(&self) -> usize {
        self.dropped.load(Relaxed)
    }

    /// Takes no more and waits for the invocations that run.
    pub async fn stop(mut self) {
        self.stop.cancel();
        drop((&mut self.polling).await);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn poll(
    client: Client,
    function: Function,
    settings: MappingSettings,
    stop: CancellationToken,
    dropped: Arc<AtomicUsize>,
) {
    let places = Arc::new(Semaphore::new(settings.concurrency));
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        let place = places.clone().acquire_owned().await.expect("never closed");
        let receive = client
            .receive_message()
            .queue_url(&settings.queue_url)
            .max_number_of_messages(settings.batch)
            .wait_time_seconds(1)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .send();
        let received = tokio::select! {
            () = stop.cancelled() => break,
            received = receive => received,
        };
        let messages = match received {
            Ok(received) => received.messages.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(?error, queue = settings.queue_url, "the queue cannot be read");
                // poll: the emulator may not be up again yet
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        if messages.is_empty() {
            continue;
        }
        let (client, function, url) = (client.clone(), function.clone(), settings.queue_url.clone());
        let chain = chain(&messages).entering(&function.settings().name);
        let is_cut =
            settings.recursive_loop == RecursiveLoop::Terminate && chain.is_too_long(&function.settings().name);
        let dropped = dropped.clone();
        running.spawn(async move {
            if is_cut {
                tracing::warn!(function = function.settings().name, "a chain is too long: its messages are dropped");
                delete(&client, &url, &messages).await;
                dropped.fetch_add(1, Relaxed);
            } else {
                feed(&client, &function, &chain, &url, messages).await;
            }
            drop(place);
        });
    }
    while running.join_next().await.is_some() {}
}

/// By the headers of their senders, which SQS keeps.
fn chain(messages: &[Message]) -> Lineage {
    let header = |message| Message::attributes(message)?.get(&MessageSystemAttributeName::AwsTraceHeader);
    Lineage::of(messages.iter().filter_map(header).map(String::as_str))
}

async fn feed(client: &Client, function: &Function, chain: &Lineage, url: &str, messages: Vec<Message>) {
    let event = json!({ "Records": messages.iter().map(|message| record(url, message)).collect::<Vec<_>>() });
    let lease = Lease::of(client, url, &messages);
    function.holds(&lease);
    let answer = function.invoke_in(chain, event.to_string()).await;
    function.holds_no_more(&lease);
    let answer = match answer {
        Ok(answer) => answer,
        Err(failure) => {
            tracing::info!(?failure, function = function.settings().name, "a batch comes again");
            if function.ends_leases() && matches!(failure, Failure::Exited | Failure::TimedOut) {
                lease.end().await;
            }
            return;
        }
    };
    let Some(failed) = failures(&answer) else {
        tracing::warn!(answer = %String::from_utf8_lossy(&answer), "the answer is no batch response; the batch comes again");
        return;
    };
    let comes_again = |message: &Message| failed.contains(message.message_id().unwrap_or_default());
    let (again, done): (Vec<Message>, Vec<Message>) = messages.into_iter().partition(comes_again);
    if !again.is_empty() {
        function.gives_back(Lease::of(client, url, &again));
    }
    delete(client, url, &done).await;
}

async fn delete(client: &Client, url: &str, messages: &[Message]) {
    let entries: Vec<DeleteMessageBatchRequestEntry> = messages
        .iter()
        .enumerate()
        .map(|(index, message)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(index.to_string());
            entry.set_receipt_handle(message.receipt_handle.clone()).build().expect("an entry")
        })
        .collect();
    if entries.is_empty() {
        return;
    }
    if let Err(error) = client.delete_message_batch().queue_url(url).set_entries(Some(entries)).send().await {
        tracing::warn!(?error, "messages were not deleted; they come again");
    }
}

/// The ids in `batchItemFailures`; nothing at all means that nothing failed, and none that the answer makes no sense, which
/// counts as if everything had failed.
fn failures(answer: &[u8]) -> Option<BTreeSet<String>> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let Some(list) = answer.get("batchItemFailures").filter(|list| !list.is_null()) else {
        return (answer.is_null() || answer.is_object()).then(BTreeSet::new);
    };
    list.as_array()?.iter().map(|failure| failure["itemIdentifier"].as_str().map(str::to_owned)).collect()
}

fn record(url: &str, message: &Message) -> Value {
    let attributes: Map<String, Value> = message
        .attributes
        .iter()
        .flatten()
        .map(|(name, value)| (name.as_str().to_owned(), Value::String(value.clone())))
        .collect();
    json!({
        "messageId": message.message_id,
        "receiptHandle": message.receipt_handle,
        "body": message.body,
        "attributes": attributes,
        "messageAttributes": {},
        "md5OfBody": message.md5_of_body,
        "eventSource": "aws:sqs",
        "eventSourceARN": format!("arn:aws:sqs:eu-central-1:000000000000:{}", url.rsplit('/').next().unwrap_or_default()),
        "awsRegion": "eu-central-1",
    })
}
