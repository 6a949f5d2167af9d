//! `[observe]`: observers of tasks.

use serde::Deserialize;

/// `[observe]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observe {
    /// Whether the observers that flows list in `plugins.yaml` may be in private networks and on this machine. The endpoint of
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` always may.
    pub allow_private: bool,
}
