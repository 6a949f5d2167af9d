//! A task's events as people read them: a line for each node that ended, and one that moves while the task does.

use super::{look_of, took};
use crate::{
    follow::Event,
    output::{Look, Style, counted, one_line},
    value::{author, list, number, text},
};
use serde_json::Value;
use std::collections::HashSet;
use tokio::time::Instant;

/// The longest remark in a line.
const LINE: usize = 160;
/// The longest reason of an end: what went wrong is often told last.
const REASON: usize = 1_000;
/// Characters of a bar.
const BAR: u64 = 24;
/// Children that failed and are named; more are only counted.
const NAMED: usize = 20;

/// The shown part, as far as later events depend on it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The node that executes, since when, and its current activity.
    now: Option<(String, Instant, &'static str)>,
    forks: Vec<Fork>,
    /// Children that failed by now.
    failed: usize,
}

/// The children of a branch or a split.
#[derive(Debug)]
struct Fork {
    node: String,
    kind: String,
    total: u64,
    done: u64,
    failed: u64,
    /// The children that were counted: one that comes to a merge ends later, too.
    seen: HashSet<String>,
    /// The merges that its children came to.
    merges: HashSet<String>,
}

impl Fork {
    /// All of its children, such as `3 subtasks`.
    fn all(&self) -> String {
        counted(self.total, &one_line(&self.kind, 20))
    }

    fn line(&self) -> String {
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        format!("{}: {} of {}{failed}", one_line(&self.node, 40), self.done, self.all())
    }
}

impl Progress {
    /// The text about `event`, if any. When a line that moves is drawn, children are counted there only.
    pub(crate) fn event(&mut self, event: &Event, live: bool, style: Style) -> Option<String> {
        let data = &event.data;
        let node = one_line(text(data, "node"), 60);
        let dim = |words: String| Some(style.paint(Look::Dim, words));
        match event.name.as_str() {
            "node_started" => {
                let retry = data.get("retry").map(|retry| {
                    let why = said(retry.get("error").unwrap_or(&Value::Null));
                    style.paint(Look::Ask, format_args!("  {node}: tried again ({}): {why}", number(retry, "number")))
                });
                self.now = Some((node, Instant::now(), ""));
                retry
            }
            "agent_asked" => {
                self.at("asks its agent");
                match number(data, "round") {
                    0 | 1 => None,
                    round => dim(format!("  {node}: asked again, round {round}")),
                }
            }
            "agent_replied" => {
                self.at("");
                None
            }
            "tool" => {
                let look = if text(data, "status") == "success" { Look::Dim } else { Look::Bad };
                let args = one_line(text(data, "args"), 80);
                Some(style.paint(look, format_args!("  {node} * {} {args}", one_line(text(data, "tool"), 40))))
            }
            "output_rejected" => {
                let errors: Vec<&str> = list(data, "errors").iter().filter_map(Value::as_str).collect();
                let words = one_line(&errors.join("; "), LINE);
                Some(style.paint(Look::Ask, format_args!("  {node}: its output does not fit: {words}")))
            }
            "denied" => {
                let (what, rule) = (one_line(text(data, "what"), LINE), one_line(text(data, "rule"), 60));
                Some(style.paint(Look::Ask, format_args!("  {node}: {what} is denied by {rule}")))
            }
            "question" => {
                self.at("waits for a person");
                None
            }
            "answered" => dim(format!("  {node}: answered by {}", author(data, "by"))),
            "node_finished" => {
                self.now = None;
                Some(finished(&node, data, style))
            }
            "forked" => {
                let fork = Fork {
                    node: node.clone(),
                    kind: text(data, "kind").to_owned(),
                    total: number(data, "total"),
                    done: 0,
                    failed: 0,
                    seen: HashSet::new(),
                    merges: HashSet::new(),
                };
                let line = format!("  {node}: {}", fork.all());
                self.forks.push(fork);
                dim(line)
            }
            "child_arrived" | "child_finished" => {
                let lines = [self.failed_child(data, style), self.child(data, live).and_then(dim)];
                let lines: Vec<String> = lines.into_iter().flatten().collect();
                (!lines.is_empty()).then(|| lines.join("\n"))
            }
            "merged" => {
                // Children that have not come to it by now are not waited for.
                self.forks.retain(|fork| !fork.merges.contains(&node));
                let failed = match list(data, "failed").len() {
                    0 => String::new(),
                    failed => format!(", {failed} failed"),
                };
                let cancelled = match list(data, "cancelled").len() {
                    0 => String::new(),
                    cancelled => format!(", {cancelled} cancelled"),
                };
                dim(format!("  {node}: merged{failed}{cancelled}"))
            }
            "went_up" => dim(format!("  went on into {node} of {}", text(data, "task_id"))),
            "paused" => {
                self.now = None;
                Some(style.paint(Look::Ask, format_args!("  paused before {node}")))
            }
            "continued" => {
                dim(if data.get("step") == Some(&Value::Bool(true)) { "  one step" } else { "  goes on" }.into())
            }
            "error" => Some(style.paint(Look::Bad, format_args!("  {}", one_line(text(data, "message"), LINE)))),
            "reset" => dim("  the stream begins anew: events may be missing".into()),
            _ => None,
        }
    }

    /// The line that moves; none when nothing does.
    pub(crate) fn live(&self, style: Style) -> Option<String> {
        let open = self.forks.iter().rev().find(|fork| fork.done < fork.total);
        if let Some(fork) = open {
            let filled = (fork.done * BAR).checked_div(fork.total).unwrap_or(0);
            let (filled, rest) = ("#".repeat(bounded(filled)), "-".repeat(bounded(BAR - filled.min(BAR))));
            return Some(format!("  {} {}", style.paint(Look::Good, format_args!("[{filled}{rest}]")), fork.line()));
        }
        let (node, since, at) = self.now.as_ref()?;
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (mark, seconds) = (style.paint(Look::Ask, "*"), style.paint(Look::Dim, format_args!("{} s", ms / 1_000)));
        Some(format!("  {mark} {} {at} {seconds}", one_line(node, 40)))
    }

    fn at(&mut self, doing: &'static str) {
        if let Some((_, _, at)) = &mut self.now {
            *at = doing;
        }
    }

    /// A child that failed, with the reason.
    fn failed_child(&mut self, data: &Value, style: Style) -> Option<String> {
        let error = data.get("error").filter(|error| error.is_object())?;
        self.failed += 1;
        match self.failed {
            ..=NAMED => {
                let child = one_line(text(data, "child"), 60);
                Some(style.paint(Look::Bad, format_args!("  ! {child}  {}", said(error))))
            }
            failed if failed == NAMED + 1 => {
                Some(style.paint(Look::Dim, "  more failed: `buildscale task show TASK --tree` has all of them"))
            }
            _ => None,
        }
    }

    /// Counts a child that ended; a line at each tenth of the way, and at its end.
    fn child(&mut self, data: &Value, live: bool) -> Option<String> {
        let child = text(data, "child");
        let of = |fork: &&mut Fork| child.strip_prefix(fork.node.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let fork = self.forks.iter_mut().rev().find(of)?;
        if let Some(merge) = data.get("node").and_then(Value::as_str) {
            fork.merges.insert(one_line(merge, 60));
        }
        // A child of a child comes along with it: only whole names count.
        let is_own = child.get(fork.node.len() + 1..).is_some_and(|rest| !rest.contains('/'));
        if !is_own || !fork.seen.insert(child.to_owned()) {
            return None;
        }
        fork.done += 1;
        fork.failed += u64::from(text(data, "status") == "failure");
        let tenth = (fork.total / 10).max(1);
        let due = fork.done == fork.total || (!live && fork.total >= 10 && fork.done % tenth == 0);
        due.then(|| format!("  {}", fork.line()))
    }
}

fn bounded(number: u64) -> usize {
    usize::try_from(number.min(BAR)).unwrap_or(0)
}

fn finished(node: &str, data: &Value, style: Style) -> String {
    let status = text(data, "status");
    let mark = match status {
        "success" => "+",
        "partial" => "~",
        _ => "!",
    };
    let metrics = data.get("metrics").unwrap_or(&Value::Null);
    let mut facts = took(number(metrics, "duration_ms"));
    if let Some(usage) = metrics.get("usage") {
        facts.push_str(&format!(
            ", {}",
            counted(number(usage, "input_tokens") + number(usage, "output_tokens"), "token")
        ));
        let cost = usage.get("cost_usd").and_then(Value::as_f64).unwrap_or_default();
        if cost > 0.0 {
            facts.push_str(&format!(", ${cost:.4}"));
        }
    }
    if number(data, "attempt") > 1 {
        facts.push_str(&format!(", attempt {}", number(data, "attempt")));
    }
    let mut line = format!("  {} {node}  {}", style.paint(look_of(status), mark), style.paint(Look::Dim, facts));
    if let Some(error) = data.get("error") {
        line.push_str(&style.paint(Look::Bad, format_args!("  {}", said(error))));
    }
    line
}

/// The message of an error, in a line among others.
pub(super) fn said(error: &Value) -> String {
    error_line(error, LINE)
}

/// The message of the error that a task ended with.
pub(super) fn reason(error: &Value) -> String {
    error_line(error, REASON)
}

fn error_line(error: &Value, limit: usize) -> String {
    format!("{} ({})", one_line(text(error, "message"), limit), one_line(text(error, "code"), 40))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(events: &[(&str, Value)], live: bool) -> Vec<String> {
        let mut progress = Progress::default();
        let event = |(name, data): &(&str, Value)| Event { number: Some(1), name: (*name).into(), data: data.clone() };
        events.iter().filter_map(|one| progress.event(&event(one), live, Style::Plain)).collect()
    }

    fn children(total: u64) -> Vec<(&'static str, Value)> {
        let mut events = vec![("forked", json!({ "node": "items", "kind": "subtask", "total": total }))];
        for n in 0..total {
            let status = if n == 3 { "failure" } else { "success" };
            events.push(("child_finished", json!({ "child": format!("items/worker[{n}]"), "status": status })));
        }
        events
    }

    #[test]
    fn a_node_is_one_line_with_its_cost() {
        let usage = json!({ "input_tokens": 100, "output_tokens": 20, "cost_usd": 0.01 });
        let metrics = json!({ "duration_ms": 1500, "usage": usage });
        let ended = json!({ "node": "draft", "status": "success", "attempt": 2, "metrics": metrics });
        let failed = json!({
            "node": "check", "status": "failure", "attempt": 1, "metrics": { "duration_ms": 3 },
            "error": { "code": "UNPROCESSABLE", "message": "no\nway" },
        });
        let events =
            [("node_started", json!({ "node": "draft" })), ("node_finished", ended), ("node_finished", failed)];
        assert_eq!(
            lines(&events, false),
            ["  + draft  1.5 s, 120 tokens, $0.0100, attempt 2", "  ! check  3 ms  no way (UNPROCESSABLE)"]
        );
    }

    #[test]
    fn children_are_counted_by_tenths_or_in_a_bar() {
        let plain = lines(&children(100), false);
        assert_eq!(plain.len(), 11);
        assert_eq!(plain.first().map(String::as_str), Some("  items: 100 subtasks"));
        assert_eq!(plain.get(2).map(String::as_str), Some("  items: 20 of 100 subtasks, 1 failed"));
        assert_eq!(lines(&children(100), true).len(), 2, "its beginning and its end");

        let mut progress = Progress::default();
        for (name, data) in children(4).into_iter().take(3) {
            progress.event(&Event { number: None, name: name.into(), data }, true, Style::Plain);
        }
        let bar = "  [############------------] items: 2 of 4 subtasks";
        assert_eq!(progress.live(Style::Plain).as_deref(), Some(bar));
    }

    #[test]
    fn children_that_come_to_a_merge_are_counted_once_and_the_merge_ends_the_count() {
        let mut progress = Progress::default();
        let mut event = |name: &str, data| {
            progress.event(&Event { number: None, name: name.into(), data }, true, Style::Plain);
            (progress.live(Style::Plain), progress.forks.iter().any(|fork| fork.done < fork.total))
        };
        event("forked", json!({ "node": "items", "kind": "subtask", "total": 4 }));
        event("child_arrived", json!({ "node": "join", "child": "items/work[0]", "status": "success" }));
        event("child_finished", json!({ "child": "items/work[0]", "status": "success", "merged": true }));
        let (bar, _) = event("child_arrived", json!({ "node": "join", "child": "items/work[2]", "status": "failure" }));
        assert_eq!(bar.as_deref(), Some("  [############------------] items: 2 of 4 subtasks, 1 failed"));
        // First success: two never come, and the merge does not wait for them.
        let (_, waits) = event("merged", json!({ "node": "join", "cancelled": ["items/work[1]", "items/work[3]"] }));
        assert!(!waits);
        let (line, _) = event("node_started", json!({ "node": "join" }));
        assert!(line.is_some_and(|line| line.contains("* join")));
    }

    #[test]
    fn children_that_fail_are_named_with_their_reasons_as_far_as_a_person_reads_them() {
        let failed = |n: usize| {
            let error = json!({ "code": "UNPROCESSABLE", "message": "no\nnumber" });
            let data = json!({ "child": format!("items/work[{n}]"), "status": "failure", "error": error });
            ("child_finished", data)
        };
        let forked = ("forked", json!({ "node": "items", "kind": "subtask", "total": 30 }));
        let told = lines(&[&[forked][..], &(0..30).map(failed).collect::<Vec<_>>()[..]].concat(), true);
        assert_eq!(told.get(1).map(String::as_str), Some("  ! items/work[0]  no number (UNPROCESSABLE)"));
        assert_eq!(told.iter().filter(|line| line.contains("  ! ")).count(), NAMED);
        assert_eq!(told.iter().filter(|line| line.contains("more failed")).count(), 1);
        assert_eq!(told.last().map(String::as_str), Some("  items: 30 of 30 subtasks, 30 failed"));
    }

    #[test]
    fn text_of_a_flow_cannot_drive_the_terminal() {
        let odd = json!({ "node": "a\x1b[2J", "what": "x\u{202e}y\r\n", "rule": "r" });
        assert_eq!(lines(&[("denied", odd)], true), ["  a[2J: xy is denied by r"]);
    }
}
