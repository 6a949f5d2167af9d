//! The journeys. Each has a workspace of its own, so that all can be made at once in one deployment; those that change or kill their deployment have
//! one to themselves.

mod chats;
mod commands;
mod crowd;
mod deaths;
mod files;
mod front;
mod handoff;
mod hub;
mod limits;
mod models;
mod organizer;
mod people;
mod planner;
mod protocols;
mod reports;
mod rewinds;
mod scenarios;
mod schedules;
mod search;
mod streams;
mod tasks;
mod webhooks;
mod workspaces;

use crate::{Ability, Client, Deployment, Result, Settings, World};
use futures::future::BoxFuture;
use std::sync::Arc;

/// The deployment and the workspace of a journey.
#[derive(Clone)]
pub struct Stage {
    /// The world.
    pub world: World,
    /// The deployment that it shares with others.
    pub shared: Arc<Deployment>,
}

impl Stage {
    /// The client of the person that most of it is about.
    pub fn client(&self) -> Client {
        self.shared.client()
    }

    /// A deployment of its own.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn another(&self, settings: Settings<'_>) -> Result<Deployment> {
        self.world.deploy(settings).await
    }
}

/// Something that people do, from its beginning to its end.
#[derive(Clone, Copy)]
pub struct Journey {
    /// Its name, which is the behaviour.
    pub name: &'static str,
    /// The abilities of a world that it needs.
    pub needs: &'static [Ability],
    run: fn(Stage) -> BoxFuture<'static, Result>,
}

impl Journey {
    /// Makes it.
    pub fn make(&self, stage: Stage) -> BoxFuture<'static, Result> {
        (self.run)(stage)
    }

    /// Whether a world has the abilities that it needs.
    pub fn fits(&self, world: &World) -> bool {
        self.needs.iter().all(|ability| world.can(*ability))
    }
}

macro_rules! journeys {
    ($($module:ident :: $name:ident $needs:expr;)*) => {
        &[$(Journey { name: stringify!($name), needs: &$needs, run: |stage| Box::pin($module::$name(stage)) },)*]
    };
}

/// All of them; those that take longest first.
pub const JOURNEYS: &[Journey] = {
    use Ability::{Counters, Deaths, OneProcess, Others, Script, Secrets, Settings};
    journeys! {
        deaths::deaths_lose_nothing_and_double_nothing [Deaths, Script];
        deaths::a_team_that_is_killed_does_every_step_once [Deaths, Script];
        hub::threads_turns_permissions_and_resumption_over_the_hubs_door [Settings, Script, Deaths, OneProcess];
        chats::a_goal_becomes_files_that_can_be_watched_stopped_and_found_again [];
        chats::commands_right_after_a_post_count [Script];
        chats::several_chats_go_on_at_once [Script];
        chats::an_agent_that_asks_for_permission_waits_for_a_person [Script];
        chats::a_skill_that_one_agent_learnt_is_used_by_a_later_one [Script];
        commands::the_command_line_talks_watches_and_runs_flows [];
        commands::the_command_line_keeps_files_with_their_history [];
        commands::the_command_line_asks_its_person_and_keeps_their_folder [Script];
        commands::the_command_line_answers_and_stops_turns [];
        commands::the_command_line_steers_tasks [];
        commands::the_command_line_works_with_threads_and_keys [Script];
        streams::a_stream_goes_on_wherever_it_was_left [];
        streams::one_connection_sees_turn_after_turn [Script];
        streams::a_ticket_opens_its_stream_and_nothing_else [];
        streams::a_workspace_tells_its_watchers_of_every_change [Script];
        tasks::a_task_takes_its_way_and_tells_it [];
        tasks::a_task_waits_for_a_person_and_is_stopped [];
        tasks::a_task_is_paused_and_stepped [];
        tasks::a_split_becomes_subtasks_that_are_joined [];
        tasks::a_retry_runs_only_failed_nodes [];
        tasks::a_flow_is_evaluated [];
        tasks::an_agent_in_a_flow_is_a_chat [Script];
        tasks::agents_of_subtasks_ask_at_the_top [Script];
        handoff::a_plan_goes_from_hand_to_hand [Script];
        scenarios::a_conversation_runs_its_tools_at_once_and_two_clients_see_it [Script];
        scenarios::a_plan_is_approved_by_a_person_and_carried_out_by_another_persona [Script];
        scenarios::a_team_carries_one_plan_out_and_two_clients_see_it [Script];
        scenarios::an_autonomous_agent_asks_nobody_and_is_caught_up_with [Script];
        scenarios::a_topic_becomes_a_campaign [Script];
        handoff::a_key_that_may_not_run_flows_hands_on_nothing [];
        files::a_file_is_changed_moved_removed_and_found_again [];
        files::long_contents_are_bytes_with_ranges [];
        files::a_long_content_travels_past_the_server [];
        files::a_broken_upload_goes_on_where_it_ended [];
        rewinds::a_turn_a_chat_and_a_folder_go_back_and_forth [Script];
        crowd::two_people_and_three_agents_write_one_folder [Script, Others];
        files::the_tools_of_agents_are_there_for_people [];
        front::workspaces_are_made_renamed_and_removed [];
        front::refusals_come_in_one_envelope [];
        front::it_tells_its_state_and_its_abilities [];
        people::people_invite_each_other_and_see_nothing_else [Others];
        people::keys_open_their_scopes_until_they_are_revoked [];
        protocols::each_protocol_streams_a_turn_or_waits_for_it [Script];
        planner::a_message_is_answered_looked_up_or_planned_and_carried_out [Script];
        planner::a_plan_is_stopped_with_its_executors [Script];
        planner::a_message_without_a_stream_is_answered_in_its_session [Script];
        planner::a_message_while_a_turn_runs_waits_or_is_refused_or_takes_its_place [Script];
        planner::words_that_steer_are_answered_by_the_turn_that_runs [Script];
        webhooks::a_receiver_is_told_the_ends_of_turns_in_order [Settings, Script, Deaths];
        limits::requests_that_put_agents_to_work_are_limited [Settings, Others];
        limits::turns_are_charged_by_their_usage [Settings, Script, Others];
        search::a_file_is_found_by_its_words_and_by_its_meaning [Settings];
        workspaces::a_document_becomes_markdown_that_follows_it [];
        workspaces::a_policy_binds_people_and_agents_until_it_is_gone [Script];
        workspaces::tags_and_links_lead_on_and_travel_with_the_workspace [];
        organizer::projects_tasks_and_calendars_are_files_with_tools [];
        schedules::a_daily_brief_is_written_at_its_time_and_a_tool_is_called_by_itself [Script];
        models::any_openai_compatible_server_is_a_model [Settings];
        models::an_agent_has_the_provider_and_the_key_that_its_flow_names [Settings, Secrets];
        reports::the_operator_alone_sees_the_metrics [Counters];
        reports::work_is_counted [Counters, OneProcess, Script];
    }
};
