//! A host of the Model Context Protocol at a workspace: its messages become requests to the other routes, which decide (spec 004 §12).
//!
//! The requests are made of the very router, with the headers of the message. So credentials, roles, limits and refusals are those of each route, and
//! there is none here.

use crate::{
    Context,
    access::{Access, Read},
    error::{Answer, ApiError, internal},
    extract::Json,
    hub::Within,
    long_answers::long_answer,
    workspaces::InWorkspace,
};
use axum::{
    Extension, Router,
    body::{Body, Bytes, to_bytes},
    extract::State,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{Error, WorkspaceId};
use http::{HeaderMap, HeaderName, StatusCode, header};
use ports::KnownSecrets;
use protocols::mcp::{Reaction, Request, VERSIONS, take};
use serde_json::{Value, json};
use std::{fmt::Write, sync::Arc};
use tower::ServiceExt;

/// The longest answer to a request that a host gets, in bytes.
const MAX_ANSWER: usize = 8 << 20;
/// The version of the protocol that a client speaks.
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Headers that are about the message itself.
const OWN: [HeaderName; 6] = [
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::TRANSFER_ENCODING,
    header::ACCEPT,
    header::EXPECT,
    HeaderName::from_static("idempotency-key"),
];

/// The routes that messages become requests to.
#[derive(Clone)]
pub(crate) struct RouteDispatch(pub Router);

/// The parts that each request of one message is made of, beside what it asks for.
struct Forwarding {
    routes: Router,
    workspace: WorkspaceId,
    headers: HeaderMap,
    known: KnownSecrets,
}

/// Takes a message of a host of the Model Context Protocol (streamable HTTP), and answers it as JSON. Stateless: no session, and no stream to get or
/// to delete. The tools are those of `GET …/tools`, and some for chats and flows; files are resources, and skills are prompts. Each message needs the right that its own route needs.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace_id}/mcp", tag = "tools", params(InWorkspace),
    request_body(content = Value, description = "A message of JSON-RPC 2.0."),
    responses(
        (status = 200, description = "The answer, a message of JSON-RPC 2.0.", body = Value),
        (status = 202, description = "It is a notification, and has no answer."),
    ))]
pub(crate) async fn take_message(
    Extension(RouteDispatch(routes)): Extension<RouteDispatch>,
    Access { at, .. }: Access<Read, InWorkspace>,
    known: Option<Extension<KnownSecrets>>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Answer<Response> {
    let known = known.map(|Extension(known)| known).unwrap_or_default();
    let forwarding = Forwarding { routes, workspace: at.workspace_id, headers, known };
    answered(forwarding, &message).await
}

/// Takes a message of a host of the Model Context Protocol, as `POST /api/v1/workspaces/{workspace_id}/mcp` does, in the workspace of the header `X-Workspace-Id`
/// or of the parameter `workspaceId`, else in the caller's first one.
#[utoipa::path(post, path = "/mcp", tag = "tools",
    request_body(content = Value, description = "A message of JSON-RPC 2.0."),
    responses(
        (status = 200, description = "The answer, a message of JSON-RPC 2.0.", body = Value),
        (status = 202, description = "It is a notification, and has no answer."),
    ))]
pub(crate) async fn take_message_here(
    State(context): State<Arc<Context>>,
    Extension(RouteDispatch(routes)): Extension<RouteDispatch>,
    within: Within<Read>,
    known: Option<Extension<KnownSecrets>>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Answer<Response> {
    within.settle(&context).await?;
    let known = known.map(|Extension(known)| known).unwrap_or_default();
    let forwarding = Forwarding { routes, workspace: within.workspace, headers, known };
    answered(forwarding, &message).await
}

/// The answer to a message.
async fn answered(forwarding: Forwarding, message: &Value) -> Answer<Response> {
    if let Some(version) = forwarding.headers.get(VERSION).map(|version| version.to_str().unwrap_or_default())
        && !VERSIONS.contains(&version)
    {
        let version: String = version.chars().take(32).collect();
        return Err(Error::invalid("mcp-protocol-version", format!("the version {version:?} is not spoken here"))
            .hint(format!("speak one of {}", VERSIONS.join(", ")))
            .into());
    }
    Ok(match take(message) {
        Reaction::Silent => StatusCode::ACCEPTED.into_response(),
        // A message that is none has no id, and its sender no other way to hear of it than by the refusal.
        Reaction::Answer(answer) if answer["id"].is_null() => {
            let why = answer["error"]["message"].as_str().unwrap_or_default();
            return Err(Error::invalid("body", why).hint("send one message of JSON-RPC 2.0").into());
        }
        Reaction::Answer(answer) => axum::Json(answer).into_response(),
        Reaction::Ask(ask) => {
            // The request may be the call of a tool, which takes its time.
            let whole = async move {
                let first = request(&forwarding, &ask.request).await?;
                Ok(match first.as_ref().ok().and_then(|body| ask.then(body)) {
                    Some(next) => next.answer(request(&forwarding, &next.request).await?),
                    None => ask.answer(first),
                })
            };
            long_answer(whole, ApiError::envelope).await?
        }
    })
}

/// Makes a request of the routes: the body of its answer, or the error of its envelope.
async fn request(forwarding: &Forwarding, asked: &Request) -> Answer<Result<Value, Value>> {
    let Forwarding { routes, workspace, headers, known } = forwarding;
    let mut uri = format!("/api/v1/workspaces/{workspace}");
    for segment in &asked.path {
        uri.push('/');
        uri.push_str(&escaped(segment));
    }
    for (position, (name, value)) in asked.query.iter().enumerate() {
        uri.push_str(if position == 0 { "?" } else { "&" });
        uri.push_str(&format!("{name}={}", escaped(value)));
    }
    let body = asked.body.as_ref().map_or_else(Bytes::new, |body| body.to_string().into());
    let mut request =
        http::Request::builder().method(asked.method).uri(uri).body(Body::from(body)).map_err(|_| internal())?;
    *request.headers_mut() = headers.clone();
    // The layer that keeps secrets out is around all routes, and these are inside.
    request.extensions_mut().insert(known.clone());
    for name in OWN {
        request.headers_mut().remove(name);
    }
    request.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    let response = match routes.clone().oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let is_success = response.status().is_success();
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.to_owned();
    let Ok(body) = to_bytes(response.into_body(), MAX_ANSWER).await else {
        return Ok(Err(json!({ "code": "TOO_LARGE", "message": "the answer is too long", "hint": "ask for less" })));
    };
    if is_success && asked.is_raw {
        return Ok(Ok(match std::str::from_utf8(&body) {
            Ok(text) => json!({ "type": kind, "text": text }),
            Err(_) => json!({ "type": kind, "blob": STANDARD.encode(&body) }),
        }));
    }
    let mut value: Value = serde_json::from_slice(&body).unwrap_or_default();
    if is_success {
        return Ok(Ok(value));
    }
    let mut error = value["error"].take();
    known.redactor().value(&mut error);
    Ok(Err(error))
}

/// A segment of a path, or a value of a query, as a URL has it. It comes from a model.
fn escaped(text: &str) -> String {
    let mut url = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => url.push(char::from(byte)),
            // Writing to a text does not fail.
            _ => drop(write!(url, "%{byte:02X}")),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tools::{Registry, ToolKind};
    use protocols::mcp::LOOKING;

    #[test]
    fn hosts_are_told_which_tools_only_look() {
        let registry = Registry::builtin();
        for spec in registry.specs().iter().chain(registry.optional().iter()) {
            let looks = registry.kind(&spec.name) == Some(ToolKind::Read);
            assert_eq!(LOOKING.contains(&spec.name.as_str()), looks, "{}", spec.name);
        }
    }

    #[test]
    fn words_of_a_model_stay_within_their_segment() {
        assert_eq!(escaped("../a?b=c#d/é"), "%2E%2E%2Fa%3Fb%3Dc%23d%2F%C3%A9");
        assert_eq!(escaped("019bf537-f228_A"), "019bf537-f228_A");
    }
}
