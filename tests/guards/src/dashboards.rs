//! The dashboard and the alert rules of the hub name metrics and labels that there are.
//!
//! `docs/reference/metrics.md` is written from the code that counts, and `scripts/docs --check` holds it to that.

use crate::repository::read;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const FILES: [&str; 2] = ["infra/hub/dashboard.json", "infra/hub/alerts.yaml"];
/// Labels that Prometheus itself adds.
const ADDED: [&str; 3] = ["job", "instance", "le"];

/// A family: its kind and its labels.
type Families = BTreeMap<String, (String, BTreeSet<String>)>;

fn families() -> Families {
    let cell = |text: &str| text.trim().trim_matches('`').to_owned();
    let rows = read("docs/reference/metrics.md");
    let rows = rows.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| {
        let mut cells = row.split('|');
        let (name, kind, labels) = (cell(cells.next()?), cell(cells.next()?), cells.next()?);
        let labels = labels.split(',').map(cell).filter(|label| !label.is_empty()).collect();
        cells.next().map(|_| (name, (kind, labels)))
    })
    .collect()
}

/// The family that a name is a series of.
fn family<'a>(families: &'a Families, name: &str) -> Option<&'a BTreeSet<String>> {
    let series = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
    let histogram = series.and_then(|base| families.get(base)).filter(|(kind, _)| kind == "histogram");
    let plain = families.get(name).filter(|(kind, _)| kind != "histogram");
    histogram.or(plain).map(|(_, labels)| labels)
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The metrics of an expression, each with the labels that it is asked for.
fn named(expression: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(at) = ["buildscale_", "process_"].iter().filter_map(|begin| rest.find(begin)).min() {
        let name: String = rest[at..].chars().take_while(|c| is_part(*c)).collect();
        rest = &rest[at + name.len()..];
        let asked = rest.strip_prefix('{').and_then(|inside| inside.split_once('}')).map_or("", |(inside, _)| inside);
        let labels = asked.split(',').map(|pair| pair.chars().take_while(|c| is_part(*c)).collect::<String>());
        found.push((name, labels.filter(|label| !label.is_empty()).collect()));
    }
    found
}

/// The labels by which an expression groups.
fn grouped(expression: &str) -> Vec<String> {
    let lists = expression.split(" by (").skip(1).filter_map(|rest| rest.split_once(')'));
    lists.flat_map(|(list, _)| list.split(',').map(|label| label.trim().to_owned())).collect()
}

/// The expressions of both files, with their place.
fn expressions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let dashboard: Value = serde_json::from_str(&read(FILES[0])).expect("the dashboard is JSON");
    let (mut ids, mut places) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().expect("panels") {
        let title = panel["title"].as_str().unwrap_or_default();
        assert!(ids.insert(panel["id"].to_string()), "the panel {title} has the id of another one");
        assert!(places.insert(panel["gridPos"].to_string()), "the panel {title} is where another one is");
        for target in panel["targets"].as_array().into_iter().flatten() {
            found.push((format!("{}: {title}", FILES[0]), target["expr"].as_str().unwrap_or_default().to_owned()));
        }
    }
    let rules = read(FILES[1]);
    for rule in rules.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap_or_default().trim();
        for wanted in ["severity: ", "summary: ", "description: "] {
            assert!(rule.contains(wanted), "the alert {name} has no {wanted}");
        }
        let mut lines = rule.lines().skip_while(|line| !line.trim_start().starts_with("expr: >-")).skip(1);
        found.push((format!("{}: {name}", FILES[1]), lines.next().unwrap_or_default().trim().to_owned()));
    }
    found
}

#[test]
fn the_hub_s_dashboard_and_alerts_name_metrics_and_labels_that_there_are() {
    let families = families();
    assert!(families.len() > 60, "the table of metrics is read wrongly: {families:?}");
    let expressions = expressions();
    assert!(expressions.len() > 40, "only {} expressions were found", expressions.len());
    let mut faults = Vec::new();
    for (place, expression) in &expressions {
        let named = named(expression);
        let is_own = expression.contains("up{");
        if named.is_empty() && !is_own {
            faults.push(format!("{place} asks for no metric: {expression}"));
        }
        let mut known: BTreeSet<&str> = ADDED.into();
        for (name, labels) in &named {
            let Some(has) = family(&families, name) else {
                faults.push(format!("{place}: there is no metric {name}"));
                continue;
            };
            known.extend(has.iter().map(String::as_str));
            let odd = labels.iter().filter(|label| !has.contains(*label) && !ADDED.contains(&label.as_str()));
            faults.extend(odd.map(|label| format!("{place}: {name} has no label {label}")));
        }
        let odd = grouped(expression).into_iter().filter(|label| !known.contains(label.as_str()));
        faults.extend(odd.map(|label| format!("{place} groups by {label}, which nothing has")));
    }
    assert!(faults.is_empty(), "change these, or docs/reference/metrics.md by scripts/docs:\n{}", faults.join("\n"));
}

/// The mail of an alarm is all that an operator has at night, so it leads to the remedy.
#[test]
fn every_alarm_on_aws_has_a_row_in_the_runbook_and_leads_to_it() {
    const LEADS: &str = "The remedy is in infra/README.md, Alarms.";
    let runbook = read("infra/README.md");
    let section = runbook.split("\n## Alarms\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = section.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    // The first part of each ` begins after the mark of the row.
    let rows: BTreeSet<&str> = rows.flat_map(|names| names.split('`').step_by(2)).collect();
    let mut alarms = 0;
    for file in ["infra/watching.yaml", "infra/functions.yaml", "infra/containers.yaml"] {
        for alarm in read(file).split("AlarmName: !Sub ${Name} ").skip(1) {
            alarms += 1;
            let name = alarm.lines().next().unwrap_or_default().trim();
            let group = name.split_once(' ').map_or_else(String::new, |(_, rest)| format!("… {rest}"));
            assert!(rows.contains(name) || rows.contains(group.as_str()), "infra/README.md has no row for {name:?}");
            let told = alarm.lines().find_map(|line| line.trim().strip_prefix("AlarmDescription: "));
            assert!(told.is_some_and(|told| told.ends_with(LEADS)), "{file}: the mail of {name:?} leads nowhere");
        }
    }
    assert!(alarms > 35, "only {alarms} alarms were found");
}

/// The words in the names of metrics that count faults.
const FAULTS: [&str; 16] = [
    "damage", "dead", "denials", "disabled", "errors", "failed", "failing", "failures", "faults", "full", "held",
    "left_out", "lost", "refus", "rejected", "suspects",
];
/// Metrics of faults that wake nobody, each with the reason.
const WITHOUT_ALERT: [(&str, &str); 6] = [
    ("buildscale_crash_refusals_total", "buildscale_crash_refused has the inputs, for as long as they are refused"),
    ("buildscale_http_errors_total", "most are faults of callers; those of the server are 5xx of the requests"),
    ("buildscale_task_denials_total", "a policy of a flow denied something, as it should"),
    ("buildscale_task_outputs_rejected_total", "the node is tried again, and a task that fails says so to its owner"),
    ("buildscale_threads_held_total", "buildscale_threads_held has them, for as long as they are held"),
    ("buildscale_webhook_failures_total", "buildscale_webhooks_failing has the webhooks, until their receivers answer"),
];

#[test]
fn somebody_hears_of_each_metric_of_a_fault() {
    let alerts: BTreeSet<String> = expressions()
        .iter()
        .filter(|(place, _)| place.starts_with(FILES[1]))
        .flat_map(|(_, expression)| named(expression))
        .map(|(name, _)| name)
        .collect();
    let families = families();
    for (name, reason) in WITHOUT_ALERT {
        assert!(families.contains_key(name), "there is no metric {name}, which wakes nobody because {reason}");
        assert!(!alerts.contains(name), "an alert asks for {name}, which wakes nobody because {reason}");
    }
    let is_fault = |name: &&String| FAULTS.iter().any(|word| name.contains(word));
    let is_excused = |name: &String| WITHOUT_ALERT.iter().any(|(known, _)| known == name);
    let unheard: Vec<&String> =
        families.keys().filter(is_fault).filter(|name| !alerts.contains(*name) && !is_excused(name)).collect();
    assert!(
        unheard.is_empty(),
        "{} has no alert for {unheard:?}: add one, or the reason why none is needed to WITHOUT_ALERT",
        FILES[1]
    );
}

/// The ends of routes whose answers wait for a turn, a call of a tool or a content: how long they take says nothing about the hub.
const LONG: [&str; 9] =
    ["/tools", "/mcp", "/content", "/contents/.*", "/imports", "/completions", "/responses", "/wait", "/join"];

#[test]
fn requests_that_wait_for_something_else_are_no_slow_ones() {
    let expressions = expressions();
    let (_, slow) = expressions
        .iter()
        .find(|(place, _)| place.ends_with("BuildScaleRequestsAreSlow"))
        .expect("the alert of slow requests");
    let (_, without) = slow.split_once("route!~\".*/(").expect("routes that do not count");
    let (ends, others) = without.split_once(')').expect("a list of ends");
    for end in LONG {
        assert!(ends.split('|').any(|known| format!("/{known}") == end), "{end} counts: {slow}");
    }
    assert!(others.starts_with("|/a2a.*\""), "{slow}");
}

/// The other test relies on it.
#[test]
fn a_name_that_is_wrong_is_noticed() {
    let families = families();
    let found = named("sum(rate(buildscale_model_errors_total{job=\"x\",code!=\"A\"}[5m])) / process_open_fds");
    let labels = vec!["job".to_owned(), "code".to_owned()];
    assert_eq!(
        found,
        [("buildscale_model_errors_total".to_owned(), labels), ("process_open_fds".to_owned(), Vec::new())]
    );
    assert_eq!(grouped("sum by (le, route) (x) + count by (a) (y)"), ["le", "route", "a"]);
    assert!(family(&families, "buildscale_model_duration_seconds_bucket").is_some());
    for wrong in ["buildscale_model_duration_seconds", "buildscale_turns_total_count", "buildscale_no_such_total"] {
        assert!(family(&families, wrong).is_none(), "{wrong}");
    }
}
