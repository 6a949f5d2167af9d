//! A team at work: its agents are begun, told of, and stopped.

use super::{
    member,
    rounds::{self, TeamAction},
};
use crate::{
    keys::actor_id,
    machine::{PlanPoll, PlanPollResult},
    mode,
    state::TeamMemberStatus,
    step::Step,
};
use actor::EffectKey;
use domain::{
    Budget, CallId, ChatCommand, ChatConfig, ChatEvent, ChatId, Code, Error, Member, MemberEnd, Message, MessageId,
    Mode, NextPersona, PlanFile, Scenario, StopId, StopReason, TeamFact, ToldStep, TurnId, TurnRequest,
    chat::persona_name, json_length,
};
use ports::validate::MAX_MESSAGE;
use serde_json::Value;
use tools::PlanItem;

/// The longest start of an agent, in bytes of JSON: a message of the queue takes it with its frame.
const LONGEST_START: usize = MAX_MESSAGE - 4 * 1024;
/// The end of the last words of a turn whose budget is used up before its plan.
const SPENT: &str = "\nThe budget of this turn is used up. Send a message to go on: its turn has a budget of its own.";

impl Step<'_> {
    /// Whether the turn is the team's from its beginning: the plan is there.
    pub fn begins_team(&self) -> bool {
        self.config().is_some_and(|config| config.mode != Mode::Plan) && self.has_team(Scenario::ParallelAgents)
    }

    /// Whether the team goes on where the model has ended the turn: it has written the plan.
    pub fn hands_to_team(&self, reason: StopReason) -> bool {
        reason == StopReason::EndTurn && self.has_team(Scenario::CoWork)
    }

    fn has_team(&self, scenario: Scenario) -> bool {
        let named = self.config().and_then(|config| config.scenario.as_ref()).map(|setup| setup.name);
        let is_new = self.turn().is_some_and(|turn| turn.team.is_none());
        named == Some(scenario) && is_new && self.state().plan_id.is_some()
    }

    /// Has the team carry the plan out, after a look at the plan.
    pub fn call_team(&mut self) {
        self.team(TeamFact::Called { at: self.stamp.at });
        self.poll_plan(0);
    }

    /// Looks again, after a crash.
    pub fn look_again(&mut self) {
        let looking = self.turn().and_then(|turn| turn.team.as_ref()).map_or(0, |team| team.looking);
        (0..looking).for_each(|number| self.poll_plan(number));
    }

    fn team(&mut self, fact: TeamFact) {
        self.push(ChatEvent::Team { fact: Box::new(fact) });
    }

    fn poll_plan(&mut self, number: u32) {
        let (Some(config), Some(plan)) = (self.config().cloned(), self.state().plan_id) else { return };
        let Some((turn, team)) = self.turn().and_then(|turn| Some((turn, turn.team.as_ref()?))) else { return };
        let key = EffectKey(format!(
            "look/{}/{}/{}/{}/{}/{number}",
            turn.id,
            turn.attempt,
            team.round,
            team.done,
            team.ended().len()
        ));
        let agents = config.scenario.as_ref().map(|setup| setup.agents.clone()).unwrap_or_default();
        let personas = if team.round == 0 { agents } else { Vec::new() };
        let poll = PlanPoll { config, turn: turn.id, plan, free: team.ended(), personas };
        self.run(key, poll.into());
    }

    /// The plan was read.
    pub fn plan_polled(&mut self, turn: TurnId, result: Result<PlanPollResult, Error>) {
        if self.turn().is_none_or(|now| now.id != turn || now.team.is_none()) {
            return;
        }
        let PlanPollResult { plan, personas } = match result {
            Ok(polled) => polled,
            Err(error) => return self.no_plan(error),
        };
        plan.events.into_iter().for_each(|event| self.push(event));
        let done = u32::try_from(plan.items.iter().filter(|item| item.status == "done").count()).unwrap_or(u32::MAX);
        self.team(TeamFact::Looked { done, at: self.stamp.at });
        let Some(team) = self.turn().and_then(|turn| turn.team.as_deref()) else { return };
        let is_working = team.working().next().is_some();
        match rounds::next(team, &plan.items) {
            TeamAction::Wait => {}
            TeamAction::End => self.end_team(&plan.items, None),
            TeamAction::Begin => match self.exhausted(personas.len()) {
                None => self.begin_members(personas),
                limit => self.end_team(&plan.items, limit),
            },
            TeamAction::GoOn(chats) => match self.exhausted(chats.len()) {
                None => self.go_on(&chats),
                // Agents that work give back what they leave.
                Some(_) if is_working => {}
                limit => self.end_team(&plan.items, limit),
            },
        }
    }

    /// The limit because of which so many agents cannot begin, if that is so.
    fn exhausted(&self, agents: usize) -> Option<StopReason> {
        self.turn()?.exhausts(self.shared(agents)?)
    }

    /// The budget of each of so many agents of a round: they share what is free.
    fn shared(&self, agents: usize) -> Option<Budget> {
        Some(self.turn()?.free(self.stamp.at).part_of(u32::try_from(agents).unwrap_or(u32::MAX)))
    }

    fn no_plan(&mut self, error: Error) {
        let stop_id = StopId(self.id());
        self.stop_team(stop_id, "the plan is gone");
        self.push(ChatEvent::Failed { error });
        self.finish(StopReason::Error);
    }

    fn begin_members(&mut self, personas: Vec<NextPersona>) {
        let (Some(config), Some(plan)) = (self.config().cloned(), self.plan_file()) else { return };
        let members: Vec<Member> = personas
            .iter()
            .map(|persona| Member { chat_id: ChatId(self.id()), role: persona_name(&persona.role).to_owned() })
            .collect();
        let Some((turn, limits)) = self.turn().map(|turn| (turn.id, turn.limits)) else { return };
        let (at, budget) = (self.stamp.at, self.shared(members.len()));
        let start = |(member, persona): (&Member, NextPersona)| {
            let created = member::chat(&config, plan.clone(), (turn, limits), member, persona, at);
            self.member_start(&config, member, &members, (1, budget), Some(created))
        };
        let starts: Vec<ChatCommand> = members.iter().zip(personas).filter_map(start).collect();
        let long = members.iter().zip(&starts).find(|(_, start)| json_length(start) > LONGEST_START);
        if let Some((member, start)) = long {
            let (role, length) = (&member.role, json_length(start));
            let text =
                format!("the words for the agent {role} have {length} bytes with its persona; {LONGEST_START} fit");
            let hint = "put long texts into files and name them, or shorten the persona";
            self.push(ChatEvent::Failed { error: Error::new(Code::PayloadTooLarge, text).hint(hint) });
            return self.finish(StopReason::Error);
        }
        self.team(TeamFact::Started { round: 1, members: members.clone(), budget, at });
        for (member, start) in members.iter().zip(&starts) {
            self.tell(actor_id(config.workspace, member.chat_id), start, 0);
        }
    }

    fn go_on(&mut self, chats: &[ChatId]) {
        let Some(config) = self.config().cloned() else { return };
        let Some(team) = self.turn().and_then(|turn| turn.team.as_deref()) else { return };
        let round = team.round + 1;
        let again = team.seats.iter().map(|seat| seat.member.clone()).filter(|one| chats.contains(&one.chat_id));
        let members: Vec<Member> = again.collect();
        let budget = self.shared(members.len());
        self.team(TeamFact::Started { round, members: members.clone(), budget, at: self.stamp.at });
        for member in &members {
            if let Some(start) = self.member_start(&config, member, &members, (round, budget), None) {
                self.tell(actor_id(config.workspace, member.chat_id), &start, 0);
            }
        }
    }

    /// The words that an agent begins a turn with.
    fn member_start(
        &self,
        config: &ChatConfig,
        member: &Member,
        members: &[Member],
        (round, budget): (u32, Option<Budget>),
        create: Option<ChatConfig>,
    ) -> Option<ChatCommand> {
        let path = self.state().plan_path.clone().unwrap_or_else(|| mode::default_plan(config));
        let content = member::words(&self.goal(), &path, members, member.chat_id, round);
        let turn = self.turn()?;
        let approval = self.state().approval.clone().filter(|_| turn.may_approve && create.is_some());
        Some(ChatCommand::StartTurn(TurnRequest {
            content,
            create: create.map(Box::new),
            limits: budget.map(|budget| budget.narrows(turn.limits)),
            approval,
            may_approve: turn.may_approve,
            may_not_run: turn.may_not_run,
            no_home: turn.no_home,
            trace: turn.trace,
            ..TurnRequest::default()
        }))
    }

    /// The words that the turn began with.
    fn goal(&self) -> String {
        let messages = self.state().history.back().map(|turn| turn.messages.as_slice()).unwrap_or_default();
        let words = messages.iter().find_map(|message| match &**message {
            Message::User { content, .. } => Some(content.clone()),
            _ => None,
        });
        words.unwrap_or_default()
    }

    fn plan_file(&self) -> Option<PlanFile> {
        let state = self.state();
        Some(PlanFile { path: state.plan_path.clone()?, id: state.plan_id? })
    }

    /// An agent has changed a step. The report of an agent of an earlier turn is late, and is dropped.
    pub fn step_told(&mut self, told: ToldStep) {
        let Some(team) = self.turn().and_then(|turn| turn.team.as_deref()) else { return };
        let ToldStep { step, status, title, plan: PlanFile { path: plan_path, id }, done, total } = told;
        if self.state().plan_id != Some(id) {
            return;
        }
        // Messages of two agents may pass each other.
        let (is_new, done) = (done > team.done, done.max(team.done));
        let (rests, looking) = (team.of(TeamMemberStatus::Rests).next().is_some(), team.looking);
        self.push(ChatEvent::PlanStep { step, status, title, plan_path, plan_id: Some(id), done, total });
        // Steps that waited for this one may be free for agents that had nothing to do.
        if is_new && rests {
            self.team(TeamFact::Called { at: self.stamp.at });
            self.poll_plan(looking);
        }
    }

    /// An agent has ended its turn.
    pub fn member_ended(&mut self, end: MemberEnd) {
        let team = self.turn().and_then(|turn| turn.team.as_deref());
        let is_working = |member: &Member| member.chat_id == end.chat_id;
        let Some(number) = team.and_then(|team| team.working().any(is_working).then_some(team.looking)) else {
            return self.ended_late(&end);
        };
        self.team(TeamFact::MemberEnded { end, at: self.stamp.at });
        self.poll_plan(number);
    }

    /// Counts the usage of an agent whose team is gone, and frees its steps. Should this be lost, the claims end with their lease.
    fn ended_late(&mut self, end: &MemberEnd) {
        self.late(end.chat_id, end.usage);
        let (Some(config), Some(plan)) = (self.config().cloned(), self.state().plan_id) else { return };
        let poll =
            PlanPoll { config, turn: TurnId(end.chat_id.0), plan, free: vec![end.chat_id], personas: Vec::new() };
        let key = EffectKey(format!("free/{}/{}", end.chat_id, self.id()));
        self.run(key, poll.into());
    }

    /// Ends the turn with what is done and left, at this limit if there is one.
    fn end_team(&mut self, items: &[PlanItem], limit: Option<StopReason>) {
        let id = MessageId(self.id());
        let (at, mut content) = (self.stamp.at, rounds::summary(items));
        if limit.is_some() {
            content.push_str(SPENT);
        }
        let (calls, reasoning, provider) = (Vec::new(), String::new(), Value::Null);
        let message = Message::Assistant { id, at, content, calls, reasoning, provider };
        self.push(ChatEvent::MessageAdded { message });
        self.finish(limit.unwrap_or(StopReason::EndTurn));
    }

    /// Stops the agents whose turns run.
    pub fn stop_team(&mut self, stop_id: StopId, reason: &str) {
        let Some(turn) = self.turn() else { return };
        let Some(team) = turn.team.as_deref() else { return };
        let (plan, working) = (CallId(turn.id.0), team.working().map(|member| member.chat_id).collect::<Vec<_>>());
        if !working.is_empty() {
            self.stop_agents(plan, &working, stop_id, reason);
        }
    }
}
