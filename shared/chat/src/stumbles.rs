//! Stores that stumble for a moment: an effect asks again before it gives its work up.

use domain::{Code, Error};
use std::time::Duration;

/// The pauses before each further request.
pub(crate) const PAUSES: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(4)];

/// Whether the same request may succeed later.
pub(crate) fn passes(error: &Error) -> bool {
    matches!(error.code, Code::UpstreamUnavailable | Code::Timeout | Code::Conflict)
}
