//! The states of a thread, one at each checkpoint, and its runs.

use super::{
    ids::{RunId, checkpoint_id},
    messages,
};
use domain::{MessageId, Timestamp};
use serde_json::{Map, Value, json};

/// The states of a run, by their names in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Accepted, not begun.
    Pending,
    /// It runs.
    Running,
    /// It ended by itself.
    Success,
    /// It failed, or reached a limit.
    Error,
    /// It reached the limit of time.
    Timeout,
    /// It waits for a person, or was stopped.
    Interrupted,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::Interrupted, Self::Success, Self::Error, Self::Timeout];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Success => "success",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether nothing more of the run comes.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// A run as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunState {
    /// The run.
    pub id: RunId,
    /// Its state.
    pub status: Status,
    /// When it began.
    pub created_at: Timestamp,
    /// When it ended, or began.
    pub updated_at: Timestamp,
}

/// A run, as clients see it.
pub fn run(run: &RunState, thread: &str, assistant: &str) -> Value {
    json!({
        "run_id": run.id.to_string(), "thread_id": thread, "assistant_id": assistant, "status": run.status.name(),
        "created_at": run.created_at, "updated_at": run.updated_at, "metadata": {}, "kwargs": {},
        "multitask_strategy": null,
    })
}

/// The values at a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    /// So many messages of the thread.
    Messages(usize),
    /// These.
    Whole(Value),
}

/// A checkpoint.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub number: u64,
    pub at: Timestamp,
    pub run: RunId,
    /// `input`, or `loop`.
    pub source: &'static str,
    pub values: Values,
    /// The nodes that come next.
    pub next: Vec<String>,
    pub interrupts: Vec<Value>,
    pub error: Option<String>,
    /// The length of its values as text, in bytes.
    pub size: usize,
}

/// The states that are shown at once have so many bytes in all, if there are several.
const MAX_STATES: usize = 16 << 20;

/// The messages, states and runs of a thread, as far as its log was folded.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(super) messages: Vec<Value>,
    /// The message that is being written, and its words so far.
    pub(super) writing: Option<(MessageId, String)>,
    pub(super) points: Vec<Point>,
    pub(super) runs: Vec<RunState>,
}

impl History {
    /// The runs, the oldest first.
    pub fn runs(&self) -> &[RunState] {
        &self.runs
    }

    /// A run.
    pub fn run(&self, id: RunId) -> Option<&RunState> {
        self.runs.iter().find(|run| run.id == id)
    }

    /// The number of the event that the last checkpoint is at; none before the first one.
    pub fn last_checkpoint(&self) -> Option<u64> {
        self.points.last().map(|point| point.number)
    }

    /// The values now.
    pub fn values(&self) -> Value {
        self.points.len().checked_sub(1).map_or_else(|| json!({}), |last| self.values_at(last))
    }

    /// The values now, with what a person has to decide.
    pub(super) fn interrupted(&self) -> Value {
        let mut values = self.values();
        if let Some(point) = self.points.last().filter(|point| !point.interrupts.is_empty()) {
            values["__interrupt__"] = json!(point.interrupts);
        }
        values
    }

    /// The open questions and requests for permission.
    pub fn interrupts(&self) -> &[Value] {
        self.points.last().map_or(&[], |point| &point.interrupts)
    }

    /// The interrupts by the tasks that they are of, as a thread has them.
    pub fn interrupts_of_tasks(&self) -> Value {
        let mut all = Map::new();
        if let Some(point) = self.points.last().filter(|point| !point.interrupts.is_empty()) {
            all.insert(task_id(point), json!(point.interrupts));
        }
        Value::Object(all)
    }

    /// The values at a checkpoint. Those of the last one have the words so far of the message that is being written: a client that stops a run
    /// reads the state before the stop is carried out, and shows that.
    fn values_at(&self, place: usize) -> Value {
        let count = match &self.points[place].values {
            Values::Messages(count) => *count,
            Values::Whole(values) => return values.clone(),
        };
        let writing = self.writing.as_ref().filter(|_| place + 1 == self.points.len());
        let written = writing.map(|(id, words)| messages::ai(*id, words, "", &[]));
        let shown = self.messages.get(..count).unwrap_or_default().iter().cloned().chain(written);
        Value::Object(Map::from_iter([("messages".to_owned(), shown.collect())]))
    }

    /// The state as it was at the event with this number, or is now; before the first checkpoint an empty one.
    pub fn state(&self, thread: &str, at: Option<u64>) -> Value {
        let until = at.map_or(self.points.len(), |at| self.points.partition_point(|point| point.number <= at));
        until.checked_sub(1).map_or_else(empty, |place| self.rendered(thread, place))
    }

    /// The states, the newest first: at most `limit`, of 16 MiB in all if they are several, and those before the checkpoint `before` alone.
    pub fn states(&self, thread: &str, limit: usize, before: Option<u64>) -> Vec<Value> {
        let places = (0..self.points.len()).rev();
        let older = places.filter(|place| before.is_none_or(|before| self.points[*place].number < before));
        let (mut states, mut size) = (Vec::new(), 0);
        for place in older.take(limit) {
            size += self.points[place].size;
            if size > MAX_STATES && !states.is_empty() {
                break;
            }
            states.push(self.rendered(thread, place));
        }
        states
    }

    fn rendered(&self, thread: &str, place: usize) -> Value {
        let point = &self.points[place];
        let checkpoint = |number: u64| {
            json!({
                "thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint_id(number), "checkpoint_map": null,
            })
        };
        let parent = place.checked_sub(1).map(|before| checkpoint(self.points[before].number));
        let names = match (&point.error, &point.next[..]) {
            (Some(_), []) => vec!["agent".to_owned()],
            (_, next) => next.to_vec(),
        };
        let task = |name: &String| {
            json!({
                "id": task_id(point), "name": name, "error": point.error, "interrupts": point.interrupts,
                "checkpoint": null, "state": null, "result": null,
            })
        };
        json!({
            "values": self.values_at(place), "next": point.next, "checkpoint": checkpoint(point.number),
            "metadata": { "source": point.source, "step": place, "parents": {}, "run_id": point.run.to_string() },
            "created_at": point.at, "parent_checkpoint": parent,
            "tasks": names.iter().map(task).collect::<Vec<_>>(),
            "interrupts": point.interrupts,
        })
    }
}

fn task_id(point: &Point) -> String {
    format!("{}:{}", point.run, point.number)
}

fn empty() -> Value {
    json!({
        "values": {}, "next": [], "checkpoint": null, "metadata": {}, "created_at": null, "parent_checkpoint": null,
        "tasks": [], "interrupts": [],
    })
}
