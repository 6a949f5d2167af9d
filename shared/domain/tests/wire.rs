//! Every event, as clients read it and as the log keeps it.
//!
//! The second is for ever: a change of `golden/chat_events` that is not an addition loses somebody's chats.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "wire/agents.rs"]
mod agents;
#[path = "wire/contexts.rs"]
mod contexts;
#[path = "wire/sessions.rs"]
mod sessions;
#[path = "wire/team.rs"]
mod team;

use buildscale_domain::{
    AnswerFormat, Approval, CallId, ChatConfig, ChatEvent, ChatId, Code, CommandId, Error, FileId, FilePath, Limits,
    Message, MessageId, Mode, ModelSettings, PermissionId, PermissionRule, PlanFile, Principal, QuestionId, Resources,
    Scenario, ScenarioSetup, Sha256, StopId, StopReason, Timestamp, ToolCall, TurnId, TurnWishes, Usage, UserId,
    WorkspaceId,
    event::{PermissionOutcome, PlaceWait, Question, RetryWait, SlotWait, TurnWait},
    native,
};
use serde_json::json;
use std::sync::Arc;
use testkit::golden;
use uuid::Uuid;

const fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0000 + number)
}

/// One of each, and of each kind of message.
fn events() -> Vec<ChatEvent> {
    let at = Timestamp::from_millis(1_767_225_600_042);
    let path = || FilePath::parse("/projects/demo/a.md").unwrap();
    let schema = Arc::new(json!({ "type": "object" }));
    let format = || AnswerFormat { name: Some("answer".into()), schema: schema.clone(), strict: true };
    let config = || {
        Box::new(ChatConfig {
            workspace: WorkspaceId(id(1)),
            chat: ChatId(id(2)),
            user: UserId(id(3)),
            title: "Build it".into(),
            role: "assistant".into(),
            model: Some("openai/gpt-4o-mini".into()),
            model_settings: ModelSettings::default(),
            mode: Mode::Chat,
            limits: Limits::default(),
            system: "You are an assistant.".into(),
            cut: Vec::new(),
            tools: Some(vec!["read".into()]),
            plan: Some(PlanFile { path: path(), id: FileId(id(12)) }),
            context_tokens: 100_000,
            created_at: at,
            agent: None,
            thread: None,
            forked_from: None,
            session: Some(Box::default()),
            scenario: Some(Box::new(ScenarioSetup {
                name: Scenario::ParallelAgents,
                executor: None,
                agents: vec!["builder".into()],
                plan_path: None,
            })),
            member: None,
            functions: Vec::new(),
            labels: buildscale_domain::Labels::default(),
        })
    };
    let (message_id, call_id, turn_id) = (MessageId(id(4)), CallId(id(5)), TurnId(id(6)));
    let call = ToolCall { call_id, tool: "read".into(), args: r#"{"path":"/projects/demo/a.md"}"#.into() };
    let added = |message| ChatEvent::MessageAdded { message };
    vec![
        ChatEvent::Created { config: config() },
        ChatEvent::Configured { config: config() },
        ChatEvent::TurnQueued(TurnWait {
            command_id: CommandId(id(7)),
            at,
            content: "and then?".into(),
            files: vec![path()],
            context: String::new(),
            limits: None,
            next: None,
            may_approve: true,
            may_not_run: true,
            no_home: true,
            trace: None,
            user_id: Some(UserId(id(15))),
            wishes: Some(Box::new(TurnWishes { settings: ModelSettings::default(), format: Some(format()) })),
        }),
        ChatEvent::TurnStarted {
            turn_id,
            attempt: 2,
            asked_at: at,
            limits: Limits::default(),
            may_approve: true,
            trace: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap()),
        },
        ChatEvent::ModelStarted { message_id, attempt: 1, at, context: None },
        ChatEvent::Thought { text: "hm".into(), message_id },
        ChatEvent::Chunk { text: "Hel".into(), message_id },
        added(Message::User {
            id: message_id,
            at,
            content: "hello".into(),
            files: vec![path()],
            context: "<file/>".into(),
            user_id: Some(UserId(id(15))),
        }),
        added(Message::Assistant {
            id: message_id,
            at,
            content: "Hello.".into(),
            calls: vec![call],
            reasoning: "hm".into(),
            provider: json!({ "signature": "x" }),
        }),
        added(Message::Tool { call_id, tool: "read".into(), at, output: "text".into(), success: true }),
        added(Message::System { id: message_id, at, content: "[System: …]".into() }),
        ChatEvent::ContextCut { turns: 3 },
        ChatEvent::CallStarted {
            call_id,
            attempt: 1,
            tool: "read".into(),
            path: Some("/projects/demo/a.md".into()),
            args: r#"{"path":"/projects/demo/a.md"}"#.into(),
            at: None,
        },
        ChatEvent::Observed {
            call_id,
            tool: "read".into(),
            output: "text".into(),
            success: true,
            misuse: false,
            code: None,
            resources: None,
            truncated: true,
            seen: vec![(path(), Some(Sha256::of(b"text"))), (path(), None)],
            at,
        },
        ChatEvent::FileUpdated {
            path: path(),
            v: 4,
            file_id: FileId(id(8)),
            author: "agent:assistant".into(),
            call_id: None,
        },
        ChatEvent::PlanStep {
            step: 3,
            status: "done".into(),
            title: "Test it".into(),
            plan_path: path(),
            plan_id: Some(FileId(id(12))),
            done: 3,
            total: 5,
        },
        ChatEvent::PermissionRequired {
            permission_id: PermissionId(id(9)),
            call_id,
            category: "file".into(),
            tool: "write".into(),
            args: "not json".into(),
            reason: "because".into(),
            always: Some(PermissionRule::File { path: path() }),
            agent: None,
            at,
            expires_at: at,
        },
        ChatEvent::PermissionResolved {
            permission_id: PermissionId(id(9)),
            outcome: PermissionOutcome::Approved,
            by: "user:1".into(),
            always: Some(PermissionRule::File { path: path() }),
            reason: None,
            option_id: None,
            at,
        },
        ChatEvent::Asked {
            question_id: QuestionId(id(10)),
            call_id,
            questions: vec![Question {
                name: "colour".into(),
                question: "Which?".into(),
                schema: json!({ "type": "string" }),
                buttons: Some(vec![json!("red")]),
            }],
            at,
            expires_at: at,
        },
        ChatEvent::ModeChanged {
            mode: Mode::Build,
            plan_path: Some(path()),
            by: Some(Principal::local().to_string()),
            at: Some(at),
        },
        ChatEvent::PlanApproved {
            approval: Box::new(Approval {
                plan_path: path(),
                plan_id: FileId(id(12)),
                v: 3,
                digest: Sha256::of(b"plan"),
                by: Principal::local().to_string(),
                at,
            }),
        },
        ChatEvent::RightsNarrowed { by: Principal::local().to_string() },
        ChatEvent::RunWithheld,
        ChatEvent::HomeWithheld,
        ChatEvent::FormatAsked { format: format() },
        ChatEvent::Used {
            usage: Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 2, cost_usd: 0.25 },
            context_used: 10,
            context_limit: 100,
            model: Some("openai/gpt-5-mini-2025-08-07".into()),
            estimated: false,
        },
        ChatEvent::StopRequested { stop_id: StopId(id(11)), reason: "user_cancelled".into() },
        ChatEvent::Done { turn_id, message: "Done.".into(), stop_reason: StopReason::EndTurn, at },
        ChatEvent::Stopped {
            turn_id,
            stop_id: Some(StopId(id(11))),
            reason: "user_cancelled".into(),
            partial_response: "Hel".into(),
            at,
        },
        ChatEvent::Failed { error: Error::new(Code::RateLimited, "slow down").hint("wait").detail("field", "x") },
        ChatEvent::Paused { reason: "it panics".into(), at },
        ChatEvent::Unpaused { at },
        ChatEvent::Deleted { turn_id: None, at },
        ChatEvent::Deleted { turn_id: Some(turn_id), at },
        ChatEvent::SlotsAwaited(SlotWait { message_id, holder: "chat/message".into(), at }),
        ChatEvent::ModelPostponed(RetryWait {
            message_id,
            failures: 2,
            error: Error::new(Code::RateLimited, "slow down").hint("wait"),
            at,
            until: at,
        }),
        ChatEvent::PlaceAwaited(PlaceWait { call_id, attempt: 1, at, why: None, until: None }),
        ChatEvent::PlaceAwaited(PlaceWait {
            call_id,
            attempt: 2,
            at,
            why: Some("a machine is looked for".into()),
            until: Some(at),
        }),
        ChatEvent::Observed {
            call_id,
            tool: "exec".into(),
            output: "passed".into(),
            success: true,
            misuse: false,
            code: None,
            resources: Some(Resources { cpu_ms: 1_250, peak_memory_bytes: 3 << 20, bytes_in: 7, bytes_out: 90 }),
            truncated: false,
            seen: Vec::new(),
            at,
        },
        ChatEvent::PermissionRequired {
            permission_id: PermissionId(id(13)),
            call_id,
            category: "command".into(),
            tool: "exec".into(),
            args: r#"{"command":"cargo test","folder":"/projects/demo"}"#.into(),
            reason: "it wants to run a command: cargo test".into(),
            always: Some(PermissionRule::CommandPrefix {
                words: vec!["cargo".into(), "test".into()],
                folder: "/projects/demo".parse().unwrap(),
            }),
            agent: None,
            at,
            expires_at: at,
        },
        ChatEvent::PermissionResolved {
            permission_id: PermissionId(id(13)),
            outcome: PermissionOutcome::Declined,
            by: "user:1".into(),
            always: None,
            reason: Some("it takes too long".into()),
            option_id: None,
            at,
        },
        ChatEvent::PermissionRequired {
            permission_id: PermissionId(id(14)),
            call_id,
            category: "command".into(),
            tool: "exec".into(),
            args: r#"{"words":["make"]}"#.into(),
            reason: "it wants to run a command: make".into(),
            always: Some(PermissionRule::Command { words: vec!["make".into()], folder: FilePath::root() }),
            agent: None,
            at,
            expires_at: at,
        },
        ChatEvent::PermissionResolved {
            permission_id: PermissionId(id(14)),
            outcome: PermissionOutcome::Declined,
            by: "user:1".into(),
            always: Some(PermissionRule::Command { words: vec!["make".into()], folder: FilePath::root() }.denied()),
            reason: None,
            option_id: None,
            at,
        },
        ChatEvent::PermissionsForgotten { rule: None, by: Principal::local().to_string(), at },
        ChatEvent::TurnStarted {
            turn_id: TurnId(id(40)),
            attempt: 1,
            asked_at: at,
            limits: Limits::default(),
            may_approve: false,
            trace: None,
        },
    ]
    .into_iter()
    .chain(sessions::events(at))
    .chain(team::events(at))
    .chain(agents::events(at))
    .chain(contexts::events(at))
    .collect()
}

/// A number per variant: a variant that is not in [`events`] does not compile here or fails below.
fn place(event: &ChatEvent) -> usize {
    match event {
        ChatEvent::Created { .. } => 0,
        ChatEvent::Configured { .. } => 1,
        ChatEvent::TurnQueued { .. } => 2,
        ChatEvent::TurnStarted { .. } => 3,
        ChatEvent::ModelStarted { .. } => 4,
        ChatEvent::Thought { .. } => 5,
        ChatEvent::Chunk { .. } => 6,
        ChatEvent::MessageAdded { .. } => 7,
        ChatEvent::ContextCut { .. } => 8,
        ChatEvent::CallStarted { .. } => 9,
        ChatEvent::Observed { .. } => 10,
        ChatEvent::FileUpdated { .. } => 11,
        ChatEvent::PlanStep { .. } => 12,
        ChatEvent::PermissionRequired { .. } => 13,
        ChatEvent::PermissionResolved { .. } => 14,
        ChatEvent::Asked { .. } => 15,
        ChatEvent::ModeChanged { .. } => 16,
        ChatEvent::Used { .. } => 17,
        ChatEvent::StopRequested { .. } => 18,
        ChatEvent::Done { .. } => 19,
        ChatEvent::Stopped { .. } => 20,
        ChatEvent::Failed { .. } => 21,
        ChatEvent::Paused { .. } => 22,
        ChatEvent::Unpaused { .. } => 23,
        ChatEvent::Deleted { .. } => 24,
        ChatEvent::PlanApproved { .. } => 25,
        ChatEvent::SlotsAwaited { .. } => 26,
        ChatEvent::ModelPostponed { .. } => 27,
        ChatEvent::PlaceAwaited { .. } => 28,
        ChatEvent::RightsNarrowed { .. } => 29,
        ChatEvent::PermissionsForgotten { .. } => 30,
        ChatEvent::AgentBegan { .. } => 31,
        ChatEvent::AgentBound { .. } => 32,
        ChatEvent::AgentUpdated { .. } => 33,
        ChatEvent::Analysed { .. } => 34,
        ChatEvent::Planned { .. } => 35,
        ChatEvent::StepStarted { .. } => 36,
        ChatEvent::StepEnded { .. } => 37,
        ChatEvent::CompactionBegan { .. } => 38,
        ChatEvent::Compacted { .. } => 39,
        ChatEvent::CompactionSkipped { .. } => 40,
        ChatEvent::CompactionUndone { .. } => 41,
        ChatEvent::SteerRequested { .. } => 42,
        ChatEvent::SteerAwaited { .. } => 43,
        ChatEvent::Steered { .. } => 44,
        ChatEvent::Team { .. } => 45,
        ChatEvent::HandedOut(_) => 46,
        ChatEvent::Rollback { .. } => 47,
        ChatEvent::DenialsRead { .. } => 48,
        ChatEvent::DecisionRefused { .. } => 49,
        ChatEvent::RunWithheld => 50,
        ChatEvent::FormatAsked { .. } => 51,
        ChatEvent::HomeWithheld => 52,
    }
}

#[test]
fn every_event_is_here() {
    let places: std::collections::BTreeSet<usize> = events().iter().map(place).collect();
    assert_eq!(places, (0..53).collect());
}

#[test]
fn clients_read_each_event_like_this() {
    let lines: Vec<String> = events()
        .iter()
        .map(|event| match native::encode(event) {
            Some((name, data)) => format!("{name} {data}"),
            None => format!("({}: not shown)", serde_json::to_value(event).unwrap()["type"].as_str().unwrap()),
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_call_that_begins_after_a_wait_is_told_without_another_call() {
    let call_id = CallId(id(15));
    let started = |attempt| ChatEvent::CallStarted {
        call_id,
        attempt,
        tool: "exec".into(),
        path: None,
        args: "{}".into(),
        at: Some(Timestamp::from_millis(5)),
    };
    assert_eq!(native::encode(&started(1)).unwrap().0, "call");
    for attempt in [2, 3] {
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress" });
        let told = ("agent_update", json!({ "call_id": call_id, "update": update }));
        assert_eq!(native::encode(&started(attempt)), Some(told));
    }
}

#[test]
fn data_that_is_written_as_text_is_the_text_of_its_value() {
    for event in events() {
        let mut text = Vec::new();
        let written = native::write(&event, &mut serde_json::Serializer::new(&mut text)).unwrap();
        let (name, data) = native::encode(&event).map(|(name, data)| (name, data.to_string())).unzip();
        assert_eq!(written.map(|(name, ())| name), name);
        assert_eq!(String::from_utf8(text).unwrap(), data.unwrap_or_default());
    }
}

#[test]
fn stored_events_stay_readable_for_ever() {
    golden::check(env!("CARGO_MANIFEST_DIR"), "chat_events", &events());
}
