//! The sweep: moves on items without a look, and ends tasks that no item wants.
//!
//! It goes page by page, and a page takes about as long as its slowest item, since all of them are asked at once. Its cursor leads first through the
//! items and then through the tasks of ECS. One item or task that fails is left for the next time, so it keeps no other from its turn.

use super::{
    EcsSandboxes, KeptRecord, WHAT,
    record::{PARTITION, Phase, Record},
    settle::Call,
    tasks::{Seen, Status},
};
use crate::fault::Class;
use futures::future::join_all;
use ports::{Query, Result};

/// How many items or tasks are asked at once. A sandbox that runs and is silent takes a second, so a page is done well within the seconds that a sweep
/// has, also if all of its sandboxes are silent.
const PAGE: usize = 25;

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Items that were looked at.
    pub seen: usize,
    /// Sandboxes that could not be had in time, or at all.
    pub failed: usize,
    /// Sandboxes whose end had not been noticed.
    pub ended: usize,
    /// Tasks that no item wanted, stopped.
    pub stopped: usize,
    /// Items and tasks that could not be dealt with, and wait for the next sweep.
    pub left: usize,
}

/// Where a sweep goes on. As a text it is the stage, a colon, and the cursor of the table or of ECS.
enum SweepPlace {
    Items(Option<String>),
    Tasks(Option<String>),
}

impl SweepPlace {
    /// The beginning for none, and for a text that is no place.
    fn read(text: Option<&str>) -> Self {
        let cursor = |cursor: &str| Some(cursor.to_owned()).filter(|cursor| !cursor.is_empty());
        match text.and_then(|text| text.split_once(':')) {
            Some(("items", at)) => Self::Items(cursor(at)),
            Some(("tasks", at)) => Self::Tasks(cursor(at)),
            _ => Self::Items(None),
        }
    }

    fn into_text(self) -> String {
        match self {
            Self::Items(at) => format!("items:{}", at.unwrap_or_default()),
            Self::Tasks(at) => format!("tasks:{}", at.unwrap_or_default()),
        }
    }
}

impl EcsSandboxes {
    /// Goes once through all items and through all tasks, as [`sweep_page`](Self::sweep_page) does.
    ///
    /// # Errors
    /// Those of [`sweep_page`](Self::sweep_page).
    pub async fn sweep(&self) -> Result<Swept> {
        let (mut all, mut from) = (Swept::default(), None);
        loop {
            let (swept, next) = self.sweep_page(from.as_deref()).await?;
            all.add(swept);
            if next.is_none() {
                return Ok(all);
            }
            from = next;
        }
    }

    /// Goes through a page of the items or of the tasks: starts nothing that was not asked for, fails requests past their deadline, notices ended
    /// tasks, and stops every task whose item is gone, replaced or over. `from` is the place that the page before returned; none to begin anew.
    /// Returns the place of the next page; none at the end of the round. To be called every few minutes; two at once do no harm. Items that are over
    /// expire by themselves after a day.
    ///
    /// # Errors
    /// When the table or ECS does not answer. Finished parts stay done; the next sweep goes on at `from`.
    pub async fn sweep_page(&self, from: Option<&str>) -> Result<(Swept, Option<String>)> {
        let mut swept = Swept::default();
        let from = match SweepPlace::read(from) {
            SweepPlace::Tasks(from) => from,
            SweepPlace::Items(from) => {
                let page = self.table.query(&Query::all(PARTITION, PAGE).after(from)).await?;
                self.sweep_items(page.items.iter().map(KeptRecord::read), &mut swept).await?;
                if page.next.is_some() {
                    return Ok((swept, Some(SweepPlace::Items(page.next).into_text())));
                }
                None
            }
        };
        let is_first = from.is_none();
        let (tasks, next) = match self.tasks.list(from).await {
            Ok(page) => page,
            // ECS keeps its cursors for a while only.
            Err(fault) if fault.class == Class::Refused && !is_first => {
                return Ok((swept, Some(SweepPlace::Tasks(None).into_text())));
            }
            Err(fault) => return Err(fault.into_error(WHAT)),
        };
        for some in tasks.chunks(PAGE) {
            self.sweep_tasks(some, &mut swept).await?;
        }
        Ok((swept, next.map(|next| SweepPlace::Tasks(Some(next)).into_text())))
    }

    async fn sweep_items(&self, items: impl Iterator<Item = Result<KeptRecord>>, swept: &mut Swept) -> Result<()> {
        let mut some = Vec::new();
        for kept in items {
            match kept {
                Ok(kept) if kept.record.is_wanted() => some.push(kept),
                Ok(_) => {}
                Err(error) => tracing::error!(error = %error.with_causes(), "an item is left as it is"),
            }
        }
        let tasks: Vec<String> = some.iter().filter_map(|kept| kept.record.task().map(str::to_owned)).collect();
        let mut described = self.tasks.describe(&tasks).await.map_err(|fault| fault.into_error(WHAT))?;
        swept.seen += some.len();
        let standings = some.into_iter().map(|kept| {
            let task = kept.record.task().map(str::to_owned);
            let seen = task.as_ref().and_then(|task| described.remove(task));
            async move {
                let workspace = kept.workspace;
                let standing = match task {
                    Some(_) => self.judge(kept, seen, Call::UntilReady).await,
                    None => self.settle(kept, Call::UntilReady).await,
                };
                (workspace, standing)
            }
        });
        for (workspace, standing) in join_all(standings).await {
            let phase = match standing {
                Ok(standing) => standing.kept.map(|kept| kept.record.phase),
                Err(error) => {
                    tracing::warn!(%workspace, error = %error.with_causes(), "a sandbox is left for the next sweep");
                    swept.left += 1;
                    None
                }
            };
            match phase {
                Some(Phase::Failed { .. }) => swept.failed += 1,
                Some(Phase::Ended { .. }) => swept.ended += 1,
                Some(Phase::Asked { .. } | Phase::Started { .. } | Phase::Ready { .. }) | None => {}
            }
        }
        Ok(())
    }

    /// Stops those of these tasks that no item wants.
    async fn sweep_tasks(&self, tasks: &[String], swept: &mut Swept) -> Result<()> {
        let seen = self.tasks.describe(tasks).await.map_err(|fault| fault.into_error(WHAT))?;
        let stops = seen.into_iter().map(|(task, seen)| async move {
            let stopped = self.stop_unwanted(&task, &seen).await;
            (task, stopped)
        });
        for (task, stopped) in join_all(stops).await {
            match stopped {
                Ok(is_stopped) => swept.stopped += usize::from(is_stopped),
                Err(error) => {
                    tracing::warn!(task, error = %error.with_causes(), "a task is left for the next sweep");
                    swept.left += 1;
                }
            }
        }
        Ok(())
    }

    /// Whether this task was stopped, because no item wants it.
    async fn stop_unwanted(&self, task: &str, seen: &Seen) -> Result<bool> {
        if matches!(seen.status, Status::Over { .. }) {
            return Ok(false);
        }
        let owner = seen.started_by.split_once('/').and_then(|(workspace, _)| workspace.parse().ok());
        let Some(workspace) = owner else {
            tracing::warn!(task, started_by = seen.started_by, "somebody has started a sandbox by hand");
            return Ok(false);
        };
        // Read after ECS was asked: a request is in the table before its task is in ECS.
        let is_wanted = self.kept(workspace).await?.is_some_and(|kept| {
            kept.record.is_wanted() && Record::started_by(workspace, &kept.record.attempt) == seen.started_by
        });
        if is_wanted {
            return Ok(false);
        }
        tracing::info!(task, %workspace, "a task that no item wants is stopped");
        let stopped = self.tasks.stop(task, "its workspace has let it go").await;
        stopped.map(|()| true).map_err(|fault| fault.into_error(WHAT))
    }
}

impl Swept {
    fn add(&mut self, other: Self) {
        let Self { seen, failed, ended, stopped, left } = other;
        self.seen += seen;
        self.failed += failed;
        self.ended += ended;
        self.stopped += stopped;
        self.left += left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_text_and_a_text_without_one_is_the_beginning() {
        let again = |text| SweepPlace::read(text).into_text();
        for text in ["items:", "items:a:b", "tasks:", "tasks:token=="] {
            assert_eq!(again(Some(text)), text);
        }
        for text in [None, Some(""), Some("019bf537"), Some("others:1")] {
            assert_eq!(again(text), "items:");
        }
    }
}
