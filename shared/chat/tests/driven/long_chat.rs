//! A chat of ten thousand messages on the embedded store: it opens, is listed and is searched without being read whole, and the model knows where
//! the turns are that it does not read.

use crate::hub::Hub;
use actor::{ActorId, Content, Entry, Envelope};
use async_trait::async_trait;
use buildscale_chat::{ForkPoint, NewChat, NewMessage, actor_id};
use domain::{
    ChatCommand, ChatConfig, ChatEvent, ChatId, CommandId, Limits, Message, MessageId, Principal, StopReason,
    Timestamp, TurnId, TurnRequest, Usage,
};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use ports::{
    Clock, Delta, Expect, IndexQuery, Item, Key, Model, ModelError, ModelInfo, ModelRequest, ModelStream, Page, Query,
    Table, Write,
};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use uuid::Uuid;

const TURNS: u64 = 5_000;
const DECISION: &str = "We decided that the service listens on port 4711.";
/// The turn in which it was decided.
const DECIDED_IN: u64 = 100;

/// The embedded store, with a count of the items that were read.
struct Counted {
    table: Arc<dyn Table>,
    read: Arc<AtomicUsize>,
    _store: embedded::Store,
}

impl Counted {
    fn count(&self, page: Page) -> Page {
        self.read.fetch_add(page.items.len(), Ordering::SeqCst);
        page
    }
}

#[async_trait]
impl Table for Counted {
    fn max_body(&self) -> usize {
        self.table.max_body()
    }
    async fn get(&self, key: &Key) -> ports::Result<Option<Item>> {
        self.read.fetch_add(1, Ordering::SeqCst);
        self.table.get(key).await
    }
    async fn query(&self, query: &Query) -> ports::Result<Page> {
        Ok(self.count(self.table.query(query).await?))
    }
    async fn query_index(&self, query: &IndexQuery) -> ports::Result<Page> {
        Ok(self.count(self.table.query_index(query).await?))
    }
    async fn commit(&self, writes: Vec<Write>) -> ports::Result<()> {
        self.table.commit(writes).await
    }
}

/// Looks the decision up with `grep`, and answers with what it found.
#[derive(Default)]
struct LooksUp {
    asked: Mutex<Vec<ModelRequest>>,
}

#[async_trait]
impl Model for LooksUp {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let next = match request.messages.last().map(AsRef::as_ref) {
            Some(Message::User { content, .. }) if content.contains("port") => {
                let args = json!({ "pattern": "decided that .* port", "path": "/chats" }).to_string();
                Delta::Call { tool: "grep".into(), args }
            }
            Some(Message::Tool { output, .. }) => Delta::Text(output.clone()),
            _ => Delta::Text("yes".into()),
        };
        self.asked.lock().push(request);
        let end =
            Delta::End { reason: StopReason::EndTurn, usage: Usage::default(), provider: Value::Null, model: None };
        Ok(stream::iter([Ok(next), Ok(end)]).boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// The events of a turn of two messages.
fn turn(number: u64) -> Vec<ChatEvent> {
    let (id, at) = (Uuid::from_u128(u128::from(number)), Timestamp::from_millis(number as i64 * 60_000));
    let (turn_id, message_id) = (TurnId(id), MessageId(id));
    let answer =
        if number == DECIDED_IN { DECISION.to_owned() } else { format!("Answer {number}.\nIt has a second line.") };
    let asked = Message::User {
        id: message_id,
        at,
        content: format!("Question {number}."),
        files: vec![],
        context: String::new(),
        user_id: None,
    };
    let said = Message::Assistant {
        id: message_id,
        at,
        content: answer.clone(),
        calls: vec![],
        reasoning: String::new(),
        provider: Value::Null,
    };
    let limits = Limits::default();
    vec![
        ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None },
        ChatEvent::MessageAdded { message: asked },
        ChatEvent::ModelStarted { message_id, attempt: 1, at, context: None },
        ChatEvent::MessageAdded { message: said },
        ChatEvent::Done { turn_id, message: answer, stop_reason: StopReason::EndTurn, at },
    ]
}

/// Writes the log of a chat as workers write it.
async fn write_log(table: &dyn Table, actor: &ActorId, config: ChatConfig) {
    let all = std::iter::once(vec![ChatEvent::Created { config: Box::new(config) }]).chain((1..=TURNS).map(turn));
    let (mut first, mut writes) = (1, Vec::new());
    for events in all {
        let (next, at) = (first + events.len() as u64, Timestamp::from_millis(0));
        let step = Uuid::from_u128(u128::from(first));
        let entry = Entry { first, next, at, step, commands: vec![], events, outbox: vec![], parking: None };
        writes.push(Write::put(actor.entry_key(first), serde_json::to_string(&entry).unwrap(), Expect::Absent));
        first = next;
        if writes.len() == 100 {
            table.commit(std::mem::take(&mut writes)).await.unwrap();
        }
    }
    if !writes.is_empty() {
        table.commit(writes).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_messages_open_list_and_search_without_being_read_whole() {
    let (model, read) = (Arc::new(LooksUp::default()), Arc::new(AtomicUsize::new(0)));
    let count = read.clone();
    let hub = Hub::over(model.clone(), |clock, _, folder| {
        let options = embedded::Options { durability: embedded::Durability::Normal, ..embedded::Options::default() };
        let store = embedded::Store::open(folder.join("store.sqlite"), clock, options).unwrap();
        Arc::new(Counted { table: store.table(), read: count, _store: store })
    })
    .await;
    let (by, chat) = (Principal::local(), ChatId(hub.clock.id()));
    let new = NewChat { goal: "Which port was decided on?".into(), ..NewChat::default() };
    hub.chats.create(hub.workspace, chat, CommandId(hub.clock.id()), new, &by).await.unwrap();
    let envelope: Envelope<ChatCommand> = serde_json::from_str(&hub.queue.messages().last().unwrap().body).unwrap();
    let Content::Command { body: ChatCommand::StartTurn(TurnRequest { create: Some(config), .. }) } = envelope.content
    else {
        panic!("no chat was made")
    };
    // Tools are the larger part of it.
    let config = ChatConfig { context_tokens: 10_000, ..*config };
    write_log(&*hub.log, &actor_id(hub.workspace, chat), config).await;
    // A turn over all of it: a cold start folds the log, and brings the file up to date.
    hub.drive().await;

    let reads = |what: &str, most: usize| {
        let items = read.swap(0, Ordering::SeqCst);
        assert!(items <= most, "{what} read {items} items; {most} are enough");
    };
    read.store(0, Ordering::SeqCst);
    let view = hub.chats.get(hub.workspace, chat).await.unwrap();
    reads("the chat", 1);
    assert_eq!(hub.chats.list(hub.workspace, 50, None).await.unwrap().chats.len(), 1);
    reads("the list", 3);
    let newest = hub.chats.history_before(hub.workspace, chat, u64::MAX >> 1, 50).await.unwrap();
    reads("the newest page", 80);
    assert!((50..54).contains(&newest.messages.len()) && newest.messages.is_sorted_by_key(|one| one.seq));
    let before = hub.chats.history_before(hub.workspace, chat, newest.next_before.unwrap(), 50).await.unwrap();
    reads("the page before", 80);
    assert!(before.messages.last().unwrap().seq < newest.messages[0].seq, "pages do not overlap");
    let first = hub.chats.history(hub.workspace, chat, 0, 50).await.unwrap();
    reads("the first page", 300);
    assert_eq!((first.messages.len(), newest.last_seq), (50, first.last_seq));

    // The decision is found by a search of /chats, in the very line that the model is pointed to.
    let file = format!("/chats/{chat}.md");
    let found = view_text(&newest.messages.last().unwrap().message);
    assert!(found.contains(&file) && found.contains(DECISION), "{found}");
    let asked = model.asked.lock().first().cloned().unwrap();
    let told = asked.system.lines().skip_while(|line| *line != "# Earlier in this chat").nth(1).unwrap().to_owned();
    let last: usize = told.split("lines 1 to ").nth(1).unwrap().split('.').next().unwrap().parse().unwrap();
    assert!(told.contains(&file), "{told}");
    let files = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let text = files.read(&file.parse().unwrap(), None).await.unwrap().bytes;
    let text = std::str::from_utf8(&text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let line = |wanted: &str| lines.iter().position(|line| *line == wanted).map(|position| position + 1).unwrap();
    assert!(line(DECISION) <= last, "{told}");
    let kept = view_text(&asked.messages[0]);
    let number: u64 = kept.trim_start_matches("Question ").trim_end_matches('.').parse().unwrap();
    assert!(number > DECIDED_IN && told.contains(&format!("The oldest {} turns", number - 1)), "{kept} {told}");
    let heading = line(&kept) - 2;
    assert_eq!(heading, last + 1, "the first turn that the model reads begins after the lines that are named");
    assert!(asked.messages.len() < 500, "the context is bounded");

    // A fork in the middle reads what it takes, and tells its agent where the rest is.
    let whole = hub.chats.history(hub.workspace, chat, 20_000, 1).await.unwrap();
    read.store(0, Ordering::SeqCst);
    let ids = (ChatId(hub.clock.id()), CommandId(hub.clock.id()));
    let point = ForkPoint::Seq(whole.messages[0].seq);
    let fork = hub.chats.fork(hub.workspace, chat, point, ids, None, &by).await.unwrap();
    reads("a fork", 400);
    assert!((10..400).contains(&fork.turns), "{}", fork.turns);
    let post = NewMessage { content: "In the fork.".into(), ..NewMessage::default() };
    hub.chats.post(hub.workspace, fork.chat_id, CommandId(hub.clock.id()), post, &by).await.unwrap();
    hub.drive().await;
    let asked = model.asked.lock().pop().unwrap();
    assert!(asked.system.contains(&format!(
        "This chat is a fork. Its older turns are not in your context. They are kept word for word in {file}"
    )));
    assert!(asked.messages.len() > 20 && view_text(&asked.messages[0]).starts_with("Question "));

    // Another turn, of the actor in memory, reads nothing of the history, and names the same range.
    let post = NewMessage { content: "Good.".into(), ..NewMessage::default() };
    read.store(0, Ordering::SeqCst);
    hub.chats.post(hub.workspace, chat, CommandId(hub.clock.id()), post, &by).await.unwrap();
    hub.drive().await;
    reads("a turn", 40);
    let systems: Vec<_> = model.asked.lock().iter().map(|request| request.system.clone()).collect();
    assert!(systems.windows(2).all(|pair| pair[0] == pair[1]), "the bytes that a provider has cached stay");
    assert_eq!(hub.chats.get(hub.workspace, chat).await.unwrap().turns, view.turns + 1);
}

fn view_text(message: &Message) -> String {
    match message {
        Message::User { content, .. } | Message::Assistant { content, .. } | Message::System { content, .. } => {
            content.clone()
        }
        Message::Tool { output, .. } => output.clone(),
    }
}
