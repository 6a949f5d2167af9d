//! The events of the streams, one schema each, and the unions that the stream routes answer with.
//!
//! OpenAPI 3.1 has no word for a stream of Server-Sent Events. A union describes one block of it in the form in which OpenAPI 3.2
//! sees a block: an object of the fields `id`, `event` and `data`. The tag of the union is `event`, so generators of clients make
//! a tagged union of it.

mod chat;
mod task;
mod workspace;

pub use chat::*;
pub use task::*;
pub use workspace::*;

use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{Discriminator, KnownFormat, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema, SchemaFormat, Type},
};

/// Schemas by their names, as utoipa collects them.
type Schemas = Vec<(String, RefOr<Schema>)>;

/// One event of a union.
struct Member {
    /// The value of the block's `event:` field.
    event: &'static str,
    /// The schema of its block.
    block: String,
    /// The schema of its data.
    data: String,
    /// Adds the schema of its data, and those that this one needs.
    add: fn(&mut Schemas),
}

impl Member {
    fn of<T: ToSchema>(union: &str, event: &'static str) -> Self {
        let words = event.split('_').map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_ascii_uppercase() + rest
        });
        let block = format!("{union}{}Event", words.collect::<String>());
        let add = |all: &mut Schemas| {
            all.push((T::name().into_owned(), T::schema()));
            T::schemas(all);
        };
        Self { event, block, data: T::name().into_owned(), add }
    }

    fn schema(&self, of: &str) -> Schema {
        let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([self.event]));
        let id = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(0))
            .description(Some("The block's `id:` field, the cursor to go on from: the number of the event in its chat or task, or a time in milliseconds for a workspace."));
        let block = ObjectBuilder::new()
            .description(Some(format!("The event `{}` of {of}.", self.event)))
            .property("id", id)
            .property("event", name.description(Some("The block's `event:` field.")))
            .property("data", Ref::from_schema_name(&self.data))
            .required("id")
            .required("event")
            .required("data");
        Schema::Object(block.build())
    }
}

fn union(members: &[Member], description: &str) -> RefOr<Schema> {
    let mapping = members.iter().map(|member| (member.event, format!("#/components/schemas/{}", member.block)));
    let all = members.iter().fold(OneOfBuilder::new(), |all, member| all.item(Ref::from_schema_name(&member.block)));
    let tagged = all.discriminator(Some(Discriminator::with_mapping("event", mapping)));
    RefOr::T(Schema::OneOf(tagged.description(Some(description)).build()))
}

fn add(members: &[Member], of: &str, all: &mut Schemas) {
    for member in members {
        all.push((member.block.clone(), RefOr::T(member.schema(of))));
        (member.add)(all);
    }
}

macro_rules! stream {
    ($(#[doc = $doc:literal])* $name:ident of $of:literal as $union:literal { $($event:literal => $data:ty,)* }) => {
        $(#[doc = $doc])*
        pub enum $name {}

        impl $name {
            /// The names of its events.
            pub const NAMES: &[&str] = &[$($event),*];

            fn members() -> Vec<Member> {
                vec![$(Member::of::<$data>($union, $event)),*]
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                union(&Self::members(), concat!($($doc, "\n",)*).trim())
            }
        }

        impl ToSchema for $name {
            fn schemas(all: &mut Schemas) {
                add(&Self::members(), $of, all);
            }
        }
    };
}

stream! {
    #[doc = "One block of a chat's stream: `event` is the block's `event:` field, `id` its `id:` field, and `data` its `data:` field, parsed as JSON. New events may come with later versions."]
    ChatEvent of "a chat" as "Chat" {
        "turn_started" => ChatTurnStarted,
        "waiting" => ChatWaiting,
        "thought" => ChatDelta,
        "chunk" => ChatDelta,
        "message" => ChatMessage,
        "call" => ChatCall,
        "observation" => ChatObservation,
        "agent_session" => ChatAgentSession,
        "agent_plan" => ChatAgentPlan,
        "agent_update" => ChatAgentUpdate,
        "file_updated" => ChatFileUpdated,
        "plan_step" => ChatPlanStep,
        "team_started" => ChatTeamStarted,
        "member_ended" => ChatMemberEnded,
        "permission_required" => ChatPermissionRequired,
        "permission_resolved" => ChatPermissionResolved,
        "permissions_forgotten" => ChatPermissionsForgotten,
        "question" => ChatQuestion,
        "call_handed_out" => ChatCallHandedOut,
        "mode_changed" => ChatModeChanged,
        "plan_approved" => ChatPlanApproved,
        "usage" => ChatUsage,
        "compacted" => ChatCompacted,
        "compaction_skipped" => ChatCompactionSkipped,
        "compaction_undone" => ChatCompactionUndone,
        "rolled_back" => ChatRolledBack,
        "done" => ChatDone,
        "stopped" => ChatStopped,
        "error" => super::InnerError,
        "reset" => StreamReset,
    }
}

stream! {
    #[doc = "One block of a task's stream: `event` is the block's `event:` field, `id` its `id:` field, and `data` its `data:` field, parsed as JSON. New events may come with later versions."]
    TaskEvent of "a task" as "Task" {
        "task_started" => TaskStarted,
        "node_started" => TaskNodeStarted,
        "context" => TaskContext,
        "denied" => TaskDenied,
        "agent_asked" => TaskAgentAsked,
        "agent_replied" => TaskAgentReplied,
        "agent_waits" => super::TaskAgentWaits,
        "tool" => TaskTool,
        "output_rejected" => TaskOutputRejected,
        "question" => TaskQuestion,
        "answered" => TaskAnswered,
        "node_finished" => TaskNodeFinished,
        "routed" => TaskRouted,
        "forked" => TaskForked,
        "child_arrived" => TaskChildArrived,
        "child_finished" => TaskChildFinished,
        "merged" => TaskMerged,
        "went_up" => TaskWentUp,
        "paused" => TaskPaused,
        "plan_step" => TaskPlanStep,
        "continued" => TaskContinued,
        "done" => TaskEnd,
        "stopped" => TaskEnd,
        "error" => TaskParked,
        "waiting" => TaskWaiting,
        "caught" => TaskCaught,
        "status" => TaskStatusSet,
        "diverged" => TaskDiverged,
        "reset" => StreamReset,
    }
}

stream! {
    #[doc = "One block of a workspace's stream: `event` is the block's `event:` field, `id` its `id:` field, and `data` its `data:` field, parsed as JSON. New events may come with later versions."]
    WorkspaceEvent of "a workspace" as "Workspace" {
        "file_updated" => WorkspaceFileUpdated,
        "chat_updated" => WorkspaceChatUpdated,
        "chat_deleted" => WorkspaceChatDeleted,
        "task_updated" => WorkspaceTaskUpdated,
        "task_deleted" => WorkspaceTaskDeleted,
        "waiting_updated" => WorkspaceWaitingUpdated,
        "presence" => WorkspacePresence,
        "chat_event" => WorkspaceChatEvent,
        "task_event" => WorkspaceTaskEvent,
        "reset" => StreamReset,
    }
}

/// The client's cursor is of no use: the stream goes on from `after`, and the client's view may have gaps.
#[derive(Serialize, ToSchema)]
pub struct StreamReset {
    /// The reason.
    pub reason: ResetReason,
    /// The `id:` after which the stream begins.
    pub after: u64,
}

/// A fault of a cursor.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResetReason {
    /// The number is beyond the end of the log, or it is no number.
    UnknownCursor,
    /// The log does not reach back as far.
    CursorTooOld,
}

/// One question to people.
#[derive(Serialize, ToSchema)]
pub struct Question {
    /// The key of the answer.
    pub name: String,
    /// The text of the question.
    pub question: String,
    /// The JSON Schema of the answer.
    #[schema(value_type = Value)]
    pub schema: serde_json::Value,
    /// Ready answers to show as buttons.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    pub buttons: Option<Vec<serde_json::Value>>,
}
