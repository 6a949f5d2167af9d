//! Metrics for processes that cannot be scraped: a line of the log in CloudWatch's embedded metric format, at the end of each invocation,
//! with the counts since the last one.
//!
//! There is no second set of counters: the line is made of the very text that `/metrics` shows elsewhere. Only sums are in it, so that any
//! number of instances add up; of a gauge, each would tell its own. Zeros are left out: they add nothing, and each name is paid for.

use api::Counters;
use domain::Timestamp;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The namespace in CloudWatch. `infra/watching.yaml` shows the metrics by these names.
const NAMESPACE: &str = "BuildScale";

/// Each metric, and the series that it is the sum of: those of a name, or those of them with a label, or without it where it is written with `!=`.
const METRICS: [(&str, &str, &str); 30] = [
    ("Faults", "buildscale_faults_total", ""),
    ("Commands", "buildscale_deliveries_acknowledged_total", ""),
    ("RetriedDeliveries", "buildscale_deliveries_retried_total", ""),
    ("Checkpoints", "buildscale_actors_checkpointed_total", ""),
    ("Steps", "buildscale_steps_total", ""),
    ("TurnsDone", "buildscale_turns_total", "outcome=\"done\""),
    ("TurnsStopped", "buildscale_turns_total", "outcome=\"stopped\""),
    ("TurnsFailed", "buildscale_turns_total", "outcome=\"failed\""),
    ("TurnsBegunAgain", "buildscale_turns_total", "outcome=\"again\""),
    ("ModelCalls", "buildscale_model_calls_total", ""),
    ("ModelRefusals", "buildscale_model_errors_total", "code=\"UPSTREAM_REFUSED\""),
    ("InputTokens", "buildscale_model_tokens_total", "direction=\"input\""),
    ("OutputTokens", "buildscale_model_tokens_total", "direction=\"output\""),
    ("ToolCalls", "buildscale_tool_calls_total", ""),
    ("ToolFailures", "buildscale_tool_calls_total", "outcome=\"failure\""),
    ("ChatsPaused", "buildscale_chat_changes_total", "to=\"paused\""),
    ("TasksBegun", "buildscale_task_changes_total", "to=\"begun\""),
    ("TasksSuspended", "buildscale_task_changes_total", "to=\"suspended\""),
    ("TasksParked", "buildscale_task_changes_total", "to=\"parked\""),
    ("TasksSucceeded", "buildscale_task_changes_total", "to=\"succeeded\""),
    ("TasksFailed", "buildscale_task_changes_total", "to=\"failed\""),
    ("LostEvents", "buildscale_observer_events_total", "result!=\"delivered\""),
    ("LostTraces", "buildscale_traced_turns_total", "result!=\"delivered\""),
    ("Swept", "buildscale_swept_total", ""),
    ("SweepsFailed", "buildscale_sweeps_failed_total", ""),
    ("RowsLeftOut", "buildscale_rows_left_out_total", ""),
    ("DamageFound", "buildscale_archive_damage_found_total", ""),
    ("BusFailures", "buildscale_bus_failures_total", ""),
    ("SandboxFailures", "buildscale_sandbox_failures_total", ""),
    ("WebhooksDisabled", "buildscale_webhooks_disabled_total", ""),
];

/// Makes the lines of one function.
pub struct Emf {
    function: String,
    counters: Vec<Counters>,
    told: Mutex<BTreeMap<&'static str, u64>>,
}

impl Emf {
    /// Of the values of `counters`, under the function's name.
    pub fn new(function: impl Into<String>, counters: Vec<Counters>) -> Self {
        Self { function: function.into(), counters, told: Mutex::default() }
    }

    /// The line of the counts since the last one; none when all are zero.
    pub fn line(&self, at: Timestamp) -> Option<String> {
        let mut text = String::new();
        self.counters.iter().for_each(|write| write(&mut text));
        let mut told = self.told.lock();
        let mut counted = Map::new();
        for (metric, series, label) in METRICS {
            let now = sum(&text, series, label);
            let before = told.insert(metric, now).unwrap_or_default();
            if now > before {
                counted.insert(metric.to_owned(), (now - before).into());
            }
        }
        if counted.is_empty() {
            return None;
        }
        let metrics: Vec<Value> = counted.keys().map(|name| json!({ "Name": name, "Unit": "Count" })).collect();
        let directive = json!({ "Namespace": NAMESPACE, "Dimensions": [["Function"]], "Metrics": metrics });
        counted.insert("Function".into(), self.function.clone().into());
        counted.insert("_aws".into(), json!({ "Timestamp": at.as_millis(), "CloudWatchMetrics": [directive] }));
        Some(Value::Object(counted).to_string())
    }
}

/// The sum of the series of this name, of those that fit the label if one is given.
fn sum(text: &str, name: &str, label: &str) -> u64 {
    let (label, has_it) = match label.split_once("!=") {
        Some((label, value)) => (format!("{label}={value}"), false),
        None => (label.to_owned(), true),
    };
    let value = |line: &str| {
        let (series, value) = line.rsplit_once(' ')?;
        let labels = series.strip_prefix(name)?;
        let fits = labels.is_empty() || labels.starts_with('{');
        if fits && labels.contains(&label) == has_it { value.parse::<u64>().ok() } else { None }
    };
    text.lines().filter_map(value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    };

    #[test]
    fn a_line_tells_the_counts_since_the_last_and_leaves_out_zeros() -> Result<(), serde_json::Error> {
        let count = Arc::new(AtomicU64::new(2));
        let counter = {
            let count = count.clone();
            move |out: &mut String| {
                let n = count.load(Relaxed);
                out.push_str("# HELP buildscale_steps_total Steps.\n# TYPE buildscale_steps_total counter\n");
                out.push_str(&format!(
                    "buildscale_steps_total{{of=\"chat\"}} {n}\nbuildscale_steps_total{{of=\"task\"}} 5\n"
                ));
                out.push_str("buildscale_steps_total_of_others 100\n");
                out.push_str("buildscale_tool_calls_total{outcome=\"success\"} 3\n");
            }
        };
        let emf = Emf::new("dev-worker", vec![Box::new(counter)]);
        let at = Timestamp::from_millis(1_700_000_000_000);
        let expected = json!({
            "_aws": {
                "Timestamp": 1_700_000_000_000_i64,
                "CloudWatchMetrics": [{
                    "Namespace": "BuildScale",
                    "Dimensions": [["Function"]],
                    "Metrics": [{ "Name": "Steps", "Unit": "Count" }, { "Name": "ToolCalls", "Unit": "Count" }],
                }],
            },
            "Function": "dev-worker",
            "Steps": 7,
            "ToolCalls": 3,
        });
        let line = emf.line(at).unwrap_or_default();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Value>(&line)?, expected);
        assert_eq!(emf.line(at), None);
        count.store(6, Relaxed);
        let next: Value = serde_json::from_str(&emf.line(at).unwrap_or_default())?;
        assert_eq!((&next["Steps"], next.get("ToolCalls")), (&json!(4), None));
        Ok(())
    }

    #[test]
    fn events_that_an_observer_does_not_get_are_lost_for_either_reason() -> Result<(), serde_json::Error> {
        let counter = |out: &mut String| {
            for (sink, result, count) in
                [("a", "delivered", 100), ("a", "dropped", 5), ("a", "lost", 1), ("b", "dropped", 2)]
            {
                let labels = format!("sink=\"{sink}\",result=\"{result}\"");
                out.push_str(&format!("buildscale_observer_events_total{{{labels}}} {count}\n"));
            }
            out.push_str("buildscale_traced_turns_total{result=\"delivered\"} 7\n");
            out.push_str("buildscale_traced_turns_total{result=\"lost\"} 3\n");
        };
        let emf = Emf::new("dev-worker", vec![Box::new(counter)]);
        let line: Value = serde_json::from_str(&emf.line(Timestamp::from_millis(1)).unwrap_or_default())?;
        assert_eq!((&line["LostEvents"], &line["LostTraces"]), (&json!(8), &json!(3)));
        Ok(())
    }

    #[test]
    fn the_dashboard_shows_metrics_that_exist() {
        let dashboard = include_str!("../../../infra/watching.yaml");
        let shown =
            dashboard.lines().filter_map(|line| line.trim().strip_prefix("[\"BuildScale\", \"")?.split('"').next());
        let shown: Vec<&str> = shown.collect();
        assert!(!shown.is_empty());
        for name in shown {
            assert!(METRICS.iter().any(|(metric, ..)| *metric == name), "{name} is counted nowhere");
        }
    }

    #[test]
    fn alarms_watch_metrics_that_exist() {
        let templates = [include_str!("../../../infra/watching.yaml"), include_str!("../../../infra/functions.yaml")];
        let ours = templates.iter().flat_map(|text| text.split("Namespace: BuildScale\n").skip(1));
        let watched: Vec<&str> =
            ours.filter_map(|rest| rest.trim_start().strip_prefix("MetricName: ")?.lines().next()).collect();
        // The alert rules of a hub report these, too, except for the bus and the machines of sandboxes: a hub has both in its own process.
        let all = [
            "Faults",
            "RowsLeftOut",
            "WebhooksDisabled",
            "SweepsFailed",
            "LostEvents",
            "LostTraces",
            "ModelRefusals",
            "TasksParked",
            "ChatsPaused",
            "DamageFound",
            "BusFailures",
            "SandboxFailures",
        ];
        for name in all {
            assert!(watched.contains(&name), "no alarm watches {name}");
        }
        for name in watched {
            assert!(METRICS.iter().any(|(metric, ..)| *metric == name), "{name} is counted nowhere");
        }
    }
}
