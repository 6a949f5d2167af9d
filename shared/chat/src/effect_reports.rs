//! The reports of effects: the answer of a model, and the outcome of a tool.

use crate::{
    answer_limits::is_too_long,
    ask, cancel, coding, handed_out_calls,
    machine::{ModelAnswer, Report},
    phase::Phase,
    policy, sampling,
    session::execution,
    step::Step,
};
use domain::{CallId, ChatEvent, Code, Error, Message, MessageId, StopReason, ToolCall};
use serde_json::json;

/// Whether the call itself was wrong, and not merely its circumstances.
fn is_misuse(error: &Error) -> bool {
    matches!(error.code, Code::InvalidArgument | Code::Forbidden | Code::Unauthorized)
}

/// Takes in the report of an effect. A report that does not fit the state is late, and is dropped.
pub(crate) fn effect_reported(step: &mut Step<'_>, report: Report) {
    let Some(report) = coding::reported(step, report) else { return };
    let Some(turn) = step.turn() else { return };
    let (analyses, compacts) = (execution::analyses(step.state()), turn.compacting.is_some());
    match (report, &turn.phase) {
        // The words of an analysis are for no reader, and a summary is shown as a whole.
        (Report::Reasoned { .. } | Report::Wrote { .. }, Phase::Model { .. }) if analyses || compacts => {}
        (Report::ModelFinished(answer), Phase::Model { message_id, .. })
            if compacts && answer.message_id == *message_id =>
        {
            step.summarised(*answer);
        }
        (Report::ModelFailed { message_id, error, .. }, Phase::Model { message_id: current, .. })
            if compacts && message_id == *current =>
        {
            step.no_summary(message_id, error);
        }
        (Report::ModelFinished(answer), Phase::Model { message_id, .. })
            if analyses && answer.message_id == *message_id =>
        {
            step.analysis_answered(*answer);
        }
        (Report::ModelFailed { message_id, timed_out: false, .. }, Phase::Model { message_id: current, .. })
            if analyses && message_id == *current =>
        {
            step.analysis_failed();
        }
        (Report::Reasoned { message_id, text }, Phase::Model { message_id: current, .. }) if message_id == *current => {
            step.push(ChatEvent::Thought { text, message_id });
        }
        (Report::Wrote { message_id, text }, Phase::Model { message_id: current, .. }) if message_id == *current => {
            step.push(ChatEvent::Chunk { text, message_id });
        }
        (Report::Denies { message_id, rule_ids, files }, Phase::Model { message_id: current, .. })
            if message_id == *current =>
        {
            step.push(ChatEvent::DenialsRead { rule_ids, files });
        }
        (Report::Spent { message_id, usage, model, estimated }, Phase::Model { message_id: current, .. })
            if message_id == *current =>
        {
            step.count(usage, model, estimated);
        }
        (Report::ModelFinished(answer), Phase::Model { message_id, .. }) if answer.message_id == *message_id => {
            model_finished(step, *answer);
        }
        (Report::ModelFailed { message_id, error, timed_out }, Phase::Model { message_id: current, .. })
            if message_id == *current =>
        {
            model_failed(step, error, timed_out);
        }
        (Report::ModelPostponed { message_id, error, failures, after }, Phase::Model { message_id: current, .. })
            if message_id == *current =>
        {
            step.postpone(message_id, error, failures, after);
        }
        (Report::ToolFinished { call_id, outcome }, Phase::Tool { call_id: current, attempt })
            if call_id == *current =>
        {
            let attempt = *attempt;
            tool_returned(step, call_id, attempt, *outcome);
        }
        (Report::ToolTold { call_id, words }, Phase::Tool { call_id: current, .. }) if call_id == *current => {
            // As the agents of threads tell of their calls: clients show both in the same way.
            let text = json!({ "type": "content", "content": { "type": "text", "text": words } });
            let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress",
                "content": [text] });
            step.push(ChatEvent::AgentUpdated { call_id: Some(call_id), update, at: step.stamp.at });
        }
        (Report::ToolSamples { call_id, request }, Phase::Tool { call_id: current, .. }) if call_id == *current => {
            sampling::asked(step, call_id, &request);
        }
        (Report::Sampled { call_id, usage, model, estimated }, Phase::Tool { call_id: current, .. })
            if call_id == *current =>
        {
            step.count(usage, model, estimated);
        }
        (Report::ToolAsks { call_id, question }, Phase::Tool { call_id: current, .. }) if call_id == *current => {
            ask::elicited(step, call_id, *question);
        }
        (Report::TakenBack { turn, taken }, Phase::Rollback { turn_id, .. }) if turn == *turn_id => {
            step.taken_back(turn, *taken);
        }
        (Report::PlanPolled { turn, result }, Phase::Team) => step.plan_polled(turn, *result),
        (Report::PlanChecked { call_id, changed }, Phase::Begun) => {
            if let Some(call) = step.next_unanswered().filter(|call| call.call_id == call_id) {
                match changed {
                    None => step.call_tool(call, 1),
                    Some(changed) => step.ask_anew(&call, &changed),
                }
            }
        }
        _ => {}
    }
}

fn model_finished(step: &mut Step<'_>, answer: ModelAnswer) {
    let message_id = answer.message_id;
    if !answer.unreported.is_empty() {
        step.push(ChatEvent::Chunk { text: answer.unreported, message_id });
    }
    let calls: Vec<ToolCall> =
        answer.calls.into_iter().map(|(tool, args)| ToolCall { call_id: CallId(step.id()), tool, args }).collect();
    let is_last = calls.is_empty();
    let is_whole = is_last && answer.reason == StopReason::EndTurn;
    let misfit = if is_whole { step.misfit(&answer.text) } else { None };
    let says_nothing = is_last && answer.text.trim().is_empty();
    // A provider takes back no message that says nothing.
    if !says_nothing {
        let message = Message::Assistant {
            id: message_id,
            at: step.stamp.at,
            content: answer.text,
            calls,
            reasoning: answer.reasoning,
            provider: answer.provider,
        };
        step.push(ChatEvent::MessageAdded { message });
    }
    step.used(answer.usage, answer.model);
    match is_last && !step.has_words() {
        true if step.hands_to_team(answer.reason) => step.call_team(),
        true if says_nothing && is_whole => answered_nothing(step, misfit),
        true => match misfit {
            Some(error) => step.give_up_turn(error, StopReason::Error),
            None => step.finish(answer.reason),
        },
        false => step.next_call(),
    }
}

/// Takes in that the model gave no answer. A context that was refused as too long is compacted, and the model is asked again. Words that came before
/// stay, as with every other failure.
fn model_failed(step: &mut Step<'_>, error: Error, timed_out: bool) {
    let has_begun = matches!(step.turn().map(|turn| &turn.phase), Some(Phase::Model { text, .. }) if !text.is_empty());
    if has_begun || !is_too_long(&error) || !step.compacts_refused() {
        coding::fail(step, error, timed_out);
    }
}

/// The words to a model that has answered without a word.
const EMPTY: &str = "[System: Your last answer was empty, and nobody reads results of calls alone. Go on with the work, or say how it ended.]";

/// Takes in an answer without a word or a call. The model is asked once more within the limits of the turn, with a note, since the same request tends
/// to get the same answer. After a second one the turn ends with the words that it had before, and with an error where it had none. Agents that work
/// for a task, for another chat or for nobody end without an error, which would have their calls made again.
fn answered_nothing(step: &mut Step<'_>, misfit: Option<Error>) {
    let last = step.state().history.back().and_then(|turn| turn.messages.last());
    let is_second = last.is_some_and(|last| matches!(&**last, Message::System { content, .. } if content == EMPTY));
    if !is_second && step.turn().is_some_and(|turn| turn.reached(step.stamp.at).is_none()) {
        let message = Message::System { id: MessageId(step.id()), at: step.stamp.at, content: EMPTY.to_owned() };
        step.push(ChatEvent::MessageAdded { message });
        return step.call_model();
    }
    if let Some(error) = misfit {
        return step.give_up_turn(error, StopReason::Error);
    }
    let has_reader = step.config().is_some_and(|config| config.agent.is_none() && !config.is_unattended());
    if !has_reader || step.turn().is_some_and(|turn| !turn.last_text.trim().is_empty()) {
        return step.finish(StopReason::EndTurn);
    }
    let error = Error::new(Code::UpstreamUnavailable, "the model answered without a word")
        .hint("send the message again, or choose another model; the changes that it made are kept");
    step.give_up_turn(error, StopReason::Error);
}

/// Takes in the outcome of a call, which may be that the call is not over: a client runs it, its machine is not ready, or a policy has it asked about.
fn tool_returned(step: &mut Step<'_>, call_id: CallId, attempt: u32, outcome: tools::CallOutcome) {
    let Some(turn) = step.turn() else { return };
    let error = outcome.error.as_ref().filter(|_| turn.stopping.is_none());
    if let Some(within) = error.and_then(ports::HandedOut::of)
        && let Some(call) = turn.calls.iter().find(|call| call.call_id == call_id).cloned()
    {
        return handed_out_calls::hand_out(step, &call, within);
    }
    if let Some((error, after)) = error.and_then(|error| Some((error.clone(), tools::retry_after(error)?))) {
        return step.come_again(call_id, attempt, error, after);
    }
    if !policy::asks(step, call_id, &outcome) {
        tool_finished(step, call_id, outcome);
    }
}

fn tool_finished(step: &mut Step<'_>, call_id: CallId, outcome: tools::CallOutcome) {
    let Some(call) = step.turn().and_then(|turn| turn.calls.iter().find(|call| call.call_id == call_id)) else {
        return;
    };
    let tools::CallOutcome { output, success, truncated, seen, events, error, resources, .. } = outcome;
    let (tool, at) = (call.tool.clone(), step.stamp.at);
    let output = step.told_of_repetition(call, output, success);
    let (output, is_cut) = step.fit_result(output);
    let truncated = truncated || is_cut;
    let misuse = step.kind(&tool).is_none() || error.as_ref().is_some_and(is_misuse);
    let code = error.map(|error| error.code);
    step.push(ChatEvent::Observed { call_id, tool, output, success, misuse, code, resources, truncated, seen, at });
    events.into_iter().for_each(|event| step.push(event));
    let Some(turn) = step.turn() else { return };
    match turn.stopping.clone() {
        None => step.next_call(),
        Some((stop_id, reason)) => {
            let partial_response = turn.last_text.clone();
            cancel::end(step, Some(stop_id), &reason, partial_response);
        }
    }
}
