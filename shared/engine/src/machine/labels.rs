//! The labels of a task, which people change at any time, also after its end.

use super::TaskMachine;
use actor::Step;
use domain::{LabelChanges, TaskEvent};

/// Changes the labels of the task, if there are not too many then: another person may have set some since the sender looked.
pub(super) fn change(step: &mut Step<TaskMachine>, changes: LabelChanges) {
    let state = step.state();
    let Some(config) = state.config.as_ref().filter(|_| !state.deleted) else { return };
    let Ok(labels) = config.labels.changed("labels", changes) else { return };
    if labels != config.labels {
        step.push(TaskEvent::Labelled { labels });
    }
}
