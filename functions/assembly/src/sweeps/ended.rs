//! Chats, tasks and schedules that were deleted: their logs are removed when nothing needs them any more. The file of a chat may come back from the trash,
//! and is made of the log where no disk lasts. A re-run reads the logs of the recorded task and its children until it ends.

use super::{Sweep, SweepStep, due::DuePlace, unreachable};
use crate::remains::Semaphores;
use actor::ended::{self, Ended};
use async_trait::async_trait;
use domain::{ActorRef, Code, Error, FileId, Timestamp, WorkspaceId};
use ports::Clock;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use workspace::{Access, Workspaces};

/// Actors of one step.
const AT_ONCE: usize = 25;
/// After this time a chat whose file still exists is looked at again. A file that was restored from the trash may stay for ever.
const FILE_STAYS: Duration = Duration::from_secs(24 * 3600);

/// Removes their logs.
pub struct EndedActors {
    /// The files of workspaces.
    pub workspaces: Workspaces,
    /// The table with the logs, and what they hold of semaphores.
    pub semaphores: Semaphores,
    /// How long a log stays after the deletion: longer than a file stays in the trash.
    pub kept: Duration,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for EndedActors {
    fn name(&self) -> &'static str {
        "ended"
    }

    /// The cursor is the place in the index: an actor whose log is still needed is passed by.
    async fn sweep_page(&self, from: Option<&str>) -> Result<SweepStep, Error> {
        let mut place = DuePlace::read(from, self.clock.now() - self.kept);
        let before = place.before;
        let page = ended::before(&*self.semaphores.table, before, AT_ONCE, place.cursor.take()).await;
        let (actors, next) = page.map_err(unreachable)?;
        let next = place.next(next, 1);
        let mut step = SweepStep { more: next.is_some(), next, ..SweepStep::default() };
        let mut reruns = BTreeMap::new();
        for ended in actors {
            match self.remove(&ended, before, &mut reruns).await {
                Ok(is_gone) => step.count += u64::from(is_gone),
                Err(error) => {
                    step.failed += 1;
                    tracing::warn!(actor = %ended.actor, %error, "the log of something that was deleted stays for now");
                }
            }
        }
        Ok(step)
    }
}

impl EndedActors {
    /// Whether the actor is gone; one that is still needed stays. The actors of this page have left their lists before the time `before`. `reruns` has
    /// the workspaces of this page, with whether a re-run is under way there.
    async fn remove(
        &self,
        ended: &Ended,
        before: Timestamp,
        reruns: &mut BTreeMap<WorkspaceId, bool>,
    ) -> Result<bool, Error> {
        let (table, workspace) = (&*self.semaphores.table, ended.workspace);
        // A step wrote its view again, and has not come to the deletion.
        if table.get(&ended.view).await.map_err(unreachable)?.is_some() {
            return Ok(false);
        }
        let known = ended.actor.as_str().parse::<ActorRef>().ok();
        match known {
            Some(ActorRef::Chat { chat, .. }) if self.has_file(workspace, FileId(chat.0)).await? => {
                ended::postpone(table, ended, before + FILE_STAYS).await.map_err(unreachable)?;
                return Ok(false);
            }
            Some(ActorRef::Task { .. }) if self.has_reruns(workspace, reruns).await? => return Ok(false),
            _ => {}
        }
        self.semaphores.release_actor(workspace, &ended.actor).await.map_err(unreachable)?;
        let gone = match known {
            Some(ActorRef::Task { task, .. }) => engine::remove_task(table, workspace, task).await,
            Some(ActorRef::Chat { chat, .. }) => chat::remove_chat(table, workspace, chat).await,
            _ => ended::remove(table, &ended.actor).await,
        };
        gone.map_err(unreachable)?;
        Ok(true)
    }

    async fn has_reruns(&self, workspace: WorkspaceId, known: &mut BTreeMap<WorkspaceId, bool>) -> Result<bool, Error> {
        if let Some(found) = known.get(&workspace) {
            return Ok(*found);
        }
        let found = engine::reruns::any_runs(&*self.semaphores.table, workspace).await.map_err(unreachable)?;
        known.insert(workspace, found);
        Ok(found)
    }

    /// Whether the file is at its place, at another one, or in the trash. The rest of a deleted workspace is removed as a whole.
    async fn has_file(&self, workspace: WorkspaceId, file: FileId) -> Result<bool, Error> {
        let files = match self.workspaces.open(workspace, Access::platform("the log of a deleted chat")).await {
            Err(error) if error.code == Code::NotFound => return Ok(true),
            files => files?,
        };
        match files.by_id(file).await {
            Ok(_) => Ok(true),
            Err(error) if error.code == Code::NotFound => Ok(files.trashed_path(file).await?.is_some()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::on_fakes::OnFakes;
    use domain::{ChatId, FilePath, Principal, TaskId};
    use ports::{Expect, Key, Write};

    #[tokio::test(start_paused = true)]
    async fn the_log_of_a_deleted_chat_stays_until_its_file_is_gone_for_good() {
        let on = OnFakes::new().await;
        let day = Duration::from_secs(24 * 3600);
        let (workspaces, clock) = (on.workspaces.clone(), on.clock.clone());
        let sweep = EndedActors { workspaces, semaphores: on.semaphores(), kept: day, clock };
        let files = on.workspaces.open(on.id, Access::platform("a test")).await.unwrap();
        let chats = ["purged", "in the trash", "restored"].map(|name| ChatId::from_key("test", name));
        let path = |chat: ChatId| FilePath::parse(&format!("/chats/{chat}.md")).unwrap();
        let by = || workspace::Writer::from(Principal::System);
        for chat in chats {
            files.create_projection(&path(chat), FileId(chat.0), "words", &by()).await.unwrap();
            files.rm(&path(chat), &by()).await.unwrap();
        }
        files.purge(FileId(chats[0].0), &by()).await.unwrap();
        files.restore(FileId(chats[2].0), &by()).await.unwrap();

        let mut actors = chats.map(|chat| chat::actor_id(on.id, chat)).to_vec();
        actors.push(engine::machine::actor_id(on.id, TaskId::from_key("test", "task")));
        for actor in &actors {
            let noted = ended::noting(actor, &Key::new("list", actor.as_str()), on.clock.now()).unwrap();
            let entry = Write::put(actor.entry_key(1), "{}", Expect::Absent);
            on.table.commit(vec![entry, noted]).await.unwrap();
        }
        let has_logs = async || {
            let mut found = Vec::new();
            for actor in &actors {
                found.push(on.table.get(&actor.entry_key(1)).await.unwrap().is_some());
            }
            found
        };
        assert_eq!(sweep.sweep_page(None).await.unwrap(), SweepStep::default());
        assert_eq!(has_logs().await, [true; 4]);
        tokio::time::advance(2 * day).await;
        for count in [2, 0] {
            assert_eq!(sweep.sweep_page(None).await.unwrap(), SweepStep { count, ..SweepStep::default() });
            assert_eq!(has_logs().await, [false, true, true, false]);
        }
        // The sweep does not read the notes of chats with files again before a day is over.
        let due = async || ended::before(&*on.table, on.clock.now() - day, 9, None).await.unwrap().0.len();
        assert_eq!(due().await, 0);
        tokio::time::advance(FILE_STAYS).await;
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(due().await, 2);
        files.purge(FileId(chats[1].0), &by()).await.unwrap();
        assert_eq!(sweep.sweep_page(None).await.unwrap().count, 1);
        assert_eq!(has_logs().await, [false, false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_of_several_steps_goes_on_while_the_time_goes_on() {
        let on = OnFakes::new().await;
        let (workspaces, clock) = (on.workspaces.clone(), on.clock.clone());
        let sweep = EndedActors { workspaces, semaphores: on.semaphores(), kept: Duration::from_secs(60), clock };
        for number in 0..=AT_ONCE {
            let actor = engine::machine::actor_id(on.id, TaskId::from_key("test", &number.to_string()));
            let noted = ended::noting(&actor, &Key::new("list", actor.as_str()), on.clock.now()).unwrap();
            on.table.commit(vec![noted]).await.unwrap();
        }
        tokio::time::advance(Duration::from_secs(120)).await;
        let first = sweep.sweep_page(None).await.unwrap();
        assert_eq!((first.count, first.more), (AT_ONCE as u64, true));
        tokio::time::advance(Duration::from_secs(1)).await;
        let rest = sweep.sweep_page(first.next.as_deref()).await.unwrap();
        assert_eq!(rest, SweepStep { count: 1, ..SweepStep::default() });
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_a_deleted_chat_has_not_given_back_is_given_back_before_its_log_goes() {
        let on = OnFakes::new().await;
        let (workspaces, clock) = (on.workspaces.clone(), on.clock.clone());
        let sweep = EndedActors { workspaces, semaphores: on.semaphores(), kept: Duration::from_secs(60), clock };
        let [deleted, other] = ["deleted", "other"].map(|name| chat::actor_id(on.id, ChatId::from_key("test", name)));
        on.holds(&slots::shared_places(), on.id, &[("its place", &deleted), ("another place", &other)]).await;
        let noted = ended::noting(&deleted, &Key::new("list", deleted.as_str()), on.clock.now()).unwrap();
        let entry = Write::put(deleted.entry_key(1), "{}", Expect::Absent);
        on.table.commit(vec![entry, noted]).await.unwrap();
        tokio::time::advance(Duration::from_secs(120)).await;
        assert_eq!(sweep.sweep_page(None).await.unwrap().count, 1);
        assert_eq!(on.given_back(), [(slots::shared_places(), "its place".to_owned())]);
        assert_eq!(on.table.get(&deleted.entry_key(1)).await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_log_of_a_deleted_task_stays_while_a_re_run_reads_it_or_it_is_listed_again() {
        let on = OnFakes::new().await;
        let (workspaces, clock) = (on.workspaces.clone(), on.clock.clone());
        let sweep = EndedActors { workspaces, semaphores: on.semaphores(), kept: Duration::from_secs(60), clock };
        let [recorded, rerun] = ["recorded", "re-run"].map(|name| TaskId::from_key("test", name));
        let actor = engine::machine::actor_id(on.id, recorded);
        let view = |task: TaskId| Key::new(format!("{}/tasks", on.id), task.to_string());
        let put = async |key: Key, body: &str| {
            on.table.commit(vec![Write::put(key, body, Expect::Any)]).await.unwrap();
        };
        put(actor.entry_key(1), "{}").await;
        on.table.commit(vec![ended::noting(&actor, &view(recorded), on.clock.now()).unwrap()]).await.unwrap();
        tokio::time::advance(Duration::from_secs(120)).await;

        put(Key::new(format!("{}/reruns", on.id), rerun.to_string()), "{}").await;
        put(view(rerun), r#"{"phase":"suspended"}"#).await;
        assert_eq!(sweep.sweep_page(None).await.unwrap(), SweepStep::default());
        put(view(rerun), r#"{"phase":"finished"}"#).await;
        put(view(recorded), "{}").await;
        assert_eq!(sweep.sweep_page(None).await.unwrap(), SweepStep::default());
        assert!(on.table.get(&actor.entry_key(1)).await.unwrap().is_some());
        on.table.commit(vec![Write::delete(view(recorded), Expect::Any)]).await.unwrap();
        assert_eq!(sweep.sweep_page(None).await.unwrap().count, 1);
        assert_eq!(on.table.get(&actor.entry_key(1)).await.unwrap(), None);
    }
}
