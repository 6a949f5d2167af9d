//! `sse`: the figures that `functions/stream` measures in its own processes, passed on.

use crate::{Bench, Result, report::Figure};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

/// A figure of theirs, and its bound here.
const TARGETS: [(&str, Held); 4] = [
    ("sse.deliveries_per_s", Held::AtLeast(200_000.0)),
    ("sse.idle_bytes", Held::AtMost(11.0 * 1024.0)),
    ("sse.storm_", Held::AtMost(0.2)),
    ("sse.slow_reader_growth", Held::AtMost(1.0)),
];

#[derive(Clone, Copy)]
enum Held {
    AtMost(f64),
    AtLeast(f64),
}

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let mut child = Command::new(bench.binary("examples/sse_bench")?).stdout(Stdio::piped()).spawn()?;
    let lines = child.stdout.take().ok_or("no output")?;
    for line in BufReader::new(lines).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        bench.report.add(figure(&line)?)?;
    }
    if child.wait()?.success() { Ok(()) } else { Err("sse_bench failed".into()) }
}

fn figure(line: &Value) -> Result<Figure> {
    let name = line["figure"].as_str().ok_or("a line without a figure")?;
    let value = line["value"].as_f64().ok_or("a figure without a value")?;
    let unit = match line["unit"].as_str().unwrap_or_default() {
        "1/s" => "deliveries/s",
        unit if unit.starts_with("s ") => "s",
        unit if unit.starts_with("KiB") => "KiB a reader",
        _ => "bytes a connection",
    };
    let mut figure = Figure::new(name, value, unit);
    let held = TARGETS.iter().find(|(start, _)| name.starts_with(start));
    figure = match held {
        Some((_, Held::AtMost(bound))) => figure.at_most(*bound, "target"),
        Some((_, Held::AtLeast(bound))) => figure.at_least(*bound, "target"),
        None => figure,
    };
    for (field, value) in line.as_object().into_iter().flatten() {
        figure = match (field.as_str(), value.as_f64()) {
            ("figure" | "value" | "unit" | "target", _) => figure,
            (floor, Some(value)) if floor.starts_with("floor") => figure.beside(floor, value),
            _ => figure.more(field, value.clone()),
        };
    }
    Ok(figure)
}
