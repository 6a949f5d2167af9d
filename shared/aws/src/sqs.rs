//! The queue on SQS.
//!
//! Commands wait in a FIFO queue, a message group for each actor. Delays of up to 15 minutes wait in a standard queue, longer ones in
//! one-time schedules that send there; the timer sends on due messages. All of them carry the whole [`QueueMessage`].
//!
//! In Lambda this adapter does not receive: Lambda does, and hands records to [`SqsQueue::adopt`], after which they are settled here like
//! received ones, or by the function's answer.

mod dead_letters;
mod delays;
mod in_flight;
mod message;
mod poll;

use crate::fault::{AwsFault, unavailable};
use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::{
    Client,
    types::{
        BatchResultErrorEntry, ChangeMessageVisibilityBatchRequestEntry, DeleteMessageBatchRequestEntry,
        QueueAttributeName, SendMessageBatchRequestEntry,
    },
};
use dead_letters::Aside;
use delays::Schedules;
use in_flight::InFlight;
use parking_lot::{Mutex, MutexGuard};
use ports::{
    Clock, DeadLetter, DeadLetterQueue, Delivery, Error, QueueMessage, QueueReceiver, QueueSender, Receipt, Result,
    validate,
};
use std::{
    collections::HashSet,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};
use tokio::{
    sync::{Notify, OnceCell},
    time::Instant,
};

pub use message::{Due, delivery, due, outgoing};

const WHAT: &str = "the queue";
/// The most entries of one request.
const BATCH: usize = 10;
/// How often an entry is sent that SQS could not take, and how long to wait before the second time; each wait is twice as long as the one
/// before.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// The longest that SQS keeps a message invisible.
const LONGEST_VISIBILITY: Duration = Duration::from_secs(12 * 60 * 60);
/// The attribute of a record with its message group.
const GROUP: &str = "MessageGroupId";
/// Why a record is not adopted that could be read.
const BEHIND: &str = "a message before it in its group cannot be read";
/// How long a count of waiting messages is cached. Its callers need only an estimate.
const COUNT_IS_GOOD_FOR: Duration = Duration::from_secs(5);

/// The names of the queue's parts.
#[derive(Clone, Debug)]
pub struct QueueNames {
    /// The URL of the FIFO queue. Its redrive policy names the dead-letter queue.
    pub queue_url: String,
    /// The URL of the standard queue for delays.
    pub delay_queue_url: String,
    /// Its ARN.
    pub delay_queue_arn: String,
    /// The group of schedules.
    pub scheduler_group: String,
    /// The role in which schedules send to the delay queue.
    pub scheduler_role_arn: String,
}

/// The queue on SQS.
///
/// Details that the port leaves open: every delivery counts as an attempt; a delayed message comes when it is due, behind the messages that
/// wait in its group by then; a message that has used up its attempts is put aside at the next request for messages. `send` needs a request
/// for ten messages, and SQS takes each message of a request or not: those that it could not take are sent again, and then they are behind
/// the others. An error may come after some messages were taken; to send all of them again has no effect for those, within five minutes.
pub struct SqsQueue(Arc<Inner>);

struct Inner {
    client: Client,
    names: QueueNames,
    clock: Arc<dyn Clock>,
    schedules: Schedules,
    aside: OnceCell<Aside>,
    in_flight: Mutex<InFlight>,
    /// Something in `in_flight` may have its turn now, or a poll has ended.
    moved: Notify,
    /// Calls of `receive` that wait, and requests for messages that are under way: those outlive a call that is dropped.
    receivers: AtomicUsize,
    polls: AtomicUsize,
    counted: Mutex<Option<(Instant, usize)>>,
}

impl SqsQueue {
    /// With a client of SQS. The one for schedules is made from `sdk` with the first message that needs it.
    pub fn new(client: Client, sdk: SdkConfig, names: QueueNames, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            client,
            names,
            clock,
            schedules: Schedules::new(sdk),
            aside: OnceCell::new(),
            in_flight: Mutex::default(),
            moved: Notify::new(),
            receivers: AtomicUsize::new(0),
            polls: AtomicUsize::new(0),
            counted: Mutex::new(None),
        }))
    }

    /// Takes the records of a Lambda event as the messages in flight, in place of all others: a function has one batch at a time. Their
    /// receipts can then be settled, extended and rejected as if they had been received.
    ///
    /// # Errors
    /// A record that cannot be read is `Damaged` at its place, as of [`delivery`], and those behind it in its group are `Unavailable`: they
    /// would overtake it. All of these are to be [given back](Self::give_back) and reported as failed, so that they come again in order.
    pub fn adopt(&self, records: &[SqsMessage]) -> Vec<Result<Delivery>> {
        let mut stopped: HashSet<&str> = HashSet::new();
        let deliveries: Vec<Result<Delivery>> = records
            .iter()
            .map(|record| {
                let group = record.attributes.get(GROUP).map(String::as_str);
                match delivery(record) {
                    Ok(_) if group.is_some_and(|group| stopped.contains(group)) => {
                        Err(Error::unavailable(WHAT, BEHIND))
                    }
                    Err(error) => {
                        stopped.extend(group);
                        Err(error)
                    }
                    read => read,
                }
            })
            .collect();
        let now = Instant::now();
        let adopted = deliveries.iter().flatten().cloned().collect();
        // Only SQS knows how long they are invisible. It refuses late requests.
        self.0.in_flight().adopt(adopted, now + LONGEST_VISIBILITY, now);
        deliveries
    }

    /// Gives records of a Lambda event back that were not [adopted](Self::adopt): they come again after `delay`, in their order. Lambda itself
    /// leaves them to the time-out of the queue, as long as a function may run, and SQS keeps their groups back until then.
    ///
    /// # Errors
    /// `Unavailable` when SQS does not answer, throttles or refuses. Some of them may have been given back then.
    pub async fn give_back(&self, records: &[&SqsMessage], delay: Duration) -> Result<()> {
        // The last one first, as in `reject`.
        let handles = records.iter().rev().filter_map(|record| record.receipt_handle.clone());
        let receipts: Vec<Receipt> = handles.map(Receipt).collect();
        let delay = delay.min(LONGEST_VISIBILITY);
        self.0.change_visibility(&self.0.names.queue_url, &receipts, delay).await.map(drop)
    }
}

#[async_trait]
impl QueueSender for SqsQueue {
    async fn send(&self, messages: Vec<QueueMessage>) -> Result<()> {
        validate::messages(&messages)?;
        let now = self.0.clock.now();
        let (mut at_once, mut soon, mut later) = (Vec::new(), Vec::new(), Vec::new());
        // All of them before the first request, so that an invalid message keeps the others back.
        for message in messages {
            match due(&message, now) {
                Due::Now => at_once.push(entry_now(&message, None)?),
                Due::Delay(delay) => soon.push(entry_after(&message, delay)?),
                Due::Schedule(at) => later.push((delays::to_the_second(at)?, message)),
            }
        }
        for (at, message) in &later {
            self.0.schedules.make(&self.0.names, message, at).await?;
        }
        self.0.send_entries(&self.0.names.delay_queue_url, soon).await?;
        self.0.send_entries(&self.0.names.queue_url, at_once).await
    }

    async fn waiting(&self, _lane: &str) -> Result<usize> {
        let counted = *self.0.counted.lock();
        if let Some((at, count)) = counted.filter(|(at, _)| at.elapsed() < COUNT_IS_GOOD_FOR) {
            tracing::trace!(age_ms = at.elapsed().as_millis(), count, "the queue was counted before");
            return Ok(count);
        }
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let request = self.0.client.get_queue_attributes().queue_url(&self.0.names.queue_url);
        let answer = request.attribute_names(name.clone()).send().await.map_err(|error| unavailable(WHAT, &error))?;
        let count = answer.attributes().and_then(|attributes| attributes.get(&name)?.parse().ok());
        let count = count.ok_or_else(|| Error::Damaged("SQS does not say how many messages wait".into()))?;
        *self.0.counted.lock() = Some((Instant::now(), count));
        Ok(count)
    }
}

#[async_trait]
impl QueueReceiver for SqsQueue {
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<Delivery>> {
        self.0.receive(max, visibility).await
    }

    async fn ack(&self, receipts: &[Receipt]) -> Result<bool> {
        let out = self.0.in_flight().out(receipts, Instant::now());
        let deleted = self.0.delete(&self.0.names.queue_url, &out).await?;
        self.0.in_flight().settle(&out);
        self.0.moved.notify_waiters();
        Ok(deleted == receipts.len())
    }

    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Result<bool> {
        let now = Instant::now();
        let (out, whole) = {
            let in_flight = self.0.in_flight();
            let out = in_flight.out(receipts, now);
            (out.len(), in_flight.batches(&out))
        };
        let visibility = visibility.min(LONGEST_VISIBILITY);
        let kept = self.0.change_visibility(&self.0.names.queue_url, &whole, visibility).await?;
        self.0.in_flight().keep(&kept, now + visibility);
        Ok(out == receipts.len() && receipts.iter().all(|receipt| kept.contains(receipt)))
    }

    async fn reject(&self, receipts: &[Receipt], delay: Duration) -> Result<bool> {
        let now = Instant::now();
        let (out, mut back) = {
            let mut in_flight = self.0.in_flight();
            (in_flight.out(receipts, now), in_flight.give_back(receipts, now))
        };
        // The last one first: the group stays locked until the first one is back.
        back.reverse();
        let given = self.0.change_visibility(&self.0.names.queue_url, &back, delay.min(LONGEST_VISIBILITY)).await?;
        self.0.moved.notify_waiters();
        Ok(out.len() == receipts.len() && receipts.iter().all(|receipt| given.contains(receipt)))
    }
}

#[async_trait]
impl DeadLetterQueue for SqsQueue {
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>> {
        self.0.look_aside(limit).await
    }

    async fn redrive(&self, group: &str) -> Result<usize> {
        self.0.send_again(group).await
    }
}

impl Inner {
    fn in_flight(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock()
    }

    /// To their groups, in order. `again` tells a message that was sent before from its repetition.
    async fn send_now(&self, messages: Vec<(QueueMessage, Option<String>)>) -> Result<()> {
        let entries = messages.iter().map(|(message, again)| entry_now(message, again.as_deref()));
        self.send_entries(&self.names.queue_url, entries.collect::<Result<_>>()?).await
    }

    /// One request for ten, or for as many as fit into one.
    async fn send_entries(&self, url: &str, entries: Vec<SizedEntry>) -> Result<()> {
        let mut rest = entries.into_iter().peekable();
        while rest.peek().is_some() {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while let Some((entry, size)) = rest
                .next_if(|(_, size)| batch.len() < BATCH && (batch.is_empty() || bytes + size <= message::MOST_BYTES))
            {
                let entry = entry.id(batch.len().to_string()).build();
                batch.push(entry.map_err(|error| Error::Invalid(error.to_string()))?);
                bytes += size;
            }
            self.send_batch(url, batch).await?;
        }
        Ok(())
    }

    /// One request, and others for the entries that SQS could not take.
    async fn send_batch(&self, url: &str, mut batch: Vec<SendMessageBatchRequestEntry>) -> Result<()> {
        let mut tries = 1;
        loop {
            let request = self.client.send_message_batch().queue_url(url).set_entries(Some(batch.clone()));
            let answer = request.send().await.map_err(|error| unavailable(WHAT, &error))?;
            let failed = answer.failed();
            let refused = failed.iter().find(|failed| fault(failed).class == crate::Class::Refused);
            match (refused, failed.first()) {
                (_, None) => return Ok(()),
                (Some(failed), _) => return Err(fault(failed).into_error(WHAT)),
                (None, Some(failed)) if tries == TRIES => return Err(fault(failed).into_error(WHAT)),
                (None, Some(_)) => {}
            }
            batch.retain(|entry| failed.iter().any(|failed| failed.id() == entry.id()));
            tracing::warn!(count = batch.len(), "messages are sent again that SQS could not take");
            tokio::time::sleep(PAUSE * 2_u32.pow(tries - 1)).await;
            tries += 1;
        }
    }

    /// Deletes messages; how many were still ours to delete.
    async fn delete(&self, url: &str, receipts: &[Receipt]) -> Result<usize> {
        let mut deleted = 0;
        for some in receipts.chunks(BATCH) {
            let entries = some.iter().enumerate().map(|(position, receipt)| {
                DeleteMessageBatchRequestEntry::builder().id(position.to_string()).receipt_handle(&receipt.0).build()
            });
            let entries = entries.collect::<std::result::Result<Vec<_>, _>>();
            let entries = entries.map_err(|error| Error::Invalid(error.to_string()))?;
            let request = self.client.delete_message_batch().queue_url(url).set_entries(Some(entries));
            let answer = request.send().await.map_err(|error| unavailable(WHAT, &error))?;
            stale_or(answer.failed())?;
            deleted += answer.successful().len();
        }
        Ok(deleted)
    }

    /// Makes messages invisible from now for a time; those that were still ours.
    async fn change_visibility(&self, url: &str, receipts: &[Receipt], visibility: Duration) -> Result<Vec<Receipt>> {
        let mut changed = Vec::new();
        for some in receipts.chunks(BATCH) {
            let entries = some.iter().enumerate().map(|(position, receipt)| {
                let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(position.to_string());
                entry.receipt_handle(&receipt.0).visibility_timeout(seconds(visibility)).build()
            });
            let entries = entries.collect::<std::result::Result<Vec<_>, _>>();
            let entries = entries.map_err(|error| Error::Invalid(error.to_string()))?;
            let request = self.client.change_message_visibility_batch().queue_url(url).set_entries(Some(entries));
            let answer = request.send().await.map_err(|error| unavailable(WHAT, &error))?;
            stale_or(answer.failed())?;
            let position = |id: &str| some.get(id.parse::<usize>().ok()?).cloned();
            changed.extend(answer.successful().iter().filter_map(|entry| position(entry.id())));
        }
        Ok(changed)
    }
}

/// An entry that lacks its id, and its size.
type SizedEntry = (aws_sdk_sqs::types::builders::SendMessageBatchRequestEntryBuilder, usize);

/// For the queue of its group. `again` tells a message that was sent before from its repetition.
fn entry_now(message: &QueueMessage, again: Option<&str>) -> Result<SizedEntry> {
    entry(message, |entry| {
        entry
            .message_group_id(message::group_id(&message.group))
            .message_deduplication_id(message::identity(message, again))
    })
}

/// For the delay queue.
fn entry_after(message: &QueueMessage, delay: Duration) -> Result<SizedEntry> {
    entry(message, |entry| entry.delay_seconds(i32::try_from(delay.as_secs()).unwrap_or(i32::MAX)))
}

fn entry(
    message: &QueueMessage,
    with: impl FnOnce(
        aws_sdk_sqs::types::builders::SendMessageBatchRequestEntryBuilder,
    ) -> aws_sdk_sqs::types::builders::SendMessageBatchRequestEntryBuilder,
) -> Result<SizedEntry> {
    let body = message::write(message);
    if body.len() > message::MOST_BYTES {
        let (most, size) = (message::MOST_BYTES, body.len());
        return Err(Error::Invalid(format!("a message has at most {most} bytes in SQS, not {size}")));
    }
    let size = body.len();
    Ok((with(SendMessageBatchRequestEntry::builder().message_body(body)), size))
}

fn fault(failed: &BatchResultErrorEntry) -> AwsFault {
    AwsFault::coded(failed.code(), failed.message().unwrap_or_default(), failed.sender_fault())
}

/// A receipt that SQS does not take is stale, which is an answer; anything else is not.
fn stale_or(failed: &[BatchResultErrorEntry]) -> Result<()> {
    let is_stale = |failed: &BatchResultErrorEntry| fault(failed).class == crate::Class::Refused;
    failed.iter().find(|failed| !is_stale(failed)).map_or(Ok(()), |failed| Err(fault(failed).into_error(WHAT)))
}

/// Whole seconds, rounded up, as SQS counts visibility.
fn seconds(time: Duration) -> i32 {
    i32::try_from(time.min(LONGEST_VISIBILITY).as_millis().div_ceil(1000)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
