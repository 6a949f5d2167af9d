//! The activity of the actors of this process: steps, turns and how long they took, calls of models and of tools, tasks. It
//! follows the commits of chats and tasks alike, of all callers; the usage of single flows is counted by
//! [`telemetry::TaskMetrics`], as their manifests say.

mod turns;

use actor::{ActorId, Entry, EntryObserver, Machine};
use async_trait::async_trait;
use chat::{ChatMachine, ChatState};
use domain::{ChatEvent, Status, TaskEvent, Usage};
use engine::TaskMachine;
use parking_lot::Mutex;
use std::{collections::BTreeMap, fmt::Write as _};
use turns::TurnDurations;

/// Something that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Steps,
    Turns,
    Calls,
    Tokens,
    Tools,
    Tasks,
    Chats,
}

impl Counted {
    /// Its name, its label, and its description.
    const fn about(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Steps => ("buildscale_steps_total", "of", "Entries of logs, but for text that is streamed."),
            Self::Turns => {
                ("buildscale_turns_total", "outcome", "Turns of chats and of agents that ended or began again.")
            }
            Self::Calls => ("buildscale_model_calls_total", "attempt", "Questions to models."),
            Self::Tokens => ("buildscale_model_tokens_total", "direction", "Tokens that models read and wrote."),
            Self::Tools => ("buildscale_tool_calls_total", "outcome", "Answers of tools."),
            Self::Tasks => ("buildscale_task_changes_total", "to", "Tasks that came into a phase or ended."),
            Self::Chats => ("buildscale_chat_changes_total", "to", "Chats that were paused after failures."),
        }
    }
}

/// All series. They are shown from the start of the process: Prometheus sees no increase of a series that begins with 1, so the first task that is
/// put aside would raise no alert.
const SERIES: [(Counted, &str); 21] = [
    (Counted::Steps, ChatMachine::KIND),
    (Counted::Steps, TaskMachine::KIND),
    (Counted::Turns, "again"),
    (Counted::Turns, "done"),
    (Counted::Turns, "failed"),
    (Counted::Turns, "stopped"),
    (Counted::Calls, "again"),
    (Counted::Calls, "first"),
    (Counted::Tokens, "cached"),
    (Counted::Tokens, "input"),
    (Counted::Tokens, "output"),
    (Counted::Tools, "failure"),
    (Counted::Tools, "success"),
    (Counted::Tasks, "begun"),
    (Counted::Tasks, "failed"),
    (Counted::Tasks, "parked"),
    (Counted::Tasks, "partial"),
    (Counted::Tasks, "paused"),
    (Counted::Tasks, "succeeded"),
    (Counted::Tasks, "suspended"),
    (Counted::Chats, "paused"),
];

/// The counters, since this process began.
#[derive(Debug)]
pub struct Activity {
    counts: Mutex<BTreeMap<(Counted, &'static str), u64>>,
    turns: TurnDurations,
}

impl Default for Activity {
    fn default() -> Self {
        let counts = SERIES.into_iter().map(|series| (series, 0)).collect();
        Self { counts: Mutex::new(counts), turns: TurnDurations::default() }
    }
}

impl Activity {
    /// Appends them in Prometheus' text format.
    pub fn render(&self, out: &mut String) {
        let mut before = None;
        for ((counted, value), count) in self.counts.lock().iter() {
            let (name, label, help) = counted.about();
            // Writing to a string cannot fail.
            if before.replace(*counted) != Some(*counted) {
                let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
            }
            let _ = writeln!(out, "{name}{{{label}=\"{value}\"}} {count}");
        }
        self.turns.render(out);
    }

    fn count(&self, counted: Counted, value: &'static str, more: u64) {
        if more > 0 {
            *self.counts.lock().entry((counted, value)).or_default() += more;
        }
    }

    fn used(&self, usage: &Usage) {
        self.count(Counted::Tokens, "input", usage.input_tokens);
        self.count(Counted::Tokens, "output", usage.output_tokens);
        self.count(Counted::Tokens, "cached", usage.cached_tokens);
    }

    fn of_chat(&self, event: &ChatEvent) {
        match event {
            ChatEvent::TurnStarted { attempt, .. } if *attempt > 1 => self.count(Counted::Turns, "again", 1),
            ChatEvent::ModelStarted { attempt, .. } => {
                self.count(Counted::Calls, if *attempt > 1 { "again" } else { "first" }, 1);
            }
            ChatEvent::Used { usage, .. } => self.used(usage),
            ChatEvent::Observed { success, .. } => self.count(Counted::Tools, outcome(*success), 1),
            ChatEvent::Paused { .. } => self.count(Counted::Chats, "paused", 1),
            _ => {
                if let Some((_, outcome, _)) = turns::ended(event) {
                    self.count(Counted::Turns, outcome, 1);
                }
            }
        }
    }

    /// The work of tasks' agents is counted in their chats.
    fn of_task(&self, event: &TaskEvent) {
        match event {
            TaskEvent::ToolUsed { used, .. } => {
                self.count(Counted::Tools, outcome(used.status != Status::Failure), 1);
            }
            TaskEvent::Created { .. } => self.count(Counted::Tasks, "begun", 1),
            TaskEvent::Asked { .. } | TaskEvent::AgentAsked { .. } => self.count(Counted::Tasks, "suspended", 1),
            TaskEvent::PausedBefore { .. } => self.count(Counted::Tasks, "paused", 1),
            TaskEvent::Parked { .. } => self.count(Counted::Tasks, "parked", 1),
            TaskEvent::Finished { status, .. } => {
                let to = match status {
                    Status::Success => "succeeded",
                    Status::Failure => "failed",
                    Status::Partial => "partial",
                };
                self.count(Counted::Tasks, to, 1);
            }
            _ => {}
        }
    }
}

fn outcome(success: bool) -> &'static str {
    if success { "success" } else { "failure" }
}

#[async_trait]
impl EntryObserver<ChatMachine> for Activity {
    async fn loaded(&self, actor: &ActorId, state: &ChatState) {
        self.turns.note(actor, state);
    }

    async fn committed(&self, actor: &ActorId, state: &ChatState, entry: &Entry<ChatEvent>) {
        self.count(Counted::Steps, ChatMachine::KIND, 1);
        entry.events.iter().for_each(|event| self.of_chat(event));
        self.turns.committed(actor, state, entry);
    }
}

#[async_trait]
impl EntryObserver<TaskMachine> for Activity {
    async fn committed(&self, _: &ActorId, _: &<TaskMachine as Machine>::State, entry: &Entry<TaskEvent>) {
        self.count(Counted::Steps, TaskMachine::KIND, 1);
        entry.events.iter().for_each(|event| self.of_task(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_there_before_anything_is_counted() {
        let activity = Activity::default();
        let shown = || {
            let mut out = String::new();
            activity.render(&mut out);
            out
        };
        let series = |out: &str| out.lines().filter(|line| !line.starts_with('#')).count();
        let before = shown();
        assert!(before.contains("buildscale_task_changes_total{to=\"parked\"} 0\n"), "{before}");
        assert!(before.contains("buildscale_chat_changes_total{to=\"paused\"} 0\n"), "{before}");
        for (counted, value) in SERIES {
            activity.count(counted, value, 1);
        }
        let after = shown();
        assert!(after.contains("buildscale_task_changes_total{to=\"parked\"} 1\n"), "{after}");
        assert_eq!(series(&after), series(&before));
    }

    #[test]
    fn a_chat_that_is_paused_is_counted() {
        let activity = Activity::default();
        let at = domain::Timestamp::from_millis(1);
        activity.of_chat(&ChatEvent::Paused { reason: "its tool is gone".into(), at });
        activity.of_chat(&ChatEvent::Unpaused { at });
        let mut out = String::new();
        activity.render(&mut out);
        assert!(out.contains("buildscale_chat_changes_total{to=\"paused\"} 1\n"), "{out}");
    }
}
