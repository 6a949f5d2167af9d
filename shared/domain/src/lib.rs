//! The vocabulary of BuildScale: ids, times, paths, principals, messages, commands, events and errors.
//!
//! Everything here is plain data with pure functions. It knows no I/O, no async, no HTTP and no vendor, so that every
//! other crate can speak it and no test needs a fake for it.

mod actor;
mod address;
mod answer;
mod answer_format;
pub mod budget;
pub mod change;
pub mod chat;
mod context;
mod conversion;
mod digest;
pub mod error;
pub mod event;
pub mod exact_numbers;
mod flow;
mod id;
mod labels;
mod length;
mod limits;
pub mod message;
mod mode;
mod model_settings;
mod name;
pub mod native;
mod object;
mod panic;
mod path;
mod permission;
mod principal;
mod question;
pub mod scenario;
pub mod served;
pub mod session;
mod status;
pub mod task;
pub mod task_native;
pub mod text;
mod thread;
mod time;
pub mod trace;
pub mod unique_keys;
mod waiting;

pub use actor::{ActorKind, ActorRef, ActorRefError};
pub use address::is_public;
pub use answer::Resources;
pub use answer_format::{AnswerFormat, TurnWishes, answer_json};
pub use budget::Budget;
pub use change::{Announced, FileKind, FileOp, PresenceTarget, WorkspaceEvent, changes_channel};
pub use chat::{
    AgentOf, AgentTool, AgentToolRuns, Approval, ChatCommand, ChatConfig, ChatView, CompactionView, ForkOf, OnBusy,
    QueuedMessage, TurnRequest,
};
pub use conversion::{Conversion, ConversionStatus};
pub use digest::{Hasher, Sha256};
pub use error::{Code, Error};
pub use event::{ChatEvent, StopReason};
pub use flow::NodeId;
pub use id::{
    CallId, ChatId, CommandId, EvaluationId, FileId, HoldId, IdError, MessageId, PermissionId, QuestionId, StopId,
    TaskId, TurnId, UserId, WorkspaceId,
};
pub use labels::{LabelChanges, Labels};
pub use length::json_length;
pub use limits::Limits;
pub use message::{
    CLIENT_PREFIX, ClientEffects, ClientFunction, Message, ToolCall, ToolSpec, Usage, name_for_providers,
};
pub use mode::Mode;
pub use model_settings::ModelSettings;
pub use name::{check_shown, checked_name, is_flow_name, is_folder_name, nearest_name};
pub use panic::panic_text;
pub use path::{FilePath, PathError, check_new_name, nearest_new_name};
pub use permission::{PermissionRule, shown_digest};
pub use principal::Principal;
pub use scenario::{Member, MemberEnd, MemberOf, NextPersona, PlanFile, Scenario, ScenarioSetup, TeamFact, ToldStep};
pub use session::{Analysis, ExecutorLimits, ExecutorOf, Session, SessionContext, Strategy};
pub use status::{ChatStatus, Status, TaskPhase};
pub use task::{TaskCommand, TaskConfig, TaskEvent, TaskView};
pub use thread::{AgentAsk, AgentOption, AgentOptions, AgentReply, ThreadAgent, WORKSPACE_FOLDER};
pub use time::{Stamp, Timestamp};
pub use trace::TraceContext;
pub use waiting::Waiting;
