//! `grep`: the tool against `rg` on the same tree, both as their users wait for them.

use crate::{Bench, Result, files::Embedded, report::Figure, samples::Samples, server};
use domain::{CallId, Principal};
use ports::{Clock, SystemClock};
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Command, Stdio},
};
use tokio::time::Instant;
use tools::{Call, Registry};

const TREE: usize = 50_000;
const FOLDERS: usize = 500;
const ROUNDS: usize = 15;

/// The searches: a name, the pattern, and the number of files that match.
const PATTERNS: [(&str, &str, usize); 4] = [
    ("rare_word", "needle-in-a-haystack", 50),
    ("regex", r"\w+ \d{4}: [a-z]+ failed$", 500),
    ("common_prefix", r"(?:error|warning) \d{4}: [a-z]+ failed", 500),
    ("nothing", "there is no such line anywhere", 0),
];

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    if Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Err("rg is not installed, so there is no peer to measure against".into());
    }
    let folder = bench.folder("grep")?;
    server(async {
        let embedded = Embedded::new(&folder).await?;
        embedded.fill(tree()).await?;
        for (name, pattern, files) in PATTERNS {
            let (mut tool, mut peer) = <(Samples, Samples)>::default();
            // One round more: the first one warms the cache and does not count.
            for round in 0..=ROUNDS {
                let began = Instant::now();
                let found = grep(&embedded, pattern).await?;
                let of_tool = began.elapsed();
                let began = Instant::now();
                let rg = rg(&embedded.workspace.latest(), pattern)?;
                if round > 0 {
                    tool.add(of_tool);
                    peer.add(began.elapsed());
                }
                if (found, rg) != (files, files) {
                    return Err(format!("{pattern:?} is in {files} files; grep found {found}, rg {rg}").into());
                }
            }
            let (ours, theirs) = (tool.median(), peer.median());
            bench.report.add(
                Figure::new(format!("grep.{name}"), ours, "ms")
                    .beside("rg", theirs)
                    .at_most(1.2 * theirs, "1.2 x rg")
                    .more("x_rg", ours / theirs)
                    .more("p99", tool.p99())
                    .more("rg_p99", peer.p99())
                    .more("is", "50,000 files, 200 MB, cache warm; rg --hidden --no-ignore, its start included"),
            )?;
        }
        embedded.close().await;
        Ok(())
    })
}

/// The files in which the tool finds the pattern.
async fn grep(embedded: &Embedded, pattern: &str) -> Result<usize> {
    let call = Call::outside(embedded.workspace.clone(), CallId(SystemClock.id()), Principal::local());
    let args = json!({ "pattern": pattern, "limit": 2000 }).to_string();
    let outcome = Registry::builtin().call(&call, "grep", &args).await;
    match outcome.result.get("files").and_then(Value::as_u64) {
        Some(files) => Ok(files as usize),
        None => Err(outcome.output.into()),
    }
}

/// The files in which ripgrep finds it, showing the same: lines with their numbers.
fn rg(folder: &Path, pattern: &str) -> Result<usize> {
    let mut command = Command::new("rg");
    command.args(["--hidden", "--no-ignore", "--line-number", "--heading", "--no-config", "-e", pattern]);
    let output = command.arg(folder).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.split("\n\n").filter(|block| !block.trim().is_empty()).count())
}

/// Files of about 4 KB, of words and numbers, some with a match.
fn tree() -> impl Iterator<Item = (String, String)> {
    let words = ["alpha", "error", "queue", "worker", "stream", "table", "commit", "warning", "actor", "version"];
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    (0..TREE).map(move |number| {
        let mut text = String::with_capacity(4300);
        while text.len() < 4096 {
            // xorshift: the same tree every time.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let word = |shift: u32| words[(random >> shift) as usize % words.len()];
            text.push_str(&format!("{} {} {}: {} {}\n", word(0), word(8), random % 10_000, word(16), word(24)));
        }
        if number % (TREE / 50) == 0 {
            text.push_str("here is the needle-in-a-haystack\n");
        }
        if number % (TREE / 500) == 1 {
            text.push_str("error 4711: commit failed\n");
        }
        (format!("/data/{}/file-{number}.txt", number % FOLDERS), text)
    })
}
