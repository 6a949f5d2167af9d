//! The values that no hub can work with, although they have the type of their key.

use super::Config;
use std::ops::RangeInclusive;

/// The longest time, in seconds: a hundred years. Clocks cannot count much further.
const LONGEST: u64 = 100 * 365 * 24 * 3600;
const ANY: RangeInclusive<u64> = 1..=u64::MAX;
const SECONDS: RangeInclusive<u64> = 1..=LONGEST;

/// The keys whose values are out of their bounds, each with the reason.
pub(super) fn faults(config: &Config, models: &models::Config) -> Vec<(String, String)> {
    let out = counts(config, models).into_iter().filter_map(|(key, count, bounds)| {
        let count = count.filter(|count| !bounds.contains(count))?;
        Some((key.to_owned(), explain(count, &bounds)))
    });
    out.chain(limits(config)).collect()
}

/// Each key that has bounds, with its value, if it has one, and the bounds.
fn counts(config: &Config, models: &models::Config) -> [(&'static str, Option<u64>, RangeInclusive<u64>); 24] {
    let Config { server, auth, ai, planner, tasks, sandbox, hub, webhooks, .. } = config;
    let optional = |count: Option<usize>| count.map(|count| count as u64);
    [
        ("server.connections_per_address", optional(server.connections_per_address), ANY),
        ("server.drain_seconds", server.drain_seconds, 0..=LONGEST),
        ("auth.requests_per_minute", auth.requests_per_minute.map(u64::from), ANY),
        ("auth.tokens_per_minute", auth.tokens_per_minute, ANY),
        ("ai.actor_inactivity_timeout_seconds", Some(ai.actor_inactivity_timeout_seconds), SECONDS),
        ("ai.context_cache_seconds", Some(ai.context_cache_seconds), 0..=LONGEST),
        ("ai.context_tokens", Some(ai.context_tokens), ANY),
        ("ai.question_timeout_seconds", Some(ai.question_timeout_seconds), SECONDS),
        ("ai.permission_timeout_seconds", Some(ai.permission_timeout_seconds), SECONDS),
        ("ai.max_output_tokens", models.max_output_tokens.map(u64::from), ANY),
        ("ai.retry.attempts", Some(models.retry.attempts.into()), ANY),
        ("ai.retry.first_ms", Some(models.retry.first_ms), 1..=LONGEST * 1000),
        ("ai.retry.stall_ms", Some(models.retry.stall_ms), 1..=LONGEST * 1000),
        ("planner.executor_seconds", Some(planner.executor_seconds), 0..=LONGEST),
        ("tasks.max_waiting", optional(Some(tasks.max_waiting)), ANY),
        ("tasks.handoff_depth", optional(Some(tasks.handoff_depth)), 1..=100),
        ("tasks.handoffs_per_minute", optional(Some(tasks.handoffs_per_minute)), 1..=10_000),
        ("sandbox.timeout_s", Some(sandbox.timeout_s), SECONDS),
        ("sandbox.longest_s", Some(sandbox.longest_s), 0..=LONGEST),
        ("sandbox.start_timeout_s", Some(sandbox.start_timeout_s), SECONDS),
        ("hub.agent_idle_seconds", Some(hub.agent_idle_seconds), SECONDS),
        ("hub.agent_start_seconds", Some(hub.agent_start_seconds), SECONDS),
        ("hub.max_active", optional(hub.max_active), ANY),
        (
            "webhooks.retry_seconds",
            Some(webhooks.retry_seconds),
            1..=::webhooks::RetryPace::default().longest.as_secs(),
        ),
    ]
}

fn explain(count: u64, bounds: &RangeInclusive<u64>) -> String {
    let least = bounds.start();
    match *bounds.end() {
        u64::MAX => format!("{count} is too small; write {least} or more"),
        most => format!("{count} is out of bounds; write {least} to {most}"),
    }
}

/// A limit with which no turn could work. TOML has infinite numbers and some that are none: no log can hold these.
fn limits(config: &Config) -> Option<(String, String)> {
    let limits = &config.ai.limits;
    let counts = [
        ("max_steps", u64::from(limits.max_steps)),
        ("max_tokens", limits.max_tokens),
        ("max_wall_ms", limits.max_wall_ms),
    ];
    let fault = |key: &str, words: &str| (format!("ai.limits.{key}"), words.to_owned());
    if let Some((key, _)) = counts.into_iter().find(|(_, most)| *most == 0) {
        return Some(fault(key, "0 would end each turn before it begins; write 1 or more"));
    }
    let is_limit = limits.max_cost_usd.is_finite() && limits.max_cost_usd >= 0.0;
    (!is_limit).then(|| fault("max_cost_usd", "this is no limit; write a number of 0 or more, such as 20"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sources;

    /// The keys of the faults that a configuration has.
    fn keys(text: &str) -> Vec<String> {
        let faults = Sources::of_text(text, &[]).examine().1.into_iter().map(|fault| fault.to_string());
        let place = "buildscale.toml, line 2: ";
        faults.map(|fault| fault.split_once(place).map_or(fault.clone(), |(_, rest)| rest.to_owned())).collect()
    }

    fn written(key: &str, value: impl std::fmt::Display) -> String {
        let (table, key) = key.rsplit_once('.').expect("a table and a key");
        format!("[{table}]\n{key} = {value}\n")
    }

    #[test]
    fn a_value_that_would_stop_the_work_or_the_clock_is_refused_with_its_place() {
        // Not taken from the bounds themselves: these may be wrong.
        let may_be_none = ["server.drain_seconds", "ai.context_cache_seconds", "sandbox.longest_s"];
        for (key, ..) in counts(&Config::default(), &models::Config::default()) {
            let faults = keys(&written(key, 0));
            let is_refused = faults.iter().any(|fault| fault.starts_with(&format!("{key}: 0 ")));
            let is_wrong = !may_be_none.contains(&key);
            assert_eq!((is_refused, faults.len()), (is_wrong, usize::from(is_wrong)), "{faults:?}");
            assert_eq!(keys(&written(key, 1)), Vec::<String>::new(), "{key}");
        }
        for (key, most) in [
            ("ai.actor_inactivity_timeout_seconds", LONGEST),
            ("ai.question_timeout_seconds", LONGEST),
            ("tasks.handoff_depth", 100),
            ("tasks.handoffs_per_minute", 10_000),
            ("webhooks.retry_seconds", 7_200),
        ] {
            assert_eq!(keys(&written(key, most)), Vec::<String>::new(), "{key}");
            let faults = keys(&written(key, i64::MAX));
            assert!(
                matches!(faults.as_slice(), [fault] if fault.ends_with(&format!("write 1 to {most}"))),
                "{faults:?}"
            );
        }
    }

    /// People take the sign of a comment away.
    #[test]
    fn each_number_of_the_file_to_begin_with_is_within_its_bounds() {
        let is_key = |key: &str| key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let is_number =
            |line: &str| line.split_once(" = ").is_some_and(|(key, value)| is_key(key) && value.parse::<f64>().is_ok());
        let is_table = |line: &str| line.starts_with('[') && !line.starts_with("[[");
        let lines = include_str!("../../../../docs/reference/buildscale.toml").lines();
        let set =
            lines.map(|line| line.strip_prefix("# ").filter(|own| is_number(own) || is_table(own)).unwrap_or(line));
        let text = set.collect::<Vec<_>>().join("\n");
        assert!(text.contains("\nmax_active = ") && text.contains("\n[ai.prices.NAME]\n"), "{text}");
        assert_eq!(keys(&text), Vec::<String>::new());
    }
}
