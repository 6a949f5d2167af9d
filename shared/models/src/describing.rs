//! Descriptions of pictures, sound and film by models that take them (`ports::Describer`).

use crate::{
    catalog::{Catalog, Route},
    config::{Config, ConfigError},
    kind::Kind,
    provider::{Http, Provider},
    retry::{HELD, RetryPolicy},
    router,
    secret::Redactor,
};
use async_trait::async_trait;
use bytes::Bytes;
use ports::{Described, Describer, ModelError, NotTaken};
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// How long one request may take.
const LASTS: Duration = Duration::from_secs(60);

/// How a model is asked about a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// OpenAI's chat completions, which OpenRouter, Ollama and most servers speak, too.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
    /// Bedrock's Converse.
    Bedrock,
}

impl Form {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::OpenAi | Kind::OpenAiResponses | Kind::OpenRouter | Kind::Ollama => Self::OpenAi,
            Kind::Anthropic => Self::Anthropic,
            Kind::Gemini => Self::Gemini,
            Kind::Bedrock => Self::Bedrock,
        }
    }

    /// The longest content in bytes: what the providers take, less what its form in JSON adds.
    fn longest(self) -> usize {
        match self {
            Self::Anthropic | Self::Bedrock => 3_750_000,
            Self::OpenAi | Self::Gemini => 14_000_000,
        }
    }

    /// Whether the provider documents this type for its models. One that a certain model does not take is refused by it.
    fn takes(self, model: &str, media_type: &str) -> bool {
        const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
        const FILMS: [&str; 4] = ["video/mp4", "video/quicktime", "video/webm", "video/mpeg"];
        let is_audio = media_type.starts_with("audio/");
        PICTURES.contains(&media_type)
            || match self {
                Self::Gemini => is_audio || FILMS.contains(&media_type),
                Self::Bedrock => model.contains("nova") && FILMS.contains(&media_type),
                Self::OpenAi => model.contains("audio") && ["audio/wav", "audio/mpeg"].contains(&media_type),
                Self::Anthropic => false,
            }
    }
}

impl Config {
    /// The describer of a model, named as models are, such as `gemini/gemini-2.5-flash`. Makes no connection.
    ///
    /// # Errors
    /// [`ConfigError::Describing`] for a name that is no model's; those of [`Router::new`](crate::Router::new).
    pub fn describer(self, model: &str) -> Result<Arc<dyn Describer>, ConfigError> {
        let wrong = |reason: String| ConfigError::Describing { model: model.chars().take(100).collect(), reason };
        let config = Arc::new(self);
        let catalog = Catalog::new(config.clone());
        let (route, name) = catalog.route(model).map_err(|error| wrong(error.to_string()))?;
        let Route::Provider(kind) = route else { return Err(wrong("a script sees nothing".into())) };
        let redactor = Redactor::new(router::secrets(&config));
        let provider = Provider::new(kind, config.clone(), Arc::new(Http::default()), redactor)?;
        let (model, retry) = (format!("{}/{name}", kind.name()), config.retry.clone());
        Ok(Arc::new(Model { provider, form: Form::of(kind), name: name.to_owned(), model, retry }))
    }
}

/// A model at a provider.
struct Model {
    provider: Provider,
    form: Form,
    /// Its name at the provider.
    name: String,
    /// Its name with that of the provider.
    model: String,
    retry: RetryPolicy,
}

#[async_trait]
impl Describer for Model {
    fn model(&self) -> &str {
        &self.model
    }

    fn takes(&self, media_type: &str, length: usize) -> Result<(), NotTaken> {
        match self.form.takes(&self.name, media_type) {
            false => Err(NotTaken::Type),
            true if length > self.form.longest() => Err(NotTaken::Longer(self.form.longest())),
            true => Ok(()),
        }
    }

    /// Asks again after failures that pass, as long as the wait is short; a longer one is the caller's.
    async fn describe(&self, media_type: &str, content: Bytes) -> Result<Described, ModelError> {
        if self.takes(media_type, content.len()).is_err() {
            return Err(ModelError::Rejected("it takes no such content".into()));
        }
        let mut attempt = 1;
        loop {
            let asked = self.provider.describe(self.form, &self.name, media_type, &content);
            let failure = match timeout(LASTS, asked).await {
                Ok(Ok(described)) => return Ok(described),
                Ok(Err(failure)) => failure,
                Err(_) => ModelError::Unavailable("its description did not come in time".into()),
            };
            match self.retry.again(&failure, attempt, &self.model).filter(|wait| *wait <= HELD) {
                Some(wait) => sleep(wait).await,
                None => return Err(failure),
            }
            attempt += 1;
        }
    }
}
