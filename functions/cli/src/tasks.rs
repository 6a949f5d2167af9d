//! `buildscale task`: the state of tasks, and commands to them.

mod answer;
mod progress;
mod show;
mod timeline;
mod tree;
mod waiting;
mod watch;

pub(crate) use waiting::call;
pub(crate) use watch::{Watch, WatchMode};

use crate::{
    args::{Reference, TaskArgs, TaskCommand},
    client::{Body, Client},
    failure::{CliError, Exit},
    input::Lines,
    locate,
    output::{Look, Output, Style, clean, one_line},
    table::{Table, when},
    value::{list, text},
};
use flow::diff::TaskDiff;
use reqwest::Method;
use serde_json::{Value, json};

/// Runs one of the commands.
pub(crate) async fn run(args: TaskArgs, out: &mut Output) -> Result<Exit, CliError> {
    let client = Client::new(&args.connection)?;
    let wanted = args.place.workspace.as_deref();
    let (flow, status, phase, since, until, parent, labels) = (None, None, None, None, None, None, Vec::new());
    let listed = TaskCommand::List { flow, status, phase, since, until, parent, labels, limit: 20 };
    let command = args.command.unwrap_or(listed);
    if let TaskCommand::List { flow, status, phase, since, until, parent, labels, limit } = &command {
        let query = [("flow", flow), ("status", status), ("phase", phase), ("since", since), ("until", until)];
        let query = query.map(|(key, value)| (key, value.clone()));
        let (workspace, parent) = match parent {
            Some(parent) => locate::task(&client, wanted, parent).await.map(|(place, parent)| (place, Some(parent)))?,
            None => (locate::workspace(&client, wanted).await?, None),
        };
        let query = query.into_iter().chain([("parent", parent)]).filter_map(|(key, value)| Some((key, value?)));
        let query = query.chain(labels.iter().map(|(key, value)| ("label", format!("{key}={value}"))));
        return tasks(&client, &workspace, &query.collect::<Vec<_>>(), *limit, out).await;
    }
    let (workspace, task) = match task_of(&command) {
        Some(task) => locate::task(&client, wanted, task).await?,
        None => (locate::workspace(&client, wanted).await?, String::new()),
    };
    let desk = Desk { client, workspace, task };
    match command {
        TaskCommand::List { .. } => Ok(Exit::Done),
        TaskCommand::Show { full, tree, memory, artifacts, trace, .. } => {
            desk.show(show::Parts { full, tree, memory, artifacts, trace }, out).await
        }
        TaskCommand::Tail { after, follow, .. } => {
            let watch = Watch::new(desk.client, desk.workspace, desk.task, after, WatchMode::Watcher, out)?;
            Ok(watch.until_it_waits(!follow).until_end(&mut Lines::none(), out).await?.exit)
        }
        TaskCommand::Pause { before, .. } => desk.tell("pause", &json!({ "before": before }), "will pause", out).await,
        TaskCommand::Step { .. } => desk.step(out).await,
        TaskCommand::Resume { drop, .. } => desk.tell("resume", &json!({ "drop": drop }), "goes on", out).await,
        TaskCommand::Stop { .. } => desk.stop(out).await,
        TaskCommand::Priority { priority, .. } => {
            desk.change(Method::PATCH, Body::Json(json!({ "priority": priority })), "accepted", out).await
        }
        TaskCommand::Delete { .. } => desk.change(Method::DELETE, Body::None, "deleted", out).await,
        TaskCommand::Replay { from, pauses, budget, follow, .. } => {
            desk.again("replay", &pauses.of_rerun(from, budget), follow, out).await
        }
        TaskCommand::Retry { pauses, budget, follow, .. } => {
            desk.again("retry", &pauses.of_rerun(None, budget), follow, out).await
        }
        TaskCommand::Answer { node, approve, decline, comment, answers, .. } => {
            desk.answer(answer::Given { node, approve, decline, comment, answers }, out).await
        }
        TaskCommand::Diff { with, .. } => {
            let (_, with) = locate::task(&desk.client, Some(&desk.workspace), &with).await?;
            desk.diff(&with, out).await
        }
    }
}

/// The task that a command is about.
fn task_of(command: &TaskCommand) -> Option<&Reference> {
    match command {
        TaskCommand::List { .. } => None,
        TaskCommand::Show { task, .. }
        | TaskCommand::Tail { task, .. }
        | TaskCommand::Pause { task, .. }
        | TaskCommand::Step { task }
        | TaskCommand::Resume { task, .. }
        | TaskCommand::Stop { task }
        | TaskCommand::Priority { task, .. }
        | TaskCommand::Delete { task }
        | TaskCommand::Replay { task, .. }
        | TaskCommand::Retry { task, .. }
        | TaskCommand::Answer { task, .. }
        | TaskCommand::Diff { task, .. } => Some(task),
    }
}

async fn tasks(
    client: &Client,
    workspace: &str,
    query: &[(&str, String)],
    limit: u32,
    out: &mut Output,
) -> Result<Exit, CliError> {
    let query: Vec<(&str, &str)> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let (tasks, has_more) = client.first(&["workspaces", workspace, "tasks"], "tasks", &query, most).await?;
    if out.is_json() {
        return out.json(&json!({ "tasks": tasks })).map(|()| Exit::Done);
    }
    let mut table = Table::new(&["id", "status", "began", "flow"]);
    for task in &tasks {
        let flow = one_line(text(task.get("flow").unwrap_or(&Value::Null), "name"), 30);
        let (word, look) = whole_state(task);
        let beside = match task.get("origin") {
            // A clone or a subtask: which one of its siblings it is, and where it stands.
            Some(origin) => tree::beside(task, origin),
            None => flow,
        };
        let (id, began) = (text(task, "task_id").to_owned(), when(text(task, "created_at"), out));
        table.row(vec![(id, None), (word, look), (began, None), (beside, None)]);
    }
    table.print(out)?;
    if tasks.is_empty() && !query.is_empty() {
        out.notice("no task matches")?;
    } else if tasks.is_empty() {
        out.notice("no tasks; run one with: buildscale flow run NAME --input JSON")?;
    } else if has_more {
        out.notice("there are more; --limit shows them")?;
    }
    Ok(Exit::Done)
}

/// The state of a task, or how it ended, in nine columns.
fn state(task: &Value, style: Style) -> String {
    match state_and_look(task) {
        (word, Some(look)) => style.paint(look, format_args!("{word:9}")),
        (word, None) => format!("{word:9}"),
    }
}

/// The state of a task, or how it ended, and how that looks. Its status says nothing before the end.
fn state_and_look(task: &Value) -> (String, Option<Look>) {
    match (text(task, "phase"), text(task, "status")) {
        ("finished", status) => (one_line(status, 9), Some(look_of(status))),
        ("suspended", _) => ("waiting".into(), waits_for(task).1),
        (phase @ ("paused" | "parked"), _) => (phase.to_owned(), Some(Look::Ask)),
        (phase, _) => (one_line(phase, 9), None),
    }
}

/// The same in as many words as it takes: a task that waits tells for whom or for what.
fn whole_state(task: &Value) -> (String, Option<Look>) {
    match text(task, "phase") {
        "suspended" => {
            let (words, look) = waits_for(task);
            (words.to_owned(), look)
        }
        _ => state_and_look(task),
    }
}

/// The thing that a suspended task waits for.
fn waits_for(task: &Value) -> (&'static str, Option<Look>) {
    if !list(task, "waiting_for").is_empty() {
        return ("waits for a person", Some(Look::Ask));
    }
    if task.get("agent_waits") == Some(&Value::Bool(true)) {
        return ("its agent waits for a person", Some(Look::Ask));
    }
    match task.get("wait").filter(|wait| !wait.is_null()).map(|wait| text(wait, "reason")) {
        None => ("waits for its agent", None),
        Some("backoff") => ("waits for its next try", None),
        Some("slots") => ("waits for its turn", None),
        Some("budget") => ("waits for its budget", None),
        Some("place") => ("waits for its machine", None),
        Some(_) => ("waits", None),
    }
}

/// How a status looks.
fn look_of(status: &str) -> Look {
    match status {
        "success" => Look::Good,
        "partial" => Look::Ask,
        _ => Look::Bad,
    }
}

/// A duration as people read it.
fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {:02} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// One task of a hub.
struct Desk {
    client: Client,
    workspace: String,
    task: String,
}

impl Desk {
    /// The path of the task, and `rest` below it.
    fn at<'a>(&'a self, rest: &[&'a str]) -> Vec<&'a str> {
        [&["workspaces", self.workspace.as_str(), "tasks", self.task.as_str()], rest].concat()
    }

    async fn view(&self) -> Result<Value, CliError> {
        self.client.get(&self.at(&[]), &[]).await
    }

    async fn tell(&self, command: &str, body: &Value, done: &str, out: &mut Output) -> Result<Exit, CliError> {
        let answer = self.client.post(&self.at(&[command]), body).await?;
        if out.is_json() {
            out.json(&answer)?
        } else {
            out.line(done)?
        }
        Ok(Exit::Done)
    }

    async fn change(&self, method: Method, body: Body, done: &str, out: &mut Output) -> Result<Exit, CliError> {
        let answer = self.client.change(method, &self.at(&[]), body, None).await?;
        if out.is_json() && !answer.is_null() {
            out.json(&answer)?
        } else if !out.is_json() {
            out.line(done)?
        }
        Ok(Exit::Done)
    }

    async fn stop(&self, out: &mut Output) -> Result<Exit, CliError> {
        let answer = self.client.post(&self.at(&["stop"]), &json!({})).await?;
        match text(&answer, "status") {
            _ if out.is_json() => out.json(&answer)?,
            "finished" => out.line(format_args!("it had ended before: {}", text(&self.view().await?, "status")))?,
            _ => out.line("told to stop; nothing more of it begins")?,
        }
        Ok(Exit::Done)
    }

    /// Lets the task execute one node, and says which.
    async fn step(&self, out: &mut Output) -> Result<Exit, CliError> {
        let view = self.view().await?;
        let said = match (text(&view, "phase"), text(&view, "node")) {
            ("paused", "") => "its paused clones and subtasks go one node on".to_owned(),
            ("paused", node) => format!("executes {}, then pauses again", one_line(node, 60)),
            _ => "pauses before its next node".to_owned(),
        };
        self.tell("step", &json!({}), &said, out).await
    }

    /// Makes a new task out of this one.
    async fn again(self, command: &str, body: &Value, follow: bool, out: &mut Output) -> Result<Exit, CliError> {
        let made = self.client.post(&self.at(&[command]), body).await?;
        let task = text(&made, "task_id").to_owned();
        if !follow {
            if out.is_json() {
                out.json(&made)?
            } else {
                out.line(task)?
            }
            return Ok(Exit::Done);
        }
        let mut lines = Lines::default();
        let watch = Watch::new(self.client, self.workspace, task, Some(0), WatchMode::Runner, out)?;
        let ended = watch.until_end(&mut lines, out).await?;
        ended.print(out)?;
        Ok(ended.exit)
    }

    async fn diff(&self, with: &str, out: &mut Output) -> Result<Exit, CliError> {
        let diff = self.client.get(&self.at(&["diff"]), &[("with", with)]).await?;
        if out.is_json() {
            let same = diff.get("parts").is_none_or(Value::is_null);
            return out.json(&diff).map(|()| if same { Exit::Done } else { Exit::Failed });
        }
        let shown: TaskDiff = serde_json::from_value(diff).map_err(|error| {
            CliError::Usage(format!("the hub compares in a way that this program does not know: {error}"))
        })?;
        out.line(clean(shown.to_string().trim_end()))?;
        // As `diff` does: another exit code when there is a difference.
        Ok(if shown.parts.is_none() { Exit::Done } else { Exit::Failed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_tells_its_status_at_its_end_and_before_that_what_it_waits_for() {
        let told = |phase: &str, more: Value| {
            let mut task = json!({ "phase": phase, "status": "success" });
            more.as_object().into_iter().flatten().for_each(|(key, value)| task[key] = value.clone());
            whole_state(&task).0
        };
        assert_eq!(told("suspended", json!({})), "waits for its agent");
        assert_eq!(told("suspended", json!({ "agent_waits": true })), "its agent waits for a person");
        assert_eq!(told("suspended", json!({ "waiting_for": [{}] })), "waits for a person");
        assert_eq!(told("suspended", json!({ "wait": { "reason": "budget" } })), "waits for its budget");
        assert_eq!(told("suspended", json!({ "wait": { "reason": "something new" } })), "waits");
        assert_eq!(told("running", json!({})), "running");
        assert_eq!(told("finished", json!({ "status": "partial" })), "partial");
        let (word, look) = state_and_look(&json!({ "phase": "suspended", "status": "success" }));
        assert!(word == "waiting" && look.is_none(), "nobody is needed: {word}");
    }

    #[test]
    fn durations() {
        for (ms, expected) in [(0, "0 ms"), (999, "999 ms"), (1_250, "1.2 s"), (61_900, "1 min 01 s")] {
            assert_eq!(took(ms), expected);
        }
    }
}
