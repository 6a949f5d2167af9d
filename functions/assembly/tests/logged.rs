//! The log of a process: it can be begun once, so this has a process of its own.

use buildscale_assembly::log::Format;
use parking_lot::Mutex;
use ports::{KnownSecrets, Secret};
use serde_json::Value;
use std::{
    error::Error,
    io::{self, Write},
};
use tracing::level_filters::LevelFilter;

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Kept;

impl Write for Kept {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LOG.lock().write(line)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_is_a_line_of_the_log_without_secrets_and_of_bounded_length() -> Result<(), Box<dyn Error>> {
    let known = KnownSecrets::default();
    known.learn([&Secret::new("hunter2-hunter2")]);
    buildscale_assembly::log::begin(|| Kept, LevelFilter::INFO, Format::Json, known);
    let thread = std::thread::Builder::new().name("reads".into());
    let panicked = thread.spawn(|| panic!("cannot read hunter2-hunter2{}", "{a,".repeat(30_000)))?.join();
    assert!(panicked.is_err());
    let log = String::from_utf8(std::mem::take(&mut *LOG.lock()))?;
    let lines: Vec<Value> = log.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let [line] = &lines[..] else { return Err(log.into()) };
    let fields = &line["fields"];
    assert_eq!((&line["level"], &fields["message"]), (&"ERROR".into(), &"a thread panicked".into()));
    assert_eq!(fields["thread"], "reads");
    assert!(fields["at"].as_str().is_some_and(|at| at.contains("logged.rs")), "{fields}");
    let panic = fields["panic"].as_str().ok_or("no text")?;
    assert!(panic.starts_with("cannot read [redacted]{a,{a,") && panic.len() < 1100, "{panic}");
    Ok(())
}
