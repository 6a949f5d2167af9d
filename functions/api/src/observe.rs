//! Around every request: an id, a span, the counters, and for every refusal, of any layer, the envelope.

use crate::{
    crash_marks,
    error::{ApiError, internal},
    login::{Login, LoginHeaders},
    metrics::{Requests, Route},
};
use actor::watchdog::watched;
use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use domain::{Code, Error, panic_text};
use futures::FutureExt;
use http::{HeaderValue, StatusCode, header};
use ports::{Clock, crash};
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio::time::Instant;
use tracing::Instrument;

pub(crate) const REQUEST_ID: &str = "x-request-id";
/// The longest request id of a client that is taken over, in bytes.
const MAX_ID: usize = 128;

/// The parts that observing needs.
#[derive(Clone)]
pub(crate) struct Observer {
    pub requests: Arc<Requests>,
    pub clock: Arc<dyn Clock>,
    /// Told to callers without a valid credential.
    pub login: Arc<Login>,
}

/// The middleware. The outermost one but for CORS, so that no answer escapes it.
pub(crate) async fn observe(State(observer): State<Observer>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = match request.headers().get(REQUEST_ID) {
        Some(id) if is_sane(id) => id.clone(),
        _ => HeaderValue::try_from(observer.clock.id().to_string()).unwrap_or(HeaderValue::from_static("-")),
    };
    let asked = LoginHeaders::by(request.headers());
    let is_openai = request.uri().path().starts_with("/openai/");
    let route = Route::of(request.method(), request.extensions().get::<MatchedPath>());
    let id_text = id.to_str().unwrap_or_default();
    // Of the highest level: a log that is asked for errors alone names the request, too.
    let span = tracing::error_span!("request", request_id = id_text, method = route.method, route = route.path());

    let at = format!("{} {}", route.method, route.path());
    let work = crash_marks::of(&route, &request);
    let handled = watched(at, AssertUnwindSafe(next.run(request)).catch_unwind());
    let answer = async {
        match work {
            None => handled.await,
            Some(Ok(work)) => crash::computing(work, handled).await,
            Some(Err(refused)) => Ok(ApiError::from(refused).into_response()),
        }
    };
    let answer = answer.instrument(span.clone()).await;
    let mut response = answer.unwrap_or_else(|panic| {
        span.in_scope(|| tracing::error!(panic = panic_text(panic.as_ref()), "a handler panicked"));
        internal().into_response()
    });
    if let Some(failure) = refusal(&mut response) {
        observer.requests.refuse(failure.error.code);
        span.in_scope(|| tracing::debug!(status = failure.status.as_u16(), error = %failure.error, "refused"));
        let envelope = if is_openai { failure.openai_envelope(id_text) } else { failure.envelope(id_text) };
        let body = envelope.to_string();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        *response.body_mut() = Body::from(body);
        if failure.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, observer.login.challenge(&asked));
        }
    }
    let took = begun.elapsed();
    let duration_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    span.in_scope(|| tracing::debug!(status = response.status().as_u16(), duration_us, "answered"));
    observer.requests.record(route, response.status(), took);
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Pages of other sites embed nothing from here. Those that `server.cors_origins` lists ask by CORS, which this leaves alone.
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-site"));
    // Texts of people and models are no code of this origin: not as a page, not in a frame. The few answers that are pages have their own policy.
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static("default-src 'none'; sandbox"));
    response
}

/// The refusal that a response stands for; one of a library's own, without an envelope, gets words of ours.
fn refusal(response: &mut Response) -> Option<ApiError> {
    if let Some(failure) = response.extensions_mut().remove::<ApiError>() {
        return Some(failure);
    }
    let status = response.status();
    let ours = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !(status.is_client_error() || status.is_server_error()) || ours {
        return None;
    }
    let code = match status {
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::PAYLOAD_TOO_LARGE => Code::PayloadTooLarge,
        status if status.is_client_error() => Code::InvalidArgument,
        _ => Code::Internal,
    };
    let words = status.canonical_reason().unwrap_or("the request was refused");
    Some(ApiError::from(Error::new(code, words.to_lowercase())).with_status(status))
}

/// Short, and nothing in it that could forge a log line or a header.
fn is_sane(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=MAX_ID).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Router, middleware::from_fn_with_state, routing::get};
    use ports::SystemClock;
    use tower::ServiceExt;

    async fn ask(path: &str) -> (StatusCode, serde_json::Value) {
        #[expect(clippy::panic, reason = "the panic is under test")]
        async fn panics() -> StatusCode {
            panic!("with a secret")
        }
        let observer = Observer { requests: Arc::default(), clock: Arc::new(SystemClock), login: Arc::default() };
        let router = Router::new()
            .route("/panics", get(panics))
            .route("/fails", get(|| async { (StatusCode::BAD_GATEWAY, "a library's own words") }))
            .layer(from_fn_with_state(observer, observe));
        let request = Request::get(path).body(Body::empty()).unwrap_or_default();
        let Ok(response) = router.oneshot(request).await;
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap_or_default();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_like_any_other_and_tells_nothing() {
        let (status, body) = ask("/panics").await;
        assert_eq!((status, &body["error"]["code"]), (StatusCode::INTERNAL_SERVER_ERROR, &"INTERNAL".into()));
        assert!(!body.to_string().contains("secret"));
    }

    #[tokio::test]
    async fn refusals_of_other_layers_get_the_envelope() {
        let (status, body) = ask("/fails").await;
        assert_eq!((status, &body["error"]["message"]), (StatusCode::BAD_GATEWAY, &"bad gateway".into()));
    }
}
