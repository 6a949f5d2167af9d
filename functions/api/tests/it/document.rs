//! The OpenAPI document: complete, valid, and about routes that exist.

use crate::{
    openapi::{check, operations},
    support::Door,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const ROUTES: &str = "\
GET /
GET /api/agent/plans
GET /api/agent/stream
POST /api/agent/stream
GET /attachments/{file_id}
GET /healthz
GET /.well-known/agent-card.json
GET /a2a/{workspace_id}/.well-known/agent-card.json
POST /a2a
POST /a2a/{workspace_id}
GET /openai/v1/models
GET /openai/v1/models/{model}
GET /openai/v1/responses/{response_id}
POST /openai/v1/chat/completions
POST /openai/v1/responses
POST /openai/v1/responses/{response_id}/cancel
GET /api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stream
POST /api/v1/workspaces/{workspace_id}/ai-sdk/chat
POST /api/v1/workspaces/{workspace_id}/ai-sdk/chat/{id}/stop
POST /api/v1/workspaces/{workspace_id}/ag-ui
DELETE /langgraph/runs/crons/{cron_id}
DELETE /langgraph/store/items
DELETE /langgraph/threads/{thread_id}
GET /langgraph/assistants/{assistant_id}
GET /langgraph/assistants/{assistant_id}/graph
GET /langgraph/assistants/{assistant_id}/schemas
GET /langgraph/assistants/{assistant_id}/subgraphs
GET /langgraph/info
GET /langgraph/ok
GET /langgraph/store/items
GET /langgraph/threads/{thread_id}
GET /langgraph/threads/{thread_id}/runs
GET /langgraph/threads/{thread_id}/runs/{run_id}
GET /langgraph/threads/{thread_id}/runs/{run_id}/join
GET /langgraph/threads/{thread_id}/runs/{run_id}/stream
GET /langgraph/threads/{thread_id}/state
GET /langgraph/threads/{thread_id}/stream
GET /langgraph/threads/{thread_id}/state/{checkpoint_id}
PATCH /langgraph/runs/crons/{cron_id}
POST /langgraph/assistants/count
POST /langgraph/assistants/search
POST /langgraph/runs
POST /langgraph/runs/batch
POST /langgraph/runs/cancel
POST /langgraph/runs/crons
POST /langgraph/runs/crons/count
POST /langgraph/runs/crons/search
POST /langgraph/runs/stream
POST /langgraph/runs/wait
POST /langgraph/store/items/search
POST /langgraph/store/namespaces
POST /langgraph/threads
POST /langgraph/threads/search
POST /langgraph/threads/{thread_id}/copy
POST /langgraph/threads/{thread_id}/history
POST /langgraph/threads/{thread_id}/state
POST /langgraph/threads/{thread_id}/state/checkpoint
PATCH /langgraph/threads/{thread_id}
POST /langgraph/threads/{thread_id}/runs
POST /langgraph/threads/{thread_id}/runs/crons
POST /langgraph/threads/{thread_id}/runs/stream
POST /langgraph/threads/{thread_id}/runs/wait
POST /langgraph/threads/{thread_id}/runs/{run_id}/cancel
PUT /langgraph/store/items
GET /v1/agents
GET /v1/agents/{agent}/models
GET /v1/path-search
GET /v1/recent-directories
GET /v1/threads
GET /v1/threads/{thread_id}
GET /v1/threads/{thread_id}/config-options
GET /v1/threads/{thread_id}/events
GET /v1/threads/{thread_id}/history
GET /v1/threads/{thread_id}/rules
DELETE /v1/threads/{thread_id}/rules/{rule_id}
GET /v1/threads/{thread_id}/session-history
GET /v1/threads/{thread_id}/sessions
GET /v1/threads/{thread_id}/slash-commands
GET /v1/turns/{turn_id}/events
PATCH /v1/threads/{thread_id}
DELETE /v1/threads/{thread_id}
POST /v1/permissions/{permission_id}
POST /v1/threads
POST /v1/threads/{thread_id}/compact
POST /v1/threads/{thread_id}/config-options
POST /v1/threads/{thread_id}/turns
POST /v1/turns/{turn_id}/cancel
GET /.well-known/oauth-protected-resource
DELETE /api/v1/keys/{key_id}
DELETE /api/v1/workspaces/{workspace_id}
DELETE /api/v1/workspaces/{workspace_id}/schedules/{schedule_id}
DELETE /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}
GET /api/v1/workspaces/{workspace_id}/webhooks
GET /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}
GET /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries
PATCH /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}
POST /api/v1/workspaces/{workspace_id}/webhooks
POST /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/deliveries/{delivery_id}/retry
POST /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/secret
POST /api/v1/workspaces/{workspace_id}/webhooks/{webhook_id}/test
DELETE /api/v1/workspaces/{workspace_id}/chats/{chat_id}
DELETE /api/v1/workspaces/{workspace_id}/chats/{chat_id}/compact
DELETE /api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions
DELETE /api/v1/workspaces/{workspace_id}/files/{file_id}
DELETE /api/v1/workspaces/{workspace_id}/files/{file_id}/links
DELETE /api/v1/workspaces/{workspace_id}/files/{file_id}/purge
DELETE /api/v1/workspaces/{workspace_id}/files/{file_id}/tags
DELETE /api/v1/workspaces/{workspace_id}/members/{user_id}
DELETE /api/v1/workspaces/{workspace_id}/sandbox
DELETE /api/v1/workspaces/{workspace_id}/tasks/{task_id}
GET /api/v1/agents
GET /api/v1/dead-letters
GET /api/v1/flow-schemas
GET /api/v1/flow-schemas/{name}
GET /api/v1/keys
GET /api/v1/models
GET /api/v1/workspaces
GET /api/v1/workspaces/{workspace_id}
GET /api/v1/workspaces/{workspace_id}/schedules/{schedule_id}
GET /api/v1/workspaces/{workspace_id}/schedules
GET /api/v1/workspaces/{workspace_id}/agents
GET /api/v1/workspaces/{workspace_id}/agents/{agent}
GET /api/v1/workspaces/{workspace_id}/artifacts
GET /api/v1/workspaces/{workspace_id}/access
GET /api/v1/workspaces/{workspace_id}/chats
GET /api/v1/workspaces/{workspace_id}/changes
GET /api/v1/workspaces/{workspace_id}/chats/{chat_id}
GET /api/v1/workspaces/{workspace_id}/chats/{chat_id}/context
GET /api/v1/workspaces/{workspace_id}/chats/{chat_id}/events
GET /api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions
GET /api/v1/workspaces/{workspace_id}/permissions
DELETE /api/v1/workspaces/{workspace_id}/permissions
GET /api/v1/workspaces/{workspace_id}/contents/{sha256}
GET /api/v1/workspaces/{workspace_id}/evaluations
GET /api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}
GET /api/v1/workspaces/{workspace_id}/events
GET /api/v1/workspaces/{workspace_id}/export
GET /api/v1/workspaces/{workspace_id}/files
GET /api/v1/workspaces/{workspace_id}/files/by-path
GET /api/v1/workspaces/{workspace_id}/files/by-path/content
GET /api/v1/workspaces/{workspace_id}/files/tags
GET /api/v1/workspaces/{workspace_id}/files/tags/{tag}
GET /api/v1/workspaces/{workspace_id}/files/trash
GET /api/v1/workspaces/{workspace_id}/files/{file_id}
GET /api/v1/workspaces/{workspace_id}/files/{file_id}/address
GET /api/v1/workspaces/{workspace_id}/files/{file_id}/content
GET /api/v1/workspaces/{workspace_id}/files/{file_id}/diff
GET /api/v1/workspaces/{workspace_id}/files/{file_id}/links
GET /api/v1/workspaces/{workspace_id}/files/{file_id}/network
GET /api/v1/workspaces/{workspace_id}/files/{file_id}/versions
GET /api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}
GET /api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/content
GET /api/v1/workspaces/{workspace_id}/flows
GET /api/v1/workspaces/{workspace_id}/flows/{flow}
GET /api/v1/workspaces/{workspace_id}/flows/{flow}/graph
GET /api/v1/workspaces/{workspace_id}/members
GET /api/v1/workspaces/{workspace_id}/members/me
GET /api/v1/workspaces/{workspace_id}/sandbox
GET /api/v1/workspaces/{workspace_id}/skills
GET /api/v1/workspaces/{workspace_id}/tasks
GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}
GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/artifacts
GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/diff
GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/events
GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/history
GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/memory
GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/metadata
GET /api/v1/workspaces/{workspace_id}/tasks/{task_id}/trace
GET /api/v1/workspaces/{workspace_id}/tools
GET /api/v1/workspaces/{workspace_id}/usage
GET /api/v1/workspaces/{workspace_id}/waiting
GET /health
GET /metrics
GET /openapi.json
GET /ready
PATCH /api/v1/workspaces/{workspace_id}
PATCH /api/v1/workspaces/{workspace_id}/schedules/{schedule_id}
PATCH /api/v1/workspaces/{workspace_id}/chats/{chat_id}
PATCH /api/v1/workspaces/{workspace_id}/files/{file_id}
PATCH /api/v1/workspaces/{workspace_id}/members/{user_id}
PATCH /api/v1/workspaces/{workspace_id}/tasks/{task_id}
POST /api/v1/dead-letters/redrive
POST /api/v1/imports
POST /api/v1/keys
POST /api/v1/workspaces
POST /api/v1/workspaces/{workspace_id}/schedules/{schedule_id}/run
POST /api/v1/workspaces/{workspace_id}/schedules
POST /api/v1/workspaces/{workspace_id}/chats
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/answers/{question_id}
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/approve
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/calls/{call_id}/take
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/compact
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/edit
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/fork
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions/{permission_id}
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/resume
POST /api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop
POST /api/v1/workspaces/{workspace_id}/files
POST /api/v1/workspaces/{workspace_id}/files/{file_id}/links
POST /api/v1/workspaces/{workspace_id}/files/{file_id}/restore
POST /api/v1/workspaces/{workspace_id}/files/{file_id}/tags
POST /api/v1/workspaces/{workspace_id}/files/{file_id}/versions/{v}/restore
POST /api/v1/workspaces/{workspace_id}/evaluations/{evaluation_id}/stop
POST /api/v1/workspaces/{workspace_id}/flows/{flow}/check
POST /api/v1/workspaces/{workspace_id}/flows/{flow}/evaluations
POST /api/v1/workspaces/{workspace_id}/flows/{flow}/tasks
POST /api/v1/workspaces/{workspace_id}/members
POST /api/v1/workspaces/{workspace_id}/rewind
POST /api/v1/workspaces/{workspace_id}/sandbox
POST /api/v1/workspaces/{workspace_id}/mcp
POST /mcp
GET /api/v1/workspaces/{workspace_id}/mcp/servers
POST /api/v1/workspaces/{workspace_id}/mcp/{server}/authorize
POST /api/v1/workspaces/{workspace_id}/mcp/{server}/authorize/confirm
DELETE /api/v1/workspaces/{workspace_id}/mcp/{server}/authorize
GET /api/v1/mcp/callback
POST /api/v1/workspaces/{workspace_id}/search
POST /api/v1/workspaces/{workspace_id}/stream-tickets
POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/answers/{node}
POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/pause
POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/replay
POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/resume
POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/retry
POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/step
POST /api/v1/workspaces/{workspace_id}/tasks/{task_id}/stop
POST /api/v1/workspaces/{workspace_id}/tools
POST /api/v1/workspaces/{workspace_id}/uploads
PUT /api/v1/workspaces/{workspace_id}/contents/{sha256}
PUT /api/v1/workspaces/{workspace_id}/files/by-path
PUT /api/v1/workspaces/{workspace_id}/files/by-path/content
PUT /api/v1/workspaces/{workspace_id}/files/{file_id}
PUT /api/v1/workspaces/{workspace_id}/files/{file_id}/content
PUT /api/v1/workspaces/{workspace_id}/presence";

#[test]
fn every_route_is_in_it_and_no_other() {
    let expected: BTreeSet<String> = ROUTES.lines().map(String::from).collect();
    assert_eq!(operations(), expected);
}

#[test]
fn the_page_of_routes_has_each_of_them_and_no_other() {
    let page = include_str!("../../../../docs/reference/routes.md");
    let cells = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let listed: BTreeSet<String> = cells.filter(|cell| cell.contains(" /")).map(String::from).collect();
    assert_eq!(listed, operations(), "scripts/docs writes docs/reference/routes.md anew");
}

#[test]
fn routes_are_registered_with_their_description_only() {
    let registered = include_str!("../../src/openapi.rs").matches("routes!(").count();
    assert!(registered > 20);
    for source in [include_str!("../../src/lib.rs"), include_str!("../../src/openapi.rs")] {
        for other in [".route(", ".nest(", ".nest_service(", ".route_service("] {
            assert!(!source.contains(other), "{other} registers a route that the document does not know");
        }
    }
}

#[tokio::test]
async fn it_is_served_and_its_routes_exist() {
    let door = Door::open();
    let served = door.get("/openapi.json").await.is(200);
    assert_eq!(served.json, buildscale_api::document());
    let id = "019bf537-f228-7cd3-aa1c-3da8af302e12";
    for operation in operations() {
        let (method, path) = operation.split_once(' ').unwrap();
        let path = path.replace("{v}", "1");
        let path =
            path.split('/').map(|part| if part.starts_with('{') { id } else { part }).collect::<Vec<_>>().join("/");
        let reply = door.ask(method, &path, &[], "").await;
        assert_ne!(reply.status, 405, "{operation}");
        let message = reply.json["error"]["message"].as_str().unwrap_or_default();
        assert!(!message.contains("route"), "{operation}: {message}");
    }
}

#[test]
fn it_is_a_valid_document() {
    let document = buildscale_api::document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut ids = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            assert!(operation["responses"]["default"]["$ref"].is_string(), "{id} does not say how it refuses");
            let text = operation["summary"].as_str().or(operation["description"].as_str());
            assert!(text.is_some_and(|text| text.len() > 5), "{id} is not described");
        }
    }
    // Every reference leads somewhere.
    let mut stack = vec![&document];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(to) = fields.get("$ref").and_then(Value::as_str) {
                    let pointer = to.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{to} leads nowhere");
                }
                stack.extend(fields.values());
            }
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
}

/// The other tests rely on it.
#[tokio::test]
async fn an_answer_that_is_not_as_described_is_noticed() {
    let mut reply = Door::open().get("/health").await.is(200);
    check("GET", "/health", &reply);
    for wrong in [json!({ "status": "ok" }), json!({ "status": "ok", "version": "1", "more": 1 })] {
        reply.json = wrong;
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check("GET", "/health", &reply)));
        assert!(checked.is_err(), "{} passed", reply.json);
    }
}

/// A client that is generated of it would send a list of numbers for bytes, and read a stream as JSON.
#[test]
fn bytes_are_no_lists_and_streams_are_named() {
    let document = buildscale_api::document();
    let mut streams = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            let answers = operation["responses"].as_object().unwrap().values();
            for content in answers.chain([&operation["requestBody"]]).filter_map(|one| one["content"].as_object()) {
                for (kind, content) in content {
                    assert!(kind == "application/json" || content["schema"]["type"] != "array", "{kind} of {id}");
                    if kind == "text/event-stream" {
                        streams.insert(id.to_owned());
                    }
                }
            }
        }
    }
    for id in ["create_completion", "create_response", "get_response", "take_a2a_request", "take_a2a_request_in"] {
        assert!(streams.contains(id), "{id} streams, too");
    }
}
