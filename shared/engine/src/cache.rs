//! Inputs of the machines of tasks beside their state, kept in memory: the flows of running tasks, by the hash of their
//! manifests, and the records that re-runs follow, by their task. Both never change: the same hash is always the same flow, and
//! the record of an ended task is complete.

use domain::{TaskId, task::FlowRef};
use flow::Flow;
use flow::router::Record;
use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, PoisonError, RwLock},
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
        self.0.read().unwrap_or_else(PoisonError::into_inner).values.get(key).cloned()
    }

    fn put(&self, key: K, value: Arc<V>, most: usize) {
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Newest { values, order } = &mut *kept;
        if values.insert(key.clone(), value).is_none() {
            order.push_back(key);
        }
        while order.len() > most {
            let Some(oldest) = order.pop_front() else { return };
            values.remove(&oldest);
        }
    }
}
