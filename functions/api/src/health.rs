//! For operators: liveness, readiness and metrics.

use crate::{
    StreamContext,
    description::Text,
    error::{self, Answer},
    extract::Operator,
    metrics::Requests,
    schema::Health,
};
use axum::{
    Extension, Json,
    extract::State,
    response::{IntoResponse, Response},
};
use domain::{Code, Error};
use futures::future::{BoxFuture, join_all};
use http::header;
use ports::crash;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use workspace::Damage;

/// How long a part may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks whether a part answers.
pub type Check = Box<dyn Fn() -> BoxFuture<'static, ports::Result<()>> + Send + Sync>;

/// A part that has to answer before this is ready.
pub struct Probe {
    /// Its name: `table`, `queue`, `bus`.
    pub name: &'static str,
    /// Whether it answers; for at most two seconds.
    pub check: Check,
}

/// Whether the process lives.
#[utoipa::path(get, path = "/health", tag = "health",
    responses((status = 200, description = "It does.", body = Health)))]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION"), degraded: BTreeMap::new() })
}

/// How many damaged contents, and how many dead letters, are counted.
const COUNTED: usize = 100;

/// Whether it can work: table, queue and bus answer. `degraded` names parts that are damaged or full while it can work all the same.
#[utoipa::path(get, path = "/ready", tag = "health",
    responses((status = 200, description = "It can.", body = Health)))]
pub(crate) async fn ready(State(context): State<Arc<StreamContext>>) -> Answer<Json<Health>> {
    let asked = context.ready.iter().map(|probe| async {
        let why = match tokio::time::timeout(PATIENCE, (probe.check)()).await {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".into(),
        };
        Some((probe.name, why))
    });
    let missing: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
    if missing.is_empty() {
        let degraded = degraded(&context).await;
        return Ok(Json(Health { status: "ready", version: env!("CARGO_PKG_VERSION"), degraded }));
    }
    let names: Vec<_> = missing.iter().map(|(name, _)| *name).collect();
    let error = Error::new(Code::UpstreamUnavailable, format!("not ready: {}", names.join(", "))).hint("try again");
    Err(missing.into_iter().fold(error, |error, (name, why)| error.detail(name, why)).into())
}

/// The damaged or full parts, by name. Numbers alone: anybody may ask.
async fn degraded(context: &StreamContext) -> BTreeMap<&'static str, String> {
    let full = || ("disk", "full: requests that add are refused until there is room".to_owned());
    let mut degraded: BTreeMap<_, _> = (!(context.has_room)()).then(full).into_iter().collect();
    degraded.extend(damaged(context).await.map(|damage| ("archive", damage)));
    let refused = crash::installed().map_or(0, |crashes| crashes.refused().len());
    degraded.extend((refused > 0).then(|| ("inputs", format!("refused, as the process died of them: {refused}"))));
    degraded.extend(put_aside(context).await.map(|letters| ("queue", letters)));
    degraded.extend(context.notes.iter().filter_map(|note| note()));
    degraded
}

/// The dead letters that wait for the operator.
async fn put_aside(context: &StreamContext) -> Option<String> {
    let letters = context.dead_letters.as_ref()?.dead_letters(COUNTED);
    let Ok(Ok(letters)) = tokio::time::timeout(PATIENCE, letters).await else { return None };
    let more = if letters.len() == COUNTED { ", or more" } else { "" };
    (!letters.is_empty()).then(|| format!("messages put aside after too many attempts: {}{more}", letters.len()))
}

async fn damaged(context: &StreamContext) -> Option<String> {
    let Ok(Ok(damaged)) = tokio::time::timeout(PATIENCE, context.workspaces.damaged(COUNTED)).await else {
        return None;
    };
    if damaged.is_empty() {
        return None;
    }
    let missing = damaged.iter().filter(|one| one.damage == Damage::Missing).count();
    let more = if damaged.len() == COUNTED { ", or more" } else { "" };
    Some(format!("contents altered: {}, missing: {missing}{more}", damaged.len() - missing))
}

/// Counters in Prometheus' text format, for the machine's own person: they are about everybody.
#[utoipa::path(get, path = "/metrics", tag = "health",
    responses((status = 200, description = "All of them.", body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(
    State(context): State<Arc<StreamContext>>,
    Operator: Operator,
    Extension(requests): Extension<Arc<Requests>>,
) -> Answer<Response> {
    let mut out = String::with_capacity(16 * 1024);
    requests.write(&mut out);
    for write in &context.metrics {
        write(&mut out);
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], out).into_response())
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "health",
    responses((status = 200, description = "OpenAPI 3.1.", body = Object)))]
pub(crate) async fn openapi(Extension(text): Extension<Text>) -> Answer<Response> {
    // It computes for tens of milliseconds once: other requests go on meanwhile.
    let bytes = tokio::task::spawn_blocking(move || text.bytes()).await.map_err(|_| error::internal())?;
    Ok(([(header::CONTENT_TYPE, "application/json")], bytes).into_response())
}
