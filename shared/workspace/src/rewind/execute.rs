//! Carries out the plan of a rewind, so that a repetition after a crash goes on with it.
//!
//! The plan is kept before its first step. Each step is one commit under a call id that is derived from the rewind and the step's position, so a step
//! that was done finds its own result. The item of the rewind notes now and then how far it is.

use super::{Rewind, RewindConflict, RewindLoss, RewindOp, RewindState, RewindStep, StepPage, Target, history::Plan};
use crate::{Expect, FileKind, Result, Workspace, Writer, commit::CHANGES_KEPT, contents, damages::is_damage, error};
use bytes::Bytes;
use domain::{CallId, Code, Error, Sha256};
use ports::Write;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::Instant;
use uuid::Uuid;

/// Steps after which the progress is noted.
const NOTED_EVERY: usize = 500;

/// The progress of a rewind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    /// The SHA-256 of the request.
    pub asked: Sha256,
    /// The plan in the archive.
    pub plan: Sha256,
    /// Its length in bytes.
    pub size: u64,
    /// The number of steps that are behind it.
    pub next: usize,
    /// Positions of folders that are not empty, or gone.
    pub skipped: Vec<usize>,
    /// Positions of steps that were not done because the file was not as the plan saw it, with the reason.
    pub refused: Vec<(usize, String)>,
    /// Positions of steps whose content could not be read, with the reason.
    pub lost: Vec<(usize, String)>,
}

impl Workspace {
    /// Plans a rewind and carries it out, for about as long as `budget` allows; the same id again goes on with the same plan. `asked` is the request:
    /// the same id with another request is refused. The versions that it makes start flows if `by` may run them.
    ///
    /// # Errors
    /// Those of [`Workspace::preview_rewind`]; `CONFLICT` for an id that another request has; `UPSTREAM_UNAVAILABLE` and `STORAGE_FULL` when a store
    /// fails: the steps until then are done, and the same request again does the rest.
    pub async fn rewind(
        &self,
        id: Uuid,
        target: &Target,
        asked: &str,
        by: &Writer,
        budget: Duration,
    ) -> Result<Rewind> {
        let until = Instant::now() + budget;
        let (mut item, plan) = self.begin_rewind(id, target, Sha256::of(asked.as_bytes())).await?;
        while let Some(step) = plan.steps.get(item.next)
            && Instant::now() < until
        {
            let call = CallId::from_key(&format!("{}/rewind/{id}", self.0.id), &item.next.to_string());
            let writer = Writer { rewind: Some(id), call: Some(call), key: Some(call), ..by.clone() };
            match self.do_step(step, &writer).await {
                Ok(()) => {}
                // A folder that is in use stays.
                Err(error) if step.if_empty && is_refusal(error.code) => item.skipped.push(item.next),
                Err(error) if is_damage(&error) => item.lost.push((item.next, error.message)),
                Err(error) if is_refusal(error.code) => item.refused.push((item.next, error.message)),
                Err(error) => {
                    self.note_rewind(id, &item).await?;
                    return Err(error);
                }
            }
            item.next += 1;
            if item.next.is_multiple_of(NOTED_EVERY) {
                self.note_rewind(id, &item).await?;
            }
        }
        self.note_rewind(id, &item).await?;
        Ok(answer(id, &item, plan))
    }

    /// Whether there was a rewind of this id: known for as long as the changes that it made.
    ///
    /// # Errors
    /// Those of [`Workspace`].
    pub async fn knows_rewind(&self, id: Uuid) -> Result<bool> {
        Ok(self.0.table.get(&self.0.keys.rewind(id)).await.map_err(error::port)?.is_some())
    }

    /// The plan of this id, made and kept if there is none.
    async fn begin_rewind(&self, id: Uuid, target: &Target, asked: Sha256) -> Result<(Item, Plan)> {
        let key = self.0.keys.rewind(id);
        for _ in 0..2 {
            if let Some(found) = self.0.table.get(&key).await.map_err(error::port)? {
                let item: Item = error::parse(&found.body)?;
                if item.asked != asked {
                    return Err(Error::new(Code::Conflict, "this rewind_id is of another rewind")
                        .hint("send the same request again, or another rewind_id")
                        .detail("field", "rewind_id"));
                }
                let plan = self.0.archive.get(item.plan, item.size).await?;
                return Ok((item, error::parse(&String::from_utf8_lossy(&plan))?));
            }
            let plan = self.plan_rewind(target, target.as_of).await?;
            let text = Bytes::from(error::json(&plan)?);
            let digest = contents::digest(&text).await?;
            let (skipped, refused, lost) = (Vec::new(), Vec::new(), Vec::new());
            let item = Item { asked, plan: digest, size: text.len() as u64, next: 0, skipped, refused, lost };
            let note = Write::put(key.clone(), error::json(&item)?, ports::Expect::Absent);
            let mut writes = vec![note.expiring(self.0.clock.now() + CHANGES_KEPT)];
            writes.extend(self.0.archive.put(digest, &text).await?);
            match self.0.table.commit(writes).await {
                Ok(()) => return Ok((item, plan)),
                // The same request runs elsewhere: its plan counts.
                Err(ports::Error::Conflict { .. }) => {}
                Err(error) => return Err(error::port(error)),
            }
        }
        Err(error::busy())
    }

    async fn note_rewind(&self, id: Uuid, item: &Item) -> Result<()> {
        let note = Write::put(self.0.keys.rewind(id), error::json(item)?, ports::Expect::Any);
        let note = note.expiring(self.0.clock.now() + CHANGES_KEPT);
        self.0.table.commit(vec![note]).await.map_err(error::port)
    }

    /// Does one step if it was not done and the file is as the plan saw it.
    async fn do_step(&self, step: &RewindStep, writer: &Writer) -> Result<()> {
        if let (RewindOp::Mark, Some(mark)) = (step.op, &step.mark) {
            return self.mark(step.file_id, mark.clone(), writer).await.map(drop);
        }
        if self.applied(writer).await?.is_some() {
            return Ok(());
        }
        let expect = match step.v {
            Some(v) if step.kind == FileKind::File => Expect::Exactly(step.file_id, v),
            _ => Expect::File(step.file_id),
        };
        match (step.op, &step.from, step.to_v) {
            (RewindOp::Create, ..) => self.restore_at(step.file_id, &step.path, writer).await.map(drop),
            (RewindOp::Move, Some(from), _) => self.mv_expecting(from, &step.path, expect, writer).await.map(drop),
            (RewindOp::Update, _, Some(v)) => {
                let content = self.version_content(step.file_id, v).await?;
                self.write_given(&step.path, content, expect, writer).await.map(drop)
            }
            (RewindOp::Delete, ..) if step.if_empty => self.delete_if_empty(step, expect, writer).await,
            (RewindOp::Delete, ..) => self.rm_expecting(&step.path, expect, writer).await.map(drop),
            (RewindOp::Move | RewindOp::Update | RewindOp::Mark, ..) => {
                Err(error::port(ports::Error::Damaged("a step of a rewind lacks a field".into())))
            }
        }
    }

    /// Removes a folder that is empty. A file that comes into it at the same moment brings it back.
    async fn delete_if_empty(&self, step: &RewindStep, expect: Expect, writer: &Writer) -> Result<()> {
        let not_empty = || Error::new(Code::Conflict, format!("{} is not empty", step.path));
        if !self.entries(step.file_id, 1, None).await?.entries.is_empty() {
            return Err(not_empty());
        }
        self.rm_expecting(&step.path, expect, writer).await?;
        // Entries are made only in a folder that has a node, and the removal took the node: so none comes after this look.
        if self.entries(step.file_id, 1, None).await?.entries.is_empty() {
            return Ok(());
        }
        self.restore(step.file_id, &Writer { key: None, ..writer.clone() }).await?;
        Err(not_empty())
    }
}

/// Whether a step was refused for the state that it met.
fn is_refusal(code: Code) -> bool {
    matches!(
        code,
        Code::StaleVersion
            | Code::Conflict
            | Code::NotFound
            | Code::Forbidden
            | Code::Unprocessable
            | Code::InvalidArgument
    )
}

/// The answer about a rewind: its steps that were done, and the rest by its reason.
fn answer(id: Uuid, item: &Item, mut plan: Plan) -> Rewind {
    let total = plan.steps.len();
    for (position, reason) in &item.refused {
        let Some(step) = plan.steps.get(*position) else { continue };
        let (path, file_id, reason) = (step.path.clone(), step.file_id, reason.clone());
        plan.conflicts.push(RewindConflict { path, file_id, by: None, at: None, reason });
    }
    for (position, reason) in &item.lost {
        let Some(step) = plan.steps.get(*position) else { continue };
        let (path, file_id, reason) = (step.path.clone(), Some(step.file_id), reason.clone());
        plan.unavailable.push(RewindLoss { path, file_id, reason });
    }
    let failed = item.refused.iter().chain(&item.lost).map(|(position, _)| *position);
    let not_done: BTreeSet<usize> = failed.chain(item.skipped.iter().copied()).collect();
    let done = std::mem::take(&mut plan.steps).into_iter().enumerate();
    let done = done.filter(|(position, _)| *position < item.next && !not_done.contains(position));
    plan.steps = done.map(|(_, step)| step).collect();
    let state = if item.next < total { RewindState::Running } else { RewindState::Done };
    let done = Rewind::of(&plan, StepPage { after: 0, limit: 1000 });
    Rewind { rewind_id: Some(id), state, next_cursor: None, ..done }
}
