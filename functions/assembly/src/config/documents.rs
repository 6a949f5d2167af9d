//! `[documents]`: the model that describes what is no text.

use super::Config;
use crate::SetupError;
use ports::Describer;
use serde::Deserialize;
use std::sync::Arc;

/// `[documents]`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Documents {
    /// The model that describes pictures, and sound and film where it takes them, such as `gemini/gemini-2.5-flash`, `openai/gpt-4o-mini`,
    /// `anthropic/claude-haiku-4-5` or `ollama/llava`, with the key and the address that `[ai]` has for its provider. It is sent each such document once per
    /// content; without one, documents have their measures alone.
    pub description_model: Option<String>,
}

impl Config {
    /// The describer that `[documents]` names.
    ///
    /// # Errors
    /// [`SetupError::Config`] as for [`super::Ai::models`]; [`SetupError::Models`] for a name that is no model's.
    pub fn describer(&self, environment: &[(String, String)]) -> Result<Option<Arc<dyn Describer>>, SetupError> {
        let model = self.documents.description_model.as_deref().map(str::trim).filter(|model| !model.is_empty());
        let Some(model) = model else { return Ok(None) };
        Ok(Some(self.ai.models(environment)?.describer(model)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_taken_by_its_name_and_none_is_needed() {
        let named = |model: &str| Config {
            documents: Documents { description_model: Some(model.into()) },
            ..Config::default()
        };
        assert!(matches!(named(" ").describer(&[]), Ok(None)));
        let found = named("ollama/llava").describer(&[]).map(|found| found.map(|model| model.model().to_owned()));
        assert!(matches!(found.as_ref().map(Option::as_deref), Ok(Some("ollama/llava"))), "{found:?}");
        assert!(matches!(named("demo").describer(&[]), Err(SetupError::Models(_))));
    }
}
