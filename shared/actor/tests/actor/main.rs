//! The runtime of actors: batches, blame, versions, bodies that are lost, and the shapes that it persists.

mod batches;
mod blame;
mod golden;
mod lost;
mod pure;
mod versions;
