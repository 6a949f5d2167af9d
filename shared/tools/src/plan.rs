//! `plan_write` and `plan_update_step`: the plan is a Markdown checklist in a file, for people and agents alike.

use crate::{
    call::{self, Answer, Call, Done},
    effects::{Declaration, Declare},
    read::as_text,
    write::written,
};
use domain::{ChatEvent, Code, Error, FilePath, Sha256};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use workspace::{Change, Expect};

pub(crate) const PLAN_WRITE: &str = "Write the plan: a Markdown checklist that people watch. Writes the chat's plan file unless a \
    path is given. Then keep it true with plan_update_step.";
pub(crate) const PLAN_UPDATE_STEP: &str = "Set the status of one step of the plan, in the file and for all who watch. Set a step \
    to in_progress when you begin it and to done when it is done.";

/// How often a tick is made again in a plan that others change at the same time.
const ATTEMPTS: u32 = 8;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanWrite {
    /// The purpose of the plan.
    #[schemars(length(min = 1, max = 200))]
    title: String,
    /// The steps, in order; each a line of text.
    #[schemars(length(min = 1, max = 100))]
    steps: Vec<String>,
    /// Anything to say before the steps, in Markdown.
    notes: Option<String>,
    /// The plan file; the chat's own by default.
    path: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Done,
    Failed,
    Skipped,
}

impl Status {
    const ALL: [Self; 5] = [Self::Pending, Self::InProgress, Self::Done, Self::Failed, Self::Skipped];

    fn mark(self) -> char {
        match self {
            Self::Pending => ' ',
            Self::InProgress => '~',
            Self::Done => 'x',
            Self::Failed => '!',
            Self::Skipped => '-',
        }
    }
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
    fn of(mark: char) -> Option<Self> {
        let mark = mark.to_ascii_lowercase();
        Self::ALL.into_iter().find(|status| status.mark() == mark)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanUpdateStep {
    /// The number of the step, from 1.
    #[schemars(range(min = 1))]
    step: u32,
    /// Its new status.
    status: Status,
    /// The plan file; the chat's own by default.
    path: Option<String>,
}

/// One step of a plan, and the position of its mark in the text.
#[derive(Debug, PartialEq)]
struct Step<'a> {
    mark_at: usize,
    status: Status,
    title: &'a str,
}

impl Declare for PlanWrite {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.plans("path", self.path.as_deref())
    }
}

/// The steps: every task of the list, at any depth, in order.
fn steps(text: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let (mut at, mut in_code) = (0, false);
    for line in text.split_inclusive('\n') {
        let task = line.trim_start();
        let indent = line.len() - task.len();
        if task.starts_with("```") {
            in_code = !in_code;
        }
        let bullet = ["- [", "* [", "+ ["].iter().find_map(|bullet| task.strip_prefix(bullet)).filter(|_| !in_code);
        if let Some(rest) = bullet
            && let Some(status) = rest.chars().next().and_then(Status::of)
            && let Some(title) = rest.get(1..).and_then(|rest| rest.strip_prefix("] "))
        {
            steps.push(Step { mark_at: at + indent + "- [".len(), status, title: title.trim() });
        }
        at += line.len();
    }
    steps
}

impl Declare for PlanUpdateStep {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.plans("path", self.path.as_deref())
    }
}

fn plan_path(call: &Call<'_>, given: Option<&str>) -> Result<FilePath, Error> {
    match (given, &call.plan_path, call.chat) {
        (Some(given), ..) => call::path("path", given),
        (None, Some(path), _) => Ok(path.clone()),
        (None, None, Some(chat)) => Ok(FilePath::parse(&format!("/chats/{chat}/plan.md"))?),
        (None, None, None) => Err(Error::invalid("path", "outside of a chat the plan's path has to be given")),
    }
}

pub(crate) async fn plan_write(call: &Call<'_>, args: PlanWrite) -> Answer {
    let path = plan_path(call, args.path.as_deref())?;
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(position) = args.steps.iter().position(|step| line(step).is_empty()) {
        return Err(Error::invalid(&format!("steps.{position}"), "a step has to say something"));
    }
    let mut text = format!("# {}\n\n", line(&args.title));
    if let Some(notes) = args.notes.as_deref().map(str::trim).filter(|notes| !notes.is_empty()) {
        text.push_str(&format!("{notes}\n\n"));
    }
    for step in &args.steps {
        text.push_str(&format!("- [ ] {}\n", line(step)));
    }
    let change = match call.applied().await? {
        Some(done) => done,
        None => {
            let expect = call.expectation(&path, None).await?;
            call.workspace.write(&path, text, expect, &call.writer()).await?
        }
    };
    let output = format!("wrote the plan {}: {} steps, version {}", change.path, args.steps.len(), change.v);
    let mut done = written(&change, output);
    // Clients that watch get the whole checklist from the beginning, and no step of an older plan.
    let total = u32::try_from(args.steps.len()).unwrap_or(u32::MAX);
    done.events.extend((1..).zip(&args.steps).map(|(step, title)| ChatEvent::PlanStep {
        step,
        status: Status::Pending.name().into(),
        title: line(title),
        plan_path: change.path.clone(),
        plan_id: Some(change.file_id),
        done: 0,
        total,
    }));
    Ok(done)
}

/// The SHA-256 of a plan with every step pending, so that to tick a step does not change it. None for a text without steps, which
/// is no plan.
pub fn plan_digest(text: &str) -> Option<Sha256> {
    let steps = steps(text);
    let mut pending = text.to_owned();
    for step in &steps {
        pending.replace_range(step.mark_at..step.mark_at + 1, " ");
    }
    (!steps.is_empty()).then(|| Sha256::of(pending.as_bytes()))
}

pub(crate) async fn plan_update_step(call: &Call<'_>, args: PlanUpdateStep) -> Answer {
    let path = plan_path(call, args.path.as_deref())?;
    for _ in 0..ATTEMPTS {
        if let Some(done) = call.applied().await? {
            return ticked(call, &done, &args).await;
        }
        let content = call.workspace.read(&path, None).await.map_err(|error| match error.code {
            Code::NotFound => error.hint("write the plan first, with plan_write"),
            _ => error,
        })?;
        let text = as_text(&content.bytes).unwrap_or_default();
        let all = steps(text);
        let step = args.step.checked_sub(1).and_then(|step| all.get(step as usize)).ok_or_else(|| {
            let message = format!("{path} has {} steps; there is no step {}", all.len(), args.step);
            Error::invalid("step", message)
        })?;
        let mut text = text.to_owned();
        text.replace_range(step.mark_at..step.mark_at + 1, args.status.mark().encode_utf8(&mut [0; 4]));
        // A tick changes one mark and nothing else, so the agent need not have read the file; but it must not undo ticks that others made
        // meanwhile.
        let expect = content.info.sha256.map_or(Expect::Any, Expect::Hash);
        match call.workspace.write(&path, text, expect, &call.writer()).await {
            Ok(change) => return ticked(call, &change, &args).await,
            Err(error) if error.code == Code::StaleVersion => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(Code::Conflict, format!("{path} is changed by others all the time")).hint("try again"))
}

/// Told from the version that the call made, so that the call that runs again says the same.
async fn ticked(call: &Call<'_>, change: &Change, args: &PlanUpdateStep) -> Answer {
    let (_, content) = call.workspace.version(change.file_id, change.v).await?;
    let all = steps(as_text(&content).unwrap_or_default());
    let count = |status| u32::try_from(all.iter().filter(|step| step.status == status).count()).unwrap_or(u32::MAX);
    let (done, total) = (count(Status::Done), u32::try_from(all.len()).unwrap_or(u32::MAX));
    let title = args.step.checked_sub(1).and_then(|step| all.get(step as usize)).map_or("", |step| step.title);
    let (step, status) = (args.step, args.status.name());
    let next = all.iter().zip(1..).find(|(step, _)| step.status == Status::Pending);
    let mut output = format!("step {step} is {status}: {title} ({done} of {total} done)");
    if let Some((next, number)) = next {
        output.push_str(&format!("\nnext: step {number}, {}", next.title));
    }
    let mut answer: Done = written(change, output);
    answer.result = json!({
        "step": step, "status": status, "title": title, "plan_path": change.path, "done": done, "total": total, "v": change.v,
    });
    // The agent saw one mark of the file and not the rest, unless it had read the version that the tick changed.
    let before = match change.v {
        0 | 1 => None,
        v => Some(call.workspace.version(change.file_id, v - 1).await?.0.sha256),
    };
    answer.seen.retain(|(path, _)| before.is_some() && call.seen.get(path) == Some(&before));
    answer.events.push(ChatEvent::PlanStep {
        step,
        status: status.into(),
        title: title.into(),
        plan_path: change.path.clone(),
        plan_id: Some(change.file_id),
        done,
        total,
    });
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_changes_no_plan_and_everything_else_does() {
        let digest = |text: &str| plan_digest(text);
        let approved = digest("# Plan\n\n- [ ] one\n- [ ] two\n");
        assert!(approved.is_some());
        assert_eq!(digest("# Plan\n\n- [x] one\n- [~] two\n"), approved);
        for other in
            ["# Plan\n\n- [ ] one\n- [ ] rm -rf\n", "# Plan\n\n- [ ] one\n", "# Plan\n\nfirst\n- [ ] one\n- [ ] two\n"]
        {
            assert_ne!(digest(other), approved, "{other}");
        }
        assert_eq!(digest("# Notes\n"), None);
    }

    #[test]
    fn steps_are_the_tasks_of_the_list_outside_of_code() {
        let text = "# Plan\n\n- [ ] one\n  * [X] two é\n```\n- [ ] code\n```\n- [?] not\n+ [~] three\n- [x]none\n";
        let found = steps(text);
        let told: Vec<_> = found.iter().map(|step| (step.status, step.title)).collect();
        assert_eq!(told, [(Status::Pending, "one"), (Status::Done, "two é"), (Status::InProgress, "three")]);
        assert!(found.iter().all(|step| text[step.mark_at..].chars().nth(1) == Some(']')));
    }
}
