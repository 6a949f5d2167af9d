//! The servers: ours, and the two floors it is measured against. Each prints its port and then does as its stdin says.

use crate::Result;
use actor::ActorId;
use async_trait::async_trait;
use axum::{
    Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::get,
};
use buildscale_stream::{FeedOptions, Feeds, Metrics, ServeOptions, Start, events, serve};
use bytes::Bytes;
use domain::{ActorRef, ChatEvent, ChatId, Timestamp};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{Bus, IndexQuery, Item, Key, Page, Table, Write};
use serde::Deserialize;
use serde_json::json;
use std::{
    collections::HashMap,
    io::{self, BufRead, Write as _},
    net::TcpListener,
    sync::Arc,
    time::Duration,
};
use tokio::{io::AsyncReadExt, sync::mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The chat of this name.
fn actor(name: &str) -> ActorRef {
    ActorRef::Chat { workspace: Uuid::nil().into(), chat: ChatId::from_key("sse_bench", name) }
}

/// An event as a model streams it: about ten words, 150 bytes on the wire.
fn entry(number: u64) -> String {
    let text = format!("{number:>8} ten words or so, as a model says them at once");
    let event = ChatEvent::Chunk { text, message_id: Uuid::nil().into() };
    let (at, step) = (Timestamp::default(), Uuid::nil());
    json!({ "first": number, "next": number + 1, "at": at, "step": step, "events": [event] }).to_string()
}

/// Logs that take no memory, since their entries follow from their numbers; so growth is the server's own.
#[derive(Default)]
struct Logs {
    ends: Mutex<HashMap<String, u64>>,
    channels: Mutex<HashMap<String, Vec<mpsc::UnboundedSender<Bytes>>>>,
}

impl Logs {
    fn publish(&self, actor: &ActorId) {
        let number = {
            let mut ends = self.ends.lock();
            let end = ends.entry(actor.as_str().into()).or_insert(0);
            *end += 1;
            *end
        };
        let message = Bytes::from(entry(number));
        if let Some(channel) = self.channels.lock().get_mut(actor.as_str()) {
            channel.retain(|sender| sender.send(message.clone()).is_ok());
        }
    }
}

#[async_trait]
impl Table for Logs {
    async fn get(&self, _: &Key) -> ports::Result<Option<Item>> {
        Ok(None)
    }
    async fn query(&self, query: &ports::Query) -> ports::Result<Page> {
        let number = |sk: &Option<String>| sk.as_deref().and_then(|sk| sk.strip_prefix("log/")?.parse::<u64>().ok());
        let end = self.ends.lock().get(&query.pk).copied().unwrap_or(0);
        let first = number(&query.from).unwrap_or(1);
        let last = number(&query.to).map_or(end, |to| end.min(to - 1));
        let limit = query.limit as u64;
        let numbers: Vec<u64> = match query.descending {
            true => (first..=last).rev().take(query.limit).collect(),
            false => (first..=last).take(query.limit).collect(),
        };
        let more = (last + 1).saturating_sub(first) > limit;
        let item = |number: u64| Item {
            key: Key::new(&query.pk, format!("log/{number:020}")),
            rev: 1,
            body: entry(number),
            index: None,
            expires_at: None,
        };
        Ok(Page { items: numbers.into_iter().map(item).collect(), next: more.then(|| "more".into()) })
    }
    async fn query_index(&self, _: &IndexQuery) -> ports::Result<Page> {
        Ok(Page::default())
    }
    async fn commit(&self, _: Vec<Write>) -> ports::Result<()> {
        Ok(())
    }
}

#[async_trait]
impl Bus for Logs {
    async fn publish(&self, _: &str, _: Bytes) -> ports::Result<()> {
        Ok(())
    }
    async fn subscribe(&self, channel: &str) -> ports::Result<ports::Subscription> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.channels.lock().entry(channel.into()).or_default().push(sender);
        Ok(stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) }).boxed())
    }
}

#[derive(Deserialize)]
struct Watch {
    chat: String,
    after: Option<String>,
}

async fn watch(
    State(feeds): State<Feeds>,
    Query(Watch { chat, after }): Query<Watch>,
    headers: HeaderMap,
) -> std::result::Result<Response, StatusCode> {
    let response = events(&feeds, actor(&chat), Start::Live, &headers, after.as_deref()).await;
    response.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

fn say(line: impl std::fmt::Display) -> Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Ours, on one thread. `publish <chat> <count> <pause in us>`.
pub fn stream() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let logs = Arc::new(Logs::default());
        let (metrics, shutdown) = (Arc::new(Metrics::default()), CancellationToken::new());
        // No comments: they would be counted as events.
        let options = FeedOptions { keep_alive: Duration::from_secs(600), ..FeedOptions::default() };
        let feeds = Feeds::new(logs.clone(), logs.clone(), options, metrics.clone(), shutdown.clone());
        let app = Router::new().route("/events", get(watch)).with_state(feeds);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        say(listener.local_addr()?.port())?;
        let (tell, mut told) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            io::stdin().lock().lines().map_while(std::result::Result::ok).try_for_each(|line| tell.send(line))
        });
        tokio::spawn(async move {
            while let Some(line) = told.recv().await {
                let words: Vec<&str> = line.split(' ').collect();
                let (actor, count) = (ActorId::from(actor(words[1])), words[2].parse::<u64>().unwrap());
                let pause = Duration::from_micros(words[3].parse().unwrap());
                let mut ticks = tokio::time::interval(pause.max(Duration::from_micros(1)));
                for index in 0..count {
                    if !pause.is_zero() {
                        ticks.tick().await;
                    } else if index % 100 == 99 {
                        tokio::task::yield_now().await;
                    }
                    logs.publish(&actor);
                }
                say("done").unwrap();
            }
        });
        Ok(serve(listener, app, ServeOptions::default(), metrics, shutdown).await?)
    })
}

/// The least that a delivery can cost: the same bytes written to the same number of sockets by a loop. `<events> <joined>`.
pub fn bare() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    say(listener.local_addr()?.port())?;
    let accepting = std::thread::spawn(move || {
        let sockets = (0..crate::SUBSCRIBERS).map(|_| {
            let (socket, _) = listener.accept()?;
            socket.set_nodelay(true)?;
            Ok(socket)
        });
        sockets.collect::<io::Result<Vec<_>>>()
    });
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let mut sockets = accepting.join().map_err(|_| "the acceptor panicked")??;
    let (events, joined) = line.trim().split_once(' ').ok_or("two numbers")?;
    let (events, joined) = (events.parse::<u64>()?, joined.parse::<usize>()?);
    let data = json!({ "text": "x".repeat(59), "message_id": Uuid::nil() });
    let frames = format!("id: 1000\nevent: chunk\ndata: {data}\n\n").repeat(joined);
    let padding = format!("{}\n\n", " ".repeat(16));
    sockets.iter_mut().try_for_each(|socket| socket.write_all(padding.as_bytes()))?;
    for _ in 0..events / joined as u64 {
        for socket in &mut sockets {
            socket.write_all(frames.as_bytes())?;
        }
    }
    io::stdin().read_line(&mut line)?;
    Ok(())
}

/// The least that a connection can cost with this runtime: accepted, answered, and held by a task that waits for its end.
pub fn hold() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        say(listener.local_addr()?.port())?;
        loop {
            let (mut socket, _) = listener.accept().await?;
            tokio::spawn(async move {
                let _ = socket.try_write(b" \n\n");
                let mut byte = [0; 1];
                while socket.read(&mut byte).await.is_ok_and(|count| count > 0) {}
            });
        }
    })
}
