//! The list of models.

use crate::{Context, schema};
use axum::{Json, extract::State};
use std::sync::Arc;

/// The models, whether each can be asked now, and whether any real one is configured.
#[utoipa::path(get, path = "/api/v1/models", tag = "models",
    responses((status = 200, description = "All of them.", body = schema::Models)))]
pub(crate) async fn list_models(State(context): State<Arc<Context>>) -> Json<schema::Models> {
    let configured = context.models.iter().any(|model| model.available && model.provider != "scripted");
    let note = (!configured).then_some(
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
