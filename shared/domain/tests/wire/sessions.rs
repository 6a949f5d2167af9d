//! Events of sessions of the planner chat.

use super::id;
use buildscale_domain::{
    Analysis, Budget, CallId, ChatEvent, ChatId, Code, Error, Strategy, Timestamp, Usage,
    session::{AnalysisOrigin, Cut, ExecutorTask, PlannedStep, StepOutcome},
};
use serde_json::json;

/// The events of sessions of the planner chat.
pub fn events(at: Timestamp) -> Vec<ChatEvent> {
    vec![
        ChatEvent::Analysed {
            analysis: Analysis {
                strategy: Strategy::Complex,
                reasoning: "it has several steps".into(),
                estimated_operations: 3,
                requires_tools: true,
                requires_executors: true,
            },
            by: AnalysisOrigin::Model,
            at,
        },
        ChatEvent::Planned { call_id: CallId(id(41)), version: 1, steps: vec![planned(1, &[]), planned(2, &[1])], at },
        ChatEvent::StepStarted {
            call_id: CallId(id(41)),
            step: 1,
            executor: ChatId(id(42)),
            task: Box::new(ExecutorTask {
                id: "41/1".into(),
                description: "Read the brief".into(),
                goal: "its budget".into(),
                constraints: Vec::new(),
                data: Some(json!({ "1": "found" })),
                cut: vec![Cut { part: "data".into(), tokens: 500, kept: 400 }],
                budget: Some(Budget { max_tokens: Some(30_000), max_cost_usd: Some(0.5), max_wall_ms: Some(60_000) }),
            }),
            at,
        },
        ChatEvent::StepEnded {
            call_id: CallId(id(41)),
            step: 1,
            result: Box::new(StepOutcome {
                success: true,
                data: "found".into(),
                error: None,
                tool_calls: 2,
                usage: Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 0, cost_usd: 0.25 },
                duration_ms: 40,
            }),
            at,
        },
        ChatEvent::StepEnded {
            call_id: CallId(id(41)),
            step: 2,
            result: Box::new(StepOutcome {
                success: false,
                data: String::new(),
                error: Some(Error::new(Code::NotBegun, "step 1 failed")),
                tool_calls: 0,
                usage: Usage::default(),
                duration_ms: 0,
            }),
            at,
        },
    ]
}

fn planned(step: u32, depends_on: &[u32]) -> PlannedStep {
    PlannedStep {
        step,
        kind: "search_project".into(),
        description: "Read the brief".into(),
        goal: "its budget".into(),
        constraints: Vec::new(),
        tools: vec!["read".into()],
        depends_on: depends_on.to_vec(),
    }
}
