//! A model that plays a script: the same request, the same answer, on every machine and after every crash.
//!
//! It keeps no position. Its place in the script follows from the history: the turn begins at the last words of a person, and each answer
//! of the model since then was one step.

use crate::{
    check::check,
    request_view::RequestView,
    script::{Rule, Script, ScriptError, ScriptedFault, Step},
    template,
};
use async_trait::async_trait;
use domain::{Usage, event::StopReason};
use futures::{StreamExt, stream};
use ports::{Delta, Model, ModelError, ModelInfo, ModelRequest, ModelStream};
use serde_json::Value;
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::time::sleep;

/// A script as a function: from a request to the stream of its answer.
pub type Answerer = Arc<dyn Fn(&ModelRequest) -> Vec<Result<Delta, ModelError>> + Send + Sync>;

/// The scripted model. It refuses every request that a provider might refuse: see [`check`].
pub struct Scripted {
    play: Play,
}

/// Read when it is played: every process offers it, and hardly any plays it.
static DEMO: LazyLock<Script> = LazyLock::new(|| {
    // A broken demo would be a broken build: the tests play it.
    Script::parse(include_str!("demo.yaml")).unwrap_or(Script { rules: Vec::new() })
});

enum Play {
    Script(Script),
    Demo,
    Function(Answerer),
}

/// The next event of an answer.
enum Beat {
    Wait(Duration),
    Say(Result<Delta, ModelError>),
    Hang,
}

impl Scripted {
    /// Plays this YAML; `script.rs` shows the format.
    ///
    /// # Errors
    /// [`ScriptError::Yaml`] for a text of another form, [`ScriptError::Step`] for a step that makes no sense, [`ScriptError::Pattern`] and
    /// [`ScriptError::Patterns`] for patterns that are none or too large.
    pub fn from_yaml(yaml: &str) -> Result<Self, ScriptError> {
        Ok(Self { play: Play::Script(Script::parse(yaml)?) })
    }

    /// Plays this function, without any wait.
    pub fn from_fn(answer: Answerer) -> Self {
        Self { play: Play::Function(answer) }
    }

    /// The offline demo, which a hub without a configured model plays.
    pub fn demo() -> Self {
        Self { play: Play::Demo }
    }

    fn beats(&self, request: &ModelRequest) -> Vec<Beat> {
        let script = match &self.play {
            Play::Function(answer) => return answer(request).into_iter().map(Beat::Say).collect(),
            Play::Script(script) => script,
            Play::Demo => &DEMO,
        };
        let scene = RequestView::of(request);
        let rule = script.rules.iter().find(|rule| rule.when.holds(&scene));
        let step = rule.and_then(|rule: &Rule| rule.steps.get(scene.position)).and_then(|step| step.chosen(&scene));
        perform(step.unwrap_or(&Step::default()), &scene, request)
    }
}

fn perform(step: &Step, scene: &RequestView<'_>, request: &ModelRequest) -> Vec<Beat> {
    let mut room = template::Room::default();
    let reasoning = template::fill(&step.reasoning, scene, &mut room);
    let text = template::fill(&step.text, scene, &mut room);
    let chunks = step.chunks.unwrap_or(1);
    let mut deltas: Vec<Delta> = pieces(&reasoning, chunks).map(Delta::Reasoning).collect();
    deltas.extend(pieces(&text, chunks).map(Delta::Text));
    deltas.extend(step.calls.iter().map(|call| Delta::Call {
        tool: call.tool.clone(),
        args: match template::fill_value(&call.args, scene, &mut room) {
            Value::String(text) => text,
            Value::Null => "{}".into(),
            args => args.to_string(),
        },
    }));
    let fault = step.error.map(|fault| error(fault, step));
    if fault.is_some() {
        deltas.truncate(step.after.unwrap_or(usize::MAX));
    }
    let written: usize = deltas.iter().map(length).sum();
    let mut beats = Vec::with_capacity(2 * deltas.len() + 1);
    for delta in deltas {
        if step.delay_ms > 0 && !matches!(delta, Delta::Call { .. }) {
            beats.push(Beat::Wait(Duration::from_millis(step.delay_ms)));
        }
        beats.push(Beat::Say(Ok(delta)));
    }
    beats.push(match fault {
        _ if step.hang => Beat::Hang,
        Some(error) => Beat::Say(Err(error)),
        None => Beat::Say(Ok(Delta::End {
            reason: if step.cut_short { StopReason::MaxOutputTokens } else { StopReason::EndTurn },
            usage: step.usage.map_or_else(|| estimate(request, written), Usage::from),
            provider: Value::Null,
            model: None,
        })),
    });
    beats
}

fn error(fault: ScriptedFault, step: &Step) -> ModelError {
    let says = || "so says the script".to_owned();
    match fault {
        ScriptedFault::RateLimited => {
            ModelError::RateLimited { retry_after: step.retry_after_ms.map(Duration::from_millis) }
        }
        ScriptedFault::Unavailable => ModelError::Unavailable(says()),
        ScriptedFault::Unauthorized => ModelError::Unauthorized(says()),
        ScriptedFault::Rejected => ModelError::Rejected(says()),
        ScriptedFault::Broken => ModelError::Broken(says()),
    }
}

/// The text in `count` pieces of equal length, between characters; fewer when it is shorter, none when it is empty.
fn pieces(text: &str, count: usize) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let length = characters.len().div_ceil(count.max(1)).max(1);
    let pieces: Vec<String> = characters.chunks(length).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}

fn length(delta: &Delta) -> usize {
    match delta {
        Delta::Reasoning(text) | Delta::Text(text) => text.len(),
        Delta::Call { tool, args } => tool.len() + args.len(),
        Delta::End { .. } => 0,
    }
}

/// Four characters per token, as `Message::tokens` counts; costs nothing.
fn estimate(request: &ModelRequest, written: usize) -> Usage {
    let read: u64 = request.messages.iter().map(|message| message.tokens()).sum();
    Usage {
        input_tokens: read + request.system.len() as u64 / 4,
        output_tokens: (written as u64).div_ceil(4),
        ..Usage::default()
    }
}

#[async_trait]
impl Model for Scripted {
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        check(&request).map_err(ModelError::Rejected)?;
        let beats = self.beats(&request).into_iter();
        let play = stream::unfold(beats, |mut beats| async move {
            loop {
                match beats.next()? {
                    Beat::Wait(time) => sleep(time).await,
                    Beat::Say(delta) => return Some((delta, beats)),
                    Beat::Hang => futures::future::pending().await,
                }
            }
        });
        Ok(play.boxed())
    }

    fn catalog(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}
