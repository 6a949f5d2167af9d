//! The API of OpenAI, `/openai/v1`: requests become commands of chats, and parts of turns become completions and responses by
//! [`protocols::openai`]. Errors are in OpenAI's own envelope.
//!
//! A path of this door names no workspace, as those of the code agent hub.

use crate::{
    Context,
    access::{Converse, Read},
    converse::{MessageInput, NameKind, Reply, Run, Speaker, stop_turn},
    error::{Answer, ApiError, excerpt},
    extract::{JsonWithFiles, Path, Query, TraceParent, Traced},
    hub::Within,
    ids::Ids,
    long_answers::long_answer,
    rate_limits::Paced,
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use domain::{
    AnswerFormat, ChatEvent, ChatId, Code, CommandId, Error, Labels, Message, ModelSettings, OnBusy, Timestamp,
};
use protocols::{
    Projection,
    openai::{self as wire, Completion, Input, Request, ResponseId, StartingAfter},
    task_as_turn,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::IntoParams;

/// The end of a stream of chunks.
const DONE: &str = "data: [DONE]\n\n";

/// The model of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfModel {
    /// The persona, or the flow.
    #[param(example = "assistant")]
    model: String,
}

/// The response of a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct OfResponse {
    /// The response.
    #[param(example = "resp_019bf537f2287cd3aa1c3da8af302e12019bf537f2287cd3aa1c3da8af302e13")]
    response_id: String,
}

impl crate::extract::Open for OfModel {}
impl crate::extract::Open for OfResponse {}

/// The wanted form of a response.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Form {
    /// Whether its events are streamed.
    #[serde(default)]
    stream: bool,
    /// Only events after the one with this `sequence_number`.
    #[param(maximum = 9_223_372_036_854_775_807_i64)]
    starting_after: Option<u64>,
}

impl OfResponse {
    fn id(&self) -> Result<ResponseId, Error> {
        let shown: String = self.response_id.chars().take(160).collect();
        self.response_id.parse::<ResponseId>().map_err(|()| Error::not_found("response", shown))
    }
}

/// The personas and the flows, as models of OpenAI's API.
#[utoipa::path(get, path = "/openai/v1/models", tag = "openai",
    responses((status = 200, description = "All of them.", body = Value)))]
pub(crate) async fn list_openai_models(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    ids: Ids,
) -> Answer<axum::Json<Value>> {
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    Ok(axum::Json(wire::models(names(&speaker).await?.into_iter())))
}

/// One persona or flow, as a model of OpenAI's API.
#[utoipa::path(get, path = "/openai/v1/models/{model}", tag = "openai", params(OfModel),
    responses((status = 200, description = "It.", body = Value)))]
pub(crate) async fn get_openai_model(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(OfModel { model }): Path<OfModel>,
    ids: Ids,
) -> Answer<axum::Json<Value>> {
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    Ok(axum::Json(wire::model(&meant(&speaker, &model).await?)))
}

/// Makes a chat of the messages, and answers with its turn as a chat completion, or with the chunks of it. A completion that ends with a call of
/// `ask_user` or `permission` goes on when the last message is the answer to that call.
#[utoipa::path(post, path = "/openai/v1/chat/completions", tag = "openai", params(TraceParent),
    request_body(content = Value, description = "As OpenAI's. A field that cannot be honoured is refused by its name."),
    responses((status = 200, description = "The completion; with `stream` its chunks, as an event stream.",
        content((Value = "application/json"), (String = "text/event-stream")))))]
pub(crate) async fn create_completion(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    _: Paced,
    ids: Ids,
    traced: Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    let request = wire::completion(&body)?;
    let (stream, with_usage) = (request.stream, request.with_usage);
    let speaker = Speaker::within(&context, &within, ids, traced).await?;
    speaker.demand_streams("make a response with background instead, and poll it")?;
    let model = meant(&speaker, &request.model).await?;
    // A completion follows no response and names no conversation, so words begin a chat.
    let (run, _) = respond(&speaker, request, &model, "response_format").await?;
    let created = context.base.clock.now();
    let completion = Box::new(Completion::new(run.chat, run.part, model, created, stream, with_usage));
    if stream {
        return speaker.streamed(run, completion, DONE).await;
    }
    let waited = speaker.waited(run, completion).await?;
    let whole = async move {
        let whole = waited.await?;
        let Some(error) = whole.get("error") else { return Ok(whole) };
        let message = error["message"].as_str().unwrap_or("the turn failed");
        let code = serde_json::from_value(error["code"].clone()).unwrap_or(Code::UpstreamUnavailable);
        Err(Error::new(code, message).detail("chat_id", run.chat.to_string()).into())
    };
    long_answer(whole, ApiError::openai_envelope).await
}

/// Makes a response: a turn of a new chat, of the chat of `previous_response_id`, or of the chat that `conversation` names. It is the
/// answer, or its events are with `stream`. With `background` the answer comes at once, and the response is polled. A response that ends with a
/// call of `ask_user` or an `mcp_approval_request` goes on by another one, whose input is the answer.
#[utoipa::path(post, path = "/openai/v1/responses", tag = "openai", params(TraceParent),
    request_body(content = Value, description = "As OpenAI's. A field that cannot be honoured is refused by its name."),
    responses((status = 200, description = "The response; with `stream` its events, as an event stream.",
        content((Value = "application/json"), (String = "text/event-stream")))))]
pub(crate) async fn create_response(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    _: Paced,
    ids: Ids,
    traced: Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    let request = wire::response(&body)?;
    let speaker = Speaker::within(&context, &within, ids, traced).await?;
    let (stream, background, settings) = (request.stream, request.background, request.settings);
    let (format, labels) = (request.format.clone(), request.labels.clone());
    if stream || !background {
        speaker.demand_streams("send background true and stream false, and poll the response")?;
    }
    let model = meant(&speaker, &request.model).await?;
    let (run, previous) = respond(&speaker, request, &model, "text").await?;
    let id = ResponseId { chat: run.chat, part: run.part };
    // The command that changes the settings is on its way. It is sent, so a view that cannot be read now fails nothing.
    let (settings, labels) = match made_by(&speaker, run.chat).await {
        Ok(made) => (made.settings.map(|present| settings.or(present)).unwrap_or_default(), made.labels),
        Err(_) => (settings, labels),
    };
    let view = |shows| {
        let view = wire::Response::new(id, model.clone(), context.base.clock.now(), shows).labelled(labels.clone());
        Box::new(view.in_background(background).after(previous).asked_with(settings).in_format(format.as_ref()))
    };
    if stream {
        return speaker.streamed(run, view(StartingAfter::Frame(None)), "").await;
    }
    if background {
        return Ok(axum::Json(view(StartingAfter::Whole).whole()).into_response());
    }
    long_answer(speaker.waited(run, view(StartingAfter::Whole)).await?, ApiError::openai_envelope).await
}

/// Sends the command of a completion or a response, whose format is in the field `formatted`, and tells which response it follows.
async fn respond(
    speaker: &Speaker<'_>,
    request: Request,
    model: &str,
    formatted: &str,
) -> Answer<(Run, Option<ResponseId>)> {
    let Request { input, previous, conversation, functions, settings, format, labels, .. } = request;
    if let Some(format) = &format {
        chat::check_answer_format(formatted, format).await?;
        if speaker.named(model).await? == NameKind::Flow {
            let error = Error::invalid(formatted, "a flow has an output of its own form");
            return Err(error.hint("leave it out; the manifests of the flow say what its output is").into());
        }
    }
    let (content, earlier, repeats, files) = match input {
        Input::Words { content, earlier, repeats, files } => (content, earlier, repeats, files),
        Input::Answers(asked, output) => {
            check_format(speaker, asked.chat, formatted, format).await?;
            let reply = Reply::Given(output.into());
            return Ok((speaker.reply_with(asked.chat, asked.id, reply, settings).await?, None));
        }
        Input::Decision { asked, approved, reason } => {
            check_format(speaker, asked.chat, formatted, format).await?;
            let reply = Reply::Decision { approved, reason };
            return Ok((speaker.reply_with(asked.chat, asked.id, reply, settings).await?, None));
        }
    };
    let Some(chat) = previous.map(|id| id.chat).or(conversation) else {
        let role = Some(model.to_owned());
        let words = MessageInput {
            content,
            earlier,
            role,
            model_settings: settings,
            functions,
            files,
            answer_format: format,
            labels,
            ..MessageInput::default()
        };
        return Ok((speaker.begin(ChatId(speaker.ids.id("chat")), words).await?, None));
    };
    if repeats {
        return Err(Error::invalid("input", "the chat has the conversation before this message")
            .hint("send the new message alone, or begin anew without previous_response_id")
            .into());
    }
    let role = made_by(speaker, chat).await?.name;
    if role != model {
        return Err(Error::invalid("model", "another persona has this chat")
            .hint(format!("go on with the model {role}, or begin anew without previous_response_id"))
            .into());
    }
    speaker.check_functions(chat, &functions).await?;
    let parts = speaker.parts(chat).await?;
    if let Some(id) = previous {
        match parts.last() {
            Some(last) if last.turn == id.part.turn => {}
            Some(_) => {
                return Err(Error::new(Code::Conflict, "another turn of the chat came after this response")
                    .detail("field", "previous_response_id")
                    .hint("go on after the last one, send conversation instead, or fork the chat at this turn")
                    .into());
            }
            None => return Err(Error::not_found("response", id).detail("field", "previous_response_id").into()),
        }
    }
    let previous = parts.last().map(|part| ResponseId { chat, part });
    let instructions = if earlier.is_empty() { earlier } else { other_instructions(speaker, chat, &earlier).await? };
    let words = MessageInput {
        content,
        files,
        model_settings: settings,
        answer_format: format,
        instructions,
        ..MessageInput::default()
    };
    Ok((speaker.post(chat, words, OnBusy::Reject).await?, previous))
}

/// Refuses another format than that of the turn which an answer continues.
async fn check_format(
    speaker: &Speaker<'_>,
    chat: ChatId,
    field: &str,
    asked: Option<AnswerFormat>,
) -> Result<(), Error> {
    if asked.is_none() {
        return Ok(());
    }
    let mut known = None;
    let take_in = |_, _, event: &ChatEvent| match event {
        ChatEvent::TurnStarted { attempt: 1, .. } => known = None,
        ChatEvent::FormatAsked { format } => known = Some(format.clone()),
        _ => {}
    };
    speaker.fold(chat, take_in).await?;
    if known == asked {
        return Ok(());
    }
    Err(Error::invalid(field, "a turn keeps the format of its message")
        .hint("send the same format or none with an answer, and another one with the next message"))
}

/// The words that give the model of a chat the client's instructions; none if they are the newest ones that the chat has. Clients send the instructions with
/// every response, and repeated words would fill the chat.
async fn other_instructions(speaker: &Speaker<'_>, chat: ChatId, told: &str) -> Result<String, Error> {
    const NEXT: [&str; 4] = ["person: ", "you: ", "instructions: ", chat::FORMAT_WORDS];
    let is_told = |context: &str| {
        let rest = context.split_once(told).map(|(_, rest)| rest);
        rest.is_some_and(|rest| rest.is_empty() || NEXT.iter().any(|next| rest.starts_with(next)))
    };
    let mut knows = false;
    let take_in = |_, _, event: &ChatEvent| match event {
        ChatEvent::MessageAdded { message: Message::User { context, .. } } if context.contains("instructions: ") => {
            knows = is_told(context);
        }
        // The model may not read them any more.
        ChatEvent::Compacted { .. } | ChatEvent::ContextCut { .. } | ChatEvent::Rollback { .. } => knows = false,
        _ => {}
    };
    speaker.fold(chat, take_in).await?;
    Ok(if knows { String::new() } else { format!("The instructions of the client from here on:\n{told}") })
}

/// A response as it is now, or its events: those that were, and those to come.
#[utoipa::path(get, path = "/openai/v1/responses/{response_id}", tag = "openai", params(OfResponse, Form),
    responses((status = 200, description = "The response; with `stream` its events, as an event stream.",
        content((Value = "application/json"), (String = "text/event-stream")))))]
pub(crate) async fn get_response(
    State(context): State<Arc<Context>>,
    within: Within<Read>,
    Path(at): Path<OfResponse>,
    Query(Form { stream, starting_after }): Query<Form>,
    ids: Ids,
) -> Answer<Response> {
    let id = at.id()?;
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    if !stream {
        return Ok(axum::Json(current(&speaker, id).await?.whole()).into_response());
    }
    let view = seen(&speaker, id, StartingAfter::Frame(starting_after)).await?;
    let resumed = speaker.parts(id.chat).await?.resumed();
    speaker.streamed(Run { chat: id.chat, part: id.part, first: 1, resumed }, Box::new(view), "").await
}

/// Stops the turn of a response, also one that has not begun. One that is over stays as it is. `CONFLICT` while it waits behind another turn.
#[utoipa::path(post, path = "/openai/v1/responses/{response_id}/cancel", tag = "openai", params(OfResponse),
    responses((status = 200, description = "The response as it is now; its turn stops in a moment.", body = Value)))]
pub(crate) async fn cancel_response(
    State(context): State<Arc<Context>>,
    within: Within<Converse>,
    Path(at): Path<OfResponse>,
    ids: Ids,
) -> Answer<axum::Json<Value>> {
    let id = at.id()?;
    let speaker = Speaker::within(&context, &within, ids, Traced(None)).await?;
    let found = current(&speaker, id).await?;
    let command = CommandId(speaker.ids.id("command"));
    match task_as_turn::task_of(id.chat) {
        Some(task) => speaker.stop_task(task).await?,
        None => {
            stop_turn(&context, speaker.workspace, (id.chat, id.part.turn), !found.has_begun(), command, &speaker.by)
                .await?
        }
    }
    Ok(axum::Json(found.whole()))
}

/// The view of a response before the log is folded.
async fn seen(speaker: &Speaker<'_>, id: ResponseId, shows: StartingAfter) -> Answer<wire::Response> {
    let made = made_by(speaker, id.chat).await.map_err(|error| match error.code {
        Code::NotFound => Error::not_found("response", id),
        _ => error,
    })?;
    let view = wire::Response::new(id, made.name, made.at, shows);
    Ok(view.asked_with(made.settings.unwrap_or_default()).labelled(made.labels))
}

/// A response as the log has it.
async fn current(speaker: &Speaker<'_>, id: ResponseId) -> Answer<wire::Response> {
    let mut view = seen(speaker, id, StartingAfter::Whole).await?;
    let mut frames = Vec::new();
    speaker.fold(id.chat, |number, at, event| view.take_in(number, at, event, &mut frames)).await?;
    Ok(view)
}

/// The chat or the task that a response is of.
struct Made {
    /// The persona, or the flow.
    name: String,
    at: Timestamp,
    /// The settings of the chat's model; none of a task, whose agents have their own.
    settings: Option<ModelSettings>,
    labels: Labels,
}

async fn made_by(speaker: &Speaker<'_>, chat: ChatId) -> Result<Made, Error> {
    if let Some(task) = task_as_turn::task_of(chat) {
        let view = speaker.context.base.tasks.get(speaker.workspace, task).await?;
        return Ok(Made { name: view.flow.name, at: view.created_at, settings: None, labels: view.labels });
    }
    let view = speaker.context.chats.get(speaker.workspace, chat).await?;
    let (settings, labels) = (Some(view.model_settings), view.labels);
    Ok(Made { name: view.role, at: view.created_at, settings, labels })
}

/// The personas, then the flows of other names.
async fn names(speaker: &Speaker<'_>) -> Result<Vec<String>, Error> {
    let mut names = speaker.personas().await?;
    for flow in speaker.flows().await? {
        if !names.contains(&flow) {
            names.push(flow);
        }
    }
    Ok(names)
}

/// The persona or the flow that a model means.
async fn meant(speaker: &Speaker<'_>, model: &str) -> Result<String, Error> {
    if names(speaker).await?.iter().any(|name| name == model) {
        return Ok(model.to_owned());
    }
    let error = Error::not_found("model", excerpt(model)).detail("field", "model");
    Err(error.hint("GET /openai/v1/models lists the personas and the flows"))
}
