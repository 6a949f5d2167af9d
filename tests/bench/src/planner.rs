//! `planner`: the time that the hub adds to a message of the planner chat, alone, with a plan of ten executors, and when 100 sessions talk at once.

use crate::{Bench, Result, client, floor::Append, http, hub::Hub, report::Figure, samples::Samples, script};
use serde_json::json;
use std::time::Duration;
use tokio::{task::JoinSet, time::Instant};

const SESSION: &str = r#""type":"session""#;
const TEXT: &str = r#""type":"text""#;
const DONE: &str = r#""type":"done""#;
const SESSIONS: usize = 100;
/// These clients talk faster than a person may.
const NO_PACE: [(&str, &str); 2] =
    [("BUILDSCALE__PLANNER__REQUESTS_PER_MINUTE", "0"), ("BUILDSCALE__PLANNER__TOKENS_PER_MINUTE", "0")];

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    client(async {
        let folder = bench.folder("planner")?;
        let mut append = Append::new(&folder)?;
        let hub = Hub::start(bench, &folder.join("data"), &NO_PACE)?;
        let workspace = hub.workspace().await?;
        let id = workspace.rsplit('/').next().unwrap_or_default();
        let door = format!("/api/agent/stream?workspace_id={id}");

        let (mut floor, mut session, mut text, mut plan) = <(Samples, Samples, Samples, Samples)>::default();
        for _ in 0..100 {
            floor.add(append.once()?);
            let [first, words, _] = say(&hub.address, &door, "Hello!").await?;
            session.add(first);
            text.add(words);
        }
        for _ in 0..20 {
            let [_, _, done] = say(&hub.address, &door, script::PLAN).await?;
            plan.add(done);
        }
        // Another hub lets all ten work at the same time.
        let all = [&NO_PACE[..], &[("BUILDSCALE__PLANNER__EXECUTORS_AT_ONCE", "10")][..]].concat();
        let wide = Hub::start(bench, &folder.join("wide"), &all)?;
        let place = wide.workspace().await?;
        let wide_door = format!("/api/agent/stream?workspace_id={}", place.rsplit('/').next().unwrap_or_default());
        let mut at_once = Samples::default();
        for _ in 0..20 {
            let [_, _, done] = say(&wide.address, &wide_door, script::PLAN).await?;
            at_once.add(done);
        }
        drop(wide);
        let f = floor.median();
        bench.report.add(
            Figure::new("planner.session", session.median(), "ms")
                .beside("F", f)
                .more("p99", session.p99())
                .more("is", "POST of a new session to its first frame, p50"),
        )?;
        bench.report.add(
            Figure::new("planner.text", text.median(), "ms")
                .beside("F", f)
                .more("p99", text.p99())
                .more("is", "POST of a greeting to the first text, p50; the model takes no time"),
        )?;
        bench.report.add(
            Figure::new("planner.ten_executors", plan.median(), "ms")
                .beside("F", f)
                .more("p99", plan.p99())
                .more("is", "POST to done: analysis, plan, ten executors, three at once, answer, p50"),
        )?;
        bench.report.add(
            Figure::new("planner.ten_executors_at_once", at_once.median(), "ms")
                .beside("F", f)
                .more("p99", at_once.p99())
                .more("is", "the same with all ten executors at once, p50"),
        )?;
        many(bench, &hub, &door, text.median()).await
    })
}

async fn many(bench: &mut Bench, hub: &Hub, door: &str, alone: f64) -> Result<()> {
    const EACH: usize = 5;
    let (cpu, began) = (hub.cpu_ms()?, Instant::now());
    let mut talking = JoinSet::new();
    for _ in 0..SESSIONS {
        let (address, door) = (hub.address.clone(), door.to_owned());
        talking.spawn(async move {
            let mut took = Vec::new();
            for _ in 0..EACH {
                took.push(say(&address, &door, "Hello!").await?);
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(took)
        });
    }
    let (mut session, mut text) = <(Samples, Samples)>::default();
    while let Some(took) = talking.join_next().await {
        for [first, words, _] in took?? {
            session.add(first);
            text.add(words);
        }
    }
    let (seconds, messages) = (began.elapsed().as_secs_f64(), (SESSIONS * EACH) as f64);
    bench.report.add(
        Figure::new("planner.100_sessions", text.median(), "ms")
            .beside("alone", alone)
            .more("p99", text.p99())
            .more("to_session_p50", session.median())
            .more("messages_per_s", messages / seconds)
            .more("cpu_ms_a_message", (hub.cpu_ms()? - cpu) / messages)
            .more("is", "POST of a greeting to its first text, 100 clients, each with the next one as soon as the last has ended"),
    )
}

/// A message in a new session: until its first frame, its first text, and its end.
async fn say(address: &str, door: &str, message: &str) -> Result<[Duration; 3]> {
    let (body, began) = (json!({ "message": message }).to_string(), Instant::now());
    let seen = http::streamed(address, door, &body, &[SESSION, TEXT, DONE]).await?;
    let at = |which: usize| seen.get(which).map(|at| *at - began).ok_or("a frame is missing");
    Ok([at(0)?, at(1)?, at(2)?])
}
