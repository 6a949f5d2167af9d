//! Push notifications of tasks: webhooks of one turn, or of one task of a flow.

use super::{Peer, PeerResult, known};
use axum::response::{IntoResponse, Response};
use domain::{Code, CommandId, Error, WorkspaceId};
use protocols::{
    a2a::{PushAsk, PushConfig, Refusal, RefusalKind, TaskId, success},
    task_as_turn,
};
use serde_json::{Value, json};
use webhooks::{PushSettings, event::Origin};

/// Answers a request about the configurations of a task.
pub(super) async fn configure(peer: &Peer<'_>, id: &Value, task: TaskId, ask: PushAsk) -> PeerResult<Response> {
    known(peer, id, task).await?;
    let result = match ask {
        PushAsk::Create(config) => put(peer, task, None, config).await?.value(task),
        PushAsk::Get(wanted) => {
            let all = all(peer, task).await?;
            let found = all.iter().find(|config| config.id.as_ref() == Some(&wanted));
            let missing = || Error::not_found("configuration", wanted.chars().take(80).collect::<String>());
            found.ok_or_else(|| Refusal { kind: RefusalKind::TaskNotFound, error: missing() })?.value(task)
        }
        PushAsk::List => {
            let all = all(peer, task).await?;
            json!({ "configs": all.iter().map(|config| config.value(task)).collect::<Vec<_>>(), "nextPageToken": "" })
        }
        PushAsk::Delete(wanted) => {
            peer.speaker.context.webhooks.unpush(workspace(peer), task.turn, &wanted, &peer.speaker.by).await?;
            json!({})
        }
    };
    Ok(axum::Json(success(id, &result)).into_response())
}

/// Has a task pushed. `begins` is the flow of one that is not there yet.
pub(super) async fn put(
    peer: &Peer<'_>,
    task: TaskId,
    begins: Option<String>,
    config: PushConfig,
) -> PeerResult<PushConfig> {
    let speaker = &peer.speaker;
    let of = match (begins, task_as_turn::task_of(task.chat)) {
        (Some(flow), _) => Origin { chat: None, flow: Some(flow) },
        (None, Some(of)) => {
            let view = speaker.context.base.tasks.get(speaker.workspace, of).await?;
            Origin { chat: None, flow: Some(view.flow.name) }
        }
        (None, None) => Origin { chat: Some(task.chat), flow: None },
    };
    let id = config.id.unwrap_or_else(|| CommandId::from_key("a2a push", &config.url).to_string());
    let push = PushSettings { turn: task.turn, id: id.clone(), token: config.token.clone() };
    let webhooks = &speaker.context.webhooks;
    let put = webhooks.push(speaker.workspace, of, push, config.url.clone(), &speaker.by).await;
    put.map_err(|error| match error.code {
        Code::Unprocessable => Refusal { kind: RefusalKind::PushNotificationNotSupported, error },
        Code::Forbidden | Code::Conflict => {
            Refusal { kind: RefusalKind::InvalidParams, error: error.detail("field", "url") }
        }
        _ => error.into(),
    })?;
    Ok(PushConfig { id: Some(id), ..config })
}

async fn all(peer: &Peer<'_>, task: TaskId) -> PeerResult<Vec<PushConfig>> {
    let all = peer.speaker.context.webhooks.pushes(workspace(peer), task.turn, &peer.speaker.by).await?;
    Ok(all.into_iter().map(|(push, url)| PushConfig { id: Some(push.id), url, token: push.token }).collect())
}

fn workspace(peer: &Peer<'_>) -> WorkspaceId {
    peer.speaker.workspace
}
