//! A deployment whose calls can be made to fail, what a person does there, and what must hold of what is left of it.

use actor::Entry;
use aws::{DynamoTable, S3Blobs};
use aws_sdk_sqs::types::QueueAttributeName;
use domain::{CallId, ChatEvent, ChatId, TurnId, WorkspaceId};
use emulators::{Call, Calls, Emulator, Fate, account};
use journeys::{Aws, Binaries, Client, Emulators, Event, Options, Settings, Watch};
use ports::{Key, Query, Spilling, SystemClock, Table};
use serde_json::{Value, json};
use simulation::{
    Seen,
    invariants::{self as must, Held, Versioned},
};
use std::{
    fmt::Write as _,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

/// Long enough for the archive, and for the log to keep what it is about elsewhere: S3 has both.
const LONG: usize = 80 * 1024;

const ASKS: &str = "- when: {user: '^ask'}
  steps:
  - text: One question.
    calls: [{tool: ask_user, args: {questions: [{name: colour, question: 'Which?', schema: {enum: [red, blue]}}]}}]
  - {text: 'You said {{call.0.output/colour}}.'}
";

/// Files that are written, read and changed; and text that never ends by itself.
fn script() -> String {
    let mut script = String::from("rules:\n");
    script.push_str("- when: {user: '^slow'}\n  steps:\n");
    script.push_str("  - {text: 'one two three four five', chunks: 5, delay_ms: 5, hang: true}\n");
    script.push_str("- when: {user: '^say'}\n  steps:\n  - {text: 'Said.'}\n");
    script.push_str(ASKS);
    for (goal, length) in [("'^small'", 11), ("'^large'", LONG), ("'^huge'", 4 * LONG)] {
        let path = "path: '/projects/{{user}}/a.md'";
        let content = format!("first {}", "many words ".repeat(length / 11));
        let _ = write!(
            script,
            "- when: {{user: {goal}}}\n  steps:\n  \
             - {{text: 'I write it.', chunks: 2, delay_ms: 2, calls: [{{tool: write, args: {{{path}, content: '{content}'}}}}]}}\n  \
             - {{calls: [{{tool: edit, args: {{{path}, edits: [{{old: first, new: second}}]}}}}]}}\n  \
             - {{text: 'The file is done.', chunks: 2, delay_ms: 2}}\n"
        );
    }
    script
}

/// A deployment, and a workspace in it.
pub struct Lane {
    pub world: Aws,
    pub client: Client,
    pub place: String,
    pub workspace: WorkspaceId,
}

impl Lane {
    pub async fn deploy(emulators: &Arc<Emulators>, settings: Settings<'_>) -> Self {
        let binaries = Binaries::beside(env!("CARGO_BIN_EXE_buildscale-worker"));
        let options = Options { script: script(), settings, ..Options::default() };
        let world = Aws::deploy(&binaries, emulators.clone(), options).await.unwrap();
        world.worker.end_leases();
        let client = world.client();
        let workspace = client.workspace().await.unwrap();
        let place = format!("/api/v1/workspaces/{workspace}");
        Self { world, client, place, workspace: workspace.parse().unwrap() }
    }

    /// Every service that functions call, by what it is called here.
    pub fn services(&self) -> [(&'static str, &Calls); 5] {
        let world = &self.world;
        [
            ("DynamoDB", &world.dynamodb),
            ("SQS", &world.sqs),
            ("S3", &world.s3),
            ("DynamoDB of the API", &world.dynamodb_of_api),
            ("SQS of the API", &world.sqs_of_api),
        ]
    }

    /// Decides the fate of every call to every service.
    pub fn plan(&self, plan: impl Fn(&Call) -> Fate + Clone + Send + 'static) {
        for (_, calls) in self.services() {
            calls.plan_calls(plan.clone());
        }
    }

    /// A chat whose first turn makes a file. Whoever asks for it asks again when nobody answers.
    pub async fn make(&self, goal: &str) -> (String, Watch) {
        let chats = format!("{}/chats", self.place);
        let made = self.client.post_surely(&chats, goal, &json!({ "goal": goal })).await.unwrap();
        let chat = format!("{chats}/{}", made["chat_id"].as_str().unwrap());
        let watch = self.client.watch(&chat);
        watch.until_event("done").await.unwrap();
        (chat, watch)
    }

    /// A second turn, which is stopped while it runs.
    pub async fn stop(&self, chat: &str, watch: &Watch) {
        let before = journeys::count(&watch.events(), "done");
        self.say(chat, "slow please").await;
        let begun = |events: &[Event]| {
            let last = events.iter().rposition(|event| event.name == "done").unwrap_or_default();
            events.get(last..).unwrap_or_default().iter().any(|event| event.name == "chunk")
        };
        watch.until(begun).await.unwrap();
        self.client.post(&format!("{chat}/stop"), Value::Null).await.unwrap();
        watch.until_event("stopped").await.unwrap();
        assert_eq!(journeys::count(&watch.events(), "done"), before, "the stopped turn did not end by itself");
    }

    /// Says something in a chat, once, however often it takes.
    pub async fn say(&self, chat: &str, content: &str) {
        let key = format!("{chat} {content}");
        self.client.post_surely(chat, &key, &json!({ "content": content })).await.unwrap();
    }

    /// Waits until no function drives anything and nothing waits; nothing was put aside.
    pub async fn settled(&self) {
        let settled = async {
            loop {
                if self.world.worker.running() == 0 && self.waiting("commands").await == 0 {
                    return;
                }
                // poll: neither a function nor a queue says when it is done
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(journeys::PATIENCE, settled).await.unwrap();
        assert_eq!(self.waiting("commands-dead").await, 0, "something was put aside");
    }

    /// How many commands there are that nobody has done.
    pub async fn waiting_commands(&self) -> u32 {
        self.waiting("commands").await
    }

    /// How many messages a queue has, in flight or not.
    async fn waiting(&self, queue: &str) -> u32 {
        use QueueAttributeName::{
            ApproximateNumberOfMessages as Visible, ApproximateNumberOfMessagesNotVisible as Taken,
        };
        let client = aws_sdk_sqs::Client::new(&account::sdk(self.world.sqs.endpoint()));
        let ask = client.get_queue_attributes().queue_url(self.queue_url(queue));
        let answer = ask.attribute_names(Visible).attribute_names(Taken).send().await.unwrap();
        let counts = answer.attributes.unwrap_or_default();
        [Visible, Taken].iter().map(|name| counts[name].parse::<u32>().unwrap()).sum()
    }

    /// The address of one of its queues, from where functions ask.
    pub fn queue_url(&self, queue: &str) -> String {
        format!("{}/{}/{}-{queue}.fifo", self.world.sqs.endpoint(), account::ACCOUNT, self.world.name)
    }

    /// What the functions have written, read by nobody's process.
    pub fn table(&self) -> Arc<dyn Table> {
        let client = aws_sdk_dynamodb::Client::new(&account::sdk(self.world.dynamodb.endpoint()));
        let table = DynamoTable::new(client, &self.world.name, Arc::new(SystemClock));
        let s3 = aws_sdk_s3::config::Builder::from(&account::sdk(self.world.s3.endpoint())).force_path_style(true);
        let blobs = S3Blobs::new(aws_sdk_s3::Client::from_conf(s3.build()), &self.world.name);
        Arc::new(Spilling::new(Arc::new(table), Arc::new(blobs)))
    }

    /// The log of a chat.
    pub async fn log(&self, chat: &str) -> Vec<Entry<ChatEvent>> {
        let (table, actor) = (self.table(), chat::actor_id(self.workspace, chat_id(chat)));
        let mut log: Vec<Entry<ChatEvent>> = Vec::new();
        loop {
            let after = log.last().map_or(0, |entry| entry.next - 1);
            let page = actor::read_after(&*table, &actor, after, 200).await.unwrap();
            log.extend(page.entries.into_iter().filter(|entry| entry.first > after));
            if !page.more {
                return log;
            }
        }
    }

    /// All that must hold of a chat in which nothing moves any more, whatever happened before: of its log, of what is made of it, and of
    /// what somebody saw who watched it.
    pub async fn check(&self, chat: &str, watch: &Watch, what: &str) {
        self.settled().await;
        let (id, table) = (chat_id(chat), self.table());
        let log = self.log(chat).await;
        let body = async |key: Key| table.get(&key).await.unwrap().map(|item| item.body);
        let snapshot = body(chat::actor_id(self.workspace, id).snapshot_key()).await;
        let view = body(Key::new(format!("{}/chats", self.workspace), id.to_string())).await;
        let last = log.iter().flat_map(Entry::numbered).filter(|(_, event)| domain::native::encode(event).is_some());
        let last = last.map(|(number, _)| number).last().unwrap_or_default();
        watch.until(|events| events.last().is_some_and(|event| event.id >= last)).await.unwrap();
        let seen: Vec<Seen> = watch.events().into_iter().map(seen).collect();
        let usage = self.items(&format!("{}/usage", self.workspace)).await.into_iter();
        let of_chat = usage.filter(|(sk, _)| sk.contains(&id.to_string()));
        let usage: Vec<TurnId> = of_chat.filter_map(|(sk, _)| sk.rsplit('/').next()?.parse().ok()).collect();
        let (versions, records) = self.files(&log).await;
        let held = [
            must::entries_are_contiguous(&log),
            must::commands_were_consumed_once(&log),
            must::turns_began_and_ended_once(&log),
            must::attempts_count_up(&log),
            must::calls_were_answered_once(&log),
            must::history_can_be_sent_to_a_model(&log),
            must::nothing_is_stranded(&log, &[], &[]),
            must::snapshot_is_a_fold(&log, snapshot.as_deref()),
            must::view_is_that_of_the_fold(&log, view.as_deref()),
            must::usage_was_recorded_once(&log, &usage),
            must::stream_brought_each_event_once(&log, &seen),
            must::writes_took_effect_once(&log, &versions, &records),
        ];
        let broken: Vec<_> = held.into_iter().filter_map(Held::err).map(|violation| violation.to_string()).collect();
        assert!(broken.is_empty(), "{what}: {broken:#?}\n{log:#?}\n{}", self.world.log());
    }

    /// The versions of the files that a log tells of, and the calls that the workspace remembers.
    async fn files(&self, log: &[Entry<ChatEvent>]) -> (Vec<Versioned>, Vec<CallId>) {
        let mut files: Vec<_> = log.iter().flat_map(|entry| &entry.events).filter_map(file_of).collect();
        files.sort_unstable();
        files.dedup();
        let mut versions = Vec::new();
        for file in files {
            for (_, body) in self.items(&format!("{}/versions/{file}", self.workspace)).await {
                let version: workspace::Version = serde_json::from_str(&body).unwrap();
                versions.push((file, version.v, version.call_id));
            }
        }
        let calls = self.items(&format!("{}/calls", self.workspace)).await;
        (versions, calls.into_iter().filter_map(|(sk, _)| sk.parse().ok()).collect())
    }

    /// The sort keys and bodies of a partition.
    async fn items(&self, partition: &str) -> Vec<(String, String)> {
        let (table, mut query, mut items) = (self.table(), Query::all(partition, 200), Vec::new());
        loop {
            let page = table.query(&query).await.unwrap();
            items.extend(page.items.into_iter().map(|item| (item.key.sk, item.body)));
            match page.next {
                Some(next) => query = query.after(Some(next)),
                None => return items,
            }
        }
    }
}

fn file_of(event: &ChatEvent) -> Option<domain::FileId> {
    match event {
        ChatEvent::FileUpdated { file_id, .. } => Some(*file_id),
        _ => None,
    }
}

fn seen(event: Event) -> Seen {
    Seen { number: event.id, name: event.name, data: event.data.to_string() }
}

pub fn chat_id(chat: &str) -> ChatId {
    chat.rsplit('/').next().unwrap_or_default().parse().unwrap()
}

/// The services, once for all that a test deploys.
pub async fn emulators() -> Arc<Emulators> {
    Arc::new(Emulators::start().await.unwrap())
}

/// Takes what is to be done in turn, from as many places as there are lanes.
pub struct Turns(AtomicUsize);

impl Turns {
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }
    pub fn next(&self) -> usize {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}

/// Prints what a test found out.
pub fn tell(what: &str) {
    drop(std::io::Write::write_all(&mut std::io::stdout(), format!("{what}\n").as_bytes()));
}

/// A Redis of its own.
pub async fn redis() -> Emulator {
    Emulator::redis().await.unwrap()
}
