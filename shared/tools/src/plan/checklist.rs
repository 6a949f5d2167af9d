//! The text of a plan: the steps of its checklist, their marks, and the claims of agents that share the plan. Pure.
//!
//! A claim is a comment at the end of the step's line, which Markdown does not show: the persona, the chat, and the time at which the claim
//! expires, as in `- [~] Write it <!-- builder 019bf537-f228-7cd3-aa1c-3da8af302e12 until 2026-11-25T18:20:00Z -->`. The comment of a step that
//! has ended keeps the agent and loses the time. A claim is as good as the write that makes it: the caller writes the text on the condition
//! that the file is still the one that was read, so one of two agents that claim the same step wins.
//!
//! The title of a step may end with the steps that it needs, as in `- [ ] Write it (after 1, 2)`: it is free when they are done or skipped.

use domain::{ChatId, Sha256, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
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

    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// Whether the step needs nobody any more.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Skipped)
    }

    fn of(mark: char) -> Option<Self> {
        let mark = mark.to_ascii_lowercase();
        Self::ALL.into_iter().find(|status| status.mark() == mark)
    }
}

/// The agent that a step is claimed by, or was ended by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Its persona.
    pub role: String,
    /// Its chat.
    pub chat: ChatId,
    /// The end of its claim; none for a step that has ended.
    pub until: Option<Timestamp>,
}

impl Holder {
    fn of(comment: &str) -> Option<Self> {
        let words: Vec<&str> = comment.split_whitespace().collect();
        let (role, chat, until) = match words[..] {
            [role, chat] => (role, chat, None),
            [role, chat, "until", until] => (role, chat, Some(until.parse().ok()?)),
            _ => return None,
        };
        Some(Self { role: role.to_owned(), chat: chat.parse().ok()?, until })
    }

    fn comment(&self) -> String {
        let until = self.until.map_or_else(String::new, |until| format!(" until {until}"));
        format!("<!-- {} {}{until} -->", self.role, self.chat)
    }
}

/// One step of a plan, and its places in the text.
#[derive(Debug, PartialEq)]
pub(crate) struct Step<'a> {
    pub status: Status,
    pub title: &'a str,
    /// The numbers of the steps that have to be done before it.
    pub needs: Vec<u32>,
    pub holder: Option<Holder>,
    mark_at: usize,
    /// From the end of the title to the end of the line.
    tail: (usize, usize),
}

impl Step<'_> {
    /// The agent that works on the step at this time.
    pub fn claimed(&self, now: Timestamp) -> Option<&Holder> {
        let is_live = |holder: &&Holder| holder.until.is_some_and(|until| until > now);
        self.holder.as_ref().filter(|_| self.status == Status::InProgress).filter(is_live)
    }

    /// The first step that has to be done before it and is not; none of those that are not there.
    pub fn waits_for(&self, all: &[Self]) -> Option<u32> {
        let is_open = |number: &&u32| {
            let needed = number.checked_sub(1).and_then(|at| all.get(at as usize));
            needed.is_some_and(|step| !matches!(step.status, Status::Done | Status::Skipped))
        };
        self.needs.iter().find(is_open).copied()
    }

    /// Whether an agent may claim it.
    pub fn is_free(&self, all: &[Self], now: Timestamp) -> bool {
        !self.status.is_end() && self.claimed(now).is_none() && self.waits_for(all).is_none()
    }
}

/// The title of a step, and the steps that it needs.
pub(crate) fn needs(words: &str) -> (&str, Vec<u32>) {
    let found = words.strip_suffix(')').and_then(|words| words.rsplit_once("(after "));
    let numbers = |list: &str| list.split(',').map(|number| number.trim().parse().ok()).collect::<Option<Vec<u32>>>();
    match found.and_then(|(title, list)| Some((title.trim_end(), numbers(list)?))) {
        Some((title, needs)) if !title.is_empty() => (title, needs),
        _ => (words, Vec::new()),
    }
}

/// The steps: every task of the list, at any depth, in order.
pub(crate) fn steps(text: &str) -> Vec<Step<'_>> {
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
            && let Some(words) = rest.get(1..).and_then(|rest| rest.strip_prefix("] "))
        {
            let (said, holder) = parts(words.trim());
            let end = at + line.trim_end().len();
            let begin = at + (line.len() - words.len()) + (words.len() - words.trim_start().len()) + said.len();
            let (title, needs) = needs(said);
            steps.push(Step {
                mark_at: at + indent + "- [".len(),
                status,
                title,
                needs,
                holder,
                tail: (begin, end.max(begin)),
            });
        }
        at += line.len();
    }
    steps
}

/// The words of a step, and its claim.
fn parts(words: &str) -> (&str, Option<Holder>) {
    let comment = words.strip_suffix("-->").and_then(|words| words.rsplit_once("<!--"));
    match comment.and_then(|(title, comment)| Some((title, Holder::of(comment)?))) {
        Some((title, holder)) => (title.trim_end(), Some(holder)),
        None => (words, None),
    }
}

/// The SHA-256 of a plan with every step pending and free, so that neither a tick nor a claim changes it. None for a text without steps, which
/// is no plan.
pub fn plan_digest(text: &str) -> Option<Sha256> {
    let steps = steps(text);
    let mut pending = text.to_owned();
    for step in steps.iter().rev() {
        if step.holder.is_some() {
            pending.replace_range(step.tail.0..step.tail.1, "");
        }
        pending.replace_range(step.mark_at..=step.mark_at, " ");
    }
    (!steps.is_empty()).then(|| Sha256::of(pending.as_bytes()))
}

/// The one that changes a step.
#[derive(Clone, Debug)]
pub(crate) struct StepEditor<'a> {
    /// Its persona.
    pub role: &'a str,
    /// Its chat; none for a person.
    pub chat: Option<ChatId>,
    /// How long its claims last; none for one that claims nothing, as it shares its plan with no other agent.
    pub lease: Option<Duration>,
    /// The time.
    pub now: Timestamp,
}

/// Why a step is not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlanRefusal {
    /// There is no step with this number.
    NoStep,
    /// Another agent works on this step.
    Claimed(u32, Holder),
    /// This step has ended.
    Ended(u32, Status),
    /// The agent has to claim this step first.
    Unclaimed(u32),
    /// The first step waits for the second one.
    Waits(u32, u32),
    /// No step is free.
    NothingFree,
    /// No step is named, and the agent has claimed none.
    NothingHeld,
}

/// The text with the new status of a step, and the number of the step. Without a number an agent means the step that it has claimed, or the
/// first one that is free when it begins one.
///
/// # Errors
/// A step that another agent has claimed is changed by nobody else while the claim lasts. An agent that shares its plan changes only steps that
/// it has claimed, and none that have ended, and claims none before those that it needs are done.
pub(crate) fn change(
    text: &str,
    number: Option<u32>,
    status: Status,
    hand: &StepEditor<'_>,
) -> Result<(String, u32), PlanRefusal> {
    let (all, now) = (steps(text), hand.now);
    let is_own = |step: &Step<'_>| {
        let own = match hand.lease {
            Some(_) => step.holder.as_ref().is_some_and(|holder| Some(holder.chat) == hand.chat),
            None => step.claimed(now).is_none(),
        };
        own && step.status == Status::InProgress
    };
    let first = |is: &dyn Fn(&Step<'_>) -> bool| all.iter().position(is);
    let position = match number {
        Some(number) => {
            number.checked_sub(1).map(|at| at as usize).filter(|at| *at < all.len()).ok_or(PlanRefusal::NoStep)?
        }
        None => match first(&is_own) {
            Some(own) => own,
            None if status == Status::InProgress => {
                first(&|step| step.is_free(&all, now)).ok_or(PlanRefusal::NothingFree)?
            }
            None => return Err(PlanRefusal::NothingHeld),
        },
    };
    let (step, number) = (&all[position], u32::try_from(position + 1).unwrap_or(u32::MAX));
    if let Some(holder) = step.claimed(now).filter(|holder| Some(holder.chat) != hand.chat) {
        return Err(PlanRefusal::Claimed(number, holder.clone()));
    }
    let shares = hand.lease.zip(hand.chat);
    if shares.is_some() && step.status.is_end() {
        return Err(PlanRefusal::Ended(number, step.status));
    }
    if let Some(needed) = step.waits_for(&all).filter(|_| shares.is_some() && status == Status::InProgress) {
        return Err(PlanRefusal::Waits(number, needed));
    }
    if shares.is_some() && status != Status::InProgress && !is_own(step) {
        return Err(PlanRefusal::Unclaimed(number));
    }
    let holder = shares.filter(|_| status != Status::Pending).map(|(lease, chat)| Holder {
        role: hand.role.chars().map(|one| if one.is_alphanumeric() || one == '_' { one } else { '-' }).collect(),
        chat,
        until: (status == Status::InProgress).then(|| now + lease),
    });
    Ok((with(text, step, status, holder.as_ref()), number))
}

/// The text in which the steps that this chat has claimed and not ended are pending again, and their numbers.
pub(crate) fn freed(text: &str, chat: ChatId) -> (String, Vec<u32>) {
    let all = steps(text);
    let (mut text, mut numbers) = (text.to_owned(), Vec::new());
    for (at, step) in all.iter().enumerate().rev() {
        if step.status == Status::InProgress && step.holder.as_ref().is_some_and(|holder| holder.chat == chat) {
            text = with(&text, step, Status::Pending, None);
            numbers.insert(0, u32::try_from(at + 1).unwrap_or(u32::MAX));
        }
    }
    (text, numbers)
}

/// The number of the first step that differs between two texts.
pub(crate) fn changed(before: &str, after: &str) -> Option<u32> {
    let (before, after) = (steps(before), steps(after));
    let differs = |(one, other): (&Step<'_>, &Step<'_>)| (one.status, &one.holder) != (other.status, &other.holder);
    let at = before.iter().zip(&after).position(differs)?;
    u32::try_from(at + 1).ok()
}

/// The text with another status and another claim of this step, which is of this text.
fn with(text: &str, step: &Step<'_>, status: Status, holder: Option<&Holder>) -> String {
    let mut text = text.to_owned();
    if step.holder.is_some() || holder.is_some() {
        let tail = holder.map_or_else(String::new, |holder| format!(" {}", holder.comment()));
        text.replace_range(step.tail.0..step.tail.1, &tail);
    }
    text.replace_range(step.mark_at..=step.mark_at, status.mark().encode_utf8(&mut [0; 4]));
    text
}

#[cfg(test)]
mod tests;
