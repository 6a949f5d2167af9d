//! Errors, with the codes and the reasons of the protocol (A2A 1.0 §5.4, §9.5).

use domain::{Code, Error};
use serde_json::{Map, Value, json};

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The body is no request of JSON-RPC 2.0.
    InvalidRequest,
    /// There is no such method.
    MethodNotFound,
    /// A parameter is missing, is wrong, or cannot be honoured.
    InvalidParams,
    /// Anything else: `code` of the metadata tells what.
    Internal,
    /// There is no such task.
    TaskNotFound,
    /// The task has ended.
    TaskNotCancelable,
    /// Tasks are not pushed.
    PushNotificationNotSupported,
    /// The method is known, and not offered for this task, or here.
    UnsupportedOperation,
    /// A part, or an output mode, is none of those of the card.
    ContentTypeNotSupported,
    /// The version of the protocol is another one.
    VersionNotSupported,
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Its kind.
    pub kind: RefusalKind,
    /// The words, the advice and the facts.
    pub error: Error,
}

impl RefusalKind {
    fn code(self) -> (i64, &'static str) {
        match self {
            Self::InvalidRequest => (-32_600, "INVALID_REQUEST"),
            Self::MethodNotFound => (-32_601, "METHOD_NOT_FOUND"),
            Self::InvalidParams => (-32_602, "INVALID_PARAMS"),
            Self::Internal => (-32_603, "INTERNAL_ERROR"),
            Self::TaskNotFound => (-32_001, "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => (-32_002, "TASK_NOT_CANCELABLE"),
            Self::PushNotificationNotSupported => (-32_003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
            Self::UnsupportedOperation => (-32_004, "UNSUPPORTED_OPERATION"),
            Self::ContentTypeNotSupported => (-32_005, "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::VersionNotSupported => (-32_009, "VERSION_NOT_SUPPORTED"),
        }
    }

    /// The refusal of a request for this field, for this reason.
    pub fn of(self, field: &'static str, why: impl Into<String>) -> Refusal {
        Refusal { kind: self, error: Error::invalid(field, why.into()) }
    }
}

impl Refusal {
    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Self {
        self.error = self.error.hint(hint);
        self
    }

    /// There is no such task for the caller.
    pub fn no_task(id: impl std::fmt::Display) -> Self {
        Self { kind: RefusalKind::TaskNotFound, error: Error::not_found("task", id) }
    }

    /// The answer to the request with this id.
    pub fn answer(&self, id: &Value) -> Value {
        let (code, reason) = self.kind.code();
        let Error { code: ours, message, hint, details } = &self.error;
        let mut metadata = Map::new();
        for (name, value) in details.iter() {
            metadata.insert(name.clone(), json!(value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        }
        metadata.insert("code".to_owned(), json!(ours));
        if let Some(hint) = hint {
            metadata.insert("hint".to_owned(), json!(hint));
        }
        let message = match hint {
            Some(hint) => format!("{message} ({hint})"),
            None => message.clone(),
        };
        let info = json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org", "metadata": metadata,
        });
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message, "data": [info] } })
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let kind = if error.code == Code::InvalidArgument { RefusalKind::InvalidParams } else { RefusalKind::Internal };
        Self { kind, error }
    }
}
