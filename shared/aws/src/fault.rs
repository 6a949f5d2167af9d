//! The reason why a service did not fulfil a request.

use aws_smithy_runtime_api::client::{orchestrator::HttpResponse, result::SdkError};
use aws_smithy_types::error::{display::DisplayErrorContext, metadata::ProvideErrorMetadata};
use ports::Error;
use std::fmt;

/// The effect of a failed request, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Too many requests: it had no effect. Come again more slowly.
    Throttled,
    /// The service says no: access, an absent resource, a malformed request. It had no effect.
    Refused,
    /// No answer, or one of 5xx: it may have had its effect.
    Unknown,
}

/// The source of [`ports::Error::Unavailable`] in this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsFault {
    /// The effect, as far as it is known.
    pub class: Class,
    /// The service's name for it, if it gave one.
    pub code: Option<String>,
    /// The words of the service or the SDK about it.
    pub message: String,
}

impl fmt::Display for AwsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            Class::Throttled => "throttled",
            Class::Refused => "refused",
            Class::Unknown => "the outcome is unknown",
        };
        match &self.code {
            Some(code) => write!(f, "{class}: {code}: {}", self.message),
            None => write!(f, "{class}: {}", self.message),
        }
    }
}

impl std::error::Error for AwsFault {}

impl AwsFault {
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self { class: Class::Unknown, code: None, message: message.into() }
    }

    /// By the code that came with an answer: in an error, or beside one entry of a batch.
    pub(crate) fn coded(code: &str, message: impl Into<String>, is_sender_fault: bool) -> Self {
        let class = match code {
            _ if is_throttling(code) => Class::Throttled,
            _ if is_sender_fault => Class::Refused,
            _ => Class::Unknown,
        };
        Self { class, code: Some(code.to_owned()), message: message.into() }
    }

    pub(crate) fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        match error {
            SdkError::ServiceError(answer) => {
                let meta = answer.err().meta();
                let status = answer.raw().status().as_u16();
                let said = meta.message().map_or_else(|| format!("status {status}"), str::to_owned);
                match meta.code() {
                    Some(code) => Self::coded(code, said, (400..500).contains(&status)),
                    None if status == 429 || status == 503 => {
                        Self { class: Class::Throttled, code: None, message: said }
                    }
                    None if (400..500).contains(&status) => Self { class: Class::Refused, code: None, message: said },
                    None => Self::unknown(said),
                }
            }
            SdkError::ConstructionFailure(_) => {
                Self { class: Class::Refused, code: None, message: DisplayErrorContext(error).to_string() }
            }
            other => Self::unknown(DisplayErrorContext(other).to_string()),
        }
    }

    /// As a port's error: a fault that no retry can make right is the caller's, all else is `what`'s.
    pub(crate) fn into_error(self, what: &'static str) -> Error {
        match self.code.as_deref() {
            Some(code) if self.class == Class::Refused && is_about_the_request(code) => Error::Invalid(self.message),
            _ => Error::unavailable(what, self),
        }
    }
}

/// `error` of `what`, as a port's error.
pub(crate) fn unavailable<E>(what: &'static str, error: &SdkError<E, HttpResponse>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    AwsFault::of(error).into_error(what)
}

fn is_throttling(code: &str) -> bool {
    matches!(
        code,
        "Throttling"
            | "ThrottlingException"
            | "ThrottledException"
            | "ThrottlingError"
            | "ProvisionedThroughputExceeded"
            | "ProvisionedThroughputExceededException"
            | "RequestLimitExceeded"
            | "RequestThrottled"
            | "RequestThrottledException"
            | "TooManyRequestsException"
            | "KmsThrottled"
            | "OverLimit"
            | "SlowDown"
    )
}

fn is_about_the_request(code: &str) -> bool {
    matches!(
        code,
        "ValidationException"
            | "ValidationError"
            | "ItemCollectionSizeLimitExceededException"
            | "InvalidMessageContents"
            | "InvalidParameterValue"
            | "BatchRequestTooLong"
            | "MessageTooLong"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_tells_the_known_effect() {
        for (code, is_sender_fault, class, is_invalid) in [
            ("ThrottlingException", true, Class::Throttled, false),
            ("SlowDown", false, Class::Throttled, false),
            ("ValidationException", true, Class::Refused, true),
            ("AccessDeniedException", true, Class::Refused, false),
            ("InternalServerError", false, Class::Unknown, false),
        ] {
            let fault = AwsFault::coded(code, "because", is_sender_fault);
            assert_eq!(fault.class, class, "{code}");
            assert_eq!(matches!(fault.into_error("it"), Error::Invalid(_)), is_invalid, "{code}");
        }
        let shown = AwsFault::coded("SlowDown", "because", false).to_string();
        assert_eq!(shown, "throttled: SlowDown: because");
        assert_eq!(AwsFault::unknown("no answer").to_string(), "the outcome is unknown: no answer");
    }
}
