//! The OpenAPI document, and answers held against it.

use crate::support::Reply;
use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

static DOCUMENT: LazyLock<Value> = LazyLock::new(buildscale_api::document);

/// The operations of the document, as `METHOD path`.
pub fn operations() -> BTreeSet<String> {
    let paths = DOCUMENT["paths"].as_object().unwrap().iter();
    let each = |(path, item): (&String, &Value)| {
        let methods = item
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| ["get", "post", "put", "patch", "delete"].contains(&key.as_str()));
        methods.map(|method| format!("{} {path}", method.to_uppercase())).collect::<Vec<_>>()
    };
    paths.flat_map(each).collect()
}

/// The operation that a request is one of, if it is one.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap();
    let literals = |route: &str| route.split('/').filter(|part| !part.starts_with('{')).count();
    let fits = |route: &str| {
        route.split('/').count() == path.split('/').count()
            && route.split('/').zip(path.split('/')).all(|(a, b)| a.starts_with('{') || a == b)
    };
    let routes = DOCUMENT["paths"].as_object().unwrap().iter().filter(|(route, _)| fits(route));
    routes.max_by_key(|(route, _)| literals(route))?.1.get(method.to_lowercase())
}

/// Holds an answer against its shape; a field that the shape does not have is a fault, too. A refusal has to be one that the
/// document names with the route.
pub fn check(method: &str, path: &str, reply: &Reply) {
    let responses = operation(method, path).map(|operation| &operation["responses"]);
    let status = reply.status.as_u16().to_string();
    let schema = if reply.status.is_success() {
        let responses = responses.unwrap_or_else(|| panic!("{method} {path} is not in the document"));
        assert!(!responses[&status].is_null(), "{method} {path} answers {status}, which the document does not know");
        responses[&status]["content"]["application/json"]["schema"].clone()
    } else {
        if let Some(responses) = responses {
            let response = &responses[&status];
            let response = match response["$ref"].as_str() {
                Some(place) => DOCUMENT.pointer(place.trim_start_matches('#')).unwrap(),
                None => response,
            };
            let codes = response["x-error-codes"].as_array().map_or(&[][..], Vec::as_slice);
            let is_named = codes.iter().any(|code| code == reply.code());
            assert!(is_named, "{method} {path} answers {status} {}, and the document names {codes:?}", reply.code());
        }
        json!({ "$ref": "#/components/schemas/ErrorEnvelope" })
    };
    let faults = faults(schema, &reply.json);
    assert!(faults.is_empty(), "{method} {path}: {faults:#?}\n{:#}", reply.json);
}

/// The places at which a value breaks a schema of the document; a field that the schema does not have is a fault, too.
pub fn faults(schema: Value, value: &Value) -> Vec<String> {
    let validator = validator(schema);
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// The validator of a schema, with the components of the document. It is compiled once: that takes longer than the request whose answer is checked.
fn validator(schema: Value) -> Arc<Validator> {
    static CLOSED: LazyLock<Value> = LazyLock::new(|| {
        let mut components = DOCUMENT["components"].clone();
        for (name, shape) in components["schemas"].as_object_mut().unwrap() {
            // These are parts of larger ones.
            if !["Chat", "UsageTotals", "ModelUsage"].contains(&name.as_str()) {
                close(shape);
            }
        }
        components
    });
    static COMPILED: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock();
    let compile = || {
        let mut root = schema.clone();
        root["components"] = CLOSED.clone();
        Arc::new(jsonschema::validator_for(&root).unwrap())
    };
    compiled.entry(schema.to_string()).or_insert_with(compile).clone()
}

fn close(shape: &mut Value) {
    if shape.get("properties").is_some() || shape.get("allOf").is_some() {
        shape["unevaluatedProperties"] = json!(false);
    }
    for variant in shape.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        close(variant);
    }
}

/// The whole document.
pub fn document() -> &'static Value {
    &DOCUMENT
}
