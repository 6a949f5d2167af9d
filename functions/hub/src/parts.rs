//! What is the hub's own: its store, which is table and queue, has one writer that answers for both; its sandboxes are the machine
//! that it runs on.

use api::{Counters, Probe};
use assembly::{
    Config, Machines,
    counters::{gauge, total},
    probes,
};
use domain::WorkspaceId;
use embedded::Store;
use ports::Bus;
use std::{path::Path, sync::Arc};

/// Where commands run, if any do: here, each in a folder of its own, seeing nothing of the data directory but its workspace.
pub(crate) fn sandboxes(data: &Path, files: &Path, config: &Config) -> Option<(sandbox::Local, Machines)> {
    let commands = config.sandbox.commands()?;
    let mut options = sandbox::Options::new(data.join("scratch"));
    options.hidden.push(data.to_owned());
    options.system.extend(config.sandbox.readable.iter().cloned());
    let local = sandbox::Local::with(files, options);
    Some((local.clone(), Machines { sandboxes: Arc::new(local), commands: Some(commands) }))
}

/// Whether a folder has a workspace's in it.
pub(crate) fn has_workspaces(files: &Path) -> bool {
    let is_workspace = |name: std::ffi::OsString| name.to_str().is_some_and(|name| name.parse::<WorkspaceId>().is_ok());
    std::fs::read_dir(files)
        .is_ok_and(|mut all| all.any(|entry| entry.is_ok_and(|entry| is_workspace(entry.file_name()))))
}

/// What has to be ready.
pub(crate) fn probes(store: &Arc<Store>, bus: &Arc<dyn Bus>) -> Vec<Probe> {
    let writer = |name| {
        let store = store.clone();
        probes::probe(name, move || {
            let store = store.clone();
            async move { store.ping().await }
        })
    };
    vec![writer("table"), writer("queue"), probes::bus(bus.clone())]
}

/// What the store counts.
pub(crate) fn counters(store: &Arc<Store>) -> Counters {
    let store = store.clone();
    Box::new(move |out| {
        let stats = store.stats();
        total(out, "buildscale_store_groups", "Transactions that reached the disk.", stats.groups);
        total(out, "buildscale_store_requests", "Commits and sends that were part of one.", stats.requests);
        total(out, "buildscale_store_conflicts", "Commits that lost a race.", stats.conflicts);
        gauge(out, "buildscale_store_wal_pages", "Pages in the write-ahead log.", stats.wal_pages);
        gauge(out, "buildscale_queue_waiting", "Messages that wait.", stats.waiting);
        gauge(out, "buildscale_queue_in_flight", "Messages that are being worked on.", stats.in_flight);
    })
}
