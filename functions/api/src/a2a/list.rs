//! The list of tasks: the turns of the chats, the last active chats first, and of a chat the newest turn first.

use super::{Peer, PeerResult, view};
use axum::response::{IntoResponse, Response};
use domain::{ChatEvent, ChatId, Code};
use protocols::{
    Projection,
    a2a::{ListAsk, PageToken, Shows, Task, TaskId, success},
    task_as_turn,
};
use serde_json::{Value, json};

/// The chats that are looked at together.
const CHATS: usize = 20;
/// The chats that one request looks at, at most: each is folded.
const MOST_CHATS: usize = 100;

/// Answers with a page.
pub(super) async fn list(peer: &Peer<'_>, id: &Value, ask: ListAsk) -> PeerResult<Response> {
    let speaker = &peer.speaker;
    let (mut found, mut looked_at) = (Vec::new(), 0);
    let PageToken { mut cursor, mut skip } = ask.page.clone().unwrap_or_default();
    let next = loop {
        let (chats, next) = match ask.context {
            Some(chat) => (vec![chat], None),
            None => {
                let page = speaker.context.chats.list(speaker.workspace, CHATS, cursor.clone()).await?;
                (page.chats.iter().map(|view| view.chat_id).collect(), page.next_cursor)
            }
        };
        looked_at += chats.len();
        let mut tasks = Vec::new();
        for chat in chats {
            // A chat of another workspace has no tasks here. A task of a flow is a context of its own.
            let read = match task_as_turn::task_of(chat) {
                Some(task) => speaker.context.tasks.get(speaker.workspace, task).await.map(drop),
                None => speaker.context.chats.get(speaker.workspace, chat).await.map(drop),
            };
            match read {
                Ok(()) => tasks.extend(of_chat(peer, id, chat, &ask).await?),
                Err(error) if error.code == Code::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        let room = ask.size - found.len();
        let more = tasks.len() > skip + room;
        found.extend(tasks.into_iter().skip(skip).take(room));
        if more {
            break Some(PageToken { cursor, skip: skip + room });
        }
        (cursor, skip) = (next, 0);
        if cursor.is_none() || found.len() == ask.size || looked_at >= MOST_CHATS {
            break cursor.map(|cursor| PageToken { cursor: Some(cursor), skip: 0 });
        }
    };
    let tasks: Vec<Value> = found.iter().map(|task| task_json(task, &ask)).collect();
    let next = next.map_or_else(String::new, |next| next.to_string());
    let result = json!({ "tasks": tasks, "nextPageToken": next, "pageSize": ask.size, "totalSize": tasks.len() });
    Ok(axum::Json(success(id, &result)).into_response())
}

/// The tasks of a chat that are wished for, the newest first. Turns come one after the other, so each event is for the last of them.
async fn of_chat(peer: &Peer<'_>, id: &Value, chat: ChatId, ask: &ListAsk) -> PeerResult<Vec<Task>> {
    let (mut tasks, mut frames) = (Vec::<Task>::new(), Vec::new());
    let take_in = |number, at, event: &ChatEvent| {
        if let ChatEvent::TurnStarted { turn_id, attempt: 1, .. } = event {
            tasks.push(view(peer, id, TaskId { chat, turn: *turn_id }, u32::MAX, Shows::Whole(None)));
        }
        if let Some(task) = tasks.last_mut() {
            task.take_in(number, at, event, &mut frames);
            frames.clear();
        }
    };
    peer.speaker.fold(chat, take_in).await?;
    tasks.retain(|task| ask.wants(task.state(), task.since()));
    tasks.reverse();
    Ok(tasks)
}

fn task_json(task: &Task, ask: &ListAsk) -> Value {
    let mut value = task.whole(Some(ask.history));
    if !ask.with_artifacts
        && let Some(fields) = value.as_object_mut()
    {
        fields.remove("artifacts");
    }
    value
}
