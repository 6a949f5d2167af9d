//! The plan of a session: its tool, its check, and the steps that are ready. Pure.

use domain::{
    Analysis, Budget, CallId, ChatId, Timestamp, ToolSpec,
    session::{Cut, PlannedStep, SessionBudget, StepOutcome},
    text::counted,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;

/// The tool by which a session's model has a plan carried out.
pub(crate) const RUN_PLAN: &str = "run_plan";
/// Plans of one turn: the first, and those that replace the rest of it.
pub(crate) const MAX_VERSIONS: u32 = 4;
/// How often a plan that cannot be carried out is planned again.
pub(crate) const SECOND_CHANCES: u32 = 2;
/// The most steps of a plan.
const MAX_STEPS: usize = 20;
/// The most characters of a step's words, and of its constraints together.
const MAX_WORDS: usize = 2_000;
/// The most characters of the kind of a step.
const MAX_KIND: usize = 100;
/// The most constraints of a step.
const MAX_CONSTRAINTS: usize = 10;

/// The tool as a model reads it; its steps may use these tools.
pub(crate) fn spec(tools: &[String]) -> ToolSpec {
    ToolSpec {
        name: RUN_PLAN.to_owned(),
        description: "Has a plan carried out: an executor does each step, and steps that depend on nothing that is open run side by side. \
                      Returns the results of all steps. Call it again to plan what is left in another way."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "steps": {
                    "type": "array", "minItems": 1, "maxItems": MAX_STEPS,
                    "items": {
                        "type": "object",
                        "properties": {
                            "step": { "type": "integer", "minimum": 1, "description": "its number" },
                            "type": { "type": "string", "description": "the kind of work, such as search_project" },
                            "description": { "type": "string", "description": "what to do, with all that the executor has to know" },
                            "goal": { "type": "string", "description": "the result that it has to come to" },
                            "constraints": { "type": "array", "items": { "type": "string" }, "description": "what it has to keep to" },
                            "tools": { "type": "array", "items": { "enum": tools } },
                            "depends_on": { "type": "array", "items": { "type": "integer" }, "description": "the numbers of steps" },
                        },
                        "required": ["step", "description"],
                    },
                },
            },
            "required": ["steps"],
        }),
    }
}

/// The steps of a plan, or why it cannot be carried out, for the model. `tools` are those that a step may have.
pub(crate) fn check(args: &str, tools: &[String]) -> Result<Vec<PlannedStep>, String> {
    let steps = PlannedStep::read_all(args).map_err(|error| format!("this is no plan: {error}"))?;
    if steps.is_empty() || steps.len() > MAX_STEPS {
        return Err(format!("a plan has 1 to {MAX_STEPS} steps; this one has {}", steps.len()));
    }
    let numbers: BTreeSet<u32> = steps.iter().map(|step| step.step).collect();
    for (position, step) in steps.iter().enumerate() {
        let number = step.step;
        if steps.iter().take(position).any(|earlier| earlier.step == number) {
            return Err(format!("two steps have the number {number}"));
        }
        if let Some(unknown) = step.depends_on.iter().find(|needed| !numbers.contains(needed)) {
            return Err(format!("step {number} depends on step {unknown}, which is not in the plan"));
        }
        if let Some(unknown) = step.tools.iter().find(|tool| !tools.contains(tool)) {
            return Err(format!("step {number} lists the tool {unknown}, which is not among {}", tools.join(", ")));
        }
        // An executor gets its step in one message of the queue, which has a bound.
        if step.kind.chars().count() > MAX_KIND {
            return Err(format!("the type of step {number} is longer than {MAX_KIND} characters"));
        }
        let words = step.description.chars().count();
        if step.description.trim().is_empty() || words > MAX_WORDS || step.goal.chars().count() > MAX_WORDS {
            return Err(format!("the description of step {number} is empty, or longer than {MAX_WORDS} characters"));
        }
        let words = step.constraints.iter().map(|constraint| constraint.chars().count()).sum::<usize>();
        if step.constraints.len() > MAX_CONSTRAINTS || words > MAX_WORDS {
            return Err(format!(
                "step {number} has more than {MAX_CONSTRAINTS} constraints, or more than {MAX_WORDS} characters of them"
            ));
        }
    }
    match cycle(&steps) {
        Some(cycle) => {
            let way: Vec<String> = cycle.iter().map(u32::to_string).collect();
            Err(format!("the steps wait for each other in a circle: {}", way.join(" -> ")))
        }
        None => Ok(steps),
    }
}

/// A circle of dependencies, with the step at which it is closed at both ends.
fn cycle(steps: &[PlannedStep]) -> Option<Vec<u32>> {
    let needs = |number: u32| steps.iter().find(|step| step.step == number).map(|step| step.depends_on.as_slice());
    let mut cleared: BTreeSet<u32> = BTreeSet::new();
    // Steps that can be cleared are, until none is left that can: at most twenty rounds.
    while let Some(next) = steps
        .iter()
        .find(|step| !cleared.contains(&step.step) && step.depends_on.iter().all(|needed| cleared.contains(needed)))
    {
        cleared.insert(next.step);
    }
    let first = steps.iter().find(|step| !cleared.contains(&step.step))?;
    let mut way = vec![first.step];
    loop {
        let last = *way.last()?;
        let next = *needs(last)?.iter().find(|needed| !cleared.contains(needed))?;
        let seen = way.iter().position(|step| *step == next);
        way.push(next);
        if let Some(begin) = seen {
            return Some(way.split_off(begin));
        }
    }
}

/// The part of a turn that only sessions have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Planning {
    /// The analysis; none before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// Plans that could not be carried out.
    #[serde(default)]
    pub refused: u32,
    /// Plans that were carried out, with the one that is.
    #[serde(default)]
    pub version: u32,
    /// The plan that is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
}

/// A plan that is carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The call that it is.
    pub call_id: CallId,
    /// Its steps.
    pub steps: Vec<StepRun>,
}

/// A step of a plan that is carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRun {
    /// The step.
    #[serde(flatten)]
    pub planned: PlannedStep,
    /// Its state.
    pub state: StepState,
}

/// The states of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StepState {
    /// It waits for steps that it depends on, or for an executor.
    Pending,
    /// An executor works on it.
    Running {
        /// The chat of the executor.
        executor: ChatId,
        /// Since then.
        since: Timestamp,
        /// The budget that is set aside for it.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "domain::budget::of_turn")]
        budget: Option<Budget>,
    },
    /// It came to its goal.
    Completed {
        /// The result.
        data: String,
    },
    /// It failed, or one that it depends on did.
    Failed {
        /// The reason.
        why: String,
        /// The last words of its executor.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        partial: String,
    },
}

/// The next action of a plan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PlanAction {
    /// These steps fail, since the step beside each of them did.
    Fail(Vec<(u32, u32)>),
    /// Executors begin these steps.
    Begin(Vec<u32>),
    /// Executors are at work.
    Wait,
    /// All steps have ended.
    End,
}

impl Run {
    /// A plan of which nothing has begun.
    pub(crate) fn new(call_id: CallId, steps: &[PlannedStep]) -> Self {
        let begin = |planned: &PlannedStep| StepRun { planned: planned.clone(), state: StepState::Pending };
        Self { call_id, steps: steps.iter().map(begin).collect() }
    }

    fn step(&self, number: u32) -> Option<&StepRun> {
        self.steps.iter().find(|step| step.planned.step == number)
    }

    /// The step that an executor works on, and since when.
    pub(crate) fn of(&self, chat: ChatId) -> Option<(u32, Timestamp)> {
        self.steps.iter().find_map(|step| match step.state {
            StepState::Running { executor, since, .. } if executor == chat => Some((step.planned.step, since)),
            _ => None,
        })
    }

    /// The executors at work, each with its step.
    pub(crate) fn running(&self) -> impl Iterator<Item = (u32, ChatId, Timestamp)> {
        self.steps.iter().filter_map(|step| match step.state {
            StepState::Running { executor, since, .. } => Some((step.planned.step, executor, since)),
            _ => None,
        })
    }

    /// The budgets of the executors at work.
    pub(crate) fn budgets(&self) -> impl Iterator<Item = Budget> {
        self.steps.iter().filter_map(|step| match step.state {
            StepState::Running { budget, .. } => budget,
            _ => None,
        })
    }

    /// How many steps have not begun.
    pub(crate) fn pending(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.state, StepState::Pending)).count()
    }

    /// The results that a step is given: those of the steps that it depends on.
    pub(crate) fn needed(&self, number: u32) -> Vec<(u32, &str)> {
        let Some(step) = self.step(number) else { return Vec::new() };
        let result = |needed: &u32| match &self.step(*needed)?.state {
            StepState::Completed { data } => Some((*needed, data.as_str())),
            _ => None,
        };
        step.planned.depends_on.iter().filter_map(result).collect()
    }

    /// The next move, with so many executors at once.
    pub(crate) fn next(&self, at_once: u32) -> PlanAction {
        let pending = || self.steps.iter().filter(|step| step.state == StepState::Pending);
        let lost: Vec<(u32, u32)> = pending()
            .filter_map(|step| {
                let failed = |needed: &&u32| {
                    self.step(**needed).is_some_and(|needed| matches!(needed.state, StepState::Failed { .. }))
                };
                Some((step.planned.step, *step.planned.depends_on.iter().find(failed)?))
            })
            .collect();
        if !lost.is_empty() {
            return PlanAction::Fail(lost);
        }
        let running = self.running().count();
        let is_done =
            |needed: &u32| self.step(*needed).is_some_and(|needed| matches!(needed.state, StepState::Completed { .. }));
        let ready: Vec<u32> = pending()
            .filter(|step| step.planned.depends_on.iter().all(is_done))
            .map(|step| step.planned.step)
            .take((at_once.max(1) as usize).saturating_sub(running))
            .collect();
        match (ready.is_empty(), running) {
            (false, _) => PlanAction::Begin(ready),
            (true, 0) => PlanAction::End,
            (true, _) => PlanAction::Wait,
        }
    }

    /// Folds the end of a step.
    pub(crate) fn ended(&mut self, number: u32, result: &StepOutcome) {
        if let Some(step) = self.steps.iter_mut().find(|step| step.planned.step == number) {
            step.state = match (&result.error, result.success) {
                (None, true) => StepState::Completed { data: result.data.clone() },
                (error, _) => StepState::Failed {
                    why: error.as_ref().map_or_else(String::new, |why| why.message.clone()),
                    partial: result.data.clone(),
                },
            };
        }
    }

    /// Folds the start of a step.
    pub(crate) fn begun(&mut self, number: u32, executor: ChatId, since: Timestamp, budget: Option<Budget>) {
        if let Some(step) = self.steps.iter_mut().find(|step| step.planned.step == number) {
            step.state = StepState::Running { executor, since, budget };
        }
    }

    /// The results for the model, in so many characters: each step has its share, and a result that is cut says so.
    pub(crate) fn results_text(&self, room: usize) -> String {
        let share = room / self.steps.len().max(1);
        let mut text = String::new();
        for StepRun { planned, state } in &self.steps {
            let (number, words) = (planned.step, &planned.description);
            let said = match state {
                StepState::Completed { data } => format!("Step {number} is completed: {}\n", cut(data, share)),
                StepState::Failed { why, partial } if partial.is_empty() => {
                    format!("Step {number} failed ({}): {}\n", cut(why, share), cut(words, 200))
                }
                StepState::Failed { why, partial } => format!(
                    "Step {number} failed ({}): {}. It came to this: {}\n",
                    cut(why, share / 2),
                    cut(words, 200),
                    cut(partial, share / 2)
                ),
                StepState::Pending | StepState::Running { .. } => format!("Step {number} has not ended.\n"),
            };
            text.push_str(&said);
        }
        let completed = self.steps.iter().filter(|step| matches!(step.state, StepState::Completed { .. })).count();
        let all = self.steps.len();
        let are = if all == 1 { "is" } else { "are" };
        text.push_str(&format!("{completed} of {} {are} completed.", counted(all, "step")));
        if completed < all {
            text.push_str(" Answer with what there is and say what is left, or plan the rest in another way.");
        }
        text
    }
}

/// The beginning of a text, in characters of UTF-8; it says what was left out.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let kept = text.floor_char_boundary(room);
    format!("{}… (cut: {} of {} bytes)", &text[..kept], kept, text.len())
}

/// The beginning of a part of a context that fits this many tokens; where that is not all of it, `cuts` says so.
pub(crate) fn fitted(part: &str, text: &str, tokens: u32, cuts: &mut Vec<Cut>) -> String {
    let kept = cut(text, SessionBudget::bytes(tokens));
    if kept != text {
        let (tokens, kept) = (text.len().div_ceil(4) as u64, kept.len().div_ceil(4) as u64);
        cuts.push(Cut { part: part.to_owned(), tokens, kept });
    }
    kept
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use domain::{Code, Error, Usage};
    use serde_json::Value;
    use uuid::Uuid;

    const TOOLS: [&str; 2] = ["read", "write"];

    fn checked(steps: Value) -> Result<Vec<PlannedStep>, String> {
        check(&json!({ "steps": steps }).to_string(), &TOOLS.map(str::to_owned))
    }

    fn run(needs: &[&[u32]]) -> Run {
        let step = |(at, needs): (usize, &&[u32])| json!({ "step": at + 1, "description": "do", "depends_on": needs });
        let steps: Vec<Value> = needs.iter().enumerate().map(step).collect();
        Run::new(CallId(Uuid::from_u128(1)), &checked(json!(steps)).unwrap())
    }

    fn result(success: bool) -> StepOutcome {
        let error = (!success).then(|| Error::new(Code::Internal, "it broke"));
        let data = if success { "found" } else { "" }.to_owned();
        StepOutcome { success, data, error, tool_calls: 0, usage: Usage::default(), duration_ms: 1 }
    }

    fn begin(run: &mut Run, steps: &[u32]) {
        for step in steps {
            run.begun(*step, ChatId(Uuid::from_u128(u128::from(*step))), Timestamp::default(), None);
        }
    }

    #[test]
    fn a_plan_that_cannot_be_carried_out_says_why() {
        let step = |number: u32, needs: &[u32]| json!({ "step": number, "description": "do", "depends_on": needs });
        for (steps, word) in [
            (json!([]), "1 to 20 steps"),
            (json!([step(1, &[2])]), "step 1 depends on step 2"),
            (json!([step(1, &[1])]), "circle: 1 -> 1"),
            (json!([step(1, &[]), step(2, &[1, 4]), step(3, &[2]), step(4, &[3])]), "circle: 2 -> 4 -> 3 -> 2"),
            (json!([step(1, &[]), step(1, &[])]), "the number 1"),
            (json!([{ "step": 1, "description": "do", "tools": ["rm"] }]), "the tool rm"),
            (json!([{ "step": 1, "description": " " }]), "is empty"),
            (json!([{ "step": 1, "type": "x".repeat(101), "description": "do" }]), "the type of step 1"),
            (json!([{ "step": 1, "description": "do", "constraints": vec!["x"; 11] }]), "more than 10 constraints"),
            (json!([{ "step": 1, "description": "do", "constraints": ["x".repeat(2_001)] }]), "2000 characters"),
            (json!([{ "step": -1, "description": "do" }]), "no plan"),
        ] {
            let told = checked(steps.clone()).unwrap_err();
            assert!(told.contains(word), "{steps}: {told}");
        }
        assert!(check("{", &[]).is_err_and(|told| told.contains("no plan")));
    }

    #[test]
    fn steps_begin_when_all_that_they_depend_on_is_completed_and_no_more_than_the_bound_run() {
        let mut plan = run(&[&[], &[], &[], &[1, 2]]);
        assert_eq!(plan.next(2), PlanAction::Begin(vec![1, 2]));
        begin(&mut plan, &[1, 2]);
        assert_eq!(plan.next(2), PlanAction::Wait);
        plan.ended(1, &result(true));
        assert_eq!(plan.next(2), PlanAction::Begin(vec![3]));
        begin(&mut plan, &[3]);
        plan.ended(2, &result(true));
        assert_eq!(plan.next(2), PlanAction::Begin(vec![4]));
        assert_eq!(plan.needed(4), [(1, "found"), (2, "found")]);
        begin(&mut plan, &[4]);
        plan.ended(3, &result(true));
        plan.ended(4, &result(true));
        assert_eq!(plan.next(2), PlanAction::End);
        assert!(plan.results_text(4_000).ends_with("4 of 4 steps are completed."));
    }

    #[test]
    fn a_failed_step_fails_what_depends_on_it_and_nothing_else() {
        let mut plan = run(&[&[], &[1], &[2], &[]]);
        begin(&mut plan, &[1, 4]);
        plan.ended(1, &result(false));
        assert_eq!(plan.next(2), PlanAction::Fail(vec![(2, 1)]));
        plan.ended(2, &result(false));
        assert_eq!(plan.next(2), PlanAction::Fail(vec![(3, 2)]));
        plan.ended(3, &result(false));
        assert_eq!(plan.next(2), PlanAction::Wait);
        plan.ended(4, &result(true));
        assert_eq!(plan.next(2), PlanAction::End);
        let told = plan.results_text(4_000);
        assert!(told.contains("Step 1 failed (it broke)") && told.contains("1 of 4 steps are completed."), "{told}");
        assert!(told.contains("say what is left"), "{told}");
    }

    #[test]
    fn results_share_the_room_and_say_what_was_cut() {
        let mut plan = run(&[&[], &[]]);
        let long = StepOutcome { data: "é".repeat(1_000), ..result(true) };
        plan.ended(1, &long);
        plan.ended(2, &result(true));
        let told = plan.results_text(200);
        assert!(told.contains("(cut: 100 of 2000 bytes)") && told.contains("found") && told.len() < 500, "{told}");
    }
}
