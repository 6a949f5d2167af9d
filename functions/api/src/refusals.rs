//! The refusals that each route can give: derived from its method, its path, its parameters and its body, and for some from its name.
//! The document says them with each route, and the tests hold every refusal that they meet to it.

use crate::error::status_of;
use domain::Code;
use http::StatusCode;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::openapi::{Content, Ref, RefOr, Response, extensions::Extensions, path::Operation, path::ParameterIn};

/// Routes that are open to all and stand on nothing.
const ALONE: [&str; 7] = ["agent_card", "health", "healthz", "home", "langgraph_ok", "openapi", "resource_metadata"];
/// Routes that are open to all.
const OPEN: [&str; 9] = [
    "agent_card",
    "complete_mcp_sign_in",
    "health",
    "healthz",
    "home",
    "langgraph_ok",
    "ready",
    "openapi",
    "resource_metadata",
];
/// Routes that put agents to work, or this server to long computations: people have an allowance of those.
const PACED: [&str; 37] = [
    "agent_stream",
    "approve_plan",
    "call_tool",
    "change_cron",
    "change_schedule",
    "check_flow",
    "compact_chat",
    "compact_thread",
    "create_chat",
    "create_completion",
    "create_cron",
    "create_evaluation",
    "create_response",
    "create_run",
    "create_runs",
    "create_schedule",
    "create_stateless_run",
    "create_task",
    "create_thread_cron",
    "create_turn",
    "edit_message",
    "export_workspace",
    "import_workspace",
    "post_message",
    "replay_task",
    "retry_task",
    "run_agent",
    "run_schedule",
    "send_ui_message",
    "take_a2a_request",
    "take_a2a_request_in",
    "stream_run",
    "stream_stateless_run",
    "upload",
    "wait_run",
    "wait_stateless_run",
    "warm_sandbox",
];
/// Routes that read the manifests of flows.
const FLOWS: [&str; 27] = [
    "answer_task",
    "change_task",
    "check_flow",
    "count_assistants",
    "create_evaluation",
    "create_run",
    "create_runs",
    "create_stateless_run",
    "create_task",
    "draw_flow",
    "get_assistant",
    "get_assistant_graph",
    "get_assistant_schemas",
    "get_assistant_subgraphs",
    "get_evaluation",
    "get_flow",
    "get_history",
    "get_metadata",
    "list_flows",
    "pause_task",
    "replay_task",
    "retry_task",
    "search_assistants",
    "stream_run",
    "stream_stateless_run",
    "wait_run",
    "wait_stateless_run",
];
/// Routes on which a plan is approved.
const PLANS: [&str; 2] = ["approve_plan", "create_chat"];
/// Routes that read a file that a message brings along.
const ATTACHING: [&str; 19] = [
    "agent_stream",
    "approve_plan",
    "create_chat",
    "create_completion",
    "create_response",
    "create_run",
    "create_runs",
    "create_stateless_run",
    "create_turn",
    "edit_message",
    "post_message",
    "run_agent",
    "send_ui_message",
    "take_a2a_request",
    "take_a2a_request_in",
    "stream_run",
    "stream_stateless_run",
    "wait_run",
    "wait_stateless_run",
];
/// Routes that write or read a whole workspace.
const PORTABLE: [&str; 2] = ["export_workspace", "import_workspace"];
/// Tags of routes that read and write contents.
const CONTENTS: [&str; 3] = ["files", "trash", "versions"];
/// Routes about the accounts at MCP servers.
const ACCOUNTS: [&str; 3] = ["authorize_mcp_server", "complete_mcp_sign_in", "sign_out_of_mcp_server"];
/// Routes that refuse the root folder.
const MARKING: [&str; 4] = ["add_link", "add_tags", "remove_link", "remove_tag"];

/// Routes that name the things they are about in their body or their query.
const NAMED_IN_BODY: [&str; 7] = [
    "agent_plans",
    "agent_sessions",
    "agent_stream",
    "create_key",
    "list_dead_letters",
    "redrive_dead_letters",
    "take_message_here",
];
/// Tags of routes whose answers need contents of the archive, beside those of [`CONTENTS`].
const STORED: [&str; 12] = [
    "a2a",
    "agents",
    "chats",
    "clients",
    "hub",
    "langgraph",
    "links",
    "openai",
    "planner",
    "schedules",
    "tasks",
    "webhooks",
];

/// The refusals of one route: codes by their status.
type Refusals = BTreeMap<u16, BTreeSet<String>>;

/// Adds the refusals of a route to its description, and the responses that they need to `shared`.
pub(crate) fn describe(
    (method, path): (&str, &str),
    operation: &mut Operation,
    shared: &mut BTreeMap<String, RefOr<Response>>,
) {
    for (status, codes) in refusals(method, path, operation) {
        let name = format!("{status}-{}", codes.iter().map(String::as_str).collect::<Vec<_>>().join("-"));
        let reference = RefOr::Ref(Ref::from_response_name(&name));
        shared.entry(name).or_insert_with(|| RefOr::T(response(&codes)));
        operation.responses.responses.entry(status.to_string()).or_insert(reference);
    }
}

fn refusals(method: &str, path: &str, operation: &Operation) -> Refusals {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    let is = |listed: &[&str]| listed.contains(&id);
    let tagged = |tags: &[&str]| operation.tags.iter().flatten().any(|tag| tags.contains(&tag.as_str()));
    let parameters = operation.parameters.as_deref().unwrap_or_default();
    let has_header = |name: &str| {
        parameters.iter().any(|parameter| match parameter {
            RefOr::T(one) => one.name == name && one.parameter_in == ParameterIn::Header,
            RefOr::Ref(_) => false,
        })
    };
    let (writes, posts) = (method != "get", method == "post");
    let has_body = operation.request_body.is_some();
    // The workspace of a route of the hub is named beside its path.
    let names_resource = path.contains('{') || tagged(&["a2a", "hub", "langgraph", "openai"]) && !is(&ALONE);
    let reads_files = is(&FLOWS) || is(&ATTACHING) || tagged(&CONTENTS);
    let checks_contents = is(&MARKING)
        || is(&["compact_thread", "get_attachment", "import_workspace", "search"])
        || tagged(&["webhooks"]) && matches!(method, "post" | "patch");
    let rules: [(bool, &[Code]); 15] = [
        (true, &[Code::Internal]),
        (!is(&ALONE), &[Code::UpstreamUnavailable]),
        (!is(&OPEN), &[Code::InvalidArgument, Code::Unauthorized, Code::Forbidden]),
        (is(&["complete_mcp_sign_in", "resource_metadata"]), &[Code::InvalidArgument]),
        (is(&ACCOUNTS), &[Code::NotFound, Code::Unprocessable, Code::UpstreamRefused]),
        (is(&["list_mcp_servers"]), &[Code::Unprocessable]),
        (names_resource || is(&NAMED_IN_BODY), &[Code::NotFound]),
        // Another request may change the same thing first, and a file may be moved during an export.
        (writes || is(&["export_workspace"]), &[Code::Conflict]),
        // Any change may find the disk full.
        (writes, &[Code::StorageFull]),
        (posts, &[Code::IdempotencyMismatch]),
        (posts || has_body || is(&FLOWS) || is(&["get_content", "get_content_by_path"]), &[Code::PayloadTooLarge]),
        (has_header("If-Match") || is(&PLANS), &[Code::StaleVersion]),
        (is(&PACED), &[Code::RateLimited]),
        (reads_files || checks_contents, &[Code::Unprocessable]),
        (reads_files || tagged(&STORED) || is(&PORTABLE), &[Code::ContentDamaged, Code::ContentMissing]),
    ];
    let mut all = Refusals::new();
    for code in rules.iter().filter(|(applies, _)| *applies).flat_map(|(_, codes)| *codes) {
        insert(&mut all, status_of(*code), *code);
    }
    if has_body || posts {
        insert(&mut all, StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::InvalidArgument);
    }
    if has_header("Range") {
        insert(&mut all, StatusCode::RANGE_NOT_SATISFIABLE, Code::InvalidArgument);
    }
    all
}

fn insert(all: &mut Refusals, status: StatusCode, code: Code) {
    all.entry(status.as_u16()).or_default().insert(code.to_string());
}

fn response(codes: &BTreeSet<String>) -> Response {
    let listed = codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>();
    let mut response = Response::new(listed.join(", "));
    response
        .content
        .insert("application/json".into(), RefOr::T(Content::new(Some(Ref::from_schema_name("ErrorEnvelope")))));
    response.extensions = Some(Extensions::from_iter([("x-error-codes", json!(codes))]));
    response
}
