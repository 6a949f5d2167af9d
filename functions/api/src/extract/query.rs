//! The query string. A parameter that cannot be read is refused with its name, its value, and the values that are possible: those of
//! its own description in `/openapi.json`.

use super::{cause, deserialization_error, unknown_field};
use crate::error::{Answer, ApiError, excerpt};
use axum::{
    extract::{FromRequestParts, Request, State, rejection::QueryRejection},
    middleware::Next,
    response::Response,
};
use domain::{Error, text::percent_decoded};
use http::{Uri, request::Parts};
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::{
    IntoParams,
    openapi::{
        RefOr,
        path::{Operation, ParameterIn},
    },
};

/// The longest value that a refusal repeats, in characters.
const SHOWN: usize = 64;

/// The parameters of the query string.
pub(crate) struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + IntoParams> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(read(&parts.uri)?))
    }
}

/// The parameters of the query string of this address.
pub(super) fn read<T: DeserializeOwned + IntoParams>(uri: &Uri) -> Result<T, ApiError> {
    check_encoding(uri)?;
    match axum::extract::Query::<T>::try_from_uri(uri) {
        Ok(axum::extract::Query(value)) => Ok(value),
        Err(QueryRejection::FailedToDeserializeQueryString(rejection)) => {
            let known: Vec<KnownParameter> =
                T::into_params(|| Some(ParameterIn::Query)).into_iter().map(KnownParameter::of).collect();
            Err(refusal(&cause(&rejection), &known, uri).into())
        }
        Err(_) => Err(crate::error::internal()),
    }
}

/// The middleware of one route. It refuses a parameter that the description of the route does not have: its sender may have meant it to change
/// the answer, or to bound what is done.
pub(crate) async fn demand_described(
    State(describe): State<fn() -> Operation>,
    request: Request,
    next: Next,
) -> Answer<Response> {
    check_names(&pairs(request.uri()), describe)?;
    Ok(next.run(request).await)
}

fn check_names(given: &[(String, String)], describe: fn() -> Operation) -> Result<(), Error> {
    // A description is made for requests with parameters alone, since it takes longer than the rest of the check.
    if given.is_empty() {
        return Ok(());
    }
    let parameters = describe().parameters.unwrap_or_default();
    let in_query = parameters.iter().filter_map(|parameter| match parameter {
        RefOr::T(one) if one.parameter_in == ParameterIn::Query => Some(one.name.as_str()),
        RefOr::T(_) | RefOr::Ref(_) => None,
    });
    let known: Vec<&str> = in_query.collect();
    let unknown = given.iter().find(|(name, _)| !known.contains(&name.as_str()));
    unknown.map_or(Ok(()), |(name, _)| Err(unknown_field(&excerpt(name), &excerpt(name), &known)))
}

/// A parameter as it is described.
struct KnownParameter {
    name: String,
    schema: Value,
}

impl KnownParameter {
    fn of(parameter: utoipa::openapi::path::Parameter) -> Self {
        let schema = parameter.schema.and_then(|schema| serde_json::to_value(schema).ok()).unwrap_or_default();
        Self { name: parameter.name, schema }
    }
}

/// The refusal for which serde has these words: `limit: invalid digit found in string`.
fn refusal(words: &str, known: &[KnownParameter], uri: &Uri) -> Error {
    let quoted: Vec<&str> = words.split('`').skip(1).step_by(2).collect();
    let named = words.split_once(": ").and_then(|(name, _)| known.iter().find(|known| known.name == name));
    let possible = named.and_then(|known| match quoted.split_first() {
        Some((_, values)) if words.contains("unknown variant") => Some(format!("one of {}", values.join(", "))),
        _ => possible(&known.schema),
    });
    let (Some(KnownParameter { name, .. }), Some(possible)) = (named, possible) else {
        return deserialization_error(words, "query");
    };
    let value: String = value(name, uri).chars().take(SHOWN).collect();
    Error::invalid(name, format!("{value:?} is not a valid {name}")).hint(format!("{name} is {possible}"))
}

/// The value of a parameter.
fn value(name: &str, uri: &Uri) -> String {
    let found = pairs(uri).into_iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value).unwrap_or_default()
}

/// Refuses a parameter whose bytes are not UTF-8. They would be read as replacement characters, and the paths of two files as one.
pub(super) fn check_encoding(uri: &Uri) -> Result<(), Error> {
    let is_utf8 = |text: &str| std::str::from_utf8(&percent_decoded(text)).is_ok();
    let Some(wrong) = uri.query().unwrap_or_default().split('&').find(|one| !is_utf8(one)) else { return Ok(()) };
    let name = excerpt(wrong.split('=').next().unwrap_or_default());
    let error = Error::invalid(&name, format!("{name} is not in UTF-8"));
    Err(error.hint("percent-encode the bytes of UTF-8: é is %C3%A9"))
}

/// All parameters with their values.
pub(super) fn pairs(uri: &Uri) -> Vec<(String, String)> {
    axum::extract::Query::try_from_uri(uri).map(|axum::extract::Query(all)| all).unwrap_or_default()
}

/// The values that a schema allows, in words; none for a text, whose own type has better words.
fn possible(schema: &Value) -> Option<String> {
    if let Some(alternatives) = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array) {
        return alternatives.iter().find_map(possible);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        return Some(format!("one of {}", values.join(", ")));
    }
    let is = |kind: &str| match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(one) => one == kind,
        None => false,
    };
    let bound = |key: &str| schema.get(key).filter(|bound| bound.is_number());
    if is("integer") {
        return Some(match (bound("minimum"), bound("maximum")) {
            (Some(least), Some(most)) => format!("a whole number from {least} to {most}"),
            (None, Some(most)) => format!("a whole number from 0 to {most}"),
            (Some(least), None) => format!("a whole number, at least {least}"),
            (None, None) => "a whole number".to_owned(),
        });
    }
    if is("number") {
        return Some("a number".to_owned());
    }
    if is("boolean") {
        return Some("true or false".to_owned());
    }
    match schema.get("format").and_then(Value::as_str) {
        Some("uuid") => Some("a UUID like 019bf537-f228-7cd3-aa1c-3da8af302e12".to_owned()),
        Some("date-time") => Some("a time like 2026-11-30T08:00:00Z (RFC 3339)".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_names_the_value_and_those_that_are_possible() {
        let known = |name: &str, schema: Value| KnownParameter { name: name.to_owned(), schema };
        let known = [
            known("limit", json!({ "type": ["integer", "null"], "minimum": 1, "maximum": 200 })),
            known("task", json!({ "type": "string", "format": "uuid" })),
            known("after", json!({ "oneOf": [{ "type": "null" }, { "type": "string", "format": "date-time" }] })),
            known("status", json!({ "oneOf": [{ "type": "null" }, { "$ref": "#/components/schemas/TaskStatus" }] })),
            known("path", json!({ "type": "string" })),
        ];
        let uri = Uri::from_static("/x?limit=a%20b&task=7&after=noon&status=done&path=x");
        let check = |words: &str, message: &str, hint: Option<&str>| {
            let error = refusal(words, &known, &uri);
            assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, hint), "{words}");
        };
        check(
            "limit: invalid digit found in string",
            "\"a b\" is not a valid limit",
            Some("limit is a whole number from 1 to 200"),
        );
        check(
            "task: UUID parsing failed: invalid length",
            "\"7\" is not a valid task",
            Some("task is a UUID like 019bf537-f228-7cd3-aa1c-3da8af302e12"),
        );
        check(
            "after: failed to parse",
            "\"noon\" is not a valid after",
            Some("after is a time like 2026-11-30T08:00:00Z (RFC 3339)"),
        );
        check(
            "status: unknown variant `done`, expected one of `success`, `failure`, `partial`",
            "\"done\" is not a valid status",
            Some("status is one of success, failure, partial"),
        );
        check("duplicate field `limit`", "limit is given more than once", Some("give it once"));
        // Its own type knows better.
        check("path: a path begins with /", "path: a path begins with /", None);
        check("unknown field `limt`, expected `limit`", "there is no field \"limt\"", Some("did you mean limit?"));
    }
}
