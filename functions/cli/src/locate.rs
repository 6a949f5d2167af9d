//! From the names that people type to the ids of the API: workspaces by name, chats without their workspace, files by path.

use crate::{
    args::Reference,
    client::Client,
    failure::{CliError, Exit},
    output::{Output, one_line},
    value::text,
};
use domain::{ChatId, TaskId, WorkspaceId};
use serde_json::{Value, json};

/// More workspaces than anybody looks through by name.
const MOST: usize = 10_000;

/// A whole page, in which the oldest workspace comes first. The server itself looks through as many where a request names none.
const WORKSPACES: usize = 200;

/// The workspace named `wanted`, or with this id; the oldest one when nothing is wanted.
pub(crate) async fn workspace(client: &Client, wanted: Option<&str>) -> Result<String, CliError> {
    find(client, wanted).await?.ok_or_else(|| {
        CliError::NotFound("there is no workspace yet; make one with: buildscale workspaces create NAME".into())
    })
}

/// The same for commands that begin something: when there is none at all one named `default` is made.
pub(crate) async fn workspace_or_new(client: &Client, wanted: Option<&str>) -> Result<String, CliError> {
    if let Some(found) = find(client, wanted).await? {
        return Ok(found);
    }
    let made = client.post(&["workspaces"], &json!({ "name": "default" })).await?;
    Ok(text(&made, "workspace_id").to_owned())
}

async fn find(client: &Client, wanted: Option<&str>) -> Result<Option<String>, CliError> {
    let id = |workspace: &Value| text(workspace, "workspace_id").to_owned();
    let Some(wanted) = wanted else {
        return Ok(client.list(&["workspaces"], "workspaces", &[], WORKSPACES).await?.first().map(id));
    };
    if wanted.parse::<WorkspaceId>().is_ok() {
        return Ok(Some(wanted.to_owned()));
    }
    let all = client.list(&["workspaces"], "workspaces", &[], MOST).await?;
    let mut named: Vec<_> = all.iter().filter(|workspace| text(workspace, "name") == wanted).collect();
    // A table on a narrow terminal cuts ids, and says so.
    let begin = wanted.trim_end_matches('…');
    if named.is_empty() && begin.len() >= 4 {
        named = all.iter().filter(|workspace| text(workspace, "workspace_id").starts_with(begin)).collect();
    }
    match named.as_slice() {
        [one] => Ok(Some(id(one))),
        [] => {
            let names: Vec<&str> = all.iter().map(|workspace| text(workspace, "name")).collect();
            let hint = match similar::get_close_matches(wanted, &names, 1, 0.6).first() {
                Some(near) => format!("did you mean {near:?}?"),
                None => "`buildscale workspaces` lists them, `buildscale workspaces create` makes one".to_owned(),
            };
            Err(CliError::NotFound(format!("there is no workspace {wanted:?}; {hint}")))
        }
        many => Err(ambiguous("workspace", wanted, many.iter().map(|one| id(one)))),
    }
}

/// More than that need not be told of.
const SHOWN: usize = 5;
/// The most chats of a workspace that are looked through for the beginning of an id.
const CHATS: usize = 10_000;

/// The workspace that a chat is in, the one that is wanted or else whichever has it; and the chat's whole id.
pub(crate) async fn chat(
    client: &Client,
    wanted: Option<&str>,
    given: &Reference,
) -> Result<(String, String), CliError> {
    if let Ok(chat) = given.as_str().parse::<ChatId>() {
        let chat = chat.to_string();
        return Ok((holding(client, wanted, "chats", &chat, &[("limit", "1")]).await?, chat));
    }
    let mut found = Vec::new();
    for workspace in candidates(client, wanted).await? {
        let most = if given.is_last() { 1 } else { CHATS };
        let chats = client.list(&["workspaces", &workspace, "chats"], "chats", &[], most).await?;
        found.extend(chats.iter().map(|chat| Located::of(chat, &workspace, "chat_id", "active_at")));
    }
    one(found, given, "chat", "chats")
}

/// The workspace that a task is in, the one that is wanted or else whichever has it; and the task's whole id.
pub(crate) async fn task(
    client: &Client,
    wanted: Option<&str>,
    given: &Reference,
) -> Result<(String, String), CliError> {
    if let Ok(task) = given.as_str().parse::<TaskId>() {
        let task = task.to_string();
        return Ok((holding(client, wanted, "tasks", &task, &[]).await?, task));
    }
    let mut found = Vec::new();
    for workspace in candidates(client, wanted).await? {
        let at = ["workspaces", &workspace, "tasks"];
        let tasks = match given.is_last() {
            true => client.list(&at, "tasks", &[], 1).await?,
            false => client.list(&at, "tasks", &[("id", given.as_str())], SHOWN).await?,
        };
        found.extend(tasks.iter().map(|task| Located::of(task, &workspace, "task_id", "created_at")));
    }
    one(found, given, "task", "task list")
}

/// A chat or a task that may be meant.
struct Located {
    workspace: String,
    id: String,
    /// The time of its last activity, as a text whose order is that of times.
    at: String,
}

impl Located {
    fn of(item: &Value, workspace: &str, id: &str, at: &str) -> Self {
        Self { workspace: workspace.to_owned(), id: text(item, id).to_owned(), at: text(item, at).to_owned() }
    }
}

fn one(found: Vec<Located>, given: &Reference, kind: &str, list: &str) -> Result<(String, String), CliError> {
    if given.is_last() {
        let last = found.into_iter().max_by(|a, b| a.at.cmp(&b.at)).map(|last| (last.workspace, last.id));
        return last.ok_or_else(|| CliError::NotFound(format!("there is no {kind} yet")));
    }
    one_beginning(found, given.as_str(), kind, list)
}

fn one_beginning(mut found: Vec<Located>, begin: &str, kind: &str, list: &str) -> Result<(String, String), CliError> {
    found.retain(|one| one.id.starts_with(begin));
    match found.as_slice() {
        [one] => Ok((one.workspace.clone(), one.id.clone())),
        [] => Err(CliError::NotFound(format!("there is no {kind} {begin}…; `buildscale {list}` lists them"))),
        several => {
            let ids: Vec<&str> = several.iter().take(SHOWN).map(|one| one.id.as_str()).collect();
            Err(CliError::Usage(format!("the ids of several {kind}s begin with {begin}: {}", ids.join(", "))))
        }
    }
}

/// The one of these items whose id begins so.
pub(crate) fn beginning(items: &[Value], key: &str, begin: &str, kind: &str, list: &str) -> Result<String, CliError> {
    let of = |item: &Value| Located { workspace: String::new(), id: text(item, key).to_owned(), at: String::new() };
    one_beginning(items.iter().map(of).collect(), begin, kind, list).map(|(_, id)| id)
}

/// The one of these items that has this name, else the one whose id begins so. A name is no key of the hub: where several have it, each is told
/// with its id and what `about` says of it.
pub(crate) fn named(
    items: Vec<Value>,
    wanted: &str,
    key: &str,
    kind: &str,
    list: &str,
    about: impl Fn(&Value) -> String,
) -> Result<Value, CliError> {
    let begin = wanted.trim_end_matches('…');
    let begins = |one: &Value| begin.len() >= 4 && text(one, key).starts_with(begin);
    let (mut found, others): (Vec<Value>, Vec<Value>) = items.into_iter().partition(|one| text(one, "name") == wanted);
    if found.is_empty() {
        found = others.into_iter().filter(begins).collect();
    }
    if found.len() > 1 {
        let ids = found.iter().map(|one| format!("{} ({})", text(one, key), one_line(&about(one), 60)));
        return Err(ambiguous(kind, wanted, ids));
    }
    found.pop().ok_or_else(|| {
        CliError::NotFound(format!("there is no {kind} {wanted:?}; `buildscale {list}` lists those of the workspace"))
    })
}

/// Tells that others had the name before, so that commands need the id from now on.
pub(crate) fn tell_namesakes(others: &[Value], name: &str, kind: &str, out: &mut Output) -> Result<(), CliError> {
    let has_namesake = others.iter().any(|one| text(one, "name") == name);
    if out.is_json() || !has_namesake {
        return Ok(());
    }
    out.notice(format_args!("another {kind} has the name {name:?}: commands need the id from now on"))
}

/// The refusal of a name that several have, with the ids that can be given instead.
fn ambiguous(kind: &str, wanted: &str, ids: impl ExactSizeIterator<Item = String>) -> CliError {
    let count = ids.len();
    let more = if count > SHOWN { ", …" } else { "" };
    let ids = ids.take(SHOWN).collect::<Vec<_>>().join(", ");
    CliError::Usage(format!("{count} {kind}s are named {wanted:?}, or begin so: give the id, one of {ids}{more}"))
}

/// The workspaces in which something may be.
async fn candidates(client: &Client, wanted: Option<&str>) -> Result<Vec<String>, CliError> {
    if wanted.is_some() {
        return Ok(vec![workspace(client, wanted).await?]);
    }
    let all = client.list(&["workspaces"], "workspaces", &[], MOST).await?;
    Ok(all.iter().map(|workspace| text(workspace, "workspace_id").to_owned()).collect())
}

async fn holding(
    client: &Client,
    wanted: Option<&str>,
    kind: &str,
    id: &str,
    query: &[(&str, &str)],
) -> Result<String, CliError> {
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
    Err(CliError::NotFound(format!("there is no {one} {id}; `buildscale {list}` lists them")))
}

/// The file or folder at `path` in a workspace.
pub(crate) async fn file(client: &Client, workspace: &str, path: &str) -> Result<Value, CliError> {
    client.get(&["workspaces", workspace, "files", "by-path"], &[("path", &absolute(path))]).await
}

/// Paths in a workspace begin at its root, whether the slash was typed or not.
pub(crate) fn absolute(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_before_the_beginning_of_an_id_and_two_of_one_name_are_told_apart() {
        let all = || {
            let one = |id: &str, name: &str, url: &str| json!({ "webhook_id": id, "name": name, "url": url });
            vec![one("0195aa", "0195", "a"), one("0195bb", "Team", "b"), one("0196cc", "Team", "c")]
        };
        let find = |wanted: &str| {
            let found = named(all(), wanted, "webhook_id", "webhook", "webhooks", |one| text(one, "url").to_owned());
            found.map(|one| text(&one, "url").to_owned()).map_err(|failure| (failure.exit(), failure.to_string()))
        };
        assert_eq!(find("0195"), Ok("a".to_owned()), "it is a name, and the beginning of two ids");
        assert_eq!(find("0196…"), Ok("c".to_owned()));
        let Err((exit, why)) = find("Team") else { panic!("one of two is chosen") };
        assert!(why.contains("2 webhooks are named \"Team\"") && why.contains("0195bb (b), 0196cc (c)"), "{why}");
        assert_eq!((exit, find("0197").map_err(|(exit, _)| exit)), (Exit::Usage, Err(Exit::NotFound)));
    }
}
