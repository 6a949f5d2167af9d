//! The invariants of a chat with agents that work for it.

use super::{Held, Log, broken, events, fold};
use actor::Entry;
use chat::TurnUsage;
use domain::{CallId, ChatEvent, StopReason, Timestamp, Usage};
use std::collections::BTreeMap;

/// Each step of the plan was done by one agent, once, and all of them if the chat says so. An agent that is stopped may have done a step in the plan and
/// not tell of it.
pub fn steps_were_done_once(log: &Log, agents: &[Vec<Entry<ChatEvent>>]) -> Held {
    const NAME: &str = "steps_were_done_once";
    let mut done: BTreeMap<u32, usize> = BTreeMap::new();
    for event in agents.iter().flat_map(|log| events(log)) {
        if let ChatEvent::PlanStep { step, status, .. } = event
            && status == "done"
        {
            *done.entry(*step).or_default() += 1;
        }
    }
    if let Some((step, times)) = done.iter().find(|(_, times)| **times > 1) {
        return broken(NAME, format!("step {step} was done {times} times"));
    }
    let all = events(log).find_map(|event| match event {
        ChatEvent::Done { message, stop_reason: StopReason::EndTurn, .. } => {
            message.strip_prefix("All ")?.split_whitespace().next()?.parse::<usize>().ok()
        }
        _ => None,
    });
    let is_stopped = |event: &ChatEvent| matches!(event, ChatEvent::Stopped { .. });
    let was_stopped = agents.iter().flat_map(|log| events(log)).any(is_stopped);
    match all {
        Some(all) if all != done.len() && !was_stopped => {
            broken(NAME, format!("{} of {all} steps were done", done.len()))
        }
        _ => Ok(()),
    }
}

/// An agent has a step only after each that had it before has ended it or its own turn.
pub fn steps_have_one_live_agent(agents: &[Vec<Entry<ChatEvent>>]) -> Held {
    let mut claims: BTreeMap<u32, Vec<(Timestamp, usize)>> = BTreeMap::new();
    let mut ends: BTreeMap<usize, Vec<(Timestamp, Option<u32>)>> = BTreeMap::new();
    for (agent, log) in agents.iter().enumerate() {
        for (at, event) in log.iter().flat_map(|entry| entry.events.iter().map(|event| (entry.at, event))) {
            match event {
                ChatEvent::PlanStep { step, status, .. } if status == "in_progress" => {
                    claims.entry(*step).or_default().push((at, agent));
                }
                ChatEvent::PlanStep { step, .. } => ends.entry(agent).or_default().push((at, Some(*step))),
                ChatEvent::Done { .. } | ChatEvent::Stopped { .. } => ends.entry(agent).or_default().push((at, None)),
                _ => {}
            }
        }
    }
    for (step, mut claims) in claims {
        claims.sort();
        for pair in claims.windows(2) {
            let &[(since, before), (at, after)] = pair else { continue };
            let gave_way = |(end, of): &(Timestamp, Option<u32>)| {
                (since..=at).contains(end) && of.is_none_or(|ended| ended == step)
            };
            // Of two claims at one moment either may be the first.
            let either = [before, if since == at { after } else { before }];
            let has_one = either.iter().filter_map(|agent| ends.get(agent)).flatten().any(gave_way);
            if before != after && !has_one {
                return broken("steps_have_one_live_agent", format!("step {step} has two agents at {at}"));
            }
        }
    }
    Ok(())
}

/// Each step of a session's plan began once at most, and each that began ended once: no executor is begun twice, and none is forgotten.
pub fn steps_of_plans_ended_once(log: &Log) -> Held {
    const NAME: &str = "steps_of_plans_ended_once";
    let (mut begun, mut ended) = <(BTreeMap<(CallId, u32), usize>, BTreeMap<(CallId, u32), usize>)>::default();
    for event in events(log) {
        match event {
            ChatEvent::StepStarted { call_id, step, .. } => *begun.entry((*call_id, *step)).or_default() += 1,
            ChatEvent::StepEnded { call_id, step, .. } => *ended.entry((*call_id, *step)).or_default() += 1,
            _ => {}
        }
    }
    if let Some(((plan, step), times)) = begun.iter().chain(&ended).find(|(_, times)| **times > 1) {
        return broken(NAME, format!("step {step} of {plan} began or ended {times} times"));
    }
    match begun.keys().find(|step| !ended.contains_key(step)) {
        Some((plan, step)) if !fold(log).deleted => broken(NAME, format!("step {step} of {plan} has no end")),
        _ => Ok(()),
    }
}

/// The records of usage add up to what the chat says that it and its agents used: nothing is lost, and nothing is counted twice.
pub fn usage_adds_up(log: &Log, own: &[TurnUsage], of_agents: &[TurnUsage]) -> Held {
    let state = fold(log);
    let sum = |records: &[TurnUsage]| {
        records.iter().fold(Usage::default(), |mut sum, record| {
            sum += record.usage;
            sum
        })
    };
    // Prices of the script are exact in binary.
    for (whose, said, recorded) in
        [("its own", state.usage, sum(own)), ("that of its agents", state.agents_usage, sum(of_agents))]
    {
        if said != recorded && !state.deleted {
            return broken("usage_adds_up", format!("{whose} is {said:?}, and {recorded:?} is recorded"));
        }
    }
    Ok(())
}
