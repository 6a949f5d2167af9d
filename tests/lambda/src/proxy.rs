//! Stands between functions and one service: counts calls by operation, and lets some fail as services do.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, Response, StatusCode, header},
};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinHandle};

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing does.
    None,
    /// It is answered 500 and has no effect.
    Refused,
    /// It takes effect, and the answer is 500.
    AnsweredWrong,
    /// It takes effect, and the connection ends before the answer.
    AnswerLost,
    /// It has no effect, and no answer comes for this long; then the connection ends.
    Silent(Duration),
    /// It is told to come more slowly, and has no effect.
    Throttled,
}

/// One call, as it is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// Counts all calls from 0, in the order of their arrival.
    pub number: usize,
    /// `PutItem`, `SendMessage`, …; for S3 the method and what it is about, such as `PUT object`.
    pub operation: String,
}

type Plan = Box<dyn FnMut(&Call) -> Fault + Send>;

/// A service behind a proxy.
pub struct Proxy {
    pub address: SocketAddr,
    inner: Arc<Inner>,
    serving: JoinHandle<()>,
}

struct Inner {
    target: String,
    http: reqwest::Client,
    calls: Mutex<Vec<Call>>,
    plan: Mutex<Plan>,
}

impl Proxy {
    /// In front of the service at `target`, such as `http://127.0.0.1:8000`.
    pub async fn start(target: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
        let plan: Plan = Box::new(|_| Fault::None);
        let inner = Arc::new(Inner { target: target.into(), http, calls: Mutex::default(), plan: Mutex::new(plan) });
        let router = Router::new().fallback(forward).with_state(inner.clone());
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Self { address, inner, serving }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Decides the fate of every call from now on.
    pub fn plan(&self, plan: impl FnMut(&Call) -> Fault + Send + 'static) {
        *self.inner.plan.lock().unwrap() = Box::new(plan);
    }

    /// The calls since the last time that somebody asked, by operation.
    pub fn take_counts(&self) -> BTreeMap<String, usize> {
        let calls = std::mem::take(&mut *self.inner.calls.lock().unwrap());
        calls.into_iter().fold(BTreeMap::new(), |mut counts, call| {
            *counts.entry(call.operation).or_default() += 1;
            counts
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn forward(State(inner): State<Arc<Inner>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 64 << 20).await.unwrap_or_default();
    let operation = operation(&parts.method, parts.uri.path(), &parts.headers, &body);
    let call = {
        let mut calls = inner.calls.lock().unwrap();
        let call = Call { number: calls.len(), operation };
        calls.push(call.clone());
        call
    };
    let fault = inner.plan.lock().unwrap()(&call);
    match fault {
        Fault::Refused => return wrong(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
        Fault::Throttled => return wrong(StatusCode::BAD_REQUEST, "ThrottlingException"),
        Fault::Silent(time) => {
            // poll: nobody is waited for, this is the fault
            tokio::time::sleep(time).await;
            return cut();
        }
        Fault::None | Fault::AnsweredWrong | Fault::AnswerLost => {}
    }
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut headers = parts.headers;
    headers.remove(header::CONNECTION);
    let sent = inner.http.request(parts.method, format!("{}{path}", inner.target)).headers(headers).body(body).send();
    let Ok(answer) = sent.await else { return wrong(StatusCode::BAD_GATEWAY, "BadGateway") };
    let (status, headers) = (answer.status(), answer.headers().clone());
    let body = answer.bytes().await.unwrap_or_default();
    match fault {
        Fault::AnsweredWrong => wrong(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
        Fault::AnswerLost => cut(),
        _ => {
            let mut response = Response::builder().status(status);
            for (name, value) in &headers {
                if ![header::TRANSFER_ENCODING, header::CONNECTION, header::CONTENT_LENGTH].contains(name) {
                    response = response.header(name, value);
                }
            }
            response.body(Body::from(body)).expect("a response")
        }
    }
}

/// The JSON protocols name the operation in a header, the query protocol in the body; S3 is told by its method.
fn operation(method: &Method, path: &str, headers: &HeaderMap, body: &Bytes) -> String {
    if let Some(target) = headers.get("x-amz-target").and_then(|target| target.to_str().ok()) {
        return target.rsplit('.').next().unwrap_or_default().to_owned();
    }
    let body = std::str::from_utf8(body.get(..body.len().min(4096)).unwrap_or_default()).unwrap_or_default();
    if let Some(action) = body.split('&').find_map(|pair| pair.strip_prefix("Action=")) {
        return action.to_owned();
    }
    let about = if path.trim_matches('/').contains('/') { "object" } else { "bucket" };
    format!("{method} {about}")
}

fn wrong(status: StatusCode, code: &str) -> Response<Body> {
    let body = serde_json::json!({ "__type": format!("com.amazonaws#{code}"), "message": "a planned fault" });
    let response = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
    response.header("x-amzn-errortype", code).body(Body::from(body.to_string())).expect("a response")
}

/// A body that breaks off, so that the connection ends without an answer that could be read.
fn cut() -> Response<Body> {
    let broken: Result<Bytes, std::io::Error> = Err(std::io::Error::other("a planned fault"));
    let stream = futures::stream::iter([broken]);
    Response::builder().status(StatusCode::OK).body(Body::from_stream(stream)).expect("a response")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_known_in_every_protocol() {
        let json: HeaderMap =
            [(header::HeaderName::from_static("x-amz-target"), "DynamoDB_20120810.PutItem".parse().unwrap())]
                .into_iter()
                .collect();
        let none = HeaderMap::new();
        assert_eq!(operation(&Method::POST, "/", &json, &Bytes::new()), "PutItem");
        let query = Bytes::from_static(b"Action=SendMessage&QueueUrl=x");
        assert_eq!(operation(&Method::POST, "/", &none, &query), "SendMessage");
        assert_eq!(operation(&Method::PUT, "/bucket/ab/cd", &none, &Bytes::new()), "PUT object");
        assert_eq!(operation(&Method::GET, "/bucket/", &none, &Bytes::new()), "GET bucket");
    }
}
