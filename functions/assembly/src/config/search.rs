//! `[search]`: the model that finds by meaning.

use super::Config;
use crate::SetupError;
use models::RedactingEmbedder;
use ports::Embedder;
use serde::Deserialize;
use std::sync::Arc;

/// `[search]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// The model that embeds texts, such as `openai/text-embedding-3-small`, `gemini/gemini-embedding-001`, `ollama/nomic-embed-text` or
    /// `bedrock/amazon.titan-embed-text-v2:0`, with the key and the address that `[ai]` has for its provider. Searches by meaning, and contexts of
    /// flows with the policy `semantic`, send it texts of the workspace; without one, words alone are compared.
    pub embedding_model: Option<String>,
    /// How many numbers its vectors have, where the model lets one choose; its usual number when none. Fewer take less room.
    pub embedding_dimensions: Option<u32>,
}

impl Config {
    /// The embedder that `[search]` names, which gets no secret that is known.
    ///
    /// # Errors
    /// [`SetupError::Config`] as for [`super::Ai::models`]; [`SetupError::Models`] for a model that does not embed.
    pub fn embedder(&self, environment: &[(String, String)]) -> Result<Option<Arc<dyn Embedder>>, SetupError> {
        let Search { embedding_model, embedding_dimensions } = &self.search;
        let Some(model) = embedding_model.as_deref().filter(|model| !model.trim().is_empty()) else { return Ok(None) };
        let embedder = self.ai.models(environment)?.embedder(model.trim(), *embedding_dimensions)?;
        Ok(Some(Arc::new(RedactingEmbedder::new(embedder, self.secrets.clone()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_embeds_is_taken_and_another_is_refused_before_anything_runs() {
        let named = |model: &str| Config {
            search: Search { embedding_model: Some(model.into()), embedding_dimensions: None },
            ..Config::default()
        };
        assert!(matches!(named(" ").embedder(&[]), Ok(None)));
        let space =
            |config: Config| config.embedder(&[]).map(|found| found.map(|embedder| embedder.space().to_owned()));
        let found = space(named("ollama/nomic-embed-text"));
        assert!(matches!(found.as_ref().map(Option::as_deref), Ok(Some("ollama/nomic-embed-text"))), "{found:?}");
        assert!(matches!(space(named("anthropic/claude-haiku-4-5")), Err(SetupError::Models(_))));
    }
}
