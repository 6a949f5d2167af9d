//! Providers that flows configure themselves: opened when they are needed, with the key that there is then (spec 002 §10.6,
//! §10.11).

use crate::{flows::SPLIT, rig::Rig};
use async_trait::async_trait;
use domain::{Code, Sha256, task::FlowRef};
use engine::{FlowModels, Flows, provider::FlowProviders};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{
    Endpoint, Model, ModelAdapters, ModelError, ModelInfo, ModelRequest, ModelStream, Recipient, Secret, SecretRef,
    Secrets,
};
use std::{sync::Arc, time::Duration};

const PROVIDERS: &str = "
providers:
  - {id: house, adapter: openai, credentials: key, models: [small, large], config: {reasoning: low}}
  - {id: lost, adapter: openai, credentials: nowhere}
";
const CREDENTIALS: &str = "
provider_credentials:
  - {id: key, env: HOUSE_KEY}
  - {id: nowhere, env: NO_SUCH_KEY}
";

/// A host with one key that changes, and one provider that takes one key and notes its calls.
#[derive(Clone, Default)]
struct Host {
    key: Arc<Mutex<String>>,
    takes: Arc<Mutex<String>>,
    asked: Arc<Mutex<Vec<(String, String)>>>,
    opened: Arc<Mutex<Vec<Endpoint>>>,
}

#[async_trait]
impl Secrets for Host {
    async fn get(&self, reference: &SecretRef, _: Recipient<'_>) -> ports::Result<Option<Secret>> {
        let there = *reference == SecretRef::Env("HOUSE_KEY".into());
        Ok(there.then(|| Secret::new(self.key.lock().clone())))
    }
}

impl ModelAdapters for Host {
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Model>, ModelError> {
        self.opened.lock().push(endpoint.clone());
        let key = endpoint.key.as_ref().map(|key| key.expose().to_owned()).unwrap_or_default();
        Ok(Arc::new(Opened { host: self.clone(), key }))
    }
}

struct Opened {
    host: Host,
    key: String,
}

#[async_trait]
impl Model for Opened {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        assert!(request.flow.is_none(), "a provider is told of no flow");
        self.host.asked.lock().push((request.model.unwrap_or_default(), self.key.clone()));
        let refused = *self.host.takes.lock() != self.key;
        let answer = refused.then(|| Err(ModelError::Unauthorized("401".into())));
        Ok(stream::iter(answer).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// The installation's own, which must not be asked.
struct Own;

#[async_trait]
impl Model for Own {
    async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
        Err(ModelError::Rejected("the installation's own model".into()))
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

async fn ready(host: &Host) -> (Rig, Flows, FlowRef) {
    let rig = Rig::new(0).await;
    let files = [("workflow.yaml", SPLIT), ("providers.yaml", PROVIDERS), ("provider_credentials.yaml", CREDENTIALS)];
    rig.flow("own", &files).await;
    let providers = FlowProviders::new(Arc::new(host.clone()), Arc::new(host.clone()));
    let flows = rig.tasks.flows().clone().with_providers(Arc::new(providers));
    let flow = flows.load(rig.workspace, "own").await.unwrap();
    flows.keep(rig.workspace, &flow).await.unwrap();
    (rig, flows, flow.reference.clone())
}

async fn ask(model: &dyn Model, rig: &Rig, flow: Option<FlowRef>, name: &str) -> Option<ModelError> {
    let flow = flow.map(|flow| (rig.workspace, flow));
    let request = ModelRequest { model: Some(name.into()), flow, ..ModelRequest::default() };
    match model.stream(request).await {
        Err(error) => Some(error),
        Ok(mut stream) => stream.next().await.and_then(Result::err),
    }
}

#[tokio::test(start_paused = true)]
async fn s10_11_a_key_that_is_replaced_is_picked_up_soon_and_at_once_when_the_old_one_is_refused() {
    let host = Host::default();
    let set = |key: &str, takes: &str| {
        *host.key.lock() = key.into();
        *host.takes.lock() = takes.into();
    };
    let (rig, flows, flow) = ready(&host).await;
    let models = FlowModels::new(Arc::new(Own), flows);
    set("one", "one");
    for _ in 0..2 {
        assert_eq!(ask(&models, &rig, Some(flow.clone()), "house/small").await, None);
    }
    // The old key is still taken: it is used until it is looked up again.
    set("two", "one");
    assert_eq!(ask(&models, &rig, Some(flow.clone()), "house/large").await, None);
    set("two", "two");
    tokio::time::advance(Duration::from_secs(31)).await;
    assert_eq!(ask(&models, &rig, Some(flow.clone()), "house/small").await, None);
    // It is refused: it is looked up at once, and the call is made again with the new one.
    set("three", "three");
    assert_eq!(ask(&models, &rig, Some(flow.clone()), "house/small").await, None);
    // The same key again is no reason to ask again.
    set("three", "another");
    let refused = ask(&models, &rig, Some(flow), "house/small").await;
    assert_eq!(refused, Some(ModelError::Unauthorized("401".into())));
    let asked = host.asked.lock().clone();
    let expected = [
        ("small", "one"),
        ("small", "one"),
        ("large", "one"),
        ("small", "two"),
        ("small", "two"),
        ("small", "three"),
        ("small", "three"),
    ];
    assert_eq!(asked, expected.map(|(model, key)| (model.to_owned(), key.to_owned())));
    let opened = host.opened.lock().clone();
    assert_eq!(opened.len(), 3, "one per key");
    assert_eq!((opened[0].adapter.as_str(), &opened[0].config["reasoning"]), ("openai", &"low".into()));
}

#[tokio::test(start_paused = true)]
async fn s10_6_only_the_flow_names_its_providers() {
    let host = Host::default();
    *host.key.lock() = "one".into();
    *host.takes.lock() = "one".into();
    let (rig, flows, flow) = ready(&host).await;
    let loaded = flows.by_hash(rig.workspace, &flow).await.unwrap();
    let open = async |model: &str| {
        flows.providers().open(rig.workspace, &loaded, model).await.err().map(|error| (error.code, error.message))
    };
    assert_eq!(open("house/large").await, None);
    assert_eq!(open("house/huge").await.unwrap().0, Code::Forbidden, "it is not listed");
    let (code, message) = open("lost/any").await.unwrap();
    assert_eq!(code, Code::Unprocessable);
    assert!(message.contains("lost") && message.contains("environment variable NO_SUCH_KEY"), "{message}");

    let models = FlowModels::new(Arc::new(Own), flows);
    let own = Some(ModelError::Rejected("the installation's own model".into()));
    assert_eq!(ask(&models, &rig, None, "house/small").await, own, "a person names a model as a flow does");
    assert_eq!(
        ask(&models, &rig, Some(flow.clone()), "openai/gpt").await,
        own,
        "a provider that the flow does not declare"
    );
    let gone = FlowRef { name: "own".into(), hash: Sha256::of(b"another") };
    assert!(matches!(ask(&models, &rig, Some(gone), "house/small").await, Some(ModelError::Rejected(_))));
    assert!(matches!(ask(&models, &rig, Some(flow), "lost/any").await, Some(ModelError::Rejected(_))));
    assert!(host.asked.lock().is_empty(), "no provider was asked without a key");
}
