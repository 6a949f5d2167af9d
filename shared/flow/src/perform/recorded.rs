//! Re-runs: what a recorded task was answered is taken from its log instead of asking again (seed 002 §6, §10.7).

use crate::{
    Flow,
    flow::{Node, Op},
    graph::Role,
    machine::Run,
    observe::Log,
    perform::{Came, Failure, Gathered, TaskEffects},
};
use domain::{Code, Error, NodeId, Status, TaskEvent, task::AssembledContext};
use serde_json::Value;

/// How a recorded node ended.
struct Recorded {
    status: Status,
    output: Value,
    error: Option<Error>,
    /// What a policy refused.
    denied: Vec<(String, String)>,
}

impl TaskEffects {
    /// What the recorded task has for this node, where it is to be taken; with what it was denied, and what it gave although
    /// it failed, so that the re-run tells the same of it.
    pub(super) async fn recorded(
        &self,
        run: &Run,
        flow: &Flow,
        node: &Node,
        gathered: &mut Gathered,
    ) -> Result<Option<Came>, Failure> {
        let Some(replay) = &run.config.replay else { return Ok(None) };
        let wanted = match &replay.from {
            // All is recomputed but what came from outside.
            None => matches!(node.op, Op::Agent { .. } | Op::Ask(_) | Op::Tool { .. } | Op::Command(_)),
            Some(from) => *from != node.id && !flow.graph.reaches(from, &node.id),
        };
        if !wanted {
            return Ok(None);
        }
        let mut recorded = self.last_of(run, &node.id).await?;
        if let Some(recorded) = &mut recorded {
            gathered.denied.append(&mut recorded.denied);
        }
        match recorded {
            Some(Recorded { status: Status::Failure, error, output, .. }) => {
                gathered.failed_with = output;
                let error = error.unwrap_or_else(|| Error::new(Code::Unprocessable, "it failed in the recorded task"));
                Err(Failure { error, passing: false })
            }
            Some(Recorded { status, output, .. }) => {
                let over = node.role == Role::Split && node.split.as_ref().is_some_and(|rule| rule.over.is_some());
                let elements = output.as_array().filter(|_| over).map(|elements| elements.len() as u32);
                Ok(Some(Came::Output { output, elements, partial: status == Status::Partial }))
            }
            // It went another way then: now it has to run.
            None if replay.from.is_some() => Ok(None),
            None => Err(Error::new(Code::Conflict, format!("the recorded task has no answer for {}", node.id))
                .hint("the flow takes another way than it did; run it anew instead")
                .into()),
        }
    }

    /// The context that the recorded task had for this node.
    pub(super) async fn recorded_context(&self, run: &Run, node: &NodeId) -> Result<AssembledContext, Failure> {
        let Some(replay) = &run.config.replay else { return Ok(AssembledContext::default()) };
        let (mut found, mut log) = (AssembledContext::default(), Log::of(run.config.workspace, replay.of));
        while let Some(event) = log.next(&*self.table).await.map_err(unread)? {
            if let TaskEvent::ContextAssembled { node: at, context } = event
                && at == *node
            {
                found = *context;
            }
        }
        Ok(found)
    }

    async fn last_of(&self, run: &Run, node: &NodeId) -> Result<Option<Recorded>, Failure> {
        let Some(replay) = &run.config.replay else { return Ok(None) };
        let mut log = Log::of(run.config.workspace, replay.of);
        let (mut found, mut denied) = (None, Vec::new());
        while let Some(event) = log.next(&*self.table).await.map_err(unread)? {
            match event {
                TaskEvent::NodeFinished { node: ended, status, output, error, .. } if ended == *node => {
                    found = Some(Recorded { status, output, error, denied: std::mem::take(&mut denied) });
                }
                TaskEvent::Denied { node: refused, what, rule } if refused == *node => denied.push((what, rule)),
                _ => {}
            }
        }
        Ok(found)
    }
}

fn unread(error: ports::Error) -> Error {
    Error::new(Code::Internal, error.to_string())
}
