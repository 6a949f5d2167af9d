//! One public address in front of several: as CloudFront does by its path patterns. It names itself to the origins behind it, and hands
//! answers on piece by piece.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use std::{net::SocketAddr, sync::Arc};
use tokio::{net::TcpListener, task::JoinHandle};

/// The origins behind it.
#[derive(Clone, Debug)]
pub struct Origins {
    /// The address for requests, such as `127.0.0.1:8080`.
    pub api: String,
    /// The address for requests for events.
    pub streams: String,
    /// The token in its header.
    pub token: String,
}

/// The public address.
pub struct Front {
    pub address: SocketAddr,
    serving: JoinHandle<()>,
}

struct Edge {
    origins: Origins,
    http: reqwest::Client,
}

impl Front {
    pub async fn start(origins: Origins) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        // Any answer of an origin is the client's to understand.
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().no_gzip().build();
        let edge = Arc::new(Edge { origins, http: http.expect("a client") });
        let router = Router::new().fallback(forward).with_state(edge);
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Self { address, serving }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// As the behaviour `/api/v1/workspaces/*/events` of `infra/edge.yaml`: a star stands for slashes, too.
fn is_for_events(uri: &Uri) -> bool {
    uri.path().strip_prefix("/api/v1/workspaces/").is_some_and(|rest| rest.ends_with("/events"))
}

async fn forward(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let origin = if is_for_events(&parts.uri) { &edge.origins.streams } else { &edge.origins.api };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    // As the function of CloudFront does (`infra/edge.yaml`): over any value that a client sends.
    parts.headers.remove("x-buildscale-host");
    if let Some(host) = parts.headers.remove("host") {
        parts.headers.insert("x-buildscale-host", host);
    }
    let token = HeaderValue::try_from(&edge.origins.token).expect("a header");
    parts.headers.insert("x-buildscale-origin", token);
    let Ok(body) = axum::body::to_bytes(body, 64 << 20).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let request = edge.http.request(parts.method, format!("http://{origin}{path}")).headers(parts.headers).body(body);
    match request.send().await {
        Ok(answer) => {
            let (status, headers) = (answer.status(), answer.headers().clone());
            let mut response = Response::new(Body::from_stream(answer.bytes_stream()));
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            response.headers_mut().remove("transfer-encoding");
            response
        }
        Err(error) => {
            tracing::warn!(%error, "an origin does not answer");
            StatusCode::BAD_GATEWAY.into_response()
        }
    }
}
