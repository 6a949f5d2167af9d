//! Every route with its description. One list registers and describes the routes, so that the two agree.

use crate::{
    Context, StreamContext, a2a, agents, agui, ai_sdk, calls, chats, compactions, contents, dead_letters,
    described::{Describe, Routes, routes},
    evaluations, events, explain, files, flows, forks, health, home, hub, insight, keys, langgraph, login, mcp,
    mcp_servers, members, models, openai, personas, planner, portable, presence, refusals, relations, rewinds, sandbox,
    schedules, schema, search, standing, steering, tasks, tickets, tools, transfers, trash, turns, usage, versions,
    webhooks, workspaces,
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use utoipa::{
    OpenApi,
    openapi::{
        Content, ObjectBuilder, Ref, RefOr, Required, Response, Type, path::Operation, path::ParameterBuilder,
        path::ParameterIn, security::HttpAuthScheme, security::HttpBuilder, security::SecurityRequirement,
        security::SecurityScheme,
    },
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "BuildScale",
        description = "Agents that work on files, talk over SSE and survive a crash. Commands answer 202 as soon as they \
            are durable; what comes of them is told by events. Every error has the same envelope."
    ),
    components(schemas(schema::ErrorEnvelope)),
    servers((url = "/", description = "The server that this document comes from.")),
    tags(
        (name = "workspaces", description = "A logical volume of files with its chats."),
        (name = "members", description = "The people of a workspace and their roles."),
        (name = "keys", description = "API keys: for programs that work for you."),
        (name = "login", description = "How to get a token."),
        (name = "chats", description = "Durable conversations with agents."),
        (name = "planner", description = "The planner chat: messages that are answered, or planned and carried out."),
        (name = "flows", description = "Graphs of agents and code, as folders of manifests."),
        (name = "tasks", description = "Durable runs of flows, with their clones and subtasks."),
        (name = "webhooks", description = "Events of a workspace, told to receivers elsewhere."),
        (name = "schedules", description = "Chats, messages and tasks that begin at a time, or again and again."),
        (name = "files", description = "Identities with immutable versions."),
        (name = "versions", description = "The history of a file."),
        (name = "links", description = "Tags of files, links between them, and the network that they make."),
        (name = "trash", description = "Removed files, until they are restored or purged."),
        (name = "access", description = "Who may do what at which path, and why."),
        (name = "tools", description = "The very tools that agents use."),
        (name = "sandbox", description = "The machine on which a workspace's commands run."),
        (name = "agents", description = "Personas and skills."),
        (name = "models", description = "Which models and coding agents can be asked."),
        (name = "usage", description = "Tokens, money and calls."),
        (name = "openai", description = "Completions and responses for clients of OpenAI's API, with personas as models."),
        (name = "clients", description = "The protocols of front ends: AI SDK and AG-UI."),
        (name = "a2a", description = "The Agent2Agent protocol: turns as tasks, personas as skills."),
        (name = "langgraph", description = "The protocol of the LangGraph server, with personas and flows as assistants."),
        (name = "hub", description = "The code agent hub: threads of personas and of coding agents, each in a folder."),
        (name = "health", description = "For operators.")
    )
)]
struct Document;

/// The routes beside those of [`streams`].
pub(crate) fn commands() -> Routes<Arc<Context>> {
    Routes::new()
        .routes(routes!(workspaces::create_workspace, workspaces::list_workspaces))
        .routes(routes!(workspaces::get_workspace, workspaces::rename_workspace, workspaces::delete_workspace))
        .routes(routes!(portable::export_workspace))
        .routes(routes!(portable::import_workspace))
        .routes(routes!(presence::put_presence))
        .routes(routes!(members::list_members, members::add_member))
        .routes(routes!(members::get_me))
        .routes(routes!(members::change_member, members::remove_member))
        .routes(routes!(keys::list_keys, keys::create_key))
        .routes(routes!(keys::revoke_key))
        .routes(routes!(login::resource_metadata))
        .routes(routes!(tickets::create_ticket))
        .routes(routes!(chats::create_chat, chats::list_chats))
        .routes(routes!(turns::post_message, chats::get_chat, chats::configure_chat, chats::delete_chat))
        .routes(routes!(forks::fork_chat))
        .routes(routes!(forks::edit_message))
        .routes(routes!(compactions::compact_chat, compactions::undo_compaction))
        .routes(routes!(compactions::get_context))
        .routes(routes!(turns::stop_chat))
        .routes(routes!(turns::answer_question))
        .routes(routes!(turns::decide_permission))
        .routes(routes!(calls::take_call))
        .routes(routes!(calls::answer_call))
        .routes(routes!(turns::list_permissions, turns::forget_permissions))
        .routes(routes!(standing::list_standing_rules, standing::revoke_standing_rule))
        .routes(routes!(turns::approve_plan))
        .routes(routes!(turns::resume_chat))
        .routes(routes!(flows::list_flows))
        .routes(routes!(flows::get_flow))
        .routes(routes!(flows::check_flow))
        .routes(routes!(flows::draw_flow))
        .routes(routes!(flows::list_flow_schemas))
        .routes(routes!(flows::get_flow_schema))
        .routes(routes!(evaluations::create_evaluation))
        .routes(routes!(evaluations::list_evaluations))
        .routes(routes!(evaluations::get_evaluation))
        .routes(routes!(schedules::create_schedule, schedules::list_schedules))
        .routes(routes!(schedules::get_schedule, schedules::change_schedule, schedules::delete_schedule))
        .routes(routes!(schedules::run_schedule))
        .routes(routes!(mcp_servers::list_mcp_servers))
        .routes(routes!(mcp_servers::authorize_mcp_server, mcp_servers::sign_out_of_mcp_server))
        .routes(routes!(mcp_servers::complete_mcp_sign_in))
        .routes(routes!(webhooks::create_webhook, webhooks::list_webhooks))
        .routes(routes!(webhooks::get_webhook, webhooks::change_webhook, webhooks::delete_webhook))
        .routes(routes!(webhooks::rotate_webhook_secret))
        .routes(routes!(webhooks::test_webhook))
        .routes(routes!(webhooks::list_webhook_deliveries))
        .routes(routes!(webhooks::retry_webhook_delivery))
        .routes(routes!(tasks::create_task))
        .routes(routes!(tasks::list_tasks))
        .routes(routes!(tasks::get_task, tasks::change_task, tasks::delete_task))
        .routes(routes!(insight::get_history))
        .routes(routes!(insight::list_artifacts))
        .routes(routes!(insight::find_artifacts))
        .routes(routes!(insight::get_trace))
        .routes(routes!(insight::get_memory))
        .routes(routes!(insight::get_metadata))
        .routes(routes!(insight::diff_tasks))
        .routes(routes!(steering::stop_task))
        .routes(routes!(steering::pause_task))
        .routes(routes!(steering::step_task))
        .routes(routes!(steering::resume_task))
        .routes(routes!(steering::answer_task))
        .routes(routes!(steering::replay_task))
        .routes(routes!(steering::retry_task))
        .routes(routes!(explain::explain_access))
        .routes(routes!(files::create_file, files::list_files))
        .routes(routes!(files::get_file_by_path, files::put_file_by_path))
        .routes(routes!(contents::get_content_by_path, contents::put_content_by_path))
        .routes(routes!(trash::list_trash))
        .routes(routes!(files::get_file, files::put_file, files::move_file, files::delete_file))
        .routes(routes!(contents::get_content, contents::put_content))
        .routes(routes!(transfers::create_upload))
        .routes(routes!(transfers::get_address))
        .routes(routes!(transfers::upload, transfers::download))
        .routes(routes!(trash::restore_file))
        .routes(routes!(trash::purge_file))
        .routes(routes!(versions::list_versions))
        .routes(routes!(versions::get_version))
        .routes(routes!(versions::get_version_content))
        .routes(routes!(versions::restore_version))
        .routes(routes!(versions::diff_versions))
        .routes(routes!(relations::list_tags))
        .routes(routes!(relations::list_tagged))
        .routes(routes!(relations::add_tags, relations::remove_tag))
        .routes(routes!(relations::get_links, relations::add_link, relations::remove_link))
        .routes(routes!(relations::get_network))
        .routes(routes!(rewinds::rewind))
        .routes(routes!(tools::call_tool, tools::list_tools))
        .routes(routes!(mcp::take_message))
        .routes(routes!(search::search))
        .routes(routes!(sandbox::get_sandbox, sandbox::warm_sandbox, sandbox::release_sandbox))
        .routes(routes!(personas::list_agents))
        .routes(routes!(personas::get_agent))
        .routes(routes!(personas::list_skills))
        .routes(routes!(models::list_models))
        .routes(routes!(agents::list_coding_agents))
        .routes(routes!(usage::get_usage))
        .routes(routes!(dead_letters::list_dead_letters))
        .routes(routes!(dead_letters::redrive_dead_letters))
        .routes(routes!(planner::agent_stream, planner::agent_sessions))
        .routes(routes!(ai_sdk::send_ui_message))
        .routes(routes!(ai_sdk::resume_ui_stream))
        .routes(routes!(ai_sdk::stop_ui_stream))
        .routes(routes!(agui::run_agent))
        .routes(routes!(a2a::agent_card))
        .routes(routes!(a2a::workspace_card))
        .routes(routes!(a2a::take_a2a_request))
        .routes(routes!(a2a::take_a2a_request_in))
        .routes(routes!(openai::list_openai_models))
        .routes(routes!(openai::get_openai_model))
        .routes(routes!(openai::create_completion))
        .routes(routes!(openai::create_response))
        .routes(routes!(openai::get_response))
        .routes(routes!(openai::cancel_response))
        .routes(routes!(langgraph::langgraph_ok))
        .routes(routes!(langgraph::langgraph_info))
        .routes(routes!(langgraph::search_assistants))
        .routes(routes!(langgraph::get_assistant))
        .routes(routes!(langgraph::get_assistant_graph))
        .routes(routes!(langgraph::get_assistant_schemas))
        .routes(routes!(langgraph::create_thread))
        .routes(routes!(langgraph::search_threads))
        .routes(routes!(langgraph::get_thread, langgraph::update_thread, langgraph::delete_thread))
        .routes(routes!(langgraph::copy_thread))
        .routes(routes!(langgraph::get_thread_state, langgraph::update_thread_state))
        .routes(routes!(langgraph::read_checkpoint_state))
        .routes(routes!(langgraph::get_checkpoint_state))
        .routes(routes!(langgraph::get_history))
        .routes(routes!(langgraph::create_run, langgraph::list_runs))
        .routes(routes!(langgraph::stream_run))
        .routes(routes!(langgraph::wait_run))
        .routes(routes!(langgraph::get_run))
        .routes(routes!(langgraph::cancel_run))
        .routes(routes!(langgraph::create_stateless_run))
        .routes(routes!(langgraph::stream_stateless_run))
        .routes(routes!(langgraph::wait_stateless_run))
        .routes(routes!(langgraph::create_cron))
        .routes(routes!(langgraph::create_thread_cron))
        .routes(routes!(langgraph::search_crons))
        .routes(routes!(langgraph::change_cron, langgraph::delete_cron))
        .routes(routes!(langgraph::put_item, langgraph::get_item, langgraph::delete_item))
        .routes(routes!(langgraph::search_items))
        .routes(routes!(langgraph::list_namespaces))
        .routes(routes!(hub::healthz))
        .routes(routes!(hub::list_hub_agents))
        .routes(routes!(hub::list_hub_models))
        .routes(routes!(hub::create_thread, hub::list_threads))
        .routes(routes!(hub::get_thread, hub::change_thread, hub::delete_thread))
        .routes(routes!(hub::create_turn))
        .routes(routes!(hub::cancel_turn))
        .routes(routes!(hub::get_thread_history))
        .routes(routes!(hub::answer_permission))
        .routes(routes!(hub::list_rules))
        .routes(routes!(hub::revoke_rule))
        .routes(routes!(hub::compact_thread))
        .routes(routes!(hub::get_config_options, hub::set_config_option))
        .routes(routes!(hub::list_sessions))
        .routes(routes!(hub::get_session_history))
        .routes(routes!(hub::list_slash_commands))
        .routes(routes!(hub::search_paths))
        .routes(routes!(hub::list_recent_directories))
        .routes(routes!(hub::get_attachment))
        .routes(routes!(health::openapi))
        .routes(routes!(home::home))
}

/// The routes that a server has which only holds streams.
pub(crate) fn streams() -> Routes<Arc<StreamContext>> {
    Routes::new()
        .routes(routes!(events::watch_workspace))
        .routes(routes!(events::watch_chat))
        .routes(routes!(events::watch_task))
        .routes(routes!(hub::watch_thread))
        .routes(routes!(hub::watch_turn))
        .routes(routes!(langgraph::join_run))
        .routes(routes!(langgraph::join_run_stream))
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
}

/// The document as it is served at `/openapi.json`: a JSON object of OpenAPI 3.1.
pub fn document() -> Value {
    let (_, mut descriptions) = streams().into_parts();
    descriptions.extend(commands().into_parts().1);
    described(&descriptions)
}

/// The document as text, made when it is asked for the first time.
#[derive(Clone)]
pub(crate) struct Text(Arc<(Vec<Describe>, OnceLock<Bytes>)>);

impl Text {
    pub(crate) fn of(descriptions: Vec<Describe>) -> Self {
        Self(Arc::new((descriptions, OnceLock::new())))
    }

    /// The text. The first one takes a while to make.
    pub(crate) fn bytes(&self) -> Bytes {
        let (descriptions, text) = &*self.0;
        text.get_or_init(|| described(descriptions).to_string().into()).clone()
    }
}

fn described(descriptions: &[Describe]) -> Value {
    let mut document = Document::openapi();
    descriptions.iter().for_each(|describe| describe(&mut document));
    complete(document)
}

/// Adds the parts that hold for every operation: its refusals, the error envelope, the token, the idempotency key of every POST.
fn complete(mut document: utoipa::openapi::OpenApi) -> Value {
    let components = document.components.get_or_insert_default();
    let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    components.add_security_scheme("token", scheme);
    components.responses.insert("Error".into(), RefOr::T(error_response()));
    document.security = Some(vec![SecurityRequirement::default(), SecurityRequirement::new("token", [""; 0])]);
    for (path, item) in &mut document.paths.paths {
        let operations = [
            ("get", &mut item.get),
            ("post", &mut item.post),
            ("put", &mut item.put),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            refusals::describe((method, path.as_str()), operation, &mut components.responses);
            let error = RefOr::Ref(Ref::from_response_name("Error"));
            operation.responses.responses.insert("default".into(), error);
            if method == "post" {
                add_idempotency_key(operation);
            }
        }
    }
    serde_json::to_value(document).unwrap_or_default()
}

fn add_idempotency_key(post: &mut Operation) {
    let key = ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("The same key with the same request is done once and answered the same, for 24 hours."))
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .max_length(Some(255))
                .pattern(Some(r"^[\x21-\x7E]([\x20-\x7E]*[\x21-\x7E])?$"))
                .build(),
        ));
    post.parameters.get_or_insert_default().push(key.build().into());
}

fn error_response() -> Response {
    let mut content = Content::new(Some(Ref::from_schema_name("ErrorEnvelope")));
    content.example = Some(json!({ "error": {
        "code": "STALE_VERSION",
        "message": "/projects/notes.md has changed: it is now version 4, written by agent:assistant",
        "hint": "read the file again and base the write on its current content",
        "request_id": "019bf537-f228-7cd3-aa1c-3da8af302e12",
        "details": { "current_v": 4 },
    } }));
    let mut response = Response::new("The request was refused.");
    response.content.insert("application/json".into(), RefOr::T(content));
    response
}
