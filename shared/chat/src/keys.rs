//! The keys of a chat: of its items in the table, and of its effects.

use actor::{ActorId, EffectKey};
use domain::{
    ActorRef, CallId, ChatConfig, ChatId, CommandId, MessageId, PermissionId, TaskId, Timestamp, UserId, WorkspaceId,
};
use ports::Key;
use uuid::Uuid;

/// The actor of a chat.
pub fn actor_id(workspace: WorkspaceId, chat: ChatId) -> ActorId {
    ActorRef::Chat { workspace, chat }.into()
}

/// The key of a chat's view.
pub(crate) fn view_key(workspace: WorkspaceId, chat: ChatId) -> Key {
    Key::new(format!("{workspace}/chats"), chat.to_string())
}

/// The actor of the chat of a view, by its key.
pub(crate) fn actor_of(view: &Key) -> Option<ActorId> {
    Some(actor_id(view.pk.strip_suffix("/chats")?.parse().ok()?, view.sk.parse().ok()?))
}

/// The key of a view in the index: chats of a workspace by their last activity; those of a task, which are on no list of
/// people, by when they were made.
pub(crate) fn view_index(config: &ChatConfig, active_at: Timestamp) -> Key {
    match &config.agent {
        None => Key::new(people_partition(config.workspace), format!("{active_at}/{}", config.chat)),
        Some(agent) => Key::new(task_partition(agent.task), format!("{}/{}", config.created_at, config.chat)),
    }
}

/// The key of the chat that asked for a permission: an answer names the permission alone.
pub(crate) fn permission_key(workspace: WorkspaceId, permission: PermissionId) -> Key {
    Key::new(permission_partition(workspace), permission.to_string())
}

/// The partition of the permissions that were asked for in a workspace.
pub(crate) fn permission_partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/permissions")
}

/// The key of a decision on a permission that was accepted, beside the log of the chat.
pub(crate) fn decided_key(workspace: WorkspaceId, chat: ChatId, permission: PermissionId) -> Key {
    Key::new(actor_id(workspace, chat).as_str(), format!("decided/{permission}"))
}

/// The key of an answer that was accepted, beside the log of the chat: to questions, or to a call that was handed out.
pub(crate) fn answered_key(workspace: WorkspaceId, chat: ChatId, id: Uuid) -> Key {
    Key::new(actor_id(workspace, chat).as_str(), format!("answered/{id}"))
}

/// The key of the mark that the log of the chat keeps a decision which was refused.
pub(crate) fn refused_key(workspace: WorkspaceId, chat: ChatId, note: CommandId) -> Key {
    Key::new(actor_id(workspace, chat).as_str(), format!("refused/{note}"))
}

/// The index partition of the chats of people.
pub(crate) fn people_partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/chats")
}

/// The index partition of the chats of a task.
pub(crate) fn task_partition(task: TaskId) -> String {
    format!("{task}/chats")
}

/// The partition of the usage of turns, by day.
pub(crate) fn usage_partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/usage")
}

/// The index partition of the usage of a person's turns, by the time at which they ended.
pub(crate) fn spent_partition(user: UserId) -> String {
    format!("spent/{user}")
}

/// The key of one attempt of a model call.
pub(crate) fn model_key(message: MessageId, attempt: u32) -> EffectKey {
    EffectKey(format!("model/{message}/{attempt}"))
}

/// The key of one attempt of a tool call.
pub(crate) fn tool_key(call: CallId, attempt: u32) -> EffectKey {
    EffectKey(format!("tool/{call}/{attempt}"))
}

/// The key of the end of a command.
pub(crate) fn kill_key(call: CallId) -> EffectKey {
    EffectKey(format!("kill/{call}"))
}

/// The key of the end of a call that waits at its server.
pub(crate) fn server_key(call: CallId) -> EffectKey {
    EffectKey(format!("server/{call}"))
}

/// The key of the look at the plan before a command.
pub(crate) fn plan_key(call: CallId) -> EffectKey {
    EffectKey(format!("plan/{call}"))
}
