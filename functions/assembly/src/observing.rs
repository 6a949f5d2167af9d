//! The observers of the entries of tasks: the counters, and the observers that flows, the configuration and the environment name.

use crate::{Config, SetupError};
use actor::{EntryObserver, EntryObservers};
use engine::{FlowCache, TaskMachine};
use ports::{Clock, Secrets};
use serde_json::Value;
use sinks::{Otlp, PluginSinks};
use std::{path::Path, sync::Arc};
use telemetry::{DeliveryLimits, Observers, TaskMetrics};

/// The counters of tasks, and the observers.
#[derive(Clone)]
pub struct Observing {
    /// The counters of tasks.
    pub metrics: Arc<TaskMetrics>,
    /// The observers that are told of their events.
    pub observers: Arc<Observers>,
    /// The collector of traces, where one is named.
    pub collector: Option<Arc<Otlp>>,
}

impl Observing {
    /// Files of observers are kept in `folder`, if there is one; `secrets` are those that flows may refer to, and `known` are redacted everywhere.
    ///
    /// # Errors
    /// [`SetupError::Config`] when the endpoint of the collector is no address of HTTP. Observers of flows are opened later.
    pub fn new(
        folder: Option<&Path>,
        config: &Config,
        environment: &[(String, String)],
        flows: &FlowCache,
        secrets: Arc<dyn Secrets>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SetupError> {
        let directory = folder.map(|folder| folder.join("observers"));
        let allow_private = config.observe.allow_private;
        let sinks = PluginSinks { directory, allow_private, secrets, clock };
        let known = config.secrets.clone();
        let clean = Arc::new(move |_: &domain::TaskConfig, data: &mut Value| known.redactor().value(data));
        let mut observers = Observers::new(flows.clone(), Arc::new(sinks), clean, DeliveryLimits::default());
        let collector = config.collector(environment)?;
        if let Some(collector) = &collector {
            observers = observers.with("otlp", collector.clone());
        }
        let metrics = Arc::new(TaskMetrics::new(flows.clone()));
        Ok(Self { metrics, observers: Arc::new(observers), collector })
    }

    /// Both, for the runtime of tasks.
    pub fn of_entries(&self) -> Arc<dyn EntryObserver<TaskMachine>> {
        Arc::new(EntryObservers::<TaskMachine>(vec![self.metrics.clone(), self.observers.clone()]))
    }

    /// Both in Prometheus' text format.
    pub fn counters(&self) -> Vec<api::Counters> {
        let (metrics, observers) = (self.metrics.clone(), self.observers.clone());
        vec![Box::new(move |out| metrics.render(out)), Box::new(move |out| observers.render(out))]
    }
}
