//! Answers that wait for the end of a turn, or of other work. Proxies between a client and this server take a long silence for a fault: CloudFront
//! after 30 seconds, and usual settings of others after 60. So an answer that takes longer than a moment begins: with spaces, which JSON has no meaning
//! for, and its end is its content. From then on its status is that of a success, and a refusal is told by the content alone.

use crate::error::{Answer, ApiError};
use axum::{
    Extension,
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{
    future::{Either, select},
    stream,
};
use http::header;
use serde_json::Value;
use std::{
    convert::Infallible,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::timeout;

/// The longest silence.
const SILENCE: Duration = Duration::from_secs(15);

/// Whether an answer that had begun became a refusal, which is known at its end. An extension of the response.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateRefusal(Arc<AtomicBool>);

impl LateRefusal {
    pub fn has_come(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Answers with the JSON that `whole` becomes. `refusal` makes the content of one that comes after the answer has begun.
///
/// # Errors
/// Those of `whole` that come before the first silence is over.
pub(crate) async fn long_answer(
    whole: impl Future<Output = Answer<Value>> + Send + 'static,
    refusal: fn(&ApiError, &str) -> Value,
) -> Answer<Response> {
    let mut whole = Box::pin(whole);
    if let Ok(answer) = timeout(SILENCE, &mut whole).await {
        return Ok(axum::Json(answer?).into_response());
    }
    let late_refusal = LateRefusal::default();
    let begin = Some((whole, late_refusal.clone()));
    let body = stream::unfold(begin, move |state| async move {
        let (mut whole, LateRefusal(has_come)) = state?;
        let (bytes, rest) = match timeout(SILENCE, &mut whole).await {
            Err(_) => (Bytes::from_static(b" "), Some((whole, LateRefusal(has_come)))),
            Ok(Ok(answer)) => (answer.to_string().into(), None),
            Ok(Err(late)) => {
                has_come.store(true, Relaxed);
                // The header has the request's id.
                (refusal(&late, "").to_string().into(), None)
            }
        };
        Some((Ok::<_, Infallible>(bytes), rest))
    });
    // The first space is on its way at once: the silence so far was as long.
    let first = stream::iter([Ok(Bytes::from_static(b" "))]);
    let body = Body::from_stream(futures::StreamExt::chain(first, body));
    Ok((Extension(late_refusal), [(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// The same for work that reads the body of its request, once that is `over`: a proxy that gets an answer before may send the rest of the body no more.
///
/// # Errors
/// Those of `whole` that come before the answer has begun.
pub(crate) async fn long_answer_after(
    over: impl Future + Send,
    whole: impl Future<Output = Answer<Value>> + Send + 'static,
    refusal: fn(&ApiError, &str) -> Value,
) -> Answer<Response> {
    match select(Box::pin(whole), pin!(over)).await {
        Either::Left((answer, _)) => Ok(axum::Json(answer?).into_response()),
        Either::Right((_, whole)) => long_answer(whole, refusal).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Code, Error};
    use serde_json::json;
    use tokio::time::sleep;

    async fn after(seconds: u64, answer: Answer<Value>) -> (Answer<http::StatusCode>, String) {
        let whole = async move {
            sleep(Duration::from_secs(seconds)).await;
            answer
        };
        match long_answer(whole, ApiError::envelope).await {
            Ok(response) => {
                let status = response.status();
                let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap_or_default();
                (Ok(status), String::from_utf8_lossy(&body).into_owned())
            }
            Err(refused) => (Err(refused), String::new()),
        }
    }

    fn refused() -> Answer<Value> {
        Err(Error::new(Code::Conflict, "it has ended").into())
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_not_silent_for_long_and_is_json_all_the_same() {
        let whole = json!({ "a": 1 });
        let (status, body) = after(14, Ok(whole.clone())).await;
        assert_eq!((status.ok(), body.as_str()), (Some(http::StatusCode::OK), r#"{"a":1}"#));
        let (status, body) = after(50, Ok(whole.clone())).await;
        assert_eq!((status.ok(), body.as_str()), (Some(http::StatusCode::OK), r#"   {"a":1}"#));
        assert_eq!(serde_json::from_str::<Value>(&body).ok(), Some(whole));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_has_its_status_as_long_as_the_answer_has_not_begun() {
        assert_eq!(after(1, refused()).await.0.err().map(|early| early.status), Some(http::StatusCode::CONFLICT));
        let (status, body) = after(20, refused()).await;
        assert_eq!(status.ok(), Some(http::StatusCode::OK));
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap_or_default()["error"]["code"], "CONFLICT");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_begins_when_the_body_of_its_request_is_over() {
        // The body comes for a minute, and the work ends so many seconds after it began.
        let ended = |seconds| async move {
            let whole = async move {
                sleep(Duration::from_secs(seconds)).await;
                refused()
            };
            long_answer_after(sleep(Duration::from_secs(60)), whole, ApiError::envelope).await.is_ok()
        };
        assert!(!ended(59).await && !ended(74).await);
        assert!(ended(76).await);
    }
}
