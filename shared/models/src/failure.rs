//! Classifies failures of providers by the right reaction.
//!
//! One table says which failures pass and which do not: [`WORDS`] for the names of errors at providers (in `code`, `type`, `status` or the
//! name of the exception) and [`STATUSES`] for the status of a refusal. Known words decide, since providers use one status for several
//! things; in an answer that began with 200 there is nothing else.

use crate::{
    secret::Redactor,
    wire::{LARGEST, MOST_PARTS, WireFault},
};
use domain::Timestamp;
use ports::ModelError;
use reqwest::{StatusCode, Url, header::HeaderMap};
use serde_json::Value;
use std::{
    ops::RangeInclusive,
    time::{Duration, UNIX_EPOCH},
};

/// The classes of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Passes: too many requests, or a provider that says when to come again.
    Limited,
    /// Passes: the provider is overloaded, or something on the way to it is.
    Unavailable,
    /// Passes: the answer broke off.
    Broken,
    /// Does not pass until somebody changes the key or pays.
    Credentials,
    /// Does not pass: the same request is refused again.
    Request,
}

use Class::{Broken, Credentials, Limited, Request, Unavailable};

impl Class {
    fn passes(self) -> bool {
        matches!(self, Limited | Unavailable | Broken)
    }
}

/// By status. The first that fits counts.
const STATUSES: &[(RangeInclusive<u16>, Class)] = &[
    (300..=399, Request),
    (401..=401, Credentials),
    // An account without credit: OpenRouter, DeepSeek.
    (402..=402, Credentials),
    (403..=403, Credentials),
    (408..=408, Unavailable),
    // Two requests at once want the same thing; the providers' own libraries ask again, too.
    (409..=409, Unavailable),
    // Bedrock's status for a model that failed.
    (424..=424, Unavailable),
    (425..=425, Unavailable),
    (429..=429, Limited),
    (400..=499, Request),
    // Methods that the server does not implement.
    (501..=501, Request),
    (505..=505, Request),
    (500..=599, Unavailable),
];

/// By word, without regard to case: of OpenAI and its imitators, Anthropic, Gemini (gRPC's codes) and Bedrock.
const WORDS: &[(&str, Class)] = &[
    // Accounts and keys.
    ("invalid_api_key", Credentials),
    ("api_key_invalid", Credentials),
    ("authentication_error", Credentials),
    ("invalid_authentication_error", Credentials),
    ("permission_error", Credentials),
    ("permission_denied", Credentials),
    ("unauthenticated", Credentials),
    ("unauthorized", Credentials),
    ("billing_error", Credentials),
    ("billing_not_active", Credentials),
    ("billing_hard_limit_reached", Credentials),
    ("insufficient_quota", Credentials),
    ("exceeded_current_quota_error", Credentials),
    ("insufficient_balance", Credentials),
    ("account_deactivated", Credentials),
    ("accessdeniedexception", Credentials),
    ("unrecognizedclientexception", Credentials),
    ("expiredtokenexception", Credentials),
    ("invalidsignatureexception", Credentials),
    // Limits.
    ("rate_limit_error", Limited),
    ("rate_limit_exceeded", Limited),
    ("rate_limit_reached_error", Limited),
    ("too_many_requests", Limited),
    ("resource_exhausted", Limited),
    ("throttlingexception", Limited),
    // Load and faults before an answer.
    ("overloaded_error", Unavailable),
    ("engine_overloaded_error", Unavailable),
    ("server_is_overloaded", Unavailable),
    ("slow_down", Unavailable),
    ("unavailable", Unavailable),
    ("service_unavailable", Unavailable),
    ("service_unavailable_error", Unavailable),
    ("serviceunavailableexception", Unavailable),
    ("internalserverexception", Unavailable),
    ("modelnotreadyexception", Unavailable),
    ("modeltimeoutexception", Unavailable),
    ("timeout_error", Unavailable),
    ("deadline_exceeded", Unavailable),
    // Faults in the middle of one.
    ("modelstreamerrorexception", Broken),
    ("modelerrorexception", Broken),
    ("api_error", Broken),
    ("server_error", Broken),
    ("internal_server_error", Broken),
    ("internal", Broken),
    ("aborted", Broken),
    // Faults of the request.
    ("invalid_request_error", Request),
    ("invalid_prompt", Request),
    ("invalid_argument", Request),
    ("failed_precondition", Request),
    ("out_of_range", Request),
    ("not_found", Request),
    ("not_found_error", Request),
    ("model_not_found", Request),
    ("context_length_exceeded", Request),
    ("request_too_large", Request),
    ("content_filter", Request),
    ("content_policy_violation", Request),
    ("validationexception", Request),
    ("resourcenotfoundexception", Request),
    ("badrequesterror", Request),
];

/// The words with which providers refuse a request that is longer than the context of its model. Few of them have a code for it.
const TOO_LONG: [&str; 12] = [
    // OpenAI and its imitators.
    "maximum context length",
    "context window",
    "reduce the length of the messages",
    "available context size",
    "too large for model with",
    "maximum prompt length",
    "exceeded model token limit",
    // Anthropic, also behind Bedrock.
    "prompt is too long",
    "exceed context limit",
    // Bedrock.
    "input is too long",
    "input tokens exceed",
    // Gemini.
    "exceeds the maximum number of tokens",
];

/// A failure of a chat: a refusal of its length is told from others, since a shorter request may be served.
pub(crate) fn of_chat(error: ModelError) -> ModelError {
    match error {
        ModelError::Rejected(why) if TOO_LONG.iter().any(|words| why.to_ascii_lowercase().contains(words)) => {
            ModelError::TooLong(why)
        }
        error => error,
    }
}

/// An answer with another status than 200. `now` is the time, for a `Retry-After` with a date.
pub(crate) fn refusal(
    status: StatusCode,
    headers: &HeaderMap,
    body: &str,
    now: Timestamp,
    redactor: &Redactor,
) -> ModelError {
    let body: Value = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
    let message = if status.is_redirection() {
        format!("{} the server is at another address{}", status.as_u16(), elsewhere(headers))
    } else {
        format!("{} {}", status.as_u16(), message_of(&body))
    };
    let by_status = STATUSES.iter().find(|(range, _)| range.contains(&status.as_u16())).map_or(Request, |row| row.1);
    // AWS names the error in the head.
    let named = headers.get("x-amzn-errortype").and_then(|name| name.to_str().ok());
    let named = named.and_then(|name| of_word(name.split(':').next().unwrap_or_default()));
    let mut class = match named.or_else(|| by_words(&body)) {
        // A status says better whether the answer began; and a refusal is no limit because of a word in its body.
        Some(Broken | Unavailable | Limited) | None => by_status,
        // OpenAI calls all that it refuses an invalid request.
        Some(Request) if by_status != Request => by_status,
        Some(class) => class,
    };
    // The provider knows best, and some say so: <https://github.com/openai/openai-python> honours it, too.
    match headers.get("x-should-retry").map(reqwest::header::HeaderValue::as_bytes) {
        Some(b"false") if class.passes() => class = Request,
        Some(b"true") if class == Request => class = Unavailable,
        _ => {}
    }
    let after = retry_after(headers, now).or_else(|| retry_delay(&body));
    // A provider that says when to come again is asking for patience.
    let class = if class == Unavailable && after.is_some() { Limited } else { class };
    error(class, redactor.clean(&message), after)
}

/// The error of a fault inside an answer.
pub(crate) fn fault(fault: WireFault, redactor: &Redactor) -> ModelError {
    match fault {
        WireFault::Told(body) => {
            let class = by_words(&body).or_else(|| by_code(&body)).unwrap_or(Broken);
            error(class, redactor.clean(&message_of(&body)), retry_delay(&body))
        }
        WireFault::Nonsense(text) => ModelError::Broken(redactor.clean(&text)),
        WireFault::Cut => ModelError::Broken("the stream ended before the answer did".into()),
        // The same answer would come again, and be paid again.
        WireFault::TooLarge => {
            let message =
                format!("its answer is larger than {} MiB, or has more than {MOST_PARTS} parts", LARGEST >> 20);
            ModelError::Rejected(message)
        }
        WireFault::NoAnswer(text) => {
            ModelError::Rejected(redactor.clean(&format!("the answer is not a stream of events: {text}")))
        }
    }
}

/// A failure on the way.
pub(crate) fn transport(error: reqwest::Error, redactor: &Redactor) -> ModelError {
    let is_body = error.is_body() || error.is_decode();
    // The address may have a password in it.
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    let message = redactor.clean(&text);
    if is_body { ModelError::Broken(message) } else { ModelError::Unavailable(message) }
}

fn error(class: Class, message: String, retry_after: Option<Duration>) -> ModelError {
    match class {
        Limited => ModelError::RateLimited { retry_after },
        Unavailable => ModelError::Unavailable(message),
        Broken => ModelError::Broken(message),
        Credentials => ModelError::Unauthorized(message),
        Request => ModelError::Rejected(message),
    }
}

/// The host that a redirect points to. It is not followed: the key would go along.
fn elsewhere(headers: &HeaderMap) -> String {
    let location = headers.get("location").and_then(|value| value.to_str().ok());
    match location.and_then(|location| Url::parse(location).ok()) {
        Some(url) if url.has_host() => {
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let host = url.host_str().unwrap_or_default();
            format!(": put the one that it names into base_url ({}://{host}{port}{})", url.scheme(), url.path())
        }
        _ => ": put that one into base_url".to_owned(),
    }
}

/// The error object of a body, in any of its places.
fn error_of(body: &Value) -> &Value {
    let body = body.get(0).unwrap_or(body);
    body.get("error").filter(|error| error.is_object()).unwrap_or(body)
}

/// By the most exact word that is known.
fn by_words(body: &Value) -> Option<Class> {
    let error = error_of(body);
    let reasons = error["details"].as_array().into_iter().flatten().filter_map(|detail| detail["reason"].as_str());
    let fields = ["code", "type", "status"].iter().filter_map(|field| error[*field].as_str());
    reasons.chain(fields).find_map(of_word)
}

fn of_word(word: &str) -> Option<Class> {
    WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, class)| *class)
}

/// By a status that stands in the body, as after a 200.
fn by_code(body: &Value) -> Option<Class> {
    let code = &error_of(body)["code"];
    let code = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    let code = u16::try_from(code).ok()?;
    STATUSES.iter().find(|(range, _)| range.contains(&code)).map(|(_, class)| *class)
}

/// The words for people in an error body, in any of its places.
fn message_of(body: &Value) -> String {
    let body = body.get(0).unwrap_or(body);
    ["/error/message", "/message", "/error", "/detail", "/error/type", "/error/code"]
        .iter()
        .filter_map(|place| body.pointer(place))
        .filter_map(Value::as_str)
        .find(|text| !text.is_empty())
        .or(body.as_str())
        .map_or_else(|| body.to_string(), str::to_owned)
}

/// The provider's requested wait: milliseconds, seconds, or a date in one of the three forms of RFC 9110 §5.6.7. A date counts from the
/// answer's own `date`, so that an error of our clock does not matter, and from `now` if the answer has none.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = text("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = httpdate::parse_http_date(value).ok()?;
    let now = text("date")
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .or_else(|| UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(now.as_millis()).ok()?)))?;
    Some(then.duration_since(now).unwrap_or_default())
}

/// Gemini's way to say when to come again, in the body: `"retryDelay": "17s"`.
fn retry_delay(body: &Value) -> Option<Duration> {
    let details = error_of(body)["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use reqwest::header::HeaderValue;
    use serde_json::json;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    fn now() -> Timestamp {
        Timestamp::from_millis(784_111_777_000)
    }

    #[test]
    fn waits_are_read_from_every_form() {
        let check = |pairs: &[(&'static str, &'static str)], expected: Option<u64>| {
            assert_eq!(retry_after(&headers(pairs), now()), expected.map(Duration::from_millis), "{pairs:?}");
        };
        check(&[("retry-after", "7")], Some(7_000));
        check(&[("retry-after", "0.25")], Some(250));
        check(&[("retry-after", "9"), ("retry-after-ms", "120")], Some(120));
        let date = ("date", "Sun, 06 Nov 1994 08:49:30 GMT");
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"), date], Some(17_000));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT"), date], Some(0));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], Some(10_000));
        check(&[("retry-after", "Sunday, 06-Nov-94 08:49:47 GMT")], Some(10_000));
        check(&[("retry-after", "Sun Nov  6 08:49:47 1994")], Some(10_000));
        check(&[("retry-after", "-1")], None);
        check(&[("retry-after", "soon")], None);
        check(&[], None);
        let delay = |delay: &str| retry_delay(&json!({"error": {"details": [{"@type": "x"}, {"retryDelay": delay}]}}));
        assert_eq!(
            (delay("17s"), delay("3.5s"), delay("x")),
            (Some(Duration::from_secs(17)), Some(Duration::from_millis(3500)), None)
        );
    }

    #[test]
    fn statuses_say_what_can_be_done() {
        let redactor = Redactor::new(["the-secret-key".into()]);
        let check = |status: u16, pairs: &[(&'static str, &'static str)], body: &str, expected: ModelError| {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(refusal(status, &headers(pairs), body, now(), &redactor), expected);
        };
        let after = |seconds| ModelError::RateLimited { retry_after: Some(Duration::from_secs(seconds)) };
        let openai = r#"{"error": {"message": "no such key: the-secret-key", "type": "invalid_request_error"}}"#;
        check(401, &[], openai, ModelError::Unauthorized("401 no such key: [redacted]".into()));
        check(402, &[], "", ModelError::Unauthorized("402 ".trim_end().into()));
        check(429, &[("retry-after", "2")], "", after(2));
        check(429, &[], "slow down", ModelError::RateLimited { retry_after: None });
        let quota =
            r#"{"error": {"message": "out of money", "type": "insufficient_quota", "code": "insufficient_quota"}}"#;
        check(429, &[], quota, ModelError::Unauthorized("429 out of money".into()));
        let gemini = r#"{"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "21s"}]}}"#;
        check(429, &[], gemini, after(21));
        let key = r#"{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}"#;
        check(400, &[], key, ModelError::Unauthorized("400 API key not valid.".into()));
        check(503, &[("retry-after", "1")], "", after(1));
        check(529, &[], r#"{"error": {"message": "Overloaded"}}"#, ModelError::Unavailable("529 Overloaded".into()));
        check(502, &[], "<html>bad\ngateway</html>", ModelError::Unavailable("502 <html>bad gateway</html>".into()));
        check(500, &[("x-should-retry", "false")], "no", ModelError::Rejected("500 no".into()));
        check(501, &[], "no", ModelError::Rejected("501 no".into()));
        check(404, &[], r#"{"error": "model 'x' not found"}"#, ModelError::Rejected("404 model 'x' not found".into()));
        check(400, &[], r#"[{"error": {"message": "bad"}}]"#, ModelError::Rejected("400 bad".into()));
        let aws = [("x-amzn-errortype", "ExpiredTokenException:http://internal.amazon.com/")];
        check(400, &aws, r#"{"message": "expired"}"#, ModelError::Unauthorized("400 expired".into()));
        check(424, &[], r#"{"message": "m"}"#, ModelError::Unavailable("424 m".into()));
        check(
            307,
            &[("location", "https://user:pw@host:8443/v2/messages?key=abcdefghij")],
            "",
            ModelError::Rejected(
                "307 the server is at another address: put the one that it names into base_url (https://host:8443/v2/messages)".into(),
            ),
        );
        check(
            308,
            &[],
            "",
            ModelError::Rejected("308 the server is at another address: put that one into base_url".into()),
        );
    }

    #[test]
    fn a_refused_length_is_told_from_other_refusals() {
        for why in [
            "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens.",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000",
            "Input is too long for requested model.",
            "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
            "the request exceeds the available context size, try increasing it",
            "Invalid request: Your request exceeded model token limit: 262144",
        ] {
            let said = of_chat(ModelError::Rejected(format!("400 {why}")));
            assert_eq!(said, ModelError::TooLong(format!("400 {why}")));
        }
        for other in [ModelError::Rejected("404 no such model".into()), ModelError::Broken("context window".into())] {
            assert_eq!(of_chat(other.clone()), other);
        }
    }

    #[test]
    fn errors_inside_a_stream_are_told_apart() {
        let check = |body: Value, expected: ModelError| {
            assert_eq!(fault(WireFault::Told(body), &Redactor::default()), expected);
        };
        let body = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "m"}});
        check(body("overloaded_error"), ModelError::Unavailable("m".into()));
        check(body("rate_limit_error"), ModelError::RateLimited { retry_after: None });
        check(body("authentication_error"), ModelError::Unauthorized("m".into()));
        check(body("invalid_request_error"), ModelError::Rejected("m".into()));
        check(body("api_error"), ModelError::Broken("m".into()));
        check(body("something new"), ModelError::Broken("m".into()));
        check(body("throttlingException"), ModelError::RateLimited { retry_after: None });
        check(json!({"code": 429, "message": "m"}), ModelError::RateLimited { retry_after: None });
        check(json!({"error": {"code": "402", "message": "m"}}), ModelError::Unauthorized("m".into()));
        check(json!({"error": {"code": 502, "message": "m", "metadata": {}}}), ModelError::Unavailable("m".into()));
        check(json!({"message": "model failed"}), ModelError::Broken("model failed".into()));
        check(json!({"error": "plain"}), ModelError::Broken("plain".into()));
    }

    #[test]
    fn failures_that_pass_are_asked_again_and_no_others() {
        for (words, class) in WORDS {
            let said = fault(WireFault::Told(json!({"error": {"type": words, "message": "m"}})), &Redactor::default());
            assert_eq!(said.is_transient(), class.passes(), "{words}");
        }
        for status in 300..=599 {
            let status = StatusCode::from_u16(status).unwrap();
            let said = refusal(status, &HeaderMap::new(), "{}", now(), &Redactor::default());
            let passes = matches!(status.as_u16(), 408 | 409 | 424 | 425 | 429 | 500 | 502..=504 | 506..=599);
            assert_eq!(said.is_transient(), passes, "{status}");
        }
        for fault_ in [WireFault::TooLarge, WireFault::NoAnswer("<html>".into())] {
            assert!(!fault(fault_, &Redactor::default()).is_transient());
        }
    }
}
