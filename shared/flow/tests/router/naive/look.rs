//! The look-ups of the naive model.

use super::*;

impl Naive<'_> {
    pub(super) fn node(&self, id: &NodeId) -> GraphNode {
        self.script.graph.node(id).cloned().unwrap_or_else(|| panic!("there is no node {id}"))
    }

    pub(super) fn token(&mut self, task: &str) -> &mut Token {
        self.tasks.get_mut(task).unwrap_or_else(|| panic!("there is no task {task:?}"))
    }

    pub(super) fn children(&self, task: &str) -> Vec<String> {
        self.tasks[task].children.values().flatten().cloned().collect()
    }

    /// Whether there is a way, maybe of no edge.
    pub(super) fn leads(&self, from: &NodeId, to: &NodeId) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(node) = open.pop() {
            if node == *to {
                return true;
            }
            if seen.insert(node.clone()) {
                open.extend(self.node(&node).out.into_iter().map(|edge| edge.to));
            }
        }
        false
    }

    /// The merges that belong to this task: those within the same forks as its nodes.
    pub(super) fn own_merges(&self, task: &str) -> Vec<GraphNode> {
        let (mut forks, mut at) = (Vec::new(), task);
        while let Some((above, fork)) = &self.tasks[at].parent {
            forks.insert(0, fork.clone());
            at = above;
        }
        let nodes = self.script.graph.nodes().iter();
        nodes.filter(|node| node.role == Role::Merge && node.forks == forks).cloned().collect()
    }

    /// Whether the children of a fork meet again: at a merge of the task that forks, or of one above.
    pub(super) fn meets_again(&self, fork: &NodeId) -> bool {
        let depth = self.node(fork).forks.len();
        let mut nodes = self.script.graph.nodes().iter();
        nodes.any(|node| node.role == Role::Merge && node.forks.len() <= depth && self.leads(fork, &node.id))
    }

    /// The output of `child` at a merge of this task.
    pub(super) fn at_merge_of(&self, task: &str, child: &Token) -> Option<Brought> {
        match &child.end {
            Some(End::Up(owner, brought)) if *owner == self.tasks[task].line.len() => Some(brought.clone()),
            _ => None,
        }
    }

    /// The outputs at a merge of this task as far as it knows, in the order of places.
    pub(super) fn came(&self, task: &str, merge: &NodeId) -> Vec<Brought> {
        let token = &self.tasks[task];
        let others = token.heard.iter().filter_map(|name| self.at_merge_of(task, &self.tasks[name]));
        let mut came: Vec<Brought> =
            others.chain(token.brought.clone()).filter(|brought| brought.merge == *merge).collect();
        let order = |brought: &Brought| (brought.places.clone(), brought.child.clone(), brought.from.clone());
        came.sort_by_key(order);
        came
    }

    /// Whether a child of this task is not over, as far as it knows.
    pub(super) fn is_live(&self, task: &str, child: &str) -> bool {
        let token = &self.tasks[task];
        !token.heard.contains(child) && !token.unwanted.contains(child)
    }

    /// Whether a child of this task, or something below it, may still come to this merge.
    pub(super) fn may_come(&self, task: &str, child: &str, merge: &NodeId) -> bool {
        self.is_live(task, child) && self.leads(&self.tasks[child].start, merge)
    }

    /// Whether a child of this task, or something below it, may still come to a merge of a task above.
    pub(super) fn may_go_up(&self, task: &str, child: &str) -> bool {
        let depth = self.tasks[task].line.len();
        let mut nodes = self.script.graph.nodes().iter();
        nodes.any(|node| node.role == Role::Merge && node.forks.len() < depth && self.may_come(task, child, &node.id))
    }

    /// The children of this task that failed, as far as it knows, before the first merge that they could have come to, if
    /// it is this one.
    pub(super) fn failed_before(&self, task: &str, merge: &NodeId) -> Vec<Brought> {
        let mut failed = Vec::new();
        for (fork, children) in &self.tasks[task].children {
            for (index, name) in children.iter().enumerate() {
                let child = &self.tasks[name];
                let known = self.tasks[task].heard.contains(name) && child.end.as_ref().is_some_and(End::has_failed);
                let reached: Vec<GraphNode> =
                    self.own_merges(task).into_iter().filter(|own| self.leads(&child.start, &own.id)).collect();
                let is_first = reached.iter().any(|own| own.id == *merge)
                    && !reached.iter().any(|own| own.id != *merge && self.leads(&own.id, merge));
                if known && is_first {
                    let inbound = self.node(merge).inbound;
                    let from = inbound.into_iter().find(|from| self.leads(&child.start, from));
                    let (merge, from) = (merge.clone(), from.unwrap_or_else(|| fork.clone()));
                    let (places, child) = (vec![index], child.line.last().cloned().unwrap_or_default());
                    failed.push(Brought { merge, from, status: Status::Failure, output: Value::Null, places, child });
                }
            }
        }
        failed
    }

    /// Whether a child of this task that may still come to this merge may fork before it does.
    pub(super) fn may_come_as_several(&self, task: &str, merge: &NodeId) -> bool {
        let depth = self.tasks[task].line.len();
        let deeper: Vec<NodeId> = self
            .node(merge)
            .inbound
            .into_iter()
            .filter(|from| {
                let from = self.node(from);
                from.forks.len() + usize::from(from.role.forks()) > depth + 1
            })
            .collect();
        self.children(task).iter().any(|child| {
            self.is_live(task, child) && deeper.iter().any(|from| self.leads(&self.tasks[child].start, from))
        })
    }

    /// How many failed of what this task became: itself, or of those below it that did not go up.
    pub(super) fn lost(&self, task: &str) -> usize {
        let token = &self.tasks[task];
        match (&token.end, &token.waits_for) {
            (Some(End::Dissolved(status)), Some(fork)) if *status != Status::Success => {
                let failed = |child: &&String| self.tasks[*child].end.as_ref().is_some_and(End::has_failed);
                let lost: usize = token.children[fork].iter().filter(failed).map(|child| self.lost(child)).sum();
                lost.max(1)
            }
            _ => 1,
        }
    }

    /// Whether the task waits for a split that had nothing to split, and this merge would have taken its subtasks.
    pub(super) fn is_empty_split(&self, task: &str, merge: &NodeId) -> bool {
        let token = &self.tasks[task];
        let fork = token.waits_for.as_ref().filter(|fork| token.children[*fork].is_empty());
        fork.is_some_and(|fork| self.leads(fork, merge))
    }
}
