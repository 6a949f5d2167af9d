//! Opening the models of a flow's own providers: adapter, address and key come together here, right before they are needed.

use super::BoundProviders;
use crate::secret::{Address, FlowSecrets, Recipient};
use domain::{Code, Error, NodeId, Sha256, WorkspaceId};
use flow::{
    Flow,
    adapters::{Adapters, adapter_name},
    flow::Op,
    manifest::ProviderManifest,
};
use parking_lot::Mutex;
use ports::{Endpoint, Model, ModelAdapters, ModelError, Secrets};
use std::{collections::HashMap, fmt, sync::Arc, time::Duration};
use tokio::time::Instant;

/// How long a key is used without looking it up again: one that was replaced is picked up after this, without a restart.
const FRESH: Duration = Duration::from_secs(30);
/// How many providers are kept open; any can be opened again.
const KEPT: usize = 256;

/// The providers that flows configure themselves. One a process.
#[derive(Default)]
pub struct FlowProviders {
    adapters: Adapters,
    /// None on a host that reaches no provider of a flow.
    host: Option<(Arc<dyn Secrets>, Arc<dyn ModelAdapters>)>,
    open: Mutex<HashMap<ConnectionKey, OpenProvider>>,
}

/// A provider of a flow, in a workspace: another one that has the same flow may have no right to its key.
type ConnectionKey = (WorkspaceId, Sha256, String);

#[derive(Clone)]
struct OpenProvider {
    looked_up: Instant,
    bound: Arc<BoundProviders>,
    model: Arc<dyn Model>,
}

impl fmt::Debug for FlowProviders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowProviders").field("host", &self.host.is_some()).finish_non_exhaustive()
    }
}

impl FlowProviders {
    /// With the adapters that BuildScale comes with; keys are looked up in `secrets`, and models opened by `models`.
    pub fn new(secrets: Arc<dyn Secrets>, models: Arc<dyn ModelAdapters>) -> Self {
        Self { adapters: Adapters::builtin(), host: Some((secrets, models)), open: Mutex::default() }
    }

    /// The model that serves `provider/model` as the flow configures its provider, and its name there. Nothing is sent yet, so
    /// a missing key is known before a call is made.
    ///
    /// # Errors
    /// `UNPROCESSABLE` for a provider that cannot be used: no such adapter, a key that is not there, an address that may not be
    /// reached. `FORBIDDEN` for a model that the provider does not list and a key that the host does not give to flows.
    /// `UPSTREAM_UNAVAILABLE` when the host's secrets do not answer.
    pub async fn open<'a>(
        &self,
        workspace: WorkspaceId,
        flow: &Flow,
        model: &'a str,
    ) -> Result<(Arc<dyn Model>, &'a str), Error> {
        self.opened(workspace, flow, model, FRESH).await
    }

    /// Opens the provider of every agent that a task may come to from `start`, so that a key that is missing is found before any
    /// model is asked and any tool is called (spec 002 §10.11).
    ///
    /// # Errors
    /// As [`FlowProviders::open`], of the first that cannot be used.
    pub async fn bind(&self, workspace: WorkspaceId, flow: &Flow, start: &NodeId) -> Result<(), Error> {
        let reached = flow.graph.nodes().iter().filter(|node| flow.graph.reaches(start, &node.id));
        for node in reached.filter_map(|node| flow.nodes.get(&node.id)) {
            let Op::Agent { agent, .. } = &node.op else { continue };
            let model = flow.agents.get(agent).and_then(|agent| agent.model.as_deref());
            if let Some(model) = model.filter(|model| flow.declares_provider_of(model)) {
                self.open(workspace, flow, model).await?;
            }
        }
        Ok(())
    }

    /// The same with a key that is looked up now; none when it is the one that was used already.
    pub(crate) async fn renewed<'a>(
        &self,
        workspace: WorkspaceId,
        flow: &Flow,
        model: &'a str,
        used: &Arc<dyn Model>,
    ) -> Result<Option<(Arc<dyn Model>, &'a str)>, Error> {
        let (renewed, name) = self.opened(workspace, flow, model, Duration::ZERO).await?;
        Ok((!Arc::ptr_eq(&renewed, used)).then_some((renewed, name)))
    }

    async fn opened<'a>(
        &self,
        workspace: WorkspaceId,
        flow: &Flow,
        model: &'a str,
        fresh: Duration,
    ) -> Result<(Arc<dyn Model>, &'a str), Error> {
        let id = model.split_once('/').map_or(model, |(id, _)| id);
        let Some((secrets, models)) = &self.host else {
            return Err(Error::new(
                Code::Unprocessable,
                format!("the provider {id} cannot be used: this host has no providers for flows"),
            )
            .hint("leave it out of providers.yaml to use the installation's own"));
        };
        let Some(manifest) = flow.settings.providers.iter().find(|provider| provider.id == id) else {
            return Err(Error::new(Code::NotFound, format!("the flow declares no provider {id}")));
        };
        let place = (workspace, flow.reference.hash, id.to_owned());
        let known = self.open.lock().get(&place).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.looked_up.elapsed() < fresh) {
            return Ok((known.model.clone(), named(&known.bound, model)?));
        }
        let is_its = |credential: &&flow::manifest::Credential| manifest.credentials.as_ref() == Some(&credential.id);
        let credentials: Vec<_> = flow.settings.credentials.iter().filter(is_its).cloned().collect();
        let vault =
            FlowSecrets::open(&credentials, recipient(workspace, manifest), &**secrets).await.map_err(|error| {
                let message = format!("the provider {id} cannot be used: {}", error.message);
                Error { message, ..error }
            })?;
        let bound = BoundProviders::of(&self.adapters, std::slice::from_ref(manifest), &credentials, &vault)?;
        // The same key again is the same connection.
        let same = known.filter(|known| *known.bound == bound).map(|known| known.model);
        let opened = match same {
            Some(model) => model,
            None => models.open(&endpoint(&bound, id)).map_err(|error| refused(id, error))?,
        };
        let bound = Arc::new(bound);
        let name = named(&bound, model)?;
        let mut open = self.open.lock();
        if open.len() >= KEPT {
            open.clear();
        }
        open.insert(place, OpenProvider { looked_up: Instant::now(), bound, model: opened.clone() });
        Ok((opened, name))
    }
}

/// The recipient of a provider's key: the adapter's own address, unless the manifest names another.
fn recipient(workspace: WorkspaceId, provider: &ProviderManifest) -> Recipient<'_> {
    let address = match &provider.base_url {
        None => Address::Provider(adapter_name(provider)),
        Some(url) => Address::Url(url),
    };
    Recipient { workspace, address }
}

fn endpoint(bound: &BoundProviders, id: &str) -> Endpoint {
    let provider = bound.providers.get(id);
    Endpoint {
        adapter: provider.map(|provider| provider.adapter.clone()).unwrap_or_default(),
        base_url: provider.and_then(|provider| provider.base_url.clone()),
        key: provider.and_then(|provider| provider.secret.clone()),
        config: provider.map(|provider| provider.config.clone()).unwrap_or_default(),
    }
}

/// The provider's name of a model.
fn named<'a>(bound: &BoundProviders, model: &'a str) -> Result<&'a str, Error> {
    Ok(bound.route(model)?.map_or(model, |(_, name)| name))
}

fn refused(id: &str, error: ModelError) -> Error {
    let why = match error {
        ModelError::Rejected(why) => why,
        error => error.to_string(),
    };
    Error::new(Code::Unprocessable, format!("the provider {id} cannot be used: {why}"))
}
