//! `plan_write` and `plan_update_step`: the plan is a Markdown checklist in a file, for people and agents alike. `checklist` reads and changes
//! its text, `team` is for several agents on one plan.

mod checklist;
mod order;
mod team;

pub use checklist::plan_digest;
pub use team::{PlanItem, PlanState, free_steps};

use crate::{
    call::{self, Answer, Call, Done},
    effects::{Declaration, Declare},
    write::written,
};
use checklist::{PlanRefusal, Status, Step, StepEditor, change, changed, needs, steps};
use domain::{ChatEvent, Code, Error, FilePath, Principal, Timestamp, text::counted};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use workspace::{Change, Expect, as_utf_8};

pub(crate) const PLAN_WRITE: &str = "Write the plan: a Markdown checklist that people watch. Writes the chat's plan file unless a \
    path is given. depends_on says which steps need others. Then keep it true with plan_update_step.";
pub(crate) const PLAN_UPDATE_STEP: &str = "Set the status of one step of the plan, in the file and for all who watch. Set a step \
    to in_progress when you begin it and to done when it is done. Where several agents share the plan, in_progress claims the step for you, \
    and without a number you get the first free one.";

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
    /// The steps that can only begin when others are done. All others can be done side by side.
    #[serde(default)]
    #[schemars(length(max = 100))]
    depends_on: Vec<Dependency>,
    /// Anything to say before the steps, in Markdown.
    notes: Option<String>,
    /// The plan file; the chat's own by default.
    path: Option<String>,
}

/// A step that needs others.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dependency {
    /// The number of the step, from 1.
    #[schemars(range(min = 1))]
    step: u32,
    /// The numbers of the steps that have to be done before it.
    on: Vec<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanUpdateStep {
    /// The number of the step, from 1. Without it: the step that you have claimed, or the first free one.
    #[schemars(range(min = 1))]
    step: Option<u32>,
    /// Its new status.
    status: Status,
    /// The plan file; the chat's own by default.
    path: Option<String>,
}

impl Declare for PlanWrite {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.plans("path", self.path.as_deref())
    }
}

impl Declare for PlanUpdateStep {
    fn declare(&self, into: &mut Declaration<'_>) -> Result<(), Error> {
        into.plans("path", self.path.as_deref())
    }
}

fn plan_path(call: &Call<'_>, given: Option<&str>) -> Result<FilePath, Error> {
    match (given, &call.plan_path, call.chat) {
        (Some(given), ..) => call::new_file("path", given),
        (None, Some(path), _) => Ok(path.clone()),
        (None, None, Some(chat)) => Ok(FilePath::parse(&format!("/chats/{chat}/plan.md"))?),
        (None, None, None) => Err(Error::invalid("path", "outside of a chat the plan's path has to be given")
            .hint("name the file, such as /projects/app/plan.md")),
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
    let lines: Vec<String> = args.steps.iter().map(|step| line(step)).collect();
    for step in order::with_needs(&lines, args.depends_on.iter().map(|one| (one.step, one.on.as_slice())))? {
        text.push_str(&format!("- [ ] {step}\n"));
    }
    let change = match call.applied().await? {
        Some(done) => done,
        None => {
            let expect = call.expectation(&path, None).await?;
            call.workspace.write(&path, text, expect, &call.writer()).await?
        }
    };
    let steps = counted(args.steps.len(), "step");
    let output = format!("wrote the plan {}: {steps}, version {}", change.path, change.v);
    let mut done = written(&change, output);
    // Clients that watch get the whole checklist from the beginning, and no step of an older plan.
    let total = u32::try_from(args.steps.len()).unwrap_or(u32::MAX);
    done.events.extend((1..).zip(&args.steps).map(|(step, title)| ChatEvent::PlanStep {
        step,
        status: Status::Pending.name().into(),
        title: needs(&line(title)).0.to_owned(),
        plan_path: change.path.clone(),
        plan_id: Some(change.file_id),
        done: 0,
        total,
    }));
    Ok(done)
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
        let text = as_utf_8(&content.bytes).unwrap_or_default();
        let role = match &call.by {
            Principal::Agent { role, .. } => role.as_str(),
            Principal::User { .. } | Principal::Task { .. } | Principal::System => "",
        };
        let hand = StepEditor { role, chat: call.chat, lease: call.claims, now: call.workspace.now() };
        let (next, _) = change(text, args.step, args.status, &hand)
            .map_err(|refused| explained(&refused, &path, &steps(text), hand.now))?;
        // A tick changes one line and nothing else, so the agent need not have read the file; but it must not undo ticks or claims that others
        // made meanwhile.
        let expect = content.info.sha256.map_or(Expect::Any, Expect::Hash);
        match call.workspace.write(&path, next, expect, &call.writer()).await {
            Ok(change) => return ticked(call, &change, &args).await,
            Err(error) if error.code == Code::StaleVersion => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(Code::Conflict, format!("{path} is changed by others all the time")).hint("try again"))
}

/// Why a step is not changed, for the agent, with the steps that it may claim.
fn explained(refused: &PlanRefusal, path: &FilePath, all: &[Step<'_>], now: Timestamp) -> Error {
    let free: Vec<usize> =
        (1..).zip(all).filter(|(_, step)| step.is_free(all, now)).map(|(number, _)| number).collect();
    let hint = match free.as_slice() {
        [] => "no step is free: end your turn with a short report".to_owned(),
        free => format!("free steps: {}", free.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    };
    let conflict = |text: String| Error::new(Code::Conflict, text).hint(hint).detail("free", json!(free));
    match refused {
        PlanRefusal::NoStep => {
            Error::invalid("step", format!("{path} has {}; there is none with this number", counted(all.len(), "step")))
        }
        PlanRefusal::NothingHeld => Error::invalid("step", "you have claimed no step, so its number is needed"),
        PlanRefusal::Claimed(step, holder) => {
            conflict(format!("step {step} is claimed by another agent, {}", holder.role))
        }
        PlanRefusal::Ended(step, status) => conflict(format!("step {step} has ended: it is {}", status.name())),
        PlanRefusal::Waits(step, needed) => conflict(format!("step {step} waits for step {needed}, which is not done")),
        PlanRefusal::Unclaimed(step) => {
            Error::new(Code::Conflict, format!("you have not claimed step {step}")).hint("set it to in_progress first")
        }
        PlanRefusal::NothingFree => conflict(format!("no step of {path} is free")),
    }
}

/// Told from the version that the call made, so that the call that runs again says the same.
async fn ticked(call: &Call<'_>, change: &Change, args: &PlanUpdateStep) -> Answer {
    let (_, content) = call.workspace.version(change.file_id, change.v).await?;
    let text = as_utf_8(&content).unwrap_or_default();
    let before = match change.v {
        0 | 1 => None,
        v => Some(call.workspace.version(change.file_id, v - 1).await?),
    };
    let earlier = before.as_ref().and_then(|(_, content)| as_utf_8(content)).unwrap_or_default();
    let all = steps(text);
    let step = args.step.or_else(|| changed(earlier, text)).unwrap_or_default();
    let count = |status| u32::try_from(all.iter().filter(|step| step.status == status).count()).unwrap_or(u32::MAX);
    let (done, total) = (count(Status::Done), u32::try_from(all.len()).unwrap_or(u32::MAX));
    let title = step.checked_sub(1).and_then(|step| all.get(step as usize)).map_or("", |step| step.title);
    let (status, now) = (args.status.name(), call.workspace.now());
    let next = all.iter().zip(1..).find(|(step, _)| step.status == Status::Pending && step.is_free(&all, now));
    let mut output = format!("step {step} is {status}: {title} ({done} of {total} done)");
    if let Some((next, number)) = next {
        output.push_str(&format!("\nnext: step {number}, {}", next.title));
    }
    let mut answer: Done = written(change, output);
    answer.result = json!({
        "step": step, "status": status, "title": title, "plan_path": change.path, "done": done, "total": total, "v": change.v,
    });
    // The agent saw one mark of the file and not the rest, unless it had read the version that the tick changed.
    let before = before.map(|(version, _)| version.sha256);
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
