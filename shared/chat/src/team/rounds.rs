//! The next action of a team, and the last words of its turn. Pure.

use crate::state::{Team, TeamMemberStatus};
use domain::ChatId;
use tools::PlanItem;

/// The next action of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TeamAction {
    /// Agents work, or the plan is being read.
    Wait,
    /// The first round begins, with all agents.
    Begin,
    /// These agents go on with the steps that are free.
    GoOn(Vec<ChatId>),
    /// The turn ends.
    End,
}

/// Decides by the plan as it is. A round that gets no step done is the last one, so there are at most as many rounds as steps and one more. An
/// agent at the end of its budget goes on like one that ended by itself: whether there is more is decided when the round begins.
///
/// Agents that rest go on beside those that work where a step that was done made more steps free than those will take.
pub(crate) fn next(team: &Team, items: &[PlanItem]) -> TeamAction {
    let (free, working) = (items.iter().filter(|item| item.is_free).count(), team.working().count());
    if team.looking > 0 {
        return TeamAction::Wait;
    }
    if team.round == 0 {
        return if free > 0 { TeamAction::Begin } else { TeamAction::End };
    }
    let held = items.iter().filter(|item| item.status == "in_progress" && !item.is_free).count();
    let left = if working == 0 { team.seats.len() } else { free.saturating_sub(working.saturating_sub(held)) };
    let able = team.of(TeamMemberStatus::Rests).chain(team.of(TeamMemberStatus::Spent).filter(|_| working == 0));
    let able: Vec<ChatId> = able.map(|member| member.chat_id).take(left).collect();
    let before = if working == 0 { team.done_before } else { team.done_woken };
    match free > 0 && team.done > before && !able.is_empty() {
        true => TeamAction::GoOn(able),
        false if working > 0 => TeamAction::Wait,
        false => TeamAction::End,
    }
}

/// The last words of the turn: how much is done, and each step that is left.
pub(crate) fn summary(items: &[PlanItem]) -> String {
    let done = items.iter().filter(|item| item.status == "done").count();
    let left: Vec<String> = items
        .iter()
        .filter(|item| item.status != "done")
        .map(|item| {
            let waits = item.waits_for.filter(|_| item.status == "pending");
            let waits = waits.map_or_else(String::new, |needed| format!(", after step {needed}"));
            format!("- step {} ({}{waits}): {}", item.step, item.status.replace('_', " "), item.title)
        })
        .collect();
    let total = items.len();
    match left.as_slice() {
        [] if total == 1 => "The step of the plan is done.".to_owned(),
        [] => format!("All {total} steps of the plan are done."),
        left if total == 1 => format!("The step of the plan is not done. Left:\n{}", left.join("\n")),
        left => format!("{done} of {total} steps of the plan are done. Left:\n{}", left.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::TeamMember;
    use domain::{Member, MemberEnd, TeamFact, Timestamp, Usage};
    use proptest::prelude::*;
    use uuid::Uuid;

    const AT: Timestamp = Timestamp::from_millis(0);

    fn member(number: u128) -> Member {
        Member { chat_id: ChatId(Uuid::from_u128(number)), role: "builder".into() }
    }

    fn items(statuses: &[&'static str]) -> Vec<PlanItem> {
        let item = |(step, status): (u32, &&'static str)| PlanItem {
            step,
            title: format!("step {step}"),
            status,
            is_free: *status == "pending",
            waits_for: None,
        };
        (1..).zip(statuses).map(item).collect()
    }

    #[test]
    fn the_end_says_what_is_left() {
        assert_eq!(summary(&items(&["done", "done"])), "All 2 steps of the plan are done.");
        let text = summary(&items(&["done", "failed", "in_progress", "pending"]));
        assert_eq!(
            text,
            "1 of 4 steps of the plan are done. Left:\n- step 2 (failed): step 2\n- step 3 (in progress): step 3\n- step 4 (pending): step 4"
        );
    }

    #[test]
    fn the_steps_of_an_agent_that_is_out_are_taken_by_those_that_rest() {
        let seats = vec![
            TeamMember { member: member(1), state: TeamMemberStatus::Out, budget: None },
            TeamMember { member: member(2), state: TeamMemberStatus::Rests, budget: None },
        ];
        let team = Team { round: 1, seats, done: 1, ..Team::default() };
        let left = items(&["done", "pending"]);
        assert_eq!(next(&team, &left), TeamAction::GoOn(vec![member(2).chat_id]));
        assert_eq!(
            next(&Team { done_before: 1, ..team.clone() }, &left),
            TeamAction::End,
            "the round got nothing done"
        );
        assert_eq!(next(&Team { looking: 1, ..team.clone() }, &left), TeamAction::Wait);
        assert_eq!(next(&team, &items(&["done", "failed"])), TeamAction::End);
        assert_eq!(next(&Team::default(), &left), TeamAction::Begin);
        assert_eq!(next(&Team::default(), &items(&["done"])), TeamAction::End);
    }

    #[test]
    fn agents_that_rest_go_on_beside_those_that_work_when_a_step_made_others_free() {
        let seats = [(1, TeamMemberStatus::Works), (2, TeamMemberStatus::Rests), (3, TeamMemberStatus::Rests)];
        let seats = seats.map(|(number, state)| TeamMember { member: member(number), state, budget: None }).to_vec();
        let team = Team { round: 1, seats, done: 1, ..Team::default() };
        let two = TeamAction::GoOn(vec![member(2).chat_id]);
        assert_eq!(next(&team, &items(&["done", "pending", "pending"])), two, "the one that works takes a step, too");
        assert_eq!(next(&team, &items(&["done", "in_progress", "pending"])), two);
        assert_eq!(next(&team, &items(&["done", "pending"])), TeamAction::Wait);
        assert_eq!(next(&team, &items(&["done", "in_progress"])), TeamAction::Wait);
        assert_eq!(next(&Team { done_woken: 1, ..team }, &items(&["done", "pending", "pending"])), TeamAction::Wait);
    }

    proptest! {
        /// A team of agents that claim, finish, fail and die as they like comes to an end, and nothing is free then that somebody could take.
        #[test]
        fn every_team_ends(agents in 1..5_u128, steps in 1..7_usize, luck in proptest::collection::vec(0..4_u8, 400)) {
            let mut luck = luck.into_iter().cycle();
            let mut luck = move || luck.next().unwrap_or_default();
            let mut team = Team::default();
            let mut statuses = vec!["pending"; steps];
            team.apply(&TeamFact::Called { at: AT });
            team.apply(&TeamFact::Looked { done: 0, at: AT });
            for turn in 0.. {
                prop_assert!(turn <= steps + 1, "a round more than there are steps");
                let members: Vec<Member> = match next(&team, &items(&statuses)) {
                    TeamAction::Begin => (0..agents).map(member).collect(),
                    TeamAction::GoOn(chats) => (0..agents).map(member).filter(|one| chats.contains(&one.chat_id)).collect(),
                    TeamAction::End => break,
                    TeamAction::Wait => return Err(TestCaseError::fail("it waits for nobody")),
                };
                team.apply(&TeamFact::Started { round: team.round + 1, members: members.clone(), budget: None, at: AT });
                for one in members {
                    prop_assert_ne!(next(&team, &items(&statuses)), TeamAction::End, "it ends after all of them");
                    let stop_reason = loop {
                        let Some(free) = statuses.iter().position(|status| *status == "pending") else { break "end_turn" };
                        match luck() {
                            0 => break "end_turn",
                            1 => break ["step_limit", "token_limit"][usize::from(luck() % 2)],
                            2 => statuses[free] = "failed",
                            _ => statuses[free] = "done",
                        }
                    };
                    let end = MemberEnd {
                        chat_id: one.chat_id,
                        stop_reason: stop_reason.into(),
                        error: None,
                        usage: Usage::default(),
                    };
                    team.apply(&TeamFact::MemberEnded { end, at: AT });
                    let done = u32::try_from(statuses.iter().filter(|status| **status == "done").count()).unwrap_or_default();
                    team.apply(&TeamFact::Looked { done, at: AT });
                }
            }
            prop_assert!(team.working().next().is_none());
            let named = summary(&items(&statuses));
            for item in items(&statuses) {
                prop_assert_eq!(named.contains(&format!("- step {} ", item.step)), item.status != "done");
            }
        }
    }
}
