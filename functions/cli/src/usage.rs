//! The usage of a workspace, and the caller's identity.

use crate::{
    args::{AuthArgs, AuthCommand, UsageArgs},
    client::Client,
    failure::{Exit, Failure},
    locate,
    output::{Look, Output, one_line},
    table::Table,
    value::{list, number, text},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// More workspaces than anybody looks through.
const MOST: usize = 200;

/// `buildscale usage`: by day, and the sum.
pub(crate) async fn usage(args: UsageArgs, out: &mut Output) -> Result<(), Failure> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, args.workspace.as_deref()).await?;
    let days = [("from", args.from.as_deref()), ("to", args.to.as_deref())];
    let query: Vec<(&str, &str)> = days.into_iter().filter_map(|(name, day)| Some((name, day?))).collect();
    let used = client.get(&["workspaces", &workspace, "usage"], &query).await?;
    if out.is_json() {
        return out.json(&used);
    }
    let mut table = Table::new(&["day", "model", "turns", "calls", "tokens in", "tokens out", "dollars"]);
    let mut rows = BTreeMap::<(String, String), [f64; 5]>::new();
    for part in list(&used, "parts") {
        let model = match text(part, "model") {
            "" => "default",
            model => model,
        };
        let row = rows.entry((text(part, "day").to_owned(), one_line(model, 40))).or_default();
        row.iter_mut().zip(figures(part)).for_each(|(sum, figure)| *sum += figure);
    }
    for ((day, model), figures) in &rows {
        table.row([vec![(day.clone(), None), (model.clone(), None)], cells(figures, None)].concat());
    }
    let total = used.get("total").unwrap_or(&Value::Null);
    let head = vec![("total".to_owned(), Some(Look::Bold)), (String::new(), None)];
    table.row([head, cells(&figures(total), Some(Look::Bold))].concat());
    table.print(out)
}

fn figures(used: &Value) -> [f64; 5] {
    let count = |key| number(used, key) as f64;
    let cost = used.get("cost_usd").and_then(Value::as_f64).unwrap_or_default();
    [count("turns"), count("calls"), count("input_tokens"), count("output_tokens"), cost]
}

fn cells(figures: &[f64; 5], look: Option<Look>) -> Vec<(String, Option<Look>)> {
    let [turns, calls, input, output, cost] = figures;
    let counts = [turns, calls, input, output].map(|count| (format!("{count:.0}"), look));
    counts.into_iter().chain([(format!("{cost:.4}"), look)]).collect()
}

/// `buildscale auth status`.
pub(crate) async fn auth(args: AuthArgs, out: &mut Output) -> Result<(), Failure> {
    let AuthCommand::Status = args.command;
    let client = Client::new(&args.connection)?;
    let workspaces = client.list(&["workspaces"], "workspaces", &[], MOST).await?;
    let mut roles = Vec::new();
    for workspace in &workspaces {
        let id = text(workspace, "workspace_id");
        // A hub for one person may have no members.
        let me = match client.get(&["workspaces", id, "members", "me"], &[]).await {
            Ok(me) => me,
            Err(failure) if failure.exit() == Exit::NotFound => Value::Null,
            Err(failure) => return Err(failure),
        };
        roles.push(json!({ "workspace_id": id, "name": text(workspace, "name"), "me": me }));
    }
    let has_token = args.connection.token.as_deref().is_some_and(|token| !token.trim().is_empty());
    if out.is_json() {
        return out.json(&json!({ "url": args.connection.url, "token": has_token, "workspaces": roles }));
    }
    let with = if has_token { "takes your token" } else { "wants no token" };
    out.line(format_args!("{} {with}", one_line(&args.connection.url, 200)))?;
    let mut table = Table::new(&["workspace", "role", "user", "may"]);
    for role in &roles {
        let me = role.get("me").unwrap_or(&Value::Null);
        let may: Vec<&str> = list(me, "may").iter().filter_map(Value::as_str).collect();
        table.row(vec![
            (one_line(text(role, "name"), 40), Some(Look::Bold)),
            (text(me, "role").to_owned(), None),
            (text(me, "user_id").to_owned(), None),
            (may.join(", "), None),
        ]);
    }
    table.print(out)
}
