//! The real binary, for the parts that only a hub has: its data folder, its memory, its terminal, its operator. The suite of `tests/journeys` covers
//! its use over HTTP, in every world.

mod agents;
mod backup;
mod choices;
mod clients;
mod commands;
mod compacted;
mod copies;
mod crashed;
mod documents;
mod editors;
mod forked;
mod full;
mod full_screen;
mod hosts;
mod killed;
mod large;
mod lifetime;
mod notified;
mod observed;
mod planner;
mod providers;
mod queued;
mod readme;
mod real_servers;
mod seen;
mod served;
mod sign_ins;
mod stock_agents;
mod support;
mod sweeps;
mod terminal;
mod traces;
mod web;
mod webhooks;
