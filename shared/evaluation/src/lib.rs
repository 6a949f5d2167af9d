//! Evaluations: inputs with known results, run as real tasks and compared (spec 002 §10.3).
//!
//! ```text
//!   evaluations.yaml ─ plan ─ each case: a workspace of its own ─ a real task ─ assertions ─ record ─ report, JUnit
//! ```
//!
//! A case's task is one like any other: the same manifests, tools, permissions, policies and context profiles. Its environment
//! makes it repeatable: it runs in a workspace of its own, made from the case's files and the personas of the flow's
//! workspace, so that neither memory nor files of other runs reach it and no file that it writes reaches people; and its model
//! plays the case's script, if there is one ([`ScriptedOverride`]).
//!
//! An evaluation is bounded (each case has its time) and durable: a worker drives it by messages that it sends to itself, a while at a
//! time ([`drive`]), its record is written after each case, and the tasks have ids that follow from the evaluation's.

pub mod assert;
mod case;
mod drive;
mod junit;
mod plan;
mod record;
mod scripted_override;
mod stop;

pub use junit::junit;
pub use record::{CaseResult, Evaluation, Outcome, Progress, Selection};
pub use scripted_override::{PROVIDER, ScriptLoader, ScriptedOverride};

use domain::{Code, Error, EvaluationId, Principal, Timestamp, WorkspaceId};
use engine::{Tasks, error::internal};
use plan::plan;
use ports::{Clock, Expect, Key, Query, QueueSender, Table, Write, validate};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use workspace::{Workspaces, blocking};

/// How many earlier evaluations are looked at for workspaces that were kept.
const LOOKED_AT: usize = 100;
/// Evaluations that have not ended.
const OPEN: &str = "evaluations/open";

/// Evaluations, for those who ask for them. Cheap to clone; clones share.
///
/// A front answers `POST …/flows/{flow}/evaluations` with [`start`](Self::start), under an id that it makes (the same id
/// again gives the same evaluation), and `GET …/evaluations/{id}` with [`get`](Self::get): the record as JSON, or as XML by
/// [`junit`]; [`stop`](Self::stop) ends one early. A worker drives them: this is a kind of its own, beside chats and tasks.
#[derive(Clone)]
pub struct Evaluations {
    tasks: Tasks,
    workspaces: Workspaces,
    table: Arc<dyn Table>,
    queue: Arc<dyn QueueSender>,
    clock: Arc<dyn Clock>,
    load: Option<ScriptLoader>,
}

/// That an evaluation has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Open {
    /// The number of the message that drives it next; those before it are late.
    next: u64,
    /// When that message was due.
    at: Timestamp,
}

/// A page of evaluations.
#[derive(Clone, Debug, Serialize)]
pub struct EvaluationPage {
    /// The evaluations, the newest first.
    pub evaluations: Vec<Evaluation>,
    /// The cursor of the next page; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Evaluations {
    /// Over these parts, for those who look after evaluations, or accept them unseen: a script that cannot be played fails its case.
    pub fn new(
        tasks: Tasks,
        workspaces: Workspaces,
        table: Arc<dyn Table>,
        queue: Arc<dyn QueueSender>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { tasks, workspaces, table, queue, clock, load: None }
    }

    /// The same, and an evaluation whose scripts cannot be played is refused. The tasks' model has to be a [`ScriptedOverride`] with the
    /// same loader.
    #[must_use]
    pub fn playing(self, load: ScriptLoader) -> Self {
        Self { load: Some(load), ..self }
    }

    /// Begins an evaluation of a flow; the cases run after this has returned. The same id again gives what there is of it.
    ///
    /// # Errors
    /// `NOT_FOUND` and `UNPROCESSABLE` as to load the flow; `INVALID_ARGUMENT` for a suite that it does not have, for a
    /// selection that no case is in, and for a script that cannot be played; `CONFLICT` to bless a built-in flow.
    pub async fn start(
        &self,
        workspace: WorkspaceId,
        id: EvaluationId,
        flow: &str,
        selection: Selection,
        by: &Principal,
    ) -> Result<Evaluation, Error> {
        if let Some((found, _)) = self.find(workspace, id).await? {
            if found.status == Progress::Queued {
                // The worker that accepted it may have died before it sent the first message.
                self.tell(workspace, id, 0, None).await?;
            }
            return Ok(found);
        }
        let flow = self.tasks.flows().load(workspace, flow).await?;
        let planned = plan(&flow, &selection)?;
        if let Some(load) = self.load {
            let scripts = planned.iter().filter_map(|one| Some((one, one.script()?)));
            let mut scripts: Vec<_> = scripts.collect();
            // Cases of a suite that bring none have the suite's.
            scripts.dedup_by(|(_, one), (_, before)| std::ptr::eq(*one, *before));
            let scripts: Vec<_> = scripts.iter().map(|(of, script)| (of.to_string(), script.to_string())).collect();
            let faulty = move || scripts.into_iter().find_map(|(of, script)| Some((of, load(&script).err()?)));
            if let Some((of, reason)) = blocking::run(faulty).await.map_err(internal)? {
                return Err(Error::invalid("script", format!("the script of {of} cannot be played: {reason}")));
            }
        }
        if selection.bless && self.tasks.flows().is_built_in(workspace, &flow.reference.name).await? {
            return Err(Error::new(Code::Conflict, "a built-in flow keeps the golden files that it came with")
                .hint("copy its folder to /system/flows first, under its name or another one"));
        }
        self.tasks.flows().keep(workspace, &flow).await?;
        self.forget_kept(workspace, &flow.reference.name).await;
        let evaluation = Evaluation {
            evaluation_id: id,
            workspace_id: workspace,
            flow: flow.reference.clone(),
            status: Progress::Queued,
            selection,
            total: planned.len() as u64,
            passed: 0,
            failed: 0,
            skipped: 0,
            cases: Vec::new(),
            error: None,
            by: by.clone(),
            created_at: self.clock.now(),
            finished_at: None,
        };
        let open = open(workspace, id, Open { next: 0, at: evaluation.created_at }, Expect::Any)?;
        match self.table.commit(vec![write(&evaluation, Expect::Absent)?, open]).await {
            Ok(()) => {}
            Err(ports::Error::Conflict { .. }) => return self.get(workspace, id).await,
            Err(error) => return Err(internal(error)),
        }
        self.tell(workspace, id, 0, None).await?;
        Ok(evaluation)
    }

    /// Reads an evaluation.
    ///
    /// # Errors
    /// `NOT_FOUND` when the workspace has none of this id; `INTERNAL` when the table does not answer or the record cannot be read.
    pub async fn get(&self, workspace: WorkspaceId, id: EvaluationId) -> Result<Evaluation, Error> {
        let found = self.find(workspace, id).await?;
        found.map(|(evaluation, _)| evaluation).ok_or_else(|| Error::not_found("evaluation", id))
    }

    /// The evaluations of a workspace, the newest first.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a cursor of another list; `INTERNAL` when the table does not answer. A record that cannot be read is left out.
    pub async fn list(
        &self,
        workspace: WorkspaceId,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<EvaluationPage, Error> {
        let query = Query::all(partition(workspace), limit).descending().after(cursor);
        let page = self.table.query_index(&query).await;
        let page = page.map_err(validate::of_page(&query, internal))?;
        let evaluations = ports::readable(&page.items).map(|(_, record)| record).collect();
        Ok(EvaluationPage { evaluations, next_cursor: page.next })
    }

    /// Resumes evaluations that have not ended and should have been driven before `before`: their message was lost. Goes through a
    /// page of the open ones, from `cursor` on; returns how many were resumed, and the cursor of the next page. One whose message
    /// is only slow gets it twice, which is harmless.
    ///
    /// # Errors
    /// `UPSTREAM_UNAVAILABLE` when the table or the queue does not answer. Those before it are resumed then. One that cannot be read is
    /// logged, and the others are resumed.
    pub async fn resume(
        &self,
        before: Timestamp,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<(u64, Option<String>), Error> {
        let mut told = 0;
        let page = self.table.query(&Query::all(OPEN, limit).after(cursor)).await.map_err(internal)?;
        for item in &page.items {
            let open = serde_json::from_str::<Open>(&item.body);
            let ids = item.key.sk.split_once('/');
            let ids = ids.and_then(|(workspace, id)| Some((workspace.parse().ok()?, id.parse().ok()?)));
            let (Ok(open), Some((workspace, id))) = (open, ids) else {
                tracing::error!(key = %item.key.sk, "an open evaluation cannot be read, and is not resumed");
                continue;
            };
            if open.at < before {
                self.tell(workspace, id, open.next, None).await?;
                told += 1;
            }
        }
        Ok((told, page.next))
    }

    /// Removes the workspaces that were kept of cases which did not pass when this flow was evaluated before.
    async fn forget_kept(&self, workspace: WorkspaceId, flow: &str) {
        let Ok(page) = self.list(workspace, LOOKED_AT, None).await else { return };
        let earlier =
            page.evaluations.iter().filter(|earlier| earlier.flow.name == flow && earlier.status == Progress::Finished);
        for kept in earlier.flat_map(|earlier| &earlier.cases).filter_map(|case| case.workspace_id) {
            case::remove(&self.workspaces, kept).await;
        }
    }

    /// The record, and its revision.
    async fn find(&self, workspace: WorkspaceId, id: EvaluationId) -> Result<Option<(Evaluation, u64)>, Error> {
        let item = self.table.get(&key(workspace, id)).await.map_err(internal)?;
        item.map(|item| Ok((serde_json::from_str(&item.body).map_err(internal)?, item.rev))).transpose()
    }
}

fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/evaluations")
}

/// Removes the evaluations of a deleted workspace. Again is harmless.
///
/// # Errors
/// Those of [`Table::query`] and [`Table::commit`]. Some of them are gone then.
pub async fn remove_remains(table: &dyn Table, workspace: WorkspaceId) -> ports::Result<()> {
    loop {
        let open = table.query(&Query::prefix(OPEN, &format!("{workspace}/"), ports::MAX_WRITES)).await?.items;
        if open.is_empty() {
            return table.clear(&partition(workspace)).await;
        }
        table.commit(open.into_iter().map(|item| Write::delete(item.key, Expect::Any)).collect()).await?;
    }
}

fn key(workspace: WorkspaceId, id: EvaluationId) -> Key {
    Key::new(partition(workspace), id.to_string())
}

fn open_key(workspace: WorkspaceId, id: EvaluationId) -> Key {
    Key::new(OPEN, format!("{workspace}/{id}"))
}

fn open(workspace: WorkspaceId, id: EvaluationId, open: Open, expect: Expect) -> Result<Write, Error> {
    Ok(Write::put(open_key(workspace, id), serde_json::to_string(&open).map_err(internal)?, expect))
}

fn write(evaluation: &Evaluation, expect: Expect) -> Result<Write, Error> {
    let (workspace, id) = (evaluation.workspace_id, evaluation.evaluation_id);
    let body = serde_json::to_string(evaluation).map_err(internal)?;
    let index = Key::new(partition(workspace), format!("{}/{id}", evaluation.created_at));
    Ok(Write::put(key(workspace, id), body, expect).indexed(index))
}
