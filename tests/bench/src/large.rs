//! `large`: a content of 5 GB goes into a hub by the command line and comes out of it, in parts and in ranges; and what both hold in memory
//! meanwhile.
//!
//! `BUILDSCALE_BENCH_BYTES` makes it smaller.

use crate::{
    Bench, Result, client,
    hub::{Hub, MIB},
    recall::asked,
    report::Figure,
};
use sha2::{Digest, Sha256};
use std::{
    fs::{self, File},
    io::{BufWriter, Read, Write},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tokio::time::{Instant, interval};

/// The most that a file has.
const BYTES: usize = 5_000_000_000;
const CHUNK: usize = 1 << 20;

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let folder = bench.folder("large")?;
    let (bytes, source) = (asked("BUILDSCALE_BENCH_BYTES", BYTES), folder.join("large.bin"));
    let digest = make(&source, bytes)?;
    let megabytes = bytes as f64 / 1e6;
    let copied = copy(&source, &folder.join("copy.bin"))?;

    let hub = Hub::start(bench, &folder.join("data"), &[])?;
    let idle = hub.resident()? / MIB;
    client(hub.workspace())?;
    let url = format!("http://{}", hub.address);
    let command = |arguments: &[&str]| -> Result<Command> {
        let mut command = Command::new(bench.binary("buildscale")?);
        command.args(["files"]).args(arguments).args(["--url", &url]).env("XDG_STATE_HOME", &folder);
        Ok(command)
    };
    let began = Instant::now();
    let mut put = command(&["put", &source.display().to_string(), "/data/large.bin"])?.stdout(Stdio::null()).spawn()?;
    let mut peak_of_client = 0.0;
    let ended = client(async {
        let mut looks = interval(Duration::from_millis(50));
        loop {
            looks.tick().await;
            // Gone with the process.
            peak_of_client = peak(put.id()).unwrap_or(peak_of_client);
            if let Some(ended) = put.try_wait()? {
                return Ok(ended);
            }
        }
    })?;
    let sent = began.elapsed().as_secs_f64();
    if !ended.success() {
        return Err("`buildscale files put` failed".into());
    }
    let began = Instant::now();
    let mut child = command(&["cat", "/data/large.bin"])?.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("no output")?;
    let (came, count) = hashed(output)?;
    let read = began.elapsed().as_secs_f64();
    if !child.wait()?.success() || came != digest || count != bytes {
        return Err(format!("{count} of {bytes} bytes came back, or others than were sent").into());
    }
    let held = peak(hub.id())? / MIB;
    hub.end()?;
    bench.report.add(
        Figure::new("large.memory", held, "MiB")
            .beside("idle", idle)
            .at_most(idle + 64.0, "64 MiB over an idle hub")
            .more("client_mib", peak_of_client / MIB)
            .more("bytes", bytes)
            .more("is", "the most that the hub held while a content of 5 GB came in parts and went out"),
    )?;
    bench.report.add(
        Figure::new("large.put", megabytes / sent, "MB/s")
            .beside("a copy that is hashed and synced", megabytes / copied)
            .more("is", "`buildscale files put`: hashed by the client, sent in parts, hashed and synced by the hub"),
    )?;
    bench.report.add(
        Figure::new("large.cat", megabytes / read, "MB/s")
            .beside("a copy that is hashed and synced", megabytes / copied)
            .more("is", "`buildscale files cat`, each range checked by the hub and the whole by this bench"),
    )
}

/// Writes so many bytes that nothing compresses, and tells their digest.
fn make(path: &Path, bytes: usize) -> Result<[u8; 32]> {
    let (mut file, mut state, mut left) = (BufWriter::new(File::create(path)?), 1_u64, bytes);
    let mut chunk = vec![0; CHUNK];
    while left > 0 {
        for word in chunk.chunks_exact_mut(8) {
            // Knuth's generator of MMIX.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            word.copy_from_slice(&state.to_le_bytes());
        }
        let taken = left.min(CHUNK);
        file.write_all(&chunk[..taken])?;
        left -= taken;
    }
    file.into_inner().map_err(|error| error.into_error())?.sync_all()?;
    Ok(hashed(File::open(path)?)?.0)
}

fn hashed(mut source: impl Read) -> Result<([u8; 32], usize)> {
    let (mut hash, mut chunk, mut count) = (Sha256::new(), vec![0; CHUNK], 0);
    loop {
        let taken = source.read(&mut chunk)?;
        if taken == 0 {
            return Ok((hash.finalize().into(), count));
        }
        hash.update(&chunk[..taken]);
        count += taken;
    }
}

/// The floor: the bytes are read, hashed, written and synced once. In seconds.
fn copy(from: &Path, to: &Path) -> Result<f64> {
    let (began, mut source, mut target) = (Instant::now(), File::open(from)?, File::create(to)?);
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        let taken = source.read(&mut chunk)?;
        if taken == 0 {
            break;
        }
        hash.update(&chunk[..taken]);
        target.write_all(&chunk[..taken])?;
    }
    target.sync_all()?;
    let took = began.elapsed().as_secs_f64();
    fs::remove_file(to)?;
    Ok(took)
}

/// The most that a process has held, in bytes.
fn peak(process: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(1024.0 * line.trim().trim_end_matches(" kB").parse::<f64>()?)
}
