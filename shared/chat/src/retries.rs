//! Retries of requests that failed for a moment: an effect asks again before it gives its work up.

use domain::{Code, Error, TurnId};
use std::time::Duration;

/// The pauses before each further request.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(4)];

/// The answer to a request of a turn. A request that fails for a moment is made again after a pause, four times at most, and each time the log has
/// `message`.
pub(crate) async fn with_retries<T, F>(turn: TurnId, message: &str, request: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pauses = PAUSES.into_iter();
    loop {
        match (request().await, pauses.next()) {
            (Err(error), Some(pause)) if passes(&error) => {
                tracing::warn!(%turn, %error, "{message}");
                tokio::time::sleep(pause).await;
            }
            (answer, _) => return answer,
        }
    }
}

/// Whether the same request may succeed later.
fn passes(error: &Error) -> bool {
    matches!(error.code, Code::UpstreamUnavailable | Code::Timeout | Code::Conflict)
}
