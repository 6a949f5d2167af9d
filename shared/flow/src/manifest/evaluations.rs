//! `evaluations.yaml`: inputs whose outcomes are known (spec 002 §10.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The evaluations of a flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["suites"]))]
pub struct Evaluations {
    /// The version of this file, for people.
    pub version: Value,
    /// The suites.
    pub suites: Vec<Suite>,
}

/// Cases that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// By which it can be chosen.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether it runs when nothing is chosen.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// A script for the model of all its cases, so that they are deterministic.
    pub script: Option<Value>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// One input and what must come of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its id, unique in the suite.
    #[schemars(length(min = 1))]
    pub id: String,
    /// The behaviour that it shows.
    pub description: Option<String>,
    /// By which it can be chosen, beside those of its suite.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether it runs.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The input of the task.
    #[serde(default)]
    pub input: Value,
    /// The start node; the default one when nothing is said.
    pub start: Option<String>,
    /// A script for the model, instead of the suite's.
    pub script: Option<Value>,
    /// The answers of people: by node, by the question's name. `null` for a node says that nobody answers, where the question has an
    /// end (`timeout_seconds`). An end that is after that of the case comes at once.
    #[serde(default)]
    pub answers: Map<String, Value>,
    /// Files of the workspace before it begins, by path.
    #[serde(default)]
    pub files: Map<String, Value>,
    /// How long it may take, in seconds.
    #[schemars(range(min = 0.001, max = 604800.0))]
    pub timeout_seconds: Option<f64>,
    /// The conditions at the end.
    pub assertions: Vec<Assertion>,
}

/// A condition at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// The kind of comparison.
    #[serde(rename = "type")]
    pub kind: AssertionKind,
    /// The part of the output that it is about, such as `items.0.name`; all of it when nothing is said.
    pub field_path: Option<String>,
    /// The node whose output it is about; the task's when nothing is said.
    pub node: Option<String>,
    /// The expected status, value, part or regular expression.
    #[serde(default)]
    pub expected: Value,
    /// For `expression`: a CEL expression that is true, over `input` (`output`, `status`, `input`: of the task) and `outputs`.
    pub expression: Option<String>,
    /// For `schema_valid`: a file of schemas/, without .json; that of the last node with one when nothing is said.
    pub schema: Option<String>,
    /// For `golden`: the file with the output; `golden/<suite>/<case>.json` when nothing is said. Blessing writes files of the folder
    /// `golden` alone.
    pub file: Option<String>,
    /// The message when the condition does not hold.
    pub message: Option<String>,
}

/// The kind of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AssertionKind {
    /// The task's status is `expected`.
    Status,
    /// It is `expected`.
    Equals,
    /// It has `expected` in it: a text in a text, an element in a list, keys in an object.
    Contains,
    /// It matches `expected`, a regular expression.
    Matches,
    /// It fits a schema.
    SchemaValid,
    /// It is what the golden file says.
    Golden,
    /// An expression is true.
    Expression,
}

fn yes() -> bool {
    true
}
