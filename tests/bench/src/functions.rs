//! `functions`: the functions as they are deployed, from the start of the process to the first poll; passed on from `starts` of
//! `tests/lambda`, which takes turns with a Lambda that does nothing.

use crate::{Bench, Result, hub::MIB, report::Figure};
use serde_json::Value;
use std::{path::PathBuf, process::Command};

/// The variable with the folder in which scripts/bench had them built: `<name>/bootstrap`.
const FUNCTIONS: &str = "BUILDSCALE_FUNCTIONS";
const LAMBDAS: [&str; 3] = ["buildscale-api", "buildscale-worker", "buildscale-timer"];
const ROUNDS: &str = "40";

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let built = PathBuf::from(std::env::var_os(FUNCTIONS).ok_or("run scripts/bench, which builds the functions")?);
    let binary = |name: &str| built.join(name).join("bootstrap");
    let output = Command::new(binary("starts")).args(["--json", ROUNDS]).args(LAMBDAS.map(binary)).output()?;
    if !output.status.success() {
        return Err(format!("starts: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let lines: Vec<Value> =
        String::from_utf8(output.stdout)?.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?;
    let (floor, functions) = lines.split_first().ok_or("starts says nothing")?;
    let number = |line: &Value, field: &str| line[field].as_f64().ok_or(format!("no {field} in {line}"));
    for line in functions {
        let name = line["name"].as_str().unwrap_or_default().trim_start_matches("buildscale-");
        bench.report.add(
            Figure::new(format!("functions.{name}.start"), number(line, "median_ms")?, "ms")
                .beside("a Lambda that does nothing", number(floor, "median_ms")?)
                .at_most(25.0, "25 ms")
                .more("is", "start of the process to the first poll, median")
                .more("best", number(line, "best_ms")?),
        )?;
        bench.report.add(
            Figure::new(format!("functions.{name}.size"), number(line, "bytes")? / 1e6, "MB")
                .at_most(12.0, "12 MB")
                .more("is", "stripped"),
        )?;
        bench.report.add(
            Figure::new(format!("functions.{name}.memory"), number(line, "held_bytes")? / MIB, "MiB")
                .beside("a Lambda that does nothing", number(floor, "held_bytes")? / MIB)
                .more("is", "the most that was resident by then"),
        )?;
    }
    Ok(())
}
