//! `buildscale task show`: a task with its stages, as a table or whole.

use super::{
    Desk, look_of,
    progress::{reason, said},
    state_and_look, took,
    waiting::asked_in,
    whole_state,
};
use crate::{
    failure::{CliError, Exit},
    output::{Look, Output, Style, clean, counted, one_line},
    table::moment,
    value::{list, number, shown, text},
};
use serde_json::{Value, json};

/// The most stages that are shown.
const MOST: usize = 100_000;
/// The characters of an input that are shown.
const INPUT: usize = 160;

/// The parts to show.
pub(super) struct Parts {
    pub(super) full: bool,
    pub(super) tree: bool,
    pub(super) memory: bool,
    pub(super) artifacts: bool,
    pub(super) trace: bool,
}

impl Desk {
    /// Shows the task.
    pub(super) async fn show(&self, parts: Parts, out: &mut Output) -> Result<Exit, CliError> {
        if parts.trace {
            let trace = self.client.bytes(&self.at(&["trace"]), &[]).await?;
            return out.bytes(&trace).map(|()| Exit::Done);
        }
        let view = self.view().await?;
        let stages = self.client.list(&self.at(&["history"]), "stages", &[], MOST).await?;
        let memory = if parts.memory { Some(self.client.get(&self.at(&["memory"]), &[]).await?) } else { None };
        let artifacts = match parts.artifacts {
            true => Some(self.client.list(&self.at(&["artifacts"]), "artifacts", &[], MOST).await?),
            false => None,
        };
        if out.is_json() {
            let mut all = json!({ "task": view, "stages": stages });
            if parts.tree {
                all["children"] = Value::Array(self.children_of(&self.task).await?);
            }
            if let Some(memory) = memory {
                all["memory"] = memory;
            }
            if let Some(artifacts) = artifacts {
                all["artifacts"] = Value::Array(artifacts);
            }
            return out.json(&all).map(|()| Exit::Done);
        }
        self.head(&view, out)?;
        if text(&view, "phase") != "finished" {
            self.requests(out).await?;
        }
        self.whereabouts(&view, out).await?;
        // The first stage has the input of the task.
        if let (false, Some(input)) = (parts.full, stages.first().and_then(|stage| stage.get("input"))) {
            given(input, out)?;
        }
        for stage in &stages {
            out.words(table_line(stage, &view, out.style()))?;
            if parts.full {
                whole(stage, out)?;
            }
        }
        match parts.tree {
            true => self.tree(&self.task, 1, out).await?,
            false => self.timeline(&view, out).await?,
        }
        // The last stage has shown it, if it gave it.
        let output = view.get("output").filter(|output| !output.is_null());
        let is_shown = parts.full && stages.last().is_some_and(|stage| stage.get("output") == output);
        if let Some(output) = output.filter(|_| !is_shown) {
            block("output", Some(output), out)?;
        }
        block("memory", memory.as_ref(), out)?;
        for artifact in artifacts.unwrap_or_default() {
            let (path, at) = (one_line(text(&artifact, "path"), 4096), moment(text(&artifact, "at")));
            out.line(format_args!("  {at}  {path}"))?;
        }
        Ok(Exit::Done)
    }

    fn head(&self, view: &Value, out: &mut Output) -> Result<(), CliError> {
        let (style, none) = (out.style(), Value::Null);
        let flow = view.get("flow").unwrap_or(&none);
        let hash: String = text(flow, "hash").chars().take(12).collect();
        let name = style.paint(Look::Bold, one_line(text(flow, "name"), 60));
        let (word, look) = whole_state(view);
        let word = word + &bound(view);
        let state = look.map_or_else(|| word.clone(), |look| style.paint(look, &word));
        out.words(format_args!("{state}  {name} {}", style.paint(Look::Dim, hash)))?;
        let mut facts = vec![format!("began {}", moment(text(view, "created_at")))];
        if let Some(at) = view.get("finished_at").and_then(Value::as_str) {
            facts.push(format!("ended {}", moment(at)));
        }
        facts.push(counted(number(view, "steps"), "stage"));
        match number(view, "children") {
            0 => {}
            1 => facts.push("1 clone or subtask".to_owned()),
            children => facts.push(format!("{children} clones or subtasks")),
        }
        if let Some(origin) = view.get("origin") {
            facts.push(format!("made by {}", text(origin, "parent")));
        }
        if let Some(handoff) = view.get("handoff") {
            let (path, v) = (one_line(text(handoff, "path"), 200), number(handoff, "v"));
            facts.push(format!("started by {path} version {v}"));
        }
        out.words(style.paint(Look::Dim, facts.join(", ")))?;
        for key in ["error", "parked_reason"] {
            if let Some(why) = view.get(key).filter(|why| !why.is_null()) {
                let why = if why.is_object() { reason(why) } else { one_line(&shown(why), 200) };
                out.words(style.paint(Look::Bad, why))?;
            }
        }
        if let Some(error) = view.pointer("/wait/retry/error") {
            out.words(style.paint(Look::Ask, format_args!("the last try failed: {}", reason(error))))?;
        }
        failed_children(view.get("error").unwrap_or(&none), out)?;
        Ok(())
    }

    /// The requests to people in its tree, and how to answer them.
    async fn requests(&self, out: &mut Output) -> Result<(), CliError> {
        for asked in asked_in(&self.client, &self.workspace, &self.task).await? {
            for line in asked.lines() {
                out.words(out.style().paint(Look::Ask, line))?;
            }
        }
        Ok(())
    }
}

/// The time until which a task waits, or the node before which it is paused.
fn bound(task: &Value) -> String {
    match (text(task, "phase"), text(task, "node")) {
        ("paused", node) if !node.is_empty() => format!(" before {}", one_line(node, 60)),
        ("suspended", _) => {
            let until = task.pointer("/wait/until").and_then(Value::as_str);
            until.map(|until| format!(" until {}", moment(until))).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// The failed children, each with the reason and the task to look at; and the remedy.
fn failed_children(error: &Value, out: &mut Output) -> Result<(), CliError> {
    let (style, none) = (out.style(), Value::Null);
    let details = error.get("details").unwrap_or(&none);
    for child in list(details, "failed") {
        let (name, id) =
            (one_line(text(child, "child"), 60), style.paint(Look::Dim, one_line(text(child, "task_id"), 36)));
        out.words(format_args!("  {name}  {}  {id}", said(child)))?;
    }
    match number(details, "more") {
        0 => {}
        more => out.words(format_args!("  and {more} more: `buildscale task show --tree`"))?,
    }
    match text(error, "hint") {
        "" => Ok(()),
        hint => out.words(style.paint(Look::Dim, format_args!("hint: {}", one_line(hint, 400)))),
    }
}

/// The input of a task, in a line.
fn given(input: &Value, out: &mut Output) -> Result<(), CliError> {
    if input.is_null() {
        return Ok(());
    }
    let name = out.style().paint(Look::Dim, "  input:");
    out.words(format_args!("{name} {}", one_line(&shown(input), INPUT)))
}

/// A stage in a line. One that has not ended is as its task is, and has no duration yet.
fn table_line(stage: &Value, task: &Value, style: Style) -> String {
    let none = Value::Null;
    let status = match text(stage, "status") {
        "" => style.paint(Look::Ask, format_args!("{:7}", state_and_look(task).0)),
        status => style.paint(look_of(status), format_args!("{:7}", one_line(status, 7))),
    };
    let metrics = stage.get("metrics").unwrap_or(&none);
    let time = metrics.get("duration_ms").map(|_| took(number(metrics, "duration_ms"))).unwrap_or_default();
    let mut facts = Vec::new();
    if number(stage, "attempt") > 1 {
        facts.push(format!("attempt {}", number(stage, "attempt")));
    }
    if let Some(usage) = metrics.get("usage") {
        facts.push(counted(number(usage, "input_tokens") + number(usage, "output_tokens"), "token"));
    }
    if number(metrics, "tool_calls") > 0 {
        facts.push(counted(number(metrics, "tool_calls"), "tool call"));
    }
    // That of the last round: an agent that is asked again goes on in it.
    if let Some(round) = list(stage, "conversation").last() {
        facts.push(format!("chat {}", one_line(text(round, "chat"), 36)));
    }
    if let Some(error) = stage.get("error").filter(|error| !error.is_null()) {
        facts.push(said(error));
    }
    let facts = style.paint(Look::Dim, facts.join(", "));
    format!("  {status}  {:24} {time:>12}  {facts}", one_line(text(stage, "node"), 24)).trim_end().to_owned()
}

/// All of a stage: its input, the conversation with its agent, the tool calls, the rejected answers, its output.
fn whole(stage: &Value, out: &mut Output) -> Result<(), CliError> {
    for key in ["input", "context"] {
        block(key, stage.get(key), out)?;
    }
    for denial in list(stage, "denials") {
        block("denied", Some(&format!("{} by {}", text(denial, "what"), text(denial, "rule")).into()), out)?;
    }
    for used in list(stage, "tools") {
        tool(used, out)?;
    }
    for round in list(stage, "conversation") {
        block("chat", round.get("chat"), out)?;
        block("prompt", round.get("prompt"), out)?;
        let Some(reply) = round.get("reply").filter(|reply| !reply.is_null()) else { continue };
        for used in list(reply, "tools") {
            tool(used, out)?;
        }
        // An accepted answer is the output; a rejected one is shown nowhere else.
        let answers = |rejected: &&Value| rejected.get("round") == round.get("round");
        let Some(rejected) = list(stage, "rejected").iter().find(answers) else { continue };
        block("rejected", reply.get("text"), out)?;
        for why in list(rejected, "errors") {
            block("why", Some(why), out)?;
        }
    }
    if list(stage, "conversation").is_empty() {
        for rejected in list(stage, "rejected") {
            for why in list(rejected, "errors") {
                block("rejected", Some(why), out)?;
            }
        }
    }
    block("output", stage.get("output"), out)
}

fn tool(used: &Value, out: &mut Output) -> Result<(), CliError> {
    let call = format!("{} {}", text(used, "tool"), text(used, "args"));
    block("tool", Some(&call.into()), out)?;
    block(text(used, "status"), used.get("output"), out)
}

fn block(name: &str, value: Option<&Value>, out: &mut Output) -> Result<(), CliError> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(()) };
    let words = match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let name = out.style().paint(Look::Dim, format_args!("    {name}:"));
    out.line(format_args!("{name} {}", clean(&words).replace('\n', "\n    ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_has_not_ended_is_as_its_task_is_and_has_no_duration() {
        let wait = json!({ "reason": "backoff", "until": "2026-12-01T08:00:00.000Z" });
        let mut task = json!({ "phase": "suspended", "node": "fetch", "wait": wait });
        let stage = json!({ "node": "fetch", "attempt": 1 });
        let shown = |task: &Value| (bound(task), table_line(&stage, task, Style::Plain));
        assert_eq!(shown(&task), (" until 2026-12-01 08:00:00Z".to_owned(), "  waiting  fetch".to_owned()));
        task["phase"] = "paused".into();
        assert_eq!(shown(&task), (" before fetch".to_owned(), "  paused   fetch".to_owned()));
        task["phase"] = "running".into();
        assert_eq!(shown(&task), (String::new(), "  running  fetch".to_owned()));
        let ended = json!({ "node": "fetch", "status": "success", "metrics": { "duration_ms": 3 } });
        assert!(table_line(&ended, &task, Style::Plain).ends_with("3 ms"));
    }

    #[test]
    fn the_reason_at_the_end_of_a_long_message_is_told_where_a_task_has_ended() {
        let message = format!("the expression {:?} failed: it divides by zero", "x + ".repeat(50));
        let error = json!({ "code": "UNPROCESSABLE", "message": message });
        assert!(reason(&error).ends_with("it divides by zero (UNPROCESSABLE)"));
        assert!(said(&error).len() < 200, "a line among others stays short");
    }
}
