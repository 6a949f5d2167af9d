//! Counters, gauges and histograms by label, in Prometheus' text format, with a bound on how many series there are.

use super::{
    catalog::Metric,
    selection::{Bounds, MetricSelection, escaped},
};
use std::{
    collections::BTreeMap,
    fmt::{Display, Write as _},
    sync::Arc,
};

/// The most series of one metric; further ones are counted under `other`.
pub(crate) const MOST_SERIES: usize = 1_000;
/// The longest name in a label, in characters.
const LONGEST: usize = 64;
/// Their label.
pub(crate) const OTHER: &str = "other";

/// The values of a metric's own labels, in their order, and the further labels of the flow.
type Labels = (Vec<String>, Arc<str>);

/// One metric with all its series.
pub(super) struct MetricFamily<V> {
    metric: &'static Metric,
    series: BTreeMap<Labels, V>,
}

/// The count, the sum, and the count up to each bound.
pub(super) struct Buckets {
    bounds: Bounds,
    count: u64,
    sum: u64,
    below: Vec<u64>,
}

impl<V> MetricFamily<V> {
    pub fn new(metric: &'static Metric) -> Self {
        Self { metric, series: BTreeMap::new() }
    }

    /// The series with these labels; that of everything else once there are too many. None when the flow does not want it.
    fn series(&mut self, wanted: &MetricSelection, labels: &[&str], new: impl FnOnce() -> V) -> Option<&mut V> {
        let further = wanted.labels(self.metric)?;
        let mut key: Labels = (labels.iter().map(|label| label.chars().take(LONGEST).collect()).collect(), further);
        if self.series.len() >= MOST_SERIES && !self.series.contains_key(&key) {
            key = (labels.iter().map(|_| OTHER.to_owned()).collect(), Arc::default());
        }
        Some(self.series.entry(key).or_insert_with(new))
    }

    fn head(&self, out: &mut String) {
        let Metric { shown, help, sort, .. } = self.metric;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {shown} {help}\n# TYPE {shown} {}", sort.word());
    }

    fn labels(&self, (values, further): &Labels) -> String {
        let pairs =
            self.metric.labels.iter().zip(values).map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
        pairs.collect::<Vec<_>>().join(",") + further
    }
}

impl<V: Display> MetricFamily<V> {
    pub fn render(&self, out: &mut String) {
        self.head(out);
        for (labels, value) in &self.series {
            let _ = writeln!(out, "{}{{{}}} {value}", self.metric.shown, self.labels(labels));
        }
    }
}

impl MetricFamily<u64> {
    pub fn add(&mut self, wanted: &MetricSelection, labels: &[&str], more: u64) {
        if let Some(value) = self.series(wanted, labels, u64::default) {
            *value = value.saturating_add(more);
        }
    }
}

impl MetricFamily<i64> {
    pub fn change(&mut self, wanted: &MetricSelection, labels: &[&str], by: i64) {
        if let Some(value) = self.series(wanted, labels, i64::default) {
            *value += by;
        }
    }
}

impl MetricFamily<f64> {
    pub fn add(&mut self, wanted: &MetricSelection, labels: &[&str], more: f64) {
        let Some(value) = self.series(wanted, labels, f64::default) else { return };
        // A value that is not a price is not added.
        if more.is_finite() && more > 0.0 {
            *value += more;
        }
    }
}

impl MetricFamily<Buckets> {
    /// Counts one value, by the flow's own bounds or else these.
    pub fn observe(&mut self, wanted: &MetricSelection, labels: &[&str], value: u64, usual: &Bounds) {
        let metric = self.metric;
        let new = || {
            let bounds = wanted.bounds(metric).unwrap_or_else(|| usual.clone());
            Buckets { count: 0, sum: 0, below: vec![0; bounds.len()], bounds }
        };
        let Some(buckets) = self.series(wanted, labels, new) else { return };
        buckets.count += 1;
        buckets.sum = buckets.sum.saturating_add(value);
        let place = buckets.bounds.iter().position(|(bound, _)| value <= *bound);
        if let Some(bucket) = place.and_then(|place| buckets.below.get_mut(place)) {
            *bucket += 1;
        }
    }

    /// `thousandths`: values that are measured in thousandths are shown in whole units.
    pub fn render_buckets(&self, out: &mut String, thousandths: bool) {
        let name = self.metric.shown;
        self.head(out);
        for (values, buckets) in &self.series {
            let labels = self.labels(values);
            let mut below = 0;
            for ((_, bound), bucket) in buckets.bounds.iter().zip(&buckets.below) {
                below += bucket;
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
            }
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", buckets.count);
            let _ = match thousandths {
                true => writeln!(out, "{name}_sum{{{labels}}} {}.{:03}", buckets.sum / 1000, buckets.sum % 1000),
                false => writeln!(out, "{name}_sum{{{labels}}} {}", buckets.sum),
            };
            let _ = writeln!(out, "{name}_count{{{labels}}} {}", buckets.count);
        }
    }
}
