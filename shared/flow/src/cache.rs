//! The flows of running tasks, by the hash of their manifests: the same hash is always the same flow.

use crate::Flow;
use domain::task::FlowRef;
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

/// How many flows are kept in memory; any can be read again from its bundle.
const KEPT: usize = 256;

/// Flows in memory. Cheap to clone; clones share.
#[derive(Clone, Debug, Default)]
pub struct FlowCache(Arc<RwLock<HashMap<FlowRef, Arc<Flow>>>>);

impl FlowCache {
    /// The flow of this name whose manifests have this hash.
    pub fn get(&self, reference: &FlowRef) -> Option<Arc<Flow>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(reference).cloned()
    }

    /// Keeps a flow.
    pub fn put(&self, flow: Arc<Flow>) {
        let mut flows = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if flows.len() >= KEPT
            && let Some(any) = flows.keys().next().cloned()
        {
            flows.remove(&any);
        }
        flows.insert(flow.reference.clone(), flow);
    }
}
