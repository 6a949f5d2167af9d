//! Tasks: chains, fan-outs, diamonds, growth, a death at half, and tasks that wait (spec 002 on the actor runtime).
//!
//! `bench-driver` runs the flows in a process of its own; every step is durable, and its payload is 1 KiB that does not compress. The floor
//! is the cost of a step in SQLite alone, measured just before.

use crate::{
    Bench, Result, client,
    floor::Sqlite,
    http::Connection,
    hub::{Hub, MIB},
    report::Figure,
    samples::Samples,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tokio::time::Instant;

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    chain(bench)?;
    fanout(bench)?;
    diamond(bench)?;
    growth(bench)?;
    suspended(bench)?;
    crash(bench)
}

/// The figures that the driver printed at its end.
struct Ran {
    steps: f64,
    seconds: f64,
    cpu_seconds: f64,
    grown: f64,
    written: f64,
    disk: f64,
}

fn drive(bench: &Bench, scenario: &str, size: u32, tasks: u32, concurrency: u32) -> Result<Ran> {
    let data = bench.folder("driver")?;
    let mut command = Command::new(bench.binary("bench-driver")?);
    command.args([scenario, "--size", &size.to_string(), "--tasks", &tasks.to_string()]);
    command.args(["--concurrency", &concurrency.to_string(), "--data-dir"]).arg(&data);
    let mut process = command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let output = process.stdout.take().ok_or("no output")?;
    let last = BufReader::new(output).lines().map_while(std::result::Result::ok).last().unwrap_or_default();
    process.wait()?;
    let said: Value = serde_json::from_str(&last)?;
    let number = |name: &str| said[name].as_f64().ok_or_else(|| format!("{scenario}: it ended with {said}"));
    Ok(Ran {
        steps: number("steps")?,
        seconds: number("seconds")?,
        cpu_seconds: number("cpu_seconds")?,
        grown: number("memory_grown_bytes")?,
        written: number("written_bytes")?,
        disk: size_of(&data)?,
    })
}

fn size_of(folder: &Path) -> Result<f64> {
    let mut bytes = 0.0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        bytes += if kind.is_dir() { size_of(&entry.path())? } else { entry.metadata()?.len() as f64 };
    }
    Ok(bytes)
}

/// Milliseconds a step of SQLite alone, and steps a second with 64 ready.
fn floors(bench: &Bench) -> Result<(f64, f64)> {
    let mut sqlite = Sqlite::new(&bench.folder("floor")?)?;
    let mut alone = Samples::default();
    for _ in 0..300 {
        alone.add(sqlite.commit(1)?);
    }
    Ok((alone.median(), sqlite.grouped(50)?))
}

fn chain(bench: &mut Bench) -> Result<()> {
    let (floor, _) = floors(bench)?;
    let ran = drive(bench, "chain", 100, 10, 1)?;
    let step = ran.seconds * 1e3 / ran.steps;
    bench.report.add(
        Figure::new("dag.chain", step, "ms a step")
            .beside("SQLite alone", floor)
            .at_most(1.5 * floor, "1.5 of the floor")
            .more("cpu_ms_a_step", ran.cpu_seconds * 1e3 / ran.steps)
            .more("is", "100 nodes one after the other, one task at a time"),
    )?;
    let (_, grouped) = floors(bench)?;
    let ran = drive(bench, "chain", 100, 256, 64)?;
    bench.report.add(
        Figure::new("dag.chain_64", ran.steps / ran.seconds, "steps/s")
            .beside("SQLite, 64 a commit", grouped)
            .at_least(grouped / 2.0, "half of the floor"),
    )?;
    bench.report.add(
        Figure::new("dag.chain_64_cpu", ran.cpu_seconds * 1e3 / ran.steps, "ms a step")
            .at_most(0.2, "0.2 ms")
            .more("bytes_on_disk_a_step", ran.disk / ran.steps),
    )
}

fn fanout(bench: &mut Bench) -> Result<()> {
    let ran = drive(bench, "fanout", 100, 10, 1)?;
    bench.report.add(
        Figure::new("dag.fanout_100", ran.seconds * 1e3 / 10.0, "ms")
            .more("steps_a_second", ran.steps / ran.seconds)
            .more("is", "1 -> 100 -> merge"),
    )?;
    let ran = drive(bench, "fanout", 100, 64, 16)?;
    bench.report.add(Figure::new("dag.fanout_100_16", ran.steps / ran.seconds, "steps/s").more("is", "16 at once"))?;
    let ran = drive(bench, "fanout", 10_000, 1, 1)?;
    bench.report.add(
        Figure::new("dag.fanout_10000", ran.seconds, "s")
            .at_most(10.0, "10 s")
            .more("steps_a_second", ran.steps / ran.seconds)
            .more("cpu_ms_a_step", ran.cpu_seconds * 1e3 / ran.steps)
            .more("bytes_written_a_step", ran.written / ran.steps)
            .more("memory_grown_mib", ran.grown / MIB)
            .more("is", "1 -> 10,000 -> merge"),
    )
}

fn diamond(bench: &mut Bench) -> Result<()> {
    let ran = drive(bench, "diamond", 0, 500, 64)?;
    bench.report.add(
        Figure::new("dag.diamond", 500.0 / ran.seconds, "tasks/s")
            .more("steps_a_second", ran.steps / ran.seconds)
            .more("cpu_ms_a_step", ran.cpu_seconds * 1e3 / ran.steps)
            .more("bytes_written_a_step", ran.written / ran.steps)
            .more("is", "500 tasks, 64 at once"),
    )
}

fn growth(bench: &mut Bench) -> Result<()> {
    let mut steps = Vec::new();
    for (size, tasks) in [(10, 100), (1_000, 2), (5_000, 1)] {
        let ran = drive(bench, "chain", size, tasks, 1)?;
        steps.push(ran.seconds * 1e3 / ran.steps);
    }
    let [small, middle, large] = steps.as_slice() else { return Err("three sizes".into()) };
    bench.report.add(
        Figure::new("dag.growth", large / small, "x")
            .at_most(1.2, "flat")
            .more("ms_a_step_10", *small)
            .more("ms_a_step_1000", *middle)
            .more("ms_a_step_5000", *large)
            .more("is", "a step of a chain of 5,000 nodes against one of 10"),
    )
}

/// Layers of 24 clones and a merge: the cost of a child in a small graph, and in one of 16 times the nodes.
pub(crate) fn layers(bench: &mut Bench) -> Result<()> {
    const CLONES: f64 = 24.0;
    // A branch, its clones and a merge each, and a start and an exit.
    let nodes = |layers: u32| f64::from(layers) * (CLONES + 2.0) + 2.0;
    let mut children = Vec::new();
    for (size, tasks) in [(5, 16), (80, 1)] {
        let ran = drive(bench, "layers", size, tasks, 1)?;
        let made = f64::from(size) * CLONES * f64::from(tasks);
        children.push((nodes(size), ran.cpu_seconds * 1e3 / made, ran.seconds * 1e3 / made));
    }
    let [(few, small, small_wall), (many, large, large_wall)] = children.as_slice() else {
        return Err("two sizes".into());
    };
    bench.report.add(
        Figure::new("dag.layers", large / small, "x CPU a child")
            .at_most(2.0, "2x for 16 times the nodes")
            .more("nodes", *many)
            .more("nodes_beside", *few)
            .more("cpu_ms_a_child", *large)
            .more("cpu_ms_a_child_beside", *small)
            .more("ms_a_child", *large_wall)
            .more("ms_a_child_beside", *small_wall)
            .more("is", "a child in layers of 24 clones and a merge: 2,082 nodes against 132"),
    )
}

fn suspended(bench: &mut Bench) -> Result<()> {
    let ran = drive(bench, "suspended", 0, 10_000, 64)?;
    bench.report.add(
        Figure::new("dag.suspended_memory", ran.grown / MIB, "MiB")
            .at_most(30.0, "30 MiB over idle")
            .more("disk_kib_a_task", ran.disk / 1024.0 / 10_000.0)
            .more("cpu_ms_a_task", ran.cpu_seconds * 1e3 / 10_000.0)
            .more("is", "10,000 tasks that wait for a person"),
    )
}

/// Kills the hub in the middle of a long chain: how soon does the next step come, and which steps ran twice?
fn crash(bench: &mut Bench) -> Result<()> {
    const NODES: usize = 2_000;
    let data = bench.folder("crash")?;
    let hub = Hub::start(bench, &data, &[])?;
    let path = client(async {
        let workspace = hub.workspace().await?;
        let mut connection = Connection::open(&hub.address).await?;
        let write = json!({ "tool": "write", "args": {
            "path": "/system/flows/long/workflow.yaml", "content": chain_of(NODES),
        } });
        connection.json("POST", &format!("{workspace}/tools"), &write.to_string()).await?;
        let body = json!({ "input": { "payload": "x".repeat(1024) } }).to_string();
        let made = connection.json("POST", &format!("{workspace}/flows/long/tasks"), &body).await?;
        let task = made["task_id"].as_str().ok_or_else(|| format!("no task: {made}"))?;
        let path = format!("{workspace}/tasks/{task}");
        until(&mut connection, &path, NODES as u64 / 2).await?;
        Ok(path)
    })?;
    drop(hub);
    let began = Instant::now();
    let hub = Hub::start(bench, &data, &[])?;
    let started = began.elapsed();
    let (next, twice) = client(async {
        let mut connection = Connection::open(&hub.address).await?;
        let (_, first) = connection.call("GET", &path, "").await?;
        let before = steps(&serde_json::from_slice(&first)?);
        until(&mut connection, &path, before + 1).await?;
        let next = began.elapsed();
        until(&mut connection, &path, NODES as u64).await?;
        let mut twice = 0.0;
        let mut cursor = String::new();
        loop {
            let page = connection.json("GET", &format!("{path}/history?limit=100{cursor}"), "").await?;
            let stages = page["stages"].as_array().cloned().unwrap_or_default();
            twice += stages.iter().filter(|stage| stage["attempt"].as_u64().unwrap_or(1) > 1).count() as f64;
            match page["next_cursor"].as_str() {
                Some(more) => cursor = format!("&cursor={more}"),
                None => return Ok((next, twice)),
            }
        }
    })?;
    bench.report.add(
        Figure::new("dag.crash", (next - started).as_secs_f64() * 1e3, "ms to the next step")
            .at_most(500.0, "0.5 s after the restart")
            .more("start_to_healthy_ms", started.as_secs_f64() * 1e3)
            .more("steps_that_ran_twice", twice)
            .more("is", "SIGKILL in the middle of a chain of 2,000 nodes"),
    )
}

fn chain_of(nodes: usize) -> String {
    let role = |position: usize| match position {
        0 => "start",
        position if position + 1 == nodes => "exit",
        _ => "linear",
    };
    let node = |position: usize| json!({ "id": format!("n{position}"), "kind": "deterministic", "role": role(position), "context": "none" });
    let all: Vec<Value> = (0..nodes).map(node).collect();
    let edge = |position: usize| json!({ "from": format!("n{position}"), "to": format!("n{}", position + 1) });
    let edges: Vec<Value> = (0..nodes - 1).map(edge).collect();
    json!({ "nodes": all, "edges": edges }).to_string()
}

fn steps(view: &Value) -> u64 {
    view["steps"].as_u64().unwrap_or_default()
}

async fn until(connection: &mut Connection, path: &str, wanted: u64) -> Result<()> {
    let looking = async {
        loop {
            let view = connection.json("GET", path, "").await?;
            if view["phase"] == "parked" {
                return Err(format!("the task is parked: {view}").into());
            }
            if steps(&view) >= wanted {
                return Ok(());
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), looking).await?
}
