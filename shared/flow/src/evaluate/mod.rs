//! Evaluations: inputs whose outcomes are known, run as real tasks and compared (seed 002 §10.3).
//!
//! ```text
//!   evaluations.yaml ─ plan ─ each case: a workspace of its own ─ a real task ─ assertions ─ record ─ report, JUnit
//! ```
//!
//! A case's task is one like any other: the same manifests, tools, permissions, policies and context profiles. What makes it
//! repeatable is around it: it runs in a workspace of its own, made from the case's files and the personas of the flow's
//! workspace, so that neither memory nor files of other runs reach it and nothing that it writes reaches people; and its model
//! plays the case's script, if there is one ([`Understudy`]).
//!
//! An evaluation is bounded (each case has its time) and durable: its record is written after each case, the tasks have ids
//! that follow from the evaluation's, and [`Evaluations::resume`] goes on after a restart with those that had not ended.

pub mod assert;
mod case;
mod junit;
mod plan;
mod record;
mod understudy;

pub use junit::junit;
pub use record::{CaseResult, Evaluation, Outcome, Progress, Selection};
pub use understudy::{PROVIDER, Play, Understudy};

use crate::{Tasks, tasks::internal};
use case::Stage;
use domain::{Code, Error, EvaluationId, FilePath, Principal, WorkspaceId};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use plan::{Planned, plan};
use ports::{Clock, Expect, Key, Query, Table, Write};
use serde::Serialize;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};
use workspace::Workspaces;

/// How many cases run at once.
const AT_ONCE: usize = 4;
/// How many earlier evaluations are looked at for workspaces that were kept.
const LOOKED_AT: usize = 100;
/// Evaluations that have not ended.
const OPEN: &str = "evaluations/open";

/// Evaluations, for those who ask for them. Cheap to clone; clones share.
///
/// A front answers `POST …/flows/{flow}/evaluations` with [`start`](Self::start), under an id that it makes (the same id
/// again gives the same evaluation), and `GET …/evaluations/{id}` with [`get`](Self::get): the record as JSON, or as XML by
/// [`junit`]. It calls [`resume`](Self::resume) once at its start.
#[derive(Clone)]
pub struct Evaluations {
    tasks: Tasks,
    workspaces: Workspaces,
    table: Arc<dyn Table>,
    clock: Arc<dyn Clock>,
    play: Play,
    driven: Arc<Mutex<HashSet<EvaluationId>>>,
}

/// A page of evaluations.
#[derive(Clone, Debug, Serialize)]
pub struct EvaluationPage {
    /// The evaluations, the newest first.
    pub evaluations: Vec<Evaluation>,
    /// Where the next page begins; none at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Evaluations {
    /// Over these parts. `play` makes a model of a script; the tasks' model has to be an [`Understudy`] with the same.
    pub fn new(tasks: Tasks, workspaces: Workspaces, table: Arc<dyn Table>, clock: Arc<dyn Clock>, play: Play) -> Self {
        Self { tasks, workspaces, table, clock, play, driven: Arc::default() }
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
        if let Some(found) = self.find(workspace, id).await? {
            return Ok(found);
        }
        let flow = self.tasks.flows().load(workspace, flow).await?;
        let planned = plan(&flow, &selection)?;
        for one in &planned {
            let script = one.script().map(|script| (self.play)(&script.to_string()));
            if let Some(Err(reason)) = script {
                return Err(Error::invalid("script", format!("the script of {one} cannot be played: {reason}")));
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
        let open = Write::put(open_key(workspace, id), "{}", Expect::Any);
        match self.table.commit(vec![write(&evaluation, Expect::Absent)?, open]).await {
            Ok(()) => {}
            Err(ports::Error::Conflict { .. }) => return self.get(workspace, id).await,
            Err(error) => return Err(internal(error)),
        }
        self.spawn(workspace, id);
        Ok(evaluation)
    }

    /// What there is of an evaluation. `NOT_FOUND` when the workspace has none of this id.
    pub async fn get(&self, workspace: WorkspaceId, id: EvaluationId) -> Result<Evaluation, Error> {
        let found = self.find(workspace, id).await?;
        found.ok_or_else(|| Error::not_found("evaluation", id))
    }

    /// The evaluations of a workspace, the newest first.
    pub async fn list(
        &self,
        workspace: WorkspaceId,
        limit: usize,
        cursor: Option<String>,
    ) -> Result<EvaluationPage, Error> {
        let query = Query::all(partition(workspace), limit).descending().after(cursor);
        let page = self.table.query_index(&query).await.map_err(|error| match error {
            ports::Error::Invalid(_) => Error::invalid("cursor", "this is no cursor of this list"),
            error => internal(error),
        })?;
        let evaluations = page.items.iter().map(|item| serde_json::from_str(&item.body).map_err(internal));
        Ok(EvaluationPage { evaluations: evaluations.collect::<Result<_, _>>()?, next_cursor: page.next })
    }

    /// Goes on with the evaluations that had not ended when the process before this one did. How many there are.
    pub async fn resume(&self) -> Result<usize, Error> {
        let (mut resumed, mut cursor) = (0, None);
        loop {
            let page = self.table.query(&Query::all(OPEN, 100).after(cursor)).await.map_err(internal)?;
            for item in &page.items {
                let ids = item.key.sk.split_once('/');
                if let Some((Ok(workspace), Ok(id))) = ids.map(|(workspace, id)| (workspace.parse(), id.parse())) {
                    self.spawn(workspace, id);
                    resumed += 1;
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(resumed);
            }
        }
    }

    fn spawn(&self, workspace: WorkspaceId, id: EvaluationId) {
        if !self.driven.lock().unwrap_or_else(PoisonError::into_inner).insert(id) {
            return;
        }
        let this = self.clone();
        tokio::spawn(async move {
            if let Err(error) = this.drive(workspace, id).await {
                tracing::error!(evaluation = %id, %error, "an evaluation rests until the next start");
            }
            this.driven.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        });
    }

    /// Runs what has no result yet, and writes down each result as it comes.
    async fn drive(&self, workspace: WorkspaceId, id: EvaluationId) -> Result<(), Error> {
        let Some(mut evaluation) = self.find(workspace, id).await? else {
            // The workspace is gone, and with it whoever would look.
            return self
                .table
                .commit(vec![Write::delete(open_key(workspace, id), Expect::Any)])
                .await
                .map_err(internal);
        };
        if evaluation.status != Progress::Finished {
            evaluation.status = Progress::Running;
            self.save(&evaluation).await?;
            if let Err(error) = self.cases(&mut evaluation).await {
                evaluation.error = Some(error);
            }
            evaluation.status = Progress::Finished;
            evaluation.finished_at = Some(self.clock.now());
            self.report(&evaluation).await;
        }
        let closed = Write::delete(open_key(workspace, id), Expect::Any);
        self.table.commit(vec![write(&evaluation, Expect::Any)?, closed]).await.map_err(internal)
    }

    async fn cases(&self, evaluation: &mut Evaluation) -> Result<(), Error> {
        let workspace = evaluation.workspace_id;
        let flow = self.tasks.flows().by_hash(workspace, &evaluation.flow).await?;
        let files = self.tasks.flows().files(workspace, &evaluation.flow.name).await.unwrap_or_default();
        let stage = Stage {
            tasks: &self.tasks,
            workspaces: &self.workspaces,
            table: &*self.table,
            evaluation: evaluation.evaluation_id,
            workspace,
            flow: &flow,
            files: &files,
            bless: evaluation.selection.bless,
            by: evaluation.by.clone(),
            began_at: self.clock.now(),
        };
        let planned: Vec<Planned<'_>> = plan(&flow, &evaluation.selection)?;
        let rest = planned.iter().skip(evaluation.cases.len());
        let rest: Vec<BoxFuture<'_, CaseResult>> = rest.map(|planned| stage.play(planned).boxed()).collect();
        let mut results = stream::iter(rest).buffered(AT_ONCE);
        while let Some(result) = results.next().await {
            evaluation.add(result);
            self.save(evaluation).await?;
        }
        Ok(())
    }

    /// Puts what came of it where people and build servers find it: `/tasks/evaluations/<id>/`.
    async fn report(&self, evaluation: &Evaluation) {
        let results = serde_json::to_value(evaluation).map(|value| format!("{value:#}\n")).unwrap_or_default();
        for (name, text) in [("results.json", results), ("junit.xml", junit(evaluation))] {
            let path = format!("/tasks/evaluations/{}/{name}", evaluation.evaluation_id);
            if let Err(error) = self.put(evaluation.workspace_id, &path, text).await {
                tracing::warn!(evaluation = %evaluation.evaluation_id, %error, path, "a report was not written");
            }
        }
    }

    async fn put(&self, workspace: WorkspaceId, path: &str, text: String) -> Result<(), Error> {
        let opened = self.workspaces.open(workspace).await?;
        opened.write(&FilePath::parse(path)?, text, workspace::Expect::Any, &Principal::System.into()).await?;
        Ok(())
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

    async fn find(&self, workspace: WorkspaceId, id: EvaluationId) -> Result<Option<Evaluation>, Error> {
        let item = self.table.get(&key(workspace, id)).await.map_err(internal)?;
        item.map(|item| serde_json::from_str(&item.body).map_err(internal)).transpose()
    }

    async fn save(&self, evaluation: &Evaluation) -> Result<(), Error> {
        self.table.commit(vec![write(evaluation, Expect::Any)?]).await.map_err(internal)
    }
}

fn partition(workspace: WorkspaceId) -> String {
    format!("{workspace}/evaluations")
}

fn key(workspace: WorkspaceId, id: EvaluationId) -> Key {
    Key::new(partition(workspace), id.to_string())
}

fn open_key(workspace: WorkspaceId, id: EvaluationId) -> Key {
    Key::new(OPEN, format!("{workspace}/{id}"))
}

fn write(evaluation: &Evaluation, expect: Expect) -> Result<Write, Error> {
    let (workspace, id) = (evaluation.workspace_id, evaluation.evaluation_id);
    let body = serde_json::to_string(evaluation).map_err(internal)?;
    let index = Key::new(partition(workspace), format!("{}/{id}", evaluation.created_at));
    Ok(Write::put(key(workspace, id), body, expect).indexed(index))
}
