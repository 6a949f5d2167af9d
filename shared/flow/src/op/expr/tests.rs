#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use serde_json::json;

fn with<T>(input: Value, work: impl FnOnce(&Scope<'_>) -> T) -> T {
    let context = json!({"profile": "p", "items": [{"content": "remember"}], "tokens": 2});
    let task = json!({"id": "t-1", "flow": "demo"});
    let outputs = |node: &str| (node == "plan").then(|| Arc::new(json!({"steps": ["a", "b"], "n": 3})));
    work(&Scope { input: &input, context: &context, outputs: &outputs, task: &task })
}

fn value(source: &str, input: Value) -> Value {
    with(input, |scope| eval(source, scope)).unwrap()
}

fn fault(source: &str, input: Value) -> String {
    with(input, |scope| eval(source, scope)).unwrap_err().message
}

#[test]
fn s2_2_expressions_see_the_input_the_context_outputs_and_the_task() {
    let input = json!({"n": 2, "who": "Ada", "tags": ["x", "y"], "deep": {"list": [{"k": 1}]}});
    for (source, expected) in [
        ("input.n + 1", json!(3)),
        ("input.deep.list[0].k", json!(1)),
        ("input['who']", json!("Ada")),
        ("context.items[0].content", json!("remember")),
        ("context.tokens > 1 && task.flow == 'demo'", json!(true)),
        ("outputs.plan.steps", json!(["a", "b"])),
        ("size(outputs.plan.steps) + outputs['plan'].n", json!(5)),
        ("has(outputs.plan)", json!(true)),
        ("has(outputs.other) || has(input.missing)", json!(false)),
        ("input.tags.map(tag, tag + '!')", json!(["x!", "y!"])),
        ("input.tags.filter(tag, tag != 'x')", json!(["y"])),
        ("input.tags.exists(tag, tag == 'y') ? 'yes' : 'no'", json!("yes")),
        ("{'b': input.n, 'a': [input.who, 1.5]}", json!({"b": 2, "a": ["Ada", 1.5]})),
        ("input.tags.join(', ').upperAscii()", json!("X, Y")),
        ("'a,b'.split(',')", json!(["a", "b"])),
        ("'  x '.trim().matches('^[a-z]$')", json!(true)),
        ("max([1, 3, 2]) - min([1, 3, 2])", json!(2)),
        ("json(input.tags)", json!("[\"x\",\"y\"]")),
        ("string(input.n) + input.who", json!("2Ada")),
        ("type(input.n) == int", json!(true)),
        ("'x' in input.tags", json!(true)),
    ] {
        assert_eq!(value(source, input.clone()), expected, "{source}");
    }
}

#[test]
fn s2_1_numbers_stay_what_they_are() {
    for text in ["18446744073709551615", "-9223372036854775808", "9007199254740993", "1.0", "0.1", "-0.0", "1e300"] {
        let number: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value("input", number.clone()).to_string(), number.to_string(), "as a path");
        assert_eq!(value("[input].map(x, x)[0]", number.clone()).to_string(), number.to_string(), "through CEL");
    }
    assert_eq!(value("input + 1u", json!(18446744073709551614_u64)), json!(18446744073709551615_u64));
    assert!(fault("input + 1", json!(i64::MAX)).contains("too large"));
}

#[test]
fn maps_are_walked_in_order() {
    let input: Map<String, Value> = (0..64).map(|n| (format!("k{:02}", (n * 37) % 64), json!(n))).collect();
    let mut keys: Vec<String> = input.keys().cloned().collect();
    keys.sort();
    for _ in 0..8 {
        assert_eq!(value("input.map(key, key)", Value::Object(input.clone())), json!(keys));
    }
    let names = value("true ? input : null", Value::Object(input));
    assert_eq!(names.as_object().unwrap().keys().cloned().collect::<Vec<_>>(), keys);
}

#[test]
fn s8_an_expression_that_cannot_be_evaluated_is_found_by_the_check() {
    for (source, expected) in [
        ("", "empty"),
        ("input.", "line 1"),
        ("inptu.x", "there is no \"inptu\""),
        ("[1].map(x, y)", "there is no \"y\""),
        ("[1].map(input, 1)", "loop's variable"),
        ("now()", "no function \"now\""),
        ("input.x.frobnicate()", "no function"),
        ("size(outputs)", "read by node"),
        ("outputs[input.x]", "read by node"),
        ("Message{a: 1}", "message"),
        ("timestamp('2026-01-01T00:00:00Z')", "no function"),
        ("@copy(1)", ""),
        ("input.?x", ""),
        ("input.x.matches('(')", "\"(\" is no regular expression: unclosed group"),
        ("false && matches(input.x, '[')", "\"[\" is no regular expression"),
        ("input.x.matches('((a{99}){99}){99}')", "size limit"),
    ] {
        let fault = check(source).unwrap_err();
        assert!(fault.contains(expected), "{source}: {fault}");
    }
    assert!(check(&format!("'{}'", "x".repeat(MAX_SOURCE))).unwrap_err().contains("limit"));
    assert_eq!(outputs_read("outputs.a.x + outputs['b'] + (has(outputs.c) ? 1 : 0)").unwrap(), ["a", "b", "c"]);
    assert_eq!(outputs_read("{'x': [outputs.z.y]}").unwrap(), ["z"]);
}

#[test]
fn a_call_that_fails_whenever_it_is_evaluated_is_found_and_evaluated_as_before() {
    for (source, expected) in [
        ("trim(input.name)", "value.trim(…)"),
        ("input.a == 1 ? contains(input.name, 'x') : false", "value.contains(…)"),
        ("input.list.max()", "max(value)"),
        ("input.list.map(one, one.string())", "string(value)"),
        ("max(1, 2)", "max([1, 2])"),
    ] {
        let why = check_calls(source).unwrap_err();
        assert!(why.contains(expected), "{source}: {why}");
        assert!(check(source).is_ok(), "a flow that was accepted with it still loads: {source}");
    }
    for source in [
        "max(input.list)",
        "input.name.trim().matches('x') || matches(input.name, 'y')",
        "size(input.list) + input.list.size()",
        "input.list.filter(one, one > 1).join(',')",
        "has(input.name) && input.list.all(size, size > 1) || input.list.exists_one(trim, trim == 2)",
        "'trim(x), max(1, 2)' + input.name",
        "trim(",
        "now()",
    ] {
        assert_eq!(check_calls(source), Ok(()), "{source}");
    }
    assert_eq!(value("true || trim(input.name) == ''", json!({ "name": "x" })), json!(true));
}

#[test]
fn failures_say_what_there_is() {
    let input = json!({"name": "x", "list": [1]});
    assert!(
        fault("input.nmae.x", input.clone()).contains("there is no input.nmae: input is an object with name, list")
    );
    assert!(fault("input.list[3]", input.clone()).contains("input.list is a list of 1"));
    assert!(fault("outputs.other.x", input.clone()).contains("the node \"other\" has given no output"));
    assert!(fault("input.name + 1", input.clone()).contains("failed"));
    assert!(fault("size(input.list) * 1.5", input.clone()).contains("double(…)"));
    assert!(fault("1 / (size(input.list) - 1)", input).contains("divides by zero"));
}

#[test]
fn messages_do_not_carry_whole_inputs() {
    let message = fault("input.a + 1", json!({"a": "x".repeat(100_000)}));
    assert!(message.len() < 1000, "{}", message.len());
}

#[test]
fn hostile_expressions_end_soon() {
    let big = json!({"list": (0..10_000).collect::<Vec<_>>(), "text": "x".repeat(100_000)});
    let doubling = (0..40).fold("input.text".to_owned(), |inner, n| format!("[{inner}].map(v{n}, v{n} + v{n})[0]"));
    for source in [
        "input.list.map(a, input.list.map(b, input.list.map(c, a + b + c)))",
        "input.list.map(a, input.text + input.text)",
        "input.list.all(a, input.list.all(b, input.list.all(c, a + b + c >= 0)))",
        "input.list.map(a, [input.list, input.list])",
        "input.list.map(a, {'x': input.text})",
        "input.list.map(a, [input.text, input.text].join(input.text))",
        "input.list.exists(a, input.list.exists(b, input.text == input.text + 'x'))",
        "input.list.map(a, 'x'.matches('(a{30}){30}' + string(a)))",
        "input.list.map(a, input.text.split('x'))",
        doubling.as_str(),
    ] {
        let message = fault(source, big.clone());
        assert!(message.contains("too much work") || message.contains("nests deeper"), "{source}: {message}");
    }
}

#[test]
fn a_search_is_priced_by_its_text_and_by_the_size_of_its_regular_expression() {
    let of = |bytes: usize| json!({"text": "x".repeat(bytes)});
    let large = "input.text.matches('[xy]{5000}z')";
    assert!(fault(large, of(500_000)).contains("too much work"));
    assert_eq!(value(large, of(1_000)), json!(false));
    for usual in
        [r"input.text.matches('^x+$')", r"input.text.matches('^\\w+$')", r"!input.text.matches('(?i)\\berror\\b')"]
    {
        assert_eq!(value(usual, of(200_000)), json!(true), "{usual}");
    }
}

#[test]
fn large_but_reasonable_input_is_computed() {
    let items: Vec<Value> =
        (0..10_000).map(|n| json!({"id": n, "text": "x".repeat(500), "tags": ["a", "b"]})).collect();
    let input = json!({ "items": items, "wanted": (0..100).collect::<Vec<_>>() });
    let found = value("input.items.filter(item, item.id in input.wanted).map(item, item.id)", input);
    assert_eq!(found.as_array().unwrap().len(), 100);
}

#[test]
fn no_source_overflows_the_stack() {
    let sources = [
        "(".repeat(2000) + "1" + &")".repeat(2000),
        "[".repeat(2000) + &"]".repeat(2000),
        "!".repeat(4000) + "true",
        "-".repeat(4000) + "1",
        "1+".repeat(2000) + "1",
        "true?".repeat(600) + "1" + &":1".repeat(600),
        "true&&".repeat(600) + "true",
        "input".to_owned() + &".a".repeat(2000),
        "input".to_owned() + &"[0]".repeat(1300),
        "[1].map(x,".repeat(300) + "1" + &")".repeat(300),
        "size(".repeat(700) + "1" + &")".repeat(700),
        "'".repeat(4000),
        "{".repeat(4000),
    ];
    for source in sources {
        // Whether it is an expression is not the point; that something answers is.
        with(json!({"a": 1}), |scope| drop(eval(&source, scope)));
    }
}

#[test]
fn the_deepest_expressions_run_on_a_small_stack() {
    let sum = "1+".repeat(MAX_DEPTH - 2) + "1";
    let nested = (0..7).fold("1".to_owned(), |inner, n| format!("[1].map(v{n}, {inner})"));
    let run = move || with(Value::Null, |scope| (eval(&sum, scope), eval(&nested, scope)));
    let (sum, nested) = std::thread::Builder::new().stack_size(1024 * 1024).spawn(run).unwrap().join().unwrap();
    assert_eq!(sum.unwrap(), json!(MAX_DEPTH - 1));
    assert_eq!(nested.unwrap(), json!([[[[[[[1]]]]]]]));
}

#[test]
fn an_expression_that_spent_everything_gives_no_answer_even_where_an_error_is_absorbed() {
    let big = json!({"list": (0..10_000).collect::<Vec<_>>()});
    let source = "size(input.list.map(a, input.list.map(b, [a, b]))) > 0 || true";
    assert!(fault(source, big).contains("too much work"));
}

#[test]
fn a_scope_with_large_parts_that_are_not_named_costs_nothing() {
    let huge: Vec<Value> = (0..200_000).map(|n| json!([n])).collect();
    let input = json!({"huge": huge, "n": 1});
    with(input, |scope| {
        for _ in 0..2000 {
            assert_eq!(eval("input.n + 1", scope).unwrap(), json!(2));
        }
    });
}

#[test]
fn s3_3_a_split_over_what_is_no_list_is_an_error() {
    with(json!({"items": [1, 2]}), |scope| {
        assert_eq!(eval_list("input.items", scope).unwrap(), [json!(1), json!(2)]);
        assert!(eval_list("input", scope).unwrap_err().message.contains("not a list"));
    });
}

#[test]
fn a_thread_that_is_not_started_is_no_fault_of_the_expression() {
    // No address space has room for this stack.
    let error = on_stack(usize::MAX / 2, || ()).unwrap_err();
    let fault = Fault::from(error);
    assert!(matches!(fault, Fault::Ours(_)));
    assert!(fault.message().contains("this server"));
    assert_eq!(on_stack(DEEP_STACK, || 1).unwrap(), Some(1));
}
