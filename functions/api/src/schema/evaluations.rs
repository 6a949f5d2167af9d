//! How evaluations look.

use super::{FlowRef, InnerError, TaskStatus, ValueDifference};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// The cases to run, and whether to compare or to bless.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluationSelection {
    /// The suites, by name; those that are enabled when none.
    #[schema(required = false)]
    pub suites: Vec<String>,
    /// Only cases with one of these tags; all when none.
    #[schema(required = false)]
    pub tags: Vec<String>,
    /// Only these cases, each as `ID` or as `SUITE/ID`; all when none.
    #[schema(required = false)]
    pub cases: Vec<String>,
    /// Makes golden files of the results, instead of comparing with them.
    #[schema(required = false)]
    pub bless: bool,
}

/// The progress of an evaluation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationStatus {
    /// It was accepted.
    Queued,
    /// Cases run.
    Running,
    /// Every case has its result, or the evaluation has an `error` that ended it early.
    Finished,
}

/// The outcome of a case.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaseOutcome {
    /// Everything is as it must be.
    Passed,
    /// So is everything but the golden files, which were written anew.
    Blessed,
    /// Something is not as it must be.
    Failed,
    /// It could not be run to its end.
    Error,
    /// It is disabled.
    Skipped,
}

/// The result of one case.
#[derive(Serialize, ToSchema)]
pub struct CaseResult {
    /// Its suite.
    pub suite: String,
    /// Its id in the suite.
    pub case: String,
    /// The outcome.
    pub outcome: CaseOutcome,
    /// Why it failed, or could not be run.
    #[schema(required = false)]
    pub failures: Vec<String>,
    /// The places where values differ: `a` is the expected value, `b` the actual one.
    #[schema(required = false)]
    pub differences: Vec<ValueDifference>,
    /// The task that was run for it.
    pub task_id: Option<Uuid>,
    /// The workspace that was made for it, where it was kept because it did not pass.
    pub workspace_id: Option<Uuid>,
    /// The task's status.
    pub status: Option<TaskStatus>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// An evaluation of a flow.
#[derive(Serialize, ToSchema)]
pub struct Evaluation {
    /// Its id.
    pub evaluation_id: Uuid,
    /// The workspace that its flow is of.
    pub workspace_id: Uuid,
    /// The flow.
    pub flow: FlowRef,
    /// Its progress.
    pub status: EvaluationStatus,
    /// The requested cases.
    pub selection: EvaluationSelection,
    /// How many cases there are.
    pub total: u64,
    /// How many have passed.
    pub passed: u64,
    /// How many have not.
    pub failed: u64,
    /// How many are disabled.
    pub skipped: u64,
    /// The results there are, in the order of the manifest.
    pub cases: Vec<CaseResult>,
    /// The reason that ended it before its last case; `CANCELLED` when a person stopped it.
    pub error: Option<InnerError>,
    /// The caller who began it.
    #[schema(value_type = Value)]
    pub by: Value,
    /// When it was accepted.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When its last case had ended.
    #[schema(format = DateTime)]
    pub finished_at: Option<String>,
}

/// A page of evaluations.
#[derive(Serialize, ToSchema)]
pub struct EvaluationPage {
    /// The evaluations, the newest first.
    pub evaluations: Vec<Evaluation>,
    /// The cursor of the next page; none at the end.
    pub next_cursor: Option<String>,
}
