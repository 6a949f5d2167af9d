//! The clones and subtasks of a task on one scale of time: a line with a bar for each.

use super::{Desk, state_and_look, took, tree::name};
use crate::{
    failure::CliError,
    output::{Look, Output, one_line},
    value::{number, text},
};
use domain::Timestamp;
use ports::{Clock, SystemClock};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

/// The most children that are asked for: one page.
const LOOKED_AT: usize = 200;
/// The most of them that are shown.
const SHOWN: usize = 20;
/// Columns where standard output is no terminal.
const COLUMNS: usize = 100;
/// The longest name.
const NAME: usize = 32;
/// The narrowest bar that shows anything, and the widest.
const BAR: (usize, usize) = (10, 60);

/// A time from a beginning to an end, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    begin: i64,
    end: i64,
    /// Whether the end is only that of now.
    is_open: bool,
}

impl Span {
    fn of(task: &Value, now: i64) -> Option<Self> {
        let at = |key: &str| text(task, key).parse::<Timestamp>().ok().map(Timestamp::as_millis);
        let begin = at("created_at")?;
        let end = at("finished_at");
        Some(Self { begin, end: end.unwrap_or(now).max(begin), is_open: end.is_none() })
    }

    fn took(self) -> String {
        took(u64::try_from(self.end - self.begin).unwrap_or(0))
    }

    /// This span within a whole, in so many columns. Each has one column at least; one that goes on has an arrow.
    fn bar(self, whole: Self, columns: usize, (full, empty): (char, char)) -> String {
        let length = (whole.end - whole.begin).max(1);
        let place = |at: i64| {
            let passed = (at - whole.begin).clamp(0, length);
            usize::try_from(passed.saturating_mul(i64::try_from(columns).unwrap_or(0)) / length).unwrap_or(0)
        };
        let first = place(self.begin).min(columns.saturating_sub(1));
        let last = place(self.end).clamp(first + 1, columns.max(first + 1));
        let mark = |column: usize| match column {
            column if column + 1 == last && self.is_open => '>',
            column if (first..last).contains(&column) => full,
            _ => empty,
        };
        (0..columns).map(mark).collect()
    }
}

impl Desk {
    /// Shows the children of a task, those that failed or wait first where there are many.
    pub(super) async fn timeline(&self, view: &Value, out: &mut Output) -> Result<(), CliError> {
        let all = usize::try_from(number(view, "children")).unwrap_or(usize::MAX);
        if all == 0 {
            return Ok(());
        }
        let at = ["workspaces", self.workspace.as_str(), "tasks"];
        let children = self.client.list(&at, "tasks", &[("parent", &self.task)], LOOKED_AT).await?;
        for line in lines(view, &children, SystemClock.now().as_millis(), out) {
            out.line(line)?;
        }
        match all.saturating_sub(children.len().min(SHOWN)) {
            0 => Ok(()),
            more => {
                let line = format!("  and {} more: `buildscale task list --parent {}`", grouped(more), self.task);
                out.line(out.style().paint(Look::Dim, line))
            }
        }
    }
}

fn lines(view: &Value, children: &[Value], now: i64, out: &Output) -> Vec<String> {
    let Some(whole) = Span::of(view, now) else { return Vec::new() };
    let needs_no_look = |child: &Value| text(child, "phase") == "finished" && text(child, "status") == "success";
    let mut rows: Vec<(&Value, Span)> =
        children.iter().filter_map(|child| Some((child, Span::of(child, now)?))).collect();
    // Stable: within each sort they stay in their order.
    rows.sort_by_key(|(child, _)| needs_no_look(child));
    rows.truncate(SHOWN);
    rows.sort_by_key(|(child, span)| (span.begin, number(child.get("origin").unwrap_or(&Value::Null), "index")));
    let names: Vec<String> =
        rows.iter().map(|(child, _)| one_line(&child.get("origin").map(name).unwrap_or_default(), NAME)).collect();
    let widest = names.iter().map(|name| name.width()).max().unwrap_or(0);
    // The state in nine columns, the duration in twelve, and the gaps.
    let left = out.width().unwrap_or(COLUMNS).saturating_sub(2 + 9 + 2 + widest + 2 + 2 + 12);
    let marks = if out.width().is_some() { ('█', '·') } else { ('#', '.') };
    let style = out.style();
    let line = |((child, span), name): (&(&Value, Span), &String)| {
        let (word, look) = state_and_look(child);
        let state = match look {
            Some(look) => style.paint(look, format_args!("{word:9}")),
            None => format!("{word:9}"),
        };
        let name = format!("{name}{}", " ".repeat(widest.saturating_sub(name.width())));
        let time = span.took();
        match left {
            0..10 => format!("  {state}  {name}  {time}"),
            left => {
                let bar = span.bar(whole, left.clamp(BAR.0, BAR.1), marks);
                format!(
                    "  {state}  {name}  {}  {time:>12}",
                    look.map_or_else(|| bar.clone(), |look| style.paint(look, &bar))
                )
            }
        }
    };
    rows.iter().zip(&names).map(line).collect()
}

/// A number with a comma after each three digits.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Style;
    use serde_json::json;

    fn span(begin: i64, end: i64, is_open: bool) -> Span {
        Span { begin, end, is_open }
    }

    #[test]
    fn a_bar_is_where_its_time_is() {
        let whole = span(1_000, 2_000, false);
        let bar = |one: Span| one.bar(whole, 10, ('#', '.'));
        assert_eq!(bar(span(1_000, 2_000, false)), "##########");
        assert_eq!(bar(span(1_200, 1_500, false)), "..###.....");
        assert_eq!(bar(span(1_200, 1_200, false)), "..#.......", "a moment is seen, too");
        assert_eq!(bar(span(2_000, 2_000, false)), ".........#");
        assert_eq!(bar(span(1_500, 2_000, true)), ".....####>");
        assert_eq!(bar(span(0, 9_000, false)), "##########", "clocks differ");
        assert_eq!(span(5, 5, false).bar(span(5, 5, false), 10, ('#', '.')), "#.........");
    }

    fn at(ms: i64) -> String {
        Timestamp::from_millis(ms).to_string()
    }

    fn child(index: u64, begin: i64, end: Option<i64>, status: &str) -> Value {
        json!({
            "phase": if end.is_some() { "finished" } else { "running" },
            "status": status,
            "created_at": at(begin),
            "finished_at": end.map(at),
            "origin": { "kind": "subtask", "node": "items", "to": "work", "index": index },
        })
    }

    #[test]
    fn children_are_lines_of_plain_text_in_a_pipe() {
        let view = json!({ "created_at": at(0), "finished_at": null });
        let children = [child(1, 2_500, None, "success"), child(0, 0, Some(5_000), "failure")];
        let out = Output::to(std::io::sink(), std::io::sink(), Style::Plain, false);
        let shown = lines(&view, &children, 10_000, &out);
        let (half, rest) = ("#".repeat(29), ".".repeat(29));
        assert_eq!(shown[0], format!("  failure    items/work[0]  {half}{rest}         5.0 s"));
        assert_eq!(
            shown[1],
            format!("  running    items/work[1]  {}{}>         7.5 s", ".".repeat(14), "#".repeat(43))
        );
    }

    #[test]
    fn of_many_children_those_that_failed_are_shown() {
        let view = json!({ "created_at": at(0), "finished_at": at(10_000) });
        let mut children: Vec<_> = (0..150).map(|index| child(index, 0, Some(5), "success")).collect();
        children[140] = child(140, 0, Some(5), "failure");
        let out = Output::to(std::io::sink(), std::io::sink(), Style::Plain, false);
        let shown = lines(&view, &children, 10_000, &out);
        assert_eq!(shown.len(), SHOWN);
        assert!(shown.iter().any(|line| line.contains("failure    items/work[140]")), "{shown:?}");
        assert_eq!(
            (grouped(9_980), grouped(999), grouped(1_234_567)),
            ("9,980".into(), "999".into(), "1,234,567".into())
        );
    }
}
