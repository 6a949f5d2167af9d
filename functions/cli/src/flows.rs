//! `buildscale flow`: flows are made, checked and drawn here, and run by a hub.

mod evaluate;
mod input;
mod local;
mod profiles;
mod repl;
mod upload;

use crate::{
    args::{FlowArgs, FlowCommand, Picture, Reference, RunArgs, labels_body},
    client::Client,
    failure::{CliError, Exit},
    input::Lines,
    locate,
    output::{Look, Output, clean, counted, one_line},
    table::Table,
    tasks::{Watch, WatchMode},
    value::{list, number, text},
};
use ::client::Error::Unreachable;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Runs one of the commands.
pub(crate) async fn run(args: FlowArgs, out: &mut Output) -> Result<Exit, CliError> {
    let command = args.command.unwrap_or(FlowCommand::List);
    // First come commands that need no hub, and arguments that can only be mistakes.
    if let Some(flow) = flow_of(&command).filter(|flow| is_path(flow) && !is_folder(flow)) {
        return Err(CliError::NoFolder(flow.to_owned()));
    }
    match &command {
        FlowCommand::New { dir, name } => return local::new(dir, name.as_deref(), out),
        FlowCommand::Schema { name } => return local::schema(name.as_deref(), out),
        FlowCommand::Entrypoints => return local::entrypoints(out),
        FlowCommand::Package { dir, verify } => return local::package(dir, *verify, out),
        FlowCommand::Check { flow } if is_folder(flow) => return local::check(Path::new(flow), out),
        FlowCommand::Graph { flow: Some(flow), format, task: None, output } if is_folder(flow) => {
            let format = Picture::chosen(*format, output.is_some(), out);
            let picture = local::graph(Path::new(flow), format, out)?;
            return picture.map_or(Ok(Exit::Failed), |picture| deliver(picture, output.as_deref(), out));
        }
        _ => {}
    }
    let client = Client::new(&args.connection)?;
    let wanted = args.place.workspace.as_deref();
    let workspace = match &command {
        FlowCommand::Graph { task: Some(task), .. } => {
            locate::task(&client, wanted, task).await.map(|(workspace, _)| workspace)
        }
        FlowCommand::Run(_) | FlowCommand::Eval(_) | FlowCommand::Repl { .. } => {
            locate::workspace_or_new(&client, wanted).await
        }
        // A look makes no workspace.
        _ => locate::workspace(&client, wanted).await,
    };
    let workspace = workspace.map_err(|failure| match (failure, flow_of(&command)) {
        // A person who mistyped a folder did not think of a hub.
        (CliError::Client(Unreachable { url, reason }), Some(flow)) if !is_folder(flow) => {
            Unreachable { url, reason: format!("{reason}; and there is no folder {flow} here") }.into()
        }
        (failure, _) => failure,
    })?;
    let desk = Desk { client, workspace };
    match command {
        FlowCommand::New { .. }
        | FlowCommand::Schema { .. }
        | FlowCommand::Package { .. }
        | FlowCommand::Entrypoints => Ok(Exit::Done),
        FlowCommand::List => desk.list(out).await,
        FlowCommand::Show { flow } => desk.show(&flow, out).await,
        FlowCommand::Check { flow } => desk.check(&flow, out).await,
        FlowCommand::Graph { flow, format, task, output } => desk.graph(flow, format, task, output, out).await,
        FlowCommand::Run(args) => desk.run(args, out).await,
        FlowCommand::Eval(args) => desk.evaluate(args, out).await,
        FlowCommand::Repl { flow, profile } => desk.repl(flow, profile, out).await,
    }
}

/// Whether the argument is a folder here, and not the name of a flow in the workspace.
fn is_folder(flow: &str) -> bool {
    Path::new(flow).is_dir()
}

/// The flow that a command is about, as it was typed: a folder or a name.
fn flow_of(command: &FlowCommand) -> Option<&str> {
    match command {
        FlowCommand::Check { flow } | FlowCommand::Repl { flow, .. } => Some(flow),
        FlowCommand::Graph { flow, .. } => flow.as_deref(),
        FlowCommand::Run(args) => Some(&args.flow),
        FlowCommand::Eval(args) => Some(&args.flow),
        FlowCommand::List
        | FlowCommand::Show { .. }
        | FlowCommand::New { .. }
        | FlowCommand::Package { .. }
        | FlowCommand::Schema { .. }
        | FlowCommand::Entrypoints => None,
    }
}

/// Whether the argument can be no name of a flow, because only paths look like it.
fn is_path(flow: &str) -> bool {
    flow.starts_with(['.', '~'])
        || flow.contains(std::path::is_separator)
        || [".yaml", ".yml", ".json"].iter().any(|end| flow.ends_with(end))
}

/// Writes a picture to a file, else to standard output.
fn deliver(picture: Vec<u8>, to: Option<&Path>, out: &mut Output) -> Result<Exit, CliError> {
    match to {
        None => out.bytes(&picture)?,
        Some(path) => {
            let failed = |source| CliError::Local { path: path.display().to_string(), source };
            std::fs::write(path, &picture).map_err(failed)?;
            out.notice(format_args!("wrote {}", path.display()))?;
        }
    }
    Ok(Exit::Done)
}

/// The faults of a flow, as text or JSON; exit code 1 when there are any. `report` is in the hub's format, too.
fn tell_faults(report: &Value, place: &str, out: &mut Output) -> Result<Exit, CliError> {
    let faults = list(report, "faults");
    let exit = if faults.is_empty() { Exit::Done } else { Exit::Failed };
    if out.is_json() {
        return out.json(report).map(|()| exit);
    }
    let notes = list(report, "notes");
    for (fault, is_note) in faults.iter().map(|fault| (fault, false)).chain(notes.iter().map(|note| (note, true))) {
        let style = out.style();
        let mut at = one_line(text(fault, "file"), 200);
        for key in ["line", "column"] {
            match number(fault, key) {
                0 => {}
                number => at.push_str(&format!(":{number}")),
            }
        }
        let note = if is_note { "note: " } else { "" };
        out.words(format_args!("{} {note}{}", style.paint(Look::Bold, at + ":"), clean(text(fault, "message"))))?;
        if let Some(hint) = fault.get("hint").and_then(Value::as_str) {
            out.words(format_args!("  {} {}", style.paint(Look::Dim, "hint:"), clean(hint)))?;
        }
    }
    match faults.len() {
        0 => out.notice(format_args!("{place}: nothing is wrong"))?,
        faults => out.notice(format_args!("{place}: {}", counted(faults, "fault")))?,
    }
    Ok(exit)
}

/// A trigger in words, such as `/projects/*/plan.md status=ready`.
fn trigger(on: &Value) -> String {
    let mut words = vec![text(on, "path").to_owned()];
    if let Some(status) = on.get("status").and_then(Value::as_str) {
        words.push(format!("status={status}"));
    }
    for (key, value) in on.get("front_matter").and_then(Value::as_object).into_iter().flatten() {
        words.push(format!("{key}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    }
    words.extend(on.get("event").and_then(Value::as_str).map(str::to_owned));
    words.join(" ")
}

/// A flow to work with in a workspace.
struct Desk {
    client: Client,
    workspace: String,
}

impl Desk {
    fn at<'a>(&'a self, rest: &[&'a str]) -> Vec<&'a str> {
        [&["workspaces", self.workspace.as_str()], rest].concat()
    }

    /// The name of the flow; a folder is put into the workspace first.
    async fn name_of(&self, flow: &str, out: &mut Output) -> Result<String, CliError> {
        if is_folder(flow) { self.upload(Path::new(flow), out).await } else { Ok(flow.to_owned()) }
    }

    async fn list(&self, out: &mut Output) -> Result<Exit, CliError> {
        let answer = self.client.get(&self.at(&["flows"]), &[]).await?;
        if out.is_json() {
            return out.json(&answer).map(|()| Exit::Done);
        }
        let flows = list(&answer, "flows");
        let mut table = Table::with_whole_sentences(&["name", "state", "from", "description"]);
        for flow in flows {
            let state = match number(flow, "faults") {
                0 => (counted(number(flow, "nodes"), "node"), Some(Look::Dim)),
                faults => (counted(faults, "fault"), Some(Look::Bad)),
            };
            let origin = if flow.get("built_in") == Some(&Value::Bool(true)) { "built in" } else { "" };
            let purpose = one_line(text(flow, "description"), 200);
            let on = list(flow, "on").iter().map(trigger).collect::<Vec<_>>().join(", ");
            let on = if on.is_empty() { on } else { format!("Starts on {}", one_line(&on, 120)) };
            let ends = purpose.is_empty() || on.is_empty() || purpose.ends_with(['.', '!', '?', '…']);
            let about = format!("{purpose}{} {on}", if ends { "" } else { "." }).trim().to_owned();
            let (origin, about) = ((origin.into(), Some(Look::Dim)), (about, Some(Look::Dim)));
            table.row(vec![(one_line(text(flow, "name"), 60), None), state, origin, about]);
        }
        table.print(out)?;
        if flows.is_empty() {
            out.notice("no flows; make one with: buildscale flow new DIR, then: buildscale flow run DIR")?;
        }
        Ok(Exit::Done)
    }

    /// Shows a flow: the files that start it, the keys of its input, its nodes and its edges.
    async fn show(&self, flow: &str, out: &mut Output) -> Result<Exit, CliError> {
        let shape = self.client.get(&self.at(&["flows", flow]), &[]).await?;
        if out.is_json() {
            return out.json(&shape).map(|()| Exit::Done);
        }
        let style = out.style();
        let hash: String = text(&shape, "hash").chars().take(12).collect();
        let name = style.paint(Look::Bold, one_line(text(&shape, "name"), 60));
        out.line(format_args!("{name} {}", style.paint(Look::Dim, hash)))?;
        for on in list(&shape, "on") {
            out.line(format_args!("starts on {}", one_line(&trigger(on), 400)))?;
        }
        if let Some(keys) = shape.get("input_schema").and_then(input_keys) {
            out.line(format_args!("input {}", one_line(&keys, 400)))?;
        }
        let mut table = Table::new(&["node", "role", "does", "leads to"]);
        for node in list(&shape, "nodes") {
            let id = text(node, "id");
            let ways = list(&shape, "edges").iter().filter(|edge| text(edge, "from") == id);
            let ways = ways.map(|edge| text(edge, "to")).collect::<Vec<_>>().join(", ");
            let dim = |text: &str| (one_line(text, 80), Some(Look::Dim));
            table.row(vec![(one_line(id, 60), None), dim(text(node, "role")), dim(text(node, "op")), dim(&ways)]);
        }
        table.print(out)?;
        Ok(Exit::Done)
    }

    async fn check(&self, flow: &str, out: &mut Output) -> Result<Exit, CliError> {
        let report = self.client.post(&self.at(&["flows", flow, "check"]), &json!({})).await?;
        tell_faults(&report, flow, out)
    }

    async fn graph(
        &self,
        flow: Option<String>,
        format: Option<Picture>,
        task: Option<Reference>,
        output: Option<PathBuf>,
        out: &mut Output,
    ) -> Result<Exit, CliError> {
        let task = match &task {
            Some(task) => Some(locate::task(&self.client, Some(&self.workspace), task).await?.1),
            None => None,
        };
        let format = Picture::chosen(format, output.is_some(), out);
        let mut query = vec![("format", format.as_str())];
        let flow = match (&task, flow) {
            (None, flow) => flow.unwrap_or_default(),
            (Some(task), _) => {
                query.push(("task", task));
                let view = self.client.get(&self.at(&["tasks", task]), &[]).await?;
                text(view.get("flow").unwrap_or(&Value::Null), "name").to_owned()
            }
        };
        let picture = self.client.bytes(&self.at(&["flows", &flow, "graph"]), &query).await?;
        match format {
            Picture::Text => deliver(clean(&String::from_utf8_lossy(&picture)).into_bytes(), output.as_deref(), out),
            Picture::Svg | Picture::Dot | Picture::Mermaid => deliver(picture, output.as_deref(), out),
        }
    }

    async fn run(self, args: RunArgs, out: &mut Output) -> Result<Exit, CliError> {
        let (input, used_up) = input::read(&args.input)?;
        let flow = self.name_of(&args.flow, out).await?;
        let mut body = Map::from_iter([("input".to_owned(), input)]);
        if let Some(start) = &args.start {
            body.insert("start".into(), json!(start));
        }
        if let Some(priority) = args.priority {
            body.insert("priority".into(), json!(priority));
        }
        if let Some(budget) = args.budget.body() {
            body.insert("budget".into(), budget);
        }
        if !args.labels.is_empty() {
            body.insert("labels".into(), labels_body(&args.labels));
        }
        args.pauses.add_to(&mut body);
        if !args.files.is_empty() {
            body.insert("files".into(), self.file_ids(&args.files).await?);
        }
        let accepted = self.client.post(&self.at(&["flows", &flow, "tasks"]), &body.into()).await?;
        let task = text(&accepted, "task_id").to_owned();
        if out.is_json() {
            let data = json!({ "workspace_id": self.workspace, "flow": flow, "task_id": task });
            out.json(&json!({ "id": null, "event": "accepted", "data": data }))?;
        }
        if args.detach {
            return if out.is_json() { Ok(Exit::Done) } else { out.line(task).map(|()| Exit::Done) };
        }
        out.notice(format_args!("task {task}"))?;
        let mut lines = if used_up { Lines::none() } else { Lines::default() };
        let watch = Watch::new(self.client, self.workspace, task, Some(0), WatchMode::Runner, out)?;
        let ended = watch.until_end(&mut lines, out).await?;
        ended.print(out)?;
        Ok(ended.exit)
    }

    /// The ids of files of the workspace, by their paths.
    async fn file_ids(&self, paths: &[String]) -> Result<Value, CliError> {
        let mut ids = Vec::new();
        for path in paths {
            let file = locate::file(&self.client, &self.workspace, path).await?;
            ids.push(json!(text(&file, "file_id")));
        }
        Ok(Value::Array(ids))
    }
}

/// The keys of a flow's input with their types, such as `goal: string, approve?: boolean`; a mark stands after keys that may be missing. None for a
/// schema that names no keys.
fn input_keys(schema: &Value) -> Option<String> {
    let required = list(schema, "required");
    let key = |(name, schema): (&String, &Value)| {
        let mark = if required.iter().any(|one| one == name) { "" } else { "?" };
        match text(schema, "type") {
            "" => format!("{name}{mark}"),
            kind => format!("{name}{mark}: {kind}"),
        }
    };
    let keys: Vec<String> = schema.get("properties")?.as_object()?.iter().map(key).collect();
    (!keys.is_empty()).then(|| keys.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_an_input_have_their_types_and_say_which_may_be_missing() {
        let schema = json!({
            "properties": { "approve": { "type": "boolean" }, "goal": { "type": "string" }, "more": {} },
            "required": ["goal"],
        });
        assert_eq!(input_keys(&schema).as_deref(), Some("approve?: boolean, goal: string, more?"));
        assert_eq!(input_keys(&json!({ "type": "string" })), None);
        assert_eq!(input_keys(&json!({ "properties": {} })), None);
    }
}
