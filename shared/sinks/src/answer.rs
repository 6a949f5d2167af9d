//! Answers of destinations, and none of them.

use domain::text;
use reqwest::StatusCode;
use telemetry::SinkError;

/// Whether an answer means success, a retry or a loss.
pub(crate) fn settled(status: StatusCode) -> Result<(), SinkError> {
    match status {
        status if status.is_success() => Ok(()),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            Err(SinkError::for_now(format!("it says {status}")))
        }
        status if status.is_server_error() => Err(SinkError::for_now(format!("it says {status}"))),
        status => Err(SinkError::for_good(format!("it says {status}"))),
    }
}

pub(crate) fn unreachable(error: &reqwest::Error) -> SinkError {
    SinkError::for_now(text::unreachable(error, error.is_timeout()))
}
