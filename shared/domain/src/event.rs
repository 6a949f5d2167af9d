//! The events of a chat: past-tense facts, one enum, one sequence per chat (docs/architecture/events.md).
//!
//! They are folded into the machine's state, kept in the log, and rendered for clients ([`crate::native`]), unless only the machine needs them.

mod parts;
mod waits;

pub use crate::{
    context::{CompactionRecord, ContextKind, ContextPart, ContextRecord},
    permission::PermissionOutcome,
    question::Question,
};
pub use parts::{HandedOut, RollbackFact, SteeringWords, StopReason};
pub use waits::{PlaceWait, RetryWait, SlotWait, TurnWait};

use crate::{
    AgentAsk, AgentReply, Analysis, AnswerFormat, Approval, CallId, ChatConfig, ChatId, Code, Error, FileId, FilePath,
    Limits, Message, MessageId, Mode, PermissionId, PermissionRule, QuestionId, Resources, Sha256, StopId, TeamFact,
    Timestamp, TraceContext, TurnId, Usage,
    session::{AnalysisOrigin, ExecutorTask, PlannedStep, StepOutcome},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One fact about a chat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChatEvent {
    /// The chat was made, with this configuration.
    Created {
        /// How it is set up.
        config: Box<ChatConfig>,
    },
    /// The configuration was changed.
    Configured {
        /// How it is set up from now on.
        config: Box<ChatConfig>,
    },
    /// A turn was asked for while another waits for a person; it starts when that one has ended.
    TurnQueued(TurnWait),
    /// A turn began, or began again after a crash (`attempt` above 1: streamed parts that were not completed are void).
    TurnStarted {
        /// The turn.
        turn_id: TurnId,
        /// Counts from 1.
        attempt: u32,
        /// When it was asked for; a stop that was asked for later applies to it.
        asked_at: Timestamp,
        /// The limits of the turn.
        limits: Limits,
        /// Whether the sender has the right to approve, so that the approval of a plan applies.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_approve: bool,
        /// The trace that the request came in, where it named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceContext>,
    },
    /// The model is to be asked, and as many are asked as may be at once: the call waits for slots, and nothing is held for it.
    SlotsAwaited(SlotWait),
    /// The provider failed in a way that passes, and said nothing yet: the model is asked again later, and nothing is held.
    ModelPostponed(RetryWait),
    /// The model is asked; the answer becomes the message with this id.
    ModelStarted {
        /// The message to come.
        message_id: MessageId,
        /// Counts from 1 per message.
        attempt: u32,
        /// The time of the request.
        at: Timestamp,
        /// The context that it is given; older logs do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<Box<ContextRecord>>,
    },
    /// The coding agent of a thread works: it was handed the person's words, or the answer to its request.
    AgentBegan {
        /// The stretch of work that begins, which ends with the turn or with the agent's next request. Also the id of its first message.
        leg: MessageId,
        /// Counts from 1; above 1 after a crash.
        attempt: u32,
        /// The answer that it was handed; none for the words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<AgentReply>,
        /// The time of the start.
        at: Timestamp,
    },
    /// The coding agent works in a session of its own, which later turns go on with where it can.
    AgentBound {
        /// The agent's id of the session.
        session_id: String,
    },
    /// The coding agent told of a tool call, a plan, a mode or something else that is no text; or the server of a tool, how far its call is; or a command that runs, the end of its output so far.
    AgentUpdated {
        /// The tool call, if it is about one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        /// The session update of the Agent Client Protocol. Long texts in it are cut.
        update: Value,
        /// The time of the update.
        at: Timestamp,
    },
    /// A piece of the model's reasoning; expires once the message is complete.
    Thought {
        /// The piece.
        text: String,
        /// The message to come.
        message_id: MessageId,
    },
    /// A piece of the model's text; expires once the message is complete.
    Chunk {
        /// The piece.
        text: String,
        /// The message to come.
        message_id: MessageId,
    },
    /// A message is complete. Answers of tools are [`ChatEvent::Observed`] instead.
    MessageAdded {
        /// The whole message.
        message: Message,
    },
    /// The context was too long: from here on requests to the model leave out this many of the oldest whole turns.
    ContextCut {
        /// Turns left out from now on, counted from the oldest one that was still sent.
        turns: u32,
    },
    /// The oldest turns are to be summarised: the next answer of the model is the summary.
    CompactionBegan {
        /// Whether the turn has nothing else to do, because a person asked for it. Such a turn is no part of the conversation.
        internal: bool,
        /// The longest summary, in characters.
        max_chars: u32,
        /// The time of it.
        at: Timestamp,
    },
    /// The oldest turns were compacted: requests to the model have the summary in place of their words, and their calls with results as before.
    Compacted {
        /// The range, the summary and the sizes.
        compaction: Box<CompactionRecord>,
    },
    /// A compaction that a person asked for was not done.
    CompactionSkipped {
        /// The turn that it would have been.
        turn_id: TurnId,
        /// The reason, for people.
        reason: String,
        /// The time of it.
        at: Timestamp,
    },
    /// The last compaction was taken back: requests to the model have the turns word for word again.
    CompactionUndone {
        /// The person.
        by: String,
        /// The time of it.
        at: Timestamp,
    },
    /// Words for the running turn are on their way: it waits for them before the model is asked again.
    SteerRequested {
        /// The request, which has the id of the command with the words.
        stop_id: StopId,
        /// The time of the request.
        at: Timestamp,
    },
    /// The turn has come to its next decision, and the words are not there yet: it rests.
    SteerAwaited {
        /// The start of the wait.
        at: Timestamp,
    },
    /// The words are there; the model reads them with its next call.
    Steered {
        /// The words.
        words: Box<SteeringWords>,
    },
    /// A command is to run, and its machine has as many as it takes, or starts: the call waits for it, and nothing is held for it.
    PlaceAwaited(PlaceWait),
    /// A tool call was decided on and starts. One that starts again, after a wait or a crash, is an update of the call.
    CallStarted {
        /// The call.
        call_id: CallId,
        /// Counts from 1; above 1 after a crash, and after a wait for a machine or for a person.
        attempt: u32,
        /// The tool.
        tool: String,
        /// The path it is about, if it has one.
        path: Option<String>,
        /// Its arguments, as the model wrote them.
        args: String,
        /// The time of the start; older logs do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    /// A tool call was answered.
    Observed {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: String,
        /// The text that the model reads.
        output: String,
        /// Whether it succeeded.
        success: bool,
        /// Whether the call itself was wrong, rather than the state that it met (spec 002 §3.4), as a tool or a place that is not there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        misuse: bool,
        /// The error code: `NOT_BEGUN` where nothing of it happened, `OUTCOME_UNKNOWN` where that is not known, another where it has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
        /// The resources that a command used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resources: Option<Resources>,
        /// Whether the output was cut to its cap.
        truncated: bool,
        /// Contents that the agent has now seen, by path: later writes of it must build on these.
        seen: Vec<(FilePath, Option<Sha256>)>,
        /// The time of the result.
        at: Timestamp,
    },
    /// A file has a new version, a new place, or is gone (`v` 0).
    FileUpdated {
        /// Its path.
        path: FilePath,
        /// Its version.
        v: u64,
        /// The file.
        file_id: FileId,
        /// The author.
        author: String,
        /// The call under which its author wrote it, where the log has no other trace of that call: of a coding agent in a working copy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
    },
    /// A step of the plan changed.
    PlanStep {
        /// Counts from 1.
        step: u32,
        /// `pending`, `in_progress`, `done`, `failed` or `skipped`.
        status: String,
        /// The text of the step.
        title: String,
        /// The plan file.
        plan_path: FilePath,
        /// The id of the plan file; older logs do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan_id: Option<FileId>,
        /// Steps done.
        done: u32,
        /// Steps in all.
        total: u32,
    },
    /// A call waits for a person's permission.
    PermissionRequired {
        /// The permission.
        permission_id: PermissionId,
        /// The call that waits.
        call_id: CallId,
        /// `command`, `file`, `network` or `mcp` (spec 004 §5).
        category: String,
        /// The tool.
        tool: String,
        /// Its arguments.
        args: String,
        /// Why it is asked.
        reason: String,
        /// The rule that a yes with `always` grants, and whose calls a no with `always` denies; none where there is none to grant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        always: Option<PermissionRule>,
        /// The request of the coding agent that asks, in a thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<Box<AgentAsk>>,
        /// When it was asked.
        at: Timestamp,
        /// When no answer becomes a no.
        expires_at: Timestamp,
    },
    /// A permission was decided.
    PermissionResolved {
        /// The permission.
        permission_id: PermissionId,
        /// The decision.
        outcome: PermissionOutcome,
        /// The source of the decision: a principal, `stop` or `timeout`.
        by: String,
        /// The rule of the chat that was granted along with it: one that denies along with a no. One beyond the chat is not told here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        always: Option<PermissionRule>,
        /// The reason of a no: the words of a person, or the rule beyond the chat that denies the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The option of the coding agent that was chosen, in a thread.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option_id: Option<String>,
        /// The time of the decision.
        at: Timestamp,
    },
    /// A decision that counts for nothing: it came late or second, or the chat did not ask for it.
    DecisionRefused {
        /// The permission that it is about.
        permission_id: PermissionId,
        /// The decision.
        outcome: PermissionOutcome,
        /// The person.
        by: String,
        /// The time of the refusal.
        at: Timestamp,
    },
    /// A person took back rules of the chat: calls that they allowed need permission again.
    PermissionsForgotten {
        /// The rule that was taken back; none for all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<PermissionRule>,
        /// The person.
        by: String,
        /// The time of the withdrawal.
        at: Timestamp,
    },
    /// The agent asks people; its call waits for the answers.
    Asked {
        /// The set of questions.
        question_id: QuestionId,
        /// The call that waits.
        call_id: CallId,
        /// The questions.
        questions: Vec<Question>,
        /// When they were asked.
        at: Timestamp,
        /// When no answer becomes a refusal.
        expires_at: Timestamp,
    },
    /// A call was handed out: a program elsewhere answers it.
    HandedOut(HandedOut),
    /// The mode was changed.
    ModeChanged {
        /// The new mode.
        mode: Mode,
        /// The plan it is about.
        plan_path: Option<FilePath>,
        /// The sender; older logs lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The time of the change; older logs do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    /// A version of a plan was approved: the chat is in `build` mode from now on, and carries it out.
    PlanApproved {
        /// The approval, with its plan, person and time.
        approval: Box<Approval>,
    },
    /// A person without the right to approve has answered a question of the turn: calls that an approved plan allows need consent now.
    RightsNarrowed {
        /// The person.
        by: String,
    },
    /// A person without the right to run flows has begun the turn, or continued it: no file that the agent writes from here on starts one.
    RunWithheld,
    /// Another person than that of the chat has begun the turn, or continued it: from here on the agent has no access to the home of its person.
    HomeWithheld,
    /// The answer of the turn has to have a format.
    FormatAsked {
        /// The format.
        format: AnswerFormat,
    },
    /// The rules of the workspace and of its person were read, and some deny calls: in this turn neither a plan nor a rule of the chat lets these run.
    DenialsRead {
        /// The ids of the rules that deny.
        rule_ids: Vec<String>,
        /// The files of which they deny new contents: a command may keep a folder around one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FilePath>,
    },
    /// A model call was paid for.
    Used {
        /// By this call.
        usage: Usage,
        /// Tokens of context sent.
        context_used: u64,
        /// Tokens of context allowed.
        context_limit: u64,
        /// The model that answered, as its provider names it, such as `openai/gpt-5-mini-2025-08-07`; where that is not known, none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Whether the usage is an estimate: the answer was not read to its end, and its provider has not told it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// A stop was asked for while a tool runs: the tool completes first.
    StopRequested {
        /// The request.
        stop_id: StopId,
        /// The reason.
        reason: String,
    },
    /// The turn ended by itself or at a limit.
    Done {
        /// The turn.
        turn_id: TurnId,
        /// The model's last words.
        message: String,
        /// Why it ended.
        stop_reason: StopReason,
        /// The time of the end.
        at: Timestamp,
    },
    /// The turn was stopped.
    Stopped {
        /// The turn.
        turn_id: TurnId,
        /// The request that stopped it, if a person's.
        stop_id: Option<StopId>,
        /// The reason, such as `user_cancelled`.
        reason: String,
        /// The text of the model until then.
        partial_response: String,
        /// The time of the stop.
        at: Timestamp,
    },
    /// Something failed; a `Done` or `Stopped` follows when it ended the turn.
    Failed {
        /// The error.
        error: Error,
    },
    /// A command failed again and again: the chat pauses until a person resumes it or drops the command.
    Paused {
        /// The reason.
        reason: String,
        /// The time of the pause.
        at: Timestamp,
    },
    /// The chat was given up.
    Deleted {
        /// The turn that runs: its end is the last event that clients see. None when no turn runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_id: Option<TurnId>,
        /// The time of the deletion.
        at: Timestamp,
    },
    /// A person resumed the chat.
    Unpaused {
        /// The time of the resumption.
        at: Timestamp,
    },
    /// The message of a session's turn was analysed.
    Analysed {
        /// The analysis.
        analysis: Analysis,
        /// Its author.
        by: AnalysisOrigin,
        /// The time of it.
        at: Timestamp,
    },
    /// A call of `run_plan` was accepted: its steps are carried out by executors, and the call is answered when all have ended.
    Planned {
        /// The call, which is the plan.
        call_id: CallId,
        /// Counts the plans of the turn, from 1: a later one is the rest of the work, planned anew.
        version: u32,
        /// The steps.
        steps: Vec<PlannedStep>,
        /// The time of it.
        at: Timestamp,
    },
    /// A step of a session's plan has begun: its executor was sent its task.
    StepStarted {
        /// The plan.
        call_id: CallId,
        /// The step.
        step: u32,
        /// The chat of the executor.
        executor: ChatId,
        /// Its task.
        task: Box<ExecutorTask>,
        /// The time of it.
        at: Timestamp,
    },
    /// A step of a session's plan has ended, or cannot begin.
    StepEnded {
        /// The plan.
        call_id: CallId,
        /// The step.
        step: u32,
        /// The result.
        result: Box<StepOutcome>,
        /// The time of it.
        at: Timestamp,
    },
    /// Something about the chat's team (spec 000 §4.3).
    Team {
        /// The fact.
        fact: Box<TeamFact>,
    },
    /// The turn before is taken back.
    Rollback {
        /// The fact.
        fact: Box<RollbackFact>,
    },
}
