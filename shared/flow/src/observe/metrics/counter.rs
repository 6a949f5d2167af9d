//! Counters and histograms by label, in Prometheus' text format, with a bound on how many series there are.

use std::{collections::BTreeMap, fmt::Write as _};

/// The most series of one metric; what goes beyond is counted under `other`.
pub(super) const MOST_SERIES: usize = 1_000;
/// The longest name in a label, in characters.
const LONGEST: usize = 64;
const OTHER: &str = "other";

/// The values of a metric's labels, in their order.
type Labels = Vec<String>;

/// A metric that only grows.
pub(super) struct Counter<V> {
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    series: BTreeMap<Labels, V>,
}

/// How many, how much together, and how many up to each bound.
#[derive(Clone, Default)]
pub(super) struct Buckets {
    count: u64,
    sum: u64,
    below: [u64; 12],
}

impl<V: Default> Counter<V> {
    pub(super) fn new(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> Self {
        Self { name, help, labels, series: BTreeMap::new() }
    }

    /// The series with these labels; that of everything else once there are too many.
    pub(super) fn series(&mut self, labels: &[&str]) -> &mut V {
        let mut key: Labels = labels.iter().map(|label| label.chars().take(LONGEST).collect()).collect();
        if self.series.len() >= MOST_SERIES && !self.series.contains_key(&key) {
            key = labels.iter().map(|_| OTHER.to_owned()).collect();
        }
        self.series.entry(key).or_default()
    }

    fn head(&self, out: &mut String, name: &str, sort: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {sort}", self.help);
    }

    fn shown(&self, values: &Labels) -> String {
        let pairs = self.labels.iter().zip(values).map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
        pairs.collect::<Vec<_>>().join(",")
    }
}

impl<V: Default + std::fmt::Display> Counter<V> {
    pub(super) fn render(&self, out: &mut String) {
        let name = format!("buildscale_{}_total", self.name);
        self.head(out, &name, "counter");
        for (values, value) in &self.series {
            let _ = writeln!(out, "{name}{{{}}} {value}", self.shown(values));
        }
    }
}

impl Counter<u64> {
    pub(super) fn add(&mut self, labels: &[&str], more: u64) {
        let value = self.series(labels);
        *value = value.saturating_add(more);
    }
}

impl Counter<Buckets> {
    pub(super) fn observe(&mut self, labels: &[&str], value: u64, bounds: &[(u64, &str)]) {
        let buckets = self.series(labels);
        buckets.count += 1;
        buckets.sum = buckets.sum.saturating_add(value);
        let place = bounds.iter().position(|(bound, _)| value <= *bound);
        if let Some(bucket) = place.and_then(|place| buckets.below.get_mut(place)) {
            *bucket += 1;
        }
    }

    pub(super) fn render_buckets(&self, out: &mut String, bounds: &[(u64, &str)], thousandths: bool) {
        let name = format!("buildscale_{}", self.name);
        self.head(out, &name, "histogram");
        for (values, buckets) in &self.series {
            let labels = self.shown(values);
            let mut below = 0;
            for ((_, bound), bucket) in bounds.iter().zip(&buckets.below) {
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

/// A label's value as Prometheus reads it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
