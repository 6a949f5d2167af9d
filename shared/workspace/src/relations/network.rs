//! The network of a file: the files that links lead to and from, step by step.

use super::{in_order, places::Places};
use crate::{FileRef, Info, Result, Workspace, error};
use domain::FileId;
use futures::FutureExt;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};

/// The most steps from the file.
pub const MAX_NETWORK_DEPTH: usize = 5;
/// The most files of a network.
pub const MAX_NETWORK_NODES: usize = 500;

/// The files around a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// The files, nearest first.
    pub nodes: Vec<NetworkNode>,
    /// The links of those files that are nearer than the depth, to files of the network.
    pub edges: Vec<NetworkEdge>,
    /// Whether there may be more files within the depth.
    pub truncated: bool,
}

/// A file of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkNode {
    /// The file.
    #[serde(flatten)]
    pub file: FileRef,
    /// The number of links between it and the file that was asked for.
    pub distance: usize,
}

/// A link of a network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetworkEdge {
    /// The file at which it begins.
    pub from: FileId,
    /// The file to which it leads.
    pub to: FileId,
    /// Its kind; `markdown` or `wiki` for one in a text.
    pub kind: String,
}

impl Workspace {
    /// The files that links lead to and from, up to `depth` steps from a file. `depth` is cut to 1 to [`MAX_NETWORK_DEPTH`], `limit` to 1 to
    /// [`MAX_NETWORK_NODES`] files.
    ///
    /// # Errors
    /// `NOT_FOUND` when the file is not there or in the trash; else those of [`Workspace`].
    pub async fn network(&self, file: FileId, depth: usize, limit: usize) -> Result<Network> {
        let (depth, limit) = (depth.clamp(1, MAX_NETWORK_DEPTH), limit.clamp(1, MAX_NETWORK_NODES));
        let places = &Places::of(self);
        let start = self.start(places, file).await?;
        let mut network = Network::default();
        let (mut known, mut edges) = (HashSet::from([file]), BTreeSet::new());
        network.nodes.push(NetworkNode { file: FileRef::from(&start), distance: 0 });
        let mut frontier = vec![start];
        for distance in 1..=depth {
            let looks = frontier.into_iter().map(|info| self.around(places, info).boxed());
            let around = in_order(looks.collect()).await?;
            let mut next = Vec::new();
            for (files, links, more) in around {
                network.truncated |= more;
                edges.extend(links);
                for file in files {
                    if known.contains(&file.file_id) {
                        continue;
                    }
                    if known.len() >= limit {
                        network.truncated = true;
                        continue;
                    }
                    known.insert(file.file_id);
                    next.push(file.file_id);
                    network.nodes.push(NetworkNode { file, distance });
                }
            }
            frontier = Vec::with_capacity(next.len());
            for id in next.into_iter().filter(|_| distance < depth) {
                frontier.extend(places.file(id).await?);
            }
        }
        edges.retain(|edge| known.contains(&edge.from) && known.contains(&edge.to));
        network.edges = edges.into_iter().collect();
        Ok(network)
    }

    /// The files at the other ends of a file's links, the links, and whether there may be more.
    async fn around(&self, places: &Places<'_>, info: Info) -> Result<(Vec<FileRef>, Vec<NetworkEdge>, bool)> {
        let (from, is_unreadable) = match self.links_from(places, &info).await {
            // One file of a network keeps none of the others from being shown.
            Err(error) if error::is_damage_of_index(&error) => (Vec::new(), true),
            from => (from?, false),
        };
        let (to, more) = self.links_to(places, &info).await?;
        let (mut files, mut edges) = (Vec::new(), Vec::new());
        for (links, is_from) in [(from, true), (to, false)] {
            for link in links {
                let Some(file) = link.file else { continue };
                let (from, to) = if is_from { (info.file_id, file.file_id) } else { (file.file_id, info.file_id) };
                edges.push(NetworkEdge { from, to, kind: link.kind });
                files.push(file);
            }
        }
        Ok((files, edges, more || is_unreadable))
    }
}
