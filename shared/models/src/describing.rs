//! Descriptions of pictures, sound and film by models that take them (`ports::Describer`).

use crate::{
    catalog::{Catalog, Route},
    config::{Config, ConfigError},
    provider::{Http, Provider, describe::Form},
    retry::{HELD, RetryPolicy},
    router,
    secret::Redactor,
};
use async_trait::async_trait;
use bytes::Bytes;
use ports::{Describer, Description, ModelError, UnsupportedContent};
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// How long one request may take.
const LASTS: Duration = Duration::from_secs(60);

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

    fn takes(&self, media_type: &str, length: usize) -> Result<(), UnsupportedContent> {
        match self.form.takes(&self.name, media_type) {
            false => Err(UnsupportedContent::Type),
            true if length > self.form.longest() => Err(UnsupportedContent::Longer(self.form.longest())),
            true => Ok(()),
        }
    }

    /// Asks again after failures that pass, as long as the wait is short; a longer one is the caller's.
    async fn describe(&self, media_type: &str, content: Bytes) -> Result<Description, ModelError> {
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
