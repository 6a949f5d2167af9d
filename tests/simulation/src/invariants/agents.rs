//! The invariants of a log and of what a coding agent was given, told, asked and heard.

use super::{Held, Log, broken, events};
use crate::agent::AgentFact;
use domain::{ChatEvent, TurnId, event::StopReason};
use std::collections::{BTreeMap, BTreeSet};

/// No prompt reached an agent twice, in whatever process: its effects would be there twice.
pub fn prompts_were_given_once(noted: &[AgentFact]) -> Held {
    let mut given = BTreeSet::new();
    let twice = noted.iter().find_map(|noted| match noted {
        AgentFact::Prompted(turn) if !given.insert(*turn) => Some(turn),
        _ => None,
    });
    twice.map_or(Ok(()), |turn| broken("prompts_were_given_once", format!("that of {turn} was given twice")))
}

/// Each answer that an agent heard is in the log, for the very request; a yes was given by a person who was shown this call in this turn;
/// no request was answered twice.
pub fn agents_heard_their_own_answers(log: &Log, noted: &[AgentFact]) -> Held {
    const NAME: &str = "agents_heard_their_own_answers";
    let own = turns(log);
    let asked: BTreeMap<&str, (&TurnId, &str)> = noted
        .iter()
        .filter_map(|noted| match noted {
            AgentFact::Asked(turn, request, call) => Some((request.as_str(), (turn, call.as_str()))),
            _ => None,
        })
        .collect();
    let (mut shown, mut approved, mut answered) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    let mut turn = None;
    for event in events(log) {
        match event {
            ChatEvent::TurnStarted { turn_id, .. } => turn = Some(*turn_id),
            ChatEvent::PermissionRequired { permission_id, args, agent: Some(agent), .. } => {
                shown.insert(*permission_id, (turn, agent.request.as_str(), args.as_str()));
            }
            ChatEvent::PermissionResolved { permission_id, option_id, .. } => {
                if let Some((_, request, _)) = shown.get(permission_id)
                    && option_id.as_deref() == Some("allow_once")
                {
                    approved.insert(*request);
                }
            }
            ChatEvent::AgentBegan { answer: Some(answer), .. } => {
                answered.insert((answer.request.as_str(), answer.option.clone()));
            }
            _ => {}
        }
    }
    let mut heard = BTreeSet::new();
    for noted in noted {
        let AgentFact::Heard(turn, request, option) = noted else { continue };
        if !own.contains(turn) {
            continue;
        }
        if !heard.insert(request.as_str()) {
            return broken(NAME, format!("{request} was answered twice"));
        }
        if !answered.contains(&(request.as_str(), option.clone())) {
            return broken(NAME, format!("the log knows of no answer {option:?} to {request}"));
        }
        let is_yes = option.as_deref() == Some("allow_once");
        if is_yes && !approved.contains(request.as_str()) {
            return broken(NAME, format!("{request} was allowed by nobody"));
        }
        let was_shown = shown.values().any(|(shown_in, shown_as, call)| {
            let (asked_in, asked_for) = asked.get(request.as_str()).copied().unzip();
            *shown_in == Some(*turn) && asked_in == Some(turn) && *shown_as == request && Some(*call) == asked_for
        });
        if is_yes && !was_shown {
            return broken(NAME, format!("{request} was allowed, and another call was shown"));
        }
    }
    Ok(())
}

/// The log has what an agent told, in its order and nothing twice: all of it where the turn ended by itself, and as much as came in time where it was
/// stopped or the process was lost. A worker that is lost while the agent's process lives on may take updates along that nobody was shown: only
/// between two workers something may be missing.
pub fn agents_updates_are_in_the_log(log: &Log, noted: &[AgentFact]) -> Held {
    const NAME: &str = "agents_updates_are_in_the_log";
    let mut told: BTreeMap<TurnId, String> = BTreeMap::new();
    for noted in noted {
        if let AgentFact::Told(turn, words) = noted {
            told.entry(*turn).or_default().push_str(words);
        }
    }
    // A part for each worker that followed the agent.
    let (mut turn, mut parts) = (None, Vec::<String>::new());
    for event in events(log) {
        match event {
            ChatEvent::TurnStarted { turn_id, attempt: 1, .. } => {
                (turn, parts) = (told.get_key_value(turn_id), vec![String::new()]);
            }
            ChatEvent::AgentBegan { attempt: 2.., .. } => parts.push(String::new()),
            ChatEvent::Chunk { text, .. } => parts.iter_mut().last().into_iter().for_each(|part| part.push_str(text)),
            ChatEvent::AgentUpdated { update, .. } => {
                parts.iter_mut().last().into_iter().for_each(|part| part.push_str(&update.to_string()));
            }
            ChatEvent::Done { .. } | ChatEvent::Stopped { .. } => {
                let Some((turn, told)) = turn.take() else { continue };
                let ended = matches!(event, ChatEvent::Done { stop_reason: StopReason::EndTurn, .. });
                if !are_parts_of(&parts, told, ended) {
                    return broken(NAME, format!("{parts:?} instead of {told:?} in {turn}: {event:?}"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the parts are in the text one after the other, the first one at its beginning, and if so the last one at its end.
fn are_parts_of(parts: &[String], text: &str, to_the_end: bool) -> bool {
    let Some((first, others)) = parts.split_first() else { return text.is_empty() || !to_the_end };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    let Some((last, between)) = others.split_last() else { return !to_the_end || rest.is_empty() };
    for part in between {
        let Some((_, behind)) = rest.split_once(part.as_str()) else { return false };
        rest = behind;
    }
    if to_the_end { rest.ends_with(last.as_str()) } else { rest.contains(last.as_str()) }
}

fn turns(log: &Log) -> BTreeSet<TurnId> {
    let started = |event: &ChatEvent| match event {
        ChatEvent::TurnStarted { turn_id, .. } => Some(*turn_id),
        _ => None,
    };
    events(log).filter_map(started).collect()
}
