//! The API for people: commands to tasks, and reads of them. Knows no HTTP.
//!
//! A command is accepted when the queue has it; the task's events tell its result.

mod admission;
mod change;
mod delete;
mod reader;
mod refuse;
mod replay;
mod request_checks;
mod run_visits;
mod start;
mod unstarted;

pub use admission::{AdmissionObserver, MOST_WAITING};
pub use change::TaskChanges;
pub use reader::{TaskFilter, TaskPage, TaskReader};
pub use replay::RerunOptions;
pub use start::START_SHARDS;

use self::request_checks::{check_priority, checked, node_of, questions_of, start_of};
use crate::{error::internal, flows::Flows, log, machine::actor_id};
use actor::{ActorId, Content, Envelope, HoldRequest, Mailbox, StopRequest};
use domain::{
    Budget, Code, CommandId, Error, FileId, HoldId, Labels, NodeId, Principal, QuestionId, Status, StopId, TaskCommand,
    TaskConfig, TaskEvent, TaskId, TaskPhase, TaskView, Timestamp, TraceContext, Usage, WorkspaceId,
    task::{FlowRef, Handoff, Origin, start_command},
};
use flow::{
    Flow,
    flow::{COMMENT, Op},
    manifest::QueuePolicy,
};
use ports::{Bus, Clock, QueueMessage, QueueSender, Table, URGENT, validate::MAX_MESSAGE};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use workspace::{Access, Workspaces, blocking};

/// The longest input of a task as JSON, in bytes: it has to fit into a message of the queue.
const MAX_INPUT: usize = 192 * 1024;

/// Tasks, for those who ask for them.
///
/// # Errors
/// Beside its own, every method gives `INTERNAL` when a store or the queue does not answer (the command may be accepted; the same id again
/// is harmless) and `STORAGE_FULL` when there is no room.
#[derive(Clone)]
pub struct Tasks {
    table: Arc<dyn Table>,
    mailbox: Mailbox,
    workspaces: Workspaces,
    flows: Flows,
    clock: Arc<dyn Clock>,
    most_waiting: usize,
    observer: Option<Arc<dyn AdmissionObserver>>,
}

/// A task to make.
#[derive(Clone, Debug, Default)]
pub struct NewTask {
    /// Its input.
    pub input: Value,
    /// The start node; the default one when none.
    pub start: Option<String>,
    /// Files to give along.
    pub files: Vec<FileId>,
    /// Its priority; from -100 to 100, higher ones go first.
    pub priority: i8,
    /// Whether it pauses before each node.
    pub stepping: bool,
    /// Nodes that it pauses before.
    pub breakpoints: Vec<String>,
    /// Its budget, and that of all tasks below it; the flow's where a part is left out.
    pub budget: Budget,
    /// The trace that the request came in.
    pub trace: Option<TraceContext>,
    /// The version of a file that starts it.
    pub handoff: Option<Handoff>,
    /// Its labels.
    pub labels: Labels,
}

/// A task that will be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AcceptedTask {
    /// The task.
    pub task_id: TaskId,
    /// The flow, with the hash of the manifests that it runs.
    pub flow: FlowRef,
}

/// Answers to a human step.
#[derive(Clone, Debug)]
pub struct Answers {
    /// One by each question's name.
    pub answers: Map<String, Value>,
    /// Whether their author may approve: an approval takes no others.
    pub may_approve: bool,
}

impl Tasks {
    /// Over these ports.
    pub fn new(
        table: Arc<dyn Table>,
        queue: Arc<dyn QueueSender>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        workspaces: Workspaces,
        flows: Flows,
    ) -> Self {
        let mailbox = Mailbox { queue, table: table.clone(), bus };
        Self { table, mailbox, workspaces, flows, clock, most_waiting: MOST_WAITING, observer: None }
    }

    /// The same, refusing tasks of a tenant that has `most` messages of tasks waiting; [`MOST_WAITING`] otherwise.
    #[must_use]
    pub fn with_most_waiting(mut self, most: usize) -> Self {
        self.most_waiting = most.max(1);
        self
    }

    /// The same, telling this observer of tasks that are accepted and not begun yet.
    #[must_use]
    pub fn counted_by(mut self, observer: Arc<dyn AdmissionObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The table, which has the logs of tasks.
    pub fn table(&self) -> &Arc<dyn Table> {
        &self.table
    }

    /// The flows that tasks are made of.
    pub fn flows(&self) -> &Flows {
        &self.flows
    }

    /// Makes a task of a flow of the workspace. The same ids again have no further effect.
    ///
    /// # Errors
    /// Those of [`Flows::load`]; `INVALID_ARGUMENT` about `start`, `breakpoints` or `priority`; `NOT_FOUND` for a file; `PAYLOAD_TOO_LARGE`
    /// for the input; `RATE_LIMITED` when too many tasks wait.
    pub async fn create(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        flow: &str,
        new: NewTask,
        by: &Principal,
    ) -> Result<AcceptedTask, Error> {
        let flow = self.flows.load(workspace, flow).await?;
        let inspector = &flow.settings.inspector;
        let new = match inspector.enabled {
            false => new,
            true => NewTask {
                stepping: new.stepping || inspector.stepping,
                breakpoints: new.breakpoints.into_iter().chain(inspector.breakpoints.iter().cloned()).collect(),
                ..new
            },
        };
        self.create_of(workspace, task, &flow, new, by).await
    }

    /// Makes a task of a flow that is loaded, wherever its manifests came from.
    ///
    /// # Errors
    /// Those of [`Tasks::create`] but for the ones of loading it.
    pub async fn create_of(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        flow: &Arc<Flow>,
        new: NewTask,
        by: &Principal,
    ) -> Result<AcceptedTask, Error> {
        let start = start_of(flow, new.start.as_deref())?;
        let mut breakpoints = Vec::new();
        for name in &new.breakpoints {
            breakpoints.push(node_of(flow, name, "breakpoints")?);
        }
        check_priority(new.priority)?;
        let mut files = Vec::new();
        let opened = self.workspaces.open(workspace, Access::of(by, None)).await?;
        for file in &new.files {
            files.push(opened.by_id(*file).await?.path);
        }
        let config = TaskConfig {
            workspace,
            task,
            flow: flow.reference.clone(),
            user: by.user(),
            input: new.input,
            start,
            origin: None,
            files,
            priority: new.priority,
            stepping: new.stepping,
            breakpoints,
            replay: None,
            keep_outputs: flow.reads_outputs(),
            keep_artifacts: flow.keeps_outputs() || flow.uses_memory(),
            counted: false,
            trace: new.trace,
            handoff: new.handoff.map(Box::new),
            budget: checked(new.budget)?.or(flow.limits.budget),
            refused: None,
            labels: new.labels,
            created_at: self.clock.now(),
        };
        self.begin(flow, config, by).await
    }

    async fn begin(&self, flow: &Arc<Flow>, mut config: TaskConfig, by: &Principal) -> Result<AcceptedTask, Error> {
        let input = serde_json::to_string(&config.input).map_err(internal)?;
        if input.len() > MAX_INPUT {
            let text = format!("the input is {} bytes long as JSON; {MAX_INPUT} fit", input.len());
            return Err(Error::new(Code::PayloadTooLarge, text).hint("put it into a file and give that along"));
        }
        self.check_lane(config.workspace, config.task).await?;
        self.flows.keep(config.workspace, flow).await?;
        config.counted = flow.limits.max_queued.is_some();
        if flow.settings.queue_policy == QueuePolicy::Fifo {
            config.priority = 0;
        }
        let (workspace, task) = (config.workspace, config.task);
        let accepted = AcceptedTask { task_id: task, flow: config.flow.clone() };
        let command = TaskCommand::Start { config: Box::new(config.clone()) };
        let mut start = self.message(workspace, task, start_command(task), by, command)?;
        start.priority = config.priority;
        self.write_down(flow, &config, &start).await?;
        self.mailbox.send(start).await.map_err(internal)?;
        Ok(accepted)
    }

    /// Stops a task, all tasks below it and their agents: once this returns, nothing more of them begins. Again is harmless. Tells
    /// whether there was anything to stop: false for a task that had ended.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such task.
    pub async fn stop(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        command: CommandId,
        by: &Principal,
    ) -> Result<bool, Error> {
        let view = self.get(workspace, task).await?;
        if view.phase == TaskPhase::Finished {
            return Ok(false);
        }
        let (stop_id, reason) = (StopId(command.0), "user_cancelled".to_owned());
        self.stop_tree(&view, stop_id, &reason).await?;
        self.send(workspace, task, command, by, TaskCommand::Stop { stop_id, reason }).await?;
        Ok(true)
    }

    async fn stop_tree(&self, view: &TaskView, stop_id: StopId, reason: &str) -> Result<(), Error> {
        let (target, at) = (actor::StopTarget::Tree, self.clock.now());
        let request = StopRequest { stop_id, target, at, reason: reason.to_owned() };
        self.mailbox.stop_tree(&root_of(view), view.task_id.0, &request).await.map_err(internal)
    }

    /// Pauses a task before its next node, or before the nodes of these names; and with it all clones and subtasks below it,
    /// those included that are made later. Once a pause before the next node has returned, nothing new of them begins.
    ///
    /// # Errors
    /// `NOT_FOUND` when the task or its manifests are not there; `CONFLICT` when it has ended; `INVALID_ARGUMENT` for a name of no node.
    pub async fn pause(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        before: &[String],
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        let view = self.alive(workspace, task).await?;
        let flow = self.flows.by_hash(workspace, &view.flow).await?;
        let before = before.iter().map(|name| node_of(&flow, name, "before")).collect::<Result<Vec<_>, _>>()?;
        let hold = before.is_empty().then_some(HoldId(command.0));
        if let Some(HoldId(hold_id)) = hold {
            let path = view.above().iter().chain([&task]).map(|task| task.0).collect();
            let request = HoldRequest { hold_id, path, at: self.clock.now() };
            self.mailbox.hold_tree(&root_of(&view), &request).await.map_err(internal)?;
        }
        self.send(workspace, task, command, by, TaskCommand::Pause { before, hold }).await
    }

    /// Executes one node of each task that is paused: of this one, and of those below it when it waits for them.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such task; `CONFLICT` when it has ended, or neither is paused nor waits for others.
    pub async fn step(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        let view = self.alive(workspace, task).await?;
        let waits_for_children = view.phase == TaskPhase::Running && view.node.is_none() && view.children > 0;
        if view.phase != TaskPhase::Paused && !waits_for_children {
            return Err(Error::new(Code::Conflict, "this task is not paused").hint("pause it first"));
        }
        self.send(workspace, task, command, by, TaskCommand::Step).await
    }

    /// Goes on with a task that is paused, and with all below it; or with one that is parked because a command failed again and
    /// again: with `drop`, the failed command is given up.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is no such task; `CONFLICT` when it has ended.
    pub async fn resume(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        drop: bool,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        let view = self.alive(workspace, task).await?;
        match view.phase {
            TaskPhase::Parked => {
                let envelope: Envelope<TaskCommand> =
                    Envelope { id: command, at: self.clock.now(), by: by.clone(), content: Content::Unpark { drop } };
                let message = envelope.to(&actor_id(workspace, task)).map_err(internal)?;
                self.mailbox.send(message).await.map_err(internal)
            }
            TaskPhase::Queued | TaskPhase::Running | TaskPhase::Suspended | TaskPhase::Paused => {
                // First, so that a task that hears of it is not held by an earlier request.
                self.mailbox.release_tree(&root_of(&view), task.0).await.map_err(internal)?;
                self.send(workspace, task, command, by, TaskCommand::Resume).await
            }
            TaskPhase::Finished => Ok(()),
        }
    }

    /// Answers a human step, also before it asks: the answer is kept for it, in the place of one that was given before.
    ///
    /// # Errors
    /// Those of [`Tasks::pause`], with the field `node`; those of [`tools::check_answers`]; `FORBIDDEN` for an approval unless
    /// [`Answers::may_approve`]; `CONFLICT` when the node has ended or asks no people.
    pub async fn answer(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        node: &str,
        given: Answers,
        command: CommandId,
        by: &Principal,
    ) -> Result<(), Error> {
        let Answers { mut answers, may_approve } = given;
        let view = self.alive(workspace, task).await?;
        let flow = self.flows.by_hash(workspace, &view.flow).await?;
        let node = node_of(&flow, node, "node")?;
        let Some(Op::Ask(rule)) = flow.nodes.get(&node).map(|node| &node.op) else {
            return Err(Error::new(Code::Conflict, format!("{node} asks no people")));
        };
        if rule.approve.is_some() && !may_approve {
            return Err(Error::new(
                Code::Forbidden,
                format!("{node} asks for an approval, and that needs the right to approve"),
            )
            .hint("ask an editor of the workspace to answer it")
            .detail("needs", "approve"));
        }
        if rule.approve.is_some() && answers.get(COMMENT).is_some_and(Value::is_null) {
            answers.remove(COMMENT);
        }
        let (questions, asked) = (questions_of(&view, &node, rule), rule.asked_of(&answers));
        blocking::run(move || tools::check_answers(&questions, &asked)).await.map_err(internal)??;
        if view.node.as_ref() != Some(&node) && self.has_ended(workspace, task, &node).await? {
            return Err(Error::new(
                Code::Conflict,
                format!("{node} has its answer already, or waits for none any more"),
            )
            .hint("the task's history says what was answered"));
        }
        self.send(workspace, task, command, by, TaskCommand::Answer { node, answers }).await
    }

    /// Ends the wait of a question now, as if nobody had answered until its end. One that was answered meanwhile stays answered.
    ///
    /// # Errors
    /// Those of every method.
    pub async fn let_expire(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        question_id: QuestionId,
        by: &Principal,
    ) -> Result<(), Error> {
        let command = CommandId::from_key(&task.to_string(), &format!("expire/{question_id}"));
        self.send(workspace, task, command, by, TaskCommand::Expire { question_id }).await
    }

    /// Whether a node of the task has ended. A task executes each node once at most.
    async fn has_ended(&self, workspace: WorkspaceId, task: TaskId, node: &NodeId) -> Result<bool, Error> {
        let mut log = log::of(workspace, task);
        while let Some((_, _, event)) = log.next(&*self.table).await.map_err(internal)? {
            if matches!(event, TaskEvent::NodeFinished { node: ended, .. } if ended == *node) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn alive(&self, workspace: WorkspaceId, task: TaskId) -> Result<TaskView, Error> {
        let view = self.get(workspace, task).await?;
        if view.phase == TaskPhase::Finished {
            return Err(Error::new(Code::Conflict, format!("this task has ended: {}", view.status))
                .hint("replay it, or make a new one"));
        }
        Ok(view)
    }

    async fn send(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        id: CommandId,
        by: &Principal,
        command: TaskCommand,
    ) -> Result<(), Error> {
        let steers = matches!(
            command,
            TaskCommand::Stop { .. }
                | TaskCommand::Pause { .. }
                | TaskCommand::Step
                | TaskCommand::Resume
                | TaskCommand::Prioritize { .. }
                | TaskCommand::Delete
        );
        let mut message = self.message(workspace, task, id, by, command)?;
        if steers {
            message.priority = URGENT;
        }
        self.mailbox.send(message).await.map_err(internal)
    }

    fn message(
        &self,
        workspace: WorkspaceId,
        task: TaskId,
        id: CommandId,
        by: &Principal,
        command: TaskCommand,
    ) -> Result<QueueMessage, Error> {
        let envelope =
            Envelope { id, at: self.clock.now(), by: by.clone(), content: Content::Command { body: command } };
        let message = envelope.to(&actor_id(workspace, task)).map_err(internal)?;
        if message.body.len() > MAX_MESSAGE {
            return Err(Error::new(Code::PayloadTooLarge, "the command does not fit into a message"));
        }
        Ok(message)
    }
}

/// The task at the root of the tree that a task is in.
fn root_of(view: &TaskView) -> ActorId {
    actor_id(view.workspace_id, view.root())
}

fn first_view(config: &TaskConfig) -> TaskView {
    TaskView {
        task_id: config.task,
        workspace_id: config.workspace,
        flow: config.flow.clone(),
        labels: config.labels.clone(),
        phase: TaskPhase::Queued,
        status: Status::Success,
        node: None,
        parked_reason: None,
        waiting_for: Vec::new(),
        agent_waits: false,
        wait: None,
        origin: None::<Origin>,
        handoff: config.handoff.clone(),
        output: None,
        error: None,
        priority: config.priority,
        steps: 0,
        children: 0,
        usage: Usage::default(),
        budget: config.budget,
        usage_below: Usage::default(),
        created_at: config.created_at,
        finished_at: None::<Timestamp>,
    }
}
