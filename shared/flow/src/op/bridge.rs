//! Conversion between JSON and CEL, and the meter that bounds the cost of one evaluation.
//!
//! CEL has no endless loops, but a nest of `map`s in a few hundred bytes can ask for more than a machine has. So every
//! place that copies, compares or walks a value pays for it from one budget ([`super::rewrite`] puts the toll gates in), and
//! an evaluation that has spent it ends with an error. Costs depend on values alone: the same expression over the same scope
//! always ends the same way.

use super::MAX_COMPILED;
use cel::{
    ExecutionError,
    common::{
        types::{
            CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt, DYN_TYPE, LIST_TYPE,
            STRING_TYPE,
        },
        value::{CowVal, Val},
    },
    objects::Key,
};
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::{Arc, LazyLock},
};

/// The budget of one evaluation: about as many bytes compared, or an eighth of that copied.
const BUDGET: u64 = 128 * 1024 * 1024;
/// The price of a value besides its bytes.
const EACH: u64 = 16;
/// The longest regular expression, in bytes.
const MAX_PATTERN: usize = 1024;
/// The price of compiling a regular expression.
const COMPILING: u64 = 4 * 1024 * 1024;
/// The least memory that is tried for a compiled regular expression, in bytes. Each further try has twice as much, up to [`MAX_COMPILED`].
const LEAST_COMPILED: usize = 4 * 1024;
/// The bytes of a compiled regular expression for which a search pays one unit per byte of its text.
const COMPILED_PER_UNIT: usize = 512;
/// The regular expressions that one evaluation can pay for.
pub(super) const MOST_PATTERNS: u64 = BUDGET / COMPILING;

/// The toll gates, by the names that no expression can spell.
pub(super) const COPY: &str = "@copy";
pub(super) const LOOK: &str = "@look";
pub(super) const TOUCH: &str = "@touch";
pub(super) const ITEMS: &str = "@items";

/// The types that expressions may name.
pub(super) const TYPES: [&str; 11] =
    ["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "type", "uint"];

thread_local! {
    /// The rest of the budget of the evaluation on this thread; none once it wanted more.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
    /// The regular expressions that this evaluation has compiled.
    static PATTERNS: RefCell<HashMap<String, Pattern>> = RefCell::default();
}

/// The standard library with our gates and functions.
pub(super) static ENV: LazyLock<Arc<cel::Env>> = LazyLock::new(|| Arc::new(env()));

/// Evaluations are synchronous and stay on their thread, so the budget is the thread's.
pub(super) struct MeteredFunctions;

impl MeteredFunctions {
    pub fn begin() -> Self {
        LEFT.set(Some(BUDGET));
        Self
    }
    /// Whether everything was spent. `||` and `exists` absorb errors, so an answer may come out nevertheless; it is void.
    pub fn is_spent(&self) -> bool {
        LEFT.get().is_none()
    }
}

impl Drop for MeteredFunctions {
    fn drop(&mut self) {
        LEFT.set(None);
        PATTERNS.with_borrow_mut(HashMap::clear);
    }
}

pub(super) fn spend(cost: u64) -> Result<(), ExecutionError> {
    let left = LEFT.get().and_then(|left| left.checked_sub(cost));
    LEFT.set(left);
    left.map(drop).ok_or_else(|| failed("budget", "the expression asks for too much work"))
}

fn failed(function: &str, message: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, message)
}

/// A value's size in the meter's units, at most a little over `limit`.
fn weight(value: &dyn Val, limit: u64) -> u64 {
    let mut sum = EACH;
    if let Some(text) = value.downcast_ref::<CelString>() {
        sum += text.inner().len() as u64;
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        for item in list.inner() {
            if sum > limit {
                break;
            }
            sum += weight(item.as_ref(), limit - sum);
        }
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        for (key, item) in map.inner() {
            if sum > limit {
                break;
            }
            let key = if let CelMapKey::String(text) = key { text.inner().len() as u64 } else { 0 };
            sum += 4 * EACH + key;
            sum += weight(item.as_ref(), limit.saturating_sub(sum));
        }
    } else if let Some(bytes) = value.downcast_ref::<cel::common::types::CelBytes>() {
        sum += bytes.inner().len() as u64;
    }
    sum
}

fn pay(value: &dyn Val, times: u64) -> Result<(), ExecutionError> {
    let left = LEFT.get().unwrap_or(0);
    spend(weight(value, left / times).saturating_mul(times))
}

type Args<'b, 'v> = Vec<CowVal<'b, 'v>>;
type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn only<'b, 'v>(mut args: Args<'b, 'v>) -> Answer<'b, 'v> {
    args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)
}

fn copy<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let value = only(args)?;
    pay(value.as_ref(), 8)?;
    Ok(value)
}

fn look<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let value = only(args)?;
    pay(value.as_ref(), 1)?;
    Ok(value)
}

fn touch<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let value = only(args)?;
    spend(EACH + value.downcast_ref::<CelString>().map_or(0, |text| text.inner().len() as u64))?;
    Ok(value)
}

/// The items of a loop: a list as it is, the keys of a map in order (CEL leaves theirs open; ours must not be).
fn items<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let value = only(args)?;
    let Some(map) = value.downcast_ref::<CelMap>() else {
        pay(value.as_ref(), 2)?;
        return Ok(value);
    };
    spend(8 * EACH * map.inner().len() as u64)?;
    let mut keys: Vec<CelMapKey<'v>> = map.inner().keys().cloned().collect();
    keys.sort_by_cached_key(|key| Key::from(key.clone()));
    let boxed = |key: CelMapKey<'v>| -> Box<dyn Val + 'v> {
        match key {
            CelMapKey::Bool(key) => Box::new(key),
            CelMapKey::Int(key) => Box::new(key),
            CelMapKey::String(key) => Box::new(key),
            CelMapKey::UInt(key) => Box::new(key),
        }
    };
    Ok(CowVal::owned(CelList::from(keys.into_iter().map(boxed).collect::<Vec<_>>())))
}

fn text<'a>(args: &'a [CowVal<'_, '_>], position: usize) -> Result<&'a str, ExecutionError> {
    let text = args.get(position).and_then(|value| value.downcast_ref::<CelString>());
    text.map(|text| text.inner()).ok_or(ExecutionError::MissingArgumentOrTarget)
}

fn owned<'b, 'v>(text: String) -> Answer<'b, 'v> {
    spend(8 * (EACH + text.len() as u64))?;
    Ok(CowVal::owned(CelString::from(text)))
}

/// A compiled regular expression.
pub(super) struct Pattern {
    regex: Regex,
    /// The cost of a search per byte of its text.
    per_byte: u64,
}

impl Pattern {
    /// Compiles it within the least memory that has room. A search is priced by that: for each byte of the text it visits all of the compiled expression
    /// in the worst case.
    ///
    /// # Errors
    /// It is no regular expression, or takes more memory than [`MAX_COMPILED`].
    fn new(pattern: &str) -> Result<Self, regex::Error> {
        let mut room = LEAST_COMPILED;
        loop {
            match RegexBuilder::new(pattern).size_limit(room).build() {
                Err(regex::Error::CompiledTooBig(_)) if room < MAX_COMPILED => room *= 2,
                built => return Ok(Self { regex: built?, per_byte: (room / COMPILED_PER_UNIT) as u64 }),
            }
        }
    }

    /// The cost of a search in this text.
    fn cost(&self, text: &str) -> u64 {
        (EACH + text.len() as u64).saturating_mul(self.per_byte)
    }
}

/// Whether a text matches a regular expression, within the budget of one evaluation of an expression.
///
/// # Errors
/// The fault, in words: it is no regular expression, takes too much memory, or is too large for a text of this length.
pub fn is_match(pattern: &str, text: &str) -> Result<bool, String> {
    let compiled = Pattern::new(pattern).map_err(|error| format!("this is no regular expression: {error}"))?;
    if compiled.cost(text) > BUDGET {
        return Err(format!("the regular expression is too large for a text of {} bytes", text.len()));
    }
    Ok(compiled.regex.is_match(text))
}

/// A regular expression of `matches`.
///
/// # Errors
/// The fault, in words: it is none, is too long, or takes too much memory.
pub(super) fn compiled_pattern(pattern: &str) -> Result<Pattern, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("the regular expression is {} bytes long; the limit is {MAX_PATTERN}", pattern.len()));
    }
    Pattern::new(pattern).map_err(|error| {
        // The last line names the fault; those before it show where.
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("{pattern:?} is no regular expression: {reason}")
    })
}

fn matches<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let (subject, pattern) = (text(&args, 0)?, text(&args, 1)?);
    PATTERNS.with_borrow_mut(|patterns| {
        if !patterns.contains_key(pattern) {
            spend(COMPILING)?;
            patterns.insert(pattern.into(), compiled_pattern(pattern).map_err(|why| failed("matches", why))?);
        }
        let is_match = match patterns.get(pattern) {
            Some(pattern) => {
                spend(pattern.cost(subject))?;
                pattern.regex.is_match(subject)
            }
            None => false,
        };
        Ok(CowVal::owned(CelBool::from(is_match)))
    })
}

fn join<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let list = args.first().and_then(|list| list.downcast_ref::<CelList>());
    let list = list.ok_or(ExecutionError::MissingArgumentOrTarget)?.inner();
    let separator = if args.len() > 1 { text(&args, 1)? } else { "" };
    spend(8 * (list.len() as u64).saturating_mul(separator.len() as u64))?;
    let texts = list.iter().map(|item| match item.downcast_ref::<CelString>() {
        Some(text) => Ok(text.inner().to_owned()),
        None => Ok(to_json(item.as_ref())?.to_string()),
    });
    owned(texts.collect::<Result<Vec<_>, ExecutionError>>()?.join(separator))
}

fn split<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    let (subject, separator) = (text(&args, 0)?, text(&args, 1)?);
    if separator.is_empty() {
        return Err(failed("split", "the separator is empty"));
    }
    spend(8 * (EACH * (1 + subject.matches(separator).count() as u64) + subject.len() as u64))?;
    let part = |part: &str| -> Box<dyn Val + 'v> { Box::new(CelString::from(part.to_owned())) };
    Ok(CowVal::owned(CelList::from(subject.split(separator).map(part).collect::<Vec<_>>())))
}

fn lower<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    owned(text(&args, 0)?.to_ascii_lowercase())
}

fn upper<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    owned(text(&args, 0)?.to_ascii_uppercase())
}

fn trim<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    owned(text(&args, 0)?.trim().to_owned())
}

/// A value as JSON text.
fn json<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    owned(to_json(only(args)?.as_ref())?.to_string())
}

fn extreme<'b, 'v>(args: Args<'b, 'v>, wanted: std::cmp::Ordering, name: &str) -> Answer<'b, 'v> {
    let list = args.first().and_then(|list| list.downcast_ref::<CelList>());
    let mut best: Option<&Box<dyn Val + 'v>> = None;
    for item in list.ok_or(ExecutionError::MissingArgumentOrTarget)?.inner() {
        let is_better = match best {
            None => true,
            Some(best) => {
                let order = item.as_comparer().ok_or_else(|| failed(name, "an item is not comparable"))?;
                order.compare(best.as_ref())? == wanted
            }
        };
        if is_better {
            best = Some(item);
        }
    }
    best.map(|best| CowVal::Owned(best.clone())).ok_or_else(|| failed(name, "the list is empty"))
}

fn max<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    extreme(args, std::cmp::Ordering::Greater, "max")
}

fn min<'b, 'v>(args: Args<'b, 'v>) -> Answer<'b, 'v> {
    extreme(args, std::cmp::Ordering::Less, "min")
}

fn env() -> cel::Env {
    let mut env = cel::Env::stdlib().with_optional_support(false);
    let mut declare = || -> Result<(), cel::DeclarationError> {
        env.add_overload(COPY, "copy", vec![DYN_TYPE], copy)?;
        env.add_overload(LOOK, "look", vec![DYN_TYPE], look)?;
        env.add_overload(TOUCH, "touch", vec![DYN_TYPE], touch)?;
        env.add_overload(ITEMS, "items", vec![DYN_TYPE], items)?;
        env.add_overload("json", "json_dyn", vec![DYN_TYPE], json)?;
        env.add_overload("max", "max_list", vec![LIST_TYPE], max)?;
        env.add_overload("min", "min_list", vec![LIST_TYPE], min)?;
        env.add_overload("matches", "matches", vec![STRING_TYPE, STRING_TYPE], matches)?;
        env.add_member_overload("matches", "string_matches", STRING_TYPE, vec![STRING_TYPE], matches)?;
        env.add_member_overload("join", "list_join", LIST_TYPE, vec![], join)?;
        env.add_member_overload("join", "list_join_string", LIST_TYPE, vec![STRING_TYPE], join)?;
        env.add_member_overload("split", "string_split", STRING_TYPE, vec![STRING_TYPE], split)?;
        env.add_member_overload("lowerAscii", "string_lower", STRING_TYPE, vec![], lower)?;
        env.add_member_overload("upperAscii", "string_upper", STRING_TYPE, vec![], upper)?;
        env.add_member_overload("trim", "string_trim", STRING_TYPE, vec![], trim)
    };
    #[expect(clippy::expect_used, reason = "declarations of ours, which every test of expressions makes")]
    declare().expect("no name is declared twice");
    env
}

/// JSON as CEL sees it: texts are borrowed, an integer is an `int`, or a `uint` where it is above that.
pub(super) fn from_json(value: &Value) -> Box<dyn Val + '_> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Box::new(CelInt::from(int)),
            (None, Some(uint)) => Box::new(CelUInt::from(uint)),
            (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Value::String(text) => Box::new(CelString::from(text.as_str())),
        Value::Array(items) => Box::new(CelList::from(items.iter().map(from_json).collect::<Vec<_>>())),
        Value::Object(object) => from_entries(object.iter().map(|(key, value)| (key.as_str(), from_json(value)))),
    }
}

/// A CEL map.
pub(super) fn from_entries<'v>(entries: impl Iterator<Item = (&'v str, Box<dyn Val + 'v>)>) -> Box<dyn Val + 'v> {
    let entries: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> =
        entries.map(|(key, value)| (CelMapKey::from(key), value)).collect();
    Box::new(CelMap::from(entries))
}

/// The cost of a JSON value that an expression takes in.
pub(super) fn weight_of_json(value: &Value) -> u64 {
    match value {
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => EACH,
        Value::Array(items) => EACH + items.iter().map(weight_of_json).sum::<u64>(),
        Value::Object(object) => EACH + object.values().map(|item| 4 * EACH + weight_of_json(item)).sum::<u64>(),
    }
}

/// A result as JSON. Keys come in order; a whole number that was a `double` stays one.
pub(super) fn to_json(value: &dyn Val) -> Result<Value, ExecutionError> {
    let not_json = |what: &str| failed("json", format!("{what} has no JSON form"));
    if let Some(value) = value.downcast_ref::<CelString>() {
        Ok(Value::String(value.inner().to_owned()))
    } else if let Some(value) = value.downcast_ref::<CelInt>() {
        Ok(Value::from(*value.inner()))
    } else if let Some(value) = value.downcast_ref::<CelUInt>() {
        Ok(Value::from(*value.inner()))
    } else if let Some(value) = value.downcast_ref::<CelDouble>() {
        let number = serde_json::Number::from_f64(*value.inner());
        number.map(Value::Number).ok_or_else(|| not_json("a number that is infinite or none"))
    } else if let Some(value) = value.downcast_ref::<CelBool>() {
        Ok(Value::Bool(*value.inner()))
    } else if value.downcast_ref::<CelNull>().is_some() {
        Ok(Value::Null)
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        list.inner().iter().map(|item| to_json(item.as_ref())).collect::<Result<Vec<_>, _>>().map(Value::Array)
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        let mut entries: Vec<_> = map.inner().iter().map(|(key, value)| (Key::from(key.clone()), value)).collect();
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        let entries = entries.into_iter().map(|(key, value)| Ok((key.to_string(), to_json(value.as_ref())?)));
        entries.collect::<Result<Map<_, _>, _>>().map(Value::Object)
    } else {
        Err(not_json(&format!("a value of the type {}", value.get_type().name())))
    }
}
