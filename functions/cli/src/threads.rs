//! `buildscale threads` and `turn`: conversations with agents in folders of the hub's machine, over its door `/v1`.

use crate::{
    args::{Reference, ThreadsArgs, ThreadsCommand, TurnArgs},
    client::Client,
    failure::{CliError, Exit},
    locate,
    output::{Look, Output, clean, one_line},
    table::{Table, when},
    value::{list, text},
    workspace_client::{WorkspaceClient, with_query},
};
use domain::ChatId;
use protocols::{IncomingFile, hub};
use reqwest::Method;
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::Path};

/// The most threads that are looked through for the beginning of an id.
const MOST: usize = 10_000;
/// How many threads a page of them has, which is the most that the hub gives.
const PAGE: &str = "200";

/// Runs one of the commands of `threads`.
pub(crate) async fn run(args: ThreadsArgs, out: &mut Output) -> Result<(), CliError> {
    let door = WorkspaceClient::open_or_new(Client::new(&args.connection)?, args.workspace.as_deref()).await?;
    match args.command.unwrap_or(ThreadsCommand::List { limit: 20 }) {
        ThreadsCommand::List { limit } => {
            let path = with_query("/v1/threads", &[("limit", &limit.to_string())]);
            show_all(&door.get(&path).await?, out)
        }
        ThreadsCommand::New { agent, cwd, title, mode, model, options } => {
            let cwd = cwd.map_or_else(std::env::current_dir, std::path::absolute)?;
            let overrides: BTreeMap<String, String> = options.into_iter().collect();
            let options = json!({ "mode": mode, "modelId": model, "configOverrides": overrides });
            let mut new = json!({ "agent": agent, "cwd": cwd, "agentOptions": options });
            if let Some(title) = title {
                new["title"] = json!(title);
            }
            let made = door.post("/v1/threads", &new).await?;
            if out.is_json() { out.json(&made) } else { out.line(text(&made, "threadId")) }
        }
        ThreadsCommand::Show { thread } => {
            let thread = whole_id(&door, &thread).await?;
            show(&door.get(&format!("/v1/threads/{thread}/history")).await?, out)
        }
        ThreadsCommand::Rm { thread } => {
            let thread = whole_id(&door, &thread).await?;
            let gone = door.ask(Method::DELETE, &format!("/v1/threads/{thread}"), None).await?;
            if out.is_json() { out.json(&gone) } else { out.notice("it is deleted") }
        }
    }
}

/// The whole id of a thread of the workspace.
async fn whole_id(door: &WorkspaceClient, given: &Reference) -> Result<String, CliError> {
    if let Ok(thread) = given.as_str().parse::<ChatId>() {
        return Ok(thread.to_string());
    }
    let (mut threads, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page_of = [("limit", PAGE), ("cursor", cursor.as_deref().unwrap_or_default())];
        let query = if cursor.is_some() { &page_of[..] } else { &page_of[..1] };
        let page = door.get(&with_query("/v1/threads", query)).await?;
        threads.extend(list(&page, "threads").iter().cloned());
        cursor = page["nextCursor"].as_str().map(ToOwned::to_owned);
        if cursor.is_none() || threads.len() >= MOST {
            break;
        }
    }
    if given.is_last() {
        // Times are texts whose order is that of times.
        let last = threads.iter().max_by(|a, b| text(a, "updatedAt").cmp(text(b, "updatedAt")));
        let nothing = || CliError::NotFound("there is no thread yet; make one with: buildscale threads new".into());
        return last.map(|last| text(last, "threadId").to_owned()).ok_or_else(nothing);
    }
    locate::beginning(&threads, "threadId", given.as_str(), "thread", "threads")
}

fn show_all(threads: &Value, out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(threads);
    }
    let mut table = Table::new(&["id", "agent", "active", "folder", "title"]);
    for thread in list(threads, "threads") {
        table.row(vec![
            (text(thread, "threadId").to_owned(), None),
            (text(thread, "agent").to_owned(), Some(Look::Bold)),
            (when(text(thread, "updatedAt"), out), None),
            (one_line(text(thread, "cwd"), 60), Some(Look::Dim)),
            (one_line(text(thread, "title"), 60), None),
        ]);
    }
    table.print(out)?;
    if list(threads, "threads").is_empty() {
        out.notice("no threads yet; make one with: buildscale threads new")?;
    } else if threads["nextCursor"].is_string() {
        out.notice(format_args!("there are more; --limit shows up to {PAGE}"))?;
    }
    Ok(())
}

fn show(history: &Value, out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(history);
    }
    for turn in list(history, "turns") {
        let head = format!("{} {}", text(turn, "turnId"), text(turn, "status"));
        out.line(out.style().paint(Look::Dim, head))?;
        out.line(out.style().paint(Look::Bold, one_line(text(turn, "requestText"), 400)))?;
        for line in text(turn, "responseText").lines().chain(Some(text(turn, "errorMessage"))) {
            out.line(one_line(line, 2_000))?;
        }
    }
    Ok(())
}

/// Begins a turn and prints its answer as it comes; or cancels one.
pub(crate) async fn turn(args: TurnArgs, out: &mut Output) -> Result<Exit, CliError> {
    let door = WorkspaceClient::open(Client::new(&args.connection)?, args.workspace.as_deref()).await?;
    if let Some(turn) = args.cancel {
        let told = door.post(&format!("/v1/turns/{turn}/cancel"), &json!({})).await?;
        if out.is_json() {
            out.json(&told)?
        } else {
            out.notice("it was told to stop")?
        }
        return Ok(Exit::Done);
    }
    let Some(given) = &args.thread else { return Err(CliError::Usage("name the thread".into())) };
    let thread = whole_id(&door, given).await?;
    let (path, input) = (format!("/v1/threads/{thread}/turns"), args.words.join(" "));
    let begun = match &args.attach[..] {
        [] => door.post(&path, &json!({ "input": input })).await?,
        files => {
            let files = files.iter().map(|file| brought(file)).collect::<Result<Vec<_>, _>>()?;
            door.post_form(&path, hub::form(&input, &files)).await?
        }
    };
    let turn = text(&begun, "turnId");
    if args.detach {
        if out.is_json() {
            out.json(&begun)?
        } else {
            out.line(turn)?
        }
        return Ok(Exit::Done);
    }
    follow(&door, turn, out).await
}

/// A file of this machine that a turn brings along.
fn brought(path: &Path) -> Result<IncomingFile, CliError> {
    let wrong = |source| CliError::Local { path: path.display().to_string(), source };
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(IncomingFile { name, content: std::fs::read(path).map_err(wrong)? })
}

async fn follow(door: &WorkspaceClient, turn: &str, out: &mut Output) -> Result<Exit, CliError> {
    let mut events = door.watch(&format!("/v1/turns/{turn}/events")).start();
    while let Some(event) = events.next_event().await? {
        if out.is_json() {
            out.json(&json!({ "id": event.id, "event": event.name, "data": event.data }))?;
        } else {
            tell(&event.name, &event.data, out)?;
        }
        out.flush()?;
        if event.name == "turn_completed" {
            return Ok(match (text(&event.data, "stopReason"), text(&event.data, "reason")) {
                ("cancelled", _) => Exit::Stopped,
                ("end_turn", "") => Exit::Done,
                _ => Exit::Cut,
            });
        }
    }
    Ok(Exit::Cut)
}

fn tell(event: &str, data: &Value, out: &mut Output) -> Result<(), CliError> {
    match event {
        "message_delta" => out.raw(&clean(text(data, "delta"))),
        "tool_call" => out.notice(format_args!("{}: {}", text(data, "kind"), one_line(text(data, "title"), 400))),
        "permission_required" => {
            let id = text(data, "permissionId");
            out.notice(format_args!("it asks for permission: {}", one_line(text(data, "command"), 400)))?;
            out.notice(format_args!("answer with: buildscale permit {id} yes, or no"))?;
            let options = list(data, "options").iter();
            let named: Vec<String> =
                options.map(|one| format!("{} ({})", text(one, "optionId"), text(one, "name"))).collect();
            out.notice(format_args!("or with one of its options: {}", one_line(&named.join(", "), 1_000)))
        }
        "question" => out.notice("it asks a question: answer in `buildscale chat`"),
        "error" => out.notice(format_args!("{}: {}", text(data, "code"), one_line(text(data, "message"), 1_000))),
        "turn_completed" => out.line(""),
        _ => Ok(()),
    }
}
