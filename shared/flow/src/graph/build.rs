//! Building a graph: edges are linked, every invariant is checked, and the router's look-ups are computed once.

use super::{Edge, Graph, GraphFault, GraphNode, NewEdge, NewNode, draft::Draft, joins::Joins, owner};
use std::collections::HashMap;

impl Graph {
    /// Builds a graph, or says everything that is wrong with it.
    ///
    /// A later node with a taken id, and an edge that is there twice or leads nowhere, count as not there for the checks
    /// that follow, except that such an edge still counts for the degree of its known end: one mistake, one fault.
    ///
    /// # Errors
    /// All faults, sorted by place.
    pub fn build(nodes: Vec<NewNode>, edges: Vec<NewEdge>) -> Result<Self, Vec<GraphFault>> {
        Self::of_draft(Draft::link(nodes, &edges))
    }

    /// The same for a graph that was accepted before: it may have any number of levels.
    ///
    /// # Errors
    /// All other faults, sorted by place.
    pub(crate) fn build_accepted(nodes: Vec<NewNode>, edges: Vec<NewEdge>) -> Result<Self, Vec<GraphFault>> {
        Self::of_draft(Draft { most_levels: usize::MAX, ..Draft::link(nodes, &edges) })
    }

    fn of_draft(mut draft: Draft) -> Result<Self, Vec<GraphFault>> {
        draft.check_nodes();
        draft.check_labels();
        let order = draft.order();
        draft.check_reachable();
        let mut graph = match order {
            Some(order) => draft.own(&order),
            None => {
                draft.check_joins_despite_cycles();
                Self::default()
            }
        };
        if !draft.faults.is_empty() {
            draft.faults.sort_by_key(|fault| fault.at);
            return Err(draft.faults);
        }
        graph.by_id = draft.by_id;
        Ok(graph)
    }
}

impl Draft {
    /// The graph of a draft without cycles; `by_id` is left out.
    fn own(&mut self, order: &[usize]) -> Graph {
        let reach = self.reach(order);
        let owned = owner::find(self, order, &reach);
        let nodes: Vec<GraphNode> = (0..self.nodes.len())
            .map(|node| {
                let NewNode { id, role, continue_on_failure, always_fail, fails_partial, join } =
                    self.nodes[node].clone();
                GraphNode {
                    id,
                    role,
                    out: self.out[node]
                        .iter()
                        .map(|(to, label, place)| {
                            let takes_errors = self.of_errors.contains(place);
                            Edge { to: self.id(*to), label: label.clone(), takes_errors }
                        })
                        .collect(),
                    inbound: self.inbound[node].iter().map(|from| self.id(*from)).collect(),
                    continue_on_failure,
                    always_fail,
                    fails_partial,
                    join,
                    forks: owned.stacks[node].iter().map(|frame| self.id(frame.fork)).collect(),
                }
            })
            .collect();
        let joins = Joins::find(&nodes, &self.by_id, order, &reach);
        Graph { nodes, by_id: HashMap::new(), reach, merged: owned.merged, joins }
    }
}
