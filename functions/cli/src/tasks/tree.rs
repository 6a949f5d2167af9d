//! Clones and subtasks below a task: as a tree, and in a few words.

use super::{Desk, progress::said, state, state_and_look};
use crate::{
    failure::CliError,
    output::{Look, Output, one_line},
    value::{number, text},
};
use futures::future::LocalBoxFuture;
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write as _};

/// The most children of one task that are looked at.
const LISTED: usize = 20_000;
/// The most of them that are shown one by one; beyond that only those that did not simply succeed.
const SHOWN: usize = 20;
/// The deepest level that is gone down to.
const DEEPEST: usize = 32;

/// The name of a clone or a subtask among its siblings, its current node, and its error.
pub(super) fn beside(task: &Value, origin: &Value) -> String {
    let mut words = name(origin);
    let place = match (text(task, "phase"), text(task, "node")) {
        ("finished", _) | (_, "") => None,
        ("paused", node) => Some(("before", node)),
        (_, node) => Some(("at", node)),
    };
    if let Some((word, node)) = place {
        let _ = write!(words, "  {word} {}", one_line(node, 40));
    }
    if let Some(error) = task.get("error").filter(|error| !error.is_null()) {
        let _ = write!(words, "  {}", said(error));
    }
    words
}

/// Its name among its siblings: `split/work[3]`, or `branch/left` of a clone.
pub(super) fn name(origin: &Value) -> String {
    let of = format!("{}/{}", one_line(text(origin, "node"), 40), one_line(text(origin, "to"), 40));
    if text(origin, "kind") == "clone" { of } else { format!("{of}[{}]", number(origin, "index")) }
}

/// Whether it needs no attention: it succeeded, or brought its output to a merge.
fn is_quiet(task: &Value) -> bool {
    text(task, "phase") == "finished" && text(task, "status") == "success"
}

impl Desk {
    pub(super) async fn children_of(&self, task: &str) -> Result<Vec<Value>, CliError> {
        let at = ["workspaces", self.workspace.as_str(), "tasks"];
        self.client.list(&at, "tasks", &[("parent", task)], LISTED).await
    }

    /// The clones and subtasks of a task, one per line, each with its own below it.
    pub(super) fn tree<'a>(
        &'a self,
        task: &'a str,
        level: usize,
        out: &'a mut Output,
    ) -> LocalBoxFuture<'a, Result<(), CliError>> {
        Box::pin(async move {
            let children = self.children_of(task).await?;
            let all = children.len() <= SHOWN;
            let (mut shown, mut left_out) = (0, BTreeMap::<String, u64>::new());
            let indent = "  ".repeat(level);
            for child in &children {
                let Some(origin) = child.get("origin") else { continue };
                let (style, id) = (out.style(), text(child, "task_id").to_owned());
                if !all && (is_quiet(child) || shown == SHOWN) {
                    *left_out.entry(state_and_look(child).0).or_default() += 1;
                    continue;
                }
                shown += 1;
                let line = format!("{indent}{}  {}", state(child, style), beside(child, origin));
                out.line(format_args!("{line}  {}", style.paint(Look::Dim, &id)))?;
                if number(child, "children") > 0 && level < DEEPEST {
                    self.tree(&id, level + 1, out).await?;
                }
            }
            if !left_out.is_empty() {
                let words: Vec<String> = left_out.iter().map(|(word, count)| format!("{count} {word}")).collect();
                let line = format!("{indent}and {}", words.join(", "));
                out.line(out.style().paint(Look::Dim, line))?;
            }
            Ok(())
        })
    }

    /// Lists the clones and subtasks that have not ended, for a task that waits for them.
    pub(super) async fn whereabouts(&self, view: &Value, out: &mut Output) -> Result<(), CliError> {
        if text(view, "phase") == "finished" || number(view, "children") == 0 {
            return Ok(());
        }
        let mut places = BTreeMap::<(String, String), Vec<String>>::new();
        for child in self.children_of(&self.task).await? {
            if text(&child, "phase") != "finished" {
                let at = (state_and_look(&child).0, text(&child, "node").to_owned());
                places.entry(at).or_default().push(text(&child, "task_id").to_owned());
            }
        }
        for ((phase, node), ids) in places {
            let place = match (phase.as_str(), node.as_str()) {
                (_, "") => "below: see `buildscale task show --tree`".to_owned(),
                ("paused", node) => format!("before {}", one_line(node, 60)),
                (_, node) => format!("at {}", one_line(node, 60)),
            };
            let which = match ids.as_slice() {
                [one] => one.clone(),
                [one, ..] => format!("{one} and {} more", ids.len() - 1),
                [] => continue,
            };
            let line = format!("{} {phase} {place}: {which}", ids.len());
            out.line(out.style().paint(Look::Ask, line))?;
        }
        Ok(())
    }
}
