//! Receiving. A request for messages is a task of its own: its waiter may be dropped while SQS is answering, and the messages then go to
//! the next receiver, instead of being invisible until they time out.

use super::{BATCH, Inner, LONGEST_VISIBILITY, WHAT, in_flight::Held, message, seconds};
use crate::{fault::unavailable, sdk::timeouts};
use aws_sdk_sqs::types::MessageSystemAttributeName as Attribute;
use ports::{Delivery, Receipt, Result};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// The longest that SQS waits for a message before it answers that there is none.
const WAIT: Duration = Duration::from_secs(20);
/// How much later its answer may come.
const LATE: Duration = Duration::from_secs(10);
/// Messages fetched for another receiver are given on as they are when their visibility is about the wanted one.
const ABOUT: Duration = Duration::from_secs(1);

impl Inner {
    pub(super) async fn receive(self: &Arc<Self>, max: usize, visibility: Duration) -> Result<Vec<Delivery>> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let visibility = visibility.min(LONGEST_VISIBILITY);
        let deadline = Instant::now() + WAIT;
        let _waiting = Counted::new(self, |inner| &inner.receivers);
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // Before looking: a move in between wakes.
            moved.as_mut().enable();
            let taken = self.in_flight().take(max, Instant::now());
            if !taken.is_empty() {
                let taken = self.freshen(taken, visibility).await?;
                if !taken.is_empty() {
                    return Ok(taken);
                }
                continue;
            }
            if self.polls.load(Ordering::Acquire) < self.receivers.load(Ordering::Acquire) {
                let poll = Counted::new(self, |inner| &inner.polls);
                let inner = self.clone();
                let polled = tokio::spawn(async move {
                    let outcome = inner.poll(max, visibility).await;
                    drop(poll);
                    inner.moved.notify_waiters();
                    outcome
                });
                // Only its own poll can fail a call; one that it shares is asked for anew.
                tokio::pin!(polled);
                tokio::select! {
                    ended = &mut polled => match ended {
                        Ok(Err(error)) => return Err(error),
                        // A look at the fetched messages, before giving up.
                        _ if Instant::now() < deadline => continue,
                        _ => {}
                    },
                    () = &mut moved => continue,
                }
            } else if timeout_at(deadline, moved).await.is_ok() {
                continue;
            }
            let last = self.in_flight().take(max, Instant::now());
            return self.freshen(last, visibility).await;
        }
    }

    /// One request; its messages are in flight here.
    async fn poll(&self, max: usize, visibility: Duration) -> Result<()> {
        let request = self.client.receive_message().queue_url(&self.names.queue_url);
        let request = request.max_number_of_messages(i32::try_from(max.min(BATCH)).unwrap_or(1));
        let request = request.visibility_timeout(seconds(visibility)).wait_time_seconds(seconds(WAIT));
        let request = request.message_system_attribute_names(Attribute::ApproximateReceiveCount);
        // An attempt that the SDK repeats gets the messages that the one before took, and need not wait until they are visible again.
        let request = request.receive_request_attempt_id(self.clock.id().to_string());
        let patient = aws_sdk_sqs::config::Builder::new().timeout_config(timeouts(WAIT + LATE, 2 * (WAIT + LATE)));
        let answer = request.customize().config_override(patient).send().await;
        let answer = answer.map_err(|error| unavailable(WHAT, &error))?;
        let now = Instant::now();
        let mut deliveries = Vec::new();
        for received in answer.messages.unwrap_or_default() {
            let count = received.attributes().and_then(|known| known.get(&Attribute::ApproximateReceiveCount));
            match message::received(received.body(), received.receipt_handle(), count.map(String::as_str)) {
                Ok(delivery) => deliveries.push(delivery),
                // It comes again until it is put aside, where somebody can look at it.
                Err(error) => {
                    tracing::error!(error = %error.with_causes(), message_id = received.message_id(), "a message cannot be read")
                }
            }
        }
        self.in_flight().add(deliveries, now + visibility, now);
        Ok(())
    }

    /// Gives messages the visibility that is asked for now, if they were fetched for another one, or a while ago.
    async fn freshen(&self, taken: Vec<Held>, visibility: Duration) -> Result<Vec<Delivery>> {
        let now = Instant::now();
        let until = now + visibility;
        let apart = |held: &Held| held.until.max(until) - held.until.min(until);
        let receipts: Vec<Receipt> = taken.iter().map(|held| held.delivery.receipt.clone()).collect();
        let mut deliveries: Vec<Delivery> = taken.iter().map(|held| held.delivery.clone()).collect();
        if taken.iter().any(|held| apart(held) > ABOUT) {
            let kept = match self.change_visibility(&self.names.queue_url, &receipts, visibility).await {
                Ok(kept) => kept,
                Err(error) => {
                    // No caller has them, so none may settle them: they come again when SQS lets them.
                    self.in_flight().settle(&receipts);
                    return Err(error);
                }
            };
            let stale: Vec<Receipt> = receipts.iter().filter(|receipt| !kept.contains(receipt)).cloned().collect();
            let mut in_flight = self.in_flight();
            in_flight.settle(&stale);
            in_flight.keep(&kept, until);
            deliveries.retain(|delivery| kept.contains(&delivery.receipt));
        }
        Ok(deliveries)
    }
}

/// One more of something, until it is dropped.
struct Counted {
    inner: Arc<Inner>,
    which: fn(&Inner) -> &std::sync::atomic::AtomicUsize,
}

impl Counted {
    fn new(inner: &Arc<Inner>, which: fn(&Inner) -> &std::sync::atomic::AtomicUsize) -> Self {
        which(inner).fetch_add(1, Ordering::AcqRel);
        Self { inner: inner.clone(), which }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.which)(&self.inner).fetch_sub(1, Ordering::AcqRel);
    }
}
