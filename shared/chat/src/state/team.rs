//! The team of a turn: its agents, and the fold of its events.

use super::ChatState;
use crate::phase::Phase;
use domain::{Budget, ChatEvent, ChatId, Member, TeamFact};
use serde::{Deserialize, Serialize};

/// The team of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Team {
    /// The round, from 1; 0 before the first one.
    pub round: u32,
    /// The agents.
    pub seats: Vec<TeamMember>,
    /// Looks at the plan that are under way.
    pub looking: u32,
    /// Steps that were done when the round began.
    pub done_before: u32,
    /// Steps that were done when agents last began or went on.
    #[serde(default, skip_serializing_if = "super::history::is_zero")]
    pub done_woken: u32,
    /// Steps that are done, as far as that was told.
    pub done: u32,
}

/// An agent of a team, with its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TeamMember {
    /// The agent, with its last turn.
    pub member: Member,
    /// Its state.
    pub state: TeamMemberStatus,
    /// The budget that is set aside for it while it works.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "domain::budget::of_turn")]
    pub budget: Option<Budget>,
}

/// The states of a team's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamMemberStatus {
    /// Its turn runs.
    Works,
    /// It ended its turn by itself, and may go on.
    Rests,
    /// Its turn came to the end of its budget: it goes on if there is more.
    Spent,
    /// Its turn was stopped, failed, or came to another limit.
    Out,
}

impl Team {
    /// The agents whose turns run.
    pub(crate) fn working(&self) -> impl Iterator<Item = &Member> {
        self.of(TeamMemberStatus::Works)
    }

    pub(crate) fn of(&self, state: TeamMemberStatus) -> impl Iterator<Item = &Member> {
        self.seats.iter().filter(move |seat| seat.state == state).map(|seat| &seat.member)
    }

    /// The chats of the agents that work no more, in this round.
    pub(crate) fn ended(&self) -> Vec<ChatId> {
        let ended = self.seats.iter().filter(|seat| seat.state != TeamMemberStatus::Works);
        ended.map(|seat| seat.member.chat_id).collect()
    }

    /// The budgets of the agents whose turns run.
    pub(crate) fn budgets(&self) -> impl Iterator<Item = Budget> {
        self.seats.iter().filter(|seat| seat.state == TeamMemberStatus::Works).filter_map(|seat| seat.budget)
    }

    /// Folds one fact.
    pub(crate) fn apply(&mut self, fact: &TeamFact) {
        match fact {
            TeamFact::Called { .. } => self.looking += 1,
            TeamFact::Looked { done, .. } => {
                self.looking = self.looking.saturating_sub(1);
                self.done = *done;
            }
            TeamFact::Started { round, members, budget, .. } => {
                if self.working().next().is_none() {
                    self.done_before = self.done;
                }
                (self.round, self.done_woken) = (*round, self.done);
                for member in members {
                    self.seats.retain(|seat| seat.member.chat_id != member.chat_id);
                    self.seats.push(TeamMember {
                        member: member.clone(),
                        state: TeamMemberStatus::Works,
                        budget: *budget,
                    });
                }
            }
            TeamFact::MemberEnded { end, .. } => {
                let of = |seat: &&mut TeamMember| seat.member.chat_id == end.chat_id;
                if let Some(seat) = self.seats.iter_mut().find(of) {
                    seat.state = match end.stop_reason.as_str() {
                        "end_turn" => TeamMemberStatus::Rests,
                        "token_limit" | "cost_limit" => TeamMemberStatus::Spent,
                        _ => TeamMemberStatus::Out,
                    };
                }
                self.looking += 1;
            }
            TeamFact::Late { .. } => {}
        }
    }
}

impl ChatState {
    /// Folds an event of a team.
    pub(crate) fn apply_to_team(&mut self, event: &ChatEvent) {
        let Some(turn) = &mut self.turn else { return };
        match event {
            // It worked for an earlier turn.
            ChatEvent::Team { fact } if matches!(**fact, TeamFact::Late { .. }) => {}
            ChatEvent::Team { fact } => {
                if let TeamFact::Called { at } = &**fact {
                    // The time of a turn that asks no model counts from here.
                    turn.started_at.get_or_insert(*at);
                }
                turn.team.get_or_insert_default().apply(fact);
                turn.phase = Phase::Team;
            }
            ChatEvent::PlanStep { done, .. } => {
                if let Some(team) = &mut turn.team {
                    team.done = team.done.max(*done);
                }
            }
            _ => {}
        }
    }
}
