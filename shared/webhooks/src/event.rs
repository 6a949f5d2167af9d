//! The events that webhooks tell, as a projection of the logs of chats and tasks. Texts are cut, and no event has contents of files, arguments of
//! calls or outputs: a receiver reads them over the API, with rights of its own.

use actor::Entry;
use chat::ChatState;
use domain::{
    CLIENT_PREFIX, ChatConfig, ChatEvent, ChatId, Code, TaskEvent, Timestamp, TurnId, WorkspaceId, event::Question,
    text::shortened,
};
use engine::machine::TaskState;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The longest text of an event, in characters.
const TEXT: usize = 1_000;
/// The longest text of one question, in characters.
const QUESTION: usize = 300;
/// The most questions of an event.
const QUESTIONS: usize = 10;

/// The types of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventType {
    /// A turn of a chat has ended, or was stopped. Not of the agents of tasks, and not a compaction that a person asked for.
    #[serde(rename = "turn.ended")]
    TurnEnded,
    /// A task has ended. Not its children.
    #[serde(rename = "task.ended")]
    TaskEnded,
    /// An agent, or a step of a flow, asks people.
    #[serde(rename = "question.asked")]
    QuestionAsked,
    /// A call waits for a person's permission.
    #[serde(rename = "permission.asked")]
    PermissionAsked,
    /// A turn in the mode `plan` has ended and left a plan that can be approved: once for each time that the plan was written.
    #[serde(rename = "plan.submitted")]
    PlanSubmitted,
    /// A person tries the webhook.
    #[serde(rename = "webhook.test")]
    Test,
    /// The content of an event is lost, so that its type and its facts are not known. It is told in the place of that event.
    #[serde(rename = "event.lost")]
    Lost,
}

impl EventType {
    /// Those that a webhook can ask for.
    pub const ALL: [Self; 5] =
        [Self::TurnEnded, Self::TaskEnded, Self::QuestionAsked, Self::PermissionAsked, Self::PlanSubmitted];
}

/// An event, on its way to webhooks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookEvent {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The number of the event in the log of the chat or task.
    pub number: u64,
    /// The time of it.
    pub at: Timestamp,
    /// The facts.
    pub data: Map<String, Value>,
}

/// The chat or flow that events are of, for the filters of webhooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// The chat.
    pub chat: Option<ChatId>,
    /// The flow.
    pub flow: Option<String>,
}

/// The events of an entry of a chat; `state` is the one after it.
pub fn of_chat(state: &ChatState, entry: &Entry<ChatEvent>) -> Vec<WebhookEvent> {
    let Some(config) = &state.config else { return Vec::new() };
    let turn = state.turn.as_ref().map(|turn| turn.id);
    let mut found = Vec::new();
    for (number, event) in (entry.first..).zip(&entry.events) {
        let mut add = |kind, at, facts: Value| {
            let data = with_place(config, facts);
            found.push(WebhookEvent { kind, number, at, data });
        };
        let ended = |id| state.ended.filter(|ended| ended.id == id);
        match event {
            // Nobody waits for it: its own events tell the person that asked.
            ChatEvent::Done { turn_id, .. } | ChatEvent::Stopped { turn_id, .. }
                if ended(*turn_id).is_some_and(|ended| ended.is_internal) => {}
            ChatEvent::Done { turn_id, message, stop_reason, at } if config.agent.is_none() => {
                add(
                    EventType::TurnEnded,
                    *at,
                    json!({ "turn_id": turn_id, "stop_reason": stop_reason, "text": shortened(message, TEXT) }),
                );
                let submits = ended(*turn_id).is_some_and(|ended| ended.submits_plan);
                if let Some(path) = state.plan_path.as_ref().filter(|_| submits) {
                    let plan = json!({ "turn_id": turn_id, "plan_path": path, "plan_id": state.plan_id });
                    add(EventType::PlanSubmitted, *at, plan);
                }
            }
            ChatEvent::Stopped { turn_id, reason, partial_response, at, .. } if config.agent.is_none() => {
                let text = shortened(partial_response, TEXT);
                let facts = json!({ "turn_id": turn_id, "stop_reason": "stopped", "reason": shortened(reason, TEXT), "text": text });
                add(EventType::TurnEnded, *at, facts);
            }
            _ => {
                if let Some((kind, at, facts)) = request(event, turn) {
                    add(kind, at, facts);
                }
            }
        }
    }
    found
}

/// A request to people; none for another event.
fn request(event: &ChatEvent, turn: Option<TurnId>) -> Option<(EventType, Timestamp, Value)> {
    match event {
        ChatEvent::Asked { question_id, questions, at, expires_at, .. } => {
            let facts = json!({
                "turn_id": turn, "question_id": question_id, "questions": questions_json(questions), "expires_at": expires_at,
            });
            Some((EventType::QuestionAsked, *at, facts))
        }
        ChatEvent::PermissionRequired { permission_id, category, tool, reason, agent, at, expires_at, .. } => {
            let tool = shortened(tool, QUESTION);
            // Other reasons have the arguments of their call.
            let reason = match category.as_str() {
                "command" => "it wants to run a command".to_owned(),
                "file" if agent.is_none() && !tool.starts_with(CLIENT_PREFIX) => shortened(reason, TEXT),
                _ => format!("it wants to call {tool}"),
            };
            let facts = json!({
                "turn_id": turn, "permission_id": permission_id, "category": category, "tool": tool, "reason": reason,
                "expires_at": expires_at,
            });
            Some((EventType::PermissionAsked, *at, facts))
        }
        _ => None,
    }
}

/// The events of an entry of a task; `state` is the one after it.
pub fn of_task(state: &TaskState, entry: &Entry<TaskEvent>) -> Vec<WebhookEvent> {
    let is_child = state.config.as_ref().is_some_and(|config| config.origin.is_some());
    in_task(state, entry, |event| match event {
        TaskEvent::Finished { status, exit, error, at, .. } if !is_child => {
            let error =
                error.as_ref().map(|error| json!({ "code": error.code, "message": shortened(&error.message, TEXT) }));
            Some((EventType::TaskEnded, *at, json!({ "status": status, "exit": exit, "error": error })))
        }
        TaskEvent::Asked { node, question_id, questions, at, expires_at } => {
            let facts = json!({
                "node": node, "question_id": question_id, "questions": questions_json(questions), "expires_at": expires_at,
            });
            Some((EventType::QuestionAsked, *at, facts))
        }
        _ => None,
    })
}

/// The requests of the agents of nodes, as the log of their task tells them: for a receiver that is told of that task alone, in the order of its
/// log. All others are told by the logs of the agents' chats.
pub fn of_agents(state: &TaskState, entry: &Entry<TaskEvent>) -> Vec<WebhookEvent> {
    in_task(state, entry, |event| match event {
        TaskEvent::AgentWaits { asked: Some(asked), at, .. } => {
            request(asked, None).map(|(kind, _, facts)| (kind, *at, facts))
        }
        _ => None,
    })
}

fn in_task(
    state: &TaskState,
    entry: &Entry<TaskEvent>,
    told: impl Fn(&TaskEvent) -> Option<(EventType, Timestamp, Value)>,
) -> Vec<WebhookEvent> {
    let Some(config) = &state.config else { return Vec::new() };
    let each = |(number, event): (u64, &TaskEvent)| {
        let (kind, at, facts) = told(event)?;
        let mut data = place(config.workspace);
        data.insert("task_id".into(), json!(config.task));
        data.insert("flow".into(), json!(config.flow.name));
        data.insert("user_id".into(), json!(config.user));
        data.extend(fields(facts));
        Some(WebhookEvent { kind, number, at, data })
    };
    (entry.first..).zip(&entry.events).filter_map(each).collect()
}

/// The event by which a person tries a webhook.
pub fn test(workspace: WorkspaceId, number: u64, at: Timestamp) -> WebhookEvent {
    WebhookEvent { kind: EventType::Test, number, at, data: place(workspace) }
}

/// The news that the event of this delivery is lost. Its line says which chat or task the event was of.
pub fn lost(
    workspace: WorkspaceId,
    line: &str,
    number: u64,
    delivery: Uuid,
    code: Code,
    at: Timestamp,
) -> WebhookEvent {
    let message = "the content of an event is lost: read the chat or task over the API";
    let (chat, task) = match line.split_once('/') {
        Some(("chat", id)) => (Some(id), None),
        Some(("task", id)) => (None, Some(id)),
        _ => (None, None),
    };
    let mut data = place(workspace);
    data.extend(fields(json!({
        "chat_id": chat, "task_id": task, "delivery_id": delivery, "error": { "code": code, "message": message },
    })));
    WebhookEvent { kind: EventType::Lost, number, at, data }
}

fn place(workspace: WorkspaceId) -> Map<String, Value> {
    fields(json!({ "workspace_id": workspace }))
}

fn with_place(config: &ChatConfig, facts: Value) -> Map<String, Value> {
    let mut data = place(config.workspace);
    data.insert("chat_id".into(), json!(config.chat));
    data.insert("user_id".into(), json!(config.user));
    if let Some(task) = config.agent.as_ref().and_then(|agent| agent.of_task()) {
        data.insert("task_id".into(), json!(task));
    }
    data.extend(fields(facts));
    data
}

/// The fields of an object that have a value.
fn fields(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

fn questions_json(questions: &[Question]) -> Vec<Value> {
    let told = |one: &Question| json!({ "name": shortened(&one.name, QUESTION), "question": shortened(&one.question, QUESTION) });
    questions.iter().take(QUESTIONS).map(told).collect()
}
