//! Everything that knows no store, put together behind the ports: the actors of every kind, and the ways in to them. The hub, the
//! functions in the cloud and the tests of whole systems each bring their adapters, and have the same parts, configuration and
//! care for secrets.

mod activity;
mod auth;
mod changes;
mod config;
pub mod counters;
mod emf;
mod front;
pub mod grants;
pub mod log;
mod measured;
mod observing;
mod parts;
pub mod probes;
pub mod process;
mod reach;
mod readers;
pub mod secrets;
pub mod sweeps;
mod traces;
mod ways;

pub use activity::Activity;
pub use auth::Auth;
pub use config::{
    Ai, Config, Durability, Files, Observe, Origin, Providers, Sandbox, Server, Setting, Sources, Store, Tasks,
    Telemetry, unknown_variables,
};
pub use emf::Emf;
pub use front::{Front, Outside, OwnFeeds, streams};
pub use measured::ModelMetrics;
pub use observing::Observing;
pub use parts::{Parts, Voices};
pub use reach::Within;
pub use readers::Readers;
pub use slots::Places;
pub use traces::TurnTraces;
pub use ways::{Base, Machines, PLAY, Settings, Ways, tools};

/// Why something cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The configuration makes no sense.
    #[error("the configuration is wrong: {0}")]
    Config(String),
    /// The models cannot be set up.
    #[error(transparent)]
    Models(#[from] models::ConfigError),
}
