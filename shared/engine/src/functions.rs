//! Functions of flows as tools of agents.

use domain::Error;
use flow::op::{Functions, Scope, template};
use serde_json::Value;

/// Registered functions, as the registry of tools calls them: the arguments are the input, and there is nothing else.
#[derive(Clone, Debug)]
pub struct FunctionTools(pub Functions);

impl tools::Functions for FunctionTools {
    fn call(&self, name: &str, args: &Value) -> Result<Value, Error> {
        self.0.call(name, args, &Scope::of(args))
    }

    fn words(&self, templates: &[String], args: &Value) -> Result<Vec<String>, Error> {
        templates.iter().map(|word| template::render_text(word, &Scope::of(args))).collect()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn s5_a_function_takes_the_arguments_that_fit_its_schema() {
        let functions = Functions::builtin();
        for (name, args) in [
            ("json:keys", json!({ "a": 1 })),
            ("json:merge", json!({ "list": [{ "a": 1 }, { "b": 2 }] })),
            ("json:parse", json!({ "text": "1" })),
            ("json:text", json!({ "a": 1 })),
            ("list:chunk", json!({ "list": [1, 2], "size": 1 })),
            ("list:flatten", json!({ "list": [[1], 2] })),
            ("list:repeat", json!({ "value": 1, "count": 2 })),
            ("list:unique", json!({ "list": [1, 1] })),
            ("merge:by_node", json!({ "list": [{ "from": "a", "output": 1 }] })),
            ("merge:outputs", json!({ "list": [{ "output": 1 }] })),
            ("text:join", json!({ "list": ["a", "b"], "separator": "-" })),
            ("text:lines", json!({ "text": "a\nb" })),
            ("text:words", json!({ "text": "a b" })),
        ] {
            let registry = tools::Registry::builtin().with_functions(Arc::new(FunctionTools(functions.clone())));
            let parameters = &functions.signature(name).unwrap().parameters;
            let outcome = registry.call_function(name, parameters, &args.to_string());
            assert!(outcome.success, "{name}: {}", outcome.output);
            let astray = registry.call_function(name, parameters, "[]");
            assert!(!astray.success, "{name} takes no list");
        }
    }
}
