//! Fields of JSON bodies that a client may leave out. Null is read as a field that is left out, as the SDKs of clients write it.

use domain::Error;
use serde_json::{Map, Value};

/// The value of a field; none where it is left out or null.
pub fn given<'a>(body: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    body.get(field).filter(|value| !value.is_null())
}

/// The text of a field.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` for a value of another type.
pub fn text<'a>(body: &'a Map<String, Value>, field: &str) -> Result<Option<&'a str>, Error> {
    given(body, field).map(|value| value.as_str().ok_or_else(|| is_no(field, "a text"))).transpose()
}

/// The yes or no of a field.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` for a value of another type.
pub fn flag(body: &Map<String, Value>, field: &str) -> Result<Option<bool>, Error> {
    given(body, field).map(|value| value.as_bool().ok_or_else(|| is_no(field, "true or false"))).transpose()
}

/// The entries of a list; none where it is left out.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` for a value of another type.
pub fn list<'a>(body: &'a Map<String, Value>, field: &str) -> Result<&'a [Value], Error> {
    match given(body, field) {
        None => Ok(&[]),
        Some(value) => value.as_array().map(Vec::as_slice).ok_or_else(|| is_no(field, "a list")),
    }
}

/// The fields of an object; none where it is left out.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` for a value of another type.
pub fn object(body: &Map<String, Value>, field: &str) -> Result<Map<String, Value>, Error> {
    object_of(body, field, field)
}

/// As [`object`]; the error names the field `shown`, as for a field of a field.
pub(crate) fn object_of(body: &Map<String, Value>, field: &str, shown: &str) -> Result<Map<String, Value>, Error> {
    match given(body, field) {
        None => Ok(Map::new()),
        Some(value) => value.as_object().cloned().ok_or_else(|| is_no(shown, "an object")),
    }
}

fn is_no(field: &str, kind: &str) -> Error {
    Error::invalid(field, format!("{field} is {kind}"))
}
