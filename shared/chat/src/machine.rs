//! The chat machine: its parts, the effects that it asks for, and the reports that they give. `inputs` brings
//! each input to the part that decides on it.

mod work;

use crate::gate::Gate;
use actor::{ActorId, StopRequest};
use domain::{
    Approval, CallId, ChatConfig, Error, FilePath, MessageId, Sha256, Timestamp, ToolCall, TurnId, Usage, WorkspaceId,
    event::{Question, StopReason},
};
use ports::ModelRequest;
use serde_json::Value;
use slots::Places;
use std::{sync::Arc, time::Duration};
use tools::Registry;
pub use work::{AgentDoes, AgentReport, AgentWork, FileRewind, FileRewindResult, PlanPoll, PlanPollResult};

/// The chat machine.
#[derive(Clone)]
pub struct ChatMachine {
    /// Decides on tool calls.
    pub gate: Arc<dyn Gate>,
    /// Knows the tools.
    pub tools: Arc<Registry>,
    /// How long questions of `ask_user` wait for an answer.
    pub question_timeout: Duration,
    /// The places of the machine that commands run on; none where that is unknown, and commands wait as they run.
    pub places: Option<Places>,
    /// The cost of a usage of a model, or of the default one, in US dollars; 0 if the price is not known.
    pub cost: CostEstimator,
}

/// Estimates the cost of a usage of a model.
pub type CostEstimator = Arc<dyn Fn(Option<&str>, &Usage) -> f64 + Send + Sync>;

/// The key of a `reply` of [`ChatEffect::CallTool`] that has the model asked for the server of the tool.
pub(crate) const SAMPLE: &str = "sample";

/// A request of a chat to the outside.
#[derive(Debug)]
pub enum ChatEffect {
    /// Ask the model.
    CallModel {
        /// The message to come.
        message_id: MessageId,
        /// The context that the model reads.
        request: Box<ModelRequest>,
        /// When the turn's wall time is up.
        deadline: Timestamp,
        /// The chat.
        config: Arc<ChatConfig>,
        /// Whether tools of servers are offered in it. Which ones there are is asked outside, along with the model.
        served: bool,
        /// Whether an answer with calls that rules can cover has the standing rules read before it is reported.
        reads_rules: bool,
        /// Whether the model sees files of the home of the person of the chat.
        has_home: bool,
    },
    /// Run a tool.
    CallTool {
        /// The call.
        call: ToolCall,
        /// The chat that it is made in.
        config: Arc<ChatConfig>,
        /// How often it was begun, with this one.
        attempt: u32,
        /// The files that the agent has read, each by its hash; none for an absent file.
        seen: Vec<(FilePath, Option<Sha256>)>,
        /// The plan.
        plan_path: Option<FilePath>,
        /// How long it has waited for its machine, where it is a command.
        waited: Duration,
        /// Whether a person has allowed this very call, or a rule of theirs covers it.
        allowed: bool,
        /// Whether a file that it writes may start a flow.
        may_run: bool,
        /// Whether it has the home of the person of the chat.
        has_home: bool,
        /// The answer to the question of its server, with which the call goes on.
        reply: Option<Value>,
    },
    /// Look whether the plan is still the one that was approved, before a command runs because of it.
    CheckPlan {
        /// The workspace that it is in.
        workspace: WorkspaceId,
        /// The command.
        call_id: CallId,
        /// The approval with the version of the plan.
        approval: Box<Approval>,
    },
    /// Work with the coding agent of a thread.
    Agent(Box<AgentWork>),
    /// End a command whose result the turn does not need.
    KillCommand {
        /// The workspace whose sandbox it runs in.
        workspace: WorkspaceId,
        /// The call that it is.
        call_id: CallId,
    },
    /// Tell the server of a call that waits for a person there that nobody answers any more.
    LeaveServer {
        /// The call.
        call: ToolCall,
        /// The chat that it was made in.
        config: Arc<ChatConfig>,
        /// Whether the call had the home of the person of the chat: its server is that of one with the same rights.
        has_home: bool,
    },
    /// Take the files of a turn back.
    TakeBack(Box<FileRewind>),
    /// Look at the plan of a team.
    PollPlan(Box<PlanPoll>),
    /// Have the executors of a session's plan stop, or the agents of a team, and none of them begin.
    StopExecutors {
        /// The session, or the chat that has the team.
        session: ActorId,
        /// The plan, or the turn of the team.
        plan: CallId,
        /// The request.
        request: StopRequest,
    },
}

/// A report of an effect.
#[derive(Debug)]
pub enum Report {
    /// A piece of the model's reasoning.
    Reasoned {
        /// The message to come.
        message_id: MessageId,
        /// The piece.
        text: String,
    },
    /// A piece of the model's text.
    Wrote {
        /// The message to come.
        message_id: MessageId,
        /// The piece.
        text: String,
    },
    /// Standing rules deny calls in this turn.
    Denies {
        /// The message to come.
        message_id: MessageId,
        /// The ids of the rules.
        rule_ids: Vec<String>,
        /// The files of which they deny new contents.
        files: Vec<FilePath>,
    },
    /// An answer of the model came to nothing, and its tokens count all the same.
    Spent {
        /// The message that does not come.
        message_id: MessageId,
        /// Tokens and cost.
        usage: Usage,
        /// The model that answered, where that is known.
        model: Option<String>,
        /// Whether the usage is an estimate, since the answer was not read to its end.
        estimated: bool,
    },
    /// The model's answer is complete.
    ModelFinished(Box<ModelAnswer>),
    /// The model did not answer, or not in time.
    ModelFailed {
        /// The message that does not come.
        message_id: MessageId,
        /// The error.
        error: Error,
        /// Whether the turn's wall time was up.
        timed_out: bool,
    },
    /// The model's provider failed in a way that passes, and nothing of an answer came.
    ModelPostponed {
        /// The message to come.
        message_id: MessageId,
        /// The last failure.
        error: Error,
        /// How often it failed.
        failures: u32,
        /// How long to wait before it is asked again.
        after: Duration,
    },
    /// A tool is done.
    ToolFinished {
        /// The call.
        call_id: CallId,
        /// The result.
        outcome: Box<tools::CallOutcome>,
    },
    /// The server of a tool tells how far its call is, or a command the end of its output.
    ToolTold {
        /// The call.
        call_id: CallId,
        /// The words.
        words: String,
    },
    /// The server of a tool asks the model, and the call waits.
    ToolSamples {
        /// The call.
        call_id: CallId,
        /// The request.
        request: Value,
    },
    /// The model has answered the server of a tool.
    Sampled {
        /// The call.
        call_id: CallId,
        /// Tokens and cost.
        usage: Usage,
        /// The model that answered, where that is known.
        model: Option<String>,
        /// Whether the usage is an estimate, since the answer was not read to its end.
        estimated: bool,
    },
    /// The server of a tool asks a person, and the call waits.
    ToolAsks {
        /// The call.
        call_id: CallId,
        /// The question.
        question: Box<Question>,
    },
    /// The plan was looked at.
    PlanChecked {
        /// The command that waits for it.
        call_id: CallId,
        /// Why the command needs a person's permission all the same.
        changed: Option<String>,
    },
    /// The files of a turn have gone back.
    TakenBack {
        /// The turn.
        turn: TurnId,
        /// The result.
        taken: Box<Result<FileRewindResult, Error>>,
    },
    /// The plan of a team was looked at.
    PlanPolled {
        /// The turn.
        turn: TurnId,
        /// The result of the look.
        result: Box<Result<PlanPollResult, Error>>,
    },
    /// The coding agent of a thread worked.
    Agent {
        /// The stretch of its work.
        leg: MessageId,
        /// The report.
        report: AgentReport,
    },
    /// Nothing: no turn waits for it.
    Told,
}

/// A model's whole answer.
#[derive(Debug)]
pub struct ModelAnswer {
    /// The message.
    pub message_id: MessageId,
    /// Its whole text.
    pub text: String,
    /// The end of the text that was not reported yet.
    pub unreported: String,
    /// Its whole reasoning.
    pub reasoning: String,
    /// Its calls: tools and arguments.
    pub calls: Vec<(String, String)>,
    /// Why it ended.
    pub reason: StopReason,
    /// Tokens and cost.
    pub usage: Usage,
    /// State of the provider, to be sent back with the next call.
    pub provider: Value,
    /// The model that answered, where that is known.
    pub model: Option<String>,
}
