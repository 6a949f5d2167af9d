//! A chat as a screen shows it: the fold of its events, in their order, into items. It knows nothing of terminals.
//!
//! All texts of agents, files and tools are free of control characters from here on.

use crate::{
    asks::Ask,
    chat::changes::FileChanges,
    follow::Event,
    output::{clean, one_line},
    render::words,
    turns,
    value::{list, number, shown, text},
};
use serde_json::Value;
use std::collections::VecDeque;

/// The most items that are kept; the oldest ones go first.
const MOST: usize = 10_000;
/// The longest text in one line.
const LINE: usize = 400;

/// The speaker of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Person,
    Agent,
    System,
}

/// The tone of a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemarkKind {
    Quiet,
    Bad,
    Asking,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    /// Its arguments in a few words.
    pub(crate) about: String,
    /// Its arguments, each with its name.
    pub(crate) args: Vec<(String, String)>,
    /// The end of its output, or the last words of its server, while it runs.
    pub(crate) live: String,
    /// None while it runs.
    pub(crate) result: Option<CallResult>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallResult {
    pub(crate) success: bool,
    /// In one line.
    pub(crate) line: String,
    /// The changed lines of an edit.
    pub(crate) diff: Vec<String>,
    pub(crate) output: String,
}

/// One thing after the other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    /// A message, or the part of it that is there; `id` while it is not complete.
    Said {
        by: Speaker,
        text: String,
        open: Option<String>,
    },
    /// The reasoning before a message, and whether it still comes.
    Thought {
        text: String,
        open: Option<String>,
    },
    Call(Call),
    /// A request for permission, with all arguments that a person decides by.
    Asked {
        tool: String,
        reason: String,
        args: Vec<(String, String)>,
    },
    Remark {
        text: String,
        tone: RemarkKind,
    },
    /// The changes in a file, as lines of a unified diff.
    Diff {
        heading: String,
        lines: Vec<String>,
    },
}

/// A step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) title: String,
    pub(crate) status: Status,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Status {
    #[default]
    Open,
    Working,
    Done,
    Failed,
}

impl Status {
    fn of(word: &str) -> Self {
        match word {
            "done" | "completed" => Self::Done,
            "in_progress" => Self::Working,
            "failed" => Self::Failed,
            _ => Self::Open,
        }
    }
}

/// The chat so far.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) items: Vec<Item>,
    /// How many items went because there were too many.
    pub(crate) dropped: usize,
    /// The number of the last event.
    pub(crate) last: Option<u64>,
    /// A turn runs.
    pub(crate) running: bool,
    /// The reason for which the turn waits.
    pub(crate) waiting: Option<String>,
    /// The reason for which the chat is paused.
    pub(crate) paused: Option<String>,
    /// The open questions and requests for permission, each with the data of its event.
    pub(crate) asks: VecDeque<(Ask, Value)>,
    pub(crate) steps: Vec<Step>,
    /// The plan has changed, and its file has to be read.
    pub(crate) stale_plan: bool,
    /// The files that the chat changed, and the turn that can be taken back.
    pub(crate) changes: FileChanges,
    /// The usage of the turn.
    turn: words::Used,
}

impl Transcript {
    /// Takes the next event.
    pub(crate) fn take(&mut self, event: &Event) {
        let data = &event.data;
        self.last = event.number.or(self.last);
        self.settle(event);
        self.changes.note(event);
        match event.name.as_str() {
            "turn_started" => self.turn_started(number(data, "attempt")),
            "thought" => self.piece(data, true),
            "chunk" => self.piece(data, false),
            "message" => self.message(data),
            "waiting" => self.waiting = words::remark(event),
            "call" => self.push(Item::Call(Call {
                id: text(data, "call_id").to_owned(),
                tool: one_line(text(data, "tool"), LINE),
                about: words::about(data),
                args: arguments(data.get("args")),
                live: String::new(),
                result: None,
            })),
            "agent_update" => self.heard(data),
            "observation" => self.observed(data),
            "plan_step" => self.plan_step(data),
            "agent_plan" => {
                let step = |entry: &Value| Step {
                    title: one_line(text(entry, "content"), LINE),
                    status: Status::of(text(entry, "status")),
                };
                self.steps = list(data, "entries").iter().map(step).collect();
            }
            "permission_required" => self.push(Item::Asked {
                tool: one_line(text(data, "tool"), LINE),
                reason: one_line(text(data, "reason"), LINE),
                args: arguments(data.get("args")),
            }),
            "usage" => self.turn.add(data),
            "done" | "stopped" => self.ended(event),
            "error" => self.failed(data),
            "plan_approved" => {
                self.stale_plan = true;
                self.remark(words::remark(event).unwrap_or_default(), RemarkKind::Quiet);
            }
            "file_updated" => {
                let (path, v) = (one_line(text(data, "path"), LINE), number(data, "v"));
                let how = if v == 0 { format!("{path} moved or removed") } else { format!("{path} v{v}") };
                self.remark(how, RemarkKind::Quiet);
            }
            _ => {
                if let Some(remark) = words::remark(event) {
                    self.remark(remark, RemarkKind::Quiet);
                }
            }
        }
        if self.items.len() > MOST {
            let many = MOST / 10;
            self.items.drain(..many);
            self.dropped += many;
        }
    }

    /// Adds a remark.
    pub(crate) fn remark(&mut self, text: String, tone: RemarkKind) {
        self.push(Item::Remark { text, tone });
    }

    /// Adds the changes in a file.
    pub(crate) fn diff(&mut self, heading: String, diff: &str) {
        self.push(Item::Diff { heading, lines: clean(diff).lines().map(str::to_owned).collect() });
    }

    fn push(&mut self, item: Item) {
        self.items.push(item);
    }

    /// Questions that this event answers are gone, and those that it asks are there.
    fn settle(&mut self, event: &Event) {
        self.asks.retain(|(ask, _)| !ask.is_settled_by(event));
        if let Some(ask) = Ask::of(event)
            && !self.asks.iter().any(|(other, _)| other.id() == ask.id())
        {
            self.asks.push_back((ask, event.data.clone()));
        }
        // Any later event ends a wait.
        if !matches!(event.name.as_str(), "waiting" | "usage" | "file_updated") {
            self.waiting = None;
        }
    }

    fn turn_started(&mut self, attempt: u64) {
        (self.running, self.paused) = (true, None);
        if attempt <= 1 {
            self.turn = words::Used::default();
            return;
        }
        let before = self.items.len();
        self.items
            .retain(|item| !matches!(item, Item::Said { open: Some(_), .. } | Item::Thought { open: Some(_), .. }));
        let void = if self.items.len() < before { ": its unfinished text was void" } else { "" };
        self.remark(format!("the turn goes on after a restart{void}"), RemarkKind::Quiet);
    }

    fn piece(&mut self, data: &Value, thought: bool) {
        let (piece, id) = (clean(text(data, "text")), text(data, "message_id"));
        // Remarks and diffs may stand behind an unfinished text.
        match self.items.iter_mut().rev().find(|item| !matches!(item, Item::Remark { .. } | Item::Diff { .. })) {
            Some(Item::Thought { text, open: Some(open) }) if thought && open == id => text.push_str(&piece),
            Some(Item::Said { text, open: Some(open), .. }) if !thought && open == id => text.push_str(&piece),
            _ if thought => self.push(Item::Thought { text: piece, open: Some(id.to_owned()) }),
            _ => self.push(Item::Said { by: Speaker::Agent, text: piece, open: Some(id.to_owned()) }),
        }
    }

    fn message(&mut self, data: &Value) {
        let (content, id) = (clean(text(data, "content")), text(data, "message_id"));
        let by = match text(data, "role") {
            "assistant" => Speaker::Agent,
            "user" => Speaker::Person,
            "system" => Speaker::System,
            _ => return, // of tools: their observations are there
        };
        for item in &mut self.items {
            if let Item::Thought { open, .. } = item
                && open.as_deref() == Some(id)
            {
                *open = None;
            }
        }
        let is_it = |item: &Item| matches!(item, Item::Said { open: Some(open), .. } if open == id);
        let place = self.items.iter().rposition(is_it);
        match (place, content.trim().is_empty()) {
            (Some(place), true) => drop(self.items.remove(place)),
            (Some(place), false) => {
                if let Some(item) = self.items.get_mut(place) {
                    *item = Item::Said { by, text: content, open: None };
                }
            }
            (None, true) => {}
            (None, false) => self.push(Item::Said { by, text: content, open: None }),
        }
    }

    fn called(&mut self, id: &str) -> Option<&mut Call> {
        self.items.iter_mut().rev().find_map(|item| match item {
            Item::Call(call) if call.id == id => Some(call),
            _ => None,
        })
    }

    /// News of a call that runs: each takes the place of the last.
    fn heard(&mut self, data: &Value) {
        let live = words::live(data);
        if let Some(call) = self.called(text(data, "call_id")).filter(|call| call.result.is_none() && !live.is_empty())
        {
            call.live = clean(&live);
        }
    }

    fn observed(&mut self, data: &Value) {
        let id = text(data, "call_id");
        let outcome = words::outcome(data);
        let result = CallResult {
            success: outcome.success,
            line: outcome.line,
            diff: outcome.diff.into_iter().map(clean).collect(),
            output: clean(text(data, "output")),
        };
        match self.called(id) {
            Some(call) => (call.result, call.live) = (Some(result), String::new()),
            None => self.push(Item::Call(Call {
                id: id.to_owned(),
                tool: one_line(text(data, "tool"), LINE),
                about: String::new(),
                args: Vec::new(),
                live: String::new(),
                result: Some(result),
            })),
        }
    }

    fn plan_step(&mut self, data: &Value) {
        let (title, status) = (one_line(text(data, "title"), LINE), text(data, "status"));
        let (step, total) = (number(data, "step"), number(data, "total"));
        let place = usize::try_from(step).unwrap_or_default().checked_sub(1);
        // Titles that no event has told yet are in the plan's file.
        let total = usize::try_from(total).unwrap_or_default().min(MOST);
        self.stale_plan |= total != self.steps.len();
        self.steps.resize_with(total, Step::default);
        if let Some(known) = place.and_then(|place| self.steps.get_mut(place)) {
            *known = Step { title: title.clone(), status: Status::of(status) };
        }
        let done = number(data, "done");
        self.remark(format!("[{done}/{total}] {step}. {title}: {}", one_line(status, 20)), RemarkKind::Quiet);
    }

    /// Takes the steps from the text of the plan.
    pub(crate) fn plan(&mut self, markdown: &str) {
        let steps: Vec<Step> = markdown.lines().filter_map(step).take(MOST).collect();
        self.stale_plan = false;
        if !steps.is_empty() {
            self.steps = steps;
        }
    }

    fn ended(&mut self, event: &Event) {
        self.running = false;
        self.asks.clear();
        for item in &mut self.items {
            if let Item::Said { open, .. } | Item::Thought { open, .. } = item {
                *open = None;
            }
        }
        if let Some(remark) = turns::ending(event).and_then(|ending| ending.remark) {
            let tone = if event.name == "stopped" { RemarkKind::Asking } else { RemarkKind::Bad };
            self.remark(one_line(&remark, LINE), tone);
        }
        if let Some(used) = std::mem::take(&mut self.turn).usage_text() {
            self.remark(used, RemarkKind::Quiet);
        }
    }

    fn failed(&mut self, data: &Value) {
        let message = format!("{} ({})", clean(text(data, "message")), one_line(text(data, "code"), LINE));
        if text(data, "code") == "PAUSED" {
            (self.running, self.paused) = (false, Some(one_line(text(data, "message"), LINE)));
        }
        let hint = data.get("hint").and_then(Value::as_str).map(|hint| format!("\n{}", clean(hint)));
        self.remark(message + &hint.unwrap_or_default(), RemarkKind::Bad);
    }
}

/// Arguments with their names, as people read them.
fn arguments(args: Option<&Value>) -> Vec<(String, String)> {
    let changes = args.map(words::changes).unwrap_or_default();
    if !changes.is_empty() {
        return changes.iter().map(|diff| (String::new(), clean(diff))).collect();
    }
    match args {
        Some(Value::Object(args)) => {
            args.iter().map(|(name, value)| (one_line(name, LINE), clean(&shown(value)))).collect()
        }
        None | Some(Value::Null) => Vec::new(),
        Some(other) => vec![(String::new(), clean(&shown(other)))],
    }
}

/// The step that a line of a plan is.
fn step(line: &str) -> Option<Step> {
    let rest = line.trim_start().strip_prefix(['-', '*', '+'])?.trim_start().strip_prefix('[')?;
    let (mark, title) = rest.split_once("] ")?;
    let status = match mark {
        " " => Status::Open,
        "x" | "X" => Status::Done,
        "~" => Status::Working,
        "!" => Status::Failed,
        _ => return None,
    };
    Some(Step { title: one_line(title, LINE), status })
}
