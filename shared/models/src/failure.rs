//! Failures of providers, as what can be done about them.

use crate::secret::Redactor;
use genai::webc::StreamTimeout;
use ports::ModelError;
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;
use std::time::Duration;

/// What a failure of genai means. Its texts hold whole bodies of answers, so none leaves here uncleaned.
pub(crate) fn model_error(error: genai::Error, redactor: &Redactor) -> ModelError {
    match error {
        genai::Error::HttpError { status, body, headers, .. } => refusal(status, &headers, &body, redactor),
        // The transport hands its own errors over in a box.
        genai::Error::WebStream { error, .. } => match error.downcast::<genai::Error>() {
            Ok(inner) => model_error(*inner, redactor),
            Err(error) => transport(&*error, redactor),
        },
        genai::Error::WebModelCall { webc_error, .. } | genai::Error::WebAdapterCall { webc_error, .. } => {
            match webc_error {
                genai::webc::Error::ResponseFailedStatus { status, body, headers } => {
                    refusal(status, &headers, &body, redactor)
                }
                genai::webc::Error::Reqwest(error) => transport(&error, redactor),
                other => ModelError::Broken(redactor.clean(&other.to_string())),
            }
        }
        // An error event inside the stream, after the 200.
        genai::Error::ChatResponse { body, .. } => in_stream(&body, redactor),
        genai::Error::StreamParse { serde_error, .. } => ModelError::Broken(redactor.clean(&serde_error.to_string())),
        other => ModelError::Rejected(redactor.clean(&other.to_string())),
    }
}

/// An answer with another status than 200.
fn refusal(status: StatusCode, headers: &HeaderMap, body: &str, redactor: &Redactor) -> ModelError {
    let body: Value = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
    let message = redactor.clean(&format!("{} {}", status.as_u16(), message_of(&body)));
    let retry_after = retry_after(headers);
    match status.as_u16() {
        401 | 403 => ModelError::Unauthorized(message),
        // OpenAI's way to say that the account is out of money: waiting does not help.
        429 if body.pointer("/error/code").is_some_and(|code| code == "insufficient_quota") => {
            ModelError::Unauthorized(message)
        }
        429 => ModelError::RateLimited { retry_after },
        // A provider that says when to come again is asking for patience, whatever the status.
        503 | 529 if retry_after.is_some() => ModelError::RateLimited { retry_after },
        // Bedrock's word for a model that failed is 424.
        408 | 424 | 500..=599 => ModelError::Unavailable(message),
        _ => ModelError::Rejected(message),
    }
}

/// An error event in the middle of a stream.
fn in_stream(body: &Value, redactor: &Redactor) -> ModelError {
    let error = body.get("error").unwrap_or(body);
    let kind = ["type", "code", "status"]
        .iter()
        .filter_map(|field| error.get(*field))
        .map(Value::to_string)
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase();
    let message = redactor.clean(&message_of(body));
    let is = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    if is(&["rate_limit", "resource_exhausted", "429"]) || (kind.is_empty() && throttles(&message)) {
        ModelError::RateLimited { retry_after: None }
    } else if is(&["overloaded", "unavailable"]) {
        ModelError::Unavailable(message)
    } else if is(&["authentication", "permission", "unauthenticated"]) {
        ModelError::Unauthorized(message)
    } else if is(&["invalid_request", "invalid_argument", "not_found", "context_length"]) {
        ModelError::Rejected(message)
    } else {
        ModelError::Broken(message)
    }
}

/// Of Bedrock's exceptions inside a stream genai keeps the words only, and those of throttling are these.
fn throttles(message: &str) -> bool {
    ["Too many requests", "Too many tokens", "ThrottlingException"].iter().any(|words| message.contains(words))
}

/// A failure on the way.
fn transport(error: &(dyn std::error::Error + Send + Sync + 'static), redactor: &Redactor) -> ModelError {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    let message = redactor.clean(&text);
    let is_body = error.downcast_ref::<reqwest::Error>().is_some_and(|error| error.is_body() || error.is_decode());
    let is_stall = error.downcast_ref::<StreamTimeout>() == Some(&StreamTimeout::Read);
    if is_body || is_stall { ModelError::Broken(message) } else { ModelError::Unavailable(message) }
}

/// The words for people in an error body, wherever the provider puts them.
fn message_of(body: &Value) -> String {
    let body = body.get(0).unwrap_or(body);
    ["/error/message", "/message", "/error", "/detail"]
        .iter()
        .filter_map(|place| body.pointer(place))
        .find_map(Value::as_str)
        .or(body.as_str())
        .map_or_else(|| body.to_string(), str::to_owned)
}

/// How long the provider asks to wait: milliseconds, seconds, or a date. A date counts from the answer's own `date`,
/// so that no clock of ours is needed and none can be wrong.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = text("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
    let (then, now) = (date(value)?, date(text("date")?)?);
    Some(Duration::try_from(then.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use reqwest::header::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn waits_are_read_from_every_form() {
        let check = |pairs: &[(&'static str, &'static str)], expected: Option<u64>| {
            assert_eq!(retry_after(&headers(pairs)), expected.map(Duration::from_millis), "{pairs:?}");
        };
        check(&[("retry-after", "7")], Some(7_000));
        check(&[("retry-after", "0.25")], Some(250));
        check(&[("retry-after", "9"), ("retry-after-ms", "120")], Some(120));
        let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"), now], Some(10_000));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT"), now], Some(0));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], None);
        check(&[("retry-after", "-1")], None);
        check(&[("retry-after", "soon")], None);
        check(&[], None);
    }

    #[test]
    fn statuses_say_what_can_be_done() {
        let redactor = Redactor::new(["the-secret-key".into()]);
        let check = |status: u16, pairs: &[(&'static str, &'static str)], body: &str, expected: ModelError| {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(refusal(status, &headers(pairs), body, &redactor), expected);
        };
        let openai = r#"{"error": {"message": "no such key: the-secret-key", "type": "invalid_request_error"}}"#;
        check(401, &[], openai, ModelError::Unauthorized("401 no such key: [redacted]".into()));
        check(429, &[("retry-after", "2")], "", ModelError::RateLimited { retry_after: Some(Duration::from_secs(2)) });
        let quota = r#"{"error": {"message": "out of money", "code": "insufficient_quota"}}"#;
        check(429, &[], quota, ModelError::Unauthorized("429 out of money".into()));
        check(503, &[("retry-after", "1")], "", ModelError::RateLimited { retry_after: Some(Duration::from_secs(1)) });
        check(529, &[], r#"{"error": {"message": "Overloaded"}}"#, ModelError::Unavailable("529 Overloaded".into()));
        check(502, &[], "<html>bad\ngateway</html>", ModelError::Unavailable("502 <html>bad gateway</html>".into()));
        check(404, &[], r#"{"error": "model 'x' not found"}"#, ModelError::Rejected("404 model 'x' not found".into()));
        check(400, &[], r#"[{"error": {"message": "bad"}}]"#, ModelError::Rejected("400 bad".into()));
    }

    #[test]
    fn errors_inside_a_stream_are_told_apart() {
        let check = |body: Value, expected: ModelError| assert_eq!(in_stream(&body, &Redactor::default()), expected);
        let body = |kind: &str| serde_json::json!({"type": "error", "error": {"type": kind, "message": "m"}});
        check(body("overloaded_error"), ModelError::Unavailable("m".into()));
        check(body("rate_limit_error"), ModelError::RateLimited { retry_after: None });
        check(body("authentication_error"), ModelError::Unauthorized("m".into()));
        check(body("invalid_request_error"), ModelError::Rejected("m".into()));
        check(body("api_error"), ModelError::Broken("m".into()));
        check(serde_json::json!({"code": 429, "message": "m"}), ModelError::RateLimited { retry_after: None });
        let words = "Too many tokens, please wait before trying again.";
        check(serde_json::json!({ "message": words }), ModelError::RateLimited { retry_after: None });
        check(serde_json::json!({"message": "model failed"}), ModelError::Broken("model failed".into()));
    }
}
