//! Tools of servers in the requests to a model, and calls of them (spec 004 §11).

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::NewChat;
use domain::{ChatId, CommandId, Error, Message, Principal, StopReason, Usage};
use futures::{StreamExt, stream};
use ports::{
    Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream, Served, ServedAnswer, ServedTool, ServersOf,
    ToolServers,
};
use serde_json::{Map, Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// Searches once, and keeps the tools of servers that each request offers.
#[derive(Default)]
struct Asks(Mutex<Vec<Vec<String>>>);

#[async_trait]
impl Model for Asks {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let served = request.tools.iter().map(|spec| spec.name.clone()).filter(|name| name.starts_with("mcp_"));
        self.0.lock().unwrap().push(served.collect());
        let is_first = matches!(request.messages.last().map(AsRef::as_ref), Some(Message::User { .. }));
        let search = Delta::Call { tool: "mcp_search".into(), args: r#"{"query": "tool_39"}"#.into() };
        let said = if is_first { search } else { Delta::Text("done".into()) };
        let end =
            Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None };
        Ok(stream::iter([said, end].map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// Forty tools, each with a long description. It keeps the declarations that it was asked with.
#[derive(Default)]
struct Forty(Mutex<Vec<Option<String>>>);

#[async_trait]
impl ToolServers for Forty {
    fn may_have(&self, tool: &str) -> bool {
        tool.starts_with(domain::served::SERVED_PREFIX)
    }

    async fn tools(&self, of: &ServersOf, _: Duration) -> Served {
        self.0.lock().unwrap().push(of.declared.as_deref().map(str::to_owned));
        let tool = |number: usize| ServedTool {
            name: format!("mcp__s__tool_{number:02}"),
            description: "x".repeat(1_000),
            parameters: json!({ "type": "object" }),
            is_repeatable: false,
        };
        Served { tools: (0..40).map(tool).collect(), missing: Vec::new() }
    }

    async fn call(&self, _: &ServersOf, tool: &str, _: Map<String, Value>) -> Result<ServedAnswer, Error> {
        Err(Error::not_found("tool", tool))
    }
}

#[tokio::test]
async fn a_model_is_offered_tools_of_servers_and_those_that_it_has_searched_for() {
    let (model, servers) = (Arc::new(Asks::default()), Arc::new(Forty::default()));
    let hub = Hub::serving(model.clone(), servers.clone()).await;
    hub.put("/system/mcp.json", r#"{"mcpServers": {}}"#).await;
    let new = NewChat { goal: "go".into(), ..NewChat::default() };
    let command = CommandId(hub.clock.id());
    let chat = ChatId(hub.clock.id());
    hub.chats.create(hub.workspace, chat, command, new, &Principal::local()).await.unwrap();
    hub.settle().await;
    let asked = model.0.lock().unwrap().clone();
    let [first, then] = &asked[..] else { panic!("{} requests", asked.len()) };
    assert_eq!(first.first().map(String::as_str), Some("mcp__s__tool_00"));
    assert_eq!(first.last().map(String::as_str), Some("mcp_search"));
    assert!(first.len() < 40, "the budget holds");
    assert_eq!(then[..first.len()], first[..], "the beginning stays");
    assert_eq!(then[first.len()..], ["mcp__s__tool_39"]);
    let declared = servers.0.lock().unwrap().clone();
    assert!(declared.iter().all(|text| text.as_deref() == Some(r#"{"mcpServers": {}}"#)), "{declared:?}");
}
