//! A plan that several agents share: its steps as a program reads them, and the claims of an agent that works no more.

use super::{
    ATTEMPTS,
    checklist::{freed, steps},
};
use domain::{ChatEvent, ChatId, Code, Error, FileId, FilePath};
use workspace::{Expect, Workspace, Writer, as_utf_8};

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanItem {
    /// Counts from 1.
    pub step: u32,
    /// Its text.
    pub title: String,
    /// `pending`, `in_progress`, `done`, `failed` or `skipped`.
    pub status: &'static str,
    /// Whether an agent may claim it now.
    pub is_free: bool,
    /// The first step that it needs and that is not done.
    pub waits_for: Option<u32>,
}

/// A plan at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanState {
    /// Its path.
    pub path: FilePath,
    /// Its steps.
    pub items: Vec<PlanItem>,
    /// The steps that became free, for clients that watch.
    pub events: Vec<ChatEvent>,
}

/// Frees the steps that the agents of these chats have claimed and not ended, and returns the plan after it. Harmless when it is repeated.
///
/// # Errors
/// `NOT_FOUND` when the plan is gone; `CONFLICT` when others change it all the time; those of reading and writing it.
pub async fn free_steps(
    workspace: &Workspace,
    plan: FileId,
    chats: &[ChatId],
    writer: &Writer,
) -> Result<PlanState, Error> {
    for _ in 0..ATTEMPTS {
        let path = workspace.by_id(plan).await?.path;
        let content = workspace.read(&path, None).await?;
        let before = as_utf_8(&content.bytes).unwrap_or_default();
        let (mut text, mut numbers) = (before.to_owned(), Vec::new());
        for chat in chats {
            let (next, of_chat) = freed(&text, *chat);
            text = next;
            numbers.extend(of_chat);
        }
        if !numbers.is_empty() {
            let expect = content.info.sha256.map_or(Expect::Any, Expect::Hash);
            match workspace.write(&path, text.clone(), expect, writer).await {
                Ok(_) => {}
                Err(error) if error.code == Code::StaleVersion => continue,
                Err(error) => return Err(error),
            }
        }
        let now = workspace.now();
        let all = steps(&text);
        let items: Vec<PlanItem> = (1..)
            .zip(&all)
            .map(|(step, at)| {
                let (title, status) = (at.title.to_owned(), at.status.name());
                PlanItem { step, title, status, is_free: at.is_free(&all, now), waits_for: at.waits_for(&all) }
            })
            .collect();
        let count = |many: usize| u32::try_from(many).unwrap_or(u32::MAX);
        let (done, total) = (count(items.iter().filter(|item| item.status == "done").count()), count(items.len()));
        let told = items.iter().filter(|item| numbers.contains(&item.step)).map(|item| ChatEvent::PlanStep {
            step: item.step,
            status: item.status.to_owned(),
            title: item.title.clone(),
            plan_path: path.clone(),
            plan_id: Some(plan),
            done,
            total,
        });
        let events = told.collect();
        return Ok(PlanState { path, items, events });
    }
    Err(Error::new(Code::Conflict, "the plan is changed by others all the time"))
}
