//! Threads that are tasks of flows, and their runs.

use super::{
    Mode,
    chat::asked as asked_in_a_chat,
    frames::{Form, Out},
    ids::RunId,
    state::{History, Point, RunState, Status, Values},
};
use crate::{Frame, Projection};
use domain::{Code, Error, TaskEvent, TaskId, Timestamp, task, task_native};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};

/// The fold of a task's log into the states of its thread. A run ends at a question, at a breakpoint, and with the task.
#[derive(Clone, Debug)]
pub struct TaskThread {
    history: History,
    run: RunId,
    /// The node that a person has to answer, or to let go on.
    waits: Option<String>,
    /// Whether it is the agent of the node that waits for people.
    is_agent: bool,
    /// The number of the event that ended the last pause after failures; 0 before any.
    resumed: u64,
}

impl TaskThread {
    /// Of this task.
    pub fn of(task: TaskId) -> Self {
        let (history, run) = (History::default(), RunId { of: task.0, number: 0 });
        Self { history, run, waits: None, is_agent: false, resumed: 0 }
    }

    /// The states so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The number of the event that ended the last pause after failures, 0 where there was none: all of them before it have ended.
    pub fn resumed(&self) -> u64 {
        self.resumed
    }

    /// The node that a person has to answer, or to let go on.
    pub fn waits(&self) -> Option<&str> {
        self.waits.as_deref()
    }

    /// Whether the agent of a node waits for people, and not the node itself.
    pub fn is_agent(&self) -> bool {
        self.is_agent
    }

    /// Takes in the next event; tells whether there is a new checkpoint.
    pub fn take_in(&mut self, number: u64, at: Timestamp, event: &TaskEvent) -> bool {
        let before = self.history.points.len();
        match event {
            TaskEvent::Created { config } => {
                self.begin(at);
                self.point((number, at), "input", as_state(&config.input), vec![config.start.to_string()]);
            }
            TaskEvent::NodeFinished { node, status, output, .. } if *status != task::Status::Failure => {
                self.goes_on(node.0.as_ref(), at);
                self.point((number, at), "loop", as_state(output), Vec::new());
            }
            TaskEvent::Routed { to, .. } => {
                if let Some(point) = self.history.points.last_mut() {
                    point.next = vec![to.to_string()];
                }
            }
            TaskEvent::Asked { node, question_id, questions, .. } => {
                let text = questions.iter().map(|one| one.question.as_str()).collect::<Vec<_>>().join("\n");
                let value = json!({ "type": "question", "question": text, "questions": questions, "node": node });
                let interrupt =
                    json!({ "id": question_id, "value": value, "when": "during", "resumable": true, "ns": [node] });
                self.interrupt((number, at), node.0.as_ref(), Some(interrupt));
            }
            TaskEvent::AgentWaits { node, asked, .. } => {
                self.agent_goes_on((number, at), node.0.as_ref());
                if let Some((_, mut interrupt)) = asked.as_deref().and_then(asked_in_a_chat) {
                    interrupt["ns"] = json!([node]);
                    interrupt["value"]["node"] = json!(node);
                    self.interrupt((number, at), node.0.as_ref(), Some(interrupt));
                    self.is_agent = true;
                }
            }
            TaskEvent::AgentReplied { node, .. } => self.agent_goes_on((number, at), node.0.as_ref()),
            TaskEvent::PausedBefore { node, .. } => self.interrupt((number, at), node.0.as_ref(), None),
            TaskEvent::Answered { node, .. } => self.goes_on(node.0.as_ref(), at),
            TaskEvent::Continued { .. } => {
                if let Some(node) = self.waits.clone() {
                    self.goes_on(&node, at);
                }
            }
            TaskEvent::Finished { status, output, error, .. } => {
                let error = failure(*status, error.as_ref());
                let values = if output.is_null() { self.history.values() } else { as_state(output) };
                self.point((number, at), "loop", values, Vec::new());
                if let (Some(error), Some(point)) = (&error, self.history.points.last_mut()) {
                    point.error = Some(json!({ "error": error.code, "message": error.message }).to_string());
                }
                self.close(at, over(error.as_ref()));
                (self.waits, self.is_agent) = (None, false);
            }
            TaskEvent::Parked { .. } => self.close(at, Status::Error),
            TaskEvent::Unparked { .. } => {
                self.resumed = number;
                if let Some(run) = self.history.runs.last_mut() {
                    run.status = Status::Running;
                }
            }
            _ => {}
        }
        self.history.points.len() > before
    }

    fn begin(&mut self, at: Timestamp) {
        let run = RunState { id: self.run, status: Status::Running, created_at: at, updated_at: at };
        self.history.runs.push(run);
    }

    fn goes_on(&mut self, node: &str, at: Timestamp) {
        if self.waits.take_if(|waits| waits == node).is_some() {
            self.begin(at);
        }
    }

    /// The agent of a node has its answer, and no interrupt is open any more.
    fn agent_goes_on(&mut self, (number, at): (u64, Timestamp), node: &str) {
        if std::mem::take(&mut self.is_agent) {
            self.goes_on(node, at);
            self.point((number, at), "loop", self.history.values(), vec![node.to_owned()]);
        }
    }

    fn close(&mut self, at: Timestamp, status: Status) {
        if let Some(run) = self.history.runs.last_mut().filter(|run| !run.status.is_over()) {
            (run.status, run.updated_at) = (status, at);
        }
    }

    fn interrupt(&mut self, (number, at): (u64, Timestamp), node: &str, interrupt: Option<Value>) {
        self.point((number, at), "loop", self.history.values(), vec![node.to_owned()]);
        if let Some(point) = self.history.points.last_mut() {
            point.interrupts.extend(interrupt);
        }
        self.close(at, Status::Interrupted);
        self.waits = Some(node.to_owned());
        self.run.number = self.run.number.saturating_add(1);
    }

    fn point(&mut self, (number, at): (u64, Timestamp), source: &'static str, values: Value, next: Vec<String>) {
        let size = values.to_string().len();
        let (run, values) = (self.run, Values::Whole(values));
        self.history.points.push(Point {
            number,
            at,
            run,
            source,
            values,
            next,
            interrupts: Vec::new(),
            error: None,
            size,
        });
    }
}

/// A value as a state, which is an object.
fn as_state(output: &Value) -> Value {
    match output {
        Value::Object(_) => output.clone(),
        Value::Null => json!({}),
        other => json!({ "output": other }),
    }
}

fn failure(status: task::Status, error: Option<&Error>) -> Option<Error> {
    match (status, error) {
        (_, Some(error)) => Some(error.clone()),
        (task::Status::Failure, None) => Some(Error::new(Code::Unprocessable, "the task failed")),
        _ => None,
    }
}

/// The state of a run whose task is over; a stop is no failure.
fn over(error: Option<&Error>) -> Status {
    match error {
        None => Status::Success,
        Some(error) if error.code == Code::Cancelled => Status::Interrupted,
        Some(_) => Status::Error,
    }
}

/// The view of a stretch of a task as a run.
#[derive(Debug)]
pub struct TaskRun {
    form: Arc<Form>,
    course: TaskThread,
    step: u32,
    /// Pauses before the event with this number have ended.
    resumed: u64,
    over: bool,
}

impl TaskRun {
    /// The view of this run in these modes, under the client's id of the thread; without modes that of its last values alone.
    pub fn new(run: RunId, thread: String, graph: String, modes: Option<Vec<Mode>>) -> Self {
        let form = Arc::new(Form { thread, run, graph, modes: modes.map(BTreeSet::from_iter) });
        Self { form, course: TaskThread::of(TaskId(run.of)), step: 0, resumed: 0, over: false }
    }

    /// The same view, which the pauses after failures before the event `resumed` do not end: the run went on behind them.
    #[must_use]
    pub fn after_pauses(self, resumed: u64) -> Self {
        Self { resumed, ..self }
    }

    fn end(&mut self, status: Status, error: Option<&Error>, out: &mut Out<'_>) {
        self.over = true;
        out.end(status, error, self.course.history.interrupted());
    }
}

impl Projection for TaskRun {
    type Event = TaskEvent;

    fn take_in(&mut self, number: u64, at: Timestamp, event: &TaskEvent, frames: &mut Vec<Frame>) {
        let before = self.course.run;
        let is_new = self.course.take_in(number, at, event);
        self.step += u32::from(is_new);
        let form = self.form.clone();
        let mut out = Out { form: &form, step: self.step, number, frames };
        let begins = self.course.run == form.run && (before != form.run || matches!(event, TaskEvent::Created { .. }));
        if begins {
            out.begin();
            return out.values(|| self.course.history.values());
        }
        if before != form.run {
            return;
        }
        match event {
            TaskEvent::NodeFinished { node, output, .. } => out.update(&node.0, || output.clone()),
            _ => {
                if let Some((name, mut data)) = task_native::encode(event).filter(|_| out.wants(Mode::Custom)) {
                    data["type"] = json!(name);
                    out.custom(|| data);
                }
            }
        }
        let history = &self.course.history;
        match event {
            TaskEvent::Asked { .. } | TaskEvent::PausedBefore { .. } | TaskEvent::AgentWaits { asked: Some(_), .. } => {
                out.update("__interrupt__", || json!(history.interrupts()));
                out.values(|| history.interrupted());
                self.end(Status::Interrupted, None, &mut out);
            }
            TaskEvent::Finished { status, error, .. } => {
                out.values(|| history.values());
                let error = failure(*status, error.as_ref());
                let status = over(error.as_ref());
                self.end(status, error.as_ref().filter(|error| error.code != Code::Cancelled), &mut out);
            }
            TaskEvent::Parked { reason, .. } if number >= self.resumed => {
                let error = Error::new(Code::Paused, format!("the task is paused: {reason}"));
                self.end(Status::Error, Some(&error), &mut out);
            }
            _ if is_new => out.values(|| history.values()),
            _ => {}
        }
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn ends_with_its_stream(&self) -> bool {
        self.form.modes.is_some()
    }
}
