//! Models for cases that bring a script: their answers are the same in every run (spec 002 §10.3).
//!
//! A case with a script runs the flow with another cast: each agent's model is replaced by one that plays the script, named
//! by the script's hash. Nothing else of the flow differs: the same graph, tools, permissions, context profiles and schemas.

use async_trait::async_trait;
use domain::{Sha256, Timestamp, Usage};
use flow::Flow;
use parking_lot::Mutex;
use ports::{Expect, Key, Model, ModelError, ModelInfo, ModelRequest, ModelStream, Table, Write};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

/// The provider that names of scripts begin with. No manifest of a person can mean it: a hash comes after it.
pub const PROVIDER: &str = "evaluation";
/// How long a script is kept after it was last played.
const KEPT_FOR: Duration = Duration::from_secs(90 * 24 * 3600);
/// How many scripts are kept in memory; any can be read again.
const KEPT: usize = 64;

/// Makes a model of a script's YAML, or says for people why it cannot be played.
///
/// A function, because it has no state; it is given, because this crate does not know the crate of the models.
pub type ScriptLoader = fn(script: &str) -> Result<Arc<dyn Model>, String>;

/// A model that plays the scripts of evaluations, and gives every other request to the real one.
///
/// Scripts are found in the table, so that a task goes on with its own after a restart, and on any machine.
pub struct ScriptedOverride {
    real: Arc<dyn Model>,
    table: Arc<dyn Table>,
    load: ScriptLoader,
    ready: Mutex<HashMap<String, Arc<dyn Model>>>,
}

impl ScriptedOverride {
    /// For `real`.
    pub fn new(real: Arc<dyn Model>, table: Arc<dyn Table>, load: ScriptLoader) -> Self {
        Self { real, table, load, ready: Mutex::default() }
    }

    async fn script(&self, hash: &str) -> Result<Arc<dyn Model>, ModelError> {
        if let Some(model) = self.ready.lock().get(hash) {
            return Ok(model.clone());
        }
        let found = self.table.get(&key(hash)).await.map_err(|error| ModelError::Unavailable(error.to_string()))?;
        let Some(item) = found else { return Err(ModelError::Rejected("there is no such script".into())) };
        let model = (self.load)(&item.body).map_err(ModelError::Rejected)?;
        let mut ready = self.ready.lock();
        if ready.len() >= KEPT {
            ready.clear();
        }
        ready.insert(hash.to_owned(), model.clone());
        Ok(model)
    }
}

#[async_trait]
impl Model for ScriptedOverride {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let asked = request.model.as_deref().and_then(|model| model.split_once('/'));
        match asked {
            Some((PROVIDER, hash)) => {
                let script = self.script(hash).await?;
                script.stream(ModelRequest { model: None, ..request }).await
            }
            _ => self.real.stream(request).await,
        }
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        self.real.catalog()
    }

    fn cost(&self, model: Option<&str>, usage: &Usage) -> f64 {
        match model.and_then(|model| model.split_once('/')) {
            Some((PROVIDER, _)) => 0.0,
            _ => self.real.cost(model, usage),
        }
    }

    fn default_model(&self) -> Option<String> {
        self.real.default_model()
    }
}

/// The write that keeps a script, and the name of the model that plays it. It outlives every task of its evaluation; the next one
/// keeps it anew.
pub(super) fn keep(script: &Value, now: Timestamp) -> (Write, String) {
    let body = script.to_string();
    let hash = Sha256::of(body.as_bytes()).to_string();
    let name = format!("{PROVIDER}/{hash}");
    (Write::put(key(&hash), body, Expect::Any).expiring(now + KEPT_FOR), name)
}

fn key(hash: &str) -> Key {
    Key::new("scripts", hash)
}

/// The manifests of a flow, with another model for each of its agents.
pub(super) fn cast(flow: &Flow, model: &str) -> BTreeMap<String, String> {
    let mut files = (*flow.bundle).clone();
    let manifest = ["agents.yaml", "agents.yml", "agents.json"].into_iter().find(|path| files.contains_key(*path));
    if let Some(text) = manifest.and_then(|path| files.get_mut(path))
        && let Ok(mut agents) = serde_saphyr::from_str::<Value>(text)
    {
        let list = agents.get_mut("agents").and_then(Value::as_array_mut);
        for agent in list.into_iter().flatten().filter_map(Value::as_object_mut) {
            agent.insert("llm".into(), model.into());
        }
        // JSON is YAML.
        *text = agents.to_string();
    }
    files
}
