//! `buildscale webhooks`: receivers that are told what happens in a workspace.

use crate::{
    args::{AddWebhookArgs, EVENTS, WebhooksArgs, WebhooksCommand},
    client::{Client, until},
    failure::{CliError, Exit},
    locate,
    output::{Look, Output, one_line},
    table::{Table, when},
    value::{number, text},
};
use ::client::Body;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// How long the answer to a test event is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked for.
const LOOKED_EVERY: Duration = Duration::from_millis(300);
/// Deliveries that are searched for one to send again.
const SEARCHED: usize = 1_000;

/// Runs one of the commands.
pub(crate) async fn run(args: WebhooksArgs, out: &mut Output) -> Result<Exit, CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, args.workspace.as_deref()).await?;
    let all = ["workspaces", workspace.as_str(), "webhooks"];
    let command = args.command.unwrap_or(WebhooksCommand::List);
    let wanted = match &command {
        WebhooksCommand::List => {
            show_all(&listed(&client, &all).await?, out)?;
            return Ok(Exit::Done);
        }
        WebhooksCommand::Add(asked) => {
            let others = listed(&client, &all).await?;
            show_secret(&client.post(&all, &body(asked)).await?, out)?;
            locate::tell_namesakes(&others, &asked.name, "webhook", out)?;
            return Ok(Exit::Done);
        }
        WebhooksCommand::Show { webhook }
        | WebhooksCommand::Test { webhook }
        | WebhooksCommand::Deliveries { webhook, .. }
        | WebhooksCommand::Retry { webhook, .. }
        | WebhooksCommand::Secret { webhook }
        | WebhooksCommand::Disable { webhook }
        | WebhooksCommand::Enable { webhook }
        | WebhooksCommand::Remove { webhook } => webhook,
    };
    let found = find(listed(&client, &all).await?, wanted)?;
    let id = text(&found, "webhook_id").to_owned();
    let one = ["workspaces", workspace.as_str(), "webhooks", id.as_str()];
    let below = |name| ["workspaces", workspace.as_str(), "webhooks", id.as_str(), name];
    let deliveries = below("deliveries");
    match &command {
        WebhooksCommand::Test { .. } => {
            let sent = client.post(&below("test"), &json!({})).await?;
            return answered(&client, &deliveries, sent, 0, out).await;
        }
        WebhooksCommand::Retry { delivery, .. } => {
            let known = client.list(&deliveries, "deliveries", &[], SEARCHED).await?;
            let delivery = begins(&known, delivery)?;
            let [a, b, c, d, e] = deliveries;
            let sent = client.post(&[a, b, c, d, e, &delivery, "retry"], &json!({})).await?;
            let before = number(&sent, "attempts_made");
            return answered(&client, &deliveries, sent, before, out).await;
        }
        WebhooksCommand::Deliveries { number, .. } => {
            let found = client.list(&deliveries, "deliveries", &[], usize::from(*number)).await?;
            show_deliveries(&found, out)?;
        }
        WebhooksCommand::Secret { .. } => show_secret(&client.post(&below("secret"), &json!({})).await?, out)?,
        WebhooksCommand::Disable { .. } => enabled(&client, &one, false, out).await?,
        WebhooksCommand::Enable { .. } => enabled(&client, &one, true, out).await?,
        WebhooksCommand::Remove { .. } => {
            client.remove(&one, &[]).await?;
            if out.is_json() { out.json(&json!({ "webhook_id": id }))? } else { out.notice("it is removed")? }
        }
        WebhooksCommand::Show { .. } | WebhooksCommand::List | WebhooksCommand::Add(_) => show(&found, out)?,
    }
    Ok(Exit::Done)
}

async fn listed(client: &Client, place: &[&str]) -> Result<Vec<Value>, CliError> {
    let listed = client.get(place, &[]).await?;
    Ok(listed.get("webhooks").and_then(Value::as_array).cloned().unwrap_or_default())
}

async fn enabled(client: &Client, place: &[&str], enabled: bool, out: &mut Output) -> Result<(), CliError> {
    let answer = client.change(Method::PATCH, place, Body::Json(json!({ "enabled": enabled })), None).await?;
    match (out.is_json(), enabled) {
        (true, _) => out.json(&answer),
        (false, true) => out.notice("it is told events again"),
        (false, false) => out.notice("it is told nothing"),
    }
}

/// Waits until the receiver has answered once more than `before`, and shows the delivery.
async fn answered(
    client: &Client,
    place: &[&str],
    sent: Value,
    before: u64,
    out: &mut Output,
) -> Result<Exit, CliError> {
    let id = text(&sent, "delivery_id").to_owned();
    let is_tried = |one: &Value| number(one, "attempts_made") > before || text(one, "status") == "failed";
    let look = async || {
        let known = client.list(place, "deliveries", &[], SEARCHED).await?;
        Ok::<_, CliError>(known.into_iter().find(|one| text(one, "delivery_id") == id && is_tried(one)))
    };
    let delivery = until(PATIENCE, LOOKED_EVERY, look).await?.unwrap_or(sent);
    if out.is_json() {
        out.json(&delivery)?;
    }
    let (words, exit) = match text(&delivery, "status") {
        "delivered" => ("the receiver took it".to_owned(), Exit::Done),
        "failed" => (format!("it was given up: {}", outcome(&delivery)), Exit::Failed),
        _ if is_tried(&delivery) => (format!("it failed, and is tried again: {}", outcome(&delivery)), Exit::Failed),
        _ => ("it waits; `buildscale webhooks deliveries` shows its attempts".to_owned(), Exit::Failed),
    };
    out.notice(words)?;
    Ok(exit)
}

/// The webhook of this name, or whose id begins so.
fn find(webhooks: Vec<Value>, wanted: &str) -> Result<Value, CliError> {
    locate::named(webhooks, wanted, "webhook_id", "webhook", "webhooks", |one| text(one, "url").to_owned())
}

/// The id of the delivery that begins so.
fn begins(deliveries: &[Value], wanted: &str) -> Result<String, CliError> {
    let mut found: Vec<_> =
        deliveries.iter().map(|one| text(one, "delivery_id")).filter(|id| id.starts_with(wanted)).collect();
    match (found.pop(), found.len()) {
        (Some(id), 0) => Ok(id.to_owned()),
        (Some(_), others) => Err(CliError::Usage(format!("{} deliveries begin with {wanted:?}", others + 1))),
        (None, _) => Err(CliError::NotFound(format!("there is no delivery that begins with {wanted:?}"))),
    }
}

fn body(asked: &AddWebhookArgs) -> Value {
    let AddWebhookArgs { name, receiver, events, chat, flow } = asked;
    let events = if events.is_empty() { EVENTS.map(str::to_owned).to_vec() } else { events.clone() };
    let mut body = json!({ "name": name, "url": receiver, "events": events });
    for (key, value) in [("chat_id", chat), ("flow", flow)] {
        if let Some(value) = value {
            body[key] = Value::String(value.clone());
        }
    }
    body
}

fn events(webhook: &Value) -> String {
    let events = webhook.get("events").and_then(Value::as_array);
    events.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn state(webhook: &Value) -> String {
    match (webhook.get("disabled"), text(webhook, "failing_since")) {
        (Some(disabled), _) => format!("disabled ({})", text(disabled, "because")),
        (None, "") => "enabled".to_owned(),
        (None, since) => format!("fails since {since}"),
    }
}

/// The outcome of the last attempt of a delivery.
fn outcome(delivery: &Value) -> String {
    let given_up = text(delivery, "given_up");
    if !given_up.is_empty() {
        return given_up.to_owned();
    }
    let last = delivery.get("attempts").and_then(Value::as_array).and_then(|attempts| attempts.last());
    let Some(last) = last else { return String::new() };
    let took = format!("{} ms", number(last, "duration_ms"));
    match (text(last, "error"), number(last, "status")) {
        ("", status) => format!("{status} in {took}"),
        (error, _) => format!("{error}, {took}"),
    }
}

fn show_all(webhooks: &[Value], out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(&json!({ "webhooks": webhooks }));
    }
    let mut table = Table::new(&["name", "state", "events", "to", "id"]);
    for one in webhooks {
        table.row(vec![
            (one_line(text(one, "name"), 40), Some(Look::Bold)),
            (state(one), None),
            (events(one), None),
            (one_line(text(one, "url"), 60), None),
            (text(one, "webhook_id").to_owned(), Some(Look::Dim)),
        ]);
    }
    table.print(out)?;
    if webhooks.is_empty() {
        out.notice("no webhooks; `buildscale webhooks add --help` shows how to make one")?;
    }
    Ok(())
}

fn show_deliveries(deliveries: &[Value], out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(&json!({ "deliveries": deliveries }));
    }
    let mut table = Table::new(&["event", "type", "status", "attempts", "last", "next", "id"]);
    for one in deliveries {
        let next = match text(one, "next_at") {
            "" => String::new(),
            time => crate::table::moment(time),
        };
        table.row(vec![
            (when(text(one, "timestamp"), out), None),
            (text(one, "type").to_owned(), Some(Look::Bold)),
            (text(one, "status").to_owned(), None),
            (number(one, "attempts_made").to_string(), None),
            (one_line(&outcome(one), 60), None),
            (next, None),
            (text(one, "delivery_id").to_owned(), Some(Look::Dim)),
        ]);
    }
    table.print(out)?;
    if deliveries.is_empty() {
        out.notice("no deliveries yet; `buildscale webhooks test` sends one")?;
    }
    Ok(())
}

fn show_secret(made: &Value, out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(made);
    }
    show(made.get("webhook").unwrap_or(&Value::Null), out)?;
    out.line(format_args!("secret  {}", text(made, "secret")))?;
    out.notice("the secret is not shown again: give it to the receiver now")
}

fn show(webhook: &Value, out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(webhook);
    }
    let rows = [
        ("id", text(webhook, "webhook_id").to_owned()),
        ("name", one_line(text(webhook, "name"), 100)),
        ("to", text(webhook, "url").to_owned()),
        ("events", events(webhook)),
        ("chat", text(webhook, "chat_id").to_owned()),
        ("flow", text(webhook, "flow").to_owned()),
        ("state", state(webhook)),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        out.line(format_args!("{name:<8}{value}"))?;
    }
    Ok(())
}
