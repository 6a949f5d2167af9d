//! The answers of the model: a pure function of the request, so that a repeated call gives the same answer.

mod session;
mod team;

use async_trait::async_trait;
use domain::Message;
use models::Scripted;
use ports::{Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

const SCRIPT: &str = r#"
rules:
- when: {user: 'Summarise this in at most'}
  steps:
  - {text: 'They greeted each other.', chunks: 4, delay_ms: 100}
- when: {user: 'slowly'}
  steps:
  - {text: 'One after the other, these words are said, so that there is time to stop them.', chunks: 8, delay_ms: 120}
- when: {user: 'for minutes'}
  steps:
  - {text: 'This takes longer than anybody who deleted the chat would want to wait and to pay for.', chunks: 30, delay_ms: 4000}
- when: {user: 'files'}
  steps:
  - text: First a plan.
    calls: [{tool: plan_write, args: {title: Files, steps: [write, change, tidy]}}]
  - calls:
    - {tool: write, args: {path: /projects/app/one.md, content: "one\n"}}
    - {tool: plan_update_step, args: {step: 1, status: done}}
  - calls:
    - {tool: edit, args: {path: /projects/app/one.md, edits: [{old: one, new: 'number one'}]}}
    - {tool: plan_update_step, args: {step: 2, status: done}}
  - calls:
    - {tool: mv, args: {from: /projects/app/one.md, to: /projects/app/two.md}}
    - {tool: write, args: {path: /projects/app/three.md, content: "three\n"}}
    - {tool: rm, args: {path: /projects/app/three.md}}
    - {tool: read, args: {path: /projects/app/two.md}}
  - {reasoning: Is that all? It is., text: 'All is done.', chunks: 2}
- when: {user: 'one file'}
  steps:
  - calls: [{tool: write, args: {path: /data/note.md, content: "a note\n"}}]
  - {text: Noted.}
- when: {user: 'again and again'}
  steps:
  - calls: [{tool: write, args: {path: /data/a.md, content: a}}]
  - calls: [{tool: write, args: {path: /data/b.md, content: b}}]
  - calls: [{tool: write, args: {path: /data/c.md, content: c}}]
  - {text: never said}
- when: {user: 'ask me'}
  steps:
  - text: I have a question.
    calls: [{tool: ask_user, args: {questions: [{name: colour, question: 'Which colour?', schema: {type: string}}]}}]
  - when: {success: true}
    text: 'You said {{result}}.'
    else: {text: Nobody answered.}
- when: {user: 'persona'}
  steps:
  - calls:
    - {tool: write, args: {path: /system/agents/poet/AGENT.md, content: "You are a poet.\n"}}
    - {tool: ls, args: {path: /system/agents}}
  - {text: 'That was that.'}
- when: {user: 'breaks off'}
  steps:
  - {text: 'This is cut short.', chunks: 3, delay_ms: 10, error: broken, after: 1}
- steps:
  - {text: 'You are welcome.', chunks: 3, delay_ms: 30}
"#;

/// The word in a message at which the model's provider asks for patience, twice and this long.
const BUSY: &str = "busy provider";
const PATIENCE: Duration = Duration::from_secs(30);

/// The word in a message at which the model panics while [`crate::World::poison`] is set.
pub(crate) const POISON: &str = "poison";

/// Read once: each run plays it.
static SCRIPTED: LazyLock<Arc<Scripted>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a script of ours")]
    Arc::new(Scripted::from_yaml(SCRIPT).expect("a script"))
});

pub(crate) fn model(poison: Arc<AtomicBool>) -> Arc<dyn Model> {
    Arc::new(Poisoned { script: SCRIPTED.clone(), poison })
}

struct Poisoned {
    script: Arc<Scripted>,
    poison: Arc<AtomicBool>,
}

#[async_trait]
impl Model for Poisoned {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let last_words = request.messages.iter().rev().find_map(|message| match message.as_ref() {
            Message::User { content, .. } => Some(content.as_str()),
            _ => None,
        });
        if self.poison.load(SeqCst) && last_words.is_some_and(|words| words.contains(POISON)) {
            // A panic that no hook hears of: it is meant.
            std::panic::resume_unwind(Box::new(POISON));
        }
        if let Some(delta) = team::answer(&request).or_else(|| session::answer(&request)) {
            return team::stream(delta);
        }
        if request.failures < 2 && last_words.is_some_and(|words| words.contains(BUSY)) {
            let why = Box::new(ModelError::RateLimited { retry_after: Some(PATIENCE) });
            return Err(ModelError::Postponed { after: PATIENCE, failures: request.failures + 1, why });
        }
        self.script.stream(request).await
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}
