//! The report on a turn so far, of a chat that works for a task or a session: what it used, and the calls that it made.

use crate::tool_uses::ToolUses;
use domain::{
    ChatConfig, ChatEvent, Code, Error, Status, StopReason, Usage, json_length,
    task::{AgentAnswer, ToolUse},
    text::beginning,
};
use serde::{Deserialize, Serialize};

/// How much of the arguments and of the output of a call the task is told, in bytes; the chat's log has the whole.
pub(crate) const SHOWN: usize = 4 * 1024;
/// The longest name of a tool that the task is told: a model may make up names.
const NAME: usize = 64;
/// The longest text that can be an answer, as JSON, and the most that is told of all calls together, as JSON: both have to
/// fit into a message of the queue (SQS: 256 KiB).
pub(crate) const MAX_TEXT: usize = 128 * 1024;
const MAX_TOOLS: usize = 64 * 1024;
/// A message has its frame, too.
const _: () = assert!(MAX_TEXT + MAX_TOOLS + 16 * 1024 < ports::validate::MAX_MESSAGE);

/// The report on a turn so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TurnReport {
    steps: u32,
    usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    tools: Vec<ToolUse>,
    #[serde(flatten)]
    uses: ToolUses,
}

impl TurnReport {
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

    /// The whole report, with the last text of the turn and the reason of its end.
    pub(crate) fn answer(
        &self,
        config: &ChatConfig,
        round: u64,
        text: &str,
        reason: String,
        error: Option<Error>,
    ) -> AgentAnswer {
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
            answer.stop_reason = stop_reason_text(StopReason::Error);
            answer.text = beginning(text, SHOWN);
        }
        answer
    }
}

/// A stop reason as it is written on the wire.
pub(crate) fn stop_reason_text(reason: StopReason) -> String {
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
