//! The real binary, for what only a hub has: its data folder, its memory, its terminal, its operator. What people do over HTTP is in
//! the suite of `tests/journeys`, in every world.

mod backup;
mod commands;
mod full;
mod killed;
mod large;
mod lifetime;
mod notified;
mod observed;
mod providers;
mod queued;
mod support;
mod sweeps;
mod terminal;
