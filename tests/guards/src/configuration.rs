//! Each key of the configuration has a test of its effect.
//!
//! `docs/reference/configuration.md` is written from the types that the configuration is read into, and `scripts/docs --check` holds it to that. A key
//! that is only loaded acts on nothing: its test fails when the key does not reach the part that it is for.

use crate::{
    repository::{none, read, rust_files},
    test_names::test_names,
};
use std::collections::BTreeSet;

/// The folder of a crate, a test of it, and the keys whose effect the test proves.
type Proof = (&'static str, &'static str, &'static [&'static str]);

const PROOFS: [Proof; 25] = [
    ("functions/hub", "a_check_finds_all_that_keeps_a_hub_from_starting", &["server.listen", "server.allow_public"]),
    ("functions/hub", "a_hub_that_others_can_reach_does_not_start_without_a_token", &["server.auth_token"]),
    ("functions/hub", "pages_of_the_listed_origins_may_call", &["server.cors_origins"]),
    ("functions/hub", "a_hub_that_ends_in_good_order_checkpoints_its_turns_and_goes_on", &["server.drain_seconds"]),
    (
        "functions/assembly",
        "settings_that_would_open_the_door_are_refused_and_no_secret_is_told",
        &["auth.issuer", "auth.audience", "auth.jwks_url", "auth.secret", "auth.ticket_secret"],
    ),
    ("functions/cloud", "it_can_be_operated", &["auth.metrics_token"]),
    (
        "functions/assembly",
        "clients_are_told_of_an_issuer_that_they_can_ask",
        &["auth.resource", "auth.cli_client_id", "auth.console_client_id", "auth.console_origins", "auth.cli_scopes"],
    ),
    (
        "functions/assembly",
        "a_door_is_as_open_as_it_is_configured",
        &["auth.requests_per_minute", "auth.tokens_per_minute"],
    ),
    (
        "functions/assembly",
        "each_key_of_chats_tasks_and_files_reaches_its_setting",
        &[
            "ai.actor_inactivity_timeout_seconds",
            "ai.context_cache_seconds",
            "ai.context_tokens",
            "ai.question_timeout_seconds",
            "ai.permission_timeout_seconds",
            "ai.limits.max_steps",
            "ai.limits.max_tokens",
            "ai.limits.max_wall_ms",
            "ai.limits.max_cost_usd",
            "tasks.max_waiting",
            "tasks.handoff_depth",
            "tasks.handoffs_per_minute",
            "files.trash_days",
            "files.scrub_days",
            "files.convert",
        ],
    ),
    (
        "functions/assembly",
        "each_key_of_the_planner_reaches_its_sessions",
        &[
            "planner.context_tokens",
            "planner.conversation_tokens",
            "planner.location_tokens",
            "planner.profile_tokens",
            "planner.task_tokens",
            "planner.data_tokens",
            "planner.result_tokens",
            "planner.tools_tokens",
            "planner.executor_tools_tokens",
            "planner.executors_at_once",
            "planner.executor_calls",
            "planner.executor_retries",
            "planner.executor_seconds",
            "planner.executor_tokens",
        ],
    ),
    (
        "functions/assembly",
        "messages_have_a_pace_unless_somebody_says_no",
        &["planner.requests_per_minute", "planner.tokens_per_minute"],
    ),
    (
        "functions/assembly",
        "each_key_of_models_reaches_their_providers",
        &[
            "ai.model",
            "ai.reasoning",
            "ai.max_output_tokens",
            "ai.script",
            "ai.PROVIDER.api_key",
            "ai.PROVIDER.base_url",
            "ai.PROVIDER.api",
            "ai.PROVIDER.models",
            "ai.PROVIDER.media",
            "ai.PROVIDER.region",
            "ai.prices.NAME.input",
            "ai.prices.NAME.output",
            "ai.prices.NAME.cached",
            "ai.prices.NAME.cache_write",
            "ai.retry.attempts",
            "ai.retry.base_ms",
            "ai.retry.cap_ms",
            "ai.retry.retry_after_cap_ms",
            "ai.retry.first_ms",
            "ai.retry.stall_ms",
        ],
    ),
    (
        "functions/assembly",
        "each_key_of_traces_webhooks_and_searches_reaches_its_adapter",
        &[
            "telemetry.otlp_endpoint",
            "telemetry.otlp_headers_secret",
            "telemetry.service_name",
            "telemetry.content",
            "webhooks.retry_seconds",
            "search.embedding_model",
            "search.embedding_dimensions",
        ],
    ),
    ("functions/assembly", "a_weak_key_is_refused_and_none_means_no_webhooks", &["webhooks.secret"]),
    ("functions/hub", "a_webhook_is_made_tried_and_removed", &["webhooks.allow_private"]),
    (
        "functions/hub",
        "s10_6_s10_11_an_agent_is_served_by_the_provider_and_key_that_its_flow_names",
        &["providers.allow_private"],
    ),
    (
        "functions/hub",
        "s10_6_a_provider_in_a_private_network_is_refused_unless_allowed",
        &["grants.names", "grants.workspaces", "grants.hosts"],
    ),
    (
        "functions/assembly",
        "commands_run_unless_somebody_says_no",
        &["sandbox.commands", "sandbox.network", "sandbox.timeout_s", "sandbox.longest_s", "sandbox.start_timeout_s"],
    ),
    ("functions/hub", "commands_cannot_read_the_configuration_file", &["sandbox.allow_private", "sandbox.readable"]),
    ("functions/assembly", "a_model_is_taken_by_its_name_and_none_is_needed", &["documents.description_model"]),
    (
        "functions/hub",
        "each_key_of_the_hub_reaches_its_agents",
        &["hub.allowed_roots", "hub.agent_idle_seconds", "hub.agent_start_seconds", "hub.max_active"],
    ),
    (
        "functions/assembly",
        "each_key_of_an_agent_reaches_its_process",
        &[
            "agents.NAME.name",
            "agents.NAME.command",
            "agents.NAME.args",
            "agents.NAME.env",
            "agents.NAME.auth",
            "agents.NAME.confined",
            "agents.NAME.readable",
            "agents.NAME.writable",
        ],
    ),
    (
        "shared/mcp",
        "each_key_of_a_server_reaches_its_connection",
        &[
            "mcp.NAME.command",
            "mcp.NAME.args",
            "mcp.NAME.env",
            "mcp.NAME.cwd",
            "mcp.NAME.confined",
            "mcp.NAME.network",
            "mcp.NAME.url",
            "mcp.NAME.headers",
            "mcp.NAME.allow_private",
            "mcp.NAME.timeout_s",
            "mcp.NAME.oauth.client_id",
            "mcp.NAME.oauth.client_secret",
            "mcp.NAME.oauth.issuer",
            "mcp.NAME.oauth.scope",
        ],
    ),
    ("functions/hub", "an_agent_calls_a_declared_http_tool_when_a_person_lets_it", &["web.allow_private"]),
    (
        "shared/web",
        "searches_of_each_provider_have_one_form",
        &["web.fetch", "web.search.provider", "web.search.url", "web.search.api_key"],
    ),
];

/// Keys whose effect no test here can see, each with the reason.
const UNSEEN: [(&str, &str); 4] = [
    ("server.connections_per_address", "clients of this machine have no bound, and a test has no other machine"),
    ("store.durability", "a power cut alone tells the two apart; the tests of shared/embedded run with both"),
    ("observe.allow_private", "it is handed to the sinks as it is, and s10_5_sinks_in_private_networks proves these"),
    ("calendars.allow_private", "it is handed to the calendars as it is, and their tests prove both values"),
];

/// The keys that the reference lists.
fn documented() -> BTreeSet<String> {
    let page = read("docs/reference/configuration.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    // A row of a key has its type, its default and its description.
    let keys = rows.filter(|(key, rest)| key.contains('.') && rest.matches(" | ").count() >= 2);
    keys.map(|(key, _)| key.to_owned()).collect()
}

/// The text of a test, to the next one.
fn text_of<'a>(files: &'a [(String, String)], test: &str) -> Option<&'a str> {
    let text = files.iter().map(|(_, text)| text.as_str()).find(|text| test_names(text).contains(&test))?;
    let (_, body) = text.split_once(&format!("fn {test}("))?;
    let next = ["#[test]", "#[tokio::test"].iter().filter_map(|attribute| body.find(attribute)).min();
    body.get(..next.unwrap_or(body.len()))
}

#[test]
fn each_key_of_the_configuration_has_a_test_of_its_effect() {
    let documented = documented();
    assert!(documented.len() > 110, "the table of keys is read wrongly: {documented:?}");
    let mut faults = Vec::new();
    let mut proven: Vec<&str> = UNSEEN.iter().map(|(key, _)| *key).collect();
    for (folder, test, keys) in PROOFS {
        proven.extend(keys);
        let files = rust_files(folder);
        let Some(body) = text_of(&files, test) else {
            faults.push(format!("{folder} has no test {test}"));
            continue;
        };
        // A variable names a key in capitals.
        let body = body.to_lowercase();
        let is_unnamed = |key: &&&str| !body.contains(key.rsplit('.').next().unwrap_or_default());
        faults.extend(keys.iter().filter(is_unnamed).map(|key| format!("{folder}: {test} does not name {key}")));
    }
    let once: BTreeSet<String> = proven.iter().map(|key| (*key).to_owned()).collect();
    assert_eq!(once.len(), proven.len(), "a key is listed twice");
    faults.extend(documented.difference(&once).map(|key| format!("{key} has no test of its effect")));
    faults.extend(once.difference(&documented).map(|key| format!("there is no key {key}")));
    none(faults, "each key of docs/reference/configuration.md needs a test in tests/guards/src/configuration.rs");
}
