//! Webhooks: a receiver that fails first is told the end of each turn, in order and signed, although workers die.

use super::Stage;
use crate::{PATIENCE, Result};
use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use parking_lot::Mutex;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};

/// Receivers on this machine, short pauses, and the key that functions of AWS share.
const SETTINGS: [(&str, &str); 3] = [
    ("BUILDSCALE__WEBHOOKS__SECRET", "a key of webhooks of at least thirty-two bytes"),
    ("BUILDSCALE__WEBHOOKS__ALLOW_PRIVATE", "true"),
    ("BUILDSCALE__WEBHOOKS__RETRY_SECONDS", "1"),
];

/// The requests that came, each with its headers.
type Came = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

async fn take(State(came): State<Came>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let mut came = came.lock();
    came.push((headers, serde_json::from_slice(&body).unwrap_or_default()));
    if came.len() > 2 { StatusCode::NO_CONTENT } else { StatusCode::SERVICE_UNAVAILABLE }
}

pub(super) async fn a_receiver_is_told_the_ends_of_turns_in_order(stage: Stage) -> Result {
    let mut deployment = stage.another(&SETTINGS).await?;
    let client = deployment.client();
    let place = client.place().await?;
    let came = Came::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/hook", listener.local_addr()?);
    let routes = Router::new().route("/hook", post(take)).with_state(came.clone());
    let serving = tokio::spawn(async move { drop(axum::serve(listener, routes).await) });
    let new = json!({ "name": "n", "url": url, "events": ["turn.ended"] });
    let made = client.post(&format!("{place}/webhooks"), new).await?;
    let hook = format!("{place}/webhooks/{}", made["webhook"]["webhook_id"].as_str().ok_or("no id")?);

    let chat = client.chat(&place, "say it").await?;
    let is_over = |turns: u64| move |chat: &Value| chat["turns"] == turns && chat["status"] == "idle";
    client.until(&chat, is_over(1)).await?;
    client.post_surely(&chat, "two", &json!({ "content": "say more" })).await?;
    deployment.kill().await?;
    client.until(&chat, is_over(2)).await?;
    let told = || {
        let came = came.lock();
        let mut ids: Vec<String> = Vec::new();
        for (headers, _) in came.iter() {
            let id = headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        (ids, came.clone())
    };
    let both = async {
        while told().0.len() < 2 {
            // poll: the receiver is told when a worker tells it
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, both).await.map_err(|_| format!("{:?}", told()))?;
    let (ids, came) = told();
    let first = came.iter().take_while(|(headers, _)| headers["webhook-id"] == ids[0].as_str()).count();
    assert!(first >= 3, "the first was tried until it was taken, before the second: {first}");
    for (headers, body) in &came {
        assert!(headers["webhook-signature"].to_str().is_ok_and(|text| text.starts_with("v1,")));
        assert_eq!((&body["type"], &body["data"]["text"]), (&json!("turn.ended"), &json!("Said.")));
    }
    let is_delivered = |page: &Value| {
        let all = page["deliveries"].as_array();
        all.is_some_and(|all| all.len() == 2 && all.iter().all(|one| one["status"] == "delivered"))
    };
    client.until(&format!("{hook}/deliveries"), is_delivered).await?;
    serving.abort();
    Ok(())
}
