//! Executors: the chats that carry out the steps of a session's plan. Each is given its step, the results that the step needs, and the
//! tools of the step, and nothing else; the limits of its calls are held here.

use crate::{session::contexts::today_in, session_plan::fitted, step::Step};
use domain::{
    AgentOf, AgentTool, AgentToolRuns, Budget, CallId, ChatConfig, ChatId, Code, Error, ExecutorLimits, ExecutorOf,
    Labels, Limits, Mode, TaskId, Timestamp, ToolCall,
    session::{ExecutorTask, PlannedStep, SessionBudget},
    text::counted,
};
use serde_json::{Map, Value};
use std::fmt::Write as _;

const SYSTEM: &str = "\
You are an executor. You carry out one step of a plan that somebody else made. You know your task, the data that comes with it, and your \
tools; you cannot ask anybody. Do what the task says and nothing beside it, with as few calls as it takes. Answer with the result alone: \
facts, paths and numbers, in a few sentences, as the next step needs them. If you cannot do it, say why in one sentence.";

/// Why an executor does not make a call.
pub(crate) enum CallRefusal {
    /// It has made as many as it may: its turn ends.
    Over(Error),
    /// The same call failed too often; it may make another.
    Again(String),
}

impl Step<'_> {
    /// Why this chat does not make a call, if it is an executor at one of its limits.
    pub fn executor_refuses(&self, call: &ToolCall) -> Option<CallRefusal> {
        let executor = self.config()?.agent.as_ref()?.executor.as_deref()?;
        let report = self.turn()?.report.as_deref()?;
        if report.calls() >= executor.max_calls as usize {
            let calls = counted(executor.max_calls, "call");
            let text = format!("the executor has made {calls} of tools, which is its limit");
            return Some(CallRefusal::Over(Error::new(Code::LimitReached, text).hint("plan smaller steps")));
        }
        let failed = report.failed(&call.tool, &call.args);
        (failed > executor.max_retries as usize).then(|| {
            let times = counted(failed, "time");
            CallRefusal::Again(format!(
                "this very call failed {times}, and is not made again: do it in another way, or say why it fails"
            ))
        })
    }
}

/// The task of a step, with the results that it needs, within the budgets of its parts (spec 003 §2). The system text of an executor has about 100
/// tokens; `tool_disclosure` holds its tools within theirs.
pub(crate) fn task(
    plan: CallId,
    step: &PlannedStep,
    needed: &[(u32, &str)],
    parts: SessionBudget,
    budget: Option<Budget>,
) -> ExecutorTask {
    let mut cuts = Vec::new();
    let mut fit = |part: &str, text: &str, tokens: u32| fitted(part, text, tokens, &mut cuts);
    let description = fit("task", &step.description, parts.task);
    // Constraints take their room from the goal, which is short beside them.
    let most = most_of_each(&step.constraints, parts.task / 2);
    let constraints: Vec<String> = step.constraints.iter().map(|text| fit("constraints", text, most)).collect();
    let taken: u32 = constraints.iter().map(|text| tokens(text)).sum();
    let goal = fit("goal", &step.goal, parts.task.saturating_sub(taken));
    let share = parts.data / u32::try_from(needed.len().max(1)).unwrap_or(u32::MAX);
    let data: Map<String, Value> =
        needed.iter().map(|(number, text)| (number.to_string(), Value::String(fit("data", text, share)))).collect();
    let data = (!data.is_empty()).then_some(Value::Object(data));
    ExecutorTask { id: format!("{plan}/{}", step.step), description, goal, constraints, data, cut: cuts, budget }
}

/// The tokens of a text, as an estimate.
fn tokens(text: &str) -> u32 {
    u32::try_from(text.len().div_ceil(4)).unwrap_or(u32::MAX)
}

/// The most tokens that each of these texts may have, so that all of them have so many: short ones leave their rest to the long ones.
fn most_of_each(texts: &[String], all: u32) -> u32 {
    let mut sizes: Vec<u32> = texts.iter().map(|text| tokens(text)).collect();
    sizes.sort_unstable();
    let (mut left, mut count) = (all, u32::try_from(sizes.len()).unwrap_or(u32::MAX));
    for size in sizes {
        let share = left / count;
        if size > share {
            return share;
        }
        (left, count) = (left - size, count - 1);
    }
    all
}

/// The words that an executor reads.
pub(crate) fn words(task: &ExecutorTask) -> String {
    let mut text = task.description.clone();
    if task.goal != task.description {
        let _ = write!(text, "\nGoal: {}", task.goal);
    }
    for constraint in &task.constraints {
        let _ = write!(text, "\nKeep to this: {constraint}");
    }
    for (step, result) in task.data.iter().filter_map(Value::as_object).flatten() {
        let _ = write!(text, "\nResult of step {step}: {}", result.as_str().unwrap_or_default());
    }
    text
}

/// The budget of the next executor: a part of what is free. The steps that have not begun share it with the planner, which answers after them.
pub(crate) fn budget(free: Budget, pending: usize, limits: ExecutorLimits) -> Budget {
    let part = free.part_of(u32::try_from(pending + 1).unwrap_or(u32::MAX));
    Budget {
        max_tokens: part.max_tokens.map(|tokens| tokens.min(limits.max_tokens)),
        max_wall_ms: part.max_wall_ms.map(|ms| ms.min(limits.max_wall_ms)),
        ..part
    }
}

/// The chat of an executor.
pub(crate) fn chat(
    session: &ChatConfig,
    chat: ChatId,
    plan: CallId,
    step: &PlannedStep,
    budget: Budget,
    at: Timestamp,
) -> Option<ChatConfig> {
    let of_session = session.session.as_ref()?;
    let limits = of_session.executors;
    let executor = ExecutorOf {
        session: session.chat,
        plan,
        step: step.step,
        max_calls: limits.max_calls,
        max_retries: limits.max_retries,
        tools_tokens: of_session.budgets.executor_tools,
    };
    let tool =
        |name: &String| AgentTool { name: name.clone(), description: None, runs: AgentToolRuns::Named, root: None };
    let agent = AgentOf {
        task: TaskId(session.chat.0),
        above: Vec::new(),
        node: step.kind.as_str().into(),
        tools: step.tools.iter().map(tool).collect(),
        temperature: None,
        top_p: None,
        max_tokens: None,
        priority: 0,
        turns: Vec::new(),
        flow: None,
        no_home: false,
        executor: Some(Box::new(executor)),
    };
    // An answer after the last call, and one for a call that was refused.
    let max_steps = limits.max_calls.saturating_add(2).min(session.limits.max_steps);
    Some(ChatConfig {
        chat,
        title: format!("step {} of {}", step.step, session.title),
        role: "executor".to_owned(),
        mode: Mode::Chat,
        limits: budget.narrows(Limits { max_steps, ..session.limits }),
        system: format!("{SYSTEM}{}", today_in(&session.system)),
        cut: Vec::new(),
        tools: None,
        plan: None,
        created_at: at,
        agent: Some(Box::new(agent)),
        thread: None,
        session: None,
        scenario: None,
        member: None,
        functions: Vec::new(),
        labels: Labels::default(),
        ..session.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn an_executor_is_given_its_task_and_the_results_that_it_needs_within_the_budget() {
        let step = PlannedStep {
            step: 3,
            kind: "write".into(),
            description: "d".repeat(2_000),
            goal: "a file".into(),
            constraints: vec!["one page".into(), "c".repeat(1_000)],
            tools: vec!["write".into()],
            depends_on: vec![1, 2],
        };
        let (long, plan, parts) = ("r".repeat(4_000), CallId(Uuid::from_u128(1)), SessionBudget::default());
        let task = task(plan, &step, &[(1, "short"), (2, &long)], parts, None);
        let words = words(&task);
        assert!(words.contains("Goal: a file") && words.contains("Result of step 1: short"), "{words}");
        assert!(words.contains("\nKeep to this: one page\nKeep to this: ccc"), "{words}");
        let tokens = (SYSTEM.len() + words.len()) / 4 + parts.executor_tools as usize;
        assert!(tokens <= 1_500 - 200, "{tokens} tokens with tools, beside the reserve");
        let most = SYSTEM.len() / 4 + (2 * parts.task + parts.data + parts.executor_tools) as usize;
        assert!(most <= 1_500, "{most} tokens of all parts at their most");
        let parts: Vec<&str> = task.cut.iter().map(|cut| cut.part.as_str()).collect();
        assert_eq!(parts, ["task", "constraints", "data"]);
        assert_eq!(
            (task.cut[1].tokens, (90..110).contains(&task.cut[1].kept)),
            (250, true),
            "the short one leaves its rest"
        );
        assert_eq!((task.cut[2].tokens, task.cut[2].kept < 220), (1_000, true));
        assert_eq!(task.id, format!("{plan}/3"));
    }
}
