//! The names of flows and of their nodes.

use crate::Sha256;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// The id of a node, unique in its flow. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub Arc<str>);

impl NodeId {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for NodeId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A flow as a task uses it: its name for people, and the hash of all its manifests, under which its content is kept for as
/// long as a task needs it (spec 002 §10.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowRef {
    /// The folder's name.
    pub name: String,
    /// SHA-256 of the canonical bundle of its manifests.
    pub hash: Sha256,
}
