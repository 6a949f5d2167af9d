//! Inputs of the machines of tasks beside their state, kept in memory: the flows of running tasks, by the hash of their
//! manifests, and the records that re-runs follow, by their task. Both never change: the same hash is always the same flow, and
//! the record of an ended task is complete.
//!
//! A value in use stays. The machine reads manifests before it decides on a command, but not before it decides on the end of a node, which may have run
//! for hours, or on a stop or a pause meanwhile. The effect that runs the node holds the flow.

use domain::{TaskId, task::FlowRef};
use flow::Flow;
use flow::router::Record;
use parking_lot::RwLock;
use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::Arc,
};

/// How many flows are kept in memory; any can be read again from its bundle.
const FLOWS: usize = 256;
/// How many records are kept in memory; any can be read again from its log.
const RECORDS: usize = 4096;

/// Flows and records in memory. Cheap to clone; clones share.
#[derive(Clone, Debug, Default)]
pub struct FlowCache {
    flows: SharedNewest<FlowRef, Flow>,
    records: SharedNewest<TaskId, Record>,
}

impl FlowCache {
    /// The flow of this name whose manifests have this hash.
    pub fn get(&self, reference: &FlowRef) -> Option<Arc<Flow>> {
        self.flows.get(reference)
    }

    /// Keeps a flow.
    pub fn put(&self, flow: Arc<Flow>) {
        self.flows.put(flow.reference.clone(), flow, FLOWS);
    }

    /// How a recorded task went.
    pub fn record(&self, task: TaskId) -> Option<Arc<Record>> {
        self.records.get(&task)
    }

    /// Keeps how a recorded task went.
    pub fn put_record(&self, task: TaskId, record: Arc<Record>) {
        self.records.put(task, record, RECORDS);
    }
}

/// The newest of something, each under its key.
#[derive(Debug)]
struct SharedNewest<K, V>(Arc<RwLock<Newest<K, V>>>);

/// Values by their keys, and the keys in the order in which they came.
#[derive(Debug)]
struct Newest<K, V> {
    values: HashMap<K, Arc<V>>,
    order: VecDeque<K>,
}

impl<K, V> Clone for SharedNewest<K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K, V> Default for SharedNewest<K, V> {
    fn default() -> Self {
        let newest = Newest { values: HashMap::new(), order: VecDeque::new() };
        Self(Arc::new(RwLock::new(newest)))
    }
}

impl<K: Clone + Eq + Hash, V> SharedNewest<K, V> {
    fn get(&self, key: &K) -> Option<Arc<V>> {
        self.0.read().values.get(key).cloned()
    }

    fn put(&self, key: K, value: Arc<V>, most: usize) {
        let mut kept = self.0.write();
        let Newest { values, order } = &mut *kept;
        if values.insert(key.clone(), value).is_none() {
            order.push_back(key.clone());
        }
        for _ in 0..order.len() {
            if order.len() <= most {
                return;
            }
            let Some(oldest) = order.pop_front() else { return };
            // One in use takes no less memory where only its place here is lost.
            if oldest == key || values.get(&oldest).is_some_and(|value| Arc::strong_count(value) > 1) {
                order.push_back(oldest);
            } else {
                values.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn what_a_running_node_uses_stays_in_memory_however_much_comes_meanwhile() {
        let kept = SharedNewest::default();
        let put = |keys: std::ops::Range<u32>| keys.for_each(|key| kept.put(key, Arc::new(key), 8));
        let there = |keys: std::ops::Range<u32>| keys.filter(|key| kept.get(key).is_some()).collect::<Vec<_>>();
        put(0..3);
        let in_use = kept.get(&1).unwrap();
        put(3..100);
        assert_eq!(there(0..100), [1, 93, 94, 95, 96, 97, 98, 99]);
        drop(in_use);
        put(100..120);
        assert_eq!(there(0..120), [112, 113, 114, 115, 116, 117, 118, 119]);
        let all: Vec<Arc<u32>> = (112..120).filter_map(|key| kept.get(&key)).collect();
        put(120..123);
        assert_eq!(
            (there(112..120).len(), there(120..123)),
            (8, vec![122]),
            "what is in use is bounded by those who use it"
        );
        drop(all);
    }
}
