//! The counters of processes, in Prometheus' text format: the lines of `/metrics`, and the source of [`crate::Emf`] on Lambda.

use crate::{Activity, ModelMetrics, TurnTraces, process};
use ::webhooks::Webhooks;
use actor::watchdog::Watchdog;
use api::{Counters, Note};
use chat::{Chats, LocationCounts};
use domain::Timestamp;
use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tools::organizer::{EntityCounts, entity_counts};
use worker::Worker;
use workspace::Workspaces;

/// The identity and the resources of this process.
pub fn process(started_at: Timestamp) -> Counters {
    Box::new(move |out| process::render(started_at.as_millis(), out))
}

/// The streams that it holds.
pub fn streams(streams: Arc<stream::Metrics>) -> Counters {
    Box::new(move |out| {
        let counts = streams.counts();
        gauge(out, "buildscale_connections", "Open connections.", counts.connections);
        total(
            out,
            "buildscale_connections_refused",
            "Connections refused because all places, or all of their client, were taken.",
            counts.refused,
        );
        gauge(out, "buildscale_streams", "Open event streams.", counts.subscriptions);
        total(out, "buildscale_stream_deliveries", "Events delivered, once per stream.", counts.deliveries);
        total(out, "buildscale_stream_bytes", "Bytes of event streams.", counts.bytes);
        total(out, "buildscale_stream_resets", "Cursors answered with a reset.", counts.resets);
        total(out, "buildscale_stream_stalled", "Streams closed because their readers stalled.", counts.stalled_closed);
        total(out, "buildscale_stream_healed_gaps", "Gaps of the bus filled from the log.", counts.healed_gaps);
    })
}

/// The damage that it has seen in the archive and in the table.
pub fn archive(workspaces: Workspaces) -> Counters {
    Box::new(move |out| {
        let counts = workspaces.damage_counts();
        total(out, "buildscale_archive_scrubbed", "Contents that scrubs compared with their digests.", counts.scrubbed);
        total(out, "buildscale_archive_damage_found", "Times that a content was missing or altered.", counts.found);
        total(out, "buildscale_archive_repaired", "Contents repaired from a good copy.", counts.repaired);
        let rows = ports::rows_left_out();
        total(out, "buildscale_rows_left_out", "Rows that lists left out, because they are damaged or lost.", rows);
    })
}

/// The work of its actors.
pub fn activity(activity: Arc<Activity>) -> Counters {
    Box::new(move |out| activity.render(out))
}

/// The usage and the cost of its models.
pub fn models(metrics: Arc<ModelMetrics>) -> Counters {
    Box::new(move |out| metrics.render(out))
}

/// The outcomes of exporting traces of turns, if they are exported.
pub fn traces(traces: Option<Arc<TurnTraces>>) -> Counters {
    Box::new(move |out| {
        if let Some(traces) = &traces {
            traces.render(out);
        }
    })
}

/// The caches of the contexts of sessions: locations, and entities of the organizer.
pub fn contexts(chats: Chats) -> Counters {
    Box::new(move |out| {
        let LocationCounts { hits, misses, outdated } = chats.location_counts();
        total(out, "buildscale_session_location_hits", "Messages whose session kept its location.", hits);
        total(out, "buildscale_session_location_misses", "Locations of sessions read again for their age.", misses);
        total(
            out,
            "buildscale_session_location_outdated",
            "Locations of sessions read again since a file had changed.",
            outdated,
        );
        let EntityCounts { hits, misses, outdated } = entity_counts();
        total(out, "buildscale_entity_memory_hits", "Entities of lists that were in memory.", hits);
        total(out, "buildscale_entity_memory_misses", "Entities of lists whose files were read.", misses);
        total(out, "buildscale_entity_memory_outdated", "Entities in memory whose files had changed.", outdated);
    })
}

/// The outcomes of webhooks, where they are set up.
pub fn webhooks(webhooks: &Webhooks) -> Counters {
    let outcomes = webhooks.setup().map(|setup| setup.outcomes.clone());
    Box::new(move |out| {
        let Some(counts) = outcomes.as_ref().map(|outcomes| outcomes.counts()) else { return };
        total(out, "buildscale_webhook_deliveries", "Events that receivers of webhooks took.", counts.delivered);
        total(out, "buildscale_webhook_failures", "Attempts that receivers of webhooks did not take.", counts.failed);
        total(out, "buildscale_webhooks_disabled", "Webhooks that were disabled for their failures.", counts.disabled);
        gauge(out, "buildscale_webhooks_failing", "Webhooks whose last attempt failed.", counts.failing);
    })
}

/// The number of webhooks that fail now, for `/ready` and `buildscale doctor`; nothing while none does.
pub fn failing_webhooks(webhooks: &Webhooks) -> Note {
    let outcomes = webhooks.setup().map(|setup| setup.outcomes.clone());
    Box::new(move || {
        let failing = outcomes.as_ref()?.counts().failing;
        (failing > 0).then(|| ("webhooks", format!("receivers that did not take the last event: {failing}")))
    })
}

/// The threads that computations hold.
pub fn held(watchdog: Arc<Watchdog>) -> Counters {
    Box::new(move |out| {
        let now = watchdog.held().len() as u64;
        gauge(out, "buildscale_threads_held", "Threads that a computation holds now.", now);
        let ever = watchdog.total();
        total(out, "buildscale_threads_held", "Times that a computation held a thread; the log has where.", ever);
    })
}

/// The inputs that were computed when a process of this server died.
pub fn crashes() -> Counters {
    Box::new(|out| {
        let Some(crashes) = ports::crash::installed() else { return };
        let (known, refused) = (crashes.suspects().cases.len() as u64, crashes.refused().len() as u64);
        gauge(out, "buildscale_crash_suspects", "Inputs that were computed when a process of this server died.", known);
        gauge(out, "buildscale_crash_refused", "Those that are not tried again.", refused);
        let refusals = crashes.refusals();
        total(out, "buildscale_crash_refusals", "Requests and files that were refused for it.", refusals);
    })
}

/// The work of its worker.
pub fn worker(worker: &Worker) -> Counters {
    let worker = worker.clone();
    Box::new(move |out| {
        let counts = worker.metrics();
        gauge(out, "buildscale_actors_running", "Actors that are driven now.", counts.running.load(Relaxed));
        gauge(out, "buildscale_actors_warm", "Actors at rest in memory.", worker.warm_actors() as u64);
        let cache = worker.cache_counts();
        total(out, "buildscale_actor_memory_hits", "Deliveries whose actor was in memory.", cache.hits);
        total(out, "buildscale_actor_memory_misses", "Deliveries whose actor was read from its log.", cache.misses);
        total(
            out,
            "buildscale_actor_memory_outdated",
            "Actors in memory that another had driven since.",
            cache.outdated,
        );
        total(
            out,
            "buildscale_context_cache_hits",
            "Deliveries whose chat was in memory although it had been shut down.",
            cache.cached,
        );
        let kept = worker.cache_size();
        gauge(out, "buildscale_context_cache_chats", "Chats that were shut down and are kept in memory.", kept.states);
        gauge(out, "buildscale_context_cache_bytes", "Their size.", kept.bytes);
        total(out, "buildscale_deliveries_acknowledged", "Deliveries settled.", counts.acknowledged.load(Relaxed));
        total(out, "buildscale_deliveries_retried", "Deliveries given back.", counts.retried.load(Relaxed));
        let cut = counts.checkpointed.load(Relaxed);
        total(out, "buildscale_actors_checkpointed", "Actors that a deadline or a shutdown found at work.", cut);
    })
}

/// A count of a function on AWS, as a line for [`crate::Emf`]: `buildscale_NAME_total`.
pub fn count(name: &'static str, count: Arc<AtomicU64>) -> Counters {
    // Writing to a string cannot fail.
    Box::new(move |out| _ = writeln!(out, "buildscale_{name}_total {}", count.load(Relaxed)))
}

/// A counter; its name gets `_total`.
pub fn total(out: &mut String, name: &str, help: &str, value: u64) {
    line(out, &format!("{name}_total"), "counter", help, value);
}

/// A value that goes up and down.
pub fn gauge(out: &mut String, name: &str, help: &str, value: u64) {
    line(out, name, "gauge", help, value);
}

fn line(out: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}
