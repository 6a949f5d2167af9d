//! The functions of expressions, each with an example. `docs/reference/expressions.md` is made of this list, and a test evaluates the examples.

use Side::{After, Before, Either, Macro};

/// Where a function stands in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Before its value: `int(value)`.
    Before,
    /// After it: `value.trim()`.
    After,
    /// On either side.
    Either,
    /// It is taken apart when the expression is parsed, where it is called as in its example.
    Macro,
}

/// The functions that expressions may call, besides operators: the name, where it stands, what it gives, an example, and the JSON that this gives.
pub(super) const FUNCTIONS: [(&str, Side, &str, &str, &str); 27] = [
    ("bool", Before, "Reads a text as true or false.", "bool('true')", "true"),
    ("bytes", Before, "The UTF-8 bytes of a text, to count them.", "size(bytes('né'))", "3"),
    ("contains", After, "Whether a text has another one in it.", "'release'.contains('lea')", "true"),
    ("double", Before, "A decimal of a number or a text.", "double('1.5')", "1.5"),
    ("dyn", Before, "The value as it is.", "dyn([1, 'a'])", "[1,\"a\"]"),
    ("endsWith", After, "Whether a text ends with another one.", "'plan.md'.endsWith('.md')", "true"),
    ("int", Before, "A whole number of a decimal, which is cut, or of a text.", "int('42')", "42"),
    ("join", After, "Puts a list together as one text, with a text in between.", "['a', 'b'].join(', ')", "\"a, b\""),
    ("json", Before, "A value as JSON text.", "json({'a': [1]})", "\"{\\\"a\\\":[1]}\""),
    ("lowerAscii", After, "A text in small letters; others than a to z stay.", "'Nov'.lowerAscii()", "\"nov\""),
    ("matches", Either, "Whether a text matches a regular expression.", "'v1.2'.matches('^v[0-9]')", "true"),
    ("size", Either, "Characters of a text, elements of a list or keys of an object.", "size(input.items)", "3"),
    ("split", After, "Cuts a text at a separator into a list.", "'a,b'.split(',')", "[\"a\",\"b\"]"),
    ("startsWith", After, "Whether a text begins with another one.", "'release'.startsWith('re')", "true"),
    ("string", Before, "A number, a text or a truth value as text.", "string(42)", "\"42\""),
    ("trim", After, "A text without white space around it.", "' a '.trim()", "\"a\""),
    ("type", Before, "The type, to compare it with a name such as `int`.", "type(input.name) == string", "true"),
    ("uint", Before, "A whole number that is not negative, of a number or a text.", "uint('3')", "3"),
    ("upperAscii", After, "A text in capital letters; others than a to z stay.", "'ab'.upperAscii()", "\"AB\""),
    ("max", Before, "The largest of a list.", "max(input.items)", "3"),
    ("min", Before, "The smallest of a list.", "min(input.items)", "1"),
    ("has", Macro, "Whether an object has a key.", "has(input.name)", "true"),
    (
        "all",
        Macro,
        "Whether a condition holds for each element, or for each key of an object.",
        "input.items.all(n, n > 0)",
        "true",
    ),
    ("exists", Macro, "Whether a condition holds for some element.", "input.items.exists(n, n == 2)", "true"),
    ("exists_one", Macro, "Whether a condition holds for just one.", "input.items.exists_one(n, n > 2)", "true"),
    ("filter", Macro, "The elements for which a condition holds.", "input.items.filter(n, n > 1)", "[3,2]"),
    (
        "map",
        Macro,
        "A list of a value per element; with a condition before the value, of those that it holds for.",
        "input.items.map(n, n > 1, n * 2)",
        "[6,4]",
    ),
];

/// Where a function stands, and its example; none of a name that is no function.
pub(super) fn function(name: &str) -> Option<(Side, &'static str)> {
    FUNCTIONS.iter().find(|(known, ..)| *known == name).map(|(_, side, _, example, _)| (*side, *example))
}

/// How a function is called, where a call of it fails whenever it is evaluated.
pub(super) fn misuse(name: &str, is_after: bool, args: usize) -> Option<String> {
    match function(name)?.0 {
        After if !is_after => Some(format!("{name:?} comes after its value: value.{name}(…)")),
        Before if is_after => Some(format!("{name:?} comes before its value: {name}(value)")),
        Before if matches!(name, "max" | "min") && args != 1 => {
            Some(format!("{name:?} takes one list: {name}([1, 2])"))
        }
        After | Before | Either | Macro => None,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::op::{Scope, expr};
    use serde_json::{Value, json};

    #[test]
    fn s2_2_each_function_of_an_expression_has_an_example_that_is_true() {
        let input = json!({ "items": [3, 1, 2], "name": "Ada" });
        for (name, side, does, example, gives) in FUNCTIONS {
            let gives: Value = serde_json::from_str(gives).unwrap();
            assert_eq!(expr::eval(example, &Scope::of(&input)).unwrap(), gives, "{example}");
            assert!(does.ends_with('.') && example.contains(&format!("{name}(")), "{name}");
            match side {
                Before => assert!(expr::check_calls(&format!("input.{name}()")).is_err(), "{name}"),
                After => assert!(expr::check_calls(&format!("{name}(input)")).is_err(), "{name}"),
                Either => {}
                Macro => {
                    let fault = expr::check(&format!("input.{name}(1, 2, 3, 4)")).unwrap_err();
                    assert!(fault.contains(example), "{name}: {fault}");
                }
            }
        }
    }
}
