//! The very tools that agents use, for people.

use crate::{
    Context,
    access::{Access, Read, Write},
    error::{Answer, ApiError, internal},
    extract::Json,
    full_disk::demand_room,
    ids::Ids,
    long_answers::long_answer,
    rate_limits::admit,
    schema,
    workspaces::InWorkspace,
};
use ::tools::{Call, ToolKind};
use axum::{extract::State, response::Response};
use domain::CallId;
use identity::Action;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;

/// A call of a tool.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolCall {
    /// Its name.
    #[schema(example = "ls")]
    tool: String,
    /// Its arguments, as its `parameters` describe them.
    #[serde(default)]
    #[schema(value_type = Object, example = json!({ "path": "/" }))]
    args: Map<String, Value>,
}

/// The tools, as models are told about them.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/tools", tag = "tools", params(InWorkspace),
    responses((status = 200, description = "All of them.", body = schema::Tools)))]
pub(crate) async fn list_tools(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InWorkspace>,
) -> Answer<axum::Json<schema::Tools>> {
    context.base.workspaces.get(at.workspace_id).await?;
    let (specs, optional) = (context.tools.specs(), context.tools.optional());
    let all = specs.iter().map(|spec| (spec, false)).chain(optional.iter().map(|spec| (spec, true)));
    let tools = all.map(|(spec, optional)| schema::Tool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
        optional,
    });
    Ok(axum::Json(schema::Tools { tools: tools.collect() }))
}

/// Calls a tool. That it failed is an answer like any other: `success` is false and `error` says why. A call that runs a
/// command or asks another server counts as a request that puts agents to work.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/tools", tag = "tools", params(InWorkspace),
    request_body = ToolCall, responses((status = 200, description = "The result of the call.", body = schema::ToolResult)))]
pub(crate) async fn call_tool(
    State(context): State<Arc<Context>>,
    Access { at, by, files, caller, .. }: Access<Write, InWorkspace>,
    ids: Ids,
    Json(asked): Json<ToolCall>,
) -> Answer<Response> {
    let kind = context.tools.kind(&asked.tool);
    if matches!(kind, Some(ToolKind::Exec | ToolKind::Served)) {
        admit(&context, caller.user).await?;
    }
    let adds = matches!(kind, Some(ToolKind::Write | ToolKind::Exec));
    if adds {
        demand_room(&context.base)?;
    }
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let may_run = caller.scopes.has(Action::Run);
    // No read comes before it: people look at a file while they write.
    let call = Call { may_run, ..Call::outside(workspace, CallId(ids.id("call")), by) };
    // A command may run for minutes.
    let whole = async move {
        let outcome = context.tools.call(&call, &asked.tool, &Value::Object(asked.args).to_string()).await;
        let result = schema::ToolResult {
            success: outcome.success,
            result: outcome.result,
            output: outcome.output,
            truncated: outcome.truncated,
            error: outcome.error,
        };
        serde_json::to_value(result).map_err(|_| internal())
    };
    long_answer(whole, ApiError::envelope).await
}
