//! The phases of the tasks that have not ended: the one metric that goes down again.

use super::{catalog, counter::MetricFamily, selection::MetricSelection};
use domain::{TaskId, TaskPhase};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

const PHASES: [TaskPhase; 5] =
    [TaskPhase::Queued, TaskPhase::Running, TaskPhase::Suspended, TaskPhase::Paused, TaskPhase::Parked];

/// Every task that has not ended, and its phase.
pub(super) struct Phases {
    gauge: MetricFamily<i64>,
    live: HashMap<TaskId, (Arc<MetricSelection>, TaskPhase)>,
    /// Tasks that ended while those of before the start are still being counted: a later read of them is out of date.
    ended: Option<HashSet<TaskId>>,
}

impl Phases {
    pub fn new() -> Self {
        Self { gauge: MetricFamily::new(&catalog::TASKS), live: HashMap::new(), ended: None }
    }

    /// A task does this now.
    pub fn now(&mut self, wanted: &Arc<MetricSelection>, task: TaskId, phase: TaskPhase) {
        if self.live.get(&task).is_some_and(|(_, known)| *known == phase) {
            return;
        }
        if let Some((wanted, before)) = self.live.remove(&task) {
            self.gauge.change(&wanted, &[&wanted.flow, word(before)], -1);
        } else {
            // A flow that is seen has all its phases, so that a phase without tasks is 0 and not absent.
            PHASES.into_iter().for_each(|phase| self.gauge.change(wanted, &[&wanted.flow, word(phase)], 0));
        }
        if phase == TaskPhase::Finished {
            self.ended.as_mut().map(|ended| ended.insert(task));
            return;
        }
        self.gauge.change(wanted, &[&wanted.flow, word(phase)], 1);
        self.live.insert(task, (wanted.clone(), phase));
    }

    /// A task did this when it was read, which may be some time ago.
    pub fn was(&mut self, wanted: &Arc<MetricSelection>, task: TaskId, phase: TaskPhase) {
        let has_ended = self.ended.as_ref().is_some_and(|ended| ended.contains(&task));
        if phase != TaskPhase::Finished && !has_ended && !self.live.contains_key(&task) {
            self.now(wanted, task, phase);
        }
    }

    /// Whether tasks of before the start are being counted.
    pub fn count_earlier(&mut self, counting: bool) {
        self.ended = counting.then(HashSet::new);
    }

    pub fn render(&self, out: &mut String) {
        self.gauge.render(out);
    }
}

fn word(phase: TaskPhase) -> &'static str {
    match phase {
        TaskPhase::Queued => "queued",
        TaskPhase::Running => "running",
        TaskPhase::Suspended => "suspended",
        TaskPhase::Paused => "paused",
        TaskPhase::Parked => "parked",
        TaskPhase::Finished => "finished",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn shown(phases: &Phases) -> Vec<(String, String)> {
        let mut out = String::new();
        phases.render(&mut out);
        let lines = out
            .lines()
            .filter_map(|line| line.strip_prefix("buildscale_tasks{flow=\"f\",phase=\"")?.split_once("\"} "));
        lines.filter(|(_, count)| *count != "0").map(|(phase, count)| (phase.to_owned(), count.to_owned())).collect()
    }

    #[test]
    fn s10_4_tasks_are_counted_by_phase_and_forgotten_when_they_end() {
        let wanted = Arc::new(MetricSelection::everything("f"));
        let task = |number: u128| TaskId(Uuid::from_u128(number));
        let mut phases = Phases::new();
        phases.count_earlier(true);
        phases.now(&wanted, task(1), TaskPhase::Running);
        phases.now(&wanted, task(2), TaskPhase::Running);
        phases.now(&wanted, task(2), TaskPhase::Suspended);
        phases.now(&wanted, task(3), TaskPhase::Running);
        phases.now(&wanted, task(3), TaskPhase::Finished);
        // Read from the table before those before it went on.
        phases.was(&wanted, task(2), TaskPhase::Running);
        phases.was(&wanted, task(3), TaskPhase::Running);
        phases.was(&wanted, task(4), TaskPhase::Paused);
        phases.was(&wanted, task(5), TaskPhase::Finished);
        phases.count_earlier(false);
        let count = |phase: &str, count: &str| (phase.to_owned(), count.to_owned());
        assert_eq!(shown(&phases), [count("paused", "1"), count("running", "1"), count("suspended", "1")]);
        for number in [1, 2, 4] {
            phases.now(&wanted, task(number), TaskPhase::Finished);
        }
        assert_eq!((shown(&phases), phases.live.len()), (Vec::new(), 0));
        let mut out = String::new();
        phases.render(&mut out);
        assert!(out.contains("# TYPE buildscale_tasks gauge\n"), "{out}");
        assert!(out.contains("{flow=\"f\",phase=\"running\"} 0\n"), "a phase without tasks is 0, not absent: {out}");
    }
}
