//! The runtime of actors: batches, blame, versions, bodies and logs that are gone, and the shapes that it persists.

mod asks_anew;
mod batches;
mod delivery_attempts;
mod golden;
mod missing_blobs;
mod pure_effects;
mod removed_logs;
mod truncated_logs;
mod versions;
