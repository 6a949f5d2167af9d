//! From what people type to what the API wants: workspaces by name, chats without their workspace, files by path.

use crate::cli::{
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

/// The workspace that a task is in: the one that is wanted, else whichever has it.
pub(crate) async fn workspace_of_task(client: &Client, wanted: Option<&str>, task: TaskId) -> Result<String, Failure> {
    holding(client, wanted, "tasks", &task.to_string(), &[]).await
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
