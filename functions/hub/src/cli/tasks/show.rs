//! `buildscale task show`: a task with its stages, as a table or whole.

use super::{Desk, look_of, progress::said, state, took, waiting::Waiting};
use crate::cli::{
    failure::{Exit, Failure},
    lists::moment,
    output::{Look, Output, clean, one_line},
    value::{number, shown, text},
};
use serde_json::{Value, json};

/// The most stages that are shown.
const MOST: usize = 100_000;

/// What to show.
pub(super) struct Parts {
    pub(super) full: bool,
    pub(super) memory: bool,
    pub(super) artifacts: bool,
    pub(super) trace: bool,
}

impl Desk {
    /// Shows the task.
    pub(super) async fn show(&self, parts: Parts, out: &mut Output) -> Result<Exit, Failure> {
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
            if let Some(memory) = memory {
                all["memory"] = memory;
            }
            if let Some(artifacts) = artifacts {
                all["artifacts"] = Value::Array(artifacts);
            }
            return out.json(&all).map(|()| Exit::Done);
        }
        self.head(&view, out)?;
        for stage in &stages {
            table_line(stage, out)?;
            if parts.full {
                for key in ["input", "context", "output"] {
                    block(key, stage.get(key), out)?;
                }
            }
        }
        if let Some(output) = view.get("output").filter(|output| !output.is_null()) {
            block("output", Some(output), out)?;
        }
        block("memory", memory.as_ref(), out)?;
        for artifact in artifacts.unwrap_or_default() {
            let (path, at) = (one_line(text(&artifact, "path"), 4096), moment(text(&artifact, "at")));
            out.line(format_args!("  {at}  {path}"))?;
        }
        Ok(Exit::Done)
    }

    fn head(&self, view: &Value, out: &mut Output) -> Result<(), Failure> {
        let (style, none) = (out.style(), Value::Null);
        let flow = view.get("flow").unwrap_or(&none);
        let hash: String = text(flow, "hash").chars().take(12).collect();
        let name = style.paint(Look::Bold, one_line(text(flow, "name"), 60));
        out.line(format_args!("{}  {name} {}", state(view, style), style.paint(Look::Dim, hash)))?;
        let mut facts = vec![format!("began {}", moment(text(view, "created_at")))];
        if let Some(at) = view.get("finished_at").and_then(Value::as_str) {
            facts.push(format!("ended {}", moment(at)));
        }
        facts.push(format!("{} stages", number(view, "steps")));
        match number(view, "children") {
            0 => {}
            children => facts.push(format!("{children} clones or subtasks")),
        }
        if let Some(origin) = view.get("origin") {
            facts.push(format!("made by {}", text(origin, "parent")));
        }
        out.line(style.paint(Look::Dim, facts.join(", ")))?;
        for key in ["error", "parked_reason"] {
            if let Some(why) = view.get(key).filter(|why| !why.is_null()) {
                let why = if why.is_object() { said(why) } else { one_line(&shown(why), 200) };
                out.line(style.paint(Look::Bad, why))?;
            }
        }
        for asked in Waiting::in_view(view) {
            for line in asked.lines() {
                out.line(style.paint(Look::Ask, line))?;
            }
        }
        Ok(())
    }
}

fn table_line(stage: &Value, out: &mut Output) -> Result<(), Failure> {
    let (style, none) = (out.style(), Value::Null);
    let status = match text(stage, "status") {
        "" => style.paint(Look::Ask, "running"),
        status => style.paint(look_of(status), format_args!("{:7}", one_line(status, 7))),
    };
    let metrics = stage.get("metrics").unwrap_or(&none);
    let time = took(number(metrics, "duration_ms"));
    let mut facts = Vec::new();
    if number(stage, "attempt") > 1 {
        facts.push(format!("attempt {}", number(stage, "attempt")));
    }
    if let Some(usage) = metrics.get("usage") {
        facts.push(format!("{} tokens", number(usage, "input_tokens") + number(usage, "output_tokens")));
    }
    if number(metrics, "tool_calls") > 0 {
        facts.push(format!("{} tool calls", number(metrics, "tool_calls")));
    }
    if let Some(error) = stage.get("error").filter(|error| !error.is_null()) {
        facts.push(said(error));
    }
    let facts = style.paint(Look::Dim, facts.join(", "));
    out.line(format!("  {status}  {:24} {time:>12}  {facts}", one_line(text(stage, "node"), 24)).trim_end())
}

fn block(name: &str, value: Option<&Value>, out: &mut Output) -> Result<(), Failure> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(()) };
    let words = match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let name = out.style().paint(Look::Dim, format_args!("    {name}:"));
    out.line(format_args!("{name} {}", clean(&words).replace('\n', "\n    ")))
}
