//! Push notifications of tasks: webhooks of one turn.

use super::{Peer, Taken, known};
use axum::response::{IntoResponse, Response};
use domain::{Code, CommandId, Error, WorkspaceId};
use doors::{
    a2a::{Kind, PushAsk, PushConfig, Refusal, TaskId, success},
    of_task,
};
use serde_json::{Value, json};
use webhooks::Push;

/// Answers a request about the configurations of a task.
pub(super) async fn configure(peer: &Peer<'_>, id: &Value, task: TaskId, ask: PushAsk) -> Taken<Response> {
    known(peer, id, task).await?;
    if of_task::task_of(task.chat).is_some() {
        return Err(not_of_flows());
    }
    let result = match ask {
        PushAsk::Create(config) => put(peer, task, config).await?.value(task),
        PushAsk::Get(wanted) => {
            let all = all(peer, task).await?;
            let found = all.iter().find(|config| config.id.as_ref() == Some(&wanted));
            let missing = || Error::not_found("configuration", wanted.chars().take(80).collect::<String>());
            found.ok_or_else(|| Refusal { kind: Kind::TaskNotFound, error: missing() })?.value(task)
        }
        PushAsk::List => {
            let all = all(peer, task).await?;
            json!({ "configs": all.iter().map(|config| config.value(task)).collect::<Vec<_>>(), "nextPageToken": "" })
        }
        PushAsk::Delete(wanted) => {
            peer.speaker.context.webhooks.unpush(workspace(peer), task.turn, &wanted).await?;
            json!({})
        }
    };
    Ok(axum::Json(success(id, &result)).into_response())
}

/// Has a task pushed.
pub(super) async fn put(peer: &Peer<'_>, task: TaskId, config: PushConfig) -> Taken<PushConfig> {
    let speaker = &peer.speaker;
    if of_task::task_of(task.chat).is_some() {
        return Err(not_of_flows());
    }
    let id = config.id.unwrap_or_else(|| CommandId::from_key("a2a push", &config.url).to_string());
    let push = Push { turn: task.turn, id: id.clone(), token: config.token.clone() };
    let webhooks = &speaker.context.webhooks;
    let put = webhooks.push(speaker.workspace, task.chat, push, config.url.clone(), &speaker.by).await;
    put.map_err(|error| match error.code {
        Code::Unprocessable => Refusal { kind: Kind::PushNotificationNotSupported, error },
        Code::Forbidden | Code::Conflict => Refusal { kind: Kind::InvalidParams, error: error.detail("field", "url") },
        _ => error.into(),
    })?;
    Ok(PushConfig { id: Some(id), ..config })
}

/// A notification is of the turn of a chat.
pub(super) fn not_of_flows() -> Refusal {
    let error = Error::new(Code::Unprocessable, "a task of a flow has no push notifications")
        .hint("watch it by SubscribeToTask, or have a webhook of the workspace tell of its end");
    Refusal { kind: Kind::PushNotificationNotSupported, error }
}

async fn all(peer: &Peer<'_>, task: TaskId) -> Taken<Vec<PushConfig>> {
    let all = peer.speaker.context.webhooks.pushes(workspace(peer), task.chat, task.turn).await?;
    Ok(all.into_iter().map(|(push, url)| PushConfig { id: Some(push.id), url, token: push.token }).collect())
}

fn workspace(peer: &Peer<'_>) -> WorkspaceId {
    peer.speaker.workspace
}
