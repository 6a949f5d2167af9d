//! Observers of tasks (spec 002 §6 (11)): those that a flow's `plugins.yaml` lists, and those that the host adds.

use super::{
    event::{self, TaskFact},
    metrics::{MOST_SERIES, OTHER},
    pump::{DeliveryLimits, Pump, SinkCounts, Tally},
    sink::Sink,
};
use actor::{ActorId, Entry, EntryObserver};
use async_trait::async_trait;
use domain::{Error, Sha256, TaskConfig, TaskEvent, WorkspaceId, task::FlowRef, task_native};
use engine::{
    FlowCache,
    machine::{TaskMachine, TaskState},
};
use flow::{Flow, manifest::Plugin};
use futures::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::Arc,
    time::Duration,
};
use tokio::{task::JoinSet, time::timeout};

/// Flows whose observers are kept at hand; those of others are opened again when they are needed.
const KEPT: usize = 256;

/// Opens the sinks that `plugins.yaml` lists.
pub trait Sinks: Send + Sync {
    /// The sink of one plugin of a flow.
    ///
    /// # Errors
    /// It is not configured as it has to be; for people.
    fn open(&self, workspace: WorkspaceId, flow: &FlowRef, plugin: &Plugin) -> Result<Arc<dyn Sink>, Error>;
}

/// Takes secrets out of the data of an event of a task.
pub type RedactEvent = Arc<dyn Fn(&TaskConfig, &mut Value) + Send + Sync>;

/// Passes the facts of tasks to sinks. No task waits for one, and none can change a task.
pub struct Observers {
    flows: FlowCache,
    sinks: Arc<dyn Sinks>,
    clean: RedactEvent,
    patience: DeliveryLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Of the host: told of all tasks. Started with the first event.
    waiting: Vec<(String, Arc<dyn Sink>)>,
    always: Vec<Arc<Listener>>,
    by_flow: HashMap<(WorkspaceId, Sha256), Arc<[Arc<Listener>]>>,
    running: JoinSet<()>,
    closed: bool,
    /// The sinks of flows that left memory, as long as they take what waits for them.
    leaving: Vec<(String, Tally)>,
    /// The counts of those that have ended, the first [`MOST_SERIES`] by name: a counter that lost them would begin anew.
    ended: BTreeMap<String, SinkCounts>,
}

impl State {
    /// Keeps the counts of the listeners of flows that leave memory.
    fn leave<'a>(&mut self, listeners: impl IntoIterator<Item = &'a Arc<Listener>>) {
        let ended = &mut self.ended;
        self.leaving.retain(|(name, tally)| {
            let stays = !tally.is_over();
            if !stays {
                let is_known = ended.contains_key(name) || ended.len() < MOST_SERIES;
                let name = if is_known { name.as_str() } else { OTHER };
                *ended.entry(name.to_owned()).or_default() += tally.counts();
            }
            stays
        });
        self.leaving.extend(listeners.into_iter().map(|listener| (listener.pump.name.clone(), listener.pump.tally())));
    }
}

/// One sink, and the events that it wants.
struct Listener {
    pump: Pump,
    /// Names of events, with `*`; all when empty.
    events: Vec<String>,
}

impl Observers {
    /// Opens the observers of flows through `sinks`. `flows` is shared with the machine that drives the tasks.
    pub fn new(flows: FlowCache, sinks: Arc<dyn Sinks>, clean: RedactEvent, patience: DeliveryLimits) -> Self {
        Self { flows, sinks, clean, patience, state: Mutex::default() }
    }

    /// Adds a sink that is told of all tasks of this host.
    #[must_use]
    pub fn with(self, name: &str, sink: Arc<dyn Sink>) -> Self {
        self.lock().waiting.push((name.to_owned(), sink));
        self
    }

    /// Tells those who want to know of the events of an entry.
    fn tell(&self, config: &TaskConfig, state: &TaskState, entry: &Entry<TaskEvent>) {
        let flow = self.flows.get(&config.flow);
        let listeners = self.listeners(config, flow.as_deref());
        if listeners.is_empty() {
            return;
        }
        for (number, event) in entry.numbered() {
            // The others are needed by the machine alone.
            let Some((name, mut data)) = task_native::encode(event) else { continue };
            let mut wanting = listeners.iter().filter(|listener| listener.wants(name)).peekable();
            if wanting.peek().is_none() {
                continue;
            }
            (self.clean)(config, &mut data);
            let node = event::node_of(event, state);
            let fact = Arc::new(TaskFact::new(config, flow.as_deref(), (number, entry.at), node, (name, data)));
            wanting.for_each(|listener| listener.pump.offer(fact.clone()));
        }
    }

    /// The listeners for the tasks of a flow.
    fn listeners(&self, config: &TaskConfig, flow: Option<&Flow>) -> Vec<Arc<Listener>> {
        let state = &mut *self.lock();
        if state.closed {
            return Vec::new();
        }
        for (name, sink) in std::mem::take(&mut state.waiting) {
            let listener = start(&mut state.running, name, sink, Vec::new(), self.patience);
            state.always.push(listener);
        }
        let mut all = state.always.clone();
        let key = (config.workspace, config.flow.hash);
        if let Some(known) = state.by_flow.get(&key) {
            all.extend(known.iter().cloned());
            return all;
        }
        let Some(flow) = flow else { return all };
        let mut own = Vec::new();
        for plugin in flow.settings.plugins.iter().filter(|plugin| plugin.enabled) {
            let name = format!("{}/{}", flow.reference.name, plugin.id);
            match self.sinks.open(config.workspace, &flow.reference, plugin) {
                Ok(sink) => {
                    own.push(start(&mut state.running, name, sink, plugin.events.clone(), self.patience));
                }
                Err(error) => tracing::warn!(sink = name, %error, "an observer of a flow is told nothing"),
            }
        }
        if state.by_flow.len() >= KEPT
            && let Some(any) = state.by_flow.keys().next().copied()
            && let Some(gone) = state.by_flow.remove(&any)
        {
            state.leave(gone.iter());
        }
        let own: Arc<[Arc<Listener>]> = own.into();
        all.extend(own.iter().cloned());
        state.by_flow.insert(key, own);
        all
    }

    /// The counts of facts since the start, by sink: the flow's name and the plugin's id.
    pub fn counts(&self) -> Vec<(String, SinkCounts)> {
        let state = self.lock();
        let listeners = state.always.iter().chain(state.by_flow.values().flat_map(|listeners| listeners.iter()));
        let at_hand = listeners.map(|listener| (listener.pump.name.as_str(), listener.pump.counts()));
        let leaving = state.leaving.iter().map(|(name, tally)| (name.as_str(), tally.counts()));
        let mut sums = state.ended.clone();
        for (name, counts) in at_hand.chain(leaving) {
            *sums.entry(name.to_owned()).or_default() += counts;
        }
        sums.into_iter().collect()
    }

    /// The same in Prometheus' text format, appended to `out`.
    pub fn render(&self, out: &mut String) {
        let name = "buildscale_observer_events_total";
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {name} Events for an observer, by result.\n# TYPE {name} counter");
        for (sink, SinkCounts { delivered, dropped, lost, .. }) in self.counts() {
            let sink = sink.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            for (result, count) in [("delivered", delivered), ("dropped", dropped), ("lost", lost)] {
                let _ = writeln!(out, "{name}{{sink=\"{sink}\",result=\"{result}\"}} {count}");
            }
        }
    }

    /// Waits until all sinks have taken the queued facts, for at most this long: for a process that may be frozen afterwards.
    /// Facts that are not taken by then still wait.
    pub async fn settle(&self, at_most: Duration) {
        let waiting: Vec<_> = {
            let state = self.lock();
            let listeners = state.always.iter().chain(state.by_flow.values().flat_map(|listeners| listeners.iter()));
            listeners.map(|listener| listener.pump.settled()).collect()
        };
        if timeout(at_most, join_all(waiting)).await.is_err() {
            tracing::info!("observers did not take everything yet");
        }
    }

    /// Sends the queued facts, for at most this long. Nothing is told from now on.
    pub async fn close(&self, at_most: Duration) {
        let mut running = {
            let state = &mut *self.lock();
            state.closed = true;
            let (always, by_flow) = (std::mem::take(&mut state.always), std::mem::take(&mut state.by_flow));
            state.leave(always.iter().chain(by_flow.values().flat_map(|listeners| listeners.iter())));
            std::mem::take(&mut state.running)
        };
        let all = async { while running.join_next().await.is_some() {} };
        if timeout(at_most, all).await.is_err() {
            tracing::warn!("observers miss the last events: they did not take them in time");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[async_trait]
impl EntryObserver<TaskMachine> for Observers {
    async fn committed(&self, _: &ActorId, state: &TaskState, entry: &Entry<TaskEvent>) {
        if let Some(config) = &state.config {
            self.tell(config, state, entry);
        }
    }
}

fn start(
    running: &mut JoinSet<()>,
    name: String,
    sink: Arc<dyn Sink>,
    events: Vec<String>,
    patience: DeliveryLimits,
) -> Arc<Listener> {
    let (pump, work) = Pump::new(name, sink, patience);
    while running.try_join_next().is_some() {}
    running.spawn(work);
    Arc::new(Listener { pump, events })
}

impl Listener {
    fn wants(&self, event: &str) -> bool {
        self.events.is_empty() || self.events.iter().any(|pattern| matches(pattern, event))
    }
}

/// Whether a name fits a pattern, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(head) else { return false };
    let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.any(|at| name.get(at..).is_some_and(|tail| matches(rest, tail)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{event::tests::fact, sink::SinkError};
    use domain::Code;

    /// Takes everything.
    struct Takes;

    #[async_trait]
    impl Sink for Takes {
        async fn send(&self, _: &[Arc<TaskFact>]) -> Result<(), SinkError> {
            Ok(())
        }
    }

    struct NoSinks;

    impl Sinks for NoSinks {
        fn open(&self, _: WorkspaceId, _: &FlowRef, _: &Plugin) -> Result<Arc<dyn Sink>, Error> {
            Err(Error::new(Code::Unprocessable, "there are none"))
        }
    }

    #[tokio::test]
    async fn counts_stay_when_a_sink_is_no_longer_at_hand() {
        let clean: RedactEvent = Arc::new(|_, _| {});
        let observers = Observers::new(FlowCache::default(), Arc::new(NoSinks), clean, DeliveryLimits::default());
        let delivered = |of: &str| {
            let counts = observers.counts();
            counts.iter().find(|(sink, _)| sink == of).map(|(_, counts)| counts.delivered)
        };
        let begun = |name: &str| {
            let (pump, work) = Pump::new(name.to_owned(), Arc::new(Takes) as Arc<dyn Sink>, DeliveryLimits::default());
            (1..=3).for_each(|number| pump.offer(Arc::new(fact(number))));
            (Arc::new(Listener { pump, events: Vec::new() }), work)
        };
        let (listener, work) = begun("flow/one");
        observers.lock().leave([&listener]);
        drop(listener);
        assert_eq!(delivered("flow/one"), Some(0));
        work.await;
        assert_eq!(delivered("flow/one"), Some(3), "it took what waited for it");
        observers.lock().leave([]);
        assert_eq!((delivered("flow/one"), observers.lock().leaving.len()), (Some(3), 0));

        let (same, work) = begun("flow/one");
        observers.lock().leave([&same]);
        drop(same);
        work.await;
        assert_eq!(delivered("flow/one"), Some(6), "the next one of this name goes on");

        let (late, work) = begun("late/one");
        observers.lock().leave([&late]);
        drop(late);
        work.await;
        let names = (0..MOST_SERIES).map(|number| (number.to_string(), SinkCounts::default()));
        observers.lock().ended.extend(names);
        observers.lock().leave([]);
        assert_eq!((delivered("late/one"), delivered(OTHER)), (None, Some(3)), "names have a bound");
    }

    #[test]
    fn patterns_of_events() {
        for (pattern, name, fits) in [
            ("*", "node_finished", true),
            ("node_*", "node_finished", true),
            ("*_finished", "child_finished", true),
            ("n*d", "node_finished", true),
            ("node_*", "routed", false),
            ("routed", "routed", true),
            ("route", "routed", false),
            ("*ed*", "routed", true),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
