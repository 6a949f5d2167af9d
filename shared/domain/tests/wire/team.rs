//! Events of teams.

use super::id;
use buildscale_domain::{ChatEvent, ChatId, Member, MemberEnd, TeamFact, Timestamp};

/// The facts about a team.
pub fn events(at: Timestamp) -> Vec<ChatEvent> {
    vec![
        ChatEvent::Team { fact: Box::new(TeamFact::Called { at }) },
        ChatEvent::Team { fact: Box::new(TeamFact::Looked { done: 1, at }) },
        ChatEvent::Team {
            fact: Box::new(TeamFact::Started {
                round: 1,
                members: vec![Member { chat_id: ChatId(id(44)), role: "builder".into() }],
                at,
            }),
        },
        ChatEvent::Team {
            fact: Box::new(TeamFact::MemberEnded {
                end: MemberEnd { chat_id: ChatId(id(44)), stop_reason: "token_limit".into(), error: None },
                at,
            }),
        },
    ]
}
