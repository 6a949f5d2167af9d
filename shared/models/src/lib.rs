//! Models: the providers of answers for the chat machine (`ports::Model`).
//!
//! A program makes one [`Router`]: it sends a request to the provider that its model name says (`anthropic/claude-sonnet-4-5`, or just
//! `claude-sonnet-4-5`), each provider behind [`Retrying`]. Providers are spoken to over HTTP in one of five wire formats (`wire`);
//! [`Scripted`] plays a YAML script and needs no network: tests use it, and so does a hub without a key, by `scripted/demo`.
//!
//! Promises kept here, for every provider:
//! - The same history gives the same bytes, and a longer history begins with the bytes of the shorter one, so that the
//!   caches of providers hold.
//! - An answer is whole or it is an error: a stream that the provider cut off never looks finished.
//! - Keys appear in no error, no log and no debug output, not even when a provider repeats one in its answer.
//!
//! This crate keeps no state between requests, runs no tool, and decides nothing about a turn.

mod adapters;
mod answer;
mod bedrock;
mod catalog;
mod check;
mod config;
mod describing;
mod egress;
mod embedding;
mod failure;
mod guard;
mod kind;
mod price;
mod provider;
mod redacting;
mod request_view;
mod retry;
mod router;
mod script;
mod scripted;
mod secret;
mod template;
mod wire;

pub use adapters::Adapters;
pub use check::check;
pub use config::{Api, Config, ConfigError, Effort, ProviderConfig, usual_variables};
pub use egress::EgressPolicy;
pub use embedding::RedactingEmbedder;
pub use guard::PrefixGuard;
pub use price::Price;
pub use redacting::Redacting;
pub use retry::{RetryPolicy, Retrying};
pub use router::Router;
pub use script::ScriptError;
pub use scripted::{Answerer, Scripted};
pub use secret::Secret;
pub use wire::{FORMATS, decode};
