//! The web as tools of agents: HTTP tools of workspaces, pages and searches.

use crate::{Config, HostEgress, SetupError};
use ::web::{Parts, Web};
use ports::{Clock, Converter, Secrets};
use std::sync::Arc;

/// The tools that `[web]` configures, with the secrets that are granted to workspaces.
///
/// # Errors
/// [`SetupError::Config`] when a provider of searches has no address or no key.
pub fn web(
    config: &Config,
    secrets: Arc<dyn Secrets>,
    converter: Arc<dyn Converter>,
    clock: Arc<dyn Clock>,
) -> Result<Web, SetupError> {
    // Private networks are opened by `web.allow_private`, whatever flows may reach.
    let egress = Arc::new(HostEgress { allow_private: false });
    let parts = Parts { egress, secrets, converter, clock, sign: sinks::signature };
    Web::new(&config.web, parts).map_err(SetupError::Config)
}
