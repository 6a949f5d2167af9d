//! One public address in front of several: as CloudFront does by the path patterns of `infra/edge.yaml`, which are read here. It names itself to the
//! origins behind it, and hands answers on piece by piece.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, task::JoinHandle};

/// The origins behind it.
#[derive(Clone, Debug)]
pub struct Origins {
    /// The address for requests, such as `127.0.0.1:8080`.
    pub api: String,
    /// The address for requests in the protocols of clients.
    pub protocols: String,
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

/// The template of the distribution.
const TEMPLATE: &str = include_str!("../../../infra/edge.yaml");

struct Edge {
    paths: Paths,
    http: reqwest::Client,
}

/// The origin of each path.
struct Paths {
    origins: Origins,
    behaviours: Vec<(&'static str, &'static str)>,
}

impl Front {
    pub async fn start(origins: Origins) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        // Any answer of an origin is the client's to understand.
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().no_gzip();
        // Before an origin ends an idle connection, as CloudFront does.
        let http = http.pool_idle_timeout(Duration::from_secs(5)).build();
        let edge = Arc::new(Edge { paths: Paths { origins, behaviours: behaviours() }, http: http.expect("a client") });
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

/// The path patterns of the distribution, with the origin of each, in their order.
fn behaviours() -> Vec<(&'static str, &'static str)> {
    let lines: Vec<&str> = TEMPLATE.lines().map(str::trim).collect();
    let pairs = lines.iter().zip(lines.iter().skip(1));
    let pairs = pairs.filter_map(|(first, second)| {
        Some((first.strip_prefix("- PathPattern: ")?, second.strip_prefix("TargetOriginId: ")?))
    });
    let all: Vec<_> = pairs.collect();
    assert!(all.iter().any(|(_, origin)| *origin == "streams"), "the template has behaviours");
    all
}

/// Whether a path is of a pattern, in which a star stands for any characters, also slashes.
fn fits(path: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => path == pattern,
        Some((head, rest)) => path
            .strip_prefix(head)
            .is_some_and(|path| path.char_indices().any(|(at, _)| fits(&path[at..], rest)) || fits("", rest)),
    }
}

impl Paths {
    /// The console's bucket is not here: its paths go to the API, as all that no pattern fits.
    fn origin(&self, path: &str) -> &str {
        match self.behaviours.iter().find(|(pattern, _)| fits(path, pattern)) {
            Some((_, "protocols")) => &self.origins.protocols,
            Some((_, "streams")) => &self.origins.streams,
            _ => &self.origins.api,
        }
    }
}

async fn forward(State(edge): State<Arc<Edge>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let origin = edge.paths.origin(parts.uri.path());
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    // As the function of CloudFront does (`infra/edge.yaml`): over any value that a client sends.
    parts.headers.remove("x-buildscale-host");
    if let Some(host) = parts.headers.remove("host") {
        parts.headers.insert("x-buildscale-host", host);
    }
    let token = HeaderValue::try_from(&edge.paths.origins.token).expect("a header");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_the_distribution_says() {
        let origins = ["api", "protocols", "streams", ""].map(str::to_owned);
        let [api, protocols, streams, token] = origins;
        let paths = Paths { origins: Origins { api, protocols, streams, token }, behaviours: behaviours() };
        for (path, origin) in [
            ("/api/v1/workspaces/w/chats/c/events", "streams"),
            ("/api/v1/workspaces/w/events", "streams"),
            ("/api/v1/workspaces/w/chats/c", "api"),
            ("/api/v1/workspaces/w/chats/c/events/", "api"),
            ("/api/v1/workspaces/w/ai-sdk/chat/c/stream", "protocols"),
            ("/api/v1/workspaces/w/ag-ui", "protocols"),
            ("/api/v1/workspaces/w/ag-ui/more", "api"),
            ("/api/agent/stream", "protocols"),
            ("/api/v1/workspaces/w/uploads", "protocols"),
            ("/api/v1/workspaces/w/tools", "protocols"),
            ("/api/v1/workspaces/w/mcp", "protocols"),
            ("/api/v1/workspaces/w/mcp/servers", "api"),
            ("/mcp", "protocols"),
            ("/api/v1/workspaces/w/export", "protocols"),
            ("/api/v1/workspaces/w/tasks/t/trace", "protocols"),
            ("/api/v1/imports", "protocols"),
            ("/api/v1/workspaces/w/contents/0", "api"),
            ("/v1/threads/t/turns", "protocols"),
            ("/v1/turns/t/events", "protocols"),
            ("/openai/v1/chat/completions", "protocols"),
            ("/langgraph/threads", "protocols"),
            ("/a2a", "protocols"),
            ("/a2a/w", "protocols"),
            ("/.well-known/agent-card.json", "api"),
            ("/", "api"),
        ] {
            assert_eq!(paths.origin(path), origin, "{path}");
        }
    }
}
