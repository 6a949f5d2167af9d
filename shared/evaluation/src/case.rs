//! One case: a workspace of its own, a real task in it, and the assertions about its result.

use super::{
    CaseResult, Outcome,
    assert::{self, AssertionFailure, ExpectedValues, Subject},
    plan::PlannedCase,
    scripted_override,
};
use domain::{
    Code, CommandId, Error, EvaluationId, FilePath, Principal, QuestionId, TaskEvent, TaskId, TaskPhase, TaskView,
    Timestamp, WorkspaceId, task::is_stop, text::beginning,
};
use engine::{NewTask, TaskFilter, Tasks, error::internal};
use flow::{
    Flow,
    manifest::{Assertion, AssertionKind},
};
use ports::{Clock, Table};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use workspace::{Access, Expect, FileKind, Workspace, Workspaces, Writer};

/// How long a case may take that says nothing about it.
const PATIENCE: Duration = Duration::from_secs(300);
/// The most descendants of a task whose nodes assertions can see.
const MOST_DESCENDANTS: usize = 1_000;
/// How many children are read at once.
const PAGE: usize = 200;
/// The longest text of one failure, in bytes.
const MAX_FAILURE: usize = 4_096;
/// Files outside of the manifests that a flow's agents read, and the most files of each folder.
const PERSONAS: [&str; 2] = ["/system/agents", "/system/skills"];
const MAX_PERSONAS: usize = 200;

/// The services for the cases of one evaluation.
pub(super) struct Stage<'a> {
    pub tasks: &'a Tasks,
    pub workspaces: &'a Workspaces,
    pub table: &'a dyn Table,
    pub evaluation: EvaluationId,
    pub workspace: WorkspaceId,
    pub flow: &'a Arc<Flow>,
    /// The files of the flow's folder: golden files are among them.
    pub files: &'a BTreeMap<String, String>,
    pub bless: bool,
    pub by: Principal,
    pub clock: &'a dyn Clock,
}

/// How a case ended: with its task, or by what went wrong.
pub(super) type Ended = Result<TaskView, Error>;

/// A question that has an end, and that end.
fn end_of(asked: &Value) -> Option<(QuestionId, Timestamp)> {
    let data = asked.get("data")?;
    let question = serde_json::from_value(data.get("question_id")?.clone()).ok()?;
    Some((question, data.get("expires_at")?.as_str()?.parse().ok()?))
}

/// Whether it is no fault of the case: a service did not answer or has too much to do, or the disk is full until a person frees room.
pub(super) fn may_pass(error: &Error) -> bool {
    matches!(
        error.code,
        Code::Internal
            | Code::UpstreamUnavailable
            | Code::RateLimited
            | Code::NotBegun
            | Code::OutcomeUnknown
            | Code::StorageFull
    )
}

impl Stage<'_> {
    /// The workspace and the task of a case. The same evaluation gives the same ids: a worker that goes on with it finds the
    /// task, and makes no other one.
    pub fn place(&self, planned: &PlannedCase<'_>) -> (WorkspaceId, TaskId) {
        let own = WorkspaceId::from_key(&self.evaluation.to_string(), &planned.key());
        (own, TaskId::root(TaskId::from_key(&own.to_string(), "task").0))
    }

    /// Brings a case on as far as is possible at once: makes its task, and answers the task's questions. None while it plays; else how
    /// it ended. A case may end by more than its task's own end only when it is its turn, so that its end is written down with its
    /// result.
    ///
    /// # Errors
    /// Errors that may pass at a later try.
    pub async fn advance(&self, planned: &PlannedCase<'_>, is_its_turn: bool) -> Result<Option<Ended>, Error> {
        match self.attempt(planned).await {
            Ok(ended) => Ok(ended.map(Ok)),
            Err(error) if may_pass(&error) => Err(error),
            Err(error) => Ok(is_its_turn.then_some(Err(error))),
        }
    }

    /// The task, when it has ended.
    async fn attempt(&self, planned: &PlannedCase<'_>) -> Result<Option<TaskView>, Error> {
        let (own, task) = self.place(planned);
        let view = match self.tasks.get(own, task).await {
            Err(error) if error.code == Code::NotFound => {
                self.begin(planned, own, task).await?;
                return Ok(None);
            }
            found => found?,
        };
        let limit = planned.case.timeout_seconds.map_or(PATIENCE, Duration::from_secs_f64);
        let until = view.created_at + limit;
        // Also one that ended too late, or was stopped for it by a worker that could not write that down.
        let is_late = view.finished_at.unwrap_or_else(|| self.clock.now()) > until;
        let asks = view.node.clone().filter(|_| view.agent_waits);
        match view.phase {
            TaskPhase::Finished if !is_late => return Ok(Some(view)),
            TaskPhase::Finished => {}
            TaskPhase::Parked => {
                let reason = view.parked_reason.unwrap_or_default();
                return Err(Error::new(Code::Conflict, format!("the task is parked: {reason}")));
            }
            // The lack of an answer says more than the time that passed while the case was behind others.
            _ => self.answer(own, view, &planned.case.answers, until).await?,
        }
        if !is_late {
            return Ok(None);
        }
        let why = asks.map(|node| format!(": the agent of {node} waits for a person, and a case answers nodes alone"));
        let text = format!("the task did not end within {} s{}", limit.as_secs_f64(), why.unwrap_or_default());
        Err(Error::new(Code::Timeout, text))
    }

    /// Cleans up after a case whose result is written down: stops the task of one with an error, and removes the workspace of one that passed. The result
    /// comes first: without its workspace the case would run once more, and a stopped task does not tell why it failed. Again is harmless.
    pub async fn close(&self, planned: &PlannedCase<'_>, outcome: Outcome) {
        match outcome {
            Outcome::Passed | Outcome::Blessed => remove(self.workspaces, self.place(planned).0).await,
            Outcome::Error => self.stop(planned).await,
            Outcome::Failed | Outcome::Skipped => {}
        }
    }

    /// Cleans up once more after the newest result: a worker may have died between its write and the clean-up of its case.
    pub async fn close_newest(&self, planned: &[PlannedCase<'_>], results: &[CaseResult]) {
        if let Some((one, newest)) = planned.iter().zip(results).next_back() {
            self.close(one, newest.outcome).await;
        }
    }

    /// Ends a case that gets no result: stops its task and removes its workspace. Again is harmless.
    pub async fn give_up(&self, planned: &PlannedCase<'_>) {
        self.stop(planned).await;
        remove(self.workspaces, self.place(planned).0).await;
    }

    /// Stops the task of a case; of one that has ended nothing is left to stop.
    async fn stop(&self, planned: &PlannedCase<'_>) {
        let (own, task) = self.place(planned);
        let stop = CommandId::from_key(&task.to_string(), "stop");
        self.tasks.stop(own, task, stop, &self.by).await.ok();
    }

    async fn begin(&self, planned: &PlannedCase<'_>, own: WorkspaceId, task: TaskId) -> Result<(), Error> {
        let flow = match planned.script() {
            None => self.flow.clone(),
            Some(script) => {
                let (write, model) = scripted_override::keep(script, self.clock.now());
                self.table.commit(vec![write]).await.map_err(internal)?;
                let files = scripted_override::cast(self.flow, &model);
                let checked = self.tasks.flows().check_files(&self.flow.reference.name, files).await?;
                checked.map_err(|report| Error::new(Code::Unprocessable, report.to_string()))?
            }
        };
        self.set(planned, own).await?;
        let case = planned.case;
        let new = NewTask { input: case.input.clone(), start: case.start.clone(), ..NewTask::default() };
        self.tasks.create_of(own, task, &flow, new, &self.by).await?;
        Ok(())
    }

    /// Gives the result of a case that has ended.
    ///
    /// # Errors
    /// Errors that may pass at a later try.
    pub async fn judge(&self, planned: &PlannedCase<'_>, ended: Ended) -> Result<CaseResult, Error> {
        let mut result = CaseResult::new(&planned.suite.name, &planned.case.id, Outcome::Passed);
        let (own, task) = self.place(planned);
        result.task_id = Some(task);
        match self.compare(planned, ended, &mut result).await {
            Err(error) if may_pass(&error) => return Err(error),
            Err(error) => {
                result.outcome = Outcome::Error;
                result.failures.push(beginning(&error.message, MAX_FAILURE));
            }
            Ok(()) => {}
        }
        if matches!(result.outcome, Outcome::Failed | Outcome::Error) {
            // The workspace stays, for a person who examines it.
            result.workspace_id = Some(own);
        }
        Ok(result)
    }

    async fn compare(&self, planned: &PlannedCase<'_>, ended: Ended, result: &mut CaseResult) -> Result<(), Error> {
        let view = ended?;
        let (own, task) = self.place(planned);
        result.status = Some(view.status);
        let took = view.finished_at.unwrap_or_else(|| self.clock.now()).as_millis() - view.created_at.as_millis();
        result.duration_ms = u64::try_from(took).unwrap_or_default();
        let mut history = Vec::new();
        self.gather(own, task, Value::Null, &mut history).await?;
        let output = view.output.clone().unwrap_or_default();
        let subject = Subject::new(planned.case.input.clone(), view.status, output, history);
        for assertion in &planned.case.assertions {
            self.assert(planned, assertion, &view, &subject, result).await;
        }
        Ok(())
    }

    /// Makes the case's workspace: the taxonomy, the personas of the flow's workspace, and the case's files.
    async fn set(&self, planned: &PlannedCase<'_>, own: WorkspaceId) -> Result<(), Error> {
        let name = domain::nearest_name(&format!("evaluation of {}: {planned}", self.flow.reference.name));
        let name: String = name.chars().take(200).collect();
        self.workspaces.create_within(own, &name, &self.by, self.workspace).await?;
        let from = self.workspaces.open(self.workspace, self.as_task()).await?;
        let to =
            self.workspaces.open(own, Access::platform("the workspace of a case is made by its evaluation")).await?;
        // The case is about this flow alone, and not about those that its files would start.
        to.start_nothing().await?;
        let writer = Writer::new(self.by.clone());
        if self.flow.agents.values().any(|agent| agent.persona.is_some()) {
            for folder in PERSONAS {
                copy(&from, &to, &FilePath::parse(folder)?).await?;
            }
        }
        for (path, content) in &planned.case.files {
            let text = content.as_str().map_or_else(|| format!("{content:#}\n"), str::to_owned);
            to.write(&FilePath::parse(path)?, text, Expect::Any, &writer).await?;
        }
        Ok(())
    }

    /// Answers the questions of a task or one of its descendants; the same answer again has no effect. A question that the case has no
    /// answer to would wait for ever. The case ends at `until`.
    async fn answer(
        &self,
        own: WorkspaceId,
        root: TaskView,
        answers: &Map<String, Value>,
        until: Timestamp,
    ) -> Result<(), Error> {
        let is_late = self.clock.now() > until;
        let mut open = vec![root];
        while let Some(view) = open.pop() {
            if let Some(node) = view.node.as_ref().filter(|_| !view.waiting_for.is_empty()) {
                // `null` says that no answer comes; that ends only if the question has an end.
                if answers.get(node.as_str()).is_some_and(Value::is_null)
                    && let Some((question, expires_at)) = view.waiting_for.iter().find_map(end_of)
                {
                    // The case would not see an end of hours or days, so it comes now.
                    if expires_at > until {
                        self.tasks.let_expire(own, view.task_id, question, &self.by).await?;
                    }
                    continue;
                }
                let Some(Value::Object(said)) = answers.get(node.as_str()) else {
                    let text = format!("{node} asks, and the case has no answer for it");
                    return Err(Error::new(Code::Unprocessable, text).hint("say it under `answers` of the case"));
                };
                let command = CommandId::from_key(&view.task_id.to_string(), &format!("answer/{node}"));
                // Its author approved, by writing the case: that needs the right to write.
                let said = engine::Answers { answers: said.clone(), may_approve: true };
                match self.tasks.answer(own, view.task_id, node.as_str(), said, command, &self.by).await {
                    // The task may have gone on since it was seen, by this very answer: a task that is looked at twice is answered twice.
                    Err(error) if error.code == Code::Conflict => {
                        let now = self.tasks.get(own, view.task_id).await?;
                        if now.phase != TaskPhase::Finished && now.node.as_ref() == Some(node) {
                            return Err(error);
                        }
                        continue;
                    }
                    answered => answered?,
                }
            }
            // A case without answers expects no question, so its children are searched for one only when they do not end.
            if view.children > 0 && (!answers.is_empty() || is_late) {
                // One that runs may wait for children of its own, which ask.
                let may_ask = |child: &TaskView| matches!(child.phase, TaskPhase::Suspended | TaskPhase::Running);
                let mut cursor = None;
                loop {
                    let page = self.tasks.children(own, view.task_id, &TaskFilter::default(), PAGE, cursor).await?;
                    open.extend(page.tasks.into_iter().filter(may_ask));
                    cursor = page.next_cursor;
                    if cursor.is_none() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Every execution of a node, of the task and of its descendants, parents first.
    async fn gather(&self, own: WorkspaceId, task: TaskId, name: Value, history: &mut Vec<Value>) -> Result<(), Error> {
        let mut open = vec![(task, name)];
        let mut seen = 0;
        while let Some((task, name)) = open.pop() {
            seen += 1;
            let mut forks = false;
            self.tasks
                .each_event(own, task, |_, event| match event {
                    // A node that was stopped has no result to be judged.
                    TaskEvent::NodeFinished { error: Some(error), .. } if is_stop(error) => {}
                    TaskEvent::NodeFinished { node, status, output, .. } => {
                        history.push(json!({ "task": name, "node": node, "status": status, "output": output }));
                    }
                    TaskEvent::Forked { .. } => forks = true,
                    _ => {}
                })
                .await?;
            let mut cursor = None;
            let mut children = Vec::new();
            while forks && seen + open.len() + children.len() < MOST_DESCENDANTS {
                let page = self.tasks.children(own, task, &TaskFilter::default(), PAGE, cursor).await?;
                let named = page
                    .tasks
                    .into_iter()
                    .filter_map(|child| Some((child.task_id, Value::from(child.origin.as_ref()?.name().as_str()))));
                children.extend(named);
                cursor = page.next_cursor;
                forks = cursor.is_some();
            }
            open.extend(children.into_iter().rev());
        }
        Ok(())
    }

    async fn assert(
        &self,
        planned: &PlannedCase<'_>,
        assertion: &Assertion,
        view: &TaskView,
        subject: &Subject,
        result: &mut CaseResult,
    ) {
        let file = assertion.file.clone().unwrap_or_else(|| format!("golden/{planned}.json"));
        if self.bless && assertion.kind == AssertionKind::Golden {
            let written = match assert::value(assertion, subject) {
                Ok(value) => self.write_golden(&file, &assert::golden_text(value)).await.map_err(|error| error.message),
                Err(unmet) => Err(unmet.reason),
            };
            return match written {
                Ok(()) if result.outcome == Outcome::Passed => result.outcome = Outcome::Blessed,
                Ok(()) => {}
                Err(reason) => fail(result, "golden", AssertionFailure::from(reason), None),
            };
        }
        let last = || {
            let nodes = subject.history.iter().rev().filter_map(|run| run.get("node").and_then(Value::as_str));
            let mut schemas = nodes.filter_map(|node| self.flow.nodes.get(&node.into())?.schema_out.clone());
            schemas.next()
        };
        let own = assertion.node.as_deref().and_then(|node| self.flow.nodes.get(&node.into())?.schema_out.clone());
        let schema =
            assertion.schema.clone().or(own).or_else(last).and_then(|name| self.flow.schemas.get(&name).cloned());
        let given = ExpectedValues { schema: schema.as_deref(), golden: self.files.get(&file).map(String::as_str) };
        if let Err(unmet) = assert::check(assertion, subject, given) {
            let kind = serde_json::to_value(assertion.kind).ok();
            let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
            fail(result, kind, unmet, view.error.as_ref());
        }
    }

    /// The access of its flow's tasks, which work for the person who asked for the evaluation.
    fn as_task(&self) -> Access {
        Access::subject(workspace::Subject::Task { person: self.by.user(), has_home: true })
    }

    async fn write_golden(&self, file: &str, text: &str) -> Result<(), Error> {
        let folder = FilePath::parse(&format!("{}/{}", engine::FLOWS, self.flow.reference.name))?;
        let path = FilePath::parse(&format!("{folder}/{file}"))?;
        // The rights of the person were asked for this folder.
        if !path.is_within(&FilePath::parse(&format!("{folder}/golden"))?) {
            return Err(Error::invalid("file", "a golden file is in the folder golden of its flow")
                .hint("name it golden/…, so that a manifest or a schema is never overwritten"));
        }
        let access = Access::platform("golden files, in the folder of the flow that is evaluated");
        let opened = self.workspaces.open(self.workspace, access).await?;
        opened.write(&path, text.to_owned(), Expect::Any, &self.by.clone().into()).await?;
        Ok(())
    }
}

/// Notes that an assertion does not hold; why the task failed says more than that it did.
fn fail(result: &mut CaseResult, kind: &str, unmet: AssertionFailure, error: Option<&Error>) {
    let cause = error.map(|error| format!("\nthe task ended with: {}", error.message)).unwrap_or_default();
    result.outcome = Outcome::Failed;
    result.failures.push(beginning(&format!("{kind}: {}{cause}", unmet.reason), MAX_FAILURE));
    result.differences.extend(unmet.differences);
}

/// Removes the workspace of a case; one that is not there is no matter.
pub(super) async fn remove(workspaces: &Workspaces, own: WorkspaceId) {
    match workspaces.delete(own).await {
        Ok(()) => {}
        Err(error) if error.code == Code::NotFound => {}
        Err(error) => tracing::warn!(workspace = %own, %error, "the workspace of a case was not removed"),
    }
}

async fn copy(from: &Workspace, to: &Workspace, folder: &FilePath) -> Result<(), Error> {
    let entries = match from.list_tree(folder, MAX_PERSONAS).await {
        Ok((entries, whole)) => {
            if !whole {
                tracing::warn!(%folder, "a case gets {MAX_PERSONAS} files of this folder, and not the others");
            }
            entries
        }
        Err(error) if error.code == Code::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries.iter().filter(|entry| entry.kind == FileKind::File) {
        if entry.size > workspace::MAX_FILE as u64 {
            tracing::warn!(path = %entry.path, size = entry.size, "a large file is left out of a case");
            continue;
        }
        let content = from.read(&entry.path, None).await?;
        to.write(&entry.path, content.bytes, Expect::Any, &Principal::System.into()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s10_3_a_full_disk_is_no_fault_of_a_case() {
        assert!(may_pass(&Error::storage_full()));
        for code in [Code::Timeout, Code::Conflict, Code::PayloadTooLarge] {
            assert!(!may_pass(&Error::new(code, "it failed")), "{code:?}");
        }
    }
}
