//! A session of the planner chat, and an executor of it.

use super::{AT, id};
use buildscale_domain::{
    CallId, ChatId, ExecutorLimits, ExecutorOf, Session, SessionContext,
    session::{Cut, SessionBudget},
};
use serde_json::json;

pub fn executor() -> ExecutorOf {
    ExecutorOf {
        session: ChatId(id(30)),
        plan: CallId(id(31)),
        step: 2,
        max_calls: 10,
        max_retries: 2,
        tools_tokens: 400,
    }
}

pub fn session() -> Session {
    Session {
        context: SessionContext::ProjectAudit,
        entity: Some("atlas".into()),
        focus: Some(json!({ "focusType": "task", "focusEntityId": "7" })),
        approve_plans: true,
        executors: ExecutorLimits {
            at_once: 2,
            max_calls: 9,
            max_retries: 1,
            max_wall_ms: 50_000,
            ..ExecutorLimits::default()
        },
        budgets: SessionBudget {
            conversation: 2_000,
            location: 900,
            profile: 250,
            task: 150,
            data: 300,
            ..SessionBudget::default()
        },
        cut: vec![Cut { part: "location".into(), tokens: 1_200, kept: 1_000 }],
        read_at: Some(AT),
    }
}
