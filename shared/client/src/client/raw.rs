//! The raw layer: any request with the token, and any answer as it is. Nothing is repeated, no status is an error, and no time is too long.

use crate::{
    Client, Connection, Error, Refusal, address,
    error::{causes, is_without_tls},
};
use reqwest::{
    Method, Request, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER},
};
use serde_json::Value;
use std::time::Duration;

/// How often a stream is sent on to another address at most.
const REDIRECTS: usize = 5;

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The request, to be shown to people; it may have a ticket in it.
    pub asked: String,
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub bytes: Vec<u8>,
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// A header; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The pause before the next request, in whole seconds as hubs send it. A date, which some proxy may send, counts as none.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(&self.headers)
    }

    /// The error body; none when it is a success, or not a hub's.
    pub fn refusal(&self) -> Option<Refusal> {
        if self.status.is_success() {
            return None;
        }
        let inside = serde_json::from_slice::<Value>(&self.bytes).ok()?.get_mut("error").map(Value::take)?;
        let refusal = serde_json::from_value::<Refusal>(inside).ok()?;
        Some(Refusal { status: self.status.as_u16(), retry_after: self.retry_after(), ..refusal })
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

impl Client {
    /// A request with the token for a path of the hub, such as `/health`, with its query and escaped as it has to be.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.signed(self.untimed.request(method, self.address(path)))
    }

    /// The URL of a path of the hub.
    pub fn address(&self, path: &str) -> String {
        address::of_path(&self.base.borrow(), path)
    }

    /// Sends a request; its answer, whose body is yet to be read, has any status.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        self.meet();
        Ok(response)
    }

    /// Sends a request and reads the whole answer, of any status.
    ///
    /// # Errors
    /// When there is none, or it breaks off.
    pub async fn answer(&self, request: RequestBuilder) -> Result<Answer, Error> {
        let (http, request) = request.build_split();
        let request = request.map_err(|error| self.broken(&error))?;
        let asked = format!("{} {}", request.method(), request.url());
        let response = http.execute(request).await.map_err(|error| self.broken(&error))?;
        self.meet();
        self.whole(asked, response).await
    }

    /// Sends a request once, and reads the JSON of its answer; null where it has no body.
    ///
    /// # Errors
    /// When it is refused, no hub answers, or the answer is no JSON.
    pub async fn ask(&self, request: RequestBuilder) -> Result<Value, Error> {
        self.json(self.success_of(self.answer(request).await?)?)
    }

    /// Opens one event stream, which is not opened again when it breaks; none when no event will come. Follows redirects. The token
    /// goes to no other origin than the request's own; a ticket in the address goes wherever the server puts it.
    ///
    /// # Errors
    /// When it is refused, or the answer is no event stream.
    pub async fn connect(&self, request: RequestBuilder) -> Result<Option<Connection>, Error> {
        let (http, request) = request.build_split();
        let mut request = request.map_err(|error| self.broken(&error))?;
        request.headers_mut().entry(ACCEPT).or_insert(HeaderValue::from_static("text/event-stream"));
        for _ in 0..=REDIRECTS {
            let again = request.try_clone();
            let response = http.execute(request).await.map_err(|error| self.broken(&error))?;
            self.meet();
            match again.and_then(|again| redirected(again, &response)) {
                Some(next) => request = next,
                None => return self.stream(self.accepted(response).await?),
            }
        }
        Err(self.foreign(format!("it redirects more than {REDIRECTS} times"), Some(StatusCode::FOUND.as_u16())))
    }

    fn stream(&self, response: Response) -> Result<Option<Connection>, Error> {
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return Ok(Some(Connection::new(response, self.clone())));
        }
        Err(self.foreign(format!("its events are {kind:?}"), Some(response.status().as_u16())))
    }

    /// An answer that is a success; else the error that it means.
    pub(crate) async fn accepted(&self, response: Response) -> Result<Response, Error> {
        if response.status().is_success() {
            return Ok(response);
        }
        let answer = self.whole(String::new(), response).await?;
        Err(self.error_of(&answer))
    }

    pub(crate) async fn whole(&self, asked: String, response: Response) -> Result<Answer, Error> {
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await.map_err(|error| self.broken(&error))?.to_vec();
        Ok(Answer { asked, status, headers, bytes })
    }

    /// The error that an answer without success means.
    pub(crate) fn error_of(&self, answer: &Answer) -> Error {
        match answer.refusal() {
            Some(refusal) => Error::Refused(Box::new(refusal)),
            None => self.foreign(format!("it answers {}", answer.status), Some(answer.status.as_u16())),
        }
    }

    /// The error that one of a response that is being read means.
    pub fn broken(&self, error: &reqwest::Error) -> Error {
        let url = address::display_url(&self.base.borrow());
        if is_without_tls(error) { Error::NoTls { url } } else { Error::Unreachable { url, reason: causes(error) } }
    }

    pub(crate) fn foreign(&self, reason: String, status: Option<u16>) -> Error {
        Error::Foreign { url: address::display_url(&self.base.borrow()), reason, status }
    }
}

/// The request that a redirect asks for; none when the response is none.
fn redirected(mut request: Request, response: &Response) -> Option<Request> {
    let is_one = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let to = response.headers().get(LOCATION).filter(|_| is_one)?.to_str().ok()?;
    let to = request.url().join(to).ok()?;
    if to.origin() != request.url().origin() {
        request.headers_mut().remove(AUTHORIZATION);
    }
    *request.url_mut() = to;
    Some(request)
}
