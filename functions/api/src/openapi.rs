//! Every route with its description. One list registers and describes the routes, so that the two agree.

use crate::{
    Context, StreamContext, a2a, agents, agui, ai_sdk, changes, chats, compactions, contents, dead_letters,
    described_routes::{Describe, Routes, routes},
    description::described,
    evaluations, events, explain, export_import, files, flows, forks, handed_out_calls, health, home, hub, keys,
    langgraph, login, mcp, mcp_servers, members, models, openai, personas, planner, presence, relations, rewinds,
    run_inspection, sandbox, schedules, search, standing_rules, task_commands, tasks, tickets, tools, transfers, trash,
    turns, usage, versions, waiting, webhooks, workspaces,
};
use serde_json::Value;
use std::sync::Arc;

/// The routes beside those of [`streams`].
pub(crate) fn commands() -> Routes<Arc<Context>> {
    Routes::new()
        .routes(routes!(workspaces::create_workspace, workspaces::list_workspaces))
        .routes(routes!(workspaces::get_workspace, workspaces::rename_workspace, workspaces::delete_workspace))
        .routes(routes!(export_import::export_workspace))
        .routes(routes!(export_import::import_workspace))
        .routes(routes!(presence::put_presence))
        .routes(routes!(waiting::list_waiting))
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
        .routes(routes!(handed_out_calls::take_call))
        .routes(routes!(handed_out_calls::answer_call))
        .routes(routes!(turns::list_permissions, turns::forget_permissions))
        .routes(routes!(standing_rules::list_standing_rules, standing_rules::revoke_standing_rule))
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
        .routes(routes!(evaluations::stop_evaluation))
        .routes(routes!(schedules::create_schedule, schedules::list_schedules))
        .routes(routes!(schedules::get_schedule, schedules::change_schedule, schedules::delete_schedule))
        .routes(routes!(schedules::run_schedule))
        .routes(routes!(mcp_servers::list_mcp_servers))
        .routes(routes!(mcp_servers::authorize_mcp_server, mcp_servers::sign_out_of_mcp_server))
        .routes(routes!(mcp_servers::confirm_mcp_sign_in))
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
        .routes(routes!(run_inspection::get_history))
        .routes(routes!(run_inspection::list_artifacts))
        .routes(routes!(run_inspection::find_artifacts))
        .routes(routes!(run_inspection::get_trace))
        .routes(routes!(run_inspection::get_memory))
        .routes(routes!(run_inspection::get_metadata))
        .routes(routes!(run_inspection::diff_tasks))
        .routes(routes!(task_commands::stop_task))
        .routes(routes!(task_commands::pause_task))
        .routes(routes!(task_commands::step_task))
        .routes(routes!(task_commands::resume_task))
        .routes(routes!(task_commands::answer_task))
        .routes(routes!(task_commands::replay_task))
        .routes(routes!(task_commands::retry_task))
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
        .routes(routes!(changes::list_changes))
        .routes(routes!(rewinds::rewind))
        .routes(routes!(tools::call_tool, tools::list_tools))
        .routes(routes!(mcp::take_message))
        .routes(routes!(mcp::take_message_here))
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
        .routes(routes!(planner::agent_plans))
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
        .routes(routes!(langgraph::get_assistant_subgraphs))
        .routes(routes!(langgraph::count_assistants))
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
        .routes(routes!(langgraph::create_runs))
        .routes(routes!(langgraph::cancel_runs))
        .routes(routes!(langgraph::create_cron))
        .routes(routes!(langgraph::create_thread_cron))
        .routes(routes!(langgraph::search_crons))
        .routes(routes!(langgraph::count_crons))
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
        .routes(routes!(langgraph::join_thread_stream))
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
}

/// The document as it is served at `/openapi.json`: a JSON object of OpenAPI 3.1.
pub fn document() -> Value {
    described(&descriptions())
}

fn descriptions() -> Vec<Describe> {
    let (_, mut all) = streams().into_parts();
    all.extend(commands().into_parts().1);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};
    use utoipa::openapi::OpenApi;

    /// Components are a map: of two types with one name, only the last that is described would be in the document.
    #[test]
    fn a_schema_name_has_one_shape() {
        let (mut known, mut doubled) = (BTreeMap::new(), BTreeSet::new());
        for describe in descriptions() {
            let mut alone = OpenApi::default();
            describe(&mut alone);
            for (name, shape) in alone.components.unwrap_or_default().schemas {
                let shape = serde_json::to_value(shape).ok();
                if *known.entry(name.clone()).or_insert_with(|| shape.clone()) != shape {
                    doubled.insert(name);
                }
            }
        }
        assert!(known.len() > 300, "only {} schemas were found", known.len());
        assert!(doubled.is_empty(), "these names have two shapes: {doubled:?}");
    }
}
