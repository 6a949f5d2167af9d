//! Calls of tools over HTTP. The protocol's library parses an answer of JSON where it reads it, as doubles what a double does not hold. So the answer
//! of a call is read here: within the same bounds, and with the errors that the library gives. All other messages go through the library.

use crate::exact_numbers;
use futures::{StreamExt, stream::BoxStream};
use reqwest::{
    Response, StatusCode,
    header::{ACCEPT, AsHeaderName, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpError,
        StreamableHttpPostResponse, StreamableHttpResponseLimits,
    },
};
use sse_stream::{Sse, SseStream};
use std::{
    collections::{BTreeMap, HashMap},
    io,
};

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
/// The header with the session.
const SESSION: &str = "mcp-session-id";

type Answer = Result<StreamableHttpPostResponse, Failed>;
type Failed = StreamableHttpError<reqwest::Error>;

/// Whether a message calls a tool.
pub(crate) fn is_call(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::CallToolRequest(_))
}

/// Sends the call of a tool, and gives its answer as [`exact_numbers::kept`] has it.
///
/// # Errors
/// Those of the library's own client.
pub(crate) async fn call(
    http: &reqwest::Client,
    uri: &str,
    message: &ClientJsonRpcMessage,
    session: Option<&str>,
    token: Option<&str>,
    headers: &HashMap<HeaderName, HeaderValue>,
    limits: StreamableHttpResponseLimits,
) -> Answer {
    let mut request = http.post(uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(session) = session {
        request = request.header(SESSION, session);
    }
    let response = request.json(message).send().await?;
    if let Some(refusal) = challenge(&response) {
        return Err(refusal);
    }
    let given = text(&response, SESSION);
    let content_type = text(&response, CONTENT_TYPE);
    let media = content_type.as_deref().and_then(|media| media.split(';').next()).unwrap_or_default().trim();
    match response.status() {
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
        StatusCode::NOT_FOUND if session.is_some() => Err(Failed::SessionExpired),
        status if !status.is_success() => refused(response, media.eq_ignore_ascii_case(JSON), given, limits).await,
        _ if media.eq_ignore_ascii_case(EVENTS) => {
            let events = exact_numbers::events(events(response, limits.max_sse_event_size));
            Ok(StreamableHttpPostResponse::Sse(events, given))
        }
        _ if media.eq_ignore_ascii_case(JSON) => {
            let (body, is_whole) = body(response, limits.max_json_response_size).await?;
            if !is_whole {
                return Err(Failed::ResponseBodyTooLarge { max_size: limits.max_json_response_size });
            }
            let message = serde_json::from_str(&exact_numbers::kept(&body).unwrap_or(body));
            let message = message.map_err(|error| {
                Failed::UnexpectedServerResponse(format!("its answer is no message of the protocol: {error}").into())
            });
            Ok(StreamableHttpPostResponse::Json(message?, given))
        }
        _ => Err(Failed::UnexpectedContentType(content_type)),
    }
}

/// The error of a request without the credentials that the server asks for.
fn challenge(response: &Response) -> Option<Failed> {
    let header = text(response, WWW_AUTHENTICATE)?;
    match response.status() {
        StatusCode::UNAUTHORIZED => Some(Failed::AuthRequired(AuthRequiredError::new(header))),
        StatusCode::FORBIDDEN => Some(Failed::InsufficientScope(InsufficientScopeError::new(header, None))),
        _ => None,
    }
}

/// The answer that a status of a failure comes with: an error of the protocol, or the status with the words of the server.
async fn refused(
    response: Response,
    is_json: bool,
    session: Option<String>,
    limits: StreamableHttpResponseLimits,
) -> Answer {
    let status = response.status();
    let is_busy = status == StatusCode::TOO_MANY_REQUESTS;
    let may_tell = is_json && !is_busy && !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let fault = HttpStatusError::new(status.as_u16(), text(&response, RETRY_AFTER));
    if is_busy || status.is_server_error() && !may_tell {
        return Err(fault.into());
    }
    let most = if may_tell { limits.max_json_response_size } else { limits.max_error_response_size };
    let (mut words, is_whole) = body(response, most).await.unwrap_or_default();
    let told: Option<ServerJsonRpcMessage> = serde_json::from_str(&words).ok().filter(|_| may_tell && is_whole);
    match told {
        Some(error @ ServerJsonRpcMessage::Error(_)) => Ok(StreamableHttpPostResponse::Json(error, session)),
        _ if status.is_server_error() => Err(fault.into()),
        _ => {
            words.truncate(words.floor_char_boundary(limits.max_error_response_size));
            Err(Failed::UnexpectedServerResponse(format!("HTTP {status}: {words}").into()))
        }
    }
}

fn text(response: &Response, name: impl AsHeaderName) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

/// The body of a response, up to so many bytes; and whether that is all of it.
async fn body(mut response: Response, most: usize) -> Result<(String, bool), reqwest::Error> {
    let (mut body, mut is_whole) = (Vec::new(), true);
    while let Some(chunk) = response.chunk().await? {
        let room = most - body.len();
        body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
        if chunk.len() > room {
            is_whole = false;
            break;
        }
    }
    Ok((String::from_utf8_lossy(&body).into_owned(), is_whole))
}

/// The events of a response, each with so many bytes at most.
fn events(response: Response, most: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let (mut event, mut line, mut last) = (0_usize, 0_usize, 0_u8);
    let bytes = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        for byte in &chunk {
            match byte {
                b'\n' if last == b'\r' => {}
                b'\n' | b'\r' => {
                    // An empty line ends an event.
                    event = if line == 0 { 0 } else { event };
                    line = 0;
                }
                _ => (event, line) = (event + 1, line + 1),
            }
            if event > most {
                return Err(io::Error::other(format!("an event has more than {most} bytes")));
            }
            last = *byte;
        }
        Ok(chunk)
    });
    SseStream::from_bytes_stream(bytes).boxed()
}

/// Headers of a declaration, which no log shows.
///
/// # Errors
/// The fault, for people, without the value.
pub(crate) fn as_headers(values: BTreeMap<String, String>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let one = |(name, value): (String, String)| {
        let header = name.parse().map_err(|_| format!("{name:?} is no header"))?;
        let mut value: HeaderValue = value.parse().map_err(|_| format!("the value of {name} is none of a header"))?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    values.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::{Value, json};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    const NUMBER: &str = "12345678901234567890123";

    fn message(method: &str) -> ClientJsonRpcMessage {
        let params = json!({ "name": "t", "arguments": {} });
        serde_json::from_value(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).unwrap()
    }

    fn result() -> String {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[],\"structuredContent\":{{\"n\":{NUMBER}}}}}}}"
        )
    }

    /// The answer to a call at a server that answers once, with this.
    async fn answer(head: &str, body: &str, session: Option<&str>, most: usize) -> Answer {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/mcp", listener.local_addr().unwrap());
        let reply = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut asked, mut piece) = (Vec::new(), [0; 4_096]);
            while !asked.ends_with(b"}") {
                let length = stream.read(&mut piece).await.unwrap();
                assert!(length > 0, "the request is whole");
                asked.extend_from_slice(&piece[..length]);
            }
            stream.write_all(reply.as_bytes()).await.unwrap();
            String::from_utf8(asked).unwrap().to_ascii_lowercase()
        });
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let headers = HashMap::from([(HeaderName::from_static("x-own"), HeaderValue::from_static("mine"))]);
        let mut limits = StreamableHttpResponseLimits::default();
        (limits.max_sse_event_size, limits.max_json_response_size) = (most, most);
        let answer = call(&http, &uri, &message("tools/call"), session, Some("s3cret"), &headers, limits).await;
        let asked = served.await.unwrap();
        for sent in ["x-own: mine", "authorization: bearer s3cret", "accept: text/event-stream, application/json"] {
            assert!(asked.contains(sent), "{asked}");
        }
        assert_eq!(asked.contains("mcp-session-id: "), session.is_some());
        answer
    }

    fn number(message: &Value) -> &Value {
        &message["result"]["structuredContent"]["n"]
    }

    #[tokio::test]
    async fn numbers_of_an_answer_stay_as_they_are_in_json_and_in_events() {
        assert!(is_call(&message("tools/call")) && !is_call(&message("ping")));
        let head = "200 OK\r\ncontent-type: Application/JSON; charset=utf-8\r\nmcp-session-id: 7";
        let StreamableHttpPostResponse::Json(told, Some(session)) =
            answer(head, &result(), None, 1 << 20).await.unwrap()
        else {
            panic!("it is JSON, with a session")
        };
        let told = serde_json::to_value(told).unwrap();
        assert_eq!((number(&told), session.as_str()), (&Value::from(NUMBER), "7"));
        let (head, body) = ("200 OK\r\ncontent-type: text/event-stream", format!("data: {}\n\n", result()));
        let StreamableHttpPostResponse::Sse(mut events, None) = answer(head, &body, Some("7"), 1 << 20).await.unwrap()
        else {
            panic!("these are events")
        };
        let told: Value = serde_json::from_str(&events.next().await.unwrap().unwrap().data.unwrap()).unwrap();
        assert_eq!(number(&told), &Value::from(NUMBER));
    }

    #[tokio::test]
    async fn refusals_are_those_of_the_library() {
        let of = async |head: &str, body: &str| answer(head, body, Some("7"), 1 << 20).await;
        let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#;
        let told = of("400 Bad Request\r\ncontent-type: application/json", refusal).await;
        assert!(matches!(told, Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(_), _))), "{told:?}");
        let plain = of("400 Bad Request\r\ncontent-type: text/plain", "not here").await;
        assert!(
            matches!(&plain, Err(Failed::UnexpectedServerResponse(why)) if why.ends_with(": not here")),
            "{plain:?}"
        );
        assert!(matches!(of("404 Not Found", "").await, Err(Failed::SessionExpired)));
        let challenge = "www-authenticate: Bearer scope=\"a\"";
        let asked = of(&format!("401 Unauthorized\r\n{challenge}"), "").await;
        assert!(matches!(asked, Err(Failed::AuthRequired(_))), "{asked:?}");
        let asked = of(&format!("403 Forbidden\r\n{challenge}"), "").await;
        assert!(matches!(asked, Err(Failed::InsufficientScope(_))), "{asked:?}");
        let busy = of("429 Too Many Requests\r\nretry-after: 7", "").await;
        let is_told = |fault: &HttpStatusError| fault.status == 429 && fault.retry_after.as_deref() == Some("7");
        assert!(matches!(&busy, Err(Failed::HttpStatus(fault)) if is_told(fault)), "{busy:?}");
        let odd = of("200 OK\r\ncontent-type: text/html", "<p>").await;
        assert!(matches!(odd, Err(Failed::UnexpectedContentType(Some(_)))), "{odd:?}");
        assert!(matches!(of("202 Accepted", "").await, Ok(StreamableHttpPostResponse::Accepted)));
    }

    #[tokio::test]
    async fn an_answer_is_bounded() {
        let long = answer("200 OK\r\ncontent-type: application/json", &result(), None, 20).await;
        assert!(matches!(long, Err(Failed::ResponseBodyTooLarge { max_size: 20 })), "{long:?}");
        let head = "200 OK\r\ncontent-type: text/event-stream";
        let body = "data: short\r\n\r\n".repeat(9) + "data: one that is too long\n\n";
        let StreamableHttpPostResponse::Sse(events, _) = answer(head, &body, None, 20).await.unwrap() else { panic!() };
        let came: Vec<bool> = events.take(10).map(|event| event.is_ok()).collect().await;
        assert!(came.contains(&false), "{came:?}");
    }
}
