//! What the hub gives to the API: where streams come from, what has to be ready, what is counted.

use crate::process;
use actor::ActorId;
use api::{Counters, Probe, Streams};
use async_trait::async_trait;
use axum::response::Response;
use bytes::Bytes;
use domain::Timestamp;
use embedded::Store;
use futures::{FutureExt, future::BoxFuture};
use http::HeaderMap;
use ports::{Bus, Result};
use std::{
    fmt::Write as _,
    sync::{Arc, atomic::Ordering::Relaxed},
};
use stream::{Feeds, Start};
use worker::Worker;

/// Streams out of this process's own feeds.
pub(crate) struct OwnFeeds(pub Feeds);

#[async_trait]
impl Streams for OwnFeeds {
    async fn open(&self, actor: &ActorId, first: u64, headers: &HeaderMap, after: Option<&str>) -> Result<Response> {
        stream::events(&self.0, actor, Start::Turn(first), headers, after).await
    }
}

/// Table and queue share one writer, which answers for both.
pub(crate) fn probes(store: &Arc<Store>, bus: &Arc<dyn Bus>) -> Vec<Probe> {
    let probe = |name, check: Box<dyn Fn() -> BoxFuture<'static, Result<()>> + Send + Sync>| Probe { name, check };
    let writer = |store: &Arc<Store>| {
        let store = store.clone();
        move || {
            let store = store.clone();
            async move { store.ping().await }.boxed()
        }
    };
    let bus = bus.clone();
    let publish = move || {
        let bus = bus.clone();
        async move { bus.publish("ready", Bytes::new()).await }.boxed()
    };
    vec![
        probe("table", Box::new(writer(store))),
        probe("queue", Box::new(writer(store))),
        probe("bus", Box::new(publish)),
    ]
}

/// The counters of the process, the store, the streams and the worker, in Prometheus' text format.
pub(crate) fn counters(store: &Arc<Store>, feeds: &Feeds, worker: &Worker, started_at: Timestamp) -> Vec<Counters> {
    let (store, streams, worker) = (store.clone(), feeds.metrics().clone(), worker.clone());
    vec![
        Box::new(move |out| process::render(started_at.as_millis(), out)),
        Box::new(move |out| {
            let stats = store.stats();
            total(out, "buildscale_store_groups", "Transactions that reached the disk.", stats.groups);
            total(out, "buildscale_store_requests", "Commits and sends that were part of one.", stats.requests);
            total(out, "buildscale_store_conflicts", "Commits that lost a race.", stats.conflicts);
            gauge(out, "buildscale_store_wal_pages", "Pages in the write-ahead log.", stats.wal_pages);
            gauge(out, "buildscale_queue_waiting", "Messages that wait.", stats.waiting);
            gauge(out, "buildscale_queue_in_flight", "Messages that are being worked on.", stats.in_flight);
        }),
        Box::new(move |out| {
            let counts = streams.counts();
            gauge(out, "buildscale_connections", "Open connections.", counts.connections);
            gauge(out, "buildscale_streams", "Open event streams.", counts.subscriptions);
            total(out, "buildscale_stream_deliveries", "Events delivered, once a stream.", counts.deliveries);
            total(out, "buildscale_stream_bytes", "Bytes of event streams.", counts.bytes);
            total(out, "buildscale_stream_resets", "Cursors answered with a reset.", counts.resets);
            total(out, "buildscale_stream_stalled", "Streams closed because nobody read.", counts.stalled_closed);
            total(out, "buildscale_stream_healed_gaps", "Gaps of the bus filled from the log.", counts.healed_gaps);
        }),
        Box::new(move |out| {
            let counts = worker.metrics();
            gauge(out, "buildscale_actors_running", "Actors that are driven now.", counts.running.load(Relaxed));
            gauge(out, "buildscale_actors_warm", "Actors at rest in memory.", worker.warm_actors() as u64);
            total(out, "buildscale_deliveries_acknowledged", "Deliveries settled.", counts.acknowledged.load(Relaxed));
            total(out, "buildscale_deliveries_retried", "Deliveries given back.", counts.retried.load(Relaxed));
        }),
    ]
}

fn total(out: &mut String, name: &str, help: &str, value: u64) {
    line(out, &format!("{name}_total"), "counter", help, value);
}

fn gauge(out: &mut String, name: &str, help: &str, value: u64) {
    line(out, name, "gauge", help, value);
}

fn line(out: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}
