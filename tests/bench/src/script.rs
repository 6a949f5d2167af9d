//! The answers of the scripted model: at once, and always the same.

use crate::Result;
use std::{fmt::Write, path::Path};

/// The tool calls of one turn of `step`.
pub(crate) const CALLS: usize = 100;
/// The file that they read.
pub(crate) const READ: &str = "/data/read.md";

/// Says a word: the shortest turn.
pub(crate) const TALK: &str = "talk";
/// Never answers.
pub(crate) const HANG: &str = "hang";
/// Becomes a plan of the planner chat.
pub(crate) const PLAN: &str = "weigh the options";
/// Calls a tool that reads, 100 times, one call per answer.
pub(crate) const ONE_BY_ONE: &str = "read one by one";
/// The same calls, all in one answer.
pub(crate) const AT_ONCE: &str = "read at once";
/// Writes 100 versions, one call per answer.
pub(crate) const WRITES: &str = "write one by one";

/// Writes the script for all figures.
pub(crate) fn write(path: &Path) -> Result<()> {
    let read = format!("{{tool: file_info, args: {{path: {READ}}}}}");
    let mut yaml = String::from("rules:\n");
    writeln!(yaml, "- when: {{user: '^{HANG}'}}\n  steps: [{{hang: true}}]")?;
    writeln!(yaml, "- when: {{system: 'You hang'}}\n  steps: [{{hang: true}}]")?;
    rule(&mut yaml, ONE_BY_ONE, (0..CALLS).map(|_| format!("calls: [{read}]")))?;
    rule(&mut yaml, AT_ONCE, [format!("calls: [{}]", vec![read.as_str(); CALLS].join(", "))].into_iter())?;
    let written = |number: usize| {
        format!("calls: [{{tool: write, args: {{path: /data/{number}.md, content: 'Line {number}\n'}}}}]")
    };
    rule(&mut yaml, WRITES, (0..CALLS).map(|number| written(number).replace('\n', " ")))?;
    planner(&mut yaml)?;
    writeln!(yaml, "- steps: [{{text: 'Yes.'}}]")?;
    Ok(std::fs::write(path, yaml)?)
}

/// A message that becomes a plan of ten steps side by side, each carried out by an executor.
fn planner(yaml: &mut String) -> Result<()> {
    let steps: Vec<String> = (1..=10).map(|step| format!("{{step: {step}, description: a part}}")).collect();
    writeln!(yaml, "- when: {{system: 'You are the analyst'}}\n  steps: [{{text: '{{\"strategy\": \"complex\"}}'}}]")?;
    writeln!(yaml, "- when: {{system: 'You are an executor'}}\n  steps: [{{text: 'Done.'}}]")?;
    rule(yaml, PLAN, [format!("calls: [{{tool: run_plan, args: {{steps: [{}]}}}}]", steps.join(", "))].into_iter())
}

fn rule(yaml: &mut String, user: &str, steps: impl Iterator<Item = String>) -> Result<()> {
    writeln!(yaml, "- when: {{user: '^{user}'}}\n  steps:")?;
    for step in steps {
        writeln!(yaml, "  - {{{step}}}")?;
    }
    Ok(writeln!(yaml, "  - {{text: 'Done.'}}")?)
}
