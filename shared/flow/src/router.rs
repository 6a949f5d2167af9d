//! The router (spec 002 §3.1): it decides how a task goes on, as a pure function of the graph, of the task's kept state, and
//! of the event that just happened. It never invents a route: every node that it enters is the target of an edge.
//!
//! The kept state of a task ([`RouteState`]) is the fold of its events. A merge is a set of arrivals by name, never a bare
//! counter, so a message that comes twice changes nothing; the counts beside the sets only save going through them.
//!
//! A step costs the same however large the graph is, and however many children came before: the merges that children of a fork
//! can come to are found when the graph is built, a fork whose children all came is set aside, and children whose edges are
//! alike are counted together.
//!
//! Rules that spec 002 leaves open, and how they are decided here:
//! - A fork is *joined* when a merge that belongs to the task that forks, or to one above it, can be reached from its edges.
//!   A branch that is joined does not end with its first clone; one that is not does, and the other clones are cancelled.
//! - Merges of one task begin in the order of the graph, and only while no node of the task executes: so the order in which
//!   children happen to come changes no route.
//! - A task has ended when it reaches an exit, goes on into a merge above, or fails; children that still run are cancelled.
//!
//! # Example
//! ```
//! use domain::{Status, Timestamp};
//! use buildscale_flow::graph::{Graph, Join, NewEdge, NewNode, Role};
//! use buildscale_flow::router::{Next, NodeOutcome, RouteState, Router};
//! use serde_json::json;
//!
//! # fn route(config: &domain::TaskConfig) -> Result<Next, Vec<buildscale_flow::graph::GraphFault>> {
//! let node = |id: &str, role| {
//!     let (id, join) = (id.into(), Join::default());
//!     NewNode { id, role, continue_on_failure: false, always_fail: false, fails_partial: false, join }
//! };
//! let edge = NewEdge { from: "begin".into(), to: "end".into(), label: None, takes_errors: false };
//! let graph = Graph::build(vec![node("begin", Role::Start), node("end", Role::Exit)], vec![edge])?;
//! let router = Router { graph: &graph, config, place: &RouteState::default(), now: Timestamp::default(), follows: None };
//! let output = json!(42);
//! let ended = NodeOutcome { status: Status::Success, output: &output, error: None, elements: None, caught: None };
//! let route = router.finished(&"begin".into(), &ended);
//! assert_eq!(route.next, Next::Execute("end".into(), json!(42).into()));
//! # Ok(route.next)
//! # }
//! ```

mod decide;
mod exit;
mod join;
mod record;
mod route_state;

pub use decide::{Next, NodeOutcome, Route, TaskMessage, selected};
pub use record::Record;
pub use route_state::{Fork, Position, RouteState};

use crate::graph::Graph;
use domain::{TaskConfig, Timestamp};

/// The longest output of a node as JSON, in bytes: another task is told of it by one message of the queue. A merge, and a split over a list, may
/// give longer ones, which stay in their task.
pub const MAX_OUTPUT: usize = 192 * 1024;

/// The router of one task.
#[derive(Clone, Copy, Debug)]
pub struct Router<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The task.
    pub config: &'a TaskConfig,
    /// Its place.
    pub place: &'a RouteState,
    /// Now.
    pub now: Timestamp,
    /// For a re-run that follows a recorded task, how that went.
    pub follows: Option<&'a Record>,
}

#[cfg(test)]
mod tests;
