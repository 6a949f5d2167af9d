//! The words for figures, arguments and results.

use super::{ARGUMENT, LINE};
use crate::{
    follow::Event,
    output::{Look, clean, counted, one_line},
    value::{author, list, number, shown, text},
};
use domain::PermissionRule;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

/// A rule of a chat, in a line of at most `most` characters of its own words.
pub(crate) fn of_rule(rule: &PermissionRule, most: usize) -> String {
    match rule.denies() {
        Some(denied) => format!("never here: {}", one_line(&denied.to_string(), most)),
        None => format!("always here: {}", one_line(&rule.to_string(), most)),
    }
}

/// The words for an event that is told in one line; none for the others.
pub(crate) fn remark(event: &Event) -> Option<String> {
    let data = &event.data;
    Some(match event.name.as_str() {
        "waiting" => match text(data, "message") {
            "" => "waiting: others go first".to_owned(),
            why => format!("waiting: {}", one_line(why, LINE)),
        },
        "permission_resolved" => {
            let (outcome, by) = (one_line(text(data, "outcome"), LINE), author(data, "by"));
            let by = if by == "user" { String::new() } else { format!(" by {by}") };
            let more = match (data.get("always").map(PermissionRule::deserialize), text(data, "reason")) {
                (Some(Ok(rule)), _) => format!("; {}", of_rule(&rule, ARGUMENT)),
                (_, "") => String::new(),
                (_, reason) => format!(": {}", one_line(reason, ARGUMENT)),
            };
            format!("permission {outcome}{by}{more}")
        }
        "permissions_forgotten" if data.get("rule_id").is_some() => {
            "a rule was revoked: its calls are asked about again".to_owned()
        }
        "permissions_forgotten" => "calls that were always allowed or denied are asked about again".to_owned(),
        "mode_changed" => format!("mode: {}", one_line(text(data, "mode"), LINE)),
        "plan_approved" => {
            let (path, by) = (one_line(text(data, "plan_path"), LINE), author(data, "by"));
            format!("{path} version {} approved by {by}", number(data, "v"))
        }
        "rolled_back" => rollback(data),
        "compacted" | "compaction_skipped" | "compaction_undone" => compaction(&event.name, data),
        "reset" => {
            let reason = one_line(text(data, "reason"), LINE);
            format!("the stream begins anew ({reason}): events may be missing")
        }
        _ => return None,
    })
}

/// A call in a few words, beside the name of its tool.
pub(crate) fn about(data: &Value) -> String {
    match data.get("path").and_then(Value::as_str) {
        Some(path) => {
            let more = data.get("args").map(beside_the_path).unwrap_or_default();
            one_line(&format!("{} {more}", one_line(path, LINE)), LINE)
        }
        None if text(data, "tool") == "ask_user" => String::new(), // the questions are shown as such
        None => brief(data.get("args").unwrap_or(&Value::Null)),
    }
}

/// The texts in an update about a call that runs: the end of a command's output so far, or the words of a server.
pub(crate) fn live(data: &Value) -> String {
    let content = data["update"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = content.iter().filter_map(|one| one["content"]["text"].as_str()).collect();
    texts.join("\n")
}

/// The result of a call, for people.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    /// In one line.
    pub(crate) line: String,
    /// Whether it worked.
    pub(crate) success: bool,
    /// The changed lines of an edit, as they came.
    pub(crate) diff: Vec<&'a str>,
}

/// The result in the data of an observation.
pub(crate) fn outcome(data: &Value) -> Outcome<'_> {
    let output = text(data, "output");
    let first = output.lines().find(|line| !line.trim().is_empty()).unwrap_or("(nothing)");
    let more = output.lines().filter(|line| !line.trim().is_empty()).count().saturating_sub(1);
    let success = data.get("success").and_then(Value::as_bool).unwrap_or(true);
    let diff = if success && text(data, "tool") == "edit" { diff_lines(output) } else { Vec::new() };
    let mut line = one_line(&without_hash(first), LINE);
    if more > 0 && diff.is_empty() {
        line.push_str(&format!(" (+{})", counted(more, "line")));
    }
    // How a command ended says more than how its output began.
    let last = output.lines().last().filter(|_| more > 0).unwrap_or_default();
    if ["[exit code ", "[signal ", "[time was up"].iter().any(|how| last.starts_with(how)) {
        line.push_str(&format!(" {}", one_line(last, LINE)));
    }
    Outcome { line, success, diff }
}

/// The changes of files that a call would make, as diffs: those that a coding agent says, and those of the hub's `edit` and `write`. None for a
/// call that says no change.
pub(crate) fn changes(args: &Value) -> Vec<String> {
    let diff = |from: &str, path: &str, old: &str, new: &str| {
        similar::TextDiff::from_lines(old, new).unified_diff().header(from, path).to_string()
    };
    let path = text(args, "path");
    match (args["old"].as_str(), args["new"].as_str(), args["content"].as_str()) {
        (Some(old), Some(new), _) if !path.is_empty() => return vec![diff(path, path, old, new)],
        // The content before is not in the request.
        (None, None, Some(content)) if !path.is_empty() => return vec![diff(path, path, "", content)],
        _ => {}
    }
    let of_agent = list(args, "content").iter().filter(|part| part["type"] == "diff").map(|part| {
        let (path, old) = (text(part, "path"), part["oldText"].as_str());
        diff(if old.is_some() { path } else { "/dev/null" }, path, old.unwrap_or_default(), text(part, "newText"))
    });
    of_agent.collect()
}

/// The look of a line of a diff.
pub(crate) fn of_diff(line: &str) -> Option<Look> {
    match line.as_bytes().first()? {
        b'+' => Some(Look::Good),
        b'-' => Some(Look::Bad),
        b'@' => Some(Look::Dim),
        _ => None,
    }
}

/// The end of a rollback.
fn rollback(data: &Value) -> String {
    match (text(data, "message"), list(data, "kept").len()) {
        ("", 0) => format!("the turn before is taken back, with {}", counted(number(data, "changes"), "file change")),
        ("", kept) => format!(
            "the turn before is taken back, with {}; not taken back, as others changed it since: {}",
            counted(number(data, "changes"), "file change"),
            counted(kept, "file")
        ),
        (why, _) => format!("nothing is taken back: {}", one_line(why, LINE)),
    }
}

/// The end of a compaction, in words.
fn compaction(event: &str, data: &Value) -> String {
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
pub(crate) struct Used {
    input: u64,
    output: u64,
    cached: u64,
    cost: f64,
    context: Option<(u64, u64)>,
}

impl Used {
    pub(crate) fn add(&mut self, data: &Value) {
        self.input += number(data, "input_tokens");
        self.output += number(data, "output_tokens");
        self.cached += number(data, "cached_tokens");
        self.cost += data.get("cost_usd").and_then(Value::as_f64).unwrap_or_default();
        self.context = Some((number(data, "context_used"), number(data, "context_limit")));
    }

    pub(crate) fn usage_text(&self) -> Option<String> {
        let (context_used, context_limit) = self.context?;
        let mut text = format!("{} in", counted(self.input, "token"));
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

/// The time since then, in words; none below a second.
pub(crate) fn elapsed(since: Instant) -> Option<String> {
    let took = since.elapsed();
    (took.as_secs() >= 1).then(|| match took.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    })
}

/// The changed lines of a diff.
fn diff_lines(output: &str) -> Vec<&str> {
    let lines = output.lines().skip(1);
    lines.filter(|line| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---")).collect()
}

/// A result without the SHA-256 that models are told, and people do not read.
fn without_hash(line: &str) -> String {
    match line.split_once(", hash ") {
        Some((before, after)) => {
            let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
            format!("{before}{}", after.get(digits..).unwrap_or_default())
        }
        None => line.to_owned(),
    }
}

/// Arguments beside the path, without texts that are long by their nature.
fn beside_the_path(args: &Value) -> String {
    let Value::Object(args) = args else { return String::new() };
    let long = ["path", "content", "edits", "last_read_hash"];
    let words = args.iter().filter(|(name, _)| !long.contains(&name.as_str()));
    words.map(|(name, value)| format!("{name}={}", one_line(&shown(value), 40))).collect::<Vec<_>>().join(" ")
}

/// Arguments in a few words.
fn brief(args: &Value) -> String {
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
        shown.push_str(&format!("\n[… {}]", counted(left, "more character")));
    }
    clean(&shown).replace('\n', "\n      ")
}
