//! The words for figures, arguments and results.

use super::{ARGUMENT, LINE};
use crate::{
    output::{clean, one_line},
    value::{number, shown, text},
};
use serde_json::Value;
use tokio::time::Instant;

/// What became of a compaction.
pub(super) fn compaction(event: &str, data: &Value) -> String {
    match event {
        "compaction_skipped" => format!("not summarised: {}", one_line(text(data, "reason"), LINE)),
        "compaction_undone" => "the words of the earlier turns are read again".to_owned(),
        _ => {
            let (before, after) = (number(data, "tokens_before"), number(data, "tokens_after"));
            let how = match data.get("summary") {
                None | Some(Value::Null) => "left out, as no model gave a summary",
                Some(_) => "summarised",
            };
            format!("earlier messages were {how}: about {before} tokens became {after}")
        }
    }
}

/// The usage of a turn so far.
#[derive(Debug, Default)]
pub(super) struct Used {
    input: u64,
    output: u64,
    cached: u64,
    cost: f64,
    context: Option<(u64, u64)>,
}

impl Used {
    pub(super) fn add(&mut self, data: &Value) {
        self.input += number(data, "input_tokens");
        self.output += number(data, "output_tokens");
        self.cached += number(data, "cached_tokens");
        self.cost += data.get("cost_usd").and_then(Value::as_f64).unwrap_or_default();
        self.context = Some((number(data, "context_used"), number(data, "context_limit")));
    }

    pub(super) fn shown(&self) -> Option<String> {
        let (context_used, context_limit) = self.context?;
        let mut text = format!("{} tokens in", self.input);
        if self.cached > 0 {
            text.push_str(&format!(" ({} cached)", self.cached));
        }
        text.push_str(&format!(", {} out", self.output));
        if self.cost > 0.0 {
            text.push_str(&format!(", ${:.4}", self.cost));
        }
        if let Some(percent) = (context_used * 100).checked_div(context_limit) {
            text.push_str(&format!(", context {percent}% full"));
        }
        Some(text)
    }
}

/// How long ago that was, where a person noticed.
pub(super) fn elapsed(since: Instant) -> Option<String> {
    let took = since.elapsed();
    (took.as_secs() >= 1).then(|| match took.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    })
}

/// The changed lines of a diff.
pub(super) fn diff_lines(output: &str) -> Vec<&str> {
    let lines = output.lines().skip(1);
    lines.filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---")).collect()
}

/// A result without the SHA-256 that models are told, and people do not read.
pub(super) fn without_hash(line: &str) -> String {
    match line.split_once(", hash ") {
        Some((before, after)) => {
            let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
            format!("{before}{}", after.get(digits..).unwrap_or_default())
        }
        None => line.to_owned(),
    }
}

/// Arguments beside the path, without texts that are long by their nature.
pub(super) fn beside_the_path(args: &Value) -> String {
    let Value::Object(args) = args else { return String::new() };
    let long = ["path", "content", "edits", "last_read_hash"];
    let words = args.iter().filter(|(name, _)| !long.contains(&name.as_str()));
    words.map(|(name, value)| format!("{name}={}", one_line(&shown(value), 40))).collect::<Vec<_>>().join(" ")
}

/// Arguments in a few words.
pub(super) fn brief(args: &Value) -> String {
    match args {
        Value::Object(args) => {
            let words = args.iter().map(|(name, value)| format!("{name}={}", one_line(&shown(value), 40)));
            one_line(&words.collect::<Vec<_>>().join(" "), LINE)
        }
        Value::Null => String::new(),
        other => one_line(&shown(other), LINE),
    }
}

/// An argument with its line ends, indented; a cut is told, as a person decides by it.
pub(super) fn whole(argument: &str) -> String {
    let mut shown: String = argument.chars().take(ARGUMENT).collect();
    let left = argument.chars().count().saturating_sub(ARGUMENT);
    if left > 0 {
        shown.push_str(&format!("\n[… {left} more characters]"));
    }
    clean(&shown).replace('\n', "\n      ")
}
