//! The messages that this process has in flight: their turns inside it, and the receipts that still settle something.
//!
//! SQS locks a group while messages of it are in flight, and no more. This module keeps the further promises of the port: that a message
//! given back takes those behind it along, that a receipt settles once, that a receive that was dropped loses nothing. A process holds tens
//! of messages, so everything is a search through a list.

use ports::{Delivery, Receipt};
use std::collections::VecDeque;
use tokio::time::Instant;

/// One batch of each group that is in flight here, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct InFlight(Vec<InFlightBatch>);

#[derive(Debug)]
struct InFlightBatch {
    group: String,
    /// With a worker, in order.
    out: Vec<Held>,
    /// Received, and waiting for those that are out: their turn comes when all of those are settled.
    behind: VecDeque<Held>,
}

/// A message in flight.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) delivery: Delivery,
    /// The time until which SQS keeps it invisible.
    pub(super) until: Instant,
}

impl InFlight {
    /// Takes in messages from SQS.
    pub(super) fn add(&mut self, deliveries: Vec<Delivery>, until: Instant, now: Instant) {
        self.drop_expired(now);
        for delivery in deliveries {
            // A message that comes again was given back, or timed out: its old batch has left.
            let comes_again = |held: &Held| held.delivery.id == delivery.id && held.until != until;
            self.0.retain(|batch| batch.group != delivery.group || !batch.all().any(comes_again));
            let batch = match self.0.iter_mut().position(|batch| batch.group == delivery.group) {
                Some(position) => self.0.get_mut(position),
                None => {
                    let group = delivery.group.clone();
                    self.0.push(InFlightBatch { group, out: Vec::new(), behind: VecDeque::new() });
                    self.0.last_mut()
                }
            };
            batch.into_iter().for_each(|batch| batch.behind.push_back(Held { delivery: delivery.clone(), until }));
        }
    }

    /// At most `max` messages whose turn it is, those of a group beside each other. One that was tried before goes alone.
    pub(super) fn take(&mut self, max: usize, now: Instant) -> Vec<Held> {
        self.drop_expired(now);
        let mut taken = Vec::new();
        for batch in self.0.iter_mut().filter(|batch| batch.out.is_empty()) {
            let was_tried = batch.behind.front().is_some_and(|first| first.delivery.attempt > 1);
            let most = if was_tried { 1 } else { ports::MAX_BATCH }.min(max - taken.len()).min(batch.behind.len());
            batch.out.extend(batch.behind.drain(..most));
            taken.extend(batch.out.iter().cloned());
        }
        taken
    }

    /// Those of `receipts` that are out and not over.
    pub(super) fn out(&self, receipts: &[Receipt], now: Instant) -> Vec<Receipt> {
        let is_out = |receipt: &&Receipt| {
            let held = self.0.iter().flat_map(|batch| &batch.out).find(|held| held.delivery.receipt == **receipt);
            held.is_some_and(|held| held.until > now)
        };
        receipts.iter().filter(is_out).cloned().collect()
    }

    /// Forgets settled messages.
    pub(super) fn settle(&mut self, receipts: &[Receipt]) {
        for batch in &mut self.0 {
            batch.out.retain(|held| !receipts.contains(&held.delivery.receipt));
        }
        self.0.retain(|batch| !batch.is_empty());
    }

    /// Takes the messages of `receipts` out of flight, and those behind them: they come again together.
    pub(super) fn give_back(&mut self, receipts: &[Receipt], now: Instant) -> Vec<Receipt> {
        let still_out = self.out(receipts, now);
        let mut given_back = Vec::new();
        for batch in &mut self.0 {
            if let Some(first) = batch.out.iter().position(|held| still_out.contains(&held.delivery.receipt)) {
                let back = batch.out.drain(first..).chain(batch.behind.drain(..));
                given_back.extend(back.map(|held| held.delivery.receipt));
            }
        }
        self.0.retain(|batch| !batch.is_empty());
        given_back
    }

    /// The batches of `receipts`, in all their length.
    pub(super) fn batches(&self, receipts: &[Receipt]) -> Vec<Receipt> {
        let held = self.0.iter().filter(|batch| batch.out.iter().any(|held| receipts.contains(&held.delivery.receipt)));
        held.flat_map(InFlightBatch::all).map(|held| held.delivery.receipt.clone()).collect()
    }

    /// Notes that these stay invisible until then.
    pub(super) fn keep(&mut self, receipts: &[Receipt], until: Instant) {
        for held in self.0.iter_mut().flat_map(|batch| batch.out.iter_mut().chain(&mut batch.behind)) {
            if receipts.contains(&held.delivery.receipt) {
                held.until = until;
            }
        }
    }

    /// Begins anew with messages that a caller got elsewhere: all of them are out.
    pub(super) fn adopt(&mut self, deliveries: Vec<Delivery>, until: Instant, now: Instant) {
        self.0.clear();
        self.add(deliveries, until, now);
        for batch in &mut self.0 {
            batch.out.extend(batch.behind.drain(..));
        }
    }

    fn drop_expired(&mut self, now: Instant) {
        for batch in &mut self.0 {
            batch.out.retain(|held| held.until > now);
            batch.behind.retain(|held| held.until > now);
        }
        self.0.retain(|batch| !batch.is_empty());
    }
}

impl InFlightBatch {
    fn all(&self) -> impl Iterator<Item = &Held> {
        self.out.iter().chain(&self.behind)
    }

    fn is_empty(&self) -> bool {
        self.out.is_empty() && self.behind.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(30);

    fn delivery(group: &str, id: u32, attempt: u32) -> Delivery {
        let receipt = Receipt(format!("{group}{id}#{attempt}"));
        Delivery { group: group.into(), id: id.to_string(), body: String::new(), attempt, receipt }
    }

    fn names(held: &[Held]) -> Vec<&str> {
        held.iter().map(|held| held.delivery.receipt.0.as_str()).collect()
    }

    fn receipts(names: &[&str]) -> Vec<Receipt> {
        names.iter().map(|name| Receipt((*name).to_owned())).collect()
    }

    #[test]
    fn a_group_goes_on_when_all_that_is_out_of_it_is_settled() {
        let (mut flights, now) = (InFlight::default(), Instant::now());
        let mixed = [delivery("g", 1, 1), delivery("h", 1, 1), delivery("g", 2, 1), delivery("g", 3, 1)];
        flights.add(mixed.into(), now + LONG, now);
        assert_eq!(names(&flights.take(2, now)), ["g1#1", "g2#1"], "a group's beside each other");
        assert_eq!(names(&flights.take(9, now)), ["h1#1"]);
        flights.settle(&receipts(&["g2#1"]));
        assert!(flights.take(9, now).is_empty());
        flights.settle(&receipts(&["g1#1"]));
        assert_eq!(names(&flights.take(9, now)), ["g3#1"]);
        assert!(flights.out(&receipts(&["g1#1", "x"]), now).is_empty(), "settled once");
    }

    #[test]
    fn a_message_given_back_takes_those_behind_it_along_and_a_tried_one_goes_alone() {
        let (mut flights, now) = (InFlight::default(), Instant::now());
        flights.add((1..=4).map(|id| delivery("g", id, 1)).collect(), now + LONG, now);
        assert_eq!(flights.take(3, now).len(), 3);
        assert_eq!(flights.batches(&receipts(&["g2#1"])).len(), 4, "extended as one");
        assert_eq!(flights.give_back(&receipts(&["g2#1"]), now), receipts(&["g2#1", "g3#1", "g4#1"]));
        assert!(flights.give_back(&receipts(&["g3#1"]), now).is_empty(), "stale");
        flights.settle(&receipts(&["g1#1"]));
        flights.add((2..=4).map(|id| delivery("g", id, 2)).collect(), now + LONG * 2, now);
        assert_eq!(names(&flights.take(9, now)), ["g2#2"]);
    }

    #[test]
    fn a_timed_out_message_is_stale_and_a_repeated_one_makes_its_old_batch_stale() {
        let (mut flights, now) = (InFlight::default(), Instant::now());
        flights.add((1..=2).map(|id| delivery("g", id, 1)).collect(), now + LONG, now);
        assert_eq!(flights.take(1, now).len(), 1);
        assert!(flights.out(&receipts(&["g1#1"]), now + LONG).is_empty());
        flights.keep(&receipts(&["g1#1"]), now + LONG * 3);
        assert_eq!(flights.out(&receipts(&["g1#1"]), now + LONG * 2).len(), 1);
        flights.add(vec![delivery("g", 1, 2)], now + LONG * 4, now + LONG * 2);
        assert!(flights.out(&receipts(&["g1#1"]), now + LONG * 2).is_empty(), "somebody else decided");
        assert_eq!(names(&flights.take(9, now + LONG * 2)), ["g1#2"]);
        flights.adopt(vec![delivery("h", 1, 1)], now + LONG * 9, now);
        assert_eq!(flights.out(&receipts(&["g1#2", "h1#1"]), now), receipts(&["h1#1"]));
    }
}
