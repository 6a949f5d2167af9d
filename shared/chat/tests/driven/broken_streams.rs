//! Answers that break off: everything that arrived is shown and kept.

use crate::hub::Hub;
use actor::{Content, Envelope};
use async_trait::async_trait;
use buildscale_chat::{NewChat, actor_id};
use domain::{
    ChatCommand, ChatConfig, ChatEvent, ChatId, Code, CommandId, Limits, Message, Mode, ModelSettings, Principal,
    Timestamp, TurnRequest, native,
};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream, QueueSender};
use std::sync::Arc;
use workspace::Access;

/// Says its pieces at once, then breaks off as its user says.
struct BreaksOff;

#[async_trait]
impl Model for BreaksOff {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let Some(Message::User { content, .. }) = request.messages.last().map(AsRef::as_ref) else { panic!() };
        let pieces = ["All ", "that ", "arrived"].map(|piece| Ok(Delta::Text(piece.into())));
        let pieces = stream::iter([Ok(Delta::Reasoning("First, ".into())), Ok(Delta::Reasoning("think.".into()))])
            .chain(stream::iter(pieces));
        Ok(match content.as_str() {
            "error" => pieces.chain(stream::iter([Err(ModelError::Broken("reset".into()))])).boxed(),
            "refused" => pieces.chain(stream::iter([Err(ModelError::Unauthorized("401".into()))])).boxed(),
            "silence" => pieces.chain(stream::pending()).boxed(),
            _ => pieces.boxed(),
        })
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

#[tokio::test]
async fn text_that_came_before_a_provider_broke_off_is_shown_and_kept() {
    for (how, reason, code) in [
        ("error", "error", Some(Code::UpstreamUnavailable)),
        ("end", "error", Some(Code::UpstreamUnavailable)),
        ("refused", "error", Some(Code::UpstreamRefused)),
        ("silence", "time_limit", None),
    ] {
        let hub = Hub::with(Arc::new(BreaksOff)).await;
        let chat = ChatId(hub.clock.id());
        let config = ChatConfig {
            workspace: hub.workspace,
            chat,
            user: Principal::local().user(),
            title: how.into(),
            role: "coder".into(),
            model: None,
            model_settings: ModelSettings::default(),
            mode: Mode::Chat,
            limits: Limits { max_wall_ms: 40, ..Limits::default() },
            system: String::new(),
            cut: Vec::new(),
            tools: None,
            plan: None,
            context_tokens: 10_000,
            created_at: Timestamp::default(),
            agent: None,
            thread: None,
            forked_from: None,
            session: None,
            scenario: None,
            member: None,
            functions: Vec::new(),
            labels: domain::Labels::default(),
        };
        let body = ChatCommand::StartTurn(TurnRequest {
            content: how.into(),
            create: Some(Box::new(config)),
            ..TurnRequest::default()
        });
        let id = CommandId(hub.clock.id());
        let envelope = Envelope { id, at: hub.clock.now(), by: Principal::System, content: Content::Command { body } };
        hub.queue.send(vec![envelope.to(&actor_id(hub.workspace, chat)).unwrap()]).await.unwrap();
        hub.drive().await;

        let history = hub.chats.history(hub.workspace, chat, 0, 10).await.unwrap();
        let said = history.messages.iter().find_map(|numbered| match &numbered.message {
            Message::Assistant { content, .. } => Some(content.as_str()),
            _ => None,
        });
        assert_eq!(said, Some("All that arrived"), "{how}: the message");
        let log = actor::read_after::<ChatEvent>(&*hub.table, &actor_id(hub.workspace, chat), 0, 100).await.unwrap();
        let events: Vec<_> = log.entries.iter().flat_map(|entry| &entry.events).filter_map(native::encode).collect();
        let of = |name: &str, field: &str| -> String {
            let ours = events.iter().filter(|(known, _)| *known == name);
            ours.filter_map(|(_, data)| data[field].as_str()).collect()
        };
        assert_eq!(of("chunk", "text"), "All that arrived", "{how}: the log");
        assert_eq!(of("thought", "text"), "First, think.", "{how}: the log");
        assert_eq!(of("error", "code"), code.map(|code| code.to_string()).unwrap_or_default(), "{how}");
        assert_eq!(of("done", "stop_reason"), reason, "{how}");
        let used = events.iter().filter(|(known, _)| *known == "usage");
        let written: Vec<Option<u64>> = used.map(|(_, data)| data["output_tokens"].as_u64()).collect();
        assert_eq!(written, [Some(8)], "{how}: the 29 bytes that came are estimated");
    }
}

/// Is cut off in the middle of its answer by the filter of its provider, and notes how many files it was asked with.
#[derive(Default)]
struct Filtered(Mutex<Vec<usize>>);

#[async_trait]
impl Model for Filtered {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.0.lock().push(request.media.len());
        let said = [Ok(Delta::Text("half of it".into())), Err(ModelError::Rejected("content_filter".into()))];
        Ok(stream::iter(said).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

#[tokio::test]
async fn an_answer_that_its_provider_cuts_off_is_not_asked_for_again_without_the_files() {
    let model = Arc::new(Filtered::default());
    let hub = Hub::with(model.clone()).await;
    hub.put("/data/a.gif", "GIF89a, so it begins").await;
    let files = hub.workspaces.open(hub.workspace, Access::platform("a test")).await.unwrap();
    let file = files.stat(&"/data/a.gif".parse().unwrap()).await.unwrap().file_id;
    let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let new = NewChat { goal: "look".into(), files: vec![file], ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, command, new, &Principal::local()).await.unwrap();
    hub.drive().await;
    assert_eq!(*model.0.lock(), [1], "it is asked once, with the file");
    let history = hub.chats.history(hub.workspace, chat, 0, 10).await.unwrap();
    let said = history.messages.iter().find_map(|numbered| match &numbered.message {
        Message::Assistant { content, .. } => Some(content.as_str()),
        _ => None,
    });
    assert_eq!(said, Some("half of it"));
}
