//! The real binary, for the parts that only a hub has: its data folder, its memory, its terminal, its operator. The suite of `tests/journeys` covers
//! its use over HTTP, in every world.

mod agents;
mod backup;
mod choices;
mod clients;
mod command_queue;
mod commands;
mod compaction;
mod copies;
mod crashing_inputs;
mod documents;
mod editors;
mod evaluations;
mod forks;
mod full;
mod full_screen;
mod hosts;
mod kill_loop;
mod large_files;
mod lifetime;
mod model_media;
mod observability;
mod planner;
mod providers;
mod readme;
mod real_servers;
mod service_manager;
mod sign_ins;
mod stock_agents;
mod support;
mod sweeps;
mod terminal;
mod tool_servers;
mod traces;
mod web;
mod webhooks;
