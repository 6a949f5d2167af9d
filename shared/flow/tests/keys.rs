//! No dead key: every key of every manifest is listed here with a test that shows what it does. The keys come from the schemas of
//! the manifests' types, so a new one has to be given an effect, and a test, before anybody can write it.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// Keys for people: names, descriptions, reasons. They are taken and change nothing of what a flow does.
const PEOPLE: &str = "s8_keys_for_people_are_taken_and_change_nothing";
const VERSION: &str = "s8_keys_that_can_never_act_are_refused_with_their_place";
const LOADS: &str = "s8_a_folder_without_a_fault_loads";
const FAULTS: &str = "s8_every_kind_of_fault_is_said_with_its_place_and_a_hint";
const FIELD: &str = "s8_projects_of_the_field_load_and_say_by_name_what_has_no_effect";
const BOUNDS: &str = "s10_10_the_bounds_of_stores_are_those_of_both_manifests";
const INSPECTOR: &str = "s10_7_tasks_pause_where_inspector_yaml_says";
const ARTIFACTS: &str = "s10_1_rules_say_what_is_kept";
const METRICS: &str = "s10_4_every_key_of_metrics_yaml_acts";
const PROFILE: &str = "s10_9_a_line_is_mapped_as_the_profile_says";
const COMMANDS: &str = "s10_9_a_profile_has_commands_of_its_own";
const TOLD: &str = "s10_9_a_profile_chooses_the_events_shown_and_the_commands";
const HISTORY: &str = "s10_9_the_history_is_private_and_does_not_grow_for_ever";
const PACKAGE: &str = "s10_13_a_package_says_what_changed";
const CASES: &str = "s10_3_cases_are_chosen_by_suite_and_tag";
const RUNS: &str = "s10_3_cases_are_isolated_and_their_results_are_kept";
const HOLDS: &str = "s10_3_assertions_that_hold";
const BIND: &str = "s10_6_providers_are_bound_to_adapters_and_keys_before_anything_runs";
const RECORDS: &str = "s10_2_every_run_keeps_the_hashes_of_what_it_was_made_with";
const ROUTES: &str = "a_failure_of_a_linear_node_goes_along_the_edge_that_names_it_once_no_retry_is_left";
const BUDGET: &str = "s10_12_the_budget_of_a_task_is_that_of_execution_yaml_and_a_request_may_name_another";
const SETTINGS: &str = "the_settings_of_an_agent_are_those_of_its_conversation";
const AUTH: &str = "the_auth_of_a_credential_names_the_place_of_its_key";
const BUTTONS: &str = "a_question_is_asked_with_its_buttons";
const REMEMBERS: &str = "answers_of_agents_and_people_are_remembered_before_the_next_node_begins";
const TOOL_ROOT: &str = "s5_a_command_tool_needs_its_permission_and_reads_nothing_beyond_its_root";
const AGENT_TOOLS: &str = "s5_an_agent_calls_the_tools_of_its_node_by_their_ids_functions_among_them";
const SINKS: &str = "s10_6_sinks_are_validated_when_a_flow_is_loaded";

/// Type, keys, test.
const KEYS: &[(&str, &str, &str)] = &[
    ("NodeManifest", "on_error", ROUTES),
    ("ErrorRouteManifest", "on to", ROUTES),
    ("AskManifest", "default", "a_default_answer_counts_when_nobody_answers_in_time"),
    ("Agents", "version", VERSION),
    ("Agents", "agents", LOADS),
    ("AgentManifest", "id", LOADS),
    ("AgentManifest", "name description kind", PEOPLE),
    (
        "AgentManifest",
        "llm persona",
        "s5_a_persona_bounds_the_tools_of_its_agent_and_names_the_model_where_the_flow_names_none",
    ),
    ("AgentManifest", "system", "an_agent_is_asked_and_its_answer_is_the_output"),
    ("AgentManifest", "config limits", SETTINGS),
    ("AgentManifest", "schema_out", "s3_2_an_answer_that_does_not_fit_goes_back_twice_then_the_node_fails"),
    ("AgentConfig", "temperature max_tokens", "a_request_says_how_warm_and_only_narrows_the_length"),
    ("AgentConfig", "top_p", "every_format_says_from_which_part_of_the_likeliest_tokens_to_choose"),
    ("AgentConfig", "timeout system_prompt", SETTINGS),
    ("AgentConfig", "retry_on_failure max_retries", FIELD),
    ("AgentLimits", "max_steps max_tokens max_cost_usd", SETTINGS),
    ("AgentLimits", "max_seconds", "s8_limits_of_agents_are_those_of_their_conversations"),
    ("Tools", "version", VERSION),
    ("Tools", "tools", LOADS),
    ("ToolManifest", "id entrypoint", AGENT_TOOLS),
    ("ToolManifest", "command permissions", TOOL_ROOT),
    ("ToolManifest", "name type", PEOPLE),
    ("ToolManifest", "description", "s5_an_agent_has_the_tools_that_its_node_lists_and_no_others"),
    ("ToolPermissions", "root", TOOL_ROOT),
    ("ToolPermissions", "allow_network", "s5_a_tool_that_reaches_the_network_needs_its_permission"),
    ("ToolPermissions", "allow_shell", "s5_commands_need_their_permission"),
    ("Policies", "version", VERSION),
    ("Policies", "rules", "s10_5_the_first_rule_that_matches_decides_and_none_permits"),
    ("PolicyManifest", "id target allow reason", "s10_5_the_first_rule_that_matches_decides_and_none_permits"),
    ("PolicyManifest", "names nodes", "s10_5_a_rule_without_names_or_nodes_is_about_all_of_its_kind"),
    ("Execution", "version", VERSION),
    ("Execution", "max_concurrency", "s10_12_a_flow_executes_so_many_nodes_at_once"),
    ("Execution", "max_queued", "s10_12_a_flow_that_has_enough_to_do_is_refused_with_a_time_to_come_again"),
    ("Execution", "queue_policy", "s10_12_a_task_of_higher_priority_begins_first_unless_the_flow_takes_turns"),
    ("Execution", "providers", "s10_12_a_provider_is_asked_so_many_times_at_once"),
    ("Execution", "budget", BUDGET),
    ("TaskBudgetManifest", "max_tokens max_cost_usd max_seconds", BUDGET),
    ("Inspector", "version", VERSION),
    ("Inspector", "enabled breakpoints stepping", INSPECTOR),
    ("CliProfiles", "version", VERSION),
    ("CliProfiles", "profiles", PROFILE),
    ("CliProfile", "id start input_mappings", PROFILE),
    ("CliProfile", "label description", PEOPLE),
    ("CliProfile", "default_config_dir presentation_rules", FIELD),
    ("CliProfile", "default_workflow_id", "s10_9_a_profile_says_which_flow_it_runs"),
    ("CliProfile", "session_policies", HISTORY),
    ("CliProfile", "telemetry_overlays", TOLD),
    ("CliProfile", "custom_commands", COMMANDS),
    ("SessionPolicies", "persist_history", "s10_9_a_profile_may_leave_no_history_behind"),
    ("SessionPolicies", "max_history_items", HISTORY),
    ("SessionPolicies", "history_file", "a_profile_cannot_choose_the_folder"),
    ("SessionPolicies", "persist_attachments", FIELD),
    ("InputMapping", "attach_files_as_context key start", PROFILE),
    ("TelemetryOverlay", "enabled", "s10_9_a_profile_without_overlays_tells_neither_stages_nor_figures_of_a_run"),
    ("TelemetryOverlay", "level filters", TOLD),
    ("CustomCommand", "name aliases entrypoint start input", COMMANDS),
    ("CustomCommand", "description help", TOLD),
    ("EngineMetadata", "version engine_version", VERSION),
    ("EngineMetadata", "name flow_version authors schema_revisions metadata", RECORDS),
    ("Deployment", "version engine_version", VERSION),
    ("Deployment", "name flow_version layout environment bootstrap fingerprints hash", PACKAGE),
    ("EnvironmentVariable", "name description required", PACKAGE),
    ("Bootstrap", "step run", PACKAGE),
    ("Fingerprint", "path sha256 bytes", PACKAGE),
    ("Evaluations", "version", VERSION),
    ("Evaluations", "suites", CASES),
    ("Suite", "name tags enabled cases", CASES),
    ("Suite", "description", PEOPLE),
    ("Suite", "script", RUNS),
    ("Case", "id tags enabled", CASES),
    ("Case", "description", PEOPLE),
    ("Case", "input script answers files", RUNS),
    ("Case", "start", "s10_3_a_case_begins_at_the_start_that_it_names"),
    ("Case", "timeout_seconds", "s10_3_a_case_is_bounded_and_a_mistake_is_told_at_once"),
    ("Case", "assertions", HOLDS),
    ("Assertion", "type field_path node expected expression schema", HOLDS),
    ("Assertion", "file", "s10_3_blessing_writes_the_golden_files_that_are_compared_with_later"),
    ("Assertion", "message", "s10_3_assertions_that_do_not_hold_say_why"),
    ("MemoryManifest", "version", VERSION),
    ("MemoryManifest", "task_store project_store", "s10_10_the_newest_items_of_a_bounded_store_are_kept_and_given"),
    ("MemoryManifest", "global_store", BOUNDS),
    ("MemoryManifest", "context_profiles", LOADS),
    ("StoreConfig", "type", VERSION),
    ("StoreConfig", "max_items", "s10_10_the_newest_items_of_a_bounded_store_are_kept_and_given"),
    ("StoreConfig", "config", FIELD),
    ("ProfileManifest", "id", LOADS),
    ("ProfileManifest", "name description", PEOPLE),
    ("ProfileManifest", "max_tokens", "s4_the_budget_holds"),
    ("ProfileManifest", "retrieval_policy", "s4_semantic_is_by_words_and_hybrid_takes_both"),
    ("ProfileManifest", "sources", "s4_layers_are_apart_and_so_are_tasks_flows_and_workspaces"),
    ("SourceManifest", "store", "s4_the_budget_holds"),
    ("SourceManifest", "tags", "s4_tags_choose_and_one_item_is_given_once"),
    ("PersistentMemory", "version", VERSION),
    ("PersistentMemory", "stores", BOUNDS),
    ("PersistentStore", "store", BOUNDS),
    ("PersistentStore", "backend", VERSION),
    ("PersistentStore", "retention_days", "s10_10_items_go_when_their_days_are_over"),
    ("PersistentStore", "max_items", "s10_10_the_newest_items_of_a_bounded_store_are_kept_and_given"),
    ("PersistentStore", "config", "s8_config_without_effect_is_noted"),
    ("Metrics", "version enabled metrics", METRICS),
    ("MetricManifest", "name description enabled buckets labels", METRICS),
    ("MetricManifest", "type", FAULTS),
    ("Artifacts", "version", VERSION),
    ("Artifacts", "enabled nodes", ARTIFACTS),
    (
        "Artifacts",
        "outputs tool_results telemetry retention_days",
        "s10_1_rules_leave_out_a_kind_and_let_the_index_forget",
    ),
    ("Plugins", "version", VERSION),
    ("Plugins", "plugins", SINKS),
    ("Plugin", "id type events config", SINKS),
    ("Plugin", "name description", PEOPLE),
    ("Plugin", "enabled", "s6_a_stuck_sink_delays_no_task_and_the_others_are_told_in_order"),
    ("Providers", "version", VERSION),
    ("Providers", "providers", BIND),
    ("ProviderManifest", "id adapter base_url credentials models", BIND),
    ("ProviderManifest", "name description", PEOPLE),
    ("ProviderManifest", "version", "s10_6_all_faults_of_a_configuration_are_told_at_once"),
    ("ProviderManifest", "max_concurrency", LOADS),
    ("ProviderManifest", "config", "the_config_of_a_provider_of_a_flow_acts_and_its_mistakes_are_named"),
    ("Credentials", "version", VERSION),
    ("Credentials", "provider_credentials", BIND),
    ("Credential", "id", BIND),
    ("Credential", "provider config", "s8_config_without_effect_is_noted"),
    ("Credential", "description", PEOPLE),
    ("Credential", "env", "s10_11_references_become_values_only_here_and_values_are_never_shown"),
    ("Credential", "file secret", "s10_11_a_refusal_or_failure_of_the_host_is_an_error"),
    ("Credential", "auth", AUTH),
    ("Auth", "type", PEOPLE),
    ("Auth", "source file_path env_var secret_name", AUTH),
    ("Workflow", "version", VERSION),
    ("Workflow", "on", "a_version_starts_a_flow_once_for_its_author_with_the_file_as_input"),
    ("Workflow", "name metadata", PEOPLE),
    ("Workflow", "description", "s8_a_flow_is_listed_read_and_drawn"),
    ("Workflow", "nodes edges", LOADS),
    ("TriggerPattern", "path status front_matter event", "a_version_starts_a_flow_when_it_fulfils_every_condition"),
    ("NodeManifest", "id role default_start agent_id op", LOADS),
    ("NodeManifest", "prompt", "s10_1_results_of_tools_and_prompts_are_kept_whole_and_history_shows_their_beginning"),
    ("NodeManifest", "context", "s10_8_tasks_that_run_at_once_see_nothing_of_each_other"),
    ("NodeManifest", "ask", BUTTONS),
    ("NodeManifest", "remember", REMEMBERS),
    ("NodeManifest", "name description", PEOPLE),
    ("NodeManifest", "kind", FAULTS),
    ("NodeManifest", "tools", "s5_a_node_calls_only_the_tools_that_it_lists"),
    (
        "NodeManifest",
        "schema_in schema_out",
        "s7_1_a_stage_fails_of_schemas_of_routes_and_of_misused_tools_and_says_so",
    ),
    ("NodeManifest", "continue_on_failure", "s3_5_continue_on_failure_passes_the_input_on_and_makes_the_task_partial"),
    ("NodeManifest", "fail_on_failure", "s3_3_an_exit_that_fails_on_failure_takes_no_task_that_is_partial"),
    ("NodeManifest", "always_fail", "s7_3_an_exit_that_always_fails_overrides_success"),
    ("NodeManifest", "merge", "s3_3_merge_waits_for_all_and_takes_their_outputs_in_order"),
    ("NodeManifest", "split", "s3_3_split_over_a_list_makes_a_subtask_an_element_along_the_edges_in_turn"),
    ("NodeManifest", "timeout_seconds", "s10_12_an_agent_that_does_not_end_in_time_fails_its_node"),
    ("NodeManifest", "retries", "s3_5_a_passing_failure_is_tried_again_as_often_as_the_node_says"),
    ("NodeManifest", "max_concurrency", "s10_12_a_node_is_executed_so_many_times_at_once"),
    ("RetryManifest", "times within_seconds", "retries_end_after_their_number_and_their_time"),
    ("RetryManifest", "on", "a_failure_is_tried_again_where_its_name_is_listed"),
    (
        "RetryManifest",
        "backoff_seconds backoff_rate max_backoff_seconds jitter",
        "waits_grow_to_their_limit_and_half_of_each_is_drawn",
    ),
    ("EdgeManifest", "from to", LOADS),
    ("EdgeManifest", "label", "s3_3_a_decision_goes_along_the_edge_it_selects"),
    ("MergeManifest", "strategy", "s3_3_first_success_takes_the_first_and_stops_the_others"),
    ("MergeManifest", "quorum", "s3_3_quorum_takes_those_that_succeeded_when_they_are_enough"),
    ("MergeManifest", "score", "s3_3_the_best_is_chosen_of_those_that_succeeded_and_the_first_of_equals"),
    ("MergeManifest", "on_failure", "s3_4_a_merge_ignores_includes_or_fails_by_its_configuration"),
    ("MergeManifest", "of", "of_must_be_a_fork_above_every_way"),
    ("SplitManifest", "over", "s3_3_split_over_a_list_makes_a_subtask_an_element_along_the_edges_in_turn"),
    ("SplitManifest", "as max_subtasks", "a_split_names_each_element_and_makes_no_more_subtasks_than_it_may"),
    ("OpSpec", "expr", "s2_2_expressions_see_the_input_the_context_outputs_and_the_task"),
    ("OpSpec", "template", "s2_2_a_template_keeps_types_and_writes_texts"),
    ("OpSpec", "tool", TOOL_ROOT),
    ("OpSpec", "args", "s5_arguments_have_our_names_afterwards"),
    ("OpSpec", "command", "s5_a_command_node_runs_and_says_how_it_ended"),
    ("OpSpec", "keep", "s5_a_command_node_keeps_the_files_that_it_leaves"),
    ("OpSpec", "function", "s2_2_built_in_functions"),
    ("KeepManifest", "from to", "s5_a_command_node_keeps_the_files_that_it_leaves"),
    ("AskManifest", "questions", BUTTONS),
    ("AskManifest", "approve", "an_approval_lets_the_input_pass"),
    ("AskManifest", "timeout_seconds", "a_question_expires_once"),
    ("QuestionManifest", "name schema", "an_answer_that_does_not_fit_is_not_taken_and_the_question_stays"),
    ("QuestionManifest", "question buttons", BUTTONS),
    ("RememberManifest", "store key", REMEMBERS),
    ("RememberManifest", "tags", "s4_tags_choose_and_one_item_is_given_once"),
];

/// The keys of all manifests, by type.
fn keys() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for schema in buildscale_flow::manifest::schemas().values() {
        let title = schema["title"].as_str().unwrap().to_owned();
        let defined = schema["$defs"].as_object().into_iter().flatten();
        for (name, schema) in defined.map(|(name, schema)| (name.clone(), schema)).chain([(title, schema)]) {
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let keys: BTreeSet<String> = properties.map(|(key, _)| key.clone()).collect();
            if !keys.is_empty() {
                found.entry(name).or_default().extend(keys);
            }
        }
    }
    found
}

/// The names of all functions in the sources of the workspace.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().unwrap().is_dir() && name != "target" && !name.starts_with('.') {
            functions(&path, found);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('(')).map(|(name, _)| name);
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_key_of_every_manifest_has_a_test_of_its_effect() {
    let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (of, keys, _) in KEYS {
        listed.entry((*of).to_owned()).or_default().extend(keys.split(' ').map(str::to_owned));
    }
    let missing: Vec<String> = keys()
        .iter()
        .flat_map(|(of, keys)| keys.iter().map(move |key| (of.clone(), key.clone())))
        .filter(|(of, key)| !listed.get(of).is_some_and(|keys| keys.contains(key)))
        .map(|(of, key)| format!("{of}.{key}"))
        .collect();
    assert!(missing.is_empty(), "say which test shows what these keys do: {missing:?}");
    let gone: Vec<String> = listed
        .iter()
        .flat_map(|(of, listed)| listed.iter().map(move |key| (of.clone(), key.clone())))
        .filter(|(of, key)| !keys().get(of).is_some_and(|keys| keys.contains(key)))
        .map(|(of, key)| format!("{of}.{key}"))
        .collect();
    assert!(gone.is_empty(), "no manifest has these keys: {gone:?}");
    let mut there = BTreeSet::new();
    for folder in ["shared", "functions", "tests"] {
        functions(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder), &mut there);
    }
    let untested: BTreeSet<&str> =
        KEYS.iter().map(|(_, _, test)| *test).filter(|test| !there.contains(*test)).collect();
    assert!(untested.is_empty(), "there are no such tests: {untested:?}");
}
