//! Who follows tasks in the hub: the counters, and the observers that flows and the environment name.

use crate::{Failure, config::Config};
use embedded::LocalSecrets;
use flow::{
    FlowCache,
    observe::{Followers, Observers, Patience, TaskMetrics},
};
use ports::{Clock, Redactor, Secret};
use sinks::PluginSinks;
use std::{path::Path, sync::Arc};

/// What the names of variables end with that hold secrets.
const SECRET: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];

/// The counters of tasks, and the observers.
#[derive(Clone)]
pub struct Observing {
    /// What tasks use.
    pub metrics: Arc<TaskMetrics>,
    /// Who is told what they do.
    pub observers: Arc<Observers>,
}

impl Observing {
    /// Files of observers are kept in `data`, and so are secrets that flows refer to by name.
    pub(crate) fn new(
        data: &Path,
        config: &Config,
        environment: &[(String, String)],
        flows: &FlowCache,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Failure> {
        let variables = environment.to_vec();
        let lookup =
            move |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let sinks = PluginSinks {
            directory: data.join("observers"),
            allow_private: config.observe.allow_private,
            secrets: Arc::new(LocalSecrets::new(Some(data.join("secrets"))).with_variables(lookup)),
            clock,
        };
        let redactor = redactor(config, environment);
        let clean = Arc::new(move |_: &domain::TaskConfig, data: &mut serde_json::Value| redactor.value(data));
        let mut observers = Observers::new(flows.clone(), Arc::new(sinks), clean, Patience::default());
        let collector = sinks::otlp_of_environment(environment).map_err(|error| Failure::Config(error.to_string()))?;
        if let Some(collector) = collector {
            observers = observers.with("otlp", collector);
        }
        Ok(Self { metrics: Arc::new(TaskMetrics::new(flows.clone())), observers: Arc::new(observers) })
    }

    /// Both, for the runtime of tasks.
    pub(crate) fn followers(&self) -> Followers {
        Followers(vec![self.metrics.clone(), self.observers.clone()])
    }

    /// Both in Prometheus' text format.
    pub(crate) fn counters(&self) -> Vec<api::Counters> {
        let (metrics, observers) = (self.metrics.clone(), self.observers.clone());
        vec![Box::new(move |out| metrics.render(out)), Box::new(move |out| observers.render(out))]
    }
}

/// Takes out what the hub itself knows to be secret.
fn redactor(config: &Config, environment: &[(String, String)]) -> Redactor {
    let is_secret = |name: &str| SECRET.iter().any(|end| name.to_ascii_uppercase().ends_with(end));
    let variables = environment.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| Secret::new(value));
    let token = config.server.auth_token.as_ref().map(|token| Secret::new(token.expose()));
    let secrets: Vec<Secret> = variables.chain(token).collect();
    Redactor::new(&secrets)
}
