//! Deterministic operations (spec 002 §2.2): the same scope always gives the same value.
//!
//! ```text
//!   expr      CEL over `input`, `context`, `outputs`, `task`         bounded, cached, integers stay integers
//!   template  the same expressions inside of texts, objects, lists
//!   function  registered Rust functions, `module:function`; with a signature agents can call them, too
//!   alias     the field's usual tool names, and their arguments, as our built-in tools have them
//! ```
//!
//! Nothing here does I/O, reads a clock or draws a random number: a replay evaluates to the same bytes.

pub mod alias;
mod bridge;
mod catalog;
pub mod expr;
pub mod function;
mod rewrite;
pub mod signature;
pub mod template;

pub use alias::alias;
pub use bridge::is_match;
pub use function::Functions;
pub use signature::Signature;

use crate::flow::Op;
use domain::{Code, Error};
use serde_json::Value;
use std::sync::Arc;

/// The outputs of nodes that have run, by id; none for one that has not.
pub type Outputs<'a> = dyn Fn(&str) -> Option<Arc<Value>> + Sync + 'a;

/// The most memory of a compiled regular expression, in bytes: in expressions, and in assertions of evaluations.
pub(crate) const MAX_COMPILED: usize = 1024 * 1024;

/// The names that an expression knows.
pub const ROOTS: [&str; 4] = ["input", "context", "outputs", "task"];

/// The inputs of an operation.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The node's input, as `input`.
    pub input: &'a Value,
    /// The assembled context, as `context`: [`domain::task::AssembledContext`] as JSON.
    pub context: &'a Value,
    /// Outputs of earlier nodes, as `outputs.<node>`.
    pub outputs: &'a Outputs<'a>,
    /// The task's ids and settings, as `task`.
    pub task: &'a Value,
}

/// The outputs of no node.
pub fn no_outputs(_node: &str) -> Option<Arc<Value>> {
    None
}

impl<'a> Scope<'a> {
    /// A scope with an input and nothing else.
    pub fn of(input: &'a Value) -> Self {
        Self { input, context: &Value::Null, outputs: &no_outputs, task: &Value::Null }
    }

    /// The same scope with another input.
    #[must_use]
    pub fn with_input(self, input: &'a Value) -> Self {
        Self { input, ..self }
    }
}

impl std::fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("input", &self.input).finish_non_exhaustive()
    }
}

/// Evaluates an operation that needs nothing from the outside; none for one that does (a tool, a command, an agent,
/// people).
///
/// # Errors
/// Those of the operation: [`expr::eval`], [`template::render`] or [`Functions::call`].
pub fn pure(op: &Op, functions: &Functions, scope: &Scope<'_>) -> Option<Result<Value, Error>> {
    match op {
        Op::Identity => Some(Ok(scope.input.clone())),
        Op::Expr(source) => Some(expr::eval(source, scope)),
        Op::Template(template) => Some(template::render(template, scope)),
        Op::Function(name) => Some(functions.call(name, scope.input, scope)),
        Op::Tool { .. } | Op::Command(_) | Op::Agent { .. } | Op::Ask(_) => None,
    }
}

/// The score of one arrival at a merge by `best_of`: a finite number. `arrival` has `from, child, status, output`.
///
/// # Errors
/// `UNPROCESSABLE` when the expression fails or gives no finite number.
pub fn score(source: &str, arrival: &Value, scope: &Scope<'_>) -> Result<f64, Error> {
    let number = |value: Value| {
        value.as_f64().filter(|score| score.is_finite()).ok_or_else(|| {
            Error::new(Code::Unprocessable, format!("the score {source:?} gives {}, not a number", expr::shown(&value)))
        })
    };
    // One of thousands may have no score, and its name leads to it.
    expr::eval(source, &scope.with_input(arrival)).and_then(number).map_err(|error| {
        let child = arrival.get("child").and_then(Value::as_str).filter(|child| !child.is_empty());
        match child {
            Some(child) => Error { message: format!("{child} has no score: {}", error.message), ..error },
            None => error,
        }
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::flow::CommandRule;
    use serde_json::json;

    #[test]
    fn s2_2_deterministic_operations_are_pure_and_the_others_are_left_to_the_outside() {
        let input = json!({"b": 1, "a": [1, 2.0, null]});
        let (functions, scope) = (Functions::builtin(), Scope::of(&input));
        let run = |op: &Op| pure(op, &functions, &scope).map(|result| result.unwrap());
        assert_eq!(run(&Op::Identity).unwrap().to_string(), input.to_string(), "keys keep their order");
        assert_eq!(run(&Op::Expr("input.b + 1".into())), Some(json!(2)));
        assert_eq!(run(&Op::Template(json!({"x": "{{input.a}}"}))), Some(json!({"x": [1, 2.0, null]})));
        assert_eq!(run(&Op::Function("json:keys".into())), Some(json!(["b", "a"])));
        let command = CommandRule { words: vec!["ls".into()], keep: Vec::new() };
        assert_eq!(pure(&Op::Command(command), &functions, &scope), None);
    }

    #[test]
    fn s3_3_the_best_is_found_by_a_number_and_by_nothing_else() {
        let arrival = json!({"from": "a", "child": "split/a", "status": "success", "output": {"grade": 7}});
        let scope = Scope::of(&Value::Null);
        assert_eq!(score("input.output.grade", &arrival, &scope).unwrap(), 7.0);
        assert_eq!(score("input.status == 'success' ? 1.5 : 0.0", &arrival, &scope).unwrap(), 1.5);
        for (source, why) in [("input.from", "not a number"), ("input.output.rank", "there is no")] {
            let error = score(source, &arrival, &scope).unwrap_err().message;
            assert!(error.starts_with("split/a has no score: ") && error.contains(why), "{error}");
        }
    }
}
