//! Re-runs: the answers to a recorded task are taken from its log instead of asking again (spec 002 §6, §10.7).
//!
//! A retry keeps a node that did not fail, and that has exactly the input it had then. So failed nodes run again, and so do
//! nodes whose input changes thereby, in this task as in the tasks above; all others keep their recorded output, above all
//! the siblings of failed ones.

use crate::{
    log,
    machine::Run,
    perform::{EffectError, ExecutionFacts, OperationResult, TaskEffects},
};
use domain::{
    Code, Error, NodeId, Status, TaskConfig, TaskEvent, TaskId, WorkspaceId,
    task::{AssembledContext, is_stop},
};
use flow::{
    Flow,
    flow::{Node, Op},
    graph::Role,
    router::{Record, RouteState},
};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

/// How a recorded node ended.
struct RecordedNode {
    status: Status,
    output: Value,
    error: Option<Error>,
    /// Denials by policies.
    denied: Vec<(String, String)>,
    /// For a retry: its input and the outputs of nodes before it.
    given: (Arc<Value>, BTreeMap<NodeId, Value>),
}

impl RecordedNode {
    /// Whether a retry keeps it.
    fn stands(&self, run: &Run) -> bool {
        let (input, outputs) = &self.given;
        let same_outputs = || {
            outputs.len() == run.outputs.len()
                && outputs.iter().all(|(node, output)| run.outputs.get(node).is_some_and(|now| **now == *output))
        };
        self.status != Status::Failure && *input == run.input && (!run.config.keep_outputs || same_outputs())
    }
}

impl TaskEffects {
    /// The recorded result of this node, where it is to be taken; with its denials, and its output even if it failed, so
    /// that the re-run tells the same of it.
    pub(super) async fn recorded(
        &self,
        run: &Run,
        flow: &Flow,
        node: &Node,
        facts: &mut ExecutionFacts,
    ) -> Result<Option<OperationResult>, EffectError> {
        let Some(replay) = &run.config.replay else { return Ok(None) };
        let wanted = match &replay.from {
            _ if replay.retry => true,
            // All is recomputed but answers from outside.
            None => matches!(node.op, Op::Agent { .. } | Op::Ask(_) | Op::Tool { .. } | Op::Command(_)),
            Some(from) => *from != node.id && !flow.graph.reaches(from, &node.id),
        };
        if !wanted {
            return Ok(None);
        }
        let recorded = self.last_of(run, &node.id).await?;
        let mut recorded = recorded.filter(|recorded| !replay.retry || recorded.stands(run));
        if let Some(recorded) = &mut recorded {
            facts.denied.append(&mut recorded.denied);
        }
        match recorded {
            Some(RecordedNode { status: Status::Failure, error, output, .. }) => {
                facts.failed_with = output;
                let error = error.unwrap_or_else(|| Error::new(Code::Unprocessable, "it failed in the recorded task"));
                Err(EffectError { error, recorded: true })
            }
            Some(RecordedNode { status, output, .. }) => {
                let over = node.role == Role::Split && node.split.as_ref().is_some_and(|rule| rule.over.is_some());
                let elements = output.as_array().filter(|_| over).map(|elements| elements.len() as u32);
                Ok(Some(OperationResult::Output {
                    output,
                    elements,
                    partial: status == Status::Partial,
                    tolerated: None,
                }))
            }
            // It went another way then, or was given something else: now it has to run.
            None if !replay.repeats() => Ok(None),
            None => {
                let error = Error::new(Code::Conflict, format!("the recorded task has no answer for {}", node.id))
                    .hint("the flow takes another way than it did; run it anew instead");
                Err(EffectError { error, recorded: true })
            }
        }
    }

    /// Keeps the record that a re-run follows in memory: the log of the recorded task, in short.
    pub(super) async fn read_record(&self, config: &TaskConfig) -> ports::Result<()> {
        let Some(replay) = &config.replay else { return Ok(()) };
        if self.flows.cache().record(replay.of).is_some_and(|record| record.has_ended()) {
            return Ok(());
        }
        let (mut record, mut log) = (Record::default(), log::of(config.workspace, replay.of));
        while let Some((number, _, event)) = log.next(&*self.table).await? {
            record.see(number, &event);
        }
        self.flows.cache().put_record(replay.of, Arc::new(record));
        Ok(())
    }

    /// The context that the recorded task had for this node.
    pub(super) async fn recorded_context(&self, run: &Run, node: &NodeId) -> Result<AssembledContext, EffectError> {
        match &run.config.replay {
            Some(replay) => self.context_in(run.config.workspace, replay.of, node).await,
            None => Ok(AssembledContext::default()),
        }
    }

    /// The context of a node by the log of its task; an empty one where the log has none.
    pub(super) async fn context_in(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        node: &NodeId,
    ) -> Result<AssembledContext, EffectError> {
        let began = self.flows.cache().record(task).and_then(|record| record.began(node)).unwrap_or(1);
        let (mut found, mut log) = (AssembledContext::default(), log::starting_at(workspace, task, began));
        while let Some((_, _, event)) = log.next(&*self.table).await.map_err(unread)? {
            match event {
                TaskEvent::ContextAssembled { node: at, context } if at == *node => found = *context,
                TaskEvent::NodeFinished { node: ended, .. } if ended == *node => break,
                _ => {}
            }
        }
        Ok(found)
    }

    async fn last_of(&self, run: &Run, node: &NodeId) -> Result<Option<RecordedNode>, EffectError> {
        let Some(replay) = &run.config.replay else { return Ok(None) };
        let record = self.flows.cache().record(replay.of);
        let began = record.as_ref().and_then(|record| record.began(node));
        let is_absent = began.is_none() && record.is_some_and(|record| record.has_ended());
        // A retry compares what was there before the node, too.
        let from = began.filter(|_| !replay.retry).unwrap_or(1);
        let mut log = log::starting_at(run.config.workspace, replay.of, from);
        let (mut found, mut denied, mut is_there) = (None, Vec::new(), false);
        let (mut place, mut given, mut outputs) = (RouteState::default(), Default::default(), BTreeMap::new());
        while let Some((_, _, event)) = log.next(&*self.table).await.map_err(unread)? {
            is_there = true;
            if is_absent {
                break;
            }
            if replay.retry {
                place.apply(&event);
            }
            match event {
                TaskEvent::NodeStarted { node: began, .. } if replay.retry && began == *node => {
                    given = (place.current.clone(), outputs.clone());
                }
                // A node that was stopped has no result that other work could go on with. The same run once more ends there, too.
                TaskEvent::NodeFinished { error: Some(error), .. } if is_stop(&error) && !replay.repeats() => {}
                TaskEvent::NodeFinished { node: ended, status, output, error, .. } if ended == *node => {
                    let (denied, given) = (std::mem::take(&mut denied), std::mem::take(&mut given));
                    found = Some(RecordedNode { status, output, error, denied, given });
                    // A node is executed once.
                    break;
                }
                TaskEvent::NodeFinished { node: ended, status, output, .. }
                    if run.config.keep_outputs && status != Status::Failure =>
                {
                    outputs.insert(ended, output);
                }
                TaskEvent::Denied { node: refused, what, rule } if refused == *node => denied.push((what, rule)),
                _ => {}
            }
        }
        // A child may have no record, since the recorded task took another way. A root task has one, and nothing is done twice without it.
        if !is_there && run.config.origin.is_none() {
            let error = Error::new(Code::NotFound, "the task that this one re-runs was deleted, and its log is gone");
            return Err(EffectError { error: error.hint("run the flow anew"), recorded: true });
        }
        Ok(found)
    }
}

fn unread(error: ports::Error) -> Error {
    error.lost().unwrap_or_else(|| Error::new(Code::Internal, error.to_string()))
}
