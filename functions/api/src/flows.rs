//! The flows of a workspace: listed, read, checked, drawn. Tasks are made of them in [`crate::tasks`].

use crate::{
    Context,
    access::{Access, Read},
    error::{Answer, excerpt, internal},
    extract::{Json, Open, Path, Query},
    rate_limits::Paced,
    schema::{self, FlowReport, Flows},
    workspaces::InWorkspace,
};
use axum::{extract::State, response::IntoResponse};
use domain::{Error, TaskId, WorkspaceId};
use flow::draw::RunVisits;
use http::header;
use serde::Deserialize;
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// How many clones and subtasks are looked at to paint a run: a drawing shows one node for all of them.
const MAX_VISITED_TASKS: usize = 2_000;

/// The flow of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InFlow {
    /// The workspace.
    #[param(value_type = Uuid)]
    pub workspace_id: WorkspaceId,
    /// The flow: the name of its folder in `/system/flows`.
    #[param(example = "review")]
    pub flow: String,
}

/// Options of a check.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckFlowRequest {
    /// The files of the flow, by their paths in its folder, to check them before they are saved; when absent, the saved ones are checked.
    #[schema(example = json!({ "workflow.yaml": "nodes: []\nedges: []\n" }))]
    files: Option<BTreeMap<String, String>>,
}

/// Options of a drawing.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drawing {
    /// The format of the drawing.
    #[serde(default)]
    #[param(inline)]
    format: Format,
    /// The run to paint on it: then the flow is drawn as it was when this task began.
    #[param(value_type = Option<Uuid>)]
    task: Option<TaskId>,
}

/// A kind of drawing.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// A picture.
    #[default]
    Svg,
    /// For Graphviz.
    Dot,
    /// For Markdown.
    Mermaid,
    /// For terminals: lines of text.
    Text,
}

/// The manifest of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfManifest {
    /// Its name without extension; one with it is taken, too.
    #[param(example = "workflow")]
    name: String,
}

impl Open for OfManifest {}

/// The flows of a workspace, those with faults included.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/flows", tag = "flows", params(InWorkspace),
    responses((status = 200, description = "All of them, by name.", body = Flows)))]
pub(crate) async fn list_flows(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InWorkspace>,
) -> Answer<impl IntoResponse> {
    let flows = context.tasks.flows().list(at.workspace_id).await?;
    Ok(axum::Json(serde_json::json!({ "flows": flows })))
}

/// A flow as its manifests are now. `UNPROCESSABLE` with all faults when it has some.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/flows/{flow}", tag = "flows", params(InFlow),
    responses((status = 200, description = "The flow.", body = schema::Flow)))]
pub(crate) async fn get_flow(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InFlow>,
) -> Answer<axum::Json<schema::Flow>> {
    Ok(axum::Json(schema::Flow::of(&*context.tasks.flows().load(at.workspace_id, &at.flow).await?)))
}

/// Reports all faults of a flow at once, each with its place and a remedy. Nothing is changed. It counts as a request that puts agents to work: it
/// computes for up to a second.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/flows/{flow}/check", tag = "flows", params(InFlow),
    request_body = CheckFlowRequest, responses((status = 200, description = "The report.", body = FlowReport)))]
pub(crate) async fn check_flow(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InFlow>,
    _: Paced,
    Json(given): Json<CheckFlowRequest>,
) -> Answer<axum::Json<FlowReport>> {
    let flows = context.tasks.flows();
    let checked = match given.files {
        Some(files) => flows.check_in(at.workspace_id, &at.flow, files).await?,
        None => flows.check(at.workspace_id, &at.flow).await?,
    };
    let among_others = match &checked {
        Ok(flow) => flows.notes(at.workspace_id, flow).await?,
        Err(_) => Vec::new(),
    };
    Ok(axum::Json(FlowReport::of(checked, among_others)))
}

/// Draws a flow; with a task, the drawing shows the progress and results of that task.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/flows/{flow}/graph", tag = "flows", params(InFlow, Drawing),
    responses((status = 200, description = "The drawing.", content(
        (String = "image/svg+xml"), (String = "text/vnd.graphviz"), (String = "text/vnd.mermaid"), (String = "text/plain")))))]
pub(crate) async fn draw_flow(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InFlow>,
    Query(drawing): Query<Drawing>,
) -> Answer<impl IntoResponse> {
    let flows = context.tasks.flows();
    let (flow, run_visits) = match drawing.task {
        None => (flows.load(at.workspace_id, &at.flow).await?, RunVisits::new()),
        Some(task) => {
            let view = context.tasks.get(at.workspace_id, task).await?;
            if view.flow.name != at.flow {
                let error = Error::invalid("task", format!("this task is one of the flow {}", view.flow.name));
                return Err(error.hint("draw that flow").into());
            }
            let flow = flows.by_hash(at.workspace_id, &view.flow).await?;
            let run_visits = context.tasks.run_visits(&flow, at.workspace_id, task, MAX_VISITED_TASKS).await?;
            (flow, run_visits)
        }
    };
    // A flow of thousands of nodes takes a while to draw: no other request waits for it.
    let draw = move || match drawing.format {
        Format::Svg => ("image/svg+xml", flow::draw::svg(&flow, &run_visits)),
        Format::Dot => ("text/vnd.graphviz; charset=utf-8", flow::draw::dot(&flow, &run_visits)),
        Format::Mermaid => ("text/vnd.mermaid; charset=utf-8", flow::draw::mermaid(&flow, &run_visits)),
        Format::Text => ("text/plain; charset=utf-8", flow::draw::outline(&flow, &run_visits)),
    };
    let (kind, text) = workspace::blocking::run(draw).await.map_err(|_| internal())?;
    // Names in a drawing are written by people and models: it is no page of this origin, and runs nothing.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, policy)], text))
}

/// The manifests that a flow can have, each with its JSON Schema (2020-12), so that editors can complete them.
#[utoipa::path(get, path = "/api/v1/flow-schemas", tag = "flows",
    responses((status = 200, description = "The schemas, by the manifests' names.", body = schema::FlowSchemas)))]
pub(crate) async fn list_flow_schemas() -> axum::Json<Value> {
    axum::Json(serde_json::json!({ "schemas": flow::manifest::schemas() }))
}

/// The JSON Schema of one manifest, as editors take it.
#[utoipa::path(get, path = "/api/v1/flow-schemas/{name}", tag = "flows", params(OfManifest),
    responses((status = 200, description = "The schema.", body = Value, content_type = "application/schema+json")))]
pub(crate) async fn get_flow_schema(Path(of): Path<OfManifest>) -> Answer<impl IntoResponse> {
    let bare = of.name.split('.').next().unwrap_or_default();
    let mut schemas = flow::manifest::schemas();
    let Some(schema) = schemas.remove(bare) else {
        let known = schemas.into_keys().collect::<Vec<_>>().join(", ");
        return Err(Error::not_found("manifest", excerpt(&of.name)).hint(format!("the manifests are {known}")).into());
    };
    Ok(([(header::CONTENT_TYPE, "application/schema+json")], schema.to_string()))
}
