//! The slash commands of the agents of sessions, as the editor has heard of them.

use crate::workspace_client::WorkspaceClient;
use protocols::acp;
use serde_json::{Value, json};
use std::{cell::RefCell, collections::HashMap};

/// The last update about the commands of each session.
#[derive(Default)]
pub(super) struct Commands(RefCell<HashMap<String, Value>>);

impl Commands {
    /// The update that tells the commands of a session. None where the editor knows it, and where the hub does not tell them: they come with the next turn.
    pub async fn news(&self, door: &WorkspaceClient, session: &str) -> Option<Value> {
        let listed = door.get(&format!("/v1/threads/{session}/slash-commands")).await.ok()?;
        let update = acp::commands(&listed);
        let before = self.0.borrow_mut().insert(session.to_owned(), update.clone());
        let is_known = before.map_or(update["availableCommands"] == json!([]), |before| before == update);
        (!is_known).then_some(update)
    }
}
