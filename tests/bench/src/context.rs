//! `context`: the assembly of the context of a model's call, in a chat of 10,000 messages.

use crate::{Bench, Result, report::Figure, samples::Samples};
use actor::{Input, Machine as _, Step};
use chat::{ChatEffect, ChatMachine, ChatState, ModelAnswer, Report, SimpleGate};
use domain::{
    ChatCommand, ChatConfig, ChatEvent, ChatId, CommandId, Limits, Message, MessageId, Mode, ModelSettings, Principal,
    Stamp, StopReason, Timestamp, TurnId, TurnRequest, Usage, WorkspaceId,
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tools::Registry;
use uuid::Uuid;

/// Turns of two messages.
const TURNS: u128 = 5_000;
const WORDS: &str =
    "what was decided yesterday, what is still open, and who is to be asked before the next step is taken";

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    const ROUNDS: usize = 200;
    for (name, budget, is) in [
        ("context.everything", 100_000_000, "a budget that cuts nothing: all messages are sent"),
        ("context.default_budget", 100_000, "the default budget: what does not fit was left out before"),
    ] {
        let (machine, mut state) = (machine(), grown(budget));
        let mut took = Samples::default();
        for round in 0..ROUNDS {
            let began = Instant::now();
            let (asked, message_id, messages) = ask(&machine, state, round as u128)?;
            took.add(began.elapsed());
            // The next turn begins where this one ended.
            state = answer(&machine, asked, message_id, round as u128)?;
            if round == 0 && budget > 1_000_000 && (messages as u128) < 2 * TURNS {
                return Err(format!("{messages} messages were assembled").into());
            }
        }
        bench.report.add(
            Figure::new(name, took.median(), "ms")
                .at_most(5.0, "5 ms")
                .more("p99", took.p99())
                .more("messages", 2.0 * TURNS as f64)
                .more("is", is),
        )?;
    }
    Ok(())
}

fn machine() -> ChatMachine {
    ChatMachine {
        gate: Arc::new(SimpleGate { timeout: Duration::from_secs(60) }),
        tools: Arc::new(Registry::builtin()),
        question_timeout: Duration::from_secs(60),
        places: None,
        cost: Arc::new(|_, _| 0.0),
    }
}

/// A chat with so many turns.
fn grown(context_tokens: u64) -> ChatState {
    let at = Timestamp::default();
    let config = ChatConfig {
        workspace: WorkspaceId(Uuid::from_u128(1)),
        chat: ChatId(Uuid::from_u128(2)),
        user: Principal::local().user(),
        title: "bench".into(),
        role: "assistant".into(),
        model: None,
        model_settings: ModelSettings::default(),
        mode: Mode::Chat,
        limits: Limits::default(),
        system: "You are an assistant.".into(),
        cut: Vec::new(),
        tools: None,
        plan: None,
        context_tokens,
        created_at: at,
        agent: None,
        thread: None,
        forked_from: None,
        session: None,
        scenario: None,
        member: None,
        functions: Vec::new(),
        labels: domain::Labels::default(),
    };
    let mut state = ChatState::default();
    let mut number = 0;
    let mut apply = |event: &ChatEvent| {
        number += 1;
        state.apply(number, event);
    };
    apply(&ChatEvent::Created { config: Box::new(config) });
    for turn in 1..=TURNS {
        let (turn_id, limits) = (TurnId(Uuid::from_u128(turn << 8)), Limits::default());
        apply(&ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: at, limits, may_approve: false, trace: None });
        let id = MessageId(Uuid::from_u128((turn << 8) + 1));
        let (content, files, context) = (WORDS.to_owned(), Vec::new(), String::new());
        apply(&ChatEvent::MessageAdded { message: Message::User { id, at, content, files, context, user_id: None } });
        let (id, content) = (MessageId(Uuid::from_u128((turn << 8) + 2)), WORDS.to_owned());
        let (calls, reasoning, provider) = (Vec::new(), String::new(), Value::Null);
        apply(&ChatEvent::MessageAdded { message: Message::Assistant { id, at, content, calls, reasoning, provider } });
        apply(&ChatEvent::Done { turn_id, message: WORDS.into(), stop_reason: StopReason::EndTurn, at });
    }
    state
}

/// A message comes: the state after it, and how many messages the model is sent.
fn ask(machine: &ChatMachine, state: ChatState, round: u128) -> Result<(ChatState, MessageId, usize)> {
    let (id, by, at) = (CommandId(Uuid::from_u128(7 << 64 | round)), Principal::local(), Timestamp::default());
    let command = ChatCommand::StartTurn(TurnRequest { content: WORDS.into(), ..TurnRequest::default() });
    let stamp = Stamp { at, id: Uuid::from_u128(8 << 64 | round << 32) };
    let mut step = Step::new(state, 1_000_000);
    machine.handle(&mut step, Input::Command { id, by, at, command }, &stamp);
    let (state, decision) = step.end();
    let asked = decision.effects.into_iter().find_map(|(_, effect)| match effect {
        ChatEffect::CallModel { message_id, request, .. } => Some((message_id, request.messages.len())),
        _ => None,
    });
    let (message_id, messages) = asked.ok_or("the model was not asked")?;
    Ok((state, message_id, messages))
}

fn answer(machine: &ChatMachine, state: ChatState, message_id: MessageId, round: u128) -> Result<ChatState> {
    let answer = ModelAnswer {
        message_id,
        text: WORDS.into(),
        unreported: String::new(),
        reasoning: String::new(),
        calls: Vec::new(),
        reason: StopReason::EndTurn,
        usage: Usage::default(),
        provider: Value::Null,
        model: None,
    };
    let stamp = Stamp { at: Timestamp::default(), id: Uuid::from_u128(9 << 64 | round << 32) };
    let mut step = Step::new(state, 2_000_000);
    machine.handle(&mut step, Input::Report(Report::ModelFinished(Box::new(answer))), &stamp);
    let (state, _) = step.end();
    if state.turn.is_some() { Err("the turn did not end".into()) } else { Ok(state) }
}
