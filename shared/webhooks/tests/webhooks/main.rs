//! The events of webhooks, and the shapes that they persist.

mod events;
mod golden;
mod lost;
mod push;
mod raced;
mod removed;
