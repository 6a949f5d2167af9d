//! A fair queue: parties take turns, so a party with many waiting items delays another one by one turn only.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Waiting items by party. Parties take turns, one item each; the items of one party stay in order.
#[derive(Debug)]
pub struct FairQueue<T> {
    waiting: HashMap<Arc<str>, VecDeque<T>>,
    /// Parties that have something waiting, the next one first.
    order: VecDeque<Arc<str>>,
    items: usize,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), order: VecDeque::new(), items: 0 }
    }
}

impl<T> FairQueue<T> {
    /// An item, behind the others of its party.
    pub fn add(&mut self, party: &Arc<str>, item: T) {
        self.items += 1;
        if let Some(waiting) = self.waiting.get_mut(party) {
            return waiting.push_back(item);
        }
        self.order.push_back(party.clone());
        self.waiting.insert(party.clone(), VecDeque::from([item]));
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.items
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }
}

/// Takes out the items, each when it is its turn.
impl<T> Iterator for FairQueue<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let party = self.order.pop_front()?;
        let waiting = self.waiting.get_mut(&party)?;
        let item = waiting.pop_front()?;
        self.items -= 1;
        if waiting.is_empty() {
            self.waiting.remove(&party);
        } else {
            self.order.push_back(party);
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parties_take_turns_and_items_of_one_party_stay_in_order() {
        let (a, b, c): (Arc<str>, Arc<str>, Arc<str>) = ("a".into(), "b".into(), "c".into());
        let mut turns = FairQueue::default();
        for (party, item) in [(&a, "a1"), (&a, "a2"), (&a, "a3"), (&b, "b1"), (&b, "b2"), (&c, "c1")] {
            turns.add(party, item);
        }
        assert_eq!(turns.len(), 6);
        assert_eq!(turns.by_ref().collect::<Vec<_>>(), ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert!(turns.is_empty() && turns.waiting.is_empty() && turns.order.is_empty());
    }

    #[test]
    fn a_late_party_goes_after_one_turn_of_each_other_party() {
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut turns = FairQueue::default();
        ["a1", "a2", "a3", "a4"].into_iter().for_each(|item| turns.add(&a, item));
        assert_eq!(turns.next(), Some("a1"));
        turns.add(&b, "b1");
        assert_eq!(turns.by_ref().collect::<Vec<_>>(), ["a2", "b1", "a3", "a4"]);
    }
}
