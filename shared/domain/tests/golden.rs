//! Commands, as they wait in queues, and views, as they are kept for lists: data of older versions stays readable for ever.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "wire/budget_values.rs"]
mod budget_values;
#[path = "wire/chat_values.rs"]
mod chat_values;
#[path = "wire/session_values.rs"]
mod session_values;
#[path = "wire/task_values.rs"]
mod task_values;
#[path = "wire/team_commands.rs"]
mod team_commands;

use buildscale_domain::{
    AgentOptions, Approval, CallId, ChatCommand, ChatConfig, ChatEvent, ChatId, ChatStatus, ChatView, Code, CommandId,
    CompactionView, Error, FileId, FilePath, ForkOf, HoldId, Limits, MemberOf, MessageId, Mode, NextPersona,
    PermissionId, PlanFile, Principal, QuestionId, QueuedMessage, Scenario, ScenarioSetup, Sha256, Status, StopId,
    TaskCommand, TaskConfig, TaskId, TaskPhase, TaskView, ThreadAgent, Timestamp, TurnId, TurnRequest, TurnWishes,
    Usage, UserId, WorkspaceId,
    chat::{AgentOf, AgentTool, AgentToolRuns, SessionConfig},
    event::PermissionOutcome,
    task::{AgentAnswer, Arrival, ChildEnd, FlowRef, Handoff, HandoffLink, Replay, Resources, Retry, ToolUse, Wait},
};
use chat_values::{answer_format, label_changes, labels, model_settings, rules};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, json};
use session_values::{executor, session};
use std::collections::BTreeSet;
use task_values::origin;
use testkit::golden;
use uuid::Uuid;

const AT: Timestamp = Timestamp::from_millis(1_767_225_600_042);

const fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0000 + number)
}

fn check<T: Serialize + DeserializeOwned>(shape: &str, values: &T) {
    golden::check(env!("CARGO_MANIFEST_DIR"), shape, values);
}

fn path() -> FilePath {
    FilePath::parse("/projects/demo/a.md").unwrap()
}

fn flow() -> FlowRef {
    FlowRef { name: "review".into(), hash: Sha256::of(b"flow") }
}

fn usage() -> Usage {
    Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 2, cost_usd: 0.25 }
}

fn answers() -> Map<String, serde_json::Value> {
    Map::from_iter([("colour".to_owned(), json!("blue"))])
}

fn approval() -> Approval {
    let (plan_id, digest) = (FileId(id(12)), Sha256::of(b"plan"));
    Approval { plan_path: path(), plan_id, v: 3, digest, by: Principal::local().to_string(), at: AT }
}

fn agent_answer() -> AgentAnswer {
    AgentAnswer {
        chat: ChatId(id(2)),
        round: 1,
        text: "done".into(),
        stop_reason: "end_turn".into(),
        usage: usage(),
        model: Some("a/b".into()),
        steps: 2,
        tools: Vec::new(),
        error: None,
    }
}

fn chat_config() -> ChatConfig {
    let tool = |name: &str, runs| AgentTool {
        name: name.into(),
        description: Some("Reads a file.".into()),
        runs,
        root: Some(path()),
    };
    let function = AgentToolRuns::Function {
        entrypoint: "text.words".into(),
        description: "Counts words.".into(),
        parameters: json!({ "type": "object" }),
    };
    let (name, declaration) = ("http__rates".into(), r#"{"name":"rates"}"#.into());
    let http = AgentToolRuns::Http { name, declaration };
    let denied = AgentToolRuns::Denied { rule: "no-mail".into(), reason: Some("not here".into()) };
    let options = AgentOptions {
        mode: Some("ask".into()),
        model_id: Some("large".into()),
        session_id: Some("s-1".into()),
        config_overrides: [("effort".to_owned(), "high".to_owned())].into(),
    };
    let thread = ThreadAgent { agent: "codex".into(), cwd: "/srv/app".into(), options };
    let agent = AgentOf {
        task: TaskId(id(4)),
        above: vec![TaskId(id(5))],
        node: "writer".into(),
        tools: vec![
            tool("look", AgentToolRuns::Named),
            tool("see", AgentToolRuns::Builtin("read".into())),
            tool("count", function),
            tool("rates", http),
            tool("mail", denied),
        ],
        temperature: Some(0.5),
        top_p: None,
        max_tokens: Some(1000),
        priority: 5,
        turns: vec![("flow".into(), 4)],
        flow: Some(flow()),
        no_home: false,
        executor: Some(Box::new(executor())),
    };
    ChatConfig {
        workspace: WorkspaceId(id(1)),
        chat: ChatId(id(2)),
        user: UserId(id(3)),
        title: "Build it".into(),
        role: "assistant".into(),
        model: Some("openai/gpt-4o-mini".into()),
        model_settings: model_settings(),
        mode: Mode::Build,
        limits: Limits { max_steps: 3, max_tokens: 100, max_wall_ms: 1000, max_cost_usd: 0.5 },
        system: "You are an assistant.".into(),
        cut: Vec::new(),
        tools: Some(vec!["read".into()]),
        plan: Some(PlanFile { path: path(), id: FileId(id(12)) }),
        context_tokens: 100_000,
        created_at: AT,
        agent: Some(Box::new(agent)),
        thread: Some(Box::new(thread)),
        forked_from: Some(ForkOf { chat_id: ChatId(id(14)), seq: 40 }),
        session: Some(Box::new(session())),
        scenario: Some(Box::new(ScenarioSetup {
            name: Scenario::CoWork,
            executor: Some("builder".into()),
            agents: vec!["researcher".into(), "seo-specialist".into()],
            plan_path: Some(path()),
        })),
        member: Some(MemberOf { chat: ChatId(id(40)), turn: TurnId(id(41)) }),
        functions: Vec::new(),
        labels: labels(),
    }
}

#[test]
fn commands_of_chats_are_read_for_ever() {
    let decide = |outcome, always, reason: Option<&str>, option: Option<&str>| {
        let (permission_id, text) = (PermissionId(id(8)), |text: &str| text.to_owned());
        let (reason, option_id) = (reason.map(text), option.map(text));
        ChatCommand::Decide { permission_id, outcome, always, reason, option_id }
    };
    let commands = vec![
        ChatCommand::StartTurn(TurnRequest {
            content: "hello".into(),
            files: vec![path()],
            context: "<file/>".into(),
            create: Some(Box::new(chat_config())),
            limits: Some(Limits::default()),
            interrupt: true,
            approval: Some(Box::new(approval())),
            persona: Some(Box::new(NextPersona {
                role: "builder".into(),
                system: "You are a builder.".into(),
                tools: Some(vec!["write(/projects/**)".into()]),
                model: Some("a/b".into()),
                model_settings: model_settings(),
                cut: Vec::new(),
            })),
            may_approve: true,
            may_not_run: true,
            no_home: true,
            noted: true,
            rolls_back: Some(TurnId(id(61))),
            trace: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap()),
            wishes: Some(Box::new(TurnWishes { settings: model_settings(), format: Some(answer_format()) })),
        }),
        ChatCommand::Stop { stop_id: StopId(id(5)), turn_id: Some(TurnId(id(6))) },
        ChatCommand::Answer {
            question_id: QuestionId(id(7)),
            answers: answers(),
            may_approve: true,
            may_not_run: true,
        },
        decide(PermissionOutcome::Declined, false, Some("use the other one"), None),
        ChatCommand::Expire { permission_id: Some(PermissionId(id(8))), question_id: Some(QuestionId(id(7))) },
        ChatCommand::Delete,
        ChatCommand::Configure {
            title: Some("New".into()),
            model: Some("a/b".into()),
            model_settings: Some(model_settings()),
            mode: Some(Mode::Plan),
            may_approve: true,
            session: Some(Box::new(SessionConfig {
                session: session(),
                system: "You are a planner.".into(),
                tools: vec!["read".into()],
                refreshes: true,
            })),
            options: Some(Box::new(AgentOptions { mode: Some("plan".into()), ..AgentOptions::default() })),
            labels: label_changes(),
        },
        ChatCommand::Wake { message_id: MessageId(id(9)), request: Some(3) },
        ChatCommand::AskAgain { message_id: MessageId(id(9)), failures: 2 },
        ChatCommand::BeginCall { call_id: CallId(id(10)), request: Some(3) },
        ChatCommand::RefuseCall { call_id: CallId(id(10)), request: Some(3) },
        ChatCommand::Prioritize { priority: -7 },
        decide(PermissionOutcome::Approved, true, None, None),
        ChatCommand::ForgetPermissions { rule_id: None },
        ChatCommand::ForgetPermissions { rule_id: Some("0123456789abcdef".into()) },
        decide(PermissionOutcome::Approved, false, None, Some("proceed_once")),
        ChatCommand::ExecutorEnded { answer: Box::new(agent_answer()) },
        ChatCommand::Compact { max_chars: 4_000 },
        ChatCommand::UndoCompaction,
        ChatCommand::NoteRefused { permission_id: PermissionId(id(7)), outcome: PermissionOutcome::Approved },
    ];
    let commands: Vec<ChatCommand> = commands.into_iter().chain(team_commands::commands()).collect();
    // A command without a line here does not compile.
    let known = |command: &ChatCommand| match command {
        ChatCommand::StartTurn(_) => 0,
        ChatCommand::Stop { .. } => 1,
        ChatCommand::Answer { .. } => 2,
        ChatCommand::Decide { .. } => 3,
        ChatCommand::Expire { .. } => 4,
        ChatCommand::Delete => 5,
        ChatCommand::Configure { .. } => 6,
        ChatCommand::Wake { .. } => 7,
        ChatCommand::AskAgain { .. } => 8,
        ChatCommand::BeginCall { .. } => 9,
        ChatCommand::RefuseCall { .. } => 10,
        ChatCommand::Prioritize { .. } => 11,
        ChatCommand::ForgetPermissions { .. } => 12,
        ChatCommand::ExecutorEnded { .. } => 13,
        ChatCommand::Compact { .. } => 14,
        ChatCommand::UndoCompaction => 15,
        ChatCommand::Steer { .. } => 16,
        ChatCommand::StepTold { .. } => 17,
        ChatCommand::MemberEnded { .. } => 18,
        ChatCommand::AnswerCall { .. } => 19,
        ChatCommand::ExpireCall { .. } => 20,
        ChatCommand::NoteRefused { .. } => 21,
    };
    assert_eq!(commands.iter().map(known).collect::<BTreeSet<usize>>(), (0..22).collect());
    check("chat_commands", &commands);
}

fn task_config() -> TaskConfig {
    TaskConfig {
        workspace: WorkspaceId(id(1)),
        task: TaskId(id(4)),
        flow: flow(),
        user: UserId(id(3)),
        input: json!({ "topic": "bees" }),
        start: "worker".into(),
        origin: Some(origin()),
        files: vec![path()],
        priority: 3,
        stepping: true,
        breakpoints: vec!["writer".into()],
        replay: Some(Replay { of: TaskId(id(9)), from: Some("writer".into()), retry: true }),
        keep_outputs: true,
        keep_artifacts: true,
        counted: true,
        trace: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap()),
        handoff: None,
        budget: budget_values::budget(),
        refused: None,
        labels: labels(),
        created_at: AT,
    }
}

#[test]
fn handoffs_are_read_for_ever() {
    let chain = vec![HandoffLink { flow: "plan".into(), task: TaskId(id(5)) }];
    check("handoffs", &Handoff { file_id: FileId(id(12)), path: path(), v: 3, chain });
}

#[test]
fn commands_of_tasks_are_read_for_ever() {
    let used = ToolUse {
        tool: "read".into(),
        args: "{}".into(),
        status: Status::Partial,
        output: "text".into(),
        code: None,
        duration_ms: 12,
        queue_ms: 34,
        resources: Some(Resources { cpu_ms: 1_250, peak_memory_bytes: 3 << 20, bytes_in: 7, bytes_out: 90 }),
    };
    let answer = AgentAnswer {
        chat: ChatId(id(2)),
        round: 1,
        text: "Done.".into(),
        stop_reason: "end_turn".into(),
        usage: usage(),
        model: Some("a/b".into()),
        steps: 2,
        tools: vec![used],
        error: Some(Error::new(Code::Timeout, "too slow")),
    };
    let (merge, from, child, place) = ("join".into(), "worker".into(), "items/worker[17]".into(), vec![17]);
    let arrival = Arrival { merge, from, child, place, status: Status::Success, output: json!("text") };
    let (question_id, call_id) = (QuestionId(id(7)), CallId(id(8)));
    let asked = ChatEvent::Asked { question_id, call_id, questions: Vec::new(), at: AT, expires_at: AT };
    let end = ChildEnd {
        status: Status::Failure,
        output: json!(null),
        merged: true,
        lost: 2,
        error: Some(Error::new(Code::Internal, "it broke")),
    };
    let mut commands = vec![
        TaskCommand::Start { config: Box::new(task_config()) },
        TaskCommand::Arrived { arrival: Box::new(arrival) },
        TaskCommand::ChildEnded { child: origin().name(), end: Box::new(end) },
        TaskCommand::SpawnMore { node: "items".into() },
        TaskCommand::AgentAnswered { answer: Box::new(answer) },
        TaskCommand::Answer { node: "ask".into(), answers: answers() },
        TaskCommand::Expire { question_id: QuestionId(id(7)) },
        TaskCommand::Stop { stop_id: StopId(id(5)), reason: "user_cancelled".into() },
        TaskCommand::Pause { before: vec!["writer".into()], hold: Some(HoldId(id(10))) },
        TaskCommand::Step,
        TaskCommand::Resume,
        TaskCommand::Wake { node: "writer".into(), attempt: 2, request: Some(3) },
        TaskCommand::BeginCommand { node: "writer".into(), attempt: 2, request: Some(3) },
        TaskCommand::RefuseCommand { node: "writer".into(), attempt: 2, request: Some(3) },
        TaskCommand::Prioritize { priority: -7 },
        TaskCommand::Delete,
        TaskCommand::AgentWaits {
            chat: ChatId(id(2)),
            round: 1,
            asked: Some(Box::new(asked)),
            cut: false,
            declined: false,
        },
    ];
    commands.extend(budget_values::commands(usage()));
    commands.push(task_values::label());
    let known = |command: &TaskCommand| match command {
        TaskCommand::Start { .. } => 0,
        TaskCommand::Arrived { .. } => 1,
        TaskCommand::ChildEnded { .. } => 2,
        TaskCommand::SpawnMore { .. } => 3,
        TaskCommand::AgentAnswered { .. } => 4,
        TaskCommand::Answer { .. } => 5,
        TaskCommand::Expire { .. } => 6,
        TaskCommand::Stop { .. } => 7,
        TaskCommand::Pause { .. } => 8,
        TaskCommand::Step => 9,
        TaskCommand::Resume => 10,
        TaskCommand::Wake { .. } => 11,
        TaskCommand::BeginCommand { .. } => 12,
        TaskCommand::RefuseCommand { .. } => 13,
        TaskCommand::Prioritize { .. } => 14,
        TaskCommand::Delete => 15,
        TaskCommand::Budget { .. } => 16,
        TaskCommand::AgentWaits { .. } => 17,
        TaskCommand::Label { .. } => 18,
    };
    assert_eq!(commands.iter().map(known).collect::<BTreeSet<_>>(), (0..19).collect());
    check("task_commands", &commands);
}

/// A command is consumed once, so an unknown field is not skipped: the worker of a newer version takes it.
#[test]
fn no_field_of_a_command_is_overlooked() {
    let planted = |shape: &str, name: &str| {
        let golden = format!("{}/tests/golden/{shape}/1.json", env!("CARGO_MANIFEST_DIR"));
        let mut value: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(golden).unwrap()).unwrap();
        let places = value.as_array_mut().unwrap();
        let place = places.iter_mut().find_map(|command| command.pointer_mut(name)).unwrap();
        place["newer"] = json!(1);
        value
    };
    for name in ["", "/create", "/limits", "/create/agent", "/create/agent/tools/0", "/create/agent/flow"] {
        let read = serde_json::from_value::<Vec<ChatCommand>>(planted("chat_commands", name));
        assert!(read.is_err(), "{name:?} of a chat's command");
    }
    for name in ["", "/config", "/config/origin", "/config/replay", "/arrival", "/end", "/answer", "/answer/tools/0"] {
        let read = serde_json::from_value::<Vec<TaskCommand>>(planted("task_commands", name));
        assert!(read.is_err(), "{name:?} of a task's command");
    }
}

#[test]
fn views_are_read_for_ever() {
    let chat = |status| ChatView {
        chat_id: ChatId(id(2)),
        workspace_id: WorkspaceId(id(1)),
        title: "Build it".into(),
        labels: labels(),
        role: "assistant".into(),
        model: Some("a/b".into()),
        model_settings: model_settings(),
        mode: Mode::Chat,
        status,
        paused_reason: Some("it panics".into()),
        turn_id: Some(TurnId(id(6))),
        turn_seq: Some(12),
        compaction: Some(CompactionView {
            summary: "It was made blue.".into(),
            last_line: 9,
            tokens_before: 3_000,
            tokens_after: 1_000,
            ratio: 0.333,
            can_be_undone: true,
            at: AT,
        }),
        waiting_for: vec![json!({ "event": "question" })],
        queued: vec![QueuedMessage::new(TurnId(id(9)), AT, "and then", &[path()], Some(UserId(id(3))))],
        usage: usage(),
        agents_usage: usage(),
        turns: 3,
        message_count: 9,
        plan_path: Some(path()),
        plan_id: Some(FileId(id(12))),
        approval: Some(approval()),
        permissions: rules(),
        agent_options: Some(AgentOptions { mode: Some("code".into()), ..AgentOptions::default() }),
        agent_chose_at: Some(AT),
        file_id: FileId(id(2)),
        task_id: Some(TaskId(id(4))),
        forked_from: Some(ForkOf { chat_id: ChatId(id(14)), seq: 40 }),
        user_id: Some(UserId(id(3))),
        session: Some(session()),
        executor: Some(executor()),
        scenario: Some(ScenarioSetup { agents: vec!["builder".into()], ..ScenarioSetup::default() }),
        parent_chat_id: Some(ChatId(id(40))),
        created_at: AT,
        active_at: AT,
    };
    use ChatStatus::{Idle, Paused, Queued, Running, Suspended};
    check("chat_views", &[Queued, Running, Suspended, Idle, Paused].map(chat));
    let task = |phase| TaskView {
        task_id: TaskId(id(4)),
        workspace_id: WorkspaceId(id(1)),
        flow: flow(),
        labels: labels(),
        phase,
        status: Status::Partial,
        node: Some("writer".into()),
        parked_reason: Some("it panics".into()),
        waiting_for: vec![json!({ "event": "question" })],
        agent_waits: true,
        wait: Some(Wait::Backoff {
            until: AT,
            retry: Retry { number: 1, error: Error::new(Code::Timeout, "too slow") },
        }),
        origin: Some(origin()),
        handoff: None,
        budget: budget_values::budget(),
        usage_below: usage(),
        output: Some(json!("text")),
        error: Some(Error::new(Code::Cancelled, "stopped: user_cancelled")),
        priority: 5,
        steps: 3,
        children: 2,
        usage: usage(),
        created_at: AT,
        finished_at: Some(AT),
    };
    use TaskPhase as Phase;
    let phases =
        [Phase::Queued, Phase::Running, Phase::Suspended, Phase::Paused, Phase::Parked, Phase::Finished].map(task);
    check("task_views", &phases);
}

#[test]
fn principals_and_calls_are_read_for_ever() {
    let user = UserId(id(3));
    let principals = [
        Principal::User { id: user },
        Principal::Agent { role: "assistant".into(), chat: ChatId(id(2)), user },
        Principal::Task { task: TaskId(id(4)), user },
        Principal::System,
    ];
    check("principals", &principals);
    // Ids that are derived from keys must never change: later versions derive them again.
    check(
        "derived_ids",
        &(CallId::from_key("scope", "key"), CommandId::from_key("scope", "key"), TaskId(id(4)).child(&origin().name())),
    );
}
