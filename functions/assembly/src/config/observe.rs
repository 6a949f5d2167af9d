//! `[observe]` and `[telemetry]`: the observers of tasks, and traces.

use serde::Deserialize;

/// `[observe]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observe {
    /// Whether the observers that flows list in `plugins.yaml` may be in private networks and on this machine. The endpoint of
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` always may.
    pub allow_private: bool,
}

/// `[telemetry]`
///
/// OpenTelemetry's own variables, such as `OTEL_EXPORTER_OTLP_ENDPOINT`, go before these keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// The address of a collector of OTLP over HTTP, such as `http://127.0.0.1:4318`: traces of chats and of flows go to its
    /// `v1/traces`. It may be in a private network. Nothing is sent without one.
    pub otlp_endpoint: Option<String>,
    /// Headers that the collector wants, as `name=value,name=value`. They are secrets.
    pub otlp_headers_secret: Option<models::Secret>,
    /// The name of this service in traces: `buildscale` when none.
    pub service_name: Option<String>,
    /// Whether the contents of messages and tool calls are in the traces.
    pub content: bool,
}

impl Telemetry {
    /// The collector that it names.
    pub fn collector(&self) -> sinks::Collector {
        sinks::Collector {
            endpoint: self.otlp_endpoint.clone(),
            headers: self.otlp_headers_secret.clone(),
            service_name: self.service_name.clone(),
            content: self.content,
        }
    }
}
