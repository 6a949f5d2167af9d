//! The files whose new versions start tasks: patterns that make sense, each once.

use super::Loader;
use crate::trigger::{MAX_TRIGGERS, Trigger, overlap};

impl Loader<'_> {
    /// Refuses triggers that can never start anything, and notes those that no version needs.
    pub(super) fn check_triggers(&mut self) {
        let on = &self.docs.workflow.value.on;
        if on.len() > MAX_TRIGGERS {
            let message = format!("`on` has {} entries; {MAX_TRIGGERS} fit", on.len());
            let hint = "patterns with `*` and `**` stand for many files";
            self.faults.refuse(self.docs.workflow.at_key("", "on"), "wrong_value", message, hint);
        }
        let mut before: Vec<Trigger> = Vec::new();
        for (place, manifest) in on.iter().enumerate().take(MAX_TRIGGERS) {
            let at = self.docs.workflow.at(&format!("/on/{place}"));
            match Trigger::new(manifest) {
                Err(fault) => {
                    let keyed = self.docs.workflow.at(&format!("/on/{place}/{}", fault.key));
                    self.faults.refuse(keyed, "wrong_trigger", fault.message, fault.hint);
                }
                Ok(trigger) => {
                    if let Some(other) = before.iter().find(|other| overlap(other, &trigger)) {
                        let message = format!("`{trigger}` and `{other}` overlap");
                        let hint = "a version that fulfils both starts the flow once; nothing needs to be done";
                        self.faults.note(at, "overlaps", message, hint);
                    }
                    before.push(trigger);
                }
            }
        }
    }

    /// The triggers of the flow.
    pub(super) fn triggers(&self) -> Vec<Trigger> {
        let on = self.docs.workflow.value.on.iter().take(MAX_TRIGGERS);
        on.filter_map(|manifest| Trigger::new(manifest).ok()).collect()
    }
}
