//! BuildScale's own wire format for the events of a chat (spec 000 §5).

mod agent;

use crate::{
    AgentOption, ChatEvent, Message, TeamFact,
    event::{CompactionRecord, HandedOut, PlaceWait, RetryWait, RollbackFact, SlotWait},
    shown_digest,
};
use serde_json::{Value, json};

/// The name and the data of `event` on the wire; none for a fact that only the machine needs.
pub fn encode(event: &ChatEvent) -> Option<(&'static str, Value)> {
    Some(match event {
        ChatEvent::Created { .. }
        | ChatEvent::Configured { .. }
        | ChatEvent::TurnQueued { .. }
        | ChatEvent::ModelStarted { .. }
        | ChatEvent::AgentBegan { .. }
        | ChatEvent::CallStarted { attempt: 2.., .. }
        | ChatEvent::ContextCut { .. }
        | ChatEvent::CompactionBegan { .. }
        | ChatEvent::SteerRequested { .. }
        | ChatEvent::SteerAwaited { .. }
        | ChatEvent::Steered { .. }
        | ChatEvent::DecisionRefused { .. }
        | ChatEvent::RightsNarrowed { .. }
        | ChatEvent::DenialsRead { .. }
        | ChatEvent::StopRequested { .. }
        | ChatEvent::Deleted { .. }
        | ChatEvent::Unpaused { .. }
        // Clients of sessions have a protocol of their own; a plan is a call here, and its results are the answer to it.
        | ChatEvent::Analysed { .. }
        | ChatEvent::Planned { .. }
        | ChatEvent::StepStarted { .. }
        | ChatEvent::StepEnded { .. } => return None,
        ChatEvent::SlotsAwaited(SlotWait { message_id, at, .. }) => {
            ("waiting", json!({ "reason": "slots", "message_id": message_id, "at": at }))
        }
        ChatEvent::PlaceAwaited(PlaceWait { call_id, at, why: Some(why), until, .. }) => {
            ("waiting", json!({ "reason": "sandbox", "call_id": call_id, "message": why, "at": at, "until": until }))
        }
        ChatEvent::PlaceAwaited(PlaceWait { call_id, at, .. }) => {
            ("waiting", json!({ "reason": "place", "call_id": call_id, "at": at }))
        }
        ChatEvent::ModelPostponed(RetryWait { message_id, error, at, until, .. }) => (
            "waiting",
            json!({
                "reason": "model", "message_id": message_id, "code": error.code, "message": error.message, "at": at,
                "until": until,
            }),
        ),
        ChatEvent::TurnStarted { turn_id, attempt, .. } => {
            ("turn_started", json!({ "turn_id": turn_id, "attempt": attempt }))
        }
        ChatEvent::AgentBound { session_id } => ("agent_session", json!({ "session_id": session_id })),
        ChatEvent::AgentUpdated { call_id, update, .. } => agent::encode(*call_id, update),
        ChatEvent::Thought { text, message_id } => ("thought", json!({ "text": text, "message_id": message_id })),
        ChatEvent::Chunk { text, message_id } => ("chunk", json!({ "text": text, "message_id": message_id })),
        ChatEvent::MessageAdded { message } => ("message", message_data(message)),
        ChatEvent::Compacted { compaction } => ("compacted", compacted(compaction)),
        ChatEvent::CompactionSkipped { turn_id, reason, .. } => {
            ("compaction_skipped", json!({ "turn_id": turn_id, "reason": reason }))
        }
        ChatEvent::CompactionUndone { by, .. } => ("compaction_undone", json!({ "by": by })),
        ChatEvent::CallStarted { call_id, tool, path, args, .. } => {
            let mut data = json!({ "call_id": call_id, "tool": tool, "args": args_data(args) });
            if let Some(path) = path {
                data["path"] = json!(path);
            }
            ("call", data)
        }
        ChatEvent::Observed { call_id, tool, output, success, code, resources, truncated, .. } => {
            let mut data = json!({ "call_id": call_id, "tool": tool, "output": output, "success": success });
            if let Some(code) = code {
                data["code"] = json!(code);
            }
            if let Some(resources) = resources {
                data["resources"] = json!(resources);
            }
            if *truncated {
                data["truncated"] = json!(true);
            }
            ("observation", data)
        }
        ChatEvent::FileUpdated { path, v, file_id, author, .. } => {
            ("file_updated", json!({ "path": path, "v": v, "file_id": file_id, "author": author }))
        }
        ChatEvent::PlanStep { step, status, title, plan_path, plan_id, done, total } => {
            let mut data = json!({
                "step": step, "status": status, "title": title, "plan_path": plan_path, "done": done, "total": total,
            });
            if let Some(plan_id) = plan_id {
                data["plan_id"] = json!(plan_id);
            }
            ("plan_step", data)
        }
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
            let mut data = json!({
                "permission_id": permission_id, "call_id": call_id, "category": category, "tool": tool,
                "args": args_data(args), "reason": reason, "expires_at": expires_at,
            });
            if let Some(rule) = always {
                data["always"] = json!(rule);
            }
            if let Some(agent) = agent {
                let option =
                    |option: &AgentOption| json!({ "option_id": option.id, "name": option.name, "kind": option.kind });
                data["options"] = agent.options.iter().map(option).collect();
            }
            data["digest"] = json!(shown_digest(category, tool, args, agent.as_deref()));
            ("permission_required", data)
        }
        ChatEvent::PermissionResolved { permission_id, outcome, by, always, reason, option_id, .. } => {
            let mut data = json!({ "permission_id": permission_id, "outcome": outcome, "by": by });
            if let Some(rule) = always {
                data["always"] = json!(rule);
            }
            if let Some(reason) = reason {
                data["reason"] = json!(reason);
            }
            if let Some(option_id) = option_id {
                data["option_id"] = json!(option_id);
            }
            ("permission_resolved", data)
        }
        ChatEvent::PermissionsForgotten { by, rule, .. } => {
            let mut data = json!({ "by": by });
            if let Some(rule) = rule {
                data["rule_id"] = json!(rule.id());
            }
            ("permissions_forgotten", data)
        }
        ChatEvent::Rollback { fact } => match &**fact {
            RollbackFact::Began { .. } => return None,
            RollbackFact::Ended { turn_id, rewind_id, changes, kept, error, .. } => {
                let mut data = json!({ "turn_id": turn_id, "changes": changes, "kept": kept });
                if let Some(rewind_id) = rewind_id {
                    data["rewind_id"] = json!(rewind_id);
                }
                if let Some(error) = error {
                    (data["code"], data["message"]) = (json!(error.code), json!(error.message));
                }
                ("rolled_back", data)
            }
        },
        ChatEvent::Asked { question_id, call_id, questions, expires_at, .. } => (
            "question",
            json!({ "question_id": question_id, "call_id": call_id, "questions": questions, "expires_at": expires_at }),
        ),
        ChatEvent::HandedOut(HandedOut { call_id, tool, args, repeatable, expires_at, .. }) => (
            "call_handed_out",
            json!({
                "call_id": call_id, "tool": tool, "args": args_data(args), "repeatable": repeatable,
                "expires_at": expires_at,
            }),
        ),
        ChatEvent::ModeChanged { mode, plan_path, by, .. } => {
            let mut data = json!({ "mode": mode, "plan_path": plan_path });
            if let Some(by) = by {
                data["by"] = json!(by);
            }
            ("mode_changed", data)
        }
        ChatEvent::PlanApproved { approval } => (
            "plan_approved",
            json!({
                "plan_path": approval.plan_path, "plan_id": approval.plan_id, "v": approval.v, "by": approval.by,
                "at": approval.at,
            }),
        ),
        ChatEvent::Used { usage, context_used, context_limit, .. } => (
            "usage",
            json!({
                "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
                "cached_tokens": usage.cached_tokens, "cost_usd": usage.cost_usd,
                "context_used": context_used, "context_limit": context_limit,
            }),
        ),
        ChatEvent::Done { turn_id, message, stop_reason, .. } => {
            ("done", json!({ "message": message, "stop_reason": stop_reason, "turn_id": turn_id }))
        }
        ChatEvent::Stopped { turn_id, reason, partial_response, .. } => {
            ("stopped", json!({ "reason": reason, "partial_response": partial_response, "turn_id": turn_id }))
        }
        ChatEvent::Team { fact } => match &**fact {
            TeamFact::Called { .. } | TeamFact::Looked { .. } | TeamFact::Late { .. } => return None,
            TeamFact::Started { round, members, .. } => ("team_started", json!({ "round": round, "members": members })),
            TeamFact::MemberEnded { end, .. } => ("member_ended", json!(end)),
        },
        ChatEvent::Failed { error } => ("error", json!(error)),
        ChatEvent::Paused { reason, .. } => (
            "error",
            json!({
                "code": crate::Code::Paused, "message": reason,
                "hint": "POST …/chats/:cid/resume goes on; with {\"drop\": true} the command is dropped",
            }),
        ),
    })
}

fn compacted(compaction: &CompactionRecord) -> Value {
    let mut data = json!({
        "tokens_before": compaction.tokens_before, "tokens_after": compaction.tokens_after, "ratio": compaction.ratio(),
        "turns": compaction.turns, "last_line": compaction.last_line, "summary": compaction.summary,
    });
    if let Some(error) = &compaction.error {
        data["error"] = json!(error);
    }
    data
}

fn message_data(message: &Message) -> Value {
    match message {
        Message::User { id, content, files, .. } if files.is_empty() => {
            json!({ "message_id": id, "role": "user", "content": content })
        }
        Message::User { id, content, files, .. } => {
            json!({ "message_id": id, "role": "user", "content": content, "files": files })
        }
        Message::Assistant { id, content, .. } => json!({ "message_id": id, "role": "assistant", "content": content }),
        Message::System { id, content, .. } => json!({ "message_id": id, "role": "system", "content": content }),
        Message::Tool { call_id, output, .. } => json!({ "message_id": call_id, "role": "tool", "content": output }),
    }
}

/// Arguments as JSON if they are JSON, else as text.
fn args_data(args: &str) -> Value {
    crate::exact::value_or_text(args)
}
