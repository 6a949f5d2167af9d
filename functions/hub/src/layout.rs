//! The names in the data folder that more than one part knows.

/// The store: table and queue.
pub(crate) const STORE: &str = "buildscale.sqlite3";
/// The key from which the secrets of webhooks are derived.
pub(crate) const WEBHOOKS_KEY: &str = "webhooks-key";
/// The key that seals the accounts at MCP servers.
pub(crate) const ACCOUNTS_KEY: &str = "accounts-key";
/// The folder that has everybody's files.
pub(crate) const WORKSPACES: &str = "workspaces";
/// The folder that has the working copies of coding agents.
pub(crate) const COPIES: &str = "copies";
