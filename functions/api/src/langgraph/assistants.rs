//! Assistants: the personas and the flows of the workspace.

use super::{part, selected, texts};
use crate::{
    Context,
    access::Read,
    converse::Speaker,
    error::{Answer, excerpt},
    extract::{Json, Open, Path, Traced},
    hub::Within,
    ids::Ids,
    schema,
};
use axum::extract::State;
use chat::DefinitionKind;
use domain::{Error, Timestamp};
use protocols::{
    fields::text,
    langgraph::{self as wire, AssistantKind},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::IntoParams;

/// The assistant of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfAssistant {
    /// The assistant: the name of a persona or a flow, or the id that is made of it.
    #[param(example = "assistant")]
    assistant_id: String,
}

impl Open for OfAssistant {}

/// An assistant.
pub(super) struct Assistant {
    pub kind: AssistantKind,
    pub name: String,
    title: String,
    description: String,
}

impl Assistant {
    fn to_json(&self, at: Timestamp) -> Value {
        wire::assistant(self.kind, &self.name, &self.title, &self.description, at)
    }
}

/// The assistants of a workspace: the personas, then the flows.
pub(super) async fn assistants(speaker: &Speaker<'_>) -> Result<Vec<Assistant>, Error> {
    let workspace = speaker.context.base.workspaces.open(speaker.workspace, speaker.files.clone()).await?;
    let personas = chat::definitions(&workspace, DefinitionKind::Agents).await?.into_iter().map(|persona| Assistant {
        kind: AssistantKind::Persona,
        name: persona.name,
        title: persona.title,
        description: persona.description,
    });
    let flows = speaker.context.tasks.flows().list(speaker.workspace).await?.into_iter().map(|flow| Assistant {
        kind: AssistantKind::Flow,
        title: flow.name.clone(),
        name: flow.name,
        description: flow.description.unwrap_or_default(),
    });
    Ok(personas.chain(flows).collect())
}

/// The assistant that a client means: of a persona and a flow of one name the persona.
pub(super) async fn meant(speaker: &Speaker<'_>, by: &str) -> Result<Assistant, Error> {
    let found = assistants(speaker).await?.into_iter().find(|one| one.kind.is_meant(&one.name, by));
    found.ok_or_else(|| {
        Error::not_found("assistant", excerpt(by))
            .detail("field", "assistant_id")
            .hint("POST /langgraph/assistants/search lists the personas and the flows")
    })
}

/// The personas and the flows.
#[utoipa::path(post, path = "/langgraph/assistants/search", tag = "langgraph",
    request_body(content = Value, description = "`graph_id`, `name`, `limit`, `offset`, `select`."),
    responses((status = 200, description = "A part of them.", body = Value)))]
pub(crate) async fn search_assistants(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    wire::plain(&body, &["graph_id", "name", "limit", "offset", "select"])?;
    let ((offset, limit), select) = (part(&body, 10, 1_000)?, texts(&body, "select")?);
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let created = context.base.workspaces.get(speaker.workspace).await?.created_at;
    let page = fitting(&speaker, &body).await?.into_iter().skip(offset).take(limit);
    Ok(axum::Json(page.map(|one| selected(one.to_json(created), select.as_ref())).collect()))
}

/// The number of personas and flows.
#[utoipa::path(post, path = "/langgraph/assistants/count", tag = "langgraph", operation_id = "count_assistants",
    request_body(content = Value, description = "`graph_id` and `name`."),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn count_assistants(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    ids: Ids,
    Json(body): Json<Map<String, Value>>,
) -> Answer<axum::Json<Value>> {
    wire::plain(&body, &["graph_id", "name"])?;
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    Ok(axum::Json(fitting(&speaker, &body).await?.len().into()))
}

/// The assistants of this graph whose name has these words.
async fn fitting(speaker: &Speaker<'_>, body: &Map<String, Value>) -> Result<Vec<Assistant>, Error> {
    let (graph, name) = (text(body, "graph_id")?, text(body, "name")?.map(str::to_lowercase));
    let mut all = assistants(speaker).await?;
    all.retain(|one| {
        graph.is_none_or(|graph| one.name == graph)
            && name.as_ref().is_none_or(|name| one.title.to_lowercase().contains(name))
    });
    Ok(all)
}

/// The graphs below an assistant's own: none, as the chats and tasks below a task are no part of its thread.
#[utoipa::path(get, path = "/langgraph/assistants/{assistant_id}/subgraphs", tag = "langgraph", params(OfAssistant),
    operation_id = "get_assistant_subgraphs", responses((status = 200, description = "An empty object.", body = Value)))]
pub(crate) async fn get_assistant_subgraphs(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(at): Path<OfAssistant>,
    ids: Ids,
) -> Answer<axum::Json<Value>> {
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    meant(&speaker, &at.assistant_id).await?;
    Ok(axum::Json(json!({})))
}

/// A persona or a flow.
#[utoipa::path(get, path = "/langgraph/assistants/{assistant_id}", tag = "langgraph", params(OfAssistant),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn get_assistant(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(at): Path<OfAssistant>,
    ids: Ids,
) -> Answer<axum::Json<Value>> {
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let created = context.base.workspaces.get(speaker.workspace).await?.created_at;
    Ok(axum::Json(meant(&speaker, &at.assistant_id).await?.to_json(created)))
}

/// The graph of a flow; that of a persona has the model and its tools.
#[utoipa::path(get, path = "/langgraph/assistants/{assistant_id}/graph", tag = "langgraph", params(OfAssistant),
    responses((status = 200, description = "Its nodes and edges.", body = Value)))]
pub(crate) async fn get_assistant_graph(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(at): Path<OfAssistant>,
    ids: Ids,
) -> Answer<axum::Json<Value>> {
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let one = meant(&speaker, &at.assistant_id).await?;
    if one.kind == AssistantKind::Persona {
        return Ok(axum::Json(wire::persona_graph()));
    }
    let flow = flow(&speaker, &one.name).await?;
    let node = |node: &schema::FlowNode| json!({ "id": node.id, "type": "runnable", "data": { "name": node.name.as_ref().unwrap_or(&node.id) } });
    let edge = |edge: &schema::FlowEdge| json!({ "source": edge.from, "target": edge.to, "data": edge.label, "conditional": edge.label.is_some() });
    let (nodes, edges): (Vec<_>, Vec<_>) =
        (flow.nodes.iter().map(node).collect(), flow.edges.iter().map(edge).collect());
    Ok(axum::Json(json!({ "nodes": nodes, "edges": edges })))
}

/// The schemas of the input and the state.
#[utoipa::path(get, path = "/langgraph/assistants/{assistant_id}/schemas", tag = "langgraph", params(OfAssistant),
    responses((status = 200, description = "They.", body = Value)))]
pub(crate) async fn get_assistant_schemas(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(at): Path<OfAssistant>,
    ids: Ids,
) -> Answer<axum::Json<Value>> {
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let one = meant(&speaker, &at.assistant_id).await?;
    let input = match one.kind {
        AssistantKind::Persona => None,
        AssistantKind::Flow => flow(&speaker, &one.name).await?.input_schema,
    };
    Ok(axum::Json(wire::schemas(one.kind, &one.name, input)))
}

async fn flow(speaker: &Speaker<'_>, name: &str) -> Result<schema::Flow, Error> {
    Ok(schema::Flow::of(&*speaker.context.tasks.flows().load(speaker.workspace, name).await?))
}
