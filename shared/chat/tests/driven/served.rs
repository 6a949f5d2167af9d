//! Tools of servers in the requests to a model, and calls of them (spec 004 §11).

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{Decision, NewChat};
use domain::{ChatId, ChatStatus, CommandId, Error, Message, Principal, StopReason, Usage, event::PermissionOutcome};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{
    Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream, QueueReceiver, Served, ServedAnswer,
    ServedTool, ServersOf, ToolServers,
};
use serde_json::{Map, Value, json};
use std::{future, sync::Arc, time::Duration};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Searches once, and keeps the tools of servers that each request offers.
#[derive(Default)]
struct Asks(Mutex<Vec<Vec<String>>>);

#[async_trait]
impl Model for Asks {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let served = request.tools.iter().map(|spec| spec.name.clone()).filter(|name| name.starts_with("mcp_"));
        self.0.lock().push(served.collect());
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
        self.0.lock().push(of.declared.as_deref().map(str::to_owned));
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
    let asked = model.0.lock().clone();
    let [first, then] = &asked[..] else { panic!("{} requests", asked.len()) };
    assert_eq!(first.first().map(String::as_str), Some("mcp__s__tool_00"));
    assert_eq!(first.last().map(String::as_str), Some("mcp_search"));
    assert!(first.len() < 40, "the budget holds");
    assert_eq!(then[..first.len()], first[..], "the beginning stays");
    assert_eq!(then[first.len()..], ["mcp__s__tool_39"]);
    let declared = servers.0.lock().clone();
    assert!(declared.iter().all(|text| text.as_deref() == Some(r#"{"mcpServers": {}}"#)), "{declared:?}");
}

/// Sends once, then says that it is done.
struct Sends;

#[async_trait]
impl Model for Sends {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let is_first = matches!(request.messages.last().map(AsRef::as_ref), Some(Message::User { .. }));
        let send = Delta::Call { tool: "mcp__s__send".into(), args: "{}".into() };
        let said = if is_first { send } else { Delta::Text("done".into()) };
        let end =
            Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None };
        Ok(stream::iter([said, end].map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// A server that answers no first call.
struct Hangs {
    is_repeatable: bool,
    calls: Mutex<u32>,
    began: Notify,
}

#[async_trait]
impl ToolServers for Hangs {
    fn may_have(&self, tool: &str) -> bool {
        tool.starts_with(domain::served::SERVED_PREFIX)
    }

    async fn tools(&self, _: &ServersOf, _: Duration) -> Served {
        let send = ServedTool {
            name: "mcp__s__send".into(),
            description: "Sends.".into(),
            parameters: json!({ "type": "object" }),
            is_repeatable: self.is_repeatable,
        };
        Served { tools: vec![send], missing: Vec::new() }
    }

    async fn call(&self, _: &ServersOf, _: &str, _: Map<String, Value>) -> Result<ServedAnswer, Error> {
        let is_first = {
            let mut calls = self.calls.lock();
            *calls += 1;
            *calls == 1
        };
        self.began.notify_one();
        if is_first {
            future::pending::<()>().await;
        }
        Ok(ServedAnswer { text: "sent".into(), ..ServedAnswer::default() })
    }
}

#[tokio::test]
async fn an_interrupted_call_is_made_again_only_where_its_server_says_that_it_may_be() {
    for (is_repeatable, calls, read) in [(true, 2, "sent"), (false, 1, "was interrupted, and is not made again")] {
        let servers = Arc::new(Hangs { is_repeatable, calls: Mutex::new(0), began: Notify::new() });
        let hub = Hub::serving(Arc::new(Sends), servers.clone()).await;
        let (chat, by) = (ChatId(hub.clock.id()), Principal::local());
        let new = NewChat { goal: "send it".into(), may_approve: true, ..NewChat::default() };
        hub.chats.create(hub.workspace, chat, CommandId(hub.clock.id()), new, &by).await.unwrap();
        hub.drive().await;
        let view = hub.chats.look(hub.workspace, chat).await.unwrap();
        let asked = serde_json::from_value(view.waiting_for[0]["data"]["permission_id"].clone()).unwrap();
        let yes = Decision::new(asked, PermissionOutcome::Approved);
        hub.chats.decide(hub.workspace, chat, CommandId(hub.clock.id()), yes, &by).await.unwrap();

        // The worker ends while the server works.
        let deliveries = hub.queue.receive(10, Duration::from_secs(30)).await.unwrap();
        let [delivery] = &deliveries[..] else { panic!("{deliveries:?}") };
        let cut = CancellationToken::new();
        let ending = async {
            servers.began.notified().await;
            cut.cancel();
        };
        let (settled, ()) = tokio::join!(hub.runtime.deliver(&deliveries, &cut), ending);
        assert_eq!(settled.done, 1);
        assert!(hub.queue.ack(std::slice::from_ref(&delivery.receipt)).await.unwrap());
        assert_eq!(*servers.calls.lock(), 1);

        hub.drive().await;
        assert_eq!(hub.chats.look(hub.workspace, chat).await.unwrap().status, ChatStatus::Idle);
        assert_eq!(*servers.calls.lock(), calls, "repeatable: {is_repeatable}");
        let history = hub.chats.history(hub.workspace, chat, 0, 100).await.unwrap();
        let output = history.messages.into_iter().find_map(|one| match one.message {
            Message::Tool { output, .. } => Some(output),
            _ => None,
        });
        let output = output.unwrap_or_default();
        assert!(output.contains(read), "{output}");
    }
}
