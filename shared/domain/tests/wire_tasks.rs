//! Every event of a task, as clients read it and as the log keeps it. As for chats, stored events stay readable for ever.

#![expect(clippy::unwrap_used, reason = "tests")]

use buildscale_domain::{
    Budget, CallId, ChatEvent, ChatId, Code, Error, FileId, FilePath, HoldId, Labels, PermissionId, QuestionId, Sha256,
    Status, StopId, TaskConfig, TaskEvent, TaskId, Timestamp, Usage, UserId, WorkspaceId,
    event::Question,
    task::{
        AgentAnswer, Arrival, AssembledContext, BudgetChild, BudgetFact, ChildEnd, ChildKind, ChildName, ContextItem,
        FlowRef, NodeMetrics, Origin, Replay, Resources, Retry, TaskCommand, ToolUse, Wait, stopped,
    },
    task_native,
};
use serde_json::{Map, Value, json};
use testkit::golden;
use uuid::Uuid;

const fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0000 + number)
}

const AT: Timestamp = Timestamp::from_millis(1_767_225_600_042);

fn tool_use() -> ToolUse {
    ToolUse {
        tool: "read_file".into(),
        args: r#"{"path":"/a.md"}"#.into(),
        status: Status::Success,
        output: "text".into(),
        code: None,
        duration_ms: 12,
        queue_ms: 0,
        resources: None,
    }
}

fn usage() -> Usage {
    Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 2, cost_usd: 0.25 }
}

fn child() -> ChildName {
    ChildName::of(&"items".into(), &"worker".into(), 17, ChildKind::Subtask)
}

fn config() -> TaskConfig {
    let origin = Origin {
        parent: TaskId(id(20)),
        ancestors: vec![TaskId(id(19)), TaskId(id(20))],
        line: vec![ChildName::of(&"ways".into(), &"items".into(), 1, ChildKind::Clone), child()],
        place: vec![1, 17],
        kind: ChildKind::Subtask,
        node: "items".into(),
        to: "worker".into(),
        index: 17,
    };
    TaskConfig {
        workspace: WorkspaceId(id(1)),
        task: TaskId(id(2)),
        flow: FlowRef { name: "review".into(), hash: Sha256::of(b"flow") },
        user: UserId(id(3)),
        input: json!({ "topic": "bees" }),
        start: "worker".into(),
        origin: Some(origin),
        files: vec![FilePath::parse("/a.md").unwrap()],
        priority: 5,
        stepping: true,
        breakpoints: vec!["merge".into()],
        replay: Some(Replay { of: TaskId(id(4)), from: Some("worker".into()), retry: false }),
        keep_outputs: true,
        keep_artifacts: false,
        counted: false,
        trace: None,
        handoff: None,
        budget: Budget::default(),
        refused: None,
        labels: Labels::default(),
        created_at: AT,
    }
}

/// One of each, and of those that look different the more of them.
fn events() -> Vec<TaskEvent> {
    let node = || "draft".into();
    let error = || Error::new(Code::Unprocessable, "no").hint("try").detail("field", "x");
    let item = ContextItem {
        store: "project".into(),
        key: "style".into(),
        content: json!({ "tone": "dry" }),
        tags: vec!["house".into()],
        tokens: 7,
        at: AT,
    };
    let answers: Map<String, Value> = json!({ "approved": true }).as_object().unwrap().clone();
    let question = Question {
        name: "approved".into(),
        question: "Publish?".into(),
        schema: json!({ "type": "boolean" }),
        buttons: Some(vec![json!(true), json!(false)]),
    };
    vec![
        TaskEvent::Created { config: Box::new(config()) },
        TaskEvent::NodeStarted { node: node(), attempt: 1, retry: None, queue_ms: 3, at: AT },
        TaskEvent::NodeStarted {
            node: node(),
            attempt: 2,
            retry: Some(Retry { number: 1, error: error() }),
            queue_ms: 3,
            at: AT,
        },
        TaskEvent::ContextAssembled {
            node: node(),
            context: Box::new(AssembledContext {
                profile: "writing".into(),
                items: vec![item],
                tokens: 7,
                left_out: 2,
            }),
        },
        TaskEvent::Denied { node: node(), what: "tool write_file".into(), rule: "read-only".into() },
        TaskEvent::AgentAsked { node: node(), chat: ChatId(id(5)), round: 1, prompt: String::new() },
        TaskEvent::AgentReplied {
            node: node(),
            answer: Box::new(AgentAnswer {
                chat: ChatId(id(5)),
                round: 1,
                text: "Done.".into(),
                stop_reason: "end_turn".into(),
                usage: usage(),
                model: None,
                steps: 2,
                tools: vec![tool_use()],
                error: Some(error()),
            }),
        },
        TaskEvent::ToolUsed { node: node(), used: Box::new(tool_use()) },
        TaskEvent::OutputRejected { node: node(), round: 1, errors: vec!["/title: missing".into()] },
        TaskEvent::Asked {
            node: node(),
            question_id: QuestionId(id(6)),
            questions: vec![question],
            at: AT,
            expires_at: Some(AT),
        },
        TaskEvent::Answered { node: node(), answers, by: "user:1".into(), at: AT },
        TaskEvent::NodeFinished {
            node: node(),
            attempt: 1,
            status: Status::Failure,
            output: Value::Null,
            error: Some(error()),
            metrics: NodeMetrics { duration_ms: 40, queue_ms: 3, context_tokens: 7, usage: usage(), tool_calls: 1 },
            at: AT,
        },
        TaskEvent::Archived { files: 3 },
        TaskEvent::Routed { from: node(), to: "merge".into() },
        TaskEvent::Forked { node: "items".into(), kind: ChildKind::Subtask, to: vec!["worker".into()], total: 100 },
        TaskEvent::Spawned { node: "items".into(), until: 64 },
        TaskEvent::ChildArrived {
            arrival: Box::new(Arrival {
                merge: "merge".into(),
                from: "worker".into(),
                child: "items/worker[17]".into(),
                place: vec![17],
                status: Status::Partial,
                output: json!([1]),
            }),
        },
        TaskEvent::ChildFinished {
            child: child(),
            end: Box::new(ChildEnd {
                status: Status::Failure,
                output: Value::Null,
                merged: false,
                lost: 0,
                error: Some(error()),
            }),
        },
        TaskEvent::Merged {
            node: "merge".into(),
            taken: vec!["items/worker[17]".into()],
            with_failed: true,
            ways: Vec::new(),
            failed: vec![child()],
            cancelled: vec![child()],
        },
        TaskEvent::WentUp { merge: "merge".into(), owner: TaskId(id(20)) },
        TaskEvent::PauseRequested { before: vec!["merge".into()], hold: None },
        TaskEvent::PausedBefore { node: node(), at: AT },
        TaskEvent::Continued { step: true, at: AT },
        TaskEvent::StopRequested { stop_id: StopId(id(7)), reason: "user_cancelled".into() },
        TaskEvent::Finished {
            status: Status::Success,
            output: json!("ok"),
            exit: Some("end".into()),
            error: None,
            at: AT,
        },
        TaskEvent::Finished {
            status: Status::Failure,
            output: Value::Null,
            exit: None,
            error: Some(stopped("user_cancelled")),
            at: AT,
        },
        TaskEvent::Parked { reason: "it panics".into(), at: AT },
        TaskEvent::Unparked { at: AT },
        TaskEvent::Waiting {
            node: node(),
            attempt: 1,
            wait: Wait::Backoff { until: AT, retry: Retry { number: 1, error: error() } },
            at: AT,
        },
        TaskEvent::Waiting {
            node: node(),
            attempt: 2,
            wait: Wait::Slots {
                names: vec!["flow/review/abc".into()],
                holder: "task/writer/2".into(),
                retry: None,
                queue_ms: 3,
            },
            at: AT,
        },
        TaskEvent::Waiting {
            node: node(),
            attempt: 2,
            wait: Wait::Place { holder: "task/writer/2".into(), retry: None, queue_ms: 3, why: None, until: None },
            at: AT,
        },
        TaskEvent::Caught { node: node(), error: error(), status: Status::Success },
        TaskEvent::StatusSet { status: Status::Partial },
        TaskEvent::HeldBack { command: Box::new(TaskCommand::SpawnMore { node: "items".into() }) },
        TaskEvent::Diverged { at: AT },
        TaskEvent::Merged {
            node: "merge".into(),
            taken: Vec::new(),
            with_failed: true,
            ways: vec![node()],
            failed: vec![child()],
            cancelled: Vec::new(),
        },
        TaskEvent::PlanStep {
            node: node(),
            step: 2,
            status: "done".into(),
            title: "Write it".into(),
            plan_path: "/content/spring/campaign-plan.md".parse().unwrap(),
            plan_id: Some(FileId(id(30))),
            done: 2,
            total: 6,
        },
        TaskEvent::AgentAsked { node: node(), chat: ChatId(id(5)), round: 2, prompt: "Write it.".into() },
        TaskEvent::AgentWaits {
            node: node(),
            chat: ChatId(id(5)),
            asked: Some(Box::new(asked_by_an_agent())),
            cut: false,
            declined: false,
            at: AT,
        },
        TaskEvent::AgentWaits { node: node(), chat: ChatId(id(5)), asked: None, cut: false, declined: false, at: AT },
        TaskEvent::Prioritized { priority: 7 },
        TaskEvent::Deleted { at: AT },
        TaskEvent::Cleared,
        TaskEvent::Waiting {
            node: node(),
            attempt: 3,
            wait: Wait::Place {
                holder: "task/writer/2".into(),
                retry: None,
                queue_ms: 3,
                why: Some("a machine is looked for".into()),
                until: Some(AT),
            },
            at: AT,
        },
        TaskEvent::PauseRequested { before: Vec::new(), hold: Some(HoldId(Uuid::from_u128(11))) },
        TaskEvent::ToolUsed {
            node: node(),
            used: Box::new(ToolUse {
                queue_ms: 34,
                resources: Some(Resources { cpu_ms: 1_250, peak_memory_bytes: 3 << 20, bytes_in: 7, bytes_out: 90 }),
                ..tool_use()
            }),
        },
        TaskEvent::Waiting { node: node(), attempt: 1, wait: Wait::Budget { round: 1 }, at: AT },
        budget(BudgetFact::SetAside { node: node(), each: part(), children: 40 }),
        budget(BudgetFact::Asked { child: budget_child() }),
        budget(BudgetFact::Given { child: budget_child(), more: part() }),
        budget(BudgetFact::Refused { child: budget_child() }),
        budget(BudgetFact::Returned { child: budget_child(), used: part_used() }),
        budget(BudgetFact::AskedAbove),
        budget(BudgetFact::Granted { more: part() }),
        budget(BudgetFact::RefusedAbove),
        budget(BudgetFact::AgentEnded { node: node(), used: part_used(), model: Some("a/b".into()) }),
        budget(BudgetFact::Late { used: part_used(), task: None }),
        budget(BudgetFact::Late { used: part_used(), task: Some(budget_child().task) }),
        TaskEvent::Labelled {
            labels: Labels::checked("labels", [("customer".to_owned(), "c-17".to_owned())]).unwrap(),
        },
    ]
}

fn asked_by_an_agent() -> ChatEvent {
    let (question_id, call_id) = (QuestionId(id(7)), CallId(id(8)));
    ChatEvent::Asked { question_id, call_id, questions: Vec::new(), at: AT, expires_at: AT }
}

fn budget(fact: BudgetFact) -> TaskEvent {
    TaskEvent::Budget { fact: Box::new(fact) }
}

fn part_used() -> Usage {
    Usage { output_tokens: 5, ..Usage::default() }
}

fn part() -> Budget {
    Budget { max_tokens: Some(300), max_cost_usd: Some(0.25), max_wall_ms: None }
}

fn budget_child() -> BudgetChild {
    BudgetChild { node: "writer".into(), index: 3, task: TaskId(id(21)) }
}

/// A number a variant: a variant that is not in [`events`] does not compile here or fails below.
fn place(event: &TaskEvent) -> usize {
    match event {
        TaskEvent::Created { .. } => 0,
        TaskEvent::NodeStarted { .. } => 1,
        TaskEvent::ContextAssembled { .. } => 2,
        TaskEvent::Denied { .. } => 3,
        TaskEvent::AgentAsked { .. } => 4,
        TaskEvent::AgentReplied { .. } => 5,
        TaskEvent::ToolUsed { .. } => 6,
        TaskEvent::OutputRejected { .. } => 7,
        TaskEvent::Asked { .. } => 8,
        TaskEvent::Answered { .. } => 9,
        TaskEvent::NodeFinished { .. } => 10,
        TaskEvent::Routed { .. } => 11,
        TaskEvent::Forked { .. } => 12,
        TaskEvent::Spawned { .. } => 13,
        TaskEvent::ChildArrived { .. } => 14,
        TaskEvent::ChildFinished { .. } => 15,
        TaskEvent::Merged { .. } => 16,
        TaskEvent::WentUp { .. } => 17,
        TaskEvent::PauseRequested { .. } => 18,
        TaskEvent::PausedBefore { .. } => 19,
        TaskEvent::Continued { .. } => 20,
        TaskEvent::StopRequested { .. } => 21,
        TaskEvent::Finished { .. } => 22,
        TaskEvent::Parked { .. } => 23,
        TaskEvent::Unparked { .. } => 24,
        TaskEvent::Archived { .. } => 25,
        TaskEvent::Waiting { .. } => 26,
        TaskEvent::Caught { .. } => 27,
        TaskEvent::StatusSet { .. } => 28,
        TaskEvent::HeldBack { .. } => 29,
        TaskEvent::Diverged { .. } => 30,
        TaskEvent::PlanStep { .. } => 31,
        TaskEvent::Prioritized { .. } => 32,
        TaskEvent::Deleted { .. } => 33,
        TaskEvent::Cleared => 34,
        TaskEvent::Budget { .. } => 35,
        TaskEvent::AgentWaits { .. } => 36,
        TaskEvent::Labelled { .. } => 37,
    }
}

#[test]
fn every_event_is_here() {
    let places: std::collections::BTreeSet<usize> = events().iter().map(place).collect();
    assert_eq!(places, (0..38).collect());
}

#[test]
fn clients_read_each_event_like_this() {
    let lines: Vec<String> = events()
        .iter()
        .map(|event| match task_native::encode(event) {
            Some((name, data)) => format!("{name} {data}"),
            None => format!("({}: not shown)", serde_json::to_value(event).unwrap()["type"].as_str().unwrap()),
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_request_of_an_agent_that_is_cut_is_told_without_the_digest_of_the_whole() {
    let asked = ChatEvent::PermissionRequired {
        permission_id: PermissionId(id(7)),
        call_id: CallId(id(8)),
        category: "file".into(),
        tool: "write".into(),
        args: r#"{"path":"/a.md"}"#.into(),
        reason: String::new(),
        always: None,
        agent: None,
        at: AT,
        expires_at: AT,
    };
    let told = |cut| {
        let (chat, asked) = (ChatId(id(5)), Some(Box::new(asked.clone())));
        let event = TaskEvent::AgentWaits { node: "draft".into(), chat, asked, cut, declined: false, at: AT };
        task_native::encode(&event).unwrap().1["asked"]["data"].clone()
    };
    let (whole, cut) = (told(false), told(true));
    assert!(whole["digest"].is_string() && cut.get("digest").is_none(), "{whole} {cut}");
    assert_eq!((&whole["args"], &whole["permission_id"]), (&cut["args"], &cut["permission_id"]));
}

#[test]
fn observers_can_ask_for_each_event_by_its_name() {
    use std::collections::BTreeSet;
    let told: BTreeSet<&str> = events().iter().filter_map(task_native::encode).map(|(name, _)| name).collect();
    let names: BTreeSet<&str> = task_native::NAMES.into();
    assert!(told.is_subset(&names), "{:?}", told.difference(&names));
    // A task that was stopped and one that is done end with the same fact.
    assert!(names.difference(&told).all(|name| matches!(*name, "stopped" | "done")), "{:?}", names.difference(&told));
    assert_eq!(names.len(), task_native::NAMES.len());
}

#[test]
fn data_that_is_written_as_text_is_the_text_of_its_value() {
    for event in events() {
        let mut text = Vec::new();
        let written = task_native::write(&event, &mut serde_json::Serializer::new(&mut text)).unwrap();
        let (name, data) = task_native::encode(&event).map(|(name, data)| (name, data.to_string())).unzip();
        assert_eq!(written.map(|(name, ())| name), name);
        assert_eq!(String::from_utf8(text).unwrap(), data.unwrap_or_default());
    }
}

#[test]
fn stored_events_stay_readable_for_ever() {
    golden::check(env!("CARGO_MANIFEST_DIR"), "task_events", &events());
    let stored: Vec<TaskEvent> = serde_json::from_str(include_str!("golden/task_events/1.json")).unwrap();
    assert_eq!(stored, events()[..stored.len()]);
}
