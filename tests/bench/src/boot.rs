//! `boot`: from the start of the process to the first answer, the memory of an idle hub, and the size of its binary.

use crate::{
    Bench, Result, client,
    http::Connection,
    hub::{Hub, MIB},
    report::Figure,
    samples::Samples,
    turns::Talk,
};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tokio::time::Instant;

const STARTS: usize = 15;
const WORKSPACES: usize = 50;
const CHATS: usize = 100;

/// The floor: a program of this size with a runtime like the hub's, which says that it is there and does nothing else.
pub(crate) fn bare() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
        tokio::io::AsyncReadExt::read(&mut tokio::io::stdin(), &mut [0]).await?;
        Ok(())
    })
}

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    client(async {
        let folder = bench.folder("boot")?;
        let used = folder.join("used");
        fill(bench, &used).await?;

        let (mut floor, mut empty, mut full, mut killed) = <(Samples, Samples, Samples, Samples)>::default();
        let mut bare_held = Samples::default();
        let (mut empty_held, mut full_held) = <([Samples; 2], [Samples; 2])>::default();
        for _ in 0..STARTS {
            let (took, held) = start_bare()?;
            floor.add(took);
            bare_held.push(held);

            let hub = start(bench, &bench.folder("boot-empty")?, &mut empty).await?;
            idle(&hub, &mut empty_held).await?;
            drop(hub);

            let hub = start(bench, &used, &mut full).await?;
            idle(&hub, &mut full_held).await?;
            drop(hub); // by SIGKILL
            start(bench, &used, &mut killed).await?.end()?;
        }
        let binary = fs::metadata(bench.binary("buildscale")?)?.len() as f64 / MIB;
        let held = |name: &str, samples: &Samples| {
            Figure::new(name, samples.median(), "ms")
                .beside("a bare process", floor.median())
                .at_most(100.0, "100 ms")
                .more("slowest", samples.at(1.0))
        };
        bench.report.add(held("boot.empty", &empty).more("is", "start of the process to /health, no data yet"))?;
        bench.report.add(held("boot.used", &full).more("is", "the same with 50 workspaces and 100 chats"))?;
        bench.report.add(held("boot.after_sigkill", &killed).more("is", "the same after a SIGKILL"))?;
        for (name, [resident, anonymous]) in [("boot.idle_memory", &empty_held), ("boot.idle_memory_used", &full_held)]
        {
            bench.report.add(
                Figure::new(name, resident.median(), "MiB")
                    .beside("a bare process", bare_held.median())
                    .at_most(25.0, "25 MiB")
                    .more("without pages of files", anonymous.median())
                    .more("is", "resident, half a second after the first answer"),
            )?;
        }
        bench.report.add(Figure::new("boot.binary", binary, "MiB").more("is", "release profile, stripped"))
    })
}

/// Starts a hub and waits until it says that it is healthy.
async fn start(bench: &Bench, data: &Path, took: &mut Samples) -> Result<Hub> {
    let began = Instant::now();
    let hub = Hub::start(bench, data, &[])?;
    let (status, _) = Connection::open(&hub.address).await?.call("GET", "/health", "").await?;
    if status != 200 {
        return Err(format!("/health answers {status}").into());
    }
    took.add(began.elapsed());
    Ok(hub)
}

/// Adds its resident memory once it is at rest, and the part of it that is no page of a file, in MiB.
async fn idle(hub: &Hub, [resident, anonymous]: &mut [Samples; 2]) -> Result<()> {
    // poll: memory grows without notice
    tokio::time::sleep(Duration::from_millis(500)).await;
    resident.push(hub.resident()? / MIB);
    anonymous.push(hub.anonymous()? / MIB);
    Ok(())
}

fn start_bare() -> Result<(Duration, f64)> {
    let began = Instant::now();
    let mut process =
        Command::new(std::env::current_exe()?).arg("bare").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(process.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let took = began.elapsed();
    let status = fs::read_to_string(format!("/proc/{}/status", process.id()))?;
    let held = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let held = held.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0;
    drop(process.stdin.take());
    process.wait()?;
    Ok((took, held))
}

/// A data folder as it is after some days of use.
async fn fill(bench: &Bench, data: &Path) -> Result<()> {
    let hub = Hub::start(bench, data, &[])?;
    for _ in 0..WORKSPACES {
        let workspace = hub.workspace().await?;
        for _ in 0..CHATS / WORKSPACES {
            Talk::begin(&hub, &workspace).await?;
        }
    }
    hub.end()
}
