//! A task of a flow, told as the turn of a chat: so a protocol that shows a turn shows a task, and knows nothing of flows.
//!
//! A node is the call of a tool with its name, which begins with the node and is answered by its output. A node asks people as an agent
//! does, and the request of a node's agent is told as it is. The output of the task is the last message. A pause before a node ends the part, as any
//! pause does. Children are not told one by one: the merge has what they brought.

use crate::{
    ChatParts, Frame, Part, Projection,
    part::{ASK, asks},
};
use domain::{
    CallId, ChatEvent, ChatId, Code, Error, Limits, Message, MessageId, QuestionId, StopReason, TaskEvent, TaskId,
    Timestamp, TurnId, task::Status,
};
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// The numbers of a chat's events that one event of a task may take.
const EACH: u64 = 8;

/// The turn that a task is told as.
pub fn turn_of(task: TaskId) -> TurnId {
    TurnId(task.0)
}

/// The chat that a task is told as: no chat has this id.
pub fn chat_of(task: TaskId) -> ChatId {
    ChatId(task.0)
}

/// The task that is told as this chat; none for a chat. Ids of tasks have a version of their own.
pub fn task_of(chat: ChatId) -> Option<TaskId> {
    (chat.0.get_version_num() == 8).then_some(TaskId(chat.0))
}

/// The translation of a task's log.
#[derive(Clone, Debug)]
pub struct TaskTranslation {
    task: TaskId,
    /// The calls of nodes that run, and of questions that are open, by their nodes.
    nodes: BTreeMap<String, CallId>,
    questions: BTreeMap<String, CallId>,
    /// The call, and the tool of it, that the agent of the node waits with.
    agent: Option<(CallId, String)>,
    /// How many nodes have begun.
    begun: u32,
}

impl TaskTranslation {
    /// Of this task, from its first event on.
    pub fn of(task: TaskId) -> Self {
        Self { task, nodes: BTreeMap::new(), questions: BTreeMap::new(), agent: None, begun: 0 }
    }

    /// The events of a chat that the event of the task with this number is told as, with numbers of their own that grow as those do: a view may count
    /// by them.
    pub fn numbered(
        &mut self,
        number: u64,
        at: Timestamp,
        event: &TaskEvent,
    ) -> impl Iterator<Item = (u64, ChatEvent)> + use<> {
        (number.saturating_mul(EACH)..).zip(self.take_in(at, event))
    }

    fn take_in(&mut self, at: Timestamp, event: &TaskEvent) -> Vec<ChatEvent> {
        match event {
            TaskEvent::Created { .. } => {
                let (turn_id, limits) = (turn_of(self.task), Limits::default());
                let asked_at = at;
                vec![ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at, limits, may_approve: false, trace: None }]
            }
            TaskEvent::NodeStarted { node, .. } => self.begin(node.as_str(), at).into_iter().collect(),
            TaskEvent::NodeFinished { node, status, output, error, .. } => {
                let begins = self.begin(node.as_str(), at);
                let Some(call) = self.nodes.remove(node.as_str()) else { return Vec::new() };
                let told = match error {
                    Some(error) => error.message.clone(),
                    None => text(output),
                };
                let success = *status != Status::Failure;
                begins.into_iter().chain([answered(call, node.as_str(), told, success, at)]).collect()
            }
            TaskEvent::AgentWaits { asked, declined, .. } => {
                let decided = self.decided(at, *declined);
                self.agent = asked.as_deref().and_then(waiting);
                decided.into_iter().chain(asked.as_deref().cloned()).collect()
            }
            TaskEvent::AgentReplied { .. } => self.decided(at, false).into_iter().collect(),
            TaskEvent::Asked { node, question_id, questions, expires_at, .. } => {
                let call_id = of_question(*question_id);
                self.questions.insert(node.to_string(), call_id);
                // A chat's questions all have an end; one of a flow may have none.
                let expires_at = expires_at.unwrap_or(Timestamp::from_millis(i64::MAX / 2));
                let (question_id, questions) = (*question_id, questions.clone());
                vec![ChatEvent::Asked { question_id, call_id, questions, at, expires_at }]
            }
            TaskEvent::Answered { node, answers, .. } => {
                let call = self.questions.remove(node.as_str());
                let told = Value::Object(answers.clone()).to_string();
                call.map(|call| answered(call, ASK, told, true, at)).into_iter().collect()
            }
            TaskEvent::PlanStep { step, status, title, plan_path, plan_id, done, total, .. } => {
                let (status, title, plan_path) = (status.clone(), title.clone(), plan_path.clone());
                let (step, plan_id, done, total) = (*step, *plan_id, *done, *total);
                vec![ChatEvent::PlanStep { step, status, title, plan_path, plan_id, done, total }]
            }
            TaskEvent::PausedBefore { node, .. } => {
                vec![ChatEvent::Paused { reason: format!("the task is paused before {node}"), at }]
            }
            TaskEvent::Parked { reason, .. } => vec![ChatEvent::Paused { reason: reason.clone(), at }],
            TaskEvent::Continued { .. } | TaskEvent::Unparked { .. } => vec![ChatEvent::Unpaused { at }],
            TaskEvent::Deleted { .. } => vec![ChatEvent::Deleted { turn_id: None, at }],
            TaskEvent::Finished { status, output, error, .. } => self.end(*status, output, error.as_ref(), at),
            _ => Vec::new(),
        }
    }

    /// The call of a node that begins; none for one that is begun anew after a crash or a failure that passes.
    fn begin(&mut self, node: &str, at: Timestamp) -> Option<ChatEvent> {
        if self.nodes.contains_key(node) {
            return None;
        }
        self.begun += 1;
        let call_id = CallId::from_key(&format!("task/{}", self.task), &format!("{node}/{}", self.begun));
        self.nodes.insert(node.to_owned(), call_id);
        let (tool, args) = (node.to_owned(), "{}".to_owned());
        Some(ChatEvent::CallStarted { call_id, attempt: 1, tool, path: None, args, at: Some(at) })
    }

    /// The end of the call that an agent waited with. Its outcome is that of the agent's own chat.
    fn decided(&mut self, at: Timestamp, declined: bool) -> Option<ChatEvent> {
        let (call, tool) = self.agent.take()?;
        let told = if declined { "declined: the agent goes on without this call" } else { "the agent goes on" };
        Some(answered(call, &tool, told.to_owned(), !declined, at))
    }

    fn end(&self, status: Status, output: &Value, error: Option<&Error>, at: Timestamp) -> Vec<ChatEvent> {
        let turn_id = turn_of(self.task);
        if let Some(error) = error.filter(|error| error.code == Code::Cancelled) {
            let (stop_id, reason, partial_response) = (None, error.message.clone(), String::new());
            return vec![ChatEvent::Stopped { turn_id, stop_id, reason, partial_response, at }];
        }
        let failed = match error {
            Some(error) => Some(error.clone()),
            None if status == Status::Failure => Some(Error::new(Code::Unprocessable, "the task failed")),
            None => None,
        };
        let done = |stop_reason, message| ChatEvent::Done { turn_id, message, stop_reason, at };
        if let Some(error) = failed {
            return vec![ChatEvent::Failed { error }, done(StopReason::Error, String::new())];
        }
        let content = text(output);
        let message = Message::Assistant {
            id: MessageId::from_key(&format!("task/{}", self.task), "output"),
            at,
            content: content.clone(),
            calls: Vec::new(),
            reasoning: String::new(),
            provider: Value::Null,
        };
        vec![ChatEvent::MessageAdded { message }, done(StopReason::EndTurn, content)]
    }
}

/// The call that a request to people holds up, and its tool.
fn waiting(asked: &ChatEvent) -> Option<(CallId, String)> {
    let (_, call) = asks(asked)?;
    Some(match asked {
        ChatEvent::PermissionRequired { tool, .. } => (call, tool.clone()),
        _ => (call, ASK.to_owned()),
    })
}

/// The call of a set of questions.
fn of_question(question: QuestionId) -> CallId {
    CallId::from_key("question of a task", &question.to_string())
}

fn answered(call_id: CallId, tool: &str, output: String, success: bool, at: Timestamp) -> ChatEvent {
    let (tool, misuse, code, resources, truncated, seen) = (tool.to_owned(), false, None, None, false, Vec::new());
    ChatEvent::Observed { call_id, tool, output, success, misuse, code, resources, truncated, seen, at }
}

/// A value in words: a text is its own, and nothing is none.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The view of a task in a protocol that shows the turns of chats.
#[derive(Debug)]
pub struct TaskAsTurn {
    telling: TaskTranslation,
    view: Box<dyn Projection<Event = ChatEvent>>,
}

impl TaskAsTurn {
    /// The task in this view, of a part of [`turn_of`] it.
    pub fn new(task: TaskId, view: Box<dyn Projection<Event = ChatEvent>>) -> Self {
        Self { telling: TaskTranslation::of(task), view }
    }
}

impl Projection for TaskAsTurn {
    type Event = TaskEvent;

    fn name(&self) -> &'static str {
        self.view.name()
    }

    fn take_in(&mut self, number: u64, at: Timestamp, event: &TaskEvent, frames: &mut Vec<Frame>) {
        for (number_there, event) in self.telling.numbered(number, at, event) {
            if self.view.is_over() {
                break;
            }
            let before = frames.len();
            self.view.take_in(number_there, at, &event, frames);
            frames.iter_mut().skip(before).for_each(|frame| frame.number = number);
        }
    }

    fn is_over(&self) -> bool {
        self.view.is_over()
    }

    fn ends_with_its_stream(&self) -> bool {
        self.view.ends_with_its_stream()
    }
}

/// The parts of a task so far, and the nodes that asked.
#[derive(Clone, Debug)]
pub struct TaskParts {
    telling: TaskTranslation,
    /// The parts, as of a chat.
    pub parts: ChatParts,
    /// The nodes that ask, by the ids of their questions.
    pub asking: BTreeMap<QuestionId, String>,
    /// The request of the node's agent that is open, and its chat.
    pub agent: Option<(Uuid, ChatId)>,
}

impl TaskParts {
    /// Of this task.
    pub fn of(task: TaskId) -> Self {
        Self { telling: TaskTranslation::of(task), parts: ChatParts::default(), asking: BTreeMap::new(), agent: None }
    }

    /// Takes in the next event of the task's log, and its number.
    pub fn take_in(&mut self, number: u64, event: &TaskEvent) {
        match event {
            TaskEvent::Asked { node, question_id, .. } => _ = self.asking.insert(*question_id, node.to_string()),
            TaskEvent::AgentWaits { chat, asked, .. } => {
                self.agent = asked.as_deref().and_then(asks).map(|(id, _)| (id, *chat));
            }
            TaskEvent::AgentReplied { .. } | TaskEvent::Finished { .. } => self.agent = None,
            TaskEvent::Answered { node, .. } | TaskEvent::NodeFinished { node, .. } => {
                self.asking.retain(|_, asking| asking.as_str() != node.as_str());
            }
            _ => {}
        }
        let told = self.telling.numbered(number, Timestamp::default(), event);
        told.for_each(|(number, event)| self.parts.take_in(number, &event));
    }

    /// Whether people have to decide something.
    pub fn waits(&self) -> bool {
        !self.asking.is_empty() || self.agent.is_some()
    }

    /// The last part; the first one before the task has begun.
    pub fn last(&self) -> Part {
        self.parts.last().unwrap_or(Part::first(turn_of(self.telling.task)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::PermissionId;

    #[test]
    fn a_request_of_a_nodes_agent_that_was_declined_is_told_as_declined() {
        let (task, at) = (TaskId(Uuid::from_u128(1)), Timestamp::default());
        let asked = ChatEvent::PermissionRequired {
            permission_id: PermissionId(Uuid::from_u128(2)),
            call_id: CallId(Uuid::from_u128(3)),
            category: "file".into(),
            tool: "write".into(),
            args: "{}".into(),
            reason: String::new(),
            always: None,
            agent: None,
            at,
            expires_at: at,
        };
        let waits = |asked: Option<&ChatEvent>, declined| {
            let (asked, chat) = (asked.cloned().map(Box::new), ChatId(Uuid::from_u128(4)));
            TaskEvent::AgentWaits { node: "draft".into(), chat, asked, cut: false, declined, at }
        };
        for (declined, expected) in
            [(false, "the agent goes on"), (true, "declined: the agent goes on without this call")]
        {
            let mut telling = TaskTranslation::of(task);
            telling.take_in(at, &waits(Some(&asked), false));
            let told = telling.take_in(at, &waits(None, declined));
            let [ChatEvent::Observed { output, success, .. }] = &told[..] else { panic!("{told:?}") };
            assert_eq!((output.as_str(), *success), (expected, !declined));
        }
    }
}
