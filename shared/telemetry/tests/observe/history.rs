//! Histories: of real runs, of what runs seldom show, and of anything at all.

use crate::{
    flows::{ASKS, SPLIT, TOOLS},
    rig::{Rig, keep},
};
use buildscale_telemetry::StageKind;
use domain::{
    ChatId, Code, Error, NodeId, QuestionId, Sha256, Status, TaskConfig, TaskEvent, TaskId, Timestamp, Usage, UserId,
    event::Question,
    task::{
        AgentAnswer, Arrival, AssembledContext, ChildEnd, ChildKind, ChildName, ContextItem, FlowRef, NodeMetrics,
        Retry, ToolUse,
    },
};
use flow::graph::Role;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use uuid::Uuid;

#[tokio::test(start_paused = true)]
async fn s6_history_has_every_input_and_output_exactly_and_the_route() {
    let rig = Rig::new(1).await;
    rig.flow("numbers", &[("workflow.yaml", SPLIT)]).await;
    let input = json!({ "items": [3, 1], "z": 0.1, "a": null });
    let view = rig.run("numbers", input.clone()).await;
    let page = buildscale_telemetry::history(&rig.tasks, rig.workspace, view.task_id, 0, 50).await.unwrap();
    let names: Vec<&str> = page.stages.iter().map(|stage| stage.node.as_str()).collect();
    assert_eq!(names, ["begin", "each", "gather", "done"]);
    let [begin, each, gather, done] = page.stages.as_slice() else { panic!("four stages") };
    assert_eq!(begin.input.to_string(), input.to_string(), "the order of keys is kept, too");
    assert_eq!((begin.role, begin.kind), (Some(Role::Start), Some(StageKind::Deterministic)));
    assert_eq!((begin.routed_to.as_ref().map(NodeId::as_str), begin.status), (Some("each"), Some(Status::Success)));
    let fork = each.fork.clone().unwrap();
    assert_eq!((fork.kind, fork.total, fork.spawned, fork.merged), (ChildKind::Subtask, 2, 2, 2));
    let merge = gather.merge.clone().unwrap();
    assert_eq!(merge.taken, ["each/work[0]", "each/work[1]"]);
    let outputs: Vec<&Value> = gather.input.as_array().unwrap().iter().map(|one| &one["output"]).collect();
    assert_eq!(outputs, [&json!({ "twice": 6 }), &json!({ "twice": 2 })]);
    assert_eq!((Some(&done.output), done.routed_to.clone()), (view.output.as_ref(), None));
    assert!(page.stages.iter().all(|stage| stage.metrics.is_some() && stage.started_at.is_some()));
    // Pages meet.
    let first = buildscale_telemetry::history(&rig.tasks, rig.workspace, view.task_id, 0, 3).await.unwrap();
    let after = first.next_cursor.clone().unwrap().parse().unwrap();
    let second = buildscale_telemetry::history(&rig.tasks, rig.workspace, view.task_id, after, 3).await.unwrap();
    assert_eq!([first.stages, second.stages].concat(), page.stages);
    assert_eq!(second.next_cursor, None);
}

#[tokio::test(start_paused = true)]
async fn s6_history_has_tools_questions_and_who_answered() {
    let rig = Rig::new(2).await;
    rig.flow("asks", &[("workflow.yaml", ASKS), ("tools.yaml", TOOLS)]).await;
    rig.write("/projects/note.md", "a note").await;
    let task = rig.begin("asks", json!({ "path": "/projects/note.md" })).await;
    rig.work().await;
    let page = buildscale_telemetry::history(&rig.tasks, rig.workspace, task, 0, 50).await.unwrap();
    let open = page.stages.last().unwrap();
    assert_eq!((open.kind, open.status, open.questions[0].answer.clone()), (Some(StageKind::Human), None, None));
    rig.answer(task, "people", json!({ "colour": "red" })).await;
    let page = buildscale_telemetry::history(&rig.tasks, rig.workspace, task, 0, 50).await.unwrap();
    let stage = |name: &str| page.stages.iter().find(|stage| stage.node.as_str() == name).unwrap();
    assert_eq!(stage("look").tools[0].tool, "read");
    let answer = stage("people").questions[0].answer.clone().unwrap();
    assert_eq!(answer.answers.get("colour"), Some(&json!("red")));
    assert!(answer.by.contains("user"), "{}", answer.by);
    assert_eq!(stage("pick").routed_to.as_ref().map(NodeId::as_str), Some("red"));
    let whole = serde_json::to_value(&page).unwrap();
    assert_eq!(serde_json::from_value::<buildscale_telemetry::HistoryPage>(whole).unwrap(), page);
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn config(rig: &Rig, task: TaskId) -> TaskConfig {
    let flow = FlowRef { name: "gone".into(), hash: Sha256::of(b"gone") };
    TaskConfig { user: UserId(Uuid::nil()), ..testkit::flows::task(rig.workspace, task, flow, "begin") }
}

/// Makes a task of which there is a view and no log, and gives it this log.
async fn of_events(rig: &Rig, events: Vec<TaskEvent>) -> TaskId {
    rig.flow("asks", &[("workflow.yaml", ASKS), ("tools.yaml", TOOLS)]).await;
    let task = rig.begin("asks", json!(null)).await;
    let created = TaskEvent::Created { config: Box::new(config(rig, task)) };
    keep(&*rig.table, rig.workspace, task, std::iter::once(created).chain(events).collect()).await;
    task
}

#[tokio::test(start_paused = true)]
async fn s6_history_has_retries_crashes_conversations_denials_and_pauses() {
    let rig = Rig::new(0).await;
    let node = NodeId::from("think");
    let chat = ChatId(Uuid::from_u128(9));
    let usage = Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 0, cost_usd: 0.25 };
    let answer = |round, text: &str| AgentAnswer {
        chat,
        round,
        text: text.into(),
        stop_reason: "end_turn".into(),
        usage,
        model: None,
        steps: 1,
        tools: Vec::new(),
        error: None,
    };
    let item =
        ContextItem { store: "task".into(), key: "k".into(), content: json!(1), tags: vec![], tokens: 3, at: at(0) };
    let context = AssembledContext { profile: "notes".into(), items: vec![item], tokens: 3, left_out: 1 };
    let busy = Error::new(Code::RateLimited, "busy");
    let started =
        |attempt, retry| TaskEvent::NodeStarted { node: node.clone(), attempt, retry, queue_ms: 4, at: at(10) };
    let events = vec![
        TaskEvent::PausedBefore { node: node.clone(), at: at(5) },
        TaskEvent::Continued { step: false, at: at(8) },
        started(1, None),
        started(2, None),
        started(3, Some(Retry { number: 1, error: busy.clone() })),
        TaskEvent::ContextAssembled { node: node.clone(), context: Box::new(context.clone()) },
        TaskEvent::Denied { node: node.clone(), what: "tool rm".into(), rule: "no_rm".into() },
        TaskEvent::AgentAsked { node: node.clone(), chat, round: 1, prompt: "Write.".into() },
        TaskEvent::AgentReplied { node: node.clone(), answer: Box::new(answer(1, "hm")) },
        TaskEvent::OutputRejected { node: node.clone(), round: 1, errors: vec!["not JSON".into()] },
        TaskEvent::AgentAsked { node: node.clone(), chat, round: 2, prompt: "Again.".into() },
        TaskEvent::AgentReplied { node: node.clone(), answer: Box::new(answer(2, "{}")) },
        TaskEvent::NodeFinished {
            node: node.clone(),
            attempt: 3,
            status: Status::Success,
            output: json!({}),
            error: None,
            metrics: NodeMetrics { duration_ms: 90, ..NodeMetrics::default() },
            at: at(100),
        },
        TaskEvent::Routed { from: node.clone(), to: "done".into() },
    ];
    let task = of_events(&rig, events).await;
    let page = buildscale_telemetry::history(&rig.tasks, rig.workspace, task, 0, 10).await.unwrap();
    let [stage] = page.stages.as_slice() else { panic!("one stage: {page:?}") };
    assert_eq!((stage.attempt, stage.crashes, stage.retries.len()), (3, 1, 1));
    assert_eq!(stage.retries[0].error, busy);
    assert_eq!((stage.context.as_ref(), stage.denials[0].rule.as_str()), (Some(&context), "no_rm"));
    let replies: Vec<&str> =
        stage.conversation.iter().map(|round| round.reply.as_ref().unwrap().text.as_str()).collect();
    assert_eq!((replies, stage.conversation[1].round), (vec!["hm", "{}"], 2));
    assert_eq!(stage.rejected[0].errors, ["not JSON"]);
    assert_eq!((stage.pauses[0].at, stage.pauses[0].continued_at), (at(5), Some(at(8))));
    assert_eq!((&*stage.input, &stage.output), (&json!("in"), &json!({})));
}

#[tokio::test(start_paused = true)]
async fn s6_history_has_merges_that_cancel_and_merges_that_fail() {
    let rig = Rig::new(0).await;
    let (fork, join) = (NodeId::from("both"), NodeId::from("join"));
    let finished = |node: &NodeId, output: Value| TaskEvent::NodeFinished {
        node: node.clone(),
        attempt: 1,
        status: Status::Success,
        output,
        error: None,
        metrics: NodeMetrics::default(),
        at: at(2),
    };
    let started =
        |node: &NodeId| TaskEvent::NodeStarted { node: node.clone(), attempt: 1, retry: None, queue_ms: 0, at: at(1) };
    let arrival = Arrival {
        merge: join.clone(),
        from: "a".into(),
        child: "both/a".into(),
        place: vec![0],
        status: Status::Success,
        output: json!("A"),
    };
    let lost = ChildEnd { status: Status::Failure, output: json!(null), merged: false, lost: 0, error: None };
    let name = |name: &str| ChildName(name.into());
    let mut events = vec![
        started(&fork),
        finished(&fork, json!("x")),
        TaskEvent::Forked {
            node: fork.clone(),
            kind: ChildKind::Clone,
            to: vec!["a".into(), "b".into(), "c".into()],
            total: 3,
        },
        TaskEvent::Spawned { node: fork.clone(), until: 3 },
        TaskEvent::ChildArrived { arrival: Box::new(arrival) },
        TaskEvent::ChildFinished { child: name("both/b"), end: Box::new(lost) },
        TaskEvent::Merged {
            node: join.clone(),
            taken: Vec::new(),
            failed: vec![name("both/b")],
            with_failed: true,
            ways: Vec::new(),
            cancelled: vec![name("both/c")],
        },
    ];
    let passed = TaskEvent::Routed { from: join.clone(), to: "after".into() };
    let went_past = of_events(&rig, events.iter().cloned().chain([passed]).collect()).await;
    let page = buildscale_telemetry::history(&rig.tasks, rig.workspace, went_past, 0, 10).await.unwrap();
    let last = page.stages.last().unwrap();
    assert_eq!((last.node.as_str(), last.status, last.started_at), ("join", Some(Status::Failure), None));
    events.push(started(&join));
    let began = of_events(&rig, events).await;
    let page = buildscale_telemetry::history(&rig.tasks, rig.workspace, began, 0, 10).await.unwrap();
    let counts = page.stages[0].fork.clone().unwrap();
    assert_eq!((counts.merged, counts.failed, counts.succeeded), (1, 1, 0));
    let merge = page.stages[1].merge.clone().unwrap();
    assert_eq!(
        (merge.taken, merge.failed, merge.cancelled),
        (vec!["both/a".into()], vec![name("both/b")], vec![name("both/c")])
    );
    let given: Vec<&Value> = page.stages[1].input.as_array().unwrap().iter().map(|one| &one["child"]).collect();
    assert_eq!(given, ["both/a", "both/b"]);
}

/// Any event, about few nodes, so that events meet.
fn event() -> impl Strategy<Value = TaskEvent> {
    let node = || prop::sample::select(vec!["a", "b", "a/b", ""]).prop_map(NodeId::from);
    let child =
        || prop::sample::select(vec!["a/b", "a/b[0]", "b/a[7]", "", "x"]).prop_map(|name| ChildName(name.into()));
    let status = || prop::sample::select(vec![Status::Success, Status::Failure, Status::Partial]);
    let end = (status(), any::<bool>())
        .prop_map(|(status, merged)| Box::new(ChildEnd { status, output: json!(1), merged, lost: 0, error: None }));
    let chat = ChatId(Uuid::nil());
    let asked = Question { name: "q".into(), question: "?".into(), schema: json!({}), buttons: None };
    prop_oneof![
        (node(), 1..4_u32).prop_map(|(node, attempt)| TaskEvent::NodeStarted {
            node,
            attempt,
            retry: None,
            queue_ms: 1,
            at: at(1)
        }),
        (node(), 0..3_u32).prop_map(|(node, number)| TaskEvent::NodeStarted {
            node,
            attempt: 2,
            retry: Some(Retry { number, error: Error::new(Code::Timeout, "late") }),
            queue_ms: 1,
            at: at(1)
        }),
        (node(), status()).prop_map(|(node, status)| TaskEvent::NodeFinished {
            node,
            attempt: 1,
            status,
            output: json!({ "b": 1, "a": [null] }),
            error: None,
            metrics: NodeMetrics::default(),
            at: at(2)
        }),
        (node(), node()).prop_map(|(from, to)| TaskEvent::Routed { from, to }),
        (node(), prop::collection::vec(node(), 1..3), 0..5_u32).prop_map(|(node, to, total)| TaskEvent::Forked {
            node,
            kind: ChildKind::Subtask,
            to,
            total
        }),
        (node(), 0..9_u32).prop_map(|(node, until)| TaskEvent::Spawned { node, until }),
        (child(), end).prop_map(|(child, end)| TaskEvent::ChildFinished { child, end }),
        (node(), child(), prop::collection::vec(0..9_u32, 0..3)).prop_map(|(merge, child, place)| {
            let (from, child) = ("x".into(), child.to_string());
            let arrival = Arrival { merge, from, child, place, status: Status::Success, output: json!(2) };
            TaskEvent::ChildArrived { arrival: Box::new(arrival) }
        }),
        (node(), child(), child()).prop_map(|(node, failed, cancelled)| TaskEvent::Merged {
            node,
            taken: Vec::new(),
            failed: vec![failed],
            with_failed: true,
            ways: Vec::new(),
            cancelled: vec![cancelled]
        }),
        (node(), 0..3_u32).prop_map(move |(node, round)| TaskEvent::AgentAsked {
            node,
            chat,
            round,
            prompt: String::new()
        }),
        node().prop_map(|node| TaskEvent::ContextAssembled { node, context: Box::default() }),
        node().prop_map(|node| TaskEvent::Denied { node, what: "w".into(), rule: "r".into() }),
        node().prop_map(|node| {
            let (tool, args, output) = ("t".into(), String::new(), String::new());
            let used = ToolUse {
                tool,
                args,
                status: Status::Partial,
                output,
                code: None,
                duration_ms: 1,
                queue_ms: 0,
                resources: None,
            };
            TaskEvent::ToolUsed { node, used: Box::new(used) }
        }),
        node().prop_map(move |node| TaskEvent::Asked {
            node,
            question_id: QuestionId(Uuid::nil()),
            questions: vec![asked.clone()],
            at: at(3),
            expires_at: None
        }),
        node().prop_map(|node| TaskEvent::Answered { node, answers: Map::new(), by: "me".into(), at: at(4) }),
        node().prop_map(|node| TaskEvent::PausedBefore { node, at: at(5) }),
        any::<bool>().prop_map(|step| TaskEvent::Continued { step, at: at(6) }),
        node().prop_map(|merge| TaskEvent::WentUp { merge, owner: TaskId(Uuid::nil()) }),
        status().prop_map(|status| TaskEvent::Finished {
            status,
            output: json!(null),
            exit: None,
            error: None,
            at: at(7)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// For any log: its history is the same twice, pages meet, and nothing panics.
    #[test]
    fn s6_any_log_has_a_history_and_a_trace(events in prop::collection::vec(event(), 0..40), limit in 1..7_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let rig = Rig::new(0).await;
            let task = of_events(&rig, events).await;
            let trace = rig.trace(task).await;
            assert_eq!(rig.trace(task).await, trace);
            for line in trace.lines() {
                assert!(serde_json::from_str::<Value>(line).unwrap().get("task").is_some(), "{line}");
            }
            let whole = buildscale_telemetry::history(&rig.tasks, rig.workspace, task, 0, 1_000).await.unwrap();
            let (mut stages, mut after) = (Vec::new(), 0);
            loop {
                let page = buildscale_telemetry::history(&rig.tasks, rig.workspace, task, after, limit).await.unwrap();
                stages.extend(page.stages.iter().map(|stage| (stage.number, stage.node.clone(), stage.input.clone())));
                match page.next_cursor {
                    Some(next) => after = next.parse().unwrap(),
                    None => break,
                }
            }
            let expected: Vec<_> =
                whole.stages.iter().map(|stage| (stage.number, stage.node.clone(), stage.input.clone())).collect();
            assert_eq!(stages, expected);
            let diff = buildscale_telemetry::diff(&rig.tasks, rig.workspace, task, task).await.unwrap();
            assert_eq!(diff.parts, None);
        });
    }
}
