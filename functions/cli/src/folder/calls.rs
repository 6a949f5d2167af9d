//! The calls of a chat that this process carries out.

use super::{Folder, acts};
use crate::{
    call_permissions::{self, Permitted},
    client::Client,
    follow::Event,
    value::text,
};
use serde_json::{Value, json};
use std::{collections::HashMap, sync::Arc};
use tokio::task::AbortHandle;
use uuid::Uuid;

/// The open calls of one chat.
pub(crate) struct Calls {
    folder: Arc<Folder>,
    /// Tells this process from another one that has joined the chat.
    program: Uuid,
    open: HashMap<String, AbortHandle>,
    permitted: Permitted,
}

impl Calls {
    pub(crate) fn new(folder: Folder) -> Self {
        let (open, permitted) = (HashMap::new(), Permitted::default());
        Self { folder: Arc::new(folder), program: Uuid::now_v7(), open, permitted }
    }

    /// Begins a call that is handed out, and ends those that the chat waits for no longer.
    pub(crate) fn note(&mut self, event: &Event, (client, workspace, chat): (&Client, &str, &str)) {
        let id = text(&event.data, "call_id");
        match event.name.as_str() {
            "call_handed_out" if !self.open.contains_key(id) => {
                let (client, folder, data) = (client.clone(), self.folder.clone(), event.data.clone());
                let (workspace, chat, program) = (workspace.to_owned(), chat.to_owned(), self.program);
                let by = self.permitted.take(id, text(&event.data, "tool"));
                let carried = async move {
                    carry_out(&client, &folder, &[&workspace, &chat], program, (&data, by)).await;
                };
                self.open.insert(id.to_owned(), tokio::spawn(carried).abort_handle());
            }
            "observation" => {
                if let Some(call) = self.open.remove(id) {
                    call.abort();
                }
            }
            "done" | "stopped" => self.end(),
            _ => {}
        }
        self.permitted.note(&event.name, &event.data);
    }

    /// The change that a permission is about, as a diff, and its path; none where it is about another thing.
    pub(crate) fn preview(&self, event: &Event) -> Option<String> {
        let data = &event.data;
        let asks = event.name == "permission_required";
        let preview = || self.folder.preview(text(data, "call_id"), text(data, "tool"), &data["args"]);
        asks.then(preview).flatten()
    }

    fn end(&mut self) {
        self.open.drain().for_each(|(_, call)| call.abort());
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        self.end();
    }
}

/// The hub refuses a call that was answered, or that another program has taken: then nothing is to be done. `by` is the person who has permitted it.
async fn carry_out(
    client: &Client,
    folder: &Folder,
    [workspace, chat]: &[&str; 2],
    program: Uuid,
    (data, by): (&Value, Option<String>),
) {
    let id = text(data, "call_id");
    let path = ["workspaces", workspace, "chats", chat, "calls", id];
    // A call that does no harm is carried out again by a process that joins the chat; any other is taken by one of them.
    let program = if data["repeatable"] == true { (*chat).to_owned() } else { program.to_string() };
    let take = [&path[..], &["take"]].concat();
    if client.post(&take, &json!({ "program": program })).await.is_err() {
        return;
    }
    let tool = text(data, "tool");
    let done = match call_permissions::here(acts(tool), (client, workspace), by).await {
        Ok(()) => folder.run(id, tool, &data["args"]).await,
        Err(why) => Err(why),
    };
    let is_error = done.is_err();
    let output = done.unwrap_or_else(|why| why);
    // A refusal says that the chat waits no longer.
    let _ = client.post(&path, &json!({ "output": output, "is_error": is_error })).await;
}
