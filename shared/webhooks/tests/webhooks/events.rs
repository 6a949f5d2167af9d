//! The events that webhooks are told of: each plan once per time that it was written, no compaction as a turn, and requests of a task's agents.

#![expect(clippy::unwrap_used, reason = "tests")]

use actor::Entry;
use buildscale_webhooks::{EventType, WebhookEvent};
use chat::ChatState;
use domain::{
    CallId, ChatConfig, ChatEvent, ChatId, FileId, FilePath, Limits, Mode, Principal, QuestionId, StopReason,
    TaskConfig, TaskEvent, TaskId, Timestamp, TurnId, WorkspaceId,
};
use engine::machine::TaskState;
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

/// A chat, and the events that webhooks are told of it, entry by entry.
struct Told {
    state: ChatState,
    next: u64,
    turns: u128,
}

const AT: Timestamp = Timestamp::from_millis(1_000);

impl Told {
    fn chat(mode: Mode) -> Self {
        let config = ChatConfig {
            workspace: WorkspaceId(Uuid::from_u128(1)),
            chat: ChatId(Uuid::from_u128(2)),
            user: Principal::local().user(),
            title: "test".into(),
            role: "planner".into(),
            model: None,
            mode,
            limits: Limits::default(),
            system: String::new(),
            cut: Vec::new(),
            tools: None,
            plan: None,
            context_tokens: 10_000,
            created_at: AT,
            agent: None,
            thread: None,
            forked_from: None,
            session: None,
            scenario: None,
            member: None,
            functions: Vec::new(),
        };
        let mut told = Self { state: ChatState::default(), next: 1, turns: 0 };
        told.entry(vec![ChatEvent::Created { config: Box::new(config) }]);
        told
    }

    fn entry(&mut self, events: Vec<ChatEvent>) -> Vec<WebhookEvent> {
        let first = self.next;
        for event in &events {
            self.state.apply(self.next, event);
            self.next += 1;
        }
        let (next, step) = (self.next, Uuid::from_u128(9));
        let (commands, outbox, parking) = (Vec::new(), Vec::new(), None);
        buildscale_webhooks::event::of_chat(
            &self.state,
            &Entry { first, next, at: AT, step, commands, events, outbox, parking },
        )
    }

    /// A turn with these events, in two entries; the types of what is told.
    fn turn(&mut self, events: Vec<ChatEvent>, stop_reason: StopReason) -> Vec<EventType> {
        self.turns += 1;
        let turn_id = TurnId(Uuid::from_u128(100 + self.turns));
        let limits = Limits::default();
        let start =
            ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: AT, limits, may_approve: false, trace: None };
        let mut told = self.entry([start].into_iter().chain(events).collect());
        told.extend(self.entry(vec![ChatEvent::Done { turn_id, message: "Said.".into(), stop_reason, at: AT }]));
        told.iter().map(|one| one.kind).collect()
    }
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

/// The plan is written: its file, and its only step.
fn written() -> Vec<ChatEvent> {
    let (plan, id) = (path("/chats/plan.md"), FileId(Uuid::from_u128(7)));
    vec![
        ChatEvent::FileUpdated { path: plan.clone(), v: 1, file_id: id, author: "planner".into(), call_id: None },
        ChatEvent::PlanStep {
            step: 1,
            status: "pending".into(),
            title: "one".into(),
            plan_path: plan,
            plan_id: Some(id),
            done: 0,
            total: 1,
        },
    ]
}

fn edited(file: &str) -> ChatEvent {
    let file_id = FileId(Uuid::from_u128(7));
    ChatEvent::FileUpdated { path: path(file), v: 2, file_id, author: "planner".into(), call_id: None }
}

#[test]
fn a_plan_is_submitted_once_for_each_time_that_it_was_written() {
    use EventType::{PlanSubmitted, TurnEnded};
    let mut chat = Told::chat(Mode::Plan);
    assert_eq!(chat.turn(vec![], StopReason::EndTurn), [TurnEnded], "no plan");
    assert_eq!(chat.turn(written(), StopReason::EndTurn), [TurnEnded, PlanSubmitted]);
    assert_eq!(chat.turn(vec![], StopReason::EndTurn), [TurnEnded], "the same plan");
    assert_eq!(chat.turn(vec![edited("/notes.md")], StopReason::EndTurn), [TurnEnded], "another file");
    assert_eq!(chat.turn(vec![edited("/chats/plan.md")], StopReason::TokenLimit), [TurnEnded], "it may not be whole");
    assert_eq!(chat.turn(vec![], StopReason::EndTurn), [TurnEnded, PlanSubmitted], "and this turn calls it whole");
    assert_eq!(chat.turn(vec![edited("/chats/plan.md")], StopReason::EndTurn), [TurnEnded, PlanSubmitted]);
    let mut other = Told::chat(Mode::Chat);
    assert_eq!(other.turn(written(), StopReason::EndTurn), [TurnEnded], "nobody approves it");
}

#[test]
fn a_compaction_that_a_person_asked_for_is_no_turn_and_one_within_a_turn_changes_nothing() {
    let mut chat = Told::chat(Mode::Chat);
    let began = |internal| vec![ChatEvent::CompactionBegan { internal, max_chars: 400, at: AT }];
    assert_eq!(chat.turn(began(true), StopReason::EndTurn), []);
    assert_eq!(chat.turn(began(false), StopReason::EndTurn), [EventType::TurnEnded]);
    let turn_id = TurnId(Uuid::from_u128(500));
    let limits = Limits::default();
    let start = ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: AT, limits, may_approve: false, trace: None };
    chat.entry([start].into_iter().chain(began(true)).collect());
    let (stop_id, reason, partial_response) = (None, "user_cancelled".into(), String::new());
    let stopped = ChatEvent::Stopped { turn_id, stop_id, reason, partial_response, at: AT };
    assert_eq!(chat.entry(vec![stopped]), []);
}

#[test]
fn the_request_of_a_nodes_agent_is_told_by_its_task_to_those_who_are_told_of_that_task_alone() {
    let (task, chat) = (TaskId(Uuid::from_u128(5)), ChatId(Uuid::from_u128(6)));
    let config = json!({
        "workspace": WorkspaceId(Uuid::from_u128(1)), "task": task, "flow": { "name": "f", "hash": domain::Sha256::of(b"f") },
        "user": Principal::local().user(), "input": null, "start": "s", "created_at": AT,
    });
    let config: TaskConfig = serde_json::from_value(config).unwrap();
    let state = TaskState { config: Some(Arc::new(config)), ..TaskState::default() };
    let (question_id, call_id) = (QuestionId(Uuid::from_u128(7)), CallId(Uuid::from_u128(8)));
    let asked = ChatEvent::Asked { question_id, call_id, questions: Vec::new(), at: AT, expires_at: AT };
    let waits = |asked: Option<ChatEvent>| {
        let (node, asked) = ("draft".into(), asked.map(Box::new));
        TaskEvent::AgentWaits { node, chat, asked, cut: false, declined: false, at: AT }
    };
    let (events, step) = (vec![waits(None), waits(Some(asked))], Uuid::from_u128(9));
    let (commands, outbox, parking) = (Vec::new(), Vec::new(), None);
    let entry = Entry { first: 3, next: 5, at: AT, step, commands, events, outbox, parking };
    assert_eq!(buildscale_webhooks::event::of_task(&state, &entry), []);
    let told = buildscale_webhooks::event::of_agents(&state, &entry);
    let [one] = &told[..] else { panic!("{told:?}") };
    assert_eq!((one.kind, one.number), (EventType::QuestionAsked, 4));
    assert_eq!((&one.data["task_id"], &one.data["question_id"]), (&json!(task), &json!(question_id)));
}
