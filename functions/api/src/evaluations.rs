//! Evaluations of flows: begun, listed, read, as JSON or as a JUnit report.

use crate::{
    Context,
    access::{Access, Read, Run, demand},
    error::Answer,
    extract::{Json, Query},
    flows::InFlow,
    ids::Ids,
    rate_limits::Paced,
    schema,
    workspaces::{InWorkspace, Paging},
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use domain::{Error, EvaluationId, FilePath, WorkspaceId};
use evaluation::{Selection, junit};
use http::{StatusCode, header};
use identity::Action;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// The evaluation of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InEvaluation {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The evaluation.
    #[param(value_type = Uuid)]
    evaluation_id: EvaluationId,
}

/// How to show it.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvaluationFormat {
    /// The format of the report.
    #[serde(default)]
    #[param(inline)]
    format: ReportFormat,
}

/// A kind of report.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ReportFormat {
    /// The record.
    #[default]
    Json,
    /// XML, for build servers.
    Junit,
}

/// Runs evaluation suites of a flow, each case as a real task in a workspace of its own. When this answers, the evaluation is durable; its
/// record grows case by case. `INVALID_ARGUMENT` when no case is meant; `FORBIDDEN` for a caller who asks to bless, which writes golden
/// files, but may not write, or whom the policies keep from these files.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/flows/{flow}/evaluations", tag = "flows", params(InFlow),
    request_body = schema::EvaluationSelection,
    responses((status = 202, description = "It is accepted.", body = schema::Evaluation)))]
pub(crate) async fn create_evaluation(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, files, .. }: Access<Run, InFlow>,
    _: Paced,
    ids: Ids,
    Json(selection): Json<Selection>,
) -> Answer<impl IntoResponse> {
    if selection.bless {
        // It writes the flow's golden files.
        demand(&caller, role, Action::Write)?;
        may_bless(&context.base.workspaces.open(at.workspace_id, files).await?, &at.flow)?;
    }
    let id = EvaluationId(ids.id("evaluation"));
    let begun = context.evaluations.start(at.workspace_id, id, &at.flow, selection, &by).await?;
    let place = format!("/api/v1/workspaces/{}/evaluations/{id}", at.workspace_id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, place)], axum::Json(begun)))
}

/// Refuses a person whom the policies keep from the golden files of a flow: the evaluation itself writes them, and no policy binds it.
fn may_bless(files: &::workspace::Workspace, flow: &str) -> Result<(), Error> {
    files.demand(::workspace::Action::Write, &FilePath::parse(&format!("{}/{flow}/golden", engine::FLOWS))?)
}

/// The evaluations of a workspace, the newest first.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/evaluations", tag = "flows", params(InWorkspace, Paging),
    responses((status = 200, description = "A page of them.", body = schema::EvaluationPage)))]
pub(crate) async fn list_evaluations(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InWorkspace>,
    Query(paging): Query<Paging>,
) -> Answer<impl IntoResponse> {
    Ok(axum::Json(context.evaluations.list(at.workspace_id, paging.limit()?, paging.cursor).await?))
}

/// Stops an evaluation: cases without a result get none, and their tasks are stopped. Gives the record, whose `error` is `CANCELLED` then. One that
/// had ended is left as it is.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}/stop", tag = "flows",
    params(InEvaluation), responses((status = 200, description = "The evaluation, which has ended.", body = schema::Evaluation)))]
pub(crate) async fn stop_evaluation(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Run, InEvaluation>,
) -> Answer<impl IntoResponse> {
    Ok(axum::Json(context.evaluations.stop(at.workspace_id, at.evaluation_id).await?))
}

/// An evaluation with the results that there are; its `status` is `finished` when these are all. A JUnit report without all results has one test case
/// more, with the error that says so.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}", tag = "flows",
    params(InEvaluation, EvaluationFormat),
    responses((status = 200, description = "The evaluation.",
        content((schema::Evaluation = "application/json"), (String = "application/xml")))))]
pub(crate) async fn get_evaluation(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InEvaluation>,
    Query(shown): Query<EvaluationFormat>,
) -> Answer<Response> {
    let evaluation = context.evaluations.get(at.workspace_id, at.evaluation_id).await?;
    Ok(match shown.format {
        ReportFormat::Json => axum::Json(evaluation).into_response(),
        ReportFormat::Junit => ([(header::CONTENT_TYPE, "application/xml")], junit(&evaluation)).into_response(),
    })
}
