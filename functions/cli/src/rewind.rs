//! `buildscale rewind`: a folder, or the work of a chat, a turn or a task, goes back to how it was.

use crate::{
    args::{ForkArgs, RewindArgs},
    client::Client,
    failure::{CliError, Exit},
    locate::{self, absolute},
    output::{Look, Output, counted, one_line},
    table::Table,
    value::{list, number, text, without_local_person},
};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// How long one request may take: a hub works for 20 seconds, then it is asked again.
const PATIENCE: Duration = Duration::from_secs(60);
/// Steps that a preview asks for at once.
const PAGE: u64 = 200;

/// Shows the steps, or with `--yes` does them.
pub(crate) async fn run(args: RewindArgs, out: &mut Output) -> Result<Exit, CliError> {
    let client = Client::new(&args.connection)?;
    let (workspace, mut body) = asked(&client, &args).await?;
    let place = ["workspaces", workspace.as_str(), "rewind"];
    if !args.yes {
        preview(&client, &place, body, args.diff, out).await?;
        return Ok(Exit::Done);
    }
    body["rewind_id"] = args.rewind_id.as_ref().map_or_else(|| json!(Uuid::now_v7()), |id| json!(id));
    if let Some(as_of) = &args.as_of {
        body["as_of"] = json!(as_of);
    }
    if args.fork {
        body["fork"] = json!(true);
    }
    let done = take_back(&client, &workspace, &body, |steps| print_steps(steps, out)).await;
    let done = match done {
        Err(failure) if matches!(failure.exit(), Exit::Unreachable | Exit::Failed | Exit::NotLoggedIn) => {
            let id = text(&body, "rewind_id");
            out.notice(format_args!("it may have begun: the same command with --rewind-id {id} goes on with it"))?;
            return Err(failure);
        }
        done => done?,
    };
    if out.is_json() {
        out.json(&done)?;
    } else {
        print_rewind(&done, out)?;
        if let Some(fork) = done.get("forked_chat_id").and_then(Value::as_str) {
            out.line(format_args!("forked  {fork}"))?;
        }
        out.notice(format_args!("take it back with: buildscale rewind --undo {}", text(&done, "rewind_id")))?;
    }
    Ok(if list(&done, "conflicts").is_empty() { Exit::Done } else { Exit::Conflict })
}

/// Does the rewind that `body` asks for, which has its id: a hub that works for long is asked again. `progress` hears of the steps that are done.
pub(crate) async fn take_back(
    client: &Client,
    workspace: &str,
    body: &Value,
    mut progress: impl FnMut(u64) -> Result<(), CliError>,
) -> Result<Value, CliError> {
    loop {
        let answer = client.post_once(&["workspaces", workspace, "rewind"], body, PATIENCE).await?;
        if text(&answer, "state") != "running" {
            return Ok(answer);
        }
        let counts = answer.get("counts").unwrap_or(&Value::Null);
        let steps: u64 =
            ["creates", "updates", "deletes", "moves", "marks"].iter().map(|key| number(counts, key)).sum();
        progress(steps)?;
    }
}

/// Shows how far a rewind is.
pub(crate) fn print_steps(steps: u64, out: &mut Output) -> Result<(), CliError> {
    out.progress(format_args!("{} done", counted(steps, "step")))
}

/// Shows what a rewind did, and what it left.
pub(crate) fn print_rewind(done: &Value, out: &mut Output) -> Result<(), CliError> {
    table(list(done, "steps")).print(out)?;
    left(done, out)?;
    out.notice(sum(done))
}

/// The same in lines, for a view that has no columns.
pub(crate) fn lines(done: &Value) -> Vec<String> {
    let step = |step: &Value| cells(step).into_iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join("  ");
    list(done, "steps").iter().map(step).chain(left_lines(done)).chain([sum(done)]).collect()
}

/// Makes a fork of a chat.
pub(crate) async fn fork(args: ForkArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let (workspace, chat) = locate::chat(&client, args.workspace.as_deref(), &args.chat).await?;
    let mut body = json!({});
    for (key, value) in [
        ("at_seq", args.seq.map(Value::from)),
        ("at_turn", args.turn.map(Value::from)),
        ("before_turn", args.before.map(Value::from)),
        ("title", args.title.map(Value::from)),
    ] {
        if let Some(value) = value {
            body[key] = value;
        }
    }
    let made = client.post(&["workspaces", &workspace, "chats", &chat, "fork"], &body).await?;
    if out.is_json() {
        return out.json(&made);
    }
    let (fork, turns) = (text(&made, "chat_id"), number(&made, "turns"));
    out.line(fork)?;
    let turns = counted(turns, "turn");
    out.notice(format_args!("{turns} of {chat}; talk to it with: buildscale chat --chat {fork}"))
}

/// The workspace, and the request without its id.
async fn asked(client: &Client, args: &RewindArgs) -> Result<(String, Value), CliError> {
    let wanted = args.workspace.as_deref();
    if let Some(task) = &args.task {
        let (workspace, task) = locate::task(client, wanted, task).await?;
        return Ok((workspace, json!({ "scope": { "kind": "task", "task_id": task } })));
    }
    if let Some(rewind) = &args.undo {
        let workspace = locate::workspace(client, wanted).await?;
        return Ok((workspace, json!({ "scope": { "kind": "rewind", "rewind_id": rewind } })));
    }
    let (workspace, chat) = match &args.chat {
        Some(chat) => {
            let (workspace, chat) = locate::chat(client, wanted, chat).await?;
            (workspace, Some(chat))
        }
        None => (locate::workspace(client, wanted).await?, None),
    };
    let path = args.path.as_deref().map(absolute);
    let scope = match (&path, &chat, &args.turn) {
        (Some(path), ..) if path == "/" => json!({ "kind": "workspace" }),
        (Some(path), ..) => json!({ "kind": "path", "path": path }),
        (None, Some(chat), Some(turn)) => json!({ "kind": "turn", "chat_id": chat, "turn_id": turn }),
        (None, chat, _) => json!({ "kind": "chat", "chat_id": chat }),
    };
    let to = match (&args.time, args.version, args.seq, &args.turn) {
        (Some(time), ..) => json!({ "time": time }),
        (None, Some(v), ..) => {
            let file = locate::file(client, &workspace, path.as_deref().unwrap_or("/")).await?;
            json!({ "file_id": text(&file, "file_id"), "v": v })
        }
        (None, None, Some(seq), _) => json!({ "chat_id": chat, "seq": seq }),
        (None, None, None, Some(turn)) if path.is_some() => json!({ "chat_id": chat, "turn_id": turn }),
        (None, None, None, _) => Value::Null,
    };
    if to.is_null() && path.is_some() {
        return Err(CliError::Usage(
            "a path needs a point: give --time, --version, or --chat with --turn or --seq".into(),
        ));
    }
    Ok((workspace, if to.is_null() { json!({ "scope": scope }) } else { json!({ "scope": scope, "to": to }) }))
}

async fn preview(
    client: &Client,
    place: &[&str],
    mut body: Value,
    diffs: bool,
    out: &mut Output,
) -> Result<(), CliError> {
    body["preview"] = json!(true);
    body["limit"] = json!(PAGE);
    let mut steps = Vec::new();
    let shown = loop {
        let page = client.post_once(place, &body, PATIENCE).await?;
        steps.extend(list(&page, "steps").iter().cloned());
        match page.get("next_cursor") {
            Some(cursor) if !cursor.is_null() => body["cursor"] = cursor.clone(),
            _ => break page,
        }
    };
    if out.is_json() {
        let mut whole = shown;
        whole["steps"] = json!(steps);
        return out.json(&whole);
    }
    table(&steps).print(out)?;
    if diffs {
        for step in steps.iter().filter(|step| !text(step, "diff").is_empty()) {
            out.line(format_args!(
                "\n{}\n{}",
                one_line(text(step, "path"), 4096),
                crate::output::clean(text(step, "diff"))
            ))?;
        }
    }
    left(&shown, out)?;
    out.notice(sum(&shown))?;
    if !steps.is_empty() {
        out.notice(format_args!("nothing was changed; add --yes --as-of {} to do this", text(&shown, "as_of")))?;
    }
    Ok(())
}

fn table(steps: &[Value]) -> Table {
    let mut table = Table::new(&["step", "v", "path"]);
    for step in steps {
        let look = match text(step, "op") {
            "delete" => Some(Look::Bad),
            "create" => Some(Look::Good),
            _ => None,
        };
        let [op, version, path] = cells(step);
        table.row(vec![(op, look), (version, None), (path, None)]);
    }
    table
}

/// A step: its operation, the versions that it goes between, and the path.
fn cells(step: &Value) -> [String; 3] {
    let version = match (number(step, "v"), number(step, "to_v")) {
        (_, 0) => String::new(),
        (v, to) => format!("v{v} > v{to}"),
    };
    let path = one_line(text(step, "path"), 4096);
    let path = match text(step, "from") {
        "" => path,
        from => format!("{} > {path}", one_line(from, 4096)),
    };
    [one_line(text(step, "op"), 40), version, path]
}

/// Tells of everything that stays as it is.
fn left(rewind: &Value, out: &mut Output) -> Result<(), CliError> {
    left_lines(rewind).iter().try_for_each(|line| out.words(line))
}

fn left_lines(rewind: &Value) -> Vec<String> {
    let of = |key: &str, word: &str| {
        let line = |one: &Value| {
            let reason = without_local_person(text(one, "reason"));
            format!("{word}  {}: {}", one_line(text(one, "path"), 4096), one_line(&reason, 400))
        };
        list(rewind, key).iter().map(line).collect::<Vec<_>>()
    };
    [of("conflicts", "kept"), of("unavailable", "unavailable")].concat()
}

fn sum(rewind: &Value) -> String {
    let counts = rewind.get("counts").unwrap_or(&Value::Null);
    let of = |key: &str, word: &str| {
        let count = number(counts, key);
        (count > 0).then(|| format!("{count} {word}"))
    };
    let parts = [
        of("creates", "brought back"),
        of("updates", "updated"),
        of("deletes", "removed"),
        of("moves", "moved"),
        of("marks", "with other tags or links"),
        of("conflicts", "kept as others left them"),
        of("unavailable", "unavailable"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "nothing to take back".into() } else { parts.join(", ") }
}
