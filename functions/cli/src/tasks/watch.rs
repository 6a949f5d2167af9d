//! Follows a task to its end: shows its progress, asks its questions, and stops it at Ctrl-C.

use super::{
    look_of,
    progress::{Progress, reason},
    took,
    waiting::{Waiting, asked_in, only_waits},
};
use crate::{
    asks::Ask,
    client::Client,
    failure::{CliError, Exit},
    follow::{Event, Follower, FollowerNews},
    input::{Lines, unless_interrupted},
    output::{Look, Output, clean, one_line},
    value::{list, text},
};
use domain::Timestamp;
use flow::policy::is_like;
use serde_json::{Value, json};
use std::{
    collections::{HashSet, VecDeque},
    io::{self, IsTerminal},
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, Interval, MissedTickBehavior, interval},
};

/// A second Ctrl-C within this time leaves.
const TWICE: Duration = Duration::from_secs(1);
/// How long a hub is waited for that went away.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the line that moves is drawn.
const FRAME: Duration = Duration::from_millis(200);
/// How often clones and subtasks are looked at that may wait for a person: their events are not the task's.
const LOOK: Duration = Duration::from_secs(5);
/// The same for a client that leaves at a question.
const LOOK_SOON: Duration = Duration::from_secs(1);

/// The kind of watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchMode {
    /// The person who runs it: progress goes to standard error, questions are answered, Ctrl-C stops it.
    Runner,
    /// A person who only watches: progress is the result, Ctrl-C leaves.
    Watcher,
}

/// How a task ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code for scripts.
    pub(crate) exit: Exit,
    /// Its output.
    pub(crate) output: Value,
}

impl Ended {
    /// The output on standard output: a text as it is, everything else as JSON. With `--json` the last event has said it.
    pub(crate) fn print(&self, out: &mut Output) -> Result<(), CliError> {
        match &self.output {
            Value::Null => Ok(()),
            _ if out.is_json() => Ok(()),
            Value::String(text) => out.line(clean(text)),
            other => out.line(clean(&serde_json::to_string_pretty(other).unwrap_or_default())),
        }?;
        out.flush()
    }
}

/// A task that is followed.
pub(crate) struct Watch {
    client: Client,
    workspace: String,
    task: String,
    manner: WatchMode,
    follower: Follower,
    progress: Progress,
    asks: VecDeque<Ask>,
    /// Whether a question is shown and nothing was written after it.
    prompted: bool,
    began: Option<Timestamp>,
    interrupts: Signal,
    last_interrupt: Option<Instant>,
    frames: Interval,
    looks: Interval,
    /// Descendants that were said to wait, and questions.
    said: HashSet<String>,
    /// Whether only errors are told.
    quiet: bool,
    /// The events that are said: patterns with `*`; all when there are none.
    events: Vec<String>,
    /// Whether to leave when all that is left of it waits for people.
    leaves: bool,
    /// Whether something was heard since the clones and subtasks were last looked at.
    heard: bool,
}

impl Watch {
    /// Follows `task` after the event numbered `after`; without it, from its beginning.
    pub(crate) fn new(
        client: Client,
        workspace: String,
        task: String,
        after: Option<u64>,
        manner: WatchMode,
        out: &mut Output,
    ) -> Result<Self, CliError> {
        let patience = (manner == WatchMode::Runner).then_some(PATIENCE);
        let follower = Follower::of_task(client.clone(), &workspace, &task, after, patience);
        out.flush()?;
        // No terminal is there on which subtasks' questions could be answered.
        let leaves = manner == WatchMode::Runner && !io::stdin().is_terminal();
        Ok(Self {
            client,
            workspace,
            task,
            manner,
            follower,
            progress: Progress::default(),
            asks: VecDeque::new(),
            prompted: false,
            began: None,
            interrupts: signal(SignalKind::interrupt())?,
            last_interrupt: None,
            frames: ticks(FRAME),
            looks: ticks(if leaves { LOOK_SOON } else { LOOK }),
            said: HashSet::new(),
            quiet: false,
            events: Vec::new(),
            leaves,
            heard: true,
        })
    }

    /// Follows it only until it waits for a person, if so.
    pub(crate) fn until_it_waits(mut self, leaves: bool) -> Self {
        self.leaves = leaves;
        if leaves {
            self.looks = ticks(LOOK_SOON);
        }
        self
    }

    /// Tells only errors.
    pub(crate) fn quietly(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    /// Tells these events only, and errors: patterns with `*`; all when there are none.
    pub(crate) fn saying(mut self, events: &[String]) -> Self {
        self.events = events.to_vec();
        self
    }

    /// Follows it to its end. `lines` answer its questions.
    pub(crate) async fn until_end(mut self, lines: &mut Lines, out: &mut Output) -> Result<Ended, CliError> {
        let runner = self.manner == WatchMode::Runner;
        loop {
            let listening = runner && !self.asks.is_empty() && !lines.ended();
            if runner && !self.asks.is_empty() && lines.ended() && self.is_asked_still().await? {
                let hint = self.open().iter().map(|open| format!("answer it with: {}", open.command())).next();
                out.problem("the task waits for a person, and standard input has no answer", hint.as_deref())?;
                return Ok(Ended { exit: Exit::Waiting, output: Value::Null });
            }
            let is_news = !runner && self.asks.iter().any(|ask| !self.said.contains(ask.id()));
            if is_news && self.is_asked_still().await? {
                if self.leaves {
                    return leave(&self.open(), out);
                }
                self.said.extend(self.asks.iter().map(|ask| ask.id().to_owned()));
                tell(&self.open(), out)?;
            }
            if listening {
                self.prompt(out)?;
            }
            tokio::select! {
                told = self.follower.next() => match told {
                    FollowerNews::Ended => return self.as_it_ended().await,
                    told => if let Some(ended) = self.hear(told, out)? {
                        return Ok(ended);
                    },
                },
                line = lines.next(), if listening => {
                    if std::mem::take(&mut self.prompted) && line.is_none() {
                        out.prompt("\n")?;
                    }
                    if let Some(line) = line {
                        self.take(&line, out).await?;
                    }
                }
                _ = self.interrupts.recv() => self.interrupt(out).await?,
                _ = self.frames.tick(), if runner && out.is_live() && !self.prompted => {
                    match self.progress.live(out.err_style()) {
                        Some(line) => out.draw(&line)?,
                        None => out.flush()?,
                    }
                }
                _ = self.looks.tick(), if runner || self.leaves => {
                    let asked = self.look(out).await?;
                    if !asked.is_empty() && runner {
                        out.problem("all that is left of the task waits for people", None)?;
                        return Ok(Ended { exit: Exit::Waiting, output: Value::Null });
                    }
                    if !asked.is_empty() {
                        return leave(&asked, out);
                    }
                }
            }
        }
    }

    /// The end of a task whose last event was filtered out.
    async fn as_it_ended(&self) -> Result<Ended, CliError> {
        let view = self.client.get(&["workspaces", &self.workspace, "tasks", &self.task], &[]).await?;
        let was_stopped = text(view.get("error").unwrap_or(&Value::Null), "code") == "CANCELLED";
        let name = if was_stopped { "stopped" } else { "done" };
        let last = Event { number: None, name: name.into(), data: view };
        Ok(ending(&last).unwrap_or(Ended { exit: Exit::Done, output: Value::Null }))
    }

    /// The questions of the task itself.
    fn open(&self) -> Vec<Waiting> {
        self.asks.iter().filter_map(|ask| Waiting::of(&self.task, ask)).collect()
    }

    fn say(&mut self, line: &str, out: &mut Output) -> Result<(), CliError> {
        if std::mem::take(&mut self.prompted) {
            out.prompt("\n")?;
        }
        match self.manner {
            WatchMode::Runner => out.progress(line),
            WatchMode::Watcher => {
                out.words(line)?;
                out.flush()
            }
        }
    }

    fn hear(&mut self, told: FollowerNews, out: &mut Output) -> Result<Option<Ended>, CliError> {
        let event = match told {
            FollowerNews::Event(event) => {
                self.heard = true;
                event
            }
            FollowerNews::Ready | FollowerNews::Ended => return Ok(None),
            FollowerNews::Over(failure) => return Err(failure),
            FollowerNews::Lost(failure) => return out.notice(format_args!("{failure}; trying again")).map(|()| None),
            FollowerNews::Back => return out.notice("the hub is back").map(|()| None),
        };
        if event.name == "task_started" {
            self.began = text(&event.data, "at").parse().ok();
        }
        self.asks.retain(|ask| !ask.is_settled_by(&event));
        self.asks.extend(Ask::of(&event));
        let ended = ending(&event);
        if out.is_json() {
            out.json(&event.json())?;
            return Ok(ended);
        }
        let (live, style) = match self.manner {
            WatchMode::Runner => (out.is_live(), out.err_style()),
            WatchMode::Watcher => (false, out.style()),
        };
        let line = match (&ended, event.name.as_str()) {
            (Some(_), "done" | "stopped") => {
                let since = text(&event.data, "at")
                    .parse()
                    .ok()
                    .zip(self.began)
                    .map(|(at, began): (Timestamp, _)| at.since(began));
                let seconds = since.map(|since| format!(" in {}", took(u64::try_from(since.as_millis()).unwrap_or(0))));
                let status = if event.name == "stopped" { "stopped" } else { text(&event.data, "status") };
                let why = event.data.get("error").map(|error| format!(": {}", reason(error))).unwrap_or_default();
                Some(style.paint(look_of(status), format_args!("{status}{}{why}", seconds.unwrap_or_default())))
            }
            _ => self.progress.event(&event, live, style),
        };
        let wrong = event.name == "error" || ended.as_ref().is_some_and(|ended| ended.exit != Exit::Done);
        let shown = self.events.is_empty() || self.events.iter().any(|pattern| is_like(pattern, &event.name));
        if let Some(line) = line.filter(|_| wrong || (shown && !self.quiet)) {
            self.say(&line, out)?;
        }
        let hint = event.data.get("error").map(|error| one_line(text(error, "hint"), 400)).unwrap_or_default();
        if ended.is_some() && !hint.is_empty() {
            self.say(&style.paint(Look::Dim, format_args!("hint: {hint}")), out)?;
        }
        if event.name == "paused" && self.manner == WatchMode::Runner {
            let task = &self.task;
            let hint = format!("  go on with: buildscale task step {task}, or buildscale task resume {task}");
            self.say(&hint.clone(), out)?;
        }
        Ok(ended)
    }

    /// A question that a joined stream repeats may have been answered long ago.
    async fn is_asked_still(&mut self) -> Result<bool, CliError> {
        let view = self.client.get(&["workspaces", &self.workspace, "tasks", &self.task], &[]).await?;
        let asked = list(&view, "waiting_for");
        let is_open =
            |ask: &Ask| asked.iter().any(|one| text(one.get("data").unwrap_or(one), "question_id") == ask.id());
        self.asks.retain(is_open);
        Ok(!self.asks.is_empty())
    }

    fn prompt(&mut self, out: &mut Output) -> Result<(), CliError> {
        if let (false, Some(ask)) = (self.prompted, self.asks.front()) {
            out.prompt(ask.prompt_text())?;
            out.prompt(ask.prompt())?;
            self.prompted = true;
        }
        Ok(())
    }

    async fn take(&mut self, line: &str, out: &mut Output) -> Result<(), CliError> {
        let Some(ask) = self.asks.front_mut() else { return Ok(()) };
        let reply = match ask.take(line) {
            Err(wrong) => return out.notice(wrong),
            Ok(None) => return Ok(()),
            Ok(Some(reply)) => reply,
        };
        let path = ["workspaces", &self.workspace, "tasks", &self.task, &reply.path[0], &reply.path[1]];
        match unless_interrupted(&mut self.interrupts, self.client.post(&path, &reply.body)).await {
            Ok(_) => drop(self.asks.pop_front()),
            Err(failure) if failure.exit() == Exit::Conflict => {
                self.asks.pop_front();
                out.notice("it was answered already, or was withdrawn")?;
            }
            Err(failure) if failure.exit() == Exit::Usage => {
                ask.reset();
                out.problem(&failure.to_string(), failure.hint().as_deref())?;
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Ctrl-C: stops the task; twice leaves.
    async fn interrupt(&mut self, out: &mut Output) -> Result<(), CliError> {
        let before = self.last_interrupt.replace(Instant::now());
        if self.manner == WatchMode::Watcher || before.is_some_and(|before| before.elapsed() < TWICE) {
            return Err(CliError::Interrupted);
        }
        if std::mem::take(&mut self.prompted) {
            out.prompt("\n")?;
        }
        out.notice("stopping the task (Ctrl-C again leaves)")?;
        let path = ["workspaces", &self.workspace, "tasks", &self.task, "stop"];
        match unless_interrupted(&mut self.interrupts, self.client.post(&path, &json!({}))).await {
            Err(failure) if matches!(failure.exit(), Exit::NotFound | Exit::Conflict) => out.notice("it has ended"),
            result => result.map(drop),
        }
    }

    /// Says once which agents, clones and subtasks wait for a person. Gives them once the task has been still for a while and all that is left of it waits
    /// for people: it is time to leave then. The task's own questions are its stream's.
    async fn look(&mut self, out: &mut Output) -> Result<Vec<Waiting>, CliError> {
        let may_leave = self.leaves && !std::mem::take(&mut self.heard);
        if self.manner == WatchMode::Watcher && !may_leave {
            return Ok(Vec::new());
        }
        // It is only a service: the stream tells when the hub is gone.
        let Ok(all) = asked_in(&self.client, &self.workspace, &self.task).await else { return Ok(Vec::new()) };
        let (own, below): (Vec<_>, Vec<_>) = all.into_iter().partition(|waiting| waiting.is_node_of(&self.task));
        if self.manner == WatchMode::Runner {
            self.notice(&below, out)?;
        }
        if !may_leave || below.is_empty() {
            return Ok(Vec::new());
        }
        let tasks = own.iter().chain(&below).map(|waiting| waiting.task.as_str()).collect();
        let is_still = only_waits(&self.client, &self.workspace, &self.task, &tasks).await.unwrap_or(false);
        Ok(if is_still { below } else { Vec::new() })
    }

    fn notice(&mut self, asked: &[Waiting], out: &mut Output) -> Result<(), CliError> {
        for one in asked {
            if self.said.insert(one.key()) {
                one.lines().iter().try_for_each(|line| out.notice(line))?;
            }
        }
        Ok(())
    }
}

/// Shows the questions, and how to answer. Programs have heard them.
fn tell(asked: &[Waiting], out: &mut Output) -> Result<(), CliError> {
    if !out.is_json() {
        for line in asked.iter().flat_map(Waiting::lines) {
            out.line(out.style().paint(Look::Ask, line))?;
        }
    }
    out.flush()
}

/// Leaves with the questions open, for others to answer.
fn leave(asked: &[Waiting], out: &mut Output) -> Result<Ended, CliError> {
    tell(asked, out)?;
    if out.is_json() {
        asked.iter().try_for_each(|one| out.json(&one.json()))?;
    }
    Ok(Ended { exit: Exit::Waiting, output: Value::Null })
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// How a task ended, if `event` says so.
fn ending(event: &Event) -> Option<Ended> {
    let exit = match (event.name.as_str(), text(&event.data, "status")) {
        ("done", "success") | ("went_up", _) => Exit::Done,
        ("done", "partial") => Exit::Partial,
        ("done", _) => Exit::Failed,
        ("stopped", _) => Exit::Stopped,
        _ => return None,
    };
    Some(Ended { exit, output: event.data.get("output").cloned().unwrap_or(Value::Null) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_their_exit_codes() {
        let check = |name: &str, data, expected: Option<Exit>| {
            let event = Event { number: Some(1), name: name.into(), data };
            assert_eq!(ending(&event).map(|ended| ended.exit), expected, "{event:?}");
        };
        check("done", json!({ "status": "success" }), Some(Exit::Done));
        check("done", json!({ "status": "partial" }), Some(Exit::Partial));
        check("done", json!({ "status": "failure" }), Some(Exit::Failed));
        check("done", json!({ "status": "something new" }), Some(Exit::Failed));
        check("stopped", json!({ "status": "failure" }), Some(Exit::Stopped));
        check("node_finished", json!({ "status": "failure" }), None);
    }
}
