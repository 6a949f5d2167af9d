//! The events of a task: past-tense facts, one enum, one sequence per task.

use super::{
    AgentAnswer, Arrival, AssembledContext, BudgetFact, ChildEnd, ChildKind, ChildName, NodeId, NodeMetrics, Retry,
    Status, TaskCommand, TaskConfig, ToolUse, Wait,
};
use crate::{
    ChatEvent, ChatId, Error, FileId, FilePath, HoldId, Labels, QuestionId, StopId, TaskId, Timestamp,
    question::Question,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One fact about a task. One sequence per task; kept in its log, folded into its state, rendered for clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TaskEvent {
    /// It was made.
    Created {
        /// The configuration.
        config: Box<TaskConfig>,
    },
    /// A node began. Its input is the task's current output, or for a merge its arrivals; it is not written twice.
    NodeStarted {
        /// The node.
        node: NodeId,
        /// Counts from 1; above 1 after a crash or a retry.
        attempt: u32,
        /// How often it was begun anew because it had failed for a passing reason, which is told here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<Retry>,
        /// How long the task waited in the queue before it, in milliseconds.
        queue_ms: u64,
        /// The time of the start.
        at: Timestamp,
    },
    /// The context of the running node was put together.
    ContextAssembled {
        /// The node.
        node: NodeId,
        /// The context.
        context: Box<AssembledContext>,
    },
    /// A policy refused something; the route is not changed by it (spec 002 §10.5).
    Denied {
        /// The node.
        node: NodeId,
        /// The thing that was refused.
        what: String,
        /// The rule that refused it.
        rule: String,
    },
    /// A node asked its agent.
    AgentAsked {
        /// The node.
        node: NodeId,
        /// The chat that carries the conversation; its own events can be watched.
        chat: ChatId,
        /// Counts from 1; above 1 when the output did not fit the node's schema.
        round: u32,
        /// The prompt of the node as it was rendered; its beginning if it is long. Older logs do not have it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        prompt: String,
    },
    /// The agent answered.
    AgentReplied {
        /// The node.
        node: NodeId,
        /// The answer.
        answer: Box<AgentAnswer>,
    },
    /// The agent of a node waits for people, or goes on. They answer it at its chat.
    AgentWaits {
        /// The node.
        node: NodeId,
        /// The chat.
        chat: ChatId,
        /// The open question or request for permission, as the event of the chat; none when the agent goes on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<Box<ChatEvent>>,
        /// Whether the request is cut. The chat has the whole.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
        /// Whether the request that was open before was declined, or withdrawn without an answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        declined: bool,
        /// The time at which the task was told.
        at: Timestamp,
    },
    /// A deterministic node called a tool.
    ToolUsed {
        /// The node.
        node: NodeId,
        /// The result.
        used: Box<ToolUse>,
    },
    /// A step of a plan file changed, by a tool that a deterministic node called.
    PlanStep {
        /// The node.
        node: NodeId,
        /// Counts from 1.
        step: u32,
        /// `pending`, `in_progress`, `done`, `failed` or `skipped`.
        status: String,
        /// The text of the step.
        title: String,
        /// The plan file.
        plan_path: FilePath,
        /// The id of the plan file.
        plan_id: Option<FileId>,
        /// Steps done.
        done: u32,
        /// Steps in all.
        total: u32,
    },
    /// An output did not fit the node's schema.
    OutputRejected {
        /// The node.
        node: NodeId,
        /// Counts from 1.
        round: u32,
        /// The messages of the validator.
        errors: Vec<String>,
    },
    /// A human step asks.
    Asked {
        /// The node.
        node: NodeId,
        /// The set of questions.
        question_id: QuestionId,
        /// The questions.
        questions: Vec<Question>,
        /// The time of the questions.
        at: Timestamp,
        /// When no answer becomes a failure; none for never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
    /// People answered, maybe before they were asked.
    Answered {
        /// The node.
        node: NodeId,
        /// The answers.
        answers: Map<String, Value>,
        /// The person.
        by: String,
        /// The time of the answers.
        at: Timestamp,
    },
    /// A node ended.
    NodeFinished {
        /// The node.
        node: NodeId,
        /// Counts from 1.
        attempt: u32,
        /// The status.
        status: Status,
        /// Its output; null when it failed without one.
        output: Value,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
        /// Its usage.
        metrics: NodeMetrics,
        /// The time of the end.
        at: Timestamp,
    },
    /// A node waits, and nothing is held for it: a message to itself wakes the task.
    Waiting {
        /// The node.
        node: NodeId,
        /// The attempt that it waits after; for slots, the one that begins then.
        attempt: u32,
        /// The wait.
        wait: Wait,
        /// The start of the wait.
        at: Timestamp,
    },
    /// A failure of the node that has just ended is taken by an edge of its own (`on_error`): the task goes on there with the
    /// error and the node's input, as it was before the node.
    Caught {
        /// The node.
        node: NodeId,
        /// Its error.
        error: Error,
        /// The status of the task before the node.
        status: Status,
    },
    /// The task is like this from here on.
    StatusSet {
        /// The new status.
        status: Status,
    },
    /// A re-run was told something that the recorded task was told later, or never: it is kept until its turn.
    HeldBack {
        /// The command.
        command: Box<TaskCommand>,
    },
    /// A re-run cannot go on as the recorded task did: from here on it decides by itself.
    Diverged {
        /// The time of the divergence.
        at: Timestamp,
    },
    /// The artifacts of the task were stored.
    Archived {
        /// How many files.
        files: u32,
    },
    /// The router chose the next node.
    Routed {
        /// The node that ended.
        from: NodeId,
        /// The next node.
        to: NodeId,
    },
    /// A branch or a split made children.
    Forked {
        /// The branch or split.
        node: NodeId,
        /// The kind of the children.
        kind: ChildKind,
        /// The targets of its edges.
        to: Vec<NodeId>,
        /// The number of children: the child with the number `n` goes along the edge `n` modulo their number.
        total: u32,
    },
    /// These children were sent off.
    Spawned {
        /// The branch or split.
        node: NodeId,
        /// Children below this number have been sent off.
        until: u32,
    },
    /// Something came to a merge of this task.
    ChildArrived {
        /// The arrival.
        arrival: Box<Arrival>,
    },
    /// A child has come to its end.
    ChildFinished {
        /// The child.
        child: ChildName,
        /// Its end.
        end: Box<ChildEnd>,
    },
    /// A merge is complete; its node begins.
    Merged {
        /// The merge.
        node: NodeId,
        /// The members whose outputs it takes; all arrivals when empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        taken: Vec<String>,
        /// Those that could have come and failed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<ChildName>,
        /// Whether its input has these, too.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        with_failed: bool,
        /// The nodes on the paths of the failed members, if its input has them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ways: Vec<NodeId>,
        /// Children that the merge has stopped waiting for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cancelled: Vec<ChildName>,
    },
    /// The task itself went on into a merge of a task above, and rests.
    WentUp {
        /// The merge.
        merge: NodeId,
        /// Its owner.
        owner: TaskId,
    },
    /// Somebody wants it paused before these nodes, or before the next one.
    PauseRequested {
        /// Nodes; none for the next one.
        before: Vec<NodeId>,
        /// The request that went around the mailbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<HoldId>,
    },
    /// It is paused before a node (inspector).
    PausedBefore {
        /// The node.
        node: NodeId,
        /// The time of the pause.
        at: Timestamp,
    },
    /// It goes on.
    Continued {
        /// Whether it pauses again after one node.
        step: bool,
        /// The time of the continuation.
        at: Timestamp,
    },
    /// It goes before others that wait, or after them, from here on.
    Prioritized {
        /// Higher ones go first.
        priority: i8,
    },
    /// It has other labels.
    Labelled {
        /// All that it has from here on.
        labels: Labels,
    },
    /// Something about its budget.
    Budget {
        /// The fact.
        fact: Box<BudgetFact>,
    },
    /// It is off the lists, and its records are removed once it has ended.
    Deleted {
        /// The time of the deletion.
        at: Timestamp,
    },
    /// The artifacts and chats that it left behind are gone.
    Cleared,
    /// A stop was asked for.
    StopRequested {
        /// The request.
        stop_id: StopId,
        /// The reason.
        reason: String,
    },
    /// It has come to its end.
    Finished {
        /// The status.
        status: Status,
        /// The output of the task.
        output: Value,
        /// The exit that it reached; none when it ended elsewhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<NodeId>,
        /// Why it failed, or `CANCELLED`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
        /// The time of the end.
        at: Timestamp,
    },
    /// A command failed again and again: it is put aside until a person resumes it or drops the command.
    Parked {
        /// The reason.
        reason: String,
        /// The time of the pause.
        at: Timestamp,
    },
    /// A person resumed it.
    Unparked {
        /// The time of the resumption.
        at: Timestamp,
    },
}
