//! Embeddings: the models that make vectors of texts (`ports::Embedder`), at the providers that have them.

use crate::{
    catalog::{Catalog, Route},
    config::{Config, ConfigError},
    kind::ProviderKind,
    provider::{
        Http, Provider,
        embed::{Form, VectorRequest},
    },
    retry::{HELD, RetryPolicy},
    router,
    secret::Redactor,
};
use async_trait::async_trait;
use domain::Usage;
use ports::{EmbedAs, Embedded, Embedder, KnownSecrets, ModelError};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// How long one request may take.
const LASTS: Duration = Duration::from_secs(60);

impl Config {
    /// The embedder of a model, named as models are, such as `openai/text-embedding-3-small`; with vectors of this length, where the model lets one
    /// choose. Makes no connection.
    ///
    /// # Errors
    /// [`ConfigError::Embedding`] for a model that does not embed; those of [`Router::new`](crate::Router::new).
    pub fn embedder(self, model: &str, dimensions: Option<u32>) -> Result<Arc<dyn Embedder>, ConfigError> {
        let wrong = |reason: String| ConfigError::Embedding { model: model.chars().take(100).collect(), reason };
        let config = Arc::new(self);
        let catalog = Catalog::new(config.clone());
        let (route, name) = catalog.route(model).map_err(|error| wrong(error.to_string()))?;
        let Route::Provider(kind) = route else { return Err(wrong("a script makes no vectors".into())) };
        let form = Form::of(kind, name).ok_or_else(|| match kind {
            ProviderKind::Bedrock => {
                wrong("of Bedrock, models of Titan (titan-embed) and Cohere (cohere.embed) do".into())
            }
            kind => wrong(format!("{} has no such models", kind.name())),
        })?;
        if dimensions.is_some_and(|dimensions| !(1..=16_384).contains(&dimensions)) {
            return Err(wrong("its vectors have 1 to 16384 numbers".into()));
        }
        let redactor = Redactor::new(router::secrets(&config));
        let provider = Provider::new(kind, config.clone(), Arc::new(Http::default()), redactor)?;
        let space = match dimensions {
            Some(dimensions) => format!("{}/{name}#{dimensions}", kind.name()),
            None => format!("{}/{name}", kind.name()),
        };
        let most = form.most_texts(kind);
        Ok(Arc::new(Model {
            provider,
            form,
            model: name.to_owned(),
            space,
            dimensions,
            most,
            retry: config.retry.clone(),
        }))
    }
}

/// A model at a provider.
struct Model {
    provider: Provider,
    form: Form,
    model: String,
    space: String,
    dimensions: Option<u32>,
    most: usize,
    retry: RetryPolicy,
}

#[async_trait]
impl Embedder for Model {
    fn space(&self) -> &str {
        &self.space
    }

    fn most_texts(&self) -> usize {
        self.most
    }

    /// Asks again after failures that pass, as long as the wait is short; a longer one is the caller's.
    async fn embed(&self, texts: &[String], purpose: EmbedAs) -> Result<Embedded, ModelError> {
        if texts.len() > self.most || texts.iter().any(|text| text.trim().is_empty()) {
            return Err(ModelError::Rejected("too many texts at once, or a blank one".into()));
        }
        if texts.is_empty() {
            return Ok(Embedded::default());
        }
        let asked = VectorRequest {
            form: self.form,
            model: &self.model,
            dimensions: self.dimensions,
            purpose,
            lasts: LASTS.min(self.retry.first()),
        };
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; texts.len()];
        let (mut usage, mut attempt) = (Usage::default(), 1);
        let failed = loop {
            // A text that has its vector is not paid for again.
            let missing: Vec<(&mut Option<Vec<f32>>, &String)> =
                vectors.iter_mut().zip(texts).filter(|(vector, _)| vector.is_none()).collect();
            let rest: Vec<String> = missing.iter().map(|(_, text)| (*text).clone()).collect();
            let answered = self.provider.embed(asked, &rest).await;
            usage += answered.usage;
            for ((place, _), vector) in missing.into_iter().zip(answered.vectors) {
                *place = vector;
            }
            let Some(failure) = answered.failed else { break None };
            match self.retry.again(&failure, attempt, &self.space).filter(|wait| *wait <= HELD) {
                Some(wait) => sleep(wait).await,
                None => break Some(failure),
            }
            attempt += 1;
        };
        let vectors: Vec<Vec<f32>> = vectors.into_iter().map_while(|vector| vector).collect();
        match failed {
            Some(failure) if usage.is_none() => Err(failure),
            failed => Ok(Embedded { vectors, usage, failed }),
        }
    }
}

/// An embedder that gets no secret of this host.
pub struct RedactingEmbedder {
    inner: Arc<dyn Embedder>,
    secrets: KnownSecrets,
}

impl RedactingEmbedder {
    /// `inner`, without these secrets.
    pub fn new(inner: Arc<dyn Embedder>, secrets: KnownSecrets) -> Self {
        Self { inner, secrets }
    }
}

#[async_trait]
impl Embedder for RedactingEmbedder {
    fn space(&self) -> &str {
        self.inner.space()
    }

    fn most_texts(&self) -> usize {
        self.inner.most_texts()
    }

    async fn embed(&self, texts: &[String], purpose: EmbedAs) -> Result<Embedded, ModelError> {
        let redactor = self.secrets.redactor();
        let clean: Vec<String> = texts.iter().map(|text| redactor.text(text).into_owned()).collect();
        let clean_error = |error| crate::redacting::clean_error(error, &redactor);
        let embedded = self.inner.embed(&clean, purpose).await.map_err(clean_error)?;
        Ok(Embedded { failed: embedded.failed.map(clean_error), ..embedded })
    }
}
