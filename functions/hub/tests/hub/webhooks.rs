//! Webhooks of a hub, against strict receivers: they check each signature with the library of Standard Webhooks, fail, go away and come back,
//! while the hub is killed.

use crate::support::{Client, Hub, PATIENCE, Result, count, start};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};
use std::{collections::BTreeSet, path::Path, process::Stdio, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::{TcpListener, TcpSocket},
    process::Command,
    task::JoinHandle,
    time::timeout,
};

/// Receivers on this machine, and short pauses.
const SETTINGS: [(&str, &str); 2] =
    [("BUILDSCALE__WEBHOOKS__ALLOW_PRIVATE", "true"), ("BUILDSCALE__WEBHOOKS__RETRY_SECONDS", "1")];

/// A receiver that takes what is signed, after it has failed as often as it was told.
#[derive(Clone, Default)]
struct Receiver {
    state: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    secret: String,
    fails: usize,
    wrong: usize,
    /// The events that were taken: `webhook-id` and body, each once.
    events: Vec<(String, Value)>,
}

async fn take(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let mut seen = receiver.state.lock();
    let verified = standardwebhooks::Webhook::new(&seen.secret).is_ok_and(|hook| hook.verify(&body, &headers).is_ok());
    if !verified {
        seen.wrong += 1;
        return StatusCode::UNAUTHORIZED;
    }
    if seen.fails > 0 {
        seen.fails -= 1;
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    let id = headers["webhook-id"].to_str().unwrap_or_default().to_owned();
    if seen.events.iter().all(|(known, _)| *known != id) {
        seen.events.push((id, serde_json::from_slice(&body).unwrap_or_default()));
    }
    StatusCode::NO_CONTENT
}

impl Receiver {
    async fn listen(&self) -> Result<(String, JoinHandle<()>)> {
        self.serve(TcpListener::bind("127.0.0.1:0").await?)
    }

    fn serve(&self, listener: TcpListener) -> Result<(String, JoinHandle<()>)> {
        let address = listener.local_addr()?.to_string();
        let routes = Router::new().route("/hook", post(take)).with_state(self.clone());
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Ok((address, serving))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        change(&mut self.state.lock())
    }

    /// The events, once they are as wanted.
    async fn until(&self, fits: impl Fn(&[(String, Value)]) -> bool) -> Result<Vec<(String, Value)>> {
        let looking = async {
            loop {
                let events = self.change(|seen| seen.events.clone());
                if fits(&events) {
                    return events;
                }
                // poll: the hub posts when it does
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        match timeout(PATIENCE, looking).await {
            Ok(events) => Ok(events),
            Err(_) => Err(format!("{:?}", self.change(|seen| (seen.wrong, seen.events.clone()))).into()),
        }
    }
}

fn of_type(events: &[(String, Value)], wanted: &str) -> Vec<Value> {
    events.iter().filter(|(_, body)| body["type"] == wanted).map(|(_, body)| body["data"].clone()).collect()
}

/// Makes a webhook for all types of events; its address and its secret.
async fn hooked(client: &Client, place: &str, address: &str, more: Value) -> Result<(String, String)> {
    let all = ["turn.ended", "task.ended", "question.asked", "permission.asked", "plan.submitted"];
    let mut new = json!({ "name": "n", "url": format!("http://{address}/hook"), "events": all });
    if let (Some(new), Some(more)) = (new.as_object_mut(), more.as_object()) {
        new.extend(more.clone());
    }
    let made = client.post(&format!("{place}/webhooks"), new).await?;
    let id = made["webhook"]["webhook_id"].as_str().ok_or("no id")?;
    Ok((format!("{place}/webhooks/{id}"), made["secret"].as_str().ok_or("no secret")?.to_owned()))
}

async fn hub(data: &Path) -> Result<Hub> {
    start(data, &SETTINGS).await
}

#[tokio::test]
async fn events_arrive_in_order_although_the_receiver_fails_and_the_hub_is_killed() -> Result {
    let data = tempfile::tempdir()?;
    let mut hub = hub(data.path()).await?;
    let client = hub.client();
    let place = client.place().await?;
    let receiver = Receiver::default();
    let (address, _serving) = receiver.listen().await?;
    let (hook, secret) = hooked(&client, &place, &address, json!({})).await?;
    receiver.change(|seen| (seen.secret, seen.fails) = (secret.clone(), 2));

    let chat = client.chat(&place, "say it").await?;
    let watch = client.watch(&chat);
    let mut random = 11_u64;
    const MORE: usize = 8;
    for number in 0..MORE {
        client.post_surely(&chat, &format!("post-{number}"), &json!({ "content": format!("say {number}") })).await?;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = Duration::from_millis((random >> 33) % 120);
        // Dies at that moment, or when nothing is left to be interrupted.
        drop(timeout(moment, watch.until(|events| count(events, "done") > number + 1)).await);
        hub.kill().await?;
        hub.restart().await?;
    }
    timeout(PATIENCE, watch.until(|events| count(events, "done") > MORE)).await??;
    let ended: Vec<Value> =
        watch.events().iter().filter(|event| event.name == "done").map(|event| event.data["turn_id"].clone()).collect();
    let events = receiver.until(|events| of_type(events, "turn.ended").len() > MORE).await?;
    let told: Vec<Value> = of_type(&events, "turn.ended").iter().map(|data| data["turn_id"].clone()).collect();
    assert_eq!(told, ended, "each turn once, in the order of the chat");
    assert_eq!(of_type(&events, "turn.ended")[0]["text"], "Said.");
    assert_eq!(receiver.change(|seen| seen.wrong), 0, "every signature is good");

    let are_delivered = |page: &Value| {
        page["deliveries"].as_array().is_some_and(|all| all.iter().all(|one| one["status"] == "delivered"))
    };
    let listed = client.until(&format!("{hook}/deliveries"), are_delivered).await?;
    let all = listed["deliveries"].as_array().ok_or("no list")?;
    assert_eq!(all.len(), MORE + 1);
    // An attempt that a death cut off is not recorded.
    let last =
        |one: &Value| one["attempts"].as_array().and_then(|attempts| attempts.last().cloned()).unwrap_or_default();
    assert!(all.iter().all(|one| last(one)["status"] == 204 && last(one)["duration_ms"].is_u64()), "{listed}");

    // Neither the store nor a log has the secret.
    for entry in std::fs::read_dir(data.path())? {
        let path = entry?.path();
        if path.is_file() {
            let text = std::fs::read(&path)?;
            assert!(!text.windows(secret.len()).any(|part| part == secret.as_bytes()), "{}", path.display());
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_receiver_that_was_away_gets_what_it_missed_and_one_that_is_gone_nothing_more() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path()).await?;
    let client = hub.client();
    let place = client.place().await?;
    let receiver = Receiver::default();
    let (address, serving) = receiver.listen().await?;
    let (hook, secret) = hooked(&client, &place, &address, json!({})).await?;
    receiver.change(|seen| seen.secret = secret);
    serving.abort();
    let _ = serving.await;
    // Its port is taken, so that no other process gets it, and no process listens on it.
    let away = TcpSocket::new_v4()?;
    away.set_reuseaddr(true)?;
    away.bind(address.parse()?)?;

    client.chat(&place, "say it").await?;
    let failing = client.until(&hook, |hook| hook["failing_since"].is_string()).await?;
    assert_eq!(failing["enabled"], true);
    let note = "receivers that did not take the last event: 1";
    client.until("/ready", |ready| ready["degraded"]["webhooks"] == note).await?;
    let page = client.get(&format!("{hook}/deliveries")).await?;
    let one = &page["deliveries"][0];
    let why = one["attempts"][0]["error"].as_str().unwrap_or_default();
    assert!(why.contains("cannot be reached") && !why.contains("hook"), "{one}");
    assert!(one["next_at"].is_string() && one["status"] == "pending", "{one}");
    let (_, _serving) = receiver.serve(away.listen(64)?)?;
    receiver.until(|events| events.len() == 1).await?;
    client.until(&hook, |hook| hook["failing_since"].is_null()).await?;
    client.until("/ready", |ready| ready["degraded"]["webhooks"].is_null()).await?;

    // The same event again, by hand; then with another secret, while the old one is good, too.
    let again = format!("{hook}/deliveries/{}/retry", one["delivery_id"].as_str().unwrap_or_default());
    let made = client.get(&format!("{hook}/deliveries")).await?["deliveries"][0]["attempts_made"].as_u64();
    client.post(&again, json!({})).await?;
    let deliveries = format!("{hook}/deliveries");
    let is_again = |page: &Value| {
        let one = &page["deliveries"][0];
        one["attempts_made"].as_u64() > made && one["status"] == "delivered"
    };
    client.until(&deliveries, is_again).await?;
    assert_eq!(receiver.change(|seen| seen.events.len()), 1, "it has the same webhook-id");
    let newer = client.post(&format!("{hook}/secret"), json!({})).await?["secret"].clone();
    client.post(&format!("{hook}/test"), json!({})).await?;
    receiver.until(|events| of_type(events, "webhook.test").len() == 1).await?;
    receiver.change(|seen| seen.secret = newer.as_str().unwrap_or_default().to_owned());
    client.post(&format!("{hook}/test"), json!({})).await?;
    receiver.until(|events| of_type(events, "webhook.test").len() == 2).await?;
    assert_eq!(receiver.change(|seen| seen.wrong), 0);

    let gone = Router::new().route("/hook", post(|| async { StatusCode::GONE }));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let elsewhere = format!("http://{}/hook", listener.local_addr()?);
    let _gone = tokio::spawn(async move { axum::serve(listener, gone).await });
    client.ask(Method::PATCH, &hook, json!({ "url": elsewhere })).await?;
    client.post(&format!("{hook}/test"), json!({})).await?;
    let disabled = client.until(&hook, |hook| hook["enabled"] == false).await?;
    assert_eq!(disabled["disabled"]["because"], "gone");
    let page = client.get(&deliveries).await?;
    assert_eq!(
        (&page["deliveries"][0]["status"], &page["deliveries"][0]["attempts"][0]["status"]),
        (&json!("failed"), &json!(410))
    );
    Ok(())
}

#[tokio::test]
async fn questions_permissions_plans_and_tasks_are_told_and_filters_hold() -> Result {
    let data = tempfile::tempdir()?;
    let hub = hub(data.path()).await?;
    let client = hub.client();
    let place = client.place().await?;
    let (all, of_flow) = (Receiver::default(), Receiver::default());
    let (address, _serving) = all.listen().await?;
    let secret = hooked(&client, &place, &address, json!({})).await?.1;
    all.change(|seen| seen.secret = secret);
    let (address, _serving_too) = of_flow.listen().await?;
    let secret = hooked(&client, &place, &address, json!({ "flow": "echo" })).await?.1;
    of_flow.change(|seen| seen.secret = secret);

    client.chat(&place, "ask me").await?;
    client.chat(&place, "become a poet").await?;
    let workflow = "nodes:\n  - {id: begin, kind: deterministic, role: start, context: none}\n  \
                    - {id: end, kind: deterministic, role: exit, context: none}\nedges:\n  - {from: begin, to: end}\n";
    client.file(&place, "/system/flows/echo/workflow.yaml", workflow).await?;
    let task = client.post(&format!("{place}/flows/echo/tasks"), json!({ "input": "kept to ourselves" })).await?;
    let events = all
        .until(|events| {
            let types: BTreeSet<&str> = events.iter().filter_map(|(_, body)| body["type"].as_str()).collect();
            types.is_superset(&BTreeSet::from(["question.asked", "permission.asked", "task.ended"]))
        })
        .await?;
    let asked = &of_type(&events, "question.asked")[0];
    assert_eq!(asked["questions"], json!([{ "name": "colour", "question": "Which colour?" }]));
    let wanted = &of_type(&events, "permission.asked")[0];
    assert_eq!((&wanted["tool"], &wanted["args"]), (&json!("write"), &Value::Null));
    assert!(!wanted.to_string().contains("You rhyme"), "{wanted}");
    let ended = of_type(&of_flow.until(|events| !events.is_empty()).await?, "task.ended");
    assert_eq!((&ended[0]["task_id"], &ended[0]["flow"]), (&task["task_id"], &json!("echo")));
    assert!(ended[0]["status"].is_string() && !ended[0].to_string().contains("kept to ourselves"), "{}", ended[0]);
    assert_eq!(of_flow.change(|seen| (seen.events.len(), seen.wrong)), (1, 0));
    Ok(())
}

/// The program of a language in the page about webhooks.
fn sample(language: &str) -> Result<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/webhooks.md");
    let page = std::fs::read_to_string(page)?;
    let begin = format!("\n```{language}\n");
    let code = page.split(&begin).nth(1).and_then(|rest| rest.split("\n```").next());
    Ok(code.ok_or("no sample")?.to_owned())
}

#[tokio::test]
async fn the_receivers_of_the_page_take_what_is_signed_and_refuse_anything_else() -> Result {
    for (language, program, file) in [("js", "node", "receiver.mjs"), ("python", "python3", "receiver.py")] {
        let data = tempfile::tempdir()?;
        let hub = hub(data.path()).await?;
        let client = hub.client();
        let place = client.place().await?;
        // The receiver needs the secret to begin, and the webhook the receiver's address.
        let (hook, secret) = hooked(&client, &place, "127.0.0.1:9", json!({})).await?;
        let code = data.path().join(file);
        std::fs::write(&code, sample(language)?)?;
        let mut child = Command::new(program)
            .arg(&code)
            .env("PORT", "0")
            .env("WEBHOOK_SECRET", &secret)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let begun = timeout(PATIENCE, lines.next_line()).await??.ok_or("it ended")?;
        let port = begun.strip_prefix("listening ").ok_or("no port")?;
        let url = format!("http://127.0.0.1:{port}/");
        client.ask(Method::PATCH, &hook, json!({ "url": url })).await?;
        let chat = client.chat(&place, "say it").await?;
        let told = timeout(PATIENCE, lines.next_line()).await??.ok_or("it ended")?;
        assert_eq!(told, format!("turn.ended {}", chat.rsplit('/').next().unwrap_or_default()), "{program}");
        let forged = reqwest::Client::new().post(&url).header("webhook-id", "msg_1").header("webhook-timestamp", "1");
        let forged = forged.header("webhook-signature", "v1,AAAA").body("{}").send().await?;
        assert_eq!(forged.status().as_u16(), 401, "{program}");
        let page = client.get(&format!("{hook}/deliveries")).await?;
        assert_eq!(page["deliveries"][0]["type"], "turn.ended", "{page}");
    }
    Ok(())
}
