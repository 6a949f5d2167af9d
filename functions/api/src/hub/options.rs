//! The options of a thread's agent, and its slash commands.

use super::{
    InThread,
    agent_kind::AgentKind,
    agents::{kind, offers, our_models},
    caller::{Hub, Within},
    schema::{Choice, Command, Commands, ConfigOptions, Options},
    threads::{change, demand_leave},
};
use crate::{
    Context,
    access::{Converse, Read},
    error::Answer,
    extract::{Json, Path},
};
use axum::extract::State;
use chat::ThreadWithView;
use domain::{AgentOptions, ChatId, Error};
use ports::AgentOffers;
use serde_json::{Value, json};
use std::sync::Arc;

/// The ids of the options that our own loop has, and of those that ACP knows by other names.
const MODEL: &str = "model";
const MODE: &str = "mode";

/// The options of the thread's agent, each with its value. A coding agent is asked, in a process that may be started for this alone. Without the right to converse one sees those
/// that it has told in the last hour.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/config-options", tag = "hub", params(InThread),
    responses((status = 200, description = "All of them.", body = ConfigOptions)))]
pub(crate) async fn get_config_options(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
    Path(at): Path<InThread>,
) -> Answer<axum::Json<ConfigOptions>> {
    Ok(axum::Json(options_of(&context, &within, at.thread_id).await?))
}

/// Chooses a value of an option. 409 while a turn is active. An option of a coding agent needs the right to approve.
#[utoipa::path(post, path = "/v1/threads/{thread_id}/config-options", tag = "hub", params(InThread), request_body = Choice,
    responses((status = 200, description = "The options as they are now.", body = ConfigOptions)))]
pub(crate) async fn set_config_option(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Converse>,
    Path(at): Path<InThread>,
    Json(Choice { config_id, value }): Json<Choice>,
) -> Answer<axum::Json<ConfigOptions>> {
    let found = context.threads().reader().get(within.workspace, at.thread_id).await?;
    let kind = kind(&context, within.workspace, within.files.clone(), &found.record.agent.agent, "agent").await?;
    let agent = found.agent();
    demand_leave(&within, &kind)?;
    let (mut overrides, chosen) = (false, value.clone());
    if matches!(kind, AgentKind::Coding) {
        let offers = offers(&context, &within, &agent.agent, &agent.cwd).await?;
        overrides = has_id(&offers.options, &config_id);
        offers_value(&of_agent(offers, &agent.options), &config_id, &value)?;
    }
    let mut options: Options = agent.options.into();
    match config_id.as_str() {
        _ if overrides => {
            // The agent's own option is the one that counts.
            match config_id.as_str() {
                MODEL => options.model_id = None,
                MODE => options.mode = None,
                _ => {}
            }
            options.config_overrides.insert(config_id.clone(), value);
        }
        MODEL => options.model_id = Some(value),
        MODE => options.mode = Some(value),
        _ => return Err(Error::invalid("configId", "there is no such option").hint("one of: model, mode").into()),
    }
    change(&context, &within, at.thread_id, None, Some(options)).await?;
    let mut options = options_of(&context, &within, at.thread_id).await?;
    // The chat takes the command in a moment, and its view has the value before until then.
    if let Some(option) = options.config_options.iter_mut().find(|option| option["id"] == config_id.as_str()) {
        option["currentValue"] = json!(chosen);
    }
    Ok(axum::Json(options))
}

async fn options_of<N>(context: &Context, within: &Within<N>, thread: ChatId) -> Answer<ConfigOptions> {
    let found = context.threads().reader().get(within.workspace, thread).await?;
    let agent = found.agent();
    let config_options = match kind(context, within.workspace, within.files.clone(), &agent.agent, "agent").await? {
        AgentKind::Persona(_) => ours(context, &found),
        AgentKind::Coding => of_agent(offers(context, within, &agent.agent, &agent.cwd).await?, &agent.options),
    };
    Ok(ConfigOptions { thread_id: thread.0, config_options })
}

fn has_id(options: &[Value], id: &str) -> bool {
    options.iter().any(|option| option["id"] == id)
}

/// The options of a coding agent. One that has an option for its model or its mode has no other one for it.
fn of_agent(offers: AgentOffers, chosen: &AgentOptions) -> Vec<Value> {
    let mut options = Vec::new();
    let made = [
        (MODEL, "Model", chosen.model_id.clone().or(offers.model), &offers.models),
        (MODE, "Mode", chosen.mode.clone().or(offers.mode), &offers.modes),
    ];
    for (id, name, current, values) in made {
        if !values.is_empty() && !has_id(&offers.options, id) {
            options.push(select(id, name, current, values));
        }
    }
    options.extend(offers.options.into_iter().map(|mut option| {
        let id = option.get("id").and_then(Value::as_str).unwrap_or_default();
        let value = chosen.config_overrides.get(id).cloned().or_else(|| match id {
            MODEL => chosen.model_id.clone(),
            MODE => chosen.mode.clone(),
            _ => None,
        });
        if let Some(value) = value {
            option["currentValue"] = json!(value);
        }
        option
    }));
    options
}

/// Refuses an option, or a value of it, that an agent does not offer.
fn offers_value(options: &[Value], id: &str, value: &str) -> Result<(), Error> {
    ports::offered(options, id, value).map_err(|unoffered| {
        let (field, message) = match unoffered.is_option {
            true => ("value", "this option has no such value"),
            false => ("configId", "there is no such option"),
        };
        Error::invalid(field, message).hint(unoffered.hint())
    })
}

/// The options of a persona.
fn ours(context: &Context, found: &ThreadWithView) -> Vec<Value> {
    let chosen = &found.record.agent.options;
    let model = found.view.as_ref().and_then(|view| view.model.clone()).or_else(|| chosen.model_id.clone());
    let default = || context.models.iter().find(|model| model.default).map(|model| model.id.clone());
    let modes = [json!({ "id": "chat", "name": "Chat" }), json!({ "id": "plan", "name": "Plan" })];
    let mode = match &found.view {
        Some(view) => serde_json::to_value(view.mode).ok().and_then(|mode| mode.as_str().map(String::from)),
        None => chosen.mode.clone(),
    };
    vec![
        select(MODEL, "Model", model.or_else(default), &our_models(context)),
        select(MODE, "Mode", mode.or_else(|| Some("chat".into())), &modes),
    ]
}

/// An option with one of several values, each with `id` and `name`.
fn select(id: &str, name: &str, current: Option<String>, values: &[Value]) -> Value {
    let value = |value: &Value| json!({ "value": value["id"], "name": value.get("name").unwrap_or(&value["id"]) });
    json!({
        "id": id, "category": id, "name": name, "type": "select", "currentValue": current.unwrap_or_default(),
        "options": values.iter().map(value).collect::<Vec<_>>(),
    })
}

/// The slash commands of the thread's agent: those that a coding agent has announced, which are none before its first turn; for a persona the prompts of the
/// workspace's MCP servers.
#[utoipa::path(get, path = "/v1/threads/{thread_id}/slash-commands", tag = "hub", params(InThread),
    responses((status = 200, description = "All of them.", body = Commands)))]
pub(crate) async fn list_slash_commands(
    State(context): State<Arc<Context>>,
    Hub { within, .. }: Hub<Read>,
    Path(at): Path<InThread>,
) -> Answer<axum::Json<Commands>> {
    let agent = context.threads().reader().get(within.workspace, at.thread_id).await?.record.agent.agent;
    let announced = context.agents.commands(within.workspace, at.thread_id).await;
    let announced = announced.into_iter().map(|command| Command {
        name: command.name,
        description: command.description,
        input_hint: command.input_hint,
    });
    let mut commands: Vec<Command> = announced.collect();
    // An agent that is not available any more has none.
    if let Ok(AgentKind::Persona(_)) = kind(&context, within.workspace, within.files.clone(), &agent, "agent").await {
        let workspace = context.base.workspaces.open(within.workspace, within.files).await?;
        let prompts = context.tools.prompts(&workspace).await;
        commands.extend(prompts.into_iter().map(|(name, about)| Command {
            name,
            description: Some(about),
            input_hint: None,
        }));
    }
    Ok(axum::Json(Commands { thread_id: at.thread_id.0, commands }))
}
