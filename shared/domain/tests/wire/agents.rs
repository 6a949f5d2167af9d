//! Events of threads.

use super::id;
use buildscale_domain::{
    AgentAsk, AgentOption, AgentReply, CallId, ChatEvent, FilePath, MessageId, PermissionId, PermissionRule, Sha256,
    Timestamp, event::PermissionOutcome,
};
use serde_json::json;

/// The events of a thread, whose turns a coding agent performs.
pub fn events(at: Timestamp) -> Vec<ChatEvent> {
    let (leg, call_id) = (MessageId(id(4)), CallId(id(15)));
    let option = |id: &str, kind: &str| AgentOption { id: id.into(), name: "Yes, this once".into(), kind: kind.into() };
    let updated = |call_id, update| ChatEvent::AgentUpdated { call_id, update, at };
    let reply = |option: Option<&str>| AgentReply {
        request: "0a1b".into(),
        option: option.map(ToOwned::to_owned),
        by: "user:1".into(),
    };
    vec![
        ChatEvent::AgentBegan { leg, attempt: 1, answer: None, at },
        ChatEvent::AgentBegan { leg, attempt: 1, answer: Some(reply(Some("once"))), at },
        ChatEvent::AgentBegan { leg, attempt: 2, answer: Some(reply(None)), at },
        ChatEvent::AgentBound { session_id: "s-1".into() },
        updated(
            Some(call_id),
            json!({
                "sessionUpdate": "tool_call", "toolCallId": "t1", "title": "Run make", "kind": "execute", "status": "pending",
                "rawInput": { "command": "make" }, "locations": [{ "path": "/srv/app/Makefile", "line": 3 }],
            }),
        ),
        updated(
            Some(call_id),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "in_progress" }),
        ),
        updated(
            Some(call_id),
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "kind": "edit",
                "content": [
                    { "type": "content", "content": { "type": "text", "text": "built" } },
                    { "type": "diff", "path": "/srv/app/a.rs", "oldText": "a", "newText": "b" },
                ],
            }),
        ),
        updated(
            Some(call_id),
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed", "rawOutput": { "code": 2 } }),
        ),
        updated(
            None,
            json!({
                "sessionUpdate": "plan",
                "entries": [{ "content": "Look", "priority": "high", "status": "completed" }],
            }),
        ),
        updated(None, json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" })),
        ChatEvent::PermissionRequired {
            permission_id: PermissionId(id(16)),
            call_id,
            category: "command".into(),
            tool: "execute".into(),
            args: r#"{"toolCallId":"t1","title":"Run make"}"#.into(),
            reason: "Run make".into(),
            always: Some(PermissionRule::Command { words: vec!["make".into()], folder: FilePath::root() }),
            agent: Some(Box::new(AgentAsk {
                request: "0a1b".into(),
                options: vec![option("once", "allow_once"), option("no", "reject_once")],
                digest: Sha256::of(b"shown"),
            })),
            at,
            expires_at: at,
        },
        ChatEvent::PermissionResolved {
            permission_id: PermissionId(id(16)),
            outcome: PermissionOutcome::Approved,
            by: "user:1".into(),
            always: None,
            reason: None,
            option_id: Some("once".into()),
            at,
        },
    ]
}
