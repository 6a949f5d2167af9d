//! Every event, as clients read it and as the log keeps it.
//!
//! The second is for ever: a log that was written once must be readable by every later version. A change of
//! `golden/chat_events` that is not an addition is a change that loses somebody's chats.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "wire/contexts.rs"]
mod contexts;
#[path = "wire/team.rs"]
mod team;

use buildscale_domain::{
    AgentAsk, AgentOption, AgentReply, Analysis, Approval, CallId, ChatConfig, ChatEvent, ChatId, Code, CommandId,
    Error, FileId, FilePath, Limits, Message, MessageId, Mode, PermissionId, PermissionRule, PlanFile, Principal,
    QuestionId, Scenario, ScenarioSetup, Sha256, StopId, StopReason, Strategy, Timestamp, ToolCall, TurnId, Usage,
    UserId, WorkspaceId,
    event::{PermissionOutcome, Question},
    native,
    session::{AnalysisOrigin, Cut, ExecutorTask, PlannedStep, StepOutcome},
    task::Resources,
};
use serde_json::json;
use testkit::golden;
use uuid::Uuid;

const fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0000 + number)
}

/// One of each, and of each kind of message.
fn events() -> Vec<ChatEvent> {
    let at = Timestamp::from_millis(1_767_225_600_042);
    let path = || FilePath::parse("/projects/demo/a.md").unwrap();
    let config = || {
        Box::new(ChatConfig {
            workspace: WorkspaceId(id(1)),
            chat: ChatId(id(2)),
            user: UserId(id(3)),
            title: "Build it".into(),
            role: "assistant".into(),
            model: Some("openai/gpt-4o-mini".into()),
            mode: Mode::Chat,
            limits: Limits::default(),
            system: "You are an assistant.".into(),
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
        })
    };
    let (message_id, call_id, turn_id) = (MessageId(id(4)), CallId(id(5)), TurnId(id(6)));
    let call = ToolCall { call_id, tool: "read".into(), args: r#"{"path":"/projects/demo/a.md"}"#.into() };
    let added = |message| ChatEvent::MessageAdded { message };
    vec![
        ChatEvent::Created { config: config() },
        ChatEvent::Configured { config: config() },
        ChatEvent::TurnQueued {
            command_id: CommandId(id(7)),
            at,
            content: "and then?".into(),
            files: vec![path()],
            context: String::new(),
            limits: None,
            next: false,
            may_approve: true,
            trace: None,
        },
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
        ChatEvent::FileUpdated { path: path(), v: 4, file_id: FileId(id(8)), author: "agent:assistant".into() },
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
        ChatEvent::Used {
            usage: Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 2, cost_usd: 0.25 },
            context_used: 10,
            context_limit: 100,
            model: Some("openai/gpt-5-mini-2025-08-07".into()),
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
        ChatEvent::Deleted { at },
        ChatEvent::SlotsAwaited { message_id, holder: "chat/message".into(), at },
        ChatEvent::ModelPostponed {
            message_id,
            failures: 2,
            error: Error::new(Code::RateLimited, "slow down").hint("wait"),
            at,
            until: at,
        },
        ChatEvent::PlaceAwaited { call_id, attempt: 1, at, why: None, until: None },
        ChatEvent::PlaceAwaited {
            call_id,
            attempt: 2,
            at,
            why: Some("a machine is looked for".into()),
            until: Some(at),
        },
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
        ChatEvent::PermissionsForgotten { by: Principal::local().to_string(), at },
        ChatEvent::TurnStarted {
            turn_id: TurnId(id(40)),
            attempt: 1,
            asked_at: at,
            limits: Limits::default(),
            may_approve: false,
            trace: None,
        },
        ChatEvent::Analysed {
            analysis: Analysis {
                strategy: Strategy::Complex,
                reasoning: "it has several steps".into(),
                estimated_operations: 3,
                requires_tools: true,
                requires_executors: true,
            },
            by: AnalysisOrigin::Model,
            at,
        },
        ChatEvent::Planned { call_id: CallId(id(41)), version: 1, steps: vec![planned(1, &[]), planned(2, &[1])], at },
        ChatEvent::StepStarted {
            call_id: CallId(id(41)),
            step: 1,
            executor: ChatId(id(42)),
            task: Box::new(ExecutorTask {
                id: "41/1".into(),
                description: "Read the brief".into(),
                goal: "its budget".into(),
                data: Some(json!({ "1": "found" })),
                cut: vec![Cut { part: "data".into(), tokens: 500, kept: 400 }],
            }),
            at,
        },
        ChatEvent::StepEnded {
            call_id: CallId(id(41)),
            step: 1,
            result: Box::new(StepOutcome {
                success: true,
                data: "found".into(),
                error: None,
                tool_calls: 2,
                usage: Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 0, cost_usd: 0.25 },
                duration_ms: 40,
            }),
            at,
        },
        ChatEvent::StepEnded {
            call_id: CallId(id(41)),
            step: 2,
            result: Box::new(StepOutcome {
                success: false,
                data: String::new(),
                error: Some(Error::new(Code::NotBegun, "step 1 failed")),
                tool_calls: 0,
                usage: Usage::default(),
                duration_ms: 0,
            }),
            at,
        },
    ]
    .into_iter()
    .chain(team::events(at))
    .chain(of_agents(at))
    .chain(contexts::events(at))
    .collect()
}

/// The events of a thread, whose turns a coding agent performs.
fn of_agents(at: Timestamp) -> Vec<ChatEvent> {
    let (leg, call_id) = (MessageId(id(4)), CallId(id(15)));
    let option = |id: &str, kind: &str| AgentOption { id: id.into(), name: "Yes, this once".into(), kind: kind.into() };
    let updated = |call_id, update| ChatEvent::AgentUpdated { call_id, update, at };
    let reply = |option: Option<&str>| AgentReply {
        request: "0a1b".into(),
        option: option.map(ToOwned::to_owned),
        by: "user:1".into(),
    };
    vec![
        ChatEvent::AgentBegan { leg, attempt: 1, answer: None, at },
        ChatEvent::AgentBegan { leg, attempt: 1, answer: Some(reply(Some("once"))), at },
        ChatEvent::AgentBegan { leg, attempt: 2, answer: Some(reply(None)), at },
        ChatEvent::AgentBound { session_id: "s-1".into() },
        updated(
            Some(call_id),
            json!({
                "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Run make", "kind": "execute", "status": "pending",
                "rawInput": { "command": "make" }, "locations": [{ "path": "/srv/app/Makefile", "line": 3 }],
            }),
        ),
        updated(
            Some(call_id),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "in_progress" }),
        ),
        updated(
            Some(call_id),
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "kind": "edit",
                "content": [
                    { "type": "content", "content": { "type": "text", "text": "built" } },
                    { "type": "diff", "path": "/srv/app/a.rs", "oldText": "a", "newText": "b" },
                ],
            }),
        ),
        updated(
            Some(call_id),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed", "rawOutput": { "code": 2 } }),
        ),
        updated(
            None,
            json!({
                "sessionUpdate": "plan",
                "entries": [{ "content": "Look", "priority": "high", "status": "completed" }],
            }),
        ),
        updated(None, json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" })),
        ChatEvent::PermissionRequired {
            permission_id: PermissionId(id(16)),
            call_id,
            category: "command".into(),
            tool: "execute".into(),
            args: r#"{"toolCallId":"t1","title":"Run make"}"#.into(),
            reason: "Run make".into(),
            always: Some(PermissionRule::Command { words: vec!["make".into()], folder: FilePath::root() }),
            agent: Some(Box::new(AgentAsk {
                request: "0a1b".into(),
                options: vec![option("once", "allow_once"), option("no", "reject_once")],
                digest: Sha256::of(b"shown"),
            })),
            at,
            expires_at: at,
        },
        ChatEvent::PermissionResolved {
            permission_id: PermissionId(id(16)),
            outcome: PermissionOutcome::Approved,
            by: "user:1".into(),
            always: None,
            reason: None,
            option_id: Some("once".into()),
            at,
        },
    ]
}

fn planned(step: u32, depends_on: &[u32]) -> PlannedStep {
    PlannedStep {
        step,
        kind: "search_project".into(),
        description: "Read the brief".into(),
        goal: "its budget".into(),
        tools: vec!["read".into()],
        depends_on: depends_on.to_vec(),
    }
}

/// A number a variant: a variant that is not in [`events`] does not compile here or fails below.
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
    }
}

#[test]
fn every_event_is_here() {
    let places: std::collections::BTreeSet<usize> = events().iter().map(place).collect();
    assert_eq!(places, (0..46).collect());
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
fn stored_events_stay_readable_for_ever() {
    golden::check(env!("CARGO_MANIFEST_DIR"), "chat_events", &events());
}
