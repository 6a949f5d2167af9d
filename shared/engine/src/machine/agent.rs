//! Agent nodes: a conversation with a chat of its own, until its answer fits the node's schema.

use crate::{
    call::cut,
    machine::{AgentReady, Mode, NodeResult, TaskEffect, chat_of, step::Step},
};
use actor::{EffectKey, StopRequest};
use domain::{
    ChatCommand, ChatEvent, ChatId, Code, Error, Limits, NodeId, Status, StopId, TaskEvent, TurnRequest, answer_json,
    task::{AgentAnswer, ToolUse, stopped},
    trace::node_span,
};
use serde_json::Value;

/// How often an answer that does not fit goes back to the model with what the validator says.
const SECOND_CHANCES: u32 = 2;

impl Step<'_> {
    /// Asks the node's agent for the first time.
    pub fn ask_agent(&mut self, ready: AgentReady) {
        let AgentReady { node, mut config, prompt, context, denied } = ready;
        if self.state().executing(&node).is_none() {
            return;
        }
        let stops = self.state().stopping.is_some();
        let limits = if stops { Some(config.limits) } else { self.limits_of_round(config.limits, 0) };
        let Some(limits) = limits else { return };
        if let Some(context) = context {
            self.push(TaskEvent::ContextAssembled { node: node.clone(), context });
        }
        self.denied(&node, denied);
        if let Some((_, reason)) = self.state().stopping.clone() {
            return self.end_here(domain::task::stopped(&reason));
        }
        if let Some(agent) = &mut config.agent {
            // As it is now, not as it was when the node began.
            agent.priority = self.config.priority;
        }
        let chat = config.chat;
        let asking = node.clone();
        self.push(TaskEvent::AgentAsked { node, chat, round: 1, prompt: cut(&prompt) });
        self.say(&asking, chat, prompt, limits, Some(config));
    }

    /// Asks the agent of a node once more, in the same conversation; the node waits or fails if nothing is left of its budget.
    pub(super) fn ask_again(&mut self, node: &NodeId, round: u32, prompt: String) {
        let (Some(limits), Some(execution)) = (self.limits_of(node), &self.state().execution) else { return };
        let chat = chat_of(self.config.task, node, execution.retries);
        let Some(limits) = self.limits_of_round(limits, round) else { return };
        self.push(TaskEvent::AgentAsked { node: node.clone(), chat, round: round + 1, prompt: cut(&prompt) });
        self.say(node, chat, prompt, limits, None);
    }

    fn say(
        &mut self,
        node: &NodeId,
        chat: ChatId,
        content: String,
        limits: Limits,
        create: Option<Box<domain::ChatConfig>>,
    ) {
        let trace = self.config.trace.map(|trace| trace.below(node_span(self.config.task, node)));
        let command = ChatCommand::StartTurn(TurnRequest {
            content,
            create,
            limits: Some(limits),
            trace,
            ..TurnRequest::default()
        });
        self.send(chat::actor_id(self.config.workspace, chat), &command, None);
    }

    /// The agent waits for people, or goes on.
    pub fn agent_waits(
        &mut self,
        (chat, round): (ChatId, u32),
        asked: Option<Box<ChatEvent>>,
        cut: bool,
        declined: bool,
    ) {
        let Some(execution) = &self.state().execution else { return };
        if execution.mode != (Mode::Agent { chat, round }) {
            return;
        }
        let (node, at) = (execution.node.clone(), self.stamp.at);
        self.push(TaskEvent::AgentWaits { node, chat, asked, cut, declined, at });
    }

    /// The agent has answered.
    pub fn agent_answered(&mut self, answer: AgentAnswer) {
        let Some(execution) = &self.state().execution else { return };
        let Mode::Agent { chat, round } = execution.mode else { return };
        if chat != answer.chat || round != answer.round {
            return;
        }
        let node = execution.node.clone();
        self.push(TaskEvent::AgentReplied { node: node.clone(), answer: Box::new(answer.clone()) });
        self.share();
        if self.limits_of(&node).is_some_and(|own| self.is_end_of_budget(&answer, own)) {
            return self.wait_for_budget(round);
        }
        if answer.stop_reason != "end_turn" {
            let error = answer.error.unwrap_or_else(|| self.not_to_its_end(&node, &answer.stop_reason));
            return self.done(NodeResult { node: Some(node), error: Some(error), ..NodeResult::default() });
        }
        if let Some(misused) = self.misused(&node, &answer.tools) {
            let text = format!("the agent misused the tool {}: {}", misused.tool, misused.output);
            let error = Error::new(Code::Forbidden, text)
                .hint("tools.yaml says what the tool may touch, and the node lists what its agent has");
            return self.done(NodeResult { node: Some(node), error: Some(error), ..NodeResult::default() });
        }
        let (output, errors) = self.read_answer(&node, &answer.text);
        if errors.is_empty() {
            return self.end_with(node, output);
        }
        self.push(TaskEvent::OutputRejected { node: node.clone(), round, errors: errors.clone() });
        if self.state().execution.as_ref().is_none_or(|execution| execution.rejected > SECOND_CHANCES) {
            let error =
                Error::new(Code::Unprocessable, format!("the agent's answer does not fit its schema: {}", errors[0]))
                    .hint("the schema and the answers are in the task's history");
            return self.done(NodeResult { node: Some(node), error: Some(error), output, ..NodeResult::default() });
        }
        let prompt = format!(
            "Your answer does not fit the schema:\n- {}\nAnswer again with nothing but JSON that fits it.",
            errors.join("\n- ")
        );
        self.ask_again(&node, round, prompt);
    }

    /// The limits of the conversation of a node by the manifests.
    fn limits_of(&self, node: &NodeId) -> Option<Limits> {
        let (agent, node) = self.agent_of(node)?;
        Some(agent.limits_in(node))
    }

    /// The output that an answer is, and why it does not fit.
    pub fn read_answer(&self, node: &NodeId, text: &str) -> (Value, Vec<String>) {
        let schema =
            self.agent_of(node).and_then(|(agent, node)| node.schema_out.as_ref().or(agent.schema_out.as_ref()));
        let schema = schema.and_then(|name| self.flow.schemas.get(name));
        let role = self.flow.graph.node(node).map(|node| node.role);
        let splits = self.node(node).is_some_and(flow::flow::Node::splits_a_list);
        let wants_json = schema.is_some() || splits || role == Some(flow::graph::Role::Decision);
        match (answer_json(text), schema) {
            (Some((output, json)), _) if wants_json => {
                let mut errors = schema.map(|schema| schema.errors(&output)).unwrap_or_default();
                errors.extend(domain::exact_numbers::check("answer", json).err().map(inexact));
                (output, errors)
            }
            (None, Some(_)) => (Value::Null, vec!["the answer is not JSON".to_owned()]),
            _ => (Value::String(text.to_owned()), Vec::new()),
        }
    }

    /// Stops the agent that is being asked: the task does not need its answer.
    pub fn stop_agent(&mut self, stop_id: StopId) {
        let Some(execution) = &self.state().execution else { return };
        let Mode::Agent { chat, .. } = execution.mode else { return };
        let to = chat::actor_id(self.config.workspace, chat);
        let request = StopRequest {
            stop_id,
            target: actor::StopTarget::First,
            at: self.stamp.at,
            reason: "the task was stopped".into(),
        };
        // The command is for a chat that waits for a person, the request for one whose turn runs: no command reaches that.
        self.hurry(to.clone(), &ChatCommand::Stop { stop_id, turn_id: None });
        let key = EffectKey(format!("stop/{chat}/{stop_id}"));
        self.step.run(key, TaskEffect::StopAgent(to, request));
    }

    /// A use of a tool that was a misuse and that the agent did not put right: nothing that it called the tool for later went
    /// well. A node inherits it (spec 002 §3.4). A name that the node does not list calls no tool, so any listed tool that goes well
    /// afterwards puts it right.
    fn misused<'t>(&self, node: &NodeId, tools: &'t [ToolUse]) -> Option<&'t ToolUse> {
        let listed = |tool: &String| self.node(node).is_some_and(|node| node.tools.contains(tool));
        let put_right = |position: usize, misused: &ToolUse| {
            let meant = |later: &ToolUse| later.tool == misused.tool || (!listed(&misused.tool) && listed(&later.tool));
            tools.iter().skip(position + 1).any(|later| meant(later) && later.status != Status::Failure)
        };
        let mut misuses = tools.iter().enumerate().filter(|(_, used)| used.status == Status::Failure);
        misuses.find(|(position, used)| !put_right(*position, used)).map(|(_, used)| used)
    }

    /// Why a turn is no answer. The time of the node is a limit of its conversation; one that agents.yaml has for the agent is the
    /// agent's own, and no other try has more of it.
    fn not_to_its_end(&self, node: &NodeId, stop_reason: &str) -> Error {
        if stop_reason == "time_limit"
            && let Some((agent, node)) = self.agent_of(node)
            && let Some(limit) = node.timeout
            && limit.as_millis() <= u128::from(agent.limits.max_wall_ms)
        {
            return Error::new(Code::Timeout, format!("the agent did not answer within {} s", limit.as_secs_f64()))
                .hint("raise the node's timeout_seconds, or give it less to do");
        }
        if stop_reason == "stopped" {
            return stopped("its agent was stopped");
        }
        Error::new(Code::LimitReached, format!("the agent did not come to an end: {stop_reason}"))
            .hint("raise the limits of the agent in agents.yaml, within ai.limits of the server, or give it less to do")
    }
}

/// The message for an agent about a number that would change.
fn inexact(error: Error) -> String {
    format!("{}; write it as a text, in quotes", error.message)
}
