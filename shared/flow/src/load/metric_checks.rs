//! Checks that the keys of `metrics.yaml` and `providers.yaml` can take effect (step 7).

use super::{Loader, report::nearest};
use crate::{
    adapters::Adapters,
    manifest::MetricManifest,
    metrics::{self, Metric, Sort},
};
use serde_json::Value;

/// The most buckets of a histogram, and the most further labels: each is a series for each that there was without it.
const BUCKETS: usize = 32;
const LABELS: usize = 8;

impl Loader<'_> {
    /// The metrics of a flow.
    pub(super) fn check_metrics(&mut self) {
        let metrics = std::mem::take(&mut self.docs.metrics.value.metrics);
        for (place, wanted) in metrics.iter().enumerate() {
            let at = format!("/metrics/{place}");
            if metrics.iter().take(place).any(|earlier| earlier.name == wanted.name) {
                let message = format!("`{}` is there twice", wanted.name);
                self.metric_fault(&format!("{at}/name"), "duplicate_id", message, "keep one of them".into());
            }
            let Some(metric) = metrics::named(&wanted.name) else {
                let names = metrics::ALL.iter().map(|metric| metric.name);
                let hint = nearest(&wanted.name, names, "the schema of metrics.yaml").unwrap_or_default();
                let message = format!("there is no metric `{}`", wanted.name);
                self.metric_fault(&format!("{at}/name"), "unknown_metric", message, hint);
                continue;
            };
            if wanted.sort.as_deref().is_some_and(|sort| sort != metric.sort.word()) {
                let message = format!("`{}` is a {}", metric.name, metric.sort.word());
                self.metric_fault(&format!("{at}/type"), "wrong_value", message, "leave `type` out, or say so".into());
            }
            self.check_buckets(&at, metric, wanted);
            self.check_labels(&at, metric, wanted);
        }
        self.docs.metrics.value.metrics = metrics;
    }

    fn check_buckets(&mut self, at: &str, metric: &Metric, wanted: &MetricManifest) {
        let buckets = &wanted.buckets;
        let (smallest, hint) = match metric.sort {
            Sort::Counter | Sort::Gauge if buckets.is_empty() => return,
            Sort::Counter | Sort::Gauge => {
                let message = format!("a {} has no buckets", metric.sort.word());
                return self.metric_fault(
                    &format!("{at}/buckets"),
                    "misplaced_key",
                    message,
                    "leave `buckets` out".into(),
                );
            }
            Sort::Seconds => (0.001, "they are seconds, rising, of at least a millisecond each"),
            Sort::Tokens => (1.0, "they are tokens, whole and rising"),
            Sort::Bytes => (1.0, "they are bytes, whole and rising"),
        };
        let whole = |bound: &f64| metric.sort == Sort::Seconds || bound.fract() == 0.0;
        let sound = |bound: &f64| bound.is_finite() && *bound >= smallest && *bound < 1e12 && whole(bound);
        // Steps that are too small to be measured are one and the same bucket.
        let rising = buckets.windows(2).all(|pair| matches!(pair, [low, high] if *high >= low + smallest));
        if !(buckets.iter().all(sound) && rising) {
            self.metric_fault(
                &format!("{at}/buckets"),
                "wrong_value",
                "these are no bounds of buckets".into(),
                hint.into(),
            );
        } else if buckets.len() > BUCKETS {
            let message = format!("{} buckets are too many; {BUCKETS} fit", buckets.len());
            self.metric_fault(&format!("{at}/buckets"), "wrong_value", message, "leave some out".into());
        }
    }

    fn check_labels(&mut self, at: &str, metric: &Metric, wanted: &MetricManifest) {
        if wanted.labels.len() > LABELS {
            let message = format!("{} labels are too many; {LABELS} fit", wanted.labels.len());
            self.metric_fault(&format!("{at}/labels"), "wrong_value", message, "leave some out".into());
        }
        for (name, value) in &wanted.labels {
            let at = format!("{at}/labels/{}", name.replace('~', "~0").replace('/', "~1"));
            let mut letters = name.chars();
            let first = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
            let sound = first && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            if !sound || name.starts_with("__") {
                let hint = "letters, digits and `_`; no digit at its beginning";
                self.metric_fault(&at, "wrong_value", "this is no name of a label".into(), hint.into());
            } else if metric.labels.contains(&name.as_str()) || name == "le" {
                let message = format!("`{}` has the label `{name}` already", metric.name);
                self.metric_fault(&at, "wrong_value", message, "choose another name".into());
            } else if matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
                let hint = "it is a text, a number, true or false";
                self.metric_fault(
                    &at,
                    "wrong_type",
                    format!("`{name}` has no value that a label can have"),
                    hint.into(),
                );
            }
        }
    }

    fn metric_fault(&mut self, pointer: &str, code: &'static str, message: String, hint: String) {
        self.faults.add(self.docs.metrics.at(pointer), code, message, hint);
    }

    /// Whether there are the adapters that providers name, and whether these can be used as they are configured.
    pub(super) fn check_adapters(&mut self) {
        let adapters = Adapters::builtin();
        let providers = &self.docs.providers.value.providers;
        for fault in adapters.check(providers, &self.docs.credentials.value.provider_credentials) {
            // A credential that is missing has its own fault, with a nearer hint; and so has an id that is there twice.
            let said = matches!(fault.field, "id")
                || (fault.field == "credentials"
                    && providers
                        .iter()
                        .any(|provider| provider.id == fault.provider && provider.credentials.is_some()));
            let place = providers.iter().position(|provider| provider.id == fault.provider);
            let Some(place) = place.filter(|_| !said) else { continue };
            let written = match fault.field {
                "credentials" => "id",
                "adapter" if providers.get(place).is_some_and(|provider| provider.adapter.is_none()) => "id",
                field => field,
            };
            let at = self.docs.providers.at(&format!("/providers/{place}/{written}"));
            let hint = match fault.field {
                "adapter" => "name one of them in `adapter`",
                "version" => "leave `version` out, or say the one that there is",
                "base_url" => "it is `https://host/path`, without a password",
                _ => "name a credential of provider_credentials.yaml in `credentials`, or an address in `base_url`",
            };
            self.faults.add(at, "unusable_provider", format!("`{}`: {}", fault.provider, fault.message), hint);
        }
    }
}
