//! BuildScale's own wire format for the events of a chat (spec 000 §5).

mod agent;

use crate::{
    AgentOption, ChatEvent, Message, PermissionRule, TeamFact,
    event::{CompactionRecord, HandedOut, PlaceWait, RetryWait, RollbackFact, SlotWait},
    object::object,
    shown_digest,
};
use agent::in_progress;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// The name and the data of `event` on the wire; none for a fact that only the machine needs.
pub fn encode(event: &ChatEvent) -> Option<(&'static str, Value)> {
    // Every key in the data is a text, so a value takes all of it.
    write(event, serde_json::value::Serializer).ok().flatten()
}

/// Writes the data of `event` to `to`. Returns its name on the wire and the result of `to`; none for a fact that only the machine needs, of
/// which nothing is written.
///
/// # Errors
/// Those of `to`.
pub fn write<S: Serializer>(event: &ChatEvent, to: S) -> Result<Option<(&'static str, S::Ok)>, S::Error> {
    Ok(Some(match event {
        ChatEvent::Created { .. }
        | ChatEvent::Configured { .. }
        | ChatEvent::TurnQueued { .. }
        | ChatEvent::ModelStarted { .. }
        | ChatEvent::AgentBegan { .. }
        | ChatEvent::ContextCut { .. }
        | ChatEvent::CompactionBegan { .. }
        | ChatEvent::SteerRequested { .. }
        | ChatEvent::SteerAwaited { .. }
        | ChatEvent::Steered { .. }
        | ChatEvent::DecisionRefused { .. }
        | ChatEvent::RightsNarrowed { .. }
        | ChatEvent::RunWithheld
        | ChatEvent::HomeWithheld
        | ChatEvent::FormatAsked { .. }
        | ChatEvent::DenialsRead { .. }
        | ChatEvent::StopRequested { .. }
        | ChatEvent::Deleted { .. }
        | ChatEvent::Unpaused { .. }
        // Clients of sessions have a protocol of their own; a plan is a call here, and its results are the answer to it.
        | ChatEvent::Analysed { .. }
        | ChatEvent::Planned { .. }
        | ChatEvent::StepStarted { .. }
        | ChatEvent::StepEnded { .. } => return Ok(None),
        ChatEvent::SlotsAwaited(SlotWait { message_id, at, .. }) => {
            ("waiting", object!(to, { "reason": "slots", "message_id": message_id, "at": at }))
        }
        ChatEvent::PlaceAwaited(PlaceWait { call_id, at, why: Some(why), until, .. }) => (
            "waiting",
            object!(to, { "reason": "sandbox", "call_id": call_id, "message": why, "at": at, "until": until }),
        ),
        ChatEvent::PlaceAwaited(PlaceWait { call_id, at, .. }) => {
            ("waiting", object!(to, { "reason": "place", "call_id": call_id, "at": at }))
        }
        ChatEvent::ModelPostponed(RetryWait { message_id, error, at, until, .. }) => (
            "waiting",
            object!(to, {
                "reason": "model", "message_id": message_id, "code": error.code, "message": error.message, "at": at,
                "until": until,
            }),
        ),
        ChatEvent::TurnStarted { turn_id, attempt, .. } => {
            ("turn_started", object!(to, { "turn_id": turn_id, "attempt": attempt }))
        }
        ChatEvent::AgentBound { session_id } => ("agent_session", object!(to, { "session_id": session_id })),
        ChatEvent::AgentUpdated { call_id, update, .. } => {
            let (name, data) = agent::encode(*call_id, update);
            (name, data.serialize(to)?)
        }
        // Clients that were told of a wait show the call again.
        ChatEvent::CallStarted { call_id, attempt: 2.., .. } => {
            ("agent_update", object!(to, { "call_id": call_id, "update": in_progress(*call_id) }))
        }
        ChatEvent::Thought { text, message_id } => ("thought", object!(to, { "text": text, "message_id": message_id })),
        ChatEvent::Chunk { text, message_id } => ("chunk", object!(to, { "text": text, "message_id": message_id })),
        ChatEvent::MessageAdded { message } => ("message", message_data(message, to)?),
        ChatEvent::Compacted { compaction } => ("compacted", compacted(compaction, to)?),
        ChatEvent::CompactionSkipped { turn_id, reason, .. } => {
            ("compaction_skipped", object!(to, { "turn_id": turn_id, "reason": reason }))
        }
        ChatEvent::CompactionUndone { by, .. } => ("compaction_undone", object!(to, { "by": by })),
        ChatEvent::CallStarted { call_id, tool, path, args, .. } => (
            "call",
            object!(to, { "call_id": call_id, "tool": tool, "args": args_data(args) }, maybe { "path": path }),
        ),
        ChatEvent::Observed { call_id, tool, output, success, code, resources, truncated, .. } => (
            "observation",
            object!(to, { "call_id": call_id, "tool": tool, "output": output, "success": success }, maybe {
                "code": code, "resources": resources, "truncated": truncated.then_some(true),
            }),
        ),
        ChatEvent::FileUpdated { path, v, file_id, author, .. } => {
            ("file_updated", object!(to, { "path": path, "v": v, "file_id": file_id, "author": author }))
        }
        ChatEvent::PlanStep { step, status, title, plan_path, plan_id, done, total } => (
            "plan_step",
            object!(to, {
                "step": step, "status": status, "title": title, "plan_path": plan_path, "done": done, "total": total,
            }, maybe { "plan_id": plan_id }),
        ),
        ChatEvent::PermissionRequired {
            permission_id,
            call_id,
            category,
            tool,
            args,
            reason,
            always,
            agent,
            expires_at,
            at: _,
        } => {
            let option =
                |option: &AgentOption| json!({ "option_id": option.id, "name": option.name, "kind": option.kind });
            let options = agent.as_ref().map(|agent| agent.options.iter().map(option).collect::<Value>());
            let digest = shown_digest(category, tool, args, agent.as_deref());
            let data = object!(to, {
                "permission_id": permission_id, "call_id": call_id, "category": category, "tool": tool,
                "args": args_data(args), "reason": reason, "expires_at": expires_at,
            }, maybe { "always": always, "options": options, "digest": Some(digest) });
            ("permission_required", data)
        }
        ChatEvent::PermissionResolved { permission_id, outcome, by, always, reason, option_id, .. } => (
            "permission_resolved",
            object!(to, { "permission_id": permission_id, "outcome": outcome, "by": by }, maybe {
                "always": always, "reason": reason, "option_id": option_id,
            }),
        ),
        ChatEvent::PermissionsForgotten { by, rule, .. } => {
            let rule_id = rule.as_ref().map(PermissionRule::id);
            ("permissions_forgotten", object!(to, { "by": by }, maybe { "rule_id": rule_id }))
        }
        ChatEvent::Rollback { fact } => match &**fact {
            RollbackFact::Began { .. } => return Ok(None),
            RollbackFact::Ended { turn_id, rewind_id, changes, kept, error, .. } => {
                let (code, message) = error.as_ref().map(|error| (error.code, &error.message)).unzip();
                let data = object!(to, { "turn_id": turn_id, "changes": changes, "kept": kept }, maybe {
                    "rewind_id": rewind_id, "code": code, "message": message,
                });
                ("rolled_back", data)
            }
        },
        ChatEvent::Asked { question_id, call_id, questions, expires_at, .. } => (
            "question",
            object!(to, {
                "question_id": question_id, "call_id": call_id, "questions": questions, "expires_at": expires_at,
            }),
        ),
        ChatEvent::HandedOut(HandedOut { call_id, tool, args, repeatable, expires_at, .. }) => (
            "call_handed_out",
            object!(to, {
                "call_id": call_id, "tool": tool, "args": args_data(args), "repeatable": repeatable,
                "expires_at": expires_at,
            }),
        ),
        ChatEvent::ModeChanged { mode, plan_path, by, .. } => {
            ("mode_changed", object!(to, { "mode": mode, "plan_path": plan_path }, maybe { "by": by }))
        }
        ChatEvent::PlanApproved { approval } => (
            "plan_approved",
            object!(to, {
                "plan_path": approval.plan_path, "plan_id": approval.plan_id, "v": approval.v, "by": approval.by,
                "at": approval.at,
            }),
        ),
        ChatEvent::Used { usage, context_used, context_limit, .. } => (
            "usage",
            object!(to, {
                "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
                "cached_tokens": usage.cached_tokens, "cost_usd": usage.cost_usd,
                "context_used": context_used, "context_limit": context_limit,
            }),
        ),
        ChatEvent::Done { turn_id, message, stop_reason, .. } => {
            ("done", object!(to, { "message": message, "stop_reason": stop_reason, "turn_id": turn_id }))
        }
        ChatEvent::Stopped { turn_id, reason, partial_response, .. } => {
            ("stopped", object!(to, { "reason": reason, "partial_response": partial_response, "turn_id": turn_id }))
        }
        ChatEvent::Team { fact } => match &**fact {
            TeamFact::Called { .. } | TeamFact::Looked { .. } | TeamFact::Late { .. } => return Ok(None),
            TeamFact::Started { round, members, .. } => {
                ("team_started", object!(to, { "round": round, "members": members }))
            }
            TeamFact::MemberEnded { end, .. } => ("member_ended", end.serialize(to)?),
        },
        ChatEvent::Failed { error } => ("error", error.serialize(to)?),
        ChatEvent::Paused { reason, .. } => (
            "error",
            object!(to, {
                "code": crate::Code::Paused, "message": reason,
                "hint": "POST …/chats/:cid/resume goes on; with {\"drop\": true} the command is dropped",
            }),
        ),
    }))
}

fn compacted<S: Serializer>(compaction: &CompactionRecord, to: S) -> Result<S::Ok, S::Error> {
    Ok(object!(to, {
        "tokens_before": compaction.tokens_before, "tokens_after": compaction.tokens_after, "ratio": compaction.ratio(),
        "turns": compaction.turns, "last_line": compaction.last_line, "summary": compaction.summary,
    }, maybe { "error": compaction.error }))
}

fn message_data<S: Serializer>(message: &Message, to: S) -> Result<S::Ok, S::Error> {
    Ok(match message {
        Message::User { id, content, files, user_id, .. } => {
            let files = (!files.is_empty()).then_some(files);
            object!(to, { "message_id": id, "role": "user", "content": content }, maybe {
                "files": files, "user_id": user_id,
            })
        }
        Message::Assistant { id, content, .. } => {
            object!(to, { "message_id": id, "role": "assistant", "content": content })
        }
        Message::System { id, content, .. } => object!(to, { "message_id": id, "role": "system", "content": content }),
        Message::Tool { call_id, output, .. } => {
            object!(to, { "message_id": call_id, "role": "tool", "content": output })
        }
    })
}

/// Arguments as JSON if they are JSON, else as text.
fn args_data(args: &str) -> Value {
    crate::exact_numbers::value_or_text(args)
}
