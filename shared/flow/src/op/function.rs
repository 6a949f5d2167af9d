//! Registered Rust functions: manifests bind them by an entry point `module:function`.
//!
//! A function is pure: it sees its input and the scope, and gives a value. Embedders add their own with
//! [`Functions::register`], or with [`Functions::register_tool`] for functions that agents may call, too; work with files or
//! the network takes a tool.

use super::{
    Scope,
    expr::shown,
    signature::{self, Signature},
};
use domain::{Code, Error, json_length};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock},
};

/// A pure function.
pub type Function = Arc<dyn Fn(&Value, &Scope<'_>) -> Result<Value, Error> + Send + Sync>;

/// Functions by their entry points. Cheap to clone.
#[derive(Clone, Default)]
pub struct Functions(Arc<BTreeMap<String, Registered>>);

static BUILTIN: LazyLock<Functions> = LazyLock::new(Functions::make_builtin);

#[derive(Clone)]
struct Registered {
    function: Function,
    /// None for one that only nodes call.
    signature: Option<Signature>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Functions {
    /// The functions that BuildScale comes with.
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    fn make_builtin() -> Self {
        let mut all = BTreeMap::new();
        let mut add = |name: &str, function: fn(&Value) -> Result<Value, Error>| {
            let function: Function = Arc::new(move |input, _| function(input));
            all.insert(name.into(), Registered { function, signature: signature::builtin(name) });
        };
        add("json:keys", |input| object(input).map(|object| object.keys().cloned().collect()));
        add("json:merge", merge);
        add("json:parse", parse);
        add("json:text", |input| Ok(Value::String(input.to_string())));
        add("list:chunk", chunk);
        add("list:flatten", flatten);
        add("list:repeat", repeat);
        add("list:unique", unique);
        add("merge:by_node", by_node);
        add("merge:outputs", outputs);
        add("text:join", join);
        add("text:lines", |input| Ok(text(input)?.lines().collect()));
        add("text:words", |input| Ok(text(input)?.split_whitespace().collect()));
        Self(Arc::new(all))
    }

    /// Adds a function under `module:function`, for nodes.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the name has another form, `CONFLICT` when it is taken.
    pub fn register(
        &mut self,
        name: &str,
        function: impl Fn(&Value, &Scope<'_>) -> Result<Value, Error> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.add(name, None, Arc::new(function))
    }

    /// Adds a function that agents can call, too: its input is then their arguments, which fit the signature, and its scope
    /// has nothing else.
    ///
    /// # Errors
    /// Those of [`Functions::register`].
    pub fn register_tool(
        &mut self,
        name: &str,
        signature: Signature,
        function: impl Fn(&Value, &Scope<'_>) -> Result<Value, Error> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        self.add(name, Some(signature), Arc::new(function))
    }

    fn add(&mut self, name: &str, signature: Option<Signature>, function: Function) -> Result<(), Error> {
        let is_name = |part: &str| {
            !part.is_empty() && part.chars().all(|each| each.is_ascii_alphanumeric() || "_.-".contains(each))
        };
        if !name.split_once(':').is_some_and(|(module, function)| is_name(module) && is_name(function)) {
            let message = format!("{name:?} is not an entry point: write module:function");
            return Err(Error::invalid("entrypoint", message));
        }
        if self.0.contains_key(name) {
            return Err(Error::new(Code::Conflict, format!("the function {name} is registered already")));
        }
        Arc::make_mut(&mut self.0).insert(name.into(), Registered { function, signature });
        Ok(())
    }

    /// The signature of a function for agents; none when they cannot call it.
    pub fn signature(&self, name: &str) -> Option<&Signature> {
        self.0.get(name)?.signature.as_ref()
    }

    /// Whether there is a function of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The names, in order.
    pub fn known(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Calls a function.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none of this name; `INTERNAL` when it panics; those of the function.
    pub fn call(&self, name: &str, input: &Value, scope: &Scope<'_>) -> Result<Value, Error> {
        let function = self.0.get(name).ok_or_else(|| {
            let known = self.known().collect::<Vec<_>>().join(", ");
            Error::not_found("function", name).hint(format!("the functions are: {known}"))
        })?;
        let call = std::panic::AssertUnwindSafe(|| (function.function)(input, scope));
        std::panic::catch_unwind(call).unwrap_or_else(|_| {
            tracing::error!(function = name, "a registered function panicked");
            Err(Error::new(Code::Internal, format!("the function {name} did not run to its end")))
        })
    }
}

fn wrong(wanted: &str, input: &Value) -> Error {
    Error::new(Code::Unprocessable, format!("the input is {}, not {wanted}", shown(input)))
}

fn object(input: &Value) -> Result<&Map<String, Value>, Error> {
    input.as_object().ok_or_else(|| wrong("an object", input))
}

/// A list, or the one under `list` or `items`.
fn list(input: &Value) -> Result<&Vec<Value>, Error> {
    let list = input.as_array().or_else(|| input.get("list")?.as_array()).or_else(|| input.get("items")?.as_array());
    list.ok_or_else(|| wrong("a list, nor an object with one under `list`", input))
}

/// That a function makes no more than fits, before it makes it.
fn fits(function: &str, bytes: usize) -> Result<(), Error> {
    const MOST: usize = 16 * 1024 * 1024;
    if bytes <= MOST {
        return Ok(());
    }
    let message = format!("{function} would make {bytes} bytes; {MOST} fit");
    Err(Error::new(Code::PayloadTooLarge, message).hint("repeat or join less"))
}

/// A text, or the one under `text`.
fn text(input: &Value) -> Result<&str, Error> {
    let text = input.as_str().or_else(|| input.get("text")?.as_str());
    text.ok_or_else(|| wrong("a text, nor an object with one under `text`", input))
}

fn parse(input: &Value) -> Result<Value, Error> {
    let text = text(input)?.trim();
    // Models like to put JSON into a fence.
    let inner =
        text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).map(|text| text.trim_end_matches("```"));
    let json = inner.unwrap_or(text);
    let value = serde_json::from_str(json)
        .map_err(|error| Error::new(Code::Unprocessable, format!("the text is not JSON: {error}")))?;
    domain::exact_numbers::check("text", json).map_err(|error| Error { code: Code::Unprocessable, ..error })?;
    Ok(value)
}

/// Objects into one, the later over the earlier, objects inside of them as well.
fn merge(input: &Value) -> Result<Value, Error> {
    fn over(under: &mut Map<String, Value>, object: &Map<String, Value>) {
        for (key, value) in object {
            match (under.get_mut(key), value) {
                (Some(Value::Object(under)), Value::Object(object)) => over(under, object),
                (Some(slot), value) => slot.clone_from(value),
                (None, value) => drop(under.insert(key.clone(), value.clone())),
            }
        }
    }
    let mut all = Map::new();
    for item in list(input)? {
        over(&mut all, object(item)?);
    }
    Ok(Value::Object(all))
}

fn chunk(input: &Value) -> Result<Value, Error> {
    let size = input.get("size").and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| *size > 0);
    let size =
        size.ok_or_else(|| wrong("an object with a list under `list` and a number above 0 under `size`", input))?;
    Ok(list(input)?.chunks(size).map(|chunk| Value::from(chunk.to_vec())).collect())
}

/// `{"value": …, "count": n}` as a list with the value n times; at most 100,000.
fn repeat(input: &Value) -> Result<Value, Error> {
    const MOST: u64 = 100_000;
    let count = input.get("count").and_then(Value::as_u64).filter(|count| *count <= MOST);
    let count = count.ok_or_else(|| Error::invalid("count", format!("count has to be a number from 0 to {MOST}")))?;
    let value = input.get("value").unwrap_or(&Value::Null);
    fits("list:repeat", (json_length(value) + 1).saturating_mul(usize::try_from(count).unwrap_or(usize::MAX)))?;
    Ok((0..count).map(|_| value.clone()).collect())
}

fn flatten(input: &Value) -> Result<Value, Error> {
    let items = list(input)?.iter().flat_map(|item| match item {
        Value::Array(inner) => inner.clone(),
        other => vec![other.clone()],
    });
    Ok(items.collect())
}

fn unique(input: &Value) -> Result<Value, Error> {
    let mut seen = std::collections::HashSet::new();
    Ok(list(input)?.iter().filter(|item| seen.insert(item.to_string())).cloned().collect())
}

/// The outputs that arrived at a merge, without their origin.
fn outputs(input: &Value) -> Result<Value, Error> {
    Ok(list(input)?.iter().map(|arrival| arrival.get("output").cloned().unwrap_or_default()).collect())
}

/// The outputs that arrived at a merge, by their node: lists, because subtasks come from the same one.
fn by_node(input: &Value) -> Result<Value, Error> {
    let mut nodes: Map<String, Value> = Map::new();
    for arrival in list(input)? {
        let from = arrival.get("from").and_then(Value::as_str).ok_or_else(|| wrong("a list of arrivals", input))?;
        let slot = nodes.entry(from).or_insert_with(|| json!([]));
        if let Value::Array(slot) = slot {
            slot.push(arrival.get("output").cloned().unwrap_or_default());
        }
    }
    Ok(Value::Object(nodes))
}

fn join(input: &Value) -> Result<Value, Error> {
    let separator = input.get("separator").and_then(Value::as_str).unwrap_or("\n");
    fits("text:join", json_length(input).saturating_add(separator.len().saturating_mul(list(input)?.len())))?;
    let item = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
    Ok(Value::String(list(input)?.iter().map(item).collect::<Vec<_>>().join(separator)))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn s2_2_built_in_functions() {
        let functions = Functions::builtin();
        let check = |name: &str, input: Value, expected: Value| {
            assert_eq!(functions.call(name, &input, &Scope::of(&input)).unwrap(), expected, "{name}");
        };
        check("text:lines", json!("a\nb\r\n"), json!(["a", "b"]));
        check("text:words", json!({"text": " a  b"}), json!(["a", "b"]));
        check("text:join", json!({"items": ["a", 1], "separator": "-"}), json!("a-1"));
        check(
            "json:parse",
            json!("```json\n{\"a\": 18446744073709551615}\n```"),
            json!({"a": 18446744073709551615_u64}),
        );
        check("json:text", json!({"b": 1, "a": 2.0}), json!("{\"b\":1,\"a\":2.0}"));
        check(
            "json:merge",
            json!([{"a": {"x": 1}, "b": 1}, {"a": {"y": 2}, "b": [2]}]),
            json!({"a": {"x": 1, "y": 2}, "b": [2]}),
        );
        check("list:chunk", json!({"list": [1, 2, 3], "size": 2}), json!([[1, 2], [3]]));
        check("list:flatten", json!([[1], 2, [[3]]]), json!([1, 2, [3]]));
        check("list:unique", json!([1, "1", 1, {"a": 1}, {"a": 1}]), json!([1, "1", {"a": 1}]));
        let arrived = json!([{"from": "w", "output": 1}, {"from": "w", "output": 2}, {"from": "v", "output": null}]);
        check("merge:outputs", arrived.clone(), json!([1, 2, null]));
        check("merge:by_node", arrived, json!({"w": [1, 2], "v": [null]}));
    }

    #[test]
    fn s2_2_wrong_inputs_are_errors_that_say_what_is_wanted() {
        let functions = Functions::builtin();
        for (name, input, wanted) in [
            ("text:lines", json!(1), "not a text"),
            ("list:chunk", json!({"list": [1], "size": 0}), "above 0"),
            ("json:parse", json!("{"), "not JSON"),
            ("json:parse", json!("[12345678901234567890123]"), "cannot be kept exactly"),
            ("json:merge", json!([1]), "not an object"),
            ("no:such", json!(1), "no function"),
        ] {
            let error = functions.call(name, &input, &Scope::of(&input)).unwrap_err();
            assert!(error.message.contains(wanted), "{name}: {error}");
        }
    }

    #[test]
    fn embedders_register_their_own_and_a_panic_is_an_error() {
        let mut functions = Functions::builtin();
        functions.register("my.app:twice", |input, _| Ok(json!([input, input]))).unwrap();
        functions.register("my.app:panics", |_, _| panic!("on purpose")).unwrap();
        assert_eq!(functions.register("my.app:twice", |_, _| Ok(Value::Null)).unwrap_err().code, Code::Conflict);
        assert_eq!(functions.register("twice", |_, _| Ok(Value::Null)).unwrap_err().code, Code::InvalidArgument);
        let scope = Scope::of(&Value::Null);
        assert_eq!(functions.call("my.app:twice", &json!(1), &scope).unwrap(), json!([1, 1]));
        assert_eq!(functions.call("my.app:panics", &json!(1), &scope).unwrap_err().code, Code::Internal);
        assert!(functions.known().any(|name| name == "my.app:twice") && functions.contains("text:lines"));
    }

    #[test]
    fn the_size_of_an_answer_is_known_before_it_is_made() {
        let functions = Functions::builtin();
        let code = |name: &str, input: Value| functions.call(name, &input, &Scope::of(&input)).unwrap_err().code;
        let long = "x".repeat(10_000);
        assert_eq!(code("list:repeat", json!({ "value": long, "count": 100_000 })), Code::PayloadTooLarge);
        assert_eq!(code("text:join", json!({ "list": vec![1; 10_000], "separator": long })), Code::PayloadTooLarge);
    }
}
