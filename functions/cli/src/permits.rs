//! `buildscale permit` and `rules`: the requests for permission of all chats, and the rules that people have granted.

use crate::{
    args::{IdPrefix, PermitArgs, RulesArgs},
    client::{Body, Client},
    failure::CliError,
    locate,
    output::{Look, Output, one_line},
    table::{Table, when},
    tasks::call,
    value::{list, text},
    workspace_client::WorkspaceClient,
};
use domain::PermissionId;
use reqwest::Method;
use serde_json::{Value, json};

/// The most requests that are listed.
const MOST: usize = 2_000;

/// Answers a request, or lists those that wait.
pub(crate) async fn permit(args: PermitArgs, out: &mut Output) -> Result<(), CliError> {
    let door = WorkspaceClient::open(Client::new(&args.connection)?, args.workspace.as_deref()).await?;
    let (Some(permission), Some(answer)) = (args.permission, args.answer) else {
        return list_open(&door, out).await;
    };
    let permission = whole_id(&door, &permission).await?;
    let mut decision = match answer.as_str() {
        "yes" | "y" => json!({ "outcome": "approved" }),
        "no" | "n" => json!({ "outcome": "declined" }),
        option => json!({ "optionId": option }),
    };
    if let Some(scope) = &args.scope {
        decision["scope"] = json!(scope);
    }
    let told = door.post(&format!("/v1/permissions/{permission}"), &decision).await?;
    if out.is_json() { out.json(&told) } else { out.notice(text(&told, "outcome")) }
}

/// The whole id of a permission. One that is written out may have been decided: the hub tells.
async fn whole_id(door: &WorkspaceClient, given: &IdPrefix) -> Result<String, CliError> {
    if let Ok(permission) = given.as_str().parse::<PermissionId>() {
        return Ok(permission.to_string());
    }
    let asked: Vec<Value> = open(door).await?.into_iter().map(|(_, asked)| asked).collect();
    locate::beginning(&asked, "permission_id", given.as_str(), "open permission", "permit")
}

/// The requests for permission that are open, each behind the entry that it is from.
async fn open(door: &WorkspaceClient) -> Result<Vec<(Value, Value)>, CliError> {
    let path = ["workspaces", door.workspace.as_str(), "waiting"];
    let waiting = door.client.list(&path, "waiting", &[], MOST).await?;
    let of_entry = |entry: &Value| {
        let asked = list(entry, "waiting_for").iter().filter(|one| text(one, "event") == "permission_required");
        let entry = entry.clone();
        asked.map(move |one| (entry.clone(), one.get("data").unwrap_or(one).clone())).collect::<Vec<_>>()
    };
    Ok(waiting.iter().flat_map(of_entry).collect())
}

async fn list_open(door: &WorkspaceClient, out: &mut Output) -> Result<(), CliError> {
    let open = open(door).await?;
    if out.is_json() {
        let told = |(from, data): &(Value, Value)| {
            let mut told = json!({ "request": data });
            for name in ["chat_id", "task_id", "above", "node", "title"] {
                if let Some(value) = from.get(name) {
                    told[name] = value.clone();
                }
            }
            told
        };
        return out.json(&json!({ "permissions": open.iter().map(told).collect::<Vec<_>>() }));
    }
    let mut table = Table::with_whole_sentences(&["permission", "category", "expires", "from", "call"]);
    for (from, data) in &open {
        table.row(vec![
            (text(data, "permission_id").to_owned(), None),
            (text(data, "category").to_owned(), Some(Look::Ask)),
            (when(text(data, "expires_at"), out), None),
            (one_line(text(from, "title"), 40), Some(Look::Dim)),
            (call(text(data, "tool"), data.get("args").unwrap_or(&Value::Null)), Some(Look::Bold)),
        ]);
    }
    table.print(out)?;
    if open.is_empty() {
        out.notice("nothing waits for a permission")?;
    }
    Ok(())
}

/// Lists the rules of a chat, or of all chats of a workspace, or revokes them.
pub(crate) async fn rules(args: RulesArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let (workspace, chat) = match &args.chat {
        Some(chat) => locate::chat(&client, args.workspace.as_deref(), chat).await?,
        None => (locate::workspace(&client, args.workspace.as_deref()).await?, String::new()),
    };
    let path = match chat.as_str() {
        "" => vec!["workspaces", workspace.as_str(), "permissions"],
        chat => vec!["workspaces", workspace.as_str(), "chats", chat, "permissions"],
    };
    if args.revoke {
        if chat.is_empty() && args.rule.is_none() {
            return Err(CliError::Usage("name the rule by --rule, or the chat whose rules are revoked".into()));
        }
        let told = match &args.rule {
            Some(rule) => client.remove(&path, &[("rule_id", rule.as_str())]).await?,
            None => client.change(Method::DELETE, &path, Body::None, None).await?,
        };
        // A chat takes its rules back when no turn of it runs.
        let counts = |one: &Value| args.rule.as_deref().is_none_or(|rule| text(one, "rule_id") == rule);
        let is_revoked =
            |granted: Option<&Value>| !granted.is_some_and(|granted| list(granted, "permissions").iter().any(counts));
        let is_done = client.becomes(&path, is_revoked).await?;
        let words = match is_done {
            true => "calls are asked about again",
            false => "it is accepted: calls are asked about again once the turn that runs has ended",
        };
        return if out.is_json() { out.json(&told) } else { out.notice(words) };
    }
    let granted = client.get(&path, &[]).await?;
    if out.is_json() {
        return out.json(&granted);
    }
    let rules = list(&granted, "permissions");
    for rule in rules {
        let id = text(rule, "rule_id");
        out.line(format_args!("{}  {}", one_line(id, 40), one_line(text(rule, "words"), 400)))?;
    }
    if rules.is_empty() { out.notice("no call is always allowed or denied there") } else { Ok(()) }
}
