//! Events of teams, and of calls that programs answer.

use super::id;
use buildscale_domain::{
    Budget, CallId, ChatEvent, ChatId, Member, MemberEnd, TeamFact, Timestamp, Usage, event::HandedOut,
};

/// The facts about a team.
pub fn events(at: Timestamp) -> Vec<ChatEvent> {
    let usage = Usage { input_tokens: 900, output_tokens: 200, cached_tokens: 100, cost_usd: 0.25 };
    vec![
        ChatEvent::Team { fact: Box::new(TeamFact::Called { at }) },
        ChatEvent::Team { fact: Box::new(TeamFact::Looked { done: 1, at }) },
        ChatEvent::Team {
            fact: Box::new(TeamFact::Started {
                round: 1,
                members: vec![Member { chat_id: ChatId(id(44)), role: "builder".into() }],
                budget: Some(Budget { max_tokens: Some(1_000), max_cost_usd: Some(0.5), max_wall_ms: Some(60_000) }),
                at,
            }),
        },
        ChatEvent::Team {
            fact: Box::new(TeamFact::MemberEnded {
                end: MemberEnd { chat_id: ChatId(id(44)), stop_reason: "token_limit".into(), error: None, usage },
                at,
            }),
        },
        ChatEvent::Team { fact: Box::new(TeamFact::Late { chat_id: ChatId(id(44)), usage, at }) },
        ChatEvent::HandedOut(HandedOut {
            call_id: CallId(id(45)),
            tool: "code__ring".into(),
            args: r#"{"times":2}"#.into(),
            repeatable: true,
            at,
            expires_at: at,
        }),
    ]
}
