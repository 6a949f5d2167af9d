//! `turn_overhead`: the time that the hub adds to a turn, alone and when 64 chats talk at once.

use crate::{
    Bench, Result, client,
    floor::{Append, READY, Sqlite},
    http::{Connection, Events},
    hub::Hub,
    report::Figure,
    samples::Samples,
    script,
};
use serde_json::json;
use std::time::Duration;
use tokio::{task::JoinSet, time::Instant};

/// A chat, with a connection for messages and an open stream for their events.
pub(crate) struct Talk {
    posts: Connection,
    events: Events,
    path: String,
}

/// How long it took, from the moment the message was sent.
pub(crate) struct Times {
    /// Until the 202 was there.
    pub accepted: Duration,
    /// Until `turn_started` was there.
    pub first: Duration,
    /// Until `done` was there.
    pub done: Duration,
}

impl Talk {
    /// Makes a chat and waits for its first turn to end.
    pub async fn begin(hub: &Hub, workspace: &str) -> Result<Self> {
        let mut posts = Connection::open(&hub.address).await?;
        let body = json!({ "goal": script::TALK }).to_string();
        let made = posts.json("POST", &format!("{workspace}/chats"), &body).await?;
        let id = made["chat_id"].as_str().ok_or_else(|| format!("no chat: {made}"))?;
        let path = format!("{workspace}/chats/{id}");
        let mut events = Events::open(&hub.address, &format!("{path}/events?after=0")).await?;
        events.until("done").await?;
        Ok(Self { posts, events, path })
    }

    /// Comes back to a chat that rests.
    pub async fn resume(hub: &Hub, path: &str) -> Result<Self> {
        let posts = Connection::open(&hub.address).await?;
        let mut events = Events::open(&hub.address, &format!("{path}/events")).await?;
        events.opened().await?;
        Ok(Self { posts, events, path: path.into() })
    }

    /// Is about to be used again after a long rest.
    pub async fn wake(&mut self) -> Result<()> {
        self.posts.renew().await
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// Posts a message, without waiting for its events.
    pub async fn say(&mut self, content: &str) -> Result<()> {
        let body = json!({ "content": content }).to_string();
        self.posts.json("POST", &self.path, &body).await.map(drop)
    }

    /// Waits for this many turns to end.
    pub async fn ended(&mut self, turns: usize) -> Result<()> {
        for _ in 0..turns {
            self.events.until("done").await?;
        }
        Ok(())
    }

    /// A whole turn.
    pub async fn turn(&mut self, content: &str) -> Result<Times> {
        let body = json!({ "content": content }).to_string();
        let began = Instant::now();
        let post = async {
            self.posts.json("POST", &self.path, &body).await?;
            Ok(began.elapsed())
        };
        let watch = async {
            let first = self.events.until("turn_started").await?;
            Ok((first - began, self.events.until("done").await? - began))
        };
        let (accepted, (first, done)) = tokio::try_join!(post, watch).map_err(|error: Error| error)?;
        Ok(Times { accepted, first, done })
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    client(async {
        let folder = bench.folder("turns")?;
        let hub = Hub::start(bench, &folder.join("data"), &[])?;
        let workspace = hub.workspace().await?;
        let f = alone(bench, &hub, &workspace, &mut Append::new(&folder)?).await?;
        many(bench, &hub, &workspace, &mut Sqlite::new(&folder)?, f).await
    })
}

/// One chat, one turn after another. Returns F.
async fn alone(bench: &mut Bench, hub: &Hub, workspace: &str, append: &mut Append) -> Result<f64> {
    const WARM_UP: usize = 50;
    const TURNS: usize = 500;
    let mut talk = Talk::begin(hub, workspace).await?;
    for _ in 0..WARM_UP {
        talk.turn(script::TALK).await?;
    }
    let (mut floor, mut accepted, mut first, mut done) = <(Samples, Samples, Samples, Samples)>::default();
    let (cpu, written, store) = (hub.cpu_ms()?, hub.written()?, hub.store().await?);
    for _ in 0..TURNS {
        floor.add(append.once()?);
        let times = talk.turn(script::TALK).await?;
        accepted.add(times.accepted);
        first.add(times.first);
        done.add(times.done);
    }
    let (f, turns) = (floor.median(), TURNS as f64);
    let commits = (hub.store().await?.0 - store.0) / turns;
    bench.report.add(
        Figure::new("turn_overhead.accepted", accepted.median(), "ms")
            .beside("F", f)
            .at_most(f + 1.0, "F + 1 ms")
            .more("p99", accepted.p99())
            .more("f_p99", floor.p99())
            .more("is", "POST to 202, p50"),
    )?;
    bench.report.add(
        Figure::new("turn_overhead.first_event", first.median(), "ms")
            .beside("F", f)
            .at_most(2.0 * f + 2.0, "2F + 2 ms")
            .more("p99", first.p99())
            .more("is", "POST to turn_started on an open stream, p50"),
    )?;
    bench.report.add(
        Figure::new("turn_overhead.done", done.median(), "ms")
            .beside("F", f)
            .more("p99", done.p99())
            .more("commits_a_turn", commits)
            .more("cpu_ms_a_turn", (hub.cpu_ms()? - cpu) / turns)
            .more("bytes_written_a_turn", (hub.written()? - written) / turns)
            .more("is", "POST to done with a model that takes no time, p50"),
    )?;
    Ok(f)
}

/// 64 chats, each with its next message as soon as a turn ended; the grouped floor before, between and after.
async fn many(bench: &mut Bench, hub: &Hub, workspace: &str, sqlite: &mut Sqlite, f: f64) -> Result<()> {
    const ROUNDS: usize = 3;
    const FOR: Duration = Duration::from_secs(3);
    let mut talks = JoinSet::new();
    for _ in 0..READY {
        let mut talk = Talk::begin(hub, workspace).await?;
        talks.spawn(async move { talk.turn(script::TALK).await.map(|_| talk) });
    }
    let mut floor = Samples::default();
    floor.push(sqlite.grouped(100)?);
    let (mut commits, mut groups, mut turns, mut seconds) = (0.0, 0.0, 0.0, 0.0);
    let (mut cpu, mut written, mut took) = (0.0, 0.0, Samples::default());
    for _ in 0..ROUNDS {
        let mut waiting = Vec::new();
        while let Some(talk) = talks.join_next().await {
            waiting.push(talk??);
        }
        let before = (hub.cpu_ms()?, hub.written()?, hub.store().await?);
        let began = Instant::now();
        let mut talking = JoinSet::new();
        for mut talk in waiting {
            talking.spawn(async move {
                let mut took = Vec::new();
                while began.elapsed() < FOR {
                    took.push(talk.turn(script::TALK).await?.done);
                }
                Ok::<_, Error>((talk, took))
            });
        }
        while let Some(ended) = talking.join_next().await {
            let (talk, done) = ended??;
            turns += done.len() as f64;
            done.into_iter().for_each(|done| took.add(done));
            talks.spawn(async { Ok(talk) });
        }
        seconds += began.elapsed().as_secs_f64();
        cpu += hub.cpu_ms()? - before.0;
        written += hub.written()? - before.1;
        let store = hub.store().await?;
        commits += store.0 - before.2.0;
        groups += store.1 - before.2.1;
        floor.push(sqlite.grouped(100)?);
    }
    let grouped = floor.median();
    bench.report.add(
        Figure::new("turn_overhead.commits_64_chats", commits / seconds, "commits/s")
            .beside("grouped floor", grouped)
            .at_least(grouped / 2.0, "half the grouped floor")
            .more("commits_a_transaction", commits / groups)
            .more("client", "64 streams and 64 connections on one thread of the same two processors"),
    )?;
    bench.report.add(
        Figure::new("turn_overhead.turns_64_chats", turns / seconds, "turns/s")
            .beside("one synced append after another", 1e3 / f)
            .more("turn_p50_ms", took.median())
            .more("turn_p99_ms", took.p99())
            .more("bytes_written_a_turn", written / turns),
    )?;
    bench.report.add(
        Figure::new("turn_overhead.cpu_64_chats", cpu / turns, "ms of CPU a turn")
            .at_most(1.0, "1 ms")
            .more("processors_busy", cpu / 1e3 / seconds),
    )
}
