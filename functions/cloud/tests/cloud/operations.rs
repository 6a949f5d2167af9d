//! The needs of operators: readiness, counters, metrics in the log, secrets that stay out, and sweeps.

use crate::world::{Options, Result, World};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

/// A secret of the deployment that must not appear anywhere.
const SECRET: &str = "a-key-that-has-to-stay-secret";

#[tokio::test(flavor = "multi_thread")]
async fn it_can_be_operated() -> Result<()> {
    let settings = [
        ("BUILDSCALE__AUTH__METRICS_TOKEN", "those-that-watch"),
        ("BUILDSCALE__FILES__TRASH_DAYS", "0"),
        ("HOUSE_API_KEY", SECRET),
        ("AWS_LAMBDA_FUNCTION_NAME", "tests-worker"),
    ];
    let world = World::deploy(Options { settings: &settings, ..Options::default() }).await?;
    let client = &world.client;

    // Known secrets stay out of messages, at the front as everywhere.
    let workspace = client.workspace().await?;
    let api = format!("/api/v1/workspaces/{workspace}");
    let chats = format!("{api}/chats");
    let made = client.post(&chats, json!({ "goal": format!("say {SECRET}") })).await?;
    let chat = format!("{chats}/{}", made["chat_id"].as_str().unwrap_or_default());
    client.until(&chat, |view| view["turns"] == 1).await?;
    let told = client.get(&chat).await?.to_string();
    assert!(told.contains("[redacted]") && !told.contains(SECRET), "{told}");
    let refused = client.ask(Method::POST, &chats, json!({ "goal": 1, SECRET: 2 })).await?;
    assert!(refused.status.is_client_error() && !refused.text().contains(SECRET), "{}", refused.text());

    // The worker's metrics are in its log, for CloudWatch to take out.
    while world.worker.running() > 0 {
        // poll: a function says nothing when it is done
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut counted = serde_json::Map::new();
    for line in world.log_of("worker").lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Value::Object(line) = line else { continue };
        let Some(about) = line.get("_aws") else { continue };
        assert_eq!(line["Function"], "tests-worker");
        for metric in about["CloudWatchMetrics"][0]["Metrics"].as_array().into_iter().flatten() {
            let name = metric["Name"].as_str().unwrap_or_default();
            let sum = counted.get(name).and_then(Value::as_u64).unwrap_or_default();
            counted.insert(name.to_owned(), (sum + line[name].as_u64().unwrap_or_default()).into());
        }
    }
    assert_eq!((&counted["Commands"], &counted["TurnsDone"]), (&json!(1), &json!(1)), "{counted:?}");
    assert!(counted["Steps"].as_u64() > Some(1) && counted["ModelCalls"].as_u64() >= Some(1), "{counted:?}");

    // A removed file goes for good, and nothing scans for it.
    let file = client.file(&api, "/projects/old.md", "x").await?;
    client.ask(Method::DELETE, &file, Value::Null).await?.good()?;
    world.dynamodb.take();
    let swept = world.timer.invoke(r#"{"sweep": "all"}"#).await.map_err(|failure| format!("{failure:?}"))?;
    let swept: Value = serde_json::from_slice(&swept)?;
    assert_eq!(swept["swept"]["trash"], 1, "{swept}");
    assert_eq!(client.get(&format!("{api}/files/trash")).await?["files"], json!([]));
    assert!(world.dynamodb.take().iter().all(|(operation, _)| operation != "Scan"));

    // The operator sees the counters, and whether it can work; all others see the latter alone.
    let watching = client.with_token(Some("those-that-watch"));
    assert!(watching.look("/metrics").await?.text().contains("process_start_time_seconds "));
    assert_eq!(watching.call(Method::GET, &chats, Value::Null).await?.0, StatusCode::UNAUTHORIZED);
    assert_eq!(client.call(Method::GET, "/metrics", Value::Null).await?.0, StatusCode::FORBIDDEN);
    assert_eq!(client.get("/ready").await?["status"], "ready");
    world.emulators.redis.lock().await.stop();
    let (status, body) = client.call(Method::GET, "/ready", Value::Null).await?;
    assert_eq!(
        (status, &body["error"]["details"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!({ "bus": "bus is unavailable" }))
    );
    Ok(())
}
