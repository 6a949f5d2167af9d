//! Everything that knows no store, put together behind the ports: the actors of every kind, and the ways in to them. The hub, the
//! functions in the cloud and the tests of whole systems each bring their adapters, and have the same parts, configuration and
//! care for secrets.

mod activity;
mod auth;
mod changes;
pub mod coding_agents;
mod config;
pub mod counters;
mod egress;
mod emf;
mod engine;
mod frontend;
pub mod grants;
mod histogram;
pub mod log;
mod model_metrics;
mod observing;
#[cfg(test)]
mod on_fakes;
pub mod probes;
pub mod process;
pub mod programs;
mod readers;
mod remains;
mod rights;
pub mod secrets;
mod services;
pub mod sweeps;
mod traces;
mod web;

pub use self::engine::{Engine, ModelSetup};
pub use activity::Activity;
pub use auth::Auth;
pub use config::{
    Ai, Config, Durability, Files, Observe, Origin, Providers, Sandbox, Search, Server, Setting, Sources, Store, Tasks,
    Telemetry, Webhooks, nearest, unknown_variables,
};
pub use egress::HostEgress;
pub use emf::Emf;
pub use frontend::{FrontendDeps, HttpFrontend, OwnFeeds, streams};
pub use model_metrics::{ModelMetrics, metered};
pub use observing::Observing;
pub use readers::Readers;
pub use services::{Base, SandboxSetup, Services, Settings, tools};
pub use slots::Places;
pub use traces::TurnTraces;
pub use web::{calendars, web};

/// Why something cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The configuration makes no sense.
    #[error("the configuration is wrong: {0}")]
    Config(String),
    /// The models cannot be set up.
    #[error(transparent)]
    Models(#[from] models::ConfigError),
}
