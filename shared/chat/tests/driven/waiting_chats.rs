//! Chats that wait: for a person who resumes them, or behind a question. They take messages meanwhile, and say so.

use crate::hub::Hub;
use async_trait::async_trait;
use buildscale_chat::{Accepted, Approve, LeaderRights, NewChat, NewMessage, QueuedBehind, actor_id};
use domain::{
    ChatEvent, ChatId, ChatStatus, ChatView, Code, CommandId, FilePath, Message, Mode, OnBusy, Principal, QuestionId,
    StopReason, TurnId, Usage,
};
use futures::{StreamExt, stream};
use ports::{Clock, Delta, Key, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::{Map, Value};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

/// Panics at one word while it is poisoned, asks at another, and can say far too much.
#[derive(Default)]
struct Moody {
    poisoned: AtomicBool,
    asked: AtomicUsize,
}

const PIECE: usize = 64 * 1024;

const RIGHTS: LeaderRights = LeaderRights { may_approve: true, may_not_run: false };

#[async_trait]
impl Model for Moody {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.asked.fetch_add(1, SeqCst);
        let last = request.messages.last().map(AsRef::as_ref);
        let mut deltas = match last {
            Some(Message::User { content, .. }) if content == "poison" && self.poisoned.load(SeqCst) => {
                // A panic that no hook hears of: it is meant.
                std::panic::resume_unwind(Box::new("as told"));
            }
            Some(Message::User { content, .. }) if content == "ask" => {
                let args = r#"{"questions":[{"name":"colour","question":"Which?","schema":{"type":"string"}}]}"#;
                vec![Delta::Call { tool: "ask_user".into(), args: args.into() }]
            }
            Some(Message::User { content, .. }) if content == "too long" => {
                (0..320).map(|_| Delta::Text("x".repeat(PIECE))).collect()
            }
            Some(Message::User { content, .. }) if content == "too many" => {
                let call = || Delta::Call { tool: String::new(), args: "{}".into() };
                let said = Delta::Text("I call".into());
                [said].into_iter().chain((0..100_000).map(|_| call())).collect()
            }
            Some(Message::User { content, .. }) if content == "too much to keep" => {
                vec![Delta::Text("I think".into())]
            }
            _ => vec![Delta::Text("fine".into())],
        };
        let kept = match last {
            Some(Message::User { content, .. }) if content == "too much to keep" => {
                serde_json::json!({ "provider": "p", "thoughts": [{ "signature": "x".repeat(40 << 20) }] })
            }
            _ => Value::Null,
        };
        deltas.push(Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: kept, model: None });
        Ok(stream::iter(deltas.into_iter().map(Ok)).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

struct Talk {
    hub: Hub,
    model: Arc<Moody>,
    chat: ChatId,
}

impl Talk {
    async fn about(goal: &str) -> Self {
        let model = Arc::new(Moody::default());
        let hub = Hub::with(model.clone()).await;
        model.poisoned.store(true, SeqCst);
        let (chat, command) = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
        let new = NewChat { goal: goal.into(), ..NewChat::default() };
        hub.chats.create(hub.workspace, chat, command, new, &Principal::local()).await.unwrap();
        // A question is left open until it expires.
        if goal == "ask" {
            hub.drive().await
        } else {
            hub.settle().await
        }
        Self { hub, model, chat }
    }

    async fn post(&self, content: &str) -> Accepted {
        let (post, command) =
            (NewMessage { content: content.into(), ..NewMessage::default() }, CommandId(self.hub.clock.id()));
        self.hub.chats.post(self.hub.workspace, self.chat, command, post, &Principal::local()).await.unwrap()
    }

    async fn view(&self) -> ChatView {
        self.hub.chats.look(self.hub.workspace, self.chat).await.unwrap()
    }

    async fn queued(&self) -> Vec<String> {
        self.view().await.queued.into_iter().map(|message| message.content).collect()
    }

    async fn events(&self) -> Vec<ChatEvent> {
        let actor = actor_id(self.hub.workspace, self.chat);
        let (mut events, mut after) = (Vec::new(), 0);
        loop {
            let page = actor::read_after::<ChatEvent>(&*self.hub.log, &actor, after, 100).await.unwrap();
            after = page.entries.last().map_or(after, |entry| entry.next - 1);
            events.extend(page.entries.into_iter().flat_map(|entry| entry.events));
            if !page.more {
                return events;
            }
        }
    }

    /// How each turn ended.
    async fn ends(&self) -> Vec<String> {
        let end = |event| match event {
            ChatEvent::Done { stop_reason, .. } => Some(format!("{stop_reason:?}")),
            ChatEvent::Stopped { reason, .. } => Some(reason),
            _ => None,
        };
        self.events().await.into_iter().filter_map(end).collect()
    }

    /// The number of notes beside the log.
    fn notes(&self) -> usize {
        let items = self.hub.table.partition(actor_id(self.hub.workspace, self.chat).as_str());
        items.iter().filter(|item| item.key.sk.starts_with("waiting/") || item.key.sk == "trial").count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_chat_takes_messages_and_one_makes_it_go_on() {
    let talk = Talk::about("hello").await;
    assert_eq!(talk.post("poison").await.queued_behind, None);
    talk.hub.settle().await;
    let view = talk.view().await;
    assert_eq!(view.status, ChatStatus::Paused);
    assert_eq!(view.paused_reason.as_deref(), Some("it failed 6 times by itself: panicked: as told"));

    // It is poisoned still: tried again, paused again, and the message waits.
    let accepted = talk.post("thanks").await;
    assert_eq!(accepted.queued_behind, Some(QueuedBehind::PausedTurn));
    assert_eq!(accepted.paused_reason, view.paused_reason);
    assert_eq!(talk.queued().await, ["thanks"]);
    talk.hub.settle().await;
    assert_eq!((talk.view().await.status, talk.queued().await), (ChatStatus::Paused, vec!["thanks".to_owned()]));

    // Mended, the next message frees it, and everything is read in order.
    talk.model.poisoned.store(false, SeqCst);
    talk.post("and bye").await;
    talk.hub.settle().await;
    assert_eq!(talk.view().await.status, ChatStatus::Idle);
    assert_eq!(talk.ends().await, ["EndTurn"; 4]);
    let said = talk.events().await.into_iter().filter_map(|event| match event {
        ChatEvent::MessageAdded { message: Message::User { content, .. } } => Some(content),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["hello", "poison", "thanks", "and bye"]);
    assert_eq!((talk.queued().await.len(), talk.notes()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_approval_of_a_plan_makes_a_paused_chat_go_on() {
    let talk = Talk::about("poison").await;
    talk.hub.put("/projects/plan.md", "- [ ] one\n").await;
    let files = talk.hub.workspaces.open(talk.hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let plan = files.stat(&FilePath::parse("/projects/plan.md").unwrap()).await.unwrap().file_id;
    talk.model.poisoned.store(false, SeqCst);
    let (command, by) = (CommandId(talk.hub.clock.id()), Principal::local());
    let approve = Approve { plan: Some(plan), v: 1, ..Approve::default() };
    let accepted = talk.hub.chats.approve(talk.hub.workspace, talk.chat, command, approve, &by).await.unwrap();
    assert_eq!(accepted.queued_behind, Some(QueuedBehind::PausedTurn));
    assert!(accepted.paused_reason.is_some());
    talk.hub.settle().await;
    let view = talk.view().await;
    assert_eq!(
        (view.status, view.mode, view.approval.map(|approval| approval.v)),
        (ChatStatus::Idle, Mode::Build, Some(1))
    );
    assert_eq!(talk.ends().await, ["EndTurn", "EndTurn"], "the failed turn came first");
}

#[tokio::test(start_paused = true)]
async fn a_stop_gives_up_what_a_chat_is_paused_for() {
    let talk = Talk::about("poison").await;
    talk.post("thanks").await;
    talk.hub.settle().await;
    let stop = CommandId(talk.hub.clock.id());
    for _ in 0..2 {
        talk.hub.chats.stop(talk.hub.workspace, talk.chat, stop, &Principal::local()).await.unwrap();
    }
    talk.hub.settle().await;
    assert_eq!(talk.ends().await, ["dropped", "EndTurn"]);
    assert_eq!((talk.view().await.status, talk.notes()), (ChatStatus::Idle, 0));
}

#[tokio::test(start_paused = true)]
async fn a_paused_chat_is_deleted_with_all_that_waits() {
    let talk = Talk::about("poison").await;
    talk.post("thanks").await;
    talk.hub.settle().await;
    assert_eq!((talk.view().await.status, talk.queued().await), (ChatStatus::Paused, vec!["thanks".to_owned()]));
    talk.hub.chats.delete(talk.hub.workspace, talk.chat, &Principal::local()).await.unwrap();
    talk.hub.settle().await;
    assert_eq!(talk.ends().await, ["deleted"]);
    assert!(talk.hub.queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_behind_a_question_says_so_and_is_seen() {
    let talk = Talk::about("ask").await;
    assert_eq!(talk.view().await.status, ChatStatus::Suspended);
    assert_eq!(talk.post("more").await.queued_behind, Some(QueuedBehind::OpenQuestion));
    assert_eq!((talk.queued().await, talk.notes()), (vec!["more".to_owned()], 1));
    // Sent again under its id, it waits once.
    let again = talk.view().await.queued[0].turn_id;
    let post = NewMessage { content: "more".into(), ..NewMessage::default() };
    let (workspace, by) = (talk.hub.workspace, Principal::local());
    // Once a worker has seen it, the chat itself says so.
    let view = talk.view().await;
    let id: QuestionId = view.waiting_for[0]["data"]["question_id"].as_str().unwrap().parse().unwrap();
    talk.hub.drive().await;
    assert_eq!((talk.queued().await, talk.notes()), (vec!["more".to_owned()], 0));
    talk.hub.chats.post(workspace, talk.chat, CommandId(again.0), post, &by).await.unwrap();
    assert_eq!((talk.queued().await, talk.notes()), (vec!["more".to_owned()], 1));
    let answers = Map::from_iter([("colour".to_owned(), Value::from("blue"))]);
    let command = CommandId(talk.hub.clock.id());
    talk.hub
        .chats
        .answer(talk.hub.workspace, talk.chat, command, id, answers, RIGHTS, &Principal::local())
        .await
        .unwrap();
    talk.hub.settle().await;
    assert_eq!(talk.ends().await, ["EndTurn", "EndTurn"]);
    assert!(talk.queued().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_finds_fifty_waiting_is_refused_and_none_that_was_accepted_is_lost() {
    let talk = Talk::about("ask").await;
    let (workspace, by) = (talk.hub.workspace, Principal::local());
    let view = talk.view().await;
    let id: QuestionId = view.waiting_for[0]["data"]["question_id"].as_str().unwrap().parse().unwrap();
    let post = async |command: CommandId, on_busy: OnBusy| {
        let post = NewMessage { content: "more".into(), on_busy, ..NewMessage::default() };
        talk.hub.chats.post(workspace, talk.chat, command, post, &by).await.map(drop)
    };
    let another = || CommandId(talk.hub.clock.id());
    let first = another();
    assert_eq!(post(first, OnBusy::Enqueue).await, Ok(()));
    for _ in 1..50 {
        assert_eq!(post(another(), OnBusy::Enqueue).await, Ok(()));
    }
    let refused = post(another(), OnBusy::Enqueue).await.unwrap_err();
    assert_eq!((refused.code, refused.details["retry_after_s"].as_u64()), (Code::RateLimited, Some(5)));
    assert!(refused.hint.is_some_and(|hint| hint.starts_with("answer the open question first")));
    assert_eq!(post(first, OnBusy::Enqueue).await, Ok(()), "it waits already");
    // Once a worker has seen them, the chat itself counts them.
    while talk.notes() > 0 {
        talk.hub.drive().await;
    }
    assert_eq!(talk.queued().await.len(), 50);
    assert_eq!(post(another(), OnBusy::Enqueue).await.unwrap_err().code, Code::RateLimited);

    let answers = Map::from_iter([("colour".to_owned(), Value::from("blue"))]);
    talk.hub.chats.answer(workspace, talk.chat, another(), id, answers, RIGHTS, &by).await.unwrap();
    talk.hub.settle().await;
    assert_eq!(talk.ends().await, ["EndTurn"; 51]);
    assert_eq!(post(another(), OnBusy::Enqueue).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn an_interruption_is_taken_where_fifty_messages_wait() {
    let talk = Talk::about("ask").await;
    for _ in 0..50 {
        talk.post("more").await;
    }
    let (post, command) = (
        NewMessage { content: "stop that".into(), on_busy: OnBusy::Interrupt, ..NewMessage::default() },
        CommandId(talk.hub.clock.id()),
    );
    let by = Principal::local();
    let accepted = talk.hub.chats.post(talk.hub.workspace, talk.chat, command, post, &by).await.unwrap();
    assert_eq!(accepted.queued_behind, None);
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_answer_was_lost_is_accepted_again_whatever_runs_by_then() {
    let talk = Talk::about("hello").await;
    let (workspace, by) = (talk.hub.workspace, Principal::local());
    let post = async |command: CommandId, content: &str, on_busy: OnBusy, expected_turn_id: Option<TurnId>| {
        let post = NewMessage { content: content.into(), on_busy, expected_turn_id, ..NewMessage::default() };
        let accepted = talk.hub.chats.post(workspace, talk.chat, command, post, &by).await;
        accepted.map(|accepted| accepted.turn_id).map_err(|error| error.code)
    };
    let another = || CommandId(talk.hub.clock.id());
    let (first, words) = (another(), another());
    let turn = TurnId(first.0);
    assert_eq!(post(first, "ask", OnBusy::Reject, None).await, Ok(turn));
    talk.hub.drive().await;
    assert_eq!(talk.view().await.status, ChatStatus::Suspended);
    assert_eq!(post(first, "ask", OnBusy::Reject, None).await, Ok(turn), "the turn that runs is its own");
    assert_eq!(post(another(), "ask", OnBusy::Reject, None).await, Err(Code::Conflict));

    assert_eq!(post(words, "in blue", OnBusy::Steer, Some(turn)).await, Ok(turn));
    talk.hub.drive().await;
    talk.hub.chats.stop(workspace, talk.chat, another(), &by).await.unwrap();
    talk.hub.drive().await;
    assert_eq!(talk.view().await.status, ChatStatus::Idle);
    assert_eq!(post(words, "in blue", OnBusy::Steer, Some(turn)).await, Ok(turn), "the turn has its words");
    assert_eq!(post(another(), "in red", OnBusy::Steer, Some(turn)).await, Err(Code::Conflict));
}

#[tokio::test(start_paused = true)]
async fn of_two_different_answers_the_first_that_fits_is_accepted() {
    let talk = Talk::about("ask").await;
    let view = talk.view().await;
    let id: QuestionId = view.waiting_for[0]["data"]["question_id"].as_str().unwrap().parse().unwrap();
    let answer = async |command: CommandId, colour: &str| {
        let (workspace, by) = (talk.hub.workspace, Principal::local());
        let answers = Map::from_iter([("colour".to_owned(), Value::from(colour))]);
        let accepted = talk.hub.chats.answer(workspace, talk.chat, command, id, answers, RIGHTS, &by).await;
        accepted.map_err(|error| error.code)
    };
    let (first, second) = (CommandId(talk.hub.clock.id()), CommandId(talk.hub.clock.id()));
    assert_eq!(answer(second, &"x".repeat(ports::validate::MAX_MESSAGE)).await, Err(Code::PayloadTooLarge));
    assert_eq!(answer(first, "blue").await, Ok(()));
    assert_eq!(answer(second, "red").await, Err(Code::Conflict));
    assert_eq!((answer(second, "blue").await, answer(first, "blue").await), (Ok(()), Ok(())));
    talk.hub.settle().await;
    assert_eq!(talk.ends().await, ["EndTurn"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_any_number_of_calls_or_data_to_keep_ends_its_turn_and_is_paid_for_once() {
    for (goal, said) in [("too many", "I call"), ("too much to keep", "I think")] {
        let talk = Talk::about(goal).await;
        assert_eq!((talk.ends().await, talk.model.asked.load(SeqCst)), (vec!["Error".to_owned()], 1), "{goal}");
        let events = talk.events().await;
        let limit =
            |event: &ChatEvent| matches!(event, ChatEvent::Failed { error } if error.code == Code::LimitReached);
        assert!(events.iter().any(limit), "{goal}");
        let kept = events.iter().find_map(|event| match event {
            ChatEvent::MessageAdded { message: Message::Assistant { content, .. } } => Some(content.as_str()),
            _ => None,
        });
        assert_eq!(kept, Some(said));
        talk.post("thanks").await;
        talk.hub.settle().await;
        assert_eq!((talk.ends().await.len(), talk.view().await.status), (2, ChatStatus::Idle), "{goal}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_any_size_ends_its_turn_and_is_paid_for_once() {
    let talk = Talk::about("too long").await;
    assert_eq!((talk.ends().await, talk.model.asked.load(SeqCst)), (vec!["Error".to_owned()], 1));
    let events = talk.events().await;
    let error = events.iter().find_map(|event| match event {
        ChatEvent::Failed { error } => Some(error),
        _ => None,
    });
    assert_eq!(error.map(|error| error.code), Some(Code::LimitReached), "{error:?}");
    let kept = events.iter().find_map(|event| match event {
        ChatEvent::MessageAdded { message: Message::Assistant { content, .. } } => Some(content.len()),
        _ => None,
    });
    assert_eq!(kept, Some(8 << 20));
    // The chat goes on.
    talk.post("thanks").await;
    talk.hub.settle().await;
    assert_eq!((talk.ends().await.len(), talk.view().await.status), (2, ChatStatus::Idle));
    talk.hub.chats.delete(talk.hub.workspace, talk.chat, &Principal::local()).await.unwrap();
    talk.hub.settle().await;
}

#[tokio::test(start_paused = true)]
async fn the_log_of_a_chat_that_was_deleted_is_found_when_its_workspace_is_deleted() {
    let talk = Talk::about("hello").await;
    let (workspace, log) = (talk.hub.workspace, &*talk.hub.log);
    let ended = async || actor::ended::of(log, workspace).await.unwrap();
    let has_log = || !talk.hub.table.partition(actor_id(workspace, talk.chat).as_str()).is_empty();
    assert_eq!(ended().await, []);
    talk.hub.chats.delete(workspace, talk.chat, &Principal::local()).await.unwrap();
    assert_eq!(ended().await, [actor_id(workspace, talk.chat)], "from the moment on at which it is on no list");
    talk.hub.settle().await;
    assert_eq!(ended().await, [actor_id(workspace, talk.chat)]);
    assert!(has_log());
    actor::ended::remove(log, &actor_id(workspace, talk.chat)).await.unwrap();
    assert!(!has_log() && ended().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_damaged_view_is_made_of_the_log_and_bricks_no_list() {
    let talk = Talk::about("hello").await;
    let (workspace, chats) = (talk.hub.workspace, &talk.hub.chats);
    let (other, command) = (ChatId(talk.hub.clock.id()), CommandId(talk.hub.clock.id()));
    let new = NewChat { goal: "hello".into(), ..NewChat::default() };
    chats.create(workspace, other, command, new, &Principal::local()).await.unwrap();
    talk.hub.settle().await;
    let whole = chats.get(workspace, talk.chat).await.unwrap();
    let listed = async || {
        let page = chats.list(workspace, 10, None).await.unwrap();
        page.chats.into_iter().map(|view| view.chat_id).collect::<Vec<_>>()
    };

    talk.hub.table.damage(&Key::new(format!("{workspace}/chats"), talk.chat.to_string()), "{}");
    assert_eq!(chats.get(workspace, talk.chat).await.unwrap(), whole);
    assert_eq!(listed().await, [other, talk.chat]);
    // A chat whose log is damaged, too, keeps no other one back, and can be deleted.
    talk.hub.table.damage(&actor_id(workspace, talk.chat).entry_key(1), "{}");
    assert_eq!(chats.get(workspace, talk.chat).await.unwrap_err().code, Code::Internal);
    assert_eq!(listed().await, [other]);
    chats.delete(workspace, talk.chat, &Principal::local()).await.unwrap();
    assert_eq!(chats.get(workspace, talk.chat).await.unwrap_err().code, Code::NotFound);
}
