//! The reads of the table in a turn, by place: this process alone writes to the index, so it reads nothing of it that it knows.

use crate::{first_turn::Begun, hub::Hub};
use async_trait::async_trait;
use domain::{Error, FileId, Principal, StopReason, Usage};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{
    Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream, Served, ServedAnswer, ServersOf, ToolServers,
};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use testkit::fakes::RecordingTable;
use tools::Registry;

/// Says yes to everything.
struct Agrees;

#[async_trait]
impl Model for Agrees {
    async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
        let end =
            Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None };
        Ok(stream::iter([Delta::Text("yes".into()), end].map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// Servers without tools. They keep the declarations that they were asked with.
#[derive(Default)]
struct Toolless(Mutex<Vec<Option<String>>>);

#[async_trait]
impl ToolServers for Toolless {
    fn may_have(&self, _: &str) -> bool {
        false
    }

    async fn tools(&self, of: &ServersOf, _: Duration) -> Served {
        self.0.lock().push(of.declared.as_deref().map(str::to_owned));
        Served { tools: Vec::new(), missing: Vec::new() }
    }

    async fn call(&self, _: &ServersOf, tool: &str, _: Map<String, Value>) -> Result<ServedAnswer, Error> {
        Err(Error::not_found("tool", tool))
    }
}

/// A chat that has had its first turn, with its table and its servers.
async fn begun() -> (Begun, Arc<RecordingTable>, Arc<Toolless>) {
    let (servers, mut recorded) = (Arc::new(Toolless::default()), None);
    let tools = Registry::builtin().with_servers(servers.clone());
    let hub = Hub::built(
        Arc::new(Agrees),
        |_, fake, _| {
            let table = Arc::new(RecordingTable::new(fake));
            recorded = Some(table.clone());
            table
        },
        tools,
    )
    .await;
    (Begun::of(hub).await, recorded.unwrap(), servers)
}

#[tokio::test]
async fn a_turn_reads_the_view_of_its_chat_and_the_item_of_its_workspace() {
    let (begun, table, _) = begun().await;
    table.take_reads();
    begun.turn("again").await;
    let reads = table.take_reads().into_iter().map(|key| key.pk);
    // The partition of the actor has the requests to stop, which are looked for as time passes.
    let reads: Vec<String> = reads.filter(|partition| !partition.starts_with("chat/")).collect();
    assert_eq!(reads, [format!("{}/chats", begun.hub.workspace), "workspaces".to_owned()]);
    let text = begun.text().await.unwrap();
    assert!(text.contains("\n\nagain\n\n") && text.matches("\n\nyes\n\n").count() == 2, "{text}");
}

#[tokio::test]
async fn servers_that_are_declared_between_turns_are_asked_with_their_declaration() {
    let (begun, _, servers) = begun().await;
    begun.hub.put("/system/mcp.json", "{}").await;
    begun.turn("again").await;
    begun.files().await.rm(&"/system/mcp.json".parse().unwrap(), &Principal::System.into()).await.unwrap();
    begun.turn("once more").await;
    let asked = servers.0.lock().clone();
    assert_eq!(asked, [None, Some("{}".to_owned()), None]);
}

#[tokio::test]
async fn the_file_of_a_chat_stays_in_the_trash_and_has_every_message_once_after_it_is_back() {
    let (begun, ..) = begun().await;
    let (files, system) = (begun.files().await, Principal::System.into());
    files.rm(&begun.at(), &system).await.unwrap();
    begun.turn("unseen").await;
    assert_eq!(begun.text().await, None);
    files.restore(FileId(begun.chat.0), &system).await.unwrap();
    begun.turn("seen").await;
    begun.has_once(&["first", "unseen", "seen"]).await;
}
