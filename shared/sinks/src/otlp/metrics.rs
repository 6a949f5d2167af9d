//! The usage in a batch, as metrics: each batch has only the increase since the one before it (delta temporality).

use super::{
    attributes::{Attributes, provider_name},
    spans::{nanos, number},
};
use domain::Timestamp;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use telemetry::TaskFact;

const DELTA: u8 = 1;
/// The bounds that the conventions recommend for tokens.
const TOKENS: [f64; 14] = [
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0,
    67108864.0,
];
/// The same for durations, in seconds.
const SECONDS: [f64; 14] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The key of a series: flow, node, model, and a further attribute.
type Series = (String, String, String, &'static str);

#[derive(Default)]
struct Histogram(BTreeMap<Series, Vec<f64>>);

/// The metrics of a batch; none when nothing in it was measured.
pub(super) fn metrics(batch: &[Arc<TaskFact>]) -> Vec<Value> {
    let (mut tokens, mut seconds) = (Histogram::default(), Histogram::default());
    let (mut from, mut to) = (Timestamp::from_millis(i64::MAX), Timestamp::from_millis(0));
    for fact in batch.iter().filter(|fact| fact.event == "node_finished") {
        let (Some(metrics), Some(node)) = (fact.data.get("metrics"), fact.data.get("node").and_then(Value::as_str))
        else {
            continue;
        };
        (from, to) = (from.min(fact.at), to.max(fact.at));
        let about = fact.about.as_ref().filter(|about| about.agent.is_some());
        let model = about.and_then(|about| about.model.clone()).unwrap_or_default();
        let series = |which| (fact.flow.name.clone(), node.to_owned(), model.clone(), which);
        let took = number(metrics, "duration_ms") as f64 / 1000.0;
        seconds.0.entry(series("")).or_default().push(took);
        if let Some(usage) = metrics.get("usage").filter(|_| about.is_some()) {
            tokens.0.entry(series("input")).or_default().push(number(usage, "input_tokens") as f64);
            tokens.0.entry(series("output")).or_default().push(number(usage, "output_tokens") as f64);
        }
    }
    let mut all = Vec::new();
    if let Some(points) = tokens.points(&TOKENS, from, to) {
        let points = json!({ "dataPoints": points, "aggregationTemporality": DELTA });
        all.push(json!({ "name": "gen_ai.client.token.usage", "unit": "{token}", "histogram": points }));
    }
    if let Some(points) = seconds.points(&SECONDS, from, to) {
        let points = json!({ "dataPoints": points, "aggregationTemporality": DELTA });
        all.push(json!({ "name": "buildscale.node.duration", "unit": "s", "histogram": points }));
    }
    all
}

impl Histogram {
    fn points(self, bounds: &[f64], from: Timestamp, to: Timestamp) -> Option<Vec<Value>> {
        let point = |((flow, node, model, which), values): (Series, Vec<f64>)| {
            let mut attributes =
                Attributes::default().text("buildscale.flow.name", &flow).text("buildscale.node", &node);
            if let Some((provider, name)) = model.split_once('/') {
                attributes =
                    attributes.text("gen_ai.provider.name", provider_name(provider)).text("gen_ai.request.model", name);
            }
            if !which.is_empty() {
                attributes = attributes.text("gen_ai.operation.name", "invoke_agent").text("gen_ai.token.type", which);
            }
            let mut counts = vec![0_u64; bounds.len() + 1];
            for value in &values {
                let bucket = bounds.iter().position(|bound| value <= bound).unwrap_or(bounds.len());
                if let Some(count) = counts.get_mut(bucket) {
                    *count += 1;
                }
            }
            json!({
                "startTimeUnixNano": nanos(from),
                "timeUnixNano": nanos(to),
                "count": values.len().to_string(),
                "sum": values.iter().sum::<f64>(),
                "bucketCounts": counts.iter().map(u64::to_string).collect::<Vec<_>>(),
                "explicitBounds": bounds,
                "attributes": attributes.into_value(),
            })
        };
        (!self.0.is_empty()).then(|| self.0.into_iter().map(point).collect())
    }
}
