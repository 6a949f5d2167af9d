//! The selection of metrics by a flow's `metrics.yaml`.

use super::catalog::{self, Metric, Sort};
use flow::manifest::{MetricManifest, Metrics};
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

/// The upper bounds of a histogram, as they are measured, and as they are shown.
pub(super) type Bounds = Arc<[(u64, String)]>;

/// The metrics that one flow wants.
#[derive(Debug, Default)]
pub(super) struct MetricSelection {
    /// The flow, by name.
    pub flow: String,
    /// Nothing at all.
    silent: bool,
    /// Only the listed ones.
    listed_only: bool,
    listed: BTreeMap<&'static str, Listed>,
    /// People's descriptions: lines of `buildscale_flow_metrics_info`, without their values.
    pub about: Vec<String>,
}

#[derive(Debug)]
struct Listed {
    enabled: bool,
    /// Labels that every value has, as they are shown after the others.
    labels: Arc<str>,
    bounds: Option<Bounds>,
}

impl MetricSelection {
    /// Everything, as it comes: for a flow whose manifests are not known.
    pub fn everything(flow: &str) -> Self {
        Self { flow: flow.to_owned(), ..Self::default() }
    }

    /// The selection in this manifest of the flow; the loader has checked it.
    pub fn of(flow: &str, manifest: &Metrics) -> Self {
        let listed = manifest.metrics.iter().filter_map(|one| {
            let metric = catalog::named(&one.name)?;
            Some((
                metric.name,
                Listed { enabled: one.enabled, labels: labels(one).into(), bounds: bounds(metric, one) },
            ))
        });
        Self {
            flow: flow.to_owned(),
            silent: !manifest.enabled,
            listed_only: !manifest.metrics.is_empty(),
            listed: listed.collect(),
            about: about(flow, manifest),
        }
    }

    /// The further labels of a metric; none when it is not wanted.
    pub fn labels(&self, metric: &Metric) -> Option<Arc<str>> {
        if self.silent {
            return None;
        }
        match self.listed.get(metric.name) {
            Some(listed) => listed.enabled.then(|| listed.labels.clone()),
            None => (!self.listed_only).then(Arc::default),
        }
    }

    /// The bounds of a histogram, where the flow has its own.
    pub fn bounds(&self, metric: &Metric) -> Option<Bounds> {
        self.listed.get(metric.name)?.bounds.clone()
    }
}

fn labels(one: &MetricManifest) -> String {
    let mut text = String::new();
    for (name, value) in &one.labels {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, ",{name}=\"{}\"", escaped(&value));
    }
    text
}

fn bounds(metric: &Metric, one: &MetricManifest) -> Option<Bounds> {
    let measured = |bound: f64| match metric.sort {
        Sort::Seconds => (bound * 1000.0).round() as u64,
        Sort::Tokens | Sort::Bytes | Sort::Counter | Sort::Gauge => bound.round() as u64,
    };
    let own = one.buckets.iter().map(|bound| (measured(*bound), bound.to_string()));
    (!one.buckets.is_empty()).then(|| own.collect())
}

fn about(flow: &str, manifest: &Metrics) -> Vec<String> {
    let version = match &manifest.version {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line = |metric: &str, description: &str| {
        let pairs = [("flow", flow), ("version", &version), ("metric", metric), ("description", description)];
        pairs.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).join(",")
    };
    if manifest.metrics.is_empty() && !version.is_empty() {
        return vec![line("", "")];
    }
    let described = manifest.metrics.iter().filter(|one| one.description.is_some() || !version.is_empty());
    described.map(|one| line(&one.name, one.description.as_deref().unwrap_or_default())).collect()
}

/// A label's value as Prometheus reads it.
pub(super) fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
