//! `buildscale flow repl`: every line is one task.

use super::{
    Desk,
    profiles::{LineRequest, Profile},
};
use crate::{
    editor::{Terminal, Typed, Words},
    failure::{CliError, Exit},
    history::History,
    input::Lines,
    locate::{self, absolute},
    output::{Look, Output, counted, one_line},
    tasks::{Watch, WatchMode},
    value::{list, number, text},
};
use futures::FutureExt;
use serde_json::{Map, Value, json};
use std::{
    io::{self, IsTerminal},
    sync::Arc,
};
use tokio::signal::unix::{SignalKind, signal};

const HELP: &str = "Each line is the input of one task: JSON, or a text.
  /files                  the attached files; /files +PATH attaches one, /files -PATH takes it away
  /flow [NAME]            the flow, or changes to another one, with its profiles
  /profile [NAME]         the profiles, or changes to one
  /history [N]            the last lines; !N runs one again
  /telemetry on|off       whether stages and figures are shown
  /quit                   leaves, as Ctrl-D does. Ctrl-C stops the task that runs";
/// The commands of every profile; the words that may follow are in [`Repl::look_around`].
const COMMANDS: [&str; 8] = ["/files", "/flow", "/profile", "/history", "/telemetry", "/help", "/quit", "/exit"];
/// Lines of the history that are shown when no number is given.
const SHOWN: usize = 20;

impl Desk {
    /// Runs a task a line, until there are no more.
    pub(super) async fn repl(self, flow: String, wanted: Option<String>, out: &mut Output) -> Result<Exit, CliError> {
        let flow = self.name_of(&flow, out).await?;
        let profiles = self.profiles(&flow).await?;
        let mut repl = Repl::new(self, flow, profiles);
        if let Some(wanted) = wanted {
            repl.choose(&wanted)?;
        }
        let terminal = io::stdin().is_terminal();
        let mut lines = Lines::default();
        if terminal {
            out.notice("Each line is one task. (/help)")?;
            // Without an editor, lines are read as they come.
            let editor = if out.is_live() { Terminal::open() } else { None };
            lines = editor.map_or(lines, Lines::of);
            repl.look_around().await;
            repl.recall(&lines);
        }
        let mut interrupts = signal(SignalKind::interrupt())?;
        loop {
            let prompt = format!("{}> ", one_line(repl.profile.id(), 40));
            let painted = out.err_style().paint(Look::Ask, &prompt);
            out.flush()?;
            if terminal && lines.terminal().is_none() {
                out.prompt(&prompt)?;
            }
            let typed = tokio::select! {
                typed = lines.edit((prompt, painted), &repl.words) => typed,
                _ = interrupts.recv() => Typed::Interrupted,
            };
            let line = match typed {
                Typed::Line(line) => line,
                Typed::Interrupted if terminal => {
                    out.notice("(Ctrl-D leaves)")?;
                    continue;
                }
                Typed::Interrupted => return Err(CliError::Interrupted),
                Typed::End => break,
            };
            let taken = repl.take(line.trim(), &mut lines, out).await;
            // One that came while a task ran was for the task.
            while interrupts.recv().now_or_never().is_some() {}
            match taken {
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
    async fn profiles(&self, flow: &str) -> Result<Vec<Profile>, CliError> {
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
    /// The flows of the workspace, as far as they are known.
    flows: Vec<String>,
    /// The words that can be completed.
    words: Arc<Words>,
    /// How the last task ended.
    last: Exit,
}

impl Repl {
    fn new(desk: Desk, flow: String, profiles: Vec<Profile>) -> Self {
        let profile = profiles.first().cloned().unwrap_or_else(Profile::plain);
        let (telemetry, history) = (profile.0.telemetry_overlays.enabled, History::open(&profile.0.session_policies));
        let (files, flows, words) = (Vec::new(), Vec::new(), Arc::default());
        Self { desk, flow, profiles, profile, telemetry, files, history, flows, words, last: Exit::Done }
    }

    /// Learns which flows there are, for completion; without them everything works as well.
    async fn look_around(&mut self) {
        if let Ok(answer) = self.desk.client.get(&self.desk.at(&["flows"]), &[]).await {
            self.flows = list(&answer, "flows").iter().map(|flow| text(flow, "name").to_owned()).collect();
        }
        self.know_words();
    }

    /// Updates the words that can be completed.
    fn know_words(&mut self) {
        let profiles: Vec<String> = self.profiles.iter().map(|profile| profile.id().to_owned()).collect();
        let after = |command: &str| match command {
            "/flow" => self.flows.clone(),
            "/profile" => profiles.clone(),
            "/telemetry" => vec!["on".to_owned(), "off".to_owned()],
            "/files" => self.files.iter().map(|file| format!("-{file}")).collect(),
            _ => Vec::new(),
        };
        let own = self.profile.0.custom_commands.iter();
        let own = own.flat_map(|command| std::iter::once(&command.name).chain(&command.aliases));
        let words = COMMANDS.map(|command| (command.to_owned(), after(command))).into_iter();
        self.words = Arc::new(Words(words.chain(own.map(|name| (format!("/{name}"), Vec::new()))).collect()));
    }

    /// Lets the lines of the profile's history be recalled on this terminal.
    fn recall(&self, lines: &Lines) {
        if let Some(terminal) = lines.terminal() {
            terminal.recall(self.history.lines().to_vec());
        }
    }

    /// Takes a line; true when it says to leave.
    async fn take(&mut self, line: &str, lines: &mut Lines, out: &mut Output) -> Result<bool, CliError> {
        let (command, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (command, rest.trim()) {
            ("", _) => {}
            ("/quit" | "/exit", _) => return Ok(true),
            ("/help", _) => self.help(out)?,
            ("/files", change) => {
                self.attach(change, out).await?;
                self.know_words();
            }
            ("/flow", "") => out.notice(one_line(&self.flow, 60))?,
            ("/flow", name) => {
                self.profiles = self.desk.profiles(name).await?;
                self.flow = name.to_owned();
                let first = self.profiles.first().map(|profile| profile.id().to_owned()).unwrap_or_default();
                self.choose(&first)?;
                self.recall(lines);
            }
            ("/profile", "") => {
                for profile in &self.profiles {
                    let mark = if profile.id() == self.profile.id() { "*" } else { " " };
                    out.notice(format_args!("{mark} {}", one_line(profile.id(), 60)))?;
                }
            }
            ("/profile", name) => {
                self.choose(name)?;
                self.recall(lines);
            }
            ("/telemetry", "on") => self.telemetry = true,
            ("/telemetry", "off") => self.telemetry = false,
            ("/telemetry", _) => out.notice(if self.telemetry { "telemetry is on" } else { "telemetry is off" })?,
            ("/history", count) => self.history.show(count.parse().unwrap_or(SHOWN), out)?,
            (name, text) => {
                let own = name.strip_prefix('/').and_then(|name| self.profile.command(name, text));
                match (own, self.history.at(line)) {
                    (Some(wanted), _) => self.run(line, wanted?, lines, out).await?,
                    (None, _) if name.starts_with('/') => {
                        out.notice(format_args!("there is no {}; /help lists all commands", one_line(name, 40)))?;
                    }
                    (None, Some(again)) => Box::pin(self.take(&again, lines, out)).await.map(drop)?,
                    (None, None) => self.run(line, self.profile.line(line)?, lines, out).await?,
                }
            }
        }
        Ok(false)
    }

    fn help(&self, out: &mut Output) -> Result<(), CliError> {
        out.notice(HELP)?;
        for command in &self.profile.0.custom_commands {
            let about = one_line(Profile::about(command), 120);
            out.notice(format!("  /{:22} {about}", one_line(&command.name, 40)).trim_end())?;
        }
        Ok(())
    }

    fn choose(&mut self, name: &str) -> Result<(), CliError> {
        let found = self.profiles.iter().find(|profile| profile.id() == name);
        let known = || self.profiles.iter().map(Profile::id).collect::<Vec<_>>().join(", ");
        let found =
            found.ok_or_else(|| CliError::NotFound(format!("there is no profile {name:?}; there are: {}", known())))?;
        self.profile = found.clone();
        self.telemetry = self.profile.0.telemetry_overlays.enabled;
        self.history = History::open(&self.profile.0.session_policies);
        self.know_words();
        Ok(())
    }

    async fn attach(&mut self, change: &str, out: &mut Output) -> Result<(), CliError> {
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

    async fn run(
        &mut self,
        line: &str,
        wanted: LineRequest,
        lines: &mut Lines,
        out: &mut Output,
    ) -> Result<(), CliError> {
        self.history.add(line);
        let flow = self.profile.flow(&self.flow).to_owned();
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
        let watch = Watch::new(client, workspace, task.clone(), Some(0), WatchMode::Runner, out)?;
        let watch = watch.quietly(!self.telemetry || self.profile.is_brief()).saying(self.profile.events());
        let ended = watch.until_end(lines, out).await?;
        self.last = ended.exit;
        ended.print(out)?;
        if self.telemetry && !out.is_json() {
            let view = self.desk.client.get(&self.desk.at(&["tasks", &task]), &[]).await?;
            out.notice(figures(&view))?;
        }
        Ok(())
    }
}

/// The usage of a task, in a line.
fn figures(task: &Value) -> String {
    let mut figures = format!("task {}, {}", text(task, "task_id"), counted(number(task, "steps"), "stage"));
    let usage = task.get("usage").unwrap_or(&Value::Null);
    let tokens = number(usage, "input_tokens") + number(usage, "output_tokens");
    if tokens > 0 {
        figures.push_str(&format!(", {}", counted(tokens, "token")));
    }
    let cost = usage.get("cost_usd").and_then(Value::as_f64).unwrap_or_default();
    if cost > 0.0 {
        figures.push_str(&format!(", ${cost:.4}"));
    }
    figures
}
