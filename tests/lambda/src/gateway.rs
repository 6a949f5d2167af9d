//! HTTP in front of a function: as API Gateway does with an HTTP API, payload format 2.0; and a function's own URL, whose answers stream.

use crate::{
    Failure, Function,
    instance::{Answered, LARGEST},
    lineage::Lineage,
};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use std::{convert::Infallible, net::SocketAddr};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

/// An HTTP address in front of a function.
pub struct Gateway {
    pub address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Gateway {
    pub async fn start(function: Function) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(forward).with_state(function);
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Self { address, serving }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn forward(State(function): State<Function>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // The most that API Gateway takes.
    let Ok(body) = axum::body::to_bytes(body, 10 << 20).await else {
        return status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    let path = parts.uri.path();
    let event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": parts.uri.query().unwrap_or_default(),
        "headers": joined(&parts.headers),
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "domainName": "local",
            "domainPrefix": "local",
            "http": {
                "method": parts.method.as_str(), "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1",
                "userAgent": "test",
            },
            "requestId": "local",
            "routeKey": "$default",
            "stage": "$default",
            "time": "01/Jan/2026:00:00:00 +0000",
            "timeEpoch": 1_767_225_600_000_u64,
        },
        "body": (!body.is_empty()).then(|| STANDARD.encode(&body)),
        "isBase64Encoded": true,
    });
    let event = event.to_string();
    if event.len() > LARGEST {
        return status(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let chain = Lineage::default().entering(&function.settings().name);
    match function.run(&chain, event.into()).await {
        Ok(Answered::Whole(answer)) => respond(&answer).unwrap_or_else(|| status(StatusCode::BAD_GATEWAY)),
        Ok(Answered::Pieces(pieces)) => stream(pieces).await.unwrap_or_else(|| status(StatusCode::BAD_GATEWAY)),
        Err(Failure::TimedOut) => status(StatusCode::GATEWAY_TIMEOUT),
        Err(failure) => {
            tracing::warn!(?failure, path, "the function failed");
            status(StatusCode::BAD_GATEWAY)
        }
    }
}

fn joined(headers: &HeaderMap) -> Map<String, Value> {
    let all = |name| {
        let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        Value::String(values.join(","))
    };
    headers.keys().map(|name| (name.as_str().to_owned(), all(name))).collect()
}

fn respond(answer: &[u8]) -> Option<Response> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let mut response = Response::builder().status(u16::try_from(answer["statusCode"].as_u64()?).ok()?);
    for (name, value) in answer["headers"].as_object().into_iter().flatten() {
        response = response.header(name, value.as_str()?);
    }
    for (name, values) in answer["multiValueHeaders"].as_object().into_iter().flatten() {
        if answer["headers"].get(name).is_none() {
            for value in values.as_array()? {
                response = response.header(name, value.as_str()?);
            }
        }
    }
    let body = answer["body"].as_str().unwrap_or_default();
    let body = match answer["isBase64Encoded"].as_bool() {
        Some(true) => STANDARD.decode(body).ok()?,
        _ => body.as_bytes().to_vec(),
    };
    response.body(Body::from(body)).ok()
}

/// An answer in pieces begins with its head, as JSON, and eight zeros.
async fn stream(mut pieces: mpsc::Receiver<bytes::Bytes>) -> Option<Response> {
    const END_OF_HEAD: [u8; 8] = [0; 8];
    let mut seen = Vec::new();
    let end = loop {
        if let Some(end) = seen.windows(END_OF_HEAD.len()).position(|window| window == END_OF_HEAD) {
            break end;
        }
        seen.extend_from_slice(&pieces.recv().await?);
    };
    let head: Value = serde_json::from_slice(&seen[..end]).ok()?;
    let mut response = Response::builder().status(u16::try_from(head["statusCode"].as_u64()?).ok()?);
    for (name, value) in head["headers"].as_object().into_iter().flatten() {
        response = response.header(name, value.as_str()?);
    }
    let first = bytes::Bytes::copy_from_slice(&seen[end + END_OF_HEAD.len()..]);
    let rest = futures::stream::unfold((Some(first), pieces), |(first, mut pieces)| async move {
        let piece = match first {
            Some(first) => first,
            None => pieces.recv().await?,
        };
        Some((Ok::<_, Infallible>(piece), (None, pieces)))
    });
    response.body(Body::from_stream(rest)).ok()
}

fn status(status: StatusCode) -> Response {
    let body = json!({ "message": status.canonical_reason() }).to_string();
    Response::builder().status(status).body(Body::from(body)).expect("a response")
}
