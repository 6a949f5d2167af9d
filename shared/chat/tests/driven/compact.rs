//! A chat that is compacted, restored, steered, edited and looked into, over the runtime and real files.

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{NewChat, NewMessage};
use domain::{ChatId, Code, CommandId, Message, OnBusy, Principal, StopReason, TurnId, Usage, event::ContextKind};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{Clock, Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::Value;
use std::sync::Arc;

const SUMMARY: &str = "# Monday\nThe port is 4711.";

/// Summarises what it is asked to, and else says something long.
#[derive(Default)]
struct Talks {
    asked: Mutex<Vec<ModelRequest>>,
}

#[async_trait]
impl Model for Talks {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let text = if request.system.contains("Group by time") { SUMMARY.to_owned() } else { "word ".repeat(100) };
        self.asked.lock().push(request);
        let usage = Usage { input_tokens: 40, ..Usage::default() };
        let end = Delta::End {
            reason: StopReason::EndTurn,
            usage,
            provider: Value::Null,
            model: Some("house/large-2".into()),
        };
        Ok(stream::iter([Ok(Delta::Text(text)), Ok(end)]).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

fn first_words(request: &ModelRequest) -> String {
    match request.messages.first().map(AsRef::as_ref) {
        Some(Message::User { content, .. } | Message::System { content, .. }) => content.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_compaction_names_its_lines_in_the_file_and_can_be_taken_back() {
    let model = Arc::new(Talks::default());
    let hub = Hub::with(model.clone()).await;
    let (by, chat) = (Principal::local(), ChatId(hub.clock.id()));
    let command = || CommandId(hub.clock.id());
    let new = NewChat { goal: "Question 0.".into(), ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, command(), new, &by).await.unwrap();
    hub.drive().await;
    let short = hub.chats.compact(hub.workspace, chat, command(), Some(10), &by).await.unwrap_err();
    assert_eq!((short.code, &short.details["field"]), (Code::InvalidArgument, &Value::from("max_summary_chars")));
    let none = hub.chats.undo_compaction(hub.workspace, chat, command(), &by).await.unwrap_err();
    assert_eq!(none.code, Code::Conflict);
    for number in 1..6 {
        let post = NewMessage { content: format!("Question {number}."), ..NewMessage::default() };
        hub.chats.post(hub.workspace, chat, command(), post, &by).await.unwrap();
        hub.drive().await;
    }
    let id = command();
    let turn = hub.chats.compact(hub.workspace, chat, id, Some(400), &by).await.unwrap();
    assert_eq!(turn, TurnId(id.0));
    hub.drive().await;
    let view = hub.chats.get(hub.workspace, chat).await.unwrap();
    let compaction = view.compaction.unwrap();
    assert_eq!((compaction.summary.as_str(), compaction.can_be_undone), (SUMMARY, true));
    assert!(compaction.tokens_after < compaction.tokens_before && compaction.ratio < 1.0);

    // The lines that are named end where the first turn begins that the model still reads.
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let text = files.read(&format!("/chats/{chat}.md").parse().unwrap(), None).await.unwrap().bytes;
    let text = String::from_utf8(text.to_vec()).unwrap();
    let line = |wanted: &str| text.lines().position(|line| line == wanted).map(|at| at as u64 + 1).unwrap();
    assert_eq!(line("Question 4.") - 3, compaction.last_line, "{text}");
    assert!(text.contains(&format!("## summary of lines 1 to {} · ", compaction.last_line)) && text.contains(SUMMARY));

    let post = NewMessage { content: "And now?".into(), ..NewMessage::default() };
    hub.chats.post(hub.workspace, chat, command(), post, &by).await.unwrap();
    hub.drive().await;
    let asked = model.asked.lock().last().cloned().unwrap();
    assert!(first_words(&asked).ends_with(SUMMARY) && asked.messages.len() == 6, "{:?}", asked.messages);
    let given = hub.chats.contexts(hub.workspace, chat, None).await.unwrap();
    let parts: Vec<ContextKind> = given.calls[0].parts.iter().map(|part| part.part.part).collect();
    assert_eq!(parts[2..], [ContextKind::Summary, ContextKind::History, ContextKind::Turn]);
    assert_eq!((given.calls[0].input_tokens, given.calls[0].model.as_deref()), (Some(40), Some("house/large-2")));
    let of_compaction = hub.chats.contexts(hub.workspace, chat, Some(turn)).await.unwrap();
    assert_eq!(of_compaction.compaction.map(|compaction| compaction.summary), Some(SUMMARY.to_owned()));
    let unknown = hub.chats.contexts(hub.workspace, chat, Some(TurnId(hub.clock.id()))).await.unwrap_err();
    assert_eq!(unknown.code, Code::NotFound);

    hub.chats.undo_compaction(hub.workspace, chat, command(), &by).await.unwrap();
    hub.drive().await;
    let post = NewMessage { content: "And then?".into(), ..NewMessage::default() };
    hub.chats.post(hub.workspace, chat, command(), post, &by).await.unwrap();
    hub.drive().await;
    let asked = model.asked.lock().last().cloned().unwrap();
    assert_eq!((first_words(&asked).as_str(), asked.messages.len()), ("Question 0.", 15));
    assert!(hub.chats.get(hub.workspace, chat).await.unwrap().compaction.is_none());
    let today = hub.clock.now().to_string()[..10].to_owned();
    let usage = hub.chats.usage(hub.workspace, &today, &today).await.unwrap();
    assert!(usage.len() == 9 && usage.iter().all(|turn| turn.model.as_deref() == Some("house/large-2")), "{usage:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_a_fork_with_other_words_and_steering_names_its_turn() {
    let model = Arc::new(Talks::default());
    let hub = Hub::with(model.clone()).await;
    let (by, chat) = (Principal::local(), ChatId(hub.clock.id()));
    let command = || CommandId(hub.clock.id());
    let new = NewChat { goal: "Question 0.".into(), ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, command(), new, &by).await.unwrap();
    hub.drive().await;
    let second = command();
    let post = NewMessage { content: "Question 1.".into(), ..NewMessage::default() };
    hub.chats.post(hub.workspace, chat, second, post, &by).await.unwrap();
    hub.drive().await;

    let words = NewMessage { content: "Another question.".into(), ..NewMessage::default() };
    let fork = (ChatId(hub.clock.id()), command());
    let turn = TurnId(second.0);
    let edited = hub.chats.edit(hub.workspace, chat, turn, fork, (command(), words.clone()), &by).await.unwrap();
    assert_eq!(edited.chat_id, fork.0);
    hub.drive().await;
    let asked = model.asked.lock().last().cloned().unwrap();
    assert_eq!(asked.messages.len(), 3, "the turn before, and the new words");
    let empty = NewMessage { content: " ".into(), ..NewMessage::default() };
    let other = (ChatId(hub.clock.id()), command());
    let refused = hub.chats.edit(hub.workspace, chat, turn, other, (command(), empty), &by).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);
    assert_eq!(hub.chats.get(hub.workspace, other.0).await.unwrap_err().code, Code::NotFound, "and no fork is made");

    // Nothing runs: words for a turn that ended are refused, words for whichever turn begin one.
    let steer = NewMessage { on_busy: OnBusy::Steer, ..words };
    let late = NewMessage { expected_turn_id: Some(turn), ..steer.clone() };
    assert_eq!(hub.chats.post(hub.workspace, chat, command(), late, &by).await.unwrap_err().code, Code::Conflict);
    let id = command();
    assert_eq!(hub.chats.post(hub.workspace, chat, id, steer, &by).await.unwrap().turn_id, TurnId(id.0));
    hub.drive().await;
    assert_eq!(hub.chats.get(hub.workspace, chat).await.unwrap().turns, 3);
}
