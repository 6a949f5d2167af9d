//! The flows in the box, run on a real hub: every case of every one of them is green.
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{Code, Status};
use evaluation::{Outcome, Selection};
use flow::built_in;
use flows::{Hub, until};
use serde_json::json;

const SILENT: &str = "rules: []";
/// The script that answers while no model is configured.
const DEMO: &str = include_str!("../../../../shared/models/src/demo.yaml");

async fn green(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, SILENT).await;
    let evaluation = hub.evaluate(name, Selection::default()).await;
    let failures: Vec<String> = evaluation
        .cases
        .iter()
        .filter(|case| case.outcome != Outcome::Passed)
        .map(|case| format!("{}/{}: {}", case.suite, case.case, case.failures.join("\n  ")))
        .collect();
    assert!(evaluation.is_green(), "{name}:\n{}\n{:?}", failures.join("\n"), evaluation.error);
    assert!(evaluation.passed >= 3 && evaluation.passed == evaluation.total);
    hub.close().await;
}

macro_rules! green {
    ($($flow:ident),*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $flow() {
            green(stringify!($flow)).await;
        }
    )*

        #[test]
        fn s9_every_flow_in_the_box_is_run_here() {
            assert_eq!(built_in::names().collect::<Vec<_>>(), [$(stringify!($flow)),*]);
        }
    };
}

green!(
    content_campaign,
    handoff_code,
    handoff_plan,
    handoff_review,
    parallel_agents,
    plan_and_execute,
    planner_executors,
    review
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_workspace_has_them_and_its_own_go_before() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, SILENT).await;
    let flows = hub.tasks.flows();
    let listed = flows.list(hub.workspace).await.unwrap();
    assert_eq!(listed.iter().map(|flow| flow.name.as_str()).collect::<Vec<_>>(), built_in::names().collect::<Vec<_>>());
    assert!(listed.iter().all(|flow| flow.built_in && flow.faults == 0 && flow.nodes >= 5));

    let own = "nodes:
  - {id: begin, kind: deterministic, role: start, context: none, op: {expr: \"'mine'\"}}
  - {id: end, kind: deterministic, role: exit, context: none}
edges: [{from: begin, to: end}]
";
    hub.flow("review", [("workflow.yaml", own)]).await;
    let listed = flows.list(hub.workspace).await.unwrap();
    assert_eq!(listed.len(), built_in::names().count(), "one of a name");
    assert!(listed.iter().all(|flow| flow.built_in == (flow.name != "review")));
    assert_eq!(hub.run("review", json!({})).await.output, Some(json!("mine")));

    let unknown = flows.load(hub.workspace, "revue").await.unwrap_err();
    assert!(unknown.hint.unwrap_or_default().contains("planner_executors, review"));
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_is_no_flow_or_too_large_hides_no_other_flow() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, SILENT).await;
    let flows = hub.tasks.flows();
    hub.write("/system/flows/.git/workflow.yaml", "on: ['/projects/*.md']\nnodes: []\nedges: []\n").await;
    hub.write("/system/flows/large/notes.txt", &"x".repeat(5 * 1024 * 1024)).await;

    let listed = flows.list(hub.workspace).await.unwrap();
    let faulty: Vec<_> = listed.iter().filter(|flow| flow.faults > 0).map(|flow| (&*flow.name, flow.faults)).collect();
    assert_eq!(faulty, [("large", 1)]);
    assert_eq!(listed.len(), built_in::names().count() + 1);
    assert_eq!(flows.load(hub.workspace, "large").await.unwrap_err().code, Code::PayloadTooLarge);
    let unknown = flows.load(hub.workspace, "larch").await.unwrap_err();
    assert!(unknown.hint.is_some_and(|hint| hint.contains("large") && !hint.contains(".git")));

    // Nor does a version of a file start what can never be loaded.
    let opened = hub.workspaces.open(hub.workspace, workspace::Access::platform("a test")).await.unwrap();
    let triggers = engine::Triggers::default().of(&opened).await.unwrap();
    assert!(triggers.contains_key("handoff_plan") && !triggers.contains_key(".git"));
    hub.close().await;
}

/// A campaign is a plan that people watch: a file, and steps that are told as they are done (spec 000 §4.5).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_campaign_keeps_a_plan_and_tells_its_progress() {
    const SCRIPT: &str = r#"
rules:
- {when: {system: '^You are a researcher'}, steps: [{text: '{"findings": "Tea is grown in the hills."}'}]}
- {when: {system: '^You are an SEO specialist'}, steps: [{text: '{"words": ["tea", "pause"]}'}]}
- {when: {system: '^You are a strategist'}, steps: [{text: '{"message": "Tea is a pause."}'}]}
- {when: {system: '^You are a writer'}, steps: [{text: '{"channel": "blog", "title": "The pause", "body": "Ten minutes."}'}]}
"#;
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, SCRIPT).await;
    let input = json!({ "campaign": "spring", "brief": "Our new tea", "channels": ["blog"] });
    let task = hub.create("content_campaign", input).await.unwrap();
    hub.answer(task, "approve", json!({ "approved": true })).await;
    let ended = hub.finished(task).await;
    assert_eq!(ended.output.unwrap()["files"], json!(["/content/spring/blog.md"]));
    let plan = hub.read("/content/spring/campaign-plan.md").await.unwrap();
    assert_eq!(plan.matches("- [x] ").count(), 6, "{plan}");
    let mut steps = Vec::new();
    let tell = |_, event: &domain::TaskEvent| {
        if let domain::TaskEvent::PlanStep { step, status, done, total: 6, .. } = event {
            steps.push((*step, status.clone(), *done));
        }
    };
    hub.tasks.each_event(hub.workspace, task, tell).await.unwrap();
    let all = (1..=6).map(|step| (step, "pending".to_owned(), 0));
    let done = (1..=6).map(|step| (step, "done".to_owned(), step));
    assert_eq!(steps, all.chain(done).collect::<Vec<_>>());
    hub.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_offline_demo_takes_every_flow_in_the_box_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::open(&folder, DEMO).await;
    // This file starts the three flows that hand on a plan, one after the other.
    hub.write("/projects/app/plan.md", "---\nstatus: draft\n---\nParse dates.\n").await;
    hub.write("/projects/team/work.md", "- [ ] Parse dates\n").await;
    let campaign = json!({ "campaign": "spring", "brief": "Our new tea", "channels": ["blog"] });
    let task = hub.create("content_campaign", campaign).await.unwrap();
    hub.answer(task, "approve", json!({ "approved": true })).await;
    let mut ended = vec![hub.finished(task).await];
    for (flow, input) in [
        ("parallel_agents", json!({ "plan": "/projects/team/work.md", "result": "/projects/team/result.md" })),
        ("plan_and_execute", json!({ "goal": "Document the parser" })),
        ("planner_executors", json!({ "request": "Document the parser" })),
        ("review", json!({ "task": "Document the parser" })),
    ] {
        ended.push(hub.run(flow, input).await);
    }
    for view in ended {
        assert_eq!(view.status, Status::Success, "{}: {:?}", view.flow.name, view.error);
    }
    let plan = until(|| async {
        let plan = hub.read("/projects/app/plan.md").await?;
        plan.contains("status: done").then_some(plan)
    });
    assert!(plan.await.contains("# A demo of a plan"));
    hub.close().await;
}
