//! Events of contexts: compactions, steering, and the record of a context.

use super::id;
use buildscale_domain::{
    CallId, ChatEvent, Code, CommandId, Error, FilePath, Limits, MessageId, PermissionId, PermissionRule, StopId,
    Timestamp, TurnId, UserId,
    event::{
        CompactionRecord, ContextKind, ContextPart, ContextRecord, PermissionOutcome, RollbackFact, SteeringWords,
    },
};

/// The events of compactions, of steering, and of the record of a context. They come last, in a turn of their own.
pub fn events(at: Timestamp) -> Vec<ChatEvent> {
    let (message_id, stop_id) = (MessageId(id(50)), StopId(id(51)));
    let part = |part, tokens| ContextPart { part, tokens, count: 2, first_line: 1, last_line: 9 };
    let compacted = |summary: Option<&str>, error| ChatEvent::Compacted {
        compaction: Box::new(CompactionRecord {
            message_id,
            turns: 1,
            last_line: 9,
            summary: summary.map(String::from),
            error,
            tokens_before: 3_000,
            tokens_after: 1_000,
            at,
        }),
    };
    let words = SteeringWords {
        command_id: CommandId(id(51)),
        at,
        content: "in blue".into(),
        files: vec![FilePath::root()],
        context: "<file/>".into(),
        user_id: Some(UserId(id(15))),
    };
    let rollback = |fact| ChatEvent::Rollback { fact: Box::new(fact) };
    vec![
        ChatEvent::TurnStarted {
            turn_id: TurnId(id(52)),
            attempt: 1,
            asked_at: at,
            limits: Limits::default(),
            may_approve: false,
            trace: None,
        },
        ChatEvent::ModelStarted {
            message_id,
            attempt: 1,
            at,
            context: Some(Box::new(ContextRecord {
                parts: vec![
                    part(ContextKind::System, 700),
                    part(ContextKind::Tools, 6_000),
                    part(ContextKind::Summary, 90),
                ],
                budget: 100_000,
                left_out_turns: 3,
                left_out_lines: 40,
                ..ContextRecord::default()
            })),
        },
        ChatEvent::SteerRequested { stop_id, at },
        ChatEvent::SteerAwaited { at },
        ChatEvent::Steered { words: Box::new(words) },
        ChatEvent::CompactionBegan { internal: false, max_chars: 4_000, at },
        compacted(Some("It was made blue."), None),
        ChatEvent::CompactionUndone { by: "user:1".into(), at },
        ChatEvent::CompactionBegan { internal: false, max_chars: 4_000, at },
        compacted(None, Some(Error::new(Code::UpstreamUnavailable, "busy"))),
        rollback(RollbackFact::Began { turn_id: TurnId(id(54)), attempt: 1, calls: vec![CallId(id(55))], since: at }),
        rollback(RollbackFact::Ended {
            turn_id: TurnId(id(54)),
            rewind_id: Some(id(56)),
            changes: 2,
            kept: vec![FilePath::root()],
            error: None,
            at,
        }),
        rollback(RollbackFact::Ended {
            turn_id: TurnId(id(54)),
            rewind_id: None,
            changes: 0,
            kept: Vec::new(),
            error: Some(Error::new(Code::Conflict, "it had ended")),
            at,
        }),
        ChatEvent::PermissionsForgotten {
            rule: Some(PermissionRule::Tool { tool: "mcp__github__create_issue".into() }),
            by: "user:1".into(),
            at,
        },
        ChatEvent::CompactionSkipped { turn_id: TurnId(id(53)), reason: "it is short".into(), at },
        ChatEvent::DenialsRead { rule_ids: vec!["0123456789abcdef".into()], files: Vec::new() },
        ChatEvent::DecisionRefused {
            permission_id: PermissionId(id(14)),
            outcome: PermissionOutcome::Approved,
            by: "user:1".into(),
            at,
        },
    ]
}
