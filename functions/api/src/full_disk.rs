//! On a full disk, requests that add are refused in front of their handlers, before anything of them is stored; those that read, delete,
//! stop or pause are not.

use crate::{StreamContext, error::Answer};
use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use domain::Error;
use http::Method;
use std::sync::Arc;

/// Whether there is room for more; asked with each request that adds.
pub type HasRoom = Box<dyn Fn() -> bool + Send + Sync>;

/// How the paths of commands end that add next to nothing: they end work, look, or let a reader in.
const ADD_NOTHING: [&str; 13] = [
    "/stop",
    "/cancel",
    "/pause",
    "/check",
    "/search",
    "/count",
    "/history",
    "/namespaces",
    "/state/checkpoint",
    "/stream-tickets",
    "/presence",
    "/authorize",
    "/authorize/confirm",
];
/// Routes whose body says whether something is added: by the tool that is called ([`crate::tools`]), by the method that another agent calls
/// ([`crate::a2a`]), by the wish for a preview ([`crate::rewinds`]), and by changes beside a pause ([`crate::schedules`], [`crate::langgraph`],
/// [`crate::webhooks`]). Messages of a host's protocol become other requests.
const BY_BODY: [&str; 8] = [
    "/workspaces/{workspace_id}/tools",
    "/rewind",
    "/mcp",
    "/a2a",
    "/a2a/{workspace_id}",
    "/schedules/{schedule_id}",
    "/runs/crons/{cron_id}",
    "/webhooks/{webhook_id}",
];

/// The middleware.
pub(crate) async fn demand(
    State(context): State<Arc<StreamContext>>,
    request: Request,
    next: Next,
) -> Answer<Response> {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    if adds(request.method(), route) {
        demand_room(&context)?;
    }
    Ok(next.run(request).await)
}

/// Refuses a request that adds where there is no room for more.
pub(crate) fn demand_room(context: &StreamContext) -> Result<(), Error> {
    if (context.has_room)() { Ok(()) } else { Err(Error::storage_full()) }
}

fn adds(method: &Method, route: &str) -> bool {
    let mut elsewhere = ADD_NOTHING.iter().chain(&BY_BODY);
    let writes = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    writes && !elsewhere.any(|end| route.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_reads_and_stops_need_no_room() {
        for (method, route, needs) in [
            (Method::GET, "/api/v1/workspaces", false),
            (Method::HEAD, "/api/v1/workspaces/{workspace_id}/files/{file_id}/content", false),
            (Method::DELETE, "/api/v1/workspaces/{workspace_id}/files/{file_id}/purge", false),
            (Method::POST, "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop", false),
            (Method::POST, "/api/v1/workspaces/{workspace_id}/stream-tickets", false),
            (Method::POST, "/api/v1/workspaces/{workspace_id}/tools", false),
            (Method::POST, "/api/v1/workspaces/{workspace_id}/mcp", false),
            (Method::POST, "/api/v1/workspaces/{workspace_id}/rewind", false),
            (Method::POST, "/mcp", false),
            (Method::POST, "/a2a", false),
            (Method::POST, "/a2a/{workspace_id}", false),
            (Method::POST, "/api/v1/workspaces/{workspace_id}/search", false),
            (Method::POST, "/langgraph/threads/search", false),
            (Method::POST, "/langgraph/threads/{thread_id}/history", false),
            (Method::POST, "/langgraph/runs/crons/count", false),
            (Method::POST, "/langgraph/runs/cancel", false),
            (Method::POST, "/langgraph/runs/batch", true),
            (Method::POST, "/langgraph/threads/{thread_id}/runs/{run_id}/cancel", false),
            (Method::POST, "/openai/v1/responses/{response_id}/cancel", false),
            (Method::POST, "/v1/turns/{turn_id}/cancel", false),
            (Method::POST, "/langgraph/threads/{thread_id}/state", true),
            (Method::POST, "/openai/v1/responses", true),
            (Method::POST, "/api/v1/workspaces/{workspace_id}/chats/{chat_id}", true),
            (Method::POST, "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/resume", true),
            (Method::PUT, "/api/v1/workspaces/{workspace_id}/files/{file_id}/content", true),
            (Method::PUT, "/api/v1/workspaces/{workspace_id}/presence", false),
            (Method::PATCH, "/api/v1/workspaces/{workspace_id}", true),
            (Method::PATCH, "/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}", false),
            (Method::POST, "/api/v1/workspaces/{workspace_id}/schedules/{schedule_id}/run", true),
        ] {
            assert_eq!(adds(&method, route), needs, "{method} {route}");
        }
    }
}
