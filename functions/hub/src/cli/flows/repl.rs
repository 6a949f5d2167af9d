//! `buildscale flow repl`: every line is one task.

use super::{
    Desk,
    history::History,
    profiles::{Profile, Wanted},
};
use crate::cli::{
    failure::{Exit, Failure},
    input::Lines,
    locate::{self, absolute},
    output::{Output, one_line},
    tasks::{Manner, Watch},
    value::{list, number, text},
};
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal};

const HELP: &str = "Each line is the input of one task: JSON, or a text.
  /files                  the attached files; /files +PATH attaches one, /files -PATH takes it away
  /profile [NAME]         the profiles, or changes to one
  /history [N]            the last lines; !N runs one again
  /telemetry on|off       whether stages and figures are shown
  /quit                   leaves, as Ctrl-D does. Ctrl-C stops the task that runs";
/// Lines of the history that are shown when no number is given.
const SHOWN: usize = 20;

impl Desk {
    /// Runs a task a line, until there are no more.
    pub(super) async fn repl(self, flow: String, wanted: Option<String>, out: &mut Output) -> Result<Exit, Failure> {
        let flow = self.name_of(&flow, out).await?;
        let profiles = self.profiles(&flow).await?;
        let mut repl = Repl::new(self, flow, profiles);
        if let Some(wanted) = wanted {
            repl.choose(&wanted)?;
        }
        let terminal = io::stdin().is_terminal();
        if terminal {
            out.notice("Each line is one task. (/help)")?;
        }
        let mut lines = Lines::default();
        loop {
            if terminal {
                out.prompt(format_args!("{}> ", one_line(repl.profile.id(), 40)))?;
            }
            let Some(line) = lines.next().await else { break };
            match repl.take(line.trim(), &mut lines, out).await {
                Ok(true) => break,
                Ok(false) => {}
                // A person can try again; a script has to know.
                Err(failure) if terminal && failure.can_try_again() => out.failure(&failure)?,
                Err(failure) => return Err(failure),
            }
        }
        Ok(if terminal { Exit::Done } else { repl.last })
    }

    /// The profiles of a flow, the default one first.
    async fn profiles(&self, flow: &str) -> Result<Vec<Profile>, Failure> {
        let flow = self.client.get(&self.at(&["flows", flow]), &[]).await?;
        let profiles = list(&flow, "profiles").iter();
        let mut profiles: Vec<Profile> =
            profiles.filter_map(|profile| serde_json::from_value(profile.clone()).ok().map(Profile)).collect();
        if profiles.is_empty() {
            profiles.push(Profile::plain());
        }
        Ok(profiles)
    }
}

/// The session.
struct Repl {
    desk: Desk,
    flow: String,
    profiles: Vec<Profile>,
    profile: Profile,
    /// Whether stages and figures are shown.
    telemetry: bool,
    /// Attached files, by path.
    files: Vec<String>,
    history: History,
    /// How the last task ended.
    last: Exit,
}

impl Repl {
    fn new(desk: Desk, flow: String, profiles: Vec<Profile>) -> Self {
        let profile = profiles.first().cloned().unwrap_or_else(Profile::plain);
        let (telemetry, history) = (profile.0.telemetry_overlays.enabled, History::open(&profile.0.session_policies));
        Self { desk, flow, profiles, profile, telemetry, files: Vec::new(), history, last: Exit::Done }
    }

    /// Takes a line; true when it says to leave.
    async fn take(&mut self, line: &str, lines: &mut Lines, out: &mut Output) -> Result<bool, Failure> {
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (command, rest.trim()) {
            ("", _) => {}
            ("/quit" | "/exit", _) => return Ok(true),
            ("/help", _) => self.help(out)?,
            ("/files", change) => self.attach(change, out).await?,
            ("/profile", "") => {
                for profile in &self.profiles {
                    let mark = if profile.id() == self.profile.id() { "*" } else { " " };
                    out.notice(format_args!("{mark} {}", one_line(profile.id(), 60)))?;
                }
            }
            ("/profile", name) => self.choose(name)?,
            ("/telemetry", "on") => self.telemetry = true,
            ("/telemetry", "off") => self.telemetry = false,
            ("/telemetry", _) => out.notice(if self.telemetry { "telemetry is on" } else { "telemetry is off" })?,
            ("/history", count) => self.history.show(count.parse().unwrap_or(SHOWN), out)?,
            (name, text) => {
                let own = name.strip_prefix('/').and_then(|name| self.profile.command(name, text));
                match (own, self.history.at(line)) {
                    (Some(wanted), _) => self.run(line, wanted?, lines, out).await?,
                    (None, _) if name.starts_with('/') => {
                        out.notice(format_args!("there is no {}; /help lists what there is", one_line(name, 40)))?;
                    }
                    (None, Some(again)) => Box::pin(self.take(&again, lines, out)).await.map(drop)?,
                    (None, None) => self.run(line, self.profile.line(line)?, lines, out).await?,
                }
            }
        }
        Ok(false)
    }

    fn help(&self, out: &mut Output) -> Result<(), Failure> {
        out.notice(HELP)?;
        for command in &self.profile.0.custom_commands {
            let about = one_line(command.description.as_deref().unwrap_or_default(), 120);
            out.notice(format!("  /{:22} {about}", one_line(&command.name, 40)).trim_end())?;
        }
        Ok(())
    }

    fn choose(&mut self, name: &str) -> Result<(), Failure> {
        let found = self.profiles.iter().find(|profile| profile.id() == name);
        let known = || self.profiles.iter().map(Profile::id).collect::<Vec<_>>().join(", ");
        let found =
            found.ok_or_else(|| Failure::NotFound(format!("there is no profile {name:?}; there are: {}", known())))?;
        self.profile = found.clone();
        self.telemetry = self.profile.0.telemetry_overlays.enabled;
        self.history = History::open(&self.profile.0.session_policies);
        Ok(())
    }

    async fn attach(&mut self, change: &str, out: &mut Output) -> Result<(), Failure> {
        if let Some(path) = change.strip_prefix('+') {
            // One that is not there is noticed now, not when the next line is typed.
            locate::file(&self.desk.client, &self.desk.workspace, path.trim()).await?;
            self.files.push(absolute(path.trim()));
        } else if let Some(path) = change.strip_prefix('-') {
            let path = absolute(path.trim());
            self.files.retain(|file| *file != path);
        }
        for file in &self.files {
            out.notice(one_line(file, 4096))?;
        }
        if self.files.is_empty() {
            out.notice("no files are attached; /files +PATH attaches one")?;
        }
        Ok(())
    }

    async fn run(&mut self, line: &str, wanted: Wanted, lines: &mut Lines, out: &mut Output) -> Result<(), Failure> {
        self.history.add(line);
        let flow = self.profile.0.default_workflow_id.as_deref().unwrap_or(&self.flow).to_owned();
        let mut body = Map::from_iter([("input".to_owned(), wanted.input)]);
        if let Some(start) = wanted.start {
            body.insert("start".into(), json!(start));
        }
        if wanted.files && !self.files.is_empty() {
            body.insert("files".into(), self.desk.file_ids(&self.files).await?);
        }
        let accepted = self.desk.client.post(&self.desk.at(&["flows", &flow, "tasks"]), &body.into()).await?;
        let task = text(&accepted, "task_id").to_owned();
        let (client, workspace) = (self.desk.client.clone(), self.desk.workspace.clone());
        let watch = Watch::new(client, workspace, task.clone(), Some(0), Manner::Runner, out)?;
        let ended = watch.quietly(!self.telemetry).until_end(lines, out).await?;
        self.last = ended.exit;
        ended.print(out)?;
        if self.telemetry && !out.is_json() {
            let view = self.desk.client.get(&self.desk.at(&["tasks", &task]), &[]).await?;
            out.notice(figures(&view))?;
        }
        Ok(())
    }
}

/// What a task used, in a line.
fn figures(task: &Value) -> String {
    let mut figures = format!("task {}, {} stages", text(task, "task_id"), number(task, "steps"));
    let usage = task.get("usage").unwrap_or(&Value::Null);
    let tokens = number(usage, "input_tokens") + number(usage, "output_tokens");
    if tokens > 0 {
        figures.push_str(&format!(", {tokens} tokens"));
    }
    let cost = usage.get("cost_usd").and_then(Value::as_f64).unwrap_or_default();
    if cost > 0.0 {
        figures.push_str(&format!(", ${cost:.4}"));
    }
    figures
}
