//! The small commands: chats, workspaces, stop, models.

use crate::{
    args::{ChatsArgs, ChatsCommand, StopArgs, WorkspacesArgs, WorkspacesCommand},
    client::{Body, Client},
    failure::CliError,
    input::Lines,
    locate,
    output::{Look, Output, one_line},
    table::{Table, when},
    value::{list, text},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;

/// More workspaces than anybody lists.
const MOST: usize = 10_000;

/// Lists chats, the last active first; or runs a command on one.
pub(crate) async fn chats(client: &Client, args: ChatsArgs, out: &mut Output) -> Result<(), CliError> {
    let (limit, more) = match args.command {
        Some(ChatsCommand::Rm { chat }) => {
            let (workspace, chat) = locate::chat(client, args.workspace.as_deref(), &chat).await?;
            let path = ["workspaces", &workspace, "chats", &chat];
            let gone = client.change(Method::DELETE, &path, Body::None, None).await?;
            return if out.is_json() { out.json(&gone) } else { out.line("removed") };
        }
        Some(ChatsCommand::Export { chat, output }) => {
            let (workspace, chat) = locate::chat(client, args.workspace.as_deref(), &chat).await?;
            return export(client, &workspace, &chat, output.as_deref(), out).await;
        }
        Some(ChatsCommand::List { limit, labels }) => (limit.unwrap_or(args.limit), labels),
        None => (args.limit, Vec::new()),
    };
    let workspace = locate::workspace(client, args.workspace.as_deref()).await?;
    let path = ["workspaces", &workspace, "chats"];
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let labels = args.labels.into_iter().chain(more);
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    let query: Vec<(&str, &str)> = labels.iter().map(|label| ("label", label.as_str())).collect();
    let (chats, has_more) = client.first(&path, "chats", &query, most).await?;
    if out.is_json() {
        return out.json(&json!({ "chats": chats }));
    }
    let mut table = Table::new(&["id", "status", "active", "title"]);
    for chat in &chats {
        let status = text(chat, "status").to_owned();
        let look = match status.as_str() {
            "idle" => Look::Dim,
            "suspended" | "paused" => Look::Ask,
            _ => Look::Good,
        };
        table.row(vec![
            (text(chat, "chat_id").to_owned(), None),
            (status, Some(look)),
            (when(text(chat, "active_at"), out), None),
            (one_line(text(chat, "title"), 60), None),
        ]);
    }
    table.print(out)?;
    if chats.is_empty() && !query.is_empty() {
        out.notice("no chats with these labels")?;
    } else if chats.is_empty() {
        out.notice("no chats yet; begin one with: buildscale chat")?;
    } else if has_more {
        out.notice("there are more; --limit shows them")?;
    }
    Ok(())
}

/// Writes a chat: its transcript, or for programs the chat with all its messages.
async fn export(
    client: &Client,
    workspace: &str,
    chat: &str,
    to: Option<&Path>,
    out: &mut Output,
) -> Result<(), CliError> {
    let at = ["workspaces", workspace, "chats", chat];
    let mut view = client.get(&at, &[("limit", "1")]).await?;
    let content = if out.is_json() {
        view["messages"] = client.list(&at, "messages", &[], usize::MAX).await?.into();
        view.to_string().into_bytes()
    } else {
        client.bytes(&["workspaces", workspace, "files", text(&view, "file_id"), "content"], &[]).await?
    };
    match to {
        None => out.bytes(&content),
        Some(path) => {
            let failed = |source| CliError::Local { path: path.display().to_string(), source };
            std::fs::write(path, &content).map_err(failed)?;
            out.notice(format_args!("wrote {}", path.display()))
        }
    }
}

/// Lists workspaces; makes, renames or removes one.
pub(crate) async fn workspaces(client: &Client, args: WorkspacesArgs, out: &mut Output) -> Result<(), CliError> {
    match args.command {
        None | Some(WorkspacesCommand::List) => {}
        Some(WorkspacesCommand::Create { name }) => {
            if out.is_json() {
                return out.json(&client.post(&["workspaces"], &json!({ "name": name })).await?);
            }
            let others = client.list(&["workspaces"], "workspaces", &[], MOST).await?;
            let made = client.post(&["workspaces"], &json!({ "name": name })).await?;
            out.line(text(&made, "workspace_id"))?;
            return locate::tell_namesakes(&others, &name, "workspace", out);
        }
        Some(WorkspacesCommand::Rename { workspace, name }) => {
            let id = locate::workspace(client, Some(&workspace)).await?;
            let body = Body::Json(json!({ "name": name }));
            if out.is_json() {
                return out.json(&client.change(Method::PATCH, &["workspaces", &id], body, None).await?);
            }
            let mut others = client.list(&["workspaces"], "workspaces", &[], MOST).await?;
            others.retain(|other| text(other, "workspace_id") != id);
            client.change(Method::PATCH, &["workspaces", &id], body, None).await?;
            out.line("renamed")?;
            return locate::tell_namesakes(&others, &name, "workspace", out);
        }
        Some(WorkspacesCommand::Rm { workspace, yes }) => {
            let id = locate::workspace(client, Some(&workspace)).await?;
            if !yes {
                // An id, or the beginning of one, tells nobody which workspace that is.
                let found = client.get(&["workspaces", &id], &[]).await?;
                let name = one_line(text(&found, "name"), 60);
                out.prompt(format_args!("Remove {name:?} ({id}) with all its files and versions, for good? (y/N) "))?;
                let answer = Lines::default().next().await.unwrap_or_default();
                if !matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
                    return Err(CliError::Usage("nothing was removed; --yes does not ask".into()));
                }
            }
            let gone = client.change(Method::DELETE, &["workspaces", &id], Body::None, None).await?;
            return if out.is_json() { out.json(&gone) } else { out.line("removed") };
        }
    }
    let workspaces = client.list(&["workspaces"], "workspaces", &[], MOST).await?;
    if out.is_json() {
        return out.json(&json!({ "workspaces": workspaces }));
    }
    let mut table = Table::new(&["id", "made", "name"]);
    for workspace in &workspaces {
        table.row(vec![
            (text(workspace, "workspace_id").to_owned(), None),
            (when(text(workspace, "created_at"), out), None),
            (one_line(text(workspace, "name"), 60), Some(Look::Bold)),
        ]);
    }
    table.print(out)?;
    if workspaces.is_empty() {
        out.notice("no workspaces yet; make one with: buildscale workspaces create NAME")?;
    }
    Ok(())
}

/// Stops the running turn of a chat.
pub(crate) async fn stop(client: &Client, args: StopArgs, out: &mut Output) -> Result<(), CliError> {
    let (workspace, chat) = locate::chat(client, args.workspace.as_deref(), &args.chat).await?;
    let path = ["workspaces", &workspace, "chats", &chat];
    let was_idle = text(&client.get(&path, &[("limit", "1")]).await?, "status") == "idle";
    let answer = client.post(&[&path[..], &["stop"]].concat(), &json!({})).await?;
    match (out.is_json(), was_idle) {
        (true, _) => out.json(&answer),
        (false, true) => out.line("nothing is running"),
        (false, false) => out.line("told to stop"),
    }
}

/// Models and whether they can be used.
pub(crate) async fn models(client: &Client, out: &mut Output) -> Result<(), CliError> {
    let answer = client.get(&["models"], &[]).await?;
    if out.is_json() {
        return out.json(&answer);
    }
    let mut table = Table::with_whole_sentences(&["model", "status", "note"]);
    for model in list(&answer, "models") {
        let flag = |key| model.get(key).and_then(Value::as_bool).unwrap_or_default();
        let (mut status, look) = availability(flag("available"));
        if flag("default") {
            status.push_str(", default");
        }
        let note = one_line(text(model, "note"), 400);
        table.row(vec![(one_line(text(model, "id"), 200), None), (status, Some(look)), (note, Some(Look::Dim))]);
    }
    table.print(out)?;
    match answer.get("note").and_then(Value::as_str) {
        Some(note) => out.notice(note),
        None => Ok(()),
    }
}

/// Coding agents, whether they can be started, and the folders that they may work in.
pub(crate) async fn agents(client: &Client, out: &mut Output) -> Result<(), CliError> {
    let answer = client.get(&["agents"], &[]).await?;
    if out.is_json() {
        return out.json(&answer);
    }
    let mut table = Table::with_whole_sentences(&["id", "name", "status", "note"]);
    for agent in list(&answer, "agents") {
        let (status, look) = availability(agent.get("available").and_then(Value::as_bool).unwrap_or_default());
        let (why, install) = (text(agent, "reason"), text(agent, "install"));
        let note = if install.is_empty() { why.to_owned() } else { format!("{why}: {install}") };
        let (id, name) = (one_line(text(agent, "id"), 200), one_line(text(agent, "name"), 200));
        let note = one_line(&note, 400);
        table.row(vec![(id, None), (name, None), (status, Some(look)), (note, Some(Look::Dim))]);
    }
    table.print(out)?;
    let roots: Vec<&str> = list(&answer, "allowed_roots").iter().filter_map(Value::as_str).collect();
    match roots.is_empty() {
        true => out.notice("no folder is allowed: name some in [hub] allowed_roots"),
        false => out.notice(format_args!("coding agents may work in {}", roots.join(", "))),
    }
}

fn availability(is_available: bool) -> (String, Look) {
    match is_available {
        true => ("available".to_owned(), Look::Good),
        false => ("unavailable".to_owned(), Look::Dim),
    }
}
