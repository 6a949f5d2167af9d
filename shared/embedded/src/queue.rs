//! The queue: durable messages in SQLite, deliveries in memory.
//!
//! A message is on the disk when `send` returns. Later changes are not waited for: an `ack`, and the end of a delivery without one, change memory and
//! leave a note for the writer, which writes it with a later commit, or alone after a moment (`lazy_writes.rs`). So a power cut or a SIGKILL right
//! after an `ack` brings the message back, as the contract allows. `receive` notes the attempt in a file beside the store (`attempts.rs`), which
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

/// How long a message rests that could not be read.
const UNREAD_RESTS: Duration = Duration::from_secs(1);

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
        self.shared_mailbox.with(|mailbox| {
            mailbox.advance(now, self.clock.now());
            let answer = change(mailbox, now);
            // Under the lock, so that the notes of one message stay in order. Sending never waits.
            for (seq, change) in mailbox.lazy.drain(..) {
                self.writer.note(Request::Lazy { seq, change });
            }
            answer
        })
    }

    /// Reads the contents of the taken messages that did not come with theirs. One that cannot be read is given back with those behind it in its group;
    /// the others are handed over. An error when there are no others.
    fn open(&self, taken: Vec<TakenMessage>) -> Result<Vec<Delivery>> {
        let mut deliveries = Vec::with_capacity(taken.len());
        let mut unread: Option<(Arc<str>, Error)> = None;
        for TakenMessage { seq, group, attempt, number, content, .. } in taken {
            if unread.as_ref().is_some_and(|(of, _)| *of == group) {
                continue;
            }
            let content = match content {
                None => self.readers.with(|connection| messages::read(connection, seq).map_err(failed)),
                content => Ok(content),
            };
            match content {
                Ok(Some(MessageContent { id, body })) => {
                    let receipt = Receipt(format!("{}.{number}.{group}", self.opening));
                    deliveries.push(Delivery { group: group.to_string(), id, body, attempt, receipt });
                }
                Ok(None) => {
                    tracing::error!(%group, seq, "a message is gone from the store; it cannot be delivered");
                    self.change(|mailbox, _| mailbox.settle(&group, &[number]));
                }
                Err(error) => {
                    tracing::error!(%group, seq, error = %error.with_causes(), "a message cannot be read; it comes again");
                    let today = self.clock.now();
                    self.change(|mailbox, now| mailbox.reject(&group, &[number], now, UNREAD_RESTS, today));
                    unread = Some((group, error));
                }
            }
        }
        match unread {
            Some((_, error)) if deliveries.is_empty() => Err(error),
            _ => Ok(deliveries),
        }
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
