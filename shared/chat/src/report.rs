//! The reports of a chat that works for others: for a task, for a session, or in a team. One is sent per turn, in the entry that ends the turn,
//! however it ended.
//!
//! It is made where a step takes in the event that ends a turn, so that no way of ending a turn can forget it.

use crate::{
    keys::actor_id,
    phase::Phase,
    state::ChatState,
    turn_report::{MAX_TEXT, SHOWN, TurnReport, stop_reason_text},
};
use actor::{ActorId, OutboxMessage};
use domain::{
    ActorRef, ChatCommand, ChatConfig, ChatEvent, Code, Error, MemberEnd, PlanFile, StopReason, TaskCommand, ToldStep,
    TurnRequest, Usage, json_length, task::AgentAnswer, text::beginning,
};
use serde::Serialize;
use serde_json::Value;

/// The longest arguments in a request that is cut, in bytes: as a text in JSON they can be twice as long, or longer still.
const MAX_ARGS: usize = 16 * 1024;

/// The report on the turn that `event` ends, from the state before it; `error` is the failure that it ends with.
pub(crate) fn on_end(state: &ChatState, event: &ChatEvent, error: Option<Error>) -> Option<OutboxMessage> {
    let config = state.config.as_deref()?;
    if config.member.is_some() {
        return of_member(state, event, error.as_ref());
    }
    config.agent.as_ref()?;
    let (text, reason) = match event {
        ChatEvent::Done { message, stop_reason, .. } => (message, stop_reason_text(*stop_reason)),
        ChatEvent::Stopped { partial_response, .. } => (partial_response, "stopped".to_owned()),
        _ => return None,
    };
    let nothing = TurnReport::default();
    let report = state.turn.as_ref().and_then(|turn| turn.report.as_deref()).unwrap_or(&nothing);
    message(config, report.answer(config, state.turns + 1, text, reason, error))
}

/// The message to the task of an agent that waits for people or goes on, and whether its request before was `declined`; none of chats that work
/// for nobody.
pub(crate) fn waits(state: &ChatState, declined: bool) -> Option<OutboxMessage> {
    let (config, turn) = (state.config.as_deref()?, state.turn.as_ref()?);
    let task = config.agent.as_ref()?.of_task()?;
    let (asked, cut) = match &turn.phase {
        Phase::Permission { asked, .. } | Phase::Question { asked, .. } => fitting(asked),
        _ => None,
    }
    .map_or((None, false), |(asked, cut)| (Some(Box::new(asked)), cut));
    let round = u32::try_from(state.turns + 1).unwrap_or(u32::MAX);
    let command = TaskCommand::AgentWaits { chat: config.chat, round, asked, cut, declined };
    message_to(ActorRef::Task { workspace: config.workspace, task }, &command)
}

/// The request in a form that fits into a message of the queue, and whether it is cut; none where its questions do not fit. The chat has the whole.
fn fitting(asked: &ChatEvent) -> Option<(ChatEvent, bool)> {
    let (mut asked, mut cut) = (asked.clone(), false);
    if let ChatEvent::PermissionRequired { agent, .. } = &mut asked {
        cut = agent.take().is_some();
    }
    if json_length(&asked) > MAX_TEXT
        && let ChatEvent::PermissionRequired { args, reason, always, .. } = &mut asked
    {
        (*args, *reason, cut) = (shown_args(args), beginning(reason, SHOWN), true);
        // A rule has the words of its command.
        *always = always.take().filter(|rule| json_length(rule) <= SHOWN);
    }
    (json_length(&asked) <= MAX_TEXT).then_some((asked, cut))
}

/// Arguments in at most [`MAX_ARGS`] bytes. JSON stays JSON: its long texts, lists and objects are cut.
fn shown_args(args: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(args) else { return beginning(args, SHOWN) };
    let mut shown = [SHOWN, SHOWN / 4, SHOWN / 16, 0].into_iter().map(|length| shortened(&value, length).to_string());
    shown.find(|shown| shown.len() <= MAX_ARGS).unwrap_or_else(|| "{}".to_owned())
}

/// A value whose texts have at most this many bytes, and its lists and objects as many elements as go with that. A `…` is where more follows.
fn shortened(value: &Value, length: usize) -> Value {
    let count = length / 64;
    match value {
        Value::String(text) => beginning(text, length).into(),
        Value::Array(all) => {
            let kept = all.iter().take(count).map(|one| shortened(one, length));
            kept.chain((all.len() > count).then(|| Value::from("…"))).collect()
        }
        Value::Object(all) => {
            let kept = all.iter().take(count).map(|(key, one)| (beginning(key, 64), shortened(one, length)));
            kept.chain((all.len() > count).then(|| ("…".to_owned(), Value::from("…")))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// The answer to a task that asks a chat which was given up: it would wait for ever.
pub(crate) fn gone(state: &ChatState) -> Option<OutboxMessage> {
    let config = state.config.as_deref()?;
    let error = Error::new(Code::Cancelled, "the chat of this agent was deleted");
    if config.member.is_some() {
        return member_ended(config, "stopped", Some(error), Usage::default());
    }
    message(config, TurnReport::default().answer(config, state.turns + 1, "", "stopped".into(), Some(error)))
}

/// The answer to a task whose words failed again and again before the chat took them in; none to commands of others.
pub(crate) fn not_taken_in(state: &ChatState, command: &ChatCommand, error: Error) -> Option<OutboxMessage> {
    let ChatCommand::StartTurn(TurnRequest { create, .. }) = command else { return None };
    let config = state.config.as_deref().or(create.as_deref())?;
    if config.member.is_some() {
        return member_ended(config, "error", Some(error), Usage::default());
    }
    message(
        config,
        TurnReport::default().answer(config, state.turns + 1, "", stop_reason_text(StopReason::Error), Some(error)),
    )
}

fn message(config: &ChatConfig, answer: AgentAnswer) -> Option<OutboxMessage> {
    let agent = config.agent.as_ref()?;
    if let Some(executor) = &agent.executor {
        let to = actor_id(config.workspace, executor.session);
        return message_to(to, &ChatCommand::ExecutorEnded { answer: Box::new(answer) });
    }
    let to = ActorRef::Task { workspace: config.workspace, task: agent.task };
    message_to(to, &TaskCommand::AgentAnswered { answer: Box::new(answer) })
}

fn message_to(to: impl Into<ActorId>, command: &impl Serialize) -> Option<OutboxMessage> {
    Some(OutboxMessage::now(to, serde_json::to_value(command).ok()?, 0))
}

/// The message about an event of an agent's chat to the chat that has the team; none about most.
pub(crate) fn of_member(state: &ChatState, event: &ChatEvent, error: Option<&Error>) -> Option<OutboxMessage> {
    let config = state.config.as_deref()?;
    match event {
        ChatEvent::PlanStep { step, status, title, plan_path, plan_id: Some(id), done, total } => {
            // A person may have written the plan, with lines of any length.
            let (plan, title) = (PlanFile { path: plan_path.clone(), id: *id }, beginning(title, SHOWN));
            let status = status.clone();
            let told = Box::new(ToldStep { step: *step, status, title, plan, done: *done, total: *total });
            to_team(config, &ChatCommand::StepTold { told })
        }
        ChatEvent::Done { stop_reason, .. } => {
            let told = serde_json::to_value(stop_reason).ok();
            let reason = told.as_ref().and_then(|reason| reason.as_str()).unwrap_or_default();
            member_ended(config, reason, error.cloned(), used(state))
        }
        ChatEvent::Stopped { .. } => member_ended(config, "stopped", error.cloned(), used(state)),
        _ => None,
    }
}

fn used(state: &ChatState) -> Usage {
    state.turn.as_ref().map(|turn| turn.usage).unwrap_or_default()
}

/// The message about the end of a turn with this usage.
fn member_ended(config: &ChatConfig, reason: &str, error: Option<Error>, usage: Usage) -> Option<OutboxMessage> {
    let end = MemberEnd { chat_id: config.chat, stop_reason: reason.to_owned(), error, usage };
    to_team(config, &ChatCommand::MemberEnded { end: Box::new(end) })
}

fn to_team(config: &ChatConfig, command: &ChatCommand) -> Option<OutboxMessage> {
    message_to(actor_id(config.workspace, config.member?.chat), command)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::{CallId, PermissionId, Timestamp, shown_digest};
    use serde_json::json;
    use uuid::Uuid;

    fn asked(args: String) -> ChatEvent {
        let (permission_id, call_id) = (PermissionId(Uuid::from_u128(1)), CallId(Uuid::from_u128(2)));
        let (category, tool, reason) = ("file".to_owned(), "write".to_owned(), "it writes".to_owned());
        let (at, expires_at) = (Timestamp::default(), Timestamp::default());
        let (always, agent) = (None, None);
        ChatEvent::PermissionRequired {
            permission_id,
            call_id,
            category,
            tool,
            args,
            reason,
            always,
            agent,
            at,
            expires_at,
        }
    }

    /// The arguments and the digest of a request.
    fn shown(asked: &ChatEvent) -> (Value, String) {
        let ChatEvent::PermissionRequired { args, category, tool, .. } = asked else { panic!("{asked:?}") };
        (serde_json::from_str(args).unwrap(), shown_digest(category, tool, args, None).to_string())
    }

    #[test]
    fn a_request_that_fits_is_told_as_it_is_and_a_longer_one_stays_json() {
        let short = asked(json!({ "path": "/data/a.md", "content": "x".repeat(8 * 1024) }).to_string());
        assert_eq!(fitting(&short), Some((short, false)));

        let long = asked(json!({ "content": "\"".repeat(300 * 1024), "path": "/data/a.md" }).to_string());
        let (told, cut) = fitting(&long).unwrap();
        let (args, digest) = shown(&told);
        assert!(cut && digest != shown(&long).1, "people decide on something else than the whole");
        assert_eq!(args["path"], "/data/a.md");
        let content = args["content"].as_str().unwrap();
        assert!(content.starts_with('"') && content.ends_with('…') && content.len() <= SHOWN + 3, "{}", content.len());

        for many in [
            json!({ "all": (0..100_000).collect::<Vec<u32>>() }),
            Value::Object((0..100_000).map(|key| (key.to_string(), json!([key]))).collect()),
            json!(vec![json!({ ("\u{1}".repeat(300)): "\u{1}".repeat(300) }); 1_000]),
        ] {
            let (told, cut) = fitting(&asked(many.to_string())).unwrap();
            let (args, _) = shown(&told);
            assert!(cut && args.to_string().contains('…') && args != many, "{args}");
        }
    }

    #[test]
    fn a_request_that_is_no_permission_and_does_not_fit_is_not_told() {
        let (question_id, call_id) = (domain::QuestionId(Uuid::from_u128(1)), CallId(Uuid::from_u128(2)));
        let at = Timestamp::default();
        let question = |text: &str| {
            let question = json!({ "name": "a", "question": text, "schema": {} });
            let questions = vec![serde_json::from_value(question).unwrap()];
            ChatEvent::Asked { question_id, call_id, questions, at, expires_at: at }
        };
        assert_eq!(fitting(&question("Which?")), Some((question("Which?"), false)));
        assert_eq!(fitting(&question(&"x".repeat(MAX_TEXT))), None);
    }
}
