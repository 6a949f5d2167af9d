//! The model in front of all others: a call of a flow's agent goes to the provider that the flow configures.

use crate::Flows;
use async_trait::async_trait;
use domain::{Code, Error, Usage, WorkspaceId};
use flow::Flow;
use futures::{StreamExt, stream};
use ports::{Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use std::sync::Arc;

/// Gives requests of agents to the providers of their flows, and every other request to the installation's own model.
///
/// The request names its flow ([`ModelRequest::flow`]), and only the engine makes such requests: a person who names
/// a model in a chat reaches no provider, and no key, of anybody's flow.
pub struct FlowModels {
    own: Arc<dyn Model>,
    flows: Flows,
}

impl FlowModels {
    /// In front of `own`. `flows` has the providers ([`Flows::with_providers`]).
    pub fn new(own: Arc<dyn Model>, flows: Flows) -> Self {
        Self { own, flows }
    }

    async fn ask(
        &self,
        workspace: WorkspaceId,
        flow: &Flow,
        asked: &str,
        request: ModelRequest,
    ) -> Result<ModelStream, ModelError> {
        let providers = self.flows.providers();
        let (model, name) = providers.open(workspace, flow, asked).await.map_err(as_model_error)?;
        let request = ModelRequest { model: Some(name.to_owned()), ..request };
        let mut answer = model.stream(request.clone()).await;
        let first = match &mut answer {
            Ok(stream) => stream.next().await,
            Err(error) => Some(Err(error.clone())),
        };
        // A key that was replaced a moment ago is refused until it is looked up again.
        if matches!(first, Some(Err(ModelError::Unauthorized(_))))
            && let Ok(Some((renewed, name))) = providers.renewed(workspace, flow, asked, &model).await
        {
            return renewed.stream(ModelRequest { model: Some(name.to_owned()), ..request }).await;
        }
        Ok(stream::iter(first).chain(answer?).boxed())
    }
}

#[async_trait]
impl Model for FlowModels {
    async fn stream(&self, mut request: ModelRequest) -> Result<ModelStream, ModelError> {
        let Some((workspace, reference)) = request.flow.take() else { return self.own.stream(request).await };
        let flow = self.flows.by_hash(workspace, &reference).await.map_err(as_model_error)?;
        match request.model.take() {
            Some(asked) if flow.declares_provider_of(&asked) => self.ask(workspace, &flow, &asked, request).await,
            asked => self.own.stream(ModelRequest { model: asked, ..request }).await,
        }
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        self.own.catalog()
    }

    // The providers of flows have the prices of the installation, too.
    fn cost(&self, model: Option<&str>, usage: &Usage) -> f64 {
        self.own.cost(model, usage)
    }

    fn default_model(&self) -> Option<String> {
        self.own.default_model()
    }
}

/// An error of ours as one of a model.
fn as_model_error(error: Error) -> ModelError {
    match error.code {
        Code::UpstreamUnavailable | Code::Internal => ModelError::Unavailable(error.message),
        Code::UpstreamRefused => ModelError::Unauthorized(error.message),
        _ => ModelError::Rejected(error.message),
    }
}
