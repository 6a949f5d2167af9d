//! Requests to the API that messages become.

use serde_json::Value;

/// A request to the API, below the workspace.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// The segments of its path.
    pub path: Vec<String>,
    /// Its query.
    pub query: Vec<(&'static str, String)>,
    /// Its body.
    pub body: Option<Value>,
    /// Whether its answer is a content of any type: `{"type", "text"}`, or `{"type", "blob"}` in Base64 where it is no text.
    pub is_raw: bool,
}

impl Request {
    pub(super) fn get(path: Vec<String>) -> Self {
        Self { method: "GET", path, query: Vec::new(), body: None, is_raw: false }
    }

    pub(super) fn post(path: Vec<String>, body: Value) -> Self {
        Self { method: "POST", body: Some(body), ..Self::get(path) }
    }
}
