//! A deployment whose calls can be made to fail, and the actions of a person there.

use crate::machines::COMMAND;
use domain::{ChatId, WorkspaceId};
use emulators::{Call, Calls, Fate};
use journeys::{Aws, Binaries, Client, Emulators, Event, Options, Settings, Watch};
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    sync::{Arc, atomic::AtomicUsize},
};

/// Long enough for the archive, and for the log to keep it as a blob: S3 has both.
const LONG: usize = 80 * 1024;

/// A question; and one among many calls of a tool.
const ASKS: &str = "- when: {user: '^many'}
  steps:
  - {calls: [{tool: ls, args: {path: /projects}}]}
  - {calls: [{tool: ls, args: {path: /projects}}]}
  - {calls: [{tool: ls, args: {path: /projects}}]}
  - {calls: [{tool: ls, args: {path: /projects}}]}
  - calls: [{tool: ask_user, args: {questions: [{name: colour, question: 'Which?', schema: {enum: [red, blue]}}]}}]
  - {calls: [{tool: ls, args: {path: /projects}}]}
  - {calls: [{tool: ls, args: {path: /projects}}]}
  - {text: 'Looked.'}
- when: {user: '^ask'}
  steps:
  - text: One question.
    calls: [{tool: ask_user, args: {questions: [{name: colour, question: 'Which?', schema: {enum: [red, blue]}}]}}]
  - {text: 'You said {{call.0.output/colour}}.'}
";

/// Files that are written, read and changed; text that never ends by itself; and commands.
pub fn script() -> String {
    let mut script = String::from("rules:\n");
    script.push_str("- when: {user: '^slow'}\n  steps:\n");
    script.push_str("  - {text: 'one two three four five', chunks: 5, delay_ms: 5, hang: true}\n");
    script.push_str("- when: {user: '^say'}\n  steps:\n  - {text: 'Said.'}\n");
    script.push_str(ASKS);
    let _ = write!(
        script,
        "- when: {{user: '^run'}}\n  steps:\n  - {{calls: [{{tool: exec, args: {{command: '{COMMAND}'}}}}]}}\n"
    );
    script.push_str("  - {when: {success: true}, text: 'It ran.', else: {text: 'It did not run.'}}\n");
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
    pub world: Arc<Aws>,
    pub client: Client,
    pub place: String,
    pub workspace: WorkspaceId,
}

impl Lane {
    pub async fn deploy(emulators: &Arc<Emulators>, settings: Settings<'_>) -> Self {
        Self::deploy_as(emulators, Options { script: script(), settings, ..Options::default() }).await
    }

    /// With options of its own.
    pub async fn deploy_as(emulators: &Arc<Emulators>, options: Options<'_>) -> Self {
        let binaries = Binaries::beside(env!("CARGO_BIN_EXE_buildscale-worker"));
        let world = Aws::deploy(&binaries, emulators.clone(), options).await.unwrap();
        world.worker.end_leases();
        Self::of(Arc::new(world)).await
    }

    /// Another workspace of the same deployment.
    pub async fn beside(&self) -> Self {
        Self::of(self.world.clone()).await
    }

    async fn of(world: Arc<Aws>) -> Self {
        let client = world.client();
        let workspace = client.workspace().await.unwrap();
        let place = format!("/api/v1/workspaces/{workspace}");
        Self { world, client, place, workspace: workspace.parse().unwrap() }
    }

    /// Every service that functions call, by its name in these tests.
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

    /// A chat whose first turn makes a file. The request is repeated when no answer comes.
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

    /// Answers the last question.
    pub async fn answer(&self, chat: &str, watch: &Watch) {
        let question = watch.until_event("question").await.unwrap();
        let answers = format!("{chat}/answers/{}", question.data["question_id"].as_str().unwrap());
        self.client.post(&answers, json!({ "answers": { "colour": "blue" } })).await.unwrap();
    }

    /// Says something in a chat, once, however often it takes.
    pub async fn say(&self, chat: &str, content: &str) {
        let key = format!("{chat} {content}");
        self.client.post_surely(chat, &key, &json!({ "content": content })).await.unwrap();
    }

    /// Waits until no function drives anything and nothing waits; nothing was put aside.
    pub async fn settled(&self) {
        self.world.until_settled().await.unwrap();
        assert_eq!(self.world.waiting("commands-dead").await.unwrap(), 0, "something was put aside");
    }
}

pub fn chat_id(chat: &str) -> ChatId {
    chat.rsplit('/').next().unwrap_or_default().parse().unwrap()
}

/// The services, once for all that a test deploys.
pub async fn emulators() -> Arc<Emulators> {
    Arc::new(Emulators::start().await.unwrap())
}

/// Hands out the cases in turn, to as many takers as there are lanes.
pub struct Turns(AtomicUsize);

impl Turns {
    pub const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }
    pub fn next(&self) -> usize {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}

/// Prints a finding of a test.
pub fn tell(what: &str) {
    drop(std::io::Write::write_all(&mut std::io::stdout(), format!("{what}\n").as_bytes()));
}
