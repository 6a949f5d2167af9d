//! Sessions of the planner chat (spec 003): a chat whose turns begin with an analysis, and whose hard messages become a plan that executors
//! carry out.

use crate::{Budget, CallId, ChatId, Error, Timestamp, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The subject of a session, and the limits of its executors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// The kind of work.
    pub context: SessionContext,
    /// The entity that it is about, such as the name of a project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// The entity within a project that the messages are about, as the client says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Value>,
    /// Whether a person approves each plan before its executors begin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approve_plans: bool,
    /// The limits of executors.
    #[serde(default)]
    pub executors: ExecutorLimits,
    /// The budgets of the parts of its contexts.
    #[serde(default, skip_serializing_if = "SessionBudget::are_usual")]
    pub budgets: SessionBudget,
    /// The parts of its system text that were cut to their budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<Cut>,
    /// The time at which the location in its system text was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
}

/// The kinds of work of a session (spec 003 §2): each has instructions and tools of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionContext {
    /// Everything of the person.
    #[default]
    Global,
    /// A project, looked at.
    Project,
    /// A calendar, looked at.
    Calendar,
    /// A task, looked at.
    Task,
    /// A project is made.
    ProjectCreate,
    /// A project is changed.
    ProjectUpdate,
    /// A project is judged; nothing is written.
    ProjectAudit,
    /// Scenarios of a project.
    ProjectForecast,
    /// A task is changed.
    TaskUpdate,
    /// The settings of the daily brief are changed.
    DailyBriefUpdate,
}

/// The limits of executors, which the machine of chats enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutorLimits {
    /// How many run at once.
    pub at_once: u32,
    /// Calls of tools of one executor.
    pub max_calls: u32,
    /// How often the same call may be made again after it failed.
    pub max_retries: u32,
    /// The time of one executor, in milliseconds.
    pub max_wall_ms: u64,
    /// The tokens of one executor, of all its calls of the model.
    #[serde(skip_serializing_if = "are_usual_tokens")]
    pub max_tokens: u64,
}

impl Default for ExecutorLimits {
    fn default() -> Self {
        Self { at_once: 3, max_calls: 10, max_retries: 2, max_wall_ms: 60_000, max_tokens: 30_000 }
    }
}

fn are_usual_tokens(tokens: &u64) -> bool {
    *tokens == ExecutorLimits::default().max_tokens
}

/// The budgets of the parts of contexts (spec 003 §2), in tokens of four characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionBudget {
    /// Of the planner: the conversation that the analysis of a message reads.
    pub conversation: u32,
    /// Of the planner: the location in its system text.
    pub location: u32,
    /// Of the planner: the profile of the person in its system text.
    pub profile: u32,
    /// Of an executor: its task, and the goal of it.
    pub task: u32,
    /// Of an executor: the results of other steps.
    pub data: u32,
    /// Of a session: the result of a tool, and the results of a plan together.
    #[serde(skip_serializing_if = "are_usual_results")]
    pub results: u32,
    /// Of the planner: the declarations of its tools.
    #[serde(skip_serializing_if = "are_usual_tools")]
    pub tools: u32,
    /// Of an executor: the declarations of its tools.
    #[serde(skip_serializing_if = "are_usual_tools_of_executors")]
    pub executor_tools: u32,
}

impl Default for SessionBudget {
    fn default() -> Self {
        Self {
            conversation: 2_500,
            location: 1_000,
            profile: 300,
            task: 200,
            data: 400,
            results: 1_700,
            tools: 1_500,
            executor_tools: 400,
        }
    }
}

fn are_usual_tools(tokens: &u32) -> bool {
    *tokens == SessionBudget::default().tools
}

fn are_usual_tools_of_executors(tokens: &u32) -> bool {
    *tokens == usual_tools_of_executors()
}

fn usual_tools_of_executors() -> u32 {
    SessionBudget::default().executor_tools
}

fn are_usual_results(tokens: &u32) -> bool {
    *tokens == SessionBudget::default().results
}

impl SessionBudget {
    fn are_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Of a budget, the bytes of text that fit it.
    pub fn bytes(tokens: u32) -> usize {
        tokens as usize * 4
    }
}

/// A part of a context that did not fit its budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// The part.
    pub part: String,
    /// Its tokens before, estimated.
    pub tokens: u64,
    /// The tokens that were kept.
    pub kept: u64,
}

/// How much work a message needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// An answer at once.
    Simple,
    /// One call of a tool, or a few.
    Tool,
    /// A plan whose steps executors carry out.
    Complex,
}

/// The analysis of a message (spec 003 §5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// How much work it needs.
    pub strategy: Strategy,
    /// Why.
    pub reasoning: String,
    /// How many operations it may take.
    pub estimated_operations: u32,
    /// Whether tools are needed.
    pub requires_tools: bool,
    /// Whether executors are needed.
    pub requires_executors: bool,
}

/// The author of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnalysisOrigin {
    /// A rule that is certain; no model was asked.
    Rule,
    /// The model.
    Model,
    /// Nobody: the model's answer was missing or wrong.
    Fallback,
}

/// A step of a session's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// Its number, from 1.
    pub step: u32,
    /// The kind of work, such as `search_project`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The work of its executor.
    pub description: String,
    /// The result that it has to come to.
    pub goal: String,
    /// The limits that its executor keeps to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// The tools that its executor has.
    pub tools: Vec<String>,
    /// The steps whose results it needs.
    pub depends_on: Vec<u32>,
}

/// A plan as a model writes it: the arguments of the call that it is.
#[derive(Deserialize)]
struct AskedPlan {
    steps: Vec<AskedStep>,
}

#[derive(Deserialize)]
struct AskedStep {
    step: u32,
    #[serde(default, rename = "type")]
    kind: String,
    description: String,
    #[serde(default)]
    goal: String,
    #[serde(default)]
    constraints: Vec<String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default, alias = "dependsOn")]
    depends_on: Vec<u32>,
}

impl PlannedStep {
    /// The steps of a plan as a model writes it, unchecked.
    ///
    /// # Errors
    /// The fault of a text that has another form, with its line and column.
    pub fn read_all(args: &str) -> Result<Vec<Self>, serde_json::Error> {
        let AskedPlan { steps } = serde_json::from_str(args)?;
        Ok(steps.into_iter().map(Self::of).collect())
    }

    fn of(asked: AskedStep) -> Self {
        let AskedStep { step, kind, description, goal, mut constraints, mut tools, mut depends_on } = asked;
        constraints.retain(|constraint| !constraint.trim().is_empty());
        depends_on.sort_unstable();
        depends_on.dedup();
        // Providers refuse a request that declares a tool twice.
        let mut listed = BTreeSet::new();
        tools.retain(|tool| listed.insert(tool.clone()));
        let goal = if goal.trim().is_empty() { description.clone() } else { goal };
        let kind = if kind.trim().is_empty() { "step".to_owned() } else { kind };
        Self { step, kind, description, goal, constraints, tools, depends_on }
    }
}

/// The task of an executor: all that it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutorTask {
    /// Its id: the plan and the step.
    pub id: String,
    /// Its work.
    pub description: String,
    /// The result that it has to come to.
    pub goal: String,
    /// The limits that it keeps to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// The results of the steps that its step depends on, by their numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The parts that did not fit its context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut: Vec<Cut>,
    /// The budget that is set aside for it until it ends.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::budget::of_turn")]
    pub budget: Option<Budget>,
}

/// The end of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepOutcome {
    /// Whether it came to its goal.
    pub success: bool,
    /// The executor's last words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// Calls of tools.
    pub tool_calls: u32,
    /// Its usage.
    pub usage: Usage,
    /// From its start to its end, in milliseconds.
    pub duration_ms: u64,
}

/// The place of an executor: its chat works for a session instead of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorOf {
    /// The session.
    pub session: ChatId,
    /// The call of `run_plan` that is the plan.
    pub plan: CallId,
    /// The step.
    pub step: u32,
    /// Calls of tools that it may make.
    pub max_calls: u32,
    /// How often the same call may be made again after it failed.
    pub max_retries: u32,
    /// Tokens of the declarations of its tools.
    #[serde(default = "usual_tools_of_executors", skip_serializing_if = "are_usual_tools_of_executors")]
    pub tools_tokens: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_session_of_before_has_the_usual_budgets_and_others_come_back_as_they_were() {
        let before = json!({ "at_once": 2, "max_calls": 9, "max_retries": 1, "max_wall_ms": 50_000 });
        let read: ExecutorLimits = serde_json::from_value(before.clone()).unwrap_or_default();
        assert_eq!((read.at_once, read.max_tokens, json!(read)), (2, 30_000, before));
        let before = json!({ "conversation": 2_000, "location": 900, "profile": 250, "task": 150, "data": 300 });
        let read: SessionBudget = serde_json::from_value(before.clone()).unwrap_or_default();
        assert_eq!((read.location, read.results, json!(read)), (900, 1_700, before));
        let limits = ExecutorLimits { max_tokens: 5_000, ..ExecutorLimits::default() };
        let budgets = SessionBudget { results: 900, tools: 800, executor_tools: 300, ..read };
        assert_eq!(serde_json::from_value::<ExecutorLimits>(json!(limits)).ok(), Some(limits));
        assert_eq!(serde_json::from_value::<SessionBudget>(json!(budgets)).ok(), Some(budgets));
    }
}
