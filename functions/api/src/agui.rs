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
use protocols::agui::{self as wire, Events, Input, Request};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Begins a run: a turn with the last message, or the rest of a turn after the answer to its interrupt (`resume`). It answers with the events of
/// the run. A new thread id makes a chat; a UUID is that of a chat that is there. A run goes on although its client goes.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/ag-ui", tag = "clients", params(InWorkspace, TraceParent),
    request_body(content = Value, description = "`RunAgentInput`. `forwardedProps` can have `role`, a persona or a flow, and `model` of a new chat."),
    responses((status = 200, description = "The events of the run (AG-UI 1.0).", body = String, content_type = "text/event-stream")))]
pub(crate) async fn run_agent(
    State(context): State<Arc<Context>>,
    Access { at, by, caller, role, files, .. }: Access<Converse, InWorkspace>,
    _: Paced,
    ids: Ids,
    Traced(trace): Traced,
    JsonWithFiles(body): JsonWithFiles<Map<String, Value>>,
) -> Answer<Response> {
    let Request { thread, run: name, role: persona, model, functions, earlier, input } = wire::request(&body)?;
    let speaker =
        Speaker { context: &context, workspace: at.workspace_id, by, caller: &caller, role, files, ids, trace };
    speaker.demand_streams("post it to the chat, and watch its events at the public address")?;
    let meant = ConversationTarget::find(&context.base, at.workspace_id, &thread).await?;
    let chat = meant.chat();
    let run = match input {
        Input::Words { content, files } => {
            if meant.is_there() {
                speaker.check_functions(chat, &functions).await?;
            }
            let words = MessageInput { content, earlier, role: persona, model, functions, files };
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
