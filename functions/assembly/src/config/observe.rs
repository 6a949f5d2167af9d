//! `[observe]` and `[telemetry]`: the observers of tasks, and traces.

use super::Config;
use crate::SetupError;
use serde::Deserialize;
use sinks::Otlp;
use std::sync::Arc;

/// OpenTelemetry's own variable for the address of the collector.
pub(super) const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

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

impl Config {
    /// The collector that traces go to, where one is named.
    ///
    /// # Errors
    /// [`SetupError::Config`] with the key or the variable, when its address is none of HTTP.
    pub fn collector(&self, environment: &[(String, String)]) -> Result<Option<Arc<Otlp>>, SetupError> {
        let is_variable = environment.iter().any(|(name, value)| name == ENDPOINT && !value.trim().is_empty());
        let key = if is_variable { ENDPOINT } else { "telemetry.otlp_endpoint" };
        sinks::collector(environment, &self.telemetry.collector())
            .map_err(|error| SetupError::Config(format!("{key}: {}", error.message)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_none_is_told_with_its_key_or_its_variable() {
        let mut config = Config::default();
        config.telemetry.otlp_endpoint = Some("collector".into());
        let refused = |environment: &[(&str, &str)]| {
            let environment: Vec<_> =
                environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            config.collector(&environment).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(refused(&[]).ends_with("telemetry.otlp_endpoint: this is no URL"), "{}", refused(&[]));
        let variable = refused(&[(ENDPOINT, "ftp://collector.example")]);
        assert!(variable.ends_with("OTEL_EXPORTER_OTLP_ENDPOINT: only http and https are spoken"), "{variable}");
        assert_eq!(refused(&[(ENDPOINT, "http://127.0.0.1:4318")]), "");
        assert!(Config::default().collector(&[]).is_ok_and(|collector| collector.is_none()));
    }
}
