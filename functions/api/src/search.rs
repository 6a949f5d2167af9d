//! Search over the texts of a workspace.

use crate::{
    Context,
    access::{Access, Read},
    error::Answer,
    extract::Json,
    ids::Ids,
    schema,
    workspaces::InWorkspace,
};
use ::tools::Call;
use axum::extract::State;
use domain::{CallId, FilePath, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::ToSchema;

/// The tool that agents search with.
const TOOL: &str = "search";

/// A search.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchRequest {
    /// Words, which match in any form; `"a phrase"`, `begin*`, `+needed` and `-unwanted` words. At most 4 KiB and 32 terms. In the mode `regex`, a
    /// regular expression for single lines (Rust syntax).
    #[schema(example = "parser \"error recovery\"")]
    query: String,
    /// How the query is understood [default: text].
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<SearchMode>,
    /// The file or folder to search [default: the whole workspace].
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<FilePath>,
    /// Only these kinds [default: all].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 3)]
    kinds: Option<Vec<schema::SearchKind>>,
    /// Only versions by this author: `user:<id>`, `agent:<persona>`, `task:<id>`, `system`, or one of an imported repository, such as
    /// `Ada <ada@example.org>`. Another text is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    /// Only files that have this tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    /// Only files that were written then or later.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_after: Option<Timestamp>,
    /// Only files that were written before.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_before: Option<Timestamp>,
    /// At most this many files; 1 to 100 [default: 10].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// How a query is understood.
#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SearchMode {
    /// By its words, ranked with BM25.
    Text,
    /// As a regular expression, in the order of the paths.
    Regex,
    /// By its meaning: the passages whose vectors are nearest to the one of the query. Refused with `UNPROCESSABLE` and the reason
    /// `NO_EMBEDDING_MODEL` where no embedding model is configured.
    Semantic,
    /// By its words and its meaning (reciprocal rank fusion); by its words alone where no embedding model is configured.
    Hybrid,
}

/// Searches files, documents and conversations. A committed write is found by the next search. The answer has the files that the caller may read,
/// and counts no others.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/search", tag = "tools", params(InWorkspace),
    request_body = SearchRequest, responses((status = 200, description = "The best matches.", body = schema::SearchAnswer)))]
pub(crate) async fn search(
    State(context): State<Arc<Context>>,
    Access { at, by, files, .. }: Access<Read, InWorkspace>,
    ids: Ids,
    Json(asked): Json<SearchRequest>,
) -> Answer<axum::Json<Value>> {
    let workspace = context.base.workspaces.open(at.workspace_id, files).await?;
    let args = serde_json::to_string(&asked).map_err(|_| crate::error::internal())?;
    let call = Call::outside(workspace, CallId(ids.id("call")), by);
    let outcome = context.tools.call(&call, TOOL, &args).await;
    match outcome.error {
        Some(error) => Err(error.into()),
        None => Ok(axum::Json(outcome.result)),
    }
}
