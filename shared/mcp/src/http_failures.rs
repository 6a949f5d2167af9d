//! Failures of servers over HTTP, in our codes: whether they pass by themselves, and whether the call had an effect.

use crate::{bounds::printable, oauth::authorized_client::UnusableAccount};
use domain::{Code, Error};
use rmcp::{
    service::ServiceError,
    transport::streamable_http_client::{HttpStatusError, StreamableHttpError},
};

/// The detail of an error that has the status of HTTP with which a server refused a request.
pub(crate) const HTTP_STATUS: &str = "http_status";
/// The detail of an error that says how long its server asks to be left alone, in milliseconds.
const RETRY_AFTER_MS: &str = "retry_after_ms";
/// The longest time that a server may ask for, in seconds.
const MAX_RETRY_AFTER: u64 = 3_600;
/// The most characters of a server's own words.
const MAX_WORDS: usize = 500;

const NO_EFFECT: &str = "the call had no effect";
const UNKNOWN_EFFECT: &str = "the call may have taken effect or not: look before you make it again";

type Failed = StreamableHttpError<reqwest::Error>;

/// The failure of a request over HTTP as callers read it; none for any other one, such as the end of a program.
pub(crate) fn explain(server: &str, error: &ServiceError) -> Option<Error> {
    let ServiceError::TransportSend(sent) = error else { return None };
    let of =
        |code, what: &str, hint: &str| Some(Error::new(code, format!("the MCP server {server} {what}")).hint(hint));
    match sent.error.downcast_ref::<Failed>()? {
        Failed::HttpStatus(HttpStatusError { status, retry_after, .. }) => {
            Some(of_status(server, *status, retry_after.as_deref(), ""))
        }
        Failed::UnexpectedServerResponse(words) => match status_in(words) {
            Some((status, said)) => Some(of_status(server, status, None, said)),
            None => {
                of(Code::Unprocessable, &format!("does not keep to its protocol: {}", short(words)), UNKNOWN_EFFECT)
            }
        },
        wrong @ (Failed::UnexpectedContentType(_) | Failed::ResponseBodyTooLarge { .. } | Failed::Deserialize(_)) => {
            let what = format!("does not keep to its protocol: {}", short(&wrong.to_string()));
            of(Code::Unprocessable, &what, UNKNOWN_EFFECT)
        }
        Failed::SessionExpired | Failed::ReinitializationFailed(_) => {
            let what = "has ended the session, and another one could not be begun";
            of(Code::UpstreamUnavailable, what, &format!("{NO_EFFECT}: make it again in a while"))
        }
        Failed::Client(error) if error.is_connect() => {
            of(Code::UpstreamUnavailable, "cannot be reached", &format!("{NO_EFFECT}: make it again in a while"))
        }
        Failed::AuthRequired(_) | Failed::InsufficientScope(_) => {
            of(Code::UpstreamRefused, "asks for a sign-in", NO_EFFECT)
        }
        Failed::Io(error) if error.get_ref().is_some_and(|why| why.is::<UnusableAccount>()) => {
            let what = format!("cannot be asked: {}", short(&error.to_string()));
            of(Code::UpstreamUnavailable, &what, "the call had no effect: make it again in a while, or sign in anew")
        }
        _ => None,
    }
}

/// The failure that a status means; `said` has the words of the server.
fn of_status(server: &str, status: u16, retry_after: Option<&str>, said: &str) -> Error {
    let said = short(said);
    let colon = if said.is_empty() { "" } else { ": " };
    let (code, what, hint) = match status {
        429 => {
            (Code::RateLimited, "takes no more calls now", "the call had no effect: wait a little, then make it again")
        }
        500.. => (Code::UpstreamUnavailable, "has failed", UNKNOWN_EFFECT),
        401 | 403 => {
            let hint = "the call had no effect: correct the credentials in the declaration of the server";
            (Code::UpstreamRefused, "refuses our credentials", hint)
        }
        404 | 405 | 410 => {
            let hint = "the call had no effect: correct the address in the declaration of the server";
            (Code::UpstreamRefused, "is not at its address", hint)
        }
        _ => (Code::Unprocessable, "refuses the call", NO_EFFECT),
    };
    let error = Error::new(code, format!("the MCP server {server} {what} (HTTP {status}){colon}{said}")).hint(hint);
    let error = error.detail(HTTP_STATUS, status);
    // A date would need a clock, and servers that mean it give seconds.
    match retry_after.and_then(|after| after.trim().parse::<u64>().ok()) {
        Some(seconds) => error.detail(RETRY_AFTER_MS, seconds.min(MAX_RETRY_AFTER) * 1_000),
        None => error,
    }
}

/// The status of HTTP and the words in the text of a refusal, such as `HTTP 400 Bad Request: no`; none for a text of another kind.
fn status_in(text: &str) -> Option<(u16, &str)> {
    let status = text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()?;
    Some((status, text.split_once(": ").map_or("", |(_, said)| said)))
}

fn short(words: &str) -> String {
    printable(words.trim(), MAX_WORDS)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use rmcp::transport::DynamicTransportError;
    use std::any::TypeId;

    fn of(failed: Failed) -> Error {
        let sent = DynamicTransportError::from_parts("http", TypeId::of::<Failed>(), Box::new(failed));
        explain("files", &ServiceError::TransportSend(sent)).unwrap()
    }

    fn status(status: u16, retry_after: Option<&str>) -> Error {
        of(HttpStatusError::new(status, retry_after.map(str::to_owned)).into())
    }

    #[test]
    fn a_status_is_told_as_what_it_is() {
        let busy = status(429, Some("7"));
        assert_eq!((busy.code, busy.details[RETRY_AFTER_MS].as_u64()), (Code::RateLimited, Some(7_000)));
        assert_eq!(busy.message, "the MCP server files takes no more calls now (HTTP 429)");
        for (asked, expected) in [("99999999999", Some(3_600_000)), ("Wed, 21 Oct 2026 07:28:00 GMT", None)] {
            let after = status(503, Some(asked)).details.get(RETRY_AFTER_MS).and_then(|after| after.as_u64());
            assert_eq!(after, expected, "{asked}");
        }
        assert_eq!(status(502, None).code, Code::UpstreamUnavailable);
        assert_eq!(status(502, None).message, "the MCP server files has failed (HTTP 502)");
        let refused = |text: &str| of(Failed::UnexpectedServerResponse(text.to_owned().into()));
        assert_eq!(refused("HTTP 401 Unauthorized: ").code, Code::UpstreamRefused);
        assert_eq!(refused("HTTP 404 Not Found: ").code, Code::UpstreamRefused);
        let told = refused("HTTP 400 Bad Request: no: not here");
        assert_eq!(
            (told.code, told.message.as_str()),
            (Code::Unprocessable, "the MCP server files refuses the call (HTTP 400): no: not here")
        );
    }

    #[test]
    fn a_call_that_may_have_had_an_effect_says_so() {
        let hint = |error: Error| error.hint.unwrap();
        assert!(hint(status(500, None)).contains("may have taken effect"));
        assert!(hint(of(Failed::UnexpectedContentType(None))).contains("may have taken effect"));
        let unusable = of(Failed::Io(std::io::Error::other(UnusableAccount::of("the table is away"))));
        assert_eq!(unusable.code, Code::UpstreamUnavailable);
        assert!(unusable.message.ends_with("cannot be used now: the table is away"), "{unusable}");
        for failed in [status(429, None), of(Failed::SessionExpired), unusable] {
            assert!(hint(failed).contains("no effect"));
        }
        let sent = Failed::Io(std::io::Error::other("the pipe is broken"));
        let sent = DynamicTransportError::from_parts("http", TypeId::of::<Failed>(), Box::new(sent));
        assert_eq!(explain("files", &ServiceError::TransportSend(sent)), None, "it may have had an effect");
        assert_eq!(explain("files", &ServiceError::TransportClosed), None);
        let broken =
            DynamicTransportError::from_parts("pipe", TypeId::of::<()>(), Box::new(std::io::Error::other("x")));
        assert_eq!(explain("files", &ServiceError::TransportSend(broken)), None);
    }
}
