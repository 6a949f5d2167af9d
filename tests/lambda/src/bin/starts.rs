//! `starts [--json] ROUNDS FUNCTION...`: starts each binary so often, in turns with a Lambda that does nothing, and prints for each its
//! size, the time from the process to the first poll (best and median), and its memory by then.
//!
//! That Lambda is this program itself, when it finds a Runtime API in its environment.

use lambda::{Start, start};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};
use std::{
    io::{Write, stdout},
    path::{Path, PathBuf},
};

/// One binary, and how it started; the quickest first.
struct Started {
    name: String,
    bytes: u64,
    starts: Vec<Start>,
}

fn main() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_some() {
        let nothing = service_fn(async |_: LambdaEvent<Value>| Ok::<_, Error>(json!({})));
        return runtime.block_on(lambda_runtime::run(nothing));
    }
    let mut arguments = std::env::args().skip(1).peekable();
    let as_json = arguments.next_if(|argument| argument == "--json").is_some();
    let rounds: usize = arguments.next().ok_or("how often?")?.parse()?;
    let mut started = vec![Started::new("nothing", &std::env::current_exe()?)?];
    let binaries: Vec<PathBuf> =
        std::iter::once(std::env::current_exe()?).chain(arguments.map(PathBuf::from)).collect();
    for binary in &binaries[1..] {
        started.push(Started::new(&name(binary), binary)?);
    }
    // Side by side, so that a disturbance hits all. The first round only brings the binaries into memory.
    for round in 0..=rounds {
        for (binary, started) in binaries.iter().zip(&mut started) {
            let start = runtime.block_on(start(binary)).map_err(|failure| format!("{failure:?}"))?;
            if round > 0 {
                started.starts.push(start);
            }
        }
    }
    started.iter_mut().for_each(|started| started.starts.sort_by_key(|start| start.took));
    let mut out = stdout().lock();
    if !as_json {
        writeln!(
            out,
            "{:20} {:>10} {:>19} {:>10} {:>12}",
            "function", "bytes", "first poll, best", "median", "memory"
        )?;
    }
    for Started { name, bytes, starts } in &started {
        let (best, median) = (millis(starts, 0), millis(starts, starts.len() / 2));
        let held = starts.iter().map(|start| start.held).max().unwrap_or_default();
        if as_json {
            let line =
                json!({ "name": name, "bytes": bytes, "best_ms": best, "median_ms": median, "held_bytes": held });
            writeln!(out, "{line}")?;
        } else {
            let held = held as f64 / f64::from(1 << 20);
            writeln!(out, "{name:20} {bytes:>10} {best:>16.1} ms {median:>7.1} ms {held:>8.1} MiB")?;
        }
    }
    Ok(())
}

impl Started {
    fn new(name: &str, binary: &Path) -> Result<Self, Error> {
        Ok(Self { name: name.into(), bytes: std::fs::metadata(binary)?.len(), starts: Vec::new() })
    }
}

/// `<name>/bootstrap`, as cargo-lambda lays them out, or just `<name>`.
fn name(binary: &Path) -> String {
    let named = if binary.ends_with("bootstrap") { binary.parent().unwrap_or(binary) } else { binary };
    named.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn millis(starts: &[Start], index: usize) -> f64 {
    starts.get(index).map_or(0.0, |start| start.took.as_secs_f64() * 1e3)
}
