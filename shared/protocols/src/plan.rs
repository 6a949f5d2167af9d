//! The plan of a turn and its files, as protocols with a state of their own show them.

use crate::PartEvent;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The plan, as far as the steps of it changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    path: String,
    progress: (u32, u32),
    steps: BTreeMap<u32, (String, String)>,
}

impl Plan {
    /// Takes in a changed step; any other event of the part changes nothing.
    pub(crate) fn take_in(&mut self, part_event: &PartEvent<'_>) {
        if let PartEvent::Step { step, status, title, plan, progress } = part_event {
            if self.path != plan.as_str() {
                *self = Self { path: plan.to_string(), ..Self::default() };
            }
            self.progress = *progress;
            self.steps.insert(*step, ((*title).to_owned(), (*status).to_owned()));
        }
    }

    /// The plan as JSON; null while there is none.
    pub(crate) fn value(&self) -> Value {
        if self.steps.is_empty() {
            return Value::Null;
        }
        let step = |(step, (title, status)): (&u32, &(String, String))| json!({ "step": step, "title": title, "status": status });
        let steps: Vec<Value> = self.steps.iter().map(step).collect();
        json!({ "path": self.path, "done": self.progress.0, "total": self.progress.1, "steps": steps })
    }
}

/// The arguments of a call as JSON; a text that is none stands as a text.
pub(crate) fn parsed(text: &str) -> Value {
    domain::exact_numbers::value_or_text(text)
}
