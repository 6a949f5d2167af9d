//! Histograms of durations, in Prometheus' text format.

use std::{fmt::Write as _, time::Duration};

/// The upper bounds, in milliseconds and as Prometheus reads them, in seconds. The last one is the longest that a turn works by itself.
const BUCKETS: [(u128, &str); 15] = [
    (100, "0.1"),
    (250, "0.25"),
    (500, "0.5"),
    (1_000, "1"),
    (2_000, "2"),
    (4_000, "4"),
    (8_000, "8"),
    (15_000, "15"),
    (30_000, "30"),
    (60_000, "60"),
    (120_000, "120"),
    (300_000, "300"),
    (600_000, "600"),
    (1_800_000, "1800"),
    (3_600_000, "3600"),
];

/// Name, kind, labels and description.
pub(crate) type MetricFamily = (&'static str, &'static str, &'static str, &'static str);

/// Appends the head of a family, and returns its name.
pub(crate) fn head(out: &mut String, (name, kind, _, help): MetricFamily) -> &'static str {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    name
}

/// Durations of one series.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    ms: u128,
}

impl Histogram {
    /// Counts a duration.
    pub(crate) fn add(&mut self, took: Duration) {
        let ms = took.as_millis();
        self.count += 1;
        self.ms += ms;
        let bucket = BUCKETS.iter().position(|(bound, _)| ms <= *bound);
        if let Some(bucket) = bucket.and_then(|bucket| self.buckets.get_mut(bucket)) {
            *bucket += 1;
        }
    }

    /// Appends its lines; `labels` without braces, such as `outcome="done"`.
    pub(crate) fn write(&self, out: &mut String, name: &str, labels: &str) {
        let mut below = 0;
        for ((_, bound), count) in BUCKETS.iter().zip(&self.buckets) {
            below += count;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
        }
        let Self { count, ms, .. } = self;
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}.{:03}", ms / 1000, ms % 1000);
        let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
    }
}
