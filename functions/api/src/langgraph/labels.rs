//! The labels of a thread: those of its chat or task, and before its first run those of its record.

use super::Thread;
use crate::{access::demand, converse::Speaker};
use domain::{CommandId, Error, LabelChanges, Labels};
use engine::TaskChanges;
use identity::Action;

/// The labels that a thread has after these changes.
pub(super) fn changed(thread: &Thread, changes: &LabelChanges) -> Result<Labels, Error> {
    let none = Labels::default();
    let before = match thread {
        Thread::Chat(view) => &view.labels,
        Thread::Task(view) => &view.labels,
        Thread::Empty(.., labels) => labels,
        Thread::Nothing(_) => &none,
    };
    before.changed("metadata", changes.clone())
}

/// Changes the labels of a thread that is there. A change is sent also where the view shows it already: an earlier one may wait behind a turn.
pub(super) async fn change(speaker: &Speaker<'_>, thread: &mut Thread, changes: LabelChanges) -> Result<(), Error> {
    let (context, workspace, by) = (speaker.context, speaker.workspace, &speaker.by);
    if changes.is_empty() {
        return Ok(());
    }
    let (after, command) = (changed(thread, &changes)?, CommandId(speaker.ids.id("labels")));
    let before = match thread {
        Thread::Chat(view) => {
            let setup = chat::Setup { labels: changes, ..chat::Setup::default() };
            context.chats.configure_once(workspace, view.chat_id, command, setup, by).await?;
            &mut view.labels
        }
        Thread::Task(view) => {
            demand(speaker.caller, speaker.role, Action::Run)?;
            let changes = TaskChanges { labels: changes, ..TaskChanges::default() };
            context.tasks.change(workspace, view.task_id, changes, command, by).await?;
            &mut view.labels
        }
        Thread::Empty(chat, .., labels) => {
            context.threads().label(workspace, *chat, after.clone()).await?;
            labels
        }
        Thread::Nothing(_) => return Ok(()),
    };
    // The view has them in a moment.
    *before = after;
    Ok(())
}
