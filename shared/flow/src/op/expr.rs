//! Expressions: CEL over `input`, `context`, `outputs.<node>` and `task`.
//!
//! An expression is parsed once and kept, since tasks of thousands of steps evaluate the same few. Most are paths such as
//! `outputs.plan.steps[0]`, and lists or objects of paths: those read the JSON as it is, every key in its place, and never
//! enter CEL. The rest runs in CEL over the fields that it names.
//!
//! Hostile expressions are expected: sources and nesting are bounded, recursion runs on a stack of its own, evaluation is
//! metered ([`super::bridge`]), and a panic in either is an error.

use super::{
    Scope,
    bridge::{self, ENV, MeteredFunctions},
    rewrite::{MAX_DEPTH, Reads, Rewrite, root, text},
};
use cel::{
    Context, ExecutionError,
    common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators},
};
use domain::{Code, Error};
use parking_lot::RwLock;
use serde_json::{Map, Value};
use std::{
    borrow::Cow,
    collections::HashMap,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
};

/// The longest expression, in bytes.
pub const MAX_SOURCE: usize = 4096;
/// How many compiled expressions are kept.
const KEPT: usize = 4096;
/// The stack of what recurses deeper than a worker's stack allows for: parsing, and the evaluation of what nests deep.
const DEEP_STACK: usize = 32 * 1024 * 1024;
/// How deep an expression may nest and still be evaluated where it is asked for.
const SHALLOW: usize = 10;
/// Messages show values cut to this many characters.
const SHOWN: usize = 200;

/// A compiled expression.
enum Plan {
    /// A root and the way down from it.
    Path(&'static str, Vec<Step>),
    Literal(Value),
    List(Vec<Plan>),
    Object(Vec<(String, Plan)>),
    Cel {
        expr: IdedExpr,
        reads: Reads,
        is_deep: bool,
    },
}

enum Step {
    Field(String),
    At(u64),
}

static COMPILED: LazyLock<RwLock<HashMap<String, Arc<Plan>>>> = LazyLock::new(RwLock::default);

/// Whether `source` is an expression that can be evaluated: it parses, and every name and function in it exists.
///
/// # Errors
/// The first fault, in words, with its line and column where the parser knows them.
pub fn check(source: &str) -> Result<(), String> {
    compiled(source).map(drop).map_err(Fault::message)
}

/// Whether an expression calls each function in a way that this has. One that is none has a fault of its own.
///
/// # Errors
/// The first call that fails whenever it is evaluated, in words.
pub fn check_calls(source: &str) -> Result<(), String> {
    if !source.contains('(') || compiled(source).is_err() {
        return Ok(());
    }
    let checked = || Rewrite::strict().visit(&mut parse_source(source)?);
    on_deep_stack(checked).ok().flatten().unwrap_or(Ok(()))
}

/// The nodes whose outputs an expression reads.
///
/// # Errors
/// As [`check`].
pub fn outputs_read(source: &str) -> Result<Vec<String>, String> {
    let mut nodes = Vec::new();
    compiled(source).map_err(Fault::message)?.outputs(&mut nodes);
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

/// The value of an expression that is written out in it, such as `"42"`; none of one that has to be evaluated.
pub fn constant(source: &str) -> Option<Value> {
    match &*compiled(source).ok()? {
        Plan::Literal(value) => Some(value.clone()),
        Plan::Path(..) | Plan::List(_) | Plan::Object(_) | Plan::Cel { .. } => None,
    }
}

/// How many elements the list has that this expression writes out, such as `[1, input]`; none of any other expression.
pub(crate) fn list_length(source: &str) -> Option<usize> {
    match &*compiled(source).ok()? {
        Plan::List(elements) => Some(elements.len()),
        Plan::Path(..) | Plan::Literal(_) | Plan::Object(_) | Plan::Cel { .. } => None,
    }
}

/// Evaluates `source`.
///
/// # Errors
/// `UNPROCESSABLE`, with the expression, for one that cannot be parsed or fails on these values; `INTERNAL` when this machine has no thread
/// for it.
pub fn eval(source: &str, scope: &Scope<'_>) -> Result<Value, Error> {
    let wrong = |fault: Fault| {
        let source = shorten(source, SHOWN);
        let code = if matches!(fault, Fault::Ours(_)) { Code::Internal } else { Code::Unprocessable };
        Error::new(code, format!("the expression {source:?} failed: {}", fault.message())).detail("expression", source)
    };
    compiled(source).and_then(|plan| plan.eval(scope)).map_err(wrong)
}

/// Evaluates `source` to a list, as a split over it needs.
///
/// # Errors
/// `UNPROCESSABLE` for a value that is no list; those of [`eval`].
pub fn eval_list(source: &str, scope: &Scope<'_>) -> Result<Vec<Value>, Error> {
    match eval(source, scope)? {
        Value::Array(items) => Ok(items),
        other => {
            let message = format!("the expression {source:?} gives {}, not a list", shown(&other));
            Err(Error::new(Code::Unprocessable, message))
        }
    }
}

/// A value as messages show it: as JSON, cut.
pub(super) fn shown(value: &Value) -> String {
    shorten(&value.to_string(), SHOWN)
}

fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into(),
    }
}

/// Why an expression has no plan or no value.
#[derive(Debug)]
enum Fault {
    /// Its own fault, in words.
    Own(String),
    /// This machine started no thread for it.
    Ours(io::Error),
}

impl Fault {
    fn message(self) -> String {
        match self {
            Self::Own(message) => message,
            Self::Ours(error) => no_thread(&error),
        }
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Self {
        Self::Own(message)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Ours(error)
    }
}

/// The words about a thread that this machine did not start.
pub(crate) fn no_thread(error: &io::Error) -> String {
    format!("this server could not look at it, because it started no thread: {error}")
}

fn compiled(source: &str) -> Result<Arc<Plan>, Fault> {
    if let Some(plan) = COMPILED.read().get(source) {
        return Ok(Arc::clone(plan));
    }
    let plan = Arc::new(compile(source)?);
    let mut all = COMPILED.write();
    // Flows come and go; to begin anew now and then costs less than to keep an order of use.
    if all.len() >= KEPT {
        all.clear();
    }
    all.insert(source.into(), Arc::clone(&plan));
    Ok(plan)
}

fn compile(source: &str) -> Result<Plan, Fault> {
    if source.trim().is_empty() {
        return Err(Fault::Own("it is empty".into()));
    }
    if source.len() > MAX_SOURCE {
        return Err(Fault::Own(format!("it is {} bytes long; the limit is {MAX_SOURCE}", source.len())));
    }
    let parsed = on_deep_stack(|| parse(source))?;
    Ok(parsed.unwrap_or_else(|| Err("it cannot be parsed".into()))?)
}

/// Runs `work` on a stack that it cannot overflow; none when it panicked.
///
/// # Errors
/// That of the system, when it starts no thread.
pub(crate) fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<Option<T>> {
    on_stack(DEEP_STACK, work)
}

fn on_stack<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> io::Result<Option<T>> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("expression".into()).stack_size(bytes);
        Ok(thread.spawn_scoped(scope, work)?.join().ok())
    })
}

fn parse_source(source: &str) -> Result<IdedExpr, String> {
    let parser = ENV.parser().max_recursion_depth(MAX_DEPTH as u16).error_recovery_limit(4);
    parser.parse(source).map_err(|errors| {
        let first = errors.errors.first();
        let message = first.map_or_else(|| "it cannot be parsed".into(), |error| shorten(&error.msg, SHOWN));
        match first.map(|error| error.pos) {
            Some((line, column)) if line > 0 => format!("{message} (line {line}, column {column})"),
            _ => message,
        }
    })
}

fn parse(source: &str) -> Result<Plan, String> {
    let mut expr = parse_source(source)?;
    // Checks all of it, also what then becomes a path; and only now is it known to be shallow.
    let mut checked = expr.clone();
    let mut rewrite = Rewrite::default();
    rewrite.visit(&mut checked)?;
    Ok(plan(&mut expr))
}

/// The parts that are plain JSON are taken out of CEL's hands.
fn plan(expr: &mut IdedExpr) -> Plan {
    if let Some((root, steps)) = path(expr) {
        return Plan::Path(root, steps);
    }
    match &mut expr.expr {
        Expr::Literal(literal) => match json_literal(literal) {
            Some(value) => Plan::Literal(value),
            None => in_cel(expr),
        },
        Expr::List(list) if list.optional_indices.is_empty() => {
            Plan::List(list.elements.iter_mut().map(plan).collect())
        }
        Expr::Map(map) if keys(map).is_some() => {
            let names = keys(map).unwrap_or_default();
            let values = map.entries.iter_mut().filter_map(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => Some(plan(&mut entry.value)),
                EntryExpr::StructField(_) => None,
            });
            Plan::Object(names.into_iter().zip(values).collect())
        }
        _ => in_cel(expr),
    }
}

fn in_cel(expr: &mut IdedExpr) -> Plan {
    let mut expr = std::mem::take(expr);
    let mut rewrite = Rewrite::default();
    // It has been checked as a part of the whole.
    match rewrite.visit(&mut expr) {
        Ok(()) => Plan::Cel { expr, is_deep: rewrite.deepest > SHALLOW, reads: rewrite.reads },
        Err(_) => Plan::Literal(Value::Null),
    }
}

/// The keys of an object whose keys are all written out, and different.
fn keys(map: &cel::common::ast::MapExpr) -> Option<Vec<String>> {
    let key = |entry: &cel::common::ast::IdedEntryExpr| match &entry.expr {
        EntryExpr::MapEntry(entry) if !entry.optional => text(&entry.key),
        _ => None,
    };
    let keys: Vec<String> = map.entries.iter().map(key).collect::<Option<_>>()?;
    let different: std::collections::BTreeSet<&String> = keys.iter().collect();
    (different.len() == keys.len()).then_some(keys)
}

fn json_literal(literal: &LiteralValue) -> Option<Value> {
    match literal {
        LiteralValue::Boolean(value) => Some(Value::Bool(*value.inner())),
        LiteralValue::Int(value) => Some(Value::from(*value.inner())),
        LiteralValue::UInt(value) => Some(Value::from(*value.inner())),
        LiteralValue::Double(value) => serde_json::Number::from_f64(*value.inner()).map(Value::Number),
        LiteralValue::String(value) => Some(Value::String(value.inner().into())),
        LiteralValue::Null => Some(Value::Null),
        LiteralValue::Bytes(_) => None,
    }
}

fn path(expr: &IdedExpr) -> Option<(&'static str, Vec<Step>)> {
    match &expr.expr {
        Expr::Ident(name) => Some((root(name)?, Vec::new())),
        Expr::Select(select) if !select.test => {
            let (root, mut steps) = path(&select.operand)?;
            steps.push(Step::Field(select.field.clone()));
            Some((root, steps))
        }
        Expr::Call(call) if call.func_name == operators::INDEX && call.target.is_none() => {
            let [of, key] = call.args.as_slice() else { return None };
            let step = match &key.expr {
                Expr::Literal(LiteralValue::String(key)) => Step::Field(key.inner().into()),
                Expr::Literal(LiteralValue::Int(at)) => Step::At(u64::try_from(*at.inner()).ok()?),
                Expr::Literal(LiteralValue::UInt(at)) => Step::At(*at.inner()),
                _ => return None,
            };
            let (root, mut steps) = path(of)?;
            steps.push(step);
            Some((root, steps))
        }
        _ => None,
    }
}

impl Plan {
    fn eval(&self, scope: &Scope<'_>) -> Result<Value, Fault> {
        match self {
            Self::Path(root, steps) => Ok(follow(root, steps, scope)?),
            Self::Literal(value) => Ok(value.clone()),
            Self::List(items) => items.iter().map(|item| item.eval(scope)).collect::<Result<_, _>>().map(Value::Array),
            Self::Object(entries) => {
                let entry = |(key, value): &(String, Plan)| Ok((key.clone(), value.eval(scope)?));
                entries.iter().map(entry).collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
            Self::Cel { expr, reads, is_deep } => {
                let done = if *is_deep {
                    on_deep_stack(|| run(expr, reads, scope))?
                } else {
                    catch_unwind(AssertUnwindSafe(|| run(expr, reads, scope))).ok()
                };
                Ok(done.unwrap_or_else(|| Err("it cannot be evaluated".into()))?)
            }
        }
    }

    fn outputs(&self, into: &mut Vec<String>) {
        match self {
            Self::Path("outputs", steps) => into.extend(match steps.first() {
                Some(Step::Field(node)) => Some(node.clone()),
                _ => None,
            }),
            Self::Path(..) | Self::Literal(_) => {}
            Self::List(items) => items.iter().for_each(|item| item.outputs(into)),
            Self::Object(entries) => entries.iter().for_each(|(_, value)| value.outputs(into)),
            Self::Cel { reads, .. } => into.extend(reads.get("outputs").cloned().flatten().unwrap_or_default()),
        }
    }
}

/// The value under a root; outputs are found by their first step.
fn follow(root: &str, steps: &[Step], scope: &Scope<'_>) -> Result<Value, String> {
    let (mut at, mut shown) = (root.to_owned(), root.to_owned());
    let (output, steps) = match (root, steps) {
        ("outputs", [Step::Field(node), rest @ ..]) => {
            shown = format!("outputs.{node}");
            at.clone_from(&shown);
            let output = (scope.outputs)(node).ok_or_else(|| format!("the node {node:?} has given no output"))?;
            (Some(output), rest)
        }
        _ => (None, steps),
    };
    let mut value = match (&output, root) {
        (Some(output), _) => &**output,
        (None, "input") => scope.input,
        (None, "context") => scope.context,
        (None, "task") => scope.task,
        (None, _) => return Err("outputs are read by node, such as outputs.plan".into()),
    };
    for step in steps {
        let found = match step {
            Step::Field(name) => {
                shown.push_str(&format!(".{name}"));
                value.get(name)
            }
            Step::At(position) => {
                shown.push_str(&format!("[{position}]"));
                usize::try_from(*position).ok().and_then(|position| value.get(position))
            }
        };
        value = found.ok_or_else(|| format!("there is no {shown}: {at} is {}", describe(value)))?;
        at.clone_from(&shown);
    }
    Ok(value.clone())
}

fn describe(value: &Value) -> String {
    match value {
        Value::Object(object) if object.is_empty() => "an empty object".into(),
        Value::Object(object) => {
            let names: Vec<&str> = object.keys().take(12).map(String::as_str).collect();
            format!("an object with {}{}", names.join(", "), if object.len() > 12 { ", …" } else { "" })
        }
        Value::Array(items) => format!("a list of {}", items.len()),
        other => shown(other),
    }
}

fn run(expr: &IdedExpr, reads: &Reads, scope: &Scope<'_>) -> Result<Value, String> {
    let metered = MeteredFunctions::begin();
    let done = in_context(expr, reads, scope);
    if metered.is_spent() {
        return Err("it asks for too much work: make its input smaller, or split it over several nodes".into());
    }
    done.map_err(|error| explain(&error))
}

fn in_context(expr: &IdedExpr, reads: &Reads, scope: &Scope<'_>) -> Result<Value, ExecutionError> {
    let outputs: Vec<(&String, Arc<Value>)> = reads
        .get("outputs")
        .and_then(Option::as_ref)
        .into_iter()
        .flatten()
        .filter_map(|node| Some((node, (scope.outputs)(node)?)))
        .collect();
    let mut context = Context::with_env(Arc::clone(&ENV));
    for (root, fields) in reads {
        let whole = match *root {
            "input" => scope.input,
            "context" => scope.context,
            "task" => scope.task,
            _ => {
                for (_, output) in &outputs {
                    bridge::spend(bridge::weight_of_json(output))?;
                }
                let entries = outputs.iter().map(|(node, output)| (node.as_str(), bridge::from_json(output)));
                context.add_variable_as_val(*root, bridge::from_entries(entries));
                continue;
            }
        };
        let value = match (fields, whole) {
            // Only the named parts: the rest of a large input is not touched.
            (Some(fields), Value::Object(object)) => {
                let named: Vec<(&str, &Value)> =
                    fields.iter().filter_map(|field| Some((field.as_str(), object.get(field)?))).collect();
                bridge::spend(named.iter().map(|(_, value)| bridge::weight_of_json(value)).sum())?;
                bridge::from_entries(named.into_iter().map(|(name, value)| (name, bridge::from_json(value))))
            }
            (_, whole) => {
                bridge::spend(bridge::weight_of_json(whole))?;
                bridge::from_json(whole)
            }
        };
        context.add_variable_as_val(*root, value);
    }
    let value = cel::Value::resolve_val(expr, &context)?;
    bridge::to_json(value.as_ref())
}

/// CEL's error in words that fit a person's screen: some show whole values.
fn explain(error: &ExecutionError) -> String {
    let text: Cow<'_, str> = match error {
        ExecutionError::FunctionError { message, .. } => message.into(),
        ExecutionError::NoSuchKey(key) => format!("there is no {key:?}").into(),
        ExecutionError::UndeclaredReference(name) => format!("there is no {name:?}").into(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "it divides by zero".into(),
        ExecutionError::Overflow(..) => "a number gets too large".into(),
        ExecutionError::UnsupportedBinaryOperator(_, one, other) if are_of_two_kinds(one, other) => {
            "it combines a whole number and a decimal: write double(…) around the whole one".into()
        }
        other => other.to_string().into(),
    };
    shorten(&text.replace("@copy", "_").replace("@look", "_"), SHOWN)
}

/// Whether one is a whole number and the other one a decimal, which CEL compares and does not combine.
fn are_of_two_kinds(one: &cel::Value, other: &cel::Value) -> bool {
    use cel::Value::{Float, Int, UInt};
    matches!((one, other), (Int(_) | UInt(_), Float(_)) | (Float(_), Int(_) | UInt(_)))
}

#[cfg(test)]
mod tests;
