//! The list of models.

use crate::{Context, schema};
use axum::{Json, extract::State};
use std::sync::Arc;

/// The script that answers where no model is configured.
const DEMO: &str = "scripted/demo";

/// The models, whether each can be asked now, and whether any is configured.
#[utoipa::path(get, path = "/api/v1/models", tag = "models",
    responses((status = 200, description = "All of them.", body = schema::Models)))]
pub(crate) async fn list_models(State(context): State<Arc<Context>>) -> Json<schema::Models> {
    let default = context.models.iter().find(|model| model.default);
    let is_demo = default.is_none_or(|model| model.id == DEMO);
    let is_script = default.is_some_and(|model| model.provider == "scripted" && model.available) && !is_demo;
    let configured = is_script || context.models.iter().any(|model| model.available && model.provider != "scripted");
    // A model that is chosen and cannot be asked has a note of its own, and the demo does not answer in its place.
    let note = (!configured && is_demo).then_some(
        "No model is configured: an offline demo script answers. Set OPENAI_API_KEY (and OPENAI_BASE_URL for a compatible \
         server), ANTHROPIC_API_KEY or GEMINI_API_KEY, and start the server again.",
    );
    let models = context.models.iter().cloned().map(|model| schema::Model {
        id: model.id,
        provider: model.provider,
        available: model.available,
        note: model.note,
        default: model.default,
        context_tokens: model.context_tokens,
    });
    Json(schema::Models { models: models.collect(), configured, note })
}
