//! Answers of destinations, and none of them.

use domain::text;
use reqwest::StatusCode;
use telemetry::Lost;

/// Whether an answer means success, a retry or a loss.
pub(crate) fn settled(status: StatusCode) -> Result<(), Lost> {
    match status {
        status if status.is_success() => Ok(()),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Err(Lost::for_now(format!("it says {status}"))),
        status if status.is_server_error() => Err(Lost::for_now(format!("it says {status}"))),
        status => Err(Lost::for_good(format!("it says {status}"))),
    }
}

pub(crate) fn unreachable(error: &reqwest::Error) -> Lost {
    Lost::for_now(text::unreachable(error, error.is_timeout()))
}
