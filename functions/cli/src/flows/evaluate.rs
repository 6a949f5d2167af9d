//! `buildscale flow eval`: runs the evaluation suites of a flow and tells which cases fail.

use super::Desk;
use crate::{
    args::EvalArgs,
    failure::{CliError, Exit},
    output::{Look, Output, clean, counted, one_line},
    value::{list, number, text},
};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

/// How often the evaluation is looked at.
const LOOK: Duration = Duration::from_millis(300);

impl Desk {
    /// Begins an evaluation and waits for its end.
    pub(super) async fn evaluate(&self, args: EvalArgs, out: &mut Output) -> Result<Exit, CliError> {
        let flow = self.name_of(&args.flow, out).await?;
        let body = json!({ "suites": args.suites, "tags": args.tags, "bless": args.bless });
        let begun = self.client.post(&self.at(&["flows", &flow, "evaluations"]), &body).await?;
        let id = text(&begun, "evaluation_id").to_owned();
        let mut told = 0;
        let report = loop {
            let report = self.client.get(&self.at(&["evaluations", &id]), &[]).await?;
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
            tokio::time::sleep(LOOK).await;
        };
        if let Some(path) = &args.junit {
            let failed = |source| CliError::Local { path: path.display().to_string(), source };
            let junit = self.client.bytes(&self.at(&["evaluations", &id]), &[("format", "junit")]).await?;
            std::fs::write(path, junit).map_err(failed)?;
        }
        if args.bless && super::is_folder(&args.flow) {
            self.fetch_golden(&flow, Path::new(&args.flow), out).await?;
        }
        let (passed, failed) = (number(&report, "passed"), number(&report, "failed"));
        if out.is_json() {
            out.json(&report)?;
        } else {
            let skipped = number(&report, "skipped");
            let look = if failed == 0 { Look::Good } else { Look::Bad };
            out.line(out.style().paint(look, format_args!("{passed} passed, {failed} failed, {skipped} skipped")))?;
        }
        Ok(if failed == 0 && text(&report, "status") == "finished" { Exit::Done } else { Exit::Failed })
    }
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
    out.flush()
}
