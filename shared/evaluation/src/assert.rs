//! Assertions about the end of a case: pure functions over the result of its task.

use domain::Status;
use flow::{
    diff::{Difference, differences},
    flow::Schema,
    manifest::{Assertion, AssertionKind},
    op::{self, Scope},
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc};

/// The most differences that are told of one value.
const MOST_DIFFERENCES: usize = 20;
/// How much of a value a reason shows, in characters.
const SHOWN: usize = 300;

/// The result of a case's task.
#[derive(Debug)]
pub struct Subject {
    /// The task's input.
    pub input: Value,
    /// Its status.
    pub status: Status,
    /// Its output.
    pub output: Value,
    /// The output of each node, children included; a list where it ran more than once.
    pub outputs: BTreeMap<String, Arc<Value>>,
    /// Each execution of a node, in order: `{task, node, status, output}`, `task` being the child's name, or null.
    pub history: Vec<Value>,
}

impl Subject {
    /// From the executions of its nodes.
    pub fn new(input: Value, status: Status, output: Value, history: Vec<Value>) -> Self {
        let mut runs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for run in &history {
            let node = run.get("node").and_then(Value::as_str).unwrap_or_default();
            runs.entry(node.into()).or_default().push(run.get("output").cloned().unwrap_or_default());
        }
        let one = |mut outputs: Vec<Value>| match outputs.len() {
            1 => outputs.pop().unwrap_or_default(),
            _ => Value::Array(outputs),
        };
        let outputs = runs.into_iter().map(|(node, outputs)| (node, Arc::new(one(outputs)))).collect();
        Self { input, status, output, outputs, history }
    }

    /// The status of the last execution of a node.
    fn status_of(&self, node: &str) -> Option<&str> {
        let of_node = |run: &&Value| run.get("node").and_then(Value::as_str) == Some(node);
        self.history.iter().rev().find(of_node)?.get("status")?.as_str()
    }
}

/// Values outside of an assertion that it compares with.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpectedValues<'a> {
    /// For `schema_valid`: the schema.
    pub schema: Option<&'a Schema>,
    /// For `golden`: the text of the file; none when there is no such file.
    pub golden: Option<&'a str>,
}

/// Why an assertion does not hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssertionFailure {
    /// In words.
    pub reason: String,
    /// For `equals` and `golden`: the differences, `a` being the expected value and `b` the actual one.
    pub differences: Vec<Difference>,
}

impl From<String> for AssertionFailure {
    fn from(reason: String) -> Self {
        Self { reason, differences: Vec::new() }
    }
}

/// Whether the assertion holds.
///
/// # Errors
/// Why it does not, with the assertion's own message first where it has one.
pub fn check(assertion: &Assertion, subject: &Subject, given: ExpectedValues<'_>) -> Result<(), AssertionFailure> {
    holds(assertion, subject, given).map_err(|unmet| match &assertion.message {
        Some(message) => AssertionFailure { reason: format!("{message}: {}", unmet.reason), ..unmet },
        None => unmet,
    })
}

fn holds(assertion: &Assertion, subject: &Subject, given: ExpectedValues<'_>) -> Result<(), AssertionFailure> {
    let expected = &assertion.expected;
    match assertion.kind {
        AssertionKind::Status => {
            let whole = subject.status.to_string();
            let status = match &assertion.node {
                None => whole.as_str(),
                Some(node) => subject.status_of(node).ok_or_else(|| did_not_run(node))?,
            };
            met(expected.as_str() == Some(status), || format!("the status is {status}, not {}", shorten(expected)))
        }
        AssertionKind::Expression => {
            let source = assertion.expression.as_deref().unwrap_or_default();
            expression(source, subject)
        }
        kind => {
            let value = value(assertion, subject)?;
            match kind {
                AssertionKind::Equals => same(expected, value),
                AssertionKind::Contains => {
                    met(contains(value, expected), || format!("{} is not in {}", shorten(expected), shorten(value)))
                }
                AssertionKind::Matches => matches(value, expected.as_str().unwrap_or_default()),
                AssertionKind::SchemaValid => fits(value, given.schema),
                AssertionKind::Golden => golden(value, given.golden),
                // Looked at above.
                AssertionKind::Status | AssertionKind::Expression => Ok(()),
            }
        }
    }
}

fn met(is: bool, reason: impl FnOnce() -> String) -> Result<(), AssertionFailure> {
    if is { Ok(()) } else { Err(reason().into()) }
}

fn did_not_run(node: &str) -> AssertionFailure {
    format!("the node {node} did not run").into()
}

/// The value that an assertion is about: the task's output or a node's, or a part of it.
///
/// # Errors
/// The node did not run, or there is no such part.
pub fn value<'a>(assertion: &Assertion, subject: &'a Subject) -> Result<&'a Value, AssertionFailure> {
    let whole = match &assertion.node {
        None => &subject.output,
        Some(node) => subject.outputs.get(node).ok_or_else(|| did_not_run(node))?,
    };
    match &assertion.field_path {
        None => Ok(whole),
        Some(path) => part(whole, path).map_err(AssertionFailure::from),
    }
}

/// The part of a value at a path of names and indexes: `items.0.name`, or `items[0].name`.
fn part<'a>(whole: &'a Value, path: &str) -> Result<&'a Value, String> {
    let mut at = whole;
    for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        let next = match at {
            Value::Object(map) => map.get(step),
            Value::Array(list) => step.parse::<usize>().ok().and_then(|index| list.get(index)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        at = next.ok_or_else(|| format!("there is nothing at `{path}`: no `{step}` in {}", shorten(at)))?;
    }
    Ok(at)
}

fn same(expected: &Value, value: &Value) -> Result<(), AssertionFailure> {
    // Numbers are compared as numbers: a file that says 1.0 and a model that says 1 mean the same.
    if equal(expected, value) {
        return Ok(());
    }
    let differences = differences(expected, value, MOST_DIFFERENCES);
    let mut reason = "it differs from the expected value".to_owned();
    for difference in differences.iter().take(5) {
        let side = |side: &Option<Value>| side.as_ref().map_or_else(|| "nothing".into(), shorten);
        let place = if difference.path.is_empty() { "the whole" } else { &difference.path };
        reason.push_str(&format!("\n{place}: expected {}, got {}", side(&difference.a), side(&difference.b)));
    }
    Err(AssertionFailure { reason, differences })
}

fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same = |(key, value): (&String, &Value)| right.get(key).is_some_and(|other| equal(value, other));
            left.len() == right.len() && left.iter().all(same)
        }
        _ => left == right,
    }
}

/// A text in a text, an element or several in a list, a key or a part in an object.
fn contains(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        (Value::Array(list), Value::Array(several)) if !list.iter().any(|item| equal(item, expected)) => {
            several.iter().all(|one| list.iter().any(|item| equal(item, one)))
        }
        (Value::Array(list), one) => {
            list.iter().any(|item| equal(item, one) || (one.is_object() && contains(item, one)))
        }
        (Value::Object(map), Value::String(key)) => map.contains_key(key),
        (Value::Object(map), Value::Object(part)) => {
            let has = |(key, part): (&String, &Value)| {
                map.get(key).is_some_and(|value| equal(value, part) || (part.is_object() && contains(value, part)))
            };
            part.iter().all(has)
        }
        _ => false,
    }
}

fn matches(value: &Value, pattern: &str) -> Result<(), AssertionFailure> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    met(op::is_match(pattern, &text)?, || format!("{} does not match {pattern}", shorten(value)))
}

fn fits(value: &Value, schema: Option<&Schema>) -> Result<(), AssertionFailure> {
    let Some(schema) = schema else { return Err("there is no schema to compare with".to_owned().into()) };
    let errors = schema.errors(value);
    met(errors.is_empty(), || format!("it does not fit the schema {}: {}", schema.name, errors.join("; ")))
}

fn golden(value: &Value, golden: Option<&str>) -> Result<(), AssertionFailure> {
    let Some(text) = golden else {
        return Err("there is no golden file yet; bless what comes out to make it".to_owned().into());
    };
    let expected: Value = serde_json::from_str(text).map_err(|error| format!("the golden file is no JSON: {error}"))?;
    same(&expected, value)
}

/// A golden file with this value.
pub fn golden_text(value: &Value) -> String {
    format!("{value:#}\n")
}

fn expression(source: &str, subject: &Subject) -> Result<(), AssertionFailure> {
    let about = Map::from_iter([
        ("output".to_owned(), subject.output.clone()),
        ("status".to_owned(), json!(subject.status)),
        ("input".to_owned(), subject.input.clone()),
        ("history".to_owned(), Value::Array(subject.history.clone())),
    ]);
    let about = Value::Object(about);
    let outputs = |node: &str| subject.outputs.get(node).cloned();
    let scope = Scope { outputs: &outputs, ..Scope::of(&about) };
    match op::expr::eval(source, &scope) {
        Ok(Value::Bool(true)) => Ok(()),
        Ok(other) => Err(format!("{source} gives {}, not true", shorten(&other)).into()),
        Err(error) => Err(error.message.into()),
    }
}

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn subject() -> Subject {
        let output = json!({ "answer": "It waits.", "items": [{ "name": "a", "n": 1 }, { "name": "b", "n": 2.0 }], "none": null });
        let run = |node: &str, status: &str, output: Value| json!({ "task": null, "node": node, "status": status, "output": output });
        let history = vec![
            run("plan", "success", json!(["x", "y"])),
            run("work", "success", json!("one")),
            run("work", "failure", Value::Null),
            run("done", "success", output.clone()),
        ];
        Subject::new(json!({ "question": "why" }), Status::Partial, output, history)
    }

    fn said(assertion: Value, given: ExpectedValues<'_>) -> Result<(), AssertionFailure> {
        check(&serde_json::from_value(assertion).unwrap(), &subject(), given)
    }

    #[test]
    fn s10_3_assertions_that_hold() {
        let schema = Schema::compile("text", json!({ "type": "string" })).unwrap();
        let given = ExpectedValues { schema: Some(&schema), golden: Some("{\"name\": \"b\", \"n\": 2}") };
        for assertion in [
            json!({"type": "status", "expected": "partial"}),
            json!({"type": "status", "node": "work", "expected": "failure"}),
            json!({"type": "equals", "field_path": "items.0.name", "expected": "a"}),
            json!({"type": "equals", "field_path": "items[1].n", "expected": 2}),
            json!({"type": "equals", "field_path": "none", "expected": null}),
            json!({"type": "equals", "node": "plan", "field_path": "1", "expected": "y"}),
            json!({"type": "equals", "node": "work", "expected": ["one", null]}),
            json!({"type": "contains", "field_path": "answer", "expected": "waits"}),
            json!({"type": "contains", "field_path": "items", "expected": {"name": "b"}}),
            json!({"type": "contains", "node": "plan", "expected": ["y"]}),
            json!({"type": "contains", "expected": "items"}),
            json!({"type": "contains", "expected": {"answer": "It waits."}}),
            json!({"type": "matches", "field_path": "answer", "expected": "^It \\w+\\.$"}),
            json!({"type": "matches", "field_path": "items", "expected": "\"name\":\"a\""}),
            json!({"type": "schema_valid", "field_path": "answer"}),
            json!({"type": "golden", "field_path": "items.1"}),
            json!({"type": "expression", "expression": "size(input.output.items) == 2 && input.status == 'partial'"}),
            json!({"type": "expression", "expression": "outputs.plan[0] == 'x' && input.input.question == 'why'"}),
            json!({"type": "expression", "expression": "input.history.exists(run, run.status == 'failure')"}),
        ] {
            assert_eq!(said(assertion.clone(), given), Ok(()), "{assertion}");
        }
    }

    #[test]
    fn s10_3_assertions_that_do_not_hold_say_why() {
        let schema = Schema::compile("text", json!({ "type": "string" })).unwrap();
        let given = ExpectedValues { schema: Some(&schema), golden: Some("nonsense") };
        for (assertion, reason) in [
            (json!({"type": "status", "expected": "success"}), "the status is partial"),
            (json!({"type": "status", "node": "gone", "expected": "success"}), "gone did not run"),
            (json!({"type": "equals", "field_path": "items.0.n", "expected": "1"}), "expected \"1\", got 1"),
            (json!({"type": "equals", "field_path": "items.7", "expected": 1}), "no `7`"),
            (json!({"type": "equals", "field_path": "answer.x", "expected": 1}), "nothing at `answer.x`"),
            (json!({"type": "contains", "field_path": "answer", "expected": "hurries"}), "is not in"),
            (json!({"type": "contains", "field_path": "items", "expected": {"name": "c"}}), "is not in"),
            (json!({"type": "contains", "field_path": "none", "expected": "x"}), "is not in"),
            (json!({"type": "matches", "field_path": "answer", "expected": "^waits"}), "does not match"),
            (json!({"type": "schema_valid", "field_path": "items"}), "does not fit the schema text"),
            (json!({"type": "golden"}), "no JSON"),
            (json!({"type": "expression", "expression": "size(input.output.items) > 2"}), "not true"),
            (json!({"type": "expression", "expression": "input.output.answer"}), "not true"),
            (json!({"type": "expression", "expression": "input.gone.too"}), "failed"),
            (
                json!({"type": "status", "expected": "failure", "message": "it has to fail"}),
                "it has to fail: the status",
            ),
        ] {
            let unmet = said(assertion.clone(), given).expect_err("it does not hold");
            assert!(unmet.reason.contains(reason), "{assertion}: {}", unmet.reason);
        }
        let missing = said(json!({"type": "golden"}), ExpectedValues::default()).expect_err("there is none");
        assert!(missing.reason.contains("bless"), "{}", missing.reason);
    }

    #[test]
    fn a_regular_expression_that_is_too_large_for_its_text_is_not_searched_for() {
        let subject = Subject::new(Value::Null, Status::Success, json!("x".repeat(500_000)), Vec::new());
        let said = |pattern: &str| {
            let assertion = serde_json::from_value(json!({ "type": "matches", "expected": pattern })).unwrap();
            check(&assertion, &subject, ExpectedValues::default())
        };
        assert_eq!(said("^x+$"), Ok(()));
        let refused = said("[xy]{5000}z").expect_err("it takes too much work");
        assert!(refused.reason.contains("too large for a text"), "{}", refused.reason);
    }

    #[test]
    fn s10_3_differences_are_told_by_place() {
        let unmet = said(
            json!({"type": "equals", "field_path": "items.0", "expected": {"name": "z", "n": 1}}),
            ExpectedValues::default(),
        );
        let unmet = unmet.expect_err("it differs");
        let places: Vec<&str> = unmet.differences.iter().map(|difference| difference.path.as_str()).collect();
        assert_eq!(places, ["/name"]);
        assert!(unmet.reason.ends_with("/name: expected \"z\", got \"a\""), "{}", unmet.reason);
    }
}
