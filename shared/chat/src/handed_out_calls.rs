//! Calls that programs elsewhere run: the turn rests as rows until one of them answers, and holds no worker.

use crate::{
    agent,
    calls::describe,
    chats::{Chats, internal},
    phase::Phase,
    requests::LeaderRights,
    step::Step,
    wait_reasons::{not_asked, waiting},
};
use domain::{
    CallId, ChatCommand, ChatEvent, ChatId, ClientEffects, Code, CommandId, Error, Principal, ToolCall, WorkspaceId,
    event::HandedOut,
};
use serde_json::Value;

/// Hands a call that runs out to programs: the turn rests until one of them answers, or the time is up.
pub(crate) fn hand_out(step: &mut Step<'_>, call: &ToolCall, within: ports::HandedOut) {
    let (at, expires_at) = (step.stamp.at, step.stamp.at + within.timeout);
    let (call_id, tool, args, repeatable) = (call.call_id, call.tool.clone(), call.args.clone(), within.is_repeatable);
    step.push(ChatEvent::HandedOut(HandedOut { call_id, tool, args, repeatable, at, expires_at }));
    step.later(expires_at, &ChatCommand::ExpireCall { call_id });
}

/// Hands a call of a function to the client that has it. A command, and a call of a tool server, is not run twice.
pub(crate) fn to_client(step: &mut Step<'_>, call: &ToolCall) {
    step.started(call, 1);
    let effects = step.config().and_then(|config| agent::of_client(config, &call.tool));
    let is_repeatable = !matches!(effects, Some(ClientEffects::Execute | ClientEffects::Mcp));
    let within = ports::HandedOut { timeout: step.machine.question_timeout, is_repeatable };
    hand_out(step, call, within);
}

/// A program answers a call that was handed out. An answer to another call changes nothing. The author and their rights are as in
/// `human_answers::answer`.
pub(crate) fn answer(
    step: &mut Step<'_>,
    call_id: CallId,
    output: String,
    success: bool,
    (by, rights): (&str, LeaderRights),
) {
    if handed(step, call_id).is_none() {
        return;
    }
    step.led_on(by, rights);
    let Some(call) = step.next_unanswered() else { return };
    let (output, is_capped) = tools::cap(output);
    let (output, is_cut) = step.fit_result(output);
    let (tool, at) = (call.tool.clone(), step.stamp.at);
    let (misuse, code, resources, truncated, seen) = (false, None, None, is_capped || is_cut, Vec::new());
    step.push(ChatEvent::Observed { call_id, tool, output, success, misuse, code, resources, truncated, seen, at });
    step.next_call();
}

/// Ends the wait for a program whose time is up. At most once is kept: whether a program has begun the call is not known.
pub(crate) fn expire(step: &mut Step<'_>, call_id: CallId) {
    let (Some(is_repeatable), Some(call)) = (handed(step, call_id), step.next_unanswered()) else { return };
    let error = match is_repeatable {
        true => Error::new(Code::Timeout, "no program answered in time"),
        false => Error::new(Code::OutcomeUnknown, "no program answered in time")
            .hint("it may have taken effect or not: look before you make it again"),
    };
    step.failed(&call, describe(&error), error.code);
    step.next_call();
}

/// Whether a program may run the call more than once, if the turn waits for the answer to it.
fn handed(step: &Step<'_>, call_id: CallId) -> Option<bool> {
    match &step.turn()?.phase {
        Phase::Handed { call_id: open, asked, .. } if *open == call_id => {
            Some(matches!(&**asked, ChatEvent::HandedOut(HandedOut { repeatable: true, .. })))
        }
        _ => None,
    }
}

/// The answer of a program to a call that was handed out.
#[derive(Clone, Debug)]
pub struct CallAnswer {
    /// The call.
    pub call_id: CallId,
    /// The text that the model reads.
    pub output: String,
    /// Whether the call succeeded.
    pub success: bool,
    /// Whether the caller may approve.
    pub may_approve: bool,
    /// Whether the caller may run no flows.
    pub may_not_run: bool,
}

impl Chats {
    /// Answers a call that was handed out. The rest of the turn has no more rights than the caller, as with [`Chats::answer`].
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat; `CONFLICT` when the call does not wait, unless this very command answered it, and when another answer
    /// was accepted that the chat has not taken in yet; `PAYLOAD_TOO_LARGE` when the answer does not fit into a message.
    pub async fn answer_call(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        command: CommandId,
        answer: CallAnswer,
        by: &Principal,
    ) -> Result<(), Error> {
        let CallAnswer { call_id, output, success, may_approve, may_not_run } = answer;
        if let Err(refusal) = self.handed_out(workspace, chat, call_id).await {
            return self.unless_done(workspace, chat, command, refusal).await;
        }
        let given = format!("{success} {output}");
        let answer = ChatCommand::AnswerCall { call_id, output, success, may_approve, may_not_run };
        // Before the note: an answer that does not fit stands against no other one.
        let message = self.message(workspace, chat, command, by, answer)?;
        self.claim_answer(workspace, chat, command, call_id.0, &given).await?;
        self.mailbox.send(message).await.map_err(internal)
    }

    /// A call that waits for a program, as the event `call_handed_out` tells of it.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such chat; `CONFLICT` when the call does not wait.
    pub async fn handed_out(&self, workspace: WorkspaceId, chat: ChatId, call: CallId) -> Result<Value, Error> {
        let (view, id) = (self.get(workspace, chat).await?, call.to_string());
        let found = waiting(&view, "call_handed_out", "call_id", &id).cloned();
        found.ok_or_else(|| not_asked("call", "call_id", &id))
    }
}
