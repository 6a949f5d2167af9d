//! The small commands: chats, workspaces, stop, models.

use crate::{
    args::{ChatsArgs, StopArgs, WorkspacesArgs, WorkspacesCommand},
    client::Client,
    failure::Failure,
    locate,
    output::{Look, Output, one_line},
    value::{list, text},
};
use serde_json::{Value, json};

/// More workspaces than anybody lists.
const MOST: usize = 10_000;

/// Chats, the last active first.
pub(crate) async fn chats(client: &Client, args: ChatsArgs, out: &mut Output) -> Result<(), Failure> {
    let workspace = locate::workspace(client, args.workspace.as_deref()).await?;
    let path = ["workspaces", &workspace, "chats"];
    let chats = client.list(&path, "chats", &[], usize::try_from(args.limit).unwrap_or(usize::MAX)).await?;
    if out.is_json() {
        return out.json(&json!({ "chats": chats }));
    }
    for chat in &chats {
        let style = out.style();
        let status = format!("{:9}", text(chat, "status"));
        let status = if status.trim_end() == "idle" { style.paint(Look::Dim, status) } else { status };
        let title = one_line(text(chat, "title"), 60);
        out.line(format_args!("{}  {status}  {}  {title}", text(chat, "chat_id"), moment(text(chat, "active_at"))))?;
    }
    if chats.is_empty() {
        out.notice("no chats yet; begin one with: buildscale chat")?;
    }
    Ok(())
}

/// Lists workspaces, or makes one.
pub(crate) async fn workspaces(client: &Client, args: WorkspacesArgs, out: &mut Output) -> Result<(), Failure> {
    if let Some(WorkspacesCommand::Create { name }) = args.command {
        let made = client.post(&["workspaces"], &json!({ "name": name })).await?;
        return if out.is_json() { out.json(&made) } else { out.line(text(&made, "workspace_id")) };
    }
    let workspaces = client.list(&["workspaces"], "workspaces", &[], MOST).await?;
    if out.is_json() {
        return out.json(&json!({ "workspaces": workspaces }));
    }
    for workspace in &workspaces {
        let (id, made) = (text(workspace, "workspace_id"), moment(text(workspace, "created_at")));
        out.line(format_args!("{id}  {made}  {}", one_line(text(workspace, "name"), 60)))?;
    }
    if workspaces.is_empty() {
        out.notice("no workspaces yet; make one with: buildscale workspaces create NAME")?;
    }
    Ok(())
}

/// Stops the running turn of a chat.
pub(crate) async fn stop(client: &Client, args: StopArgs, out: &mut Output) -> Result<(), Failure> {
    let workspace = locate::workspace_of(client, args.workspace.as_deref(), args.chat).await?;
    let chat = args.chat.to_string();
    let answer = client.post(&["workspaces", &workspace, "chats", &chat, "stop"], &json!({})).await?;
    if out.is_json() { out.json(&answer) } else { out.line("stopped") }
}

/// Models and whether they can be used.
pub(crate) async fn models(client: &Client, out: &mut Output) -> Result<(), Failure> {
    let answer = client.get(&["models"], &[]).await?;
    if out.is_json() {
        return out.json(&answer);
    }
    for model in list(&answer, "models") {
        let flag = |key| model.get(key).and_then(Value::as_bool).unwrap_or_default();
        let style = out.style();
        let mark = if flag("default") { "*" } else { " " };
        let state = if flag("available") {
            style.paint(Look::Good, "available  ")
        } else {
            style.paint(Look::Dim, "unavailable")
        };
        let note = style.paint(Look::Dim, one_line(text(model, "note"), 100));
        out.line(format_args!("{mark} {:40} {state}  {note}", one_line(text(model, "id"), 40)).to_string().trim_end())?;
    }
    match answer.get("note").and_then(Value::as_str) {
        Some(note) => out.notice(note),
        None => Ok(()),
    }
}

/// A time to the second: `2025-11-05 09:12:44Z`.
pub(crate) fn moment(time: &str) -> String {
    match (time.get(..10), time.get(11..19)) {
        (Some(day), Some(second)) if time.is_ascii() => format!("{day} {second}Z"),
        _ => one_line(time, 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(moment("2025-11-05T09:12:44.123Z"), "2025-11-05 09:12:44Z");
        assert_eq!(moment(""), "");
        assert_eq!(moment("ääääääääääääääääääääääääää"), "äääääääääääääääääääääää…");
    }
}
