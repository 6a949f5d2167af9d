//! Templates: `{{expression}}` inside of texts, also those of objects and lists.
//!
//! A text that is one expression and nothing else gives its value with its type; in any other text a value is written as
//! it is when it is a text, as JSON when it is not, and not at all when it is null. `{{'{{'}}` writes two braces.

use super::{Scope, expr};
use domain::{Code, Error, json_length};
use serde_json::{Map, Value};

/// How deep a template's objects and lists may nest, as JSON itself.
const MAX_DEPTH: usize = 128;
/// The most that one template gives, in bytes of JSON and text.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// A part of a text.
#[derive(Debug, PartialEq)]
enum Part<'a> {
    Text(&'a str),
    Expr(&'a str),
}

/// Whether every expression in `template` can be evaluated.
///
/// # Errors
/// The first fault, in words, with the expression that it is in.
pub fn check(template: &Value) -> Result<(), String> {
    each_expr(template, &mut |source| expr::check(source).map_err(|fault| format!("in {{{{{source}}}}}: {fault}")))
}

/// The same of the calls in its expressions, by [`expr::check_calls`].
///
/// # Errors
/// As [`expr::check_calls`], with the expression.
pub fn check_calls(template: &Value) -> Result<(), String> {
    each_expr(template, &mut |source| expr::check_calls(source).map_err(|why| format!("in {{{{{source}}}}}: {why}")))
}

/// The nodes whose outputs a template reads.
///
/// # Errors
/// As [`check`].
pub fn outputs_read(template: &Value) -> Result<Vec<String>, String> {
    let mut nodes = Vec::new();
    each_expr(template, &mut |source| {
        nodes.extend(expr::outputs_read(source)?);
        Ok(())
    })?;
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes)
}

/// The names that a template reads of its input, as in `input.name`: the arguments that a model is told to give. One that is
/// read in another way is not found; it is no fault to give it.
///
/// # Errors
/// A fault of the braces, in words. Expressions are not parsed.
pub fn inputs_read(template: &Value) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    each_expr(template, &mut |source| {
        for after in source.split("input.").skip(1) {
            let name: String = after.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
            names.extend((!name.is_empty()).then_some(name));
        }
        Ok(())
    })?;
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

fn each_expr(template: &Value, visit: &mut dyn FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    match template {
        Value::String(text) => parts(text)?.into_iter().try_for_each(|part| match part {
            Part::Text(_) => Ok(()),
            Part::Expr(source) => visit(source),
        }),
        Value::Array(items) => items.iter().try_for_each(|item| each_expr(item, visit)),
        Value::Object(object) => object.values().try_for_each(|item| each_expr(item, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Fills a template in.
///
/// # Errors
/// `UNPROCESSABLE`, with the expression, when one fails or the template is broken; `PAYLOAD_TOO_LARGE` when it gives more than 16 MiB.
pub fn render(template: &Value, scope: &Scope<'_>) -> Result<Value, Error> {
    let mut room = MAX_TEXT;
    fill(template, scope, MAX_DEPTH, &mut room)
}

/// Fills a template that is a text in, to a text.
///
/// # Errors
/// As [`render`].
pub fn render_text(template: &str, scope: &Scope<'_>) -> Result<String, Error> {
    let mut room = MAX_TEXT;
    let mut text = String::new();
    for part in parts(template).map_err(broken)? {
        write(&mut text, &part, scope, &mut room)?;
    }
    Ok(text)
}

fn fill(template: &Value, scope: &Scope<'_>, depth: usize, room: &mut usize) -> Result<Value, Error> {
    let Some(depth) = depth.checked_sub(1) else { return Err(broken("it nests too deep".into())) };
    match template {
        Value::String(text) => match parts(text).map_err(broken)?.as_slice() {
            [Part::Expr(source)] => {
                let value = expr::eval(source, scope)?;
                spend(room, json_length(&value))?;
                Ok(value)
            }
            parts => {
                let mut text = String::new();
                parts.iter().try_for_each(|part| write(&mut text, part, scope, room))?;
                Ok(Value::String(text))
            }
        },
        Value::Array(items) => {
            items.iter().map(|item| fill(item, scope, depth, room)).collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Object(object) => {
            let entry = |(key, item): (&String, &Value)| Ok((key.clone(), fill(item, scope, depth, room)?));
            object.iter().map(entry).collect::<Result<Map<_, _>, Error>>().map(Value::Object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(template.clone()),
    }
}

fn write(into: &mut String, part: &Part<'_>, scope: &Scope<'_>, room: &mut usize) -> Result<(), Error> {
    let before = into.len();
    match part {
        Part::Text(text) => into.push_str(text),
        Part::Expr(source) => match expr::eval(source, scope)? {
            Value::Null => {}
            Value::String(text) => into.push_str(&text),
            value => into.push_str(&value.to_string()),
        },
    }
    spend(room, into.len() - before)
}

fn spend(room: &mut usize, bytes: usize) -> Result<(), Error> {
    *room = room
        .checked_sub(bytes)
        .ok_or_else(|| Error::new(Code::PayloadTooLarge, format!("a template gives more than {MAX_TEXT} bytes")))?;
    Ok(())
}

fn broken(fault: String) -> Error {
    Error::new(Code::Unprocessable, format!("the template is broken: {fault}"))
}

/// Takes a text apart. Braces inside of an expression's texts and objects do not end it.
fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        let end = end_of_expr(after).ok_or_else(|| {
            let begin: String = after.chars().take(40).collect();
            format!("{{{{{begin}… is not closed by }}}}")
        })?;
        let (source, after) = after.split_at(end);
        parts.push(Part::Expr(source.trim()));
        rest = after.get(2..).unwrap_or_default();
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

/// The position of the `}}` that ends an expression.
fn end_of_expr(text: &str) -> Option<usize> {
    let (mut quote, mut escaped, mut open) = (None, false, 0_usize);
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(end), character) if end == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '{') => open += 1,
            (None, '}') if open > 0 => open -= 1,
            (None, '}') if characters.peek().is_some_and(|(_, next)| *next == '}') => return Some(at),
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn rendered(template: Value, input: Value) -> Value {
        render(&template, &Scope::of(&input)).unwrap()
    }

    #[test]
    fn s2_2_a_template_keeps_types_and_writes_texts() {
        let input = json!({"n": 18446744073709551615_u64, "who": "Ada", "list": [1, 2.0], "none": null});
        let check = |template: Value, expected: Value| assert_eq!(rendered(template, input.clone()), expected);
        check(json!("{{input.n}}"), json!(18446744073709551615_u64));
        check(json!("{{ input.list }}"), json!([1, 2.0]));
        check(json!("Hello {{input.who}}, {{input.list}}{{input.none}}!"), json!("Hello Ada, [1,2.0]!"));
        check(json!("{{input.who}} "), json!("Ada "));
        check(
            json!({"a": ["{{input.n}}", true], "{{x}}": 1}),
            json!({"a": [18446744073709551615_u64, true], "{{x}}": 1}),
        );
        check(json!("{{ {'a': {'b': '}}'}} }}"), json!({"a": {"b": "}}"}}));
        check(json!("{{'{{'}} and }} and {"), json!("{{ and }} and {"));
        check(json!("{{'it\\'s }}'}}"), json!("it's }}"));
    }

    #[test]
    fn s8_faults_are_found_before_anything_runs() {
        let check = |template: &str, expected: &str| {
            let fault = check(&json!({"deep": [template]})).unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        };
        check("a {{input.x", "is not closed");
        check("{{}}", "empty");
        check("{{inptu.x}}", "there is no \"inptu\"");
        check("{{now()}}", "there is no function \"now\"");
        assert_eq!(
            outputs_read(&json!(["{{outputs.b}} {{outputs['a'].x + 1}}", {"x": "{{outputs.b.y}}"}])).unwrap(),
            ["a", "b"]
        );
    }

    #[test]
    fn a_text_of_any_length_is_not_given() {
        let input = json!("x".repeat(1024 * 1024));
        let template = json!(vec!["{{input}}{{input}}"; 9]);
        assert_eq!(render(&template, &Scope::of(&input)).unwrap_err().code, Code::PayloadTooLarge);
        let values = json!(vec!["{{input}}"; 17]);
        assert_eq!(render(&values, &Scope::of(&input)).unwrap_err().code, Code::PayloadTooLarge);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-z]{1,4}", inner), 0..5)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn s2_1_values_go_through_templates_and_expressions_unchanged(value in any_json()) {
            let scope = Scope::of(&value);
            prop_assert_eq!(render(&json!("{{input}}"), &scope).unwrap().to_string(), value.to_string());
            // Through CEL, where keys are put in order.
            prop_assert_eq!(&expr::eval("true ? input : null", &scope).unwrap(), &value);
            prop_assert_eq!(&expr::eval("[input].map(x, x)[0]", &scope).unwrap(), &value);
        }

        #[test]
        fn texts_without_braces_stay_as_they_are(text in "[^{]*") {
            prop_assert_eq!(render(&json!(text), &Scope::of(&Value::Null)).unwrap(), json!(text));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}", braced in "(\\{\\{|\\}\\}|[a-z'\"\\\\{}]){0,20}") {
            let scope = Scope::of(&Value::Null);
            let _ = (render(&json!(text), &scope), render(&json!(braced), &scope));
        }
    }
}
