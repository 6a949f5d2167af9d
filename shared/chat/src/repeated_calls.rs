//! A model that makes the same failing call again and again: the result has a note about it, and later the turn ends. An executor has its own limit
//! of such calls.

use crate::step::Step;
use domain::{CallId, Code, Error, Message, ToolCall};
use std::sync::Arc;
use tools::ToolKind;

/// From this many failures of the same call in a row on, the result has a note about them.
const TOLD_FROM: usize = 3;
/// This many failures end the turn.
const MOST: usize = 6;
/// The same for a call that may wait for something elsewhere: a command, or a tool of a server.
const MOST_ELSEWHERE: usize = 30;
/// The most characters of the tool's name in the error: a model may make up names.
const NAME: usize = 64;

impl Step<'_> {
    /// The output of a call, with a note if it failed as the same call did before.
    pub(crate) fn told_of_repetition(&self, call: &ToolCall, output: String, success: bool) -> String {
        if success {
            return output;
        }
        let failed = failures(self.messages_of_turn(), call) + 1;
        match failed < TOLD_FROM {
            true => output,
            false => format!(
                "{output}\n[This same call has failed {failed} times in a row. Do it in another way, or say what is in the \
                 way.]"
            ),
        }
    }

    /// The error of a turn whose model makes no other call than one that fails.
    pub(crate) fn repeats_in_vain(&self) -> Option<Error> {
        let messages = self.messages_of_turn();
        let (last, _) = results(messages).next()?;
        let is_elsewhere = matches!(self.kind(&last.tool), Some(ToolKind::Exec | ToolKind::Served));
        let most = if is_elsewhere { MOST_ELSEWHERE } else { MOST };
        (failures(messages, last) >= most).then(|| {
            let tool: String = last.tool.chars().take(NAME).collect();
            let message = format!("the agent made the same failing call of {tool} {most} times in a row");
            Error::new(Code::LimitReached, message).hint("see why it fails, then send a message that says how to go on")
        })
    }

    /// The messages of the turn that runs; none of an executor.
    fn messages_of_turn(&self) -> &[Arc<Message>] {
        let is_executor =
            self.config().and_then(|config| config.agent.as_ref()).is_some_and(|agent| agent.executor.is_some());
        let turn = self.state().history.back().filter(|_| !is_executor);
        turn.map(|turn| turn.messages.as_slice()).unwrap_or_default()
    }
}

/// The calls since the last words of a person that were answered, the newest first, each with its success.
fn results(messages: &[Arc<Message>]) -> impl Iterator<Item = (&ToolCall, bool)> {
    let made = move |id: CallId| {
        messages.iter().rev().find_map(|message| match &**message {
            Message::Assistant { calls, .. } => calls.iter().find(|call| call.call_id == id),
            Message::User { .. } | Message::Tool { .. } | Message::System { .. } => None,
        })
    };
    let since = messages.iter().rev().take_while(|message| !matches!(***message, Message::User { .. }));
    since.filter_map(move |message| match &**message {
        Message::Tool { call_id, success, .. } => Some((made(*call_id)?, *success)),
        Message::User { .. } | Message::Assistant { .. } | Message::System { .. } => None,
    })
}

/// How often this call failed since another call was answered.
fn failures(messages: &[Arc<Message>], call: &ToolCall) -> usize {
    let is_same = |made: &ToolCall| made.tool == call.tool && made.args == call.args;
    results(messages).take_while(|(made, success)| !success && is_same(made)).count()
}
