//! Counts and durations of requests, by route, method and status.

use axum::extract::MatchedPath;
use domain::Code;
use http::{Method, StatusCode};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// The upper bounds of the histogram, in microseconds and as Prometheus reads them, in seconds.
const BUCKETS: [(u64, &str); 12] = [
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (1_000_000, "1"),
    (5_000_000, "5"),
    (30_000_000, "30"),
];

/// A route as the counters know it. Paths are those that were registered, so there are never more series than routes.
#[derive(Clone)]
pub(crate) struct Route {
    pub method: &'static str,
    path: Option<MatchedPath>,
}

impl Route {
    pub(crate) fn of(method: &Method, path: Option<&MatchedPath>) -> Self {
        let method = match *method {
            Method::GET => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            Method::HEAD => "HEAD",
            Method::OPTIONS => "OPTIONS",
            _ => "OTHER",
        };
        Self { method, path: path.cloned() }
    }

    /// The registered path; `unmatched` when none was asked for.
    pub(crate) fn path(&self) -> &str {
        self.path.as_ref().map_or("unmatched", MatchedPath::as_str)
    }
}

#[derive(Default)]
struct Series {
    count: AtomicU64,
    micros: AtomicU64,
    buckets: [AtomicU64; BUCKETS.len()],
}

/// Name, kind, label and description.
const REFUSED: (&str, &str, &str, &str) =
    ("buildscale_http_errors_total", "counter", "code", "Requests that were refused, by the code of the error.");

/// Path, method and status.
type Labels = (String, &'static str, u16);

/// All requests so far.
#[derive(Default)]
pub(crate) struct Requests {
    series: RwLock<BTreeMap<Labels, Arc<Series>>>,
    /// Refusals, by their code.
    refused: Mutex<BTreeMap<String, u64>>,
}

impl Requests {
    /// Counts one refusal.
    pub(crate) fn refuse(&self, code: Code) {
        let mut refused = self.refused.lock();
        *refused.entry(code.to_string()).or_default() += 1;
    }

    /// Counts one request; for a stream the duration is that of its head.
    pub(crate) fn record(&self, route: Route, status: StatusCode, took: Duration) {
        let series = self.series(route.path(), route.method, status.as_u16());
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        series.count.fetch_add(1, Relaxed);
        series.micros.fetch_add(micros, Relaxed);
        let bucket = BUCKETS.iter().position(|(bound, _)| micros <= *bound);
        if let Some(bucket) = bucket.and_then(|bucket| series.buckets.get(bucket)) {
            bucket.fetch_add(1, Relaxed);
        }
    }

    fn series(&self, path: &str, method: &'static str, status: u16) -> Arc<Series> {
        let key = (path.to_owned(), method, status);
        if let Some(series) = self.series.read().get(&key) {
            return series.clone();
        }
        self.series.write().entry(key).or_default().clone()
    }

    /// Everything in Prometheus' text format.
    pub(crate) fn write(&self, out: &mut String) {
        let all = self.series.read();
        // Writing to memory does not fail.
        let _ = out.write_str("# HELP buildscale_http_request_duration_seconds Time until the head of an answer.\n");
        let _ = out.write_str("# TYPE buildscale_http_request_duration_seconds histogram\n");
        for ((route, method, status), series) in all.iter() {
            let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
            let name = "buildscale_http_request_duration_seconds";
            let mut below = 0;
            for ((_, bound), bucket) in BUCKETS.iter().zip(&series.buckets) {
                below += bucket.load(Relaxed);
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {below}");
            }
            let (count, micros) = (series.count.load(Relaxed), series.micros.load(Relaxed));
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
            let _ = writeln!(out, "{name}_sum{{{labels}}} {}.{:06}", micros / 1_000_000, micros % 1_000_000);
            let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
        }
        let (name, kind, _, help) = REFUSED;
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (code, count) in self.refused.lock().iter() {
            let _ = writeln!(out, "{name}{{code=\"{code}\"}} {count}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_the_sum_is_in_seconds() {
        let requests = Requests::default();
        for ms in [1, 3, 60_000] {
            requests.record(Route::of(&Method::GET, None), StatusCode::OK, Duration::from_millis(ms));
        }
        let mut out = String::new();
        requests.write(&mut out);
        let labels = "method=\"GET\",route=\"unmatched\",status=\"200\"";
        for line in [
            format!("_bucket{{{labels},le=\"0.0005\"}} 0"),
            format!("_bucket{{{labels},le=\"0.001\"}} 1"),
            format!("_bucket{{{labels},le=\"30\"}} 2"),
            format!("_bucket{{{labels},le=\"+Inf\"}} 3"),
            format!("_sum{{{labels}}} 60.004000"),
            format!("_count{{{labels}}} 3"),
        ] {
            assert!(out.contains(&format!("{line}\n")), "{line} is not in\n{out}");
        }
    }
}
