//! The items of threads in the table: one partition per workspace.

use crate::chats::internal;
use domain::{ChatId, ClientFunction, Error, Labels, ThreadAgent, Timestamp, TurnId, WorkspaceId};
use ports::Key;
use serde::{Deserialize, Serialize};

/// How much of a request its record has, in bytes.
const SHOWN: usize = 1024;

/// A thread, beside its chat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadRecord {
    /// The thread, and the chat that it is.
    #[serde(rename = "thread_id")]
    pub thread: ChatId,
    /// Its agent, folder and options.
    pub agent: ThreadAgent,
    /// The functions that its client runs itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<ClientFunction>,
    /// Its title; empty before there is one.
    pub title: String,
    /// The labels of its chat, before there is one.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The client that made it.
    pub client: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When the record changed last.
    pub updated_at: Timestamp,
    /// The turn that was begun last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
}

/// The claim of a turn on its thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The turn.
    #[serde(rename = "turn_id")]
    pub turn: TurnId,
    /// The time of the claim.
    pub at: Timestamp,
    /// The number of turns that had ended then.
    pub ended: u64,
}

/// A turn of a thread: how it is found by its id alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRecord {
    /// The turn.
    pub turn_id: TurnId,
    /// Its thread.
    pub thread_id: ChatId,
    /// The client that began it.
    pub client: String,
    /// The beginning of its words.
    pub request: String,
    /// No event of the turn has a lower number.
    pub first: u64,
    /// When it was asked for.
    pub at: Timestamp,
}

impl TurnRecord {
    pub(super) fn new(turn: TurnId, thread: ChatId, client: &str, input: &str, first: u64, at: Timestamp) -> Self {
        let request = input[..input.floor_char_boundary(SHOWN)].to_owned();
        Self { turn_id: turn, thread_id: thread, client: client.into(), request, first, at }
    }
}

/// A client, by the name that it gives itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientRecord {
    pub client: String,
    /// When it last made a thread or began a turn.
    pub seen_at: Timestamp,
}

impl ThreadRecord {
    pub(super) fn encode(&self) -> Result<String, Error> {
        serde_json::to_string(self).map_err(internal)
    }
}

/// The partition of a workspace's threads, their turns and their clients.
pub(crate) fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/threads")
}

/// Threads among the sort keys.
pub(super) const THREADS: &str = "thread/";

pub(super) fn thread_key(workspace: WorkspaceId, thread: ChatId) -> Key {
    Key::new(partition(workspace), format!("{THREADS}{thread}"))
}

pub(super) fn turn_key(workspace: WorkspaceId, turn: TurnId) -> Key {
    Key::new(partition(workspace), format!("turn/{turn}"))
}

/// The index partition of the turns of a thread, by their ids.
pub(super) fn turns_of(workspace: WorkspaceId, thread: ChatId) -> String {
    format!("{}/{thread}", partition(workspace))
}

pub(super) fn client_key(workspace: WorkspaceId, client: &str) -> Key {
    Key::new(partition(workspace), format!("client/{client}"))
}
