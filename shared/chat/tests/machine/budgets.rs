//! The budgets of turns and of the agents that work for them, as properties: whatever the agents use, and however the turn ends.

use crate::play::Play;
use actor::{Input, StopRequest, StopTarget};
use domain::{
    Budget, ChatCommand, ChatEvent, ChatId, Limits, Session, StopId, StopReason, TurnRequest, Usage, task::AgentAnswer,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// A session that has planned these steps, each with those that it needs.
fn planned(limits: Limits, needs: &[Vec<u32>]) -> Play {
    let mut play = Play::with(|config| {
        config.session = Some(Box::new(Session::default()));
        config.tools = Some(vec!["read".into()]);
        config.limits = limits;
    });
    play.say("do the hard thing");
    play.answer(r#"{"strategy": "complex"}"#, &[]);
    let step = |(step, needs): (u32, &Vec<u32>)| json!({ "step": step, "description": "a part", "depends_on": needs });
    let steps: Vec<Value> = (1..).zip(needs).map(step).collect();
    play.answer("", &[("run_plan", json!({ "steps": steps }))]);
    play
}

/// The executors that were begun, each with the limits of its chat.
fn begun(play: &Play) -> BTreeMap<ChatId, Limits> {
    let command = |sent: &Value| serde_json::from_value(sent.clone()).ok();
    let started = play.scheduled.iter().filter_map(command).filter_map(|command| match command {
        ChatCommand::StartTurn(TurnRequest { create, .. }) => create.map(|config| (config.chat, config.limits)),
        _ => None,
    });
    started.collect()
}

fn ended(play: &Play) -> usize {
    play.count(|event| matches!(event, ChatEvent::StepEnded { .. }))
}

fn report(play: &mut Play, chat: ChatId, usage: Usage, stop_reason: &str) {
    let answer = AgentAnswer {
        chat,
        round: 1,
        text: "so far".into(),
        stop_reason: stop_reason.into(),
        usage,
        model: None,
        steps: 1,
        tools: Vec::new(),
        error: None,
    };
    play.command(ChatCommand::ExecutorEnded { answer: Box::new(answer) });
}

fn tokens(usage: Usage) -> u64 {
    usage.input_tokens + usage.output_tokens
}

/// The usage that the log tells: of the session, and of its agents.
fn told(play: &Play) -> (Usage, Usage) {
    let (mut own, mut agents) = (Usage::default(), Usage::default());
    for event in &play.log {
        match event {
            ChatEvent::Used { usage, .. } => own += *usage,
            ChatEvent::StepEnded { result, .. } => agents += result.usage,
            ChatEvent::Team { fact } => {
                if let domain::TeamFact::Late { usage, .. } = &**fact {
                    agents += *usage;
                }
            }
            _ => {}
        }
    }
    (own, agents)
}

proptest! {
    /// The budgets of executors and the usage never exceed the limits of the turn, and each use is counted once.
    #[test]
    fn a_turn_and_its_executors_stay_within_its_limits_and_no_use_is_lost_or_counted_twice(
        max_tokens in 300..60_000_u64,
        max_cents in 0..200_u32,
        needs in proptest::collection::vec(proptest::collection::vec(1..8_u32, 0..3), 1..8),
        acts in proptest::collection::vec((0..8_usize, 0..=100_u64, 0..12_u8), 40),
    ) {
        let limits = Limits { max_tokens, max_cost_usd: f64::from(max_cents) / 100.0, ..Limits::default() };
        // A step needs earlier ones.
        let needs: Vec<Vec<u32>> = (1..)
            .zip(needs)
            .map(|(step, needs): (u32, Vec<u32>)| needs.into_iter().filter(|needed| *needed < step).collect())
            .collect();
        let mut play = planned(limits, &needs);
        let mut used: BTreeMap<ChatId, Usage> = BTreeMap::new();
        for (which, percent, act) in acts {
            let all = begun(&play);
            let open: Vec<ChatId> = all.keys().filter(|chat| !used.contains_key(chat)).copied().collect();
            let turn = play.state.turn.as_ref().map_or_else(Usage::default, |turn| turn.usage);
            if play.state.turn.is_some() {
                let given: u64 = open.iter().map(|chat| all[chat].max_tokens).sum();
                let spent: u64 = used.values().map(|usage| tokens(*usage)).sum();
                prop_assert!(given + spent + tokens(turn) <= max_tokens, "{given} {spent} {turn:?}");
                let given: f64 = open.iter().map(|chat| all[chat].max_cost_usd).sum();
                let spent: f64 = used.values().map(|usage| usage.cost_usd).sum();
                prop_assert!(given + spent <= limits.max_cost_usd + 1e-9, "{given} {spent}");
            }
            let Some(chat) = open.get(which % open.len().max(1)).copied() else { break };
            match act {
                0 => _ = play.crash(),
                1 if play.state.turn.is_some() => {
                    let (stop_id, at) = (StopId(Uuid::from_u128(9)), play.at());
                    let request = StopRequest { stop_id, target: StopTarget::First, at, reason: "user_cancelled".into() };
                    play.input(Input::Stop(request));
                }
                _ => {
                    let budget = all[&chat];
                    let part = budget.max_tokens * percent / 100;
                    let cost_usd = budget.max_cost_usd * f64::from(u32::try_from(percent).unwrap_or(0)) / 100.0;
                    let usage = Usage { input_tokens: part / 2, output_tokens: part - part / 2, cached_tokens: 0, cost_usd };
                    report(&mut play, chat, usage, if percent == 100 { "token_limit" } else { "end_turn" });
                    used.insert(chat, usage);
                }
            }
        }
        let (own, agents) = told(&play);
        let sum: u64 = used.values().map(|usage| tokens(*usage)).sum();
        prop_assert_eq!(tokens(agents), sum);
        prop_assert_eq!(play.state.agents_usage, agents);
        let (mut before, turn) = (play.state.usage, play.state.turn.as_ref().map(|turn| turn.usage));
        before += turn.unwrap_or_default();
        prop_assert_eq!(before, own);
    }
}

#[test]
fn the_steps_that_are_left_share_what_is_free_and_one_without_a_budget_is_not_begun() {
    let limits = Limits { max_tokens: 1_000, max_cost_usd: 3.0, ..Limits::default() };
    let mut play = planned(limits, &[vec![], vec![], vec![1]]);
    let first: Vec<Limits> = begun(&play).into_values().collect();
    // The analysis and the plan used 30 tokens; the three steps and the answer after them share the rest.
    assert_eq!(first.iter().map(|limits| limits.max_tokens).collect::<Vec<_>>(), [242, 242]);
    let chats: Vec<ChatId> = begun(&play).into_keys().collect();
    let usage = Usage { input_tokens: 600, ..Usage::default() };
    report(&mut play, chats[0], usage, "token_limit");
    let why = play.log.iter().rev().find_map(|event| match event {
        ChatEvent::StepEnded { result, .. } => Some((result.data.clone(), result.error.clone()?.message)),
        _ => None,
    });
    let (partial, why) = why.unwrap();
    assert!(partial == "so far" || why.contains("depends on"), "{partial} {why}");
    report(&mut play, chats[1], Usage { input_tokens: 100, ..Usage::default() }, "end_turn");
    assert_eq!(ended(&play), 3);
    let read = play.asked.last().cloned().unwrap_or_default().join("\n");
    assert!(read.contains("its budget is used up") && read.contains("It came to this: so far"), "{read}");

    // Nothing is left for the next plan: it ends at once, and the turn with it.
    let mut play = planned(Limits { max_tokens: 100, ..Limits::default() }, &[vec![]]);
    assert_eq!((begun(&play).len(), ended(&play)), (0, 1));
    let read = play.asked.last().cloned().unwrap_or_default().join("\n");
    assert!(read.contains("nothing is left of the budget"), "{read}");
    let usage = Usage { input_tokens: 80, ..Usage::default() };
    play.answer_using("Some of it.", &[("read", json!({ "path": "/a.md" }))], usage);
    play.tool("text");
    let Some(ChatEvent::Done { message, stop_reason, .. }) = play.log.last() else { panic!("{:?}", play.log.last()) };
    assert_eq!((message.as_str(), *stop_reason), ("Some of it.", StopReason::TokenLimit), "what there is, and why");
}

#[test]
fn a_turn_counts_what_its_agents_use_against_its_own_limit() {
    let mut play = planned(Limits { max_tokens: 2_000, ..Limits::default() }, &[vec![]]);
    let chat = *begun(&play).keys().next().unwrap();
    report(&mut play, chat, Usage { input_tokens: 1_980, ..Usage::default() }, "end_turn");
    let Some(ChatEvent::Done { stop_reason, .. }) = play.log.last() else { panic!("{:?}", play.log.last()) };
    assert_eq!(*stop_reason, StopReason::TokenLimit);
}

#[test]
fn budgets_are_divided_and_taken_from() {
    let all = Budget { max_tokens: Some(1_000), max_cost_usd: Some(3.0), max_wall_ms: Some(60_000) };
    let part = all.part_of(3);
    assert_eq!((part.max_tokens, part.max_wall_ms), (Some(333), Some(60_000)), "time is not divided");
    assert_eq!(all.beside(part, 1).beside(part, 2).max_tokens, Some(1));
    let used = Usage { input_tokens: 900, output_tokens: 200, cost_usd: 4.0, ..Usage::default() };
    assert_eq!(
        (all.without(used), all.part_of(0)),
        (Budget { max_tokens: Some(0), max_cost_usd: Some(0.0), ..all }, all)
    );
    let narrow = all.narrows(Limits { max_tokens: 10, ..Limits::default() });
    assert_eq!((narrow.max_tokens, narrow.max_cost_usd, narrow.max_steps), (10, 3.0, 200));
}
