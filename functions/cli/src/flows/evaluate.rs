//! `buildscale flow eval`: runs the evaluation suites of a flow and tells which cases fail.

use super::Desk;
use crate::{
    args::EvalArgs,
    failure::{CliError, Exit},
    input::unless_interrupted,
    output::{Look, Output, clean, counted, one_line},
    value::{list, number, text},
};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often the evaluation is looked at.
const LOOK: Duration = Duration::from_millis(300);

impl Desk {
    /// Begins an evaluation and waits for its end.
    pub(super) async fn evaluate(&self, args: EvalArgs, out: &mut Output) -> Result<Exit, CliError> {
        let flow = self.name_of(&args.flow, out).await?;
        let mut body = json!({ "suites": args.suites, "tags": args.tags, "bless": args.bless });
        // A hub of an earlier version refuses the key.
        if !args.cases.is_empty() {
            body["cases"] = json!(args.cases);
        }
        let begun = self.client.post(&self.at(&["flows", &flow, "evaluations"]), &body).await?;
        let id = text(&begun, "evaluation_id").to_owned();
        // A case that runs costs money: Ctrl-C stops the evaluation, and not this command alone.
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut is_stopping = false;
        let mut told = 0;
        let report = loop {
            let place = self.at(&["evaluations", &id]);
            let report = tokio::select! {
                report = self.client.get(&place, &[]) => report?,
                _ = interrupts.recv() => {
                    self.interrupt(&id, &mut is_stopping, &mut interrupts, out).await?;
                    continue;
                }
            };
            let cases = list(&report, "cases");
            if !out.is_json() {
                for case in cases.iter().skip(told) {
                    tell(case, out)?;
                }
            }
            told = cases.len();
            match text(&report, "status") {
                "queued" | "running" => {}
                _ => break report,
            }
            out.draw(&format!("  {told} of {}", counted(number(&report, "total"), "case")))?;
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = interrupts.recv() => self.interrupt(&id, &mut is_stopping, &mut interrupts, out).await?,
            }
        };
        unless_interrupted(&mut interrupts, self.fetch_results(&id, &flow, &args, out)).await?;
        if out.is_json() {
            out.json(&report)?;
        } else {
            tell_sums(&report, out)?;
        }
        Ok(exit_of(&report))
    }

    /// Ctrl-C: stops the evaluation; twice leaves.
    async fn interrupt(
        &self,
        id: &str,
        is_stopping: &mut bool,
        interrupts: &mut Signal,
        out: &mut Output,
    ) -> Result<(), CliError> {
        if std::mem::replace(is_stopping, true) {
            return Err(CliError::Interrupted);
        }
        out.notice("stopping the evaluation (Ctrl-C again leaves)")?;
        let place = self.at(&["evaluations", id, "stop"]);
        unless_interrupted(interrupts, self.client.post(&place, &json!({}))).await.map(drop)
    }

    /// Writes the files that the command was asked for: the report, and the golden files of a folder here.
    async fn fetch_results(&self, id: &str, flow: &str, args: &EvalArgs, out: &mut Output) -> Result<(), CliError> {
        if let Some(path) = &args.junit {
            let failed = |source| CliError::Local { path: path.display().to_string(), source };
            let junit = self.client.bytes(&self.at(&["evaluations", id]), &[("format", "junit")]).await?;
            std::fs::write(path, junit).map_err(failed)?;
        }
        if args.bless && super::is_folder(&args.flow) {
            self.fetch_golden(flow, Path::new(&args.flow), out).await?;
        }
        Ok(())
    }
}

/// The exit code of an evaluation that has ended. One that ended early is not green, even if no case failed before.
fn exit_of(report: &Value) -> Exit {
    match report.get("error").filter(|error| !error.is_null()) {
        Some(error) if text(error, "code") == "CANCELLED" => Exit::Stopped,
        Some(_) => Exit::Failed,
        None if number(report, "failed") == 0 && text(report, "status") == "finished" => Exit::Done,
        None => Exit::Failed,
    }
}

fn tell_sums(report: &Value, out: &mut Output) -> Result<(), CliError> {
    let (style, error) = (out.style(), report.get("error").filter(|error| !error.is_null()));
    if let Some(error) = error {
        let (done, total) = (list(report, "cases").len(), counted(number(report, "total"), "case"));
        let why = format!("{} ({})", clean(text(error, "message")), clean(text(error, "code")));
        out.line(style.paint(Look::Bad, format_args!("ended early, after {done} of {total}: {why}")))?;
    }
    let [passed, failed, skipped] = ["passed", "failed", "skipped"].map(|key| number(report, key));
    let look = if failed == 0 && error.is_none() { Look::Good } else { Look::Bad };
    out.line(style.paint(look, format_args!("{passed} passed, {failed} failed, {skipped} skipped")))
}

fn tell(case: &Value, out: &mut Output) -> Result<(), CliError> {
    let style = out.style();
    let (mark, look) = match text(case, "outcome") {
        "passed" | "blessed" => ("+", Look::Good),
        "skipped" => ("-", Look::Dim),
        _ => ("!", Look::Bad),
    };
    let name = format!("{}/{}", one_line(text(case, "suite"), 60), one_line(text(case, "case"), 80));
    out.line(format_args!("  {} {name}", style.paint(look, mark)))?;
    for failure in list(case, "failures").iter().filter_map(Value::as_str) {
        out.line(style.paint(Look::Bad, format_args!("      {}", clean(failure).replace('\n', "\n      "))))?;
    }
    let (task, workspace) = (text(case, "task_id"), text(case, "workspace_id"));
    if !task.is_empty() && !workspace.is_empty() {
        let command = format!("buildscale task show {} -w {}", one_line(task, 60), one_line(workspace, 60));
        out.line(style.paint(Look::Dim, format_args!("      its task, until the next evaluation: {command}")))?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s10_3_an_evaluation_that_ended_early_is_not_green() {
        for (report, exit) in [
            (json!({ "status": "finished", "failed": 0, "passed": 2 }), Exit::Done),
            (json!({ "status": "finished", "failed": 1 }), Exit::Failed),
            (json!({ "status": "finished", "failed": 0, "error": null }), Exit::Done),
            (json!({ "status": "finished", "failed": 0, "error": { "code": "PAYLOAD_TOO_LARGE" } }), Exit::Failed),
            (json!({ "status": "finished", "failed": 1, "error": { "code": "CANCELLED" } }), Exit::Stopped),
        ] {
            assert_eq!(exit_of(&report), exit, "{report}");
        }
    }
}
