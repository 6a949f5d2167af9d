//! Chats: made, listed, read, set up and removed. Messages and commands to them are in [`crate::turns`].

use crate::{
    Context,
    access::{Access, Converse, Read, demand, leader_rights},
    error::{Answer, excerpt},
    extract::{ByLabel, Json, Labelled, Query, TraceParent, Traced, page_length},
    ids::Ids,
    prompts::spoken,
    rate_limits::Paced,
    schema,
    workspaces::{InWorkspace, Paging},
};
use axum::{extract::State, response::IntoResponse};
use chat::HistoryPage;
use domain::{
    AgentOptions, ChatId, ChatView, ClientFunction, Code, CommandId, Error, FileId, LabelChanges, Labels, Limits,
    Message, Mode, ModelSettings, Scenario, ThreadAgent, TurnId, WorkspaceId,
};
use http::StatusCode;
use identity::Action;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};
use utoipa::{IntoParams, ToSchema};

/// The longest title, in characters.
const MAX_TITLE: usize = 200;
/// The longest name of a model, in characters.
const MAX_MODEL: usize = 200;
/// The most models that a refusal names.
const MOST_NAMED: usize = 20;

/// The chat of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct InChat {
    /// The workspace.
    #[param(value_type = Uuid)]
    pub workspace_id: WorkspaceId,
    /// The chat.
    #[param(value_type = Uuid)]
    pub chat_id: ChatId,
}

/// A chat to make.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewChat {
    /// The goal: the first message, at most 200 KiB of UTF-8. `topic` is another name of it.
    #[schema(
        min_length = 1,
        max_length = 204_800,
        example = "Compare the reports in /data and write a summary to /projects/summary.md"
    )]
    #[serde(alias = "topic")]
    goal: String,
    /// How the chat works; without it as a conversation.
    #[serde(default)]
    #[schema(value_type = schema::Scenario)]
    scenario: Scenario,
    /// The personas of the team, one for each of its agents, for `parallel_agents` and `co_work`; three of the box when none.
    #[schema(max_items = 8, example = json!(["builder", "researcher", "reviewer"]))]
    agents: Option<Vec<String>>,
    /// Files to attach, by id.
    #[serde(default)]
    #[schema(value_type = Vec<Uuid>)]
    files: Vec<FileId>,
    /// The persona, a folder in `/system/agents` or in `personas` of the caller's home; `assistant` when none. With `plan_then_execute` the one that carries the plan out,
    /// `builder` when none.
    role: Option<String>,
    /// The model, of `GET /api/v1/models`; the default one when none.
    model: Option<String>,
    /// The settings of the model; one that is left out is that of the persona, else the provider's. Not for a coding agent.
    #[schema(value_type = Option<schema::ModelSettings>)]
    model_settings: Option<ModelSettings>,
    /// The mode of the agent; `chat` when none. Only for `chat_mode` and `autonomous`: the other scenarios have modes of their own.
    #[schema(value_type = Option<schema::Mode>)]
    mode: Option<Mode>,
    /// The limits of each turn; a limit that is left out has its default.
    #[schema(value_type = Option<schema::Limits>)]
    limits: Option<Limits>,
    /// The plan that it works on, a Markdown checklist.
    #[schema(value_type = Option<Uuid>)]
    plan_id: Option<FileId>,
    /// The version of that plan that is approved: needed for `build` mode, and only for that.
    #[schema(minimum = 1)]
    plan_v: Option<u64>,
    /// The coding agent that performs its turns, of `GET /api/v1/agents`; none for the agents of the system. Needs the right to approve.
    #[schema(example = "codex")]
    agent: Option<String>,
    /// The folder in which that agent works: an absolute path on the machine of the hub.
    #[schema(example = "/srv/app")]
    cwd: Option<String>,
    /// Functions that the client runs itself: at most 64, each with `name`, `description`, `parameters` (JSON Schema) and `effects`. Before a call of one
    /// with the effects `write`, `execute` or `mcp` a person is asked; `read` and `own` are not asked about. The stream tells a call as `call_handed_out`.
    /// The client takes it and answers it: `POST …/chats/{chat_id}/calls/{call_id}`. Not for a coding agent, and not for a team.
    #[schema(value_type = Option<Vec<Object>>)]
    functions: Option<Value>,
    /// Labels to find it by: at most 16 pairs of text, with keys of at most 64 characters and values of at most 512. No agent reads them.
    #[serde(default, deserialize_with = "crate::extract::or_default")]
    #[schema(value_type = Option<BTreeMap<String, String>>, example = json!({ "customer": "c-17" }))]
    labels: BTreeMap<String, String>,
}

/// A chat that was made.
#[derive(Serialize, ToSchema)]
pub(crate) struct AcceptedChat {
    /// The chat.
    #[schema(value_type = Uuid)]
    chat_id: ChatId,
    /// Its plan; none before there is one.
    #[schema(value_type = Option<Uuid>)]
    plan_id: Option<FileId>,
    /// Always `queued`.
    status: &'static str,
    /// Its first turn.
    #[schema(value_type = Uuid)]
    turn_id: TurnId,
}

/// Changes of a chat's setup; at least one field.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatChanges {
    /// A new title: 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    title: Option<String>,
    /// Another model.
    model: Option<String>,
    /// Other settings of the model, in the place of all that the chat has: one that is left out is the provider's from then on. Not for a coding agent.
    #[schema(value_type = Option<schema::ModelSettings>)]
    model_settings: Option<ModelSettings>,
    /// Another mode. One that lets the agent do more than the present one needs the right to approve; `build` begins with
    /// `POST …/approve` instead.
    #[schema(value_type = Option<schema::Mode>)]
    mode: Option<Mode>,
    /// Labels to set; null removes the label of a key. Others stay.
    #[serde(default, deserialize_with = "crate::extract::or_default")]
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>, example = json!({ "customer": "c-17", "ticket": null }))]
    labels: LabelChanges,
}

/// The selected part of a history.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// Only messages after the event with this number.
    #[serde(default, deserialize_with = "crate::extract::some_number")]
    #[param(default = 0, maximum = 9_223_372_036_854_775_807_i64)]
    after: Option<u64>,
    /// Only messages before the event with this number, the last of them: so a long chat opens at its end. The largest number gives the
    /// newest messages. Either this or `after`.
    #[serde(default, deserialize_with = "crate::extract::some_number")]
    #[param(maximum = 9_223_372_036_854_775_807_i64)]
    before: Option<u64>,
    /// At most about this many messages; 1 to 1,000.
    #[param(default = 200, minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

#[derive(Serialize)]
struct WithHistory {
    #[serde(flatten)]
    view: ChatView,
    #[serde(flatten)]
    history: HistoryPage,
}

/// Makes a chat and begins its first turn. When this answers, the command is durable and the chat's file exists. One in `build` mode
/// carries out `plan_v` of `plan_id`, which needs the right to approve; so does a scenario that is given a plan with its `plan_v`.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/chats", tag = "chats", params(InWorkspace, TraceParent),
    request_body = NewChat, responses((status = 202, description = "It is accepted.", body = AcceptedChat)))]
pub(crate) async fn create_chat(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, files: sees, .. }: Access<Converse, InWorkspace>,
    _: Paced,
    ids: Ids,
    Traced(trace): Traced,
    Json(new): Json<NewChat>,
) -> Answer<impl IntoResponse> {
    let (chat, command) = (ChatId(ids.id("chat")), CommandId(ids.id("command")));
    let functions = functions(&new)?;
    let NewChat {
        goal,
        scenario,
        agents,
        files,
        role: persona,
        model,
        model_settings,
        mode,
        limits,
        plan_id,
        plan_v,
        agent,
        cwd,
        labels,
        functions: _,
    } = new;
    let labels = Labels::checked("labels", labels)?;
    check_model(&context, "model", model.as_deref())?;
    let chat::LeaderRights { may_approve, may_not_run } = leader_rights(&caller, role);
    if agent.is_some() {
        demand(&caller, role, Action::Approve)?;
    }
    let thread = thread(&context, agent, cwd).await?;
    let goal = spoken(&context, at.workspace_id, &sees, goal).await?;
    let mut new = chat::NewChat {
        goal,
        files,
        role: persona,
        model,
        model_settings: model_settings.unwrap_or_default(),
        limits,
        plan: plan_id,
        plan_v,
        may_approve,
        may_not_run,
        trace,
        thread,
        functions,
        labels,
        ..chat::NewChat::default()
    };
    chat::set_up(&mut new, scenario, mode, agents)?;
    if new.mode.is_wider_than(Mode::default()) {
        demand(&caller, role, Action::Approve)?;
    }
    let accepted = context.chats.create(at.workspace_id, chat, command, new, &by).await?;
    let made = AcceptedChat { chat_id: accepted.chat_id, plan_id, status: "queued", turn_id: accepted.turn_id };
    Ok((StatusCode::ACCEPTED, axum::Json(made)))
}

/// The chats, the last active first; with `label` those that have these labels.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/chats", tag = "chats", params(InWorkspace, Paging, ByLabel),
    responses((status = 200, description = "A page of them.", body = schema::ChatPage)))]
pub(crate) async fn list_chats(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InWorkspace>,
    Labelled(paging, labels): Labelled<Paging>,
) -> Answer<impl IntoResponse> {
    let (chats, limit) = (context.chats.reader(), paging.limit()?);
    let wanted = |chat: &ChatView| chat.labels.include(&labels);
    Ok(axum::Json(chats.list_wanted(at.workspace_id, limit, paging.cursor, wanted).await?))
}

/// A chat as it is, with its messages. `last_seq` is the cursor to listen on from.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}", tag = "chats", params(InChat, Part),
    responses((status = 200, description = "The chat.", body = schema::ChatWithHistory)))]
pub(crate) async fn get_chat(
    State(context): State<Arc<Context>>,
    Access { at, .. }: Access<Read, InChat>,
    Query(part): Query<Part>,
) -> Answer<impl IntoResponse> {
    // The view first: a turn that ends in between is then still whole in the history.
    let view = context.chats.look(at.workspace_id, at.chat_id).await?;
    let limit = page_length(part.limit, 200, 1000)?;
    let mut history = match (part.after, part.before) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid("before", "there is an after and a before").hint("give one").into());
        }
        (None, Some(before)) => context.chats.history_before(at.workspace_id, at.chat_id, before, limit).await?,
        (after, None) => context.chats.history(at.workspace_id, at.chat_id, after.unwrap_or(0), limit).await?,
    };
    for numbered in &mut history.messages {
        remove_hidden_parts(&mut numbered.message);
    }
    Ok(axum::Json(WithHistory { view, history }))
}

/// The functions of the client of a new chat.
fn functions(new: &NewChat) -> Result<Vec<ClientFunction>, Error> {
    let functions = new.functions.as_ref().map_or_else(|| Ok(Vec::new()), protocols::functions::declared)?;
    let refused = |message: &str, hint: &str| Err(Error::invalid("functions", message).hint(hint));
    match new.scenario {
        _ if functions.is_empty() => Ok(functions),
        _ if new.agent.is_some() => {
            refused("a coding agent has tools of its own", "leave functions out, or choose a persona by role")
        }
        Scenario::ParallelAgents | Scenario::CoWork => refused(
            "a team has several chats, and functions are of one",
            "leave functions out, or choose another scenario",
        ),
        Scenario::ChatMode | Scenario::PlanThenExecute | Scenario::Autonomous => Ok(functions),
    }
}

/// The coding agent of a new chat, in a folder that it may work in.
async fn thread(context: &Context, agent: Option<String>, cwd: Option<String>) -> Result<Option<ThreadAgent>, Error> {
    let (agent, cwd) = match (agent, cwd) {
        (Some(agent), Some(cwd)) => (agent, cwd),
        (None, None) => return Ok(None),
        (Some(_), None) => {
            return Err(Error::invalid("cwd", "an agent works in a folder, and none is named")
                .hint("name it by cwd; GET /api/v1/agents lists the allowed roots"));
        }
        (None, Some(_)) => {
            return Err(Error::invalid("agent", "a folder is for a coding agent, and none is named")
                .hint("name it by agent, or leave cwd out"));
        }
    };
    let all = context.agents.list().await;
    let Some(info) = all.iter().find(|info| info.id == agent) else {
        let known: Vec<&str> = all.iter().map(|info| info.id.as_str()).collect();
        let hint = match known.is_empty() {
            true => "no coding agents run here".to_owned(),
            false => format!("one of: {}", known.join(", ")),
        };
        return Err(Error::invalid("agent", format!("{:?} is no coding agent here", excerpt(&agent))).hint(hint));
    };
    if let Some(why) = &info.unavailable {
        let error = Error::new(Code::Unprocessable, format!("{} cannot be started: {why}", info.name));
        return Err(match &info.install {
            Some(install) => error.hint(format!("install it: {install}")),
            None => error.hint("GET /api/v1/agents lists those that can be started here"),
        });
    }
    let cwd = context.agents.allowed(&cwd).await.map_err(|error| {
        Error::invalid("cwd", error.to_string())
            .hint("GET /api/v1/agents lists the allowed roots; [hub] allowed_roots has more")
    })?;
    Ok(Some(ThreadAgent { agent, cwd, options: AgentOptions::default() }))
}

/// Refuses, for this field, a name that no model has here, with the models that can be asked now as hint. Whether a provider has the model, the
/// provider says when it is asked.
pub(crate) fn check_model(context: &Context, field: &str, model: Option<&str>) -> Result<(), Error> {
    let Some(model) = model else { return Ok(()) };
    if model.chars().count() > MAX_MODEL {
        return Err(Error::invalid(field, format!("the name of a model has at most {MAX_MODEL} characters")));
    }
    if (context.knows_model)(model) {
        return Ok(());
    }
    let available = context.models.iter().filter(|model| model.available).map(|model| model.id.as_str());
    let known = available.take(MOST_NAMED).collect::<Vec<_>>().join(", ");
    Err(Error::invalid(field, format!("there is no model {model:?} here")).hint(format!(
        "one of: {known}; GET /api/v1/models lists all, and other models of a provider are named provider/model"
    )))
}

/// Removes parts that only models read: copies of attached files, and state that a provider wants back.
fn remove_hidden_parts(message: &mut Message) {
    match message {
        Message::User { context, .. } => context.clear(),
        Message::Assistant { provider, .. } => *provider = Value::Null,
        Message::Tool { .. } | Message::System { .. } => {}
    }
}

/// Changes title, model, settings of the model, mode or labels. A turn that runs goes on as it began until it waits or ends; from then on the change counts. `FORBIDDEN` for a mode that lets the agent do more, without the right to approve.
#[utoipa::path(patch, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}", tag = "chats", params(InChat),
    request_body = ChatChanges, responses((status = 202, description = "It is accepted.", body = schema::Accepted)))]
pub(crate) async fn configure_chat(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, .. }: Access<Converse, InChat>,
    Json(setup): Json<ChatChanges>,
) -> Answer<impl IntoResponse> {
    let ChatChanges { title, model, model_settings, mode, labels } = setup;
    if title.is_none() && model.is_none() && model_settings.is_none() && mode.is_none() && labels.is_empty() {
        return Err(Error::invalid("body", "there is nothing to change")
            .hint("give a title, a model, model_settings, a mode or labels")
            .into());
    }
    let title = title.as_deref().map(checked_title).transpose()?;
    check_model(&context, "model", model.as_deref())?;
    let may_approve = demand(&caller, role, Action::Approve).is_ok();
    let setup = chat::Setup { title, model, model_settings, mode, may_approve, labels, ..chat::Setup::default() };
    context.chats.configure(at.workspace_id, at.chat_id, setup, &by).await?;
    Ok(schema::Accepted::of(at.chat_id))
}

/// A title without white space around it.
pub(crate) fn checked_title(title: &str) -> Result<String, Error> {
    domain::checked_name("title", title, MAX_TITLE)
}

/// Takes a chat off the list and puts its file into the trash. Its running turn is stopped, and waiting messages never begin a turn.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace_id}/chats/{chat_id}", tag = "chats", params(InChat),
    responses((status = 204, description = "It is gone.")))]
pub(crate) async fn delete_chat(
    State(context): State<Arc<Context>>,
    Access { at, by, .. }: Access<Converse, InChat>,
) -> Answer<impl IntoResponse> {
    context.chats.delete(at.workspace_id, at.chat_id, &by).await?;
    Ok(StatusCode::NO_CONTENT)
}
