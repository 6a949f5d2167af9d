//! Decisions on paths.

use serde::Serialize;
use utoipa::ToSchema;

/// The decision on one action.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccessDecision {
    /// The action.
    #[schema(example = "write")]
    pub action: &'static str,
    /// `permit`, `deny`, or `ask`: a person is asked.
    #[schema(example = "permit")]
    pub decision: &'static str,
    /// The policy that decided: the id of a built-in one, or `<file>#<id>` for one of the workspace.
    #[schema(example = "agent-works-in-projects")]
    pub policy: String,
    /// Why, as the policy says it.
    pub why: String,
}

/// The decisions on a path.
#[derive(Serialize, ToSchema)]
pub(crate) struct AccessExplanation {
    /// The path.
    #[schema(example = "/projects/summary.md")]
    pub path: String,
    /// Whose access it is.
    #[schema(example = "agent:assistant for user:0198c0de-0000-7000-8000-000000000001")]
    pub principal: String,
    /// One per action.
    pub decisions: Vec<AccessDecision>,
}
