//! Commands to a chat: messages, stop, answers, decisions, and to go on after a pause.

use crate::{
    Context,
    access::{Access, Approve, Converse, Read, demand, leader_rights},
    chats::InChat,
    error::Answer,
    extract::{Json, Query, TraceParent, Traced},
    ids::Ids,
    prompts::spoken,
    rate_limits::Paced,
    schema,
};
use axum::{extract::State, response::IntoResponse};
use chat::{QueuedBehind, RuleScope};
use domain::{
    ChatId, CommandId, FileId, Limits, OnBusy, PermissionId, PermissionRule, QuestionId, Sha256, TurnId, WorkspaceId,
    event::PermissionOutcome,
};
use http::StatusCode;
use identity::Action;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A message to a chat.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// The words: at most 200 KiB of UTF-8.
    #[schema(min_length = 1, max_length = 204_800, example = "Now do the same for last year")]
    content: String,
    /// Files to attach, by id.
    #[serde(default)]
    #[schema(value_type = Vec<Uuid>)]
    files: Vec<FileId>,
    /// The treatment of a message that comes while a turn runs.
    #[serde(default)]
    #[schema(value_type = schema::OnBusy)]
    on_busy: OnBusy,
    /// With `on_busy: steer` and `rollback`: the turn that is meant. `CONFLICT` when another one runs, or none.
    #[schema(value_type = Option<Uuid>)]
    expected_turn_id: Option<TurnId>,
    /// The limits of this turn.
    #[schema(value_type = Option<schema::Limits>)]
    limits: Option<Limits>,
}

/// The rules of a chat.
#[derive(Serialize, ToSchema)]
pub(crate) struct Rules {
    /// Each with its id, the oldest first.
    permissions: Vec<Rule>,
}

/// A rule by which calls are allowed or denied without a question.
#[derive(Serialize, ToSchema)]
#[schema(as = GrantedRule)]
pub(crate) struct Rule {
    /// Its id: the same for the same rule in every chat.
    #[schema(example = "9f86d081884c7d65")]
    pub(crate) rule_id: String,
    /// `allow` or `deny`. Of two rules that cover a call the one that denies wins.
    pub(crate) effect: &'static str,
    /// The rule in words.
    pub(crate) words: String,
    /// The rule.
    #[schema(value_type = schema::PermissionRule)]
    pub(crate) rule: PermissionRule,
}

impl Rule {
    pub(crate) fn of(rule: PermissionRule) -> Self {
        Self { rule_id: rule.id(), effect: rule.effect(), words: rule.to_string(), rule }
    }
}

/// One rule of a chat.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OneRule {
    /// The rule [default: all of them].
    rule_id: Option<String>,
}

/// A turn that will be.
#[derive(Serialize, ToSchema)]
pub(crate) struct Turn {
    /// The chat.
    #[schema(value_type = Uuid)]
    chat_id: ChatId,
    /// The turn.
    #[schema(value_type = Uuid)]
    turn_id: TurnId,
    /// Always `queued`.
    status: &'static str,
    /// The reason that the message waits; none when it is read at once.
    #[schema(value_type = Option<schema::QueuedBehind>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    queued_behind: Option<QueuedBehind>,
    /// When the message is read, and how to have it read sooner; beside `queued_behind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    /// Why the chat is paused, when it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_reason: Option<String>,
}

impl Turn {
    /// The answer to a message that was accepted.
    fn queued(accepted: chat::Accepted) -> (StatusCode, axum::Json<Self>) {
        let chat::Accepted { chat_id, turn_id, queued_behind, paused_reason } = accepted;
        let hint = queued_behind.map(QueuedBehind::hint);
        let turn = Self { chat_id, turn_id, status: "queued", queued_behind, hint, paused_reason };
        (StatusCode::ACCEPTED, axum::Json(turn))
    }
}

/// A chat that was told to stop.
#[derive(Serialize, ToSchema)]
pub(crate) struct Cancelled {
    /// Always `cancelled`; the `stopped` event tells when it has.
    status: &'static str,
    /// The chat.
    #[schema(value_type = Uuid)]
    chat_id: ChatId,
}

/// Answers to questions of `ask_user`, one by each question's name.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answers {
    /// One value per question, by its name; it fits the question's schema.
    #[schema(value_type = Object, example = json!({ "colour": "blue" }))]
    answers: Map<String, Value>,
}

/// A decision on a permission.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PermissionDecision {
    /// Yes or no.
    #[schema(value_type = schema::PermissionOutcome)]
    outcome: PermissionOutcome,
    /// Grants a rule, too: with `approved` the one that the request offers as `always`, with `declined` the one that denies the same calls.
    /// Calls that it covers are asked about no more in this chat.
    #[serde(default)]
    always: bool,
    /// With `always`: how far the rule goes.
    #[serde(default)]
    #[schema(value_type = schema::RuleScope)]
    scope: RuleScope,
    /// The `digest` of the request that was read. `CONFLICT` when the request shows something else.
    #[schema(value_type = Option<String>)]
    digest: Option<Sha256>,
    /// With `declined`: why, in words that the agent reads; at most 1,000 characters.
    #[schema(min_length = 1, max_length = 1_000, example = "use the staging database")]
    reason: Option<String>,
    /// The option of the coding agent that asks, of the `options` of the request; it has to agree with the outcome. Without it the agent's
    /// own yes or no for this once is chosen.
    option_id: Option<String>,
}

/// The approval of a plan.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovePlanRequest {
    /// The version of the plan that is approved: the one that was read.
    #[schema(minimum = 1, example = 3)]
    v: u64,
    /// The plan; the chat's own by default.
    #[schema(value_type = Option<Uuid>)]
    plan_id: Option<FileId>,
    /// The words with which the agent is told; by default that the plan is approved. At most 200 KiB of UTF-8.
    #[schema(min_length = 1, max_length = 204_800)]
    content: Option<String>,
    /// The limits of the turn that carries it out.
    #[schema(value_type = Option<schema::Limits>)]
    limits: Option<Limits>,
}

/// Options of a resume.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeChatRequest {
    /// Whether to give up the failed turn instead of trying it again.
    #[serde(default)]
    drop: bool,
}

/// The questions of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AtQuestion {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The chat.
    #[param(value_type = Uuid)]
    chat_id: ChatId,
    /// The questions, of the `question` event.
    #[param(value_type = Uuid)]
    question_id: QuestionId,
}

/// The permission of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct AtPermission {
    /// The workspace.
    #[param(value_type = Uuid)]
    workspace_id: WorkspaceId,
    /// The chat.
    #[param(value_type = Uuid)]
    chat_id: ChatId,
    /// The permission, of the `permission_required` event.
    #[param(value_type = Uuid)]
    permission_id: PermissionId,
}

/// Posts a message; its turn begins when the chat is free. When this answers, the command is durable. A chat that is paused tries its
/// failed turn again, and then reads the message. `RATE_LIMITED`, with `Retry-After`, when 50 messages wait in the chat, unless the message steers or
/// interrupts the running turn.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}", tag = "chats", params(InChat, TraceParent),
    request_body = NewMessage, responses((status = 202, description = "It is accepted.", body = Turn)))]
pub(crate) async fn post_message(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, files: sees, .. }: Access<Converse, InChat>,
    _: Paced,
    ids: Ids,
    Traced(trace): Traced,
    Json(message): Json<NewMessage>,
) -> Answer<impl IntoResponse> {
    let NewMessage { content, files, on_busy, expected_turn_id, limits } = message;
    if expected_turn_id.is_some() && !matches!(on_busy, OnBusy::Steer | OnBusy::Rollback) {
        return Err(domain::Error::invalid(
            "expected_turn_id",
            "a turn is expected of words that steer it or take it back",
        )
        .hint("leave it out, or send on_busy steer or rollback")
        .into());
    }
    if on_busy == OnBusy::Rollback {
        demand(&caller, role, Action::Write)?;
    }
    let chat::LeaderRights { may_approve, may_not_run } = leader_rights(&caller, role);
    let content = spoken(&context, at.workspace_id, &sees, content).await?;
    let post = chat::NewMessage {
        content,
        files,
        on_busy,
        expected_turn_id,
        limits,
        may_approve,
        may_not_run,
        trace,
        ..chat::NewMessage::default()
    };
    let accepted = context.chats.post(at.workspace_id, at.chat_id, CommandId(ids.id("command")), post, &by).await?;
    Ok(Turn::queued(accepted))
}

/// Stops the running turn; a running tool ends first, and a message that waits begins the next turn. Of a paused chat, the turn that failed is given
/// up, and the chat goes on. Where no turn runs it changes nothing, with the same answer; `NOT_FOUND` for a chat that has been idle for
/// `ai.actor_inactivity_timeout_seconds`.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/stop", tag = "chats", params(InChat),
    responses((status = 200, description = "It was told to stop.", body = Cancelled)))]
pub(crate) async fn stop_chat(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Converse, InChat>,
    ids: Ids,
) -> Answer<impl IntoResponse> {
    context.chats.stop(at.workspace_id, at.chat_id, CommandId(ids.id("command")), &by).await?;
    Ok(axum::Json(Cancelled { status: "cancelled", chat_id: at.chat_id }))
}

/// Answers the questions that a chat waits for. `CONFLICT` when they are not open.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/answers/{question_id}", tag = "chats",
    params(AtQuestion), request_body = Answers,
    responses((status = 202, description = "They are accepted.", body = schema::Accepted)))]
pub(crate) async fn answer_question(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Converse, AtQuestion>,
    ids: Ids,
    Json(given): Json<Answers>,
) -> Answer<impl IntoResponse> {
    let (command, rights) = (CommandId(ids.id("command")), leader_rights(&caller, role));
    let AtQuestion { workspace_id, chat_id, question_id } = at;
    context.chats.answer(workspace_id, chat_id, command, question_id, given.answers, rights, &by).await?;
    Ok(schema::Accepted::of(at.chat_id))
}

/// Decides on a permission that a chat waits for. `CONFLICT` when it is not open, or shows something else than `digest` says; `NOT_FOUND` when the
/// chat never asked for it. `always` beside
/// `approved` grants the rule that the request offers, for this chat or as far as `scope` says; beside `declined` it denies the same calls from
/// now on; `INVALID_ARGUMENT` when the request offers no rule. `reason` beside `declined` is read by the agent.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions/{permission_id}",
    tag = "chats", params(AtPermission), request_body = PermissionDecision,
    responses((status = 202, description = "It is accepted.", body = schema::Accepted)))]
pub(crate) async fn decide_permission(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Approve, AtPermission>,
    ids: Ids,
    Json(decision): Json<PermissionDecision>,
) -> Answer<impl IntoResponse> {
    let PermissionDecision { outcome, always, scope, digest, reason, option_id } = decision;
    let permission_id = at.permission_id;
    let decision = chat::Decision { permission_id, outcome, always, scope, digest, reason, option_id };
    let command = CommandId(ids.id("command"));
    context.chats.decide(at.workspace_id, at.chat_id, command, decision, &by).await?;
    Ok(schema::Accepted::of(at.chat_id))
}

/// Lists the rules that were granted in a chat with `always`, the oldest first.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions", tag = "chats", params(InChat),
    responses((status = 200, description = "All of them.", body = Rules)))]
pub(crate) async fn list_permissions(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InChat>,
) -> Answer<impl IntoResponse> {
    let view = context.chats.get(at.workspace_id, at.chat_id).await?;
    Ok(axum::Json(Rules { permissions: view.permissions.into_iter().map(Rule::of).collect() }))
}

/// Takes back the rules that were granted in a chat with `always`: the one of `rule_id`, or all of them. A turn that runs keeps them until it
/// ends or waits for a person. All of them again is harmless; a rule that is not there is `NOT_FOUND`.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/permissions", tag = "chats",
    params(InChat, OneRule), responses((status = 202, description = "It is accepted.", body = schema::Accepted)))]
pub(crate) async fn forget_permissions(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Approve, InChat>,
    Query(OneRule { rule_id }): Query<OneRule>,
) -> Answer<impl IntoResponse> {
    context.chats.forget_permissions(at.workspace_id, at.chat_id, rule_id, &by).await?;
    Ok(schema::Accepted::of(at.chat_id))
}

/// Approves a version of a plan: the chat is in `build` mode from then on, and a turn begins that carries the plan out. Commands run
/// unasked while the plan is the approved one, but for the marks of its steps. `NOT_FOUND` when there is no such plan or version,
/// `STALE_VERSION` when the plan has changed since, `UNPROCESSABLE` when it has no steps.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/approve", tag = "chats", params(InChat, TraceParent),
    request_body = ApprovePlanRequest, responses((status = 202, description = "It is accepted.", body = Turn)))]
pub(crate) async fn approve_plan(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Approve, InChat>,
    _: Paced,
    ids: Ids,
    Traced(trace): Traced,
    Json(approval): Json<ApprovePlanRequest>,
) -> Answer<impl IntoResponse> {
    let ApprovePlanRequest { v, plan_id: plan, content, limits } = approval;
    let may_not_run = leader_rights(&caller, role).may_not_run;
    let approve = chat::Approve { plan, v, content, limits, may_not_run, trace };
    let command = CommandId(ids.id("command"));
    Ok(Turn::queued(context.chats.approve(at.workspace_id, at.chat_id, command, approve, &by).await?))
}

/// Goes on with a chat that was paused because a command failed again and again. `CONFLICT` when it is not paused.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}/resume", tag = "chats", params(InChat),
    request_body = ResumeChatRequest, responses((status = 202, description = "It is accepted.", body = schema::Accepted)))]
pub(crate) async fn resume_chat(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Converse, InChat>,
    ids: Ids,
    Json(resume): Json<ResumeChatRequest>,
) -> Answer<impl IntoResponse> {
    context.chats.resume(at.workspace_id, at.chat_id, CommandId(ids.id("command")), resume.drop, &by).await?;
    Ok(schema::Accepted::of(at.chat_id))
}
