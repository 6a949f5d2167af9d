//! The web as tools of agents: HTTP tools of workspaces, pages and searches; and calendars elsewhere.

use crate::{Config, HostEgress, SetupError};
use ::calendars::Calendars;
use ::web::{Web, WebDependencies};
use ports::{Clock, Converter, Secrets};
use std::sync::Arc;

/// The calendars elsewhere that people connect, with the secrets that are granted to workspaces.
pub fn calendars(config: &Config, secrets: Arc<dyn Secrets>, clock: Arc<dyn Clock>) -> Arc<Calendars> {
    // Private networks are opened by `calendars.allow_private`, whatever flows may reach.
    let egress = Arc::new(HostEgress { allow_private: false });
    Arc::new(Calendars::new(::calendars::CalendarParts { egress, secrets, clock }, config.calendars.allow_private))
}

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
    let parts = WebDependencies { egress, secrets, converter, clock, sign: sinks::signature };
    Web::new(&config.web, parts).map_err(SetupError::Config)
}
