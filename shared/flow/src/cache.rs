//! The flows of running tasks, by the hash of their manifests: the same hash is always the same flow.

use crate::Flow;
use domain::Sha256;
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

/// How many flows are kept in memory; any can be read again from its bundle.
const KEPT: usize = 256;

/// Flows in memory. Cheap to clone; clones share.
#[derive(Clone, Debug, Default)]
pub struct FlowCache(Arc<RwLock<HashMap<Sha256, Arc<Flow>>>>);

impl FlowCache {
    /// The flow whose manifests have this hash.
    pub fn get(&self, hash: &Sha256) -> Option<Arc<Flow>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
    }

    /// Keeps a flow.
    pub fn put(&self, flow: Arc<Flow>) {
        let mut flows = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if flows.len() >= KEPT
            && let Some(any) = flows.keys().next().copied()
        {
            flows.remove(&any);
        }
        flows.insert(flow.reference.hash, flow);
    }
}
