//! The report of an agent's chat to its task: once per turn, in the entry that ends the turn, however it ended.
//!
//! It is made where a step takes in the event that ends a turn, so that no way of ending a turn can forget it.

use crate::{state::ChatState, team::member, uses::Uses};
use actor::OutboxMessage;
use domain::{
    ActorRef, ChatCommand, ChatConfig, ChatEvent, Code, Error, Status, StopReason, TaskCommand, Usage, json_length,
    task::{AgentAnswer, ToolUse},
    text::beginning,
};
use serde::{Deserialize, Serialize};

/// How much of the arguments and of the output of a call the task is told, in bytes; the chat's log has the whole.
const SHOWN: usize = 4 * 1024;
/// The longest name of a tool that the task is told: a model may make up names.
const NAME: usize = 64;
/// The longest text that can be an answer, as JSON, and the most that is told of all calls together, as JSON: both have to
/// fit into a message of the queue (SQS: 256 KiB).
const MAX_TEXT: usize = 128 * 1024;
const MAX_TOOLS: usize = 64 * 1024;
/// A message has its frame, too.
const _: () = assert!(MAX_TEXT + MAX_TOOLS + 16 * 1024 < ports::validate::MAX_MESSAGE);

/// The report on a turn so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    steps: u32,
    usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    tools: Vec<ToolUse>,
    #[serde(flatten)]
    uses: Uses,
}

impl Round {
    /// How many calls were answered.
    pub(crate) fn calls(&self) -> usize {
        self.tools.len()
    }

    /// How often this very call failed.
    pub(crate) fn failed(&self, tool: &str, args: &str) -> usize {
        let args = beginning(args, SHOWN);
        let is_same = |used: &&ToolUse| used.tool == tool && used.args == args && used.status != Status::Success;
        self.tools.iter().filter(is_same).count()
    }

    /// Folds one event of the turn.
    pub(crate) fn apply(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::ModelStarted { attempt: 1, .. } => self.steps += 1,
            ChatEvent::Used { usage, model, .. } => {
                self.usage += *usage;
                self.model = model.clone().or(self.model.take());
            }
            // Its text and its questions are in its log.
            _ => {}
        }
        if let Some(used) = self.uses.see(event, |args| beginning(args, SHOWN)) {
            let (tool, output) = (beginning(&used.tool, NAME), beginning(&used.output, SHOWN));
            self.tools.push(ToolUse { tool, output, ..used });
        }
    }

    fn answer(&self, config: &ChatConfig, round: u64, text: &str, reason: String, error: Option<Error>) -> AgentAnswer {
        let mut answer = AgentAnswer {
            chat: config.chat,
            round: u32::try_from(round).unwrap_or(u32::MAX),
            text: text.to_owned(),
            stop_reason: reason,
            usage: self.usage,
            model: self.model.clone(),
            steps: self.steps,
            tools: fitting(&self.tools),
            error,
        };
        let length = json_length(&answer.text);
        if length > MAX_TEXT {
            let message = format!("the agent's answer is {length} bytes long; the limit is {MAX_TEXT}");
            let hint = "have it write long results into files, and answer with their paths";
            answer.error = Some(Error::new(Code::PayloadTooLarge, message).hint(hint));
            answer.stop_reason = told(StopReason::Error);
            answer.text = beginning(text, SHOWN);
        }
        answer
    }
}

/// The report on the turn that `event` ends, from the state before it; `error` is the failure that it ends with.
pub(crate) fn on_end(state: &ChatState, event: &ChatEvent, error: Option<Error>) -> Option<OutboxMessage> {
    let config = state.config.as_deref()?;
    if config.member.is_some() {
        return member::tells(state, event, error.as_ref());
    }
    config.agent.as_ref()?;
    let (text, reason) = match event {
        ChatEvent::Done { message, stop_reason, .. } => (message, told(*stop_reason)),
        ChatEvent::Stopped { partial_response, .. } => (partial_response, "stopped".to_owned()),
        _ => return None,
    };
    let nothing = Round::default();
    let round = state.turn.as_ref().and_then(|turn| turn.round.as_deref()).unwrap_or(&nothing);
    message(config, round.answer(config, state.turns + 1, text, reason, error))
}

/// The answer to a task that asks a chat which was given up: it would wait for ever.
pub(crate) fn gone(state: &ChatState) -> Option<OutboxMessage> {
    let config = state.config.as_deref()?;
    let error = Error::new(Code::Cancelled, "the chat of this agent was deleted");
    if config.member.is_some() {
        return member::ended(config, "stopped", Some(error), Usage::default());
    }
    message(config, Round::default().answer(config, state.turns + 1, "", "stopped".into(), Some(error)))
}

/// The answer to a task whose words failed again and again before the chat took them in; none to commands of others.
pub(crate) fn not_taken_in(state: &ChatState, command: &ChatCommand, error: Error) -> Option<OutboxMessage> {
    let ChatCommand::StartTurn { create, .. } = command else { return None };
    let config = state.config.as_deref().or(create.as_deref())?;
    if config.member.is_some() {
        return member::ended(config, "error", Some(error), Usage::default());
    }
    message(config, Round::default().answer(config, state.turns + 1, "", told(StopReason::Error), Some(error)))
}

fn message(config: &ChatConfig, answer: AgentAnswer) -> Option<OutboxMessage> {
    let agent = config.agent.as_ref()?;
    if let Some(executor) = &agent.executor {
        let to = ActorRef::Chat { workspace: config.workspace, chat: executor.session }.into();
        let command = serde_json::to_value(ChatCommand::ExecutorEnded { answer: Box::new(answer) }).ok()?;
        return Some(OutboxMessage { to, command, deliver_at: None, priority: 0 });
    }
    let to = ActorRef::Task { workspace: config.workspace, task: agent.task }.into();
    let command = serde_json::to_value(TaskCommand::AgentAnswered { answer: Box::new(answer) }).ok()?;
    Some(OutboxMessage { to, command, deliver_at: None, priority: 0 })
}

/// A stop reason as it is written on the wire.
fn told(reason: StopReason) -> String {
    serde_json::to_value(reason).ok().and_then(|text| text.as_str().map(String::from)).unwrap_or_default()
}

/// The calls, with as much of each as fits; should even their names not fit, the last ones.
fn fitting(tools: &[ToolUse]) -> Vec<ToolUse> {
    for length in [SHOWN, SHOWN / 4, SHOWN / 16, 0] {
        let shorter = |tool: &ToolUse| ToolUse {
            args: beginning(&tool.args, length),
            output: beginning(&tool.output, length),
            ..tool.clone()
        };
        let shown: Vec<ToolUse> = tools.iter().map(shorter).collect();
        if json_length(&shown) <= MAX_TOOLS {
            return shown;
        }
        if length == 0 {
            let mut left = MAX_TOOLS;
            let fits = |tool: &&ToolUse| {
                left = left.saturating_sub(json_length(*tool) + 1);
                left > 0
            };
            let count = shown.iter().rev().take_while(fits).count();
            return shown[shown.len() - count..].to_vec();
        }
    }
    Vec::new()
}
