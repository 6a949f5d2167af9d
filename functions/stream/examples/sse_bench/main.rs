//! The costs of event streams: one JSON line per figure, each with its floor or its target, measured in the same run.
//!
//! ```text
//! cargo run --release -p buildscale-stream --example sse_bench            every figure
//! cargo run --release -p buildscale-stream --example sse_bench idle       one of: deliveries paced idle storm slow
//! ```
//!
//! The server is a process of its own on one thread, so that its memory and its CPU time are its alone. The client is this
//! process, on another thread; with two cores, neither waits for the other's core.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on should stop")]

mod client;
mod server;

use client::{Child, Clients};
use serde_json::{Value, json};
use std::{
    io::{self, Write},
    time::Duration,
};
use tokio::time::Instant;

const SUBSCRIBERS: usize = 2_000;
const IDLE: usize = 10_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("server") => return server::stream(),
        Some("bare") => return server::bare(),
        Some("hold") => return server::hold(),
        _ => {}
    }
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if wanted("deliveries") {
            deliveries().await?;
        }
        if wanted("paced") {
            for per_second in [100, 200] {
                paced(per_second).await?;
            }
        }
        if wanted("idle") {
            idle().await?;
        }
        if wanted("storm") {
            storm().await?;
        }
        if wanted("slow") {
            slow().await?;
        }
        Ok(())
    })
}

fn report(figure: &str, value: f64, unit: &str, more: Value) {
    let mut line = json!({ "figure": figure, "value": (value * 1000.0).round() / 1000.0, "unit": unit });
    if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
        line.extend(more);
    }
    let _ = writeln!(io::stdout(), "{line}");
}

fn per_second(events: u64, took: Duration) -> f64 {
    events as f64 * SUBSCRIBERS as f64 / took.as_secs_f64()
}

/// Events as fast as they go: a burst of them waits in the bus, and readers get them joined.
async fn deliveries() -> Result<()> {
    const EVENTS: u64 = 2_000;
    let mut floors = Vec::new();
    for joined in [1, 100] {
        let mut child = Child::start("bare")?;
        let mut clients = Clients::open(child.port, SUBSCRIBERS, |_| "/events?chat=one".into()).await?;
        let events = if joined == 1 { 200 } else { EVENTS };
        let began = Instant::now();
        child.tell(&format!("{events} {joined}"))?;
        clients.events(events).await?;
        floors.push(per_second(events, began.elapsed()));
    }
    let mut child = Child::start("server")?;
    let mut clients = Clients::open(child.port, SUBSCRIBERS, |_| "/events?chat=one".into()).await?;
    clients.opened().await?;
    let (began, cpu) = (Instant::now(), child.cpu()?);
    child.tell(&format!("publish one {EVENTS} 0"))?;
    clients.events(EVENTS).await?;
    let took = began.elapsed();
    let cpu_us = (child.cpu()? - cpu).as_secs_f64() * 1e6 / (EVENTS * SUBSCRIBERS as u64) as f64;
    let more = json!({
        "target": 200_000, "floor_one_write_each": floors[0].round(), "floor_100_joined": floors[1].round(),
        "server_cpu_us_a_delivery": (cpu_us * 1000.0).round() / 1000.0,
        "conditions": "2,000 readers of one chat, 2,000 events at once, 1 server thread",
    });
    report("sse.deliveries_per_s", per_second(EVENTS, took).round(), "1/s", more);
    Ok(())
}

/// Events one by one, as a model streams them: each is a wake and a write for every reader.
async fn paced(rate: u64) -> Result<()> {
    let events = rate * 5;
    let mut child = Child::start("server")?;
    let mut clients = Clients::open(child.port, SUBSCRIBERS, |_| "/events?chat=one".into()).await?;
    clients.opened().await?;
    let (began, cpu) = (Instant::now(), child.cpu()?);
    child.tell(&format!("publish one {events} {}", 1_000_000 / rate))?;
    clients.events(events).await?;
    let took = began.elapsed();
    let busy = (child.cpu()? - cpu).as_secs_f64() / took.as_secs_f64();
    let more = json!({ "offered": rate * SUBSCRIBERS as u64, "server_thread_busy": (busy * 100.0).round() / 100.0 });
    report(&format!("sse.paced_{rate}_deliveries_per_s"), per_second(events, took).round(), "1/s", more);
    Ok(())
}

/// Connections on which nothing happens, all on one chat and each on its own.
async fn idle() -> Result<()> {
    let mut bytes = Vec::new();
    for (kind, path) in [("hold", "one"), ("server", "one"), ("server", "")] {
        let child = Child::start(kind)?;
        let name = |index: usize| if path.is_empty() { index.to_string() } else { path.to_owned() };
        // The first connections pay for one-time set-up of the process.
        let mut first = Clients::open(child.port, 100, |_| "/events?chat=warm".into()).await?;
        first.opened().await?;
        let before = child.resident()?;
        let mut clients = Clients::open(child.port, IDLE, |index| format!("/events?chat={}", name(index))).await?;
        clients.opened().await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        bytes.push((child.resident()? - before) as f64 / IDLE as f64);
    }
    for (figure, value) in [("sse.idle_bytes", bytes[1]), ("sse.idle_bytes_own_chats", bytes[2])] {
        let more = json!({ "target": 11 * 1024, "stretch": 2048, "floor": bytes[0].round(), "connections": IDLE });
        report(figure, value.round(), "bytes a connection", more);
    }
    Ok(())
}

/// Everyone comes back at once and has missed 100 events: with the chat warm in the window, and only in the log.
async fn storm() -> Result<()> {
    for (figure, warm) in [("sse.storm_warm_max_s", true), ("sse.storm_cold_max_s", false)] {
        let mut child = Child::start("server")?;
        let mut watcher = Clients::open(child.port, 1, |_| format!("/events?chat={warm}")).await?;
        watcher.opened().await?;
        child.tell("publish true 1000 0")?;
        child.tell("publish false 1000 0")?;
        if warm {
            watcher.events(1000).await?;
        } else {
            drop(watcher);
        }
        let cpu = child.cpu()?;
        let chat = if warm { "true" } else { "cold" };
        child.tell("publish cold 1000 0")?;
        child.answered()?;
        let began = Instant::now();
        let mut clients = Clients::open(child.port, SUBSCRIBERS, |_| format!("/events?chat={chat}&after=900")).await?;
        let mut took = clients.caught_up(100).await?;
        let all = began.elapsed();
        took.sort();
        let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_secs_f64();
        let more = json!({
            "target": 0.2, "p50": at(0.5), "p99": at(0.99), "all": all.as_secs_f64(),
            "server_cpu_s": (child.cpu()? - cpu).as_secs_f64(), "reconnects": SUBSCRIBERS,
        });
        report(figure, at(1.0), "s from connecting to the last missed event", more);
    }
    Ok(())
}

/// Readers that read nothing, while their chat goes on: memory after a short and after a long lag.
async fn slow() -> Result<()> {
    const READERS: usize = 100;
    let mut child = Child::start("server")?;
    let mut clients = Clients::open(child.port, READERS, |_| "/events?chat=one".into()).await?;
    clients.opened().await?;
    let mut resident = vec![child.resident()?];
    for events in [5_000, 95_000] {
        child.tell(&format!("publish one {events} 0"))?;
        child.answered()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        resident.push(child.resident()?);
    }
    let kib = |from: usize, to: usize| (resident[to] as f64 - resident[from] as f64) / 1024.0 / READERS as f64;
    let more = json!({ "after_5000_events": kib(0, 1).round(), "readers": READERS });
    report("sse.slow_reader_growth", kib(1, 2), "KiB a reader from 5,000 to 100,000 events of lag", more);
    Ok(())
}
