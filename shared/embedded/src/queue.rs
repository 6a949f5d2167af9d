//! The queue: durable messages in SQLite, deliveries in memory.
//!
//! A message is on the disk when `send` returns. Later changes are not waited for: `receive` and `ack` change memory and leave a note for
//! the writer, which writes it with the next commit, or alone after a few milliseconds. So a power cut or a SIGKILL right after an `ack`
//! brings the message back, as the contract allows. `receive` also notes the attempt in a file beside the store (`attempts.rs`), which
//! the next opening reads: only a power cut forgets it. So a message that ends the process as soon as it is handed over is counted all the same.
//! After a restart nothing is in flight.
//!
//! There is no polling: a waiting `receive` sleeps until it is woken or until the next message is due.

use crate::{
    attempts::Attempts,
    mailbox::{Mailbox, TakenMessage},
    messages::{self, MessageContent},
    readers::{Readers, failed},
    request::Request,
    shared_mailbox::SharedMailbox,
    writer::Writer,
};
use async_trait::async_trait;
use ports::{
    Clock, DeadLetter, DeadLetterQueue, Delivery, Error, QueueMessage, QueueReceiver, QueueSender, Receipt, Result,
    validate,
};
use std::{sync::Arc, time::Duration};
use tokio::{sync::Notify, time::Instant};

/// The queue of a [`Store`](crate::Store).
pub struct SqliteQueue {
    pub(crate) shared_mailbox: Arc<SharedMailbox>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) attempts: Attempts,
    pub(crate) writer: Writer,
    pub(crate) clock: Arc<dyn Clock>,
    /// This opening of the store: receipts of an earlier one are stale.
    pub(crate) opening: String,
}

/// The fields of a receipt.
struct ParsedReceipts<'a> {
    group: &'a str,
    numbers: Vec<u64>,
    /// Whether some of them were stale already.
    stale: bool,
}

/// A caller that leaves `receive` wakes another waiter, because the one that leaves may have been the only one with a timer for the next
/// due message. Also when its future is dropped.
struct WakeupGuard<'a>(&'a Notify);

impl Drop for WakeupGuard<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl QueueSender for SqliteQueue {
    async fn send(&self, messages: Vec<QueueMessage>) -> Result<()> {
        validate::messages(&messages)?;
        if messages.is_empty() {
            return Ok(());
        }
        self.writer.ask(|answer| Request::Commit { writes: Vec::new(), messages, answer }).await
    }

    async fn waiting(&self, lane: &str) -> Result<usize> {
        Ok(self.change(|mailbox, _| mailbox.waiting(lane)))
    }
}

#[async_trait]
impl QueueReceiver for SqliteQueue {
    async fn receive(&self, max: usize, visibility: Duration) -> Result<Vec<Delivery>> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let _wakeup = WakeupGuard(&self.shared_mailbox.bell);
        loop {
            let rung = self.shared_mailbox.bell.notified();
            let (taken, quiet) = self.change(|mailbox, now| {
                if mailbox.closed {
                    return Err(Error::unavailable("the queue", "it is closed"));
                }
                let mut taken = Vec::new();
                while taken.len() < max {
                    let more = mailbox.take(now, visibility, max - taken.len());
                    if more.is_empty() {
                        break;
                    }
                    taken.extend(more);
                }
                Ok((taken, mailbox.quiet_for(now, self.clock.now())))
            })?;
            if !taken.is_empty() {
                // From here to the return nothing is awaited: a delivery that was taken is handed over.
                for TakenMessage { place, seq, attempt, .. } in &taken {
                    if let Some(place) = *place {
                        self.attempts.put(place, (*seq, *attempt));
                    }
                }
                let deliveries = self.open(taken)?;
                if !deliveries.is_empty() {
                    return Ok(deliveries);
                }
                continue;
            }
            match quiet {
                Some(quiet) => _ = tokio::time::timeout(quiet, rung).await,
                None => rung.await,
            }
        }
    }

    async fn ack(&self, receipts: &[Receipt]) -> Result<bool> {
        let ParsedReceipts { group, numbers, stale } = self.parse(receipts);
        Ok(self.change(|mailbox, _| mailbox.settle(group, &numbers)) && !stale)
    }

    async fn extend(&self, receipts: &[Receipt], visibility: Duration) -> Result<bool> {
        let ParsedReceipts { group, numbers, stale } = self.parse(receipts);
        Ok(self.change(|mailbox, now| mailbox.extend(group, &numbers, now, visibility)) && !stale)
    }

    async fn reject(&self, receipts: &[Receipt], delay: Duration) -> Result<bool> {
        let ParsedReceipts { group, numbers, stale } = self.parse(receipts);
        let today = self.clock.now();
        Ok(self.change(|mailbox, now| mailbox.reject(group, &numbers, now, delay, today)) && !stale)
    }
}

#[async_trait]
impl DeadLetterQueue for SqliteQueue {
    async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadLetter>> {
        self.settle_all().await?;
        self.readers.with(|connection| messages::dead(connection, limit).map_err(failed))
    }

    async fn redrive(&self, group: &str) -> Result<usize> {
        self.change(|_, _| ());
        self.writer.ask(|answer| Request::Redrive { group: group.to_owned(), answer }).await
    }
}

impl SqliteQueue {
    /// Changes the mailbox as of now, gives the writer the changes to note, and wakes receivers.
    fn change<T>(&self, change: impl FnOnce(&mut Mailbox, Instant) -> T) -> T {
        let now = Instant::now();
        let mut mailbox = self.shared_mailbox.lock();
        mailbox.advance(now, self.clock.now());
        let answer = change(&mut mailbox, now);
        // Under the lock, so that the notes of one message stay in order. Sending never waits.
        for (seq, change) in mailbox.lazy.drain(..) {
            self.writer.note(Request::Lazy { seq, change });
        }
        let wakes = std::mem::take(&mut mailbox.wakes);
        drop(mailbox);
        self.shared_mailbox.ring(wakes);
        answer
    }

    /// Reads the contents of the taken messages that did not come with theirs. If that fails, all are given back.
    fn open(&self, mut taken: Vec<TakenMessage>) -> Result<Vec<Delivery>> {
        let contents = taken.iter_mut().map(|taken| match taken.content.take() {
            None => self.readers.with(|connection| messages::read(connection, taken.seq).map_err(failed)),
            content => Ok(content),
        });
        let contents = match contents.collect::<Result<Vec<_>>>() {
            Ok(contents) => contents,
            Err(error) => {
                let today = self.clock.now();
                self.change(|mailbox, now| {
                    for taken in &taken {
                        mailbox.reject(&taken.group, &[taken.number], now, Duration::from_secs(1), today);
                    }
                });
                return Err(error);
            }
        };
        let mut deliveries = Vec::with_capacity(taken.len());
        for (TakenMessage { seq, group, attempt, number, .. }, content) in taken.into_iter().zip(contents) {
            let Some(MessageContent { id, body }) = content else {
                tracing::error!(%group, seq, "a message is gone from the store; it cannot be delivered");
                self.change(|mailbox, _| mailbox.settle(&group, &[number]));
                continue;
            };
            let receipt = Receipt(format!("{}.{number}.{group}", self.opening));
            deliveries.push(Delivery { group: group.to_string(), id, body, attempt, receipt });
        }
        Ok(deliveries)
    }

    /// The group and the numbers of receipts of this opening. Receipts of another group or opening are stale.
    fn parse<'a>(&self, receipts: &'a [Receipt]) -> ParsedReceipts<'a> {
        let parse = |receipt: &'a Receipt| {
            let rest = receipt.0.strip_prefix(self.opening.as_str())?.strip_prefix('.')?;
            let (number, group) = rest.split_once('.')?;
            Some((number.parse().ok()?, group))
        };
        let known: Vec<(u64, &str)> = receipts.iter().filter_map(parse).collect();
        let group = known.first().map_or("", |(_, group)| group);
        let numbers: Vec<u64> = known.iter().filter(|(_, of)| *of == group).map(|(number, _)| *number).collect();
        ParsedReceipts { group, stale: numbers.len() < receipts.len(), numbers }
    }

    /// Waits until everything that happened so far is in the store.
    async fn settle_all(&self) -> Result<()> {
        self.change(|_, _| ());
        self.writer.ask(|answer| Request::Flush { answer }).await
    }
}
