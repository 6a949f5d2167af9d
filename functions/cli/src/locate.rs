//! From what people type to what the API wants: workspaces by name, chats without their workspace, files by path.

use crate::{
    args::TaskRef,
    client::Client,
    failure::{Exit, Failure},
    value::text,
};
use domain::{ChatId, TaskId, WorkspaceId};
use serde_json::{Value, json};

/// More workspaces than anybody looks through by name.
const MOST: usize = 10_000;

/// The workspace named `wanted`, or with this id; the first one when nothing is wanted.
pub(crate) async fn workspace(client: &Client, wanted: Option<&str>) -> Result<String, Failure> {
    find(client, wanted).await?.ok_or_else(|| {
        Failure::NotFound("there is no workspace yet; make one with: buildscale workspaces create NAME".into())
    })
}

/// The same, but when there is none at all one named `default` is made.
pub(crate) async fn workspace_or_new(client: &Client, wanted: Option<&str>) -> Result<String, Failure> {
    if let Some(found) = find(client, wanted).await? {
        return Ok(found);
    }
    let made = client.post(&["workspaces"], &json!({ "name": "default" })).await?;
    Ok(text(&made, "workspace_id").to_owned())
}

async fn find(client: &Client, wanted: Option<&str>) -> Result<Option<String>, Failure> {
    let id = |workspace: &Value| text(workspace, "workspace_id").to_owned();
    let Some(wanted) = wanted else {
        return Ok(client.list(&["workspaces"], "workspaces", &[], 1).await?.first().map(id));
    };
    if wanted.parse::<WorkspaceId>().is_ok() {
        return Ok(Some(wanted.to_owned()));
    }
    let all = client.list(&["workspaces"], "workspaces", &[], MOST).await?;
    let named: Vec<_> = all.iter().filter(|workspace| text(workspace, "name") == wanted).collect();
    match named.as_slice() {
        [one] => Ok(Some(id(one))),
        [] => Err(Failure::NotFound(format!(
            "there is no workspace {wanted:?}; `buildscale workspaces` lists them, `buildscale workspaces create` makes one"
        ))),
        many => Err(Failure::Usage(format!("{} workspaces are named {wanted:?}: give its id", many.len()))),
    }
}

/// The workspace that a chat is in: the one that is wanted, else whichever has it.
pub(crate) async fn workspace_of(client: &Client, wanted: Option<&str>, chat: ChatId) -> Result<String, Failure> {
    holding(client, wanted, "chats", &chat.to_string(), &[("limit", "1")]).await
}

/// The workspace that a task is in, the one that is wanted or else whichever has it; and the task's whole id.
pub(crate) async fn task(client: &Client, wanted: Option<&str>, given: &TaskRef) -> Result<(String, String), Failure> {
    /// More than that need not be told of.
    const SHOWN: usize = 5;
    if let Ok(task) = given.as_str().parse::<TaskId>() {
        let task = task.to_string();
        return Ok((holding(client, wanted, "tasks", &task, &[]).await?, task));
    }
    let workspaces = match wanted {
        Some(_) => vec![workspace(client, wanted).await?],
        None => {
            let all = client.list(&["workspaces"], "workspaces", &[], MOST).await?;
            all.iter().map(|workspace| text(workspace, "workspace_id").to_owned()).collect()
        }
    };
    let mut found: Vec<(String, String)> = Vec::new();
    for workspace in workspaces {
        let tasks =
            client.list(&["workspaces", &workspace, "tasks"], "tasks", &[("id", given.as_str())], SHOWN).await?;
        found.extend(tasks.iter().map(|task| (workspace.clone(), text(task, "task_id").to_owned())));
    }
    match found.as_slice() {
        [_] => Ok(found.swap_remove(0)),
        [] => {
            Err(Failure::NotFound(format!("there is no task {}…; `buildscale task list` lists them", given.as_str())))
        }
        several => {
            let ids: Vec<&str> = several.iter().take(SHOWN).map(|(_, id)| id.as_str()).collect();
            Err(Failure::Usage(format!("several tasks begin with {}: {}", given.as_str(), ids.join(", "))))
        }
    }
}

async fn holding(
    client: &Client,
    wanted: Option<&str>,
    kind: &str,
    id: &str,
    query: &[(&str, &str)],
) -> Result<String, Failure> {
    if wanted.is_some() {
        return workspace(client, wanted).await;
    }
    for candidate in client.list(&["workspaces"], "workspaces", &[], MOST).await? {
        let workspace = text(&candidate, "workspace_id");
        match client.get(&["workspaces", workspace, kind, id], query).await {
            Ok(_) => return Ok(workspace.to_owned()),
            Err(failure) if failure.exit() == Exit::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    let (one, list) = if kind == "chats" { ("chat", "chats") } else { ("task", "task list") };
    Err(Failure::NotFound(format!("there is no {one} {id}; `buildscale {list}` lists them")))
}

/// What is at `path` in a workspace.
pub(crate) async fn file(client: &Client, workspace: &str, path: &str) -> Result<Value, Failure> {
    client.get(&["workspaces", workspace, "files", "by-path"], &[("path", &absolute(path))]).await
}

/// Paths in a workspace begin at its root, whether the slash was typed or not.
pub(crate) fn absolute(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}
