//! Clones and subtasks: sent off some at a time.

use super::step::Step;
use domain::{
    Labels, NodeId, TaskCommand, TaskConfig, TaskEvent,
    task::{ChildKind, ChildName, Origin},
};
use serde_json::{Map, Value};

/// Children that are sent off in one step; the others follow in steps of their own, so that no entry grows without bound and
/// a stop is heard in between.
const SPAWNED_AT_ONCE: u32 = 100;

impl Step<'_> {
    /// Sends off the next children of a large split.
    pub fn spawn_more(&mut self, node: &NodeId) {
        let Some(fork) = self.state().place.forks.get(node) else { return };
        let waits = self.state().place.last_fork.as_ref() == Some(node) && self.state().finished.is_none();
        let record = self.record.as_ref().filter(|_| self.config.repeats());
        let recorded = record.and_then(|record| record.spawns(node));
        if waits && fork.spawned < recorded.unwrap_or(fork.total).min(fork.total) {
            self.spawn(node);
        }
    }

    /// Sends off the first children of a fork, or the next ones.
    pub(super) fn spawn(&mut self, node: &NodeId) {
        let Some(fork) = self.state().place.forks.get(node) else { return };
        let (kind, to, total, from) = (fork.kind, fork.to.clone(), fork.total, fork.spawned);
        let has_elements = kind == ChildKind::Subtask && !fork.of_failed;
        let current = self.state().place.current.clone();
        let rule = self.node(node).and_then(|node| node.split.as_ref());
        let over = has_elements && rule.is_some_and(|rule| rule.over.is_some()) && current.is_array();
        let item = rule.and_then(|rule| rule.item.clone());
        let until = total.min(from + SPAWNED_AT_ONCE);
        let budget = self.part_of_each(node, total);
        // A copy of the input for each child would cost more than the children: it may be the list that is split. Labels are of the task alone.
        let setup = TaskConfig { input: Value::Null, labels: Labels::default(), ..(**self.config).clone() };
        for index in from..until {
            let Some(target) = (index as usize).checked_rem(to.len()).and_then(|edge| to.get(edge)) else { return };
            let input = match (over, &item) {
                (false, _) => (*current).clone(),
                (true, None) => current.get(index as usize).cloned().unwrap_or_default(),
                (true, Some(name)) => {
                    let element = current.get(index as usize).cloned().unwrap_or_default();
                    Value::Object(Map::from_iter([(name.clone(), element)]))
                }
            };
            let config = TaskConfig { budget, input, ..self.child(&setup, node, kind, target, index) };
            let task = config.task;
            self.tell(task, &TaskCommand::Start { config: Box::new(config) });
        }
        self.push(TaskEvent::Spawned { node: node.clone(), until });
        if until < total {
            self.tell(self.config.task, &TaskCommand::SpawnMore { node: node.clone() });
        }
    }

    /// The setup of a child, without its input.
    fn child(&self, setup: &TaskConfig, node: &NodeId, kind: ChildKind, to: &NodeId, index: u32) -> TaskConfig {
        let name = ChildName::of(node, to, index, kind);
        let (mut ancestors, mut line, mut place) = match &self.config.origin {
            None => (Vec::new(), Vec::new(), Vec::new()),
            Some(origin) => (origin.ancestors.clone(), origin.line.clone(), origin.place.clone()),
        };
        ancestors.push(self.config.task);
        line.push(name.clone());
        place.push(index);
        let parent = self.config.task;
        let origin = Origin { parent, ancestors, line, place, kind, node: node.clone(), to: to.clone(), index };
        let mut replay = self.config.replay.clone();
        if let Some(replay) = &mut replay {
            replay.of = replay.of.child(&name);
        }
        TaskConfig {
            task: self.config.task.child(&name),
            start: to.clone(),
            origin: Some(origin),
            replay,
            // As the inspector has it now, not as it was when this task was made.
            stepping: self.state().inspector.next,
            breakpoints: self.state().inspector.before.clone(),
            // The memory of a whole tree is kept at the end of its root.
            keep_artifacts: self.flow.keeps_outputs(),
            counted: false,
            created_at: self.stamp.at,
            ..setup.clone()
        }
    }
}
