//! The Agent User Interaction Protocol: a run in, its events out by [`protocols::agui`].

use crate::{
    Context,
    access::{Access, Converse},
    converse::{ConversationTarget, MessageInput, Reply, Speaker},
    error::Answer,
    extract::{JsonWithFiles, TraceParent, Traced},
    ids::Ids,
    rate_limits::Paced,
    workspaces::InWorkspace,
};
use axum::{extract::State, response::Response};
use domain::{ChatEvent, ChatStatus, Code, Error, Message, Sha256};
use protocols::{
    IncomingFile,
    agui::{self as wire, Events, Input, Request},
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Begins a run: a turn with the last message, or the rest of a turn after the answer to its interrupt (`resume`). It answers with the events of
/// the run. A new thread id makes a chat; a UUID is that of a chat that is there. A run goes on although its client goes.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/ag-ui", tag = "clients", params(InWorkspace, TraceParent),
    request_body(content = Value, description = "`RunAgentInput`. `forwardedProps` can have `role`, a persona or a flow, and `model` of a new chat. `context` comes along with a message as a file, where the chat has not had it last."),
    responses((status = 200, description = "The events of the run (AG-UI 1.0).", body = String, content_type = "text/event-stream")))]
pub(crate) async fn run_agent(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, files, .. }: Access<Converse, InWorkspace>,
    _: Paced,
    ids: Ids,
    Traced(trace): Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    let Request { thread, run: name, role: persona, model, functions, earlier, input, context: told } =
        wire::request(&body)?;
    let speaker =
        Speaker { context: &context, workspace: at.workspace_id, by, caller: &caller, role, files, ids, trace };
    speaker.demand_streams("post it to the chat, and watch its events at the public address")?;
    let meant = ConversationTarget::find(&context.base, at.workspace_id, &thread).await?;
    let chat = meant.chat();
    let run = match input {
        Input::Words { content, mut files } => {
            if meant.is_there() {
                speaker.check_functions(chat, &functions).await?;
            }
            if let Some(told) = told
                && !knows(&speaker, &meant, &told).await?
            {
                files.push(told);
            }
            let words =
                MessageInput { content, earlier, role: persona, model, functions, files, ..MessageInput::default() };
            speaker.say(chat, meant.is_there(), words).await?
        }
        Input::Resume { id, payload } => {
            // Giving up is a no; questions need an answer, and refuse it.
            let reply = match payload {
                Some(payload) => Reply::Given(payload),
                None => Reply::Decision { approved: false, reason: None },
            };
            speaker.reply(chat, id, reply).await?
        }
        Input::Failed { id, output } => speaker.reply(chat, id, Reply::Failed(output)).await?,
    };
    speaker.streamed(run, Box::new(Events::new(run.part, thread, name)), "").await
}

/// Whether the model of a chat has this context of the client already, as the newest one. Clients send their context with every run: told again and again, it
/// would fill the chat and the workspace.
async fn knows(speaker: &Speaker<'_>, meant: &ConversationTarget, told: &IncomingFile) -> Result<bool, Error> {
    let ConversationTarget::Chat(view) = meant else { return Ok(false) };
    // A message that waits may bring another one.
    if view.status != ChatStatus::Idle {
        return Ok(false);
    }
    let mut newest = None;
    let take_in = |_, _, event: &ChatEvent| match event {
        ChatEvent::MessageAdded { message: Message::User { files, .. } } => {
            if let Some(path) = files.iter().rfind(|path| path.name() == wire::CONTEXT_FILE) {
                newest = Some(path.clone());
            }
        }
        // The model may have lost it.
        ChatEvent::Compacted { .. } | ChatEvent::ContextCut { .. } | ChatEvent::Rollback { .. } => newest = None,
        _ => {}
    };
    speaker.fold(view.chat_id, take_in).await?;
    let Some(path) = newest else { return Ok(false) };
    let workspace = speaker.context.base.workspaces.open(speaker.workspace, speaker.files.clone()).await?;
    match workspace.stat(&path).await {
        Ok(file) => Ok(file.sha256 == Some(Sha256::of(&told.content))),
        // It is gone, or hidden from the caller.
        Err(error) if matches!(error.code, Code::NotFound | Code::Forbidden) => Ok(false),
        Err(error) => Err(error),
    }
}
