#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::on_fakes::OnFakes;
use actor::{Content, Envelope};
use domain::{ChatId, TaskId};
use ports::{Expect, Key, Write};
use slots::SlotsCommand;

#[tokio::test]
async fn all_that_the_table_has_of_a_deleted_workspace_goes_and_nothing_of_another_one() {
    let on = OnFakes::new().await;
    let other = WorkspaceId::from_key("test", "another");
    let id = |number: u32| ChatId::from_key("test", &number.to_string()).0;
    let mut keys = Vec::new();
    for workspace in [on.id, other] {
        let chats = [1, 2, 3].map(|number| chat::actor_id(workspace, ChatId(id(number))));
        let tasks = [4, 5].map(|number| engine::machine::actor_id(workspace, TaskId(id(number))));
        let schedule = schedule::machine::actor_id(workspace, id(6));
        for actor in chats.iter().chain(&tasks).chain([&schedule]) {
            keys.push(actor.entry_key(1));
            keys.push(actor.snapshot_key());
        }
        // On lists: of people, of a task's agent, of tasks and of schedules. The third chat and the second task were deleted before.
        for (list, number) in [("chats", 1), ("chats", 2), ("tasks", 4), ("schedules", 6), ("evaluations", 8)] {
            keys.push(Key::new(format!("{workspace}/{list}"), id(number).hyphenated().to_string()));
        }
        for ended in [&chats[2], &tasks[1]] {
            keys.extend(
                actor::ended::noting(ended, &Key::new("list", "a"), domain::Timestamp::from_millis(1))
                    .map(|write| write.key().clone()),
            );
        }
        keys.push(Key::new("evaluations/open", format!("{workspace}/{}", id(8))));
        keys.push(Key::new(format!("{workspace}/flows"), "demo/hash"));
        for own in [
            "memory/global",
            "memory/project/demo",
            "admitted/demo",
            "runs",
            "reruns",
            "permissions",
            "rules",
            "threads",
            "waiting",
        ] {
            keys.push(Key::new(format!("{workspace}/{own}"), "a"));
        }
        for of_task in [id(4), id(5)] {
            for own in ["memory/task", "memory/snapshot", "artifacts/task"] {
                keys.push(Key::new(format!("{workspace}/{own}/{}", of_task.hyphenated()), "a"));
            }
        }
    }
    for key in &keys {
        on.table.commit(vec![Write::put(key.clone(), "{}", Expect::Any)]).await.unwrap();
    }
    for _ in 0..2 {
        TableDependents { table: on.table.clone(), semaphores: on.semaphores() }.remove(on.id).await.unwrap();
        let mut left = Vec::new();
        for key in &keys {
            if on.table.get(key).await.unwrap().is_some() {
                left.push(key);
            }
        }
        let (of_other, of_this): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|key| key.pk.contains(&other.to_string()) || key.sk.contains(&other.to_string()));
        assert_eq!((of_other.len(), of_this), (keys.len() / 2, vec![]));
    }
}

#[tokio::test]
async fn places_and_slots_of_a_deleted_workspace_are_given_back_and_those_of_another_one_are_not() {
    let on = OnFakes::new().await;
    let other = WorkspaceId::from_key("test", "another");
    let [of_this, of_other] = [on.id, other].map(|workspace| chat::actor_id(workspace, ChatId::from_key("test", "c")));
    let own = [slots::places_of(on.id), slots::semaphore(on.id)];
    on.holds(&slots::places_of(on.id), on.id, &[("own", &of_this)]).await;
    on.holds(&slots::semaphore(on.id), on.id, &[("slots", &of_this)]).await;
    on.holds(&slots::semaphore(other), other, &[("slots", &of_other)]).await;
    TableDependents { table: on.table.clone(), semaphores: on.semaphores() }.remove(on.id).await.unwrap();
    let holders = ["own", "slots"].map(str::to_owned);
    assert_eq!(on.given_back(), own.into_iter().zip(holders).collect::<Vec<_>>());
    // Also what its log does not show: the request may lie in its mailbox.
    let released = SlotsCommand::Release { party: on.id.to_string() };
    let to_shared = on.queue.messages().into_iter().filter(|message| message.group == slots::shared_places().as_str());
    let commands: Vec<_> =
        to_shared.map(|message| Envelope::<SlotsCommand>::parse(&message.body).unwrap().content).collect();
    assert!(matches!(commands.as_slice(), [Content::Command { body }] if *body == released), "{}", commands.len());
}
