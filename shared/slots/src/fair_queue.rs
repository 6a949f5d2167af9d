//! A fair queue of requests that want the same slots: parties take turns, and within a party the longest wait goes first, where each point of
//! priority counts as some waiting.

use crate::request::Ask;
use domain::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A request that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub rank: i64,
    pub ask: Ask,
}

impl Waiting {
    /// The start of its wait.
    pub fn since(&self) -> Timestamp {
        Timestamp::from_millis(ports::rank(self.rank, self.ask.priority.saturating_neg()))
    }
}

/// The requests that want the same slots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct FairQueue {
    /// By party, each in its order. None is empty.
    parties: BTreeMap<String, VecDeque<Waiting>>,
    /// The party that was served last.
    served: String,
}

impl FairQueue {
    /// Takes its place: behind those of the same rank.
    pub fn add(&mut self, waiting: Waiting) {
        let party = self.parties.entry(waiting.ask.party.clone()).or_default();
        let at = party.partition_point(|other| other.rank <= waiting.rank);
        party.insert(at, waiting);
    }

    /// A waiting request; `rank` is its position.
    pub fn get(&self, party: &str, rank: i64, holder: &str) -> Option<&Waiting> {
        let requests = self.parties.get(party)?;
        let from = requests.partition_point(|other| other.rank < rank);
        requests.iter().skip(from).find(|waiting| waiting.ask.holder == holder)
    }

    /// Takes a request out; `rank` is its position. With `served`, its party had its turn.
    pub fn remove(&mut self, party: &str, rank: i64, holder: &str, served: bool) -> Option<Waiting> {
        let requests = self.parties.get_mut(party)?;
        let from = requests.partition_point(|other| other.rank < rank);
        let at = from + requests.iter().skip(from).position(|waiting| waiting.ask.holder == holder)?;
        let waiting = requests.remove(at);
        if requests.is_empty() {
            self.parties.remove(party);
        }
        if served {
            party.clone_into(&mut self.served);
        }
        waiting
    }

    /// The request with the next turn, of those that `can` go and are not `served` already by the same step: the parties after the one that
    /// was served last come first, and one that has been served by this step comes last.
    pub fn first(&self, served: &[&Waiting], can: impl Fn(&Waiting) -> bool) -> Option<&Waiting> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let last = self.served.as_str();
        let after = self.parties.range::<str, _>((Excluded(last), Unbounded));
        let turns = after.chain(self.parties.range::<str, _>((Unbounded, Included(last))));
        let times = |party: &str| served.iter().filter(|waiting| waiting.ask.party == party).count();
        // `min_by_key` takes the first of equals, which is the one with the next turn.
        let next = turns.filter_map(|(party, requests)| Some((times(party), requests.get(times(party))?)));
        next.filter(|(_, waiting)| can(waiting)).min_by_key(|(times, _)| *times).map(|(_, waiting)| waiting)
    }

    pub fn is_empty(&self) -> bool {
        self.parties.is_empty()
    }

    /// How many requests of a party wait.
    pub fn waiting_of(&self, party: &str) -> usize {
        self.parties.get(party).map_or(0, VecDeque::len)
    }
}
