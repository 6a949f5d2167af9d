//! The runtime of actors: batches, blame, versions, and the shapes that it persists.

mod batches;
mod blame;
mod golden;
mod pure;
mod versions;
