//! The events that webhooks are told of: each plan once per time that it was written, no compaction as a turn, and requests of a task's agents.

#![expect(clippy::unwrap_used, reason = "tests")]

use actor::Entry;
use buildscale_webhooks::{EventType, WebhookEvent};
use chat::ChatState;
use domain::{
    AgentAsk, CallId, ChatConfig, ChatEvent, ChatId, FileId, FilePath, Limits, Mode, ModelSettings, PermissionId,
    Principal, QuestionId, Sha256, StopReason, TaskConfig, TaskEvent, TaskId, Timestamp, TurnId, WorkspaceId,
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
            model_settings: ModelSettings::default(),
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
            labels: domain::Labels::default(),
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
    assert_eq!(one.data["user_id"], json!(Principal::local().user()));
}

#[test]
fn an_event_of_a_chat_names_the_person_for_whom_its_agent_works() {
    let mut chat = Told::chat(Mode::Chat);
    let turn_id = TurnId(Uuid::from_u128(101));
    let limits = Limits::default();
    let events = chat.entry(vec![
        ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: AT, limits, may_approve: false, trace: None },
        ChatEvent::Done { turn_id, message: "Said.".into(), stop_reason: StopReason::EndTurn, at: AT },
    ]);
    let [one] = &events[..] else { panic!("{events:?}") };
    assert_eq!((one.kind, &one.data["user_id"]), (EventType::TurnEnded, &json!(Principal::local().user())));
}

#[test]
fn a_request_for_permission_is_told_without_the_arguments_of_its_call() {
    let of_agent = AgentAsk { request: "r1".into(), options: Vec::new(), digest: Sha256::of(b"shown") };
    for (category, tool, reason, agent, told) in [
        ("command", "exec", "it wants to run a command: curl s3cret", None, "it wants to run a command"),
        ("network", "http__pay", "it wants to call http__pay with s3cret", None, "it wants to call http__pay"),
        ("mcp", "mcp__s__send", "it wants to call mcp__s__send with s3cret", None, "it wants to call mcp__s__send"),
        ("file", "client__save", "it wants to call client__save with s3cret", None, "it wants to call client__save"),
        ("file", "edit", "Edit s3cret", Some(Box::new(of_agent)), "it wants to call edit"),
        ("file", "write", "/data/a.csv: data is checked", None, "/data/a.csv: data is checked"),
    ] {
        let asked = ChatEvent::PermissionRequired {
            permission_id: PermissionId(Uuid::from_u128(7)),
            call_id: CallId(Uuid::from_u128(8)),
            category: category.into(),
            tool: tool.into(),
            args: "s3cret".into(),
            reason: reason.into(),
            always: None,
            agent,
            at: AT,
            expires_at: AT,
        };
        let events = Told::chat(Mode::Chat).entry(vec![asked]);
        let [one] = &events[..] else { panic!("{events:?}") };
        assert_eq!((one.kind, one.data["reason"].as_str()), (EventType::PermissionAsked, Some(told)));
        assert!(!json!(one.data).to_string().contains("s3cret"), "{:?}", one.data);
    }
}

#[test]
fn an_end_has_a_thousand_characters_of_the_last_words_and_nothing_of_the_calls() {
    let (mut chat, turn_id) = (Told::chat(Mode::Chat), TurnId(Uuid::from_u128(101)));
    let (limits, call_id) = (Limits::default(), CallId(Uuid::from_u128(8)));
    let (tool, planted) = ("read".to_owned(), "s3cret".to_owned());
    let events = chat.entry(vec![
        ChatEvent::TurnStarted { turn_id, attempt: 1, asked_at: AT, limits, may_approve: false, trace: None },
        ChatEvent::CallStarted {
            call_id,
            attempt: 1,
            tool: tool.clone(),
            path: None,
            args: planted.clone(),
            at: Some(AT),
        },
        ChatEvent::Observed {
            call_id,
            tool,
            output: planted,
            success: true,
            misuse: false,
            code: None,
            resources: None,
            truncated: false,
            seen: Vec::new(),
            at: AT,
        },
        ChatEvent::Done { turn_id, message: "\u{e9}".repeat(2_000), stop_reason: StopReason::EndTurn, at: AT },
    ]);
    let [one] = &events[..] else { panic!("{events:?}") };
    assert_eq!(
        (one.kind, one.data["text"].as_str().map(|text| text.chars().count())),
        (EventType::TurnEnded, Some(1_000))
    );
    assert!(!json!(one.data).to_string().contains("s3cret"), "{:?}", one.data);
}
