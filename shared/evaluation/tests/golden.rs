//! Persisted shapes of evaluations, as every version wrote them.

use buildscale_evaluation::{CaseResult, Evaluation, Outcome, Progress, Selection};
use domain::{Code, Error, EvaluationId, Principal, Sha256, Status, TaskId, Timestamp, WorkspaceId, task::FlowRef};
use flow::diff::Difference;
use serde_json::json;
use testkit::golden;
use uuid::Uuid;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const AT: Timestamp = Timestamp::from_millis(1_767_225_600_042);

const fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x019b_f537_f228_7cd3_aa1c_0000_0000_0000 + number)
}

fn flow() -> FlowRef {
    FlowRef { name: "review".into(), hash: Sha256::of(b"flow") }
}

#[test]
fn evaluations_are_read_for_ever() {
    let case = |outcome| CaseResult {
        suite: "smoke".into(),
        case: "one".into(),
        outcome,
        failures: vec!["it differs".into()],
        differences: vec![Difference { path: "/a".into(), a: Some(json!(1)), b: None }],
        task_id: Some(TaskId(id(1))),
        workspace_id: Some(WorkspaceId(id(2))),
        status: Some(Status::Failure),
        duration_ms: 12,
    };
    use Outcome::{Blessed, Error as Broken, Failed, Passed, Skipped};
    let evaluation = |status| Evaluation {
        evaluation_id: EvaluationId(id(3)),
        workspace_id: WorkspaceId(id(2)),
        flow: flow(),
        status,
        selection: Selection {
            suites: vec!["smoke".into()],
            tags: vec!["fast".into()],
            cases: vec!["smoke/one".into()],
            bless: true,
        },
        total: 5,
        passed: 2,
        failed: 2,
        skipped: 1,
        cases: [Passed, Blessed, Failed, Broken, Skipped].map(case).into(),
        error: Some(Error::new(Code::Internal, "it broke")),
        by: Principal::System,
        created_at: AT,
        finished_at: Some(AT),
    };
    golden::check(ROOT, "evaluations", &[Progress::Queued, Progress::Running, Progress::Finished].map(evaluation));
}
