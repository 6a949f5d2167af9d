//! The record of an evaluation, as it is kept and shown.

use domain::{Error, EvaluationId, Principal, Status, TaskId, Timestamp, WorkspaceId, task::FlowRef};
use flow::diff::Difference;
use serde::{Deserialize, Serialize};

/// The selection of cases, and the reason for the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// The suites, by name; those that are enabled when none.
    pub suites: Vec<String>,
    /// Only cases that have, or whose suite has, one of these tags; all when none.
    pub tags: Vec<String>,
    /// Only these cases, each as `ID` or as `SUITE/ID`; all when none. Without any the key is left out, so that processes of earlier versions read the
    /// record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<String>,
    /// Makes golden files of the outputs, instead of comparing with them.
    pub bless: bool,
}

/// The progress of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// It was accepted.
    Queued,
    /// Cases run.
    Running,
    /// Every case has its result, or the evaluation has an `error` that ended it early.
    Finished,
}

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseResult {
    /// Its suite.
    pub suite: String,
    /// Its id in the suite.
    pub case: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// Why it failed, or could not be run: one text per assertion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Differences: `a` is the expected value, `b` the actual one; paths are JSON pointers in the asserted values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// The task that was run for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The workspace that was made for it, and kept because it did not pass: its task can be looked at there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<WorkspaceId>,
    /// The task's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl CaseResult {
    /// Of a case that has not run.
    pub(super) fn new(suite: &str, case: &str, outcome: Outcome) -> Self {
        Self {
            suite: suite.into(),
            case: case.into(),
            outcome,
            failures: Vec::new(),
            differences: Vec::new(),
            task_id: None,
            workspace_id: None,
            status: None,
            duration_ms: 0,
        }
    }
}

/// An evaluation: one run of some cases of a flow. Each result writes the record anew, so a process that does not know all of its
/// keys leaves it to others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Its id.
    pub evaluation_id: EvaluationId,
    /// The workspace that its flow is of.
    pub workspace_id: WorkspaceId,
    /// The flow, with the hash of the manifests that all its cases run.
    pub flow: FlowRef,
    /// Its progress.
    pub status: Progress,
    /// The requested selection.
    pub selection: Selection,
    /// How many cases there are.
    pub total: u64,
    /// How many have passed, those whose golden files were written included.
    pub passed: u64,
    /// How many have not: those that failed, and those that could not be run.
    pub failed: u64,
    /// How many are disabled.
    pub skipped: u64,
    /// The results there are, in the order of the manifest.
    pub cases: Vec<CaseResult>,
    /// The error that ended it early; `CANCELLED` when a person stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// The caller who started it.
    pub by: Principal,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its last case had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

impl Evaluation {
    /// Whether nothing failed.
    pub fn is_green(&self) -> bool {
        self.status == Progress::Finished && self.failed == 0 && self.error.is_none()
    }

    pub(super) fn add(&mut self, result: CaseResult) {
        match result.outcome {
            Outcome::Passed | Outcome::Blessed => self.passed += 1,
            Outcome::Failed | Outcome::Error => self.failed += 1,
            Outcome::Skipped => self.skipped += 1,
        }
        self.cases.push(result);
    }
}
