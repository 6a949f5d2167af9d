//! `buildscale schedule`: chats, messages, tasks and calls of tools that begin at a time, or again and again.

use crate::{
    args::{AddArgs, MissedArg, OverlapArg, ScheduleArgs, ScheduleCommand},
    client::Client,
    failure::CliError,
    locate,
    output::{Look, Output, one_line},
    table::{Table, when},
    value::{number, read_json, text},
};
use ::client::Body;
use reqwest::Method;
use serde_json::{Value, json};

/// A workspace has no more.
const MOST: usize = 200;

/// Runs one of the commands.
pub(crate) async fn run(args: ScheduleArgs, out: &mut Output) -> Result<(), CliError> {
    let client = Client::new(&args.connection)?;
    let workspace = locate::workspace(&client, args.workspace.as_deref()).await?;
    let all = ["workspaces", workspace.as_str(), "schedules"];
    let command = match args.command {
        None | Some(ScheduleCommand::List) => return show_all(&listed(&client, &all).await?, out),
        Some(ScheduleCommand::Add(asked)) => {
            let (name, others) = (asked.name.clone(), listed(&client, &all).await?);
            let made = client.post(&all, &body(*asked)?).await?;
            show(&made, out)?;
            return locate::tell_namesakes(&others, &name, "schedule", out);
        }
        Some(command) => command,
    };
    let (ScheduleCommand::Show { schedule }
    | ScheduleCommand::Pause { schedule }
    | ScheduleCommand::Resume { schedule }
    | ScheduleCommand::Run { schedule }
    | ScheduleCommand::Remove { schedule }) = &command
    else {
        return Ok(());
    };
    let found = find(listed(&client, &all).await?, schedule)?;
    let id = text(&found, "schedule_id").to_owned();
    let one = ["workspaces", workspace.as_str(), "schedules", id.as_str()];
    match command {
        ScheduleCommand::Pause { .. } => paused(&client, &one, true, out).await,
        ScheduleCommand::Resume { .. } => paused(&client, &one, false, out).await,
        ScheduleCommand::Run { .. } => {
            let run = ["workspaces", workspace.as_str(), "schedules", id.as_str(), "run"];
            let begun = client.post(&run, &json!({})).await?;
            if out.is_json() { out.json(&begun) } else { out.notice("it begins") }
        }
        ScheduleCommand::Remove { .. } => {
            client.remove(&one, &[]).await?;
            let is_gone = client.becomes(&one, |found| found.is_none()).await?;
            let words = if is_gone { "it is removed" } else { "it is accepted: it is removed in a moment" };
            if out.is_json() { out.json(&json!({ "schedule_id": id })) } else { out.notice(words) }
        }
        _ => show(&found, out),
    }
}

async fn listed(client: &Client, place: &[&str]) -> Result<Vec<Value>, CliError> {
    client.list(place, "schedules", &[], MOST).await
}

async fn paused(client: &Client, place: &[&str], paused: bool, out: &mut Output) -> Result<(), CliError> {
    let answer = client.change(Method::PATCH, place, Body::Json(json!({ "paused": paused })), None).await?;
    let before = if paused { "active" } else { "paused" };
    let is_so = |found: Option<&Value>| found.is_none_or(|found| text(found, "status") != before);
    let is_done = client.becomes(place, is_so).await?;
    match (out.is_json(), paused) {
        (true, _) => out.json(&answer),
        (false, _) if !is_done => out.notice("it is accepted: it takes a moment"),
        (false, true) => out.notice("it is paused"),
        (false, false) => out.notice("it goes on"),
    }
}

/// The schedule of this name, or whose id begins so.
fn find(schedules: Vec<Value>, wanted: &str) -> Result<Value, CliError> {
    locate::named(schedules, wanted, "schedule_id", "schedule", "schedule", times)
}

fn body(asked: AddArgs) -> Result<Value, CliError> {
    let AddArgs {
        name,
        at,
        rrule,
        zone,
        begins,
        goal,
        role,
        model,
        scenario,
        brief,
        chat,
        say,
        flow,
        input,
        tool,
        args,
        missed,
        overlap,
    } = asked;
    let action = match (goal, chat, tool) {
        _ if brief => json!({ "kind": "daily_brief" }),
        (Some(goal), ..) => {
            let scenario = scenario.map(|scenario| scenario.as_str().to_owned());
            let fields = [("role", role), ("model", model), ("scenario", scenario)];
            with(json!({ "kind": "chat", "goal": goal }), fields)
        }
        (None, Some(chat), _) => json!({ "kind": "message", "chat_id": chat, "content": say }),
        (None, None, Some(tool)) => {
            json!({ "kind": "tool", "tool": tool, "args": parse_json("--args", args)?.unwrap_or_else(|| json!({})) })
        }
        (None, None, None) => json!({ "kind": "task", "flow": flow, "input": parse_json("--input", input)? }),
    };
    let missed = match missed {
        MissedArg::RunOnce => "run_once",
        MissedArg::Skip => "skip",
    };
    // A hub of an earlier version knows no such field.
    let overlap = matches!(overlap, OverlapArg::Skip).then(|| "skip".to_owned());
    let body = json!({ "name": name, "missed": missed, "action": action });
    let times = [("at", at), ("rrule", rrule), ("time_zone", zone), ("begins", begins)];
    Ok(with(with(body, times), [("overlap", overlap)]))
}

fn parse_json(option: &str, text: Option<String>) -> Result<Option<Value>, CliError> {
    let value = text.map(|text| read_json(&text)).transpose();
    value.map_err(|error| CliError::Usage(format!("{option}: {error}")))
}

/// The object with those of the fields that have a value.
fn with<const N: usize>(mut object: Value, fields: [(&str, Option<String>); N]) -> Value {
    for (name, value) in fields {
        if let Some(value) = value {
            object[name] = Value::String(value);
        }
    }
    object
}

fn times(schedule: &Value) -> String {
    let times = schedule.get("times").unwrap_or(&Value::Null);
    match text(times, "kind") {
        "once" => format!("once, {}", text(times, "at")),
        _ => format!("{}, {}", text(times, "rrule"), text(times, "time_zone")),
    }
}

fn action(schedule: &Value) -> String {
    let action = schedule.get("action").unwrap_or(&Value::Null);
    match text(action, "kind") {
        "task" => format!("task of {}", text(action, "flow")),
        "message" => format!("message to {}", text(action, "chat_id")),
        "tool" => format!("call of {}", text(action, "tool")),
        "daily_brief" => "the daily brief".to_owned(),
        _ => format!("chat: {}", text(action, "goal")),
    }
}

fn next(schedule: &Value, out: &Output) -> String {
    match text(schedule, "next_at") {
        "" => text(schedule, "status").to_owned(),
        time => when(time, out),
    }
}

fn show_all(schedules: &[Value], out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(&json!({ "schedules": schedules }));
    }
    let mut table = Table::new(&["next", "name", "times", "begins", "runs", "id"]);
    for one in schedules {
        table.row(vec![
            (next(one, out), None),
            (one_line(text(one, "name"), 40), Some(Look::Bold)),
            (one_line(&times(one), 60), None),
            (one_line(&action(one), 40), None),
            (number(one, "runs").to_string(), None),
            (text(one, "schedule_id").to_owned(), Some(Look::Dim)),
        ]);
    }
    table.print(out)?;
    if schedules.is_empty() {
        out.notice("no schedules; `buildscale schedule add --help` shows how to make one")?;
    }
    Ok(())
}

fn show(schedule: &Value, out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(schedule);
    }
    let last = schedule.get("last_run").unwrap_or(&Value::Null);
    let began = match (text(last, "chat_id"), text(last, "task_id"), last.get("error")) {
        (_, _, Some(error)) => format!("failed: {}", one_line(text(error, "message"), 200)),
        ("", "", _) => one_line(text(last, "output"), 200),
        ("", task, _) => format!("task {task}"),
        (chat, ..) => format!("chat {chat}"),
    };
    let reason = schedule.get("paused_because").map(|error| text(error, "message")).unwrap_or_default();
    let rows = [
        ("id", text(schedule, "schedule_id").to_owned()),
        ("name", one_line(text(schedule, "name"), 100)),
        ("times", times(schedule)),
        ("begins", one_line(&action(schedule), 200)),
        ("status", [text(schedule, "status"), reason].join(if reason.is_empty() { "" } else { ": " })),
        ("next", text(schedule, "next_at").to_owned()),
        ("last", [text(last, "at"), &began].join(if began.is_empty() { "" } else { ", " })),
        ("runs", format!("{}, {} missed", number(schedule, "runs"), number(schedule, "skipped"))),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        out.line(format_args!("{name:<8}{value}"))?;
    }
    Ok(())
}
