//! Threads: made, listed, changed, deleted.

use super::{
    InThread,
    agent_kind::AgentKind,
    agents::kind,
    caller::{Hub, Within},
    folders::allowed,
    schema::{CreatedThread, DeletedThread, NewThread, Options, Thread, ThreadChange, ThreadResponse, Threads},
};
use crate::{
    Context,
    access::{Converse, Read, demand},
    chats::check_model,
    error::Answer,
    extract::{Json, Path, Query, page_length},
    ids::Ids,
};
use axum::extract::State;
use chat::ThreadWithView;
use domain::{AgentOptions, ChatId, Code, Error, Labels, Mode, ThreadAgent};
use identity::Action;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// The longest text of an option, in bytes, and the most options.
const MAX_OPTION: usize = 1024;
const MOST_OPTIONS: usize = 64;

/// A page of threads. Parameters for the name of the client and the workspace may stand beside it.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// At most this many; 1 to 200.
    #[param(default = 200, minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
}

impl Context {
    /// Threads over the chats.
    pub(crate) fn threads(&self) -> chat::Threads {
        chat::Threads::new(self.chats.clone())
    }
}

/// Makes a thread for an agent that is available, in an allowed folder. Nothing starts. One with a coding agent needs the right to approve.
#[utoipa::path(post, path = "/v1/threads", tag = "hub", request_body = NewThread,
    responses((status = 200, description = "It is there.", body = CreatedThread)))]
pub(crate) async fn create_thread(
    State(context): State<Arc<Context>>,
    Hub { client, within }: Hub<Converse>,
    ids: Ids,
    Json(new): Json<NewThread>,
) -> Answer<axum::Json<CreatedThread>> {
    within.settle(&context).await?;
    let NewThread { agent, cwd, title, agent_options, functions } = new;
    let kind = kind(&context, within.workspace, within.files.clone(), &agent, "agent").await?;
    demand_leave(&within, &kind)?;
    let cwd = allowed(&context, &kind, &cwd).await?;
    let title = title.map(checked_title).transpose()?;
    let options = settings(&context, &kind, (&agent, &cwd), agent_options.unwrap_or_default()).await;
    let options = checked_options(&context, &kind, options)?;
    if matches!(kind, AgentKind::Coding) {
        check_told(&context, (&agent, &cwd), &options).await?;
    }
    let thread = ChatId(ids.id("thread"));
    let functions = functions.map_or_else(|| Ok(Vec::new()), |all| protocols::functions::declared(&all))?;
    if matches!(kind, AgentKind::Coding) && !functions.is_empty() {
        return Err(Error::invalid("functions", "a coding agent has tools of its own")
            .hint("leave functions out, or choose a persona")
            .into());
    }
    let agent = ThreadAgent { agent, cwd, options };
    let (labels, client) = (Labels::default(), client.to_string());
    let new = chat::NewThread { agent, functions, title, labels, client };
    context.threads().create(within.workspace, thread, new).await?;
    Ok(axum::Json(CreatedThread { thread_id: thread.0 }))
}

/// The threads, the newest first.
#[utoipa::path(get, path = "/v1/threads", tag = "hub", params(Page),
    responses((status = 200, description = "A page of them.", body = Threads)))]
pub(crate) async fn list_threads(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
    Query(Page { limit, cursor }): Query<Page>,
) -> Answer<axum::Json<Threads>> {
    let limit = page_length(limit, 200, 200)?;
    let threads = context.threads();
    let page = threads.reader().list(within.workspace, limit, cursor).await?;
    let threads = page.threads.into_iter().map(|found| thread_of(&threads, found)).collect();
    Ok(axum::Json(Threads { threads, next_cursor: page.next_cursor }))
}

/// One thread.
#[utoipa::path(get, path = "/v1/threads/{thread_id}", tag = "hub", params(InThread),
    responses((status = 200, description = "The thread.", body = ThreadResponse)))]
pub(crate) async fn get_thread(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
    Path(at): Path<InThread>,
) -> Answer<axum::Json<ThreadResponse>> {
    one(&context, &within, at.thread_id).await
}

/// Changes title and settings. The settings are replaced as a whole: without `sessionId` the next turn begins a new session of a coding agent. Settings that
/// apply to a running turn do not change while there is one (409); `sessionId` alone does. Those of a coding agent need the right to approve.
#[utoipa::path(patch, path = "/v1/threads/{thread_id}", tag = "hub", params(InThread), request_body = ThreadChange,
    responses((status = 200, description = "The thread as it is now.", body = ThreadResponse)))]
pub(crate) async fn change_thread(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Converse>,
    Path(at): Path<InThread>,
    Json(ThreadChange { title, agent_options }): Json<ThreadChange>,
) -> Answer<axum::Json<ThreadResponse>> {
    if title.is_none() && agent_options.is_none() {
        return Err(Error::invalid("body", "there is nothing to change").hint("give a title or agentOptions").into());
    }
    let title = title.map(checked_title).transpose()?;
    change(&context, &within, at.thread_id, title.clone(), agent_options).await?;
    let axum::Json(mut changed) = one(&context, &within, at.thread_id).await?;
    // The chat takes the command in a moment, and its view has the title before until then.
    if let Some(title) = title {
        changed.thread.title = title;
    }
    Ok(axum::Json(changed))
}

/// Deletes a thread with its turns. 409 while a turn is active.
#[utoipa::path(delete, path = "/v1/threads/{thread_id}", tag = "hub", params(InThread),
    responses((status = 200, description = "It is gone.", body = DeletedThread)))]
pub(crate) async fn delete_thread(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Converse>,
    Path(at): Path<InThread>,
) -> Answer<axum::Json<DeletedThread>> {
    context.threads().delete(within.workspace, at.thread_id, &within.by).await?;
    if let Err(error) = context.agents.end(within.workspace, at.thread_id).await {
        tracing::warn!(thread = %at.thread_id, error = %error.with_causes(), "the process of a deleted thread may run until its idle time is over");
    }
    Ok(axum::Json(DeletedThread { thread_id: at.thread_id.0, status: "deleted" }))
}

async fn one<N>(context: &Context, within: &Within<N>, thread: ChatId) -> Answer<axum::Json<ThreadResponse>> {
    let threads = context.threads();
    let found = threads.reader().get(within.workspace, thread).await?;
    Ok(axum::Json(ThreadResponse { thread: thread_of(&threads, found) }))
}

/// Changes a thread; those settings that our own loop has go to its chat.
pub(super) async fn change<N>(
    context: &Context,
    within: &Within<N>,
    thread: ChatId,
    title: Option<String>,
    options: Option<Options>,
) -> Answer<()> {
    let threads = context.threads();
    let may_approve = demand(&within.caller, within.role, Action::Approve).is_ok();
    let (mut options, mut setup) = (options.map(AgentOptions::from), (None, None, may_approve));
    if let Some(wanted) = options.take() {
        let found = threads.reader().get(within.workspace, thread).await?;
        let ThreadAgent { agent, cwd, .. } = &found.record.agent;
        let kind = kind(context, within.workspace, within.files.clone(), agent, "agent").await?;
        demand_leave(within, &kind)?;
        let wanted = settings(context, &kind, (agent, cwd), wanted.into()).await;
        let wanted = checked_options(context, &kind, wanted)?;
        match kind {
            AgentKind::Persona(_) => {
                setup = (wanted.model_id.clone(), wanted.mode.as_deref().map(mode_of), may_approve);
            }
            AgentKind::Coding => check_told(context, (agent, cwd), &wanted).await?,
        }
        // A session that the client was shown and leaves out is one that it does not go on with.
        let left = found.agent().options.session_id.map(|_| String::new());
        options = Some(AgentOptions { session_id: wanted.session_id.clone().or(left), ..wanted });
    }
    threads.change(within.workspace, thread, title, options, setup, &within.by).await?;
    Ok(())
}

/// Refuses a coding agent, and another setting of one, to a caller without the right to approve: it runs commands by its own settings, such as a mode in
/// which it asks nobody.
pub(super) fn demand_leave<N>(within: &Within<N>, kind: &AgentKind) -> Result<(), Error> {
    match kind {
        AgentKind::Persona(_) => Ok(()),
        AgentKind::Coding => demand(&within.caller, within.role, Action::Approve),
    }
}

/// The mode of our own loop; others are refused before.
fn mode_of(mode: &str) -> Mode {
    if mode == "plan" { Mode::Plan } else { Mode::Chat }
}

fn checked_title(title: String) -> Result<String, Error> {
    // Clients send an empty title for a thread that has none.
    let is_empty = title.trim().is_empty();
    if is_empty { Ok(String::new()) } else { crate::chats::checked_title(&title) }
}

/// The settings, of which mode and model may be under the ids that `config-options` has for them: clients give back what they read there. An agent's own
/// option of such an id stays one.
async fn settings(context: &Context, kind: &AgentKind, (agent, cwd): (&str, &str), options: Options) -> Options {
    let own = match kind {
        AgentKind::Persona(_) => Vec::new(),
        AgentKind::Coding => match context.agents.told_offers(agent, cwd).await {
            Some(told) => told.options,
            None => return options,
        },
    };
    let Options { mode, model_id, session_id, mut config_overrides } = options;
    let is_own = |id: &str| own.iter().any(|option| option["id"] == id);
    let mut given = |id: &str| if is_own(id) { None } else { config_overrides.remove(id) };
    let (mode, model_id) = (given("mode").or(mode), given("model").or(model_id));
    Options { mode, model_id, session_id, config_overrides }
}

/// The settings, if they can be: short ones of an agent of its own, and known ones of ours.
fn checked_options(context: &Context, kind: &AgentKind, options: Options) -> Result<AgentOptions, Error> {
    let Options { mode, model_id, session_id, config_overrides } = &options;
    let texts = [mode, model_id, session_id]
        .into_iter()
        .flatten()
        .chain(config_overrides.iter().flat_map(|(id, value)| [id, value]));
    if config_overrides.len() > MOST_OPTIONS || texts.into_iter().any(|text| text.len() > MAX_OPTION) {
        let message = format!("at most {MOST_OPTIONS} options, of {MAX_OPTION} bytes each, can be set");
        return Err(Error::invalid("agentOptions", message));
    }
    if let AgentKind::Persona(_) = kind {
        if mode.as_deref().is_some_and(|mode| mode != "chat" && mode != "plan") {
            return Err(Error::invalid("agentOptions.mode", "there is no such mode").hint("one of: chat, plan"));
        }
        check_model(context, "agentOptions.modelId", model_id.as_deref())?;
        if session_id.is_some() || !config_overrides.is_empty() {
            let error = Error::new(Code::InvalidArgument, "a persona keeps no sessions or options of its own");
            return Err(error.detail("field", "agentOptions").hint("give mode and modelId alone"));
        }
    }
    Ok(options.into())
}

/// Checks the options that a thread of a coding agent wants, where the agent has told its own. Else its first start checks them, and the turn tells.
async fn check_told(context: &Context, (agent, cwd): (&str, &str), wanted: &AgentOptions) -> Result<(), Error> {
    let Some(told) = context.agents.told_offers(agent, cwd).await else { return Ok(()) };
    let mut wanted = wanted.clone();
    // The values of an option may depend on the model, or on another option.
    if wanted.model_id.is_some() || wanted.config_overrides.len() > 1 {
        wanted.config_overrides.clear();
    }
    told.check(&wanted).map_err(|unoffered| {
        Error::new(Code::Unprocessable, unoffered.to_string())
            .detail("field", format!("agentOptions.{}", unoffered.option))
            .hint(unoffered.hint())
    })
}

fn thread_of(threads: &chat::Threads, found: ThreadWithView) -> Thread {
    let has_active_session = threads.is_active(&found);
    let (title, updated_at) = (found.title().to_owned(), found.updated_at().to_string());
    let compaction = found.view.as_ref().and_then(|view| view.compaction.as_ref());
    let summary = compaction.map(|compaction| compaction.summary.clone()).unwrap_or_default();
    let (record, agent) = (&found.record, found.agent());
    Thread {
        thread_id: record.thread.0,
        agent: agent.agent,
        cwd: agent.cwd,
        title,
        agent_options: agent.options.into(),
        summary,
        has_active_session,
        created_at: record.created_at.to_string(),
        updated_at,
    }
}
